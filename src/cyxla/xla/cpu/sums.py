"""Rows of accumulators for sums of products: vector registers for f32 and f64, plain arrays for other types."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from cyxla.types import ElementType
from cyxla.xla.cpu import scalar
from cyxla.xla.cpu.c_writer import CWriter

VECTORS = 4
COLUMNS = 64
#: Allows the compiler to fuse multiplications and additions in one function.
FUSED = """#ifndef CYX_FUSED
#if defined(__clang__)
#define CYX_FUSED
#define CYX_FUSE _Pragma("clang fp contract(fast)")
#else
#define CYX_FUSED __attribute__((optimize("fp-contract=fast")))
#define CYX_FUSE
#endif
#endif
"""


def supports(types: Sequence[ElementType]) -> bool:
    """Whether there are sums of products of these: the result's type, then the operands'."""
    distinct = set(types)
    if all(t.is_integer for t in distinct) or distinct == {ElementType.PRED}:
        return True
    return len(distinct) == 1 and distinct <= {ElementType.F32, ElementType.F64, ElementType.C64, ElementType.C128}


class Sums(Protocol):
    """Accumulators of `columns` neighbouring results."""

    columns: int

    def define(self, c: CWriter) -> None:
        """Declare them, zero."""

    def add(self, c: CWriter, x: str, right: str, step: int) -> None:
        """Add ``x * right[j * step]`` to each; `x` is a local in register type."""

    def settle(self, c: CWriter) -> None:
        """Add them to totals beside them and start again from zero: shorter sums lose less."""

    def store(self, c: CWriter, out: str) -> None:
        """Write the totals to ``out[j]``."""


class VectorSums:
    """Whole vectors of floats; needs neighbours in memory."""

    def __init__(self, vectors: int, lanes: int) -> None:
        self.vectors, self.lanes, self.columns = vectors, lanes, vectors * lanes

    def define(self, c: CWriter) -> None:
        """Declare them, zero."""
        c.line("KERNEL_v " + ", ".join(f"sum{v} = {{0}}, all{v} = {{0}}" for v in range(self.vectors)) + ";")

    def add(self, c: CWriter, x: str, right: str, step: int) -> None:
        """Add products; `step` is 1."""
        c.line(
            " ".join(f"sum{v} += {x} * *(const KERNEL_u *)({right} + {v * self.lanes});" for v in range(self.vectors))
        )

    def settle(self, c: CWriter) -> None:
        """Add to the totals."""
        c.line(" ".join(f"all{v} += sum{v}; sum{v} = (KERNEL_v){{0}};" for v in range(self.vectors)))

    def store(self, c: CWriter, out: str) -> None:
        """Write the totals."""
        c.line(" ".join(f"*(KERNEL_u *)({out} + {v * self.lanes}) = all{v} + sum{v};" for v in range(self.vectors)))

    @staticmethod
    def types(dtype: ElementType, lanes: int) -> list[str]:
        """The definitions of the vector types that the text uses."""
        base, size = scalar.storage_type(dtype), lanes * dtype.itemsize
        return [
            f"typedef {base} KERNEL_v __attribute__((vector_size({size})));",
            f"typedef {base} KERNEL_u __attribute__((vector_size({size}), aligned(1), may_alias));",
        ]


class PlainSums:
    """Arrays of accumulators for any type.

    Parameters
    ----------
    columns : int
        How many.
    result, right : ElementType
        Types of the result and of the right operand.
    width : int
        Bits of the widest type involved: an integer sum may not lose an operand's upper bits.
    """

    def __init__(self, columns: int, result: ElementType, right: ElementType, width: int) -> None:
        self.columns, self.dtype, self.right = columns, result, right
        self.c = "uint64_t" if width > 32 else "uint32_t"  # unsigned, so that sums wrap
        if result is ElementType.PRED:
            self.c = "uint8_t"
        elif result.is_float or result.is_complex:
            self.c = scalar.storage_type(result.real_part)

    def define(self, c: CWriter) -> None:
        """Declare them, zero."""
        c.line(f"{self.c} " + ", ".join(f"{n}[{self.columns}] = {{0}}" for n in self._names) + ";")

    @property
    def _names(self) -> tuple[str, ...]:
        parts = ("re", "im") if self.dtype.is_complex else ("s",)
        return (*parts, *(f"all_{n}" for n in parts)) if self._is_inexact else parts

    @property
    def _is_inexact(self) -> bool:
        return self.dtype.is_float or self.dtype.is_complex

    def settle(self, c: CWriter) -> None:
        """Add to the totals; exact sums need none."""
        if self._is_inexact:
            parts = " ".join(f"all_{n}[j] += {n}[j]; {n}[j] = 0;" for n in self._names[: len(self._names) // 2])
            c.line(f"for (int j = 0; j < {self.columns}; ++j) {{ {parts} }}")

    def add(self, c: CWriter, x: str, right: str, step: int) -> None:
        """Add products."""
        with c.block(f"for (int j = 0; j < {self.columns}; ++j)"):
            at = f"({right})[j * {step}]" if step != 1 else f"({right})[j]"
            c.line(f"const {scalar.register_type(self.right)} y = {scalar.load(self.right, at)};")
            c.line(self._product(x))

    def add_pairs(self, c: CWriter, left_type: ElementType, left: str, right: str) -> None:
        """Add ``left[j] * right[j]`` to each."""
        with c.block(f"for (int j = 0; j < {self.columns}; ++j)"):
            c.line(f"const {scalar.register_type(left_type)} l = {scalar.load(left_type, f'({left})[j]')};")
            c.line(f"const {scalar.register_type(self.right)} y = {scalar.load(self.right, f'({right})[j]')};")
            c.line(self._product("l"))

    def _product(self, x: str) -> str:
        if self.dtype.is_complex:
            return f"re[j] += {x}.re * y.re - {x}.im * y.im; im[j] += {x}.re * y.im + {x}.im * y.re;"
        if self.dtype is ElementType.PRED:
            return f"s[j] |= {x} & y;"
        return f"s[j] += ({self.c}){x} * ({self.c})y;"

    def store(self, c: CWriter, out: str) -> None:
        """Write the totals."""
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
    """Cut a row of results into runs of equal pieces: (first column, number of pieces, the accumulators of a piece)."""
    runs: list[tuple[int, int, Sums]] = []
    at = 0
    sizes: list[Sums] = []
    if dtype in (ElementType.F32, ElementType.F64):
        lanes = vector_bytes // dtype.itemsize
        sizes = [VectorSums(v, lanes) for v in range(VECTORS, 0, -1)]
    width = max(dtype.bits, *(t.bits for t in operands))
    plain = [n for n in (COLUMNS, columns % COLUMNS) if n]
    for kind in (*sizes, *(PlainSums(n, dtype, operands[1], width) for n in plain if not sizes)):
        pieces = (columns - at) // kind.columns
        if pieces:
            runs.append((at, pieces, kind))
            at += pieces * kind.columns
    if at < columns:
        runs.append((at, 1, PlainSums(columns - at, dtype, operands[1], width)))
    return runs
