/* Sums or products of floats over the middle dimension of an array of three, in the order of generated loops: a kernel.
 *
 * Along rows, elements go to lanes, block after block; along columns, to one accumulator for each result, perhaps in
 * groups of rows that have accumulators of their own.
 *
 * A template: define the parameters and include it, any number of times; it undefines them.
 *   REDUCE_PREFIX         prefix of all names; the entry point is `prefix_run(bufs, begin, end)`
 *   REDUCE_REAL           type of an element
 *   REDUCE_MEMORY         type of elements in memory
 *   REDUCE_LANES          lanes
 *   REDUCE_UNIT           first value of a lane
 *   REDUCE_ADD            function that combines a row into lanes, such as cyx_lanes_add_f32
 *   REDUCE_FOLD           function that combines the lanes, such as cyx_fold_add_f32
 *   REDUCE_COMBINE(x, y)  the combiner
 *
 * The numbers: the dimensions; parts of the middle one, which are the last dimension of the result; 1 to combine with
 * the initial value, else 0; tasks; elements of a block of a row, or 0 for columns; rows of which a part has a
 * multiple, and rows of a group of columns. Buffers: the operand, the initial value, the result.
 */
#include "../../abi.h"
#include "../../compiler.h"
#include "../../prebuilt.h"

#define REDUCE(name) CYX_JOIN(REDUCE_PREFIX, name)
#define REDUCE_BLOCK 512 /* columns of a block */

static REDUCE_REAL REDUCE(row)(const REDUCE_MEMORY *from, int64_t n, int64_t block) {
  REDUCE_REAL x[REDUCE_LANES] __attribute__((aligned(64)));
  for (int k = 0; k < REDUCE_LANES; ++k) x[k] = REDUCE_UNIT;
  for (int64_t i = 0; i < n; i += block) REDUCE_ADD(x, from + i, n - i < block ? n - i : block);
  return REDUCE_FOLD(x);
}

static void REDUCE(group)(const REDUCE_MEMORY *from, int64_t n, int64_t stride, int width, REDUCE_REAL *acc) {
  int64_t k = 0;
  for (; k + 4 <= n; k += 4, from += 4 * stride) {
    const REDUCE_MEMORY *p = from, *q = p + stride, *r = q + stride, *s = r + stride;
    CYX_INDEPENDENT
    for (int j = 0; j < width; ++j) {
      REDUCE_REAL x = acc[j];
      x = REDUCE_COMBINE(x, p[j]);
      x = REDUCE_COMBINE(x, q[j]);
      x = REDUCE_COMBINE(x, r[j]);
      acc[j] = REDUCE_COMBINE(x, s[j]);
    }
  }
  for (; k < n; ++k, from += stride) {
    CYX_INDEPENDENT
    for (int j = 0; j < width; ++j) acc[j] = REDUCE_COMBINE(acc[j], from[j]);
  }
}

static void REDUCE(columns)(const REDUCE_MEMORY *from, int64_t n, int64_t stride, int width, int64_t rows,
                            REDUCE_REAL *acc) {
  REDUCE_REAL group[REDUCE_BLOCK] __attribute__((aligned(64)));
  for (int j = 0; j < width; ++j) acc[j] = REDUCE_UNIT;
  if (n <= rows) {
    REDUCE(group)(from, n, stride, width, acc);
    return;
  }
  for (int64_t k = 0; k < n; k += rows) {
    for (int j = 0; j < width; ++j) group[j] = REDUCE_UNIT;
    REDUCE(group)(from + k * stride, n - k < rows ? n - k : rows, stride, width, group);
    for (int j = 0; j < width; ++j) acc[j] = REDUCE_COMBINE(acc[j], group[j]);
  }
}

static cyx_status REDUCE(run)(void *const *bufs, int64_t begin, int64_t end) {
  const int64_t *numbers = CYX_NUMBERS(bufs), n = numbers[1], inner = numbers[2], parts = numbers[3];
  const int64_t length = numbers[6], step = length ? length : numbers[7], steps = (n + step - 1) / step;
  const int64_t blocks = (inner + REDUCE_BLOCK - 1) / REDUCE_BLOCK, units = numbers[0] * parts * blocks;
  const REDUCE_MEMORY *start = bufs[1];
  for (int64_t u = units * begin / numbers[5]; u < units * end / numbers[5]; ++u) {
    const int64_t block = u % blocks, part = u / blocks % parts, o = u / blocks / parts, at = block * REDUCE_BLOCK;
    const int64_t low = steps * part / parts * step, next = steps * (part + 1) / parts * step;
    const int64_t count = (next < n ? next : n) - low;
    const int width = (int)(inner - at < REDUCE_BLOCK ? inner - at : REDUCE_BLOCK);
    const REDUCE_MEMORY *from = (const REDUCE_MEMORY *)bufs[0] + (o * n + low) * inner + at;
    REDUCE_MEMORY *to = (REDUCE_MEMORY *)bufs[2] + (o * inner + at) * parts + part;
    REDUCE_REAL acc[REDUCE_BLOCK] __attribute__((aligned(64)));
    if (length)
      acc[0] = REDUCE(row)(from, count, length);
    else
      REDUCE(columns)(from, count, inner, width, numbers[8], acc);
    for (int j = 0; j < width; ++j) to[j * parts] = numbers[4] ? REDUCE_COMBINE(start[0], acc[j]) : acc[j];
  }
  return CYX_OK;
}

#undef REDUCE
#undef REDUCE_BLOCK
#undef REDUCE_PREFIX
#undef REDUCE_REAL
#undef REDUCE_MEMORY
#undef REDUCE_LANES
#undef REDUCE_UNIT
#undef REDUCE_ADD
#undef REDUCE_FOLD
#undef REDUCE_COMBINE
