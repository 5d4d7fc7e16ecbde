"""Independent parts of a reshape: runs of dimensions whose sizes have one product on both sides."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import NamedTuple

from cyxla.types import Shape


class ReshapeGroup(NamedTuple):
    """Dimensions of the operand that become dimensions of the result, apart from all others."""

    operand: tuple[int, ...]
    result: tuple[int, ...]


def reshape_groups(operand: Sequence[int], result: Sequence[int]) -> list[ReshapeGroup]:
    """Split a reshape into the smallest groups; dimensions of size 1 belong to one beside them.

    An empty reshape, or one of present sizes, is one group.
    """
    if 0 in operand or prod(operand) != prod(result):
        return [ReshapeGroup(tuple(range(len(operand))), tuple(range(len(result))))]
    groups: list[ReshapeGroup] = []
    i = j = 0
    while i < len(operand) and j < len(result):
        start = (i, j)
        left, right = operand[i], result[j]
        i, j = i + 1, j + 1
        while left != right:
            if left < right:
                left, i = left * operand[i], i + 1
            else:
                right, j = right * result[j], j + 1
        groups.append(ReshapeGroup(tuple(range(start[0], i)), tuple(range(start[1], j))))
    rest = ReshapeGroup(tuple(range(i, len(operand))), tuple(range(j, len(result))))
    if groups and (rest.operand or rest.result):
        last = groups.pop()
        rest = ReshapeGroup(last.operand + rest.operand, last.result + rest.result)
    return [*groups, rest] if rest.operand or rest.result else groups


def dynamic_result(group: ReshapeGroup, shape: Shape, inferred: int | None) -> int | None:
    """Return the dimension of a reshape's result that has the dynamic size of a group, or None if that is ambiguous.

    It is the inferred dimension, the last that the result states as dynamic, or the only one of several elements. All
    others of the group are full.
    """
    if inferred in group.result:
        return inferred
    stated = [d for d in group.result if shape.dynamic[d]] or list(group.result)
    wide = [d for d in stated if shape.dims[d] != 1]
    if any(shape.dynamic[d] for d in stated):
        return (wide or stated)[-1]
    candidates = wide if len(stated) > 1 else stated
    return candidates[0] if len(candidates) == 1 else None
