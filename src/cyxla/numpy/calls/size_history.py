"""Sizes that a function was called with, and the dimensions that should be compiled for any size."""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, TypeAlias

from cyxla.numpy.calls.lowering import Spec
from cyxla.numpy.calls.signatures import Call
from cyxla.records import dataclass

Dim: TypeAlias = tuple[int, int]  # index of an input, and of one of its dimensions
Shapes: TypeAlias = tuple[tuple[int, ...], ...]

_REMEMBERED = 16  # calls of a group that are remembered


@dataclass(frozen=True)
class OpenDims:
    """Dimensions to compile for any size.

    Attributes
    ----------
    groups : tuple of tuple of (int, int)
        Dimensions whose sizes were equal in each call, in groups: pairs of the index of an input and of one of its
        dimensions.
    """

    groups: tuple[tuple[Dim, ...], ...]

    def sizes(self, shapes: Sequence[Sequence[int]]) -> tuple[int, ...] | None:
        """Return the size of each group in a call, or None if the sizes of a group differ."""
        sizes = []
        for group in self.groups:
            values = {shapes[k][d] for k, d in group}
            if len(values) > 1:
                return None
            sizes.append(values.pop())
        return tuple(sizes)

    def without(self, shapes: Sequence[Sequence[int]]) -> Shapes:
        """Return shapes with -1 in place of the sizes of these dimensions."""
        open_dims = {dim for group in self.groups for dim in group}
        return tuple([tuple([-1 if (k, d) in open_dims else n for d, n in enumerate(s)]) for k, s in enumerate(shapes)])


def shapes_of(call: Call) -> Shapes:
    """Return the shape of each input of a call; those that are not arrays have none that counts."""
    return tuple([s.shape if _is_open(s) else () for s in call.specs if isinstance(s, Spec)])


def group_key(call: Call) -> Any:
    """Return a key that is equal for calls that differ in sizes alone."""
    specs = [replace(s, shape=(-1,) * len(s.shape)) if _is_open(s) else s for s in call.specs]
    return (call.binding.keywords, tuple(call.trees), tuple(specs))


def _is_open(spec: Any) -> bool:
    """Return True if the sizes of an argument may be open: it is an array, or a list of numbers passed as one."""
    return isinstance(spec, Spec) and spec.adapter is None


class SizeHistory:
    """Shapes of the calls of a function, in groups of calls that differ in sizes alone.

    Parameters
    ----------
    count : int
        Number of sizes of a dimension after which the next one opens it.
    """

    def __init__(self, count: int) -> None:
        self.count = count
        self._seen: dict[Any, deque[Shapes]] = defaultdict(lambda: deque(maxlen=_REMEMBERED))

    def add(self, key: Any, shapes: Shapes, growing: Sequence[int] = ()) -> OpenDims | None:
        """Record a call with new sizes.

        Parameters
        ----------
        key : hashable
            Key of its group.
        shapes : tuple of tuple of int
            Shape of each input.
        growing : sequence of int
            Inputs whose sizes are known to change.

        Returns
        -------
        OpenDims or None
            Dimensions that have had `count` other sizes in calls that agree with this one in all other sizes, and those
            of `growing`.
        """
        earlier = self._seen[key]
        variants: dict[frozenset[Dim], list[Shapes]] = defaultdict(list)
        for other in earlier:
            variants[_differences(shapes, other)].append(other)
        earlier.append(shapes)
        open_dims = frozenset((k, 0) for k in growing)
        for dims, others in sorted(variants.items(), key=lambda item: len(item[0])):
            if dims and len(others) >= self.count:
                return OpenDims(_groups_of_equal_sizes(dims | open_dims, [shapes, *others]))
        return OpenDims(_groups_of_equal_sizes(open_dims, [shapes])) if open_dims else None


def _differences(shapes: Shapes, other: Shapes) -> frozenset[Dim]:
    return frozenset(
        (k, d)
        for k, (left, right) in enumerate(zip(shapes, other, strict=True))
        for d, (m, n) in enumerate(zip(left, right, strict=True))
        if m != n
    )


def _groups_of_equal_sizes(dims: frozenset[Dim], calls: Sequence[Shapes]) -> tuple[tuple[Dim, ...], ...]:
    groups: dict[tuple[int, ...], list[Dim]] = defaultdict(list)
    for k, d in sorted(dims):
        groups[tuple([shapes[k][d] for shapes in calls])].append((k, d))
    return tuple(map(tuple, groups.values()))
