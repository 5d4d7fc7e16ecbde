"""Accumulators of sums of products: vector registers for f32 and f64, plain arrays for other types."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from cyxla.types import ElementType
from cyxla.xla.cpu.c import scalar
from cyxla.xla.cpu.c.writer import CWriter
from cyxla.xla.cpu.kernel.kernel import Value
from cyxla.xla.cpu.kernel.kernel_writer import KernelWriter

VECTORS = 4
COLUMNS = 64


def vector_kernel(reads: Sequence[Value], writes: Sequence[Value], dtype: ElementType, lanes: int) -> KernelWriter:
    """Return the writer of a kernel on vectors of floats, with contraction allowed and unaligned loads."""
    c = KernelWriter(reads, writes)
    c.lines(VectorSums.types(dtype, lanes))
    c.line(f"typedef {scalar.storage_type(dtype)} KERNEL_e __attribute__((aligned(1), may_alias));")
    return c


def supports(types: Sequence[ElementType]) -> bool:
    """Return True if products of these types are supported: type of the result, then of the operands."""
    distinct = set(types)
    if all(t.is_integer for t in distinct) or distinct == {ElementType.PRED}:
        return True
    return len(distinct) == 1 and distinct <= {ElementType.F32, ElementType.F64, ElementType.C64, ElementType.C128}


class Sums(Protocol):
    """Accumulators of `columns` adjacent results."""

    columns: int

    def define(self, c: CWriter) -> None:
        """Declare the accumulators, initialised to zero."""

    def add(self, c: CWriter, x: str, right: str, step: int) -> None:
        """Add ``x * right[j * step]`` to accumulator j; `x` is a local of the accumulator type."""

    def settle(self, c: CWriter) -> None:
        """Add the accumulators to totals and reset them to zero: shorter sums have smaller errors."""

    def add_pairs(self, c: CWriter, left: str, right: str) -> None:
        """Add ``left[j] * right[j]`` to accumulator j."""

    def store(self, c: CWriter, out: str) -> None:
        """Store the totals in ``out[j]``."""


class VectorSums:
    """Accumulators in vector registers: one row of results, or several that share the right operand."""

    def __init__(self, vectors: int, lanes: int, rows: int = 1) -> None:
        self.vectors, self.lanes, self.rows, self.columns = vectors, lanes, rows, vectors * lanes

    @property
    def _names(self) -> list[str]:
        return [f"{r}_{v}" for r in range(self.rows) for v in range(self.vectors)]

    def define(self, c: CWriter) -> None:
        """Declare the accumulators, initialised to zero."""
        c.line("KERNEL_v " + ", ".join(f"sum{n} = {{0}}, all{n} = {{0}}" for n in self._names) + ";")

    def add(self, c: CWriter, x: str, right: str, step: int) -> None:
        """Add products; `step` is 1, and `x` names one local for each row, separated by commas."""
        loads = ", ".join(f"b{v} = *(const KERNEL_u *)({right} + {v * self.lanes})" for v in range(self.vectors))
        c.line(f"const KERNEL_v {loads};")
        for r, left in enumerate(x.split(", ")):
            c.line(" ".join(f"sum{r}_{v} += {left} * b{v};" for v in range(self.vectors)))

    def settle(self, c: CWriter) -> None:
        """Add to the totals."""
        c.line(" ".join(f"all{n} += sum{n}; sum{n} = (KERNEL_v){{0}};" for n in self._names))

    def store(self, c: CWriter, out: str, apart: int = 0) -> None:
        """Store the totals, with a stride of `apart` elements between rows."""
        for r in range(self.rows):
            for v in range(self.vectors):
                c.line(f"*(KERNEL_u *)({out} + {r * apart + v * self.lanes}) = all{r}_{v} + sum{r}_{v};")

    def add_pairs(self, c: CWriter, left: str, right: str) -> None:
        """Add ``left[j] * right[j]`` to accumulator j of a single row."""
        for v in range(self.vectors):
            at = f" + {v * self.lanes}"
            c.line(f"sum0_{v} += *(const KERNEL_u *)({left}{at}) * *(const KERNEL_u *)({right}{at});")

    @staticmethod
    def types(dtype: ElementType, lanes: int) -> list[str]:
        """Return the definitions of the vector types."""
        base, size = scalar.storage_type(dtype), lanes * dtype.itemsize
        return [
            f"typedef {base} KERNEL_v __attribute__((vector_size({size})));",
            f"typedef {base} KERNEL_u __attribute__((vector_size({size}), aligned(1), may_alias));",
        ]


class PlainSums:
    """Accumulators in arrays, for any type.

    Parameters
    ----------
    columns : int
        Number of accumulators.
    result, left, right : ElementType
        Types of the result and of the operands.
    """

    def __init__(self, columns: int, result: ElementType, left: ElementType, right: ElementType) -> None:
        self.columns, self.dtype, self.left, self.right = columns, result, left, right
        width = max(result.bits, left.bits, right.bits)  # an integer sum may not lose an operand's upper bits
        self.c = "uint64_t" if width > 32 else "uint32_t"  # unsigned, so that sums wrap
        if result is ElementType.PRED:
            self.c = "uint8_t"
        elif result.is_float or result.is_complex:
            self.c = scalar.storage_type(result.real_part)

    def define(self, c: CWriter) -> None:
        """Declare the accumulators, initialised to zero."""
        c.line(f"{self.c} " + ", ".join(f"{n}[{self.columns}] = {{0}}" for n in self._names) + ";")

    @property
    def _names(self) -> tuple[str, ...]:
        parts = ("re", "im") if self.dtype.is_complex else ("s",)
        return (*parts, *(f"all_{n}" for n in parts)) if self._is_inexact else parts

    @property
    def _is_inexact(self) -> bool:
        return self.dtype.is_float or self.dtype.is_complex

    def shortened(self, columns: int) -> PlainSums:
        """Return the first `columns` accumulators."""
        return PlainSums(columns, self.dtype, self.left, self.right)

    def fold(self, c: CWriter) -> None:
        """Sum all accumulators into the first one; their number is a power of two."""
        width = self.columns // 2
        while width:
            for name in self._names:
                c.line(f"for (int j = 0; j < {width}; ++j) {name}[j] += {name}[j + {width}];")
            width //= 2

    def settle(self, c: CWriter) -> None:
        """Add to the totals; exact types have none."""
        if self._is_inexact:
            parts = " ".join(f"all_{n}[j] += {n}[j]; {n}[j] = 0;" for n in self._names[: len(self._names) // 2])
            c.line(f"for (int j = 0; j < {self.columns}; ++j) {{ {parts} }}")

    def add(self, c: CWriter, x: str, right: str, step: int) -> None:
        """Add products."""
        with c.block(f"for (int j = 0; j < {self.columns}; ++j)"):
            at = f"({right})[j * {step}]" if step != 1 else f"({right})[j]"
            c.line(f"const {scalar.register_type(self.right)} y = {scalar.load(self.right, at)};")
            c.line(self._product(x))

    def add_pairs(self, c: CWriter, left: str, right: str) -> None:
        """Add ``left[j] * right[j]`` to accumulator j."""
        with c.block(f"for (int j = 0; j < {self.columns}; ++j)"):
            c.line(f"const {scalar.register_type(self.left)} l = {scalar.load(self.left, f'({left})[j]')};")
            c.line(f"const {scalar.register_type(self.right)} y = {scalar.load(self.right, f'({right})[j]')};")
            c.line(self._product("l"))

    def _product(self, x: str) -> str:
        if self.dtype.is_complex:
            return f"re[j] += {x}.re * y.re - {x}.im * y.im; im[j] += {x}.re * y.im + {x}.im * y.re;"
        if self.dtype is ElementType.PRED:
            return f"s[j] |= {x} & y;"
        return f"s[j] += ({self.c}){x} * ({self.c})y;"

    def store(self, c: CWriter, out: str) -> None:
        """Store the totals."""
        value = "s[j]"
        if self.dtype.is_complex:
            value = f"cyx_{self.dtype}_of(all_re[j] + re[j], all_im[j] + im[j])"
        elif self.dtype.is_float:
            value = "all_s[j] + s[j]"
        elif self.dtype.is_integer:
            value = scalar.store(self.dtype, scalar.wrap(self.dtype, value))
        c.line(f"for (int j = 0; j < {self.columns}; ++j) ({out})[j] = {value};")


def cut(
    columns: int, dtype: ElementType, operands: Sequence[ElementType], vector_bytes: int
) -> list[tuple[int, int, Sums]]:
    """Split a row of results into runs of equal pieces: (first column, number of pieces, accumulators of a piece)."""
    runs: list[tuple[int, int, Sums]] = []
    at = 0
    sizes: list[Sums] = []
    if dtype in (ElementType.F32, ElementType.F64):
        lanes = vector_bytes // dtype.itemsize
        sizes = [VectorSums(v, lanes) for v in range(VECTORS, 0, -1)]
    plain = [n for n in (COLUMNS, columns % COLUMNS) if n]
    for kind in (*sizes, *(PlainSums(n, dtype, *operands) for n in plain if not sizes)):
        pieces = (columns - at) // kind.columns
        if pieces:
            runs.append((at, pieces, kind))
            at += pieces * kind.columns
    if at < columns:
        runs.append((at, 1, PlainSums(columns - at, dtype, *operands)))
    return runs
