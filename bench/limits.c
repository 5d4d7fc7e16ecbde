/* What a machine can do at most: multiply-adds in registers, and memory read and copied in a straight line. */
#include <stdint.h>
#include <string.h>

typedef float f32v __attribute__((vector_size(64)));
typedef double f64v __attribute__((vector_size(64)));

#define EACH(X) X(0) X(1) X(2) X(3) X(4) X(5) X(6) X(7) X(8) X(9) X(10) X(11) X(12) X(13) X(14) X(15)
#define START(K) a##K = zero + K;
#define NAME(K) a##K,
#define STEP(K) a##K = a##K * x + y;
#define TOTAL(K) zero += a##K;

/* Sixteen sums of their own hide the latency of a multiply-add; each turn is 32 operations a lane. */
#define PEAK(FUNCTION, T, V)                                        \
  double FUNCTION(int64_t turns) {                                  \
    V zero = {0}, EACH(NAME) x, y;                                  \
    EACH(START)                                                     \
    x = zero + (T)0.999;                                            \
    y = zero + (T)1e-3;                                             \
    for (int64_t k = 0; k < turns; ++k) {                           \
      EACH(STEP)                                                    \
      __asm__ volatile("" : "+x"(x));                               \
    }                                                               \
    EACH(TOTAL)                                                     \
    return zero[0];                                                 \
  }

PEAK(peak_f32, float, f32v)
PEAK(peak_f64, double, f64v)

double read_all(const float *from, int64_t n) {
  f32v s0 = {0}, s1 = {0}, s2 = {0}, s3 = {0};
  for (int64_t k = 0; k + 64 <= n; k += 64) {
    const f32v *p = (const f32v *)(from + k);
    s0 += p[0], s1 += p[1], s2 += p[2], s3 += p[3];
  }
  s0 += s1 + s2 + s3;
  return s0[0];
}

void copy_cached(float *to, const float *from, int64_t n) { memcpy(to, from, n * sizeof(float)); }

/* Past the caches: a line that is written whole need not be read first. */
void copy_streamed(float *to, const float *from, int64_t n) {
#if defined(__AVX512F__)
  typedef long long words __attribute__((vector_size(64)));
  for (int64_t k = 0; k + 16 <= n; k += 16)
    __builtin_ia32_movntdq512((words *)(to + k), *(const words *)(from + k));
#elif defined(__AVX__)
  typedef long long words __attribute__((vector_size(32)));
  for (int64_t k = 0; k + 8 <= n; k += 8)
    __builtin_ia32_movntdq256((words *)(to + k), *(const words *)(from + k));
#else
  memcpy(to, from, n * sizeof(float));
#endif
}
