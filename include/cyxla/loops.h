/* Functions of generated loops other than arithmetic: streaming stores, prefetch, folds of lanes, tile transposes.
 *
 * A sequence of blocks separated by blank lines, one definition each; generated code pastes the blocks it names and what they need.
 * Needs abi.h for the integer types.
 *
 * Internal: generated code pastes blocks of it; it may change with every version.
 */
#ifndef CYXLA_LOOPS_H
#define CYXLA_LOOPS_H

#include "scalar.h"

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wpedantic"

/* Copy a block past the caches: full vectors of the target by streaming stores, its ends by plain ones. */
#if defined(__AVX512F__) && !defined(__clang__)
typedef double cyx_stream_vector __attribute__((vector_size(64), may_alias));
#define CYX_STREAM_ONE(to, from) __builtin_ia32_movntpd512((double *)(to), from)
#elif defined(__AVX__) && !defined(__clang__)
typedef double cyx_stream_vector __attribute__((vector_size(32), may_alias));
#define CYX_STREAM_ONE(to, from) __builtin_ia32_movntpd256((double *)(to), from)
#elif defined(__clang__)
typedef double cyx_stream_vector __attribute__((vector_size(32), may_alias));
#define CYX_STREAM_ONE(to, from) __builtin_nontemporal_store(from, (cyx_stream_vector *)(to))
#else
typedef double cyx_stream_vector __attribute__((vector_size(16), may_alias));
#define CYX_STREAM_ONE(to, from) (*(cyx_stream_vector *)(to) = (from))
#endif
typedef cyx_stream_vector cyx_stream_source __attribute__((aligned(1)));
static inline __attribute__((always_inline)) void cyx_stream(void *to, const void *from, int64_t bytes) {
  const int64_t width = (int64_t)sizeof(cyx_stream_vector), gap = (int64_t)(-(uint64_t)to % sizeof(cyx_stream_vector));
  const int64_t head = gap < bytes ? gap : bytes;
  if (head) __builtin_memcpy(to, from, (unsigned long)head);
  int64_t i = head;
  for (; i + width <= bytes; i += width)
    CYX_STREAM_ONE((char *)to + i, *(const cyx_stream_source *)((const char *)from + i));
  if (i < bytes) __builtin_memcpy((char *)to + i, (const char *)from + i, (unsigned long)(bytes - i));
}

/* Order streaming stores before later stores, which may publish them to other threads. */
static inline void cyx_stream_end(void) { __sync_synchronize(); }

/* Prefetch memory: a hint, so that any address is allowed. */
static inline __attribute__((always_inline)) void cyx_prefetch(const char *from, int64_t bytes) {
  for (int64_t i = 0; i < bytes; i += 64) __builtin_prefetch(from + i, 0, 3);
}

/* Sizes known at run time, which lie in memory. */
static inline int64_t cyx_size_s32(const void *p) {
  int32_t n;
  __builtin_memcpy(&n, p, sizeof n);
  return n;
}

static inline int64_t cyx_size_s64(const void *p) {
  int64_t n;
  __builtin_memcpy(&n, p, sizeof n);
  return n;
}

static inline int64_t cyx_size_u32(const void *p) {
  uint32_t n;
  __builtin_memcpy(&n, p, sizeof n);
  return n;
}

static inline int64_t cyx_smaller_size(int64_t a, int64_t b) { return a < b ? a : b; }

static inline int64_t cyx_larger_size(int64_t a, int64_t b) { return a > b ? a : b; }

/* Number of iterations below a size, of `count`. */
static inline int64_t cyx_live(int64_t size, int64_t count) {
  size = size < count ? size : count;
  return size > 0 ? size : 0;
}

/* Number of iterations that begin below a size, of `count` that begin at `low` and are `step` apart. */
static inline int64_t cyx_live_steps(int64_t size, int64_t low, int64_t step, int64_t count) {
  if (size <= low) return 0;
  return size >= low + step * count ? count : (size - low + step - 1) / step;
}

/* Number of columns of a block that are below a size. */
static inline int cyx_live_width(int64_t size, int64_t base, int columns) {
  const int64_t left = size - base;
  return left < 0 ? 0 : left < columns ? (int)left : columns;
}

/* Number of bools that are true; sums of bytes are widened before they overflow. */
static inline uint64_t cyx_count_true(const uint8_t *p, int64_t count) {
  uint64_t total = 0;
  int64_t i = 0;
  while (count - i >= 64) {
    uint8_t lanes[64] __attribute__((aligned(64))) = {0};
    const int64_t steps = (count - i) / 64 < 255 ? (count - i) / 64 : 255;
    for (int64_t s = 0; s < steps; ++s, i += 64)
      for (int k = 0; k < 64; ++k) lanes[k] += p[i + k];
    for (int k = 0; k < 64; ++k) total += lanes[k];
  }
  for (; i < count; ++i) total += p[i];
  return total;
}

/* Select by a stored bool, 0 or 1, in loops over 32 lanes: gcc 12 vectorises no conditional of bytes there. */
static inline double cyx_select_f64(int32_t condition, double a, double b) {
  const uint64_t mask = -(uint64_t)condition;
  return cyx_from_bits_f64((cyx_bits_f64(a) & mask) | (cyx_bits_f64(b) & ~mask));
}

/* Inverses of cyx_total_f32 and cyx_total_f64: floats of their order-preserving integers. */
static inline float cyx_from_total_f32(int32_t k) { return cyx_from_bits_f32((uint32_t)k ^ ((uint32_t)(k >> 31) >> 1)); }

static inline double cyx_from_total_f64(int64_t k) { return cyx_from_bits_f64((uint64_t)k ^ ((uint64_t)(k >> 63) >> 1)); }

typedef float cyx_lanes_f32 __attribute__((vector_size(64), aligned(1), may_alias));

/* Vectors that are registers at most levels: gcc keeps wider ones in memory. */
typedef float cyx_half_lanes_f32 __attribute__((vector_size(32), aligned(1), may_alias));

typedef float cyx_lane_f32 __attribute__((aligned(1), may_alias));

#ifndef __cplusplus /* which does not convert pointers to void by itself */

/* Fold n elements into 64 lanes: element i goes to lane i % 64, for any width of the hardware's vectors. */
static inline __attribute__((always_inline)) void cyx_lanes_add_f32(float *acc, const void *from, int64_t n) {
  const cyx_lane_f32 *p = from;
#if defined(__AVX512F__)
  cyx_lanes_f32 a = -(cyx_lanes_f32){0}, b = a, c = a, d = a, *to = (cyx_lanes_f32 *)acc;
  int64_t i = 0;
  for (; i + 64 <= n; i += 64) {
    const cyx_lanes_f32 *v = (const cyx_lanes_f32 *)(p + i);
    a = a + v[0];
    b = b + v[1];
    c = c + v[2];
    d = d + v[3];
  }
  to[0] = to[0] + a;
  to[1] = to[1] + b;
  to[2] = to[2] + c;
  to[3] = to[3] + d;
#else
  cyx_half_lanes_f32 a = -(cyx_half_lanes_f32){0}, b = a, c = a, d = a, e = a, f = a, g = a, h = a;
  cyx_half_lanes_f32 *to = (cyx_half_lanes_f32 *)acc;
  int64_t i = 0;
  for (; i + 64 <= n; i += 64) {
    const cyx_half_lanes_f32 *v = (const cyx_half_lanes_f32 *)(p + i);
    a = a + v[0];
    b = b + v[1];
    c = c + v[2];
    d = d + v[3];
    e = e + v[4];
    f = f + v[5];
    g = g + v[6];
    h = h + v[7];
  }
  to[0] = to[0] + a;
  to[1] = to[1] + b;
  to[2] = to[2] + c;
  to[3] = to[3] + d;
  to[4] = to[4] + e;
  to[5] = to[5] + f;
  to[6] = to[6] + g;
  to[7] = to[7] + h;
#endif
  for (int64_t j = 0; j < n % 64; ++j) acc[j] = acc[j] + p[i + j];
}

#endif

/* Permute a vector: lane i goes to lane i ^ x. */
#if defined(__clang__)
#define CYX_SWAP_F32(v, x) __builtin_shufflevector(v, v, 0 ^ (x), 1 ^ (x), 2 ^ (x), 3 ^ (x), 4 ^ (x), 5 ^ (x), 6 ^ (x), 7 ^ (x), 8 ^ (x), 9 ^ (x), 10 ^ (x), 11 ^ (x), 12 ^ (x), 13 ^ (x), 14 ^ (x), 15 ^ (x))
#else
typedef int32_t cyx_swap_f32 __attribute__((vector_size(64)));
#define CYX_SWAP_F32(v, x) __builtin_shuffle(v, (cyx_swap_f32){0 ^ (x), 1 ^ (x), 2 ^ (x), 3 ^ (x), 4 ^ (x), 5 ^ (x), 6 ^ (x), 7 ^ (x), 8 ^ (x), 9 ^ (x), 10 ^ (x), 11 ^ (x), 12 ^ (x), 13 ^ (x), 14 ^ (x), 15 ^ (x)})
#endif

static inline __attribute__((always_inline)) float cyx_fold_add_f32(float *acc) {
  const cyx_lanes_f32 *v = (const cyx_lanes_f32 *)acc;
  cyx_lanes_f32 a = (v[0] + v[2]) + (v[1] + v[3]);
  a = a + CYX_SWAP_F32(a, 8);
  a = a + CYX_SWAP_F32(a, 4);
  a = a + CYX_SWAP_F32(a, 2);
  a = a + CYX_SWAP_F32(a, 1);
  return a[0];
}

#ifndef __cplusplus /* which does not convert pointers to void by itself */

/* Fold n elements into 64 lanes: element i goes to lane i % 64, for any width of the hardware's vectors. */
static inline __attribute__((always_inline)) void cyx_lanes_multiply_f32(float *acc, const void *from, int64_t n) {
  const cyx_lane_f32 *p = from;
#if defined(__AVX512F__)
  cyx_lanes_f32 a = (cyx_lanes_f32){0} + 1, b = a, c = a, d = a, *to = (cyx_lanes_f32 *)acc;
  int64_t i = 0;
  for (; i + 64 <= n; i += 64) {
    const cyx_lanes_f32 *v = (const cyx_lanes_f32 *)(p + i);
    a = a * v[0];
    b = b * v[1];
    c = c * v[2];
    d = d * v[3];
  }
  to[0] = to[0] * a;
  to[1] = to[1] * b;
  to[2] = to[2] * c;
  to[3] = to[3] * d;
#else
  cyx_half_lanes_f32 a = (cyx_half_lanes_f32){0} + 1, b = a, c = a, d = a, e = a, f = a, g = a, h = a;
  cyx_half_lanes_f32 *to = (cyx_half_lanes_f32 *)acc;
  int64_t i = 0;
  for (; i + 64 <= n; i += 64) {
    const cyx_half_lanes_f32 *v = (const cyx_half_lanes_f32 *)(p + i);
    a = a * v[0];
    b = b * v[1];
    c = c * v[2];
    d = d * v[3];
    e = e * v[4];
    f = f * v[5];
    g = g * v[6];
    h = h * v[7];
  }
  to[0] = to[0] * a;
  to[1] = to[1] * b;
  to[2] = to[2] * c;
  to[3] = to[3] * d;
  to[4] = to[4] * e;
  to[5] = to[5] * f;
  to[6] = to[6] * g;
  to[7] = to[7] * h;
#endif
  for (int64_t j = 0; j < n % 64; ++j) acc[j] = acc[j] * p[i + j];
}

#endif

static inline __attribute__((always_inline)) float cyx_fold_multiply_f32(float *acc) {
  const cyx_lanes_f32 *v = (const cyx_lanes_f32 *)acc;
  cyx_lanes_f32 a = (v[0] * v[2]) * (v[1] * v[3]);
  a = a * CYX_SWAP_F32(a, 8);
  a = a * CYX_SWAP_F32(a, 4);
  a = a * CYX_SWAP_F32(a, 2);
  a = a * CYX_SWAP_F32(a, 1);
  return a[0];
}

typedef double cyx_lanes_f64 __attribute__((vector_size(64), aligned(1), may_alias));

/* Vectors that are registers at most levels: gcc keeps wider ones in memory. */
typedef double cyx_half_lanes_f64 __attribute__((vector_size(32), aligned(1), may_alias));

typedef double cyx_lane_f64 __attribute__((aligned(1), may_alias));

#ifndef __cplusplus /* which does not convert pointers to void by itself */

/* Fold n elements into 32 lanes: element i goes to lane i % 32, for any width of the hardware's vectors. */
static inline __attribute__((always_inline)) void cyx_lanes_add_f64(double *acc, const void *from, int64_t n) {
  const cyx_lane_f64 *p = from;
#if defined(__AVX512F__)
  cyx_lanes_f64 a = -(cyx_lanes_f64){0}, b = a, c = a, d = a, *to = (cyx_lanes_f64 *)acc;
  int64_t i = 0;
  for (; i + 32 <= n; i += 32) {
    const cyx_lanes_f64 *v = (const cyx_lanes_f64 *)(p + i);
    a = a + v[0];
    b = b + v[1];
    c = c + v[2];
    d = d + v[3];
  }
  to[0] = to[0] + a;
  to[1] = to[1] + b;
  to[2] = to[2] + c;
  to[3] = to[3] + d;
#else
  cyx_half_lanes_f64 a = -(cyx_half_lanes_f64){0}, b = a, c = a, d = a, e = a, f = a, g = a, h = a;
  cyx_half_lanes_f64 *to = (cyx_half_lanes_f64 *)acc;
  int64_t i = 0;
  for (; i + 32 <= n; i += 32) {
    const cyx_half_lanes_f64 *v = (const cyx_half_lanes_f64 *)(p + i);
    a = a + v[0];
    b = b + v[1];
    c = c + v[2];
    d = d + v[3];
    e = e + v[4];
    f = f + v[5];
    g = g + v[6];
    h = h + v[7];
  }
  to[0] = to[0] + a;
  to[1] = to[1] + b;
  to[2] = to[2] + c;
  to[3] = to[3] + d;
  to[4] = to[4] + e;
  to[5] = to[5] + f;
  to[6] = to[6] + g;
  to[7] = to[7] + h;
#endif
  for (int64_t j = 0; j < n % 32; ++j) acc[j] = acc[j] + p[i + j];
}

#endif

/* Permute a vector: lane i goes to lane i ^ x. */
#if defined(__clang__)
#define CYX_SWAP_F64(v, x) __builtin_shufflevector(v, v, 0 ^ (x), 1 ^ (x), 2 ^ (x), 3 ^ (x), 4 ^ (x), 5 ^ (x), 6 ^ (x), 7 ^ (x))
#else
typedef int64_t cyx_swap_f64 __attribute__((vector_size(64)));
#define CYX_SWAP_F64(v, x) __builtin_shuffle(v, (cyx_swap_f64){0 ^ (x), 1 ^ (x), 2 ^ (x), 3 ^ (x), 4 ^ (x), 5 ^ (x), 6 ^ (x), 7 ^ (x)})
#endif

static inline __attribute__((always_inline)) double cyx_fold_add_f64(double *acc) {
  const cyx_lanes_f64 *v = (const cyx_lanes_f64 *)acc;
  cyx_lanes_f64 a = (v[0] + v[2]) + (v[1] + v[3]);
  a = a + CYX_SWAP_F64(a, 4);
  a = a + CYX_SWAP_F64(a, 2);
  a = a + CYX_SWAP_F64(a, 1);
  return a[0];
}

#ifndef __cplusplus /* which does not convert pointers to void by itself */

/* Fold n elements into 32 lanes: element i goes to lane i % 32, for any width of the hardware's vectors. */
static inline __attribute__((always_inline)) void cyx_lanes_multiply_f64(double *acc, const void *from, int64_t n) {
  const cyx_lane_f64 *p = from;
#if defined(__AVX512F__)
  cyx_lanes_f64 a = (cyx_lanes_f64){0} + 1, b = a, c = a, d = a, *to = (cyx_lanes_f64 *)acc;
  int64_t i = 0;
  for (; i + 32 <= n; i += 32) {
    const cyx_lanes_f64 *v = (const cyx_lanes_f64 *)(p + i);
    a = a * v[0];
    b = b * v[1];
    c = c * v[2];
    d = d * v[3];
  }
  to[0] = to[0] * a;
  to[1] = to[1] * b;
  to[2] = to[2] * c;
  to[3] = to[3] * d;
#else
  cyx_half_lanes_f64 a = (cyx_half_lanes_f64){0} + 1, b = a, c = a, d = a, e = a, f = a, g = a, h = a;
  cyx_half_lanes_f64 *to = (cyx_half_lanes_f64 *)acc;
  int64_t i = 0;
  for (; i + 32 <= n; i += 32) {
    const cyx_half_lanes_f64 *v = (const cyx_half_lanes_f64 *)(p + i);
    a = a * v[0];
    b = b * v[1];
    c = c * v[2];
    d = d * v[3];
    e = e * v[4];
    f = f * v[5];
    g = g * v[6];
    h = h * v[7];
  }
  to[0] = to[0] * a;
  to[1] = to[1] * b;
  to[2] = to[2] * c;
  to[3] = to[3] * d;
  to[4] = to[4] * e;
  to[5] = to[5] * f;
  to[6] = to[6] * g;
  to[7] = to[7] * h;
#endif
  for (int64_t j = 0; j < n % 32; ++j) acc[j] = acc[j] * p[i + j];
}

#endif

static inline __attribute__((always_inline)) double cyx_fold_multiply_f64(double *acc) {
  const cyx_lanes_f64 *v = (const cyx_lanes_f64 *)acc;
  cyx_lanes_f64 a = (v[0] * v[2]) * (v[1] * v[3]);
  a = a * CYX_SWAP_F64(a, 4);
  a = a * CYX_SWAP_F64(a, 2);
  a = a * CYX_SWAP_F64(a, 1);
  return a[0];
}

typedef uint8_t cyx_tile_1_item __attribute__((aligned(1), may_alias));

#ifndef __cplusplus /* which does not convert pointers to void by itself */

static inline void cyx_tile_1(void *to, int64_t to_step, const void *from, int64_t step, int64_t rows, int64_t columns) {
  uint8_t *t = to;
  const cyx_tile_1_item *f = from;
  for (int64_t k = 0; k < columns; ++k)
    for (int64_t r = 0; r < rows; ++r) t[r * to_step + k] = f[k * step + r];
}

#endif

typedef uint16_t cyx_tile_2_item __attribute__((aligned(1), may_alias));

#ifndef __cplusplus /* which does not convert pointers to void by itself */

static inline void cyx_tile_2(void *to, int64_t to_step, const void *from, int64_t step, int64_t rows, int64_t columns) {
  uint16_t *t = to;
  const cyx_tile_2_item *f = from;
  for (int64_t k = 0; k < columns; ++k)
    for (int64_t r = 0; r < rows; ++r) t[r * to_step + k] = f[k * step + r];
}

#endif

typedef uint32_t cyx_tile_4_item __attribute__((aligned(1), may_alias));

/* Transpose a square of one vector's width: row i of the target is column i of the source, for the widest vectors. */
#if defined(__AVX512F__)
#define CYX_SQUARE_4 16
#define CYX_SHUFFLE_4(a, b, ...) __builtin_shufflevector(a, b, __VA_ARGS__)
typedef uint32_t cyx_square_4_vector __attribute__((vector_size(64), aligned(1), may_alias));
static inline __attribute__((always_inline)) void cyx_square_4(uint32_t *to, int64_t to_step, const cyx_tile_4_item *from, int64_t step) {
  cyx_square_4_vector v0 = *(const cyx_square_4_vector *)(from + 0 * step), w0;
  cyx_square_4_vector v1 = *(const cyx_square_4_vector *)(from + 1 * step), w1;
  cyx_square_4_vector v2 = *(const cyx_square_4_vector *)(from + 2 * step), w2;
  cyx_square_4_vector v3 = *(const cyx_square_4_vector *)(from + 3 * step), w3;
  cyx_square_4_vector v4 = *(const cyx_square_4_vector *)(from + 4 * step), w4;
  cyx_square_4_vector v5 = *(const cyx_square_4_vector *)(from + 5 * step), w5;
  cyx_square_4_vector v6 = *(const cyx_square_4_vector *)(from + 6 * step), w6;
  cyx_square_4_vector v7 = *(const cyx_square_4_vector *)(from + 7 * step), w7;
  cyx_square_4_vector v8 = *(const cyx_square_4_vector *)(from + 8 * step), w8;
  cyx_square_4_vector v9 = *(const cyx_square_4_vector *)(from + 9 * step), w9;
  cyx_square_4_vector v10 = *(const cyx_square_4_vector *)(from + 10 * step), w10;
  cyx_square_4_vector v11 = *(const cyx_square_4_vector *)(from + 11 * step), w11;
  cyx_square_4_vector v12 = *(const cyx_square_4_vector *)(from + 12 * step), w12;
  cyx_square_4_vector v13 = *(const cyx_square_4_vector *)(from + 13 * step), w13;
  cyx_square_4_vector v14 = *(const cyx_square_4_vector *)(from + 14 * step), w14;
  cyx_square_4_vector v15 = *(const cyx_square_4_vector *)(from + 15 * step), w15;
  w0 = CYX_SHUFFLE_4(v0, v8, 0, 1, 2, 3, 4, 5, 6, 7, 16, 17, 18, 19, 20, 21, 22, 23);
  w8 = CYX_SHUFFLE_4(v0, v8, 8, 9, 10, 11, 12, 13, 14, 15, 24, 25, 26, 27, 28, 29, 30, 31);
  w1 = CYX_SHUFFLE_4(v1, v9, 0, 1, 2, 3, 4, 5, 6, 7, 16, 17, 18, 19, 20, 21, 22, 23);
  w9 = CYX_SHUFFLE_4(v1, v9, 8, 9, 10, 11, 12, 13, 14, 15, 24, 25, 26, 27, 28, 29, 30, 31);
  w2 = CYX_SHUFFLE_4(v2, v10, 0, 1, 2, 3, 4, 5, 6, 7, 16, 17, 18, 19, 20, 21, 22, 23);
  w10 = CYX_SHUFFLE_4(v2, v10, 8, 9, 10, 11, 12, 13, 14, 15, 24, 25, 26, 27, 28, 29, 30, 31);
  w3 = CYX_SHUFFLE_4(v3, v11, 0, 1, 2, 3, 4, 5, 6, 7, 16, 17, 18, 19, 20, 21, 22, 23);
  w11 = CYX_SHUFFLE_4(v3, v11, 8, 9, 10, 11, 12, 13, 14, 15, 24, 25, 26, 27, 28, 29, 30, 31);
  w4 = CYX_SHUFFLE_4(v4, v12, 0, 1, 2, 3, 4, 5, 6, 7, 16, 17, 18, 19, 20, 21, 22, 23);
  w12 = CYX_SHUFFLE_4(v4, v12, 8, 9, 10, 11, 12, 13, 14, 15, 24, 25, 26, 27, 28, 29, 30, 31);
  w5 = CYX_SHUFFLE_4(v5, v13, 0, 1, 2, 3, 4, 5, 6, 7, 16, 17, 18, 19, 20, 21, 22, 23);
  w13 = CYX_SHUFFLE_4(v5, v13, 8, 9, 10, 11, 12, 13, 14, 15, 24, 25, 26, 27, 28, 29, 30, 31);
  w6 = CYX_SHUFFLE_4(v6, v14, 0, 1, 2, 3, 4, 5, 6, 7, 16, 17, 18, 19, 20, 21, 22, 23);
  w14 = CYX_SHUFFLE_4(v6, v14, 8, 9, 10, 11, 12, 13, 14, 15, 24, 25, 26, 27, 28, 29, 30, 31);
  w7 = CYX_SHUFFLE_4(v7, v15, 0, 1, 2, 3, 4, 5, 6, 7, 16, 17, 18, 19, 20, 21, 22, 23);
  w15 = CYX_SHUFFLE_4(v7, v15, 8, 9, 10, 11, 12, 13, 14, 15, 24, 25, 26, 27, 28, 29, 30, 31);
  v0 = CYX_SHUFFLE_4(w0, w4, 0, 1, 2, 3, 16, 17, 18, 19, 8, 9, 10, 11, 24, 25, 26, 27);
  v4 = CYX_SHUFFLE_4(w0, w4, 4, 5, 6, 7, 20, 21, 22, 23, 12, 13, 14, 15, 28, 29, 30, 31);
  v1 = CYX_SHUFFLE_4(w1, w5, 0, 1, 2, 3, 16, 17, 18, 19, 8, 9, 10, 11, 24, 25, 26, 27);
  v5 = CYX_SHUFFLE_4(w1, w5, 4, 5, 6, 7, 20, 21, 22, 23, 12, 13, 14, 15, 28, 29, 30, 31);
  v2 = CYX_SHUFFLE_4(w2, w6, 0, 1, 2, 3, 16, 17, 18, 19, 8, 9, 10, 11, 24, 25, 26, 27);
  v6 = CYX_SHUFFLE_4(w2, w6, 4, 5, 6, 7, 20, 21, 22, 23, 12, 13, 14, 15, 28, 29, 30, 31);
  v3 = CYX_SHUFFLE_4(w3, w7, 0, 1, 2, 3, 16, 17, 18, 19, 8, 9, 10, 11, 24, 25, 26, 27);
  v7 = CYX_SHUFFLE_4(w3, w7, 4, 5, 6, 7, 20, 21, 22, 23, 12, 13, 14, 15, 28, 29, 30, 31);
  v8 = CYX_SHUFFLE_4(w8, w12, 0, 1, 2, 3, 16, 17, 18, 19, 8, 9, 10, 11, 24, 25, 26, 27);
  v12 = CYX_SHUFFLE_4(w8, w12, 4, 5, 6, 7, 20, 21, 22, 23, 12, 13, 14, 15, 28, 29, 30, 31);
  v9 = CYX_SHUFFLE_4(w9, w13, 0, 1, 2, 3, 16, 17, 18, 19, 8, 9, 10, 11, 24, 25, 26, 27);
  v13 = CYX_SHUFFLE_4(w9, w13, 4, 5, 6, 7, 20, 21, 22, 23, 12, 13, 14, 15, 28, 29, 30, 31);
  v10 = CYX_SHUFFLE_4(w10, w14, 0, 1, 2, 3, 16, 17, 18, 19, 8, 9, 10, 11, 24, 25, 26, 27);
  v14 = CYX_SHUFFLE_4(w10, w14, 4, 5, 6, 7, 20, 21, 22, 23, 12, 13, 14, 15, 28, 29, 30, 31);
  v11 = CYX_SHUFFLE_4(w11, w15, 0, 1, 2, 3, 16, 17, 18, 19, 8, 9, 10, 11, 24, 25, 26, 27);
  v15 = CYX_SHUFFLE_4(w11, w15, 4, 5, 6, 7, 20, 21, 22, 23, 12, 13, 14, 15, 28, 29, 30, 31);
  w0 = CYX_SHUFFLE_4(v0, v2, 0, 1, 16, 17, 4, 5, 20, 21, 8, 9, 24, 25, 12, 13, 28, 29);
  w2 = CYX_SHUFFLE_4(v0, v2, 2, 3, 18, 19, 6, 7, 22, 23, 10, 11, 26, 27, 14, 15, 30, 31);
  w1 = CYX_SHUFFLE_4(v1, v3, 0, 1, 16, 17, 4, 5, 20, 21, 8, 9, 24, 25, 12, 13, 28, 29);
  w3 = CYX_SHUFFLE_4(v1, v3, 2, 3, 18, 19, 6, 7, 22, 23, 10, 11, 26, 27, 14, 15, 30, 31);
  w4 = CYX_SHUFFLE_4(v4, v6, 0, 1, 16, 17, 4, 5, 20, 21, 8, 9, 24, 25, 12, 13, 28, 29);
  w6 = CYX_SHUFFLE_4(v4, v6, 2, 3, 18, 19, 6, 7, 22, 23, 10, 11, 26, 27, 14, 15, 30, 31);
  w5 = CYX_SHUFFLE_4(v5, v7, 0, 1, 16, 17, 4, 5, 20, 21, 8, 9, 24, 25, 12, 13, 28, 29);
  w7 = CYX_SHUFFLE_4(v5, v7, 2, 3, 18, 19, 6, 7, 22, 23, 10, 11, 26, 27, 14, 15, 30, 31);
  w8 = CYX_SHUFFLE_4(v8, v10, 0, 1, 16, 17, 4, 5, 20, 21, 8, 9, 24, 25, 12, 13, 28, 29);
  w10 = CYX_SHUFFLE_4(v8, v10, 2, 3, 18, 19, 6, 7, 22, 23, 10, 11, 26, 27, 14, 15, 30, 31);
  w9 = CYX_SHUFFLE_4(v9, v11, 0, 1, 16, 17, 4, 5, 20, 21, 8, 9, 24, 25, 12, 13, 28, 29);
  w11 = CYX_SHUFFLE_4(v9, v11, 2, 3, 18, 19, 6, 7, 22, 23, 10, 11, 26, 27, 14, 15, 30, 31);
  w12 = CYX_SHUFFLE_4(v12, v14, 0, 1, 16, 17, 4, 5, 20, 21, 8, 9, 24, 25, 12, 13, 28, 29);
  w14 = CYX_SHUFFLE_4(v12, v14, 2, 3, 18, 19, 6, 7, 22, 23, 10, 11, 26, 27, 14, 15, 30, 31);
  w13 = CYX_SHUFFLE_4(v13, v15, 0, 1, 16, 17, 4, 5, 20, 21, 8, 9, 24, 25, 12, 13, 28, 29);
  w15 = CYX_SHUFFLE_4(v13, v15, 2, 3, 18, 19, 6, 7, 22, 23, 10, 11, 26, 27, 14, 15, 30, 31);
  v0 = CYX_SHUFFLE_4(w0, w1, 0, 16, 2, 18, 4, 20, 6, 22, 8, 24, 10, 26, 12, 28, 14, 30);
  v1 = CYX_SHUFFLE_4(w0, w1, 1, 17, 3, 19, 5, 21, 7, 23, 9, 25, 11, 27, 13, 29, 15, 31);
  v2 = CYX_SHUFFLE_4(w2, w3, 0, 16, 2, 18, 4, 20, 6, 22, 8, 24, 10, 26, 12, 28, 14, 30);
  v3 = CYX_SHUFFLE_4(w2, w3, 1, 17, 3, 19, 5, 21, 7, 23, 9, 25, 11, 27, 13, 29, 15, 31);
  v4 = CYX_SHUFFLE_4(w4, w5, 0, 16, 2, 18, 4, 20, 6, 22, 8, 24, 10, 26, 12, 28, 14, 30);
  v5 = CYX_SHUFFLE_4(w4, w5, 1, 17, 3, 19, 5, 21, 7, 23, 9, 25, 11, 27, 13, 29, 15, 31);
  v6 = CYX_SHUFFLE_4(w6, w7, 0, 16, 2, 18, 4, 20, 6, 22, 8, 24, 10, 26, 12, 28, 14, 30);
  v7 = CYX_SHUFFLE_4(w6, w7, 1, 17, 3, 19, 5, 21, 7, 23, 9, 25, 11, 27, 13, 29, 15, 31);
  v8 = CYX_SHUFFLE_4(w8, w9, 0, 16, 2, 18, 4, 20, 6, 22, 8, 24, 10, 26, 12, 28, 14, 30);
  v9 = CYX_SHUFFLE_4(w8, w9, 1, 17, 3, 19, 5, 21, 7, 23, 9, 25, 11, 27, 13, 29, 15, 31);
  v10 = CYX_SHUFFLE_4(w10, w11, 0, 16, 2, 18, 4, 20, 6, 22, 8, 24, 10, 26, 12, 28, 14, 30);
  v11 = CYX_SHUFFLE_4(w10, w11, 1, 17, 3, 19, 5, 21, 7, 23, 9, 25, 11, 27, 13, 29, 15, 31);
  v12 = CYX_SHUFFLE_4(w12, w13, 0, 16, 2, 18, 4, 20, 6, 22, 8, 24, 10, 26, 12, 28, 14, 30);
  v13 = CYX_SHUFFLE_4(w12, w13, 1, 17, 3, 19, 5, 21, 7, 23, 9, 25, 11, 27, 13, 29, 15, 31);
  v14 = CYX_SHUFFLE_4(w14, w15, 0, 16, 2, 18, 4, 20, 6, 22, 8, 24, 10, 26, 12, 28, 14, 30);
  v15 = CYX_SHUFFLE_4(w14, w15, 1, 17, 3, 19, 5, 21, 7, 23, 9, 25, 11, 27, 13, 29, 15, 31);
  *(cyx_square_4_vector *)(to + 0 * to_step) = v0;
  *(cyx_square_4_vector *)(to + 1 * to_step) = v1;
  *(cyx_square_4_vector *)(to + 2 * to_step) = v2;
  *(cyx_square_4_vector *)(to + 3 * to_step) = v3;
  *(cyx_square_4_vector *)(to + 4 * to_step) = v4;
  *(cyx_square_4_vector *)(to + 5 * to_step) = v5;
  *(cyx_square_4_vector *)(to + 6 * to_step) = v6;
  *(cyx_square_4_vector *)(to + 7 * to_step) = v7;
  *(cyx_square_4_vector *)(to + 8 * to_step) = v8;
  *(cyx_square_4_vector *)(to + 9 * to_step) = v9;
  *(cyx_square_4_vector *)(to + 10 * to_step) = v10;
  *(cyx_square_4_vector *)(to + 11 * to_step) = v11;
  *(cyx_square_4_vector *)(to + 12 * to_step) = v12;
  *(cyx_square_4_vector *)(to + 13 * to_step) = v13;
  *(cyx_square_4_vector *)(to + 14 * to_step) = v14;
  *(cyx_square_4_vector *)(to + 15 * to_step) = v15;
}
#else
#define CYX_SQUARE_4 8
#define CYX_SHUFFLE_4(a, b, ...) __builtin_shufflevector(a, b, __VA_ARGS__)
typedef uint32_t cyx_square_4_vector __attribute__((vector_size(32), aligned(1), may_alias));
static inline __attribute__((always_inline)) void cyx_square_4(uint32_t *to, int64_t to_step, const cyx_tile_4_item *from, int64_t step) {
  cyx_square_4_vector v0 = *(const cyx_square_4_vector *)(from + 0 * step), w0;
  cyx_square_4_vector v1 = *(const cyx_square_4_vector *)(from + 1 * step), w1;
  cyx_square_4_vector v2 = *(const cyx_square_4_vector *)(from + 2 * step), w2;
  cyx_square_4_vector v3 = *(const cyx_square_4_vector *)(from + 3 * step), w3;
  cyx_square_4_vector v4 = *(const cyx_square_4_vector *)(from + 4 * step), w4;
  cyx_square_4_vector v5 = *(const cyx_square_4_vector *)(from + 5 * step), w5;
  cyx_square_4_vector v6 = *(const cyx_square_4_vector *)(from + 6 * step), w6;
  cyx_square_4_vector v7 = *(const cyx_square_4_vector *)(from + 7 * step), w7;
  w0 = CYX_SHUFFLE_4(v0, v4, 0, 1, 2, 3, 8, 9, 10, 11);
  w4 = CYX_SHUFFLE_4(v0, v4, 4, 5, 6, 7, 12, 13, 14, 15);
  w1 = CYX_SHUFFLE_4(v1, v5, 0, 1, 2, 3, 8, 9, 10, 11);
  w5 = CYX_SHUFFLE_4(v1, v5, 4, 5, 6, 7, 12, 13, 14, 15);
  w2 = CYX_SHUFFLE_4(v2, v6, 0, 1, 2, 3, 8, 9, 10, 11);
  w6 = CYX_SHUFFLE_4(v2, v6, 4, 5, 6, 7, 12, 13, 14, 15);
  w3 = CYX_SHUFFLE_4(v3, v7, 0, 1, 2, 3, 8, 9, 10, 11);
  w7 = CYX_SHUFFLE_4(v3, v7, 4, 5, 6, 7, 12, 13, 14, 15);
  v0 = CYX_SHUFFLE_4(w0, w2, 0, 1, 8, 9, 4, 5, 12, 13);
  v2 = CYX_SHUFFLE_4(w0, w2, 2, 3, 10, 11, 6, 7, 14, 15);
  v1 = CYX_SHUFFLE_4(w1, w3, 0, 1, 8, 9, 4, 5, 12, 13);
  v3 = CYX_SHUFFLE_4(w1, w3, 2, 3, 10, 11, 6, 7, 14, 15);
  v4 = CYX_SHUFFLE_4(w4, w6, 0, 1, 8, 9, 4, 5, 12, 13);
  v6 = CYX_SHUFFLE_4(w4, w6, 2, 3, 10, 11, 6, 7, 14, 15);
  v5 = CYX_SHUFFLE_4(w5, w7, 0, 1, 8, 9, 4, 5, 12, 13);
  v7 = CYX_SHUFFLE_4(w5, w7, 2, 3, 10, 11, 6, 7, 14, 15);
  w0 = CYX_SHUFFLE_4(v0, v1, 0, 8, 2, 10, 4, 12, 6, 14);
  w1 = CYX_SHUFFLE_4(v0, v1, 1, 9, 3, 11, 5, 13, 7, 15);
  w2 = CYX_SHUFFLE_4(v2, v3, 0, 8, 2, 10, 4, 12, 6, 14);
  w3 = CYX_SHUFFLE_4(v2, v3, 1, 9, 3, 11, 5, 13, 7, 15);
  w4 = CYX_SHUFFLE_4(v4, v5, 0, 8, 2, 10, 4, 12, 6, 14);
  w5 = CYX_SHUFFLE_4(v4, v5, 1, 9, 3, 11, 5, 13, 7, 15);
  w6 = CYX_SHUFFLE_4(v6, v7, 0, 8, 2, 10, 4, 12, 6, 14);
  w7 = CYX_SHUFFLE_4(v6, v7, 1, 9, 3, 11, 5, 13, 7, 15);
  *(cyx_square_4_vector *)(to + 0 * to_step) = w0;
  *(cyx_square_4_vector *)(to + 1 * to_step) = w1;
  *(cyx_square_4_vector *)(to + 2 * to_step) = w2;
  *(cyx_square_4_vector *)(to + 3 * to_step) = w3;
  *(cyx_square_4_vector *)(to + 4 * to_step) = w4;
  *(cyx_square_4_vector *)(to + 5 * to_step) = w5;
  *(cyx_square_4_vector *)(to + 6 * to_step) = w6;
  *(cyx_square_4_vector *)(to + 7 * to_step) = w7;
}
#endif

#ifndef __cplusplus /* which does not convert pointers to void by itself */

/* to[r][k] = from[k][r] for r < rows, k < columns; rows of the target are to_step apart, those of the source step. */
static inline void cyx_tile_4(void *to, int64_t to_step, const void *from, int64_t step, int64_t rows, int64_t columns) {
  uint32_t *t = to;
  const cyx_tile_4_item *f = from;
  const int64_t whole_rows = rows / CYX_SQUARE_4 * CYX_SQUARE_4, whole_columns = columns / CYX_SQUARE_4 * CYX_SQUARE_4;
  for (int64_t k = 0; k < whole_columns; k += CYX_SQUARE_4)
    for (int64_t r = 0; r < whole_rows; r += CYX_SQUARE_4) cyx_square_4(t + r * to_step + k, to_step, f + k * step + r, step);
  for (int64_t k = 0; k < columns; ++k)
    for (int64_t r = k < whole_columns ? whole_rows : 0; r < rows; ++r) t[r * to_step + k] = f[k * step + r];
}

#endif

typedef uint64_t cyx_tile_8_item __attribute__((aligned(1), may_alias));

/* Transpose a square of one vector's width: row i of the target is column i of the source, for the widest vectors. */
#if defined(__AVX512F__)
#define CYX_SQUARE_8 8
#define CYX_SHUFFLE_8(a, b, ...) __builtin_shufflevector(a, b, __VA_ARGS__)
typedef uint64_t cyx_square_8_vector __attribute__((vector_size(64), aligned(1), may_alias));
static inline __attribute__((always_inline)) void cyx_square_8(uint64_t *to, int64_t to_step, const cyx_tile_8_item *from, int64_t step) {
  cyx_square_8_vector v0 = *(const cyx_square_8_vector *)(from + 0 * step), w0;
  cyx_square_8_vector v1 = *(const cyx_square_8_vector *)(from + 1 * step), w1;
  cyx_square_8_vector v2 = *(const cyx_square_8_vector *)(from + 2 * step), w2;
  cyx_square_8_vector v3 = *(const cyx_square_8_vector *)(from + 3 * step), w3;
  cyx_square_8_vector v4 = *(const cyx_square_8_vector *)(from + 4 * step), w4;
  cyx_square_8_vector v5 = *(const cyx_square_8_vector *)(from + 5 * step), w5;
  cyx_square_8_vector v6 = *(const cyx_square_8_vector *)(from + 6 * step), w6;
  cyx_square_8_vector v7 = *(const cyx_square_8_vector *)(from + 7 * step), w7;
  w0 = CYX_SHUFFLE_8(v0, v4, 0, 1, 2, 3, 8, 9, 10, 11);
  w4 = CYX_SHUFFLE_8(v0, v4, 4, 5, 6, 7, 12, 13, 14, 15);
  w1 = CYX_SHUFFLE_8(v1, v5, 0, 1, 2, 3, 8, 9, 10, 11);
  w5 = CYX_SHUFFLE_8(v1, v5, 4, 5, 6, 7, 12, 13, 14, 15);
  w2 = CYX_SHUFFLE_8(v2, v6, 0, 1, 2, 3, 8, 9, 10, 11);
  w6 = CYX_SHUFFLE_8(v2, v6, 4, 5, 6, 7, 12, 13, 14, 15);
  w3 = CYX_SHUFFLE_8(v3, v7, 0, 1, 2, 3, 8, 9, 10, 11);
  w7 = CYX_SHUFFLE_8(v3, v7, 4, 5, 6, 7, 12, 13, 14, 15);
  v0 = CYX_SHUFFLE_8(w0, w2, 0, 1, 8, 9, 4, 5, 12, 13);
  v2 = CYX_SHUFFLE_8(w0, w2, 2, 3, 10, 11, 6, 7, 14, 15);
  v1 = CYX_SHUFFLE_8(w1, w3, 0, 1, 8, 9, 4, 5, 12, 13);
  v3 = CYX_SHUFFLE_8(w1, w3, 2, 3, 10, 11, 6, 7, 14, 15);
  v4 = CYX_SHUFFLE_8(w4, w6, 0, 1, 8, 9, 4, 5, 12, 13);
  v6 = CYX_SHUFFLE_8(w4, w6, 2, 3, 10, 11, 6, 7, 14, 15);
  v5 = CYX_SHUFFLE_8(w5, w7, 0, 1, 8, 9, 4, 5, 12, 13);
  v7 = CYX_SHUFFLE_8(w5, w7, 2, 3, 10, 11, 6, 7, 14, 15);
  w0 = CYX_SHUFFLE_8(v0, v1, 0, 8, 2, 10, 4, 12, 6, 14);
  w1 = CYX_SHUFFLE_8(v0, v1, 1, 9, 3, 11, 5, 13, 7, 15);
  w2 = CYX_SHUFFLE_8(v2, v3, 0, 8, 2, 10, 4, 12, 6, 14);
  w3 = CYX_SHUFFLE_8(v2, v3, 1, 9, 3, 11, 5, 13, 7, 15);
  w4 = CYX_SHUFFLE_8(v4, v5, 0, 8, 2, 10, 4, 12, 6, 14);
  w5 = CYX_SHUFFLE_8(v4, v5, 1, 9, 3, 11, 5, 13, 7, 15);
  w6 = CYX_SHUFFLE_8(v6, v7, 0, 8, 2, 10, 4, 12, 6, 14);
  w7 = CYX_SHUFFLE_8(v6, v7, 1, 9, 3, 11, 5, 13, 7, 15);
  *(cyx_square_8_vector *)(to + 0 * to_step) = w0;
  *(cyx_square_8_vector *)(to + 1 * to_step) = w1;
  *(cyx_square_8_vector *)(to + 2 * to_step) = w2;
  *(cyx_square_8_vector *)(to + 3 * to_step) = w3;
  *(cyx_square_8_vector *)(to + 4 * to_step) = w4;
  *(cyx_square_8_vector *)(to + 5 * to_step) = w5;
  *(cyx_square_8_vector *)(to + 6 * to_step) = w6;
  *(cyx_square_8_vector *)(to + 7 * to_step) = w7;
}
#else
#define CYX_SQUARE_8 4
#define CYX_SHUFFLE_8(a, b, ...) __builtin_shufflevector(a, b, __VA_ARGS__)
typedef uint64_t cyx_square_8_vector __attribute__((vector_size(32), aligned(1), may_alias));
static inline __attribute__((always_inline)) void cyx_square_8(uint64_t *to, int64_t to_step, const cyx_tile_8_item *from, int64_t step) {
  cyx_square_8_vector v0 = *(const cyx_square_8_vector *)(from + 0 * step), w0;
  cyx_square_8_vector v1 = *(const cyx_square_8_vector *)(from + 1 * step), w1;
  cyx_square_8_vector v2 = *(const cyx_square_8_vector *)(from + 2 * step), w2;
  cyx_square_8_vector v3 = *(const cyx_square_8_vector *)(from + 3 * step), w3;
  w0 = CYX_SHUFFLE_8(v0, v2, 0, 1, 4, 5);
  w2 = CYX_SHUFFLE_8(v0, v2, 2, 3, 6, 7);
  w1 = CYX_SHUFFLE_8(v1, v3, 0, 1, 4, 5);
  w3 = CYX_SHUFFLE_8(v1, v3, 2, 3, 6, 7);
  v0 = CYX_SHUFFLE_8(w0, w1, 0, 4, 2, 6);
  v1 = CYX_SHUFFLE_8(w0, w1, 1, 5, 3, 7);
  v2 = CYX_SHUFFLE_8(w2, w3, 0, 4, 2, 6);
  v3 = CYX_SHUFFLE_8(w2, w3, 1, 5, 3, 7);
  *(cyx_square_8_vector *)(to + 0 * to_step) = v0;
  *(cyx_square_8_vector *)(to + 1 * to_step) = v1;
  *(cyx_square_8_vector *)(to + 2 * to_step) = v2;
  *(cyx_square_8_vector *)(to + 3 * to_step) = v3;
}
#endif

#ifndef __cplusplus /* which does not convert pointers to void by itself */

/* to[r][k] = from[k][r] for r < rows, k < columns; rows of the target are to_step apart, those of the source step. */
static inline void cyx_tile_8(void *to, int64_t to_step, const void *from, int64_t step, int64_t rows, int64_t columns) {
  uint64_t *t = to;
  const cyx_tile_8_item *f = from;
  const int64_t whole_rows = rows / CYX_SQUARE_8 * CYX_SQUARE_8, whole_columns = columns / CYX_SQUARE_8 * CYX_SQUARE_8;
  for (int64_t k = 0; k < whole_columns; k += CYX_SQUARE_8)
    for (int64_t r = 0; r < whole_rows; r += CYX_SQUARE_8) cyx_square_8(t + r * to_step + k, to_step, f + k * step + r, step);
  for (int64_t k = 0; k < columns; ++k)
    for (int64_t r = k < whole_columns ? whole_rows : 0; r < rows; ++r) t[r * to_step + k] = f[k * step + r];
}

#endif

typedef struct { uint64_t a, b; } cyx_tile_16_pair;

typedef cyx_tile_16_pair cyx_tile_16_item __attribute__((aligned(1)));

#ifndef __cplusplus /* which does not convert pointers to void by itself */

static inline void cyx_tile_16(void *to, int64_t to_step, const void *from, int64_t step, int64_t rows, int64_t columns) {
  cyx_tile_16_pair *t = to;
  const cyx_tile_16_item *f = from;
  for (int64_t k = 0; k < columns; ++k)
    for (int64_t r = 0; r < rows; ++r) t[r * to_step + k] = f[k * step + r];
}

#endif

#pragma GCC diagnostic pop

#endif
