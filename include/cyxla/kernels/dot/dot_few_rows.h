/* A product of few rows as inner products, or a batch of them: a kernel. A unit of work is a block of columns of one
 * product; some columns are read for all rows before the next ones.
 *
 * A template: define the parameters and include it, as often as wanted; it undefines them.
 *   FEW_PREFIX    prefix of all names; `prefix_run(numbers, bufs, begin, end, after)` is for others. Before it are
 *                 defined the types `prefix_e`, an element at any address, `prefix_numbers` and
 *                 `prefix_after_function`, and the table `prefix_functions` of micro-kernels of inner_products.h by
 *                 form, of which the last one is for a single column
 *   FEW_ELEMENT   C type of an element
 *   FEW_CONSTANT  1 if the numbers are the constants `prefix_sizes`, defined before; 0 if they arrive at run time
 *   FEW_SUMS      elements of a block that an epilogue takes; 0 if there is none
 *   FEW_LIVE      1 if a leading part of the product alone matters: `prefix_live_batch` and `prefix_live_columns`, of
 *                 which each takes `bufs`, precede this text
 *
 * With an epilogue, `after` has its function for a block and for the last one.
 */
#include "../../abi.h"
#include "../../compiler.h"

#define FEW(name) CYX_JOIN(FEW_PREFIX, name)
#define FEW_E FEW(e)

/* Compute a block of `width` columns; rows of the result are `stride` elements apart. */
static inline void FEW(block)(const FEW(numbers) * s, const FEW_E *left, const FEW_E *right, FEW_E *out, int64_t stride,
                              int64_t width) {
#if FEW_CONSTANT
  s = &FEW(sizes);
#endif
  const int64_t columns = s->columns, single = (int64_t)(sizeof FEW(functions) / sizeof *FEW(functions)) - 1;
  for (int64_t n = 0, some; n < width; n += some, right += some * s->right_column_stride) {
    some = n + columns <= width ? columns : 1;
    const FEW(function) multiply = FEW(functions)[some == columns ? s->form : single];
    for (int64_t m = 0; m < s->m; ++m) multiply(s, left + m * s->left_row_stride, right, out + m * stride + n);
  }
}

/* Run tasks. */
static inline __attribute__((always_inline)) cyx_status FEW(run)(const FEW(numbers) * s, void *const *bufs,
                                                                 int64_t begin, int64_t end,
                                                                 const FEW(after_function) * after) {
#if FEW_CONSTANT
  s = &FEW(sizes);
#endif
#if FEW_LIVE
  const int64_t blocks = (FEW(live_columns)(bufs) + s->width - 1) / s->width, units = FEW(live_batch)(bufs) * blocks;
  const int64_t last = end * units / s->tasks;
  for (int64_t u = begin * units / s->tasks; u < last; ++u) {
    const int64_t batch = u / blocks, column = u % blocks * s->width;
#else
  const int64_t last = end * s->units / s->tasks;
  for (int64_t u = begin * s->units / s->tasks; u < last; ++u) {
    const int64_t batch = u / s->blocks, column = u % s->blocks * s->width;
#endif
    const int64_t width = column + s->width <= s->n ? s->width : s->n - column;
    const FEW_E *const left = (const FEW_E *)bufs[s->left] + batch * s->left_batch_stride;
    const FEW_E *const right =
        (const FEW_E *)bufs[s->right] + batch * s->right_batch_stride + column * s->right_column_stride;
#if FEW_SUMS
    FEW_ELEMENT sums[FEW_SUMS] __attribute__((aligned(64)));
    FEW(block)(s, left, right, (FEW_E *)sums, s->width, width);
    after[width < s->width](bufs, batch * s->m, column, s->m, sums, s->width);
#else
    FEW(block)(s, left, right, (FEW_E *)bufs[s->out] + batch * s->m * s->n + column, s->n, width);
#endif
  }
  (void)after;
  return CYX_OK;
}

#undef FEW_PREFIX
#undef FEW_ELEMENT
#undef FEW_CONSTANT
#undef FEW_SUMS
#undef FEW_LIVE
