"""Accumulators of sums of products: vector registers for f32 and f64, plain arrays for other types."""

from __future__ import annotations

from collections.abc import Sequence

from cyxla.records import dataclass
from cyxla.types import ElementType
from cyxla.xla.cpu.c import scalar
from cyxla.xla.cpu.c.writer import CWriter

VECTORS = 4
COLUMNS = 64


def supports(types: Sequence[ElementType]) -> bool:
    """Return True if products of these types are supported: type of the result, then of the operands."""
    distinct = set(types)
    if all(t.is_integer for t in distinct) or distinct == {ElementType.PRED}:
        return True
    return len(distinct) == 1 and distinct <= {ElementType.F32, ElementType.F64, ElementType.C64, ElementType.C128}


@dataclass(frozen=True)
class VectorSums:
    """Accumulators of adjacent results in vector registers; `convolution_row_tile.h` has their C.

    Attributes
    ----------
    vectors, lanes : int
        Number of vectors, and of elements of each.
    """

    vectors: int
    lanes: int

    @property
    def columns(self) -> int:
        """Number of results."""
        return self.vectors * self.lanes


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

    def truncate(self, columns: int) -> PlainSums:
        """Return the first `columns` accumulators."""
        return PlainSums(columns, self.dtype, self.left, self.right)

    def fold(self, c: CWriter) -> None:
        """Sum all accumulators into the first one; their number is a power of two."""
        width = self.columns // 2
        while width:
            for name in self._names:
                c.line(f"for (int j = 0; j < {width}; ++j) {name}[j] += {name}[j + {width}];")
            width //= 2

    def add_to_totals(self, c: CWriter) -> None:
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


def split_columns(
    columns: int, dtype: ElementType, operands: Sequence[ElementType]
) -> list[tuple[int, int, PlainSums]]:
    """Split a row of results into runs of equal pieces: (first column, number of pieces, accumulators of a piece)."""
    count, rest = divmod(columns, COLUMNS)
    runs = [(0, count, PlainSums(COLUMNS, dtype, *operands)), (columns - rest, 1, PlainSums(rest, dtype, *operands))]
    return [(first, pieces, sums) for first, pieces, sums in runs if pieces * sums.columns]


def split_into_vectors(
    columns: int, dtype: ElementType, operands: Sequence[ElementType], lanes: int, vectors: int = VECTORS
) -> list[tuple[int, int, VectorSums | PlainSums]]:
    """Split a row of floats as `split_columns` does, into pieces of so many vectors, and columns that are left."""
    runs: list[tuple[int, int, VectorSums | PlainSums]] = []
    at = 0
    for kind in (VectorSums(v, lanes) for v in range(vectors, 0, -1)):
        if pieces := (columns - at) // kind.columns:
            runs.append((at, pieces, kind))
            at += pieces * kind.columns
    if at < columns:
        runs.append((at, 1, PlainSums(columns - at, dtype, *operands)))
    return runs
