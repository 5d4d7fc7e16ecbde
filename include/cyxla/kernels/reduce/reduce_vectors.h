/* Reductions of the middle dimension of an array of three, by a combiner that permits any order: a kernel.
 *
 * A template: define the parameters and include it, any number of times; it undefines them.
 *   REDUCE_PREFIX            prefix of all names; the entry point is `prefix_run(bufs, begin, end)`
 *   REDUCE_MEMORY            type of elements in memory
 *   REDUCE_LOAD(m)           a local of an element in memory
 *   REDUCE_STORE(x)          an element in memory of a local
 *   REDUCE_TYPE0, _TYPE1     types of the two variables of an accumulator
 *   REDUCE_UNIT0, _UNIT1     their first values
 *   REDUCE_UPDATE0(v, w, x)  their values after an element x, from those before
 *   REDUCE_UPDATE1(v, w, x)
 *   REDUCE_MERGE0(v, w, x, y)  their values for two accumulators, (v, w) and (x, y)
 *   REDUCE_MERGE1(v, w, x, y)
 *   REDUCE_TOTAL(v, w)       local of their result
 *   REDUCE_COMBINE(x, y)     the combiner, of locals
 *   REDUCE_KIND              1 for an extreme of f32 or f64, which also has the next parameters; 2 for short code
 *   REDUCE_REAL, _BITS       its type, and an integer of that width
 *   REDUCE_BEFORE(x, y)      whether an element x is better than y
 *   REDUCE_FIRST             infinity that is worse than any element
 *   REDUCE_BETTER_ZERO       0.0 or -0.0: the zero that is better than the other one
 *   REDUCE_BETTER_SIGN(x)    bits with the sign bit set if x has the sign of that zero
 *
 * The numbers: the dimensions; parts of the middle one, which are the last dimension of the result; 1 to combine with
 * the initial value, else 0; tasks. Buffers: the operand, the initial value, the result.
 */
#include "../../abi.h"
#include "../../compiler.h"
#include "../../prebuilt.h"

#define REDUCE(name) CYX_JOIN(REDUCE_PREFIX, name)
#define REDUCE_BLOCK 512 /* columns of a block */

#if REDUCE_KIND == 1
/* An extreme of floats: by comparisons, in named vectors. `odd` tells of NaNs, the signs of `signs` of elements whose
   sign is that of the better zero. An element may be read twice: vectors at both ends overlap their neighbours, and
   those between them are aligned. */
#if defined(__AVX512F__)
#define REDUCE_BYTES 64
#else
#define REDUCE_BYTES 32
#endif
typedef REDUCE_REAL REDUCE(vector) __attribute__((vector_size(REDUCE_BYTES)));
typedef REDUCE_BITS REDUCE(mask) __attribute__((vector_size(REDUCE_BYTES)));
typedef REDUCE_REAL REDUCE(unaligned) __attribute__((vector_size(REDUCE_BYTES), aligned(1), may_alias));

#define REDUCE_WIDTH (REDUCE_BYTES / (int)sizeof(REDUCE_REAL))
#define REDUCE_PAIR(k, l, a, b)                                                                    \
  {                                                                                                \
    const REDUCE(vector) x = *(const REDUCE(unaligned) *)(a), y = *(const REDUCE(unaligned) *)(b); \
    REDUCE(improve)(&v##k, &x);                                                                    \
    REDUCE(improve)(&v##l, &y);                                                                    \
    signs |= REDUCE_BETTER_SIGN((REDUCE(mask))x) | REDUCE_BETTER_SIGN((REDUCE(mask))y);            \
    odd |= ~((x <= y) | (x >= y));                                                                 \
  }

/* Keep the better elements, those of `best` where both are equal or those of `x` are NaN. */
static inline __attribute__((always_inline)) void REDUCE(improve)(REDUCE(vector) * best, const REDUCE(vector) * x) {
  const REDUCE(mask) later = REDUCE_BEFORE(*x, *best);
  *best = (REDUCE(vector))(((REDUCE(mask)) * x & later) | ((REDUCE(mask)) * best & ~later));
}

/* Return an extreme that is not NaN, with its sign if it is zero. */
static REDUCE_REAL REDUCE(signed_zero)(REDUCE_REAL best, REDUCE_BITS signs) {
  return best != 0 ? best : signs < 0 ? REDUCE_BETTER_ZERO : -REDUCE_BETTER_ZERO;
}

static REDUCE_REAL REDUCE(few)(const REDUCE_MEMORY *from, int64_t n) {
  REDUCE_REAL best = REDUCE_FIRST;
  REDUCE_BITS signs = 0;
  for (int64_t i = 0; i < n; ++i) {
    const REDUCE_REAL x = from[i];
    REDUCE_BITS bits;
    __builtin_memcpy(&bits, &x, sizeof bits);
    if (x != x) return (REDUCE_REAL)__builtin_nan("");
    best = REDUCE_BEFORE(x, best) ? x : best;
    signs |= REDUCE_BETTER_SIGN(bits);
  }
  return REDUCE(signed_zero)(best, signs);
}

static REDUCE_REAL REDUCE(many)(const REDUCE_MEMORY *from, int64_t n) {
  const REDUCE(mask) none = {0};
  REDUCE(vector)
  v0 = (REDUCE(vector))none + REDUCE_FIRST, v1 = v0, v2 = v0, v3 = v0, v4 = v0, v5 = v0, v6 = v0, v7 = v0;
  REDUCE(mask) odd = none, signs = none;
  const REDUCE_MEMORY *const last = from + n - REDUCE_WIDTH;
  const REDUCE_MEMORY *at = from + (REDUCE_BYTES - (uint64_t)from % REDUCE_BYTES) / sizeof(REDUCE_REAL);
  REDUCE_PAIR(0, 1, from, last);
  for (; at + 7 * REDUCE_WIDTH <= last; at += 8 * REDUCE_WIDTH) {
    REDUCE_PAIR(0, 1, at, at + REDUCE_WIDTH);
    REDUCE_PAIR(2, 3, at + 2 * REDUCE_WIDTH, at + 3 * REDUCE_WIDTH);
    REDUCE_PAIR(4, 5, at + 4 * REDUCE_WIDTH, at + 5 * REDUCE_WIDTH);
    REDUCE_PAIR(6, 7, at + 6 * REDUCE_WIDTH, at + 7 * REDUCE_WIDTH);
  }
  for (; at + REDUCE_WIDTH <= last; at += 2 * REDUCE_WIDTH) REDUCE_PAIR(0, 1, at, at + REDUCE_WIDTH);
  if (at <= last) REDUCE_PAIR(0, 1, at, last);
  REDUCE(improve)(&v0, &v1), REDUCE(improve)(&v2, &v3), REDUCE(improve)(&v4, &v5), REDUCE(improve)(&v6, &v7);
  REDUCE(improve)(&v0, &v2), REDUCE(improve)(&v4, &v6), REDUCE(improve)(&v0, &v4);
  REDUCE_REAL best = v0[0];
  REDUCE_BITS any_odd = odd[0], all_signs = signs[0];
  for (int j = 1; j < REDUCE_WIDTH; ++j) {
    best = REDUCE_BEFORE(v0[j], best) ? v0[j] : best;
    any_odd |= odd[j], all_signs |= signs[j];
  }
  return any_odd ? (REDUCE_REAL)__builtin_nan("") : REDUCE(signed_zero)(best, all_signs);
}

static void REDUCE(row)(const REDUCE_MEMORY *from, int64_t n, REDUCE_TYPE0 *all0, REDUCE_TYPE1 *all1) {
  const REDUCE_REAL best = n < REDUCE_WIDTH ? REDUCE(few)(from, n) : REDUCE(many)(from, n);
  const REDUCE_TYPE0 v = REDUCE_UNIT0;
  const REDUCE_TYPE1 w = REDUCE_UNIT1;
  *all0 = REDUCE_UPDATE0(v, w, best), *all1 = REDUCE_UPDATE1(v, w, best);
}
#undef REDUCE_BYTES
#undef REDUCE_WIDTH
#undef REDUCE_PAIR
#elif REDUCE_KIND == 2
static void REDUCE(row)(const REDUCE_MEMORY *from, int64_t n, REDUCE_TYPE0 *all0, REDUCE_TYPE1 *all1) {
  REDUCE_TYPE0 v = REDUCE_UNIT0;
  REDUCE_TYPE1 w = REDUCE_UNIT1;
  for (int64_t i = 0; i < n; ++i) {
    const REDUCE_TYPE0 y = REDUCE_UPDATE0(v, w, REDUCE_LOAD(from[i]));
    w = REDUCE_UPDATE1(v, w, REDUCE_LOAD(from[i]));
    v = y;
  }
  *all0 = v, *all1 = w;
}
#else
/* Four accumulators that the compiler keeps in vector registers, each over a quarter of the row. */
static void REDUCE(row)(const REDUCE_MEMORY *from, int64_t n, REDUCE_TYPE0 *all0, REDUCE_TYPE1 *all1) {
  REDUCE_TYPE0 a0 = REDUCE_UNIT0, b0 = a0, c0 = a0, d0 = a0;
  REDUCE_TYPE1 a1 = REDUCE_UNIT1, b1 = a1, c1 = a1, d1 = a1;
  const int64_t q = n / 4;
  const REDUCE_MEMORY *p = from + q, *r = p + q, *s = r + q;
  for (int64_t i = 0; i < q; ++i) {
    const REDUCE_TYPE0 a = REDUCE_UPDATE0(a0, a1, REDUCE_LOAD(from[i])), b = REDUCE_UPDATE0(b0, b1, REDUCE_LOAD(p[i]));
    const REDUCE_TYPE0 c = REDUCE_UPDATE0(c0, c1, REDUCE_LOAD(r[i])), d = REDUCE_UPDATE0(d0, d1, REDUCE_LOAD(s[i]));
    a1 = REDUCE_UPDATE1(a0, a1, REDUCE_LOAD(from[i])), b1 = REDUCE_UPDATE1(b0, b1, REDUCE_LOAD(p[i]));
    c1 = REDUCE_UPDATE1(c0, c1, REDUCE_LOAD(r[i])), d1 = REDUCE_UPDATE1(d0, d1, REDUCE_LOAD(s[i]));
    a0 = a, b0 = b, c0 = c, d0 = d;
  }
  for (int64_t i = 4 * q; i < n; ++i) {
    const REDUCE_TYPE0 a = REDUCE_UPDATE0(a0, a1, REDUCE_LOAD(from[i]));
    a1 = REDUCE_UPDATE1(a0, a1, REDUCE_LOAD(from[i]));
    a0 = a;
  }
  const REDUCE_TYPE0 x0 = REDUCE_MERGE0(a0, a1, b0, b1), y0 = REDUCE_MERGE0(c0, c1, d0, d1);
  const REDUCE_TYPE1 x1 = REDUCE_MERGE1(a0, a1, b0, b1), y1 = REDUCE_MERGE1(c0, c1, d0, d1);
  *all0 = REDUCE_MERGE0(x0, x1, y0, y1), *all1 = REDUCE_MERGE1(x0, x1, y0, y1);
}
#endif

#define REDUCE_STEP(p)                                           \
  {                                                              \
    const REDUCE_TYPE0 y = REDUCE_UPDATE0(v, w, REDUCE_LOAD(p)); \
    w = REDUCE_UPDATE1(v, w, REDUCE_LOAD(p));                    \
    v = y;                                                       \
  }

static void REDUCE(columns)(const REDUCE_MEMORY *from, int64_t n, int64_t stride, int width, REDUCE_TYPE0 *acc0,
                            REDUCE_TYPE1 *acc1) {
  int64_t k = 0;
  for (int j = 0; j < width; ++j) acc0[j] = REDUCE_UNIT0, acc1[j] = REDUCE_UNIT1;
  for (; k + 4 <= n; k += 4, from += 4 * stride) {
    const REDUCE_MEMORY *a = from, *b = a + stride, *c = b + stride, *d = c + stride;
    CYX_INDEPENDENT
    for (int j = 0; j < width; ++j) {
      REDUCE_TYPE0 v = acc0[j];
      REDUCE_TYPE1 w = acc1[j];
      REDUCE_STEP(a[j]) REDUCE_STEP(b[j]) REDUCE_STEP(c[j]) REDUCE_STEP(d[j]) acc0[j] = v, acc1[j] = w;
    }
  }
  for (; k < n; ++k, from += stride) {
    CYX_INDEPENDENT
    for (int j = 0; j < width; ++j) {
      REDUCE_TYPE0 v = acc0[j];
      REDUCE_TYPE1 w = acc1[j];
      REDUCE_STEP(from[j])
      acc0[j] = v, acc1[j] = w;
    }
  }
}

static cyx_status REDUCE(run)(void *const *bufs, int64_t begin, int64_t end) {
  const int64_t *numbers = CYX_NUMBERS(bufs), n = numbers[1], inner = numbers[2], parts = numbers[3];
  const int64_t blocks = inner == 1 ? 1 : (inner + REDUCE_BLOCK - 1) / REDUCE_BLOCK;
  const int64_t units = numbers[0] * parts * blocks;
  const REDUCE_MEMORY *start = bufs[1];
  for (int64_t u = units * begin / numbers[5]; u < units * end / numbers[5]; ++u) {
    const int64_t block = u % blocks, part = u / blocks % parts, o = u / blocks / parts, at = block * REDUCE_BLOCK;
    const int64_t low = n * part / parts, high = n * (part + 1) / parts;
    const int width = (int)(inner - at < REDUCE_BLOCK ? inner - at : REDUCE_BLOCK);
    const REDUCE_MEMORY *from = (const REDUCE_MEMORY *)bufs[0] + (o * n + low) * inner + at;
    REDUCE_MEMORY *to = (REDUCE_MEMORY *)bufs[2] + (o * inner + at) * parts + part;
    REDUCE_TYPE0 acc0[REDUCE_BLOCK] __attribute__((aligned(64)));
    REDUCE_TYPE1 acc1[REDUCE_BLOCK] __attribute__((aligned(64)));
    if (inner == 1)
      REDUCE(row)(from, high - low, acc0, acc1);
    else
      REDUCE(columns)(from, high - low, inner, width, acc0, acc1);
    for (int j = 0; j < width; ++j) {
      if (numbers[4])
        to[j * parts] = REDUCE_STORE(REDUCE_COMBINE(REDUCE_LOAD(start[0]), (REDUCE_TOTAL(acc0[j], acc1[j]))));
      else
        to[j * parts] = REDUCE_STORE((REDUCE_TOTAL(acc0[j], acc1[j])));
    }
  }
  return CYX_OK;
}

#undef REDUCE
#undef REDUCE_BLOCK
#undef REDUCE_STEP
#undef REDUCE_PREFIX
#undef REDUCE_MEMORY
#undef REDUCE_LOAD
#undef REDUCE_STORE
#undef REDUCE_TYPE0
#undef REDUCE_TYPE1
#undef REDUCE_UNIT0
#undef REDUCE_UNIT1
#undef REDUCE_UPDATE0
#undef REDUCE_UPDATE1
#undef REDUCE_MERGE0
#undef REDUCE_MERGE1
#undef REDUCE_TOTAL
#undef REDUCE_COMBINE
#undef REDUCE_KIND
#undef REDUCE_REAL
#undef REDUCE_BITS
#undef REDUCE_BEFORE
#undef REDUCE_FIRST
#undef REDUCE_BETTER_ZERO
#undef REDUCE_BETTER_SIGN
