/* Complex arithmetic and functions: c64 is computed in double and rounded once, c128 in double.
 *
 * Blocks as in scalar.h. Needs abi.h, scalar.h, math.h.
 *
 * Internal: generated code pastes blocks of it; it may change with every version.
 */
#ifndef CYXLA_COMPLEX_H
#define CYXLA_COMPLEX_H

#include "math_inverse.h"

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wpedantic"

typedef struct { float re, im; } cyx_c64;

typedef struct { double re, im; } cyx_c128;

static inline cyx_c128 cyx_c128_of(double re, double im) { const cyx_c128 z = {re, im}; return z; }

static inline cyx_c64 cyx_c64_of(float re, float im) { const cyx_c64 z = {re, im}; return z; }

static inline cyx_c128 cyx_c128_from_c64(cyx_c64 z) { return cyx_c128_of((double)z.re, (double)z.im); }

/* Round to float, hidden from gcc, which omits the round trip through float when it vectorises both parts. */
static inline CYX_INLINE float cyx_part_c64(double x) {
  const uint32_t u = cyx_bits_f32((float)x);
  return cyx_from_bits_f32(u & (-(uint32_t)(x == x) | 0xffc00000u));
}

static inline CYX_INLINE cyx_c64 cyx_c64_from_c128(cyx_c128 z) { return cyx_c64_of(cyx_part_c64(z.re), cyx_part_c64(z.im)); }

static inline cyx_c64 cyx_add_c64(cyx_c64 a, cyx_c64 b) { return cyx_c64_of(a.re + b.re, a.im + b.im); }

static inline cyx_c128 cyx_add_c128(cyx_c128 a, cyx_c128 b) { return cyx_c128_of(a.re + b.re, a.im + b.im); }

static inline cyx_c64 cyx_subtract_c64(cyx_c64 a, cyx_c64 b) { return cyx_c64_of(a.re - b.re, a.im - b.im); }

static inline cyx_c128 cyx_subtract_c128(cyx_c128 a, cyx_c128 b) { return cyx_c128_of(a.re - b.re, a.im - b.im); }

/* -x, hidden from gcc, which would make a fused operation of a difference and a sum of products side by side. */
static inline CYX_INLINE float cyx_minus_c64(float x) { return cyx_from_bits_f32(cyx_bits_f32(x) ^ 0x80000000u); }

static inline CYX_INLINE double cyx_minus_c128(double x) { return cyx_from_bits_f64(cyx_bits_f64(x) ^ 1ull << 63); }

static inline CYX_INLINE cyx_c64 cyx_multiply_c64(cyx_c64 a, cyx_c64 b) {
  return cyx_c64_of(a.re * b.re + a.im * cyx_minus_c64(b.im), a.re * b.im + a.im * b.re);
}

static inline CYX_INLINE cyx_c128 cyx_multiply_c128(cyx_c128 a, cyx_c128 b) {
  return cyx_c128_of(a.re * b.re + a.im * cyx_minus_c128(b.im), a.re * b.im + a.im * b.re);
}

static inline cyx_c64 cyx_negate_c64(cyx_c64 z) { return cyx_c64_of(-z.re, -z.im); }

static inline cyx_c128 cyx_negate_c128(cyx_c128 z) { return cyx_c128_of(-z.re, -z.im); }

/* Replace a quotient with NaN in both parts by the result of C99 annex G for infinities and zeros; no branches. */
static inline CYX_INLINE cyx_c128 cyx_divide_special_c128(cyx_c128 a, cyx_c128 b, double re, double im) {
  const double inf = __builtin_inf();
  const double p = __builtin_fabs(a.re), q = __builtin_fabs(a.im), r = __builtin_fabs(b.re), s = __builtin_fabs(b.im);
  const double x = __builtin_copysign(p == inf ? 1.0 : 0.0, a.re), y = __builtin_copysign(q == inf ? 1.0 : 0.0, a.im);
  const double z = __builtin_copysign(r == inf ? 1.0 : 0.0, b.re), w = __builtin_copysign(s == inf ? 1.0 : 0.0, b.im);
  const double up_re = inf * (x * b.re + y * b.im), up_im = inf * (y * b.re + x * cyx_minus_c128(b.im));
  const double down_re = 0.0 * (a.re * z + a.im * w), down_im = 0.0 * (a.im * z + a.re * cyx_minus_c128(w));
  const double huge = __builtin_copysign(inf, b.re);
  double re2 = ((p == inf) | (q == inf)) & (r < inf) & (s < inf) ? up_re : re;
  double im2 = ((p == inf) | (q == inf)) & (r < inf) & (s < inf) ? up_im : im;
  re2 = ((r == inf) | (s == inf)) & (p < inf) & (q < inf) ? down_re : re2;
  im2 = ((r == inf) | (s == inf)) & (p < inf) & (q < inf) ? down_im : im2;
  re2 = (r == 0) & (s == 0) ? huge * a.re : re2;
  im2 = (r == 0) & (s == 0) ? huge * a.im : im2;
  return cyx_c128_of((re != re) & (im != im) ? re2 : re, (re != re) & (im != im) ? im2 : im);
}

/* Smith's method. */
static inline CYX_INLINE cyx_c128 cyx_divide_c128(cyx_c128 a, cyx_c128 b) {
  const int wide = __builtin_fabs(b.re) >= __builtin_fabs(b.im);
  const double big = wide ? b.re : b.im, small = wide ? b.im : b.re;
  const double first = wide ? a.re : a.im, second = wide ? a.im : a.re;
  const double ratio = small / big, scale = 1.0 / (big + small * ratio);
  const double cross = first * (wide ? cyx_minus_c128(ratio) : ratio);
  const double im = cross + (wide ? second : cyx_minus_c128(second));
  return cyx_divide_special_c128(a, b, (first + second * ratio) * scale, im * scale);
}

/* Products of two floats are exact in double and their squares do not overflow: the plain formula suffices. */
static inline CYX_INLINE cyx_c64 cyx_divide_c64(cyx_c64 x, cyx_c64 y) {
  const cyx_c128 a = cyx_c128_from_c64(x), b = cyx_c128_from_c64(y);
  const double scale = 1.0 / (b.re * b.re + b.im * b.im);
  const double re = (a.re * b.re + a.im * b.im) * scale, im = (a.im * b.re - a.re * b.im) * scale;
  return cyx_c64_from_c128(cyx_divide_special_c128(a, b, re, im));
}

static inline double cyx_abs_c128(cyx_c128 z) { return cyx_hypot_f64(z.re, z.im); }

static inline float cyx_abs_c64(cyx_c64 z) { return (float)cyx_hypot_f64((double)z.re, (double)z.im); }

/* Return the larger by real parts, then by imaginary parts; the first operand with a NaN, if any. */
static inline CYX_INLINE cyx_c64 cyx_maximum_c64(cyx_c64 a, cyx_c64 b) {
  const int unknown = (a.re != a.re) | (a.im != a.im);
  const int first = unknown | ((a.re > b.re) & (b.im == b.im)) | ((a.re == b.re) & (a.im >= b.im));
  return cyx_c64_of(first ? a.re : b.re, first ? a.im : b.im);
}

static inline CYX_INLINE cyx_c64 cyx_minimum_c64(cyx_c64 a, cyx_c64 b) {
  const int unknown = (a.re != a.re) | (a.im != a.im);
  const int first = unknown | ((a.re < b.re) & (b.im == b.im)) | ((a.re == b.re) & (a.im <= b.im));
  return cyx_c64_of(first ? a.re : b.re, first ? a.im : b.im);
}

static inline CYX_INLINE cyx_c128 cyx_maximum_c128(cyx_c128 a, cyx_c128 b) {
  const int unknown = (a.re != a.re) | (a.im != a.im);
  const int first = unknown | ((a.re > b.re) & (b.im == b.im)) | ((a.re == b.re) & (a.im >= b.im));
  return cyx_c128_of(first ? a.re : b.re, first ? a.im : b.im);
}

static inline CYX_INLINE cyx_c128 cyx_minimum_c128(cyx_c128 a, cyx_c128 b) {
  const int unknown = (a.re != a.re) | (a.im != a.im);
  const int first = unknown | ((a.re < b.re) & (b.im == b.im)) | ((a.re == b.re) & (a.im <= b.im));
  return cyx_c128_of(first ? a.re : b.re, first ? a.im : b.im);
}

/* Return a power of two that scales a number of this size so that its square and its double are in range. */
static inline CYX_INLINE double cyx_scale_f64(double most) {
  const double up = most < 0x1p-450 ? 0x1p600 : 1.0;
  return most > 0x1p500 ? 0x1p-600 : up;
}

static inline cyx_c128 cyx_sign_c128(cyx_c128 z) {
  const double a = __builtin_fabs(z.re), b = __builtin_fabs(z.im), scale = cyx_scale_f64(a < b ? b : a);
  const double x = z.re * scale, y = z.im * scale, r = cyx_hypot_f64(x, y);
  if (z.re != z.re || z.im != z.im) return cyx_c128_of(__builtin_nan(""), __builtin_nan(""));
  return r == 0 ? cyx_c128_of(0, 0) : cyx_c128_of(x / r, y / r);
}

/* Beyond this e^x may overflow while its product with a small sine does not; e^x 2^-64 is used there. */
#define CYX_HUGE_POWER 700.0

/* Return whether the plain product of a real function and a sine or cosine fails: it may overflow, or the angle is
 * too large for the fast reduction, or NaN.
 */
static inline CYX_INLINE int cyx_is_extreme_c128(cyx_c128 z) {
  return !((__builtin_fabs(z.re) <= CYX_HUGE_POWER) & (__builtin_fabs(z.im) <= 1e5));
}

static CYX_COLD cyx_c128 cyx_exponential_extreme_c128(cyx_c128 z) {
  const int huge = z.re > CYX_HUGE_POWER;
  const double r = cyx_exp_scaled_f64(z.re, 0.0, huge ? -64 : 0), up = huge ? 0x1p64 : 1.0;
  if (z.im == 0) return cyx_c128_of(r * up, z.im);
  return cyx_c128_of(r * cyx_cosine_any_f64(z.im) * up, r * cyx_sine_any_f64(z.im) * up);
}

static inline cyx_c128 cyx_exponential_c128(cyx_c128 z) {
  if (cyx_is_extreme_c128(z)) return cyx_exponential_extreme_c128(z);
  const double r = cyx_exponential_f64(z.re);
  return cyx_c128_of(r * cyx_cosine_f64(z.im), r * cyx_sine_f64(z.im));
}

static inline cyx_c128 cyx_exponential_minus_one_c128(cyx_c128 z) {
  if (z.re > CYX_HUGE_POWER) return cyx_exponential_c128(z);
  const double e = cyx_exponential_minus_one_f64(z.re), h = cyx_sine_any_f64(z.im * 0.5);
  if (z.im == 0) return cyx_c128_of(e, z.im);
  return cyx_c128_of(e * cyx_cosine_any_f64(z.im) - 2 * h * h, cyx_exponential_f64(z.re) * cyx_sine_any_f64(z.im));
}

/* log(x + low) + more ln(2) for normal x > 0, low below an ulp of it: what the sum loses goes into the mantissa. */
static inline CYX_INLINE double cyx_log_low_f64(double x, double low, double more) {
  const double e = cyx_log_exponent_f64(x);
  const uint64_t power = cyx_bits_f64((e > 1022.0 ? 1022.0 : e) + (0x1p52 + 1023.0));
  const double f = cyx_log_mantissa_f64(x) - 1.0 + low * cyx_from_bits_f64((2046u - (power & 0x7ffu)) << 52);
  return cyx_log_core_f64(f, e + more);
}

/* The sum x^2 + y^2 as s + *low. */
static inline CYX_INLINE double cyx_squares_f64(double x, double y, double *low) {
  const double p = x * x, q = y * y, s = p + q;
  const double big = p < q ? q : p, small = p < q ? p : q;
  *low = ((big - s) + small) + (cyx_product_error_f64(x, x, p) + cyx_product_error_f64(y, y, q));
  return s;
}

/* log|x + iy|: half the logarithm of the sum of squares in twice the precision, which near 1 is all in its low part. */
static inline CYX_INLINE double cyx_log_hypot_f64(double x, double y) {
  const double a = __builtin_fabs(x), b = __builtin_fabs(y), scale = cyx_scale_f64(a < b ? b : a);
  const double more = scale > 1.0 ? -1200.0 : 1200.0;
  double low;
  const double s = cyx_squares_f64(x * scale, y * scale, &low);
  const double r = 0.5 * cyx_log_low_f64(s, low, scale == 1.0 ? 0.0 : more);
  const double edge = s == 0 ? -CYX_INF_F64 : CYX_NAN_F64;
  return (a == CYX_INF_F64) | (b == CYX_INF_F64) ? CYX_INF_F64 : s > 0 ? r : edge;
}

static inline CYX_INLINE cyx_c128 cyx_log_c128(cyx_c128 z) {
  return cyx_c128_of(cyx_log_hypot_f64(z.re, z.im), cyx_atan2_f64(z.im, z.re));
}

/* |1 + z|^2 as 1 + (2 x + x^2 + y^2) near 0, where the terms may cancel, else as (1 + x)^2 + y^2. */
static inline CYX_INLINE cyx_c128 cyx_log_plus_one_c128(cyx_c128 z) {
  const double x = z.re, y = z.im, a = __builtin_fabs(x), b = __builtin_fabs(y);
  const double one = 1.0 + x, lost = a < 1.0 ? x - (one - 1.0) : 1.0 - (one - x);
  const double scale = cyx_scale_f64(a < b ? b : a), down = scale < 1.0 ? scale : 1.0;
  const double u = one * down, v = y * down;
  double low;
  double s = cyx_squares_f64(u, v, &low);
  low += 2.0 * u * (lost * down);
  const double p = x * x, q = y * y;
  const double h = 2.0 * x + q, h_part = h - 2.0 * x, h_low = (2.0 * x - (h - h_part)) + (q - h_part);
  const double w = h + p, w_part = w - h, w_low = (h - (w - w_part)) + (p - w_part);
  const double rest = h_low + w_low + (cyx_product_error_f64(x, x, p) + cyx_product_error_f64(y, y, q));
  const double t = w + rest, sum = 1.0 + t;
  const int near = (a < 0.25) & (b < 0.5);
  low = near ? ((1.0 - sum) + t) + ((w - t) + rest) : low;
  s = near ? sum : s;
  const double r = 0.5 * cyx_log_low_f64(s, low, down < 1.0 ? 1200.0 : 0.0);
  const double edge = s == 0 ? -CYX_INF_F64 : CYX_NAN_F64;
  const double re = (a == CYX_INF_F64) | (b == CYX_INF_F64) ? CYX_INF_F64 : s > 0 ? r : edge;
  return cyx_c128_of(re, cyx_atan2_f64(y, one));
}

static inline cyx_c128 cyx_sqrt_c128(cyx_c128 z) {
  const double inf = __builtin_inf();
  if (z.re == 0 && z.im == 0) return cyx_c128_of(0, z.im);
  if (__builtin_fabs(z.im) == inf) return cyx_c128_of(inf, z.im);
  if (z.re == inf) return cyx_c128_of(inf, z.im == z.im ? __builtin_copysign(0.0, z.im) : z.im);
  if (z.re == -inf) return cyx_c128_of(z.im == z.im ? 0 : z.im, __builtin_copysign(inf, z.im));
  const double down = __builtin_fabs(z.re) > 0x1p1020 || __builtin_fabs(z.im) > 0x1p1020 ? 0.25 : 1.0;
  const double up = __builtin_fabs(z.re) < 0x1p-1000 && __builtin_fabs(z.im) < 0x1p-1000 ? 0x1p54 : 1.0;
  const double x = z.re * down * up, y = z.im * down * up, back = (down < 1 ? 2.0 : 1.0) * (up > 1 ? 0x1p-27 : 1.0);
  const double t = __builtin_sqrt((__builtin_fabs(x) + cyx_hypot_f64(x, y)) * 0.5);
  return x >= 0 ? cyx_c128_of(t * back, y / (2 * t) * back)
                : cyx_c128_of(__builtin_fabs(y) / (2 * t) * back, __builtin_copysign(t, y) * back);
}

static inline cyx_c128 cyx_rsqrt_c128(cyx_c128 z) { return cyx_divide_c128(cyx_c128_of(1, 0), cyx_sqrt_c128(z)); }

/* The cube root of the magnitude, at a third of the angle. */
static inline cyx_c128 cyx_cbrt_c128(cyx_c128 z) {
  const double a = __builtin_fabs(z.re), b = __builtin_fabs(z.im), scale = cyx_scale_f64(a < b ? b : a);
  const double up = scale > 1.0 ? 0x1p-200 : 1.0, back = scale < 1.0 ? 0x1p200 : up;
  const double r = cyx_cbrt_f64(cyx_hypot_f64(z.re * scale, z.im * scale)) * back;
  const double angle = cyx_atan2_f64(z.im, z.re) / 3.0;
  return cyx_c128_of(r * cyx_cosine_f64(angle), angle == 0 ? angle : r * cyx_sine_f64(angle));
}

static CYX_COLD cyx_c128 cyx_sinh_extreme_c128(cyx_c128 z) {
  const double a = __builtin_fabs(z.re);
  if (z.im == 0) return cyx_c128_of(cyx_sinh_f64(z.re), z.im);
  if (!(__builtin_fabs(z.im) < CYX_INF_F64)) {
    return cyx_c128_of(z.re == 0 ? z.re : a == CYX_INF_F64 ? a : CYX_NAN_F64, CYX_NAN_F64);
  }
  const double c = cyx_cosine_any_f64(z.im), s = cyx_sine_any_f64(z.im);
  if (a <= CYX_HUGE_POWER) return cyx_c128_of(cyx_sinh_f64(z.re) * c, cyx_cosh_f64(z.re) * s);
  const double half = cyx_exp_scaled_f64(a, 0.0, -65);
  return cyx_c128_of(__builtin_copysign(half, z.re) * c * 0x1p64, half * s * 0x1p64);
}

static CYX_COLD cyx_c128 cyx_cosh_extreme_c128(cyx_c128 z) {
  const double a = __builtin_fabs(z.re);
  if (z.im == 0) return cyx_c128_of(cyx_cosh_f64(z.re), z.re < 0 ? -z.im : z.im);
  if (!(__builtin_fabs(z.im) < CYX_INF_F64)) {
    return cyx_c128_of(a == CYX_INF_F64 ? a : CYX_NAN_F64, z.re == 0 ? 0.0 : CYX_NAN_F64);
  }
  const double c = cyx_cosine_any_f64(z.im), s = cyx_sine_any_f64(z.im);
  if (a <= CYX_HUGE_POWER) return cyx_c128_of(cyx_cosh_f64(z.re) * c, cyx_sinh_f64(z.re) * s);
  const double half = cyx_exp_scaled_f64(a, 0.0, -65);
  return cyx_c128_of(half * c * 0x1p64, __builtin_copysign(half, z.re) * s * 0x1p64);
}

static inline cyx_c128 cyx_sinh_c128(cyx_c128 z) {
  if (cyx_is_extreme_c128(z)) return cyx_sinh_extreme_c128(z);
  return cyx_c128_of(cyx_sinh_f64(z.re) * cyx_cosine_f64(z.im), cyx_cosh_f64(z.re) * cyx_sine_f64(z.im));
}

static inline cyx_c128 cyx_cosh_c128(cyx_c128 z) {
  if (cyx_is_extreme_c128(z)) return cyx_cosh_extreme_c128(z);
  return cyx_c128_of(cyx_cosh_f64(z.re) * cyx_cosine_f64(z.im), cyx_sinh_f64(z.re) * cyx_sine_f64(z.im));
}

/* sin(x + iy) = sin(x) cosh(y) + i cos(x) sinh(y): the parts of sinh(y + ix), exchanged. */
static inline cyx_c128 cyx_sine_c128(cyx_c128 z) {
  const cyx_c128 r = cyx_sinh_c128(cyx_c128_of(z.im, z.re));
  return cyx_c128_of(r.im, r.re);
}

/* The conjugate of cosh(y + ix); with a NaN, the sign of zero is that of glibc. */
static inline cyx_c128 cyx_cosine_c128(cyx_c128 z) {
  const cyx_c128 r = cyx_cosh_c128(cyx_c128_of(z.im, z.re));
  return cyx_c128_of(r.re, r.re == r.re ? cyx_minus_c128(r.im) : r.im);
}

static CYX_COLD cyx_c128 cyx_tanh_extreme_c128(cyx_c128 z) {
  const double a = __builtin_fabs(z.re), one = __builtin_copysign(1.0, z.re);
  if (z.im == 0) return cyx_c128_of(cyx_tanh_f64(z.re), z.im);
  if (!(__builtin_fabs(z.im) < CYX_INF_F64)) {
    if (a == CYX_INF_F64) return cyx_c128_of(one, __builtin_copysign(0.0, z.im));
    return cyx_c128_of(z.re == 0 ? z.re : CYX_NAN_F64, CYX_NAN_F64);
  }
  const double turned = 4.0 * cyx_sine_any_f64(z.im) * cyx_cosine_any_f64(z.im);
  return cyx_c128_of(a == a ? one : a, turned * cyx_exponential_f64(-2.0 * a));
}

static inline cyx_c128 cyx_tanh_c128(cyx_c128 z) {
  if (!((__builtin_fabs(z.re) <= 20.0) & (__builtin_fabs(z.im) < CYX_INF_F64))) return cyx_tanh_extreme_c128(z);
  const double t = cyx_sine_any_f64(z.im) / cyx_cosine_any_f64(z.im), s = cyx_sinh_f64(z.re), c = cyx_cosh_f64(z.re);
  const double beta = 1 + t * t, d = 1 + beta * s * s;
  return cyx_c128_of(z.re == 0 ? z.re : beta * c * s / d, z.im == 0 ? z.im : t / d);
}

static inline cyx_c128 cyx_tan_c128(cyx_c128 z) {
  const cyx_c128 r = cyx_tanh_c128(cyx_c128_of(-z.im, z.re));
  return cyx_c128_of(r.im, -r.re);
}

/* Computed from the exponential that does not overflow. */
static inline cyx_c128 cyx_logistic_c128(cyx_c128 z) {
  const int falls = z.re < 0;
  const cyx_c128 e = cyx_exponential_c128(falls ? z : cyx_negate_c128(z));
  return cyx_divide_c128(falls ? e : cyx_c128_of(1, 0), cyx_c128_of(1 + e.re, e.im));
}

static inline cyx_c128 cyx_power_c128(cyx_c128 a, cyx_c128 b) {
  const double nan = __builtin_nan("");
  if (b.re == 0 && b.im == 0) return cyx_c128_of(1, 0);
  if (a.re == 0 && a.im == 0) return b.re > 0 ? cyx_c128_of(0, 0) : cyx_c128_of(nan, nan);
  return cyx_exponential_c128(cyx_multiply_c128(b, cyx_log_c128(a)));
}

/* -i log((x + iy) / sqrt(x^2 + y^2)), which does not change with the scale of both. */
static inline cyx_c128 cyx_atan2_c128(cyx_c128 y, cyx_c128 x) {
  double most = __builtin_fabs(x.re);
  most = __builtin_fabs(x.im) > most ? __builtin_fabs(x.im) : most;
  most = __builtin_fabs(y.re) > most ? __builtin_fabs(y.re) : most;
  const double scale = cyx_scale_f64(__builtin_fabs(y.im) > most ? __builtin_fabs(y.im) : most);
  const cyx_c128 u = cyx_c128_of(x.re * scale, x.im * scale), v = cyx_c128_of(y.re * scale, y.im * scale);
  const cyx_c128 size = cyx_sqrt_c128(cyx_add_c128(cyx_multiply_c128(u, u), cyx_multiply_c128(v, v)));
  const cyx_c128 made = cyx_log_c128(cyx_divide_c128(cyx_c128_of(u.re - v.im, u.im + v.re), size));
  return cyx_c128_of(made.im, -made.re);
}

/* Of x, y >= 0, with a half the sum of the distances of x + iy from -1 and 1: sqrt((a - x) (a + x)), whose angle with
 * x is the real part of asin and acos, and acosh(a), their imaginary part. T. E. Hull, T. F. Fairgrieve, P. T. P.
 * Tang, "Implementing the complex arcsine and arccosine functions using exception handling", 1997: nothing cancels.
 * Huge numbers are scaled by 2^-100 for the logarithm, and 1 beside them does not count.
 */
static inline CYX_INLINE cyx_c128 cyx_arc_parts_c128(double x, double y) {
  const int huge = (x > 0x1p500) | (y > 0x1p500), flat = (y < 0x1p-450) & (x < 1.0);
  const double scale = huge ? 0x1p-100 : 1.0, p = x * scale, q = y * scale;
  const double r = cyx_hypot_f64(p + 1.0, q), s = cyx_hypot_f64(p - 1.0, q), a = 0.5 * (r + s);
  const double yy = q * q, left = yy / (r + (p + 1.0));
  const double right = p < 1.0 ? yy / (s + (1.0 - p)) : s + (p - 1.0);
  const double above = a > 1.5 ? 2.0 * (a - 1.0) : left + right;
  const double root = __builtin_sqrt(above * (0.5 * (a + 1.0))), beside = q / __builtin_sqrt((1.0 - p) * (1.0 + p));
  const double w = huge ? 2.0 * a : 0.5 * above + root;
  const double size = cyx_log_plus_one_f64(flat ? beside : w) + (huge ? 0x1.1542457337d43p+6 : 0.0);
  const double ahead = 0.5 * (a + p);
  const double inside = __builtin_sqrt(ahead * (left + (s + (1.0 - p))));
  const double outside = y * __builtin_sqrt(ahead / (r + (p + 1.0)) + ahead / (s + (p - 1.0)));
  const double near = x > 1.0 ? outside : inside;
  return cyx_c128_of(huge ? y : near, size);
}

static inline CYX_INLINE cyx_c128 cyx_asin_c128(cyx_c128 z) {
  const cyx_c128 r = cyx_arc_parts_c128(__builtin_fabs(z.re), __builtin_fabs(z.im));
  return cyx_c128_of(z.re == 0 ? z.re : cyx_atan2_f64(z.re, r.re), __builtin_copysign(r.im, z.im));
}

static inline CYX_INLINE cyx_c128 cyx_acos_c128(cyx_c128 z) {
  const cyx_c128 r = cyx_arc_parts_c128(__builtin_fabs(z.re), __builtin_fabs(z.im));
  const double angle = z.re == 0 ? 0x1.921fb54442d18p+0 : cyx_atan2_f64(r.re, z.re);
  return cyx_c128_of(angle, cyx_minus_c128(__builtin_copysign(r.im, z.im)));
}

static inline CYX_INLINE cyx_c128 cyx_asinh_c128(cyx_c128 z) {
  const cyx_c128 r = cyx_asin_c128(cyx_c128_of(z.im, z.re));
  return cyx_c128_of(r.im, r.re);
}

static inline CYX_INLINE cyx_c128 cyx_acosh_c128(cyx_c128 z) {
  const cyx_c128 r = cyx_acos_c128(z);
  return cyx_c128_of(__builtin_fabs(r.im), z.im == z.im ? __builtin_copysign(r.re, z.im) : r.re);
}

/* log1p(4 x / ((1 - x)^2 + y^2)) / 4, and half the angle of (1 - x) (1 + x) - y^2 + 2 i y; far from 0 the inverse of z
 * and a quarter turn; beside the poles, where y^2 underflows, (log(2) - log(y)) / 2.
 */
static inline CYX_INLINE cyx_c128 cyx_atanh_c128(cyx_c128 z) {
  const double x = __builtin_fabs(z.re), y = __builtin_fabs(z.im), most = x < y ? y : x;
  const int huge = (x > 0x1p500) | (y > 0x1p500), pole = (x == 1.0) & (y < 0x1p-400);
  const double ratio = 4.0 * x / ((1.0 - x) * (1.0 - x) + y * y);
  const double w = cyx_log_plus_one_f64(pole ? 0x1p-99 / y : ratio);
  const double u = x / most, v = y / most, far = u / (u * u + v * v) / most;
  const double near = pole ? 0.5 * (w + 0x1.1542457337d43p+6) : 0.25 * w;
  const double along = (x == CYX_INF_F64) | (y == CYX_INF_F64) ? 0.0 : huge ? far : near;
  const double angle = 0.5 * cyx_atan2_f64(2.0 * y, (1.0 - x) * (1.0 + x) - y * y);
  const double turn = (x == x) | (y == CYX_INF_F64) ? 0x1.921fb54442d18p+0 : CYX_NAN_F64;
  const double im = y == y ? (huge ? turn : angle) : y;
  return cyx_c128_of(x == 0 ? z.re : __builtin_copysign(along, z.re), __builtin_copysign(im, z.im));
}

#pragma GCC diagnostic pop

#endif
