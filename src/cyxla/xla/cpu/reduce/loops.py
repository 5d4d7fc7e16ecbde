"""Loops of reductions: along rows, along columns, and sequential ones."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from math import prod

from cyxla.records import dataclass
from cyxla.types import ElementType
from cyxla.xla.cpu.c import scalar, scalar_computation
from cyxla.xla.cpu.c.independence import independence
from cyxla.xla.cpu.c.writer import CWriter
from cyxla.xla.cpu.kernel import cost
from cyxla.xla.cpu.kernel.carried_products import barrier_if, combiner_carries_product
from cyxla.xla.cpu.kernel.sum_order import COLUMN_BLOCK, GROUP_STEPS, MIN_ROW_LENGTH, ROW_STEPS
from cyxla.xla.cpu.loops.hoisting import BLOCK_LEVEL, Level, LoopNest
from cyxla.xla.cpu.loops.index_map import Atom, Loop
from cyxla.xla.cpu.loops.live_loops import LIVE_BLOCK
from cyxla.xla.cpu.loops.loop_kernel import (
    MAX_UNBLOCKED_TRIP,
    Blocks,
    KernelFrame,
    Part,
    close_loops,
    live_units,
    open_loops,
)
from cyxla.xla.cpu.loops.nodes import Apply, Constant, External, Load, flops
from cyxla.xla.cpu.reduce.accumulators import Accumulator
from cyxla.xla.cpu.reduce.lane_loops import MAX_UNROLLED, LaneLoop, effort, may_read_on
from cyxla.xla.cpu.reduce.problem import PART, Lowered

MIN_LANES_EXTENT = 128  # shorter rows of an arg-reduction use no lanes: merging these takes longer
MAX_SCALAR_ELEMENTS = 2048  # at most, of a size known at run time: vectors save a microsecond, and take gcc 6 ms
_LANES = 64  # lanes of an arg-reduction
_SMALL_BODY = 6  # nodes; bodies of up to this size are unrolled


# ---------------------------------------------------------------------------------------------------------------- text
def emit_part(lowered: Lowered, frame: KernelFrame, ns: float, parts: int) -> Part:
    """Emit the function of a reduction, with the loop order that suits it."""
    writer = CWriter()
    slots = sorted({n.slot for n in [*lowered.before, *lowered.after] if isinstance(n, Load)})
    with writer.block("static void KERNEL_1(void *const *bufs, int64_t first, int64_t last)"):
        frame.pointers(writer, slots, [s.slot for s in lowered.stores])
        chosen = choose_style(lowered, parts)
        units, live_count = chosen(lowered, frame, writer, cost.tasks(ns), parts)
    scalar = _scalar_reason(lowered) if chosen is _sequential else ""
    return Part(writer.text(), units, ns, (lowered.listing(scalar),), live_count, _live_work(lowered, ns))


def _live_work(lowered: Lowered, ns: float) -> tuple[str, float]:
    """Return the C of the number of live points, and the time of one in ns; empty and 0 if all points are live."""
    if not lowered.live:
        return "", 0.0
    loops = [*lowered.kept, *lowered.reduced]
    return " * ".join(lowered.live.get(a, str(n)) for a, n in loops), ns / max(1, prod(n for _, n in loops))


def _scalar_reason(lowered: Lowered) -> str:
    """Return the reason for which a reduction is sequential rather than along rows or columns."""
    if lowered.problem.acc is None and not lowered.problem.arg_reduction:
        return "its computation is applied in the order of the elements"
    return "its rows and columns are too short for vectors"


#: Returns the number of parallel units, and the C of the number of those that matter if not all do.
Style = Callable[[Lowered, KernelFrame, CWriter, int, int], tuple[int, str]]


def choose_style(lowered: Lowered, parts: int) -> Style:
    """Return the best loop order: the innermost loop is the one along which most bytes are contiguous."""
    problem = lowered.problem
    if not lowered.reduced or (
        not problem.applies_init and parts == 1 and not problem.root.attrs.get("dimensions", True)
    ):
        return _sequential
    by_row, by_column = (_sequential, _sequential_by_columns) if problem.acc is None else (by_rows, by_columns)
    by_row = (
        by_lanes
        if problem.arg_reduction and lowered.reduced[-1][1] >= MIN_LANES_EXTENT and not lowered.conditions
        else by_row
    )
    if not lowered.kept:
        return by_row
    row, column = lowered.reduced[-1], lowered.kept[-1]
    split = lowered.body.space.split_choices
    loads = [(n.dtype.itemsize, split(n.form)[0]) for n in lowered.before if isinstance(n, Load)]
    vary = [load for load in loads if any(a is column[0] or a.forms for a, _ in load[1].terms)]
    along_row = sum(size for size, form in vary if form.coefficient(row[0]) == 1)  # others are the same for all columns
    strided = [load for load in loads if load[1].coefficient(row[0])]  # others are read once per row
    along_column = sum(size for size, form in strided if form.coefficient(column[0]) == 1)
    if row[1] < MIN_ROW_LENGTH <= column[1] and problem.acc is not None:
        return by_column
    if row[1] >= MIN_ROW_LENGTH and (along_row >= along_column or column[1] < 4):
        return by_row
    return by_column if column[1] >= 4 else _sequential


def _epilogue_nest(lowered: Lowered, frame: KernelFrame, levels: list[Level], texts: Sequence[str]) -> LoopNest:
    """Return the nest of the epilogue; the reduction's results are available in its innermost level."""
    nest = LoopNest(lowered.body, levels, frame.names.child(), scalar=True)
    nest.dropped, nest.tables = lowered.dropped, frame.tables
    for node, text in zip(lowered.result_nodes, texts, strict=True):
        nest.set_external(node, text, nest.depth)
    for node in lowered.body.nodes:
        if isinstance(node, External) and node.key == PART:
            nest.set_external(node, PART, nest.depth)
    return nest


def _write_stores(lowered: Lowered, nest: LoopNest) -> None:
    nest.write(lowered.after)
    for s in lowered.stores:
        nest.writers[-1].line(f"r{s.slot}[{nest.form(s.form)}] = {scalar.store(s.dtype, nest.text(s.node))};")


def _outer_conditions(lowered: Lowered, nest: LoopNest) -> str:
    """Return the C of the conditions that are invariant in the innermost loop; empty if there are none."""
    outer = [c for c in lowered.conditions if nest.depth_of_form(c.form) < nest.depth]
    return nest.conditions(outer) if outer else ""


def _element(lowered: Lowered, nest: LoopNest) -> str:
    """Return the C of the element to combine; the identity where conditions of the innermost loop fail."""
    acc, value = lowered.problem.acc, nest.text(lowered.elements[0])
    inner = [c for c in lowered.conditions if nest.depth_of_form(c.form) == nest.depth]
    if not inner or acc is None:
        return value
    return nest.writers[-1].local(
        scalar.register_type(acc.dtype), f"{nest.conditions(inner)} ? {value} : {acc.identity}"
    )


def _ranges(
    levels: list[tuple[str, int]], parts: int, live: Mapping[int, str] | None = None
) -> list[tuple[str, str, str]]:
    """Return (counter, first, end) of the reduced loops; the outermost is split into parts, those in `live` are cut."""
    ranges = [(name, "0", str(n)) for name, n in levels]
    if parts > 1:
        name, n = levels[0]
        ranges[0] = (name, f"{n} * part / {parts}", f"{n} * (part + 1) / {parts}")
    for i, trips in (live or {}).items():
        name, first, end = ranges[i]
        ranges[i] = (name, first, trips if parts == 1 or i else f"cyx_smaller_size({end}, {trips})")
    return ranges


def _live_levels(lowered: Lowered, loops: Sequence[tuple[Atom, int]]) -> dict[int, str]:
    """Return the C of the trip counts of those loops that run over live elements alone."""
    return {i: lowered.live[a] for i, (a, _) in enumerate(loops) if a in lowered.live}


# ---------------------------------------------------------------------------------------------------------------- rows
def by_rows(lowered: Lowered, frame: KernelFrame, writer: CWriter, tasks: int, parts: int) -> tuple[int, str]:
    """Emit loops with a reduced dimension innermost."""
    acc = lowered.problem.acc
    assert acc is not None
    kept = [a for a, _ in lowered.kept]
    *outer, (inner, trip) = lowered.reduced
    blocked = trip > MAX_UNBLOCKED_TRIP
    levels: list[Level] = [*kept, *(a for a, _ in outer), *([BLOCK_LEVEL] if blocked else []), inner]
    nest = LoopNest(lowered.body, levels, frame.names.child())
    nest.dropped, nest.tables, nest.by_lanes = lowered.dropped, frame.tables, acc.lanes > 0
    nest.write(lowered.before)
    row = _Row(_element(lowered, nest), _outer_conditions(lowered, nest), blocked, parts)
    no_loop = Loop.unmentioned()
    epilogue = _epilogue_nest(lowered, frame, [*kept, no_loop], ["result"])
    _write_stores(lowered, epilogue)
    writer.lines(nest.writers[0].written)
    writer.lines(epilogue.writers[0].written)
    extents, live = [n for _, n in lowered.kept], _live_levels(lowered, lowered.kept)
    units, opened = open_loops(writer, [nest, epilogue], extents, [], tasks, parts, live)
    with writer.block(""):
        _row(lowered, nest, writer, row)
        writer.lines(_join_lines(lowered, nest, CWriter(), _row_total(acc)))
        writer.lines(epilogue.writers[-1].written)
    close_loops(writer, opened)
    return units, live_units(extents, tasks, parts, live)


def _join_lines(lowered: Lowered, nest: LoopNest, writer: CWriter, total: str) -> list[str]:
    acc = lowered.problem.acc
    assert acc is not None
    writer.line(f"const {scalar.register_type(acc.total_dtype)} total = {total};")
    result, dtype = "total", acc.total_dtype
    if lowered.problem.applies_init:
        result, dtype = acc.with_init(nest.text(lowered.inits[0]), "total"), acc.dtype
    root = lowered.problem.root
    writer.line(f"const {scalar.register_type(dtype)} result = {result};", lowered.body.quote(root))
    return writer.written


def _row_total(acc: Accumulator) -> str:
    if acc.lanes:
        return f"cyx_fold_{acc.opcode}_{acc.total_dtype}(acc)"
    return acc.total([f"acc{i}" for i in range(len(acc.variables))])


@dataclass(frozen=True)
class _Row:
    element: str
    condition: str
    blocked: bool
    parts: int


def _row(lowered: Lowered, nest: LoopNest, writer: CWriter, row: _Row) -> None:
    acc = lowered.problem.acc
    assert acc is not None
    *outer, (_, trip) = lowered.reduced
    blocks = Blocks.of(trip, blocked=row.blocked, overlap=False)
    for i, (c_type, unit) in enumerate(acc.variables):
        if acc.lanes:
            writer.line(f"{c_type} acc[{acc.lanes}] __attribute__((aligned(64)));")
            writer.line(f"for (int k = 0; k < {acc.lanes}; ++k) acc[k] = {unit};")
        else:
            writer.line(f"{c_type} acc{i} = {unit};")
    start = len(lowered.kept)
    counters = [(nest.counter(start + i), n) for i, (_, n) in enumerate(outer)] + (
        [("block", blocks.count)] if row.blocked else []
    )
    live = _live_levels(lowered, lowered.reduced)
    last = live.pop(len(outer), "")
    if last and row.blocked:
        live[len(outer)] = blocks.live(last)
    for i, (name, low, high) in enumerate(_ranges(counters, row.parts, live)):
        writer.line(f"for (int64_t {name} = {low}; {name} < {high}; ++{name}) {{")
        writer.open()
        if name == "block":
            writer.line(f"const int64_t b = {blocks.start};")
        writer.lines(nest.writers[start + i + 1].written)
    with writer.block(f"if {row.condition}" if row.condition else ""):
        if last and row.blocked and lowered.problem.unmasked:
            writer.line(f"const int64_t left = {last} - b;")
            with writer.block(f"if (left >= {blocks.length})"):
                _row_block(lowered, nest, writer, row.element, blocks.length)
            with writer.block("else"):
                _row_block(lowered, nest, writer, row.element, blocks.length, "left")
        elif blocks.tail:
            with writer.block(f"if (block < {blocks.full})"):
                _row_block(lowered, nest, writer, row.element, blocks.length)
            with writer.block("else"):
                _row_block(lowered, nest, writer, row.element, blocks.tail)
        else:
            _row_block(lowered, nest, writer, row.element, blocks.length, "" if row.blocked else last)
    close_loops(writer, len(counters))


def _row_block(lowered: Lowered, nest: LoopNest, writer: CWriter, value: str, trip: int, live: str = "") -> None:
    """Emit one run of the innermost loop, which combines its elements, up to the C of the number that matter."""
    acc, (element,) = lowered.problem.acc, lowered.elements
    assert acc is not None
    lines, end = nest.writers[-1].written, str(trip)
    if live:
        end = "end"
        writer.line(f"const int64_t end = {live};")
    if (
        acc.lanes
        and value == nest.text(element)
        and isinstance(element, Load)
        and element.dtype is acc.total_dtype
        and nest.is_contiguous(element.form)
    ):
        first = f"&p{element.slot}[{nest.block_start(element.form)}]"
        writer.line(f"cyx_lanes_{acc.opcode}_{acc.total_dtype}(acc, {first}, {end});")
        return
    truth = _stored_truth(lowered, nest, value)
    if truth is not None and nest.is_contiguous(truth.form):
        writer.line(f"acc0 += cyx_count_true(&p{truth.slot}[{nest.block_start(truth.form)}], {end});")
        return
    if acc.lanes and not nest.slow_lanes and effort(nest, [element]) <= MAX_UNROLLED:
        updates = [f"acc[j] = {new};" for new in acc.update(["acc[j]"], value)]
        reads_on = lowered.reduced[-1][1] % acc.lanes == 0 and may_read_on([element])
        LaneLoop(nest, acc.lanes, lines, updates, reads_on=reads_on).write(writer, trip, end)
        return
    if not acc.lanes and not nest.slow_lanes:
        names = [f"acc{i}" for i in range(len(acc.variables))]
        is_small = bool(live) and prod(n for _, n in (*lowered.kept, *lowered.reduced)) <= MAX_SCALAR_ELEMENTS
        with writer.block(f"for ({'int64_t' if is_small else 'int'} k = 0; k < {end}; ++k)"):
            writer.lines([*(["CYX_SCALAR_LOOP"] if is_small else []), *lines])
            _update(writer, acc, names, value)
        return
    with writer.block(""):
        writer.line(f"{scalar.register_type(acc.total_dtype)} t[{trip}] __attribute__((aligned(64)));")
        _fill(nest, writer, [*lines, f"t[k] = {value};"], end)
        if acc.lanes:
            writer.line(f"cyx_lanes_{acc.opcode}_{acc.total_dtype}(acc, t, {end});")
        else:
            with writer.block(f"for (int k = 0; k < {end}; ++k)"):
                _update(writer, acc, [f"acc{i}" for i in range(len(acc.variables))], "t[k]")


def _stored_truth(lowered: Lowered, nest: LoopNest, value: str) -> Load | None:
    """Return the bools in memory that a reduction counts; None if it does anything else."""
    acc, (element,) = lowered.problem.acc, lowered.elements
    assert acc is not None
    if acc.opcode != "add" or not acc.dtype.is_integer or value != nest.text(element):
        return None
    if not isinstance(element, Apply) or element.opcode != "convert":
        return None
    (source,) = element.operands
    if not isinstance(source, Load) or source.dtype is not ElementType.PRED:
        return None
    _, conditions = lowered.body.space.split_choices(source.form)
    return None if conditions else source


def _update(writer: CWriter, acc: Accumulator, names: list[str], value: str) -> None:
    for name, new in zip(names, acc.update(names, value), strict=True):
        writer.line(f"{name} = {new};")


def _fill(nest: LoopNest, writer: CWriter, lines: list[str], trip: str) -> None:
    """Emit a vector loop, and a second loop with slow paths that runs if some lane needs one."""
    if nest.slow_lanes:
        writer.line("uint32_t rare = 0;")
    writer.lines(independence(trip, nest.body.dtypes))
    with writer.block(f"for (int k = 0; k < {trip}; ++k)"):
        writer.lines(lines)
        if nest.slow_lanes:
            writer.line(f"rare |= {' | '.join(f'(uint32_t)({r})' for r in nest.slow_lanes)};")
    if nest.slow_lanes:
        with writer.block(f"if (rare) for (int k = 0; k < {trip}; ++k)"):
            writer.lines([nest.with_slow_paths(line) for line in lines])


# ------------------------------------------------------------------------------------------------------------- columns
def by_columns(lowered: Lowered, frame: KernelFrame, writer: CWriter, tasks: int, parts: int) -> tuple[int, str]:
    """Emit loops with a kept dimension innermost, and an accumulator for each result of a block."""
    acc = lowered.problem.acc
    assert acc is not None
    *outer, (inner, trip) = lowered.kept
    blocks = _column_blocks(lowered, inner, trip)
    blocked = blocks.count > 1
    outer_levels: list[Level] = [*(a for a, _ in outer), *([BLOCK_LEVEL] if blocked else [])]
    nest = LoopNest(lowered.body, [*outer_levels, *(a for a, _ in lowered.reduced), inner], frame.names.child())
    nest.dropped, nest.tables = lowered.dropped, frame.tables
    step = _unroll(lowered)
    nest.stepped = lowered.reduced[-1][0] if step > 1 else None
    nest.write(lowered.before)
    element, condition = _element(lowered, nest), _outer_conditions(lowered, nest)
    width = "width" if inner in lowered.live else str(blocks.length)
    holds = nest.holds_up_to(width) if step > 1 and not nest.slow_lanes else ""
    epilogue = _epilogue_nest(lowered, frame, [*outer_levels, inner], ["result"])
    _write_stores(lowered, epilogue)
    writer.lines(nest.writers[0].written)
    writer.lines(epilogue.writers[0].written)
    extents = [n for _, n in outer] + ([blocks.count] if blocked else [])
    live = _live_blocks(lowered, blocks)
    units, opened = open_loops(writer, [nest, epilogue], extents, [blocks], tasks, parts, live)
    if inner in lowered.live:
        base = blocks.base if blocked else "0"
        writer.line(f"const int {width} = cyx_live_width({lowered.live[inner]}, {base}, {blocks.length});")
    with writer.block(""):
        stored = _stored_truth(lowered, nest, element)
        truth = nest.text(stored) if stored is not None else ""
        dtypes, lead = lowered.body.dtypes, len(outer_levels)
        column = _Column(blocks.length, width, step, parts, lead, dtypes, element, condition, truth, holds)
        _column(lowered, nest, epilogue, writer, column)
    close_loops(writer, opened)
    return units, live_units(extents, tasks, parts, live)


def _column_blocks(lowered: Lowered, column: Atom, trip: int) -> Blocks:
    """Return the blocks of adjacent results, short ones if a leading part of them matters."""
    if column in lowered.live and trip > LIVE_BLOCK:
        return Blocks(trip, LIVE_BLOCK, True)
    return Blocks.of(trip, blocked=trip > COLUMN_BLOCK, overlap=True)


def _live_blocks(lowered: Lowered, blocks: Blocks) -> dict[int, str]:
    """Return the C of the trip counts of the loops over results, of which the last may run over blocks."""
    live, last = _live_levels(lowered, lowered.kept), len(lowered.kept) - 1
    columns = live.pop(last, "")
    return live | ({last: blocks.live(columns)} if columns and blocks.count > 1 else {})


def _unroll(lowered: Lowered) -> int:
    """Return the unroll factor of the loop over rows."""
    acc = lowered.problem.acc
    assert acc is not None
    body = sum(not isinstance(n, Constant) for n in lowered.before)
    is_small = body <= _SMALL_BODY and len(acc.variables) == 1
    is_costly = any(isinstance(n, Apply) and flops(n) > cost.CHEAP_FLOPS for n in lowered.before)
    rows = lowered.reduced[-1][1]
    return next((u for u in ROW_STEPS if rows % u == 0), 1) if is_small and not is_costly else 1


@dataclass(frozen=True)
class _Column:
    trip: int
    width: str  # C of the number of columns that matter, at most `trip`
    step: int
    parts: int
    lead: int
    dtypes: frozenset[ElementType]
    element: str
    condition: str
    truth: str  # C of a bool, if all that is done is to count those that are true; else empty
    holds: str  # C predicate that all conditions in the innermost loop hold; empty if there are none, or it is unknown


def _column(lowered: Lowered, nest: LoopNest, epilogue: LoopNest, writer: CWriter, column: _Column) -> None:
    acc = lowered.problem.acc
    assert acc is not None
    names = [f"acc{i}[k]" for i in range(len(acc.variables))]
    for i, (c_type, _) in enumerate(acc.variables):
        writer.line(f"{c_type} acc{i}[{column.trip}] __attribute__((aligned(64)));")
    with writer.block(f"for (int k = 0; k < {column.trip}; ++k)"):
        for name, (_, unit) in zip(names, acc.variables, strict=True):
            writer.line(f"{name} = {unit};")
    counters = [(nest.counter(column.lead + i), n) for i, (_, n) in enumerate(lowered.reduced)]
    live = _live_levels(lowered, lowered.reduced)
    last, rows = len(counters) - 1, counters[-1][1] // column.step
    if last in live and column.step > 1:
        live[last] = f"cyx_live_steps({live[last]}, 0, {column.step}, {rows})"
    ranges = _ranges([*counters[:-1], (counters[-1][0], rows)], column.parts, live)
    is_grouped = acc.lanes > 0 and counters[-1][1] > GROUP_STEPS * column.step
    for i, (name, low, high) in enumerate(ranges):
        is_last = i == len(ranges) - 1
        if is_last and is_grouped:
            low, high = _open_group(writer, acc, column, low, high)
        counter = "row" if is_last and column.step > 1 else name
        writer.line(f"for (int64_t {counter} = {low}; {counter} < {high}; ++{counter}) {{")
        writer.open()
        if counter != name:
            writer.line(f"const int64_t {name} = row * {column.step};")
        writer.lines(nest.writers[column.lead + i + 1].written)
    with writer.block(f"if {column.condition}" if column.condition else ""):
        _column_rows(lowered, nest, writer, column, ["group[k]"] if is_grouped else names)
    close_loops(writer, 1)
    if is_grouped:
        with writer.block(f"for (int k = 0; k < {column.trip}; ++k)"):
            _update(writer, acc, names, "group[k]")
        close_loops(writer, 1)
    close_loops(writer, len(ranges) - 1)
    writer.lines(independence(column.trip, column.dtypes))
    with writer.block(f"for (int k = 0; k < {column.trip}; ++k)"):
        writer.lines(_join_lines(lowered, nest, CWriter(), acc.total(names)))
        writer.lines(epilogue.writers[-1].written)


def _open_group(writer: CWriter, acc: Accumulator, column: _Column, low: str, high: str) -> tuple[str, str]:
    """Open a loop over groups of rows with totals of their own, so that few small elements meet a large total."""
    ((c_type, unit),) = acc.variables
    writer.line(f"for (int64_t start = {low}; start < {high}; start += {GROUP_STEPS}) {{")
    writer.open()
    writer.line(f"const int64_t end = start + {GROUP_STEPS} < {high} ? start + {GROUP_STEPS} : {high};")
    writer.line(f"{c_type} group[{column.trip}] __attribute__((aligned(64)));")
    writer.line(f"for (int k = 0; k < {column.trip}; ++k) group[k] = {unit};")
    return "start", "end"


def _column_rows(lowered: Lowered, nest: LoopNest, writer: CWriter, column: _Column, names: list[str]) -> None:
    acc, (element,) = lowered.problem.acc, lowered.elements
    assert acc is not None
    lines, value = nest.writers[-1].written, column.element
    if nest.slow_lanes:
        writer.line(f"{scalar.register_type(element.dtype)} t[{column.trip}] __attribute__((aligned(64)));")
        _fill(nest, writer, [*lines, f"t[k] = {value};"], column.width)
        lines, value = [], "t[k]"
    if not column.holds:
        _row_group(acc, writer, column, names, lines, value)
        return
    with writer.block(f"if ({column.holds})"):
        _row_group(acc, writer, column, names, [nest.without_tests(line) for line in lines], nest.without_tests(value))
    with writer.block(f"else for (int j = 0; j < {column.step}; ++j)"):  # C compilers vectorise conditions row by row
        _row_group(acc, writer, replace(column, step=1), names, lines, value)


def _row_group(
    acc: Accumulator, writer: CWriter, column: _Column, names: list[str], lines: list[str], value: str
) -> None:
    """Emit the loop over columns that adds some rows to the accumulators."""
    writer.lines(independence(column.width, column.dtypes))
    with writer.block(f"for (int k = 0; k < {column.width}; ++k)"):
        if column.step == 1:
            writer.lines(lines)
            _update(writer, acc, names, value)
            return
        c_type, start = ("uint8_t", "0") if column.truth else (acc.variables[0][0], names[0])
        writer.line(f"{c_type} sum = {start};")
        writer.line(f"#pragma GCC unroll {column.step}")
        with writer.block(f"for (int j = 0; j < {column.step}; ++j)"):
            writer.lines(lines)
            if column.truth:
                writer.line(f"sum += {column.truth};")
            else:
                _update(writer, acc, ["sum"], value)
        writer.line(f"{names[0]} = sum;" if not column.truth else f"{names[0]} += sum;")


# ----------------------------------------------------------------------------------------------------- arg-reductions
def by_lanes(lowered: Lowered, frame: KernelFrame, writer: CWriter, tasks: int, parts: int) -> tuple[int, str]:
    """Emit an arg-reduction: each lane combines along a row, then lanes are merged with the lower index first."""
    kept = [a for a, _ in lowered.kept]
    *outer, (inner, trip) = lowered.reduced
    blocked, start, count = trip > MAX_UNBLOCKED_TRIP, len(kept), len(lowered.result_nodes)
    levels: list[Level] = [*kept, *(a for a, _ in outer), *([BLOCK_LEVEL] if blocked else []), inner]
    nest = LoopNest(lowered.body, levels, frame.names.child(), scalar=True)
    nest.dropped, nest.tables = lowered.dropped, frame.tables
    nest.write(lowered.before)
    no_loop = Loop.unmentioned()
    epilogue = _epilogue_nest(lowered, frame, [*kept, no_loop], [f"acc{n}[0]" for n in range(count)])
    _write_stores(lowered, epilogue)
    writer.lines(nest.writers[0].written)
    writer.lines(epilogue.writers[0].written)
    extents, live = [n for _, n in lowered.kept], _live_levels(lowered, lowered.kept)
    units, opened = open_loops(writer, [nest, epilogue], extents, [], tasks, parts, live)
    blocks = Blocks.of(trip, blocked=blocked, overlap=False)
    with writer.block(""):
        for n, element in enumerate(lowered.result_nodes):
            writer.line(f"{scalar.register_type(element.dtype)} acc{n}[{_LANES}] __attribute__((aligned(64)));")
            writer.line(f"for (int j = 0; j < {_LANES}; ++j) acc{n}[j] = {nest.text(lowered.inits[n])};")
        counters = [(nest.counter(start + i), n) for i, (_, n) in enumerate(outer)]
        counters += [("block", blocks.count)] if blocked else []
        for i, (name, low, high) in enumerate(_ranges(counters, parts)):
            writer.line(f"for (int64_t {name} = {low}; {name} < {high}; ++{name}) {{")
            writer.open()
            if name == "block":
                writer.line(f"const int64_t b = {blocks.start};")
            writer.lines(nest.writers[start + i + 1].written)
        lines = [
            *nest.writers[-1].written,
            *_combine_lane(lowered, nest, "j", [nest.text(e) for e in lowered.elements]),
        ]
        loop = LaneLoop(nest, _LANES, lines)
        with writer.block(f"if (block < {blocks.full})" if blocks.tail else ""):
            loop.write(writer, blocks.length)
        if blocks.tail:
            with writer.block("else"):
                loop.write(writer, blocks.tail)
        close_loops(writer, len(counters))
        with writer.block(f"for (int w = {_LANES // 2}; w; w /= 2) for (int j = 0; j < w; ++j)"):
            writer.line("const int later = acc1[j] > acc1[j + w];")
            second = [f"(later ? acc{n}[j] : acc{n}[j + w])" for n in range(count)]
            first = [f"(later ? acc{n}[j + w] : acc{n}[j])" for n in range(count)]
            writer.lines(_combine_lane(lowered, nest, "j", second, first))
        writer.lines(epilogue.writers[-1].written)
    close_loops(writer, opened)
    return units, live_units(extents, tasks, parts, live)


def _combine_lane(
    lowered: Lowered, nest: LoopNest, lane: str, elements: list[str], first: list[str] | None = None
) -> list[str]:
    """Return the lines that combine a lane (or `first`) with some elements and assign the result to the lane."""
    body = nest.writers[-1].child()
    names = [f"acc{n}[{lane}]" for n in range(len(elements))]
    types = [scalar.register_type(g.dtype) for g in lowered.result_nodes]
    sides = [body.local(t, x) for t, x in zip((*types, *types), [*(first or names), *elements], strict=True)]
    results = scalar_computation.inline(lowered.problem.root.called[0], sides, body)
    body.lines([f"{name} = {value};" for name, value in zip(names, results, strict=True)])
    return body.written


# --------------------------------------------------------------------------------------------------------- sequential
def _sequential(lowered: Lowered, frame: KernelFrame, writer: CWriter, tasks: int, parts: int) -> tuple[int, str]:
    """Emit sequential loops for any computation on any number of arrays, in index order."""
    problem = lowered.problem
    kept, reduced = [a for a, _ in lowered.kept], [a for a, _ in lowered.reduced]
    no_loop = Loop.unmentioned()
    nest = LoopNest(lowered.body, [*kept, *reduced, no_loop], frame.names.child(), scalar=True)
    nest.dropped, nest.tables = lowered.dropped, frame.tables
    nest.write(lowered.before)
    condition = nest.conditions(lowered.conditions) if lowered.conditions else ""
    epilogue = _epilogue_nest(lowered, frame, [*kept, no_loop], [f"acc{n}" for n in range(len(lowered.result_nodes))])
    _write_stores(lowered, epilogue)
    writer.lines(nest.writers[0].written)
    writer.lines(epilogue.writers[0].written)
    extents, live = [n for _, n in lowered.kept], _live_levels(lowered, lowered.kept)
    units, opened = open_loops(writer, [nest, epilogue], extents, [], tasks, live=live)
    with writer.block(""):
        for n, element in enumerate(lowered.result_nodes):
            source = lowered.inits[n] if problem.applies_init else lowered.elements[n]
            writer.line(f"{scalar.register_type(element.dtype)} acc{n} = {nest.text(source)};")
        if problem.applies_init and 0 not in problem.reduced:
            names = [f"acc{n}" for n in range(len(lowered.result_nodes))]
            _serial_loops(lowered, nest, writer, len(kept), condition, names)
        writer.lines(epilogue.writers[-1].written)
    close_loops(writer, opened)
    return units, live_units(extents, tasks, 1, live)


def _sequential_by_columns(
    lowered: Lowered, frame: KernelFrame, writer: CWriter, tasks: int, parts: int
) -> tuple[int, str]:
    """Emit sequential loops over the reduced dimensions for a block of adjacent results."""
    *outer, (inner, trip) = lowered.kept
    blocks = _column_blocks(lowered, inner, trip)
    outer_levels: list[Level] = [*(a for a, _ in outer), *([BLOCK_LEVEL] if blocks.count > 1 else [])]
    nest = LoopNest(
        lowered.body, [*outer_levels, *(a for a, _ in lowered.reduced), inner], frame.names.child(), scalar=True
    )
    nest.dropped, nest.tables = lowered.dropped, frame.tables
    nest.write(lowered.before)
    condition = nest.conditions(lowered.conditions) if lowered.conditions else ""
    names = [f"acc{n}[k]" for n in range(len(lowered.result_nodes))]
    epilogue = _epilogue_nest(lowered, frame, [*outer_levels, inner], names)
    _write_stores(lowered, epilogue)
    writer.lines(nest.writers[0].written)
    writer.lines(epilogue.writers[0].written)
    extents = [n for _, n in outer] + ([blocks.count] if blocks.count > 1 else [])
    live = _live_blocks(lowered, blocks)
    units, opened = open_loops(writer, [nest, epilogue], extents, [blocks], tasks, live=live)
    loop = f"for (int k = 0; k < {blocks.length}; ++k)"
    with writer.block(""):
        for n, node in enumerate(lowered.result_nodes):
            writer.line(f"{scalar.register_type(node.dtype)} acc{n}[{blocks.length}] __attribute__((aligned(64)));")
        with writer.block(loop):
            writer.lines([f"{name} = {nest.text(i)};" for name, i in zip(names, lowered.inits, strict=True)])
        _serial_loops(lowered, nest, writer, len(outer_levels), condition, names, blocks.length)
        writer.lines(independence(blocks.length, nest.body.dtypes))
        with writer.block(loop):
            writer.lines(epilogue.writers[-1].written)
    close_loops(writer, opened)
    return units, live_units(extents, tasks, 1, live)


def _serial_loops(
    lowered: Lowered, nest: LoopNest, writer: CWriter, start: int, condition: str, names: list[str], columns: int = 0
) -> None:
    """Emit the reduced loops, and inside of them a loop over columns if there are any; `names` are accumulators."""
    for i, (_, n) in enumerate(lowered.reduced):
        name = nest.counter(start + i)
        writer.line(f"for (int64_t {name} = 0; {name} < {n}; ++{name}) {{")
        writer.open()
        writer.lines(nest.writers[start + i + 1].written)
    writer.lines(barrier_if(combiner_carries_product(lowered.problem.root.called[0])))
    if columns:
        writer.lines(independence(columns, nest.body.dtypes))
        writer.line("#pragma GCC unroll 4")  # for several loads in flight
    with writer.block(f"for (int k = 0; k < {columns}; ++k)" if columns else ""):
        writer.lines(nest.writers[-1].written)
        body = nest.writers[-1].child()
        old = [
            body.local(scalar.register_type(g.dtype), name) for g, name in zip(lowered.result_nodes, names, strict=True)
        ]
        operands = old + [nest.text(e) for e in lowered.elements]
        results = scalar_computation.inline(lowered.problem.root.called[0], operands, body)
        new = [body.local(scalar.register_type(g.dtype), r) for g, r in zip(lowered.result_nodes, results, strict=True)]
        body.lines([f"{name} = {value};" for name, value in zip(names, new, strict=True)])
        with writer.block(f"if {condition}" if condition else ""):
            writer.lines(body.written)
    close_loops(writer, len(lowered.reduced))
