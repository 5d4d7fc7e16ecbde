"""Emitter of element-wise groups: loops over boxes of the iteration space, free of guards, in blocks."""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Sequence
from dataclasses import replace
from math import prod

from cyxla.xla.cpu.c import scalar
from cyxla.xla.cpu.c.writer import CWriter
from cyxla.xla.cpu.emitters import emits_group
from cyxla.xla.cpu.kernel import cost
from cyxla.xla.cpu.kernel.groups import Group, GroupKind
from cyxla.xla.cpu.kernel.kernel import KernelKind, Step, Value
from cyxla.xla.cpu.kernel.values import resolve
from cyxla.xla.cpu.loops.adjacent_boxes import adjacent_boxes_part, group_adjacent_boxes
from cyxla.xla.cpu.loops.hoisting import BLOCK_LEVEL, Level, LoopNest, collapse
from cyxla.xla.cpu.loops.index_map import Atom, Index
from cyxla.xla.cpu.loops.iteration_boxes import Box, Store, StoresAt, split_into_boxes
from cyxla.xla.cpu.loops.live_loops import LIVE_BLOCK, collapsed_trips, live_trips
from cyxla.xla.cpu.loops.loop_ir import Body, Reads, start_requests
from cyxla.xla.cpu.loops.loop_kernel import (
    MAX_UNBLOCKED_TRIP,
    Blocks,
    Innermost,
    KernelFrame,
    Part,
    assemble,
    close_loops,
    innermost,
    live_units,
    open_loops,
    slots,
    write_blocks,
)  # fmt: skip
from cyxla.xla.cpu.loops.loop_text import LoopListing
from cyxla.xla.cpu.loops.nodes import Apply, Load
from cyxla.xla.cpu.loops.transposed_tiles import find_tiles, tiled_part
from cyxla.xla.service.refusal import Refusal


def collapse_loops(box: Box, outermost: Container[Atom] = ()) -> tuple[list[tuple[Atom, int]], set[Atom]]:
    """Return the loops of a box that remain when neighbours are collapsed, and those that are dropped."""
    loops = list(zip(box.body.space.loops, box.extents, strict=True))
    remaining, dropped = collapse(loops, box.forms, outermost)
    return remaining, dropped | {a for a, n in loops if n == 1}


def emit_box(box: Box, frame: KernelFrame, name: str, ns: float) -> Part:
    """Emit the function of one box."""
    trips = live_trips(box.region, box.body.space.loops, frame.live, frame.reads) if box.region and frame.live else {}
    loops, dropped = collapse_loops(box, trips)
    live = collapsed_trips(list(zip(box.body.space.loops, box.extents, strict=True)), dropped, trips)
    tiles = find_tiles(box, loops, frame.aliased)
    if tiles is not None:
        return tiled_part(box, frame, name, ns, tiles, dropped, live)
    blocked = bool(loops) and loops[-1][1] > (LIVE_BLOCK if loops[-1][0] in live else MAX_UNBLOCKED_TRIP)
    atoms: list[Level] = [a for a, _ in loops]
    nest = LoopNest(box.body, [*atoms[:-1], BLOCK_LEVEL, *atoms[-1:]] if blocked else atoms, frame.names.child())
    nest.dropped, nest.tables = dropped, frame.tables
    nest.write(box.nodes)
    streamed = (
        frame.streamed
        and bool(loops)
        and loops[-1][1] >= 256
        and all(s.form.coefficient(loops[-1][0]) == 1 for s in box.stores)
    )
    inner = innermost(box, nest, streamed=streamed, in_place=bool(frame.aliased))
    writer = CWriter()
    with writer.block(f"static void {name}(void *const *bufs, int64_t first, int64_t last)"):
        frame.pointers(writer, slots(box), [s.slot for s in box.stores])
        writer.lines(nest.writers[0].written)
        loops_live = {i: live[a] for i, (a, _) in enumerate(loops) if a in live}
        units, live_count = _write_loops(writer, nest, [n for _, n in loops], inner, ns, loops_live)
        if streamed:
            writer.line("cyx_stream_end();")
    return Part(writer.text(), units, ns, (LoopListing(box.body, box.stores, nest=nest),), live_count)


def _write_loops(
    writer: CWriter, nest: LoopNest, extents: list[int], innermost: Innermost, ns: float, live: dict[int, str]
) -> tuple[int, str]:
    """Emit the loops of a nest; return the number of units of its parallel loop, which runs over [first, last).

    The trip counts of the loops in `live` are C; the second result is the C of the number of live units.
    """
    if not extents:  # all code is at depth 0
        return 1, ""
    *outer, trip = extents
    last = len(outer)
    blocks = Blocks.of(trip, blocked=nest.blocked, overlap=not innermost.in_place)
    if nest.blocked and last in live:
        blocks = Blocks(trip, LIVE_BLOCK, not innermost.in_place)
        live = {**live, last: blocks.live(live[last])}
    levels = [*outer, blocks.count] if nest.blocked else outer
    live = {i: text for i, text in live.items() if i < len(levels)}
    units, opened = open_loops(writer, [nest], levels, [blocks], cost.tasks(ns), live=live)
    write_blocks(writer, innermost, blocks)
    close_loops(writer, opened)
    return units, live_units(levels, cost.tasks(ns), 1, live)


@emits_group(GroupKind.LOOP)
def loop(group: Group) -> list[Step]:
    """Emit an element-wise group: outputs over one iteration space."""
    root = group.outputs[0]

    def stores_at(body: Body, index: Index) -> list[Store]:
        stores = []
        body.sizes = {index.coordinates[d]: sizes[0] for d, sizes in group.live.items() if len(sizes) == 1}
        for slot, out in enumerate(group.outputs):
            at = index.at(out.shape.dims)
            stores.append(Store(slot, out.shape.dtype, at.linear, body.value(out, at)))
        return stores

    writes = tuple(Value(o) for o in group.outputs)
    return [_step(group, root.shape.dims, stores_at, writes)]


def _step(
    group: Group, dims: tuple[int, ...], stores_at: StoresAt, writes: tuple[Value, ...], target: Value | None = None
) -> Step:
    """Return the step of a group; `target` is an array that the write must alias."""
    reads = Reads()
    boxes = split_into_boxes(dims, group.numbers, reads, stores_at) if prod(dims) else []
    pairs = _in_place(boxes, reads, writes) if target is None else [(0, reads.slot(target))]
    if target is None and any(find_tiles(b, collapse_loops(b)[0], frozenset()) for b in boxes):
        pairs = []  # tiles at the edge overlap: they read operands after writing results
    starts = _first_elements(boxes)
    for box in boxes:
        box.body.starts = starts
    size = sum(w.shape.nbytes for w in writes)
    frame = KernelFrame(
        reads,
        writes,
        frozenset(r for _, r in pairs),
        streamed=size > cost.STREAMING_BYTES and target is None,
        live=group.live,
    )
    ns = cost.element_ns(group.instructions) + _traffic(reads, writes, dims) / max(1, prod(dims))
    groups = [g for adjacent in group_adjacent_boxes(boxes) for g in _without_tiles(adjacent, frame)]
    groups.sort(
        key=lambda g: -sum(b.size for b in g)
    )  # the thread pool times the first task, which should be a large one
    parts = [_emit_boxes(group, frame, f"KERNEL_{i + 1}", ns) for i, group in enumerate(groups)]
    kernel = assemble(parts, frame, KernelKind.LOOP, note=describe(group))
    if prod(dims) == 1:
        kernel = replace(kernel, refusals=(Refusal.of("vectorisation", group.root, "it has a single element"),))
    offsets = tuple([starts.get(k, 0) * v.shape.dtype.itemsize for k, v in enumerate(reads.values)] if starts else ())
    if target is None:
        return Step(kernel, reads.values, writes, in_place=tuple(pairs), offsets=offsets)
    return Step(kernel, reads.values, writes, must_alias=tuple(pairs), offsets=offsets)


def _first_elements(boxes: Sequence[Box]) -> dict[int, int]:
    """Return the lowest index at which each array is read, by slot, if it is above 0."""
    lowest: dict[int, int] = {}
    for box in boxes:
        for n in box.nodes:
            if isinstance(n, Load):
                lowest[n.slot] = min(lowest.get(n.slot, n.form.low), n.form.low)
    return {slot: low for slot, low in lowest.items() if low > 0}


def _without_tiles(group: list[Box], frame: KernelFrame) -> list[list[Box]]:
    """Split a group of adjacent boxes if one of them is transposed tile by tile."""
    tiled = len(group) > 1 and any(frame.live or find_tiles(b, collapse_loops(b)[0], frame.aliased) for b in group)
    return [[b] for b in group] if tiled else [group]


def _emit_boxes(group: list[Box], frame: KernelFrame, name: str, ns: float) -> Part:
    """Emit the function of one box or of several adjacent ones; `ns` is the time of one point."""
    if len(group) > 1:
        return adjacent_boxes_part(group, frame, name, ns * sum(b.size for b in group))
    return emit_box(group[0], frame, name, ns * group[0].size)


def _traffic(reads: Reads, writes: Sequence[Value], dims: tuple[int, ...]) -> float:
    """Return the time in ns to move the arrays, of each at most one element per point."""
    points = prod(dims)
    return sum(cost.memory_ns(min(v.shape.nbytes, points * v.shape.dtype.itemsize)) for v in (*reads.values, *writes))


def _in_place(boxes: Sequence[Box], reads: Reads, writes: tuple[Value, ...]) -> list[tuple[int, int]]:
    """Return pairs (write, read) in which every load is at the index that the write stores to."""
    pairs: list[tuple[int, int]] = []
    for w, write in enumerate(writes):
        for r, read in enumerate(reads.values):
            is_paired = any(r == other for _, other in pairs)
            if not is_paired and _same_size(read, write) and all(_same_index(b, w, r) for b in boxes):
                pairs.append((w, r))
                break
    return pairs


def _same_size(read: Value, write: Value) -> bool:
    a, b = read.shape, write.shape
    return a.nbytes == b.nbytes and a.dtype.itemsize == b.dtype.itemsize


def _same_index(box: Box, write: int, read: int) -> bool:
    form = next(s.form for s in box.stores if s.slot == write)
    has_slow_path = any(isinstance(n, Apply) and scalar.slow_path(n.opcode, n.dtype) for n in box.nodes)
    return not has_slow_path and all(n.form == form for n in box.nodes if isinstance(n, Load) and n.slot == read)


def describe(group: Group) -> str:
    """Return a description by opcodes and shapes, for people; it has no names of the program.

    The most frequent opcodes come first, whatever the order of the instructions, which the C need not depend on.
    """
    opcodes = Counter(i.opcode for i in group.instructions)
    most_frequent = sorted(opcodes.items(), key=lambda item: (-item[1], item[0]))[:12]
    names = ", ".join(f"{o} x{n}" if n > 1 else o for o, n in most_frequent)
    return f"{names} -> {', '.join(str(o.shape.static) for o in group.outputs[:4])}"


@emits_group(GroupKind.UPDATE)
def update(group: Group) -> list[Step]:
    """Emit a dynamic-update-slice in place: the update's elements are computed into the operand."""
    (root,) = group.outputs
    operand, new, *starts = root.operands

    def stores_at(body: Body, index: Index) -> list[Store]:
        space = body.space
        start_nodes = [
            body.value(i, coordinates) for i, coordinates in start_requests(body, tuple(starts), operand.shape.rank)
        ]
        max_starts = [n - size for n, size in zip(operand.shape.dims, new.shape.dims, strict=True)]
        coordinates = [
            space.add(c, body.clamp_start(s, high))
            for c, s, high in zip(index.coordinates, start_nodes, max_starts, strict=True)
        ]
        form = space.index(operand.shape.dims, tuple(coordinates)).linear
        return [Store(0, root.shape.dtype, form, body.value(new, index))]

    return [_step(group, new.shape.dims, stores_at, (Value(root),), resolve(operand))]
