/* Elementary functions for generated code: plain scalar C without branches, which gcc -O2 vectorises in loops of
 * constant trip count.
 *
 * Every function is `T cyx_<opcode>_<t>(T x)` with t = f32 (float) or f64 (double). Errors are within 2 ulp over the
 * whole range (2.5 on hardware without FMA), denormals are honoured in and out, and NaN, infinities and signed zeros
 * follow C99 Annex F. No libm symbol is called.
 *
 * The file is a sequence of blocks separated by blank lines. One block defines one name and uses names of earlier
 * blocks only, so that generated code pastes just what it needs. Needs abi.h and scalar.h; math_inverse.h goes on.
 *
 * A few functions are right only where their predicate cyx_<name>_needs_slow(...) is 0; the twin cyx_<name>_slow(...)
 * is right for every argument. A branch would stop the vectoriser, so a loop over a block calls the fast function for
 * all lanes, ORs the predicate over the block, and only if that is not 0 patches the flagged lanes:
 *
 *   uint32_t slow = 0;
 *   for (int i = 0; i < 512; i++) { y[i] = cyx_sine_f32(x[i]); slow |= cyx_sine_f32_needs_slow(x[i]); }
 *   if (slow) for (int i = 0; i < 512; i++) y[i] = cyx_sine_f32_full(x[i]);
 *
 * where cyx_<name>_full(...) takes whichever is right, in one copy for all that call it.
 *
 * Internal: generated code pastes blocks of it; it may change with every version.
 */
/* slow: sine_f32 cosine_f32 tan_f32 sine_f64 cosine_f64 tan_f64 */
#ifndef CYXLA_MATH_H
#define CYXLA_MATH_H

#include "abi.h"
#include "scalar.h"

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wpedantic"

/* Follows `static inline`: at -O2, larger bodies would otherwise remain calls, which are not vectorised. */
#define CYX_INLINE __attribute__((always_inline))

/* Follows `static` for a function that is called often: one scalar copy, and a SIMD clone by gcc. */
#if defined(__x86_64__) && !defined(__clang__)
#define CYX_SIMD_CLONE __attribute__((noinline, const, simd("notinbranch")))
#else
#define CYX_SIMD_CLONE inline CYX_INLINE
#endif

/* Follows `static` for functions of rare paths. */
#define CYX_COLD __attribute__((noinline, cold, unused))

/* a * b + c, rounded once if the hardware has FMA; otherwise __builtin_fmaf would be a call of libm. */
#ifdef __FMA__
#define CYX_FMA_F32(a, b, c) __builtin_fmaf(a, b, c)
#else
#define CYX_FMA_F32(a, b, c) ((a) * (b) + (c))
#endif

#ifdef __FMA__
#define CYX_FMA_F64(a, b, c) __builtin_fma(a, b, c)
#else
#define CYX_FMA_F64(a, b, c) ((a) * (b) + (c))
#endif

#define CYX_INF_F32 __builtin_inff()

#define CYX_INF_F64 __builtin_inf()

#define CYX_NAN_F32 __builtin_nanf("")

#define CYX_NAN_F64 __builtin_nan("")

/* CYX_POLYn: Horner form in t with n coefficients, lowest power first; F is one of the two CYX_FMA macros. */
#define CYX_POLY2(F, t, c0, c1) F(c1, t, c0)

#define CYX_POLY3(F, t, c0, c1, c2) F(CYX_POLY2(F, t, c1, c2), t, c0)

#define CYX_POLY4(F, t, c0, c1, c2, c3) F(CYX_POLY3(F, t, c1, c2, c3), t, c0)

#define CYX_POLY5(F, t, c0, c1, c2, c3, c4) F(CYX_POLY4(F, t, c1, c2, c3, c4), t, c0)

#define CYX_POLY6(F, t, c0, c1, c2, c3, c4, c5) F(CYX_POLY5(F, t, c1, c2, c3, c4, c5), t, c0)

#define CYX_POLY7(F, t, c0, c1, c2, c3, c4, c5, c6) F(CYX_POLY6(F, t, c1, c2, c3, c4, c5, c6), t, c0)

#define CYX_POLY8(F, t, c0, c1, c2, c3, c4, c5, c6, c7) F(CYX_POLY7(F, t, c1, c2, c3, c4, c5, c6, c7), t, c0)

#define CYX_POLY9(F, t, c0, c1, c2, c3, c4, c5, c6, c7, c8) F(CYX_POLY8(F, t, c1, c2, c3, c4, c5, c6, c7, c8), t, c0)

#define CYX_POLY10(F, t, c0, c1, c2, c3, c4, c5, c6, c7, c8, c9) \
  F(CYX_POLY9(F, t, c1, c2, c3, c4, c5, c6, c7, c8, c9), t, c0)

#define CYX_POLY11(F, t, c0, c1, c2, c3, c4, c5, c6, c7, c8, c9, c10) \
  F(CYX_POLY10(F, t, c1, c2, c3, c4, c5, c6, c7, c8, c9, c10), t, c0)

#define CYX_POLY12(F, t, c0, c1, c2, c3, c4, c5, c6, c7, c8, c9, c10, c11) \
  F(CYX_POLY11(F, t, c1, c2, c3, c4, c5, c6, c7, c8, c9, c10, c11), t, c0)

#define CYX_POLY13(F, t, c0, c1, c2, c3, c4, c5, c6, c7, c8, c9, c10, c11, c12) \
  F(CYX_POLY12(F, t, c1, c2, c3, c4, c5, c6, c7, c8, c9, c10, c11, c12), t, c0)

#define CYX_POLY14(F, t, c0, c1, c2, c3, c4, c5, c6, c7, c8, c9, c10, c11, c12, c13) \
  F(CYX_POLY13(F, t, c1, c2, c3, c4, c5, c6, c7, c8, c9, c10, c11, c12, c13), t, c0)

#define CYX_POLY15(F, t, c0, c1, c2, c3, c4, c5, c6, c7, c8, c9, c10, c11, c12, c13, c14) \
  F(CYX_POLY14(F, t, c1, c2, c3, c4, c5, c6, c7, c8, c9, c10, c11, c12, c13, c14), t, c0)

#define CYX_POLY16(F, t, c0, c1, c2, c3, c4, c5, c6, c7, c8, c9, c10, c11, c12, c13, c14, c15) \
  F(CYX_POLY15(F, t, c1, c2, c3, c4, c5, c6, c7, c8, c9, c10, c11, c12, c13, c14, c15), t, c0)

#define CYX_POLY17(F, t, c0, c1, c2, c3, c4, c5, c6, c7, c8, c9, c10, c11, c12, c13, c14, c15, c16) \
  F(CYX_POLY16(F, t, c1, c2, c3, c4, c5, c6, c7, c8, c9, c10, c11, c12, c13, c14, c15, c16), t, c0)

#define CYX_POLY18(F, t, c0, c1, c2, c3, c4, c5, c6, c7, c8, c9, c10, c11, c12, c13, c14, c15, c16, c17) \
  F(CYX_POLY17(F, t, c1, c2, c3, c4, c5, c6, c7, c8, c9, c10, c11, c12, c13, c14, c15, c16, c17), t, c0)

#define CYX_POLY19(F, t, c0, c1, c2, c3, c4, c5, c6, c7, c8, c9, c10, c11, c12, c13, c14, c15, c16, c17, c18) \
  F(CYX_POLY18(F, t, c1, c2, c3, c4, c5, c6, c7, c8, c9, c10, c11, c12, c13, c14, c15, c16, c17, c18), t, c0)

#define CYX_POLY20(F, t, c0, c1, c2, c3, c4, c5, c6, c7, c8, c9, c10, c11, c12, c13, c14, c15, c16, c17, c18, c19) \
  F(CYX_POLY19(F, t, c1, c2, c3, c4, c5, c6, c7, c8, c9, c10, c11, c12, c13, c14, c15, c16, c17, c18, c19), t, c0)

/* Adding one of these rounds to the nearest integer, which is in the low bits of the sum. */
#define CYX_MAGIC_F32 0x1.8p23f

#define CYX_MAGIC_F64 0x1.8p52

/* ---- exact functions ---- */

static inline CYX_INLINE float cyx_abs_f32(float x) { return __builtin_fabsf(x); }

static inline CYX_INLINE double cyx_abs_f64(double x) { return __builtin_fabs(x); }

/* Processors before SSE4.1 have no instructions for rounding, and the builtins would call libm. */
#if defined(__x86_64__) && !defined(__SSE4_1__)
#define CYX_EMULATE_ROUND 1
#else
#define CYX_EMULATE_ROUND 0
#endif

static inline CYX_INLINE float cyx_round_nearest_even_f32(float x) {
  if (!CYX_EMULATE_ROUND) return __builtin_rintf(x);
  float a = __builtin_fabsf(x);
  return a < 0x1p23f ? __builtin_copysignf((a + 0x1p23f) - 0x1p23f, x) : x;
}

static inline CYX_INLINE float cyx_floor_f32(float x) {
  if (!CYX_EMULATE_ROUND) return __builtin_floorf(x);
  float r = cyx_round_nearest_even_f32(x);
  return __builtin_copysignf(r > x ? r - 1.0f : r, x);
}

static inline CYX_INLINE float cyx_ceil_f32(float x) {
  if (!CYX_EMULATE_ROUND) return __builtin_ceilf(x);
  float r = cyx_round_nearest_even_f32(x);
  return __builtin_copysignf(r < x ? r + 1.0f : r, x);
}

static inline CYX_INLINE float cyx_truncate_f32(float x) {
  if (!CYX_EMULATE_ROUND) return __builtin_truncf(x);
  return __builtin_copysignf(cyx_floor_f32(__builtin_fabsf(x)), x);
}

static inline CYX_INLINE double cyx_round_nearest_even_f64(double x) {
  if (!CYX_EMULATE_ROUND) return __builtin_rint(x);
  double a = __builtin_fabs(x);
  return a < 0x1p52 ? __builtin_copysign((a + 0x1p52) - 0x1p52, x) : x;
}

static inline CYX_INLINE double cyx_floor_f64(double x) {
  if (!CYX_EMULATE_ROUND) return __builtin_floor(x);
  double r = cyx_round_nearest_even_f64(x);
  return __builtin_copysign(r > x ? r - 1.0 : r, x);
}

/* Return an integer: the next one away from zero if the bits of the fraction exceed the random bits. */
static inline double cyx_stochastic(double x, uint64_t random, double range) {
  const double wide = __builtin_fabs(x), whole = cyx_floor_f64(wide), part = (wide - whole) * range;
  return __builtin_copysign(whole + (random < (part < range ? (uint64_t)part : 0)), x);
}

static inline CYX_INLINE double cyx_ceil_f64(double x) {
  if (!CYX_EMULATE_ROUND) return __builtin_ceil(x);
  double r = cyx_round_nearest_even_f64(x);
  return __builtin_copysign(r < x ? r + 1.0 : r, x);
}

static inline CYX_INLINE double cyx_truncate_f64(double x) {
  if (!CYX_EMULATE_ROUND) return __builtin_trunc(x);
  return __builtin_copysign(cyx_floor_f64(__builtin_fabs(x)), x);
}

/* The number below one half: adding one half would round 0.49999997 up to 1. */
static inline CYX_INLINE float cyx_round_nearest_afz_f32(float x) {
  return cyx_truncate_f32(x + __builtin_copysignf(0x1.fffffep-2f, x));
}

static inline CYX_INLINE double cyx_round_nearest_afz_f64(double x) {
  return cyx_truncate_f64(x + __builtin_copysign(0x1.fffffffffffffp-2, x));
}

static inline CYX_INLINE float cyx_sign_f32(float x) {
  return __builtin_fabsf(x) > 0 ? __builtin_copysignf(1.0f, x) : x;
}

static inline CYX_INLINE double cyx_sign_f64(double x) {
  return __builtin_fabs(x) > 0 ? __builtin_copysign(1.0, x) : x;
}

static inline CYX_INLINE uint8_t cyx_is_finite_f32(float x) { return __builtin_fabsf(x) < CYX_INF_F32; }

static inline CYX_INLINE uint8_t cyx_is_finite_f64(double x) { return __builtin_fabs(x) < CYX_INF_F64; }

static inline CYX_INLINE float cyx_sqrt_f32(float x) { return __builtin_sqrtf(x); }

static inline CYX_INLINE double cyx_sqrt_f64(double x) { return __builtin_sqrt(x); }

static inline CYX_INLINE float cyx_rsqrt_f32(float x) { return 1.0f / __builtin_sqrtf(x); }

static inline CYX_INLINE double cyx_rsqrt_f64(double x) { return 1.0 / __builtin_sqrt(x); }

/* ---- f32: exponentials ---- */

/* (e^r - 1 - r) / r^2 for |r| <= ln(2) / 2. Not in Horner form: processors work on several elements at a time, but on
 * fewer the longer each takes from its first operation to its last.
 */
static inline CYX_INLINE float cyx_exp_poly_f32(float r) {
  float low = CYX_POLY2(CYX_FMA_F32, r, 0x1.fffffep-2f, 0x1.5554b4p-3f);
  float high = CYX_POLY2(CYX_FMA_F32, r, 0x1.5556f2p-5f, 0x1.122544p-7f);
  float t = r * r;
  return CYX_FMA_F32(t, CYX_FMA_F32(t, 0x1.6b9c54p-10f, high), low);
}

/* x - n ln(2); the product with the high part is exact. */
static inline CYX_INLINE float cyx_exp_reduce_f32(float x, float n) {
  return CYX_FMA_F32(n, -0x1.7f7d1cp-20f, CYX_FMA_F32(n, -0x1.62e4p-1f, x));
}

/* Clamp between a negative and a positive bound; a NaN stays. In integers, since gcc has one instruction for their
 * maximum; the offset wraps NaNs of either sign around, so that they compare as small with their bound.
 */
static inline CYX_INLINE float cyx_within_f32(float x, float low, float high) {
  const uint32_t moved = cyx_bits_f32(x) + 0x7fffffu, lowest = cyx_bits_f32(low) + 0x7fffffu;
  const int32_t raised = (int32_t)(moved < lowest ? moved : lowest), highest = (int32_t)(cyx_bits_f32(high) + 0x7fffffu);
  return cyx_from_bits_f32((uint32_t)(raised < highest ? raised : highest) - 0x7fffffu);
}

/* Return the smaller of a number and a positive bound; unspecified for NaN. */
static inline CYX_INLINE float cyx_lesser_f32(float x, float high) {
  const int32_t bits = (int32_t)cyx_bits_f32(x), bound = (int32_t)cyx_bits_f32(high);
  return cyx_from_bits_f32((uint32_t)(bits < bound ? bits : bound));
}

/* e^x 2^k for small k <= 0. The power of two is applied in halves, so that denormal results round once; the sum that
 * rounds has their biases in its low bits, and shifting moves these right into the exponents. Far below zero the
 * reduced argument makes no sense, and what comes of it is dropped; far above it makes an infinity.
 */
static inline CYX_INLINE float cyx_exp_scaled_f32(float x, int32_t k) {
  const float zero = CYX_MAGIC_F32 + (float)(254 + k);
  float z = cyx_lesser_f32(CYX_FMA_F32(x, 0x1.715476p+0f, zero), CYX_MAGIC_F32 + 384.0f);
  float r = cyx_exp_reduce_f32(x, z - zero);
  float p = CYX_FMA_F32(r * r, cyx_exp_poly_f32(r), r);
  uint32_t n = cyx_bits_f32(z), half = n >> 1;
  float scale = cyx_from_bits_f32(half << 23);
  float e = CYX_FMA_F32(p, scale, scale) * cyx_from_bits_f32((n - half) << 23);
  return x < -104.0f ? 0.0f : e;
}

/* e^x for |x| <= 87, for which one scaling suffices. */
static inline CYX_INLINE float cyx_exp_mid_f32(float x) {
  const float zero = CYX_MAGIC_F32 + 127.0f;
  float z = CYX_FMA_F32(x, 0x1.715476p+0f, zero);
  float r = cyx_exp_reduce_f32(x, z - zero);
  float p = CYX_FMA_F32(r * r, cyx_exp_poly_f32(r), r);
  float scale = cyx_from_bits_f32(cyx_bits_f32(z) << 23);
  return CYX_FMA_F32(p, scale, scale);
}

static inline CYX_INLINE float cyx_exponential_f32(float x) { return cyx_exp_scaled_f32(x, 0); }

/* The same for x <= 0 and NaN, to the same bits: a power of two that is too large by a constant one is enough. */
static inline CYX_INLINE float cyx_exp_decay_f32(float x) {
  const float zero = CYX_MAGIC_F32 + 191.0f;
  float z = CYX_FMA_F32(x, 0x1.715476p+0f, zero);
  float r = cyx_exp_reduce_f32(x, z - zero);
  float p = CYX_FMA_F32(r * r, cyx_exp_poly_f32(r), r);
  float scale = cyx_from_bits_f32(cyx_bits_f32(z) << 23);
  float e = CYX_FMA_F32(p, scale, scale) * 0x1p-64f;
  return x < -104.0f ? 0.0f : e;
}

/* 2^n (e^r - 1) + (2^n - 1), with one power of two held back against overflow. */
static inline CYX_INLINE float cyx_exponential_minus_one_f32(float x) {
  float y = cyx_within_f32(x, -20.0f, 89.0f);
  const float zero = CYX_MAGIC_F32 + 126.0f;
  float z = CYX_FMA_F32(y, 0x1.715476p+0f, zero);
  float r = cyx_exp_reduce_f32(y, z - zero);
  float p = r * r * cyx_exp_poly_f32(r);
  float half = cyx_from_bits_f32(cyx_bits_f32(z) << 23);
  float e = CYX_FMA_F32(p, half, CYX_FMA_F32(r, half, half - 0.5f)) * 2.0f;
  return __builtin_copysignf(__builtin_fabsf(x) < 0x1p-25f ? x : e, x);
}

/* 1 / (1 + 2^n (1 + p)), multiplied through by 2^-n for n > 0, which keeps the denormal results. */
static inline CYX_INLINE float cyx_logistic_f32(float x) {
  float y = -cyx_within_f32(x, -104.0f, 104.0f);
  float z = CYX_FMA_F32(y, 0x1.715476p+0f, CYX_MAGIC_F32);
  float n = z - CYX_MAGIC_F32;
  float r = cyx_exp_reduce_f32(y, n);
  float p = CYX_FMA_F32(r * r, cyx_exp_poly_f32(r), r);
  uint32_t count = cyx_bits_f32(__builtin_fabsf(n) + CYX_MAGIC_F32) - 0x4b400000u;
  uint32_t half = count >> 1;
  float u = cyx_from_bits_f32((127u - half) << 23) * cyx_from_bits_f32((127u - count + half) << 23);
  float d = 1.0f + u;
  d += CYX_FMA_F32(n > 0 ? 1.0f : u, p, u - (d - 1.0f));
  return (n > 0 ? u : 1.0f) / d;
}

static inline CYX_INLINE float cyx_tanh_f32(float x) {
  float y = __builtin_fabsf(x);
  float t = y * y;
  float p = CYX_POLY5(CYX_FMA_F32, t, -0x1.555548p-2f, 0x1.110c5ep-3f, -0x1.b905c4p-5f, 0x1.5811f6p-6f, -0x1.9454fp-8f);
  float low = CYX_FMA_F32(y * t, p, y);
  float high = 1.0f - 2.0f / (cyx_exp_mid_f32(2.0f * (y > 10.0f ? 10.0f : y)) + 1.0f);
  return __builtin_copysignf(y < 0.56f ? low : high, x);
}

static inline CYX_INLINE float cyx_sinh_f32(float x) {
  float y = __builtin_fabsf(x);
  float t = y * y;
  float p = CYX_POLY4(CYX_FMA_F32, t, 0x1.555556p-3f, 0x1.1110ep-7f, 0x1.a022bcp-13f, 0x1.756c1ep-19f);
  float low = CYX_FMA_F32(y * t, p, y);
  float half = cyx_exp_scaled_f32(y, -1);
  return __builtin_copysignf(y < 1.0f ? low : half - 0.25f / half, x);
}

static inline CYX_INLINE float cyx_cosh_f32(float x) {
  float half = cyx_exp_scaled_f32(__builtin_fabsf(x), -1);
  return half + 0.25f / half;
}

/* Select a where the mask has ones, else b; for a conditional, gcc would compute both polynomials. */
static inline CYX_INLINE float cyx_pick_f32(uint32_t mask, float a, float b) {
  return cyx_from_bits_f32((cyx_bits_f32(a) & mask) | (cyx_bits_f32(b) & ~mask));
}

/* x + x P(x^2) below 1.1, above 1 - P(|x|)^8: one polynomial with coefficients chosen by lane. */
static inline CYX_INLINE float cyx_erf_f32(float x) {
  float y = __builtin_fabsf(x);
  uint32_t low = -(uint32_t)(y < 1.1f);
  float u = y > 4.0f ? 4.0f : y;
  float t = low ? y * y : u;
  float p = CYX_POLY7(CYX_FMA_F32, t, cyx_pick_f32(low, 0x1.06eba8p-3f, 0x1.004686p+0f),
      cyx_pick_f32(low, -0x1.812734p-2f, -0x1.2aebfap-3f), cyx_pick_f32(low, 0x1.ce2aa6p-4f, -0x1.ec09bep-5f),
      cyx_pick_f32(low, -0x1.b7cdep-6f, -0x1.9826bcp-7f), cyx_pick_f32(low, 0x1.52ac26p-8f, 0x1.b71004p-7f),
      cyx_pick_f32(low, -0x1.9a3ep-11f, -0x1.51dea8p-9f), cyx_pick_f32(low, 0x1.2f813p-14f, 0x1.4f52bep-13f));
  float p2 = p * p, p4 = p2 * p2;
  return __builtin_copysignf(low ? CYX_FMA_F32(y, p, y) : CYX_FMA_F32(-p4, p4, 1.0f), x);
}

/* ---- f32: logarithms ---- */

/* log(1 + f) + e ln(2) for |f| <= 1/3. */
static inline CYX_INLINE float cyx_log_core_f32(float f, float e) {
  float p = CYX_POLY8(CYX_FMA_F32, f, 0x1.555506p-2f, -0x1.fffef4p-3f, 0x1.99d05ep-3f, -0x1.559d36p-3f,
      0x1.1ed424p-3f, -0x1.f32078p-4f, 0x1.1e73ap-3f, -0x1.07e5f4p-3f);
  float t = f * f;
  float tail = CYX_FMA_F32(t * f, p, CYX_FMA_F32(t, -0.5f, e * 0x1.7f7d1cp-20f));
  return CYX_FMA_F32(e, 0x1.62e4p-1f, f + tail);
}

static inline CYX_INLINE float cyx_log_f32(float x) {
  uint8_t tiny = x < 0x1p-126f;
  float y = tiny ? x * 0x1p23f : x;
  int32_t i = (int32_t)(cyx_bits_f32(y) - 0x3f2aaaabu) >> 23;
  float f = cyx_from_bits_f32(cyx_bits_f32(y) - ((uint32_t)i << 23)) - 1.0f;
  float r = cyx_log_core_f32(f, (float)i - (tiny ? 23.0f : 0.0f));
  float edge = x == 0 ? -CYX_INF_F32 : CYX_NAN_F32;
  r = x < CYX_INF_F32 ? r : x;
  return x > 0 ? r : edge;
}

/* The rounding error of 1 + x is carried into the reduced argument. */
static inline CYX_INLINE float cyx_log_plus_one_f32(float x) {
  float u = 1.0f + x;
  float lost = x < 1.0f ? x - (u - 1.0f) : 1.0f - (u - x);
  int32_t i = (int32_t)(cyx_bits_f32(u) - 0x3f2aaaabu) >> 23;
  float f = cyx_from_bits_f32(cyx_bits_f32(u) - ((uint32_t)i << 23)) - 1.0f;
  f += lost * cyx_from_bits_f32((uint32_t)(127 - (i > 126 ? 126 : i)) << 23);
  float r = cyx_log_core_f32(f, (float)i);
  float edge = x == -1.0f ? -CYX_INF_F32 : CYX_NAN_F32;
  r = x < CYX_INF_F32 ? r : x;
  r = __builtin_fabsf(x) < 0x1p-25f ? x : r;
  return x > -1.0f ? r : edge;
}

/* ---- f64: exponentials ---- */

/* (e^r - 1 - r) / r^2 for |r| <= ln(2) / 2; see cyx_exp_poly_f32. */
static inline CYX_INLINE double cyx_exp_poly_f64(double r) {
  double t = r * r;
  double even = CYX_POLY5(CYX_FMA_F64, t, 0x1.0000000000005p-1, 0x1.555555555229dp-5, 0x1.6c16c17ee2ffcp-10,
      0x1.a019a757c2e9cp-16, 0x1.28a1f89ff0169p-22);
  double odd = CYX_POLY5(CYX_FMA_F64, t, 0x1.5555555555539p-3, 0x1.1111111118f8ap-7, 0x1.a01a017525ec2p-13,
      0x1.71de87cd1f87bp-19, 0x1.ae6c2805a47ccp-26);
  return CYX_FMA_F64(r, odd, even);
}

/* x - n ln(2); the product with the high part is exact. */
static inline CYX_INLINE double cyx_exp_reduce_f64(double x, double n) {
  return CYX_FMA_F64(n, -0x1.a39ef35793c76p-33, CYX_FMA_F64(n, -0x1.62e42feep-1, x));
}

#ifdef __AVX512F__
static inline CYX_INLINE double cyx_within_f64(double x, double low, double high) {
  const uint64_t gap = 0xfffffffffffffu, moved = cyx_bits_f64(x) + gap, lowest = cyx_bits_f64(low) + gap;
  const int64_t raised = (int64_t)(moved < lowest ? moved : lowest), highest = (int64_t)(cyx_bits_f64(high) + gap);
  return cyx_from_bits_f64((uint64_t)(raised < highest ? raised : highest) - gap);
}
#else
static inline CYX_INLINE double cyx_within_f64(double x, double low, double high) {
  const uint64_t under = -(uint64_t)(x < low), over = -(uint64_t)(x > high);
  const uint64_t raised = (cyx_bits_f64(x) & ~under) | (cyx_bits_f64(low) & under);
  return cyx_from_bits_f64((raised & ~over) | (cyx_bits_f64(high) & over));
}
#endif

#ifdef __AVX512F__
static inline CYX_INLINE double cyx_lesser_f64(double x, double high) {
  const int64_t bits = (int64_t)cyx_bits_f64(x), bound = (int64_t)cyx_bits_f64(high);
  return cyx_from_bits_f64((uint64_t)(bits < bound ? bits : bound));
}
#else
static inline CYX_INLINE double cyx_lesser_f64(double x, double high) {
  const uint64_t over = -(uint64_t)(x > high);
  return cyx_from_bits_f64((cyx_bits_f64(x) & ~over) | (cyx_bits_f64(high) & over));
}
#endif

/* e^(x + low) 2^k for small k <= 0; see cyx_exp_scaled_f32. */
static inline CYX_INLINE double cyx_exp_scaled_f64(double x, double low, int64_t k) {
  const double zero = CYX_MAGIC_F64 + (double)(2046 + k);
  double z = cyx_lesser_f64(CYX_FMA_F64(x, 0x1.71547652b82fep+0, zero), CYX_MAGIC_F64 + 3072.0);
  double r = cyx_exp_reduce_f64(x, z - zero) + low;
  double p = CYX_FMA_F64(r * r, cyx_exp_poly_f64(r), r);
  uint64_t n = cyx_bits_f64(z), half = n >> 1;
  double scale = cyx_from_bits_f64(half << 52);
  double e = CYX_FMA_F64(p, scale, scale) * cyx_from_bits_f64((n - half) << 52);
  return x < -746.0 ? 0.0 : e;
}

/* e^x for |x| <= 708, for which one scaling suffices. */
static inline CYX_INLINE double cyx_exp_mid_f64(double x) {
  const double zero = CYX_MAGIC_F64 + 1023.0;
  double z = CYX_FMA_F64(x, 0x1.71547652b82fep+0, zero);
  double r = cyx_exp_reduce_f64(x, z - zero);
  double p = CYX_FMA_F64(r * r, cyx_exp_poly_f64(r), r);
  double scale = cyx_from_bits_f64(cyx_bits_f64(z) << 52);
  return CYX_FMA_F64(p, scale, scale);
}

static inline CYX_INLINE double cyx_exponential_f64(double x) { return cyx_exp_scaled_f64(x, 0.0, 0); }

/* The same for x <= 0 and NaN, to the same bits. */
static inline CYX_INLINE double cyx_exp_decay_f64(double x) {
  const double zero = CYX_MAGIC_F64 + 1535.0;
  double z = CYX_FMA_F64(x, 0x1.71547652b82fep+0, zero);
  double r = cyx_exp_reduce_f64(x, z - zero);
  double p = CYX_FMA_F64(r * r, cyx_exp_poly_f64(r), r);
  double scale = cyx_from_bits_f64(cyx_bits_f64(z) << 52);
  double e = CYX_FMA_F64(p, scale, scale) * 0x1p-512;
  return x < -746.0 ? 0.0 : e;
}

/* 2^n (e^r - 1) + (2^n - 1), with one power of two held back against overflow. */
static inline CYX_INLINE double cyx_exponential_minus_one_f64(double x) {
  double y = cyx_within_f64(x, -40.0, 710.0);
  const double zero = CYX_MAGIC_F64 + 1022.0;
  double z = CYX_FMA_F64(y, 0x1.71547652b82fep+0, zero);
  double r = cyx_exp_reduce_f64(y, z - zero);
  double p = r * r * cyx_exp_poly_f64(r);
  double half = cyx_from_bits_f64(cyx_bits_f64(z) << 52);
  double e = CYX_FMA_F64(p, half, CYX_FMA_F64(r, half, half - 0.5)) * 2.0;
  return __builtin_copysign(__builtin_fabs(x) < 0x1p-54 ? x : e, x);
}

/* 1 / (1 + 2^n (1 + p)), multiplied through by 2^-n for n > 0, which keeps the denormal results. */
static inline CYX_INLINE double cyx_logistic_f64(double x) {
  double y = -cyx_within_f64(x, -750.0, 750.0);
  double z = CYX_FMA_F64(y, 0x1.71547652b82fep+0, CYX_MAGIC_F64);
  double n = z - CYX_MAGIC_F64;
  double r = cyx_exp_reduce_f64(y, n);
  double p = CYX_FMA_F64(r * r, cyx_exp_poly_f64(r), r);
  uint64_t count = cyx_bits_f64(__builtin_fabs(n) + CYX_MAGIC_F64) - 0x4338000000000000u;
  uint64_t half = count >> 1;
  double u = cyx_from_bits_f64((1023u - half) << 52) * cyx_from_bits_f64((1023u - count + half) << 52);
  double d = 1.0 + u;
  d += CYX_FMA_F64(n > 0 ? 1.0 : u, p, u - (d - 1.0));
  return (n > 0 ? u : 1.0) / d;
}

static inline CYX_INLINE double cyx_tanh_f64(double x) {
  double y = __builtin_fabs(x);
  double t = y * y;
  double p = CYX_POLY10(CYX_FMA_F64, t, -0x1.5555555555454p-2, 0x1.11111110fd7d9p-3, -0x1.ba1ba1a99572p-5,
      0x1.664f450c9c841p-6, -0x1.226dca5b6be59p-7, 0x1.d6c3c098e5698p-9, -0x1.7cdc8c320f192p-10,
      0x1.2f19debf73189p-11, -0x1.b5926c8ec789cp-13, 0x1.a27a865fd0e43p-15);
  double low = CYX_FMA_F64(y * t, p, y);
  double high = 1.0 - 2.0 / (cyx_exp_mid_f64(2.0 * (y > 20.0 ? 20.0 : y)) + 1.0);
  return __builtin_copysign(y < 0.56 ? low : high, x);
}

static inline CYX_INLINE double cyx_sinh_f64(double x) {
  double y = __builtin_fabs(x);
  double t = y * y;
  double p = CYX_POLY8(CYX_FMA_F64, t, 0x1.5555555555555p-3, 0x1.1111111111111p-7, 0x1.a01a01a019fc1p-13,
      0x1.71de3a5573f74p-19, 0x1.ae6456741bfa2p-26, 0x1.61246af9e7986p-33, 0x1.ae756ec7abb0ep-41,
      0x1.9a79349ce9c0cp-49);
  double low = CYX_FMA_F64(y * t, p, y);
  double half = cyx_exp_scaled_f64(y, 0.0, -1);
  return __builtin_copysign(y < 1.0 ? low : half - 0.25 / half, x);
}

static inline CYX_INLINE double cyx_cosh_f64(double x) {
  double half = cyx_exp_scaled_f64(__builtin_fabs(x), 0.0, -1);
  return half + 0.25 / half;
}

/* A polynomial below 1, above 1 - e^-q(|x|) with q = -log(erfc). */
static inline CYX_INLINE double cyx_erf_f64(double x) {
  double y = __builtin_fabs(x);
  double t = y * y;
  double p = CYX_POLY13(CYX_FMA_F64, t, 0x1.06eba8214db69p-3, -0x1.812746b0379e6p-2, 0x1.ce2f21a042b2p-4,
      -0x1.b82ce31284998p-6, 0x1.565bcd0db026bp-8, -0x1.c02db3d8ec0e7p-11, 0x1.f9a321a1044ep-14,
      -0x1.f4d1df37bca76p-17, 0x1.b9def18d95e36p-20, -0x1.5f1d3650061d5p-23, 0x1.f7a40e36b47a6p-27,
      -0x1.386ab69e6a159p-30, 0x1.057993fb3c461p-34);
  double low = CYX_FMA_F64(y, p, y);
  double u = y > 6.0 ? 6.0 : y;
  double q = CYX_POLY20(CYX_FMA_F64, u, 0x1.dde608fcab53dp-26, 0x1.20dd70cbdeaddp+0, 0x1.45f327288d0e4p-1,
      0x1.a4f3023e7fcdep-4, -0x1.3964d15b18351p-6, -0x1.a846ab3da2658p-13, 0x1.b715715586b05p-10,
      -0x1.2199433decf5fp-11, -0x1.71310d41f3111p-16, 0x1.d0a8346f4af9p-14, -0x1.0fa09bdf06b59p-14,
      0x1.975b0652cbaefp-16, -0x1.c747125d2b1bcp-18, 0x1.8a85abd101dcap-20, -0x1.0a7008a585ddfp-22,
      0x1.148ccab0419ecp-25, -0x1.ab2e957fd8674p-29, 0x1.cef21d8b282dep-33, -0x1.3a25dd639c9ddp-37,
      0x1.91ae5f8103014p-43);
  return __builtin_copysign(y < 1.0 ? low : 1.0 - cyx_exp_mid_f64(-q), x);
}

/* ---- f64: logarithms ---- */

/* The exponent, as a double, that brings normal x > 0 into [sqrt(1/2), sqrt(2)), without a signed 64-bit shift. */
static inline CYX_INLINE double cyx_log_exponent_f64(double x) {
  uint64_t biased = (cyx_bits_f64(x) + 0x00095f6198000000u) >> 52;
  return cyx_from_bits_f64(biased | 0x4330000000000000u) - (0x1p52 + 1023.0);
}

/* x 2^-e for the exponent of the function above. */
static inline CYX_INLINE double cyx_log_mantissa_f64(double x) {
  uint64_t biased = (cyx_bits_f64(x) + 0x00095f6198000000u) >> 52;
  return cyx_from_bits_f64(cyx_bits_f64(x) - ((biased - 1023u) << 52));
}

/* log(1 + f) + e ln(2) for 1 + f in [sqrt(1/2), sqrt(2)): log(1 + f) = f - f^2/2 + s (f^2/2 + R), s = f / (2 + f). */
static inline CYX_INLINE double cyx_log_core_f64(double f, double e) {
  double s = f / (2.0 + f);
  double z = s * s;
  double p = CYX_POLY7(CYX_FMA_F64, z, 0x1.5555555555592p-1, 0x1.999999997fdeep-2, 0x1.24924941f006bp-2,
      0x1.c71c5208e44bp-3, 0x1.74663f43cedbp-3, 0x1.39a1ab410a3f9p-3, 0x1.2f063aa184807p-3);
  double h = 0.5 * f * f;
  double tail = CYX_FMA_F64(s, CYX_FMA_F64(z, p, h), e * 0x1.a39ef35793c76p-33) - h;
  return CYX_FMA_F64(e, 0x1.62e42feep-1, f + tail);
}

static inline CYX_INLINE double cyx_log_f64(double x) {
  uint8_t tiny = x < 0x1p-1022;
  double y = tiny ? x * 0x1p52 : x;
  double e = cyx_log_exponent_f64(y) - (tiny ? 52.0 : 0.0);
  double r = cyx_log_core_f64(cyx_log_mantissa_f64(y) - 1.0, e);
  double edge = x == 0 ? -CYX_INF_F64 : CYX_NAN_F64;
  r = x < CYX_INF_F64 ? r : x;
  return x > 0 ? r : edge;
}

/* log(1 + x + low) for x > -1, low below an ulp of x: the rounding error of the sum goes into the reduced argument. */
static inline CYX_INLINE double cyx_log_plus_one_low_f64(double x, double low) {
  double u = 1.0 + x;
  double lost = (x < 1.0 ? x - (u - 1.0) : 1.0 - (u - x)) + low;
  double e = cyx_log_exponent_f64(u);
  uint64_t scale = cyx_bits_f64((e > 1022.0 ? 1022.0 : e) + (0x1p52 + 1023.0));
  double f = cyx_log_mantissa_f64(u) - 1.0;
  f += lost * cyx_from_bits_f64((2046u - (scale & 0x7ffu)) << 52);
  double r = cyx_log_core_f64(f, e);
  return x < CYX_INF_F64 ? r : x;
}

static inline CYX_INLINE double cyx_log_plus_one_f64(double x) {
  double r = cyx_log_plus_one_low_f64(x, 0.0);
  double edge = x == -1.0 ? -CYX_INF_F64 : CYX_NAN_F64;
  r = __builtin_fabs(x) < 0x1p-54 ? x : r;
  return x > -1.0 ? r : edge;
}

/* ---- sine, cosine, tangent ---- */

/* x - n pi / 2 for |x| <= 1e5; the first difference is exact. */
static inline CYX_INLINE float cyx_reduce_pio2_f32(float x, float n) {
#ifdef __FMA__
  float r = __builtin_fmaf(n, -0x1.921fb6p+0f, x);
  r = __builtin_fmaf(n, 0x1.777a5cp-25f, r);
  return __builtin_fmaf(n, 0x1.ee59dap-50f, r);
#else
  return (float)(((double)x - (double)n * 0x1.921fb544p+0) - (double)n * 0x1.0b4611a626331p-34);
#endif
}

/* The two leading parts of pi / 2 have 37 bits, so that their products are exact without FMA too. */
static inline CYX_INLINE double cyx_reduce_pio2_f64(double x, double n) {
  double r = CYX_FMA_F64(n, -0x1.921fb5444p+0, x);
  r = CYX_FMA_F64(n, -0x1.68c234c4cp-39, r);
  return CYX_FMA_F64(n, -0x1.98a2e03707345p-77, r);
}

/* As above, with the rounding error of r in *low. */
static inline CYX_INLINE float cyx_reduce_pio2_low_f32(float x, float n, float *low) {
#ifdef __FMA__
  float a = __builtin_fmaf(n, -0x1.921fb6p+0f, x);
  float b = n * 0x1.777a5cp-25f;
  float r = a + b;
  float added = r - a;
  float lost = __builtin_fmaf(n, 0x1.777a5cp-25f, -b) + ((a - (r - added)) + (b - added));
  *low = __builtin_fmaf(n, 0x1.ee59dap-50f, lost);
  return r;
#else
  double r = ((double)x - (double)n * 0x1.921fb544p+0) - (double)n * 0x1.0b4611a626331p-34;
  *low = (float)(r - (double)(float)r);
  return (float)r;
#endif
}

static inline CYX_INLINE double cyx_reduce_pio2_low_f64(double x, double n, double *low) {
  double a = CYX_FMA_F64(n, -0x1.921fb5444p+0, x);
  double r = CYX_FMA_F64(n, -0x1.68c234c4cp-39, a);
  *low = CYX_FMA_F64(n, -0x1.98a2e03707345p-77, CYX_FMA_F64(n, -0x1.68c234c4cp-39, a - r));
  return r;
}

/* sin(r) for |r| <= pi / 4. */
static inline CYX_INLINE float cyx_sine_kernel_f32(float r) {
  float t = r * r;
  float p = CYX_POLY3(CYX_FMA_F32, t, -0x1.555546p-3f, 0x1.110778p-7f, -0x1.9953fep-13f);
  return CYX_FMA_F32(r * t, p, r);
}

/* cos(r) for |r| <= pi / 4. */
static inline CYX_INLINE float cyx_cosine_kernel_f32(float r) {
  float t = r * r;
  float p = CYX_POLY3(CYX_FMA_F32, t, 0x1.55554ap-5f, -0x1.6c0c2ap-10f, 0x1.99e90ep-16f);
  return CYX_FMA_F32(t, CYX_FMA_F32(t, p, -0.5f), 1.0f);
}

/* tan(r + low) for |r| <= pi / 4. */
static inline CYX_INLINE float cyx_tan_kernel_f32(float r, float low) {
  float t = r * r;
  float p = CYX_POLY7(CYX_FMA_F32, t, 0x1.55556p-2f, 0x1.110d9ep-3f, 0x1.bad9bep-5f, 0x1.5cc12cp-6f, 0x1.62c88p-7f,
      0x1.9e4aa6p-14f, 0x1.1e8c6p-8f);
  return r + CYX_FMA_F32(r * t, p, CYX_FMA_F32(low, t, low));
}

/* sin(r) for |r| <= pi / 4. */
static inline CYX_INLINE double cyx_sine_kernel_f64(double r) {
  double t = r * r;
  double p = CYX_POLY6(CYX_FMA_F64, t, -0x1.5555555555548p-3, 0x1.111111110f7c7p-7, -0x1.a01a019bfcd91p-13,
      0x1.71de3566e09bbp-19, -0x1.ae5e59d0c011fp-26, 0x1.5d8f98c9442eap-33);
  return CYX_FMA_F64(r * t, p, r);
}

/* cos(r) for |r| <= pi / 4. */
static inline CYX_INLINE double cyx_cosine_kernel_f64(double r) {
  double t = r * r;
  double p = CYX_POLY6(CYX_FMA_F64, t, 0x1.555555555554bp-5, -0x1.6c16c16c14f8ap-10, 0x1.a01a019c8398ep-16,
      -0x1.27e4f7ea39718p-22, 0x1.1ee9d751a076ap-29, -0x1.8fa4647c8e3a1p-37);
  return CYX_FMA_F64(t, CYX_FMA_F64(t, p, -0.5), 1.0);
}

/* tan(r + low) for |r| <= pi / 4. */
static inline CYX_INLINE double cyx_tan_kernel_f64(double r, double low) {
  double t = r * r;
  double p = CYX_POLY14(CYX_FMA_F64, t, 0x1.55555555554f1p-2, 0x1.1111111118365p-3, 0x1.ba1ba1b4654afp-5,
      0x1.664f49a982abap-6, 0x1.226e123d106ccp-7, 0x1.d6d937be87ae2p-9, 0x1.7d5b2cbad2e5bp-10,
      0x1.37fc16cfa262bp-11, 0x1.d25eccfef9c8p-13, 0x1.1e4db56b76726p-13, -0x1.ba91b2b44532cp-16,
      0x1.772a3f013111cp-14, -0x1.786d0ed1ec328p-15, 0x1.5e03f9c6dc28ep-16);
  return r + CYX_FMA_F64(r * t, p, CYX_FMA_F64(low, t, low));
}

/* Sine or cosine of |x| - n pi / 2 by the lowest bit of n, negated by the next one; for |x| <= 1e5. */
static inline CYX_INLINE float cyx_sine_f32(float x) {
  float a = __builtin_fabsf(x);
  float z = CYX_FMA_F32(a, 0x1.45f306p-1f, CYX_MAGIC_F32);
  float r = cyx_reduce_pio2_f32(a, z - CYX_MAGIC_F32);
  uint32_t n = cyx_bits_f32(z);
  float y = n & 1 ? cyx_cosine_kernel_f32(r) : cyx_sine_kernel_f32(r);
  return cyx_from_bits_f32(cyx_bits_f32(y) ^ ((n >> 1) << 31) ^ (cyx_bits_f32(x) & 0x80000000u));
}

/* As the sine, with one more quarter turn. */
static inline CYX_INLINE float cyx_cosine_f32(float x) {
  float a = __builtin_fabsf(x);
  float z = CYX_FMA_F32(a, 0x1.45f306p-1f, CYX_MAGIC_F32);
  float r = cyx_reduce_pio2_f32(a, z - CYX_MAGIC_F32);
  uint32_t n = cyx_bits_f32(z) + 1u;
  float y = n & 1 ? cyx_cosine_kernel_f32(r) : cyx_sine_kernel_f32(r);
  return cyx_from_bits_f32(cyx_bits_f32(y) ^ ((n >> 1) << 31));
}

/* tan(|x| - n pi / 2), or minus its reciprocal for odd n; valid for |x| <= 1e5. */
static inline CYX_INLINE float cyx_tan_f32(float x) {
  float a = __builtin_fabsf(x);
  float z = CYX_FMA_F32(a, 0x1.45f306p-1f, CYX_MAGIC_F32);
  float low;
  float r = cyx_reduce_pio2_low_f32(a, z - CYX_MAGIC_F32, &low);
  float t = cyx_tan_kernel_f32(r, low);
  uint8_t odd = cyx_bits_f32(z) & 1;
  float q = (odd ? -1.0f : t) / (odd ? t : 1.0f);
  return cyx_from_bits_f32(cyx_bits_f32(q) ^ (cyx_bits_f32(x) & 0x80000000u));
}

/* Sine or cosine of |x| - n pi / 2 by the lowest bit of n, negated by the next one; for |x| <= 1e5. */
static inline CYX_INLINE double cyx_sine_f64(double x) {
  double a = __builtin_fabs(x);
  double z = CYX_FMA_F64(a, 0x1.45f306dc9c883p-1, CYX_MAGIC_F64);
  double r = cyx_reduce_pio2_f64(a, z - CYX_MAGIC_F64);
  uint64_t n = cyx_bits_f64(z);
  double y = n & 1 ? cyx_cosine_kernel_f64(r) : cyx_sine_kernel_f64(r);
  return cyx_from_bits_f64(cyx_bits_f64(y) ^ ((n >> 1) << 63) ^ (cyx_bits_f64(x) & 0x8000000000000000u));
}

/* As the sine, with one more quarter turn. */
static inline CYX_INLINE double cyx_cosine_f64(double x) {
  double a = __builtin_fabs(x);
  double z = CYX_FMA_F64(a, 0x1.45f306dc9c883p-1, CYX_MAGIC_F64);
  double r = cyx_reduce_pio2_f64(a, z - CYX_MAGIC_F64);
  uint64_t n = cyx_bits_f64(z) + 1u;
  double y = n & 1 ? cyx_cosine_kernel_f64(r) : cyx_sine_kernel_f64(r);
  return cyx_from_bits_f64(cyx_bits_f64(y) ^ ((n >> 1) << 63));
}

/* tan(|x| - n pi / 2), or minus its reciprocal for odd n; valid for |x| <= 1e5. */
static inline CYX_INLINE double cyx_tan_f64(double x) {
  double a = __builtin_fabs(x);
  double z = CYX_FMA_F64(a, 0x1.45f306dc9c883p-1, CYX_MAGIC_F64);
  double low;
  double r = cyx_reduce_pio2_low_f64(a, z - CYX_MAGIC_F64, &low);
  double t = cyx_tan_kernel_f64(r, low);
  uint8_t odd = cyx_bits_f64(z) & 1;
  double q = (odd ? -1.0 : t) / (odd ? t : 1.0);
  return cyx_from_bits_f64(cyx_bits_f64(q) ^ (cyx_bits_f64(x) & 0x8000000000000000u));
}

/* The bits of 2 / pi, after 64 zeros. */
static const uint64_t cyx_two_over_pi[20] = {
    0,
    0xa2f9836e4e441529u, 0xfc2757d1f534ddc0u, 0xdb6295993c439041u, 0xfe5163abdebbc561u, 0xb7246e3a424dd2e0u,
    0x06492eea09d1921cu, 0xfe1deb1cb129a73eu, 0xe88235f52ebb4484u, 0xe99c7026b45f7e41u, 0x3991d639835339f4u,
    0x9c845f8bbdf9283bu, 0x1ff897ffde05980fu, 0xef2f118b5a0a6d1fu, 0x6d367ecf27cb09b7u, 0x4f463f669e5fea2du,
    0x7527bac7ebe5f17bu, 0x3d0739f78a5292eau, 0x6bfb5fb11f8d5d08u, 0x56033046fc7b6babu,
};

/* Payne-Hanek: x - q pi / 2 within +-pi / 4 for finite x >= 1, as a sum r + *low, with q mod 4 stored. With x = m 2^e
 * only 192 bits of 2 / pi matter: those above make multiples of 4, those below stay under 2^-137. */
static CYX_COLD double cyx_reduce_big_f64(double x, uint32_t *quadrant, double *low) {
  uint64_t bits = cyx_bits_f64(x);
  uint64_t m = (bits & 0x000fffffffffffffu) | 0x0010000000000000u;
  uint32_t start = (uint32_t)(bits >> 52) - 1075u - 2u + 64u, shift = start & 63u;
  const uint64_t *word = cyx_two_over_pi + (start >> 6);
  uint64_t w[3];
  for (int i = 0; i < 3; i++) w[i] = shift ? word[i] << shift | word[i + 1] >> (64u - shift) : word[i];
  unsigned __int128 middle = (unsigned __int128)m * w[1] + (uint64_t)((unsigned __int128)m * w[2] >> 64);
  uint64_t last = m * w[2], top = m * w[0] + (uint64_t)(middle >> 64), next = (uint64_t)middle;
  unsigned __int128 part = (unsigned __int128)(top << 2 | next >> 62) << 64 | (next << 2 | last >> 62);
  uint32_t negative = (uint32_t)(part >> 127);
  *quadrant = (uint32_t)(top >> 62) + negative;
  part = negative ? -part : part;
  uint64_t high = (uint64_t)(part >> 64);
  uint32_t zeros = high ? (uint32_t)__builtin_clzll(high) : 64u + (uint32_t)__builtin_clzll((uint64_t)part | 1u);
  part <<= zeros;
  double a = (double)(int64_t)(uint64_t)(part >> 75);
  double b = (double)(int64_t)((uint64_t)(part >> 22) & 0x001fffffffffffffu);
  double p = a * 0x1.921fb54442d18p+0;
  double tail = CYX_FMA_F64(a, 0x1.921fb54442d18p+0, -p) + a * 0x1.1a62633145c07p-54 + b * 0x1.921fb54442d18p-53;
  double r = p + tail;
  double scale = cyx_from_bits_f64((uint64_t)(1023u - 53u - zeros) << 52);
  scale = negative ? -scale : scale;
  *low = ((p - r) + tail) * scale;
  return r * scale;
}

/* sin(x + turn pi / 2) for x >= 0 of any size. */
static CYX_COLD double cyx_sine_turn_f64(double x, uint32_t turn) {
  if (!(x < CYX_INF_F64)) return CYX_NAN_F64;
  if (x < 1.0) return turn ? cyx_cosine_f64(x) : cyx_sine_f64(x);
  uint32_t quadrant;
  double low, r = cyx_reduce_big_f64(x, &quadrant, &low);
  quadrant += turn;
  r = quadrant & 1 ? cyx_cosine_kernel_f64(r) : cyx_sine_kernel_f64(r);
  return quadrant & 2 ? -r : r;
}

static CYX_COLD double cyx_sine_f64_slow(double x) {
  double r = cyx_sine_turn_f64(__builtin_fabs(x), 0);
  return __builtin_signbit(x) ? -r : r;
}

static CYX_COLD double cyx_cosine_f64_slow(double x) { return cyx_sine_turn_f64(__builtin_fabs(x), 1); }

static CYX_COLD double cyx_tan_f64_slow(double x) {
  double a = __builtin_fabs(x);
  if (!(a < CYX_INF_F64)) return CYX_NAN_F64;
  if (a < 1.0) return cyx_tan_f64(x);
  uint32_t quadrant;
  double low, r = cyx_reduce_big_f64(a, &quadrant, &low);
  r = cyx_tan_kernel_f64(r, low);
  if (quadrant & 1) r = -1.0 / r;
  return __builtin_signbit(x) ? -r : r;
}

/* For scalar code: correct for every argument, fast for common ones. */
static inline double cyx_sine_any_f64(double x) {
  return __builtin_fabs(x) > 1e5 ? cyx_sine_f64_slow(x) : cyx_sine_f64(x);
}

static inline double cyx_cosine_any_f64(double x) {
  return __builtin_fabs(x) > 1e5 ? cyx_cosine_f64_slow(x) : cyx_cosine_f64(x);
}

static inline CYX_INLINE float cyx_sine_f32_slow(float x) { return (float)cyx_sine_f64_slow((double)x); }

static inline CYX_INLINE float cyx_cosine_f32_slow(float x) { return (float)cyx_cosine_f64_slow((double)x); }

static inline CYX_INLINE float cyx_tan_f32_slow(float x) { return (float)cyx_tan_f64_slow((double)x); }

static inline CYX_INLINE uint32_t cyx_sine_f32_needs_slow(float x) { return __builtin_fabsf(x) > 1e5f; }

static inline CYX_INLINE uint32_t cyx_cosine_f32_needs_slow(float x) { return __builtin_fabsf(x) > 1e5f; }

static inline CYX_INLINE uint32_t cyx_tan_f32_needs_slow(float x) { return __builtin_fabsf(x) > 1e5f; }

static inline CYX_INLINE uint64_t cyx_sine_f64_needs_slow(double x) { return __builtin_fabs(x) > 1e5; }

static inline CYX_INLINE uint64_t cyx_cosine_f64_needs_slow(double x) { return __builtin_fabs(x) > 1e5; }

static inline CYX_INLINE uint64_t cyx_tan_f64_needs_slow(double x) { return __builtin_fabs(x) > 1e5; }

static CYX_COLD float cyx_sine_f32_full(float x) {
  return cyx_sine_f32_needs_slow(x) ? cyx_sine_f32_slow(x) : cyx_sine_f32(x);
}

static CYX_COLD double cyx_sine_f64_full(double x) {
  return cyx_sine_f64_needs_slow(x) ? cyx_sine_f64_slow(x) : cyx_sine_f64(x);
}

static CYX_COLD float cyx_cosine_f32_full(float x) {
  return cyx_cosine_f32_needs_slow(x) ? cyx_cosine_f32_slow(x) : cyx_cosine_f32(x);
}

static CYX_COLD double cyx_cosine_f64_full(double x) {
  return cyx_cosine_f64_needs_slow(x) ? cyx_cosine_f64_slow(x) : cyx_cosine_f64(x);
}

static CYX_COLD float cyx_tan_f32_full(float x) {
  return cyx_tan_f32_needs_slow(x) ? cyx_tan_f32_slow(x) : cyx_tan_f32(x);
}

static CYX_COLD double cyx_tan_f64_full(double x) {
  return cyx_tan_f64_needs_slow(x) ? cyx_tan_f64_slow(x) : cyx_tan_f64(x);
}

/* ---- power ---- */

/* Return whether y is an odd integer, and whether it is an integer (infinities count as even ones). */
static inline CYX_INLINE uint8_t cyx_is_odd_f64(double y) {
  double half = 0.5 * y;
  return (cyx_floor_f64(y) == y) & (cyx_floor_f64(half) != half);
}

/* C's special cases of pow around r = |x|^y. */
static inline CYX_INLINE double cyx_power_edges_f64(double x, double y, double r) {
  double a = __builtin_fabs(x);
  double negative = cyx_is_odd_f64(y) ? -r : r;
  negative = ((cyx_floor_f64(y) != y) & (x < 0) & (a < CYX_INF_F64)) ? CYX_NAN_F64 : negative;
  r = cyx_bits_f64(x) >> 63 ? negative : r;
  uint8_t one = (x == 1.0) | (y == 0) | ((a == 1.0) & (__builtin_fabs(y) == CYX_INF_F64));
  return one ? 1.0 : r;
}

/* In double: its 2^-40 of a logarithm is what |y log2(x)| <= 150 needs, and denormals need no care. */
static inline CYX_INLINE float cyx_power_f32(float x, float y) {
  double a = __builtin_fabs((double)x);
  double f = cyx_log_mantissa_f64(a) - 1.0;
  double s = f / (f + 2.0);
  double z = s * s;
  double p = CYX_POLY5(CYX_FMA_F64, z, 0x1.71547652bee34p+1, 0x1.ec709d128d8dcp-1, 0x1.2777801a8dbdbp-1,
      0x1.a58d705703ddfp-2, 0x1.5cea2c0621e35p-2);
  double l = CYX_FMA_F64(s, p, cyx_log_exponent_f64(a));
  l = a < CYX_INF_F64 ? l : a;
  l = a == 0 ? -CYX_INF_F64 : l;
  double t = l * (double)y;
  t = t < -200.0 ? -200.0 : t;
  t = t > 200.0 ? 200.0 : t;
  double n = t + CYX_MAGIC_F64;
  double r = t - (n - CYX_MAGIC_F64);
  double e = CYX_POLY6(CYX_FMA_F64, r, 0x1.62e430af1f62p-1, 0x1.ebfbdc3a8006fp-3, 0x1.c6aee89a72d4fp-5,
      0x1.3b2d4e4231668p-7, 0x1.5f3e4d2327632p-10, 0x1.41fad5a2a05d5p-13);
  e = CYX_FMA_F64(r, e, 1.0) * cyx_from_bits_f64((cyx_bits_f64(n) + 1023u) << 52);
  return (float)cyx_power_edges_f64((double)x, (double)y, e);
}

/* The rounding error of the product p = a * b. */
static inline CYX_INLINE double cyx_product_error_f64(double a, double b, double p) {
#ifdef __FMA__
  return __builtin_fma(a, b, -p);
#else
  double a1 = cyx_from_bits_f64(cyx_bits_f64(a) & 0xfffffffff8000000u), a2 = a - a1;
  double b1 = cyx_from_bits_f64(cyx_bits_f64(b) & 0xfffffffff8000000u), b2 = b - b1;
  return ((a1 * b1 - p) + a1 * b2 + a2 * b1) + a2 * b2;
#endif
}

/* log(a) for normal a > 0 as a sum of two doubles, good to about 2^-67. With s = (m - 1) / (m + 1) to twice the
 * precision it is 2 s + s^3 (2/3 + s^2 P(s^2)), where only the last term is plain. */
static inline CYX_INLINE double cyx_log_pair_f64(double a, double e, double *low) {
  double m = cyx_log_mantissa_f64(a);
  double f = m - 1.0;
  double d = m + 1.0;
  double d_low = m - (d - 1.0);
  double inverse = 1.0 / d;
  double s = f * inverse;
  double sd = s * d;
  double s_low = (((f - sd) - cyx_product_error_f64(s, d, sd)) - s * d_low) * inverse;
  double z = s * s;
  double z_low = cyx_product_error_f64(s, s, z) + 2.0 * s * s_low;
  double u = z * CYX_POLY8(CYX_FMA_F64, z, 0x1.9999999999996p-2, 0x1.2492492493035p-2, 0x1.c71c71c580546p-3,
      0x1.745d183263fccp-3, 0x1.3b1362afae658p-3, 0x1.1120b6d1c521p-3, 0x1.de333813815c8p-4, 0x1.eb1336d988d39p-4);
  double c = 0x1.5555555555555p-1 + u;
  double c_low = ((0x1.5555555555555p-1 - c) + u) + 0x1.5555555555555p-55;
  double w = z * s;
  double w_low = cyx_product_error_f64(z, s, w) + z * s_low + z_low * s;
  double q = w * c;
  double q_low = cyx_product_error_f64(w, c, q) + w * c_low + w_low * c;
  double h = 2.0 * s + q;
  double h_low = ((2.0 * s - h) + q) + (2.0 * s_low + q_low);
  double k = e * 0x1.62e42fefa3p-1;
  double sum = k + h;
  double back = sum - k;
  double lost = (k - (sum - back)) + (h - back);
  *low = lost + (h_low + e * 0x1.3de6af278ece6p-42);
  return sum;
}

static inline CYX_INLINE double cyx_power_f64(double x, double y) {
  double a = __builtin_fabs(x);
  uint8_t tiny = a < 0x1p-1022;
  double b = tiny ? a * 0x1p52 : a;
  double e = cyx_log_exponent_f64(b) - (tiny ? 52.0 : 0.0);
  double low;
  double l = cyx_log_pair_f64(b, e, &low);
  l = a < CYX_INF_F64 ? l : a;
  l = a == 0 ? -CYX_INF_F64 : l;
  double t = l * y;
  double t_low = cyx_product_error_f64(l, y, t) + low * y;
  t_low = __builtin_fabs(t) < 800.0 ? t_low : 0.0;
  return cyx_power_edges_f64(x, y, cyx_exp_scaled_f64(t, t_low, 0));
}

#pragma GCC diagnostic pop

#endif
