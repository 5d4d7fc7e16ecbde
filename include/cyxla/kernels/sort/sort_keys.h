/* Sort of unsigned keys: quicksort by compressing vectors with AVX-512, else radix sort. Long runs that are sorted
 * already, in either direction, are merged instead.
 *
 * A template: define the parameters and include it, any number of times; it undefines them.
 *   KEYS_PREFIX  prefix of all names; entry points are `prefix_sort` and `prefix_spread`
 *   KEYS_BITS    width of a key: 32 or 64
 */
#include "../../abi.h"
#include "../../compiler.h"

#define KEYS(name) CYX_JOIN(KEYS_PREFIX, name)
#define KEYS_BLOCK 16    /* keys that are compared with their neighbours at once */
#define KEYS_MAX_RUNS 8  /* runs that are merged */
#define KEYS_FEW 32      /* keys of a run for each of one that is merged key by key */
#define KEYS_SHORTEST 32 /* a run is this part of all keys, or is outweighed by others */
#define KEYS_MIN_RUN 24  /* keys for each run that is looked for */
#if KEYS_BITS == 32
#define KEYS_T uint32_t
#define KEYS_UPPER(key) (key)
#else
#define KEYS_T uint64_t
#define KEYS_UPPER(key) ((key) >> 32)
#endif

/* Sort by least significant digit first; a digit that all keys share takes no pass. `y` is scratch for n keys. */
static __attribute__((noinline, unused)) void KEYS(radix_sort)(KEYS_T *x, int64_t n, KEYS_T *y) {
  const int width = n < 4096 ? 8 : 11, passes = (KEYS_BITS + width - 1) / width;
  const KEYS_T mask = ((KEYS_T)1 << width) - 1;
  uint32_t counts[2048];
  KEYS_T *from = x, *to = y;
  for (int p = 0; p < passes; ++p) {
    __builtin_memset(counts, 0, sizeof *counts << width);
    for (int64_t i = 0; i < n; ++i) ++counts[from[i] >> (p * width) & mask];
    if (counts[from[0] >> (p * width) & mask] == n) continue;
    uint32_t sum = 0;
    for (int d = 0; d < 1 << width; ++d) {
      const uint32_t c = counts[d];
      counts[d] = sum;
      sum += c;
      CYX_SCALAR_LOOP
    }
    for (int64_t i = 0; i < n; ++i) to[counts[from[i] >> (p * width) & mask]++] = from[i];
    KEYS_T *const t = from;
    from = to;
    to = t;
  }
  if (from != x) __builtin_memcpy(x, from, (unsigned long)n * sizeof *x);
}

#if defined(__AVX512F__)
#define KEYS_LANES (512 / KEYS_BITS)
#if KEYS_BITS == 32
#define KEYS_S int
#define KEYS_MASK uint16_t
#define KEYS_ALL 0xFFFFu
#define KEYS_COMPARE(name) __builtin_ia32_##name##d512_mask
#define KEYS_MOVE(name) __builtin_ia32_##name##si512_mask
#define KEYS_EACH(f, x)                                                                                         \
  f(0, x), f(1, x), f(2, x), f(3, x), f(4, x), f(5, x), f(6, x), f(7, x), f(8, x), f(9, x), f(10, x), f(11, x), \
      f(12, x), f(13, x), f(14, x), f(15, x)
#else
#define KEYS_S long long
#define KEYS_MASK uint8_t
#define KEYS_ALL 0xFFu
#define KEYS_COMPARE(name) __builtin_ia32_##name##q512_mask
#define KEYS_MOVE(name) __builtin_ia32_##name##di512_mask
#define KEYS_EACH(f, x) f(0, x), f(1, x), f(2, x), f(3, x), f(4, x), f(5, x), f(6, x), f(7, x)
#endif
#define KEYS_V KEYS(v)
#define KEYS_SIGNED_V KEYS(signed_v)
typedef KEYS_T KEYS_V __attribute__((vector_size(64), aligned(KEYS_BITS / 8), may_alias));
typedef KEYS_S KEYS_SIGNED_V __attribute__((vector_size(64)));
#if defined(__clang__)
#define KEYS_MIN(a, b) __builtin_elementwise_min(a, b)
#define KEYS_MAX(a, b) __builtin_elementwise_max(a, b)
#else
#define KEYS_MIN(a, b) \
  ((KEYS_V)KEYS_COMPARE(pminu)((KEYS_SIGNED_V)(a), (KEYS_SIGNED_V)(b), (KEYS_SIGNED_V)(a), KEYS_ALL))
#define KEYS_MAX(a, b) \
  ((KEYS_V)KEYS_COMPARE(pmaxu)((KEYS_SIGNED_V)(a), (KEYS_SIGNED_V)(b), (KEYS_SIGNED_V)(a), KEYS_ALL))
#endif
#define KEYS_LOAD(p, m) ((KEYS_V)KEYS_MOVE(loaddqu)((const KEYS_S *)(p), ~(KEYS_SIGNED_V){0}, m))
#define KEYS_STORE(p, v, m) KEYS_MOVE(storedqu)((KEYS_S *)(p), (KEYS_SIGNED_V)(v), m)
#define KEYS_LESS(a, b) ((KEYS_MASK)KEYS_COMPARE(ucmp)((KEYS_SIGNED_V)(a), (KEYS_SIGNED_V)(b), 1, KEYS_ALL))
#define KEYS_COMPRESS(v, m) ((KEYS_V)KEYS_MOVE(compress)((KEYS_SIGNED_V)(v), (KEYS_SIGNED_V)(v), m))
#endif

/* Move keys less than a pivot before the others; return their number. `y` is scratch for n keys and a vector. */
static __attribute__((noinline)) int64_t KEYS(partition)(KEYS_T *x, int64_t n, KEYS_T *y, KEYS_T pivot) {
  int64_t low = 0, high = 0, i = 0;
#if defined(__AVX512F__)
  const KEYS_V p = (KEYS_V){0} + pivot;
  for (; i + KEYS_LANES <= n; i += KEYS_LANES) {
    const KEYS_V v = *(const KEYS_V *)(x + i);
    const KEYS_MASK m = KEYS_LESS(v, p);
    *(KEYS_V *)(x + low) = KEYS_COMPRESS(v, m);
    *(KEYS_V *)(y + high) = KEYS_COMPRESS(v, (KEYS_MASK)~m);
    const int count = __builtin_popcount(m);
    low += count;
    high += KEYS_LANES - count;
  }
#endif
  for (; i < n; ++i) {
    const KEYS_T key = x[i];
    const int less = key < pivot;
    x[low] = key;
    y[high] = key;
    low += less;
    high += !less;
    CYX_SCALAR_LOOP
  }
  __builtin_memcpy(x + low, y, (unsigned long)high * sizeof *x);
  return low;
}

#if defined(__AVX512F__)
/* Step of a sorting network: lane i is compared with lane i ^ x, and gets the lesser key unless i has the highest bit
   of x. */
#define KEYS_PARTNER(i, x) (i) ^ (x)
#define KEYS_CHOICE(i, top) ((i) & (top) ? (i) + KEYS_LANES : (i))
#define KEYS_STEP(x, top)                                                                        \
  static inline __attribute__((always_inline)) KEYS_V KEYS(step_##x)(KEYS_V v) {                 \
    const KEYS_V p = __builtin_shufflevector(v, v, KEYS_EACH(KEYS_PARTNER, x));                  \
    return __builtin_shufflevector(KEYS_MIN(v, p), KEYS_MAX(v, p), KEYS_EACH(KEYS_CHOICE, top)); \
  }
KEYS_STEP(1, 1)
KEYS_STEP(2, 2)
KEYS_STEP(3, 2)
KEYS_STEP(4, 4)
KEYS_STEP(7, 4)
#define KEYS_STEPS_421(v) KEYS(step_1)(KEYS(step_2)(KEYS(step_4)(v)))
#define KEYS_SORT_8(v) KEYS(step_1)(KEYS(step_2)(KEYS(step_7)(KEYS(step_1)(KEYS(step_3)(KEYS(step_1)(v))))))
#if KEYS_BITS == 32
KEYS_STEP(8, 8)
KEYS_STEP(15, 8)
#define KEYS_MERGE_LANES(v) KEYS_STEPS_421(KEYS(step_8)(v))
#define KEYS_SORT_LANES(v) KEYS_STEPS_421(KEYS(step_15)(KEYS_SORT_8(v)))
#else
#define KEYS_MERGE_LANES(v) KEYS_STEPS_421(v)
#define KEYS_SORT_LANES(v) KEYS_SORT_8(v)
#endif

/* Sort a bitonic sequence of m vectors, each of which is bitonic. */
static inline __attribute__((always_inline)) void KEYS(merge_bitonic)(KEYS_V *v, const int m) {
#pragma GCC unroll 8
  for (int d = 4; d; d /= 2) {
    if (2 * d > m) continue;
#pragma GCC unroll 8
    for (int j = 0; j < m / 2; ++j) {
      const int i = j / d * 2 * d + j % d;
      const KEYS_V a = v[i], b = v[i + d];
      v[i] = KEYS_MIN(a, b);
      v[i + d] = KEYS_MAX(a, b);
    }
  }
#pragma GCC unroll 8
  for (int i = 0; i < m; ++i) v[i] = KEYS_MERGE_LANES(v[i]);
}

/* Merge two adjacent sorted runs of m / 2 vectors. */
static inline __attribute__((always_inline)) void KEYS(merge)(KEYS_V *v, const int m) {
  KEYS_V t[4];
#pragma GCC unroll 8
  for (int i = 0; i < m / 2; ++i)
    t[i] = __builtin_shufflevector(v[m - 1 - i], v[0], KEYS_EACH(KEYS_PARTNER, KEYS_LANES - 1));
#pragma GCC unroll 8
  for (int i = 0; i < m / 2; ++i) {
    const KEYS_V a = v[i];
    v[i] = KEYS_MIN(a, t[i]);
    v[m / 2 + i] = KEYS_MAX(a, t[i]);
  }
  KEYS(merge_bitonic)(v, m / 2);
  KEYS(merge_bitonic)(v + m / 2, m / 2);
}

/* Sort up to m vectors in registers: 1 or 4, or 8 whose halves are sorted. */
static inline __attribute__((always_inline)) void KEYS(network)(KEYS_T *x, int64_t n, const int m) {
  KEYS_V v[8];
  unsigned mask[8];
#pragma GCC unroll 8
  for (int i = 0; i < m; ++i) {
    const int64_t rest = n - i * KEYS_LANES;
    mask[i] = rest >= KEYS_LANES ? KEYS_ALL : rest <= 0 ? 0u : (1u << rest) - 1u;
    v[i] = KEYS_LOAD(x + i * KEYS_LANES, (KEYS_MASK)mask[i]);
  }
  if (m == 8) {
    KEYS(merge)(v, 8);
  } else {
#pragma GCC unroll 8
    for (int i = 0; i < m; ++i) v[i] = KEYS_SORT_LANES(v[i]);
  }
  if (m == 4) {
    KEYS(merge)(v, 2);
    KEYS(merge)(v + 2, 2);
    KEYS(merge)(v, 4);
  }
#pragma GCC unroll 8
  for (int i = 0; i < m; ++i) KEYS_STORE(x + i * KEYS_LANES, v[i], (KEYS_MASK)mask[i]);
}

static __attribute__((noinline)) void KEYS(network_4)(KEYS_T *x, int64_t n) { KEYS(network)(x, n, 4); }

static __attribute__((noinline)) void KEYS(sort_small)(KEYS_T *x, int64_t n) {
  if (n <= KEYS_LANES) {
    KEYS(network)(x, n, 1);
    return;
  }
  KEYS(network_4)(x, n < 4 * KEYS_LANES ? n : 4 * KEYS_LANES);
  if (n <= 4 * KEYS_LANES) return;
  KEYS(network_4)(x + 4 * KEYS_LANES, n - 4 * KEYS_LANES);
  KEYS(network)(x, n, 8);
}

static __attribute__((noinline)) void KEYS(quicksort)(KEYS_T *x, int64_t n, KEYS_T *y, int depth) {
  while (n > 8 * KEYS_LANES) {
    if (depth-- == 0) {
      KEYS(radix_sort)(x, n, y);
      return;
    }
    KEYS_T sample[4 * KEYS_LANES];
    const int sampled = n > 4096 ? 4 * KEYS_LANES : KEYS_LANES;
    for (int i = 0; i < sampled; ++i) sample[i] = x[(2 * i + 1) * (n / (2 * sampled))];
    KEYS(sort_small)(sample, sampled);
    const KEYS_T pivot = sample[sampled / 2];
    int64_t low = KEYS(partition)(x, n, y, pivot);
    if (low == 0) { /* the pivot is the least key: separate those equal to it */
      if (pivot == (KEYS_T)-1) return;
      low = KEYS(partition)(x, n, y, pivot + 1);
    } else {
      KEYS(quicksort)(x, low, y, depth);
    }
    x += low;
    n -= low;
  }
  KEYS(sort_small)(x, n);
}
#endif

/* Sort keys of which no long run is sorted. */
static void KEYS(sort_unordered)(KEYS_T *x, int64_t n, KEYS_T *y) {
#if defined(__AVX512F__)
  KEYS(quicksort)(x, n, y, 2 * (64 - __builtin_clzll((uint64_t)n | 1)));
#else
  if (n > 64) {
    KEYS(radix_sort)(x, n, y);
    return;
  }
  for (int64_t i = 1; i < n; ++i) {
    const KEYS_T v = x[i];
    int64_t j = i;
    for (; j > 0 && v < x[j - 1]; --j) x[j] = x[j - 1];
    x[j] = v;
  }
#endif
}

/* Return the length of the ascending run at the start; equal keys may be in it. */
static __attribute__((noinline)) int64_t KEYS(ascending)(const KEYS_T *x, int64_t n) {
  int64_t k = 1;
  for (int wrong = 0; k + KEYS_BLOCK <= n; k += KEYS_BLOCK) {
    for (int i = 0; i < KEYS_BLOCK; ++i) wrong |= x[k + i] < x[k + i - 1];
    if (wrong) break;
  }
  while (k < n && x[k - 1] <= x[k]) ++k;
  return k;
}

/* Return the length of the run at the start whose keys do not ascend, apart from bits that may be an index. */
static __attribute__((noinline)) int64_t KEYS(descending)(const KEYS_T *x, int64_t n) {
  int64_t k = 1;
  for (int wrong = 0; k + KEYS_BLOCK <= n; k += KEYS_BLOCK) {
    for (int i = 0; i < KEYS_BLOCK; ++i) wrong |= KEYS_UPPER(x[k + i]) > KEYS_UPPER(x[k + i - 1]);
    if (wrong) break;
  }
  while (k < n && KEYS_UPPER(x[k - 1]) >= KEYS_UPPER(x[k])) ++k;
  return k;
}

static void KEYS(reverse)(KEYS_T *x, int64_t n) {
  for (int64_t i = 0, j = n - 1; i < j; ++i, --j) {
    const KEYS_T key = x[i];
    x[i] = x[j];
    x[j] = key;
  }
}

/* Return whether keys descend, to judge by a few of them. */
static int KEYS(seems_descending)(const KEYS_T *x, int64_t n) {
  const KEYS_T first = KEYS_UPPER(x[0]), near = KEYS_UPPER(x[n < KEYS_BLOCK ? n - 1 : KEYS_BLOCK - 1]);
  return near < first || (near == first && KEYS_UPPER(x[n - 1]) < first);
}

/* Return the length of the sorted run at the start; a descending one is reversed, except for runs of equal elements
   with ascending indices. */
static int64_t KEYS(run)(KEYS_T *x, int64_t n) {
  if (n < 2 || !KEYS(seems_descending)(x, n)) return n ? KEYS(ascending)(x, n) : 0;
  const int64_t length = KEYS(descending)(x, n);
  KEYS(reverse)(x, length);
  for (int64_t k = KEYS(ascending)(x, length); k < length;) {
    int64_t end = k;
    while (end < length && x[end] < x[end - 1]) ++end;
    KEYS(reverse)(x + k - 1, end - k + 1);
    const int64_t more = KEYS(ascending)(x + end - 1, length - end + 1);
    if (k > 1 && x[k - 2] > x[k - 1]) return k - 1;
    k = end - 1 + more;
  }
  return length;
}

/* Return the number of keys of a sorted run that are less than a key. */
static int64_t KEYS(rank)(const KEYS_T *x, int64_t n, KEYS_T key) {
  int64_t first = 0;
  for (int64_t end = n; first < end;) {
    const int64_t middle = first + (end - first) / 2;
    if (x[middle] < key)
      first = middle + 1;
    else
      end = middle;
  }
  return first;
}

/* Merge two adjacent runs, the first of m keys; the shorter one, without what is in place, goes through `y`. */
static __attribute__((noinline)) void KEYS(merge_runs)(KEYS_T *x, int64_t m, int64_t n, KEYS_T *y) {
  n = m + KEYS(rank)(x + m, n - m, x[m - 1]);
  const int64_t in_place = KEYS(rank)(x, m, x[m]);
  x += in_place, m -= in_place, n -= in_place;
  if (n - m > m) {
    __builtin_memcpy(y, x, (unsigned long)m * sizeof *x);
    const KEYS_T *a = y, *const a_end = y + m, *b = x + m, *const b_end = x + n;
    while (a < a_end && b < b_end) {
      const int is_less = *b < *a;
      *x++ = is_less ? *b : *a;
      a += !is_less, b += is_less;
      CYX_SCALAR_LOOP
    }
    __builtin_memcpy(x, a, (unsigned long)(a_end - a) * sizeof *x);
  } else {
    __builtin_memcpy(y, x + m, (unsigned long)(n - m) * sizeof *x);
    int64_t a = m - 1, b = n - m - 1, to = n - 1;
    for (; b >= 0 && n - m < m / KEYS_FEW; --b, --to) { /* few keys: move all that are between two of them at once */
      const int64_t less = KEYS(rank)(x, a + 1, y[b]), moved = a + 1 - less;
      __builtin_memmove(x + to - moved + 1, x + less, (unsigned long)moved * sizeof *x);
      a -= moved, to -= moved;
      x[to] = y[b];
    }
    while (a >= 0 && b >= 0) {
      const int is_less = y[b] < x[a];
      x[to--] = is_less ? x[a] : y[b];
      a -= is_less, b -= !is_less;
      CYX_SCALAR_LOOP
    }
    if (b >= 0) __builtin_memcpy(x, y, (unsigned long)(b + 1) * sizeof *x);
  }
}

/* Return how many runs are worth looking for in few keys: none if the first ones are in no order. */
static inline int KEYS(few_runs)(const KEYS_T *x, int64_t n) {
  if (n < KEYS_MIN_RUN) return 0;
  int ascents = 0, descents = 0;
  for (int i = 1; i < 8; ++i) {
    ascents += KEYS_UPPER(x[i - 1]) < KEYS_UPPER(x[i]);
    descents += x[i] < x[i - 1];
  }
  return ascents && descents ? 0 : (int)(n / KEYS_MIN_RUN);
}

/* Sort keys in place; `y` is scratch for n keys and a vector. Runs at the start are found first. If they are all, or
   most of the keys, the others are sorted, and all are merged. */
static __attribute__((unused)) void KEYS(sort)(KEYS_T *x, int64_t n, KEYS_T *y) {
  const int max_runs = n >= KEYS_MAX_RUNS * KEYS_MIN_RUN ? KEYS_MAX_RUNS : KEYS(few_runs)(x, n);
  int64_t ends[KEYS_MAX_RUNS + 2] = {0};
  int runs = 0;
  for (; runs < max_runs && ends[runs] < n && KEYS_SHORTEST * ends[runs] >= (runs - 1) * n; ++runs)
    ends[runs + 1] = ends[runs] + KEYS(run)(x + ends[runs], n - ends[runs]);
  if (ends[runs] < n / 2) {
    KEYS(sort_unordered)(x, n, y);
    return;
  }
  if (ends[runs] < n) {
    KEYS(sort_unordered)(x + ends[runs], n - ends[runs], y);
    ends[++runs] = n;
  }
  for (; runs > 1; --runs) {
    int k = 0; /* of the two adjacent runs that are shortest together */
    for (int i = 1; i + 1 < runs; ++i) k = ends[i + 2] - ends[i] < ends[k + 2] - ends[k] ? i : k;
    KEYS(merge_runs)(x + ends[k], ends[k + 1] - ends[k], ends[k + 2] - ends[k], y);
    for (int i = k + 1; i < runs; ++i) ends[i] = ends[i + 1];
  }
}

/* Distribute keys to consecutive buckets by their borders; count the keys of each. */
static __attribute__((noinline, unused)) void KEYS(spread_unordered)(KEYS_T *x, int64_t n, KEYS_T *y,
                                                                     const KEYS_T *borders, int buckets,
                                                                     uint32_t *counts) {
  if (buckets == 1) {
    counts[0] = (uint32_t)n;
    return;
  }
  const int half = buckets / 2;
  const int64_t low = KEYS(partition)(x, n, y, borders[half - 1]);
  KEYS(spread_unordered)(x, low, y, borders, half, counts);
  KEYS(spread_unordered)(x + low, n - low, y, borders + half, half, counts + half);
}

/* Distribute keys to consecutive buckets by their borders, and count the keys of each; return whether the keys, which
   were a run, are sorted. */
static __attribute__((unused)) int KEYS(spread)(KEYS_T *x, int64_t n, KEYS_T *y, const KEYS_T *borders, int buckets,
                                                uint32_t *counts) {
  if (KEYS(run)(x, n) < n) {
    KEYS(spread_unordered)(x, n, y, borders, buckets, counts);
    return 0;
  }
  int64_t start = 0;
  for (int k = 0; k < buckets; ++k) {
    const int64_t end = k + 1 < buckets ? KEYS(rank)(x, n, borders[k]) : n;
    counts[k] = (uint32_t)(end - start);
    start = end;
    CYX_SCALAR_LOOP
  }
  return 1;
}

#undef KEYS_PREFIX
#undef KEYS_BITS
#undef KEYS_BLOCK
#undef KEYS_MAX_RUNS
#undef KEYS_FEW
#undef KEYS_SHORTEST
#undef KEYS_MIN_RUN
#undef KEYS_T
#undef KEYS_UPPER
#undef KEYS_S
#undef KEYS_MASK
#undef KEYS_ALL
#undef KEYS_COMPARE
#undef KEYS_MOVE
#undef KEYS_EACH
#undef KEYS_MERGE_LANES
#undef KEYS_SORT_LANES
