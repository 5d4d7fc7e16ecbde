/* A sum of rows of the right operand, each times an element of the left one: the micro-kernel of products of one row.
 *
 * The right operand is read once and in order, eight rows at a time; the sums of all columns stay in L1. An element is
 * the sum of chains of eight fused multiply-adds, then of single products, in the order of the contracted dimension.
 * The last vector of a row ends with it: it overlaps its predecessor, and what they share is computed twice.
 *
 * A template: define the parameters and include it, as often as wanted; it undefines them.
 *   COMBINE_NAME      name of the function, declared before as static
 *   COMBINE_PREFIX    prefix of the types, defined before: `prefix_v`, a vector; `prefix_u`, a vector at any address;
 *                     `prefix_e`, an element at any address; `prefix_numbers`, the struct of the sizes
 *   COMBINE_ELEMENT   C type of an element
 *   COMBINE_LANES     elements of a vector
 *   COMBINE_VECTORS   vectors of a row, at most
 *   COMBINE_LOCALITY  where rows are prefetched to: 3 for L1, 2 for L2
 *   COMBINE_CONSTANT  1 if the sizes are the constants `prefix_sizes`, defined before; 0 if they arrive at run time
 */
#include "../abi.h"
#include "../compiler.h"

#define COMBINE(name) CYX_JOIN(COMBINE_PREFIX, name)
#define COMBINE_E COMBINE(e)
#define COMBINE_ROWS 8

#define COMBINE_FACTOR(row) const COMBINE_ELEMENT factor##row = left[row * step];
#define COMBINE_FETCH(row) \
  __builtin_prefetch((const char *)(first + (COMBINE_ROWS + row) * stride), 0, COMBINE_LOCALITY);
#define COMBINE_ADD(row) sum += factor##row * *(const vector_at *)(first + row * stride);

/* `width` columns, at least one vector. */
CYX_FUSED __attribute__((noinline)) void COMBINE_NAME(const COMBINE(numbers) * s, const COMBINE_E *restrict left,
                                                      const COMBINE_E *restrict right, COMBINE_E *restrict out,
                                                      int64_t width) {
  CYX_FUSE
  typedef COMBINE(v) vector;
  typedef COMBINE(u) vector_at;
#if COMBINE_CONSTANT
  s = &COMBINE(sizes);
#endif
  const int64_t step = s->left_k_stride, stride = s->right_k_stride;
  int64_t count = s->k;
  vector sums[COMBINE_VECTORS];
  const int64_t vectors = (width + COMBINE_LANES - 1) / COMBINE_LANES, last = width - COMBINE_LANES;
  for (int64_t v = 0; v < vectors; ++v) sums[v] = (vector){0};
  for (; count >= COMBINE_ROWS; count -= COMBINE_ROWS, left += COMBINE_ROWS * step, right += COMBINE_ROWS * stride) {
    CYX_ROWS(8, COMBINE_FACTOR)
    for (int64_t v = 0; v < vectors; ++v) {
      const COMBINE_E *const first = right + (v * COMBINE_LANES < last ? v * COMBINE_LANES : last);
      CYX_ROWS(8, COMBINE_FETCH)
      vector sum = factor0 * *(const vector_at *)first;
      COMBINE_ADD(1)
      COMBINE_ADD(2)
      COMBINE_ADD(3)
      COMBINE_ADD(4)
      COMBINE_ADD(5)
      COMBINE_ADD(6)
      COMBINE_ADD(7)
      sums[v] += sum;
    }
  }
  for (; count; --count, left += step, right += stride) {
    COMBINE_FACTOR(0)
    for (int64_t v = 0; v < vectors; ++v) {
      const COMBINE_E *const first = right + (v * COMBINE_LANES < last ? v * COMBINE_LANES : last);
      const vector product = factor0 * *(const vector_at *)first;
      sums[v] += product;
    }
  }
  for (int64_t v = 0; v < vectors; ++v)
    *(vector_at *)(out + (v * COMBINE_LANES < last ? v * COMBINE_LANES : last)) = sums[v];
}

#undef COMBINE_NAME
#undef COMBINE_PREFIX
#undef COMBINE_ELEMENT
#undef COMBINE_LANES
#undef COMBINE_VECTORS
#undef COMBINE_LOCALITY
#undef COMBINE_CONSTANT
