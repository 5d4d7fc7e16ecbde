/* A tile of a convolution in rows: adjacent positions of a row by some vectors of features, summed up in registers.
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
 *   TILE_RANK       number of spatial dimensions, from 1 to 8
 *   TILE_CONSTANT   1 if the sizes are the constants `prefix_sizes`, defined before, and sums go to TILE_AFTER; 0 if
 *                   sizes arrive at run time, and sums are stored
 *   TILE_AFTER      function of the epilogue
 *   TILE_DILATED    1 if the input has a base dilation along some dimension, which needs constants
 *   TILE_CHAIN      products that are added up before their sum is added to a total, where there are more of them,
 *                   which needs constants; 0 if there never are
 */
#include "../../abi.h"
#include "../../compiler.h"

#define TILE(name) CYX_JOIN(TILE_PREFIX, name)
#define TILE_E TILE(e)

#define TILE_ZERO(r, v) vector sum##r##_##v = {0};
#define TILE_ZEROS(r) CYX_COLUMNS(TILE_VECTORS, TILE_ZERO, r)
#define TILE_LOAD(r, v) const vector weight##v = *(const vector_at *)(w + v * TILE_LANES);
#define TILE_MULTIPLY(r, v) sum##r##_##v += input##r * weight##v;
#define TILE_MULTIPLY_ROW(r)                   \
  const TILE_ELEMENT input##r = TILE_INPUT(r); \
  CYX_COLUMNS(TILE_VECTORS, TILE_MULTIPLY, r)
#define TILE_MULTIPLY_PAIR(r, v) \
  sum##r##_##v += *(const vector_at *)(input + v * TILE_LANES) * *(const vector_at *)(weights + v * TILE_LANES);
#if TILE_CHAIN
#define TILE_TOTAL(r, v) vector total##r##_##v = {0};
#define TILE_SETTLE(r, v)         \
  total##r##_##v += sum##r##_##v; \
  sum##r##_##v = (vector){0};
#define TILE_RESULT(r, v) (total##r##_##v + sum##r##_##v)
#else
#define TILE_TOTAL(r, v)
#define TILE_SETTLE(r, v)
#define TILE_RESULT(r, v) (sum##r##_##v + (vector){0})
#endif
#define TILE_TOTALS(r) CYX_COLUMNS(TILE_VECTORS, TILE_TOTAL, r)
#define TILE_SETTLE_ROW(r) CYX_COLUMNS(TILE_VECTORS, TILE_SETTLE, r)
#define TILE_SETTLE_SUMS CYX_ROWS(TILE_POSITIONS, TILE_SETTLE_ROW)
#define TILE_STORE(r, v) *(vector_at *)(sums + r * sums_stride + v * TILE_LANES) = TILE_RESULT(r, v);
#define TILE_STORE_ROW(r) CYX_COLUMNS(TILE_VECTORS, TILE_STORE, r)

/* A loop over the taps of a dimension, of which those outside of the input are skipped: several positions are inside
   along the last dimension. `input` and `weights` are the addresses for the tap at hand. */
#define TILE_LOOP(d, ...)                                                                              \
  {                                                                                                    \
    const TILE_E *const first_input = input, *const first_weights = weights;                           \
    const TILE_E *input = first_input, *weights = first_weights;                                       \
    for (int64_t taps##d = s->size##d, index##d = origin[d]; taps##d;                                  \
         --taps##d, index##d += s->dilation##d, TILE_NEXT_INPUT(d), weights += s->weights_stride##d) { \
      if (TILE_CHECKED(d) && (uint64_t)index##d >= (uint64_t)s->extent##d) continue;                   \
      TILE_DILATED_INPUT(d)                                                                            \
      __VA_ARGS__                                                                                      \
    }                                                                                                  \
  }
#define TILE_CHECKED(d) (TILE_POSITIONS == 1 || d < TILE_RANK - 1)
#if TILE_DILATED
#define TILE_NEXT_INPUT(d) (void)0
#define TILE_DILATED_INPUT(d)                   \
  if (index##d % s->base_dilation##d) continue; \
  input = first_input + index##d / s->base_dilation##d * s->input_stride##d;
#else
#define TILE_NEXT_INPUT(d) input += s->tap_stride##d
#define TILE_DILATED_INPUT(d)
#endif

#define TILE_LOOPS_(rank, ...) TILE_LOOPS_##rank(__VA_ARGS__)
#define TILE_LOOPS(rank, ...) TILE_LOOPS_(rank, __VA_ARGS__)
#define TILE_LOOPS_1(...) TILE_LOOP(0, TILE_SETTLE_SUMS __VA_ARGS__)
#define TILE_LOOPS_2(...) TILE_LOOPS_1(TILE_LOOP(1, __VA_ARGS__))
#define TILE_LOOPS_3(...) TILE_LOOPS_2(TILE_LOOP(2, __VA_ARGS__))
#define TILE_LOOPS_4(...) TILE_LOOPS_3(TILE_LOOP(3, __VA_ARGS__))
#define TILE_LOOPS_5(...) TILE_LOOPS_4(TILE_LOOP(4, __VA_ARGS__))
#define TILE_LOOPS_6(...) TILE_LOOPS_5(TILE_LOOP(5, __VA_ARGS__))
#define TILE_LOOPS_7(...) TILE_LOOPS_6(TILE_LOOP(6, __VA_ARGS__))
#define TILE_LOOPS_8(...) TILE_LOOPS_7(TILE_LOOP(7, __VA_ARGS__))

/* What a tap adds. */
#if TILE_DEPTHWISE
#define TILE_TAP CYX_COLUMNS(TILE_VECTORS, TILE_MULTIPLY_PAIR, 0)
#else
#define TILE_TAP                                                                                             \
  const TILE_E *w = weights, *x0 = input;                                                                    \
  TILE_OPAQUE(x0)                                                                                            \
  const TILE_E *x3 = x0 + 3 * stride, *x6 = x0 + 6 * stride, *x9 = x0 + 9 * stride, *x12 = x0 + 12 * stride; \
  (void)x3, (void)x6, (void)x9, (void)x12;                                                                   \
  for (int64_t k = 0; k < depth; ++k, w += features) {                                                       \
    CYX_COLUMNS(TILE_VECTORS, TILE_LOAD, 0)                                                                  \
    CYX_ROWS(TILE_POSITIONS, TILE_MULTIPLY_ROW)                                                              \
    if (TILE_CHAIN && depth > TILE_CHAIN && k % (TILE_CHAIN + !TILE_CHAIN) == TILE_CHAIN - 1) {              \
      TILE_SETTLE_SUMS                                                                                       \
    }                                                                                                        \
  }
#endif

#if TILE_CONSTANT
/* Opaque, or gcc would keep elements that the next tap needs too in registers: to broadcast those takes longer. */
#define TILE_OPAQUE(x) __asm__("" : "+r"(x));
#define TILE_INPUT(r) x0[k + r * stride]
#else /* a pointer for three positions, which addresses reach with a factor of 0, 1 or 2 */
#define TILE_OPAQUE(x)
#define TILE_INPUT(r) TILE_INPUT_##r[k + r % 3 * stride]
#endif
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

/* `origin` has the coordinates of the first position's window; `input` and `weights` are the addresses of its first
   tap, but with a base dilation `input` is that of the image. */
CYX_FUSED __attribute__((noinline)) void TILE_NAME(
#if TILE_CONSTANT
    void *const *bufs, const TILE_E *input, const TILE_E *weights, const int64_t *origin, int64_t position,
    int64_t feature) {
#else
    const TILE(numbers) * s, const TILE_E *input, const TILE_E *weights, const int64_t *origin, TILE_E *restrict sums,
    int64_t sums_stride) {
#endif
  CYX_FUSE
  typedef TILE(v) vector;
  typedef TILE(u) vector_at;
#if TILE_CONSTANT
  const TILE(numbers) *const s = &TILE(sizes);
  const int64_t sums_stride = TILE_VECTORS * TILE_LANES;
  TILE_ELEMENT results[TILE_POSITIONS * TILE_VECTORS * TILE_LANES] __attribute__((aligned(64)));
  TILE_E *const sums = (TILE_E *)results;
#endif
  const int64_t depth = s->depth, features = s->features, stride = s->position_stride;
  (void)depth, (void)features, (void)stride;
  CYX_ROWS(TILE_POSITIONS, TILE_ZEROS)
  CYX_ROWS(TILE_POSITIONS, TILE_TOTALS)
  TILE_LOOPS(TILE_RANK, TILE_TAP)
  CYX_ROWS(TILE_POSITIONS, TILE_STORE_ROW)
#if TILE_CONSTANT
  TILE_AFTER(bufs, position, feature, TILE_POSITIONS, results, sums_stride);
#endif
}

#undef TILE_TOTAL
#undef TILE_SETTLE
#undef TILE_RESULT
#undef TILE_NEXT_INPUT
#undef TILE_DILATED_INPUT
#undef TILE_TAP
#undef TILE_OPAQUE
#undef TILE_INPUT
#undef TILE_STORE
#undef TILE_NAME
#undef TILE_PREFIX
#undef TILE_ELEMENT
#undef TILE_POSITIONS
#undef TILE_VECTORS
#undef TILE_LANES
#undef TILE_DEPTHWISE
#undef TILE_RANK
#undef TILE_CONSTANT
#undef TILE_AFTER
#undef TILE_DILATED
#undef TILE_CHAIN
