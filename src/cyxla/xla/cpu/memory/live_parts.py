"""Parts of arrays that copies move: results of which the live elements alone are read (see `plan.live_rows`)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import prod
from typing import NamedTuple

from cyxla.types import ElementType
from cyxla.xla.cpu.kernel.kernel import Value
from cyxla.xla.cpu.memory.locations import Location
from cyxla.xla.cpu.plan.nodes import ConditionalNode, Node, Plan, WhileNode

MIN_PART_BYTES = 4096  # size from which a part of an array is copied rather than the whole
MIN_ROW_BYTES = 512  # size of a row from which its part is copied: short rows are copied with their neighbours


class Size(NamedTuple):
    """Size in memory that bounds the live elements of an array along a dimension."""

    location: Location
    dtype: ElementType


class LivePart(NamedTuple):
    """Leading part of an array.

    Attributes
    ----------
    dims : tuple of int
        Dimensions of the array.
    itemsize : int
        Bytes of an element.
    sizes : tuple of (int, tuple of Size)
        Dimensions that are cut, each with the sizes of which the greatest is the number of elements along it.
    """

    dims: tuple[int, ...]
    itemsize: int
    sizes: tuple[tuple[int, tuple[Size, ...]], ...]


#: Function from the number of a result or state to the part of it that is read; None for all of it.
PartOf = Callable[[int], LivePart | None]


def part_of(position: tuple[Node | Plan, str, int], locations: Mapping[Value, Location]) -> PartOf:
    """Return a function from a number to the part that a copy of that result or state moves, None for the whole.

    Parameters
    ----------
    position : tuple
        Position of the copies (see `Buffers.copies`).
    locations : mapping of Value to Location
        Locations of all arrays.
    """
    node, where, branch = position
    plan, values = _results(node, where, branch)

    def part(number: int) -> LivePart | None:
        return None if plan is None else _part(plan, values, number, locations)

    return part


def final_parts(node: WhileNode, locations: Mapping[Value, Location]) -> PartOf:
    """Return a function from a number to the part of a loop's final state that is read."""
    return lambda number: _part(node.body, node.state, number, locations)


def _results(node: Node | Plan, where: str, branch: int) -> tuple[Plan | None, Sequence[Value]]:
    """Return the plan whose results are copied, and the values that hold them and their sizes."""
    if isinstance(node, Plan):
        return node, node.results
    if isinstance(node, WhileNode):
        return node.body, node.initial if where == "enter" else node.body.results
    if isinstance(node, ConditionalNode):
        return node.branches[branch], node.branches[branch].results
    return None, ()


def _part(plan: Plan, values: Sequence[Value], number: int, locations: Mapping[Value, Location]) -> LivePart | None:
    if not plan.live:
        return None
    shape = plan.computation.root.shape.leaves()[number]  # that of the value may be another one, of as many elements
    if shape.nbytes < MIN_PART_BYTES or shape.is_dynamic:
        return None
    sizes: dict[int, list[Size]] = {}
    for leaf, dimension, size in plan.live:
        if leaf == number:
            value = values[size] if size >= 0 else Value(plan.computation.parameters[~size])
            if value not in locations:
                return None
            sizes.setdefault(dimension, []).append(Size(locations[value], value.shape.dtype))
    itemsize = shape.nbytes // shape.size
    long = {d: found for d, found in sorted(sizes.items()) if _is_long(shape.dims, d, itemsize)}
    return LivePart(shape.dims, itemsize, tuple((d, tuple(found)) for d, found in long.items())) if long else None


def _is_long(dims: Sequence[int], dimension: int, itemsize: int) -> bool:
    return dims[dimension] > 1 and prod(dims[dimension:]) * itemsize >= MIN_ROW_BYTES
