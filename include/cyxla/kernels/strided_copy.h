/* Copies of elements with strides, such as broadcasts, transposes and slices: a kernel.
 *
 * A template: define the parameters and include it, any number of times; it undefines them.
 *   COPY_PREFIX    prefix of all names; the entry point is `prefix_run(numbers, bufs)`
 *   COPY_BYTES     width of an element in bytes: 1, 2, 4, 8 or 16
 *   COPY_MAX_RANK  the largest number of loops
 *
 * The numbers: the offsets of the first elements in the operand and in the result, the number of loops; then for each
 * loop, the outermost first, its length, its stride in the operand and its stride in the result, in elements.
 */
#include "../abi.h"
#include "../compiler.h"

#define COPY(name) CYX_JOIN(COPY_PREFIX, name)
#define COPY_ITEM COPY(item)
#if COPY_BYTES == 1
typedef uint8_t COPY_ITEM __attribute__((aligned(1), may_alias));
#elif COPY_BYTES == 2
typedef uint16_t COPY_ITEM __attribute__((aligned(1), may_alias));
#elif COPY_BYTES == 4
typedef uint32_t COPY_ITEM __attribute__((aligned(1), may_alias));
#elif COPY_BYTES == 8
typedef uint64_t COPY_ITEM __attribute__((aligned(1), may_alias));
#else
typedef struct {
  uint64_t a, b;
} COPY_ITEM __attribute__((aligned(1)));
#endif

static void COPY(row)(COPY_ITEM *to, int64_t out, const COPY_ITEM *from, int64_t in, int64_t n) {
  if (in == 1 && out == 1) {
    __builtin_memcpy(to, from, (unsigned long)n * COPY_BYTES);
    return;
  }
  for (int64_t k = 0; k < n; ++k) to[k * out] = from[k * in];
}

static cyx_status COPY(run)(const int64_t *numbers, void *const *bufs) {
  const int64_t loops = numbers[2], *loop = numbers + 3;
  const COPY_ITEM *from = (const COPY_ITEM *)bufs[0] + numbers[0];
  COPY_ITEM *to = (COPY_ITEM *)bufs[1] + numbers[1];
  int64_t counters[COPY_MAX_RANK] = {0};
  const int64_t *innermost = loop + 3 * (loops - 1);
  for (;;) {
    COPY(row)(to, innermost[2], from, innermost[1], innermost[0]);
    int64_t d = loops - 2;
    for (; d >= 0; --d) {
      from += loop[3 * d + 1];
      to += loop[3 * d + 2];
      if (++counters[d] < loop[3 * d]) break;
      from -= loop[3 * d] * loop[3 * d + 1];
      to -= loop[3 * d] * loop[3 * d + 2];
      counters[d] = 0;
    }
    if (d < 0) return CYX_OK;
  }
}

#undef COPY_PREFIX
#undef COPY_BYTES
#undef COPY_MAX_RANK
