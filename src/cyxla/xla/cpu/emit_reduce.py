"""Kernels of reductions and windows: rows, columns, and one element after the other, with what they read and what follows fused.

The order of a float sum is a function of the shape alone: rows are spread over a fixed number of lanes, columns are added row by row,
and long reductions are cut into a fixed number of parts whose totals a second kernel adds in order.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from math import prod

from cyxla.types import Shape
from cyxla.xla.cpu import cost, emit_scalar, scalar
from cyxla.xla.cpu.accumulate import Accumulator, accumulator
from cyxla.xla.cpu.c_writer import CWriter
from cyxla.xla.cpu.boxes import Region, Store, lower, split_region
from cyxla.xla.cpu.emit_loop import describe
from cyxla.xla.cpu.loops import WHOLE, Blocks, Part, Shell, assemble, close, open_levels
from cyxla.xla.cpu.emit_scan import scan_step
from cyxla.xla.cpu.emitters import emits_group, fusible
from cyxla.xla.cpu.fusion import Group, prefix
from cyxla.xla.cpu.index_map import ZERO, Affine, Atom, Condition, Index
from cyxla.xla.cpu.kernel import Step, Value
from cyxla.xla.cpu.lower import Body, Node, Reads
from cyxla.xla.cpu.nest import BLOCKS, Level, Nest, collapse, reachable
from cyxla.xla.cpu.values import own_leaves
from cyxla.xla.hlo import Instruction

_ROW = 16  # reduced extents from this length on run as rows
_COLUMN_BLOCK = 1024
_UNROLL = 8
_GROUP_ROWS = 64
_SMALL_BODY = 6  # nodes: bodies up to this size are unrolled
_MAX_PARTS = 64
_PART_NS = 20_000.0

# (body, kept coordinates, reduced coordinates) -> what is combined, and under which conditions
Elements = Callable[[Body, Sequence[Affine], Sequence[Affine]], tuple[list[Node], tuple[Condition, ...]]]


@dataclass
class Problem:
    """A reduction: over which dims, of what, by which computation, and what becomes of the results.

    Attributes
    ----------
    group : Group
        What is computed.
    root : Instruction
        The reduction or window.
    kept, reduced : tuple of int
        The iteration space.
    elements : callable
        The elements to combine at a point.
    inits : list of Instruction
        The initial values.
    results : list of Value
        What the rest of the group reads as the reduction's results.
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
    joined: bool = True  # whether init takes part here (it does so in the last step)

    @property
    def empty(self) -> bool:
        """Whether there is nothing to combine."""
        return 0 in self.reduced

    @property
    def points(self) -> int:
        """Size of the iteration space."""
        return prod(self.kept) * prod(self.reduced)


@dataclass
class Lowered:
    """A problem over loops."""

    problem: Problem
    body: Body
    elements: list[Node]
    inits: list[Node]
    given: list[Node]
    stores: list[Store]
    kept: list[tuple[Atom, int]]
    reduced: list[tuple[Atom, int]]
    dropped: set[Atom]
    conditions: tuple[Condition, ...]
    before: list[Node] = field(default_factory=list)  # what the elements need
    after: list[Node] = field(default_factory=list)  # what the stores need


# ------------------------------------------------------------------------------------------------------------- groups
@emits_group("reduce")
def reduce(group: Group) -> list[Step]:
    """A reduction with its prologue and epilogue; in two steps where one would leave cores idle."""
    root = group.root
    count = len(root.operands) // 2
    arrays, inits = root.operands[:count], root.operands[count:]
    gone = root.attrs["dimensions"]
    dims = arrays[0].shape.dims
    kept = [d for d in range(len(dims)) if d not in gone]

    def elements(body: Body, at: Sequence[Affine], along: Sequence[Affine]) -> tuple[list[Node], tuple[Condition, ...]]:
        coordinates = [ZERO] * len(dims)
        for d, c in [*zip(kept, at, strict=True), *zip(gone, along, strict=True)]:
            coordinates[d] = c
        index = body.space.index(dims, tuple(coordinates))
        return [body.value(a, index) for a in arrays], ()

    problem = Problem(group, root, tuple(dims[d] for d in kept), tuple(dims[d] for d in gone), elements, inits, own_leaves(root))
    problem.writes = tuple(v for o in group.outputs for v in own_leaves(o))
    problem.acc = _recognised(root)
    problem.joined = bool(gone)  # without dimensions the operand passes unchanged
    return _steps(problem)


@emits_group("reduce-window")
def reduce_window(group: Group) -> list[Step]:
    """Sliding windows: a reduction over the window's dims for every result element."""
    root = group.root
    found, acc = prefix(root), _recognised(root)
    if found is not None and acc is not None and all(o.shape.size == root.shape.size for o in group.outputs):
        return [scan_step(group, found, acc)]
    count = len(root.operands) // 2
    arrays, inits = root.operands[:count], root.operands[count:]
    dims, window = arrays[0].shape.dims, root.attrs["window"] or ()

    def elements(body: Body, at: Sequence[Affine], along: Sequence[Affine]) -> tuple[list[Node], tuple[Condition, ...]]:
        space = body.space
        conditions, coordinates = [], []
        for o, w, n, spec in zip(at, along, dims, window, strict=True):
            place = space.combine(((o, spec.stride), (w, spec.window_dilation))).shifted(-spec.padding_low)
            mine = [Condition(place, 0, (n - 1) * spec.base_dilation)]
            if spec.base_dilation > 1:
                mine.append(Condition(space.remainder(place, spec.base_dilation), 0, 0))
                place = space.quotient(place, spec.base_dilation)
            unsettled = tuple(c for c in mine if c.decided is not True)
            coordinates.append(space.choice(unsettled, place, n - 1) if unsettled else place)
            conditions += unsettled
        index = space.index(dims, tuple(coordinates))
        return [body.value(a, index) for a in arrays], tuple(conditions)

    kept = root.shape.leaves()[0].dims
    sizes = tuple(w.size for w in window) if arrays[0].shape.size else (0,) * len(dims)
    problem = Problem(group, root, kept, sizes, elements, inits, own_leaves(root))
    problem.writes = tuple(v for o in group.outputs for v in own_leaves(o))
    problem.acc = _recognised(root)
    return _steps(problem)


def _recognised(root: Instruction) -> Accumulator | None:
    opcode = emit_scalar.combiner(root.called[0]) if root.shape.is_array else None
    return accumulator(opcode, root.shape.dtype) if opcode is not None else None


# -------------------------------------------------------------------------------------------------------------- steps
def _steps(problem: Problem) -> list[Step]:
    parts = _parts(problem)
    if parts == 1:
        return [_step(problem)]
    assert problem.acc is not None
    partial = _partial(problem.root, Shape.array(problem.acc.kept, (*problem.kept, parts)))
    first = _step(_first_phase(problem, partial), parts)
    return [first, _step(_second_phase(problem, partial, parts))]


def _parts(problem: Problem) -> int:
    """Into how many parts to cut the reduced dims, so that there is enough to do at once."""
    ns = cost.element_ns(problem.group.instructions) * problem.points + cost.memory_ns(problem.points * 4)
    if problem.acc is None or problem.acc.dtype.is_complex or problem.root.opcode != "reduce":
        return 1
    rows, wanted = prod(problem.kept), min(int(ns / _PART_NS), _MAX_PARTS)
    if wanted < 2 or rows >= 4 * wanted * (_COLUMN_BLOCK // 4) or (rows >= wanted and _is_row(problem)):
        return 1
    lowered = _lower(problem, Reads(), 1)
    if _style(lowered, 1) not in (_by_rows, _by_columns):
        return 1
    outer = lowered.reduced[0][1]  # the loop that is cut; an innermost one is cut into its blocks
    if len(lowered.reduced) == 1 and _style(lowered, 1) is _by_rows:
        outer = Blocks.of(outer, blocked=outer > WHOLE, overlap=False).count if outer > WHOLE else 1
    return max(1, min(wanted, outer // 8))


def _is_row(problem: Problem) -> bool:
    gone = problem.root.attrs["dimensions"]
    return len(problem.root.operands[0].shape.dims) - 1 in gone and problem.reduced[-1] >= _ROW


def _partial(root: Instruction, shape: Shape) -> Value:
    """An array between two steps: the result of an instruction that stands in no computation."""
    twin = object.__new__(Instruction)
    twin.opcode, twin.shape, twin.operands, twin.attrs = "reduce", shape, (), root.attrs
    twin.called, twin.computation, twin.name, twin.metadata = root.called, root.computation, "", ()
    twin.extras, twin.users, twin.control_predecessors = {}, {}, ()
    return Value(twin)


def _first_phase(problem: Problem, partial: Value) -> Problem:
    twin = Problem(
        problem.group, problem.root, problem.kept, problem.reduced, problem.elements, (), problem.results, (partial,), problem.acc
    )
    twin.joined = False
    return twin


def _second_phase(problem: Problem, partial: Value, parts: int) -> Problem:
    def elements(body: Body, at: Sequence[Affine], along: Sequence[Affine]) -> tuple[list[Node], tuple[Condition, ...]]:
        index = body.space.index(partial.shape.dims, (*at, *along))
        return [body.node("load", partial.shape.dtype, (), (body.reads.slot(partial), index.linear))], ()

    return Problem(
        problem.group, problem.root, problem.kept, (parts,), elements, problem.inits, problem.results, problem.writes, problem.acc
    )


def _step(problem: Problem, parts: int = 1) -> Step:
    reads = Reads()
    lowered = _lower(problem, reads, parts)
    shell = Shell(reads, problem.writes)
    ns = cost.element_ns(problem.group.instructions) * problem.points
    ns += sum(cost.memory_ns(min(v.shape.nbytes, problem.points * 8)) for v in reads.values)
    if not prod(problem.kept):
        text = assemble([], shell, "reduce")
    else:
        text = assemble([_part(lowered, shell, ns, parts)], shell, problem.root.opcode, note=describe(problem.group))
    return Step(text, reads.values, problem.writes)


# ------------------------------------------------------------------------------------------------------------ lowering
def _lower(problem: Problem, reads: Reads, parts: int) -> Lowered:
    dims = (*problem.kept, *problem.reduced)
    region = Region(tuple((0, n) for n in dims))
    while True:
        lowered = _lower_region(problem, region, dims, reads, parts)
        places = [s.form for s in lowered.stores] + [c.form for c in lowered.conditions]
        forms = reachable([*lowered.elements, *(s.node for s in lowered.stores)], places)[1]
        split = split_region(forms, region)
        if split is None:
            return _collapsed(lowered, region, forms)
        region = split


def _lower_region(problem: Problem, region: Region, dims: tuple[int, ...], reads: Reads, parts: int) -> Lowered:
    made: dict[str, Lowered] = {}
    given = {v: lambda index, n=n: made_nodes[n] for n, v in enumerate(problem.results)}  # type: ignore[misc]
    made_nodes: list[Node] = []

    def place(body: Body, index: Index) -> list[Store]:
        rank = len(problem.kept)
        at, along = index.coordinates[:rank], index.coordinates[rank:]
        made_nodes[:] = [body.node("given", v.shape.dtype, (), n) for n, v in enumerate(problem.results)]
        elements, conditions = _nothing(body, problem) if problem.empty else problem.elements(body, at, along)
        inits = [body.value(i, body.space.scalar) for i in problem.inits]
        out = body.space.index(problem.kept, tuple(at))
        stores = _stores(problem, body, out, made_nodes, parts)
        made[""] = Lowered(problem, body, elements, inits, made_nodes, stores, [], [], set(), conditions)
        return stores

    lower(region, dims, set(problem.group.instructions), reads, place, given)
    return made[""]


def _nothing(body: Body, problem: Problem) -> tuple[list[Node], tuple[Condition, ...]]:
    """Stands for the elements of empty arrays: loops that never run must not be the cause of a read."""
    return [body.constant(v.shape.dtype, v.shape.dtype.numpy_dtype.type(0)) for v in problem.results], ()  # type: ignore[union-attr]


def _stores(problem: Problem, body: Body, out: Index, given: list[Node], parts: int) -> list[Store]:
    if parts > 1:
        part = body.space.runtime(body.node("given", given[0].dtype, (), "part"), parts - 1)
        form = body.space.combine(((out.linear, parts), (part, 1)))
        return [Store(0, problem.writes[0].shape.dtype, form, given[0])]
    stores = []
    for slot, value in enumerate(problem.writes):
        at = out.at(value.shape.dims)
        known = problem.results.index(value) if value in problem.results else None
        node = given[known] if known is not None else body.value(value.instruction, at)
        stores.append(Store(slot, value.shape.dtype, at.linear, node))
    return stores


def _collapsed(lowered: Lowered, region: Region, forms: list[Affine]) -> Lowered:
    count = sum(len(s) for s in region.loops()[: len(lowered.problem.kept)])
    extents = [n for s in region.loops() for n in s]
    loops = list(zip(lowered.body.space.loops, extents, strict=True))
    lowered.kept, gone = collapse(loops[:count], forms)
    lowered.reduced, also = collapse(loops[count:], forms)
    lowered.dropped = gone | also | {a for a, n in loops if n == 1}
    lowered.before = reachable([*lowered.elements, *lowered.inits], [c.form for c in lowered.conditions])[0]
    lowered.after = reachable([s.node for s in lowered.stores], [s.form for s in lowered.stores])[0]
    return lowered


# ---------------------------------------------------------------------------------------------------------------- text
def _part(lowered: Lowered, shell: Shell, ns: float, parts: int) -> Part:
    writer = CWriter()
    slots = sorted({n.data[0] for n in [*lowered.before, *lowered.after] if n.kind == "load"})
    with writer.block("static void KERNEL_1(void *const *bufs, int64_t first, int64_t last)"):
        shell.pointers(writer, slots, [s.slot for s in lowered.stores])
        units = _style(lowered, parts)(lowered, shell, writer, cost.tasks(ns, 1 << 30), parts)
    return Part(writer.text(), units, ns)


Style = Callable[[Lowered, Shell, CWriter, int, int], int]


def _style(lowered: Lowered, parts: int) -> Style:
    """How the loops are best nested: by the loop along which most bytes lie side by side."""
    problem = lowered.problem
    if not lowered.reduced or not problem.joined and parts == 1 and not problem.root.attrs.get("dimensions", True):
        return _serially
    by_rows, by_columns = (_serially, _serially_by_columns) if problem.acc is None else (_by_rows, _by_columns)
    if not lowered.kept:
        return by_rows
    row, column = lowered.reduced[-1], lowered.kept[-1]
    loads = [n for n in lowered.before if n.kind == "load"]
    along_row = sum(n.dtype.itemsize for n in loads if n.data[1].coefficient(row[0]) == 1)
    along_column = sum(n.dtype.itemsize for n in loads if n.data[1].coefficient(column[0]) == 1)
    if row[1] < _ROW <= column[1] and problem.acc is not None:
        return by_columns
    if row[1] >= _ROW and (along_row >= along_column or column[1] < 4):
        return by_rows
    return by_columns if column[1] >= 4 else _serially


def _nest_of_results(lowered: Lowered, shell: Shell, levels: list[Level], texts: Sequence[str]) -> Nest:
    """The nest of what follows the reduction; results are known in its innermost level."""
    nest = Nest(lowered.body, levels, shell.names.child(), scalar=True)
    nest.dropped, nest.tables = lowered.dropped, shell.tables
    for node, text in zip(lowered.given, texts, strict=True):
        nest.set_given(node, text, nest.depth)
    for node in lowered.body.nodes:
        if node.kind == "given" and node.data == "part":
            nest.set_given(node, "part", nest.depth)
    return nest


def _write_stores(lowered: Lowered, nest: Nest) -> None:
    nest.write(lowered.after)
    for s in lowered.stores:
        nest.writers[-1].line(f"r{s.slot}[{nest.form(s.form)}] = {scalar.store(s.dtype, nest.text(s.node))};")


def _outer_conditions(lowered: Lowered, nest: Nest) -> str:
    """The conditions that are settled before the innermost loop, as C; empty if there are none."""
    outer = [c for c in lowered.conditions if nest.depth_of_form(c.form) < nest.depth]
    return nest.conditions(outer) if outer else ""


def _element(lowered: Lowered, nest: Nest) -> str:
    """The element to take in, where the conditions within the innermost loop do not hold the unit, which changes nothing."""
    acc, value = lowered.problem.acc, nest.text(lowered.elements[0])
    inner = [c for c in lowered.conditions if nest.depth_of_form(c.form) == nest.depth]
    if not inner or acc is None:
        return value
    return nest.writers[-1].local(scalar.register_type(acc.dtype), f"{nest.conditions(inner)} ? {value} : {acc.unit}")


def _ranges(lowered: Lowered, levels: list[tuple[str, int]], parts: int) -> list[tuple[str, str, str]]:
    """(counter, first, end) of the reduced loops; the outermost is cut into parts."""
    found = [(name, "0", str(n)) for name, n in levels]
    if parts > 1:
        name, n = levels[0]
        found[0] = (name, f"{n} * part / {parts}", f"{n} * (part + 1) / {parts}")
    return found


# ---------------------------------------------------------------------------------------------------------------- rows
def _by_rows(lowered: Lowered, shell: Shell, writer: CWriter, tasks: int, parts: int) -> int:
    """The innermost loop runs along what is reduced."""
    acc = lowered.problem.acc
    assert acc is not None
    kept = [a for a, _ in lowered.kept]
    *outer, (inner, trip) = lowered.reduced
    blocked = trip > WHOLE
    levels: list[Level] = [*kept, *(a for a, _ in outer), *([BLOCKS] if blocked else []), inner]
    nest = Nest(lowered.body, levels, shell.names.child())
    nest.dropped, nest.tables = lowered.dropped, shell.tables
    nest.write(lowered.before)
    row = _Row(_element(lowered, nest), _outer_conditions(lowered, nest), blocked, parts)
    dummy = Atom(0, "loop", 0, 1, -1)
    after = _nest_of_results(lowered, shell, [*kept, dummy], ["result"])
    _write_stores(lowered, after)
    writer.lines(nest.writers[0].written)
    writer.lines(after.writers[0].written)
    units, opened = open_levels(writer, [nest, after], [n for _, n in lowered.kept], [], tasks, parts)
    with writer.block(""):
        _row(lowered, nest, writer, row)
        writer.lines(_join_lines(lowered, nest, CWriter(), _row_total(acc)))
        writer.lines(after.writers[-1].written)
    close(writer, opened)
    return units


def _join_lines(lowered: Lowered, nest: Nest, writer: CWriter, total: str) -> list[str]:
    acc = lowered.problem.acc
    assert acc is not None
    writer.line(f"const {scalar.register_type(acc.kept)} total = {total};")
    joined = acc.join(nest.text(lowered.inits[0]), "total") if lowered.problem.joined else "total"
    writer.line(f"const {scalar.register_type(acc.dtype if lowered.problem.joined else acc.kept)} result = {joined};")
    return writer.written


def _row_total(acc: Accumulator) -> str:
    if acc.lanes:
        return f"cyx_fold_{acc.opcode}_{acc.kept}(acc)"
    return acc.total([f"acc{i}" for i in range(len(acc.variables))])


@dataclass(frozen=True)
class _Row:
    element: str
    condition: str
    blocked: bool
    parts: int


def _row(lowered: Lowered, nest: Nest, writer: CWriter, how: _Row) -> None:
    acc = lowered.problem.acc
    assert acc is not None
    *outer, (_, trip) = lowered.reduced
    blocks = Blocks.of(trip, blocked=how.blocked, overlap=False)
    for i, (c_type, unit) in enumerate(acc.variables):
        if acc.lanes:
            writer.line(f"{c_type} acc[{acc.lanes}] __attribute__((aligned(64)));")
            writer.line(f"for (int k = 0; k < {acc.lanes}; ++k) acc[k] = {unit};")
        else:
            writer.line(f"{c_type} acc{i} = {unit};")
    start = len(lowered.kept)
    named = [(nest.counter(start + i), n) for i, (_, n) in enumerate(outer)] + ([("block", blocks.count)] if how.blocked else [])
    for i, (name, low, high) in enumerate(_ranges(lowered, named, how.parts)):
        writer.line(f"for (int64_t {name} = {low}; {name} < {high}; ++{name}) {{")
        writer.open()
        if name == "block":
            writer.line(f"const int64_t b = {blocks.start};")
        writer.lines(nest.writers[start + i + 1].written)
    with writer.block(f"if {how.condition}" if how.condition else ""):
        if blocks.tail:
            with writer.block(f"if (block < {blocks.whole})"):
                _row_block(lowered, nest, writer, how.element, blocks.length)
            with writer.block("else"):
                _row_block(lowered, nest, writer, how.element, blocks.tail)
        else:
            _row_block(lowered, nest, writer, how.element, blocks.length)
    close(writer, len(named))


def _row_block(lowered: Lowered, nest: Nest, writer: CWriter, value: str, trip: int) -> None:
    """Take in the elements of one run of the innermost loop."""
    acc, (element,) = lowered.problem.acc, lowered.elements
    assert acc is not None
    lines = nest.writers[-1].written
    if acc.lanes and value == nest.text(element) and element.kind == "load" and element.dtype is acc.kept and element.data[1].coefficient(nest.inner) == 1:  # type: ignore[arg-type]
        slot, form = element.data
        writer.line(f"cyx_lanes_{acc.opcode}_{acc.kept}(acc, &p{slot}[{nest.block_start(form)}], {trip});")
        return
    if not acc.lanes and not nest.rare:
        names = [f"acc{i}" for i in range(len(acc.variables))]
        with writer.block(f"for (int k = 0; k < {trip}; ++k)"):
            writer.lines(lines)
            _update(writer, acc, names, value)
        return
    with writer.block(""):
        writer.line(f"{scalar.register_type(acc.kept)} t[{trip}] __attribute__((aligned(64)));")
        _fill(nest, writer, [*lines, f"t[k] = {value};"], trip)
        if acc.lanes:
            writer.line(f"cyx_lanes_{acc.opcode}_{acc.kept}(acc, t, {trip});")
        else:
            with writer.block(f"for (int k = 0; k < {trip}; ++k)"):
                _update(writer, acc, [f"acc{i}" for i in range(len(acc.variables))], "t[k]")


def _update(writer: CWriter, acc: Accumulator, names: list[str], value: str) -> None:
    for name, new in zip(names, acc.update(names, value), strict=True):
        writer.line(f"{name} = {new};")


def _fill(nest: Nest, writer: CWriter, lines: list[str], trip: int) -> None:
    """A vector loop, and the patch of its rare lanes."""
    if nest.rare:
        writer.line("uint32_t rare = 0;")
    writer.line("#pragma GCC ivdep")
    with writer.block(f"for (int k = 0; k < {trip}; ++k)"):
        writer.lines(lines)
        if nest.rare:
            writer.line(f"rare |= {' | '.join(f'(uint32_t)({r})' for r in nest.rare)};")
    if nest.rare:
        with writer.block(f"if (rare) for (int k = 0; k < {trip}; ++k)"):
            writer.lines([nest.patched(line) for line in lines])


# ------------------------------------------------------------------------------------------------------------- columns
def _by_columns(lowered: Lowered, shell: Shell, writer: CWriter, tasks: int, parts: int) -> int:
    """The innermost loop runs along what is kept, with an accumulator for each of a block of elements."""
    acc = lowered.problem.acc
    assert acc is not None
    *outer, (inner, trip) = lowered.kept
    blocked = trip > _COLUMN_BLOCK
    lead: list[Level] = [*(a for a, _ in outer), *([BLOCKS] if blocked else [])]
    nest = Nest(lowered.body, [*lead, *(a for a, _ in lowered.reduced), inner], shell.names.child())
    nest.dropped, nest.tables = lowered.dropped, shell.tables
    step = _unroll(lowered)
    nest.stepped = lowered.reduced[-1][0] if step > 1 else None
    nest.write(lowered.before)
    element, condition = _element(lowered, nest), _outer_conditions(lowered, nest)
    after = _nest_of_results(lowered, shell, [*lead, inner], ["result"])
    _write_stores(lowered, after)
    writer.lines(nest.writers[0].written)
    writer.lines(after.writers[0].written)
    blocks = Blocks.of(trip, blocked=blocked, overlap=True)
    extents = [n for _, n in outer] + ([blocks.count] if blocked else [])
    units, opened = open_levels(writer, [nest, after], extents, [blocks], tasks, parts)
    with writer.block(""):
        _column(lowered, nest, after, writer, _Column(blocks.length, step, parts, len(lead), element, condition))
    close(writer, opened)
    return units


def _unroll(lowered: Lowered) -> int:
    """How many rows to take in at once."""
    small = sum(n.kind != "constant" for n in lowered.before) <= _SMALL_BODY and len(lowered.problem.acc.variables) == 1  # type: ignore[union-attr]
    heavy = any(n.kind == "apply" and cost.flops(n.data) > cost.CHEAP_FLOPS for n in lowered.before)
    rows = lowered.reduced[-1][1]
    return next((u for u in (_UNROLL, 4) if rows % u == 0), 1) if small and not heavy else 1


@dataclass(frozen=True)
class _Column:
    trip: int
    step: int
    parts: int
    lead: int
    element: str
    condition: str


def _column(lowered: Lowered, nest: Nest, after: Nest, writer: CWriter, how: _Column) -> None:
    acc = lowered.problem.acc
    assert acc is not None
    names = [f"acc{i}[k]" for i in range(len(acc.variables))]
    for i, (c_type, _) in enumerate(acc.variables):
        writer.line(f"{c_type} acc{i}[{how.trip}] __attribute__((aligned(64)));")
    with writer.block(f"for (int k = 0; k < {how.trip}; ++k)"):
        for name, (_, unit) in zip(names, acc.variables, strict=True):
            writer.line(f"{name} = {unit};")
    named = [(nest.counter(how.lead + i), n) for i, (_, n) in enumerate(lowered.reduced)]
    ranges = _ranges(lowered, [(m, n // how.step if i == len(named) - 1 else n) for i, (m, n) in enumerate(named)], how.parts)
    grouped = acc.lanes > 0 and named[-1][1] > _GROUP_ROWS * how.step
    for i, (name, low, high) in enumerate(ranges):
        last = i == len(ranges) - 1
        if last and grouped:
            low, high = _open_group(writer, acc, how, low, high)
        counter = "row" if last and how.step > 1 else name
        writer.line(f"for (int64_t {counter} = {low}; {counter} < {high}; ++{counter}) {{")
        writer.open()
        if counter != name:
            writer.line(f"const int64_t {name} = row * {how.step};")
        writer.lines(nest.writers[how.lead + i + 1].written)
    with writer.block(f"if {how.condition}" if how.condition else ""):
        _column_rows(lowered, nest, writer, how, ["group[k]"] if grouped else names)
    close(writer, 1)
    if grouped:
        with writer.block(f"for (int k = 0; k < {how.trip}; ++k)"):
            _update(writer, acc, names, "group[k]")
        close(writer, 1)
    close(writer, len(ranges) - 1)
    writer.line("#pragma GCC ivdep")
    with writer.block(f"for (int k = 0; k < {how.trip}; ++k)"):
        writer.lines(_join_lines(lowered, nest, CWriter(), acc.total(names)))
        writer.lines(after.writers[-1].written)


def _open_group(writer: CWriter, acc: Accumulator, how: _Column, low: str, high: str) -> tuple[str, str]:
    """Float totals of many rows are taken group by group, so that a large total meets few small elements."""
    ((c_type, unit),) = acc.variables
    writer.line(f"for (int64_t start = {low}; start < {high}; start += {_GROUP_ROWS}) {{")
    writer.open()
    writer.line(f"const int64_t end = start + {_GROUP_ROWS} < {high} ? start + {_GROUP_ROWS} : {high};")
    writer.line(f"{c_type} group[{how.trip}] __attribute__((aligned(64)));")
    writer.line(f"for (int k = 0; k < {how.trip}; ++k) group[k] = {unit};")
    return "start", "end"


def _column_rows(lowered: Lowered, nest: Nest, writer: CWriter, how: _Column, names: list[str]) -> None:
    acc, (element,) = lowered.problem.acc, lowered.elements
    assert acc is not None
    lines, value = nest.writers[-1].written, how.element
    if nest.rare:
        writer.line(f"{scalar.register_type(element.dtype)} t[{how.trip}] __attribute__((aligned(64)));")
        _fill(nest, writer, [*lines, f"t[k] = {value};"], how.trip)
        lines, value = [], "t[k]"
    writer.line("#pragma GCC ivdep")
    with writer.block(f"for (int k = 0; k < {how.trip}; ++k)"):
        if how.step == 1:
            writer.lines(lines)
            _update(writer, acc, names, value)
            return
        writer.line(f"{acc.variables[0][0]} sum = {names[0]};")
        writer.line(f"#pragma GCC unroll {how.step}")
        with writer.block(f"for (int j = 0; j < {how.step}; ++j)"):
            writer.lines(lines)
            _update(writer, acc, ["sum"], value)
        writer.line(f"{names[0]} = sum;")


# ------------------------------------------------------------------------------------------------ one after the other
def _serially(lowered: Lowered, shell: Shell, writer: CWriter, tasks: int, parts: int) -> int:
    """Any computation on any number of arrays, in the order of the indices."""
    problem = lowered.problem
    kept, reduced = [a for a, _ in lowered.kept], [a for a, _ in lowered.reduced]
    dummy = Atom(0, "loop", 0, 1, -1)
    nest = Nest(lowered.body, [*kept, *reduced, dummy], shell.names.child(), scalar=True)
    nest.dropped, nest.tables = lowered.dropped, shell.tables
    nest.write(lowered.before)
    condition = nest.conditions(lowered.conditions) if lowered.conditions else ""
    after = _nest_of_results(lowered, shell, [*kept, dummy], [f"acc{n}" for n in range(len(lowered.given))])
    _write_stores(lowered, after)
    writer.lines(nest.writers[0].written)
    writer.lines(after.writers[0].written)
    units, opened = open_levels(writer, [nest, after], [n for _, n in lowered.kept], [], tasks)
    with writer.block(""):
        for n, element in enumerate(lowered.given):
            source = lowered.inits[n] if problem.joined else lowered.elements[n]
            writer.line(f"{scalar.register_type(element.dtype)} acc{n} = {nest.text(source)};")
        if problem.joined and 0 not in problem.reduced:
            _serial_loops(lowered, nest, writer, len(kept), condition, ([f"acc{n}" for n in range(len(lowered.given))], ""))
        writer.lines(after.writers[-1].written)
    close(writer, opened)
    return units


def _serially_by_columns(lowered: Lowered, shell: Shell, writer: CWriter, tasks: int, parts: int) -> int:
    """The same for a block of results side by side."""
    *outer, (inner, trip) = lowered.kept
    blocks = Blocks.of(trip, blocked=trip > _COLUMN_BLOCK, overlap=True)
    lead: list[Level] = [*(a for a, _ in outer), *([BLOCKS] if blocks.count > 1 else [])]
    nest = Nest(lowered.body, [*lead, *(a for a, _ in lowered.reduced), inner], shell.names.child(), scalar=True)
    nest.dropped, nest.tables = lowered.dropped, shell.tables
    nest.write(lowered.before)
    condition = nest.conditions(lowered.conditions) if lowered.conditions else ""
    names = [f"acc{n}[k]" for n in range(len(lowered.given))]
    after = _nest_of_results(lowered, shell, [*lead, inner], names)
    _write_stores(lowered, after)
    writer.lines(nest.writers[0].written)
    writer.lines(after.writers[0].written)
    extents = [n for _, n in outer] + ([blocks.count] if blocks.count > 1 else [])
    units, opened = open_levels(writer, [nest, after], extents, [blocks], tasks)
    loop = f"for (int k = 0; k < {blocks.length}; ++k)"
    with writer.block(""):
        for n, node in enumerate(lowered.given):
            writer.line(f"{scalar.register_type(node.dtype)} acc{n}[{blocks.length}] __attribute__((aligned(64)));")
        with writer.block(loop):
            writer.lines([f"{name} = {nest.text(i)};" for name, i in zip(names, lowered.inits, strict=True)])
        _serial_loops(lowered, nest, writer, len(lead), condition, (names, loop))
        writer.line("#pragma GCC ivdep")
        with writer.block(loop):
            writer.lines(after.writers[-1].written)
    close(writer, opened)
    return units


def _serial_loops(
    lowered: Lowered, nest: Nest, writer: CWriter, start: int, condition: str, inner: tuple[list[str], str]
) -> None:
    """The loops over what is reduced; `inner` names the accumulators and the loop that runs inside of them, if any."""
    names, loop = inner
    for i, (_, n) in enumerate(lowered.reduced):
        name = nest.counter(start + i)
        writer.line(f"for (int64_t {name} = 0; {name} < {n}; ++{name}) {{")
        writer.open()
        writer.lines(nest.writers[start + i + 1].written)
    if loop:
        writer.line("#pragma GCC ivdep")
    with writer.block(loop):
        writer.lines(nest.writers[-1].written)
        body = nest.writers[-1].child()
        old = [body.local(scalar.register_type(g.dtype), name) for g, name in zip(lowered.given, names, strict=True)]
        operands = old + [nest.text(e) for e in lowered.elements]
        results = emit_scalar.inline(lowered.problem.root.called[0], operands, body)
        new = [body.local(scalar.register_type(g.dtype), r) for g, r in zip(lowered.given, results, strict=True)]
        body.lines([f"{name} = {value};" for name, value in zip(names, new, strict=True)])
        with writer.block(f"if {condition}" if condition else ""):
            writer.lines(body.written)
    close(writer, len(lowered.reduced))


def _check(ins: Instruction) -> str | None:
    if ins.shape.is_dynamic or any(o.shape.is_dynamic for o in ins.operands):
        return f"{ins.opcode} with dynamic sizes"
    return emit_scalar.reason(ins.called[0])


fusible("reduce", "reduce-window", check=_check)
