"""Dot of one row as a sum of weighted rows, where the columns of the right operand are contiguous.

The right operand is streamed once and in order, a few rows at a time, over as many columns as have their sums in L1. An
element is the sum of chains of eight fused multiply-adds, in the order of the contracted dimension.
"""

from __future__ import annotations

from cyxla.xla.cpu.dot.few_rows import ByColumns
from cyxla.xla.cpu.dot.parameters import COMBINATION_BYTES, LOCALITIES
from cyxla.xla.cpu.dot.product import Output, Product, vector_bytes
from cyxla.xla.cpu.dot.templates import FewRows
from cyxla.xla.cpu.kernel import machine

CACHED_BYTES = 4 * machine.L2_BYTES  # an operand above comes from beyond the second cache
VECTOR_BYTES = machine.VECTOR_BYTES
TILE_BYTES = 512  # of so many columns, in whole vectors, the sums stay in registers: one tile
LEAST_NEAR, LEAST_FAR = 1 << 10, 256  # bytes of a row in a unit of work: a half, but no more than the sums have room


def is_sum_of_rows(p: Product) -> bool:
    """Return True if a product is best computed as a sum of weighted rows of the right operand."""
    row = p.n * p.dtype.itemsize
    fits = p.m == 1 and p.rhs[2] == 1 and not p.panel and row >= VECTOR_BYTES
    return fits and (row > TILE_BYTES or row % VECTOR_BYTES != 0)


class SumOfRows(ByColumns):
    """Kernel of a sum of weighted rows; a unit of work reads all rows of its columns."""

    name, inner = "dot_sums", False

    def __init__(self, p: Product, output: Output) -> None:
        self.near = p.k * p.n * p.dtype.itemsize <= CACHED_BYTES
        super().__init__(p, output, _width(p, self.near), vector_bytes())

    @property
    def _form(self) -> dict[str, int]:
        return {"form": int(self.near)}

    def _functions(self, few: FewRows) -> dict[str, str]:
        return {"KERNEL_sums": few.row_combination("KERNEL_sums", LOCALITIES[self.near])}


def _width(p: Product, near: bool) -> int:
    """Return the width of a block: whole vectors of any ISA level, with at least one vector in the last block."""
    row, lanes = p.n * p.dtype.itemsize, VECTOR_BYTES // p.dtype.itemsize
    half = -(-row // (2 * VECTOR_BYTES)) * VECTOR_BYTES
    blocks = -(-row // min(max(half, LEAST_NEAR if near else LEAST_FAR), COMBINATION_BYTES))
    wanted = -(-p.n // (blocks * lanes))
    return next(w * lanes for w in range(wanted, 0, -1) if (p.n - 1) % (w * lanes) + 1 >= lanes)
