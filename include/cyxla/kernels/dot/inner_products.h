/* Inner products of a row of the left operand with some columns of the right one: the micro-kernel of products of few
 * rows whose contracted dimension is contiguous in both operands.
 *
 * Each product is summed up in four accumulators of 64 bytes, which are added in a fixed tree at the end; the elements
 * behind the last whole accumulator are added to the first ones of their sum. The order depends neither on the number
 * of columns nor on the size of a vector: an accumulator is some vectors of the processor, which gcc keeps in
 * registers, unlike wider ones.
 *
 * A template: define the parameters and include it, as often as wanted; it undefines them.
 *   INNER_NAME      name of the function, declared before as static
 *   INNER_PREFIX    prefix of the types, defined before: `prefix_v`, a vector; `prefix_u`, a vector at any address;
 *                   `prefix_e`, an element at any address; `prefix_numbers`, the struct of the sizes
 *   INNER_ELEMENT   C type of an element
 *   INNER_LANES     elements of a vector
 *   INNER_PARTS     vectors of an accumulator: 1, 2 or 4
 *   INNER_SPAN      elements of an accumulator: 8 or 16
 *   INNER_COLUMNS   columns at once
 *   INNER_PREFETCH  distance of the prefetch of columns, in bytes; 0 if there is none
 *   INNER_CONSTANT  1 if the sizes are the constants `prefix_sizes`, defined before; 0 if they arrive at run time
 */
#include "../../abi.h"
#include "../../compiler.h"

#define INNER(name) CYX_JOIN(INNER_PREFIX, name)
#define INNER_E INNER(e)

#if INNER_PARTS == 1
#define INNER_EACH(f, at) f(at, 0)
#elif INNER_PARTS == 2
#define INNER_EACH(f, at) f(at, 0) f(at, 1)
#else
#define INNER_EACH(f, at) f(at, 0) f(at, 1) f(at, 2) f(at, 3)
#endif

/* Names end in the numbers of a column, an accumulator and a vector of it. */
#define INNER_ZERO(at, part) vector sum##at##_##part = {0};
#define INNER_ZERO_ACCUMULATOR(column, v) INNER_EACH(INNER_ZERO, column##_##v)
#define INNER_ZEROS(column) CYX_COLUMNS(4, INNER_ZERO_ACCUMULATOR, column)
#define INNER_MULTIPLY(at, column) \
  sum##column##_##at += left##at * *(const vector_at *)(right + column * stride + offset##at);
#define INNER_STEP_PART(v, part)                                                   \
  const int64_t offset##v##_##part = k + v * INNER_SPAN + part * INNER_LANES;      \
  const vector left##v##_##part = *(const vector_at *)(left + offset##v##_##part); \
  CYX_COLUMNS(INNER_COLUMNS, INNER_MULTIPLY, v##_##part)
#define INNER_STEP(v) INNER_EACH(INNER_STEP_PART, v)
#define INNER_FETCH(v, column) \
  __builtin_prefetch((const char *)(right + k + column * stride + v * INNER_SPAN) + INNER_PREFETCH);
#define INNER_FETCHES(v) CYX_COLUMNS(INNER_COLUMNS, INNER_FETCH, v)
#define INNER_ADD_PART(column, part) \
  sum##column##_0_##part =           \
      (sum##column##_0_##part + sum##column##_1_##part) + (sum##column##_2_##part + sum##column##_3_##part);
#define INNER_STORE_PART(column, part) *(vector_at *)(rest + part * INNER_LANES) = sum##column##_0_##part;
#define INNER_READ_PART(column, part) sum##column##_0_##part = *(const vector_at *)(rest + part * INNER_LANES);
#define INNER_ADD_REST(column)                                                                       \
  {                                                                                                  \
    INNER_EACH(INNER_STORE_PART, column)                                                             \
    for (int64_t l = 0; l < count - k; ++l) rest[l] += left[k + l] * right[k + l + column * stride]; \
    INNER_EACH(INNER_READ_PART, column)                                                              \
  }

/* The upper half of the lanes is added to the lower half, until one is left. */
#if INNER_PARTS == 1
#define INNER_ADD_PARTS(column)
#elif INNER_PARTS == 2
#define INNER_ADD_PARTS(column) sum##column##_0_0 += sum##column##_0_1;
#else
#define INNER_ADD_PARTS(column) \
  sum##column##_0_0 = (sum##column##_0_0 + sum##column##_0_2) + (sum##column##_0_1 + sum##column##_0_3);
#endif
#if INNER_LANES == 2
#define INNER_ADD_LANES(v) v += CYX_SHUFFLE(places, v, 1, 0);
#elif INNER_LANES == 4
#define INNER_ADD_LANES(v)                 \
  v += CYX_SHUFFLE(places, v, 2, 3, 0, 1); \
  v += CYX_SHUFFLE(places, v, 1, 0, 3, 2);
#elif INNER_LANES == 8
#define INNER_ADD_LANES(v)                             \
  v += CYX_SHUFFLE(places, v, 4, 5, 6, 7, 0, 1, 2, 3); \
  v += CYX_SHUFFLE(places, v, 2, 3, 0, 1, 6, 7, 4, 5); \
  v += CYX_SHUFFLE(places, v, 1, 0, 3, 2, 5, 4, 7, 6);
#else
#define INNER_ADD_LANES(v)                                                           \
  v += CYX_SHUFFLE(places, v, 8, 9, 10, 11, 12, 13, 14, 15, 0, 1, 2, 3, 4, 5, 6, 7); \
  v += CYX_SHUFFLE(places, v, 4, 5, 6, 7, 0, 1, 2, 3, 12, 13, 14, 15, 8, 9, 10, 11); \
  v += CYX_SHUFFLE(places, v, 2, 3, 0, 1, 6, 7, 4, 5, 10, 11, 8, 9, 14, 15, 12, 13); \
  v += CYX_SHUFFLE(places, v, 1, 0, 3, 2, 5, 4, 7, 6, 9, 8, 11, 10, 13, 12, 15, 14);
#endif
#define INNER_SUM(column)               \
  INNER_EACH(INNER_ADD_PART, column)    \
  if (k < count) INNER_ADD_REST(column) \
  INNER_ADD_PARTS(column)               \
  INNER_ADD_LANES(sum##column##_0_0)    \
  out[column] = sum##column##_0_0[0];

CYX_FUSED __attribute__((noinline)) void INNER_NAME(const INNER(numbers) * s, const INNER_E *restrict left,
                                                    const INNER_E *restrict right, INNER_E *restrict out) {
  CYX_FUSE
  typedef INNER(v) vector;
  typedef INNER(u) vector_at;
#if INNER_SPAN == 16
  typedef int32_t places __attribute__((vector_size(INNER_LANES * 4)));
#else
  typedef int64_t places __attribute__((vector_size(INNER_LANES * 8)));
#endif
#if INNER_CONSTANT
  s = &INNER(sizes);
#endif
  const int64_t count = s->k, stride = s->right_column_stride;
  CYX_ROWS(INNER_COLUMNS, INNER_ZEROS)
  int64_t k = 0;
  for (; k + 4 * INNER_SPAN <= count; k += 4 * INNER_SPAN) {
#if INNER_PREFETCH
    CYX_ROWS(4, INNER_FETCHES)
#endif
    CYX_ROWS(4, INNER_STEP)
  }
  for (; k + INNER_SPAN <= count; k += INNER_SPAN) {
    CYX_ROWS(1, INNER_STEP)
  }
  INNER_ELEMENT rest[INNER_SPAN];
  CYX_ROWS(INNER_COLUMNS, INNER_SUM)
}

#undef INNER_ADD_PARTS
#undef INNER_ADD_LANES
#undef INNER_EACH
#undef INNER_NAME
#undef INNER_PREFIX
#undef INNER_ELEMENT
#undef INNER_LANES
#undef INNER_PARTS
#undef INNER_SPAN
#undef INNER_COLUMNS
#undef INNER_PREFETCH
#undef INNER_CONSTANT
