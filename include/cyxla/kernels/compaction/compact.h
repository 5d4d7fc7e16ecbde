/* Compaction by a mask: the rows of arrays at which it is true, or their indices, then zeros; and their number. A
 * kernel of two phases: tasks turn parts of the mask into words of bits and count these, then each task copies the rows
 * of its part behind those of the tasks before it. For long rows, beside which a mask is small, there is one phase:
 * each task counts the mask before its part itself.
 *
 * A template: define the parameters and include it, any number of times; it undefines them. It is preceded by instances
 * of `compact_elements.h` with the prefixes prefix_1, prefix_2, prefix_4, prefix_8 and prefix_16, by width of elements,
 * and with prefix_indices_4 and prefix_indices_8.
 *   COMPACT_PREFIX  prefix of all names; the entry point is `prefix_run(numbers, bufs, begin, end)`
 *
 * The numbers: tasks, rows, phases (1 only without indices), operands, bytes of an index (0 without indices), 1 for
 * zeros behind the selected rows; the bytes of a row of each operand. The buffers: the mask, the operands; the packed
 * operands, the indices, the number; if there are two phases the scratch, which has the words and a count for each
 * task, and the phase.
 */
#include "../../abi.h"
#include "../../compiler.h"

#define COMPACT(name) CYX_JOIN(COMPACT_PREFIX, name)

#if defined(__AVX2__)
#define COMPACT_BYTES 32
#define COMPACT_BITS(v) (uint32_t) __builtin_ia32_pmovmskb256(v)
#elif defined(__SSE2__)
#define COMPACT_BYTES 16
#define COMPACT_BITS(v) (uint32_t) __builtin_ia32_pmovmskb128(v)
#endif

/* Return the bits of 64 bytes of a mask. */
static inline uint64_t COMPACT(bits)(const uint8_t *mask) {
  uint64_t word = 0;
#if defined(COMPACT_BYTES)
  typedef char vector __attribute__((vector_size(COMPACT_BYTES)));
  for (int k = 0; k < 64; k += COMPACT_BYTES) {
    vector v;
    __builtin_memcpy(&v, mask + k, sizeof v);
    word |= (uint64_t)COMPACT_BITS((vector)(v != 0)) << k;
  }
#else
  for (int k = 0; k < 64; ++k) word |= (uint64_t)(mask[k] != 0) << k;
#endif
  return word;
}

/* Return the bits of at most 64 bytes of a mask. */
static inline uint64_t COMPACT(word)(const uint8_t *mask, int64_t left) {
  if (left >= 64) return COMPACT(bits)(mask);
  uint64_t word = 0;
  for (int64_t k = 0; k < left; ++k) word |= (uint64_t)(mask[k] != 0) << k;
  return word;
}

/* Turn a part of a mask into words; return the number of set bits. */
static int64_t COMPACT(read_mask)(const uint8_t *mask, int64_t size, int64_t begin, int64_t end, uint64_t *words) {
  int64_t count = 0;
  for (int64_t w = begin; w < end; ++w) {
    words[w] = COMPACT(word)(mask + w * 64, size - w * 64);
    count += __builtin_popcountll(words[w]);
  }
  return count;
}

/* Return the number of true elements of a mask. */
static int64_t COMPACT(count)(const uint8_t *mask, int64_t size) {
  int64_t count = 0;
  for (int64_t k = 0; k < size; k += 64) count += __builtin_popcountll(COMPACT(word)(mask + k, size - k));
  return count;
}

/* Bytes from a store to the line that is prefetched with it. 512 to 8192 take equally long on one processor; on another
 * 1024 and more take 1.08 times as long as 512, 256 and less 1.07 times as long in L1. */
#define COMPACT_AHEAD 512

/* Copy bytes. Vectors take as long as memcpy at best, and less than half as long where neither side is in a cache. They
 * are variables, since gcc keeps an array of them on the stack. Without the prefetch a store waits for its line: copies
 * then take 1.1 times as long out of the caches, 1.5 times as long in L2. */
static inline void COMPACT(move)(const char *from, int64_t bytes, char *to) {
#if defined(COMPACT_BYTES)
  typedef char vector __attribute__((vector_size(COMPACT_BYTES), aligned(1), may_alias));
  const int64_t step = 4 * COMPACT_BYTES;
  if (bytes >= step) {
    for (int64_t k = 0; k < bytes; k += step) {
      if (k + step > bytes) k = bytes - step; /* the last vectors begin among those before them */
      const vector *const v = (const vector *)(from + k);
      vector *const w = (vector *)(to + k);
      for (int64_t line = 0; line < step; line += 64) __builtin_prefetch(to + k + COMPACT_AHEAD + line, 1);
      const vector v0 = v[0], v1 = v[1], v2 = v[2], v3 = v[3];
      w[0] = v0, w[1] = v1, w[2] = v2, w[3] = v3;
    }
    return;
  }
#endif
  __builtin_memcpy(to, from, (unsigned long)bytes);
}

/* Copy the rows in [begin, end) that a mask selects, neighbours together. */
static void COMPACT(copy_long_rows)(const uint8_t *mask, int64_t begin, int64_t end, const char *from, int64_t bytes,
                                    char *to) {
  for (int64_t k = begin; k < end; ++k) {
    const int64_t first = k;
    while (k < end && mask[k]) ++k;
    const int64_t moved = (k - first) * bytes;
    if (moved) COMPACT(move)(from + first * bytes, moved, to);
    to += moved;
  }
}

/* Copy the first `count` rows whose bits are set in the words from `w` on, neighbours together. */
static void COMPACT(copy_rows)(const char *from, int64_t bytes, const uint64_t *words, int64_t w, int64_t count,
                               char *to) {
  for (int64_t at = 0; at < count; ++w) {
    uint64_t bits = words[w];
    while (bits) {
      const int first = __builtin_ctzll(bits);
      const uint64_t others = ~(bits >> first);
      const int run = others ? __builtin_ctzll(others) : 64;
      const int64_t moved = run * bytes;
      COMPACT(move)(from + (w * 64 + first) * bytes, moved, to);
      to += moved;
      at += run;
      bits &= bits + (bits & -bits); /* clears the run */
    }
  }
}

/* Copy the selected rows of an operand that begin in the words from `w` on. */
static void COMPACT(copy)(const void *from, int64_t bytes, const uint64_t *words, int64_t w, int64_t count, void *to) {
  switch (bytes) {
    case 1:
      COMPACT(1_pack)(from, words, w, count, to);
      return;
    case 2:
      COMPACT(2_pack)(from, words, w, count, to);
      return;
    case 4:
      COMPACT(4_pack)(from, words, w, count, to);
      return;
    case 8:
      COMPACT(8_pack)(from, words, w, count, to);
      return;
    case 16:
      COMPACT(16_pack)(from, words, w, count, to);
      return;
    default:
      COMPACT(copy_rows)(from, bytes, words, w, count, to);
  }
}

/* Write zeros behind the selected rows, which the tasks share equally. */
static void COMPACT(zeros)(const int64_t *q, int64_t total, int64_t begin, int64_t end, int64_t bytes, char *to) {
  const int64_t tasks = q[0], rest = q[1] - total;
  const int64_t low = total + rest * begin / tasks, high = total + rest * end / tasks;
  __builtin_memset(to + low * bytes, 0, (unsigned long)((high - low) * bytes));
}

static void COMPACT(run_long_rows)(const int64_t *q, void *const *bufs, int64_t begin, int64_t end) {
  const int64_t tasks = q[0], size = q[1], operands = q[3];
  const int64_t first = begin * size / tasks, stop = end * size / tasks;
  const uint8_t *const mask = bufs[0];
  void *const *const out = bufs + 1 + operands;
  const int64_t before = COMPACT(count)(mask, first);
  const int64_t total = begin == 0 || q[5] ? before + COMPACT(count)(mask + first, size - first) : 0;
  if (begin == 0) __builtin_memcpy(out[operands], &total, sizeof total);
  for (int64_t r = 0; r < operands; ++r) {
    const int64_t bytes = q[6 + r];
    char *const to = out[r];
    COMPACT(copy_long_rows)(mask, first, stop, bufs[1 + r], bytes, to + before * bytes);
    if (q[5]) COMPACT(zeros)(q, total, begin, end, bytes, to);
  }
}

static cyx_status COMPACT(run)(const int64_t *q, void *const *bufs, int64_t begin, int64_t end) {
  const int64_t tasks = q[0], size = q[1], operands = q[3], results = operands + (q[4] != 0);
  if (q[2] == 1) {
    COMPACT(run_long_rows)(q, bufs, begin, end);
    return CYX_OK;
  }
  const int64_t length = (size + 63) / 64;
  void *const *const out = bufs + 1 + operands;
  uint64_t *const words = out[results + 1];
  int64_t *const counts = (int64_t *)(words + length);
  if (*(const int64_t *)out[results + 2] == 0) {
    for (int64_t u = begin; u < end; ++u)
      counts[u] = COMPACT(read_mask)(bufs[0], size, u * length / tasks, (u + 1) * length / tasks, words);
    return CYX_OK;
  }
  int64_t before = 0, count = 0, total = 0;
  for (int64_t u = 0; u < tasks; ++u) {
    before += u < begin ? counts[u] : 0;
    count += u >= begin && u < end ? counts[u] : 0;
    total += counts[u];
  }
  if (begin == 0) __builtin_memcpy(out[results], &total, sizeof total);
  const int64_t w = begin * length / tasks;
  for (int64_t r = 0; r < results; ++r) {
    const int64_t bytes = r < operands ? q[6 + r] : q[4];
    char *const to = out[r];
    if (r < operands)
      COMPACT(copy)(bufs[1 + r], bytes, words, w, count, to + before * bytes);
    else if (bytes == 4)
      COMPACT(indices_4_pack)(0, words, w, count, to + before * bytes);
    else
      COMPACT(indices_8_pack)(0, words, w, count, to + before * bytes);
    if (q[5]) COMPACT(zeros)(q, total, begin, end, bytes, to);
  }
  return CYX_OK;
}

#undef COMPACT_PREFIX
#undef COMPACT_BYTES
#undef COMPACT_BITS
#undef COMPACT_AHEAD
