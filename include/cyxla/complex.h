/* Complex arithmetic and functions: c64 is computed in double and rounded once, c128 in double.
 *
 * Blocks as in scalar.h. Needs abi.h, scalar.h, math.h.
 */

typedef struct { float re, im; } cyx_c64;

typedef struct { double re, im; } cyx_c128;

static inline cyx_c128 cyx_c128_of(double re, double im) { const cyx_c128 z = {re, im}; return z; }

static inline cyx_c64 cyx_c64_of(float re, float im) { const cyx_c64 z = {re, im}; return z; }

static inline cyx_c128 cyx_c128_from_c64(cyx_c64 z) { return cyx_c128_of((double)z.re, (double)z.im); }

/* To float, hidden from gcc, which would leave out that and the way back where it computes both parts at once. */
static inline CYX_ALWAYS float cyx_part_c64(double x) {
  const uint32_t u = cyx_bits_f32((float)x);
  return cyx_from_bits_f32(u & (-(uint32_t)(x == x) | 0xffc00000u));
}

static inline CYX_ALWAYS cyx_c64 cyx_c64_from_c128(cyx_c128 z) { return cyx_c64_of(cyx_part_c64(z.re), cyx_part_c64(z.im)); }

static inline cyx_c64 cyx_add_c64(cyx_c64 a, cyx_c64 b) { return cyx_c64_of(a.re + b.re, a.im + b.im); }

static inline cyx_c128 cyx_add_c128(cyx_c128 a, cyx_c128 b) { return cyx_c128_of(a.re + b.re, a.im + b.im); }

static inline cyx_c64 cyx_subtract_c64(cyx_c64 a, cyx_c64 b) { return cyx_c64_of(a.re - b.re, a.im - b.im); }

static inline cyx_c128 cyx_subtract_c128(cyx_c128 a, cyx_c128 b) { return cyx_c128_of(a.re - b.re, a.im - b.im); }

/* -x, hidden from gcc, which would make a fused operation of a difference and a sum of products side by side. */
static inline CYX_ALWAYS float cyx_minus_c64(float x) { return cyx_from_bits_f32(cyx_bits_f32(x) ^ 0x80000000u); }

static inline CYX_ALWAYS double cyx_minus_c128(double x) { return cyx_from_bits_f64(cyx_bits_f64(x) ^ 1ull << 63); }

static inline CYX_ALWAYS cyx_c64 cyx_multiply_c64(cyx_c64 a, cyx_c64 b) {
  return cyx_c64_of(a.re * b.re + a.im * cyx_minus_c64(b.im), a.re * b.im + a.im * b.re);
}

static inline CYX_ALWAYS cyx_c128 cyx_multiply_c128(cyx_c128 a, cyx_c128 b) {
  return cyx_c128_of(a.re * b.re + a.im * cyx_minus_c128(b.im), a.re * b.im + a.im * b.re);
}

static inline cyx_c64 cyx_negate_c64(cyx_c64 z) { return cyx_c64_of(-z.re, -z.im); }

static inline cyx_c128 cyx_negate_c128(cyx_c128 z) { return cyx_c128_of(-z.re, -z.im); }

/* A quotient that came out as NaN in both parts, as C99 annex G has it for infinities and zeros; without branches. */
static inline CYX_ALWAYS cyx_c128 cyx_divide_mend_c128(cyx_c128 a, cyx_c128 b, double re, double im) {
  const double inf = __builtin_inf();
  const double p = __builtin_fabs(a.re), q = __builtin_fabs(a.im), r = __builtin_fabs(b.re), s = __builtin_fabs(b.im);
  const double x = __builtin_copysign(p == inf ? 1.0 : 0.0, a.re), y = __builtin_copysign(q == inf ? 1.0 : 0.0, a.im);
  const double z = __builtin_copysign(r == inf ? 1.0 : 0.0, b.re), w = __builtin_copysign(s == inf ? 1.0 : 0.0, b.im);
  const double up_re = inf * (x * b.re + y * b.im), up_im = inf * (y * b.re - x * b.im);
  const double down_re = 0.0 * (a.re * z + a.im * w), down_im = 0.0 * (a.im * z - a.re * w);
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
static inline CYX_ALWAYS cyx_c128 cyx_divide_c128(cyx_c128 a, cyx_c128 b) {
  const int wide = __builtin_fabs(b.re) >= __builtin_fabs(b.im);
  const double big = wide ? b.re : b.im, small = wide ? b.im : b.re;
  const double first = wide ? a.re : a.im, second = wide ? a.im : a.re;
  const double ratio = small / big, scale = 1.0 / (big + small * ratio);
  const double turned = first * ratio;
  const double im = wide ? second + cyx_minus_c128(turned) : turned + cyx_minus_c128(second);
  return cyx_divide_mend_c128(a, b, (first + second * ratio) * scale, im * scale);
}

/* Products of two floats are exact in double and their squares do not overflow, so the plain formula will do. */
static inline CYX_ALWAYS cyx_c64 cyx_divide_c64(cyx_c64 x, cyx_c64 y) {
  const cyx_c128 a = cyx_c128_from_c64(x), b = cyx_c128_from_c64(y);
  const double scale = 1.0 / (b.re * b.re + b.im * b.im);
  const double re = (a.re * b.re + a.im * b.im) * scale, im = (a.im * b.re - a.re * b.im) * scale;
  return cyx_c64_from_c128(cyx_divide_mend_c128(a, b, re, im));
}

static inline double cyx_abs_c128(cyx_c128 z) { return cyx_hypot_f64(z.re, z.im); }

static inline float cyx_abs_c64(cyx_c64 z) { return (float)cyx_hypot_f64((double)z.re, (double)z.im); }

static inline cyx_c128 cyx_sign_c128(cyx_c128 z) {
  const double r = cyx_abs_c128(z);
  if (z.re != z.re || z.im != z.im) return cyx_c128_of(__builtin_nan(""), __builtin_nan(""));
  return r == 0 ? cyx_c128_of(0, 0) : cyx_c128_of(z.re / r, z.im / r);
}

static inline cyx_c128 cyx_exponential_c128(cyx_c128 z) {
  const double r = cyx_exponential_f64(z.re);
  if (z.im == 0) return cyx_c128_of(r, z.im);
  if (z.re == -__builtin_inf() && !(__builtin_fabs(z.im) < __builtin_inf())) return cyx_c128_of(0, 0);
  return cyx_c128_of(r * cyx_cosine_any_f64(z.im), r * cyx_sine_any_f64(z.im));
}

static inline cyx_c128 cyx_exponential_minus_one_c128(cyx_c128 z) {
  const double e = cyx_exponential_minus_one_f64(z.re), h = cyx_sine_any_f64(z.im * 0.5);
  if (z.im == 0) return cyx_c128_of(e, z.im);
  return cyx_c128_of(e * cyx_cosine_any_f64(z.im) - 2 * h * h, (e + 1) * cyx_sine_any_f64(z.im));
}

static inline cyx_c128 cyx_log_c128(cyx_c128 z) {
  return cyx_c128_of(cyx_log_f64(cyx_abs_c128(z)), cyx_atan2_f64(z.im, z.re));
}

static inline cyx_c128 cyx_log_plus_one_c128(cyx_c128 z) {
  const double x = z.re, y = z.im;
  const double small = 0.5 * cyx_log_plus_one_f64(x * (2 + x) + y * y);
  const double re = __builtin_fabs(x) < 0.5 && __builtin_fabs(y) < 0.5 ? small : cyx_log_f64(cyx_hypot_f64(x + 1, y));
  return cyx_c128_of(re, cyx_atan2_f64(y, x + 1));
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

static inline cyx_c128 cyx_tanh_c128(cyx_c128 z) {
  if (__builtin_fabs(z.re) > 20) {
    const double s = cyx_sine_any_f64(2 * z.im), e = cyx_exponential_f64(-2 * __builtin_fabs(z.re));
    const double one = __builtin_copysign(1.0, z.re);
    if (__builtin_fabs(z.im) < __builtin_inf()) return cyx_c128_of(one, 2 * s * e);
    return __builtin_fabs(z.re) == __builtin_inf() ? cyx_c128_of(one, 0) : cyx_c128_of(s, s);
  }
  const double t = cyx_sine_any_f64(z.im) / cyx_cosine_any_f64(z.im), s = cyx_sinh_f64(z.re), c = cyx_cosh_f64(z.re);
  const double beta = 1 + t * t, d = 1 + beta * s * s;
  return cyx_c128_of(z.re == 0 ? z.re : beta * c * s / d, z.im == 0 ? z.im : t / d);
}

static inline cyx_c128 cyx_tan_c128(cyx_c128 z) {
  const cyx_c128 r = cyx_tanh_c128(cyx_c128_of(-z.im, z.re));
  return cyx_c128_of(r.im, -r.re);
}

static inline cyx_c128 cyx_sinh_c128(cyx_c128 z) {
  return cyx_c128_of(cyx_sinh_f64(z.re) * cyx_cosine_any_f64(z.im), cyx_cosh_f64(z.re) * cyx_sine_any_f64(z.im));
}

static inline cyx_c128 cyx_cosh_c128(cyx_c128 z) {
  return cyx_c128_of(cyx_cosh_f64(z.re) * cyx_cosine_any_f64(z.im), cyx_sinh_f64(z.re) * cyx_sine_any_f64(z.im));
}

static inline cyx_c128 cyx_sine_c128(cyx_c128 z) {
  return cyx_c128_of(cyx_sine_any_f64(z.re) * cyx_cosh_f64(z.im), cyx_cosine_any_f64(z.re) * cyx_sinh_f64(z.im));
}

static inline cyx_c128 cyx_cosine_c128(cyx_c128 z) {
  return cyx_c128_of(cyx_cosine_any_f64(z.re) * cyx_cosh_f64(z.im), -cyx_sine_any_f64(z.re) * cyx_sinh_f64(z.im));
}

static inline cyx_c128 cyx_logistic_c128(cyx_c128 z) {
  const cyx_c128 e = cyx_exponential_c128(cyx_negate_c128(z));
  return cyx_divide_c128(cyx_c128_of(1, 0), cyx_c128_of(1 + e.re, e.im));
}

static inline cyx_c128 cyx_power_c128(cyx_c128 a, cyx_c128 b) {
  if (b.re == 0 && b.im == 0) return cyx_c128_of(1, 0);
  if (a.re == 0 && a.im == 0) return b.re > 0 ? cyx_c128_of(0, 0) : cyx_c128_of(__builtin_inf(), __builtin_nan(""));
  return cyx_exponential_c128(cyx_multiply_c128(b, cyx_log_c128(a)));
}
