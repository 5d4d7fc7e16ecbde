/* Keys that follow from the bits of elements, and the results of keys: the functions that sort_rows.h asks for.
 *
 * A template: define the parameters and include it, as often as wanted; it undefines them.
 *   SORT_PREFIX   prefix of all names
 *   SORT_BITS     width of an element: 8, 16, 32 or 64
 *   SORT_INDICES  0 if a key is all of its element; 1 if keys go with the indices of their elements, by which all
 *                 operands are put in order
 *   SORT_KEY      type of the keys: as wide as elements, but at least 32 bits; with indices, uint64_t
 *
 * Numbers behind those of sort_rows.h: the pattern (see below); whether zeros and NaNs are to be put in order; which
 * operand decides; the bytes of each operand's elements.
 */
#include "../abi.h"
#include "../compiler.h"

#define SORT(name) CYX_JOIN(SORT_PREFIX, name)
#define SORT_TYPE_(kind, bits) kind##bits##_t
#define SORT_TYPE(kind, bits) SORT_TYPE_(kind, bits)
#define SORT_U SORT_TYPE(uint, SORT_BITS)
#define SORT_S SORT_TYPE(int, SORT_BITS)
#define SORT_ELEMENT SORT(element)

typedef SORT_U SORT_ELEMENT __attribute__((aligned(1), may_alias));

/* Of an element's bits: which change sides if it is negative; without the sign, the greatest that are no NaN; which
   stand for NaNs; which are kept of zeros; which to flip. */
typedef struct {
  SORT_U fold, most, nan, keep, flip;
} SORT(pattern);

static inline SORT(pattern) SORT(pattern_of)(const int64_t *q) {
  const SORT(pattern) found = {(SORT_U)q[7], (SORT_U)q[8], (SORT_U)q[9], (SORT_U)q[10], (SORT_U)q[11]};
  return found;
}

static inline SORT_U SORT(signs)(SORT_U u) { return (SORT_U)((SORT_S)u >> (SORT_BITS - 1)); }

static inline SORT_U SORT(magnitude)(SORT_U u) { return u & (SORT_U)((SORT_U)-1 >> 1); }

static inline SORT_U SORT(key)(SORT_U u, SORT(pattern) p) {
  u = SORT(magnitude)(u) > p.most ? p.nan : u;
  u = SORT(magnitude)(u) == 0 ? u & p.keep : u;
  return (SORT_U)(u ^ (SORT(signs)(u) & p.fold) ^ p.flip);
}

#if SORT_INDICES
static uint32_t SORT(load_keys)(const int64_t *q, void *const *bufs, int64_t at, int64_t low, int64_t high,
                                SORT_KEY *x) {
  const SORT(pattern) p = SORT(pattern_of)(q);
  const int64_t step = q[3];
  const SORT_ELEMENT *const from = (const SORT_ELEMENT *)bufs[q[13]] + at;
  for (int64_t k = low; k < high; ++k) x[k - low] = (uint64_t)SORT(key)(from[k * step], p) << 32 | (uint64_t)k;
  return 0;
}

#define SORT_MOVE(bits)                                                                             \
  {                                                                                                 \
    typedef uint##bits##_t item __attribute__((aligned(1), may_alias));                             \
    const item *const from = (const item *)bufs[n] + at;                                            \
    item *const to = (item *)bufs[operands + n] + at;                                               \
    for (int64_t k = low; k < high; ++k) to[k * step] = from[(int64_t)(uint32_t)x[k - low] * step]; \
  }
static void SORT(store)(const int64_t *q, void *const *bufs, int64_t at, int64_t low, int64_t high, const SORT_KEY *x) {
  const int64_t step = q[3], operands = q[6] / 2;
  for (int64_t n = 0; n < operands; ++n) {
    const int64_t item = q[14 + n];
    switch (item) {
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
          __builtin_memcpy((char *)bufs[operands + n] + (at + k * step) * item,
                           (const char *)bufs[n] + (at + (int64_t)(uint32_t)x[k - low] * step) * item,
                           (unsigned long)item);
    }
  }
}

static void SORT(restore)(const int64_t *q, void *const *bufs, int64_t at) { (void)q, (void)bufs, (void)at; }
#else
static inline __attribute__((always_inline)) uint32_t SORT(fill)(const SORT_ELEMENT *from, const int64_t step,
                                                                 int64_t n, SORT_KEY *x, SORT(pattern) p) {
  uint32_t special = 0;
  for (int64_t k = 0; k < n; ++k) {
    const SORT_U u = from[k * step];
    x[k] = SORT(key)(u, p);
    special |= (uint32_t)(SORT(magnitude)(u) > p.most) | (uint32_t)(u == (SORT_U)((SORT_U)1 << (SORT_BITS - 1)));
  }
  return special;
}

static uint32_t SORT(load_keys)(const int64_t *q, void *const *bufs, int64_t at, int64_t low, int64_t high,
                                SORT_KEY *x) {
  const SORT(pattern) p = SORT(pattern_of)(q);
  const SORT_ELEMENT *const from = (const SORT_ELEMENT *)bufs[0] + at + low * q[3];
  const uint32_t special = q[3] == 1 ? SORT(fill)(from, 1, high - low, x, p) : SORT(fill)(from, q[3], high - low, x, p);
  return q[12] ? special : 0;
}

static inline SORT_U SORT(bits)(SORT_U key, SORT(pattern) p) {
  const SORT_U u = key ^ p.flip;
  return (SORT_U)(u ^ (SORT(signs)(u) & p.fold));
}

static void SORT(store)(const int64_t *q, void *const *bufs, int64_t at, int64_t low, int64_t high, const SORT_KEY *x) {
  const SORT(pattern) p = SORT(pattern_of)(q);
  const int64_t step = q[3];
  SORT_ELEMENT *const to = (SORT_ELEMENT *)bufs[1] + at + low * step;
  if (step == 1) {
    for (int64_t k = 0; k < high - low; ++k) to[k] = SORT(bits)((SORT_U)x[k], p);
  } else {
    for (int64_t k = 0; k < high - low; ++k) to[k * step] = SORT(bits)((SORT_U)x[k], p);
  }
}

/* Index of the first element of a sorted row whose key is not less than that of some bits. */
static int64_t SORT(first)(const SORT_ELEMENT *row, int64_t step, int64_t n, SORT_U u, SORT(pattern) p) {
  const SORT_U key = SORT(key)(u, p);
  int64_t first = 0;
  for (int64_t past = n; first < past;) {
    const int64_t middle = first + (past - first) / 2;
    if (SORT(key)(row[middle * step], p) < key)
      first = middle + 1;
    else
      past = middle;
  }
  return first;
}

/* Write the zeros and NaNs of a sorted row in the order in which the operand has them. */
static void SORT(restore)(const int64_t *q, void *const *bufs, int64_t at) {
  const SORT(pattern) p = SORT(pattern_of)(q);
  const int64_t step = q[3];
  const SORT_ELEMENT *const from = (const SORT_ELEMENT *)bufs[0] + at;
  SORT_ELEMENT *const to = (SORT_ELEMENT *)bufs[1] + at;
  int64_t zeros = SORT(first)(to, step, q[2], 0, p), nans = SORT(first)(to, step, q[2], p.nan, p);
  for (int64_t k = 0; k < q[2]; ++k) {
    const SORT_U u = from[k * step];
    if (SORT(magnitude)(u) == 0) to[zeros++ * step] = u;
    if (SORT(magnitude)(u) > p.most) to[nans++ * step] = u;
  }
}
#endif

#undef SORT_PREFIX
#undef SORT_BITS
#undef SORT_INDICES
#undef SORT_KEY
