/* A tile of a convolution: some positions by some vectors of features of the result, summed up in registers.
 *
 * A tile runs over some taps of the window and over some input features: a row of weights at a time, times one element
 * of the input for each position. The sums are stored, or added to those of the block before. Each element is one chain
 * of fused multiply-adds in the order of the taps and of the input features, whatever the size of the tile.
 *
 * A template: define the parameters and include it, as often as wanted; it undefines them.
 *   TILE_NAME      name of the function, declared before as static
 *   TILE_PREFIX    prefix of the types, defined before: `prefix_v`, a vector; `prefix_u`, a vector at any address;
 *                  `prefix_e`, an element at any address; `prefix_numbers`, the struct of the sizes; `prefix_block`,
 *                  the struct of a block of taps and input features
 *   TILE_ELEMENT   C type of an element
 *   TILE_ROWS      positions of the tile
 *   TILE_VECTORS   vectors of features of the tile
 *   TILE_LANES     elements of a vector
 *   TILE_HALVES    1 if a row of 4 vectors of weights is used in halves, since accumulators need all other registers
 *   TILE_PREFETCH  1 if a line from `next` on is prefetched with each row of weights
 *   TILE_CONSTANT  1 if the sizes are the constants `prefix_sizes`, defined before, and there is one block; 2 if they
 *                  are and there are several; 0 if they arrive at run time
 */
#include "../../abi.h"
#include "../../compiler.h"

#define TILE(name) CYX_JOIN(TILE_PREFIX, name)
#define TILE_E TILE(e)
#define TILE_LINE_BYTES 64

#define TILE_ZERO(r, v) vector sum##r##_##v = {0};
#define TILE_ZEROS(r) CYX_COLUMNS(TILE_VECTORS, TILE_ZERO, r)
#define TILE_INPUT(r) const TILE_E *const input##r = inputs[r] + first;
#define TILE_LOAD(r, v) const vector weight##v = *(const vector_at *)(weights + v * TILE_LANES);
#define TILE_MULTIPLY(r, v) sum##r##_##v += input##r[k] * weight##v;
#define TILE_MULTIPLY_ROW(r) CYX_COLUMNS(TILE_VECTORS, TILE_MULTIPLY, r)
#define TILE_MULTIPLY_LEFT_HALF(r) TILE_MULTIPLY(r, 0) TILE_MULTIPLY(r, 1)
#define TILE_MULTIPLY_RIGHT_HALF(r) TILE_MULTIPLY(r, 2) TILE_MULTIPLY(r, 3)
#define TILE_STORE(r, v) *(vector_at *)(sums + r * width + v * TILE_LANES) = sum##r##_##v;
#define TILE_ADD(r, v) sum##r##_##v += *(const vector_at *)(sums + r * width + v * TILE_LANES);
#define TILE_STORE_ROW(r) CYX_COLUMNS(TILE_VECTORS, TILE_STORE, r)
#define TILE_ADD_ROW(r) CYX_COLUMNS(TILE_VECTORS, TILE_ADD, r)

/* `inputs` holds the addresses of the input features of the tile's positions, tap by tap. */
CYX_FUSED __attribute__((noinline)) void TILE_NAME(const TILE(numbers) * s, const TILE(block) * block,
                                                   const TILE_E *const *inputs, const TILE_E *weights,
                                                   TILE_E *restrict sums, const TILE_E *next) {
  CYX_FUSE
  typedef TILE(v) vector;
  typedef TILE(u) vector_at;
#if TILE_CONSTANT
  s = &TILE(sizes);
  const int64_t whole = s->block_depth == s->depth;
  const int64_t depth = whole ? s->depth : block->depth, first = whole ? 0 : block->first;
#else
  const int64_t depth = block->depth, first = block->first;
#endif
  const int64_t stride = s->weights_stride, width = s->width, chunk = s->chunk;
  (void)next;
  CYX_ROWS(TILE_ROWS, TILE_ZEROS)
  for (int64_t taps = block->taps; taps; --taps, inputs += chunk) {
    CYX_ROWS(TILE_ROWS, TILE_INPUT)
    for (int64_t k = 0; k < depth; ++k, weights += stride) {
#if TILE_PREFETCH
      __builtin_prefetch(next, 0, 2);
      next += TILE_LINE_BYTES / (int64_t)sizeof(TILE_ELEMENT);
#endif
#if TILE_HALVES
      {
        TILE_LOAD(0, 0)
        TILE_LOAD(0, 1)
        CYX_ROWS(TILE_ROWS, TILE_MULTIPLY_LEFT_HALF)
      }
      __asm__ volatile("" ::: "memory");
      {
        TILE_LOAD(0, 2)
        TILE_LOAD(0, 3)
        CYX_ROWS(TILE_ROWS, TILE_MULTIPLY_RIGHT_HALF)
      }
#else
      CYX_COLUMNS(TILE_VECTORS, TILE_LOAD, 0)
      CYX_ROWS(TILE_ROWS, TILE_MULTIPLY_ROW)
#endif
    }
  }
#if TILE_CONSTANT == 0 || TILE_CONSTANT == 2
  if (block->adds) {
    CYX_ROWS(TILE_ROWS, TILE_ADD_ROW)
  }
#endif
  CYX_ROWS(TILE_ROWS, TILE_STORE_ROW)
}

#undef TILE_STORE
#undef TILE_ADD
#undef TILE_NAME
#undef TILE_PREFIX
#undef TILE_ELEMENT
#undef TILE_ROWS
#undef TILE_VECTORS
#undef TILE_LANES
#undef TILE_HALVES
#undef TILE_PREFETCH
#undef TILE_CONSTANT
