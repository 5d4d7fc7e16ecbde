"""Real lines of even length as complex ones of half the length: what comes after a transform, and before an inverse.

Even and odd points of a real line are the two parts of a complex one. Where Z is the transform of that, the points k
and h - k of the wanted one follow from the same two points of Z, and the other way round. Lines of odd length are
complex ones with imaginary parts of zero.
"""

from __future__ import annotations

import numpy as np

from cyxla.xla.cpu.emit_fft_butterflies import roots
from cyxla.xla.cpu.emit_fft_panels import Functions, apart


class Real:
    """Writes the functions for half a line of `h` points: in rows of scratch, or in a line of complex numbers."""

    def __init__(self, functions: Functions, h: int) -> None:
        self.f, self.h = functions, h

    @property
    def table(self) -> int:
        """Cosines of the lower half of the roots, then their sines."""
        count = self.h // 2 + 1
        return self.f.tables.add(
            ("half", self.h), lambda: np.concatenate([(w := roots(2 * self.h, np.arange(count))).real, w.imag])
        )

    def rows(self, *, inverse: bool) -> str:
        """``(to, from, tables)``: rows of one form into rows of the other."""
        return self._define("rows", _ROWS_IN if inverse else _ROWS_OUT)

    def line(self, *, inverse: bool) -> str:
        """``(to, from, tables, begin, end)``: a line of one form into the other; forwards the two may be one.

        `begin` and `end` are a range of the numbers up to h / 2, each of a pair of points.
        """
        return self._define("line", _LINE_IN if inverse else _LINE_OUT)

    def _define(self, what: str, text: str) -> str:
        count = self.h // 2 + 1
        numbers = {"HALF": self.h, "TABLE": self.table, "SINES": self.table + count}

        def lines(name: str) -> list[str]:
            found = apart(text, name)
            for word, number in numbers.items():
                found = found.replace(word, str(number))
            return found.splitlines()

        return self.f.define((what, self.h, text), what, lambda c, name: c.lines(lines(name)))


_ROWS_OUT = """\
FUSED NAME(KERNEL_v *restrict to, const KERNEL_v *restrict from, const KERNEL_r *tables) {
  CYX_FUSE
  const KERNEL_r half = (KERNEL_r)0.5;
  to[0] = from[0] + from[1]; to[1] = (KERNEL_v){0};
  to[2 * HALF] = from[0] - from[1]; to[2 * HALF + 1] = (KERNEL_v){0};
  for (int64_t k = 1; k <= HALF / 2; ++k) {
    const int64_t j = HALF - k;
    const KERNEL_r wr = tables[TABLE + k], wi = tables[SINES + k];
    const KERNEL_v ar = from[2 * k], ai = from[2 * k + 1], br = from[2 * j], bi = from[2 * j + 1];
    const KERNEL_v er = (ar + br) * half, ei = (ai - bi) * half, or = (ai + bi) * half, oi = (br - ar) * half;
    const KERNEL_v tr = or * wr - oi * wi, ti = or * wi + oi * wr;
    to[2 * k] = er + tr; to[2 * k + 1] = ei + ti;
    to[2 * j] = er - tr; to[2 * j + 1] = ti - ei;
  }
}"""

_ROWS_IN = """\
FUSED NAME(KERNEL_v *restrict to, const KERNEL_v *restrict from, const KERNEL_r *tables) {
  CYX_FUSE
  to[0] = from[0] + from[2 * HALF]; to[1] = from[0] - from[2 * HALF];
  for (int64_t k = 1; k <= HALF / 2; ++k) {
    const int64_t j = HALF - k;
    const KERNEL_r wr = tables[TABLE + k], wi = tables[SINES + k];
    const KERNEL_v ar = from[2 * k], ai = from[2 * k + 1], br = from[2 * j], bi = from[2 * j + 1];
    const KERNEL_v er = ar + br, ei = ai - bi, dr = ar - br, di = ai + bi;
    const KERNEL_v or = dr * wr + di * wi, oi = di * wr - dr * wi;
    to[2 * k] = er - oi; to[2 * k + 1] = ei + or;
    to[2 * j] = er + oi; to[2 * j + 1] = or - ei;
  }
}"""

# The vectors at k and at j end before they meet; what is between them goes one by one.
_LINE_OUT = """\
FUSED NAME(KERNEL_e *to, const KERNEL_e *from, const KERNEL_r *tables, int64_t begin, int64_t end) {
  CYX_FUSE
  const KERNEL_r half = (KERNEL_r)0.5;
  int64_t k = begin;
  if (k == 0) {
    const KERNEL_r zr = from[0], zi = from[1];
    to[0] = zr + zi; to[1] = 0;
    to[2 * HALF] = zr - zi; to[2 * HALF + 1] = 0;
    k = 1;
  }
  for (; k + KERNEL_W <= end && 2 * (k + KERNEL_W) <= HALF + 1; k += KERNEL_W) {
    const int64_t j = HALF - k - KERNEL_W + 1;
    const KERNEL_u *const x = (const KERNEL_u *)(from + 2 * k), *const y = (const KERNEL_u *)(from + 2 * j);
    const KERNEL_v x0 = x[0], x1 = x[1], y0 = y[0], y1 = y[1];
    const KERNEL_v cr = KERNEL_EVEN(y0, y1), ci = KERNEL_ODD(y0, y1);
    const KERNEL_v ar = KERNEL_EVEN(x0, x1), ai = KERNEL_ODD(x0, x1);
    const KERNEL_v br = KERNEL_BACK(cr, cr), bi = KERNEL_BACK(ci, ci);
    const KERNEL_v wr = *(const KERNEL_u *)(tables + TABLE + k), wi = *(const KERNEL_u *)(tables + SINES + k);
    const KERNEL_v er = (ar + br) * half, ei = (ai - bi) * half, or = (ai + bi) * half, oi = (br - ar) * half;
    const KERNEL_v tr = or * wr - oi * wi, ti = or * wi + oi * wr;
    const KERNEL_v ur = er + tr, ui = ei + ti, pr = er - tr, pi = ti - ei;
    const KERNEL_v vr = KERNEL_BACK(pr, pr), vi = KERNEL_BACK(pi, pi);
    KERNEL_u *const u = (KERNEL_u *)(to + 2 * k), *const v = (KERNEL_u *)(to + 2 * j);
    u[0] = KERNEL_LOW(ur, ui); u[1] = KERNEL_HIGH(ur, ui);
    v[0] = KERNEL_LOW(vr, vi); v[1] = KERNEL_HIGH(vr, vi);
  }
  for (; k < end; ++k) {
    const int64_t j = HALF - k;
    const KERNEL_r wr = tables[TABLE + k], wi = tables[SINES + k];
    const KERNEL_r ar = from[2 * k], ai = from[2 * k + 1], br = from[2 * j], bi = from[2 * j + 1];
    const KERNEL_r er = (ar + br) * half, ei = (ai - bi) * half, or = (ai + bi) * half, oi = (br - ar) * half;
    const KERNEL_r tr = or * wr - oi * wi, ti = or * wi + oi * wr;
    to[2 * k] = er + tr; to[2 * k + 1] = ei + ti;
    to[2 * j] = er - tr; to[2 * j + 1] = ti - ei; KERNEL_SELDOM
  }
}"""

_LINE_IN = """\
FUSED NAME(KERNEL_e *to, const KERNEL_e *from, const KERNEL_r *tables, int64_t begin, int64_t end) {
  CYX_FUSE
  int64_t k = begin;
  if (k == 0) {
    to[0] = from[0] + from[2 * HALF]; to[1] = from[0] - from[2 * HALF];
    k = 1;
  }
  for (; k + KERNEL_W <= end && 2 * (k + KERNEL_W) <= HALF + 1; k += KERNEL_W) {
    const int64_t j = HALF - k - KERNEL_W + 1;
    const KERNEL_u *const x = (const KERNEL_u *)(from + 2 * k), *const y = (const KERNEL_u *)(from + 2 * j);
    const KERNEL_v x0 = x[0], x1 = x[1], y0 = y[0], y1 = y[1];
    const KERNEL_v cr = KERNEL_EVEN(y0, y1), ci = KERNEL_ODD(y0, y1);
    const KERNEL_v ar = KERNEL_EVEN(x0, x1), ai = KERNEL_ODD(x0, x1);
    const KERNEL_v br = KERNEL_BACK(cr, cr), bi = KERNEL_BACK(ci, ci);
    const KERNEL_v wr = *(const KERNEL_u *)(tables + TABLE + k), wi = *(const KERNEL_u *)(tables + SINES + k);
    const KERNEL_v er = ar + br, ei = ai - bi, dr = ar - br, di = ai + bi;
    const KERNEL_v or = dr * wr + di * wi, oi = di * wr - dr * wi;
    const KERNEL_v ur = er - oi, ui = ei + or, pr = er + oi, pi = or - ei;
    const KERNEL_v vr = KERNEL_BACK(pr, pr), vi = KERNEL_BACK(pi, pi);
    KERNEL_u *const u = (KERNEL_u *)(to + 2 * k), *const v = (KERNEL_u *)(to + 2 * j);
    u[0] = KERNEL_LOW(ur, ui); u[1] = KERNEL_HIGH(ur, ui);
    v[0] = KERNEL_LOW(vr, vi); v[1] = KERNEL_HIGH(vr, vi);
  }
  for (; k < end; ++k) {
    const int64_t j = HALF - k;
    const KERNEL_r wr = tables[TABLE + k], wi = tables[SINES + k];
    const KERNEL_r ar = from[2 * k], ai = from[2 * k + 1], br = from[2 * j], bi = from[2 * j + 1];
    const KERNEL_r er = ar + br, ei = ai - bi, dr = ar - br, di = ai + bi;
    const KERNEL_r or = dr * wr + di * wi, oi = di * wr - dr * wi;
    to[2 * k] = er - oi; to[2 * k + 1] = ei + or;
    to[2 * j] = er + oi; to[2 * j + 1] = or - ei; KERNEL_SELDOM
  }
}"""
