"""Moves of points between lines, columns and rows of scratch, products with roots, and halves of real transforms.

C functions for any length. Real lines of even length are complex ones of half the length: even and
odd points of a real line are the two parts of a complex one. Where Z is the transform of that, the points k and h - k
of the wanted one follow from the same two points of Z, and the other way round. Lines of odd length are complex ones
with imaginary parts of zero.
"""

from __future__ import annotations

FUSE = "\n  CYX_FUSE"  # at the start of a function that may fuse

_GATHER = """\
void FFT_gather(FFT_v *rows, const FFT_e *from, int64_t step, int64_t points, int64_t lanes) {
  int64_t k = 0;
  if (lanes == FFT_W && FFT_W == CYX_SQUARE_ITEM)
    for (; k + FFT_W / 2 <= points; k += FFT_W / 2)
      cyx_square_ITEM((uintBITS_t *)(rows + 2 * k), FFT_W, (const cyx_tile_ITEM_item *)(from + 2 * k), step);
  for (; k < points; ++k) {
    FFT_r *const re = (FFT_r *)(rows + 2 * k), *const im = re + FFT_W;
    rows[2 * k] = rows[2 * k + 1] = (FFT_v){0};
    for (int64_t l = 0; l < lanes; ++l) {
      re[l] = from[l * step + 2 * k]; im[l] = from[l * step + 2 * k + 1]; FFT_SELDOM
    }
  }
}"""

_SCATTER = """\
void FFT_scatter(FFT_e *to, int64_t step, const FFT_v *rows, int64_t points, int64_t lanes) {
  int64_t k = 0;
  if (lanes == FFT_W && FFT_W == CYX_SQUARE_ITEM)
    for (; k + FFT_W / 2 <= points; k += FFT_W / 2)
      cyx_square_ITEM((uintBITS_t *)(to + 2 * k), step, (const cyx_tile_ITEM_item *)(rows + 2 * k), FFT_W);
  for (; k < points; ++k) {
    const FFT_r *const re = (const FFT_r *)(rows + 2 * k), *const im = re + FFT_W;
    for (int64_t l = 0; l < lanes; ++l) {
      to[l * step + 2 * k] = re[l]; to[l * step + 2 * k + 1] = im[l]; FFT_SELDOM
    }
  }
}"""

_GATHER_REAL = """\
void FFT_gather_real(FFT_v *rows, const FFT_e *from, int64_t step, int64_t points, int64_t lanes) {
  for (int64_t k = 0; k < points; ++k) {
    FFT_r *const re = (FFT_r *)(rows + 2 * k);
    for (int64_t l = 0; l < lanes; ++l) re[l] = from[l * step + k];
    for (int64_t l = lanes; l < FFT_W; ++l) re[l] = 0;
    rows[2 * k + 1] = (FFT_v){0};
  }
}"""

_SCATTER_REAL = """\
void FFT_scatter_real(FFT_e *to, int64_t step, const FFT_v *rows, int64_t points, int64_t lanes) {
  for (int64_t k = 0; k < points; ++k)
    for (int64_t l = 0; l < lanes; ++l) to[l * step + k] = ((const FFT_r *)(rows + 2 * k))[l];
}"""

# Fewer columns than lanes, from one array to another.
_COLUMNS = """\
void FFT_columns(FFT_e *to, int64_t to_step, const FFT_e *from, int64_t from_step, int64_t points, int64_t lanes) {
  const unsigned long size = (unsigned long)(2 * lanes) * sizeof *to;
  for (int64_t k = 0; k < points; ++k) __builtin_memcpy(to + k * to_step, from + k * from_step, size);
}"""

# m rows of n complex numbers from n rows of m.
_TURN = """\
void FFT_turn(FFT_e *to, int64_t to_step, const FFT_e *from, int64_t from_step, int64_t n, int64_t m) {
  for (int64_t k = 0; k < n; ++k)
    for (int64_t l = 0; l < m; ++l) {
      to[l * to_step + 2 * k] = from[k * from_step + 2 * l];
      to[l * to_step + 2 * k + 1] = from[k * from_step + 2 * l + 1];
    }
}"""

# Products of complex numbers, conjugate where the sign is -1.
_TIMES = """\
void FFT_times(FFT_e *to, const FFT_e *from, const FFT_r *factors, int64_t count, FFT_r sign) {
  int64_t k = 0;
  for (; k + FFT_W <= count; k += FFT_W) {
    const FFT_u *const x = (const FFT_u *)(from + 2 * k), *const w = (const FFT_u *)(factors + 2 * k);
    const FFT_v a = x[0], b = x[1], f = w[0], g = w[1];
    const FFT_v xr = FFT_EVEN(a, b), xi = FFT_ODD(a, b), wr = FFT_EVEN(f, g), wi = FFT_ODD(f, g);
    const FFT_v re = xr * wr - xi * wi, im = (xr * wi + xi * wr) * sign;
    FFT_u *const y = (FFT_u *)(to + 2 * k);
    y[0] = FFT_LOW(re, im); y[1] = FFT_HIGH(re, im);
  }
  for (; k < count; ++k) {
    const FFT_r xr = from[2 * k], xi = from[2 * k + 1], wr = factors[2 * k], wi = factors[2 * k + 1];
    to[2 * k] = xr * wr - xi * wi; to[2 * k + 1] = (xr * wi + xi * wr) * sign; FFT_SELDOM
  }
}"""

# The wanted points 0 and h follow from p and q alone. Another pair follows from the points (ar, ai) at k and (br, bi)
# at h - k, with the root (wr, wi): (ur, ui) and (pr, pi).
_WAYS = {
    "out": {
        "ENDS": """\
const TYPE p = x[0], q = x[1];
y[0] = p + q; y[1] = (TYPE){0}; y[2 * h] = p - q; y[2 * h + 1] = (TYPE){0};""",
        "PAIR": """\
const TYPE er = (ar + br) * (FFT_r)0.5, ei = (ai - bi) * (FFT_r)0.5;
const TYPE or = (ai + bi) * (FFT_r)0.5, oi = (br - ar) * (FFT_r)0.5;
const TYPE tr = or * wr - oi * wi, ti = or * wi + oi * wr;
const TYPE ur = er + tr, ui = ei + ti, pr = er - tr, pi = ti - ei;""",
    },
    "in": {
        "ENDS": """\
const TYPE p = x[0], q = x[2 * h];
y[0] = p + q; y[1] = p - q;""",
        "PAIR": """\
const TYPE er = ar + br, ei = ai - bi, dr = ar - br, di = ai + bi;
const TYPE or = dr * wr + di * wi, oi = di * wr - dr * wi;
const TYPE ur = er - oi, ui = ei + or, pr = er + oi, pi = or - ei;""",
    },
}

# A panel. The table holds cosines of the lower half of the roots, then their sines.
_HALF_ROWS = """\
void FFT_half_rows_WAY(FFT_v *restrict y, const FFT_v *restrict x, int64_t h, const FFT_r *table) {
  ENDS(FFT_v)
  for (int64_t k = 1; k <= h / 2; ++k) {
    const int64_t j = h - k;
    const FFT_r wr = table[k], wi = table[h / 2 + 1 + k];
    const FFT_v ar = x[2 * k], ai = x[2 * k + 1], br = x[2 * j], bi = x[2 * j + 1];
    PAIR(FFT_v)
    y[2 * k] = ur; y[2 * k + 1] = ui; y[2 * j] = pr; y[2 * j + 1] = pi;
  }
}"""

# A range of the pairs of a line, each of a number up to h / 2; on the way out y may be x. The vectors at k and at j end
# before they meet; what is between them goes one by one.
_HALF_LINE = """\
void FFT_half_line_WAY(FFT_e *y, const FFT_e *x, int64_t h, const FFT_r *table, int64_t begin, int64_t end) {
  int64_t k = begin;
  if (k == 0) {
    ENDS(FFT_r)
    k = 1;
  }
  for (; k + FFT_W <= end && 2 * (k + FFT_W) <= h + 1; k += FFT_W) {
    const int64_t j = h - k - FFT_W + 1;
    const FFT_u *const a = (const FFT_u *)(x + 2 * k), *const b = (const FFT_u *)(x + 2 * j);
    const FFT_v a0 = a[0], a1 = a[1], b0 = b[0], b1 = b[1];
    const FFT_v cr = FFT_EVEN(b0, b1), ci = FFT_ODD(b0, b1);
    const FFT_v ar = FFT_EVEN(a0, a1), ai = FFT_ODD(a0, a1), br = FFT_BACK(cr, cr), bi = FFT_BACK(ci, ci);
    const FFT_v wr = *(const FFT_u *)(table + k), wi = *(const FFT_u *)(table + h / 2 + 1 + k);
    PAIR(FFT_v)
    const FFT_v vr = FFT_BACK(pr, pr), vi = FFT_BACK(pi, pi);
    FFT_u *const u = (FFT_u *)(y + 2 * k), *const v = (FFT_u *)(y + 2 * j);
    u[0] = FFT_LOW(ur, ui); u[1] = FFT_HIGH(ur, ui);
    v[0] = FFT_LOW(vr, vi); v[1] = FFT_HIGH(vr, vi);
  }
  for (; k < end; ++k) {
    const int64_t j = h - k;
    const FFT_r wr = table[k], wi = table[h / 2 + 1 + k];
    const FFT_r ar = x[2 * k], ai = x[2 * k + 1], br = x[2 * j], bi = x[2 * j + 1];
    PAIR(FFT_r)
    y[2 * k] = ur; y[2 * k + 1] = ui; y[2 * j] = pr; y[2 * j + 1] = pi; FFT_SELDOM
  }
}"""


def _half(text: str, way: str) -> str:
    found = text.replace("WAY", way)
    for part, lines in _WAYS[way].items():
        for c_type in ("FFT_v", "FFT_r"):
            found = found.replace(f"{part}({c_type})", lines.replace("TYPE", c_type).replace("\n", " "))
    return found


def moves() -> str:
    """All functions; some may fuse multiplications and additions."""
    fused = [_TIMES, *(_half(text, way) for text in (_HALF_ROWS, _HALF_LINE) for way in _WAYS)]
    plain = [_GATHER, _SCATTER, _GATHER_REAL, _SCATTER_REAL, _COLUMNS, _TURN]
    texts = [*(f"CYX_FUSED {text.replace('{', '{' + FUSE, 1)}" for text in fused), *plain]
    return "".join(f"static {text}\n" for text in texts)
