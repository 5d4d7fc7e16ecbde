/* Reductions of the middle dimension of an array of three, one element after the other: a kernel.
 *
 * A template: define the parameters and include it, any number of times; it undefines them.
 *   REDUCE_NAME           name of the kernel
 *   REDUCE_MEMORY         type of elements in memory
 *   REDUCE_LOCAL          type of locals
 *   REDUCE_LOAD(m)        a local of an element in memory
 *   REDUCE_STORE(x)       an element in memory of a local
 *   REDUCE_COMBINE(x, y)  the combiner, of locals
 *   REDUCE_UNIT           first value of a sum along rows, perhaps `initial`
 *   REDUCE_RESULT         element in memory of `initial` and the sum along a row, `x`
 *
 * The numbers: the dimensions. Buffers: the operand, the initial value, the result.
 */
#include "../../abi.h"
#include "../../compiler.h"
#include "../../prebuilt.h"

cyx_status REDUCE_NAME(void *const *bufs, int64_t begin, int64_t end) {
  const int64_t *numbers = CYX_NUMBERS(bufs), reduced = numbers[1], inner = numbers[2];
  const REDUCE_MEMORY *from = bufs[0], *start = bufs[1];
  REDUCE_MEMORY *to = bufs[2];
  const REDUCE_LOCAL initial = REDUCE_LOAD(start[0]);
  (void)begin, (void)end;
  for (int64_t o = 0; o < numbers[0]; ++o, from += reduced * inner, to += inner) {
    if (inner == 1) {
      REDUCE_LOCAL x = REDUCE_UNIT;
      for (int64_t k = 0; k < reduced; ++k) {
        const REDUCE_LOCAL y = REDUCE_LOAD(from[k]);
        x = REDUCE_COMBINE(x, y);
      }
      to[0] = REDUCE_RESULT;
      continue;
    }
    for (int64_t j = 0; j < inner; ++j) to[j] = start[0];
    for (int64_t k = 0; k < reduced; ++k) {
      CYX_INDEPENDENT
      for (int64_t j = 0; j < inner; ++j) {
        const REDUCE_LOCAL x = REDUCE_LOAD(to[j]), y = REDUCE_LOAD(from[k * inner + j]);
        to[j] = REDUCE_STORE(REDUCE_COMBINE(x, y));
      }
    }
  }
  return CYX_OK;
}

#undef REDUCE_NAME
#undef REDUCE_MEMORY
#undef REDUCE_LOCAL
#undef REDUCE_LOAD
#undef REDUCE_STORE
#undef REDUCE_COMBINE
#undef REDUCE_UNIT
#undef REDUCE_RESULT
