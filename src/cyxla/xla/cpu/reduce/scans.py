"""Cumulative reductions (scans): windows that reach from one end to each element, in one pass."""

from __future__ import annotations

from math import prod
from typing import Any, NamedTuple

from cyxla.xla.cpu.c import scalar, scalar_computation
from cyxla.xla.cpu.c.independence import independence
from cyxla.xla.cpu.c.writer import CWriter
from cyxla.xla.cpu.kernel import cost
from cyxla.xla.cpu.kernel.carried_products import barrier_if, combiner_carries_product
from cyxla.xla.cpu.kernel.cumulative_windows import Prefix
from cyxla.xla.cpu.kernel.groups import Group
from cyxla.xla.cpu.kernel.kernel import KernelKind, Step, Value
from cyxla.xla.cpu.loops.elementwise import describe
from cyxla.xla.cpu.loops.hoisting import BLOCK_LEVEL, Level, LoopNest, collapse, reachable
from cyxla.xla.cpu.loops.index_map import Affine, Atom, Index, Loop
from cyxla.xla.cpu.loops.iteration_boxes import Region, Store, lower_box, split_region
from cyxla.xla.cpu.loops.live_loops import collapsed_trips, live_trips
from cyxla.xla.cpu.loops.loop_ir import Body, Reads
from cyxla.xla.cpu.loops.loop_kernel import Blocks, KernelFrame, Part, assemble, close_loops, live_units, open_loops
from cyxla.xla.cpu.loops.loop_text import Fold, LoopListing
from cyxla.xla.cpu.loops.nodes import Load, Node
from cyxla.xla.cpu.reduce.accumulators import Accumulator
from cyxla.xla.hlo import Instruction
from cyxla.xla.service.refusal import Refusal

_PARALLEL_ROWS = 2  # interleaved rows of a scan along the innermost dimension
_PARALLEL_COSTLY_ROWS = 16  # the same if each step calls a computation: enough to fill a vector
_SERIAL_INTEGER_BITS = (
    32  # bits of integers that run alone: a step takes a cycle, and gcc would make slow vectors of two
)
_MAX_COLUMNS = 1024  # adjacent columns in a block


class _Scan(NamedTuple):
    """Scan lowered over a region."""

    body: Body
    element: Node
    init: Node
    result: Node
    stores: list[Store]
    loops: list[tuple[Atom, int]]
    axis: Atom
    length: int
    root: Instruction
    region: Region


def scan_step(group: Group, prefix: Prefix, acc: Accumulator | None) -> Step:
    """Emit a group whose root is a scan; without an accumulator, its computation is inlined at each step."""
    root, reads = group.root, Reads()
    writes = tuple(Value(o) for o in group.outputs)
    scan = _lower(group, prefix, reads)
    frame = KernelFrame(reads, writes, live=group.live)
    points = root.shape.size
    step = 0.5 if acc is not None else cost.element_ns(root.called[0].instructions)
    ns = (cost.element_ns(group.instructions) + step) * points + cost.memory_ns(root.shape.nbytes) * 2
    part = _part(scan, prefix, acc or _ComputationAccumulator(root), frame, ns)
    return Step(assemble([part] if points else [], frame, KernelKind.SCAN, note=describe(group)), reads.values, writes)


def _lower(group: Group, prefix: Prefix, reads: Reads) -> _Scan:
    root = group.root
    dims = root.shape.dims
    region = Region(tuple((0, n) for n in dims))
    while True:
        scan = _lower_region(group, prefix, reads, region)
        forms = _forms(scan)
        smaller = split_region(forms, region)
        if smaller is None or len(smaller.loops()[prefix.dimension]) > 1:
            return scan
        region = smaller


def _lower_region(group: Group, prefix: Prefix, reads: Reads, region: Region) -> _Scan:
    root = group.root
    lowered: list[Any] = []

    def stores_at(body: Body, index: Index) -> list[Store]:
        result = body.external(root.shape.dtype, "result")
        lowered[:] = [result]
        stores = []
        for slot, out in enumerate(group.outputs):
            out_index = index.at(out.shape.dims)
            stores.append(Store(slot, out.shape.dtype, out_index.linear, body.value(out, out_index)))
        lowered.extend([body, body.value(root.operands[0], index), body.value(root.operands[1], body.space.scalar)])
        return stores

    box = lower_box(region, root.shape.dims, group.numbers, reads, stores_at, {Value(root): lambda _: lowered[0]})
    result, body, element, init = lowered
    position = sum(len(s) for s in region.loops()[: prefix.dimension])
    axis = body.space.loops[position]
    loops = list(zip(body.space.loops, box.extents, strict=True))
    return _Scan(body, element, init, result, box.stores, loops, axis, root.shape.dims[prefix.dimension], root, region)


def _forms(scan: _Scan) -> list[Affine]:
    return reachable([scan.element, *(s.node for s in scan.stores)], [s.form for s in scan.stores])[1]


class _ComputationAccumulator:
    """Accumulator that inlines any computation: it starts from the initial value."""

    def __init__(self, root: Instruction) -> None:
        self.computation, self.dtype = root.called[0], root.shape.dtype
        self.carries_product = combiner_carries_product(self.computation)
        zero = f"cyx_{self.dtype}_of(0, 0)" if self.dtype.is_complex else "0"
        self.variables = ((scalar.register_type(self.dtype), zero),)

    def write(self, writer: CWriter, init: str, element: str) -> str:
        """Emit a step; return its result."""
        before = writer.local(self.variables[0][0], f"step ? acc0[k] : {init}")
        (result,) = scalar_computation.inline(self.computation, [before, element], writer)
        writer.line(f"acc0[k] = {result};")
        return result


def _part(
    scan: _Scan, prefix: Prefix, acc: Accumulator | _ComputationAccumulator, frame: KernelFrame, ns: float
) -> Part:
    forms = _forms(scan)
    position = next(i for i, (a, _) in enumerate(scan.loops) if a is scan.axis)
    trips = live_trips(scan.region, [a for a, _ in scan.loops], frame.live, frame.reads) if frame.live else {}
    before, dropped = collapse(scan.loops[:position], forms, trips)
    after, dropped_after = collapse(scan.loops[position + 1 :], forms, trips)
    live = collapsed_trips(scan.loops[:position], dropped, trips)
    live |= collapsed_trips(scan.loops[position + 1 :], dropped_after, trips)
    all_dropped = dropped | dropped_after | {a for a, n in scan.loops if n == 1}
    loops = [*before, *after]
    axis: list[Atom] = [scan.axis]
    inner = loops[-1:]  # adjacent columns; or rows, if the scan is along the innermost dimension
    outer: list[Level] = [a for a, _ in loops[:-1]]
    max_width = _MAX_COLUMNS if after else _rows(acc)
    blocks = Blocks(inner[0][1], min(inner[0][1], max_width), True) if inner else Blocks(1, 1, True)
    blocked = blocks.count > 1
    levels: list[Level] = [*outer, *([BLOCK_LEVEL] if blocked else []), *axis, *(a for a, _ in inner)]
    if not inner:
        levels.append(Loop.unmentioned())
    nest = LoopNest(scan.body, levels, frame.names.child(), scalar=True)
    nest.dropped, nest.tables = all_dropped, frame.tables
    lines = _lines(scan, acc, nest)
    writer = CWriter()
    slots = sorted({n.slot for n in scan.body.nodes if isinstance(n, Load)})
    with writer.block("static void KERNEL_1(void *const *bufs, int64_t first, int64_t last)"):
        frame.pointers(writer, slots, [s.slot for s in scan.stores])
        writer.lines(nest.writers[0].written)
        extents = [n for _, n in loops[:-1]] + ([blocks.count] if blocked else [])
        counts = {i: live[a] for i, (a, _) in enumerate(loops[:-1]) if a in live}
        if blocked and loops[-1][0] in live:
            counts[len(extents) - 1] = blocks.live(live[loops[-1][0]])
        units, opened = open_loops(writer, [nest], extents, [blocks], cost.tasks(ns), live=counts)
        _loops(
            writer,
            nest,
            acc,
            lines,
            (len(extents), blocks.length, scan.length, prefix.backward),
            trips.get(scan.axis, ""),
        )
        close_loops(writer, opened)
    fold = Fold(scan.result, scan.element, scan.init)
    serial = not after and blocks.length <= _PARALLEL_ROWS
    scalar = Refusal.of("vectorisation", scan.root, "each result depends on the one before") if serial else None
    listing = LoopListing(scan.body, scan.stores, [fold], scalar=scalar)
    work = ""
    if trips:
        sizes = [*(live.get(a, str(n)) for a, n in loops), trips.get(scan.axis, str(scan.length))]
        work = " * ".join(sizes)
    points = max(1, scan.length * prod(n for _, n in loops))
    return Part(
        writer.text(), units, ns, (listing,), live_units(extents, cost.tasks(ns), 1, counts), (work, ns / points)
    )


def _rows(acc: Accumulator | _ComputationAccumulator) -> int:
    """Return the number of interleaved rows."""
    if isinstance(acc, _ComputationAccumulator):
        return _PARALLEL_COSTLY_ROWS
    is_integer = not acc.dtype.is_float and not acc.dtype.is_complex
    return 1 if is_integer and acc.dtype.bits >= _SERIAL_INTEGER_BITS else _PARALLEL_ROWS


def _lines(scan: _Scan, acc: Accumulator | _ComputationAccumulator, nest: LoopNest) -> list[str]:
    """Return the innermost lines: combine an element, compute the result, store it."""
    nest.write(reachable([scan.element, scan.init])[0])
    writer = nest.writers[-1]
    if isinstance(acc, _ComputationAccumulator):
        result = acc.write(writer, nest.text(scan.init), nest.text(scan.element))
    else:
        names = [f"acc{i}[k]" for i in range(len(acc.variables))]
        for name, new in zip(names, acc.update(names, nest.text(scan.element)), strict=True):
            writer.line(f"{name} = {new};")
        total = writer.local(scalar.register_type(acc.total_dtype), acc.total(names))
        result_value = acc.with_init(nest.text(scan.init), total)
        result = writer.local(scalar.register_type(acc.dtype), result_value, scan.body.quote(scan.root))
    nest.set_external(scan.result, result, nest.depth)
    nest.write(reachable([s.node for s in scan.stores], [s.form for s in scan.stores])[0])
    for s in scan.stores:
        writer.line(f"r{s.slot}[{nest.form(s.form)}] = {scalar.store(s.dtype, nest.text(s.node))};")
    return writer.written


def _loops(
    writer: CWriter,
    nest: LoopNest,
    acc: Accumulator | _ComputationAccumulator,
    lines: list[str],
    sizes: tuple[int, int, int, bool],
    live: str = "",
) -> None:
    """Emit the loop over steps, of which those below the C of a size matter."""
    level, trip, length, backward = sizes
    with writer.block(""):
        for i, (c_type, unit) in enumerate(acc.variables):
            writer.line(f"{c_type} acc{i}[{trip}] __attribute__((aligned(64)));")
            writer.line(f"for (int k = 0; k < {trip}; ++k) acc{i}[k] = {unit};")
        name, end = nest.counter(level), str(length)
        if live:
            end = "end"
            writer.line(f"const int64_t end = {live};")
        with writer.block(f"for (int64_t step = 0; step < {end}; ++step)"):
            writer.line(f"const int64_t {name} = {f'{length - 1} - step' if backward else 'step'};")
            writer.lines(nest.writers[level + 1].written)
            writer.lines(barrier_if(isinstance(acc, _ComputationAccumulator) and acc.carries_product))
            writer.lines(independence(trip, nest.body.dtypes))
            with writer.block(f"for (int k = 0; k < {trip}; ++k)"):
                writer.lines(lines)
