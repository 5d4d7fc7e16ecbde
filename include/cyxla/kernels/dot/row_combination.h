/* Sums of rows of the right operand, each times an element of the left one: the micro-kernel of products of one row.
 *
 * The right operand is read once and in order, eight rows at a time; the sums of all columns stay in the caches. An
 * element is the sum of chains of eight fused multiply-adds, then of single products, in the order of the contracted
 * dimension. The last vector of a row ends with it: it overlaps its predecessor, and what they share is computed twice.
 *
 * A template: define the parameters and include it, as often as wanted; it undefines them.
 *   COMBINE_NAME      name of the function, declared before as static
 *   COMBINE_PREFIX    prefix of the types, defined before: `prefix_v`, a vector; `prefix_u`, a vector at any address;
 *                     `prefix_e`, an element at any address; `prefix_numbers`, the struct of the sizes
 *   COMBINE_ELEMENT   C type of an element
 *   COMBINE_LANES     elements of a vector
 *   COMBINE_LOCALITY  where rows are prefetched to: 3 for L1, 2 for L2; 0 for nowhere
 *   COMBINE_CONSTANT  1 if the sizes are the constants `prefix_sizes`, defined before; 0 if they arrive at run time
 */
#include "../../abi.h"
#include "../../compiler.h"

#define COMBINE(name) CYX_JOIN(COMBINE_PREFIX, name)
#define COMBINE_E COMBINE(e)
#define COMBINE_ROWS 8

#define COMBINE_FACTOR(row) const COMBINE_ELEMENT factor##row = left[row * step];
#define COMBINE_PAIR (2 * COMBINE_LANES)
#define COMBINE_PAIR_BYTES (COMBINE_PAIR * (int64_t)sizeof(COMBINE_ELEMENT))
#define COMBINE_FETCH(row)                             \
  for (int64_t l = 0; l < COMBINE_PAIR_BYTES; l += 64) \
    __builtin_prefetch((const char *)(first + (COMBINE_ROWS + row) * stride) + l, 0, COMBINE_LOCALITY);
#define COMBINE_ADD(row)                                             \
  sum_a += factor##row * *(const vector_at *)(first + row * stride); \
  sum_b += factor##row * *(const vector_at *)(second + row * stride);

/* Sum up `count` rows of `width` columns, at least one vector, in `sums`, which has room for whole pairs of vectors.
 * Bits of `ends` tell whether these are the first rows, 1, and the last ones, 2; others are a multiple of eight. */
CYX_FUSED __attribute__((noinline)) void COMBINE_NAME(const COMBINE(numbers) * s, const COMBINE_E *restrict left,
                                                      const COMBINE_E *restrict right, COMBINE_E *restrict sums,
                                                      int64_t width, int64_t count, int64_t ends) {
  CYX_FUSE
  typedef COMBINE(v) vector;
  typedef COMBINE(u) vector_at;
#if COMBINE_CONSTANT
  s = &COMBINE(sizes);
#endif
  const int64_t step = s->left_k_stride, stride = s->right_k_stride;
  const int64_t whole = (width + COMBINE_PAIR - 1) / COMBINE_PAIR * COMBINE_PAIR, last = width - COMBINE_LANES;
  if (ends & 1)
    for (int64_t n = 0; n < whole; n += COMBINE_LANES) *(vector_at *)(sums + n) = (vector){0};
  for (; count >= COMBINE_ROWS; count -= COMBINE_ROWS, left += COMBINE_ROWS * step, right += COMBINE_ROWS * stride) {
    CYX_ROWS(8, COMBINE_FACTOR)
    for (int64_t n = 0; n < whole; n += COMBINE_PAIR) {
      const COMBINE_E *const first = right + (n < last ? n : last);
      const COMBINE_E *const second = right + (n + COMBINE_LANES < last ? n + COMBINE_LANES : last);
#if COMBINE_LOCALITY
      CYX_ROWS(8, COMBINE_FETCH)
#endif
      vector sum_a = factor0 * *(const vector_at *)first, sum_b = factor0 * *(const vector_at *)second;
      COMBINE_ADD(1)
      COMBINE_ADD(2)
      COMBINE_ADD(3)
      COMBINE_ADD(4)
      COMBINE_ADD(5)
      COMBINE_ADD(6)
      COMBINE_ADD(7)
      *(vector_at *)(sums + n) += sum_a;
      *(vector_at *)(sums + n + COMBINE_LANES) += sum_b;
    }
  }
  for (; count > 0; --count, left += step, right += stride) {
    COMBINE_FACTOR(0)
    for (int64_t n = 0; n < whole; n += COMBINE_LANES) {
      const vector product = factor0 * *(const vector_at *)(right + (n < last ? n : last));
      *(vector_at *)(sums + n) += product;
    }
  }
  if (!(ends & 2)) return;
  const vector end = *(const vector_at *)(sums + (width - 1) / COMBINE_LANES * COMBINE_LANES);
  *(vector_at *)(sums + last) = end;
}

#undef COMBINE_NAME
#undef COMBINE_PREFIX
#undef COMBINE_ELEMENT
#undef COMBINE_LANES
#undef COMBINE_LOCALITY
#undef COMBINE_CONSTANT
