"""Parameters of the kernels of products, as structs that C and Python share, and the forms of micro-kernels."""

from __future__ import annotations

from cyxla.xla.cpu.c.parameter_struct import ParameterStruct
from cyxla.xla.cpu.kernel import machine

#: Rows of a tile by its vectors, where there are 32 vector registers, and where there are 16.
ROWS = {32: {1: 14, 2: 12, 3: 8, 4: 6}, 16: {1: 10, 2: 6}}
MAX_VECTORS = 8  # vectors of a tile of one row, at most
#: Inner products at once, and whether their operand is prefetched. Where there are 32 vector registers: from the
#: caches, from beyond, from far beyond. Where there are 16: with a row that stays in L1, with a longer one; a prefetch
#: of columns that the processor (Zen 3) follows by itself costs up to 20 %.
INNER_FORMS = {32: ((4, False), (2, True), (4, True)), 16: ((1, False), (2, False))}
INNER_BYTES = 64  # size of an accumulator of inner products, at any level
PREFETCH_BYTES = 32 * machine.LINE_BYTES  # distance of the prefetch of inner products
#: Cache that rows of a combination are prefetched to, by the number of vector registers: L2 from beyond it, else L1.
#: Where there are 16, that costs a fifth to a third of the speed: the processor (Zen 3) follows eight rows by itself.
LOCALITIES = {32: (2, 3), 16: (0,)}
MAX_COMBINATIONS = 32  # rows of a product that is computed as sums of rows

#: Parameters of ``dot.h``. Strides are in elements, but those of the prefetch in bytes (see `tiles.Prefetch`).
DOT = ParameterStruct((
    "left", "right", "out", "scratch",  # indices of the buffers; scratch 0: sums are on the stack
    "m", "n", "k", "left_batch_stride", "left_row_stride", "left_k_stride",
    "right_batch_stride", "right_k_stride", "right_column_stride",
    "vectors", "width", "panels", "panel_stride", "packs",  # panels before the last
    "last_vectors", "last", "packs_last",  # the last panel, of `last` columns
    "group_panels", "strip_tiles",  # panels of a unit, and tiles of each of them before the next panel
    "tiles", "height", "tall_tiles", "k_block", "units", "tasks",
    "ranges", "tail_ranges", "tail_groups",  # units of a group of panels; the last `tail_groups` have `tail_ranges`
    "prefetch", "prefetch_every", "prefetch_lines", "prefetch_stride", "prefetch_start", "prefetch_tile",
    "out_stride",  # between rows of the stored sums
    "symmetric", "mirrored",  # index of the phase, blocks of rows to copy below the diagonal; 0 if not symmetric
    "epilogue", "sums",  # epilogue: 0 none, 1 on each tile, 2 on the elements `sums` of a unit after all blocks of k
    "live_rows",  # rows that an epilogue takes, of a part of the product
))  # fmt: skip
#: Sizes of ``dot_tile.h``: steps through the contracted dimension, whether sums are added to those of an earlier block,
#: strides of the left operand, of the panel and of the sums, and the prefetch.
TILE = ParameterStruct((
    "count", "adds", "left_row_stride", "left_k_stride", "right_stride", "out_stride",
    "prefetch_every", "prefetch_lines", "prefetch_stride", "prefetch_tile",
))  # fmt: skip
_FEW_ROWS = (
    "left", "right", "out",  # indices of the buffers
    "m", "n", "k", "left_batch_stride", "left_row_stride", "left_k_stride",
    "right_batch_stride", "right_k_stride", "right_column_stride",
    "width", "blocks",  # columns of a unit of work, and such blocks of a product
    "form", "units", "tasks",  # form: index of the micro-kernel
)  # fmt: skip
#: Parameters of ``dot_few_rows.h``: also the columns that the micro-kernel computes at once.
INNER = ParameterStruct((*_FEW_ROWS, "columns"))
#: Parameters of several products in one pass (see `one_pass`), before those of each: units, blocks of rows of the
#: matrix; units of a task; index of the phase, 0 if there is one; numbers of kernels of inner products and of sums.
PASS = ParameterStruct(("units", "task_units", "phase", "inner", "sums"))
#: Parameters of ``dot_row_sums.h``.
ROW_SUMS = ParameterStruct((
    *_FEW_ROWS,
    "part", "parts",  # rows of the right operand of a unit of work, and such parts of a product
    "sums_stride",  # elements between rows of the sums of a unit
    "scratch", "phase",  # indices of the buffers, with several parts
    "step",  # rows of a task if the tasks of a part run in order; else 0
))  # fmt: skip
