"""Adjacent boxes: narrow borders are written row by row together with the box between them.

On their own, the first and the last column of a large array would touch a cache line for every element, and all these
lines may map to the same cache set.
"""

from __future__ import annotations

from collections.abc import Sequence

from cyxla.xla.cpu.c.writer import CWriter
from cyxla.xla.cpu.kernel import cost
from cyxla.xla.cpu.loops.hoisting import BLOCK_LEVEL, Level, LoopNest, collapse
from cyxla.xla.cpu.loops.index_map import Atom
from cyxla.xla.cpu.loops.iteration_boxes import Box
from cyxla.xla.cpu.loops.loop_kernel import (
    MAX_UNBLOCKED_TRIP,
    Blocks,
    KernelFrame,
    Part,
    close_loops,
    innermost,
    open_loops,
    slots,
    write_blocks,
)
from cyxla.xla.cpu.loops.loop_text import LoopListing

NARROW_ROW = 64  # a box with shorter rows is not worth loops of its own


def group_adjacent_boxes(boxes: Sequence[Box]) -> list[list[Box]]:
    """Group adjacent boxes if one of them is narrow; every other box is a group of its own."""
    groups: list[list[Box]] = []
    for box in boxes:
        if groups and _adjoins(groups[-1][-1], box):
            groups[-1].append(box)
        else:
            groups.append([box])
    return [boxes for group in groups for boxes in ([group] if _is_worth_joining(group) else [[b] for b in group])]


def _is_worth_joining(group: Sequence[Box]) -> bool:
    widths = [b.extents[-1] for b in group if b.extents]
    return len(group) > 1 and min(widths) < NARROW_ROW < sum(widths)


def _adjoins(left: Box, right: Box) -> bool:
    """Return whether one box continues every row that another one writes."""
    if not left.extents or left.extents[:-1] != right.extents[:-1] or len(left.stores) != len(right.stores):
        return False
    if all(n == 1 for n in left.extents[:-1]):
        return False
    return all(
        b.form.constant - a.form.constant == left.extents[-1]
        and [b.form.coefficient(x) for x in right.body.space.loops[:-1]]
        == [a.form.coefficient(x) for x in left.body.space.loops[:-1]]
        for a, b in zip(left.stores, right.stores, strict=True)
    )


def adjacent_boxes_part(boxes: Sequence[Box], frame: KernelFrame, name: str, ns: float) -> Part:
    """Emit the function of a group of adjacent boxes."""
    outer = _outer_loops(boxes)
    positions = {p for p, _ in outer}
    writer, names = CWriter(), frame.names.child()
    nests, all_blocks = [], []
    for box in boxes:
        atoms = box.body.space.loops
        trip = box.extents[-1]
        levels: list[Level] = [atoms[p] for p, _ in outer]
        nest = LoopNest(
            box.body,
            [*levels, BLOCK_LEVEL, atoms[-1]] if trip > MAX_UNBLOCKED_TRIP else [*levels, atoms[-1]],
            names.child(),
        )
        nest.dropped = {a for p, a in enumerate(atoms[:-1]) if p not in positions}
        nest.tables = frame.tables
        nest.write(box.nodes)
        nests.append(nest)
        all_blocks.append(Blocks.of(trip, blocked=nest.blocked, overlap=not frame.aliased))
    inners = [innermost(b, n, streamed=False, in_place=bool(frame.aliased)) for b, n in zip(boxes, nests, strict=True)]
    with writer.block(f"static void {name}(void *const *bufs, int64_t first, int64_t last)"):
        frame.pointers(writer, sorted({s for b in boxes for s in slots(b)}), [s.slot for s in boxes[0].stores])
        for nest in nests:
            writer.lines(nest.writers[0].written)
        units, opened = open_loops(writer, nests, [n for _, n in outer], all_blocks, cost.tasks(ns))
        for nest, inner, blocks in zip(nests, inners, all_blocks, strict=True):
            if not nest.blocked:
                write_blocks(writer, inner, blocks)
                continue
            with writer.block(f"for (int64_t {blocks.name} = 0; {blocks.name} < {blocks.count}; ++{blocks.name})"):
                writer.line(f"const int64_t {blocks.base} = {blocks.start};")
                writer.lines(nest.writers[len(outer) + 1].written)
                write_blocks(writer, inner, blocks)
        close_loops(writer, opened)
    loops = tuple(LoopListing(b.body, b.stores, nest=n) for b, n in zip(boxes, nests, strict=True))
    return Part(writer.text(), units, ns, loops)


def _outer_loops(boxes: Sequence[Box]) -> list[tuple[int, int]]:
    """Return positions and extents of the loops around the rows, collapsed where all boxes agree."""
    outer_loops = []
    for box in boxes:
        loops = list(zip(box.body.space.loops, box.extents, strict=True))[:-1]
        position: dict[Atom, int] = {a: p for p, (a, _) in enumerate(loops)}
        outer_loops.append([(position[a], n) for a, n in collapse(loops, box.forms)[0]])
    if all(f == outer_loops[0] for f in outer_loops):
        return outer_loops[0]
    return [(p, n) for p, n in enumerate(boxes[0].extents[:-1]) if n > 1]
