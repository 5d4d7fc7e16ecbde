"""Building blocks of blocked linear algebra: a matrix as panels of columns, and tiles of it in vector registers.

A panel is `width` columns of a matrix, row after row, each row a few vectors; so what runs along the rows of a panel is
a stream, and columns that a matrix lacks are zeros. A tile is `rows` rows of a panel. The functions written here
update a tile by products of what lies above or beside it; the algorithms in the modules named ``linalg_*`` are loops
over them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from cyxla.types import ElementType
from cyxla.xla.cpu.c import scalar
from cyxla.xla.cpu.c.isa_levels import VECTOR_BITS
from cyxla.xla.cpu.c.target import isa_level
from cyxla.xla.cpu.c.writer import CWriter

CHAIN = 256  # products added up before they are taken off the tile: shorter sums lose less
FLOPS_NS = 80.0  # multiply-adds of f32 in ns on one core
_ROWS = {512: 8, 256: 4, 128: 4}
#: Time of a column by vectors in a row: fewer of them keep the processor less busy.
_SLOWDOWN = {3: 1.0, 2: 1.1, 1: 1.6}
_UNROLLED = 4  # rows that a sum along a column takes at a time


@dataclass(frozen=True)
class Tiles:
    """Sizes of tiles.

    Attributes
    ----------
    dtype : ElementType
        F32 or F64.
    vectors : int
        In a row of a panel.
    lanes : int
        Elements of a vector.
    rows : int
        Of a tile; a panel's width is a multiple of it.
    """

    dtype: ElementType
    vectors: int
    lanes: int
    rows: int

    @staticmethod
    def of(dtype: ElementType, columns: int) -> Tiles:
        """The best width of panels for so many columns."""
        bits = VECTOR_BITS.get(isa_level(), 128)
        lanes = bits // dtype.bits
        widest = 3 if lanes % 4 == 0 else 2  # a width is a multiple of the rows
        choices = [v for v in range(widest, 0, -1) if v * lanes % _ROWS[bits] == 0]
        best = min(choices, key=lambda v: -(-columns // (v * lanes)) * v * _SLOWDOWN[v])
        return Tiles(dtype, best, lanes, _ROWS[bits])

    @property
    def width(self) -> int:
        """Columns of a panel."""
        return self.vectors * self.lanes

    def ns(self, products: float) -> float:
        """Estimated time of multiply-adds on one core."""
        return products / FLOPS_NS * (1 if self.dtype is ElementType.F32 else 2)

    def panels(self, columns: int) -> int:
        """How many panels hold so many columns."""
        return -(-columns // self.width)

    def padded(self, rows: int) -> int:
        """Rows of a panel, so that whole blocks of them can be worked on."""
        return -(-rows // self.width) * self.width

    # --- C ----------------------------------------------------------------------------------------------------------

    def definitions(self, sizes: dict[str, int], functions: str) -> str:
        """Types, sizes (``KERNEL_<name>``) and those of the functions below that a text names, callees first."""
        c = CWriter()
        base = scalar.storage_type(self.dtype)
        c.line(f"typedef {base} KERNEL_f;")
        c.line(f"typedef {base} KERNEL_e __attribute__((aligned(1), may_alias));")
        c.line(f"typedef {base} KERNEL_v __attribute__((vector_size({self.lanes * self.dtype.itemsize})));")
        c.line("typedef int32_t KERNEL_i __attribute__((aligned(1), may_alias));")
        if "KERNEL_TRANSPOSE(" in functions:
            c.line(f"#define KERNEL_TRANSPOSE cyx_tile_{self.dtype.itemsize}")
        for name, value in {"W": self.width, "R": self.rows, "LANES": self.lanes, **sizes}.items():
            c.line(f"#define KERNEL_{name} {f'({value}ll)' if value < 0 else f'{value}ll'}")
        for name, write in _FUNCTIONS.items():
            if f"KERNEL_{name}(" in functions:
                write(self, c)
        return c.text()

    @property
    def _places(self) -> list[tuple[int, int]]:
        return [(r, v) for r in range(self.rows) for v in range(self.vectors)]

    def _at(self, row: int | str, vector: int, base: str = "x") -> str:
        start = row * self.width if isinstance(row, int) else f"({row}) * {self.width}"
        return f"*(KERNEL_v *)({base} + {start} + {vector * self.lanes})"

    def _products(self, c: CWriter, left: Callable[[int], str], start: str, end: str) -> None:
        """Sums ``c..`` of a tile."""
        c.line("KERNEL_v " + ", ".join(f"c{r}_{v} = {{0}}" for r, v in self._places) + ";")
        with c.block(f"for (int64_t q = {start}; q < {end}; ++q)"):
            loads = ", ".join(f"b{v} = *(const KERNEL_v *)(b + q * {self.width} + {v * self.lanes})" for v in self._row)
            c.line(f"const KERNEL_v {loads};")
            for r in range(self.rows):
                c.line(f"const KERNEL_f a{r} = {left(r)};")
                c.line(" ".join(f"c{r}_{v} += a{r} * b{v};" for v in self._row))

    @property
    def _row(self) -> range:
        return range(self.vectors)

    def _take_off(self, c: CWriter) -> None:
        for r, v in self._places:
            c.line(f"{self._at(r, v)} -= c{r}_{v};")

    def _settle(self, c: CWriter, left: Callable[[int, int], str], divides: bool) -> None:
        for r, v in self._places:
            c.line(f"KERNEL_v x{r}_{v} = {self._at(r, v)};")
        for r in range(self.rows):
            for s in range(r):
                c.line(f"const KERNEL_f l{r}_{s} = {left(r, s)};")
                c.line(" ".join(f"x{r}_{v} -= l{r}_{s} * x{s}_{v};" for v in self._row))
            if divides:
                c.line(f"const KERNEL_f d{r} = {left(r, r)};")
                c.line(" ".join(f"x{r}_{v} /= d{r};" for v in self._row))
            c.line(" ".join(f"{self._at(r, v)} = x{r}_{v};" for v in self._row))


_HEAD = "static CYX_FUSED __attribute__((noinline)) void"
_TILE = "const KERNEL_f *restrict b, KERNEL_f *restrict x"


def _minus(t: Tiles, c: CWriter) -> None:
    """``x[r] -= sum over q < k of a[q * step + r] * b[q]``: what is left of a tile's rows lies along a row of `a`."""
    with c.block(f"{_HEAD} KERNEL_minus(const KERNEL_f *restrict a, int64_t step, {_TILE}, int64_t k)"):
        c.line("CYX_FUSE")
        with c.block(f"for (int64_t from = 0; from < k; from += {CHAIN})"):
            c.line(f"const int64_t to = k - from < {CHAIN} ? k : from + {CHAIN};")
            t._products(c, lambda r: f"a[q * step + {r}]", "from", "to")
            t._take_off(c)


def _along(t: Tiles, c: CWriter) -> None:
    """``x[r] -= sum over q < k of a[r][q] * b[q]`` with `a` a tile of another panel."""
    with c.block(f"{_HEAD} KERNEL_along(const KERNEL_f *restrict a, {_TILE}, int64_t k)"):
        c.line("CYX_FUSE")
        t._products(c, lambda r: f"a[{r * t.width} + q]", "0", "k")
        t._take_off(c)


def _settle(t: Tiles, c: CWriter) -> None:
    """Solve ``l y = x`` for a tile, where row r of the triangle is ``l[s * step + r]``."""
    with c.block(f"{_HEAD} KERNEL_settle(const KERNEL_f *restrict l, int64_t step, KERNEL_f *restrict x)"):
        c.line("CYX_FUSE")
        t._settle(c, lambda r, s: f"l[{s} * step + {r}]", divides=True)


def _settle_unit(t: Tiles, c: CWriter) -> None:
    """Solve ``l y = x`` for a tile, where row r of the triangle is ``l[r][s]`` and its diagonal is 1."""
    with c.block(f"{_HEAD} KERNEL_settle_unit(const KERNEL_f *restrict l, KERNEL_f *restrict x)"):
        c.line("CYX_FUSE")
        t._settle(c, lambda r, s: f"l[{r * t.width + s}]", divides=False)


def _beside(t: Tiles, c: CWriter) -> None:
    """``w = sum over r of x[r][j] * x[r]`` for rows [from, to) of a panel."""
    with c.block(
        f"{_HEAD} KERNEL_beside(const KERNEL_f *restrict x, int64_t j, int64_t from, int64_t to, KERNEL_f *w)"
    ):
        c.line("CYX_FUSE")
        c.line("KERNEL_v " + ", ".join(f"c{u}_{v} = {{0}}" for u in range(_UNROLLED) for v in t._row) + ";")
        for step in (_UNROLLED, 1):
            with c.block(f"for (; from + {step} <= to; from += {step})"):
                for u in range(step):
                    c.line(f"const KERNEL_f a{u} = x[(from + {u}) * {t.width} + j];")
                    c.line(" ".join(f"c{u}_{v} += a{u} * {t._at(f'from + {u}', v)};" for v in t._row))
        for v in t._row:
            c.line(f"{t._at(0, v, 'w')} = (c0_{v} + c1_{v}) + (c2_{v} + c3_{v});")


def _outer(t: Tiles, c: CWriter) -> None:
    """``x[r] -= x[r][j] * w`` for rows [from, to) of a panel."""
    with c.block(f"{_HEAD} KERNEL_outer(KERNEL_f *x, int64_t j, int64_t from, int64_t to, const KERNEL_f *restrict w)"):
        c.line("CYX_FUSE")
        c.line("const KERNEL_v " + ", ".join(f"w{v} = *(const KERNEL_v *)(w + {v * t.lanes})" for v in t._row) + ";")
        with c.block("for (int64_t r = from; r < to; ++r)"):
            c.line(f"const KERNEL_f a = x[r * {t.width} + j];")
            c.line(" ".join(f"{t._at('r', v)} -= a * w{v};" for v in t._row))


def _copy(t: Tiles, c: CWriter) -> None:
    """Copy so many elements, most often a whole row of a panel."""
    with c.block("static inline void KERNEL_copy(void *to, const void *from, int64_t columns)"):
        c.line("if (columns == KERNEL_W) __builtin_memcpy(to, from, KERNEL_W * sizeof(KERNEL_f));")
        c.line("else __builtin_memcpy(to, from, columns * sizeof(KERNEL_f));")


_FUNCTIONS = {
    "copy": _copy, "minus": _minus, "along": _along, "settle": _settle, "settle_unit": _settle_unit, "beside": _beside,
    "outer": _outer,
}  # fmt: skip
