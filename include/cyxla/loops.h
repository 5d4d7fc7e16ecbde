/* What the loops of generated code need around the arithmetic: memory types, streaming stores, tile transposes.
 *
 * A sequence of blocks separated by blank lines, one definition each; generated code pastes the blocks it names and what they need.
 * Needs abi.h for the integer types.
 */

/* Copy a block past the caches; plain copy where the place is not aligned or the target has no such stores. */
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
static inline __attribute__((always_inline)) void cyx_stream(void *to, const void *from, int64_t bytes) {
  if ((uint64_t)to % sizeof(cyx_stream_vector) || bytes % (int64_t)sizeof(cyx_stream_vector)) {
    __builtin_memcpy(to, from, (unsigned long)bytes);
    return;
  }
  for (int64_t i = 0; i < bytes; i += (int64_t)sizeof(cyx_stream_vector))
    CYX_STREAM_ONE((char *)to + i, *(const cyx_stream_vector *)((const char *)from + i));
}

/* Order streaming stores before whatever tells others that they are done. */
static inline void cyx_stream_end(void) { __sync_synchronize(); }

/* Back from the order-preserving integers of cyx_total_f32 and cyx_total_f64. */
static inline float cyx_from_total_f32(int32_t k) { return cyx_from_bits_f32((uint32_t)k ^ ((uint32_t)(k >> 31) >> 1)); }

static inline double cyx_from_total_f64(int64_t k) { return cyx_from_bits_f64((uint64_t)k ^ ((uint64_t)(k >> 63) >> 1)); }

typedef float cyx_lanes_f32 __attribute__((vector_size(64), aligned(1), may_alias));

typedef float cyx_lane_f32 __attribute__((aligned(1), may_alias));

/* Fold n elements into 64 lanes: element i goes to lane i % 64, whatever the width of the hardware's vectors. */
static inline __attribute__((always_inline)) void cyx_lanes_add_f32(float *acc, const void *from, int64_t n) {
  const cyx_lane_f32 *p = from;
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
  for (int64_t j = i; j < n; ++j) acc[j - i] = acc[j - i] + p[j];
}

static inline float cyx_fold_add_f32(float *acc) {
  for (int w = 32; w >= 1; w /= 2)
    for (int j = 0; j < w; ++j) acc[j] = acc[j] + acc[j + w];
  return acc[0];
}

/* Fold n elements into 64 lanes: element i goes to lane i % 64, whatever the width of the hardware's vectors. */
static inline __attribute__((always_inline)) void cyx_lanes_multiply_f32(float *acc, const void *from, int64_t n) {
  const cyx_lane_f32 *p = from;
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
  for (int64_t j = i; j < n; ++j) acc[j - i] = acc[j - i] * p[j];
}

static inline float cyx_fold_multiply_f32(float *acc) {
  for (int w = 32; w >= 1; w /= 2)
    for (int j = 0; j < w; ++j) acc[j] = acc[j] * acc[j + w];
  return acc[0];
}

typedef double cyx_lanes_f64 __attribute__((vector_size(64), aligned(1), may_alias));

typedef double cyx_lane_f64 __attribute__((aligned(1), may_alias));

/* Fold n elements into 32 lanes: element i goes to lane i % 32, whatever the width of the hardware's vectors. */
static inline __attribute__((always_inline)) void cyx_lanes_add_f64(double *acc, const void *from, int64_t n) {
  const cyx_lane_f64 *p = from;
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
  for (int64_t j = i; j < n; ++j) acc[j - i] = acc[j - i] + p[j];
}

static inline double cyx_fold_add_f64(double *acc) {
  for (int w = 16; w >= 1; w /= 2)
    for (int j = 0; j < w; ++j) acc[j] = acc[j] + acc[j + w];
  return acc[0];
}

/* Fold n elements into 32 lanes: element i goes to lane i % 32, whatever the width of the hardware's vectors. */
static inline __attribute__((always_inline)) void cyx_lanes_multiply_f64(double *acc, const void *from, int64_t n) {
  const cyx_lane_f64 *p = from;
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
  for (int64_t j = i; j < n; ++j) acc[j - i] = acc[j - i] * p[j];
}

static inline double cyx_fold_multiply_f64(double *acc) {
  for (int w = 16; w >= 1; w /= 2)
    for (int j = 0; j < w; ++j) acc[j] = acc[j] * acc[j + w];
  return acc[0];
}
