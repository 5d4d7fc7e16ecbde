"""Dot of few rows as inner products, where the contracted dimension of the right operand is contiguous."""

from __future__ import annotations

from cyxla.xla.cpu.c.writer import CWriter
from cyxla.xla.cpu.dot import micro_kernel
from cyxla.xla.cpu.dot.few_rows import ByColumns
from cyxla.xla.cpu.dot.product import Output, Product
from cyxla.xla.cpu.kernel import machine

FEW_ROWS = 4
CACHED_BYTES = 4 * machine.L2_BYTES, 3 * machine.L3_BYTES  # operands above come in another of `dot.micro_kernel.WAYS`
UNITS = 16, 64, 64  # dot products of one unit of work, each way


def runs_along_k(p: Product) -> bool:
    """Return True if columns are best computed as inner products."""
    return p.m <= FEW_ROWS and p.lhs[2] == p.rhs[1] == 1 and p.rhs[2] != 1 and p.n > 0


class RowsOfDots(ByColumns):
    """Kernel of inner products: each accumulates in four vectors, which are added in a fixed tree at the end."""

    form = "dot_rows"

    def __init__(self, p: Product, output: Output) -> None:
        self.way = sum(p.n * p.k * p.dtype.itemsize > most for most in CACHED_BYTES)
        self.at_once = [micro_kernel.WAYS[self.way], (1, False)]
        super().__init__(p, output, min(p.n, UNITS[self.way]), vector_bytes=64)

    def _sizes(self) -> list[int]:
        """Return the values of `dot.parameters.ROWS`."""
        p = self.p
        return [p.m, p.n, p.k, p.lhs[0], p.lhs[1], p.rhs[0], p.rhs[2], self.width, self.blocks, self.way]

    def _functions(self, c: CWriter) -> None:
        for columns, fetches in self.at_once:
            self._dots(c, columns, fetches)

    def _unit(self, c: CWriter, apart: int) -> None:
        p = self.p
        with c.block(f"for (int64_t m = 0; m < {p.m}; ++m)"):
            c.line(f"const KERNEL_e *const left = a + batch * {p.lhs[0]} + m * {p.lhs[1]};")
            c.line(f"const KERNEL_e *const right = b + batch * {p.rhs[0]} + from * {p.rhs[2]};")
            c.line("int64_t n = 0;")
            for columns, _ in self.at_once:
                call = f"KERNEL_dots{columns}(left, right + n * {p.rhs[2]}, (KERNEL_e *)to + m * {apart} + n)"
                c.line(f"for (; n + {columns} <= width; n += {columns}) {call};")

    def _dots(self, c: CWriter, columns: int, fetches: bool) -> None:
        """Write the function of adjacent elements of a row; the order of each sum is independent of their number."""
        p = self.p
        arguments = "const KERNEL_e *restrict a, const KERNEL_e *restrict b, KERNEL_e *restrict to"
        head = f"static CYX_FUSED __attribute__((noinline)) void KERNEL_dots{columns}({arguments})"
        micro_kernel.dots(c, head, "KERNEL", p.c_type, columns, fetches, str(p.k), str(p.rhs[2]))
