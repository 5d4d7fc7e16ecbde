/* Indices in the order of keys that leave no room for an index beside them: first by their upper bits.
 *
 * The keys of a row, less the least of them, are shifted up to the top of 64 bits; the indices overwrite the lowest
 * ones. Sorted so, they are in order but for runs of keys that differ only in bits that were overwritten. Of these, the
 * bits that were lost and the index fit into 64 bits, so such a run is sorted once more.
 *
 * A template: define the parameters and include it, as often as wanted; it undefines them.
 *   WIDE_PREFIX       prefix of all names; `prefix_argsort` is for others
 *   WIDE_KEYS_PREFIX  prefix of the functions of sort_keys.h for keys of 64 bits
 *   WIDE_INDEX_BITS   width of the indices of a row
 */
#include "../abi.h"
#include "../compiler.h"

#define WIDE(name) CYX_JOIN(WIDE_PREFIX, name)
#define WIDE_SORT CYX_JOIN(WIDE_KEYS_PREFIX, sort)

/* Make `x` the indices of a row's keys in order; equal keys keep theirs. `y` has room for as many and a vector more. */
static void WIDE(argsort)(const uint64_t *keys, int64_t n, uint64_t *x, uint64_t *y) {
  uint64_t least = -(uint64_t)1, most = 0;
  for (int64_t k = 0; k < n; ++k) {
    least = keys[k] < least ? keys[k] : least;
    most = keys[k] > most ? keys[k] : most;
  }
  const int up = __builtin_clzll((most - least) | 1), lost = up < WIDE_INDEX_BITS ? WIDE_INDEX_BITS - up : 0;
  const uint64_t indices = ((uint64_t)1 << WIDE_INDEX_BITS) - 1, rest = ((uint64_t)1 << lost) - 1;
  for (int64_t k = 0; k < n; ++k) x[k] = (((keys[k] - least) << up) & ~indices) | (uint64_t)k;
  WIDE_SORT(x, n, y);
  for (int64_t k = 0, end; lost && k < n; k = end) {
    const uint64_t first = keys[x[k] & indices];
    uint64_t differ = 0;
    for (end = k + 1; end < n && (x[end] ^ x[k]) <= indices; ++end) differ |= keys[x[end] & indices] ^ first;
    if (!differ) continue;
    for (int64_t i = k; i < end; ++i) {
      const uint64_t index = x[i] & indices;
      x[i] = ((keys[index] - least) & rest) << WIDE_INDEX_BITS | index;
    }
    WIDE_SORT(x + k, end - k, y);
  }
  for (int64_t k = 0; k < n; ++k) x[k] &= indices;
}

#undef WIDE_PREFIX
#undef WIDE_KEYS_PREFIX
#undef WIDE_INDEX_BITS
