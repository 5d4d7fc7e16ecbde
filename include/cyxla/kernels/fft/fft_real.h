/* Last or first step of transforms of real lines of even length 2 h, which are computed by complex ones of length h.
 *
 * Points of even and odd index of a real line are the real and imaginary parts of a complex one. The points k and
 * h - k of its transform determine the same points of the transform of the real line, and vice versa. The table has
 * the real parts of the h / 2 + 1 roots of unity exp(-pi i k / h), then their imaginary parts.
 *
 * A template, to be included after fft_vectors.h; it undefines the parameter.
 *   FFT_C2R  0 for r2c: real lines to complex ones, after the transform of length h; 1 for c2r, before it
 */
#include "../../abi.h"
#include "../../compiler.h"

#if FFT_C2R
#define FFT_REAL_STEP(unit) FFT(c2r_##unit)
/* The two points that only depend on each other: h + 1 points of the operand, h results. */
#define FFT_REAL_ENDS(type)            \
  {                                    \
    const type p = x[0], q = x[2 * h]; \
    y[0] = p + q;                      \
    y[1] = p - q;                      \
  }
/* Compute (ur, ui) and (pr, pi), results k and h - k, from points (ar, ai) and (br, bi) and the root (wr, wi). */
#define FFT_REAL_PAIR(type)                                          \
  const type er = ar + br, ei = ai - bi, dr = ar - br, di = ai + bi; \
  const type or = dr * wr + di * wi, oi = di * wr - dr * wi;         \
  const type ur = er - oi, ui = ei + or, pr = er + oi, pi = or -ei;
#else
#define FFT_REAL_STEP(unit) FFT(r2c_##unit)
#define FFT_REAL_ENDS(type)        \
  {                                \
    const type p = x[0], q = x[1]; \
    y[0] = p + q;                  \
    y[1] = (type){0};              \
    y[2 * h] = p - q;              \
    y[2 * h + 1] = (type){0};      \
  }
#define FFT_REAL_PAIR(type)                                                  \
  const type er = (ar + br) * (FFT_REAL)0.5, ei = (ai - bi) * (FFT_REAL)0.5; \
  const type or = (ai + bi) * (FFT_REAL)0.5, oi = (br - ar) * (FFT_REAL)0.5; \
  const type tr = or *wr - oi * wi, ti = or *wi + oi * wr;                   \
  const type ur = er + tr, ui = ei + ti, pr = er - tr, pi = ti - ei;
#endif

/* Transform a panel. */
static CYX_FUSED void FFT_REAL_STEP(rows)(FFT_V *restrict y, const FFT_V *restrict x, int64_t h,
                                          const FFT_REAL *table) {
  CYX_FUSE
  FFT_REAL_ENDS(FFT_V)
  for (int64_t k = 1; k <= h / 2; ++k) {
    const int64_t j = h - k;
    const FFT_REAL wr = table[k], wi = table[h / 2 + 1 + k];
    const FFT_V ar = x[2 * k], ai = x[2 * k + 1], br = x[2 * j], bi = x[2 * j + 1];
    FFT_REAL_PAIR(FFT_V)
    y[2 * k] = ur;
    y[2 * k + 1] = ui;
    y[2 * j] = pr;
    y[2 * j + 1] = pi;
  }
}

/* Transform the pairs [begin, end) of a line, of h / 2 + 1; r2c may be in place. The loop over vectors ends before
   those at k and those at h - k overlap; the remaining pairs are scalar. */
static CYX_FUSED void FFT_REAL_STEP(line)(FFT_ELEMENT *y, const FFT_ELEMENT *x, int64_t h, const FFT_REAL *table,
                                          int64_t begin, int64_t end) {
  CYX_FUSE
  int64_t k = begin;
  if (k == 0) {
    FFT_REAL_ENDS(FFT_REAL)
    k = 1;
  }
  for (; k + FFT_LANES <= end && 2 * (k + FFT_LANES) <= h + 1; k += FFT_LANES) {
    const int64_t j = h - k - FFT_LANES + 1;
    const FFT_UNALIGNED_V *const a = (const FFT_UNALIGNED_V *)(x + 2 * k);
    const FFT_UNALIGNED_V *const b = (const FFT_UNALIGNED_V *)(x + 2 * j);
    const FFT_V a0 = a[0], a1 = a[1], b0 = b[0], b1 = b[1];
    const FFT_V cr = FFT_EVEN(b0, b1), ci = FFT_ODD(b0, b1);
    const FFT_V ar = FFT_EVEN(a0, a1), ai = FFT_ODD(a0, a1), br = FFT_REVERSE(cr), bi = FFT_REVERSE(ci);
    const FFT_V wr = *(const FFT_UNALIGNED_V *)(table + k), wi = *(const FFT_UNALIGNED_V *)(table + h / 2 + 1 + k);
    FFT_REAL_PAIR(FFT_V)
    const FFT_V vr = FFT_REVERSE(pr), vi = FFT_REVERSE(pi);
    FFT_UNALIGNED_V *const u = (FFT_UNALIGNED_V *)(y + 2 * k), *const v = (FFT_UNALIGNED_V *)(y + 2 * j);
    u[0] = FFT_ZIP_LOW(ur, ui);
    u[1] = FFT_ZIP_HIGH(ur, ui);
    v[0] = FFT_ZIP_LOW(vr, vi);
    v[1] = FFT_ZIP_HIGH(vr, vi);
  }
  for (; k < end; ++k) {
    const int64_t j = h - k;
    const FFT_REAL wr = table[k], wi = table[h / 2 + 1 + k];
    const FFT_REAL ar = x[2 * k], ai = x[2 * k + 1], br = x[2 * j], bi = x[2 * j + 1];
    FFT_REAL_PAIR(FFT_REAL)
    y[2 * k] = ur;
    y[2 * k + 1] = ui;
    y[2 * j] = pr;
    y[2 * j + 1] = pi;
    CYX_SCALAR_LOOP
  }
}

#undef FFT_REAL_STEP
#undef FFT_REAL_ENDS
#undef FFT_REAL_PAIR
#undef FFT_C2R
