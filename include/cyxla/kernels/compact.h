/* Compaction by a mask: the rows of arrays at which it is true, or their indices, then zeros; and their number. A
 * kernel of two phases: tasks turn parts of the mask into words of bits and count these, then each task copies the rows
 * of its part behind those of the tasks before it.
 *
 * A template: define the parameters and include it, any number of times; it undefines them. It is preceded by instances
 * of `compact_elements.h` with the prefixes prefix_1, prefix_2, prefix_4, prefix_8 and prefix_16, by width of elements,
 * and with prefix_indices_4 and prefix_indices_8.
 *   COMPACT_PREFIX  prefix of all names; the entry point is `prefix_run(numbers, bufs, begin, end)`
 *
 * The numbers: tasks, rows, rows in a word (64, or 1 if every row has more bytes than an element), operands, bytes of
 * an index (0 without indices), 1 for zeros behind the selected rows; the bytes of a row of each operand. The buffers:
 * the mask, the operands; the packed operands, the indices, the number; the scratch, which has the words and a count
 * for each task; the phase.
 */
#include "../abi.h"
#include "../compiler.h"

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

/* Turn a part of a mask into words, `rows` bits each; return the number of set bits. */
static int64_t COMPACT(read_mask)(const uint8_t *mask, int64_t size, int64_t rows, int64_t begin, int64_t end,
                                  uint64_t *words) {
  int64_t count = 0;
  for (int64_t w = begin; w < end; ++w) {
    const uint8_t *const part = mask + w * rows;
    const int64_t left = size - w * rows < rows ? size - w * rows : rows;
    uint64_t word = 0;
    if (left == 64)
      word = COMPACT(bits)(part);
    else
      for (int64_t k = 0; k < left; ++k) word |= (uint64_t)(part[k] != 0) << k;
    words[w] = word;
    count += __builtin_popcountll(word);
  }
  return count;
}

/* Copy the first `count` rows whose bits are set in the words from `w` on, neighbours together. */
static void COMPACT(copy_rows)(const char *from, int64_t bytes, const uint64_t *words, int64_t rows, int64_t w,
                               int64_t count, char *to) {
  for (int64_t at = 0; at < count; ++w) {
    uint64_t bits = words[w];
    while (bits) {
      const int first = __builtin_ctzll(bits);
      const uint64_t others = ~(bits >> first);
      const int run = others ? __builtin_ctzll(others) : 64;
      const int64_t moved = run * bytes;
      __builtin_memcpy(to, from + (w * rows + first) * bytes, (unsigned long)moved);
      to += moved;
      at += run;
      bits &= bits + (bits & -bits); /* clears the run */
    }
  }
}

/* Copy the selected rows of an operand that begin in the words from `w` on. */
static void COMPACT(copy)(const void *from, int64_t bytes, const uint64_t *words, int64_t rows, int64_t w,
                          int64_t count, void *to) {
  switch (rows == 64 ? bytes : 0) {
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
      COMPACT(copy_rows)(from, bytes, words, rows, w, count, to);
  }
}

static cyx_status COMPACT(run)(const int64_t *q, void *const *bufs, int64_t begin, int64_t end) {
  const int64_t tasks = q[0], size = q[1], rows = q[2], operands = q[3], results = operands + (q[4] != 0);
  const int64_t length = (size + rows - 1) / rows;
  void *const *const out = bufs + 1 + operands;
  uint64_t *const words = out[results + 1];
  int64_t *const counts = (int64_t *)(words + length);
  if (*(const int64_t *)out[results + 2] == 0) {
    for (int64_t u = begin; u < end; ++u)
      counts[u] = COMPACT(read_mask)(bufs[0], size, rows, u * length / tasks, (u + 1) * length / tasks, words);
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
  /* Zeros behind the selected rows are shared equally. */
  const int64_t low = total + (size - total) * begin / tasks, high = total + (size - total) * end / tasks;
  for (int64_t r = 0; r < results; ++r) {
    const int64_t bytes = r < operands ? q[6 + r] : q[4];
    char *const to = out[r];
    if (r < operands)
      COMPACT(copy)(bufs[1 + r], bytes, words, rows, w, count, to + before * bytes);
    else if (bytes == 4)
      COMPACT(indices_4_pack)(0, words, w, count, to + before * bytes);
    else
      COMPACT(indices_8_pack)(0, words, w, count, to + before * bytes);
    if (q[5]) __builtin_memset(to + low * bytes, 0, (unsigned long)((high - low) * bytes));
  }
  return CYX_OK;
}

#undef COMPACT_PREFIX
#undef COMPACT_BYTES
#undef COMPACT_BITS
