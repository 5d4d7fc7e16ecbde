/* Indices of the first extreme along the middle dimension of an array of three: a kernel. A NaN is before all numbers.
 *
 * A long row is read twice: for the extreme, and up to its first place. Lanes of short rows, and columns, keep their
 * extremes and the places.
 *
 * A template: define the parameters and include it, any number of times; it undefines them.
 *   FIRST_PREFIX        prefix of all names; the entry point is `prefix_run(bufs, begin, end)`
 *   FIRST_TYPE          type of an element
 *   FIRST_MEMORY        type of elements in memory
 *   FIRST_MASK          signed integer of its width
 *   FIRST_PLACE         signed integer for places in columns
 *   FIRST_BEFORE(x, y)  whether an element x is better than y; true for no NaN
 *
 * The numbers: the dimensions, of which the middle one is not 0; tasks. Buffers: the operand, the result of int64_t.
 */
#include "../../abi.h"
#include "../../compiler.h"
#include "../../prebuilt.h"

#define FIRST(name) CYX_JOIN(FIRST_PREFIX, name)
#define FIRST_BLOCK 128 /* columns of a block */
#define FIRST_SHORT 127 /* elements of a short row, whose places all integers hold */

#if defined(__AVX512F__)
#define FIRST_BYTES 64
#elif defined(__AVX2__)
#define FIRST_BYTES 32
#else
#define FIRST_BYTES 16
#endif
typedef FIRST_TYPE FIRST(vector) __attribute__((vector_size(FIRST_BYTES)));
typedef FIRST_MASK FIRST(mask) __attribute__((vector_size(FIRST_BYTES)));
typedef FIRST_TYPE FIRST(unaligned) __attribute__((vector_size(FIRST_BYTES), aligned(1), may_alias));

#define FIRST_WIDTH (FIRST_BYTES / (int)sizeof(FIRST_TYPE))
#define FIRST_LOAD(at) (*(const FIRST(unaligned) *)(from + (at)))
#define FIRST_VECTOR(v, x)                                                       \
  {                                                                              \
    const FIRST(mask) better = FIRST_BEFORE(x, v);                               \
    v = (FIRST(vector))(((FIRST(mask))x & better) | ((FIRST(mask))v & ~better)); \
  }
#define FIRST_STEP(k)                                        \
  {                                                          \
    const FIRST(vector) x = FIRST_LOAD(i + (k)*FIRST_WIDTH); \
    FIRST_VECTOR(v##k, x)                                    \
    odd##k |= x != x;                                        \
  }

static int FIRST(any)(FIRST(mask) m) {
  int64_t words[FIRST_BYTES / 8], all = 0;
  __builtin_memcpy(words, &m, FIRST_BYTES);
  _Pragma("GCC unroll 8") for (int j = 0; j < FIRST_BYTES / 8; ++j) all |= words[j];
  return all != 0;
}

/* The extreme of a row of at least a vector, whose end the last vector overlaps; or a NaN if there is one. */
static FIRST_TYPE FIRST(extreme)(const FIRST_MEMORY *from, int64_t n) {
  FIRST(mask) odd0 = {0}, odd1 = odd0, odd2 = odd0, odd3 = odd0;
  FIRST(vector) v0 = FIRST_LOAD(n - FIRST_WIDTH), v1 = v0, v2 = v0, v3 = v0;
  odd0 |= v0 != v0;
  int64_t i = 0;
  for (; i + 4 * FIRST_WIDTH <= n; i += 4 * FIRST_WIDTH) {
    FIRST_STEP(0) FIRST_STEP(1) FIRST_STEP(2) FIRST_STEP(3)
  }
  for (; i + FIRST_WIDTH <= n; i += FIRST_WIDTH) FIRST_STEP(0)
  if (FIRST(any)(odd0 | odd1 | odd2 | odd3)) {
    for (i = 0; from[i] == from[i];) ++i;
    return from[i];
  }
  FIRST_TYPE lanes[FIRST_WIDTH];
  FIRST_VECTOR(v0, v1);
  FIRST_VECTOR(v2, v3);
  FIRST_VECTOR(v0, v2);
  __builtin_memcpy(lanes, &v0, FIRST_BYTES);
  FIRST_TYPE best = lanes[0];
  _Pragma("GCC unroll 32") for (int j = 1; j < FIRST_WIDTH; ++j) best = FIRST_BEFORE(lanes[j], best) ? lanes[j] : best;
  return best;
}

/* The place of the extreme of a short row of at least a vector; negative if there is a NaN. */
static inline int64_t FIRST(short_row)(const FIRST_MEMORY *from, int64_t n) {
  FIRST_MASK places[FIRST_WIDTH];
  FIRST_TYPE lanes[FIRST_WIDTH];
  FIRST(mask) first, place, odd;
  for (int j = 0; j < FIRST_WIDTH; ++j) places[j] = (FIRST_MASK)j;
  __builtin_memcpy(&first, places, FIRST_BYTES);
  FIRST(vector) v = FIRST_LOAD(0);
  odd = v != v;
  place = first;
  for (int64_t i = FIRST_WIDTH; i < n; i += FIRST_WIDTH) {
    if (i + FIRST_WIDTH > n) i = n - FIRST_WIDTH;
    const FIRST(vector) x = FIRST_LOAD(i);
    const FIRST(mask) better = FIRST_BEFORE(x, v), at = first + (FIRST_MASK)i;
    odd |= x != x;
    v = (FIRST(vector))(((FIRST(mask))x & better) | ((FIRST(mask))v & ~better));
    place = (at & better) | (place & ~better);
  }
  if (FIRST(any)(odd)) return -1;
  __builtin_memcpy(lanes, &v, FIRST_BYTES);
  __builtin_memcpy(places, &place, FIRST_BYTES);
  _Pragma("GCC unroll 8") for (int half = FIRST_WIDTH / 2; half; half /= 2)
      _Pragma("GCC unroll 32") for (int j = 0; j < half; ++j) {
    const FIRST_TYPE x = lanes[j + half], y = lanes[j];
    const int is_first = FIRST_BEFORE(x, y) | ((x == y) & (places[j + half] < places[j]));
    lanes[j] = is_first ? x : y;
    places[j] = is_first ? places[j + half] : places[j];
  }
  return places[0];
}

static int64_t FIRST(row)(const FIRST_MEMORY *from, int64_t n) {
  int64_t i = 0;
  if (n < FIRST_WIDTH) {
    int64_t place = 0;
    for (FIRST_TYPE best = from[0]; i < n && best == best; ++i)
      if (FIRST_BEFORE(from[i], best) || from[i] != from[i]) best = from[i], place = i;
    return place;
  }
  if (n <= FIRST_SHORT) {
    const int64_t place = FIRST(short_row)(from, n);
    if (place >= 0) return place;
    while (from[i] == from[i]) ++i;
    return i;
  }
  const FIRST_TYPE best = FIRST(extreme)(from, n);
  if (best != best) {
    while (from[i] == from[i]) ++i;
    return i;
  }
  const FIRST(vector) wanted = best - (FIRST(vector)){0};
  for (; i + 4 * FIRST_WIDTH <= n; i += 4 * FIRST_WIDTH)
    if (FIRST(any)((FIRST_LOAD(i) == wanted) | (FIRST_LOAD(i + FIRST_WIDTH) == wanted) |
                   (FIRST_LOAD(i + 2 * FIRST_WIDTH) == wanted) | (FIRST_LOAD(i + 3 * FIRST_WIDTH) == wanted)))
      break;
  while (i + FIRST_WIDTH <= n && !FIRST(any)(FIRST_LOAD(i) == wanted)) i += FIRST_WIDTH;
  while (from[i] != best) ++i;
  return i;
}

static void FIRST(columns)(const FIRST_MEMORY *from, int64_t n, int64_t stride, int width, int64_t *to) {
  FIRST_TYPE best[FIRST_BLOCK] __attribute__((aligned(64)));
  FIRST_PLACE place[FIRST_BLOCK] __attribute__((aligned(64)));
  for (int j = 0; j < width; ++j) best[j] = from[j], place[j] = 0;
  for (FIRST_PLACE k = 1; k < n; ++k) {
    from += stride;
    CYX_INDEPENDENT
    for (int j = 0; j < width; ++j) {
      const FIRST_TYPE x = from[j], y = best[j];
      const int better = FIRST_BEFORE(x, y) | ((x != x) & (y == y));
      best[j] = better ? x : y;
      place[j] = better ? k : place[j];
    }
  }
  for (int j = 0; j < width; ++j) to[j] = place[j];
}

static cyx_status FIRST(run)(void *const *bufs, int64_t begin, int64_t end) {
  const int64_t *numbers = CYX_NUMBERS(bufs), n = numbers[1], inner = numbers[2], tasks = numbers[3];
  const int64_t blocks = (inner + FIRST_BLOCK - 1) / FIRST_BLOCK, units = numbers[0] * blocks;
  const int64_t first = units * begin / tasks, last = units * end / tasks;
  const FIRST_MEMORY *from = bufs[0];
  int64_t *to = bufs[1];
  for (int64_t u = first; inner == 1 && u < last; ++u) to[u] = FIRST(row)(from + u * n, n);
  for (int64_t u = first; inner > 1 && u < last; ++u) {
    const int64_t o = u / blocks, at = u % blocks * FIRST_BLOCK;
    const int width = (int)(inner - at < FIRST_BLOCK ? inner - at : FIRST_BLOCK);
    FIRST(columns)(from + o * n * inner + at, n, inner, width, to + o * inner + at);
  }
  return CYX_OK;
}

#undef FIRST
#undef FIRST_BLOCK
#undef FIRST_SHORT
#undef FIRST_BYTES
#undef FIRST_WIDTH
#undef FIRST_LOAD
#undef FIRST_VECTOR
#undef FIRST_STEP
#undef FIRST_PREFIX
#undef FIRST_TYPE
#undef FIRST_MEMORY
#undef FIRST_MASK
#undef FIRST_PLACE
#undef FIRST_BEFORE
