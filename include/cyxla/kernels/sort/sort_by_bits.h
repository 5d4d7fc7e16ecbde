/* Keys computed from the bits of elements, and elements from keys: the functions that sort_rows.h requires.
 *
 * A template: define the parameters and include it, any number of times; it undefines them.
 *   SORT_PREFIX   prefix of all names
 *   SORT_BITS     width of an element: 8, 16, 32 or 64
 *   SORT_INDICES  0 if elements are recovered from their keys; 1 if keys have the indices of their elements, by which
 *                 all operands are ordered
 *   SORT_KEY      type of the keys: as wide as elements, but at least 32 bits; with indices, uint64_t
 *
 * Numbers after those of sort_rows.h: the pattern (see below); 1 to restore zeros and NaNs, else 0; the index of the
 * operand with the keys; bytes of an element of each operand, 0 if its result is not used, negative if its elements are
 * their indices in the row.
 */
#include "../../abi.h"
#include "../../compiler.h"

#define SORT(name) CYX_JOIN(SORT_PREFIX, name)
#define SORT_TYPE_(kind, bits) kind##bits##_t
#define SORT_TYPE(kind, bits) SORT_TYPE_(kind, bits)
#define SORT_U SORT_TYPE(uint, SORT_BITS)
#define SORT_S SORT_TYPE(int, SORT_BITS)
#define SORT_ELEMENT SORT(element)

typedef SORT_U SORT_ELEMENT __attribute__((aligned(1), may_alias));

/* Masks of an element's bits: flipped if it is negative; the greatest magnitude that is not NaN; bits of all NaNs; bits
   kept of zeros; flipped in all elements. */
typedef struct {
  SORT_U fold, max_bits, nan, keep, flip;
} SORT(pattern);

static inline SORT(pattern) SORT(pattern_of)(const int64_t *q) {
  const SORT(pattern) pattern = {(SORT_U)q[7], (SORT_U)q[8], (SORT_U)q[9], (SORT_U)q[10], (SORT_U)q[11]};
  return pattern;
}

static inline SORT_U SORT(signs)(SORT_U u) { return (SORT_U)((SORT_S)u >> (SORT_BITS - 1)); }

static inline SORT_U SORT(magnitude)(SORT_U u) { return u & (SORT_U)((SORT_U)-1 >> 1); }

static inline SORT_U SORT(key)(SORT_U u, SORT(pattern) p) {
  u = SORT(magnitude)(u) > p.max_bits ? p.nan : u;
  u = SORT(magnitude)(u) == 0 ? u & p.keep : u;
  return (SORT_U)(u ^ (SORT(signs)(u) & p.fold) ^ p.flip);
}

#if SORT_INDICES
static uint32_t SORT(load_keys)(const int64_t *q, void *const *bufs, int64_t row_offset, int64_t low, int64_t high,
                                SORT_KEY *x) {
  const SORT(pattern) p = SORT(pattern_of)(q);
  const int64_t step = q[3];
  const SORT_ELEMENT *const from = (const SORT_ELEMENT *)bufs[q[13]] + row_offset;
  for (int64_t k = low; k < high; ++k) x[k - low] = (uint64_t)SORT(key)(from[k * step], p) << 32 | (uint64_t)k;
  return 0;
}

#define SORT_MOVE(bits)                                                                             \
  {                                                                                                 \
    typedef uint##bits##_t item __attribute__((aligned(1), may_alias));                             \
    const item *const from = (const item *)bufs[n] + row_offset;                                    \
    item *const to = (item *)bufs[operands + n] + row_offset;                                       \
    for (int64_t k = low; k < high; ++k) to[k * step] = from[(int64_t)(uint32_t)x[k - low] * step]; \
  }
#define SORT_STORE_INDICES(bits)                                                    \
  {                                                                                 \
    typedef int##bits##_t item __attribute__((aligned(1), may_alias));              \
    item *const to = (item *)bufs[operands + n] + row_offset;                       \
    for (int64_t k = low; k < high; ++k) to[k * step] = (item)(uint32_t)x[k - low]; \
  }
static void SORT(store)(const int64_t *q, void *const *bufs, int64_t row_offset, int64_t low, int64_t high,
                        const SORT_KEY *x) {
  const int64_t step = q[3], operands = q[6] / 2;
  for (int64_t n = 0; n < operands; ++n) {
    const int64_t item = q[14 + n];
    switch (item) {
      case 0:
        break;
      case -4:
        SORT_STORE_INDICES(32) break;
      case -8:
        SORT_STORE_INDICES(64) break;
      case 1:
        SORT_MOVE(8) break;
      case 2:
        SORT_MOVE(16) break;
      case 4:
        SORT_MOVE(32) break;
      case 8:
        SORT_MOVE(64) break;
      default:
        for (int64_t k = low; k < high; ++k)
          __builtin_memcpy((char *)bufs[operands + n] + (row_offset + k * step) * item,
                           (const char *)bufs[n] + (row_offset + (int64_t)(uint32_t)x[k - low] * step) * item,
                           (unsigned long)item);
    }
  }
}

static void SORT(restore)(const int64_t *q, void *const *bufs, int64_t row_offset) {
  (void)q, (void)bufs, (void)row_offset;
}
#else
static inline __attribute__((always_inline)) uint32_t SORT(fill)(const SORT_ELEMENT *from, const int64_t step,
                                                                 int64_t n, SORT_KEY *x, SORT(pattern) p) {
  uint32_t special = 0;
  for (int64_t k = 0; k < n; ++k) {
    const SORT_U u = from[k * step];
    x[k] = SORT(key)(u, p);
    special |= (uint32_t)(SORT(magnitude)(u) > p.max_bits) | (uint32_t)(u == (SORT_U)((SORT_U)1 << (SORT_BITS - 1)));
  }
  return special;
}

static uint32_t SORT(load_keys)(const int64_t *q, void *const *bufs, int64_t row_offset, int64_t low, int64_t high,
                                SORT_KEY *x) {
  const SORT(pattern) p = SORT(pattern_of)(q);
  const SORT_ELEMENT *const from = (const SORT_ELEMENT *)bufs[0] + row_offset + low * q[3];
  const uint32_t special = q[3] == 1 ? SORT(fill)(from, 1, high - low, x, p) : SORT(fill)(from, q[3], high - low, x, p);
  return q[12] ? special : 0;
}

static inline SORT_U SORT(bits)(SORT_U key, SORT(pattern) p) {
  const SORT_U u = key ^ p.flip;
  return (SORT_U)(u ^ (SORT(signs)(u) & p.fold));
}

static void SORT(store)(const int64_t *q, void *const *bufs, int64_t row_offset, int64_t low, int64_t high,
                        const SORT_KEY *x) {
  const SORT(pattern) p = SORT(pattern_of)(q);
  const int64_t step = q[3];
  SORT_ELEMENT *const to = (SORT_ELEMENT *)bufs[1] + row_offset + low * step;
  if (step == 1) {
    for (int64_t k = 0; k < high - low; ++k) to[k] = SORT(bits)((SORT_U)x[k], p);
  } else {
    for (int64_t k = 0; k < high - low; ++k) to[k * step] = SORT(bits)((SORT_U)x[k], p);
  }
}

/* Return the index of the first element of a sorted row whose key is not less than that of some bits. */
static int64_t SORT(first)(const SORT_ELEMENT *row, int64_t step, int64_t n, SORT_U u, SORT(pattern) p) {
  const SORT_U key = SORT(key)(u, p);
  int64_t first = 0;
  for (int64_t end = n; first < end;) {
    const int64_t middle = first + (end - first) / 2;
    if (SORT(key)(row[middle * step], p) < key)
      first = middle + 1;
    else
      end = middle;
  }
  return first;
}

/* Store the zeros and NaNs of a sorted row in the order of the operand. */
static void SORT(restore)(const int64_t *q, void *const *bufs, int64_t row_offset) {
  const SORT(pattern) p = SORT(pattern_of)(q);
  const int64_t step = q[3];
  const SORT_ELEMENT *const from = (const SORT_ELEMENT *)bufs[0] + row_offset;
  SORT_ELEMENT *const to = (SORT_ELEMENT *)bufs[1] + row_offset;
  int64_t zeros = SORT(first)(to, step, q[2], 0, p), nans = SORT(first)(to, step, q[2], p.nan, p);
  for (int64_t k = 0; k < q[2]; ++k) {
    const SORT_U u = from[k * step];
    if (SORT(magnitude)(u) == 0) to[zeros++ * step] = u;
    if (SORT(magnitude)(u) > p.max_bits) to[nans++ * step] = u;
  }
}
#endif

#undef SORT_PREFIX
#undef SORT_BITS
#undef SORT_INDICES
#undef SORT_KEY
