"""Emitter of row groups: several passes over each row while it is in the cache.

A pass computes the reductions that need no later result. A costly value that a later pass needs again is saved in a
buffer on the stack (or in the memory of a result of the row); other values are recomputed. Each reduction adds up in
the order of `reduce.loops.by_rows`, so its result is bitwise that of a kernel of its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field
from itertools import pairwise
from math import prod

from cyxla.records import dataclass
from cyxla.xla.cpu.c import scalar
from cyxla.xla.cpu.emitters import emit, emits_group
from cyxla.xla.cpu.kernel import cost, machine
from cyxla.xla.cpu.kernel.groups import Group, GroupKind
from cyxla.xla.cpu.kernel.kernel import KernelKind, Step, Value
from cyxla.xla.cpu.kernel.sum_order import MIN_ROW_LENGTH
from cyxla.xla.cpu.loops.elementwise import describe
from cyxla.xla.cpu.loops.hoisting import collapse, reachable
from cyxla.xla.cpu.loops.index_map import Affine, Atom, Index, Runtime, atoms_of
from cyxla.xla.cpu.loops.iteration_boxes import Region, Store, lower_box, split_region
from cyxla.xla.cpu.loops.live_loops import collapsed_trips, live_count
from cyxla.xla.cpu.loops.loop_ir import Body, Reads
from cyxla.xla.cpu.loops.loop_kernel import MAX_UNBLOCKED_TRIP, KernelFrame, Part, assemble, live_units
from cyxla.xla.cpu.loops.loop_text import Fold, LoopListing
from cyxla.xla.cpu.loops.nodes import Apply, Guard, Load, Map, Node, flops
from cyxla.xla.cpu.reduce.accumulators import Accumulator, accumulator
from cyxla.xla.cpu.reduce.rows.passes import Passes, RowReduction, write_rows
from cyxla.xla.cpu.reduce.rows.row_shape import Rows, rows_of
from cyxla.xla.hlo import Instruction
from cyxla.xla.hlo.combiners import combiner
from cyxla.xla.service.refusal import Refusal

_MAX_EFFORT = 1 << 20  # more than any limit on recomputed operations
_BUFFER_BYTES = machine.L1_BYTES  # limit of a row's temporaries


class _NotByRowsError(Exception):
    """Raised if a group reads the result of another row, or if its loops do not run along rows."""


@emits_group(GroupKind.ROW)
def row(group: Group) -> list[Step]:
    """Emit one kernel if every index fits; else a kernel for each of the groups that it was made of."""
    try:
        return [_step(group)]
    except _NotByRowsError as error:
        group.reasons.append(Refusal("row fusion", f"row group of {len(group.parts)} kernels", str(error)))
        return [step for part in group.parts for step in emit(part)]


@dataclass
class _Lowered:
    """Row group lowered over its rows."""

    rows: Rows
    body: Body
    sums: list[RowReduction]
    by_element: list[Store]
    by_row: list[Store]
    result_nodes: dict[Node, int] = field(default_factory=dict)  # results of reductions, by number

    def roots(self) -> list[Node]:
        """Return the values that the kernel must compute."""
        return [*(s.element for s in self.sums), *(s.init for s in self.sums), *(s.node for s in self.stores())]

    def stores(self) -> list[Store]:
        """Return all stores."""
        return [*self.by_element, *self.by_row]


def _step(group: Group) -> Step:
    reads = Reads()
    lowered, region, forms = _lower(group, reads)
    loops = list(zip(lowered.body.space.loops, [n for s in region.loops() for n in s], strict=True))
    count = len(region.loops()[0])
    trips = _live_rows(group, [*loops[:count]], reads) if group.live else {}
    row_loops, dropped_rows = collapse(loops[:count], forms, trips)
    inner_loops, dropped_inner = collapse(loops[count:], forms)
    if len(inner_loops) != 1:
        raise _NotByRowsError("a row is not a single loop")
    passes = _passes(lowered, row_loops, inner_loops[0])
    writes = tuple(Value(o) for o in group.outputs)
    frame = KernelFrame(reads, writes, streamed=sum(w.shape.nbytes for w in writes) > cost.STREAMING_BYTES)
    live = collapsed_trips(loops[:count], dropped_rows, trips)
    passes.live_rows = {i: live[a] for i, (a, _) in enumerate(row_loops) if a in live}
    passes.live_length = _live_length(group, lowered.rows[1], reads)
    points = prod(lowered.rows)
    ns = cost.element_ns(i for i in group.instructions if i.shape.size >= points) * points
    ns += sum(cost.memory_ns(min(v.shape.nbytes, points * v.shape.dtype.itemsize)) for v in (*reads.values, *writes))
    passes.dropped = dropped_rows | dropped_inner | {a for a, n in loops if n == 1}
    text, units = write_rows(passes, frame, cost.tasks(ns))
    folds = [Fold(node, lowered.sums[n].element, lowered.sums[n].init) for node, n in lowered.result_nodes.items()]
    live_count = live_units([n for _, n in row_loops], cost.tasks(ns), 1, passes.live_rows)
    listing = LoopListing(lowered.body, lowered.stores(), folds)
    part = Part(text, units, ns, (listing,), live_count, _live_work(passes, ns))
    kernel = assemble([part], frame, KernelKind.ROW, note=describe(group))
    return Step(kernel, reads.values, writes)


def _live_starts(group: Group) -> list[int]:
    """Return the dimensions at which the rows are split into loops, so that the number of live ones can be cut."""
    return sorted({0, *group.live})


def _row_splits(group: Group) -> tuple[int, ...]:
    """Return the extents of the loops over rows."""
    dims, starts = group.space, _live_starts(group)
    return tuple(prod(dims[a:b]) for a, b in pairwise([*starts, len(dims)]))


def _live_length(group: Group, length: int, reads: Reads) -> str:
    """Return the C of the number of elements of a row that matter; empty if all of them do."""
    texts = []
    for d, sizes in group.stops.items():
        extent = next(i for i in group.instructions if i.opcode == "reduce").operands[0].shape.dims[d]
        texts.append(live_count(sizes, reads, extent, length // extent))
    return "".join(texts)


def _live_work(passes: Passes, ns: float) -> tuple[str, float]:
    """Return the C of the number of elements that matter, and the time of one in ns; empty and 0 if all of them do."""
    if not passes.live_rows and not passes.live_length:
        return "", 0.0
    rows = [passes.live_rows.get(i, str(n)) for i, (_, n) in enumerate(passes.row_loops)]
    points = prod(n for _, n in passes.row_loops) * passes.inner[1]
    return " * ".join([*rows, passes.live_length or str(passes.inner[1])]), ns / points


def _live_rows(group: Group, loops: Sequence[tuple[Atom, int]], reads: Reads) -> dict[Atom, str]:
    """Return the C of the trip counts of loops over live rows; each loop of `_row_splits` is one or more of `loops`."""
    dims, trips, position = group.space, {}, 0
    for start, extent in zip(_live_starts(group), _row_splits(group), strict=True):
        atom, count = loops[position]
        if start in group.live:
            rows = live_count(group.live[start], reads, dims[start], extent // dims[start])
            trips[atom] = rows if count == extent else f"cyx_live_steps({rows}, 0, {extent // count}, {count})"
        covered = 1
        while covered < extent:
            covered, position = covered * loops[position][1], position + 1
        position += extent == 1
    return trips


# ------------------------------------------------------------------------------------------------------------ lowering
def _lower(group: Group, reads: Reads) -> tuple[_Lowered, Region, list[Affine]]:
    reductions = [i for i in group.instructions if i.opcode == "reduce"]
    rows = rows_of(reductions[0])
    assert rows is not None
    region = Region(((0, rows[0]), (0, rows[1])), (_row_splits(group), (rows[1],)) if group.live else ())
    while True:
        lowered = _lower_region(group, reductions, region, rows, reads)
        forms = reachable(lowered.roots(), [s.form for s in lowered.stores()])[1]
        smaller = split_region(forms, region)
        if smaller is None:
            return lowered, region, forms
        region = smaller


def _lower_region(
    group: Group, reductions: Sequence[Instruction], region: Region, rows: Rows, reads: Reads
) -> _Lowered:
    results: list[_Lowered] = []
    row: list[Index] = []  # set to the index of the row
    externals = {Value(r): lambda index, n=n: result(n, index) for n, r in enumerate(reductions)}

    def result(number: int, index: Index) -> Node:
        if index.linear != row[0].linear:
            raise _NotByRowsError("it reads the result of another row")
        lowered = results[0]
        node = lowered.body.external(reductions[number].shape.dtype, number)
        lowered.result_nodes[node] = number
        return node

    def stores_at(body: Body, index: Index) -> list[Store]:
        row.append(body.space.index((rows[0],), index.coordinates[:1]))
        lowered = _Lowered(rows, body, [], [], [])
        results.append(lowered)
        body.sizes = _sizes(group, index.at(reductions[0].operands[0].shape.dims), rows[1])
        for r in reductions:
            element = body.value(r.operands[0], index.at(r.operands[0].shape.dims))
            lowered.sums.append(RowReduction(element, body.value(r.operands[1], body.space.scalar), _accumulator(r), r))
        for slot, out in enumerate(group.outputs):
            is_by_element = out.shape.size == prod(rows)
            out_index = (index if is_by_element else row[0]).at(out.shape.dims)
            node = result(reductions.index(out), out_index) if out in reductions else body.value(out, out_index)
            (lowered.by_element if is_by_element else lowered.by_row).append(
                Store(slot, out.shape.dtype, out_index.linear, node)
            )
        return []

    lower_box(region, rows, group.numbers, reads, stores_at, externals)
    return results[0]


def _sizes(group: Group, element: Index, length: int) -> dict[Affine, Value]:
    """Return the sizes that indices of an element are below wherever it matters; see `Body`.

    Loops along long rows run over whole blocks, beyond the last element that matters.
    """
    along_row = group.stops if length <= MAX_UNBLOCKED_TRIP else {}
    only = {d: sizes[0] for d, sizes in {**group.live, **along_row}.items() if len(sizes) == 1}
    return {element.coordinates[d]: size for d, size in only.items() if element.dims[d] > 1}


def _accumulator(ins: Instruction) -> Accumulator:
    opcode = combiner(ins.called[0])
    acc = accumulator(opcode, ins.shape.dtype) if opcode is not None else None
    assert acc is not None
    return acc


# -------------------------------------------------------------------------------------------------------------- passes
def _passes(lowered: _Lowered, row_loops: list[tuple[Atom, int]], inner: tuple[Atom, int]) -> Passes:
    """Assign values to passes, and choose the values saved in one pass for another."""
    atom, length = inner
    if length < MIN_ROW_LENGTH:
        raise _NotByRowsError("rows are short")
    nodes = reachable(lowered.roots(), [s.form for s in lowered.stores()])[0]
    varying = _varying(nodes, atom)
    _check_loads(nodes, varying, row_loops, atom)
    first_pass = _pass_numbers(lowered, nodes)
    sum_passes = [first_pass[s.element] for s in lowered.sums]
    count = 1 + max([*sum_passes, *(first_pass[s.node] for s in lowered.by_element)])
    passes = Passes(lowered.body, row_loops, inner, [], lowered.by_row, lowered.result_nodes)
    for p in range(count):
        sums = {n: s for n, s in enumerate(lowered.sums) if sum_passes[n] == p}
        stores = [s for s in lowered.by_element if first_pass[s.node] == p]
        passes.add(sums, stores)
    _choose_saved(passes, varying, length)
    return passes


def _varying(nodes: Sequence[Node], inner: Atom) -> set[Node]:
    """Return the nodes that vary along a row."""
    varying: set[Node] = set()
    for node in nodes:
        forms = node.forms
        if any(o in varying for o in node.operands) or (forms and inner in atoms_of(forms)):
            varying.add(node)
    return varying


def _check_loads(nodes: Sequence[Node], varying: set[Node], row_loops: list[tuple[Atom, int]], inner: Atom) -> None:
    for node in nodes:
        if node not in varying:
            continue
        if isinstance(node, Guard):
            raise _NotByRowsError("a row has borders")
        if isinstance(node, Load) and node.form.coefficient(inner) not in (1, -1):
            raise _NotByRowsError("an array is read with a stride along the row")


def _pass_numbers(lowered: _Lowered, nodes: Sequence[Node]) -> dict[Node, int]:
    """Return the first pass in which each node can be computed."""
    first_pass: dict[Node, int] = {}
    for node in nodes:  # operands come first
        earlier = [first_pass[o] for o in (*node.operands, *_runtime(node))]
        if node in lowered.result_nodes:
            total = lowered.sums[lowered.result_nodes[node]]
            earlier += [first_pass[total.element] + 1, first_pass[total.init]]
        first_pass[node] = max(earlier, default=0)
    return first_pass


def _runtime(node: Node) -> list[Node]:
    """Return the nodes that a node's runtime indices are read from."""
    return [a.node for a in atoms_of(node.forms) if isinstance(a, Runtime)]


def _choose_saved(passes: Passes, varying: set[Node], length: int) -> None:
    """Choose the costly values needed in several passes, and a buffer or the memory of a store for each."""
    first_pass: dict[Node, int] = {}
    effort: dict[Node, int] = {}
    last_reads: dict[Node, int] = {}  # values, with the last pass that reads each
    for p, row_pass in enumerate(passes.passes):
        stack = row_pass.roots()
        while stack:
            node = stack.pop()
            if node not in varying or first_pass.get(node) == p:
                continue
            if node in first_pass and _effort(node, varying, effort) > cost.CHEAP_FLOPS:
                last_reads[node] = p
            else:
                first_pass[node] = min(first_pass.get(node, p), p)
                stack += node.operands
    size = 0
    for node, last_pass in last_reads.items():
        passes.saved_in[node] = first_pass[node]
        nbytes = length * (8 if node.dtype.itemsize > 4 else 4)
        if size + nbytes <= _BUFFER_BYTES:
            size += nbytes
            continue
        store = _reused_store(passes, node, last_pass)
        if store is None:
            raise _NotByRowsError(f"a row would need {nbytes} more bytes of buffers")
        passes.reused_stores[node] = store


def _reused_store(passes: Passes, node: Node, last_pass: int) -> Store | None:
    """Return a result of the row that is written after the last read of a value, and can hold it until then."""
    if scalar.storage_type(node.dtype) != scalar.register_type(node.dtype):
        return None
    for row_pass in passes.passes[last_pass:]:
        has_slow_path = any(_has_slow_path(n) for n in reachable(row_pass.roots(), (), passes.saved_in)[0])
        for store in (
            () if has_slow_path else row_pass.stores
        ):  # a loop with slow paths may run twice, and must not overwrite its input
            fits = store.dtype is node.dtype and store.form.coefficient(passes.inner[0]) == 1
            if fits and store not in passes.reused_stores.values():
                return store
    return None


def _has_slow_path(node: Node) -> bool:
    return isinstance(node, Apply) and scalar.slow_path(node.opcode, node.operands[0].dtype) is not None


def _effort(node: Node, varying: set[Node], efforts: dict[Node, int]) -> int:
    """Return the number of simple operations to recompute a node of one element."""
    stack = [node]
    while stack:
        top = stack[-1]
        missing = [o for o in top.operands if o in varying and o not in efforts]
        if missing and top not in efforts:
            stack += missing
            continue
        stack.pop()
        own_flops = flops(top) if isinstance(top, Apply | Map) else 0
        efforts[top] = min(own_flops + sum(efforts.get(o, 0) for o in top.operands), _MAX_EFFORT)
    return efforts[node]
