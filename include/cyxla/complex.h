/* Complex arithmetic and functions: c64 is computed in double and rounded once, c128 in double.
 *
 * Blocks as in scalar.h. Needs abi.h, scalar.h, math.h.
 */

typedef struct { float re, im; } cyx_c64;

typedef struct { double re, im; } cyx_c128;

static inline cyx_c128 cyx_c128_of(double re, double im) { const cyx_c128 z = {re, im}; return z; }

static inline cyx_c64 cyx_c64_of(float re, float im) { const cyx_c64 z = {re, im}; return z; }

static inline cyx_c128 cyx_c128_from_c64(cyx_c64 z) { return cyx_c128_of((double)z.re, (double)z.im); }

static inline cyx_c64 cyx_c64_from_c128(cyx_c128 z) { return cyx_c64_of((float)z.re, (float)z.im); }

static inline cyx_c64 cyx_add_c64(cyx_c64 a, cyx_c64 b) { return cyx_c64_of(a.re + b.re, a.im + b.im); }

static inline cyx_c128 cyx_add_c128(cyx_c128 a, cyx_c128 b) { return cyx_c128_of(a.re + b.re, a.im + b.im); }

static inline cyx_c64 cyx_subtract_c64(cyx_c64 a, cyx_c64 b) { return cyx_c64_of(a.re - b.re, a.im - b.im); }

static inline cyx_c128 cyx_subtract_c128(cyx_c128 a, cyx_c128 b) { return cyx_c128_of(a.re - b.re, a.im - b.im); }

static inline cyx_c64 cyx_multiply_c64(cyx_c64 a, cyx_c64 b) {
  return cyx_c64_of(a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re);
}

static inline cyx_c128 cyx_multiply_c128(cyx_c128 a, cyx_c128 b) {
  return cyx_c128_of(a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re);
}

static inline cyx_c64 cyx_negate_c64(cyx_c64 z) { return cyx_c64_of(-z.re, -z.im); }

static inline cyx_c128 cyx_negate_c128(cyx_c128 z) { return cyx_c128_of(-z.re, -z.im); }

/* Smith's method, with the infinities of C99 annex G. */
static inline cyx_c128 cyx_divide_c128(cyx_c128 a, cyx_c128 b) {
  const double inf = __builtin_inf();
  const int wide = __builtin_fabs(b.re) >= __builtin_fabs(b.im);
  const double big = wide ? b.re : b.im, small = wide ? b.im : b.re;
  const double ratio = small / big, scale = 1.0 / (big + small * ratio);
  double re = (wide ? a.re + a.im * ratio : a.re * ratio + a.im) * scale;
  double im = (wide ? a.im - a.re * ratio : a.im * ratio - a.re) * scale;
  const int a_inf = __builtin_fabs(a.re) == inf || __builtin_fabs(a.im) == inf;
  const int b_inf = __builtin_fabs(b.re) == inf || __builtin_fabs(b.im) == inf;
  if (re != re && im != im) {
    if (b.re == 0 && b.im == 0 && (a.re == a.re || a.im == a.im)) {
      const double s = __builtin_copysign(inf, b.re);
      re = s * a.re, im = s * a.im;
    } else if (a_inf && !b_inf && b.re == b.re && b.im == b.im) {
      const double x = __builtin_copysign(__builtin_fabs(a.re) == inf ? 1.0 : 0.0, a.re);
      const double y = __builtin_copysign(__builtin_fabs(a.im) == inf ? 1.0 : 0.0, a.im);
      re = inf * (x * b.re + y * b.im), im = inf * (y * b.re - x * b.im);
    } else if (b_inf && !a_inf && a.re == a.re && a.im == a.im) {
      const double x = __builtin_copysign(__builtin_fabs(b.re) == inf ? 1.0 : 0.0, b.re);
      const double y = __builtin_copysign(__builtin_fabs(b.im) == inf ? 1.0 : 0.0, b.im);
      re = 0.0 * (a.re * x + a.im * y), im = 0.0 * (a.im * x - a.re * y);
    }
  }
  return cyx_c128_of(re, im);
}

static inline cyx_c64 cyx_divide_c64(cyx_c64 a, cyx_c64 b) {
  return cyx_c64_from_c128(cyx_divide_c128(cyx_c128_from_c64(a), cyx_c128_from_c64(b)));
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
  if (r == 0 && !(__builtin_fabs(z.im) < __builtin_inf())) return cyx_c128_of(0, 0);
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
    return cyx_c128_of(__builtin_copysign(1.0, z.re), __builtin_fabs(z.im) < __builtin_inf() ? 2 * s * e : 0.0);
  }
  const double t = cyx_sine_any_f64(z.im) / cyx_cosine_any_f64(z.im), s = cyx_sinh_f64(z.re), c = cyx_cosh_f64(z.re);
  const double beta = 1 + t * t, d = 1 + beta * s * s;
  return cyx_c128_of(beta * c * s / d, t / d);
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
