/* A convolution, channels last, in tiles of positions by features: a kernel.
 *
 * The positions of all images are cut into chunks, the features of each group into panels of up to three kinds. A unit
 * of work is a chunk of a panel. A table holds the addresses of the input features of each position of the chunk for
 * each tap of the window, or of zeros in the padding. Where the weights are many, all tiles of a chunk use a block of
 * taps and input features before the next one, and the sums stand in memory between them.
 *
 * Padding must add nothing, but zero times an infinite or NaN weight is NaN: NaNs at positions whose window leaves the
 * input are computed again without the padding.
 *
 * A template: define the parameters and include it, as often as wanted; it undefines them.
 *   CONVOLUTION_PREFIX    prefix of all names; `prefix_run(numbers, bufs, begin, end, after)` is for others. Before it
 *                         are defined `prefix_v`, a vector; `prefix_u`, a vector at any address; `prefix_e`, an element
 *                         at any address; the structs `prefix_numbers` and `prefix_block`; `prefix_after_function`;
 *                         `prefix_zeros`; and tables of functions: `prefix_windows` of convolution_window.h, and
 *                         `prefix_tiles` of convolution_tile.h
 *   CONVOLUTION_ELEMENT   C type of an element
 *   CONVOLUTION_LANES     elements of a vector
 *   CONVOLUTION_PREFETCH  1 if tiles prefetch the weights of the next block
 *   CONVOLUTION_LEAVES    0 if no window leaves the input; 1 if the numbers tell
 *   CONVOLUTION_CONSTANT  1 if the numbers are the constants `prefix_sizes`, defined before; 0 if they arrive at run
 *                         time
 *
 * `after` has the function of the epilogue for each kind of panel, which takes sums; it is 0 if there is none.
 */
#include "../../abi.h"
#include "../../compiler.h"

#define CONVOLUTION(name) CYX_JOIN(CONVOLUTION_PREFIX, name)
#define CONVOLUTION_E CONVOLUTION(e)
#define CONVOLUTION_N CONVOLUTION(numbers)
#if CONVOLUTION_CONSTANT
#define CONVOLUTION_KNOW(s) s = &CONVOLUTION(sizes);
#else
#define CONVOLUTION_KNOW(s)
#endif

/* A chunk of a panel, and room for what describes it. */
typedef struct {
  const CONVOLUTION_E **images, **inputs; /* for each position, and for each tap of a block and each position */
  int32_t *origins;                       /* coordinates of windows, by dimension and position */
  CONVOLUTION_ELEMENT *sums;              /* of a tile, or of all tiles if there are several blocks */
  int64_t first, positions;               /* of the chunk */
  const CONVOLUTION_E *weights;
  int64_t feature, columns, skip; /* first feature of the panel, its features, and those that other panels store */
  int64_t tile;
  CONVOLUTION(after_function) after;
} CONVOLUTION(unit);

#if CONVOLUTION_LEAVES
/* Compute the sums that are NaN again, from what lies inside the input. */
static CYX_FUSED __attribute__((noinline, cold)) void CONVOLUTION(recompute)(
    const CONVOLUTION_N *s, const CONVOLUTION_E *const *images, const int32_t *origins, const CONVOLUTION_E *weights,
    int64_t columns, CONVOLUTION_E *sums, int64_t first, int64_t rows) {
  CYX_FUSE
  CONVOLUTION_KNOW(s)
  const int64_t stride = s->weights_stride, depth = s->depth, width = s->width;
  const CONVOLUTION_E **const inputs = __builtin_alloca(sizeof *inputs * (unsigned long)s->chunk);
  CONVOLUTION_ELEMENT *const total = __builtin_alloca(sizeof *total * (unsigned long)(rows * width));
  for (int64_t n = 0; n < rows * width; ++n) total[n] = 0;
  for (int64_t tap = 0; tap < s->taps; ++tap, weights += depth * stride) {
    CONVOLUTION(windows)[s->window].addresses(s, images, origins, tap, 1, inputs);
    for (int64_t r = 0; r < rows; ++r) {
      const CONVOLUTION_E *const input = inputs[first + r];
      if (input == (const CONVOLUTION_E *)CONVOLUTION(zeros)) continue;
      for (int64_t k = 0; k < depth; ++k)
        for (int64_t f = 0; f < columns; ++f) total[r * width + f] += input[k] * weights[k * stride + f];
    }
  }
  for (int64_t r = 0; r < rows; ++r, sums += width)
    for (int64_t f = 0; f < columns; ++f)
      if (sums[f] != sums[f]) sums[f] = total[r * width + f];
}
#endif

#if !CONVOLUTION_CONSTANT
/* Store sums in the result. */
static void CONVOLUTION(store)(CONVOLUTION_E *restrict out, int64_t stride, const CONVOLUTION_ELEMENT *sums,
                               int64_t width, int64_t rows, int64_t columns) {
  for (int64_t r = 0; r < rows; ++r, out += stride, sums += width) {
    int64_t n = 0;
    for (; n + CONVOLUTION_LANES <= columns; n += CONVOLUTION_LANES)
      *(CONVOLUTION(u) *)(out + n) = *(const CONVOLUTION(u) *)(sums + n);
    for (; n < columns; ++n) out[n] = sums[n];
  }
}
#endif

/* Store the sums of some positions of the chunk, or pass them to the epilogue; NaNs are computed again before. */
static inline void CONVOLUTION(finish)(const CONVOLUTION_N *s, void *const *bufs, const CONVOLUTION(unit) * unit,
                                       int64_t first, int64_t rows) {
  CONVOLUTION_KNOW(s)
  const int64_t position = unit->first + first, feature = unit->feature + unit->skip;
#if CONVOLUTION_LEAVES
  CONVOLUTION_E *const sums = (CONVOLUTION_E *)unit->sums;
  if (s->leaves && CONVOLUTION(windows)[s->window].has_nans(s, unit->origins, first, rows, unit->columns, sums))
    CONVOLUTION(recompute)(s, unit->images, unit->origins, unit->weights, unit->columns, sums, first, rows);
#endif
#if !CONVOLUTION_CONSTANT
  if (!unit->after) {
    CONVOLUTION_E *const out = (CONVOLUTION_E *)bufs[s->result] + position * s->features + feature;
    CONVOLUTION(store)(out, s->features, unit->sums + unit->skip, s->width, rows, unit->columns - unit->skip);
    return;
  }
#endif
  unit->after(bufs, position, feature, rows, unit->sums + unit->skip, s->width);
}

/* Compute the sums of a unit block by block. */
static void CONVOLUTION(blocks)(const CONVOLUTION_N *s, void *const *bufs, const CONVOLUTION(unit) * unit) {
  CONVOLUTION_KNOW(s)
  const int64_t positions = unit->positions, stride = s->weights_stride;
  for (int64_t tap = 0; tap < s->taps; tap += s->block_taps) {
    const int64_t taps = s->taps - tap < s->block_taps ? s->taps - tap : s->block_taps;
    CONVOLUTION(windows)[s->window].addresses(s, unit->images, unit->origins, tap, taps, unit->inputs);
    for (int64_t k = 0; k < s->depth; k += s->block_depth) {
      const int64_t depth = s->depth - k < s->block_depth ? s->depth - k : s->block_depth;
      const CONVOLUTION(block) block = {.taps = taps, .first = k, .depth = depth, .adds = tap + k > 0};
      const CONVOLUTION_E *const weights = unit->weights + (tap * s->depth + k) * stride, *next = 0;
#if CONVOLUTION_PREFETCH /* of the next block: each tile has a line of every row of weights */
      next = weights + taps * depth * stride;
#endif
      for (int64_t r = 0; r < positions; r += s->rows) {
        CONVOLUTION_ELEMENT *const sums = s->blocks > 1 ? unit->sums + r * s->width : unit->sums;
        CONVOLUTION(tiles)[unit->tile](s, &block, unit->inputs + r, weights, (CONVOLUTION_E *)sums, next);
#if CONVOLUTION_PREFETCH
        next += taps * depth * (64 / (int64_t)sizeof *next);
#endif
        if (s->blocks == 1) CONVOLUTION(finish)(s, bufs, unit, r, positions - r < s->rows ? positions - r : s->rows);
      }
    }
  }
  if (s->blocks > 1) CONVOLUTION(finish)(s, bufs, unit, 0, positions);
}

/* Find the chunk and the panel of a unit. */
static inline void CONVOLUTION(find)(const CONVOLUTION_N *s, void *const *bufs, int64_t u, const void *const *after,
                                     CONVOLUTION(unit) * unit) {
  CONVOLUTION_KNOW(s)
  const int64_t g = u / (s->chunks * s->per_group), panel = u / s->chunks % s->per_group, stride = s->weights_stride;
  const int64_t second = s->per_group > s->count0 && panel >= s->count0;
  const int64_t third = s->per_group > s->count0 + s->count1 && panel >= s->count0 + s->count1;
  const int64_t of_kind = panel - (third ? s->count0 + s->count1 : second ? s->count0 : 0);
  unit->first = u % s->chunks * s->chunk;
  unit->positions = s->positions - unit->first < s->chunk ? s->positions - unit->first : s->chunk;
  unit->feature = third ? s->first2 : second ? s->first1 : s->first0;
  unit->feature += g * s->group_features + of_kind * s->width;
  unit->columns = third ? s->columns2 : second ? s->columns1 : s->columns0;
  unit->skip = third ? s->skip2 : second ? s->skip1 : s->skip0;
  unit->tile = third ? s->tile2 : second ? s->tile1 : s->tile0;
  unit->after = after || CONVOLUTION_CONSTANT ? (CONVOLUTION(after_function))after[second + third] : 0;
  unit->weights = (const CONVOLUTION_E *)bufs[s->weights];
  unit->weights +=
      s->packed ? unit->feature / stride * (s->taps * s->depth * stride) + unit->feature % stride : unit->feature;
  const CONVOLUTION_E *const input = (const CONVOLUTION_E *)bufs[s->input];
  CONVOLUTION(windows)[s->window].origins(s, input, unit->first, g, unit->images, unit->origins);
}

/* Run tasks. Inlined if there is one caller, since gcc compiles a function with large arrays apart from it. */
#if CONVOLUTION_CONSTANT
__attribute__((always_inline))
#endif
static inline cyx_status
CONVOLUTION(run)(const CONVOLUTION_N *s, void *const *bufs, int64_t begin, int64_t end, const void *const *after) {
  CONVOLUTION_KNOW(s)
  const CONVOLUTION_E *images[s->chunk], *inputs[s->chunk * s->block_taps];
  int32_t origins[s->chunk * s->rank];
  CONVOLUTION_ELEMENT sums[(s->blocks > 1 ? s->chunk : s->rows) * s->width] __attribute__((aligned(64)));
  CONVOLUTION(unit) unit = {.images = images, .inputs = inputs, .origins = origins, .sums = sums};
  const int64_t last = end * s->units / s->tasks;
  for (int64_t u = begin * s->units / s->tasks; u < last; ++u) {
    CONVOLUTION(find)(s, bufs, u, after, &unit);
    CONVOLUTION(blocks)(s, bufs, &unit);
  }
  return CYX_OK;
}

#undef CONVOLUTION_KNOW
#undef CONVOLUTION_PREFIX
#undef CONVOLUTION_ELEMENT
#undef CONVOLUTION_LANES
#undef CONVOLUTION_PREFETCH
#undef CONVOLUTION_LEAVES
#undef CONVOLUTION_CONSTANT
