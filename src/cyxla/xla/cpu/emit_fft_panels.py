"""Panels: transforms of as many lines at once as a vector has lanes.

Point k of a panel is a vector of real parts and one of imaginary parts. A pass takes the line apart by one factor of
its length, in place; each part is then finished before the next one is begun, so that it stays near. Panels come from
and go to neighbouring columns of an array of complex numbers, or the rows of scratch that `gather` and `scatter` fill
from whole lines and empty into them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from cyxla.types import ElementType
from cyxla.xla.cpu import scalar
from cyxla.xla.cpu.c_writer import CWriter
from cyxla.xla.cpu.emit_fft_butterflies import STRAIGHT, Point, roots, transform
from cyxla.xla.cpu.sums import FUSED

LARGEST_PRIME = 100  # of a length that passes are made for
VECTOR_BYTES = 64  # of the widest vectors
_ALIGNED = 16  # numbers; tables begin at multiples


def factors(n: int) -> list[int]:
    """One factor for each pass: powers of two in even parts up to 16, small odd ones, then other primes."""
    twos = (n & -n).bit_length() - 1
    n >>= twos
    found = []
    if twos == 1 and (r := next((r for r in (3, 5) if n % r == 0), 0)):
        found, n, twos = [2 * r], n // r, 0
    passes = -(-twos // 4)
    found += [1 << (twos // passes + (k < twos % passes)) for k in range(passes)]
    for r in (9, 15, 5, 7, 3, 11, 13):
        while n % r == 0:
            found.append(r)
            n //= r
    r = 17
    while n > 1:
        r = r if r * r <= n else n
        while n % r == 0:
            found.append(r)
            n //= r
        r += 2
    return found


def is_smooth(n: int) -> bool:
    """Whether passes are made for a length."""
    return max(factors(n), default=1) <= LARGEST_PRIME


class Tables:
    """The numbers that a kernel reads, one after the other in one constant."""

    def __init__(self) -> None:
        self._parts: list[npt.NDArray[np.float64]] = []
        self._at: dict[Any, int] = {}
        self._size = 0

    def add(self, key: Any, make: Callable[[], npt.NDArray[Any]]) -> int:
        """Where a table begins; complex numbers lie there as pairs."""
        if key not in self._at:
            part = np.ascontiguousarray(make()).reshape(-1)
            part = part.view(np.float64) if part.dtype == np.complex128 else part.astype(np.float64)
            part = np.pad(part, (0, -part.size % _ALIGNED))
            self._at[key] = self._size
            self._parts.append(part)
            self._size += part.size
        return self._at[key]

    def array(self) -> npt.NDArray[np.float64]:
        """All of them."""
        return np.concatenate([*self._parts, np.zeros(_ALIGNED)])


@dataclass(frozen=True)
class Panel:
    """What a panel's function does.

    Attributes
    ----------
    n : int
        Points of a line.
    rows_in, rows_out : bool
        Whether the points come from rows of scratch, which are overwritten; whether they go to others.
    swap_in, swap_out : bool
        Whether the parts of a point are exchanged.
    scale : int
        What the results are divided by.
    turned : int
        If not 0: line l's point k is turned by the power l * k of the root of this order.
    """

    n: int
    rows_in: bool = False
    rows_out: bool = False
    swap_in: bool = False
    swap_out: bool = False
    scale: int = 1
    turned: int = 0


class Functions:
    """The functions of one kernel, each written once; `text` is their C, `tables` what they read."""

    def __init__(self, real: ElementType) -> None:
        self.tables = Tables()
        self.real, self.r = real, scalar.storage_type(real)
        self.item = real.itemsize
        self.lanes = VECTOR_BYTES // self.item
        self._names: dict[Any, str] = {}
        self._counts: dict[str, int] = {}
        self.c = CWriter()
        self.c.lines(FUSED.splitlines())
        self.c.lines(_TYPES.replace("REAL", self.r).replace("ITEM", str(self.item)).splitlines())
        for define, width in zip(("#if", "#else"), (self.lanes, self.lanes // 2), strict=True):
            self.c.line(f"{define} {f'CYX_SQUARE_{self.item} == {width}' if define == '#if' else ''}".rstrip())
            self._shuffles(width)
        self.c.line("#endif")

    def define(self, key: Any, prefix: str, write: Callable[[CWriter, str], None]) -> str:
        """The name of a function, which is written when first asked for."""
        if key not in self._names:
            number = self._counts[prefix] = self._counts.get(prefix, 0) + 1
            self._names[key] = name = f"KERNEL_{prefix}_{number}"
            c = CWriter()
            write(c, name)  # may ask for others, which then stand before
            self.c.lines(c.written)
        return self._names[key]

    def _shuffles(self, width: int) -> None:
        half = width // 2
        zipped = [n for k in range(half) for n in (k, width + k)]
        orders = {
            "EVEN": [2 * k for k in range(width)],
            "ODD": [2 * k + 1 for k in range(width)],
            "LOW": zipped,
            "HIGH": [n + half for n in zipped],
            "BACK": list(range(width - 1, -1, -1)),
        }
        for name, order in orders.items():
            numbers = ", ".join(map(str, order))
            self.c.line(f"#define KERNEL_{name}(a, b) CYX_SHUFFLE_{self.item}(a, b, {numbers})")

    # --- whole lines ------------------------------------------------------------------------------------------------

    def gather(self) -> str:
        """``(rows, from, step, points, lanes)``: rows from lines of so many points, `step` numbers apart."""
        return self.define("gather", "gather", lambda c, name: c.lines(self._moves(_GATHER, name)))

    def scatter(self) -> str:
        """``(to, step, rows, points, lanes)``: the way back."""
        return self.define("scatter", "scatter", lambda c, name: c.lines(self._moves(_SCATTER, name)))

    def gather_real(self) -> str:
        """As `gather`, from real lines; the imaginary parts are zeros."""
        return self.define("gather real", "gather", lambda c, name: c.lines(self._moves(_GATHER_REAL, name)))

    def scatter_real(self) -> str:
        """As `scatter`, the real parts alone."""
        return self.define("scatter real", "scatter", lambda c, name: c.lines(self._moves(_SCATTER_REAL, name)))

    def turn(self) -> str:
        """``(to, to_step, from, from_step, n, m)``: m rows of n complex numbers from n rows of m."""
        return self.define("turn", "move", lambda c, name: c.lines(self._moves(_TURN, name)))

    def columns(self) -> str:
        """``(to, to_step, from, from_step, points, lanes)``: fewer columns than lanes, from one array to another."""
        return self.define("columns", "move", lambda c, name: c.lines(self._moves(_COLUMNS, name)))

    def times(self) -> str:
        """``(to, from, factors, count, sign)``: products of complex numbers, conjugate where the sign is -1."""
        return self.define("times", "times", lambda c, name: c.lines(self._moves(_TIMES, name)))

    def _moves(self, text: str, name: str) -> list[str]:
        return apart(text, name).replace("ITEM", str(self.item)).replace("BITS", str(8 * self.item)).splitlines()

    # --- panels -----------------------------------------------------------------------------------------------------

    def panel(self, p: Panel) -> str:
        """``(from, in, to, out, rows, tables, coarse, fine)``.

        Columns lie `in` and `out` numbers below each other. `rows` is scratch for n points; rows that go out lie in
        n more. `coarse` and `fine` are factors of the roots that turn the results.
        """
        return self.define(p, f"panel{p.n}", lambda c, name: self._panel(c, name, p))

    def _panel(self, c: CWriter, name: str, p: Panel) -> None:
        arguments = "const KERNEL_e *from, int64_t in, KERNEL_e *to, int64_t out, KERNEL_v *restrict rows"
        tables = "const KERNEL_r *tables, const KERNEL_r *coarse, const KERNEL_r *fine"
        with c.block(f"static CYX_FUSED __attribute__((noinline)) void {name}({arguments}, {tables})"):
            c.line("CYX_FUSE")
            c.line("(void)from; (void)in; (void)to; (void)out; (void)rows; (void)tables; (void)coarse; (void)fine;")
            radices, left, weight, base, place = factors(p.n) or [1], p.n, 1, "0", "0"
            for number, r in enumerate(radices):
                m = left // r
                first, last = number == 0, number == len(radices) - 1
                if m > 1:
                    c.line(f"for (int64_t p{number} = 0; p{number} < {m}; ++p{number}) {{")
                else:
                    c.line("{")
                c.open()
                at = f"{base} + p{number}" if m > 1 else base
                load = self._load(p, at, m, first)
                store = self._store_last(p, place, weight) if last else self._store(p, left, r, at, m, number)
                self._pass(c, r, load, store)
                c.close()
                c.line("}")
                if not last:
                    c.line(f"for (int64_t j{number} = 0; j{number} < {r}; ++j{number}) {{")
                    c.open()
                    base, place = f"{base} + j{number} * {m}", f"{place} + j{number} * {weight}"
                    weight, left = weight * r, m
            for _ in radices[1:]:
                c.close()
                c.line("}")

    def _load(self, p: Panel, at: str, m: int, first: bool) -> Callable[[CWriter, str], Point]:
        def load(c: CWriter, k: str) -> Point:
            row = f"({at} + {k} * {m})"
            swap = p.swap_in and first
            if first and not p.rows_in:
                s = c.local("KERNEL_u *", f"(const KERNEL_u *)(from + {row} * in)")
                a, b = c.local("KERNEL_v", f"{s}[0]"), c.local("KERNEL_v", f"{s}[1]")
                found = c.local("KERNEL_v", f"KERNEL_EVEN({a}, {b})"), c.local("KERNEL_v", f"KERNEL_ODD({a}, {b})")
            else:
                found = c.local("KERNEL_v", f"rows[2 * {row}]"), c.local("KERNEL_v", f"rows[2 * {row} + 1]")
            return (found[1], found[0]) if swap else found

        return load

    def _store(
        self, p: Panel, left: int, r: int, at: str, m: int, number: int
    ) -> Callable[[CWriter, str, int, Point], None]:
        """Turned, in place."""
        offset = self.tables.add(("pass", left, r), lambda: roots(left, np.outer(np.arange(m), np.arange(1, r))))
        w = f"(tables + {offset} + p{number} * {2 * (r - 1)})"

        def store(c: CWriter, j: str, index: int, point: Point) -> None:
            row = f"({at} + {j} * {m})"
            re, im = point
            if index != 0:  # the first result is not turned
                x, y = c.local("KERNEL_r", f"{w}[2 * ({j} - 1)]"), c.local("KERNEL_r", f"{w}[2 * ({j} - 1) + 1]")
                re, im = f"{re} * {x} - {im} * {y}", f"{re} * {y} + {im} * {x}"
            c.line(f"rows[2 * {row}] = {re}; rows[2 * {row} + 1] = {im};")

        return store

    def _store_last(self, p: Panel, place: str, weight: int) -> Callable[[CWriter, str, int, Point], None]:
        def store(c: CWriter, j: str, index: int, point: Point) -> None:
            re, im = point
            row = c.local("int64_t", f"{place} + {j} * {weight}")
            if p.turned:
                self._turn(c, row)
                re, im = (
                    c.local("KERNEL_v", f"{re} * tr - {im} * ti"),
                    c.local("KERNEL_v", f"{re} * ti + {im} * tr"),
                )
            if p.scale != 1:
                scale = f"(KERNEL_r){(1 / p.scale).hex()}"
                re, im = c.local("KERNEL_v", f"{re} * {scale}"), c.local("KERNEL_v", f"{im} * {scale}")
            else:
                re, im = c.local("KERNEL_v", re), c.local("KERNEL_v", im)
            if p.swap_out:
                re, im = im, re
            if p.rows_out:
                c.line(f"rows[2 * ({p.n} + {row})] = {re}; rows[2 * ({p.n} + {row}) + 1] = {im};")
            else:
                c.line(f"KERNEL_u *const d{row} = (KERNEL_u *)(to + {row} * out);")
                c.line(f"d{row}[0] = KERNEL_LOW({re}, {im}); d{row}[1] = KERNEL_HIGH({re}, {im});")

        def scoped(c: CWriter, j: str, index: int, point: Point) -> None:
            with c.block(""):
                store(c, j, index, point)

        return scoped

    def _turn(self, c: CWriter, row: str) -> None:
        """``tr, ti``: the roots for one row of a panel."""
        c.line(f"const KERNEL_r xr = coarse[2 * {row}], xi = coarse[2 * {row} + 1];")
        c.line(
            f"const KERNEL_v yr = *(const KERNEL_u *)(fine + {row} * {2 * self.lanes}), "
            f"yi = *(const KERNEL_u *)(fine + {row} * {2 * self.lanes} + {self.lanes});"
        )
        c.line("const KERNEL_v tr = yr * xr - yi * xi, ti = yr * xi + yi * xr;")

    def _pass(
        self,
        c: CWriter,
        r: int,
        load: Callable[[CWriter, str], Point],
        store: Callable[[CWriter, str, int, Point], None],
    ) -> None:
        if r in STRAIGHT or r == 1:
            for j, point in enumerate(transform(c, [load(c, str(k)) for k in range(r)])):
                store(c, str(j), j, point)
            return
        self._plain(c, r, load, store)

    def _plain(
        self,
        c: CWriter,
        r: int,
        load: Callable[[CWriter, str], Point],
        store: Callable[[CWriter, str, int, Point], None],
    ) -> None:
        """A larger prime: sums over pairs of points at equal distance from the first, in loops."""
        half = r // 2
        offset = self.tables.add(("plain", r), lambda: roots(r, np.arange(r)))
        zero = load(c, "0")
        c.line(f"KERNEL_v sr = {zero[0]}, si = {zero[1]}, pair[{4 * half}];")
        with c.block(f"for (int64_t k = 1; k <= {half}; ++k)"):
            (ar, ai), (br, bi) = load(c, "k"), load(c, f"({r} - k)")
            for part, value in enumerate((f"{ar} + {br}", f"{ai} + {bi}", f"{ar} - {br}", f"{ai} - {bi}")):
                c.line(f"pair[4 * (k - 1) + {part}] = {value};")
            c.line("sr += pair[4 * (k - 1)]; si += pair[4 * (k - 1) + 1];")
        store(c, "0", 0, ("sr", "si"))
        with c.block(f"for (int64_t j = 1; j <= {half}; ++j)"):
            c.line(f"KERNEL_v er = {zero[0]}, ei = {zero[1]}, dr = {{0}}, di = {{0}};")
            c.line("int64_t e = 0;")
            with c.block(f"for (int64_t k = 0; k < {half}; ++k)"):
                c.line(f"e += j; e -= e >= {r} ? {r} : 0;")
                c.line(f"const KERNEL_r x = tables[{offset} + 2 * e], y = tables[{offset} + 2 * e + 1];")
                c.line("er += pair[4 * k] * x; ei += pair[4 * k + 1] * x;")
                c.line("dr -= pair[4 * k + 2] * y; di -= pair[4 * k + 3] * y;")
            for index, (j, signs) in enumerate((("j", "+-"), (f"({r} - j)", "-+")), 1):
                re = c.local("KERNEL_v", f"er {signs[0]} di")
                im = c.local("KERNEL_v", f"ei {signs[1]} dr")
                store(c, j, index, (re, im))


def apart(text: str, name: str) -> str:
    """A function that another compiler may be given, of a template with its head in one line."""
    fused, plain = (f"static {word}__attribute__((noinline)) void {name}" for word in ("CYX_FUSED ", ""))
    return text.replace("FUSED NAME", fused).replace("APART NAME", plain)


_TYPES = """\
typedef REAL KERNEL_r;
typedef REAL KERNEL_e __attribute__((aligned(1), may_alias));
typedef REAL KERNEL_v __attribute__((vector_size(ITEM * CYX_SQUARE_ITEM), may_alias));
typedef REAL KERNEL_u __attribute__((vector_size(ITEM * CYX_SQUARE_ITEM), aligned(1), may_alias));
#define KERNEL_W CYX_SQUARE_ITEM
#define KERNEL_SELDOM __asm__ volatile(""); /* vectors of such a loop are not worth making */"""

_GATHER = """\
APART NAME(KERNEL_v *rows, const KERNEL_e *from, int64_t step, int64_t points, int64_t lanes) {
  int64_t k = 0;
  if (lanes == KERNEL_W)
    for (; k + KERNEL_W / 2 <= points; k += KERNEL_W / 2)
      cyx_square_ITEM((uintBITS_t *)(rows + 2 * k), KERNEL_W, (const cyx_tile_ITEM_item *)(from + 2 * k), step);
  for (; k < points; ++k) {
    KERNEL_r *const re = (KERNEL_r *)(rows + 2 * k), *const im = re + KERNEL_W;
    rows[2 * k] = rows[2 * k + 1] = (KERNEL_v){0};
    for (int64_t l = 0; l < lanes; ++l) {
      re[l] = from[l * step + 2 * k]; im[l] = from[l * step + 2 * k + 1]; KERNEL_SELDOM
    }
  }
}"""

_SCATTER = """\
APART NAME(KERNEL_e *to, int64_t step, const KERNEL_v *rows, int64_t points, int64_t lanes) {
  int64_t k = 0;
  if (lanes == KERNEL_W)
    for (; k + KERNEL_W / 2 <= points; k += KERNEL_W / 2)
      cyx_square_ITEM((uintBITS_t *)(to + 2 * k), step, (const cyx_tile_ITEM_item *)(rows + 2 * k), KERNEL_W);
  for (; k < points; ++k) {
    const KERNEL_r *const re = (const KERNEL_r *)(rows + 2 * k), *const im = re + KERNEL_W;
    for (int64_t l = 0; l < lanes; ++l) {
      to[l * step + 2 * k] = re[l]; to[l * step + 2 * k + 1] = im[l]; KERNEL_SELDOM
    }
  }
}"""

_COLUMNS = """\
APART NAME(KERNEL_e *to, int64_t to_step, const KERNEL_e *from, int64_t from_step, int64_t points, int64_t lanes) {
  const unsigned long size = (unsigned long)(2 * lanes) * sizeof *to;
  for (int64_t k = 0; k < points; ++k) __builtin_memcpy(to + k * to_step, from + k * from_step, size);
}"""

_TIMES = """\
FUSED NAME(KERNEL_e *to, const KERNEL_e *from, const KERNEL_r *factors, int64_t count, KERNEL_r sign) {
  CYX_FUSE
  int64_t k = 0;
  for (; k + KERNEL_W <= count; k += KERNEL_W) {
    const KERNEL_u *const x = (const KERNEL_u *)(from + 2 * k), *const w = (const KERNEL_u *)(factors + 2 * k);
    const KERNEL_v a = x[0], b = x[1], f = w[0], g = w[1];
    const KERNEL_v xr = KERNEL_EVEN(a, b), xi = KERNEL_ODD(a, b), wr = KERNEL_EVEN(f, g), wi = KERNEL_ODD(f, g);
    const KERNEL_v re = xr * wr - xi * wi, im = (xr * wi + xi * wr) * sign;
    KERNEL_u *const y = (KERNEL_u *)(to + 2 * k);
    y[0] = KERNEL_LOW(re, im); y[1] = KERNEL_HIGH(re, im);
  }
  for (; k < count; ++k) {
    const KERNEL_r xr = from[2 * k], xi = from[2 * k + 1], wr = factors[2 * k], wi = factors[2 * k + 1];
    to[2 * k] = xr * wr - xi * wi; to[2 * k + 1] = (xr * wi + xi * wr) * sign; KERNEL_SELDOM
  }
}"""

_GATHER_REAL = """\
APART NAME(KERNEL_v *rows, const KERNEL_e *from, int64_t step, int64_t points, int64_t lanes) {
  for (int64_t k = 0; k < points; ++k) {
    KERNEL_r *const re = (KERNEL_r *)(rows + 2 * k);
    for (int64_t l = 0; l < lanes; ++l) re[l] = from[l * step + k];
    for (int64_t l = lanes; l < KERNEL_W; ++l) re[l] = 0;
    rows[2 * k + 1] = (KERNEL_v){0};
  }
}"""

_SCATTER_REAL = """\
APART NAME(KERNEL_e *to, int64_t step, const KERNEL_v *rows, int64_t points, int64_t lanes) {
  for (int64_t k = 0; k < points; ++k)
    for (int64_t l = 0; l < lanes; ++l) to[l * step + k] = ((const KERNEL_r *)(rows + 2 * k))[l];
}"""

_TURN = """\
APART NAME(KERNEL_e *to, int64_t to_step, const KERNEL_e *from, int64_t from_step, int64_t n, int64_t m) {
  for (int64_t k = 0; k < n; ++k)
    for (int64_t l = 0; l < m; ++l) {
      to[l * to_step + 2 * k] = from[k * from_step + 2 * l];
      to[l * to_step + 2 * k + 1] = from[k * from_step + 2 * l + 1];
    }
}"""
