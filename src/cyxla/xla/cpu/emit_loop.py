"""Kernels of element-wise groups: loops over boxes of the iteration space, each free of guards, in blocks of constant trip count."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from math import prod
from typing import Any

from cyxla.types import ElementType
from cyxla.xla.cpu import cost, scalar
from cyxla.xla.cpu.c_writer import CWriter
from cyxla.xla.cpu.emitters import emits_group
from cyxla.xla.cpu.fusion import Group
from cyxla.xla.cpu.index_map import Affine, Atom, Condition, Index, Space, atoms_of, strides
from cyxla.xla.cpu.kernel import Kernel, Step, Value
from cyxla.xla.cpu.lower import Body, Node, Reads, start_requests
from cyxla.xla.cpu.nest import Nest, collapse, reachable, table_definition
from cyxla.xla.cpu.values import resolve

WHOLE = 4096  # an innermost loop up to this long has its own trip count
BLOCK = 1024  # longer ones run in blocks of about this length
MAX_BOXES = 24
_MAX_BOX_NODES = 4000  # nodes times boxes: beyond, guards stay in the loops


@dataclass
class Store:
    """One array written: its slot among the writes, its element type, where and what."""

    slot: int
    dtype: ElementType
    form: Affine
    node: Node


@dataclass
class Box:
    """A part of the iteration space and what is computed there."""

    body: Body
    stores: list[Store]
    extents: tuple[int, ...]
    nodes: list[Node] = field(init=False)
    forms: list[Affine] = field(init=False)

    def __post_init__(self) -> None:
        self.nodes, self.forms = reachable([s.node for s in self.stores], [s.form for s in self.stores])

    @property
    def size(self) -> int:
        """Number of points."""
        return prod(self.extents)


# ------------------------------------------------------------------------------------------------------------- boxes
Place = Callable[[Body, Index], list[Store]]  # what to write where, at an index of the iteration space


@dataclass
class Region:
    """A box before it is lowered: bounds by dimension, and into which loops each dimension is split."""

    bounds: tuple[tuple[int, int], ...]
    splits: tuple[tuple[int, ...], ...] = ()

    def loops(self) -> tuple[tuple[int, ...], ...]:
        """Extents of the loops of each dimension."""
        return self.splits or tuple((high - low,) for low, high in self.bounds)


def lower(
    region: Region, dims: tuple[int, ...], inside: set[Any], reads: Reads, place: Place, given: dict[Value, Any] | None = None
) -> Box:
    """Lower a group's outputs over one region."""
    loops = region.loops()
    flat = tuple(n for split in loops for n in split)
    space = Space(flat)
    index = space.index(dims, tuple(_coordinates(space, region)))
    body = Body(space, inside, reads, given)
    return Box(body, place(body, index), flat)


def _coordinates(space: Space, region: Region) -> list[Affine]:
    coordinates, position = [], 0
    for (low, _), split in zip(region.bounds, region.loops(), strict=True):
        parts = [(space.loop(position + i), step) for i, step in enumerate(strides(split))]
        coordinates.append(space.combine(parts).shifted(low))
        position += len(split)
    return coordinates


def boxes(dims: tuple[int, ...], inside: set[Any], reads: Reads, place: Place) -> list[Box]:
    """Cut the iteration space so that guards are decided and quotients are gone, as far as that is worth it."""
    whole = Region(tuple((0, n) for n in dims))
    pending: list[Region] = [whole]
    done: list[Box] = []
    while pending:
        region = pending.pop()
        box = lower(region, dims, inside, reads, place)
        cut = _cut(box, region)
        count = len(done) + len(pending) + len(cut or ())
        if cut is not None and count <= MAX_BOXES and len(box.nodes) * count <= _MAX_BOX_NODES:
            pending += cut[::-1]
        elif (split := split_region(box.forms, region)) is not None:
            pending.append(split)
        else:
            done.append(box)
    return done


def _cut(box: Box, region: Region) -> list[Region] | None:
    """Parts of a region at whose borders the guards of one dimension change."""
    if region.splits:
        return None
    for atom in box.body.space.loops:
        points = _breakpoints(box, atom)
        if points:
            d = atom.data
            low, high = region.bounds[d]
            borders = [low, *(low + p for p in sorted(points)), high]
            pieces = list(zip(borders, borders[1:], strict=False))
            return [Region((*region.bounds[:d], piece, *region.bounds[d + 1 :])) for piece in pieces]
    return None


def _breakpoints(box: Box, atom: Atom) -> set[int]:
    """Where along a loop an open condition on it alone changes."""
    points: set[int] = set()
    for form, low, high in _open_conditions(box):
        if len(form.terms) != 1 or form.terms[0][0] is not atom:
            continue
        c, k = form.terms[0][1], form.constant
        first, last = (low - k, high - k) if c > 0 else (k - high, k - low)
        points |= {-(-first // abs(c)), last // abs(c) + 1}
    return {p for p in points if 0 < p <= atom.high}


def _open_conditions(box: Box) -> list[Condition]:
    found = [c for n in box.nodes if n.kind == "guard" for c in n.data]
    for atom in atoms_of(box.forms):
        if atom.kind == "choice":
            found += atom.data[0]
    return found


def split_region(forms: Sequence[Affine], region: Region) -> Region | None:
    """The region with one loop split in two, so that a quotient by a constant becomes a loop of its own."""
    for atom in atoms_of(forms):
        if atom.kind not in ("quotient", "remainder"):
            continue
        form, divisor = atom.data
        for term, c in form.terms:
            if term.kind != "loop" or c < 0 or divisor % c:
                continue
            extent, step = term.high + 1, divisor // c
            if 1 < step < extent and extent % step == 0:
                return Region(region.bounds, _with_split(region.loops(), term.data, step))
    return None


def _with_split(dims: tuple[tuple[int, ...], ...], position: int, step: int) -> tuple[tuple[int, ...], ...]:
    """The loops of each dimension, with the loop at a position split."""
    found, seen = [], 0
    for loops in dims:
        at = position - seen
        seen += len(loops)
        found.append((*loops[:at], loops[at] // step, step, *loops[at + 1 :]) if 0 <= at < len(loops) else loops)
    return tuple(found)


# ---------------------------------------------------------------------------------------------------------------- text
@dataclass
class Part:
    """The C of one box: a function over [first, last) of its parallel units."""

    text: str
    units: int
    ns: float


@dataclass
class Shell:
    """What all parts of a kernel share: the arrays and the numbering."""

    reads: Reads
    writes: tuple[Value, ...]
    shared: frozenset[int] = frozenset()  # slots of reads that may be the same buffer as a write
    streamed: bool = False
    names: CWriter = field(default_factory=CWriter)
    tables: dict[Any, str] = field(default_factory=dict)
    used_types: dict[tuple[str, str], None] = field(default_factory=dict)

    def pointers(self, writer: CWriter, reads: Sequence[int], writes: Sequence[int]) -> None:
        """Declare the arrays that a part uses."""
        values, count = self.reads.values, len(self.reads.values)
        for slot in reads:
            restrict = "" if slot in self.shared else "restrict "
            writer.line(f"const {memory_type(values[slot].shape.dtype)} *{restrict}p{slot} = bufs[{slot}];")
        for slot in writes:
            restrict = "" if self.shared else "restrict "
            writer.line(f"{memory_type(self.writes[slot].shape.dtype)} *{restrict}r{slot} = bufs[{count + slot}];")


def memory_type(dtype: ElementType) -> str:
    """C type of an element in memory that promises no alignment."""
    return f"cyx_mem_{dtype}"


def memory_typedefs(values: Sequence[Value]) -> list[str]:
    """The definitions of the memory types of some arrays; they read the same wherever they stand."""
    dtypes = dict.fromkeys(v.shape.dtype for v in values)
    alias = {d: "" if d.is_complex else ", may_alias" for d in dtypes}  # gcc takes that attribute for scalars only
    return [f"typedef {scalar.storage_type(d)} {memory_type(d)} __attribute__((aligned(1){alias[d]}));" for d in dtypes]


def part(box: Box, shell: Shell, name: str, ns: float) -> Part:
    """Write the function of one box."""
    loops = [(a, n) for a, n in zip(box.body.space.loops, box.extents, strict=True)]
    kept, dropped = collapse(loops, box.forms)
    blocked = bool(kept) and kept[-1][1] > WHOLE
    atoms: list[Atom | None] = [a for a, _ in kept]
    nest = Nest(box.body, [*atoms[:-1], None, *atoms[-1:]] if blocked else atoms, shell.names.child())
    nest.dropped, nest.tables = dropped | {a for a, n in loops if n == 1}, shell.tables
    nest.write(box.nodes)
    streamed = shell.streamed and bool(kept) and kept[-1][1] >= 256 and all(s.form.coefficient(kept[-1][0]) == 1 for s in box.stores)
    inner, after = _inner_lines(box, nest, streamed)
    writer = CWriter()
    with writer.block(f"static void {name}(void *const *bufs, int64_t first, int64_t last)"):
        shell.pointers(writer, _slots(box), [s.slot for s in box.stores])
        writer.lines(nest.writers[0].written)
        extents = [n for _, n in kept]
        units = _write_loops(writer, nest, extents, _Innermost(nest, inner, after, _locals(box) if streamed else [], bool(shell.shared)), ns)
        if streamed:
            writer.line("cyx_stream_end();")
    return Part(writer.text(), units, ns)


def _slots(box: Box) -> list[int]:
    return sorted({n.data[0] for n in box.nodes if n.kind == "load"})


def _locals(box: Box) -> list[str]:
    return [f"{scalar.storage_type(s.dtype)} s{s.slot}[{{trip}}] __attribute__((aligned(64)));" for s in box.stores]


def _inner_lines(box: Box, nest: Nest, streamed: bool) -> tuple[list[str], list[str]]:
    """Lines of the innermost loop, and lines that follow it."""
    writer, after = nest.writers[-1], []
    for s in box.stores:
        value = scalar.store(s.dtype, nest.text(s.node))
        if streamed:
            writer.line(f"s{s.slot}[k] = {value};")
            after.append(f"cyx_stream(&r{s.slot}[{nest.block_start(s.form)}], s{s.slot}, sizeof s{s.slot});")
        else:
            writer.line(f"r{s.slot}[{nest.form(s.form)}] = {value};")
    return writer.written, after


@dataclass
class _Innermost:
    nest: Nest
    lines: list[str]
    after: list[str]
    locals: list[str]
    in_place: bool

    def write(self, writer: CWriter, trip: int) -> None:
        """The loop of constant trip count, and the patch of rare lanes."""
        nest = self.nest
        writer.lines([line.format(trip=trip) for line in self.locals])
        if nest.rare:
            writer.line("uint32_t rare = 0;")
        writer.line("#pragma GCC ivdep")
        with writer.block(f"for (int k = 0; k < {trip}; ++k)"):
            writer.lines(self.lines)
            if nest.rare:
                writer.line(f"rare |= {' | '.join(f'(uint32_t)({r})' for r in nest.rare)};")
        if nest.rare:
            with writer.block(f"if (rare) for (int k = 0; k < {trip}; ++k)"):
                writer.lines([nest.patched(line) for line in self.lines])
        writer.lines(self.after)


def _write_loops(writer: CWriter, nest: Nest, extents: list[int], innermost: _Innermost, ns: float) -> int:
    """The loops of a nest; its parallel ones run over [first, last), of as many units as returned."""
    if not extents:  # the lines of depth 0 are everything
        return 1
    *outer, trip = extents
    blocks = Blocks.of(trip, nest.blocked, overlap=not innermost.in_place)
    levels = [*outer, blocks.count] if nest.blocked else outer
    units, opened = open_levels(writer, [nest], levels, blocks, cost.tasks(ns, 1 << 30))
    _write_innermost(writer, innermost, blocks)
    close(writer, opened)
    return units


def open_levels(writer: CWriter, nests: Sequence[Nest], levels: Sequence[int], blocks: Blocks, tasks: int, parts: int = 1) -> tuple[int, int]:
    """Open the loops over the outer levels of nests that share them.

    The leading ones become one loop over [first, last) of parallel units, as few of them as give enough units; with `parts`, each
    unit of all levels exists that many times, and ``part`` says which it is.

    Returns
    -------
    units : int
        Number of parallel units.
    opened : int
        How many loops `close` must close.
    """
    nest = nests[0]
    parallel = next((m for m in range(len(levels) + 1) if prod(levels[:m]) >= 4 * tasks), len(levels))
    parallel = len(levels) if parts > 1 else max(parallel, min(1, len(levels)))
    units = prod(levels[:parallel]) * parts
    if units == 1 and not parallel:
        return 1, 0
    writer.line("for (int64_t u = first; u < last; ++u) {")
    writer.open()
    if parts > 1:
        writer.line(f"const int64_t part = u % {parts};")
    for i in range(parallel):
        step = prod(levels[i + 1 : parallel]) * parts
        value = ("u" if step == 1 else f"u / {step}") + (f" % {levels[i]}" if i else "")
        _level(writer, nests, i, f"const int64_t {nest.counter(i)} = {value};", blocks)
    for i in range(parallel, len(levels)):
        name = nest.counter(i)
        _level(writer, nests, i, f"for (int64_t {name} = 0; {name} < {levels[i]}; ++{name}) {{", blocks)
    return units, 1 + len(levels) - parallel


def close(writer: CWriter, count: int) -> None:
    """Close loops."""
    for _ in range(count):
        writer.close()
        writer.line("}")


@dataclass(frozen=True)
class Blocks:
    """How an innermost loop is cut: `whole` blocks of `length`, then `tail`."""

    blocked: bool
    length: int
    whole: int
    tail: int
    trip: int
    overlap: bool  # the last block may begin early and compute some elements again

    @staticmethod
    def of(trip: int, blocked: bool, *, overlap: bool) -> Blocks:
        """The blocks of a loop."""
        length = block_length(trip) if blocked else trip
        return Blocks(blocked, length, *divmod(trip, length), trip, overlap)

    @property
    def count(self) -> int:
        """Number of blocks, the tail included."""
        return self.whole + (self.tail > 0)

    @property
    def start(self) -> str:
        """C of the first element of a block."""
        if self.tail and self.overlap:
            return f"block < {self.whole} ? block * {self.length} : {self.trip - self.length}"
        return f"block * {self.length}"


def block_length(extent: int) -> int:
    """The length of blocks for a long loop: one that leaves no rest, if there is such."""
    fitting = [d for d in range(256, WHOLE + 1) if extent % d == 0]
    best = [d for d in fitting if d % 64 == 0] or [d for d in fitting if d % 16 == 0] or fitting
    return min(best, key=lambda d: (abs(d - BLOCK), d), default=BLOCK)


def _level(writer: CWriter, nests: Sequence[Nest], i: int, head: str, blocks: Blocks) -> None:
    writer.line(head)
    if head.endswith("{"):
        writer.open()
    if nests[0].levels[i] is None:
        writer.line(f"const int64_t b = {blocks.start};")
    for nest in nests:
        writer.lines(nest.writers[i + 1].written)


def _write_innermost(writer: CWriter, innermost: _Innermost, blocks: Blocks) -> None:
    if not blocks.tail or blocks.overlap:
        with writer.block(""):
            innermost.write(writer, blocks.length)
        return
    with writer.block(f"if (block < {blocks.whole})"):
        innermost.write(writer, blocks.length)
    with writer.block("else"):
        innermost.write(writer, blocks.tail)


def assemble(parts: Sequence[Part], shell: Shell, kind: str, note: str = "", scratch: int = 0) -> Kernel:
    """One kernel of some parts: its tasks are those of the parts, one after the other."""
    total = sum(p.ns for p in parts)
    wanted = cost.tasks(total, sum(p.units for p in parts))
    counts = [1 if wanted == 1 else max(1, min(p.units, round(wanted * p.ns / total))) for p in parts]
    if not parts:
        return Kernel(_EMPTY, kind=kind)
    if wanted == 1:
        counts = [1] + [0] * (len(parts) - 1)
    head = "static cyx_status KERNEL(void *const *bufs, int64_t begin, int64_t end)"
    writer = CWriter()
    writer.lines(memory_typedefs([*shell.reads.values, *shell.writes]))
    writer.lines([table_definition(n, *t) for t, n in _named_tables(shell)])
    body = "".join(p.text for p in parts)
    last = CWriter()
    if note:
        last.line(f"/* {note} */")
    with last.block(head):
        _call_parts(last, parts, counts)
        last.line("return CYX_OK;")
    return Kernel(writer.text() + body + last.text(), tasks=max(1, sum(counts)), cost=total, scratch=scratch, kind=kind)


def _named_tables(shell: Shell) -> list[tuple[tuple[ElementType, Any], str]]:
    return [((literal.shape.dtype, literal.array), name) for literal, name in shell.tables.items()]


def _call_parts(writer: CWriter, parts: Sequence[Part], counts: Sequence[int]) -> None:
    if sum(counts) == 1:
        for i, p in enumerate(parts):
            writer.line(f"KERNEL_{i + 1}(bufs, 0, {p.units});")
        return
    start = 0
    for i, (p, count) in enumerate(zip(parts, counts, strict=True)):
        if len(parts) == 1:
            writer.line(f"KERNEL_1(bufs, begin * {p.units} / {count}, end * {p.units} / {count});")
            return
        with writer.block(f"if (begin < {start + count} && end > {start})"):
            writer.line(f"const int64_t from = begin > {start} ? begin - {start} : 0, to = end < {start + count} ? end - {start} : {count};")
            writer.line(f"KERNEL_{i + 1}(bufs, from * {p.units} / {count}, to * {p.units} / {count});")
        start += count


# -------------------------------------------------------------------------------------------------------------- groups
@emits_group("loop")
def loop(group: Group) -> list[Step]:
    """An element-wise group: outputs of one iteration space."""
    root = group.outputs[0]

    def place(body: Body, index: Index) -> list[Store]:
        stores = []
        for slot, out in enumerate(group.outputs):
            at = index.at(out.shape.dims)
            stores.append(Store(slot, out.shape.dtype, at.linear, body.value(out, at)))
        return stores

    writes = tuple(Value(o) for o in group.outputs)
    return [_step(group, root.shape.dims, place, writes)]


def _step(group: Group, dims: tuple[int, ...], place: Place, writes: tuple[Value, ...], target: Value | None = None) -> Step:
    """The step of a group; `target` is an array that the write must share."""
    reads = Reads()
    found = boxes(dims, set(group.instructions), reads, place) if prod(dims) else []
    pairs = _in_place(found, reads, writes) if target is None else [(0, reads.slot(target))]
    size = sum(w.shape.nbytes for w in writes)
    shell = Shell(reads, writes, frozenset(r for _, r in pairs), streamed=size > cost.CACHE_BYTES and target is None)
    ns = cost.element_ns(group.instructions) + _traffic(reads, writes, dims) / max(1, prod(dims))
    parts = [part(b, shell, f"KERNEL_{i + 1}", ns * b.size) for i, b in enumerate(found)]
    kernel = assemble(parts, shell, "loop", note=describe(group))
    aliases = {"in_place": tuple(pairs)} if target is None else {"must_alias": tuple(pairs)}
    return Step(kernel, reads.values, writes, **aliases)


def _traffic(reads: Reads, writes: Sequence[Value], dims: tuple[int, ...]) -> float:
    """Time to move what the loops touch: of each array at most one element a point."""
    points = prod(dims)
    return sum(cost.memory_ns(min(v.shape.nbytes, points * v.shape.dtype.itemsize)) for v in (*reads.values, *writes))


_EMPTY = """static cyx_status KERNEL(void *const *bufs, int64_t begin, int64_t end) {
  return CYX_OK;
}
"""


def _in_place(found: Sequence[Box], reads: Reads, writes: tuple[Value, ...]) -> list[tuple[int, int]]:
    """Reads whose every load is where the write of the same element goes."""
    pairs: list[tuple[int, int]] = []
    for w, write in enumerate(writes):
        for r, read in enumerate(reads.values):
            taken = any(r == other for _, other in pairs)
            if read.shape.nbytes == write.shape.nbytes and read.shape.dtype.itemsize == write.shape.dtype.itemsize and not taken:
                if all(_same_place(b, w, r) for b in found):
                    pairs.append((w, r))
                    break
    return pairs


def _same_place(box: Box, write: int, read: int) -> bool:
    form = next(s.form for s in box.stores if s.slot == write)
    rare = any(n.kind == "apply" and scalar.slow_twin(n.data.opcode, n.dtype) for n in box.nodes)
    return not rare and all(n.data[1] == form for n in box.nodes if n.kind == "load" and n.data[0] == read)


def describe(group: Group) -> str:
    """Opcodes and shapes, for people; nothing of it is the program's own words."""
    opcodes: dict[str, int] = {}
    for i in group.instructions:
        opcodes[i.opcode] = opcodes.get(i.opcode, 0) + 1
    listed = ", ".join(f"{o} x{n}" if n > 1 else o for o, n in list(opcodes.items())[:12])
    return f"{listed} -> {', '.join(str(o.shape.static) for o in group.outputs[:4])}"


@emits_group("update")
def update(group: Group) -> list[Step]:
    """dynamic-update-slice, in place: the update's elements are computed straight into the operand."""
    (root,) = group.outputs
    operand, new, *starts = root.operands

    def place(body: Body, index: Index) -> list[Store]:
        space = body.space
        asked = [body.value(i, at) for i, at in start_requests(body, tuple(starts), operand.shape.rank)]
        room = [n - size for n, size in zip(operand.shape.dims, new.shape.dims, strict=True)]
        at = [space.add(c, body.clamped(s, r)) for c, s, r in zip(index.coordinates, asked, room, strict=True)]
        form = space.index(operand.shape.dims, tuple(at)).linear
        return [Store(0, root.shape.dtype, form, body.value(new, index))]

    return [_step(group, new.shape.dims, place, (Value(root),), resolve(operand))]
