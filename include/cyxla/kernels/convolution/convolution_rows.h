/* A convolution, channels last, row by row of positions: a kernel.
 *
 * A unit of work is a row of positions and a block of features, of one of two widths; a task does rows with one block
 * after the other, whose weights stay in the cache. Adjacent positions whose windows lie inside the input along the row
 * are done in tiles, so that each weight is loaded once for all of them, the others one by one. There are always three
 * spatial dimensions, of which the first ones may have one position.
 *
 * A template: define the parameters and include it, as often as wanted; it undefines them.
 *   ROWS_PREFIX   prefix of all names; `prefix_run(numbers, bufs, begin, end, after)` is for others. Before it are
 *                 defined `prefix_e`, an element at any address; `prefix_numbers`; `prefix_after_function`; and the
 *                 table `prefix_tiles` of functions of convolution_row_tile.h
 *   ROWS_ELEMENT  C type of an element
 *   ROWS_SUMS     most elements of a tile
 *
 * `after` has the function of the epilogue for each width of a block, which takes sums; it is 0 if there is none.
 */
#include "../../abi.h"
#include "../../compiler.h"

#define ROWS(name) CYX_JOIN(ROWS_PREFIX, name)
#define ROWS_E ROWS(e)

/* Compute a row of positions for a block of features. */
static void ROWS(unit)(const ROWS(numbers) * s, void *const *bufs, int64_t u, const void *const *after) {
  const int64_t row = u % s->rows, g = u / s->rows / s->per_group, block = u / s->rows % s->per_group;
  const int64_t second = block >= s->count0, columns = second ? s->columns1 : s->columns0;
  const int64_t positions = second ? s->positions1 : s->positions0;
  const ROWS(tile) tile = ROWS(tiles)[second ? s->tile1 : s->tile0];
  const ROWS(tile) single = ROWS(tiles)[second ? s->single1 : s->single0];
  const ROWS(after_function) finished = after ? (ROWS(after_function))after[second] : 0;
  const int64_t of_group = second ? s->first1 + (block - s->count0) * columns : s->first0 + block * columns;
  const int64_t feature = g * s->group_features + of_group, first = row * s->space2;
  const int64_t plane = row / s->space1, image = plane / s->space0;
  int64_t origin[] = {plane % s->space0 * s->stride0 - s->padding0, row % s->space1 * s->stride1 - s->padding1,
                      -s->padding2};
  const ROWS_E *input = (const ROWS_E *)bufs[s->input] + image * s->image_stride + g * s->group_stride;
  input += origin[0] * s->input_stride0 + origin[1] * s->input_stride1 + origin[2] * s->input_stride2;
  if (s->depthwise) input += of_group;
  const ROWS_E *const weights = (const ROWS_E *)bufs[s->weights] + s->first_tap + feature;
  ROWS_E *const out = (ROWS_E *)bufs[s->result] + first * s->features + feature;
  const int64_t sums_stride = finished ? columns : s->features;
  ROWS_ELEMENT sums[ROWS_SUMS] __attribute__((aligned(64)));
  for (int64_t p = 0, count; p < s->space2; p += count) {
    const int64_t inside = positions > 1 && p >= s->first_inside && p + positions <= s->last_inside;
    count = inside ? positions : 1;
    (inside ? tile : single)(s, input, weights, origin, finished ? (ROWS_E *)sums : out + p * s->features, sums_stride);
    if (finished) finished(bufs, first + p, feature, count, sums, columns);
    origin[2] += count * s->stride2;
    input += count * s->position_stride;
  }
}

/* Run tasks. */
static inline cyx_status ROWS(run)(const ROWS(numbers) * s, void *const *bufs, int64_t begin, int64_t end,
                                   const void *const *after) {
  const int64_t last = end * s->units / s->tasks;
  for (int64_t u = begin * s->units / s->tasks; u < last; ++u) ROWS(unit)(s, bufs, u, after);
  return CYX_OK;
}

#undef ROWS_PREFIX
#undef ROWS_ELEMENT
#undef ROWS_SUMS
