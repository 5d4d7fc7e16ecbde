"""Transforms of one long line: a product of two lengths in two steps of panels, or any length as a convolution.

The points of a line of N = A * B points are a matrix of A rows. The first step transforms its columns, turns the
results and leaves them transposed in the result; the second transforms the columns of that, in place. A length with a
large prime factor becomes a convolution with a chirp, done by transforms of a longer line (Bluestein).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from math import isqrt

import numpy as np

from cyxla.xla.cpu.c_writer import CWriter
from cyxla.xla.cpu.emit_fft_butterflies import Roots, roots
from cyxla.xla.cpu.emit_fft_panels import VECTOR_BYTES, Functions, Panel, is_smooth

SMALLEST_PART = 8  # of a product; a panel has as many lanes
SHORT = 1024  # lines up to this may be one panel where they are no good product

#: The arguments of functions that do a range of lines or columns.
RANGE = "const KERNEL_e *from, KERNEL_e *to, int64_t begin, int64_t end, KERNEL_v *scratch, const KERNEL_r *tables"
_ARGUMENTS = "const KERNEL_e *from, KERNEL_e *to, KERNEL_v *scratch, const KERNEL_r *tables"


@cache
def split(n: int) -> tuple[int, int]:
    """The most even product of two that a length is."""
    a = next(a for a in range(isqrt(n), 0, -1) if n % a == 0)
    return n // a, a


@cache
def is_chirp(n: int) -> bool:
    """Whether a length is done as a convolution: it has a large prime factor, or is long and no product of two."""
    return not is_smooth(n) or (n > SHORT and split(n)[1] < SMALLEST_PART)


@cache
def padded(n: int) -> int:
    """The length of the convolution for a line of `n` points."""
    low = max(2 * n - 1, 256)
    return min(m for q in (1, 3, 5, 9, 15) for m in [q << max(8, (-(-low // q) - 1).bit_length())] if m >= low)


@dataclass(frozen=True)
class Line:
    """What a line's function does: `n` points from one place into another, complex numbers side by side.

    Attributes
    ----------
    n : int
        Points.
    inverse : bool
        Whether the roots are conjugate.
    scale : int
        What the results are divided by.
    """

    n: int
    inverse: bool = False
    scale: int = 1


class Lines:
    """Writes the functions of lines: ``(from, to, scratch, tables)``; the two places are apart."""

    def __init__(self, functions: Functions) -> None:
        self.f = functions

    def scratch(self, n: int) -> int:
        """Bytes that the function for a length needs."""
        if is_chirp(n):
            m = padded(n)
            return 2 * (-(-2 * m * self.f.item // VECTOR_BYTES)) * VECTOR_BYTES + self.scratch(m)
        a, b = split(n)
        # A panel, what the first step leaves, and a few columns that do not fill the lanes.
        return 2 * VECTOR_BYTES * max(3 * a, 2 * b)

    def line(self, line: Line) -> str:
        """The name of a function."""
        write = self._chirp if is_chirp(line.n) else self._product
        return self.f.define(line, f"line{line.n}", lambda c, name: write(c, name, line))

    # --- products ---------------------------------------------------------------------------------------------------

    def _product(self, c: CWriter, name: str, line: Line) -> None:
        first, second = self.first(line), self.second(line)
        a, b = split(line.n)
        with c.block(f"static void {name}({_ARGUMENTS})"):
            c.line(f"{first}(from, to, 0, {b}, scratch, tables);")
            c.line(f"{second}(to, to, 0, {a}, scratch, tables);")

    def first(self, line: Line) -> str:
        """``(from, to, begin, end, scratch, tables)``: the first step, for a range of its columns."""
        return self.f.define((line.n, line.inverse, 1), "columns", lambda c, name: self._first(c, name, line))

    def second(self, line: Line) -> str:
        """``(from, to, begin, end, scratch, tables)``: the second one, perhaps in place."""
        return self.f.define((line, 2), "columns", lambda c, name: self._second(c, name, line))

    def _first(self, c: CWriter, name: str, line: Line) -> None:
        f, n = self.f, line.n
        a, b = split(n)
        panel = f.panel(Panel(a, rows_out=True, swap_in=line.inverse, turned=n))
        scatter, lanes = f.scatter(), f.lanes
        move = f.columns() if b % lanes else ""
        blocks = -(-b // lanes)
        coarse = f.tables.add(("coarse", n), lambda: roots(n, np.outer(np.arange(blocks) * lanes, np.arange(a))))
        fine = f.tables.add(("fine", n), lambda: _parted(roots(n, np.outer(np.arange(a), np.arange(lanes)))))
        with c.block(f"static void {name}({RANGE})"):
            c.line(f"KERNEL_v *const rest = scratch + {4 * a};")
            with c.block("for (int64_t l = begin; l < end; l += KERNEL_W)"):
                c.line("const int64_t lanes = end - l < KERNEL_W ? end - l : KERNEL_W;")
                c.line(f"const KERNEL_e *x = from + 2 * l; int64_t step = {2 * b};")
                if b % lanes:
                    with c.block("if (lanes < KERNEL_W)"):
                        c.line(f"{move}((KERNEL_e *)rest, 2 * KERNEL_W, x, step, {a}, lanes);")
                        c.line("x = (const KERNEL_e *)rest; step = 2 * KERNEL_W;")
                roots_at = f"tables + {coarse} + l / {lanes} * {2 * a}, tables + {fine} + l % {lanes}"
                c.line(f"{panel}(x, step, 0, 0, scratch, tables, {roots_at});")
                c.line(f"{scatter}(to + l * {2 * a}, {2 * a}, scratch + {2 * a}, {a}, lanes);")

    def _second(self, c: CWriter, name: str, line: Line) -> None:
        f = self.f
        a, b = split(line.n)
        panel = f.panel(Panel(b, swap_out=line.inverse, scale=line.scale))
        with c.block(f"static void {name}({RANGE})"):
            self.columns(c, panel, b, a, "begin", "end", "from", "to")

    def columns(self, c: CWriter, panel: str, n: int, step: int, begin: str, end: str, source: str, to: str) -> None:
        """A range of neighbouring columns, `step` points below each other, by a panel of `n`."""
        f, cut = self.f, step % self.f.lanes != 0
        move = f.columns() if cut else ""
        with c.block(f"for (int64_t l = {begin}; l < {end}; l += KERNEL_W)"):
            c.line(f"const int64_t lanes = {end} - l < KERNEL_W ? {end} - l : KERNEL_W;")
            c.line(f"const KERNEL_e *const x = {source} + 2 * l; KERNEL_e *const y = {to} + 2 * l;")
            whole = f"{panel}(x, {2 * step}, y, {2 * step}, scratch, tables, 0, 0);"
            if not cut:
                c.line(whole)
                return
            c.line(f"if (lanes == KERNEL_W) {{ {whole} continue; }}")
            c.line(f"KERNEL_e *const rest = (KERNEL_e *)(scratch + {2 * n});")
            c.line(f"{move}(rest, 2 * KERNEL_W, x, {2 * step}, {n}, lanes);")
            c.line(f"{panel}(rest, 2 * KERNEL_W, rest, 2 * KERNEL_W, scratch, tables, 0, 0);")
            c.line(f"{move}(y, {2 * step}, rest, 2 * KERNEL_W, {n}, lanes);")

    # --- convolutions -----------------------------------------------------------------------------------------------

    def _chirp(self, c: CWriter, name: str, line: Line) -> None:
        f, n = self.f, line.n
        m = padded(n)
        other = self.line(Line(m))
        times = f.times()

        def chirp() -> Roots:
            found = roots(2 * n, np.arange(n) ** 2 % (2 * n))
            return found.conj() if line.inverse else found

        def filter_() -> Roots:
            kernel = np.zeros(m, np.complex128)
            kernel[:n] = chirp().conj()
            kernel[m - n + 1 :] = kernel[1:n][::-1]
            return np.asarray(np.fft.fft(kernel)) / (m * line.scale)

        at = f.tables.add(("chirp", n, line.inverse), chirp)
        filtered = f.tables.add(("filter", line), filter_)
        room = -(-2 * m * f.item // VECTOR_BYTES)  # vectors of 64 bytes; they may be narrower
        with c.block(f"static void {name}({_ARGUMENTS})"):
            c.line("KERNEL_e *const x = (KERNEL_e *)scratch;")
            c.line(f"KERNEL_e *const y = (KERNEL_e *)((char *)scratch + {room * VECTOR_BYTES});")
            c.line(f"KERNEL_v *const rest = (KERNEL_v *)((char *)scratch + {2 * room * VECTOR_BYTES});")
            c.line(f"{times}(x, from, tables + {at}, {n}, 1);")
            c.line(f"__builtin_memset(x + {2 * n}, 0, {2 * (m - n) * f.item});")
            c.line(f"{other}(x, y, rest, tables);")
            c.line(f"{times}(y, y, tables + {filtered}, {m}, -1);")
            c.line(f"{other}(y, x, rest, tables);")
            c.line(f"for (int64_t k = 0; k < {n}; ++k) x[2 * k + 1] = -x[2 * k + 1];")
            c.line(f"{times}(to, x, tables + {at}, {n}, 1);")


def _parted(values: Roots) -> np.ndarray:
    """Rows of complex numbers as rows of real parts, then imaginary ones."""
    return np.concatenate([values.real, values.imag], axis=-1)
