/* Sorting of unsigned keys: a quicksort that partitions by compressing vectors where the target can, by digits elsewhere.
 *
 * A sequence of blocks separated by blank lines, one definition each; generated code pastes the blocks it names and what they need.
 * Needs abi.h for the integer types.
 */

/* Which lanes a shuffle takes: lane i ^ x to place i; or lane i of the first of two vectors where a mask has a bit. */
#define CYX_LANES_8(f, m) f(0, m), f(1, m), f(2, m), f(3, m), f(4, m), f(5, m), f(6, m), f(7, m)

#define CYX_LANES_16(f, m) \
  CYX_LANES_8(f, m), f(8, m), f(9, m), f(10, m), f(11, m), f(12, m), f(13, m), f(14, m), f(15, m)

#define CYX_LANE_OF(i, x) ((i) ^ (x))

#define CYX_LANE_8(i, m) (((m) >> (i)) & 1 ? (i) : (i) + 8)

#define CYX_LANE_16(i, m) (((m) >> (i)) & 1 ? (i) : (i) + 16)

/* Sort by digits, the lowest first; a digit that is the same everywhere takes no pass. `y` has room for as many keys. */
static __attribute__((noinline, unused)) void cyx_digits_32(uint32_t *x, int64_t n, uint32_t *y) {
  const int width = n < 4096 ? 8 : 11, passes = (32 + width - 1) / width;
  const uint32_t mask = ((uint32_t)1 << width) - 1;
  uint32_t counts[2048];
  uint32_t *from = x, *to = y;
  for (int p = 0; p < passes; ++p) {
    __builtin_memset(counts, 0, sizeof *counts << width);
    for (int64_t i = 0; i < n; ++i) ++counts[from[i] >> (p * width) & mask];
    if (counts[from[0] >> (p * width) & mask] == n) continue;
    uint32_t sum = 0;
    for (int d = 0; d < 1 << width; ++d) { const uint32_t c = counts[d]; counts[d] = sum; sum += c; __asm__ volatile(""); }
    for (int64_t i = 0; i < n; ++i) to[counts[from[i] >> (p * width) & mask]++] = from[i];
    uint32_t *const t = from; from = to; to = t;
  }
  if (from != x) __builtin_memcpy(x, from, (unsigned long)n * sizeof *x);
}

#if defined(__AVX512F__)
typedef uint32_t cyx_keys_32 __attribute__((vector_size(64), aligned(4), may_alias));
typedef int cyx_signed_keys_32 __attribute__((vector_size(64)));
#if defined(__clang__)
#define CYX_LEAST_32(a, b) __builtin_elementwise_min(a, b)
#define CYX_MOST_32(a, b) __builtin_elementwise_max(a, b)
#else
#define CYX_LEAST_32(a, b) ((cyx_keys_32)__builtin_ia32_pminud512_mask((cyx_signed_keys_32)(a), (cyx_signed_keys_32)(b), (cyx_signed_keys_32)(a), 0xFFFF))
#define CYX_MOST_32(a, b) ((cyx_keys_32)__builtin_ia32_pmaxud512_mask((cyx_signed_keys_32)(a), (cyx_signed_keys_32)(b), (cyx_signed_keys_32)(a), 0xFFFF))
#endif
#define CYX_READ_32(p, m) ((cyx_keys_32)__builtin_ia32_loaddqusi512_mask((const int *)(p), ~(cyx_signed_keys_32){0}, m))
#define CYX_WRITE_32(p, v, m) __builtin_ia32_storedqusi512_mask((int *)(p), (cyx_signed_keys_32)(v), m)
#define CYX_BELOW_32(a, b) ((uint16_t)__builtin_ia32_ucmpd512_mask((cyx_signed_keys_32)(a), (cyx_signed_keys_32)(b), 1, 0xFFFF))
#define CYX_PACK_32(v, m) ((cyx_keys_32)__builtin_ia32_compresssi512_mask((cyx_signed_keys_32)(v), (cyx_signed_keys_32)(v), m))
#endif

/* Bring what is less than a pivot to the front, the rest behind it; their number. `y` has room for n keys and a vector. */
static __attribute__((noinline)) int64_t cyx_divide_32(uint32_t *x, int64_t n, uint32_t *y, uint32_t pivot) {
  int64_t low = 0, high = 0, i = 0;
#if defined(__AVX512F__)
  const cyx_keys_32 p = (cyx_keys_32){0} + pivot;
  for (; i + 16 <= n; i += 16) {
    const cyx_keys_32 v = *(const cyx_keys_32 *)(x + i);
    const uint16_t m = CYX_BELOW_32(v, p);
    *(cyx_keys_32 *)(x + low) = CYX_PACK_32(v, m);
    *(cyx_keys_32 *)(y + high) = CYX_PACK_32(v, (uint16_t)~m);
    const int count = __builtin_popcount(m);
    low += count;
    high += 16 - count;
  }
#endif
  for (; i < n; ++i) {
    const uint32_t key = x[i];
    const int less = key < pivot;
    x[low] = key;
    y[high] = key;
    low += less;
    high += !less;
    __asm__ volatile(""); /* no vectors */
  }
  __builtin_memcpy(x + low, y, (unsigned long)high * sizeof *x);
  return low;
}

#if defined(__AVX512F__)
/* Compare lane i with lane i ^ x; the lesser goes where the mask has a bit. */
#define CYX_STEP_32(v, x, m) do { \
    const cyx_keys_32 p = __builtin_shufflevector(v, v, CYX_LANES_16(CYX_LANE_OF, x)); \
    const cyx_keys_32 low = CYX_LEAST_32(v, p), high = CYX_MOST_32(v, p); \
    v = __builtin_shufflevector(low, high, CYX_LANES_16(CYX_LANE_16, m)); \
  } while (0)
/* Sort m vectors, each of which is first down and then up or the other way round, as one is of all of them. */
static inline __attribute__((always_inline)) void cyx_clean_32(cyx_keys_32 *v, const int m) {
#pragma GCC unroll 8
  for (int d = 4; d; d /= 2) {
    if (2 * d > m) continue;
#pragma GCC unroll 8
    for (int j = 0; j < m / 2; ++j) {
      const int i = j / d * 2 * d + j % d;
      const cyx_keys_32 a = v[i], b = v[i + d];
      v[i] = CYX_LEAST_32(a, b);
      v[i + d] = CYX_MOST_32(a, b);
    }
  }
#pragma GCC unroll 8
  for (int i = 0; i < m; ++i) {
    CYX_STEP_32(v[i], 8, 0xff);
    CYX_STEP_32(v[i], 4, 0xf0f);
    CYX_STEP_32(v[i], 2, 0x3333);
    CYX_STEP_32(v[i], 1, 0x5555);
  }
}
/* Merge two sorted runs of m / 2 vectors that lie side by side. */
static inline __attribute__((always_inline)) void cyx_join_32(cyx_keys_32 *v, const int m) {
  cyx_keys_32 t[4];
#pragma GCC unroll 8
  for (int i = 0; i < m / 2; ++i) t[i] = __builtin_shufflevector(v[m - 1 - i], v[0], CYX_LANES_16(CYX_LANE_OF, 15));
#pragma GCC unroll 8
  for (int i = 0; i < m / 2; ++i) {
    const cyx_keys_32 a = v[i];
    v[i] = CYX_LEAST_32(a, t[i]);
    v[m / 2 + i] = CYX_MOST_32(a, t[i]);
  }
  cyx_clean_32(v, m / 2);
  cyx_clean_32(v + m / 2, m / 2);
}
/* Sort up to m vectors, 1 or 4; or 8 whose halves are sorted. */
static inline __attribute__((always_inline)) void cyx_network_32(uint32_t *x, int64_t n, const int m) {
  cyx_keys_32 v[8];
  unsigned mask[8];
#pragma GCC unroll 8
  for (int i = 0; i < m; ++i) {
    const int64_t rest = n - i * 16;
    mask[i] = rest >= 16 ? 0xFFFFu : rest <= 0 ? 0u : (1u << rest) - 1u;
    v[i] = CYX_READ_32(x + i * 16, (uint16_t)mask[i]);
  }
  if (m == 8) {
    cyx_join_32(v, 8);
  } else {
#pragma GCC unroll 8
    for (int i = 0; i < m; ++i) {
      CYX_STEP_32(v[i], 1, 0x5555);
      CYX_STEP_32(v[i], 3, 0x3333);
      CYX_STEP_32(v[i], 1, 0x5555);
      CYX_STEP_32(v[i], 7, 0xf0f);
      CYX_STEP_32(v[i], 2, 0x3333);
      CYX_STEP_32(v[i], 1, 0x5555);
      CYX_STEP_32(v[i], 15, 0xff);
      CYX_STEP_32(v[i], 4, 0xf0f);
      CYX_STEP_32(v[i], 2, 0x3333);
      CYX_STEP_32(v[i], 1, 0x5555);
    }
  }
  if (m == 4) {
    cyx_join_32(v, 2);
    cyx_join_32(v + 2, 2);
    cyx_join_32(v, 4);
  }
#pragma GCC unroll 8
  for (int i = 0; i < m; ++i) CYX_WRITE_32(x + i * 16, v[i], (uint16_t)mask[i]);
}
static __attribute__((noinline)) void cyx_four_32(uint32_t *x, int64_t n) {
  cyx_network_32(x, n, 4);
}
static __attribute__((noinline)) void cyx_small_32(uint32_t *x, int64_t n) {
  if (n <= 16) { cyx_network_32(x, n, 1); return; }
  cyx_four_32(x, n < 64 ? n : 64);
  if (n <= 64) return;
  cyx_four_32(x + 64, n - 64);
  cyx_network_32(x, n, 8);
}
static __attribute__((noinline)) void cyx_quick_32(uint32_t *x, int64_t n, uint32_t *y, int depth) {
  while (n > 128) {
    if (depth-- == 0) { cyx_digits_32(x, n, y); return; }
    uint32_t sample[64];
    const int taken = n > 4096 ? 64 : 16;
    for (int i = 0; i < taken; ++i) sample[i] = x[(2 * i + 1) * (n / (2 * taken))];
    cyx_small_32(sample, taken);
    const uint32_t pivot = sample[taken / 2];
    int64_t low = cyx_divide_32(x, n, y, pivot);
    if (low == 0) {  /* the pivot is the least key: take out those that are equal */
      if (pivot == (uint32_t)-1) return;
      low = cyx_divide_32(x, n, y, pivot + 1);
    } else {
      cyx_quick_32(x, low, y, depth);
    }
    x += low;
    n -= low;
  }
  cyx_small_32(x, n);
}
/* Sort keys in place; `y` has room for as many and 16 more. */
static __attribute__((unused)) void cyx_sort_keys_32(uint32_t *x, int64_t n, uint32_t *y) {
  cyx_quick_32(x, n, y, 2 * (64 - __builtin_clzll((uint64_t)n | 1)));
}
#else
static __attribute__((unused)) void cyx_sort_keys_32(uint32_t *x, int64_t n, uint32_t *y) {
  if (n > 64) { cyx_digits_32(x, n, y); return; }
  for (int64_t i = 1; i < n; ++i) {
    const uint32_t v = x[i];
    int64_t j = i;
    for (; j > 0 && v < x[j - 1]; --j) x[j] = x[j - 1];
    x[j] = v;
  }
}
#endif

/* Sort keys into buckets that lie one after the other: those below the first border, those below the next ..; count them. */
static __attribute__((noinline, unused)) void cyx_spread_32(uint32_t *x, int64_t n, uint32_t *y, const uint32_t *borders, int buckets, uint32_t *counts) {
  if (buckets == 1) { counts[0] = (uint32_t)n; return; }
  const int half = buckets / 2;
  const int64_t low = cyx_divide_32(x, n, y, borders[half - 1]);
  cyx_spread_32(x, low, y, borders, half, counts);
  cyx_spread_32(x + low, n - low, y, borders + half, half, counts + half);
}

/* Sort by digits, the lowest first; a digit that is the same everywhere takes no pass. `y` has room for as many keys. */
static __attribute__((noinline, unused)) void cyx_digits_64(uint64_t *x, int64_t n, uint64_t *y) {
  const int width = n < 4096 ? 8 : 11, passes = (64 + width - 1) / width;
  const uint64_t mask = ((uint64_t)1 << width) - 1;
  uint32_t counts[2048];
  uint64_t *from = x, *to = y;
  for (int p = 0; p < passes; ++p) {
    __builtin_memset(counts, 0, sizeof *counts << width);
    for (int64_t i = 0; i < n; ++i) ++counts[from[i] >> (p * width) & mask];
    if (counts[from[0] >> (p * width) & mask] == n) continue;
    uint32_t sum = 0;
    for (int d = 0; d < 1 << width; ++d) { const uint32_t c = counts[d]; counts[d] = sum; sum += c; __asm__ volatile(""); }
    for (int64_t i = 0; i < n; ++i) to[counts[from[i] >> (p * width) & mask]++] = from[i];
    uint64_t *const t = from; from = to; to = t;
  }
  if (from != x) __builtin_memcpy(x, from, (unsigned long)n * sizeof *x);
}

#if defined(__AVX512F__)
typedef uint64_t cyx_keys_64 __attribute__((vector_size(64), aligned(8), may_alias));
typedef long long cyx_signed_keys_64 __attribute__((vector_size(64)));
#if defined(__clang__)
#define CYX_LEAST_64(a, b) __builtin_elementwise_min(a, b)
#define CYX_MOST_64(a, b) __builtin_elementwise_max(a, b)
#else
#define CYX_LEAST_64(a, b) ((cyx_keys_64)__builtin_ia32_pminuq512_mask((cyx_signed_keys_64)(a), (cyx_signed_keys_64)(b), (cyx_signed_keys_64)(a), 0xFF))
#define CYX_MOST_64(a, b) ((cyx_keys_64)__builtin_ia32_pmaxuq512_mask((cyx_signed_keys_64)(a), (cyx_signed_keys_64)(b), (cyx_signed_keys_64)(a), 0xFF))
#endif
#define CYX_READ_64(p, m) ((cyx_keys_64)__builtin_ia32_loaddqudi512_mask((const long long *)(p), ~(cyx_signed_keys_64){0}, m))
#define CYX_WRITE_64(p, v, m) __builtin_ia32_storedqudi512_mask((long long *)(p), (cyx_signed_keys_64)(v), m)
#define CYX_BELOW_64(a, b) ((uint8_t)__builtin_ia32_ucmpq512_mask((cyx_signed_keys_64)(a), (cyx_signed_keys_64)(b), 1, 0xFF))
#define CYX_PACK_64(v, m) ((cyx_keys_64)__builtin_ia32_compressdi512_mask((cyx_signed_keys_64)(v), (cyx_signed_keys_64)(v), m))
#endif

/* Bring what is less than a pivot to the front, the rest behind it; their number. `y` has room for n keys and a vector. */
static __attribute__((noinline)) int64_t cyx_divide_64(uint64_t *x, int64_t n, uint64_t *y, uint64_t pivot) {
  int64_t low = 0, high = 0, i = 0;
#if defined(__AVX512F__)
  const cyx_keys_64 p = (cyx_keys_64){0} + pivot;
  for (; i + 8 <= n; i += 8) {
    const cyx_keys_64 v = *(const cyx_keys_64 *)(x + i);
    const uint8_t m = CYX_BELOW_64(v, p);
    *(cyx_keys_64 *)(x + low) = CYX_PACK_64(v, m);
    *(cyx_keys_64 *)(y + high) = CYX_PACK_64(v, (uint8_t)~m);
    const int count = __builtin_popcount(m);
    low += count;
    high += 8 - count;
  }
#endif
  for (; i < n; ++i) {
    const uint64_t key = x[i];
    const int less = key < pivot;
    x[low] = key;
    y[high] = key;
    low += less;
    high += !less;
    __asm__ volatile(""); /* no vectors */
  }
  __builtin_memcpy(x + low, y, (unsigned long)high * sizeof *x);
  return low;
}

#if defined(__AVX512F__)
/* Compare lane i with lane i ^ x; the lesser goes where the mask has a bit. */
#define CYX_STEP_64(v, x, m) do { \
    const cyx_keys_64 p = __builtin_shufflevector(v, v, CYX_LANES_8(CYX_LANE_OF, x)); \
    const cyx_keys_64 low = CYX_LEAST_64(v, p), high = CYX_MOST_64(v, p); \
    v = __builtin_shufflevector(low, high, CYX_LANES_8(CYX_LANE_8, m)); \
  } while (0)
/* Sort m vectors, each of which is first down and then up or the other way round, as one is of all of them. */
static inline __attribute__((always_inline)) void cyx_clean_64(cyx_keys_64 *v, const int m) {
#pragma GCC unroll 8
  for (int d = 4; d; d /= 2) {
    if (2 * d > m) continue;
#pragma GCC unroll 8
    for (int j = 0; j < m / 2; ++j) {
      const int i = j / d * 2 * d + j % d;
      const cyx_keys_64 a = v[i], b = v[i + d];
      v[i] = CYX_LEAST_64(a, b);
      v[i + d] = CYX_MOST_64(a, b);
    }
  }
#pragma GCC unroll 8
  for (int i = 0; i < m; ++i) {
    CYX_STEP_64(v[i], 4, 0xf);
    CYX_STEP_64(v[i], 2, 0x33);
    CYX_STEP_64(v[i], 1, 0x55);
  }
}
/* Merge two sorted runs of m / 2 vectors that lie side by side. */
static inline __attribute__((always_inline)) void cyx_join_64(cyx_keys_64 *v, const int m) {
  cyx_keys_64 t[4];
#pragma GCC unroll 8
  for (int i = 0; i < m / 2; ++i) t[i] = __builtin_shufflevector(v[m - 1 - i], v[0], CYX_LANES_8(CYX_LANE_OF, 7));
#pragma GCC unroll 8
  for (int i = 0; i < m / 2; ++i) {
    const cyx_keys_64 a = v[i];
    v[i] = CYX_LEAST_64(a, t[i]);
    v[m / 2 + i] = CYX_MOST_64(a, t[i]);
  }
  cyx_clean_64(v, m / 2);
  cyx_clean_64(v + m / 2, m / 2);
}
/* Sort up to m vectors, 1 or 4; or 8 whose halves are sorted. */
static inline __attribute__((always_inline)) void cyx_network_64(uint64_t *x, int64_t n, const int m) {
  cyx_keys_64 v[8];
  unsigned mask[8];
#pragma GCC unroll 8
  for (int i = 0; i < m; ++i) {
    const int64_t rest = n - i * 8;
    mask[i] = rest >= 8 ? 0xFFu : rest <= 0 ? 0u : (1u << rest) - 1u;
    v[i] = CYX_READ_64(x + i * 8, (uint8_t)mask[i]);
  }
  if (m == 8) {
    cyx_join_64(v, 8);
  } else {
#pragma GCC unroll 8
    for (int i = 0; i < m; ++i) {
      CYX_STEP_64(v[i], 1, 0x55);
      CYX_STEP_64(v[i], 3, 0x33);
      CYX_STEP_64(v[i], 1, 0x55);
      CYX_STEP_64(v[i], 7, 0xf);
      CYX_STEP_64(v[i], 2, 0x33);
      CYX_STEP_64(v[i], 1, 0x55);
    }
  }
  if (m == 4) {
    cyx_join_64(v, 2);
    cyx_join_64(v + 2, 2);
    cyx_join_64(v, 4);
  }
#pragma GCC unroll 8
  for (int i = 0; i < m; ++i) CYX_WRITE_64(x + i * 8, v[i], (uint8_t)mask[i]);
}
static __attribute__((noinline)) void cyx_four_64(uint64_t *x, int64_t n) {
  cyx_network_64(x, n, 4);
}
static __attribute__((noinline)) void cyx_small_64(uint64_t *x, int64_t n) {
  if (n <= 8) { cyx_network_64(x, n, 1); return; }
  cyx_four_64(x, n < 32 ? n : 32);
  if (n <= 32) return;
  cyx_four_64(x + 32, n - 32);
  cyx_network_64(x, n, 8);
}
static __attribute__((noinline)) void cyx_quick_64(uint64_t *x, int64_t n, uint64_t *y, int depth) {
  while (n > 64) {
    if (depth-- == 0) { cyx_digits_64(x, n, y); return; }
    uint64_t sample[32];
    const int taken = n > 4096 ? 32 : 8;
    for (int i = 0; i < taken; ++i) sample[i] = x[(2 * i + 1) * (n / (2 * taken))];
    cyx_small_64(sample, taken);
    const uint64_t pivot = sample[taken / 2];
    int64_t low = cyx_divide_64(x, n, y, pivot);
    if (low == 0) {  /* the pivot is the least key: take out those that are equal */
      if (pivot == (uint64_t)-1) return;
      low = cyx_divide_64(x, n, y, pivot + 1);
    } else {
      cyx_quick_64(x, low, y, depth);
    }
    x += low;
    n -= low;
  }
  cyx_small_64(x, n);
}
/* Sort keys in place; `y` has room for as many and 8 more. */
static __attribute__((unused)) void cyx_sort_keys_64(uint64_t *x, int64_t n, uint64_t *y) {
  cyx_quick_64(x, n, y, 2 * (64 - __builtin_clzll((uint64_t)n | 1)));
}
#else
static __attribute__((unused)) void cyx_sort_keys_64(uint64_t *x, int64_t n, uint64_t *y) {
  if (n > 64) { cyx_digits_64(x, n, y); return; }
  for (int64_t i = 1; i < n; ++i) {
    const uint64_t v = x[i];
    int64_t j = i;
    for (; j > 0 && v < x[j - 1]; --j) x[j] = x[j - 1];
    x[j] = v;
  }
}
#endif

/* Sort keys into buckets that lie one after the other: those below the first border, those below the next ..; count them. */
static __attribute__((noinline, unused)) void cyx_spread_64(uint64_t *x, int64_t n, uint64_t *y, const uint64_t *borders, int buckets, uint32_t *counts) {
  if (buckets == 1) { counts[0] = (uint32_t)n; return; }
  const int half = buckets / 2;
  const int64_t low = cyx_divide_64(x, n, y, borders[half - 1]);
  cyx_spread_64(x, low, y, borders, half, counts);
  cyx_spread_64(x + low, n - low, y, borders + half, half, counts + half);
}
