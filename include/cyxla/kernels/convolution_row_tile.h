/* A tile of a convolution in rows: some adjacent positions of a row by some vectors of features, summed up in
 * registers.
 *
 * A tile runs over the whole window and all input features; taps outside of the input are skipped. Tiles of several
 * positions are for those whose windows lie inside along the last dimension. A depthwise convolution multiplies
 * features of the input with weights one by one.
 *
 * A template: define the parameters and include it, as often as wanted; it undefines them.
 *   TILE_NAME       name of the function, declared before as static
 *   TILE_PREFIX     prefix of the types, defined before: `prefix_v`, a vector; `prefix_u`, a vector at any address;
 *                   `prefix_e`, an element at any address; `prefix_numbers`, the struct of the sizes
 *   TILE_ELEMENT    C type of an element
 *   TILE_POSITIONS  positions of the tile
 *   TILE_VECTORS    vectors of features of the tile
 *   TILE_LANES      elements of a vector
 *   TILE_DEPTHWISE  1 for a depthwise convolution, of one position
 */
#include "../abi.h"
#include "../compiler.h"

#define TILE(name) CYX_JOIN(TILE_PREFIX, name)
#define TILE_E TILE(e)

#define TILE_ZERO(r, v) vector sum##r##_##v = {0};
#define TILE_ZEROS(r) CYX_COLUMNS(TILE_VECTORS, TILE_ZERO, r)
#define TILE_LOAD(r, v) const vector weight##v = *(const vector_at *)(w + v * TILE_LANES);
#define TILE_MULTIPLY(r, v) sum##r##_##v += input##r * weight##v;
#define TILE_MULTIPLY_ROW(r)                                        \
  const TILE_ELEMENT input##r = TILE_INPUT_##r[k + r % 3 * stride]; \
  CYX_COLUMNS(TILE_VECTORS, TILE_MULTIPLY, r)
#define TILE_MULTIPLY_PAIR(r, v) \
  sum##r##_##v += *(const vector_at *)(x + v * TILE_LANES) * *(const vector_at *)(w + v * TILE_LANES);
#define TILE_STORE(r, v) *(vector_at *)(sums + r * sums_stride + v * TILE_LANES) = sum##r##_##v + (vector){0};
#define TILE_STORE_ROW(r) CYX_COLUMNS(TILE_VECTORS, TILE_STORE, r)

/* A pointer for three positions, which addresses reach with a factor of 0, 1 or 2. */
#define TILE_INPUT_0 x0
#define TILE_INPUT_1 x0
#define TILE_INPUT_2 x0
#define TILE_INPUT_3 x3
#define TILE_INPUT_4 x3
#define TILE_INPUT_5 x3
#define TILE_INPUT_6 x6
#define TILE_INPUT_7 x6
#define TILE_INPUT_8 x6
#define TILE_INPUT_9 x9
#define TILE_INPUT_10 x9
#define TILE_INPUT_11 x9
#define TILE_INPUT_12 x12
#define TILE_INPUT_13 x12

/* `origin` has the coordinates of the first position's window, `input` and `weights` are the addresses of its first
   tap. */
CYX_FUSED __attribute__((noinline)) void TILE_NAME(const TILE(numbers) * s, const TILE_E *input, const TILE_E *weights,
                                                   TILE_E *restrict sums, int64_t sums_stride, const int64_t *origin) {
  CYX_FUSE
  typedef TILE(v) vector;
  typedef TILE(u) vector_at;
  CYX_ROWS(TILE_POSITIONS, TILE_ZEROS)
  const int64_t depth = s->depth, features = s->features, stride = s->position_stride;
  (void)depth, (void)features, (void)stride;
  const TILE_E *plane = input, *plane_weights = weights;
  for (int64_t taps0 = s->size0, at0 = origin[0]; taps0;
       --taps0, at0 += s->dilation0, plane += s->tap_stride0, plane_weights += s->weights_stride0) {
    if ((uint64_t)at0 >= (uint64_t)s->extent0) continue;
    const TILE_E *row = plane, *row_weights = plane_weights;
    for (int64_t taps1 = s->size1, at1 = origin[1]; taps1;
         --taps1, at1 += s->dilation1, row += s->tap_stride1, row_weights += s->weights_stride1) {
      if ((uint64_t)at1 >= (uint64_t)s->extent1) continue;
      const TILE_E *tap = row, *tap_weights = row_weights;
      for (int64_t taps2 = s->size2, at2 = origin[2]; taps2;
           --taps2, at2 += s->dilation2, tap += s->tap_stride2, tap_weights += s->weights_stride2) {
        if (TILE_POSITIONS == 1 && (uint64_t)at2 >= (uint64_t)s->extent2) continue;
        const TILE_E *x = tap, *w = tap_weights;
#if TILE_DEPTHWISE
        CYX_COLUMNS(TILE_VECTORS, TILE_MULTIPLY_PAIR, 0)
#else
        const TILE_E *x0 = x, *x3 = x + 3 * stride, *x6 = x + 6 * stride, *x9 = x + 9 * stride, *x12 = x + 12 * stride;
        (void)x3, (void)x6, (void)x9, (void)x12;
        for (int64_t k = 0; k < depth; ++k, w += features) {
          CYX_COLUMNS(TILE_VECTORS, TILE_LOAD, 0)
          CYX_ROWS(TILE_POSITIONS, TILE_MULTIPLY_ROW)
        }
#endif
      }
    }
  }
  CYX_ROWS(TILE_POSITIONS, TILE_STORE_ROW)
}

#undef TILE_STORE
#undef TILE_NAME
#undef TILE_PREFIX
#undef TILE_ELEMENT
#undef TILE_POSITIONS
#undef TILE_VECTORS
#undef TILE_LANES
#undef TILE_DEPTHWISE
