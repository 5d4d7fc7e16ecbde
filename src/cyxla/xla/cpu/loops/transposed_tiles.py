"""Loops with strided loads that are contiguous along another loop: the loads are transposed tile by tile."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from cyxla.records import dataclass
from cyxla.xla.cpu.c import scalar
from cyxla.xla.cpu.c.writer import CWriter
from cyxla.xla.cpu.kernel import cost
from cyxla.xla.cpu.loops.hoisting import BLOCK_LEVEL, LoopNest
from cyxla.xla.cpu.loops.index_map import Affine, Atom, Loop, Runtime
from cyxla.xla.cpu.loops.iteration_boxes import Box
from cyxla.xla.cpu.loops.loop_kernel import (
    Blocks,
    KernelFrame,
    Part,
    close_loops,
    innermost,
    live_units,
    open_loops,
    slots,
)
from cyxla.xla.cpu.loops.loop_text import LoopListing
from cyxla.xla.cpu.loops.nodes import Load

_TILE = "tile"  # level of the loop over tiles of the other loop
_CACHED, _STREAMED = (64, 512), (128, 256)  # rows of a tile and bytes in a row, by how results are stored
_MIN_EXTENT = 12  # shorter loops are not tiled
_MAX_TILES = 4


@dataclass
class Tiles:
    """Loads of a box to transpose tile by tile.

    Attributes
    ----------
    contiguous : Atom
        Loop along which the loads are contiguous.
    extent : int
        Trip count of that loop.
    loads : list of Load
        Loads to transpose.
    loops : list of (Atom, int)
        All loops of the box with their trip counts, outermost first.
    """

    contiguous: Atom
    extent: int
    loads: list[Load]
    loops: list[tuple[Atom, int]]


def find_tiles(box: Box, loops: Sequence[tuple[Atom, int]], aliased: frozenset[int]) -> Tiles | None:
    """Find loads of a box with a large stride along the innermost loop and stride 1 along another; None without any.

    Parameters
    ----------
    box : Box
        Box to search.
    loops : sequence of (Atom, int)
        Loops of the box with their trip counts, outermost first.
    aliased : frozenset of int
        Slots of reads whose buffer is also written; if the box reads one, there are no tiles.
    """
    if len(loops) < 2 or loops[-1][1] < _MIN_EXTENT:
        return None
    inner = loops[-1][0]
    loads = [n for n in box.nodes if isinstance(n, Load)]
    if any(n.slot in aliased for n in loads):
        return None
    strided = [n for n in loads if abs(n.form.coefficient(inner)) >= _MIN_EXTENT and _is_affine_in_loops(n.form, loops)]
    best: tuple[Atom, int, list[Load]] | None = None
    for atom, extent in loops[:-1]:
        contiguous = [n for n in strided if n.form.coefficient(atom) == 1]
        if extent >= _MIN_EXTENT and contiguous and (best is None or len(contiguous) > len(best[2])):
            best = (atom, extent, contiguous)
    return None if best is None or len(best[2]) > _MAX_TILES else Tiles(*best, list(loops))


def _is_affine_in_loops(form: Affine, loops: Sequence[tuple[Atom, int]]) -> bool:
    """Return whether a form depends on loops and runtime values alone."""
    return all(isinstance(a, Loop | Runtime) for a, _ in form.terms) and bool(loops)


def tiled_part(
    box: Box,
    frame: KernelFrame,
    name: str,
    ns: float,
    tiles: Tiles,
    dropped: set[Atom],
    live: Mapping[Atom, str],
) -> Part:
    """Emit the function of a box with transposed tiles; the trip counts of the loops in `live` are C."""
    inner, trip = tiles.loops[-1]
    others = [(a, n) for a, n in tiles.loops[:-1] if a is not tiles.contiguous]
    max_rows, row_bytes = _STREAMED if frame.streamed else _CACHED
    rows = Blocks(tiles.extent, _length(tiles.extent, max_rows), True, _TILE, "c")
    columns = Blocks(trip, _length(trip, row_bytes // max(n.dtype.itemsize for n in tiles.loads)), True)
    nest = LoopNest(
        box.body, [*(a for a, _ in others), _TILE, BLOCK_LEVEL, tiles.contiguous, inner], frame.names.child()
    )
    nest.dropped, nest.tables = dropped, frame.tables
    for i, load in enumerate(tiles.loads):
        nest.replaced_loads[load] = f"t{i}[row * {columns.length} + k]"
        nest.pin(load)
    nest.write(box.nodes)
    streamed = frame.streamed and columns.length >= 32 and all(s.form.coefficient(inner) == 1 for s in box.stores)
    body = innermost(box, nest, streamed=streamed, in_place=False)
    fills = [_fill(n, i, nest, tiles, rows, columns) for i, n in enumerate(tiles.loads)]
    writer = CWriter()
    with writer.block(f"static void {name}(void *const *bufs, int64_t first, int64_t last)"):
        frame.pointers(writer, slots(box), [s.slot for s in box.stores])
        writer.lines(nest.writers[0].written)
        extents = [*(n for _, n in others), rows.count, columns.count]
        trips = {i: live[a] for i, (a, _) in enumerate(others) if a in live}
        blocks = ((tiles.contiguous, rows), (inner, columns))
        trips |= {len(others) + i: b.live(live[a]) for i, (a, b) in enumerate(blocks) if a in live}
        units, opened = open_loops(writer, [nest], extents, [rows, columns], cost.tasks(ns), live=trips)
        for i, n in enumerate(tiles.loads):
            size = rows.length * columns.length
            writer.line(f"{scalar.storage_type(n.dtype)} t{i}[{size}] __attribute__((aligned(64)));")
            writer.line(fills[i])
        with writer.block(f"for (int row = 0; row < {rows.length}; ++row)"):
            writer.line(f"const int64_t {nest.counter(len(others) + 2)} = c + row;")
            writer.lines(nest.writers[len(others) + 3].written)
            body.write(writer, columns.length)
        close_loops(writer, opened)
        if streamed:
            writer.line("cyx_stream_end();")
    listing = LoopListing(box.body, box.stores, nest=nest)
    return Part(writer.text(), units, ns, (listing,), live_units(extents, cost.tasks(ns), 1, trips))


def _length(extent: int, max_length: int) -> int:
    """Return the side of tiles: about equal ones, a multiple of a vector."""
    count = -(-extent // max_length)
    equal = -(-extent // count)
    return min(extent, -(-equal // 16) * 16)


def _fill(load: Load, number: int, nest: LoopNest, tiles: Tiles, rows: Blocks, columns: Blocks) -> str:
    """Return the C call that transposes one tile."""
    slot, form = load.slot, load.form.shift(-nest.body.starts.get(load.slot, 0))
    step = form.coefficient(tiles.loops[-1][0])
    start_form = Affine(form.constant, tuple((a, c) for a, c in form.terms if a is not tiles.contiguous))
    size = load.dtype.itemsize
    suffix = size if size in (1, 2, 4, 8, 16) else 1
    start = f"&p{slot}[{nest.block_start(start_form)} + c]"
    return f"cyx_tile_{suffix}(t{number}, {columns.length}, {start}, {step}ll, {rows.length}, {columns.length});"
