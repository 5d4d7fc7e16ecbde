/* A product as sums of rows of the right operand, or a batch of them: a kernel.
 *
 * A unit of work is a block of columns and a part of the contracted dimension, so that a large operand is read in long
 * pieces of rows. With several parts there are two phases: units leave their sums in the scratch buffer, and then the
 * sums of the parts are added, one part after the other.
 *
 * If the number `step` is not 0, a task of the first phase adds so many rows of a part, a divisor of its rows, to the
 * sums of all blocks, and the tasks of a part run in order: other products read the same rows in between.
 *
 * A template: define the parameters and include it, as often as wanted; it undefines them.
 *   SUMS_PREFIX    prefix of all names; `prefix_run(numbers, bufs, begin, end, after)` is for others. Before it are
 *                  defined the types `prefix_e`, an element at any address, `prefix_numbers` and
 *                  `prefix_after_function`, and the table `prefix_functions` of micro-kernels by form, those of
 *                  row_combination.h and of row_combinations.h
 *   SUMS_ELEMENT   C type of an element
 *   SUMS_CONSTANT  1 if the numbers are the constants `prefix_sizes`, defined before; 0 if they arrive at run time
 *   SUMS_AFTER     1 if there is an epilogue: `after` has its function for a block and for the last one
 *   SUMS_LIVE      1 if a leading part of the product alone matters: `prefix_live_batch` and `prefix_live_columns`, of
 *                  which each takes `bufs`, precede this text
 */
#include "../../abi.h"
#include "../../compiler.h"

#define SUMS(name) CYX_JOIN(SUMS_PREFIX, name)
#define SUMS_E SUMS(e)
#define SUMS_N SUMS(numbers)
#define SUMS_AFTER_F SUMS(after_function)
#if SUMS_CONSTANT
#define SUMS_USE_CONSTANTS(s) s = &SUMS(sizes);
#else
#define SUMS_USE_CONSTANTS(s)
#endif

/* Number of columns of a block. */
static inline int64_t SUMS(width)(const SUMS_N *s, int64_t block) {
  SUMS_USE_CONSTANTS(s)
  const int64_t column = block * s->width;
  return column + s->width <= s->n ? s->width : s->n - column;
}

/* Sum up a part of the rows of a block of columns, or some of these rows, from the one of number `done` on. */
static inline void SUMS(compute)(const SUMS_N *s, void *const *bufs, int64_t batch, int64_t block, int64_t part,
                                 SUMS_E *sums, int64_t done, int64_t most) {
  SUMS_USE_CONSTANTS(s)
  const int64_t first = part * s->part + done, column = block * s->width;
  const int64_t left_of_part = s->k - first < s->part - done ? s->k - first : s->part - done;
  const int64_t rows = left_of_part < most ? left_of_part : most, ends = (done == 0) + 2 * (rows == left_of_part);
  const SUMS_E *const left = (const SUMS_E *)bufs[s->left] + batch * s->left_batch_stride + first * s->left_k_stride;
  const SUMS_E *const right =
      (const SUMS_E *)bufs[s->right] + batch * s->right_batch_stride + first * s->right_k_stride + column;
  SUMS(functions)[s->form](s, left, right, sums, SUMS(width)(s, block), rows, ends);
}

/* Store rows of sums, or pass them to the epilogue. */
static inline void SUMS(store)(const SUMS_N *s, void *const *bufs, int64_t row, int64_t block, int64_t rows,
                               const SUMS_E *sums, const SUMS_AFTER_F *after) {
  SUMS_USE_CONSTANTS(s)
  const int64_t width = SUMS(width)(s, block), column = block * s->width;
#if SUMS_AFTER
  after[width < s->width](bufs, row, column, rows, (const SUMS_ELEMENT *)sums, s->sums_stride);
#else
  SUMS_E *out = (SUMS_E *)bufs[s->out] + row * s->n + column;
  for (int64_t m = 0; m < rows; ++m, out += s->n, sums += s->sums_stride)
    __builtin_memcpy(out, sums, (unsigned long)width * sizeof *out);
  (void)after;
#endif
}

/* Add the sums of the parts of some rows, and store them. */
static __attribute__((noinline)) void SUMS(add_parts)(const SUMS_N *s, void *const *bufs, int64_t begin, int64_t end,
                                                      int64_t blocks, const SUMS_AFTER_F *after) {
  SUMS_USE_CONSTANTS(s)
  const int64_t size = s->m * s->sums_stride;
  for (int64_t u = begin; u < end; ++u) {
    const int64_t m = u % s->m, block = u / s->m % blocks, batch = u / (s->m * blocks), width = SUMS(width)(s, block);
    SUMS_E *restrict const sums = (SUMS_E *)bufs[s->scratch] + u / s->m * s->parts * size + m * s->sums_stride;
    for (int64_t part = 1; part < s->parts; ++part) {
      const SUMS_E *restrict const more = sums + part * size;
      for (int64_t n = 0; n < width; ++n) sums[n] += more[n];
    }
    SUMS(store)(s, bufs, batch * s->m + m, block, 1, sums, after);
  }
}

/* Run tasks. */
static inline __attribute__((always_inline)) cyx_status SUMS(run)(const SUMS_N *s, void *const *bufs, int64_t begin,
                                                                  int64_t end, const SUMS_AFTER_F *after) {
  SUMS_USE_CONSTANTS(s)
  const int64_t size = s->m * s->sums_stride, parts = s->parts;
#if SUMS_LIVE
  const int64_t blocks = (SUMS(live_columns)(bufs) + s->width - 1) / s->width, all = SUMS(live_batch)(bufs) * blocks;
#else
  const int64_t blocks = s->blocks, all = s->units / parts;
#endif
  if (parts > 1 && *(const int64_t *)bufs[s->phase]) {
    SUMS(add_parts)(s, bufs, begin * all * s->m / s->tasks, end * all * s->m / s->tasks, blocks, after);
    return CYX_OK;
  }
  if (s->step) {
    const int64_t steps = s->part / s->step;
    for (int64_t u = begin; u < end; ++u)
      for (int64_t block = 0; block < blocks; ++block) {
        const int64_t part = u / steps;
        SUMS_E *const sums = (SUMS_E *)bufs[s->scratch] + (block * parts + part) * size;
        SUMS(compute)(s, bufs, 0, block, part, sums, u % steps * s->step, s->step);
      }
    return CYX_OK;
  }
  const unsigned long local = parts > 1 ? 0 : (unsigned long)size * sizeof(SUMS_ELEMENT);
  SUMS_E *const sums = parts > 1 ? (SUMS_E *)bufs[s->scratch] : (SUMS_E *)__builtin_alloca_with_align(local, 512);
  const int64_t last = end * all * parts / s->tasks;
  for (int64_t u = begin * all * parts / s->tasks; u < last; ++u) {
    const int64_t part = u % parts, block = u / parts % blocks, batch = u / (parts * blocks);
    SUMS(compute)(s, bufs, batch, block, part, parts > 1 ? sums + u * size : sums, 0, s->part);
    if (parts == 1) SUMS(store)(s, bufs, batch * s->m, block, s->m, sums, after);
  }
  return CYX_OK;
}

#undef SUMS_USE_CONSTANTS
#undef SUMS_PREFIX
#undef SUMS_ELEMENT
#undef SUMS_CONSTANT
#undef SUMS_AFTER
#undef SUMS_LIVE
