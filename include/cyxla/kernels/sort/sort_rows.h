/* Sort of rows by unsigned keys: a kernel.
 *
 * A long row is split into chunks; each is distributed to buckets by the same borders, keys of a sample of the row;
 * then each bucket is gathered from the chunks and sorted.
 *
 * A template: define the parameters and include it, any number of times; it undefines them.
 *   SORT_PREFIX       prefix of all names; the entry point is `prefix_run(numbers, bufs, begin, end)`
 *   SORT_KEY          type of the keys
 *   SORT_KEYS_PREFIX  prefix of the functions of sort_keys.h for such keys
 *   SORT_SAMPLES      keys of the sample for each bucket
 *   SORT_MAX_BUCKETS  greatest number of buckets of a row
 *   SORT_PADDING      bytes after keys that vector stores may write
 *
 * Three functions precede this text, such as those of sort_by_bits.h. They get the numbers and buffers of the kernel,
 * the offset of the row, and a range of its elements:
 *   uint32_t prefix_load_keys(q, bufs, at, low, high, x)  computes keys; nonzero if some determine no element
 *   void prefix_store(q, bufs, at, low, high, x)          stores the results of sorted keys
 *   void prefix_restore(q, bufs, at)                      corrects the results of a row with keys of that kind
 *
 * The numbers: tasks, rows, their length, the stride of their elements, buckets or 1, chunks, buffers before the
 * scratch; then those of the three functions.
 */
#include "../../abi.h"
#include "../../compiler.h"

#define SORT(name) CYX_JOIN(SORT_PREFIX, name)
#define SORT_KEYS(name) CYX_JOIN(SORT_KEYS_PREFIX, name)

/* Return the offset of a row. */
static inline int64_t SORT(start)(const int64_t *q, int64_t row) { return row / q[3] * q[3] * q[2] + row % q[3]; }

/* Flags of a chunk: some of its keys determine no element; its keys are sorted. */
enum { SORT(is_special) = 1, SORT(is_sorted) = 2 };

/* First phase of split rows: compute the keys of a chunk and distribute them to buckets. */
static void SORT(spread_chunk)(const int64_t *q, void *const *bufs, int64_t u, SORT_KEY *keys, uint32_t *counts,
                               SORT_KEY *y, uint32_t *flags) {
  const int64_t length = q[2], buckets = q[4], chunks = q[5], samples = SORT_SAMPLES * buckets;
  const int64_t row = u / chunks, chunk = u % chunks, row_offset = SORT(start)(q, row);
  const int64_t low = chunk * length / chunks, high = (chunk + 1) * length / chunks;
  SORT_KEY *const x = keys + row * length + low;
  SORT_KEY sample[SORT_SAMPLES * SORT_MAX_BUCKETS], borders[SORT_MAX_BUCKETS];
  SORT_KEY sort_scratch[SORT_SAMPLES * SORT_MAX_BUCKETS + SORT_PADDING];
  for (int64_t s = 0; s < samples; ++s) {
    const int64_t k = s * length / samples;
    SORT(load_keys)(q, bufs, row_offset, k, k + 1, sample + s);
  }
  SORT_KEYS(sort)(sample, samples, sort_scratch);
  for (int64_t k = 1; k < buckets; ++k) {
    borders[k - 1] = sample[k * SORT_SAMPLES];
    CYX_SCALAR_LOOP
  }
  flags[u] = SORT(load_keys)(q, bufs, row_offset, low, high, x) ? SORT(is_special) : 0;
  if (SORT_KEYS(spread)(x, high - low, y, borders, (int)buckets, counts + u * buckets)) flags[u] |= SORT(is_sorted);
}

/* Return whether the chunks of a row are sorted, one after the other. */
static int SORT(row_is_sorted)(const int64_t *q, const SORT_KEY *row, const uint32_t *flags) {
  const int64_t length = q[2], chunks = q[5];
  int is_sorted = 1;
  for (int64_t k = 0; k < chunks; ++k) {
    const int64_t first = k * length / chunks;
    is_sorted &= flags[k] >= SORT(is_sorted) && (first == 0 || row[first - 1] <= row[first]);
    CYX_SCALAR_LOOP
  }
  return is_sorted;
}

/* Second phase: gather a bucket from the chunks, sort it, and store its results. */
static void SORT(sort_bucket)(const int64_t *q, void *const *bufs, int64_t u, const SORT_KEY *keys,
                              const uint32_t *counts, const uint32_t *flags, char *scratch) {
  const int64_t length = q[2], buckets = q[4], chunks = q[5], row = u / buckets, bucket = u % buckets;
  const SORT_KEY *const from = keys + row * length;
  const uint32_t *const count = counts + row * chunks * buckets;
  int64_t start = 0, n = 0;
  for (int64_t k = 0; k < chunks * buckets; ++k) {
    start += k % buckets < bucket ? count[k] : 0;
    CYX_SCALAR_LOOP
  }
  if (SORT(row_is_sorted)(q, from, flags + row * chunks)) {
    for (int64_t chunk = 0; chunk < chunks; ++chunk) n += count[chunk * buckets + bucket];
    SORT(store)(q, bufs, SORT(start)(q, row), start, start + n, from + start);
    return;
  }
  scratch += row * (2 * (int64_t)sizeof(SORT_KEY) * length + SORT_PADDING * buckets);
  SORT_KEY *const x = (SORT_KEY *)scratch + start;
  SORT_KEY *const y = (SORT_KEY *)(scratch + bucket * SORT_PADDING) + length + start;
  const int is_reversed = from[(chunks - 1) * length / chunks] < from[0]; /* a hint: such chunks make fewer runs */
  for (int64_t c = 0; c < chunks; ++c) {
    const int64_t chunk = is_reversed ? chunks - 1 - c : c;
    int64_t first = chunk * length / chunks;
    for (int64_t k = 0; k < bucket; ++k) {
      first += count[chunk * buckets + k];
      CYX_SCALAR_LOOP
    }
    const int64_t m = count[chunk * buckets + bucket];
    __builtin_memcpy(x + n, from + first, (unsigned long)m * sizeof *x);
    n += m;
  }
  SORT_KEYS(sort)(x, n, y);
  SORT(store)(q, bufs, SORT(start)(q, row), start, start + n, x);
}

/* Tasks of a sort. Without buckets, a task sorts complete rows. Otherwise the scratch has, for all rows, the keys,
   their number in each bucket of each chunk, flags of chunks with keys that determine no element, and scratch of each
   row; the third phase corrects rows with such keys. */
static cyx_status SORT(run)(const int64_t *q, void *const *bufs, int64_t begin, int64_t end) {
  const int64_t tasks = q[0], count = q[1], length = q[2], buckets = q[4], chunks = q[5], item = sizeof(SORT_KEY);
  char *const scratch = bufs[q[6]];
  if (buckets == 1) {
    SORT_KEY *const x = (SORT_KEY *)(scratch + begin * (2 * item * length + SORT_PADDING));
    for (int64_t u = begin * count / tasks; u < end * count / tasks; ++u) {
      const int64_t row_offset = SORT(start)(q, u);
      const uint32_t special = SORT(load_keys)(q, bufs, row_offset, 0, length, x);
      SORT_KEYS(sort)(x, length, x + length);
      SORT(store)(q, bufs, row_offset, 0, length, x);
      if (special) SORT(restore)(q, bufs, row_offset);
    }
    return CYX_OK;
  }
  const int64_t phase = *(const int64_t *)bufs[q[6] + 1];
  const int64_t units = phase == 0 ? count * chunks : phase == 1 ? count * buckets : count;
  SORT_KEY *const keys = (SORT_KEY *)scratch;
  uint32_t *const counts = (uint32_t *)(keys + count * length), *const flags = counts + count * chunks * buckets;
  char *const rows = (char *)(flags + (count * chunks + 15) / 16 * 16);
  for (int64_t u = begin * units / tasks; u < end * units / tasks; ++u) {
    if (phase == 0) {
      SORT_KEY *const y = (SORT_KEY *)(rows + u * ((length / chunks + 1) * item + SORT_PADDING));
      SORT(spread_chunk)(q, bufs, u, keys, counts, y, flags);
    } else if (phase == 1) {
      SORT(sort_bucket)(q, bufs, u, keys, counts, flags, rows);
    } else {
      uint32_t all = 0;
      for (int64_t k = 0; k < chunks; ++k) all |= flags[u * chunks + k];
      if (all & SORT(is_special)) SORT(restore)(q, bufs, SORT(start)(q, u));
    }
  }
  return CYX_OK;
}

#undef SORT_PREFIX
#undef SORT_KEY
#undef SORT_KEYS_PREFIX
#undef SORT_SAMPLES
#undef SORT_MAX_BUCKETS
#undef SORT_PADDING
