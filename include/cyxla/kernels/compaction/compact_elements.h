/* Copies of the elements that a bit set selects, or of their indices, for `compact.h`.
 *
 * A template: define the parameters and include it, any number of times; it undefines them.
 *   PACK_PREFIX   prefix of all names; the function is `prefix_pack(from, words, w, count, to)`
 *   PACK_BYTES    width of an element in bytes: 1, 2, 4, 8 or 16
 *   PACK_INDICES  1 to store indices, of 4 or 8 bytes, instead of elements
 */
#include "../../abi.h"
#include "../../compiler.h"

#define PACK(name) CYX_JOIN(PACK_PREFIX, name)
#define PACK_ITEM PACK(item)
#if PACK_BYTES == 1
typedef uint8_t PACK_ITEM __attribute__((aligned(1), may_alias));
#elif PACK_BYTES == 2
typedef uint16_t PACK_ITEM __attribute__((aligned(1), may_alias));
#elif PACK_BYTES == 4
typedef uint32_t PACK_ITEM __attribute__((aligned(1), may_alias));
#elif PACK_BYTES == 8
typedef uint64_t PACK_ITEM __attribute__((aligned(1), may_alias));
#else
typedef uint64_t PACK_ITEM __attribute__((vector_size(16), aligned(1), may_alias));
#endif

#define PACK_ARGUMENTS in
#if PACK_INDICES
#define PACK_LOAD(i) ((void)in, (PACK_ITEM)(i))
#else
#define PACK_LOAD(i) in[i]
#endif

#if defined(__AVX512F__) && PACK_BYTES < 16
#if PACK_BYTES == 8
#define PACK_LANES 8
#define PACK_MASK uint8_t
#define PACK_COMPRESS(v, mask) __builtin_ia32_compressdi512_mask(v, v, mask)
#define PACK_NUMBERS \
  { 0, 1, 2, 3, 4, 5, 6, 7 }
#define PACK_LANE long long
typedef PACK_LANE PACK(lanes) __attribute__((vector_size(64)));
#else
#define PACK_LANES 16
#define PACK_MASK uint16_t
#define PACK_COMPRESS(v, mask) __builtin_ia32_compresssi512_mask(v, v, mask)
#define PACK_NUMBERS \
  { 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15 }
#define PACK_LANE int
typedef PACK_LANE PACK(lanes) __attribute__((vector_size(64)));
#endif
typedef PACK_ITEM PACK(vector) __attribute__((vector_size(PACK_LANES * PACK_BYTES), aligned(1), may_alias));
#if PACK_BYTES == 1
/* gcc widens bytes to 32 bits one by one, but not in two steps. */
typedef uint16_t PACK(halves) __attribute__((vector_size(2 * PACK_LANES)));
#define PACK_WIDEN(v) __builtin_convertvector(__builtin_convertvector(v, PACK(halves)), PACK(lanes))
#else
#define PACK_WIDEN(v) __builtin_convertvector(v, PACK(lanes))
#endif

/* Store the selected elements of a word at `out`, where 64 have room; return their number. */
static inline int64_t PACK(word)(const PACK_ITEM *in, int64_t first, uint64_t word, PACK_ITEM *out) {
  int64_t at = 0;
  (void)in;
  for (int k = 0; k < 64; k += PACK_LANES) {
    const PACK_MASK mask = (PACK_MASK)(word >> k);
#if PACK_INDICES
    const PACK(lanes) numbers = PACK_NUMBERS, v = numbers + ((PACK(lanes)){0} + (PACK_LANE)(first + k));
#else
    const PACK(lanes) v = PACK_WIDEN(*(const PACK(vector) *)(in + first + k));
#endif
    *(PACK(vector) *)(out + at) = __builtin_convertvector(PACK_COMPRESS(v, mask), PACK(vector));
    at += __builtin_popcount(mask);
  }
  return at;
}
#elif defined(__AVX2__) && !defined(__clang__) && PACK_BYTES < 16
#define PACK_TABLE
#undef PACK_ARGUMENTS
#define PACK_ARGUMENTS in, table
typedef char PACK(bytes) __attribute__((vector_size(16)));
typedef char PACK(bytes_at) __attribute__((vector_size(16), aligned(1), may_alias));
typedef int PACK(ints) __attribute__((vector_size(32)));
typedef int PACK(ints_at) __attribute__((vector_size(32), aligned(1), may_alias));
typedef long long PACK(pair) __attribute__((vector_size(16)));
typedef int PACK(quad) __attribute__((vector_size(16)));
typedef long long PACK(longs) __attribute__((vector_size(32)));
typedef long long PACK(longs_at) __attribute__((vector_size(32), aligned(1), may_alias));

/* Fill a table with the numbers of the set bits of each byte, in order: a byte of the entry each. */
static inline void PACK(fill)(uint64_t *table) {
  table[0] = 0;
  for (int n = 1; n < 256; ++n) {
    table[n] = table[n & (n - 1)] << 8 | (uint64_t)__builtin_ctz((unsigned)n);
    CYX_SCALAR_LOOP
  }
}

/* Store the selected ones of the eight elements from `first + k` on at `out`, where eight have room. */
static inline void PACK(eight)(const PACK_ITEM *in, int64_t first, int k, const uint64_t *table, uint8_t mask,
                               PACK_ITEM *out) {
  const PACK(bytes) order = (PACK(bytes))(PACK(pair)){(long long)table[mask], 0};
  (void)in, (void)order;
#if PACK_INDICES && PACK_BYTES == 4
  /* Sums of vectors: one of numbers would be moved to a vector for each `k`. */
  const PACK(ints) from = ((PACK(ints)){0} + (int)first) + ((PACK(ints)){0} + k);
  *(PACK(ints_at) *)out = (PACK(ints))__builtin_ia32_pmovzxbd256(order) + from;
#elif PACK_INDICES
  const PACK(longs) from = ((PACK(longs)){0} + (long long)first) + ((PACK(longs)){0} + (long long)k);
  for (int half = 0; half < 2; ++half) {
    int numbers;
    __builtin_memcpy(&numbers, (const char *)(table + mask) + 4 * half, sizeof numbers);
    const PACK(bytes) bytes = (PACK(bytes))(PACK(quad)){numbers, 0, 0, 0};
    *(PACK(longs_at) *)(out + 4 * half) = (PACK(longs))__builtin_ia32_pmovzxbq256(bytes) + from;
  }
#elif PACK_BYTES == 1
  long long v;
  __builtin_memcpy(&v, in + first + k, sizeof v);
  const PACK(pair) packed = (PACK(pair))__builtin_ia32_pshufb128((PACK(bytes))(PACK(pair)){v, 0}, order);
  __builtin_memcpy(out, &packed, sizeof v);
#elif PACK_BYTES == 2
  const PACK(bytes) low = order + order, high = low + 1;
  const PACK(bytes) halves = __builtin_ia32_punpcklbw128(low, high);
  *(PACK(bytes_at) *)out = __builtin_ia32_pshufb128(*(const PACK(bytes_at) *)(in + first + k), halves);
#elif PACK_BYTES == 4
  const PACK(ints) lanes = (PACK(ints))__builtin_ia32_pmovzxbd256(order);
  *(PACK(ints_at) *)out = __builtin_ia32_permvarsi256(*(const PACK(ints_at) *)(in + first + k), lanes);
#else
  const int low = mask & 15, high = mask >> 4;
  for (int half = 0; half < 2; ++half) {
    const PACK(bytes) numbers = (PACK(bytes))(PACK(pair)){(long long)table[half ? high : low], 0};
    const PACK(longs) twice = (PACK(longs))__builtin_ia32_pmovzxbq256(numbers) * 2;
    const PACK(ints) lanes = (PACK(ints))(twice | twice << 32 | 1ll << 32);
    *(PACK(ints_at) *)(out + half * __builtin_popcount((unsigned)low)) =
        __builtin_ia32_permvarsi256(*(const PACK(ints_at) *)(in + first + k + 4 * half), lanes);
  }
#endif
}

/* Store the selected elements of a word at `out`, where 64 have room; return their number. */
static inline int64_t PACK(word)(const PACK_ITEM *in, const uint64_t *table, int64_t first, uint64_t word,
                                 PACK_ITEM *out) {
  int64_t at = 0;
#pragma GCC unroll 8
  for (int k = 0; k < 64; k += 8) {
    const uint8_t mask = (uint8_t)(word >> k);
    PACK(eight)(in, first, k, table, mask, out + at);
    at += __builtin_popcount(mask);
  }
  return at;
}
#else
/* Store the selected elements of a word at `out`, where 64 have room; return their number. Every element is stored,
   and the next one replaces it unless it is selected. */
static inline int64_t PACK(word)(const PACK_ITEM *in, int64_t first, uint64_t word, PACK_ITEM *out) {
  int64_t at = 0;
  for (int k = 0; k < 64; ++k) {
    out[at] = PACK_LOAD(first + k);
    at += (int64_t)(word >> k & 1);
    CYX_SCALAR_LOOP
  }
  return at;
}
#endif

/* Store the first `count` elements whose bits are set in the words from `w` on; bit 0 of word 0 is element 0. */
static void PACK(pack)(const void *from, const uint64_t *words, int64_t w, int64_t count, void *to) {
  const PACK_ITEM *const in = from;
  PACK_ITEM *const out = to;
  int64_t at = 0;
#if defined(PACK_TABLE)
  uint64_t table[256];
  if (count >= 64) PACK(fill)(table);
#endif
  /* 64 more elements follow, so the word is whole and `out` has room for it. */
  for (; count - at >= 64; ++w) {
    const uint64_t word = words[w];
    if (word) at += PACK(word)(PACK_ARGUMENTS, w * 64, word, out + at);
  }
  for (; at < count; ++w)
    for (uint64_t bits = words[w]; bits; bits &= bits - 1) out[at++] = PACK_LOAD(w * 64 + __builtin_ctzll(bits));
}

#undef PACK_PREFIX
#undef PACK_BYTES
#undef PACK_INDICES
#undef PACK_LOAD
#undef PACK_TABLE
#undef PACK_ARGUMENTS
#undef PACK_LANES
#undef PACK_LANE
#undef PACK_MASK
#undef PACK_COMPRESS
#undef PACK_WIDEN
#undef PACK_NUMBERS
