"""Dot of few rows as inner products, where the contracted dimension of the right operand is contiguous."""

from __future__ import annotations

from cyxla.xla.cpu.dot.few_rows import ColumnBlocks
from cyxla.xla.cpu.dot.live_products import LiveProduct
from cyxla.xla.cpu.dot.parameters import INNER_FORMS
from cyxla.xla.cpu.dot.product import Output, Product, registers, vector_bytes
from cyxla.xla.cpu.dot.templates import InnerText
from cyxla.xla.cpu.kernel import machine, variants

MAX_ROWS = 4
CACHED_BYTES = 4 * machine.L2_BYTES, 3 * machine.L3_BYTES  # operands above come in another of `INNER_FORMS`
LONG_ROW_BYTES = machine.L1_BYTES // 2  # so do longer rows of the left operand, if there are 16 vector registers
UNIT_COLUMNS = 16, 64  # inner products of one unit of work, of an operand in the caches and of one beyond

TUNED_COLUMNS = 8, 16, 32, 64, 128  # of a unit, to try


def runs_along_k(p: Product) -> bool:
    """Return True if columns are best computed as inner products."""
    return p.m <= MAX_ROWS and p.lhs[2] == p.rhs[1] == 1 and p.rhs[2] != 1 and p.n > 0


def _form(p: Product) -> int:
    """Return the index of the form of the micro-kernel."""
    if registers() == 16:
        return int(p.k * p.dtype.itemsize > LONG_ROW_BYTES)
    return sum(p.n * p.k * p.dtype.itemsize > most for most in CACHED_BYTES)


class InnerProducts(ColumnBlocks[InnerText]):
    """Kernel of inner products: each has four accumulators, which are added in a fixed tree at the end."""

    name, text = "dot_rows", InnerText

    def __init__(self, p: Product, output: Output, live: LiveProduct, choice: variants.Choice = variants.RULES) -> None:
        self.form = choice.get("form", _form(p))
        is_cached = p.n * p.k * p.dtype.itemsize <= CACHED_BYTES[0]
        width = min(p.n, choice.get("width", UNIT_COLUMNS[not is_cached]))
        super().__init__(p, output, live, choice, width, vector_bytes())

    def _own_axes(self) -> dict[str, list[int]]:
        return {
            "form": [f for f in range(len(self._forms)) if f != self.form],
            "width": [w for w in TUNED_COLUMNS if w <= self.p.n],
        }

    @property
    def _forms(self) -> tuple[tuple[int, bool], ...]:
        return INNER_FORMS[registers()]

    @property
    def _form_values(self) -> dict[str, int]:
        return {"form": self.form, "columns": self._forms[self.form][0]}

    def _functions(self, few: InnerText) -> dict[str, str]:
        columns, prefetches = self._forms[self.form]
        forms = {f"KERNEL_inner{columns}": (columns, prefetches), "KERNEL_inner1": (1, False)}
        return {name: few.inner_products(name, *form) for name, form in forms.items()}
