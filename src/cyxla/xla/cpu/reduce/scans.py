"""Cumulative reductions (scans): windows that reach from one end to each element, in one pass."""

from __future__ import annotations

from typing import Any, NamedTuple

from cyxla.xla.cpu.c import scalar, scalar_computation
from cyxla.xla.cpu.c.writer import CWriter
from cyxla.xla.cpu.kernel import cost
from cyxla.xla.cpu.kernel.carried_products import barrier_if, combiner_carries_product
from cyxla.xla.cpu.kernel.groups import Group, Prefix
from cyxla.xla.cpu.kernel.kernel import KernelKind, Step, Value
from cyxla.xla.cpu.loops.elementwise import describe
from cyxla.xla.cpu.loops.hoisting import BLOCK_LEVEL, Level, LoopNest, collapse, reachable
from cyxla.xla.cpu.loops.index_map import Affine, Atom, Index, Loop
from cyxla.xla.cpu.loops.iteration_boxes import Region, Store, lower_box, split_region
from cyxla.xla.cpu.loops.loop_ir import Body, Reads
from cyxla.xla.cpu.loops.loop_kernel import Blocks, KernelFrame, Part, assemble, close_loops, open_loops
from cyxla.xla.cpu.loops.loop_text import Fold, LoopListing
from cyxla.xla.cpu.loops.nodes import Load, Node
from cyxla.xla.cpu.reduce.accumulators import Accumulator
from cyxla.xla.hlo import Instruction
from cyxla.xla.service.refusal import Refusal

_PARALLEL_ROWS = 2  # interleaved rows if the scan is along the innermost dimension
_PARALLEL_COSTLY_ROWS = 16  # likewise with a computation for each step: enough to fill a vector
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


def scan_step(group: Group, found: Prefix, acc: Accumulator | None) -> Step:
    """Emit a group whose root is a scan; without an accumulator, its computation is inlined at each step."""
    root, reads = group.root, Reads()
    writes = tuple(Value(o) for o in group.outputs)
    scan = _lower(group, found, reads)
    frame = KernelFrame(reads, writes)
    points = root.shape.size
    step = 0.5 if acc is not None else cost.element_ns(root.called[0].instructions)
    ns = (cost.element_ns(group.instructions) + step) * points + cost.memory_ns(root.shape.nbytes) * 2
    part = _part(scan, found, acc or _ComputationAccumulator(root, found.backward), frame, ns)
    return Step(assemble([part] if points else [], frame, KernelKind.SCAN, note=describe(group)), reads.values, writes)


def _lower(group: Group, found: Prefix, reads: Reads) -> _Scan:
    root = group.root
    dims = root.shape.dims
    region = Region(tuple((0, n) for n in dims))
    while True:
        scan = _lower_region(group, found, reads, region)
        forms = _forms(scan)
        split = split_region(forms, region)
        if split is None or len(split.loops()[found.dimension]) > 1:
            return scan
        region = split


def _lower_region(group: Group, found: Prefix, reads: Reads, region: Region) -> _Scan:
    root = group.root
    made: list[Any] = []

    def stores_at(body: Body, index: Index) -> list[Store]:
        result = body.given(root.shape.dtype, "result")
        made[:] = [result]
        stores = []
        for slot, out in enumerate(group.outputs):
            at = index.at(out.shape.dims)
            stores.append(Store(slot, out.shape.dtype, at.linear, body.value(out, at)))
        made.extend([body, body.value(root.operands[0], index), body.value(root.operands[1], body.space.scalar)])
        return stores

    box = lower_box(region, root.shape.dims, group.numbers, reads, stores_at, {Value(root): lambda _: made[0]})
    result, body, element, init = made
    position = sum(len(s) for s in region.loops()[: found.dimension])
    axis = body.space.loops[position]
    loops = list(zip(body.space.loops, box.extents, strict=True))
    return _Scan(body, element, init, result, box.stores, loops, axis, root.shape.dims[found.dimension], root)


def _forms(scan: _Scan) -> list[Affine]:
    return reachable([scan.element, *(s.node for s in scan.stores)], [s.form for s in scan.stores])[1]


class _ComputationAccumulator:
    """Accumulator that inlines any computation: it starts from the initial value."""

    def __init__(self, root: Instruction, backward: bool) -> None:
        self.computation, self.dtype, self.backward = root.called[0], root.shape.dtype, backward
        self.carries_product = combiner_carries_product(self.computation)
        zero = f"cyx_{self.dtype}_of(0, 0)" if self.dtype.is_complex else "0"
        self.variables = ((scalar.register_type(self.dtype), zero),)

    def write(self, writer: CWriter, init: str, element: str) -> str:
        """Emit a step; return its result."""
        before = writer.local(self.variables[0][0], f"step ? acc0[k] : {init}")
        sides = [element, before] if self.backward else [before, element]  # elements stay in their order
        (result,) = scalar_computation.inline(self.computation, sides, writer)
        writer.line(f"acc0[k] = {result};")
        return result


def _part(
    scan: _Scan, found: Prefix, acc: Accumulator | _ComputationAccumulator, frame: KernelFrame, ns: float
) -> Part:
    forms = _forms(scan)
    at = next(i for i, (a, _) in enumerate(scan.loops) if a is scan.axis)
    before, dropped = collapse(scan.loops[:at], forms)
    after, also = collapse(scan.loops[at + 1 :], forms)
    gone = dropped | also | {a for a, n in scan.loops if n == 1}
    kept = [*before, *after]
    axis: list[Atom] = [scan.axis]
    inner = kept[-1:]  # adjacent columns; or rows, if the scan is along the innermost dimension
    lead: list[Level] = [a for a, _ in kept[:-1]]
    most = _MAX_COLUMNS if after else _rows(acc)
    blocks = Blocks(inner[0][1], min(inner[0][1], most), True) if inner else Blocks(1, 1, True)
    blocked = blocks.count > 1
    levels: list[Level] = [*lead, *([BLOCK_LEVEL] if blocked else []), *axis, *(a for a, _ in inner)]
    if not inner:
        levels.append(Loop.unmentioned())
    nest = LoopNest(scan.body, levels, frame.names.child(), scalar=True)
    nest.dropped, nest.tables = gone, frame.tables
    lines = _lines(scan, acc, nest)
    writer = CWriter()
    slots = sorted({n.slot for n in scan.body.nodes if isinstance(n, Load)})
    with writer.block("static void KERNEL_1(void *const *bufs, int64_t first, int64_t last)"):
        frame.pointers(writer, slots, [s.slot for s in scan.stores])
        writer.lines(nest.writers[0].written)
        extents = [n for _, n in kept[:-1]] + ([blocks.count] if blocked else [])
        units, opened = open_loops(writer, [nest], extents, [blocks], cost.tasks(ns))
        _loops(writer, nest, acc, lines, (len(extents), blocks.length, scan.length, found.backward))
        close_loops(writer, opened)
    fold = Fold(scan.result, scan.element, scan.init)
    serial = not after and blocks.length <= _PARALLEL_ROWS
    scalar = Refusal.of("vectorisation", scan.root, "each result depends on the one before") if serial else None
    return Part(writer.text(), units, ns, (LoopListing(scan.body, scan.stores, [fold], scalar=scalar),))


def _rows(acc: Accumulator | _ComputationAccumulator) -> int:
    """Return the number of interleaved rows."""
    if isinstance(acc, _ComputationAccumulator):
        return _PARALLEL_COSTLY_ROWS
    whole = not acc.dtype.is_float and not acc.dtype.is_complex
    return 1 if whole and acc.dtype.bits >= _SERIAL_INTEGER_BITS else _PARALLEL_ROWS


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
        joined = acc.with_init(nest.text(scan.init), total)
        result = writer.local(scalar.register_type(acc.dtype), joined, scan.body.quote(scan.root))
    nest.set_given(scan.result, result, nest.depth)
    nest.write(reachable([s.node for s in scan.stores], [s.form for s in scan.stores])[0])
    for s in scan.stores:
        writer.line(f"r{s.slot}[{nest.form(s.form)}] = {scalar.store(s.dtype, nest.text(s.node))};")
    return writer.written


def _loops(
    writer: CWriter,
    nest: LoopNest,
    acc: Accumulator | _ComputationAccumulator,
    lines: list[str],
    how: tuple[int, int, int, bool],
) -> None:
    level, trip, length, backward = how
    with writer.block(""):
        for i, (c_type, unit) in enumerate(acc.variables):
            writer.line(f"{c_type} acc{i}[{trip}] __attribute__((aligned(64)));")
            writer.line(f"for (int k = 0; k < {trip}; ++k) acc{i}[k] = {unit};")
        name = nest.counter(level)
        with writer.block(f"for (int64_t step = 0; step < {length}; ++step)"):
            writer.line(f"const int64_t {name} = {f'{length - 1} - step' if backward else 'step'};")
            writer.lines(nest.writers[level + 1].written)
            writer.lines(barrier_if(isinstance(acc, _ComputationAccumulator) and acc.carries_product))
            writer.line("#pragma GCC ivdep")
            with writer.block(f"for (int k = 0; k < {trip}; ++k)"):
                writer.lines(lines)
