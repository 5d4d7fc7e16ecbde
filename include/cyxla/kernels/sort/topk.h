/* The k best elements of each row, without sorting it: a kernel.
 *
 * Elements are converted to signed keys of the same order. A block of them is compared with the worst selected key by
 * vectors, and one by one only if some are better, which soon becomes rare.
 *
 * A template: define the parameters and include it, any number of times; it undefines them.
 *   TOPK_PREFIX  prefix of all names; the entry point is `prefix_run(numbers, bufs, begin, end)`
 *   TOPK_KEY     type of the keys: int32_t or int64_t
 *   TOPK_BITS    width of elements whose keys are computed from their bits; else 0, and this text is preceded by the
 *                type `prefix_element` and a function `TOPK_KEY prefix_key(prefix_element, const int64_t *numbers)`
 *   TOPK_MAX_K   the largest k
 *
 * The numbers: tasks, rows, their length, k; with bits, the masks of those flipped in negative elements and in all.
 */
#include "../../abi.h"
#include "../../compiler.h"

#define TOPK(name) CYX_JOIN(TOPK_PREFIX, name)
#define TOPK_BLOCK 128

#if TOPK_BITS
#define TOPK_TYPE_(kind, bits) kind##bits##_t
#define TOPK_TYPE(kind, bits) TOPK_TYPE_(kind, bits)
#define TOPK_U TOPK_TYPE(uint, TOPK_BITS)
#define TOPK_S TOPK_TYPE(int, TOPK_BITS)
typedef TOPK_U TOPK(element) __attribute__((aligned(1), may_alias));

static inline TOPK_KEY TOPK(key)(TOPK_U u, const int64_t *q) {
  const TOPK_U sign = (TOPK_U)((TOPK_S)u >> (TOPK_BITS - 1));
  return (TOPK_S)(u ^ (sign & (TOPK_U)q[4]) ^ (TOPK_U)q[5]);
}
#endif

typedef int32_t TOPK(index) __attribute__((aligned(1), may_alias));

/* Insert a key into the selected ones, in descending order and after equal ones; the last one is dropped. */
static inline void TOPK(insert)(TOPK_KEY *best, int32_t *indices, int64_t last, TOPK_KEY key, int32_t index) {
  int64_t i = last;
  for (; i > 0 && best[i - 1] < key; --i) {
    best[i] = best[i - 1];
    indices[i] = indices[i - 1];
  }
  best[i] = key;
  indices[i] = index;
}

static cyx_status TOPK(run)(const int64_t *q, void *const *bufs, int64_t begin, int64_t end) {
  const int64_t tasks = q[0], rows = q[1], length = q[2], k = q[3];
  if (k == 0) return CYX_OK;
  for (int64_t u = begin * rows / tasks; u < end * rows / tasks; ++u) {
    const TOPK(element) *const row = (const TOPK(element) *)bufs[0] + u * length;
    TOPK(element) *const values = (TOPK(element) *)bufs[1] + u * k;
    TOPK(index) *const indices = (TOPK(index) *)bufs[2] + u * k;
    TOPK_KEY best[TOPK_MAX_K], keys[TOPK_BLOCK];
    int32_t selected[TOPK_MAX_K], position = (int32_t)k;
    for (int32_t j = 0; j < k; ++j) TOPK(insert)(best, selected, j, TOPK(key)(row[j], q), j);
    for (; position <= length - TOPK_BLOCK; position += TOPK_BLOCK) {
      const TOPK_KEY worst = best[k - 1];
      int better = 0;
      for (int j = 0; j < TOPK_BLOCK; ++j) {
        keys[j] = TOPK(key)(row[position + j], q);
        better |= keys[j] > worst;
      }
      if (!better) continue;
      for (int j = 0; j < TOPK_BLOCK; ++j)
        if (keys[j] > best[k - 1]) TOPK(insert)(best, selected, k - 1, keys[j], position + j);
    }
    for (; position < length; ++position) {
      const TOPK_KEY key = TOPK(key)(row[position], q);
      if (key > best[k - 1]) TOPK(insert)(best, selected, k - 1, key, position);
    }
    for (int64_t j = 0; j < k; ++j) {
      values[j] = row[selected[j]];
      indices[j] = selected[j];
    }
  }
  return CYX_OK;
}

#undef TOPK_PREFIX
#undef TOPK_KEY
#undef TOPK_BITS
#undef TOPK_MAX_K
