/* Argsort of keys that leave no bits for an index: first by their upper bits.
 *
 * The least key of a row is subtracted from all, which are shifted to the top of 64 bits; indices replace the lowest
 * bits. Once sorted, they are in order except for runs of keys that differ only in replaced bits. These bits and the
 * index fit into 64 bits, so that such runs are sorted again. Rows that are sorted already need none of this.
 *
 * A template: define the parameters and include it, any number of times; it undefines them.
 *   WIDE_PREFIX       prefix of all names; the entry point is `prefix_argsort`
 *   WIDE_KEYS_PREFIX  prefix of the functions of sort_keys.h for keys of 64 bits
 *   WIDE_INDEX_BITS   width of the indices of a row
 */
#include "../../abi.h"
#include "../../compiler.h"

#define WIDE(name) CYX_JOIN(WIDE_PREFIX, name)
#define WIDE_SORT CYX_JOIN(WIDE_KEYS_PREFIX, sort)

#define WIDE_BLOCK 16 /* keys that are compared with their neighbours at once */

/* Return whether no key is less than the previous one, or every one is if `ascending` is 0. */
static __attribute__((noinline)) int WIDE(is_run)(const uint64_t *keys, int64_t n, const int ascending) {
  int64_t k = 1;
  for (; k + WIDE_BLOCK <= n; k += WIDE_BLOCK) {
    int wrong = 0;
    for (int i = 0; i < WIDE_BLOCK; ++i) wrong |= (keys[k + i] < keys[k + i - 1]) == ascending;
    if (wrong) return 0;
  }
  for (; k < n; ++k)
    if ((keys[k] < keys[k - 1]) == ascending) return 0;
  return 1;
}

/* Compute the indices `x` of a row's keys in order, stably; `y` is scratch for n keys and a vector. */
static void WIDE(argsort)(const uint64_t *keys, int64_t n, uint64_t *x, uint64_t *y) {
  const int ascending = n < 2 || keys[0] <= keys[1];
  if (WIDE(is_run)(keys, n, ascending)) {
    for (int64_t k = 0; k < n; ++k) x[k] = (uint64_t)(ascending ? k : n - 1 - k);
    return;
  }
  uint64_t min_key = -(uint64_t)1, max_key = 0;
  for (int64_t k = 0; k < n; ++k) {
    min_key = keys[k] < min_key ? keys[k] : min_key;
    max_key = keys[k] > max_key ? keys[k] : max_key;
  }
  const int shift = __builtin_clzll((max_key - min_key) | 1),
            lost_bits = shift < WIDE_INDEX_BITS ? WIDE_INDEX_BITS - shift : 0;
  const uint64_t indices = ((uint64_t)1 << WIDE_INDEX_BITS) - 1, lost_mask = ((uint64_t)1 << lost_bits) - 1;
  for (int64_t k = 0; k < n; ++k) x[k] = (((keys[k] - min_key) << shift) & ~indices) | (uint64_t)k;
  WIDE_SORT(x, n, y);
  for (int64_t k = 0, end; lost_bits && k < n; k = end) {
    const uint64_t first = keys[x[k] & indices];
    uint64_t difference = 0;
    for (end = k + 1; end < n && (x[end] ^ x[k]) <= indices; ++end) difference |= keys[x[end] & indices] ^ first;
    if (!difference) continue;
    for (int64_t i = k; i < end; ++i) {
      const uint64_t index = x[i] & indices;
      x[i] = ((keys[index] - min_key) & lost_mask) << WIDE_INDEX_BITS | index;
    }
    WIDE_SORT(x + k, end - k, y);
  }
  for (int64_t k = 0; k < n; ++k) x[k] &= indices;
}

#undef WIDE_PREFIX
#undef WIDE_KEYS_PREFIX
#undef WIDE_INDEX_BITS
#undef WIDE_BLOCK
