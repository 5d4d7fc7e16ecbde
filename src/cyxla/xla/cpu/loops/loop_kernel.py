"""C around loop bodies: arrays, blocks, parallel loops, and the kernel that calls the parts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field
from math import prod
from typing import Any

from cyxla.records import dataclass
from cyxla.types import ElementType
from cyxla.xla.cpu.c import scalar
from cyxla.xla.cpu.c.independence import independence
from cyxla.xla.cpu.c.writer import CWriter
from cyxla.xla.cpu.kernel import cost
from cyxla.xla.cpu.kernel.array_types import memory_type, memory_typedefs
from cyxla.xla.cpu.kernel.kernel import Kernel, KernelKind, Listing, Value
from cyxla.xla.cpu.kernel.sum_order import MAX_UNBLOCKED_ROW, block_length
from cyxla.xla.cpu.loops.hoisting import BLOCK_LEVEL, BLOCK_START, LoopNest, table_definition
from cyxla.xla.cpu.loops.iteration_boxes import Box
from cyxla.xla.cpu.loops.loop_ir import Reads
from cyxla.xla.cpu.loops.nodes import Load

MAX_UNBLOCKED_TRIP = MAX_UNBLOCKED_ROW  # an innermost loop of up to this trip count is not blocked

_EMPTY_KERNEL = """static cyx_status KERNEL(void *const *bufs, int64_t begin, int64_t end) {
  return CYX_OK;
}
"""


@dataclass
class Part:
    """C of one box: a function over [first, last) of its parallel units, with the loop IR that it was made from.

    `live_units` is the C of the number of units that matter, in terms of ``bufs``; empty if all of them do. `live_work`
    is the C of the amount of work that matters, and the time of one in ns; empty if it is in proportion to the units.
    """

    text: str
    units: int
    ns: float
    loops: tuple[Listing, ...] = ()
    live_units: str = ""
    live_work: tuple[str, float] = ("", 0.0)

    @property
    def limit(self) -> str:
        """C of the number of units to run."""
        return self.live_units or str(self.units)


@dataclass
class KernelFrame:
    """Frame shared by all parts of a kernel: arrays, tables and names."""

    reads: Reads
    writes: tuple[Value, ...]
    aliased: frozenset[int] = frozenset()  # slots of reads that may be the same buffer as a write
    streamed: bool = False
    live: Mapping[int, Sequence[Value]] = field(default_factory=dict)  # see `Group.live`
    names: CWriter = field(default_factory=CWriter)
    tables: dict[Any, str] = field(default_factory=dict)
    used_types: dict[tuple[str, str], None] = field(default_factory=dict)

    def pointers(self, writer: CWriter, reads: Sequence[int], writes: Sequence[int]) -> None:
        """Emit declarations of the arrays that a part uses."""
        values, count = self.reads.values, len(self.reads.values)
        for slot in reads:
            restrict = "" if slot in self.aliased else "restrict "
            writer.line(f"const {memory_type(values[slot].shape.dtype)} *{restrict}p{slot} = bufs[{slot}];")
        for slot in writes:
            restrict = "" if self.aliased else "restrict "
            writer.line(f"{memory_type(self.writes[slot].shape.dtype)} *{restrict}r{slot} = bufs[{count + slot}];")


def slots(box: Box) -> list[int]:
    """Return the slots of the arrays that a box reads."""
    return sorted({n.slot for n in box.nodes if isinstance(n, Load)})


def _stream_buffers(box: Box) -> list[str]:
    return [f"{scalar.storage_type(s.dtype)} s{s.slot}[{{trip}}] __attribute__((aligned(64)));" for s in box.stores]


def _inner_lines(box: Box, nest: LoopNest, streamed: bool) -> tuple[list[str], list[str]]:
    """Return the lines of the innermost loop, and the lines after it."""
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
class Innermost:
    """Innermost loop of constant trip count, with the lines before and after it."""

    nest: LoopNest
    lines: list[str]
    after: list[str]
    locals: list[str]
    in_place: bool

    def write(self, writer: CWriter, trip: int) -> None:
        """Emit the loop, and a second loop with slow paths that runs if some lane needs one."""
        nest = self.nest
        writer.lines([line.format(trip=trip) for line in self.locals])
        if nest.slow_lanes:
            writer.line("uint32_t rare = 0;")
        writer.lines(independence(trip, nest.body.dtypes))
        with writer.block(f"for (int k = 0; k < {trip}; ++k)"):
            writer.lines(self.lines)
            if nest.slow_lanes:
                writer.line(f"rare |= {' | '.join(f'(uint32_t)({r})' for r in nest.slow_lanes)};")
        if nest.slow_lanes:
            with writer.block(f"if (rare) for (int k = 0; k < {trip}; ++k)"):
                writer.lines([nest.with_slow_paths(line) for line in self.lines])
        writer.lines(self.after)


def innermost(box: Box, nest: LoopNest, *, streamed: bool, in_place: bool) -> Innermost:
    """Return the innermost loop of a box whose nodes are emitted."""
    lines, after = _inner_lines(box, nest, streamed)
    return Innermost(nest, lines, after, _stream_buffers(box) if streamed else [], in_place)


def write_blocks(writer: CWriter, innermost: Innermost, blocks: Blocks) -> None:
    """Emit the body of the loop over blocks: the innermost loop, and another one for a tail."""
    if not blocks.tail or blocks.overlap:
        with writer.block(""):
            innermost.write(writer, blocks.length)
        return
    with writer.block(f"if (block < {blocks.full})"):
        innermost.write(writer, blocks.length)
    with writer.block("else"):
        innermost.write(writer, blocks.tail)


def open_loops(
    writer: CWriter,
    nests: Sequence[LoopNest],
    levels: Sequence[int],
    blocks: Sequence[Blocks],
    tasks: int,
    parts: int = 1,
    live: Mapping[int, str] | None = None,
) -> tuple[int, int]:
    """Open the outer loops that several nests share.

    The outermost ones are collapsed into one loop over [first, last) of parallel units, as few of them as give enough
    units; with `parts`, all levels are parallel and each unit is cut into that many parts, numbered ``part``. The
    trip counts of the levels in `live` are C.

    Returns
    -------
    units : int
        Number of parallel units.
    opened : int
        Number of loops for `close_loops` to close.
    """
    nest = nests[0]
    parallel = _parallel_levels(levels, tasks, parts)
    units = prod(levels[:parallel]) * parts
    if units == 1 and not parallel:
        return 1, 0
    trips = [f"live{i}" if i in (live or ()) else str(n) for i, n in enumerate(levels)]
    for i, text in (live or {}).items():
        writer.line(f"const int64_t live{i} = {text};")
    writer.line("for (int64_t u = first; u < last; ++u) {")
    writer.open()
    if parts > 1:
        writer.line(f"const int64_t part = u % {parts};")
    for i in range(parallel):
        inner = range(i + 1, parallel)
        fixed = prod(n for k, n in enumerate(levels) if k in inner and k not in (live or ())) * parts
        steps = [trips[k] for k in inner if k in (live or ())] + ([str(fixed)] if fixed > 1 else [])
        step = steps[0] if len(steps) == 1 else f"({' * '.join(steps)})"
        value = (f"u / {step}" if steps else "u") + (f" % {trips[i]}" if i else "")
        _level(writer, nests, i, f"const int64_t {nest.counter(i)} = {value};", blocks)
    for i in range(parallel, len(levels)):
        name = nest.counter(i)
        _level(writer, nests, i, f"for (int64_t {name} = 0; {name} < {trips[i]}; ++{name}) {{", blocks)
    return units, 1 + len(levels) - parallel


def _parallel_levels(levels: Sequence[int], tasks: int, parts: int) -> int:
    """Return the number of outer loops that are collapsed into the loop over units."""
    parallel = next((m for m in range(len(levels) + 1) if prod(levels[:m]) >= 4 * tasks), len(levels))
    return len(levels) if parts > 1 else max(parallel, min(1, len(levels)))


def live_units(levels: Sequence[int], tasks: int, parts: int, live: Mapping[int, str]) -> str:
    """Return the C of the number of units of `open_loops` that matter; empty if all of them do."""
    parallel = range(_parallel_levels(levels, tasks, parts))
    if not any(i in live for i in parallel):
        return ""
    return " * ".join([*(live.get(i, str(levels[i])) for i in parallel), str(parts)])


def close_loops(writer: CWriter, count: int) -> None:
    """Close a number of loops."""
    for _ in range(count):
        writer.close()
        writer.line("}")


@dataclass(frozen=True)
class Blocks:
    """Blocks of a loop: `full` blocks of `length` iterations, then `tail`.

    Attributes
    ----------
    name, base : str
        Names of the counter of the loop over blocks and of the local with a block's first index.
    overlap : bool
        True if the last block starts early and recomputes some elements, rather than being shorter.
    """

    trip: int
    length: int
    overlap: bool
    name: str = BLOCK_LEVEL
    base: str = BLOCK_START

    @staticmethod
    def of(trip: int, *, blocked: bool, overlap: bool) -> Blocks:
        """Return the blocks of an innermost loop, or a single block if it is not blocked."""
        return Blocks(trip, block_length(trip) if blocked else trip, overlap)

    def live(self, trip: str) -> str:
        """Return the C of the number of blocks that the C of a number of iterations reaches into."""
        return f"cyx_live_steps({trip}, 0, {self.length}, {self.count})"

    @property
    def full(self) -> int:
        """Number of full blocks."""
        return self.trip // max(self.length, 1)

    @property
    def tail(self) -> int:
        """Elements after the full blocks."""
        return self.trip % max(self.length, 1)

    @property
    def count(self) -> int:
        """Number of blocks, the tail included."""
        return self.full + (self.tail > 0)

    @property
    def start(self) -> str:
        """C of the first index of a block."""
        if self.tail and self.overlap:
            return f"{self.name} < {self.full} ? {self.name} * {self.length} : {self.trip - self.length}"
        return f"{self.name} * {self.length}"


def _level(writer: CWriter, nests: Sequence[LoopNest], i: int, head: str, blocks: Sequence[Blocks]) -> None:
    writer.line(head)
    if head.endswith("{"):
        writer.open()
    for level_blocks in blocks:
        if nests[0].levels[i] == level_blocks.name:
            writer.line(f"const int64_t {level_blocks.base} = {level_blocks.start};")
    for nest in nests:
        writer.lines(nest.writers[i + 1].written)


def assemble(parts: Sequence[Part], frame: KernelFrame, kind: KernelKind, note: str = "", scratch: int = 0) -> Kernel:
    """Return one kernel that runs several parts: its tasks are those of the parts, one after the other."""
    total = sum(p.ns for p in parts)
    tasks = cost.tasks(total, sum(p.units for p in parts))
    counts = [1 if tasks == 1 else max(1, min(p.units, round(tasks * p.ns / total))) for p in parts]
    if not parts:
        return Kernel(_EMPTY_KERNEL, kind=kind)
    if tasks == 1:
        counts = [1] + [0] * (len(parts) - 1)
    head = "static cyx_status KERNEL(void *const *bufs, int64_t begin, int64_t end)"
    writer = CWriter()
    writer.lines(memory_typedefs([*frame.reads.values, *frame.writes]))
    writer.lines([table_definition(n, *t) for t, n in _named_tables(frame)])
    body = "".join(p.text for p in parts)
    main = CWriter()
    if note:
        main.line(f"/* {note} */")
    with main.block(head):
        _call_parts(main, parts, counts)
        main.line("return CYX_OK;")
    short = ""
    if sum(counts) > 1 and any(p.live_units or p.live_work[0] for p in parts):
        short = short_work([p.live_work if p.live_work[0] else (p.limit, p.ns / max(1, p.units)) for p in parts])
    text = writer.text() + body + main.text()
    loops = tuple(listing for p in parts for listing in p.loops)
    tasks = max(1, sum(counts))
    return Kernel(text, tasks=tasks, cost=total, scratch=scratch, kind=kind, loops=loops, short=short)


def short_work(work: Sequence[tuple[str, float]]) -> str:
    """Return the C of the condition that all tasks are too short for several threads.

    Parameters
    ----------
    work : sequence of (str, float)
        C of numbers of units that matter, and the time of each of them in ns.
    """
    return " + ".join(f"(double)({count}) * {ns:.3g}" for count, ns in work) + f" < {cost.SERIAL_NS:.1f}"


def _named_tables(frame: KernelFrame) -> list[tuple[tuple[ElementType, Any], str]]:
    return [((literal.shape.dtype, literal.array), name) for literal, name in frame.tables.items()]


def _call_parts(writer: CWriter, parts: Sequence[Part], counts: Sequence[int]) -> None:
    if sum(counts) == 1:
        for i, p in enumerate(parts):
            writer.line(f"KERNEL_{i + 1}(bufs, 0, {p.limit});")
        return
    start = 0
    for i, (p, count) in enumerate(zip(parts, counts, strict=True)):
        if len(parts) == 1:
            limit = _limit(writer, p)
            writer.line(f"KERNEL_1(bufs, begin * {limit} / {count}, end * {limit} / {count});")
            return
        with writer.block(f"if (begin < {start + count} && end > {start})"):
            first, last = f"begin > {start} ? begin - {start} : 0", f"end < {start + count} ? end - {start} : {count}"
            writer.line(f"const int64_t from = {first}, to = {last};")
            limit = _limit(writer, p)
            writer.line(f"KERNEL_{i + 1}(bufs, from * {limit} / {count}, to * {limit} / {count});")
        start += count


def _limit(writer: CWriter, part: Part) -> str:
    """Return the C of the number of units of a part; a local if it is known at run time."""
    if not part.live_units:
        return str(part.units)
    writer.line(f"const int64_t units = {part.live_units};")
    return "units"
