"""Dot of one row as a sum of weighted rows, where the columns of the right operand are contiguous.

The right operand is streamed once and in order, a few rows at a time, over as many columns as have their sums in L1. An
element is the sum of chains of eight fused multiply-adds, in the order of the contracted dimension.
"""

from __future__ import annotations

from cyxla.xla.cpu.dot.few_rows import ColumnBlocks
from cyxla.xla.cpu.dot.live_products import LiveProduct
from cyxla.xla.cpu.dot.parameters import COMBINATION_BYTES, LOCALITIES
from cyxla.xla.cpu.dot.product import Output, Product, vector_bytes
from cyxla.xla.cpu.dot.templates import FewRows
from cyxla.xla.cpu.kernel import machine

CHAIN = 8  # terms that are added together
CACHED_BYTES = 4 * machine.L2_BYTES  # larger operands come from beyond L2
VECTOR_BYTES = machine.VECTOR_BYTES
TILE_BYTES = 512  # up to this size, in full vectors, the sums of a row stay in registers: one tile
# Bytes of a row in a unit of work: half a row, within these and `COMBINATION_BYTES`.
MIN_CACHED_ROW_BYTES, MIN_STREAMED_ROW_BYTES = 1 << 10, 256


def is_row_combination(p: Product) -> bool:
    """Return True if a product is best computed as a sum of weighted rows of the right operand."""
    row = p.n * p.dtype.itemsize
    fits = p.m == 1 and p.rhs[2] == 1 and not p.panel and row >= VECTOR_BYTES
    return fits and (row > TILE_BYTES or row % VECTOR_BYTES != 0)


class RowCombination(ColumnBlocks):
    """Kernel of a sum of weighted rows; a unit of work reads all rows of its columns."""

    name, inner = "dot_sums", False

    def __init__(self, p: Product, output: Output, live: LiveProduct) -> None:
        self.is_cached = p.k * p.n * p.dtype.itemsize <= CACHED_BYTES
        super().__init__(p, output, live, _width(p, self.is_cached), vector_bytes())

    @property
    def _form_values(self) -> dict[str, int]:
        return {"form": int(self.is_cached)}

    def _functions(self, few: FewRows) -> dict[str, str]:
        return {"KERNEL_sums": few.row_combination("KERNEL_sums", LOCALITIES[self.is_cached])}


def _width(p: Product, is_cached: bool) -> int:
    """Return the width of a block: whole vectors of any ISA level, with at least one vector in the last block."""
    row, lanes = p.n * p.dtype.itemsize, VECTOR_BYTES // p.dtype.itemsize
    half = -(-row // (2 * VECTOR_BYTES)) * VECTOR_BYTES
    blocks = -(-row // min(max(half, MIN_CACHED_ROW_BYTES if is_cached else MIN_STREAMED_ROW_BYTES), COMBINATION_BYTES))
    vectors = -(-p.n // (blocks * lanes))
    return next(w * lanes for w in range(vectors, 0, -1) if (p.n - 1) % (w * lanes) + 1 >= lanes)
