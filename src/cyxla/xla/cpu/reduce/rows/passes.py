"""C of row groups: consecutive passes over a row, inside the loop over rows."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import field

from cyxla.records import dataclass
from cyxla.types import ElementType
from cyxla.xla.cpu.c import scalar
from cyxla.xla.cpu.c.independence import independence
from cyxla.xla.cpu.c.writer import CWriter
from cyxla.xla.cpu.loops.hoisting import BLOCK_LEVEL, BLOCK_START, INNER_COUNTER, Level, LoopNest, reachable
from cyxla.xla.cpu.loops.index_map import Atom
from cyxla.xla.cpu.loops.iteration_boxes import Store
from cyxla.xla.cpu.loops.loop_ir import Body
from cyxla.xla.cpu.loops.loop_kernel import MAX_UNBLOCKED_TRIP, Blocks, KernelFrame, close_loops, open_loops
from cyxla.xla.cpu.loops.nodes import Apply, Load, Node
from cyxla.xla.cpu.reduce.accumulators import Accumulator
from cyxla.xla.cpu.reduce.lane_loops import MAX_UNROLLED, LaneLoop, effort, may_read_on
from cyxla.xla.cpu.reduce.rows.pipelined_rows import CURRENT, PREVIOUS, ROW_COUNTER, RowPipeline
from cyxla.xla.cpu.reduce.rows.prefetch import RUN_LENGTH, Prefetch, Runs, busiest
from cyxla.xla.hlo import Instruction

F32, F64 = ElementType.F32, ElementType.F64
MIN_SPREAD_LENGTH = 256  # shorter rows have one lane for a maximum or minimum
_LANE_BYTES = 128  # lanes of a maximum or minimum: two vectors, since an update depends on the one before
_PASS = "pass"  # level in which the results of earlier passes are available


@dataclass(frozen=True, eq=False)
class RowReduction:
    """Reduction of a row: its element, initial value, accumulator and instruction."""

    element: Node
    init: Node
    acc: Accumulator
    root: Instruction


@dataclass
class Pass:
    """Pass over a row: the reductions (by index) and stores of one loop."""

    sums: dict[int, RowReduction]
    stores: list[Store]

    def roots(self) -> list[Node]:
        """Return the values that the loop must compute."""
        return [*(s.element for s in self.sums.values()), *(s.node for s in self.stores)]


@dataclass
class Passes:
    """Row group lowered over loops and split into passes.

    Attributes
    ----------
    body : Body
        Loop IR of the group.
    row_loops : list of (Atom, int)
        Loops over rows, with their trip counts.
    inner : (Atom, int)
        Loop along a row, with its trip count.
    passes : list of Pass
        Passes in order.
    by_row : list of Store
        Stores of one element per row, after all passes.
    result_nodes : dict of Node to int
        Results of reductions, by the index of the reduction.
    saved_in : dict of Node to int
        Values that later passes read from a buffer, and the pass that fills it.
    reused_stores : dict of Node to Store
        Stores whose memory holds a saved value until it is overwritten, for values without room on the stack.
    live_rows : dict of int to str
        C of the trip counts of loops over rows, by their index, if not all rows matter.
    live_length : str
        C of the number of elements of a row that matter; empty if all of them do.
    """

    body: Body
    row_loops: list[tuple[Atom, int]]
    inner: tuple[Atom, int]
    passes: list[Pass]
    by_row: list[Store]
    result_nodes: dict[Node, int]
    saved_in: dict[Node, int] = field(default_factory=dict)
    reused_stores: dict[Node, Store] = field(default_factory=dict)
    dropped: set[Atom] = field(default_factory=set)
    live_rows: dict[int, str] = field(default_factory=dict)
    live_length: str = ""

    def add(self, sums: dict[int, RowReduction], stores: list[Store]) -> None:
        """Append a pass."""
        self.passes.append(Pass(sums, stores))


def write_rows(passes: Passes, frame: KernelFrame, tasks: int) -> tuple[str, int]:
    """Return the C function of a row group, and its number of parallel units."""
    return _Writer(passes, frame).write(tasks)


class _Writer:
    def __init__(self, passes: Passes, frame: KernelFrame) -> None:
        self.passes, self.frame = passes, frame
        self.names = frame.names.child()
        self.inner, self.trip = passes.inner
        self.blocks = Blocks.of(self.trip, blocked=self.trip > MAX_UNBLOCKED_TRIP, overlap=False)
        self.index = f"{BLOCK_START} + {INNER_COUNTER}" if self.trip > MAX_UNBLOCKED_TRIP else INNER_COUNTER
        self.buffers = {node: self.names.name("w") for node in passes.saved_in if node not in passes.reused_stores}
        self.results = {n: self.names.name("x") for p in passes.passes for n in p.sums}
        self.loads: dict[Load, None] = {}
        self.prefetch: Prefetch | None = None
        self.busiest = 0  # the pass that prefetches the next row and contains the pipelined pass
        self.pipeline = (
            RowPipeline.of(passes, self.names) if self.streams() and self.trip <= MAX_UNBLOCKED_TRIP else None
        )
        self.pipelined: _Loop | None = None  # the last pass, if it is pipelined: it computes the previous row

    def write(self, tasks: int) -> tuple[str, int]:
        passes, outer = self.passes, [a for a, _ in self.passes.row_loops]
        nests = self._nests()
        count = len(nests) - 1 if self.pipeline else len(nests)
        if outer and len(nests) > 1 and not passes.live_length:
            self.prefetch = Prefetch.of(self.loads, self.frame.reads.values, outer[-1], passes.inner)
        if count > 1:
            saved = [self._saved_before(p) for p in range(count)]
            self.busiest = busiest([p.roots() for p in passes.passes[:count]], saved, nests)
        pipelined_body = CWriter()
        if self.pipeline:
            self.pipelined = _Loop(self, count, passes.passes[-1], nests[-1], {})
            self.pipelined.write(pipelined_body, self.trip)
        bodies = [self._pass(p, passes.passes[p], nests[p]) for p in range(count)]
        by_row = self._by_row_nest([*outer, _PASS], nests[count - 1])
        writer = CWriter()
        with writer.block("static void KERNEL_1(void *const *bufs, int64_t first, int64_t last)"):
            self._declare(writer)
            writer.lines([f"const int64_t length = {passes.live_length};"] if passes.live_length else [])
            for nest in (*nests, by_row):
                writer.lines(nest.writers[0].written)
            levels = [n for _, n in passes.row_loops]
            writer.lines(["if (first >= last) return;"] if passes.live_rows else [])  # a task may have no live row
            units, opened = open_loops(writer, [*nests[:count], by_row], levels, [], tasks, live=passes.live_rows)
            for nest in nests[count:]:
                self._begin_pipelined(writer, nest)
            for nest, body in zip(nests, bodies, strict=False):
                writer.lines(nest.writers[len(outer) + 1].written)
                writer.lines(body.written)
            writer.lines(by_row.writers[-1].written)
            if self.pipeline:
                self.pipeline.end(writer, self.results)
            close_loops(writer, opened)
            for nest in nests[count:]:
                self._end_pipelined(writer, nest, pipelined_body)
            if self.streams():
                writer.line("cyx_stream_end();")
        return writer.text(), units

    def _declare(self, writer: CWriter) -> None:
        """Emit declarations of the arrays and of the buffers of saved values."""
        passes = self.passes
        written = [s.slot for p in passes.passes for s in p.stores] + [s.slot for s in passes.by_row]
        self.frame.pointers(writer, sorted({n.slot for n in self.loads}), written)
        for node, name in self.buffers.items():
            extents = f"[2][{self.trip}]" if self._is_double_buffered(node) else f"[{self.trip}]"
            writer.line(f"{scalar.register_type(node.dtype)} {name}{extents} __attribute__((aligned(64)));")
        if self.pipeline:
            self.pipeline.declare(writer, self.buffers, self.trip)

    # ------------------------------------------------------------------------------------------------ pipelining
    def _is_double_buffered(self, node: Node) -> bool:
        return self.pipeline is not None and node in self.pipeline.double_buffered

    def _begin_pipelined(self, writer: CWriter, nest: LoopNest) -> None:
        assert self.pipeline is not None
        self.pipeline.begin(writer)
        for depth in nest.writers[1:-1]:
            writer.lines(depth.written)

    def _end_pipelined(self, writer: CWriter, nest: LoopNest, body: CWriter) -> None:
        """Emit the pipelined pass over the last row, after the loop over rows."""
        assert self.pipeline is not None
        with writer.block("if (last > first)"):
            self.pipeline.begin_last(writer)
            for depth in nest.writers[1:-1]:
                writer.lines(depth.written)
            writer.lines(body.written)

    # ------------------------------------------------------------------------------------------------ nests
    def _nests(self) -> list[LoopNest]:
        nests: list[LoopNest] = []
        for number, row_pass in enumerate(self.passes.passes):
            nests.append(self._nest(number, row_pass, nests[-1] if nests else None))
        return nests

    def _nest(self, number: int, row_pass: Pass, earlier: LoopNest | None) -> LoopNest:
        outer: list[Level] = [*(a for a, _ in self.passes.row_loops), _PASS]
        nest = LoopNest(
            self.passes.body,
            [*outer, *([BLOCK_LEVEL] if self.trip > MAX_UNBLOCKED_TRIP else []), self.inner],
            self.names,
        )
        nest.by_lanes = any(s.acc.lanes for s in row_pass.sums.values())
        self._prepare(nest, len(outer))
        saved, row = self._saved_before(number), CURRENT
        if self.pipeline and number == len(self.passes.passes) - 1:
            row = PREVIOUS
            nest.set_counter(self.passes.row_loops[0][0], ROW_COUNTER)
            for node, n in self.passes.result_nodes.items():
                nest.set_external(node, self.pipeline.carried.get(n, ("",))[0], len(outer))
        elif earlier is not None:
            nest.share(earlier, len(outer))
        for node in saved:
            nest.set_external(node, self.saved_element(node, nest, row), nest.depth)
        roots = [*row_pass.roots(), *(s.init for s in row_pass.sums.values())]
        self._write(nest, roots, row_pass.stores, saved)
        return nest

    def _saved_before(self, number: int) -> dict[Node, None]:
        """Return the values kept by earlier passes, in the order in which they were chosen."""
        return dict.fromkeys(n for n, p in self.passes.saved_in.items() if p < number)

    def buffer(self, node: Node, row: str = CURRENT) -> str:
        """Return the C of the buffer of a saved value."""
        return self.buffers[node] + (f"[{row}]" if self._is_double_buffered(node) else "")

    def saved_element(self, node: Node, nest: LoopNest, row: str = CURRENT) -> str:
        """Return the C lvalue of the element of a saved value."""
        if node in self.buffers:
            return f"{self.buffer(node, row)}[{self.index}]"
        store = self.passes.reused_stores[node]
        return f"r{store.slot}[{nest.form(store.form)}]"

    def _by_row_nest(self, levels: list[Level], earlier: LoopNest) -> LoopNest:
        nest = LoopNest(self.passes.body, levels, self.names, scalar=True)
        self._prepare(nest, len(levels))
        nest.share(earlier, len(levels))
        self._write(nest, [s.node for s in self.passes.by_row], self.passes.by_row, ())
        for s in self.passes.by_row:
            nest.writers[-1].line(f"r{s.slot}[{nest.form(s.form)}] = {scalar.store(s.dtype, nest.text(s.node))};")
        return nest

    def _prepare(self, nest: LoopNest, depth: int) -> None:
        nest.dropped, nest.tables = self.passes.dropped, self.frame.tables
        for node, n in self.passes.result_nodes.items():
            nest.set_external(node, self.results[n], depth)

    def _write(self, nest: LoopNest, roots: list[Node], stores: list[Store], saved: Collection[Node]) -> None:
        nodes = reachable(roots, [s.form for s in stores], saved)[0]
        self.loads |= dict.fromkeys(n for n in nodes if isinstance(n, Load) and n not in saved)
        for node in nodes:
            if node not in saved and self._is_decay(node):
                depth, x = nest.depth_of(node), nest.text(node.operands[0])
                c_type, value = scalar.register_type(node.dtype), f"cyx_exp_decay_{node.dtype}({x})"
                nest.set_external(node, nest.writers[depth].local(c_type, value), depth)
            else:
                nest.write([node])

    def _is_decay(self, node: Node) -> bool:
        """Return whether a node is the exponential of a difference from the row's maximum, which is never positive."""
        if not isinstance(node, Apply) or node.opcode != "exponential" or node.dtype not in (F32, F64):
            return False
        (exponent,) = node.operands
        if not isinstance(exponent, Apply) or exponent.opcode != "subtract":
            return False
        element, maximum = exponent.operands
        sums = {n: s for row_pass in self.passes.passes for n, s in row_pass.sums.items()}
        total = sums.get(self.passes.result_nodes.get(maximum, -1))
        return total is not None and total.acc.opcode == "maximum" and total.element is element

    # ------------------------------------------------------------------------------------------------ passes
    def _pass(self, number: int, row_pass: Pass, nest: LoopNest) -> CWriter:
        """Return the lines of a pass: accumulators, the loop along the row, totals."""
        writer = CWriter()
        loop = _Loop(self, number, row_pass, nest, {})
        spread = 0 if any(s.acc.lanes for s in row_pass.sums.values()) else loop.lanes()
        loop.names |= {n: self._accumulators(s.acc, writer, s.acc.lanes or spread) for n, s in row_pass.sums.items()}
        if self.pipelined and number == 0 < self.busiest and self.prefetch:
            writer.lines(self.prefetch.begin(nest, self.trip))
        if self.trip > MAX_UNBLOCKED_TRIP:
            body = CWriter()
            loop.write_blocks(body)  # first, since it appends to the nest's writers
            count = self.blocks.live("length") if self.passes.live_length else str(self.blocks.count)
            with writer.block(f"for (int64_t {BLOCK_LEVEL} = 0; {BLOCK_LEVEL} < {count}; ++{BLOCK_LEVEL})"):
                writer.line(f"const int64_t {BLOCK_START} = {self.blocks.start};")
                writer.lines(nest.writers[-2].written)
                writer.lines(body.written)
        else:
            with writer.block(""):
                loop.write(writer, self.trip)
        for n, s in row_pass.sums.items():
            self._total(s, self._merge_lanes(s.acc, loop.names[n], spread, writer), nest, self.results[n], writer)
        return writer

    def _accumulators(self, acc: Accumulator, writer: CWriter, lanes: int) -> list[str]:
        names = []
        for c_type, unit in acc.variables:
            names.append(self.names.name("acc"))
            if lanes:
                writer.line(f"{c_type} {names[-1]}[{lanes}] __attribute__((aligned(64)));")
                writer.line(f"for (int k = 0; k < {lanes}; ++k) {names[-1]}[k] = {unit};")
            else:
                writer.line(f"{c_type} {names[-1]} = {unit};")
        return names

    def _merge_lanes(self, acc: Accumulator, names: list[str], spread: int, writer: CWriter) -> list[str]:
        """Emit the merge of lanes into scalar accumulators; return their names."""
        if not spread or acc.merge is None:
            return names
        merged = self._accumulators(acc, writer, 0)
        with writer.block(f"for (int k = 0; k < {spread}; ++k)"):
            values = acc.merge(merged, [f"{name}[k]" for name in names])
            writer.lines([f"{name} = {value};" for name, value in zip(merged, values, strict=True)])
        return merged

    def _total(self, s: RowReduction, names: list[str], nest: LoopNest, result: str, writer: CWriter) -> None:
        acc, total = s.acc, self.names.name("y")
        value = f"cyx_fold_{acc.opcode}_{acc.total_dtype}({names[0]})" if acc.lanes else acc.total(names)
        writer.line(f"const {scalar.register_type(acc.total_dtype)} {total} = {value};")
        result_value = acc.with_init(nest.text(s.init), total)
        writer.line(
            f"const {scalar.register_type(acc.dtype)} {result} = {result_value};", self.passes.body.quote(s.root)
        )

    def end(self, trip: int) -> str:
        """Return the C of the number of iterations of a loop of a trip count."""
        return "length" if self.passes.live_length and self.trip <= MAX_UNBLOCKED_TRIP else str(trip)

    def streams(self) -> bool:
        """Return whether results are stored with non-temporal stores."""
        stores = [s for p in self.passes.passes for s in p.stores]
        contiguous = all(s.form.coefficient(self.inner) == 1 for s in stores)
        if not self.frame.streamed or self.passes.reused_stores or self.passes.live_length:
            return False
        return bool(stores) and contiguous and self.trip >= 256


@dataclass
class _Loop:
    """Loop of one pass over a run of elements."""

    owner: _Writer
    number: int
    row_pass: Pass
    nest: LoopNest
    names: dict[int, list[str]]

    def write_blocks(self, writer: CWriter) -> None:
        """Emit the loop for full blocks and for the tail."""
        blocks = self.owner.blocks
        if not blocks.tail:
            self.write(writer, blocks.length)
            return
        with writer.block(f"if ({BLOCK_LEVEL} < {blocks.full})"):
            self.write(writer, blocks.length)
        with writer.block("else"):
            self.write(writer, blocks.tail)

    def write(self, writer: CWriter, trip: int) -> None:
        """Emit the loop of constant trip count, its slow paths, and the loops that combine its elements."""
        nest, after = self.nest, CWriter()
        lanes = self.lanes()
        if lanes:
            self._write_lanes(writer, trip, lanes)
            return
        lines: list[str] = []
        for node, p in self.owner.passes.saved_in.items():
            if p == self.number:
                lines.append(f"{self.owner.saved_element(node, nest)} = {nest.text(node)};")
        plan = self._run_plan(trip)
        for s in self.row_pass.stores:
            lines.append(f"s{s.slot}[j] = {self._value(s)};" if plan.streams else self._store(s, writer, after, trip))
        updates: list[str] = []
        for n, total in self.row_pass.sums.items():
            pointer = self._pointer(total)
            if pointer is None and not total.acc.lanes and not nest.slow_lanes:
                updates += _updates(total.acc, self.names[n], nest.text(total.element))
                continue
            if pointer is None:
                buffer = self.owner.names.name("t")
                writer.line(
                    f"{scalar.register_type(total.acc.total_dtype)} {buffer}[{trip}] __attribute__((aligned(64)));"
                )
                lines.append(f"{buffer}[k] = {nest.text(total.element)};")
                pointer = buffer
            self._combine(total.acc, self.names[n], pointer, after, trip)
        if lines or updates or self._contains_pipelined():
            self._write_runs(writer, [*nest.writers[-1].written, *lines], updates, trip, plan)
        writer.lines(after.written)

    def lanes(self) -> int:
        """Return the number of lanes of the reductions inside the loop; 0 if they combine its elements afterwards."""
        accs = [s.acc for s in self.row_pass.sums.values()]
        widths = {a.lanes for a in accs}
        if widths == {0} and all(a.merge for a in accs) and self.owner.trip >= MIN_SPREAD_LENGTH:
            widths = {_LANE_BYTES // a.total_dtype.itemsize for a in accs}
        needs_lanes = any(self._pointer(s) is None for s in self.row_pass.sums.values()) or len(accs) > 1
        is_simple = not self.nest.slow_lanes and len(widths) == 1 and 0 not in widths
        return (
            widths.pop()
            if needs_lanes and is_simple and effort(self.nest, self.row_pass.roots()) <= MAX_UNROLLED
            else 0
        )

    def _write_lanes(self, writer: CWriter, trip: int, lanes: int) -> None:
        """Emit a loop unrolled over the lanes, so that accumulators stay in registers."""
        nest, after = self.nest, CWriter()
        lines = [
            f"{self.owner.saved_element(n, nest)} = {nest.text(n)};"
            for n, p in self.owner.passes.saved_in.items()
            if p == self.number
        ]
        lines += [self._store(s, writer, after, trip) for s in self.row_pass.stores]
        lines = [*nest.writers[-1].written, *lines]
        updates: list[str] = []
        for n, total in self.row_pass.sums.items():
            names = [f"{name}[j]" for name in self.names[n]]
            updates += _updates(total.acc, names, nest.text(total.element))
        end, before = self.owner.end(trip), self._prefetch_lines("q", lanes)
        loop = LaneLoop(nest, lanes, lines, updates, before, self._pipelined_run, self._may_read_on(lanes))
        loop.write(writer, trip, end)
        writer.lines(after.written)

    def _may_read_on(self, lanes: int) -> bool:
        """Return whether the loop may run for whole rounds of lanes: it writes to the stack alone, and reads a row."""
        if self.row_pass.stores or self.owner.trip % lanes:
            return False
        saved = [node for node, number in self.owner.passes.saved_in.items() if number == self.number]
        return all(node in self.owner.buffers for node in saved) and may_read_on(self.row_pass.roots())

    def _pointer(self, s: RowReduction) -> str | None:
        """Return a C pointer to a reduction's elements in memory; None if they have to be stored first."""
        element = s.element
        if not s.acc.lanes:
            return None
        if element in self.owner.buffers:
            return self.owner.buffer(element) + (f" + {BLOCK_START}" if self.owner.trip > MAX_UNBLOCKED_TRIP else "")
        if element in self.owner.passes.reused_stores:
            store = self.owner.passes.reused_stores[element]
            return f"&r{store.slot}[{self.nest.block_start(store.form)}]"
        is_like_total = element.dtype is s.acc.total_dtype
        if is_like_total and isinstance(element, Load) and self.nest.is_contiguous(element.form):
            return f"&p{element.slot}[{self.nest.block_start(element.form)}]"
        return None

    def _combine(self, acc: Accumulator, names: list[str], pointer: str, writer: CWriter, trip: int) -> None:
        if acc.lanes:
            writer.line(f"cyx_lanes_{acc.opcode}_{acc.total_dtype}({names[0]}, {pointer}, {self.owner.end(trip)});")
            return
        with writer.block(f"for (int k = 0; k < {self.owner.end(trip)}; ++k)"):
            writer.lines(_updates(acc, names, f"{pointer}[k]"))

    def _value(self, s: Store) -> str:
        return scalar.store(s.dtype, self.nest.text(s.node))

    def _store(self, s: Store, writer: CWriter, after: CWriter, trip: int) -> str:
        value = self._value(s)
        if not self.owner.streams():
            return f"r{s.slot}[{self.nest.form(s.form)}] = {value};"
        writer.line(f"{scalar.storage_type(s.dtype)} s{s.slot}[{trip}] __attribute__((aligned(64)));")
        after.line(f"cyx_stream(&r{s.slot}[{self.nest.block_start(s.form)}], s{s.slot}, sizeof s{s.slot});")
        return f"s{s.slot}[k] = {value};"

    # ------------------------------------------------------------------------------------------------ runs
    def _contains_pipelined(self) -> bool:
        """Return whether this pass contains the pipelined pass."""
        return self.owner.pipelined is not None and self.number == self.owner.busiest

    def _prefetches(self) -> bool:
        return self.owner.prefetch is not None and self.number == self.owner.busiest

    def _prefetch_lines(self, first: str, count: int) -> list[str]:
        """Return the lines that prefetch a part of the next row."""
        if self.owner.prefetch is None or not self._prefetches():
            return []
        if self._contains_pipelined() and self.number:
            return self.owner.prefetch.remainder(self.nest, first, count, self.owner.trip)
        return self.owner.prefetch.lines(self.nest, first, count)

    def _pipelined_run(self, first: str, count: int) -> list[str]:
        """Return the pipelined pass over as many elements of the previous row, in a loop of its own."""
        pipelined, writer = self.owner.pipelined, CWriter()
        if pipelined is None or not self._contains_pipelined():
            return []
        with writer.block("if (u > first)"):
            if first != "c":
                writer.line(f"const int c = {first};")
            pipelined._write_run(writer, pipelined.pipelined_lines(), [], count, pipelined._run_plan(self.owner.trip))
        return writer.written

    def _interleaved(self) -> _Loop | None:
        """Return the pipelined pass if its lines can be interleaved with this loop's, for instruction parallelism."""
        pipelined = self.owner.pipelined
        return (
            pipelined
            if pipelined and self._contains_pipelined() and not self.nest.slow_lanes and not pipelined.nest.slow_lanes
            else None
        )

    def pipelined_lines(self) -> list[str]:
        """Return the lines that compute the results of an element into the arrays of a run."""
        return [*self.nest.writers[-1].written, *(f"s{s.slot}[j] = {self._value(s)};" for s in self.row_pass.stores)]

    def _run_plan(self, trip: int) -> _RunPlan:
        """Return the runs to split the loop into, if it prefetches, contains the pipelined pass or streams results."""
        streams = self.owner.streams() and bool(self.row_pass.stores)
        if not streams and not self._prefetches() and not self._contains_pipelined():
            return _RunPlan(None)
        runs = Runs.of(
            trip, RUN_LENGTH // 2 if self.owner.pipelined else RUN_LENGTH
        )  # shorter runs under more memory traffic
        sizes = [s.dtype.itemsize for s in self.row_pass.stores]  # runs of whole cache lines, or the row as one
        return _RunPlan(
            runs, streams and not any(n * size % 64 for n in (self.owner.trip, runs.length) for size in sizes)
        )

    def _write_runs(self, writer: CWriter, lines: list[str], updates: list[str], trip: int, plan: _RunPlan) -> None:
        if plan.runs is None:
            self._write_loop(writer, lines, updates, ("k", self.owner.end(trip)))
            return
        runs = plan.runs
        full = runs.length * runs.count
        with writer.block(f"for (int c = 0; c < {full}; c += {runs.length})"):
            self._write_run(writer, lines, updates, runs.length, plan)
        if runs.tail:
            with writer.block(""):
                writer.line(f"const int c = {full};")
                self._write_run(writer, lines, updates, runs.tail, plan)

    def _write_run(self, writer: CWriter, lines: list[str], updates: list[str], count: int, plan: _RunPlan) -> None:
        """Emit one run, from the element `c` of the loop on."""
        writer.lines(self._prefetch_lines("c", count))
        streams, pipelined = plan.streams, self._interleaved()
        if streams:
            self._declare_streams(writer, count)
        if pipelined:
            pipelined._declare_streams(writer, count)
            lines = [*lines, *pipelined.pipelined_lines()]
        self._write_loop(writer, ["const int k = c + j;", *lines], updates, ("j", str(count)))
        if streams:
            self._stream(writer)
        if pipelined:
            with writer.block("if (u > first)"):
                pipelined._stream(writer)
        else:
            writer.lines(self._pipelined_run("c", count))

    def _declare_streams(self, writer: CWriter, count: int) -> None:
        for s in self.row_pass.stores:
            writer.line(f"{scalar.storage_type(s.dtype)} s{s.slot}[{count}] __attribute__((aligned(64)));")

    def _stream(self, writer: CWriter) -> None:
        for s in self.row_pass.stores:
            writer.line(f"cyx_stream(&r{s.slot}[{self.nest.block_start(s.form)} + c], s{s.slot}, sizeof s{s.slot});")

    def _write_loop(self, writer: CWriter, lines: list[str], updates: list[str], loop: tuple[str, str]) -> None:
        slow_lanes, (counter, count) = self.nest.slow_lanes, loop
        if slow_lanes:
            writer.line("uint32_t rare = 0;")
        writer.lines(independence(count, self.nest.body.dtypes))
        with writer.block(f"for (int {counter} = 0; {counter} < {count}; ++{counter})"):
            writer.lines([*lines, *updates])
            if slow_lanes:
                writer.line(f"rare |= {' | '.join(f'(uint32_t)({r})' for r in slow_lanes)};")
        if slow_lanes:
            with writer.block(f"if (rare) for (int {counter} = 0; {counter} < {count}; ++{counter})"):
                writer.lines([self.nest.with_slow_paths(line) for line in lines])


@dataclass(frozen=True)
class _RunPlan:
    """Runs that a loop is split into, None for one loop; and whether each run streams its own results."""

    runs: Runs | None
    streams: bool = False


def _updates(acc: Accumulator, names: list[str], value: str) -> list[str]:
    return [f"{name} = {new};" for name, new in zip(names, acc.update(names, value), strict=True)]
