/* Cumulative reductions along the middle dimension of an array of three, in order: a kernel.
 *
 * A template: define the parameters and include it, any number of times; it undefines them.
 *   SCAN_PREFIX           prefix of all names; the entry point is `prefix_run(bufs, begin, end)`
 *   SCAN_MEMORY           type of elements in memory
 *   SCAN_LOAD(m)          a local of an element in memory
 *   SCAN_TYPE             type of an accumulator
 *   SCAN_UNIT             its first value
 *   SCAN_UPDATE(v, x)     its value after an element x, from that before
 *   SCAN_RESULT(init, v)  an element of the result
 *
 * The numbers: the dimensions; tasks. Buffers: the operand, the initial value, the result.
 */
#include "../../abi.h"
#include "../../compiler.h"
#include "../../prebuilt.h"

#define SCAN(name) CYX_JOIN(SCAN_PREFIX, name)
#define SCAN_BLOCK 512 /* columns of a block */
#define SCAN_ROWS 4    /* interleaved rows, since each result depends on the one before */

static void SCAN(rows)(const SCAN_MEMORY *from, const SCAN_MEMORY *start, SCAN_MEMORY *to, int64_t n) {
  SCAN_TYPE a = SCAN_UNIT, b = a, c = a, d = a;
  const SCAN_MEMORY initial = start[0];
  for (int64_t k = 0; k < n; ++k) {
    a = SCAN_UPDATE(a, (SCAN_LOAD(from[k])));
    b = SCAN_UPDATE(b, (SCAN_LOAD(from[k + n])));
    c = SCAN_UPDATE(c, (SCAN_LOAD(from[k + 2 * n])));
    d = SCAN_UPDATE(d, (SCAN_LOAD(from[k + 3 * n])));
    to[k] = SCAN_RESULT((SCAN_LOAD(initial)), a);
    to[k + n] = SCAN_RESULT((SCAN_LOAD(initial)), b);
    to[k + 2 * n] = SCAN_RESULT((SCAN_LOAD(initial)), c);
    to[k + 3 * n] = SCAN_RESULT((SCAN_LOAD(initial)), d);
  }
}

static void SCAN(columns)(const SCAN_MEMORY *from, const SCAN_MEMORY *start, SCAN_MEMORY *to, int64_t n, int64_t stride,
                          int width) {
  SCAN_TYPE acc[SCAN_BLOCK] __attribute__((aligned(64)));
  const SCAN_MEMORY initial = start[0];
  if (width == 1) {
    SCAN_TYPE a = SCAN_UNIT;
    for (int64_t k = 0; k < n; ++k) {
      a = SCAN_UPDATE(a, (SCAN_LOAD(from[k * stride])));
      to[k * stride] = SCAN_RESULT((SCAN_LOAD(initial)), a);
    }
    return;
  }
  for (int j = 0; j < width; ++j) acc[j] = SCAN_UNIT;
  for (int64_t k = 0; k < n; ++k, from += stride, to += stride) {
    CYX_INDEPENDENT
    for (int j = 0; j < width; ++j) {
      acc[j] = SCAN_UPDATE(acc[j], (SCAN_LOAD(from[j])));
      to[j] = SCAN_RESULT((SCAN_LOAD(initial)), acc[j]);
    }
  }
}

static cyx_status SCAN(run)(void *const *bufs, int64_t begin, int64_t end) {
  const int64_t *numbers = CYX_NUMBERS(bufs), n = numbers[1], inner = numbers[2];
  const int64_t blocks = (inner + SCAN_BLOCK - 1) / SCAN_BLOCK;
  const int64_t units = inner == 1 ? (numbers[0] + SCAN_ROWS - 1) / SCAN_ROWS : numbers[0] * blocks;
  for (int64_t u = units * begin / numbers[3]; u < units * end / numbers[3]; ++u) {
    const int64_t block = u % blocks, at = block * SCAN_BLOCK;
    const int64_t offset = inner == 1 ? u * SCAN_ROWS * n : u / blocks * n * inner + at;
    const SCAN_MEMORY *from = (const SCAN_MEMORY *)bufs[0] + offset;
    SCAN_MEMORY *to = (SCAN_MEMORY *)bufs[2] + offset;
    const int64_t left = inner == 1 ? numbers[0] - u * SCAN_ROWS : 0;
    if (inner > 1)
      SCAN(columns)(from, bufs[1], to, n, inner, (int)(inner - at < SCAN_BLOCK ? inner - at : SCAN_BLOCK));
    else if (left >= SCAN_ROWS)
      SCAN(rows)(from, bufs[1], to, n);
    else
      for (int64_t r = 0; r < left; ++r) SCAN(columns)(from + r * n, bufs[1], to + r * n, n, 1, 1);
  }
  return CYX_OK;
}

#undef SCAN
#undef SCAN_BLOCK
#undef SCAN_ROWS
#undef SCAN_PREFIX
#undef SCAN_MEMORY
#undef SCAN_LOAD
#undef SCAN_TYPE
#undef SCAN_UNIT
#undef SCAN_UPDATE
#undef SCAN_RESULT
