"""Reductions independent of their loop order: elements at points of an iteration space, lowered over loops."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from math import prod

from cyxla.records import dataclass
from cyxla.xla.cpu.kernel.groups import Group
from cyxla.xla.cpu.kernel.kernel import Value
from cyxla.xla.cpu.loops.hoisting import collapse, reachable
from cyxla.xla.cpu.loops.index_map import Affine, Atom, Condition, Index
from cyxla.xla.cpu.loops.iteration_boxes import Region, Store, lower_box, split_region
from cyxla.xla.cpu.loops.live_loops import collapsed_trips, live_trips
from cyxla.xla.cpu.loops.loop_ir import Body, Reads
from cyxla.xla.cpu.loops.loop_text import Fold, LoopListing
from cyxla.xla.cpu.loops.nodes import Node
from cyxla.xla.cpu.reduce.accumulators import Accumulator
from cyxla.xla.hlo import Instruction
from cyxla.xla.service.refusal import Refusal

PART = "part"  # key of the external value that is the index of a part, and its name in C

# (body, kept coordinates, reduced coordinates) -> the elements to combine, and the conditions under which they exist
Elements = Callable[[Body, Sequence[Affine], Sequence[Affine]], tuple[list[Node], tuple[Condition, ...]]]


@dataclass
class Problem:
    """Reduction to emit: its dims, elements and combiner, and the use of its results.

    Attributes
    ----------
    group : Group
        Group to emit.
    root : Instruction
        Reduction or window of the group.
    kept, reduced : tuple of int
        Extents of the kept and of the reduced dims, the iteration space.
    elements : callable
        Lowering of the elements to combine at a point.
    inits : list of Instruction
        Initial values.
    results : list of Value
        Values that the rest of the group reads as the reduction's results.
    live : mapping of int to sequence of Value
        Sizes by dimension of the iteration space, the kept ones first: no point at or beyond the greatest of them
        changes a result that is read.
    unmasked : bool
        Whether the loops over reduced dimensions end at these sizes, so that elements need no mask.
    """

    group: Group
    root: Instruction
    kept: tuple[int, ...]
    reduced: tuple[int, ...]
    elements: Elements
    inits: tuple[Instruction, ...]
    results: list[Value]
    writes: tuple[Value, ...] = ()
    acc: Accumulator | None = None
    arg_reduction: bool = False  # see `reduce.arg_reductions`
    applies_init: bool = True  # the last step of a reduction combines the initial value
    live: Mapping[int, Sequence[Value]] = field(default_factory=dict)
    unmasked: bool = False

    @property
    def has_stops(self) -> bool:
        """True if some elements to combine lie beyond a size."""
        return any(d >= len(self.kept) for d in self.live)

    @property
    def is_empty(self) -> bool:
        """True if there is nothing to combine."""
        return 0 in self.reduced

    @property
    def points(self) -> int:
        """Size of the iteration space."""
        return prod(self.kept) * prod(self.reduced)


@dataclass
class Lowered:
    """Reduction lowered over loops."""

    problem: Problem
    body: Body
    elements: list[Node]
    inits: list[Node]
    result_nodes: list[Node]
    stores: list[Store]
    kept: list[tuple[Atom, int]]
    reduced: list[tuple[Atom, int]]
    dropped: set[Atom]
    conditions: tuple[Condition, ...]
    live: dict[Atom, str] = field(default_factory=dict)  # C of the trip counts of loops over live elements
    before: list[Node] = field(default_factory=list)  # dependencies of the elements
    after: list[Node] = field(default_factory=list)  # dependencies of the stores

    def listing(self, scalar: str = "") -> LoopListing:
        """Return the loop IR; `scalar` is the reason for which it is not vectorised, if it is not."""
        inits: Sequence[Node | None] = self.inits or [None] * len(self.result_nodes)
        folds = [Fold(*fold) for fold in zip(self.result_nodes, self.elements, inits, strict=True)]
        refusal = Refusal.of("vectorisation", self.problem.root, scalar) if scalar else None
        return LoopListing(self.body, self.stores, folds, scalar=refusal)


# ------------------------------------------------------------------------------------------------------------ lowering
def lower_problem(problem: Problem, reads: Reads, parts: int) -> Lowered:
    """Lower a reduction, with loops split so that reshapes need no division."""
    dims = (*problem.kept, *problem.reduced)
    region = Region(tuple((0, n) for n in dims))
    while True:
        lowered = _lower_region(problem, region, dims, reads, parts)
        store_forms = [s.form for s in lowered.stores] + [c.form for c in lowered.conditions]
        forms = reachable([*lowered.elements, *(s.node for s in lowered.stores)], store_forms)[1]
        smaller = split_region(forms, region)
        if smaller is None:
            return _collapse_loops(lowered, region, forms, reads)
        region = smaller


def _lower_region(problem: Problem, region: Region, dims: tuple[int, ...], reads: Reads, parts: int) -> Lowered:
    lowered: dict[str, Lowered] = {}
    externals = {v: lambda index, n=n: result_nodes[n] for n, v in enumerate(problem.results)}
    result_nodes: list[Node] = []

    def stores_at(body: Body, index: Index) -> list[Store]:
        rank = len(problem.kept)
        kept_index, reduced_index = index.coordinates[:rank], index.coordinates[rank:]
        body.sizes = {index.coordinates[d]: size for d, size in _sizes(problem, region).items()}
        result_nodes[:] = [body.external(v.shape.dtype, n) for n, v in enumerate(problem.results)]
        elements, conditions = (
            _placeholders(body, problem) if problem.is_empty else problem.elements(body, kept_index, reduced_index)
        )
        inits = [body.value(i, body.space.scalar) for i in problem.inits]
        out = body.space.index(problem.kept, tuple(kept_index))
        stores = _stores(problem, body, out, result_nodes, parts)
        lowered[""] = Lowered(problem, body, elements, inits, result_nodes, stores, [], [], set(), conditions)
        return stores

    lower_box(region, dims, problem.group.numbers, reads, stores_at, externals)
    return lowered[""]


def _sizes(problem: Problem, region: Region) -> dict[int, Value]:
    """Return the sizes that indices are below at all points that matter, by dimension of the iteration space."""
    kept = len(problem.kept)
    return {
        d: sizes[0]
        for d, sizes in problem.live.items()
        if len(sizes) == 1 and (d < kept or (problem.unmasked and _ends_at_size(region, d)))
    }


def _ends_at_size(region: Region, d: int) -> bool:
    """Return whether a dimension is one loop, over single indices; one of a single iteration is no loop."""
    loops = region.loops()[d]
    return len(loops) == 1 and loops[0] > 1 and region.step(d) == 1


def _placeholders(body: Body, problem: Problem) -> tuple[list[Node], tuple[Condition, ...]]:
    """Return placeholders for the elements of empty arrays: loops that never run must not read anything."""
    return [body.constant(v.shape.dtype, v.shape.dtype.numpy_dtype.type(0)) for v in problem.results], ()  # type: ignore[union-attr]


def _stores(problem: Problem, body: Body, out: Index, result_nodes: list[Node], parts: int) -> list[Store]:
    if parts > 1:
        part_index = body.space.runtime(body.external(result_nodes[0].dtype, PART), parts - 1)
        form = body.space.combine(((out.linear, parts), (part_index, 1)))
        return [
            Store(n, w.shape.dtype, form, g) for n, (w, g) in enumerate(zip(problem.writes, result_nodes, strict=True))
        ]
    stores = []
    for slot, value in enumerate(problem.writes):
        index = out.at(value.shape.dims)
        number = problem.results.index(value) if value in problem.results else None
        node = result_nodes[number] if number is not None else body.value(value.instruction, index)
        stores.append(Store(slot, value.shape.dtype, index.linear, node))
    return stores


def _collapse_loops(lowered: Lowered, region: Region, forms: list[Affine], reads: Reads) -> Lowered:
    count = sum(len(s) for s in region.loops()[: len(lowered.problem.kept)])
    extents = [n for s in region.loops() for n in s]
    loops = list(zip(lowered.body.space.loops, extents, strict=True))
    trips = live_trips(region, lowered.body.space.loops, lowered.problem.live, reads) if lowered.problem.live else {}
    lowered.kept, dropped_kept = collapse(loops[:count], forms, trips)
    lowered.reduced, dropped_reduced = collapse(loops[count:], forms, trips)
    for part, dropped in ((loops[:count], dropped_kept), (loops[count:], dropped_reduced)):
        lowered.live |= collapsed_trips(part, dropped, trips)
    lowered.dropped = dropped_kept | dropped_reduced | {a for a, n in loops if n == 1}
    lowered.before = reachable([*lowered.elements, *lowered.inits], [c.form for c in lowered.conditions])[0]
    lowered.after = reachable([s.node for s in lowered.stores], [s.form for s in lowered.stores])[0]
    return lowered
