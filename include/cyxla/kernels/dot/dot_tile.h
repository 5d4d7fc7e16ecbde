/* A tile of a product: some rows by some vectors of the result, summed up in registers.
 *
 * A tile runs over a part of the contracted dimension: a row of the right operand at a time, times one element of the
 * left operand for each row. The sums are stored, or added to those of the part before. Each element is one chain of
 * fused multiply-adds in the order of the contracted dimension, whatever the size of the tile.
 *
 * A template: define the parameters and include it, as often as wanted; it undefines them.
 *   TILE_NAME      name of the function, declared before as static
 *   TILE_PREFIX    prefix of the types, defined before: `prefix_v`, a vector; `prefix_u`, a vector at any address;
 *                  `prefix_e`, an element at any address; `prefix_tile`, the struct of the sizes
 *   TILE_ELEMENT   C type of an element
 *   TILE_ROWS      rows of the tile
 *   TILE_VECTORS   vectors of a row of the tile
 *   TILE_LANES     elements of a vector
 *   TILE_TAIL      elements of a row's last vector that are stored; 0 if all are
 *   TILE_CONSTANT  1 if the sizes are the constants `name_sizes`, defined before; 2 if they are, but for `count`,
 *                  `adds` and `prefetch_tile`; 0 if all arrive at run time
 *   TILE_COLUMNS   1 if elements of one column of the left operand are neighbours, 0 if those of one row are; only for
 *                  sizes that arrive at run time
 *   TILE_PREFETCH  0: nothing; 1: `prefetch_lines` cache lines from `prefetched` on with every so many rows of the
 *                  right operand, a power of two if that is a constant
 */
#include "../../abi.h"
#include "../../compiler.h"

#define TILE(name) CYX_JOIN(TILE_PREFIX, name)
#define TILE_T TILE(tile)
#define TILE_E TILE(e)
#define TILE_LINE_BYTES 64

/* `vector` and `vector_at` are types in the function: names that are joined take the preprocessor long. */
#define TILE_ZERO(r, v) vector c##r##_##v = {0};
#define TILE_ZEROS(r) CYX_COLUMNS(TILE_VECTORS, TILE_ZERO, r)
#define TILE_LOAD(r, v) const vector b##v = *(const vector_at *)(w + v * TILE_LANES);
#define TILE_MULTIPLY(r, v) c##r##_##v += a##r * b##v;
#define TILE_MULTIPLY_ROW(r)              \
  const TILE_ELEMENT a##r = TILE_LEFT(r); \
  CYX_COLUMNS(TILE_VECTORS, TILE_MULTIPLY, r)

#if TILE_CONSTANT || TILE_COLUMNS
#define TILE_LEFT(r) p0[r * left_row_stride]
#define TILE_NEXT_PRODUCTS w += right_stride, p0 += left_k_stride;
#else /* a pointer for three rows, which addresses reach with a factor of 0, 1 or 2 */
#define TILE_LEFT(r) TILE_BASE_##r[r % 3 * left_row_stride]
#define TILE_NEXT_PRODUCTS                                                                               \
  w += right_stride, p0 += left_k_stride, p3 += left_k_stride, p6 += left_k_stride, p9 += left_k_stride, \
      p12 += left_k_stride;
#endif
#define TILE_BASE_0 p0
#define TILE_BASE_1 p0
#define TILE_BASE_2 p0
#define TILE_BASE_3 p3
#define TILE_BASE_4 p3
#define TILE_BASE_5 p3
#define TILE_BASE_6 p6
#define TILE_BASE_7 p6
#define TILE_BASE_8 p6
#define TILE_BASE_9 p9
#define TILE_BASE_10 p9
#define TILE_BASE_11 p9
#define TILE_BASE_12 p12
#define TILE_BASE_13 p12

#define TILE_PRODUCTS \
  {CYX_COLUMNS(TILE_VECTORS, TILE_LOAD, 0) CYX_ROWS(TILE_ROWS, TILE_MULTIPLY_ROW)} TILE_NEXT_PRODUCTS

#if TILE_TAIL
#define TILE_STORE(r, v)                             \
  if (v < TILE_VECTORS - 1)                          \
    *(vector_at *)(o + v * TILE_LANES) = c##r##_##v; \
  else                                               \
    __builtin_memcpy(o + v * TILE_LANES, &c##r##_##v, TILE_TAIL * sizeof(TILE_ELEMENT));
#define TILE_ADD(r, v)                                                                   \
  if (v < TILE_VECTORS - 1) {                                                            \
    *(vector_at *)(o + v * TILE_LANES) += c##r##_##v;                                    \
  } else {                                                                               \
    vector old = {0};                                                                    \
    __builtin_memcpy(&old, o + v * TILE_LANES, TILE_TAIL * sizeof(TILE_ELEMENT));        \
    c##r##_##v += old;                                                                   \
    __builtin_memcpy(o + v * TILE_LANES, &c##r##_##v, TILE_TAIL * sizeof(TILE_ELEMENT)); \
  }
#else
#define TILE_STORE(r, v) *(vector_at *)(o + v * TILE_LANES) = c##r##_##v;
#define TILE_ADD(r, v) *(vector_at *)(o + v * TILE_LANES) += c##r##_##v;
#endif
#if TILE_CONSTANT
#define TILE_NEXT_ROW o += out_stride;
#else /* opaque, or gcc would compute the addresses of all rows in front of the loop and keep them in memory */
#define TILE_NEXT_ROW \
  o += out_stride;    \
  __asm__("" : "+r"(o));
#endif
#define TILE_STORE_ROW(r) CYX_COLUMNS(TILE_VECTORS, TILE_STORE, r) TILE_NEXT_ROW
#define TILE_ADD_ROW(r) CYX_COLUMNS(TILE_VECTORS, TILE_ADD, r) TILE_NEXT_ROW

/* Compute some tiles one below the other, or a single one if the sizes are constants. `prefetched` is what to prefetch,
   of which each tile takes its share. */
CYX_FUSED __attribute__((noinline)) void TILE_NAME(const TILE_T *block, const TILE_E *restrict a,
                                                   const TILE_E *restrict b, TILE_E *restrict o, const char *prefetched,
                                                   int64_t tiles) {
  CYX_FUSE
  typedef TILE(v) vector;
  typedef TILE(u) vector_at;
#if TILE_CONSTANT
  const TILE_T *const s = &CYX_JOIN(TILE_NAME, sizes);
#else
  const TILE_T *const s = block;
#endif
#if TILE_CONSTANT == 1
  const int64_t parts = s->count, prefetch_tile = s->prefetch_tile;
#else
  const int64_t parts = block->count, adds = block->adds, prefetch_tile = block->prefetch_tile;
#endif
  const int64_t left_row_stride = TILE_COLUMNS ? 1 : s->left_row_stride, right_stride = s->right_stride,
                out_stride = s->out_stride;
  const int64_t left_k_stride = TILE_CONSTANT || TILE_COLUMNS ? s->left_k_stride : 1;
  (void)block, (void)prefetched, (void)prefetch_tile, (void)tiles;
  do {
    CYX_ROWS(TILE_ROWS, TILE_ZEROS)
    int64_t count = parts;
    const TILE_E *w = b, *p0 = a, *p3 = a + 3 * left_row_stride, *p6 = a + 6 * left_row_stride,
                 *p9 = a + 9 * left_row_stride, *p12 = a + 12 * left_row_stride;
    (void)p3, (void)p6, (void)p9, (void)p12;
#if TILE_PREFETCH == 1 && !TILE_CONSTANT
    const char *at = prefetched;
    prefetched += prefetch_tile;
    do {
      int64_t run = count < s->prefetch_every ? count : s->prefetch_every;
      count -= run;
      for (int64_t l = 0; l < s->prefetch_lines; ++l) __builtin_prefetch(at + l * TILE_LINE_BYTES, 0, 2);
      at += s->prefetch_stride;
      for (; run; --run) {
        TILE_PRODUCTS
      }
    } while (count);
#else
    for (int64_t k = 0; k < count; ++k) {
#if TILE_PREFETCH == 1
      if (!(k & (s->prefetch_every - 1))) {
#pragma GCC unroll 8
        for (int64_t l = 0; l < s->prefetch_lines; ++l) __builtin_prefetch(prefetched + l * TILE_LINE_BYTES, 0, 2);
        prefetched += s->prefetch_stride;
      }
#endif
      TILE_PRODUCTS
    }
#endif
#if TILE_CONSTANT == 1
    CYX_ROWS(TILE_ROWS, TILE_STORE_ROW)
#else
    if (adds) {
      CYX_ROWS(TILE_ROWS, TILE_ADD_ROW)
    } else {
      CYX_ROWS(TILE_ROWS, TILE_STORE_ROW)
    }
#endif
    a += TILE_ROWS * left_row_stride;
  } while (!TILE_CONSTANT && --tiles);
}

#undef TILE_LEFT
#undef TILE_NEXT_PRODUCTS
#undef TILE_NEXT_ROW
#undef TILE_STORE
#undef TILE_ADD
#undef TILE_NAME
#undef TILE_PREFIX
#undef TILE_ELEMENT
#undef TILE_ROWS
#undef TILE_VECTORS
#undef TILE_LANES
#undef TILE_TAIL
#undef TILE_CONSTANT
#undef TILE_COLUMNS
#undef TILE_PREFETCH
