"""Dot of few rows as sums of weighted rows, where the columns of the right operand are contiguous.

The right operand is streamed once and in order, a few rows at a time, in pieces whose sums stay in the caches. From
beyond L2, pieces are as long as that allows, since processors prefetch along a row, and past the end of a short piece
in vain; for enough units of work, the contracted dimension is cut into parts, whose sums are added at the end. An
element is the sum of chains of fused multiply-adds, in the order of the contracted dimension.
"""

from __future__ import annotations

from cyxla.records import dataclass
from cyxla.xla.cpu.dot.few_rows import ColumnBlocks
from cyxla.xla.cpu.dot.live_products import LiveProduct
from cyxla.xla.cpu.dot.parameters import LOCALITIES, MAX_COMBINATIONS
from cyxla.xla.cpu.dot.product import Output, Product, registers, tasks, vector_bytes
from cyxla.xla.cpu.dot.templates import RowSumsText
from cyxla.xla.cpu.kernel import machine, variants

CACHED_BYTES = 4 * machine.L2_BYTES  # larger operands come from beyond L2
STREAMED_BYTES = machine.L3_BYTES // 2  # larger operands come from memory
MIN_BYTES = machine.L2_BYTES  # operands below are read by several rows in tiles, and by one row in half rows
MIN_DEPTH = 32  # contracted elements of products of several rows
VECTOR_BYTES = machine.VECTOR_BYTES
PAIR_BYTES = 2 * VECTOR_BYTES  # rows of sums have room for pairs of vectors
TILE_BYTES = 512  # up to this size, in full vectors, the sums of a row stay in registers: one tile
MIN_HALF_BYTES = 1 << 10  # half of a row that is a unit of work
MIN_ROW_BYTES = machine.PAGE_BYTES  # of a piece of an operand from beyond L2
MAX_ROW_BYTES = machine.L2_BYTES // 32  # so that eight rows, and eight that are prefetched, take half of L2
SUMS_BYTES = machine.L2_BYTES // 8  # sums of a unit of work
MAX_SUMS_BYTES = 4 * SUMS_BYTES  # the same of any variant
MAX_UNITS = 16  # of an operand from beyond L2: enough for a balanced load
# Least rows of the right operand in a part: by the traffic of its sums, for each row of the product, and at all.
PART_ROWS_PER_ROW, MIN_PART_ROWS = 16, 96
PART_STEP = 24  # rows of a part are a multiple of those in a chain, eight or six


def is_row_combination(p: Product) -> bool:
    """Return True if a product is best computed as sums of weighted rows of the right operand."""
    row = p.n * p.dtype.itemsize
    nbytes = p.k * row
    if p.panel or p.rhs[2] != 1 or row < VECTOR_BYTES:
        return False
    if p.m == 1:
        return row > TILE_BYTES or row % VECTOR_BYTES != 0 or nbytes > STREAMED_BYTES
    return p.m <= MAX_COMBINATIONS and p.k > MIN_DEPTH and nbytes >= MIN_BYTES


@dataclass(frozen=True)
class Pieces:
    """Pieces of the right operand that units of work read.

    Attributes
    ----------
    width : int
        Columns of a piece.
    rows : int
        Rows of a piece.
    """

    width: int
    rows: int

    @staticmethod
    def of(p: Product) -> Pieces:
        """Return the pieces of a product; they depend on its sizes alone."""
        row = p.n * p.dtype.itemsize
        if p.k * row <= MIN_BYTES:
            half = -(-row // (2 * VECTOR_BYTES)) * VECTOR_BYTES
            return Pieces(_width(p, -(-row // max(half, MIN_HALF_BYTES))), p.k)
        units = -(-tasks(p.ns, MAX_UNITS) // p.batch)
        blocks = -(-row // min(max(SUMS_BYTES // p.m, MIN_ROW_BYTES), MAX_ROW_BYTES))
        most = p.k // max(MIN_PART_ROWS, PART_ROWS_PER_ROW * p.m)
        parts = 1 << (max(1, min(most, units // blocks)).bit_length() - 1)
        blocks = max(blocks, min(-(-units // parts), row // MIN_ROW_BYTES))
        return Pieces(_width(p, blocks), -(-p.k // (parts * PART_STEP)) * PART_STEP if parts > 1 else p.k)


class RowCombination(ColumnBlocks[RowSumsText]):
    """Kernel of sums of weighted rows; a unit of work reads a piece of the right operand for all rows of the left."""

    name, text = "dot_sums", RowSumsText

    def __init__(self, p: Product, output: Output, live: LiveProduct, choice: variants.Choice = variants.RULES) -> None:
        pieces = Pieces.of(p)
        self.rows = pieces.rows
        is_cached = p.k * p.n * p.dtype.itemsize <= CACHED_BYTES
        self.localities = LOCALITIES[registers()]
        self.locality = choice.get("locality", min(int(is_cached), len(self.localities) - 1))
        width, parts = choice.get("width", pieces.width), max(1, -(-p.k // max(1, pieces.rows)))
        super().__init__(p, output, live, choice, width, vector_bytes(), parts)
        self.step = choice.get("step", 0)
        if self.step:
            self.tasks = -(-p.k // self.step)

    def _own_axes(self) -> dict[str, list[int]]:
        """Return the axes; `rows` decides on the order of the sums and is not among them."""
        blocks = {self.blocks // 4, self.blocks // 2, self.blocks * 2, self.blocks * 4} - {0}
        widths = [_width(self.p, b) for b in sorted(blocks)]
        row_bytes = self.p.m * self.p.dtype.itemsize  # of the sums of a unit, which are on the stack
        localities = range(len(self.localities)) if self.p.m == 1 else ()
        return {
            "width": [w for w in widths if 0 < w * row_bytes <= MAX_SUMS_BYTES],
            "locality": [k for k in localities if k != self.locality],
        }

    @property
    def scratch_bytes(self) -> int:
        """Size of the scratch buffer in bytes."""
        return self.units * self.p.m * self._sums_stride * self.p.dtype.itemsize if self.parts > 1 else 0

    @property
    def _sums_stride(self) -> int:
        """Elements between rows of sums: an odd number of cache lines, so that rows do not evict each other from L1."""
        lines = -(-self.width * self.p.dtype.itemsize // PAIR_BYTES) * PAIR_BYTES // machine.LINE_BYTES
        return (lines + 1) * machine.LINE_BYTES // self.p.dtype.itemsize

    @property
    def _form_values(self) -> dict[str, int]:
        scratch = self.output.scratch if self.parts > 1 else 0
        return {
            "form": self.locality if self.p.m == 1 else len(self.localities),
            "part": self.rows, "parts": self.parts, "sums_stride": self._sums_stride,
            "scratch": scratch, "phase": scratch + 1, "step": self.step,
        }  # fmt: skip

    def _functions(self, few: RowSumsText) -> dict[str, str]:
        name = "KERNEL_sums"
        one_row = self.p.m == 1
        return {name: few.one_row(name, self.localities[self.locality]) if one_row else few.several_rows(name)}


def _width(p: Product, blocks: int) -> int:
    """Return the width of a block: whole vectors of any ISA level, with at least one vector in the last block.

    It is 0 if there is none for so many blocks.
    """
    lanes = VECTOR_BYTES // p.dtype.itemsize
    vectors = -(-p.n // (blocks * lanes))
    return next((w * lanes for w in range(vectors, 0, -1) if (p.n - 1) % (w * lanes) + 1 >= lanes), 0)
