"""Dot of few rows as inner products, where the contracted dimension of the right operand is contiguous."""

from __future__ import annotations

from cyxla.xla.cpu.dot.few_rows import ColumnBlocks
from cyxla.xla.cpu.dot.live_products import LiveProduct
from cyxla.xla.cpu.dot.parameters import INNER_FORMS
from cyxla.xla.cpu.dot.product import Output, Product
from cyxla.xla.cpu.dot.templates import FewRows
from cyxla.xla.cpu.kernel import machine

MAX_ROWS = 4
CACHED_BYTES = 4 * machine.L2_BYTES, 3 * machine.L3_BYTES  # operands above come in another of `INNER_FORMS`
UNIT_COLUMNS = 16, 64, 64  # inner products of one unit of work, by form


def runs_along_k(p: Product) -> bool:
    """Return True if columns are best computed as inner products."""
    return p.m <= MAX_ROWS and p.lhs[2] == p.rhs[1] == 1 and p.rhs[2] != 1 and p.n > 0


class InnerProducts(ColumnBlocks):
    """Kernel of inner products: each accumulates in four vectors, which are added in a fixed tree at the end."""

    name, inner = "dot_rows", True

    def __init__(self, p: Product, output: Output, live: LiveProduct) -> None:
        self.form = sum(p.n * p.k * p.dtype.itemsize > most for most in CACHED_BYTES)
        super().__init__(p, output, live, min(p.n, UNIT_COLUMNS[self.form]), vector_bytes=64)

    @property
    def _form_values(self) -> dict[str, int]:
        return {"form": self.form, "columns": INNER_FORMS[self.form][0]}

    def _functions(self, few: FewRows) -> dict[str, str]:
        columns, prefetches = INNER_FORMS[self.form]
        forms = {f"KERNEL_inner{columns}": (columns, prefetches), "KERNEL_inner1": (1, False)}
        return {name: few.inner_products(name, *form) for name, form in forms.items()}
