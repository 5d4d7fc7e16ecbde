/* Moves of points between lines, columns and panels, and products of complex numbers.
 *
 * A template, to be included after fft_vectors.h; it undefines the parameters.
 *   FFT_SQUARE       function that transposes a square of elements, cyx_square_4 or cyx_square_8
 *   FFT_SQUARE_ROWS  its rows, CYX_SQUARE_4 or CYX_SQUARE_8
 */
#include "../../abi.h"
#include "../../compiler.h"
#include "../../scalar.h"
#include "../../loops.h"

/* to[k] = from[k] * factors[k] of complex numbers, conjugate if the sign is -1. */
static CYX_FUSED void FFT(multiply)(FFT_ELEMENT *to, const FFT_ELEMENT *from, const FFT_REAL *factors, int64_t count,
                                    FFT_REAL sign) {
  CYX_FUSE
  int64_t k = 0;
  for (; k + FFT_LANES <= count; k += FFT_LANES) {
    const FFT_UNALIGNED_V *const x = (const FFT_UNALIGNED_V *)(from + 2 * k);
    const FFT_UNALIGNED_V *const w = (const FFT_UNALIGNED_V *)(factors + 2 * k);
    const FFT_V a = x[0], b = x[1], f = w[0], g = w[1];
    const FFT_V xr = FFT_EVEN(a, b), xi = FFT_ODD(a, b), wr = FFT_EVEN(f, g), wi = FFT_ODD(f, g);
    const FFT_V re = xr * wr - xi * wi, im = (xr * wi + xi * wr) * sign;
    FFT_UNALIGNED_V *const y = (FFT_UNALIGNED_V *)(to + 2 * k);
    y[0] = FFT_ZIP_LOW(re, im);
    y[1] = FFT_ZIP_HIGH(re, im);
  }
  for (; k < count; ++k) {
    const FFT_REAL xr = from[2 * k], xi = from[2 * k + 1], wr = factors[2 * k], wi = factors[2 * k + 1];
    to[2 * k] = xr * wr - xi * wi;
    to[2 * k + 1] = (xr * wi + xi * wr) * sign;
    CYX_SCALAR_LOOP
  }
}

/* Load rows of a panel from the points of `lanes` lines, `stride` elements apart; other lanes are set to zero. */
static void FFT(gather)(FFT_V *rows, const FFT_ELEMENT *from, int64_t stride, int64_t points, int64_t lanes) {
  int64_t k = 0;
  if (lanes == FFT_LANES && FFT_LANES == FFT_SQUARE_ROWS)
    for (; k + FFT_LANES / 2 <= points; k += FFT_LANES / 2)
      FFT_SQUARE((void *)(rows + 2 * k), FFT_LANES, (const void *)(from + 2 * k), stride);
  for (; k < points; ++k) {
    FFT_REAL *const re = (FFT_REAL *)(rows + 2 * k), *const im = re + FFT_LANES;
    rows[2 * k] = rows[2 * k + 1] = (FFT_V){0};
    for (int64_t l = 0; l < lanes; ++l) {
      re[l] = from[l * stride + 2 * k];
      im[l] = from[l * stride + 2 * k + 1];
      CYX_SCALAR_LOOP
    }
  }
}

/* Store rows of a panel to lines, the inverse of gather. */
static void FFT(scatter)(FFT_ELEMENT *to, int64_t stride, const FFT_V *rows, int64_t points, int64_t lanes) {
  int64_t k = 0;
  if (lanes == FFT_LANES && FFT_LANES == FFT_SQUARE_ROWS)
    for (; k + FFT_LANES / 2 <= points; k += FFT_LANES / 2)
      FFT_SQUARE((void *)(to + 2 * k), stride, (const void *)(rows + 2 * k), FFT_LANES);
  for (; k < points; ++k) {
    const FFT_REAL *const re = (const FFT_REAL *)(rows + 2 * k), *const im = re + FFT_LANES;
    for (int64_t l = 0; l < lanes; ++l) {
      to[l * stride + 2 * k] = re[l];
      to[l * stride + 2 * k + 1] = im[l];
      CYX_SCALAR_LOOP
    }
  }
}

/* The same for lines of real numbers. */
static void FFT(gather_real)(FFT_V *rows, const FFT_ELEMENT *from, int64_t stride, int64_t points, int64_t lanes) {
  for (int64_t k = 0; k < points; ++k) {
    FFT_REAL *const re = (FFT_REAL *)(rows + 2 * k);
    for (int64_t l = 0; l < lanes; ++l) re[l] = from[l * stride + k];
    for (int64_t l = lanes; l < FFT_LANES; ++l) re[l] = 0;
    rows[2 * k + 1] = (FFT_V){0};
  }
}

static void FFT(scatter_real)(FFT_ELEMENT *to, int64_t stride, const FFT_V *rows, int64_t points, int64_t lanes) {
  for (int64_t k = 0; k < points; ++k)
    for (int64_t l = 0; l < lanes; ++l) to[l * stride + k] = ((const FFT_REAL *)(rows + 2 * k))[l];
}

/* Copy columns of an array of complex numbers, fewer than lanes, from or into another array. */
static void FFT(copy_columns)(FFT_ELEMENT *to, int64_t to_stride, const FFT_ELEMENT *from, int64_t from_stride,
                              int64_t points, int64_t columns) {
  const unsigned long size = (unsigned long)(2 * columns) * sizeof *to;
  for (int64_t k = 0; k < points; ++k) __builtin_memcpy(to + k * to_stride, from + k * from_stride, size);
}

/* Transpose n rows of m complex numbers. */
static void FFT(transpose)(FFT_ELEMENT *to, int64_t to_stride, const FFT_ELEMENT *from, int64_t from_stride, int64_t n,
                           int64_t m) {
  for (int64_t k = 0; k < n; ++k)
    for (int64_t l = 0; l < m; ++l) {
      to[l * to_stride + 2 * k] = from[k * from_stride + 2 * l];
      to[l * to_stride + 2 * k + 1] = from[k * from_stride + 2 * l + 1];
    }
}

#undef FFT_SQUARE
#undef FFT_SQUARE_ROWS
