"""Split the iteration space of a group into boxes in which the index arithmetic needs no guards."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from itertools import pairwise
from math import gcd, prod
from typing import Any

from cyxla.records import dataclass
from cyxla.types import ElementType
from cyxla.xla.cpu.kernel.kernel import Value
from cyxla.xla.cpu.loops.hoisting import reachable
from cyxla.xla.cpu.loops.index_map import (
    Affine,
    Atom,
    Choice,
    Condition,
    Division,
    Index,
    Loop,
    Remainder,
    Space,
    atoms_of,
    strides,
)
from cyxla.xla.cpu.loops.loop_ir import Body, Reads
from cyxla.xla.cpu.loops.nodes import Guard, Node

MAX_BOXES = 24
_MAX_BOX_NODES = 4000  # limit of nodes times boxes; beyond it, guards stay in the loops
_MAX_PHASES = 4


@dataclass
class Store:
    """Store to an array: its slot among the writes, its element type, the index, and the value."""

    slot: int
    dtype: ElementType
    form: Affine
    node: Node


@dataclass
class Box:
    """Box of the iteration space, with the values computed and stored there."""

    body: Body
    stores: list[Store]
    extents: tuple[int, ...]
    region: Region | None = None
    nodes: list[Node] = field(init=False)
    forms: list[Affine] = field(init=False)

    def __post_init__(self) -> None:
        self.nodes, self.forms = reachable([s.node for s in self.stores], [s.form for s in self.stores])

    @property
    def size(self) -> int:
        """Number of points."""
        return prod(self.extents)


StoresAt = Callable[[Body, Index], list[Store]]  # lowers the stores at an index of the iteration space


@dataclass
class Region:
    """Box before it is lowered: bounds and step of each dimension, and the loops that the dimension is split into."""

    bounds: tuple[tuple[int, int], ...]
    splits: tuple[tuple[int, ...], ...] = ()
    steps: tuple[int, ...] = ()

    def loops(self) -> tuple[tuple[int, ...], ...]:
        """Return the trip counts of the loops of each dimension."""
        return self.splits or tuple((-((low - high) // self.step(d)),) for d, (low, high) in enumerate(self.bounds))

    def step(self, d: int) -> int:
        """Return the step between neighbours along a dimension."""
        return self.steps[d] if self.steps else 1


def lower_box(
    region: Region,
    dims: tuple[int, ...],
    fused: Mapping[Any, int],
    reads: Reads,
    stores_at: StoresAt,
    externals: dict[Value, Any] | None = None,
) -> Box:
    """Lower the outputs of a group over one region."""
    loops = region.loops()
    flat = tuple(n for split in loops for n in split)
    space = Space(flat)
    index = space.index(dims, tuple(_coordinates(space, region)))
    body = Body(space, fused, reads, externals)
    return Box(body, stores_at(body, index), flat, region)


def _coordinates(space: Space, region: Region) -> list[Affine]:
    coordinates, position = [], 0
    for d, ((low, _), split) in enumerate(zip(region.bounds, region.loops(), strict=True)):
        parts = [(space.loop(position + i), step * region.step(d)) for i, step in enumerate(strides(split))]
        coordinates.append(space.combine(parts).shift(low))
        position += len(split)
    return coordinates


def split_into_boxes(
    dims: tuple[int, ...],
    fused: Mapping[Any, int],
    reads: Reads,
    stores_at: StoresAt,
    externals: dict[Value, Any] | None = None,
) -> list[Box]:
    """Split the iteration space so that guards are decided and quotients vanish, as far as that is worthwhile."""
    root = Region(tuple((0, n) for n in dims))
    pending: list[Region] = [root]
    done: list[Box] = []
    while pending:
        region = pending.pop()
        box = lower_box(region, dims, fused, reads, stores_at, externals)
        pieces = _split_at_guards(box, region)
        count = len(done) + len(pending) + len(pieces or ())
        if pieces is not None and count <= MAX_BOXES and len(box.nodes) * count <= _MAX_BOX_NODES:
            pending += pieces[::-1]
        elif (smaller := split_region(box.forms, region)) is not None:
            pending.append(smaller)
        else:
            done.append(box)
    return done


def _split_at_guards(box: Box, region: Region) -> list[Region] | None:
    """Split a region where the guards of one dimension change, or by remainder; None if there is nothing to split."""
    if region.splits:
        return None
    for atom in box.body.space.loops:
        step = _phases(box, atom)
        if step > 1 and region.step(atom.position) == 1:
            (low, high), steps = region.bounds[atom.position], [region.step(d) for d in range(len(region.bounds))]
            steps[atom.position] = step
            starts = [(low + k, high) for k in range(min(step, high - low))]
            return [Region(_with_bounds(region, atom.position, s), steps=tuple(steps)) for s in starts]
    for atom in box.body.space.loops:
        points = _breakpoints(box, atom)
        if points:
            d = atom.position
            low, high = region.bounds[d]
            borders = [low, *(low + p * region.step(d) for p in sorted(points)), high]
            return [Region(_with_bounds(region, d, bounds), steps=region.steps) for bounds in pairwise(borders)]
    return None


def _with_bounds(region: Region, d: int, bounds: tuple[int, int]) -> tuple[tuple[int, int], ...]:
    return (*region.bounds[:d], bounds, *region.bounds[d + 1 :])


def _phases(box: Box, atom: Atom) -> int:
    """Return the loop step at which an undecided condition on a remainder becomes constant; 1 if there is none."""
    for form, _, _ in _undecided_conditions(box):
        for part, _ in form.terms:
            if not isinstance(part, Remainder) or len(part.form.terms) != 1:
                continue
            ((dividend, c),), divisor = part.form.terms, part.divisor
            if dividend is atom and divisor // gcd(c, divisor) <= _MAX_PHASES:
                return divisor // gcd(c, divisor)
    return 1


def _breakpoints(box: Box, atom: Atom) -> set[int]:
    """Return the indices along a loop at which an undecided condition on that loop alone changes."""
    points: set[int] = set()
    for form, low, high in _undecided_conditions(box):
        if len(form.terms) != 1 or form.terms[0][0] is not atom:
            continue
        c, k = form.terms[0][1], form.constant
        first, last = (low - k, high - k) if c > 0 else (k - high, k - low)
        points |= {-(-first // abs(c)), last // abs(c) + 1}
    return {p for p in points if 0 < p <= atom.high}


def _undecided_conditions(box: Box) -> list[Condition]:
    conditions = [c for n in box.nodes if isinstance(n, Guard) for c in n.conditions]
    for atom in atoms_of(box.forms):
        if isinstance(atom, Choice):
            conditions += atom.conditions
    return conditions


def split_region(forms: Sequence[Affine], region: Region) -> Region | None:
    """Split one loop of a region in two, so that a quotient by a constant becomes a loop; None if there is none."""
    for atom in atoms_of(forms):
        if not isinstance(atom, Division):
            continue
        for term, c in atom.form.terms:
            if not isinstance(term, Loop) or c < 0 or atom.divisor % c:
                continue
            extent, step = term.high + 1, atom.divisor // c
            if 1 < step < extent and extent % step == 0:
                return Region(region.bounds, _with_split(region.loops(), term.position, step), region.steps)
    return None


def _with_split(dims: tuple[tuple[int, ...], ...], position: int, step: int) -> tuple[tuple[int, ...], ...]:
    """Return the loops of each dimension, with the loop at a position split."""
    result, first = [], 0
    for loops in dims:
        local = position - first
        first += len(loops)
        result.append(
            (*loops[:local], loops[local] // step, step, *loops[local + 1 :]) if 0 <= local < len(loops) else loops
        )
    return tuple(result)
