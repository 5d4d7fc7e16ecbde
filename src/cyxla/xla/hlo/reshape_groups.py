"""Independent parts of a reshape: runs of dimensions whose sizes have one product on both sides."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import NamedTuple


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
