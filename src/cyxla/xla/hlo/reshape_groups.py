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

    A reshape of present sizes is one group. In an empty one, the sizes at both ends that are equal are groups.
    """
    if prod(operand) != prod(result):
        return [ReshapeGroup(tuple(range(len(operand))), tuple(range(len(result))))]
    if 0 in operand:
        return _groups_of_empty(operand, result)
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


def _groups_of_empty(operand: Sequence[int], result: Sequence[int]) -> list[ReshapeGroup]:
    shortest = min(len(operand), len(result))
    first = next((k for k in range(shortest) if operand[k] != result[k]), shortest)
    last = next((k for k in range(shortest - first) if operand[-1 - k] != result[-1 - k]), shortest - first)
    head = [ReshapeGroup((k,), (k,)) for k in range(first)]
    tail = [ReshapeGroup((len(operand) - k,), (len(result) - k,)) for k in range(last, 0, -1)]
    between = ReshapeGroup(tuple(range(first, len(operand) - last)), tuple(range(first, len(result) - last)))
    if between.operand and between.result:
        return [*head, between, *tail]
    if not (between.operand or between.result):
        return [*head, *tail]
    beside = head.pop() if head else ReshapeGroup((), ())
    after = tail.pop(0) if not beside.operand and tail else ReshapeGroup((), ())
    joined = ReshapeGroup(
        beside.operand + between.operand + after.operand, beside.result + between.result + after.result
    )  # fmt: skip
    return [*head, joined, *tail]


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
