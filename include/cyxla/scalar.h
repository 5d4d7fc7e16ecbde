/* Scalar operations that C does not have: bit casts, narrow floats, saturation, NaN-aware order, integer power.
 *
 * A sequence of blocks separated by blank lines, one definition each; generated code pastes the blocks it names and what they
 * need. Functions for vector loops have no branches. In registers, f16, bf16 and the f8 family are `float` with an already
 * rounded value. Needs abi.h for the integer types.
 *
 * Internal: generated code pastes blocks of it; it may change with every version.
 */
#ifndef CYXLA_SCALAR_H
#define CYXLA_SCALAR_H

#include "abi.h"

static inline uint32_t cyx_bits_f32(float x) { uint32_t u; __builtin_memcpy(&u, &x, 4); return u; }

static inline float cyx_from_bits_f32(uint32_t u) { float x; __builtin_memcpy(&x, &u, 4); return x; }

static inline uint64_t cyx_bits_f64(double x) { uint64_t u; __builtin_memcpy(&u, &x, 8); return u; }

static inline double cyx_from_bits_f64(uint64_t u) { double x; __builtin_memcpy(&x, &u, 8); return x; }

/* |x|, hidden from gcc, which omits it where it holds that x is not negative, such as a product of two equal factors:
   NaN may have any sign there. */
static inline __attribute__((always_inline)) float cyx_magnitude_f32(float x) {
  return cyx_from_bits_f32(cyx_bits_f32(x) & 0x7fffffff);
}

static inline __attribute__((always_inline)) double cyx_magnitude_f64(double x) {
  return cyx_from_bits_f64(cyx_bits_f64(x) & ~(1ull << 63));
}

/* Convert to f64. Without the instruction for vectors, the halves become mantissas of 2^84 and 2^52, which are then
   subtracted: exact but for the last addition, which rounds as the conversion does. */
static inline __attribute__((always_inline)) double cyx_f64_of_s64(int64_t x) {
#if defined(__AVX512DQ__) || !defined(__AVX2__)
  return (double)x;
#else
  const uint64_t low = ((uint64_t)x & 0xffffffff) | 0x4330000000000000;
  const uint64_t high = ((uint64_t)x >> 32 ^ 0x80000000) | 0x4530000000000000;
  return (cyx_from_bits_f64(high) - 0x1.00000801p84) + cyx_from_bits_f64(low);
#endif
}

/* Round to odd, so that rounding again to fewer bits is correct. */
static inline float cyx_odd_f32_f64(double x) {
  const float r = (float)x;
  const uint32_t u = cyx_bits_f32(r);
  const uint32_t away = __builtin_fabs((double)r) > __builtin_fabs(x);
  const uint32_t fix = ((double)r != x) & (x == x) & ~u & 1;
  return cyx_from_bits_f32(u + (fix ? (away ? (uint32_t)-1 : 1u) : 0u));
}

static inline double cyx_odd_f64_u64(uint64_t x) {
  const uint64_t cut = (x & ~(uint64_t)0x7ff) | ((x & 0x7ff) != 0 ? (uint64_t)0x800 : 0);
  return (double)(x >> 53 ? cut : x);
}

static inline double cyx_odd_f64_s64(int64_t x) {
  const uint64_t sign = (uint64_t)(x >> 63);
  const double r = cyx_odd_f64_u64(((uint64_t)x ^ sign) - sign);
  return x < 0 ? -r : r;
}

static inline float cyx_f32_from_bf16(uint16_t h) { return cyx_from_bits_f32((uint32_t)h << 16); }

static inline uint16_t cyx_bf16_from_f32(float x) {
  const uint32_t u = cyx_bits_f32(x);
  const uint32_t rounded = (u + 0x7fff + ((u >> 16) & 1)) >> 16;
  return (uint16_t)((u & 0x7fffffff) > 0x7f800000 ? (u >> 16) | 0x40 : rounded);
}

/* Convert a number that is a bf16 already. */
static inline uint16_t cyx_bf16_of_rounded(float x) { return (uint16_t)(cyx_bits_f32(x) >> 16); }

static inline float cyx_round_bf16(float x) {
  const uint32_t u = cyx_bits_f32(x), rounded = u + 0x7fff + ((u >> 16) & 1);
  return cyx_from_bits_f32((x != x ? u | 0x00400000 : rounded) & 0xffff0000);
}

static inline float cyx_f32_from_f16(uint16_t h) {
  const uint32_t u = (uint32_t)(int32_t)(int16_t)h << 13 & 0x8fffe000;
  const uint32_t finite = cyx_bits_f32(cyx_from_bits_f32(u) * 0x1p112f);
  return cyx_from_bits_f32(finite | ((u & 0x7fffffff) >= 0x0f800000 ? 0x7f800000u : 0u));
}

static inline uint16_t cyx_f16_from_f32(float x) {
  const uint32_t u = cyx_bits_f32(x), sign = (u >> 16) & 0x8000, mag = u & 0x7fffffff;
  const uint32_t normal = (mag - 0x38000000 + 0xfff + ((mag >> 13) & 1)) >> 13;
  const uint32_t tiny = cyx_bits_f32(cyx_from_bits_f32(mag) + 0.5f) - 0x3f000000;
  const uint32_t finite = mag < 0x38800000 ? tiny : normal;
  const uint32_t large = mag > 0x7f800000 ? 0x7e00 | ((mag >> 13) & 0x1ff) : 0x7c00;
  return (uint16_t)(sign | (mag >= 0x47800000 ? large : finite));
}

/* Convert a number that is a f16 already: no rounding is needed, and infinity needs no special case. */
static inline uint16_t cyx_f16_of_rounded(float x) {
  const uint32_t u = cyx_bits_f32(x * 0x1p-112f);
  return (uint16_t)((u >> 13 & 0x7fff) | (u >> 16 & 0x8000));
}

/* Round to f16 by adding, and subtracting again, 2^13 times the power of two in |x|. */
static inline float cyx_round_f16(float x) {
  const uint32_t u = cyx_bits_f32(x), mag = u & 0x7fffffff;
  uint32_t unit = mag & 0x7f800000;
  unit = unit > 0x38800000 ? unit : 0x38800000;
  unit = unit < 0x47800000 ? unit : 0x47800000;
  const float lift = cyx_from_bits_f32(unit + 0x06800000);
  const float r = (cyx_from_bits_f32(mag) + lift) - lift;
  const uint32_t v = cyx_bits_f32(r >= 0x1p16f ? __builtin_inff() : r);
  return cyx_from_bits_f32((v & 0x7fffe000) | (u & 0x80000000));
}

/* Narrow floats of `m` mantissa bits and exponent bias `bias`, decoded from their magnitude code. */
static inline float cyx_small_decode(uint32_t mag, int m, int bias) {
  return cyx_from_bits_f32(mag << (23 - m)) * cyx_from_bits_f32((uint32_t)(254 - bias) << 23);
}

/* Return the magnitude code nearest to |x|, ties to even; it may exceed the format's largest code. */
static inline uint32_t cyx_small_encode(float x, int m, int bias) {
  const uint32_t mag = cyx_bits_f32(x) & 0x7fffffff, shift = (uint32_t)(23 - m);
  const uint32_t normal = (mag - ((uint32_t)(127 - bias) << 23) + ((1u << shift) / 2 - 1) + ((mag >> shift) & 1)) >> shift;
  const uint32_t magic = (uint32_t)(128 - bias - m + 23) << 23;
  const uint32_t tiny = cyx_bits_f32(cyx_from_bits_f32(mag) + cyx_from_bits_f32(magic)) - magic;
  return mag < (uint32_t)(128 - bias) << 23 ? tiny : normal;
}

/* IEEE-like: code `inf` is infinity, codes above it NaN. */
static inline float cyx_f32_from_ieee8(uint8_t h, int m, int bias, uint32_t inf) {
  const uint32_t mag = h & 0x7f, sign = (uint32_t)(h & 0x80) << 24;
  const uint32_t special = mag == inf ? 0x7f800000 : 0x7fc00000;
  return cyx_from_bits_f32(sign | (mag >= inf ? special : cyx_bits_f32(cyx_small_decode(mag, m, bias))));
}

static inline uint8_t cyx_ieee8_from_f32(float x, int m, int bias, uint32_t inf) {
  const uint32_t u = cyx_bits_f32(x), mag = u & 0x7fffffff, code = cyx_small_encode(x, m, bias);
  const uint32_t nan = inf | (1u << (m - 1));
  const uint32_t big = mag >= 0x7f800000 || code > inf;
  return (uint8_t)((u >> 24 & 0x80) | (mag > 0x7f800000 ? nan : big ? inf : code));
}

/* No infinity; code 0x7f is NaN, also for overflow. */
static inline float cyx_f32_from_fn8(uint8_t h, int m, int bias) {
  const uint32_t mag = h & 0x7f, sign = (uint32_t)(h & 0x80) << 24;
  return cyx_from_bits_f32(sign | (mag == 0x7f ? 0x7fc00000 : cyx_bits_f32(cyx_small_decode(mag, m, bias))));
}

static inline uint8_t cyx_fn8_from_f32(float x, int m, int bias) {
  const uint32_t u = cyx_bits_f32(x), mag = u & 0x7fffffff, code = cyx_small_encode(x, m, bias);
  return (uint8_t)((u >> 24 & 0x80) | (mag >= 0x7f800000 || code > 0x7f ? 0x7f : code));
}

/* No infinity, no negative zero; code 0x80 is NaN, also for overflow. That NaN is negative: first in the total order. */
static inline float cyx_f32_from_fnuz8(uint8_t h, int m, int bias) {
  const uint32_t sign = (uint32_t)(h & 0x80) << 24;
  return cyx_from_bits_f32(h == 0x80 ? 0xffc00000 : sign | cyx_bits_f32(cyx_small_decode(h & 0x7f, m, bias)));
}

static inline uint8_t cyx_fnuz8_from_f32(float x, int m, int bias) {
  const uint32_t u = cyx_bits_f32(x), mag = u & 0x7fffffff, code = cyx_small_encode(x, m, bias);
  return (uint8_t)(mag >= 0x7f800000 || code > 0x7f ? 0x80 : code == 0 ? 0 : (u >> 24 & 0x80) | code);
}

static inline float cyx_f32_from_f8e5m2(uint8_t h) { return cyx_f32_from_ieee8(h, 2, 15, 0x7c); }

static inline uint8_t cyx_f8e5m2_from_f32(float x) { return cyx_ieee8_from_f32(x, 2, 15, 0x7c); }

static inline float cyx_f32_from_f8e4m3(uint8_t h) { return cyx_f32_from_ieee8(h, 3, 7, 0x78); }

static inline uint8_t cyx_f8e4m3_from_f32(float x) { return cyx_ieee8_from_f32(x, 3, 7, 0x78); }

static inline float cyx_f32_from_f8e3m4(uint8_t h) { return cyx_f32_from_ieee8(h, 4, 3, 0x70); }

static inline uint8_t cyx_f8e3m4_from_f32(float x) { return cyx_ieee8_from_f32(x, 4, 3, 0x70); }

static inline float cyx_f32_from_f8e4m3fn(uint8_t h) { return cyx_f32_from_fn8(h, 3, 7); }

static inline uint8_t cyx_f8e4m3fn_from_f32(float x) { return cyx_fn8_from_f32(x, 3, 7); }

static inline float cyx_f32_from_f8e4m3b11fnuz(uint8_t h) { return cyx_f32_from_fnuz8(h, 3, 11); }

static inline uint8_t cyx_f8e4m3b11fnuz_from_f32(float x) { return cyx_fnuz8_from_f32(x, 3, 11); }

static inline float cyx_f32_from_f8e5m2fnuz(uint8_t h) { return cyx_f32_from_fnuz8(h, 2, 16); }

static inline uint8_t cyx_f8e5m2fnuz_from_f32(float x) { return cyx_fnuz8_from_f32(x, 2, 16); }

static inline float cyx_f32_from_f8e4m3fnuz(uint8_t h) { return cyx_f32_from_fnuz8(h, 3, 8); }

static inline uint8_t cyx_f8e4m3fnuz_from_f32(float x) { return cyx_fnuz8_from_f32(x, 3, 8); }

static inline float cyx_f32_from_f4e2m1fn(uint8_t h) {
  return cyx_from_bits_f32((uint32_t)(h & 8) << 28 | cyx_bits_f32(cyx_small_decode(h & 7, 1, 1)));
}

static inline uint8_t cyx_f4e2m1fn_from_f32(float x) {
  const uint32_t u = cyx_bits_f32(x), mag = u & 0x7fffffff, code = cyx_small_encode(x, 1, 1);
  return (uint8_t)((u >> 28 & 8) | (mag > 0x7f800000 ? 0 : mag == 0x7f800000 || code > 7 ? 7 : code));
}

static inline float cyx_f32_from_f6e3m2fn(uint8_t h) {
  return cyx_from_bits_f32((uint32_t)(h & 32) << 26 | cyx_bits_f32(cyx_small_decode(h & 31, 2, 3)));
}

static inline uint8_t cyx_f6e3m2fn_from_f32(float x) {
  const uint32_t u = cyx_bits_f32(x), mag = u & 0x7fffffff, code = cyx_small_encode(x, 2, 3);
  return (uint8_t)((u >> 26 & 32) | (mag > 0x7f800000 ? 0 : mag == 0x7f800000 || code > 31 ? 31 : code));
}

static inline float cyx_f32_from_f6e2m3fn(uint8_t h) {
  return cyx_from_bits_f32((uint32_t)(h & 32) << 26 | cyx_bits_f32(cyx_small_decode(h & 31, 3, 1)));
}

static inline uint8_t cyx_f6e2m3fn_from_f32(float x) {
  const uint32_t u = cyx_bits_f32(x), mag = u & 0x7fffffff, code = cyx_small_encode(x, 3, 1);
  return (uint8_t)((u >> 26 & 32) | (mag > 0x7f800000 ? 0 : mag == 0x7f800000 || code > 31 ? 31 : code));
}

/* Exponent only: 2^(code - 127), 0xff is NaN; code 0 is a denormal float; halfway goes up. */
static inline float cyx_f32_from_f8e8m0fnu(uint8_t h) {
  return cyx_from_bits_f32(h == 0xff ? 0x7fc00000 : h == 0 ? 0x00400000 : (uint32_t)h << 23);
}

static inline uint8_t cyx_f8e8m0fnu_from_f32(float x) {
  const uint32_t u = cyx_bits_f32(x), exponent = u >> 23, mantissa = u & 0x7fffff;
  const uint32_t normal = exponent + (mantissa >= 0x400000);
  const uint32_t tiny = mantissa >= 0x600000;
  return (uint8_t)(!(x > 0) || exponent == 0xff ? 0xff : exponent == 0 ? tiny : normal);
}

/* Float to integer: toward zero, saturating, NaN to 0. LO and HI are exact in T; HI is one above the largest. */
#define CYX_SATURATE(x, LO, HI, MIN, MAX, I) ((x) >= (HI) ? (MAX) : (x) <= (LO) ? (MIN) : (x) != (x) ? (I)0 : (I)(x))

static inline int32_t cyx_saturate_f32(float x, float lo, float hi) {
  return (int32_t)(x > lo ? (x < hi ? x : hi) : x != x ? 0.0f : lo);
}

static inline int32_t cyx_saturate_f64(double x, double lo, double hi) {
  return (int32_t)(x > lo ? (x < hi ? x : hi) : x != x ? 0.0 : lo);
}

static inline int32_t cyx_s32_from_f32(float x) {
  return CYX_SATURATE(x, -0x1p31f, 0x1p31f, (int32_t)-0x7fffffff - 1, (int32_t)0x7fffffff, int32_t);
}

static inline int32_t cyx_s32_from_f64(double x) { return cyx_saturate_f64(x, -0x1p31, 0x1.fffffffcp30); }

static inline uint32_t cyx_u32_from_f32(float x) { return CYX_SATURATE(x, 0.0f, 0x1p32f, 0u, 0xffffffffu, uint32_t); }

static inline uint32_t cyx_u32_from_f64(double x) { return CYX_SATURATE(x, 0.0, 0x1p32, 0u, 0xffffffffu, uint32_t); }

static inline int64_t cyx_s64_from_f64(double x) {
  return CYX_SATURATE(x, -0x1p63, 0x1p63, (int64_t)(-0x7fffffffffffffff - 1), (int64_t)0x7fffffffffffffff, int64_t);
}

static inline int64_t cyx_s64_from_f32(float x) { return cyx_s64_from_f64((double)x); }

static inline uint64_t cyx_u64_from_f64(double x) {
  return CYX_SATURATE(x, 0.0, 0x1p64, (uint64_t)0, (uint64_t)-1, uint64_t);
}

static inline uint64_t cyx_u64_from_f32(float x) { return cyx_u64_from_f64((double)x); }

/* Return x, with 0 for -0, so that gcc keeps the operation even if it knows that x is a converted integer. */
static inline float cyx_unsigned_zero_f32(float x) { return cyx_from_bits_f32(cyx_bits_f32(x) & -(uint32_t)(x != 0)); }

static inline double cyx_unsigned_zero_f64(double x) { return cyx_from_bits_f64(cyx_bits_f64(x) & -(uint64_t)(x != 0)); }

/* The result is NaN if an operand is; +0 is above -0. Masks, since nested conditionals take twice the instructions. */
static inline float cyx_maximum_f32(float a, float b) {
  const uint32_t x = cyx_bits_f32(a), y = cyx_bits_f32(b), sign = (uint32_t)1 << 31;
  const uint32_t above = -(uint32_t)(a > b), nan = -(uint32_t)(a != a), unequal = -(uint32_t)(a != b);
  const uint32_t r = ((x & above) | (y & ~above)) & (x | unequal | ~sign);
  return cyx_from_bits_f32((x & nan) | (r & ~nan));
}

static inline float cyx_minimum_f32(float a, float b) {
  const uint32_t x = cyx_bits_f32(a), y = cyx_bits_f32(b), sign = (uint32_t)1 << 31;
  const uint32_t below = -(uint32_t)(a < b), nan = -(uint32_t)(a != a), equal = -(uint32_t)(a == b);
  const uint32_t r = (x & below) | (y & ~below) | (x & equal & sign);
  return cyx_from_bits_f32((x & nan) | (r & ~nan));
}

static inline double cyx_maximum_f64(double a, double b) {
  const uint64_t x = cyx_bits_f64(a), y = cyx_bits_f64(b), sign = (uint64_t)1 << 63;
  const uint64_t above = -(uint64_t)(a > b), nan = -(uint64_t)(a != a), unequal = -(uint64_t)(a != b);
  const uint64_t r = ((x & above) | (y & ~above)) & (x | unequal | ~sign);
  return cyx_from_bits_f64((x & nan) | (r & ~nan));
}

static inline double cyx_minimum_f64(double a, double b) {
  const uint64_t x = cyx_bits_f64(a), y = cyx_bits_f64(b), sign = (uint64_t)1 << 63;
  const uint64_t below = -(uint64_t)(a < b), nan = -(uint64_t)(a != a), equal = -(uint64_t)(a == b);
  const uint64_t r = (x & below) | (y & ~below) | (x & equal & sign);
  return cyx_from_bits_f64((x & nan) | (r & ~nan));
}

/* The same for a constant operand, which is no NaN, for cyx_at_least not -0, and for cyx_at_most not +0. */
static inline float cyx_at_least_f32(float x, float bound) { return bound >= x ? bound : x; }

static inline float cyx_at_most_f32(float x, float bound) { return bound <= x ? bound : x; }

static inline double cyx_at_least_f64(double x, double bound) { return bound >= x ? bound : x; }

static inline double cyx_at_most_f64(double x, double bound) { return bound <= x ? bound : x; }

/* Integers ordered as the total order of floats: -nan < -inf < .. < -0 < +0 < .. < inf < nan. */
static inline int32_t cyx_total_f32(float x) {
  const int32_t u = (int32_t)cyx_bits_f32(x);
  return u ^ (int32_t)((uint32_t)(u >> 31) >> 1);
}

static inline int64_t cyx_total_f64(double x) {
  const int64_t u = (int64_t)cyx_bits_f64(x);
  return u ^ (int64_t)((uint64_t)(u >> 63) >> 1);
}

/* Stands in the body of a loop that multiplies loop-carried integers by each other, and prevents its vectorisation: gcc 12
 * takes x = x * x for a reduction. */
#ifndef CYX_VECTORIZATION_BARRIER
#define CYX_VECTORIZATION_BARRIER __asm__ volatile("")
#endif

static inline uint64_t cyx_power_u64(uint64_t base, uint64_t exponent) {
  uint64_t r = 1;
  for (; exponent; exponent >>= 1, base *= base) r = exponent & 1 ? r * base : r;
  return r;
}

static inline int64_t cyx_power_s64(int64_t base, int64_t exponent) {
  const int64_t inverse = base == 1 ? 1 : base == -1 ? (exponent & 1 ? -1 : 1) : 0;
  return exponent < 0 ? inverse : (int64_t)cyx_power_u64((uint64_t)base, (uint64_t)exponent);
}

/* Round the mantissa to `m` bits, ties to even; beyond the range of the exponent, return infinity or a signed zero. */
static inline float cyx_reduce_precision_f32(float x, int e, int m) {
  uint32_t u = cyx_bits_f32(x);
  const uint32_t sign = u & 0x80000000u, nan = (u & 0x7fffffff) > 0x7f800000;
  if (m < 23) u = (u + ((1u << (22 - m)) - 1) + ((u >> (23 - m)) & 1)) & ~((1u << (23 - m)) - 1);
  if (e < 8) {
    const uint32_t mag = u & 0x7f800000, bias = (1u << (e - 1)) - 1;
    u = mag > (127 + bias) << 23 ? sign | 0x7f800000 : u;
    u = mag <= (127 - bias) << 23 ? sign : u;
  }
  return nan ? x : cyx_from_bits_f32(u);
}

static inline double cyx_reduce_precision_f64(double x, int e, int m) {
  uint64_t u = cyx_bits_f64(x);
  const uint64_t one = 1, sign = u & (one << 63), nan = (u & ~(one << 63)) > 0x7ff0000000000000;
  if (m < 52) u = (u + ((one << (51 - m)) - 1) + ((u >> (52 - m)) & 1)) & ~((one << (52 - m)) - 1);
  if (e < 11) {
    const uint64_t mag = u & 0x7ff0000000000000, bias = (one << (e - 1)) - 1;
    u = mag > (1023 + bias) << 52 ? sign | 0x7ff0000000000000 : u;
    u = mag <= (1023 - bias) << 52 ? sign : u;
  }
  return nan ? x : cyx_from_bits_f64(u);
}

static inline uint16_t cyx_reduce_precision_f16(uint16_t x, int e, int m) {
  uint32_t u = x;
  const uint32_t sign = u & 0x8000, nan = (u & 0x7fff) > 0x7c00;
  if (m < 10) u = (u + ((1u << (9 - m)) - 1) + ((u >> (10 - m)) & 1)) & ~((1u << (10 - m)) - 1);
  if (e < 5) {
    const uint32_t mag = u & 0x7c00, bias = (1u << (e - 1)) - 1;
    u = mag > (15 + bias) << 10 ? sign | 0x7c00 : u;
    u = mag <= (15 - bias) << 10 ? sign : u;
  }
  return (uint16_t)(nan ? x : u);
}

#endif
