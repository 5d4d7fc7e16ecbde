/* Inner products of a row of the left operand with some columns of the right one: the micro-kernel of products of few
 * rows whose contracted dimension is contiguous in both operands.
 *
 * Each product is summed up in four vectors of accumulators, which are added in a fixed tree at the end; the elements
 * behind the last whole vector follow one by one. The order does not depend on the number of columns.
 *
 * A template: define the parameters and include it, as often as wanted; it undefines them.
 *   INNER_NAME      name of the function, declared before as static
 *   INNER_PREFIX    prefix of the types, defined before: `prefix_v`, a vector; `prefix_u`, a vector at any address;
 *                   `prefix_e`, an element at any address; `prefix_numbers`, the struct of the sizes
 *   INNER_ELEMENT   C type of an element
 *   INNER_LANES     elements of a vector: 8 or 16
 *   INNER_COLUMNS   columns at once
 *   INNER_PREFETCH  distance of the prefetch of columns, in bytes; 0 if there is none
 *   INNER_CONSTANT  1 if the sizes are the constants `prefix_sizes`, defined before; 0 if they arrive at run time
 */
#include "../abi.h"
#include "../compiler.h"

#define INNER(name) CYX_JOIN(INNER_PREFIX, name)
#define INNER_E INNER(e)

#define INNER_ZERO(column, v) vector sum##column##_##v = {0};
#define INNER_ZEROS(column) CYX_COLUMNS(4, INNER_ZERO, column)
#define INNER_LOAD(v) const vector left##v = *(const vector_at *)(left + k + v * INNER_LANES);
#define INNER_MULTIPLY(v, column) \
  sum##column##_##v += left##v * *(const vector_at *)(right + k + column * stride + v * INNER_LANES);
#if INNER_PREFETCH
#define INNER_FETCH_AND_MULTIPLY(v, column)                                                           \
  __builtin_prefetch((const char *)(right + k + column * stride + v * INNER_LANES) + INNER_PREFETCH); \
  INNER_MULTIPLY(v, column)
#else
#define INNER_FETCH_AND_MULTIPLY INNER_MULTIPLY
#endif
#define INNER_STEP(v) INNER_LOAD(v) CYX_COLUMNS(INNER_COLUMNS, INNER_FETCH_AND_MULTIPLY, v)
#define INNER_REST(v) INNER_LOAD(v) CYX_COLUMNS(INNER_COLUMNS, INNER_MULTIPLY, v)
#define INNER_ADD_VECTORS(column)                                                              \
  sum##column##_0 = (sum##column##_0 + sum##column##_1) + (sum##column##_2 + sum##column##_3); \
  __builtin_memcpy(lanes[column], &sum##column##_0, sizeof lanes[column]);
#define INNER_ADD_LANES(half) \
  for (int l = 0; l < half; ++l) lanes[column][l] += lanes[column][l + half];

CYX_FUSED __attribute__((noinline)) void INNER_NAME(const INNER(numbers) * s, const INNER_E *restrict left,
                                                    const INNER_E *restrict right, INNER_E *restrict out) {
  CYX_FUSE
  typedef INNER(v) vector;
  typedef INNER(u) vector_at;
#if INNER_CONSTANT
  s = &INNER(sizes);
#endif
  const int64_t count = s->k, stride = s->right_column_stride;
  CYX_ROWS(INNER_COLUMNS, INNER_ZEROS)
  int64_t k = 0;
  for (; k + 4 * INNER_LANES <= count; k += 4 * INNER_LANES) {
    CYX_ROWS(4, INNER_STEP)
  }
  for (; k + INNER_LANES <= count; k += INNER_LANES) {
    CYX_ROWS(1, INNER_REST)
  }
  INNER_ELEMENT lanes[INNER_COLUMNS][INNER_LANES];
  CYX_ROWS(INNER_COLUMNS, INNER_ADD_VECTORS)
  for (int column = 0; column < INNER_COLUMNS; ++column) {
#if INNER_LANES == 16
    INNER_ADD_LANES(8)
#endif
    INNER_ADD_LANES(4)
    INNER_ADD_LANES(2)
    INNER_ADD_LANES(1)
    for (int64_t i = k; i < count; ++i) {
      __asm__("" : "+r"(i)); /* opaque, or gcc would multiply in vectors and add one by one: no longer fused */
      lanes[column][0] += left[i] * right[i + column * stride];
    }
    out[column] = lanes[column][0];
  }
}

#undef INNER_FETCH_AND_MULTIPLY
#undef INNER_NAME
#undef INNER_PREFIX
#undef INNER_ELEMENT
#undef INNER_LANES
#undef INNER_COLUMNS
#undef INNER_PREFETCH
#undef INNER_CONSTANT
