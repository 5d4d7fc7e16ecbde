/* Inverse circular and hyperbolic functions, roots and remainders; the conventions are those of math.h.
 *
 * The remainder is the one function with branches, and does not vectorise.
 *
 * Internal: generated code pastes blocks of it; it may change with every version.
 */
#ifndef CYXLA_MATH_INVERSE_H
#define CYXLA_MATH_INVERSE_H

#include "math.h"

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wpedantic"

/* ---- inverse circular functions ---- */

/* atan(y / x) for y, x >= 0, around the nearest of 0, pi / 4 and pi / 2. */
static inline CYX_INLINE float cyx_atan_ratio_f32(float y, float x) {
  uint8_t first = y < 0x1.a8279ap-2f * x, second = y < 0x1.3504f4p+1f * x;
  float above = second ? y - x : -x;
  float below = second ? y + x : y;
  float q = (first ? y : above) / (first ? x : below);
  float high = second ? 0x1.921fb6p-1f : 0x1.921fb6p+0f;
  float low = second ? -0x1.777a5cp-26f : -0x1.777a5cp-25f;
  float t = q * q;
  float p = CYX_POLY5(CYX_FMA_F32, t, -0x1.55554ap-2f, 0x1.9991ep-3f, -0x1.23b968p-3f, 0x1.b22038p-4f, -0x1.f2cde4p-5f);
  float r = q + CYX_FMA_F32(q * t, p, first ? 0.0f : low);
  return (first ? 0.0f : high) + r;
}

static inline CYX_INLINE float cyx_atan_f32(float x) {
  return __builtin_copysignf(cyx_atan_ratio_f32(__builtin_fabsf(x), 1.0f), x);
}

/* Both infinite count as 1 and 1, both zero as 0 and 1; huge and tiny ones are scaled, for the sum and the products.
 * Beside a number that is nothing to y the angle is pi / 2, and is not turned, which would round it up.
 */
static inline CYX_INLINE float cyx_atan2_f32(float y, float x) {
  float a = __builtin_fabsf(y), b = __builtin_fabsf(x);
  float most = a < b ? b : a;
  float scale = most < 0x1p-64f ? 0x1p60f : 1.0f;
  scale = most > 0x1p125f ? 0.125f : scale;
  uint8_t infinite = (a == CYX_INF_F32) & (b == CYX_INF_F32), zero = (a == 0) & (b == 0);
  float r = cyx_atan_ratio_f32(infinite ? 1.0f : a * scale, infinite | zero ? 1.0f : b * scale);
  float turned = 0x1.921fb6p+1f - (r + 0x1.777a5cp-24f);
  float side = (a > b) & (b <= a * 0x1p-25f) ? b : x;
  return __builtin_copysignf(cyx_bits_f32(side) >> 31 ? turned : r, y);
}

/* asin(v) = v + *tail of a v <= 1/2: y itself, or v = sqrt((1 - y) / 2), with which asin(y) = pi / 2 - 2 asin(v). */
static inline CYX_INLINE float cyx_asin_part_f32(float y, float *tail) {
  float z = 0.5f * (1.0f - y);
  float t = y > 0.5f ? z : y * y;
  float v = y > 0.5f ? __builtin_sqrtf(z) : y;
  float p = CYX_POLY5(CYX_FMA_F32, t, 0x1.5555c8p-3f, 0x1.330204p-4f, 0x1.747bb8p-5f, 0x1.8c3e5p-6f, 0x1.595c6p-5f);
  *tail = v * t * p;
  return v;
}

static inline CYX_INLINE float cyx_asin_f32(float x) {
  float tail, y = __builtin_fabsf(x);
  float v = cyx_asin_part_f32(y, &tail);
  float high = 0x1.921fb6p+0f - 2.0f * v;
  float lost = (0x1.921fb6p+0f - high) - 2.0f * v;
  high += lost - (2.0f * tail + 0x1.777a5cp-25f);
  return __builtin_copysignf(y > 0.5f ? high : v + tail, x);
}

static inline CYX_INLINE float cyx_acos_f32(float x) {
  float tail, y = __builtin_fabsf(x);
  float v = cyx_asin_part_f32(y, &tail);
  float middle = 0x1.921fb6p+0f - (__builtin_copysignf(v + tail, x) + 0x1.777a5cp-25f);
  float left = 0x1.921fb6p+1f - (2.0f * (v + tail) + 0x1.777a5cp-24f);
  float outer = x < 0 ? left : 2.0f * (v + tail);
  return y > 0.5f ? outer : middle;
}

/* atan(y / x) for y, x >= 0, around the nearest of 0, pi / 4 and pi / 2. */
static inline CYX_INLINE double cyx_atan_ratio_f64(double y, double x) {
  uint8_t first = y < 0x1.a827999fcef32p-2 * x, second = y < 0x1.3504f333f9de6p+1 * x;
  double above = second ? y - x : -x;
  double below = second ? y + x : y;
  double q = (first ? y : above) / (first ? x : below);
  double high = second ? 0x1.921fb54442d18p-1 : 0x1.921fb54442d18p+0;
  double low = second ? 0x1.1a62633145c07p-55 : 0x1.1a62633145c07p-54;
  double t = q * q;
  double p = CYX_POLY11(CYX_FMA_F64, t, -0x1.555555555553cp-2, 0x1.999999999575fp-3, -0x1.24924922a76b7p-3,
      0x1.c71c70e3df914p-4, -0x1.745cf8a01076bp-4, 0x1.3b111509cc2a3p-4, -0x1.10eb8afe09b64p-4,
      0x1.df0cc32df0f5ap-5, -0x1.9cc77a997c7p-5, 0x1.37b95290a1eabp-5, -0x1.252cccc2003f3p-6);
  double r = q + CYX_FMA_F64(q * t, p, first ? 0.0 : low);
  return (first ? 0.0 : high) + r;
}

static inline CYX_INLINE double cyx_atan_f64(double x) {
  return __builtin_copysign(cyx_atan_ratio_f64(__builtin_fabs(x), 1.0), x);
}

/* Both infinite count as 1 and 1, both zero as 0 and 1; huge and tiny ones are scaled, for the sum and the products.
 * Beside a number that is nothing to y the angle is pi / 2, and is not turned, which would round it up.
 */
static inline CYX_INLINE double cyx_atan2_f64(double y, double x) {
  double a = __builtin_fabs(y), b = __builtin_fabs(x);
  double most = a < b ? b : a;
  double scale = most < 0x1p-900 ? 0x1p120 : 1.0;
  scale = most > 0x1p1021 ? 0.125 : scale;
  uint8_t infinite = (a == CYX_INF_F64) & (b == CYX_INF_F64), zero = (a == 0) & (b == 0);
  double r = cyx_atan_ratio_f64(infinite ? 1.0 : a * scale, infinite | zero ? 1.0 : b * scale);
  double turned = 0x1.921fb54442d18p+1 - (r - 0x1.1a62633145c07p-53);
  double side = (a > b) & (b <= a * 0x1p-54) ? b : x;
  return __builtin_copysign(cyx_bits_f64(side) >> 63 ? turned : r, y);
}

/* asin(v) = v + *tail of a v <= 1/2: y itself, or v = sqrt((1 - y) / 2), with which asin(y) = pi / 2 - 2 asin(v). */
static inline CYX_INLINE double cyx_asin_part_f64(double y, double *tail) {
  double z = 0.5 * (1.0 - y);
  double t = y > 0.5 ? z : y * y;
  double v = y > 0.5 ? __builtin_sqrt(z) : y;
  double p = CYX_POLY12(CYX_FMA_F64, t, 0x1.555555555539p-3, 0x1.333333336e794p-4, 0x1.6db6db427e4cp-5,
      0x1.f1c72c37e12cap-6, 0x1.6e89f457e49d4p-6, 0x1.1c6be058a28dep-6, 0x1.c6fdda2462bc9p-7, 0x1.8ec26209ecb78p-7,
      0x1.abd46d8c71537p-8, 0x1.3ff149475a4adp-6, -0x1.09cdfb18d8512p-6, 0x1.056baffe4986dp-5);
  *tail = v * t * p;
  return v;
}

static inline CYX_INLINE double cyx_asin_f64(double x) {
  double tail, y = __builtin_fabs(x);
  double v = cyx_asin_part_f64(y, &tail);
  double high = 0x1.921fb54442d18p+0 - 2.0 * v;
  double lost = (0x1.921fb54442d18p+0 - high) - 2.0 * v;
  high += lost - (2.0 * tail - 0x1.1a62633145c07p-54);
  return __builtin_copysign(y > 0.5 ? high : v + tail, x);
}

static inline CYX_INLINE double cyx_acos_f64(double x) {
  double tail, y = __builtin_fabs(x);
  double v = cyx_asin_part_f64(y, &tail);
  double middle = 0x1.921fb54442d18p+0 - (__builtin_copysign(v + tail, x) - 0x1.1a62633145c07p-54);
  double left = 0x1.921fb54442d18p+1 - (2.0 * (v + tail) - 0x1.1a62633145c07p-53);
  double outer = x < 0 ? left : 2.0 * (v + tail);
  return y > 0.5 ? outer : middle;
}

/* ---- inverse hyperbolic functions; those of f32 work in double ---- */

/* log1p(y + y^2 / (1 + sqrt(1 + y^2))), and log(2 y) for large y. */
static inline CYX_INLINE double cyx_asinh_f64(double x) {
  double y = __builtin_fabs(x);
  uint8_t big = y > 0x1p60;
  double t = y * y;
  double q = t / (1.0 + __builtin_sqrt(1.0 + t));
  double w = big ? y : y + q;
  double low = big ? 0.0 : (y - w) + q;
  return __builtin_copysign(cyx_log_plus_one_low_f64(w, low) + (big ? 0x1.62e42fefa39efp-1 : 0.0), x);
}

/* log1p(t + sqrt(2 t + t^2)) with t = x - 1, and log(2 x) for large x. */
static inline CYX_INLINE double cyx_acosh_f64(double x) {
  uint8_t big = x > 0x1p60;
  double t = x - 1.0;
  double s = __builtin_sqrt(CYX_FMA_F64(t, t, 2.0 * t));
  double w = big ? x : s + t;
  double low = big ? 0.0 : (s - w) + t;
  double r = cyx_log_plus_one_low_f64(w, low) + (big ? 0x1.62e42fefa39efp-1 : 0.0);
  return x < 1.0 ? CYX_NAN_F64 : r;
}

/* log1p(q) / 2 with q = 2 y / (1 - y), whose rounding error is carried along. */
static inline CYX_INLINE double cyx_atanh_f64(double x) {
  double y = __builtin_fabs(x);
  double d = 1.0 - y;
  double d_low = (1.0 - d) - y;
  double q = 2.0 * y / d;
  double p = q * d;
  double lost = ((2.0 * y - p) - cyx_product_error_f64(q, d, p)) - q * d_low;
  double r = 0.5 * cyx_log_plus_one_low_f64(q, lost * (1.0 + 0.5 * q));
  return y > 1.0 ? CYX_NAN_F64 : __builtin_copysign(r, x);
}

static inline CYX_INLINE float cyx_asinh_f32(float x) { return (float)cyx_asinh_f64((double)x); }

static inline CYX_INLINE float cyx_acosh_f32(float x) { return (float)cyx_acosh_f64((double)x); }

static inline CYX_INLINE float cyx_atanh_f32(float x) { return (float)cyx_atanh_f64((double)x); }

/* ---- cube root, hypotenuse, remainder ---- */

/* A third of the exponent bits is 4 % off; each of Halley's steps triples the digits. Scaled, since cubes appear. */
static inline CYX_INLINE float cyx_cbrt_f32(float x) {
  float a = __builtin_fabsf(x);
  uint8_t small = a < 0x1p-100f, large = a > 0x1p100f;
  float b = small ? a * 0x1p48f : a;
  b = large ? a * 0x1p-48f : b;
  float y = cyx_from_bits_f32(cyx_bits_f32(b) / 3u + 0x2a5137a0u);
  float c = y * y * y;
  y -= y * ((c - b) / (2.0f * c + b));
  float t = y * y;
  float d = CYX_FMA_F32(t, y, -b);
  y -= y * (d / CYX_FMA_F32(2.0f * t, y, b));
  y *= small ? 0x1p-16f : 1.0f;
  y *= large ? 0x1p16f : 1.0f;
  return (a > 0) & (a < CYX_INF_F32) ? __builtin_copysignf(y, x) : x;
}

static inline CYX_INLINE double cyx_cbrt_f64(double x) {
  double a = __builtin_fabs(x);
  uint8_t small = a < 0x1p-900, large = a > 0x1p900;
  double b = small ? a * 0x1p300 : a;
  b = large ? a * 0x1p-300 : b;
  uint64_t third = (cyx_bits_f64(b) >> 32) * 0xaaaaaaabu >> 33;
  double y = cyx_from_bits_f64((third + 0x2a9f7893u) << 32);
  double c = y * y * y;
  y -= y * ((c - b) / (2.0 * c + b));
  c = y * y * y;
  y -= y * ((c - b) / (2.0 * c + b));
  double t = y * y;
  double d = CYX_FMA_F64(t, y, -b) + y * cyx_product_error_f64(y, y, t);
  y -= y * (d / CYX_FMA_F64(2.0 * t, y, b));
  y *= small ? 0x1p-100 : 1.0;
  y *= large ? 0x1p100 : 1.0;
  return (a > 0) & (a < CYX_INF_F64) ? __builtin_copysign(y, x) : x;
}

static inline CYX_INLINE float cyx_hypot_f32(float x, float y) {
  double r = __builtin_sqrt((double)x * (double)x + (double)y * (double)y);
  uint8_t infinite = (__builtin_fabsf(x) == CYX_INF_F32) | (__builtin_fabsf(y) == CYX_INF_F32);
  return infinite ? CYX_INF_F32 : (float)r;
}

/* Large and small arguments are scaled before they are squared. */
static inline CYX_INLINE double cyx_hypot_f64(double x, double y) {
  double a = __builtin_fabs(x), b = __builtin_fabs(y);
  double most = a < b ? b : a;
  double scale = most < 0x1p-500 ? 0x1p600 : 1.0;
  scale = most > 0x1p500 ? 0x1p-600 : scale;
  double back = most < 0x1p-500 ? 0x1p-600 : 1.0;
  back = most > 0x1p500 ? 0x1p600 : back;
  double u = x * scale, v = y * scale;
  double r = __builtin_sqrt(CYX_FMA_F64(u, u, v * v)) * back;
  return (a == CYX_INF_F64) | (b == CYX_INF_F64) ? CYX_INF_F64 : r;
}

/* Long division of the mantissas, 11 bits at a time. */
static CYX_COLD double cyx_remainder_long_f64(double x, double y) {
  double a = __builtin_fabs(x), b = __builtin_fabs(y);
  if (!(a < CYX_INF_F64) || !(b > 0)) return CYX_NAN_F64;
  if (a < b) return x;
  uint64_t u = cyx_bits_f64(a), v = cyx_bits_f64(b), implicit = (uint64_t)1 << 52;
  uint32_t e = (uint32_t)(v >> 52), shift = (uint32_t)(u >> 52);
  uint64_t m = e ? (v & (implicit - 1)) | implicit : v;
  uint64_t r = (shift ? (u & (implicit - 1)) | implicit : u) % m;
  e += !e;
  shift += !shift;
  for (shift -= e; shift > 0;) {
    uint32_t step = shift < 11 ? shift : 11;
    r = (r << step) % m;
    shift -= step;
  }
  double unit = cyx_from_bits_f64((uint64_t)(e > 52 ? e - 52 : e) << 52) * (e > 52 ? 1.0 : 0x1p-52);
  return __builtin_copysign((double)(int64_t)r * unit, x);
}

/* C's fmod, exact. With |x / y| < 2^29 the product q * y is exact in double; a quotient rounded up is one too many. */
static inline float cyx_remainder_f32(float x, float y) {
  double a = __builtin_fabs((double)x), b = __builtin_fabs((double)y);
  if (a < b) return x;
  if (!(a < 0x1p29 * b)) return (float)cyx_remainder_long_f64((double)x, (double)y);
  double r = a - cyx_truncate_f64(a / b) * b;
  return __builtin_copysignf((float)(r < 0 ? r + b : r), x);
}

/* The same with an exact x - q y, which needs FMA. */
static inline double cyx_remainder_f64(double x, double y) {
#ifdef __FMA__
  double a = __builtin_fabs(x), b = __builtin_fabs(y);
  if (a < b) return x;
  if (!(a < 0x1p52 * b)) return cyx_remainder_long_f64(x, y);
  double r = __builtin_fma(-cyx_truncate_f64(a / b), b, a);
  return __builtin_copysign(r < 0 ? r + b : r, x);
#else
  return cyx_remainder_long_f64(x, y);
#endif
}

#pragma GCC diagnostic pop

#endif
