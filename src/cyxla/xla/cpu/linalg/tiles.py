"""Building blocks of blocked linear algebra: matrices as panels of columns, and tiles of these in vector registers.

A panel is `width` columns of a matrix, row after row, each row a few vectors, so a loop along the rows of a panel reads
a stream; columns beyond those of the matrix are zeros. A tile is `rows` rows of a panel. The functions written here
update or solve a tile; the algorithms, headers under ``include/cyxla/kernels``, are loops over them.
"""

from __future__ import annotations

from collections.abc import Callable, Collection

from cyxla.records import dataclass
from cyxla.types import ElementType
from cyxla.xla.cpu.c import scalar
from cyxla.xla.cpu.c.isa_levels import VECTOR_BITS
from cyxla.xla.cpu.c.target import isa_level
from cyxla.xla.cpu.c.writer import CWriter
from cyxla.xla.cpu.kernel import machine

CHAIN = 256  # products summed before the tile is updated; shorter sums have smaller rounding errors
# Factorisations and triangular systems of 64 to 512 rows take 1.4 to 1.7 times the estimate (SPR, see `machine`).
FLOPS_NS = 0.8 * machine.F32_FMA_PER_NS  # multiply-adds of f32 in ns on one core
_ROWS = {512: 8, 256: 4, 128: 4}
#: Relative time of a column by the number of vectors in a row: fewer keep the processor less busy.
_SLOWDOWN = {3: 1.0, 2: 1.1, 1: 1.6}
_UNROLLED = 4  # rows that a sum along a column adds at a time


@dataclass(frozen=True)
class Tiles:
    """Sizes of tiles.

    Attributes
    ----------
    dtype : ElementType
        F32 or F64.
    vectors : int
        Number of vectors in a row of a panel.
    lanes : int
        Elements of a vector.
    rows : int
        Rows of a tile; a panel's width is a multiple of it.
    """

    dtype: ElementType
    vectors: int
    lanes: int
    rows: int

    @staticmethod
    def of(dtype: ElementType, columns: int) -> Tiles:
        """Return the sizes with the best width of panels for a number of columns."""
        bits = VECTOR_BITS.get(isa_level(), 128)
        lanes = bits // dtype.bits
        max_vectors = 3 if lanes % 4 == 0 else 2  # a width is a multiple of the rows
        choices = [v for v in range(max_vectors, 0, -1) if v * lanes % _ROWS[bits] == 0]
        best = min(choices, key=lambda v: -(-columns // (v * lanes)) * v * _SLOWDOWN[v])
        return Tiles(dtype, best, lanes, _ROWS[bits])

    @property
    def width(self) -> int:
        """Columns of a panel."""
        return self.vectors * self.lanes

    @property
    def transpose(self) -> str:
        """Name of the function of ``loops.h`` that transposes elements."""
        return f"cyx_tile_{self.dtype.itemsize}"

    def ns(self, products: float) -> float:
        """Return the estimated time of multiply-adds on one core."""
        return products / FLOPS_NS * (1 if self.dtype is ElementType.F32 else 2)

    def panels(self, columns: int) -> int:
        """Return the number of panels that hold a number of columns."""
        return -(-columns // self.width)

    def padded(self, rows: int) -> int:
        """Return the rows of a panel for a number of rows: whole blocks as high as a panel is wide."""
        return -(-rows // self.width) * self.width

    # --- C ----------------------------------------------------------------------------------------------------------

    def definitions(self, functions: Collection[str], prefix: str = "KERNEL") -> str:
        """Return C of the types of elements, vectors and indices, and of functions on tiles.

        Parameters
        ----------
        functions : collection of str
            Names of functions without their prefix, keys of `FUNCTIONS`.
        prefix : str
            Prefix of all names.
        """
        c = CWriter()
        base = scalar.storage_type(self.dtype)
        c.line(f"typedef {base} {prefix}_real;")
        c.line(f"typedef {base} {prefix}_element __attribute__((aligned(1), may_alias));")
        c.line(f"typedef {base} {prefix}_vector __attribute__((vector_size({self.lanes * self.dtype.itemsize})));")
        c.line(f"typedef int32_t {prefix}_index __attribute__((aligned(1), may_alias));")
        for name in functions:
            FUNCTIONS[name](_Writer(self, c, prefix))
        return c.text()


@dataclass(frozen=True)
class _Writer:
    """Writer of functions on tiles."""

    tiles: Tiles
    c: CWriter
    prefix: str

    @property
    def real(self) -> str:
        return f"{self.prefix}_real"

    @property
    def vector(self) -> str:
        return f"{self.prefix}_vector"

    def head(self, name: str, parameters: str) -> str:
        return f"static CYX_FUSED __attribute__((noinline)) void {self.prefix}_{name}({parameters})"

    @property
    def b_and_x(self) -> str:
        return f"const {self.real} *restrict b, {self.real} *restrict x"

    @property
    def columns(self) -> range:
        """Indices of the vectors in a row."""
        return range(self.tiles.vectors)

    @property
    def all(self) -> list[tuple[int, int]]:
        """Indices of the rows and vectors of a tile."""
        return [(r, v) for r in range(self.tiles.rows) for v in self.columns]

    def at(self, row: int | str, vector: int, base: str = "x") -> str:
        """Return an expression of a vector of a row."""
        start = row * self.tiles.width if isinstance(row, int) else f"({row}) * {self.tiles.width}"
        return f"*({self.vector} *)({base} + {start} + {vector * self.tiles.lanes})"

    def products(self, left: Callable[[int], str], start: str, end: str) -> None:
        """Write the accumulators ``c<row>_<vector>`` of a tile, sums of ``left(row) * b[q]`` over a range of q."""
        c, t = self.c, self.tiles
        c.line(f"{self.vector} " + ", ".join(f"c{r}_{v} = {{0}}" for r, v in self.all) + ";")
        with c.block(f"for (int64_t q = {start}; q < {end}; ++q)"):
            loads = (f"b{v} = *(const {self.vector} *)(b + q * {t.width} + {v * t.lanes})" for v in self.columns)
            c.line(f"const {self.vector} {', '.join(loads)};")
            for r in range(t.rows):
                c.line(f"const {self.real} a{r} = {left(r)};")
                c.line(" ".join(f"c{r}_{v} += a{r} * b{v};" for v in self.columns))

    def subtract(self) -> None:
        """Write the subtraction of the accumulators from a tile."""
        for r, v in self.all:
            self.c.line(f"{self.at(r, v)} -= c{r}_{v};")

    def substitute(self, left: Callable[[int, int], str], *, divides: bool) -> None:
        """Write the forward substitution of a tile, where ``left(row, column)`` is an element of the triangle."""
        c = self.c
        for r, v in self.all:
            c.line(f"{self.vector} x{r}_{v} = {self.at(r, v)};")
        for r in range(self.tiles.rows):
            for s in range(r):
                c.line(f"const {self.real} l{r}_{s} = {left(r, s)};")
                c.line(" ".join(f"x{r}_{v} -= l{r}_{s} * x{s}_{v};" for v in self.columns))
            if divides:
                c.line(f"const {self.real} d{r} = {left(r, r)};")
                c.line(" ".join(f"x{r}_{v} /= d{r};" for v in self.columns))
            c.line(" ".join(f"{self.at(r, v)} = x{r}_{v};" for v in self.columns))


def _update_tn(w: _Writer) -> None:
    """Write ``x[r] -= sum over q < k of a[q * stride + r] * b[q]``, a product with a transposed matrix."""
    c = w.c
    with c.block(w.head("update_tn", f"const {w.real} *restrict a, int64_t stride, {w.b_and_x}, int64_t k")):
        c.line("CYX_FUSE")
        with c.block(f"for (int64_t from = 0; from < k; from += {CHAIN})"):
            c.line(f"const int64_t to = k - from < {CHAIN} ? k : from + {CHAIN};")
            w.products(lambda r: f"a[q * stride + {r}]", "from", "to")
            w.subtract()


def _update_nn(w: _Writer) -> None:
    """Write ``x[r] -= sum over q < k of a[r][q] * b[q]``, where `a` is a tile of another panel."""
    with w.c.block(w.head("update_nn", f"const {w.real} *restrict a, {w.b_and_x}, int64_t k")):
        w.c.line("CYX_FUSE")
        w.products(lambda r: f"a[{r * w.tiles.width} + q]", "0", "k")
        w.subtract()


def _solve(w: _Writer) -> None:
    """Write the solution of ``l y = x`` for a tile, where element (r, s) of the triangle is ``l[s * stride + r]``."""
    with w.c.block(w.head("solve", f"const {w.real} *restrict l, int64_t stride, {w.real} *restrict x")):
        w.c.line("CYX_FUSE")
        w.substitute(lambda r, s: f"l[{s} * stride + {r}]", divides=True)


def _solve_unit(w: _Writer) -> None:
    """Write the solution of ``l y = x`` for a tile, where the triangle is in a panel and its diagonal is 1."""
    with w.c.block(w.head("solve_unit", f"const {w.real} *restrict l, {w.real} *restrict x")):
        w.c.line("CYX_FUSE")
        w.substitute(lambda r, s: f"l[{r * w.tiles.width + s}]", divides=False)


def _gemv_t(w: _Writer) -> None:
    """Write ``y = sum over r of x[r][j] * x[r]`` for rows [from, to) of a panel."""
    c = w.c
    parameters = f"const {w.real} *restrict x, int64_t j, int64_t from, int64_t to, {w.real} *y"
    with c.block(w.head("gemv_t", parameters)):
        c.line("CYX_FUSE")
        c.line(f"{w.vector} " + ", ".join(f"c{u}_{v} = {{0}}" for u in range(_UNROLLED) for v in w.columns) + ";")
        for step in (_UNROLLED, 1):
            with c.block(f"for (; from + {step} <= to; from += {step})"):
                for u in range(step):
                    c.line(f"const {w.real} a{u} = x[(from + {u}) * {w.tiles.width} + j];")
                    c.line(" ".join(f"c{u}_{v} += a{u} * {w.at(f'from + {u}', v)};" for v in w.columns))
        for v in w.columns:
            c.line(f"{w.at(0, v, 'y')} = (c0_{v} + c1_{v}) + (c2_{v} + c3_{v});")


def _rank_1_update(w: _Writer) -> None:
    """Write ``x[r] -= x[r][j] * y`` for rows [from, to) of a panel."""
    c = w.c
    parameters = f"{w.real} *x, int64_t j, int64_t from, int64_t to, const {w.real} *restrict y"
    with c.block(w.head("rank_1_update", parameters)):
        c.line("CYX_FUSE")
        loads = (f"y{v} = *(const {w.vector} *)(y + {v * w.tiles.lanes})" for v in w.columns)
        c.line(f"const {w.vector} {', '.join(loads)};")
        with c.block("for (int64_t r = from; r < to; ++r)"):
            c.line(f"const {w.real} a = x[r * {w.tiles.width} + j];")
            c.line(" ".join(f"{w.at('r', v)} -= a * y{v};" for v in w.columns))


def _copy(w: _Writer) -> None:
    """Write a copy of some elements, most often a whole row of a panel."""
    c, width = w.c, w.tiles.width
    with c.block(f"static inline void {w.prefix}_copy(void *to, const void *from, int64_t columns)"):
        c.line(f"if (columns == {width}) __builtin_memcpy(to, from, {width} * sizeof({w.real}));")
        c.line(f"else __builtin_memcpy(to, from, (unsigned long)columns * sizeof({w.real}));")


FUNCTIONS: dict[str, Callable[[_Writer], None]] = {
    "copy": _copy, "update_tn": _update_tn, "update_nn": _update_nn, "solve": _solve, "solve_unit": _solve_unit,
    "gemv_t": _gemv_t, "rank_1_update": _rank_1_update,
}  # fmt: skip
