/* Sums or products of floats along rows, in the order of lanes: a kernel.
 *
 * A template: define the parameters and include it, any number of times; it undefines them.
 *   REDUCE_NAME           name of the kernel
 *   REDUCE_REAL           type of an element
 *   REDUCE_MEMORY         type of elements in memory
 *   REDUCE_LANES          lanes
 *   REDUCE_UNIT           first value of a lane
 *   REDUCE_ADD            function that combines a row into lanes, such as cyx_lanes_add_f32
 *   REDUCE_FOLD           function that combines the lanes, such as cyx_fold_add_f32
 *   REDUCE_COMBINE(x, y)  the combiner
 *
 * The numbers: rows and their length. Buffers: the operand, the initial value, the result.
 */
#include "../abi.h"
#include "../compiler.h"
#include "../prebuilt.h"

cyx_status REDUCE_NAME(void *const *bufs, int64_t begin, int64_t end) {
  const int64_t *numbers = CYX_NUMBERS(bufs), n = numbers[1];
  const REDUCE_MEMORY *from = bufs[0], *start = bufs[1];
  REDUCE_MEMORY *to = bufs[2];
  (void)begin, (void)end;
  for (int64_t o = 0; o < numbers[0]; ++o, from += n) {
    REDUCE_REAL x[REDUCE_LANES] __attribute__((aligned(64)));
    for (int k = 0; k < REDUCE_LANES; ++k) x[k] = REDUCE_UNIT;
    REDUCE_ADD(x, from, n);
    to[o] = REDUCE_COMBINE(start[0], REDUCE_FOLD(x));
  }
  return CYX_OK;
}

#undef REDUCE_NAME
#undef REDUCE_REAL
#undef REDUCE_MEMORY
#undef REDUCE_LANES
#undef REDUCE_UNIT
#undef REDUCE_ADD
#undef REDUCE_FOLD
#undef REDUCE_COMBINE
