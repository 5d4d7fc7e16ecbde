/* Sums of rows of the right operand, each times an element of every row of the left one: the micro-kernel of products
 * of a few rows, two to `COMBINATIONS_ROWS`.
 *
 * The right operand is read once and in order. Six rows of two vectors stay in registers while all rows of the left
 * operand go past them, and the sums go by from the caches. An element is the sum of chains of six fused multiply-adds,
 * then of single ones, in the order of the contracted dimension, whatever the number of rows. The last vector of a row
 * ends with it: it overlaps its predecessor, and what they share is computed twice.
 *
 * A template: define the parameters and include it, as often as wanted; it undefines them.
 *   COMBINATIONS_NAME      name of the function, declared before as static
 *   COMBINATIONS_PREFIX    prefix of the types, defined before: `prefix_v`, a vector; `prefix_u`, a vector at any
 *                          address; `prefix_e`, an element at any address; `prefix_numbers`, the struct of the sizes
 *   COMBINATIONS_ELEMENT   C type of an element
 *   COMBINATIONS_LANES     elements of a vector
 *   COMBINATIONS_ROWS      rows of the left operand, at most
 *   COMBINATIONS_CONSTANT  1 if the sizes are the constants `prefix_sizes`, defined before; 0 if they arrive at run
 * time
 */
#include "../../abi.h"
#include "../../compiler.h"

#define COMBINATIONS(name) CYX_JOIN(COMBINATIONS_PREFIX, name)
#define COMBINATIONS_E COMBINATIONS(e)
#define COMBINATIONS_DEPTH 6
#define COMBINATIONS_PAIR (2 * COMBINATIONS_LANES)
#define COMBINATIONS_PAIR_BYTES (COMBINATIONS_PAIR * (int64_t)sizeof(COMBINATIONS_ELEMENT))

#define COMBINATIONS_LOAD(row)                                      \
  const vector a##row = *(const vector_at *)(first + row * stride); \
  const vector b##row = *(const vector_at *)(second + row * stride);
#define COMBINATIONS_FETCH(row)                             \
  for (int64_t l = 0; l < COMBINATIONS_PAIR_BYTES; l += 64) \
    __builtin_prefetch((const char *)(first + (COMBINATIONS_DEPTH + row) * stride) + l, 0, 2);
#define COMBINATIONS_ADD(row)    \
  sum_a += factor[row] * a##row; \
  sum_b += factor[row] * b##row;

/* Sum up `count` rows of `width` columns, at least one vector, in rows of `sums` with room for whole pairs of vectors.
 * Bits of `ends` tell whether these are the first rows, 1, and the last ones, 2; others are a multiple of six. */
CYX_FUSED __attribute__((noinline)) void COMBINATIONS_NAME(const COMBINATIONS(numbers) * s,
                                                           const COMBINATIONS_E *restrict left,
                                                           const COMBINATIONS_E *restrict right,
                                                           COMBINATIONS_E *restrict sums, int64_t width, int64_t count,
                                                           int64_t ends) {
  CYX_FUSE
  typedef COMBINATIONS(v) vector;
  typedef COMBINATIONS(u) vector_at;
#if COMBINATIONS_CONSTANT
  s = &COMBINATIONS(sizes);
#endif
  const int64_t rows = s->m, apart = s->left_row_stride, step = s->left_k_stride, stride = s->right_k_stride;
  const int64_t sums_stride = s->sums_stride, last = width - COMBINATIONS_LANES;
  const int64_t whole = (width + COMBINATIONS_PAIR - 1) / COMBINATIONS_PAIR * COMBINATIONS_PAIR;
  COMBINATIONS_ELEMENT factors[COMBINATIONS_ROWS * COMBINATIONS_DEPTH]; /* rows of the left operand may share L1 sets */
  for (int64_t m = 0; m < rows && ends & 1; ++m)
    for (int64_t n = 0; n < whole; n += COMBINATIONS_LANES) *(vector_at *)(sums + m * sums_stride + n) = (vector){0};
  for (; count >= COMBINATIONS_DEPTH; count -= COMBINATIONS_DEPTH) {
    for (int64_t m = 0; m < rows; ++m)
      for (int64_t k = 0; k < COMBINATIONS_DEPTH; ++k) factors[m * COMBINATIONS_DEPTH + k] = left[m * apart + k * step];
    for (int64_t n = 0; n < whole; n += COMBINATIONS_PAIR) {
      const COMBINATIONS_E *const first = right + (n < last ? n : last);
      const COMBINATIONS_E *const second = right + (n + COMBINATIONS_LANES < last ? n + COMBINATIONS_LANES : last);
      CYX_ROWS(6, COMBINATIONS_FETCH)
      CYX_ROWS(6, COMBINATIONS_LOAD)
      const COMBINATIONS_ELEMENT *factor = factors;
      COMBINATIONS_E *to = sums + n;
      for (int64_t m = 0; m < rows; ++m, factor += COMBINATIONS_DEPTH, to += sums_stride) {
        vector sum_a = factor[0] * a0, sum_b = factor[0] * b0;
        COMBINATIONS_ADD(1)
        COMBINATIONS_ADD(2)
        COMBINATIONS_ADD(3)
        COMBINATIONS_ADD(4)
        COMBINATIONS_ADD(5)
        *(vector_at *)to += sum_a;
        *(vector_at *)(to + COMBINATIONS_LANES) += sum_b;
      }
    }
    left += COMBINATIONS_DEPTH * step, right += COMBINATIONS_DEPTH * stride;
  }
  for (; count > 0; --count, left += step, right += stride)
    for (int64_t m = 0; m < rows; ++m) {
      const COMBINATIONS_ELEMENT factor = left[m * apart];
      for (int64_t n = 0; n < whole; n += COMBINATIONS_LANES) {
        const vector product = factor * *(const vector_at *)(right + (n < last ? n : last));
        *(vector_at *)(sums + m * sums_stride + n) += product;
      }
    }
  if (!(ends & 2)) return;
  const int64_t final = (width - 1) / COMBINATIONS_LANES * COMBINATIONS_LANES;
  for (int64_t m = 0; m < rows; ++m, sums += sums_stride) {
    const vector end = *(const vector_at *)(sums + final);
    *(vector_at *)(sums + last) = end;
  }
}

#undef COMBINATIONS_NAME
#undef COMBINATIONS_PREFIX
#undef COMBINATIONS_ELEMENT
#undef COMBINATIONS_LANES
#undef COMBINATIONS_ROWS
#undef COMBINATIONS_CONSTANT
