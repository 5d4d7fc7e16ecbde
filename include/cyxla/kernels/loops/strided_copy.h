/* Copies of elements with strides, such as broadcasts, transposes and slices: a kernel.
 *
 * A template: define the parameters and include it, any number of times; it undefines them.
 *   COPY_PREFIX    prefix of all names; the entry point is `prefix_run(numbers, bufs, begin, end)`
 *   COPY_BYTES     width of an element in bytes: 1, 2, 4, 8 or 16
 *   COPY_MAX_RANK  the largest number of loops
 *   COPY_TRANSPOSE  function that transposes a tile, such as cyx_tile_8
 *
 * The numbers: the offsets of the first elements in the operand and in the result, the number of loops, the tasks that
 * share the outermost one; then for each loop, the outermost first, its length, its stride in the operand and its
 * stride in the result, in elements.
 */
#include "../../abi.h"
#include "../../compiler.h"

#define COPY(name) CYX_JOIN(COPY_PREFIX, name)
#define COPY_ITEM COPY(item)
#define COPY_TILE 16 /* rows and columns of a tile: lines of both sides fit the L1 cache */
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

/* The two innermost loops, of which the outer one has neighbours in the operand and the inner one in the result. */
static void COPY(turn)(COPY_ITEM *to, int64_t out, const COPY_ITEM *from, int64_t in, int64_t rows, int64_t n) {
  for (int64_t r = 0; r < rows; r += COPY_TILE)
    for (int64_t c = 0; c < n; c += COPY_TILE) {
      const int64_t last_row = rows - r < COPY_TILE ? rows : r + COPY_TILE;
      const int64_t last = n - c < COPY_TILE ? n : c + COPY_TILE;
      COPY_TRANSPOSE(to + r * out + c, out, from + c * in + r, in, last_row - r, last - c);
    }
}

static cyx_status COPY(run)(const int64_t *numbers, void *const *bufs, int64_t begin, int64_t end) {
  const int64_t loops = numbers[2], *loop = numbers + 4, tasks = numbers[3];
  const int64_t first = loop[0] * begin / tasks, last = loop[0] * end / tasks;
  const COPY_ITEM *from = (const COPY_ITEM *)bufs[0] + numbers[0] + first * loop[1];
  COPY_ITEM *to = (COPY_ITEM *)bufs[1] + numbers[1] + first * loop[2];
  int64_t counters[COPY_MAX_RANK] = {0};
  const int64_t *innermost = loop + 3 * (loops - 1), *second = innermost - 3;
  const int turns = loops > 1 && second[1] == 1 && innermost[1] != 1 && innermost[2] == 1;
  const int64_t outer = loops - 1 - turns; /* loops around the row or the turn */
  if (first == last) return CYX_OK;
  for (;;) {
    const int64_t rows = outer ? second[0] : last - first;
    if (turns)
      COPY(turn)(to, second[2], from, innermost[1], rows, innermost[0]);
    else
      COPY(row)(to, innermost[2], from, innermost[1], loops > 1 ? innermost[0] : last - first);
    int64_t d = outer - 1;
    for (; d >= 0; --d) {
      const int64_t length = d ? loop[3 * d] : last - first;
      from += loop[3 * d + 1];
      to += loop[3 * d + 2];
      if (++counters[d] < length) break;
      from -= length * loop[3 * d + 1];
      to -= length * loop[3 * d + 2];
      counters[d] = 0;
    }
    if (d < 0) return CYX_OK;
  }
}

#undef COPY_PREFIX
#undef COPY_BYTES
#undef COPY_MAX_RANK
#undef COPY_TRANSPOSE
#undef COPY_TILE
