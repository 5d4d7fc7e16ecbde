/* Element-wise operations in blocks of constant length: tasks of a kernel, around a function that does a block.
 *
 * A template: define the parameters and include it, any number of times; it undefines them.
 *   MAP_PREFIX  prefix of all names; the entry point is `prefix_run(bufs, begin, end, operands, sizes, block)`.
 *               `block` computes a block from the operands in `in`; its type is `prefix_block`
 *   MAP_BLOCK   elements of a block; the elements behind the last block are copied to buffers of this length
 *
 * The numbers: elements of the result, elements of a task; for each operand 1, or 0 if it is one element for all. The
 * sizes are the bytes of an element of each operand, of which there are at most three, then of the result.
 */
#include "../../abi.h"
#include "../../compiler.h"
#include "../../prebuilt.h"

#define MAP(name) CYX_JOIN(MAP_PREFIX, name)
typedef void (*MAP(block))(const char *const *in, char *out);

static cyx_status MAP(run)(void *const *bufs, int64_t begin, int64_t end, int operands, const int *sizes,
                           MAP(block) block) {
  const int64_t *numbers = CYX_NUMBERS(bufs), *steps = numbers + 2;
  const int64_t first = begin * numbers[1], last = end * numbers[1] < numbers[0] ? end * numbers[1] : numbers[0];
  char same[3][MAP_BLOCK * 16] __attribute__((aligned(64))), rest[4][MAP_BLOCK * 16] __attribute__((aligned(64)));
  const char *in[3];
  const int size = sizes[3];
  char *const out = bufs[operands];
  for (int o = 0; o < operands; ++o)
    for (int k = 0; k < MAP_BLOCK && !steps[o]; ++k)
      __builtin_memcpy(same[o] + k * sizes[o], bufs[o], (unsigned long)sizes[o]);
  int64_t at = first;
  for (; at + MAP_BLOCK <= last; at += MAP_BLOCK) {
    for (int o = 0; o < operands; ++o) in[o] = steps[o] ? (const char *)bufs[o] + at * sizes[o] : same[o];
    block(in, out + at * size);
  }
  if (at == last) return CYX_OK;
  const unsigned long left = (unsigned long)(last - at);
  for (int o = 0; o < operands; ++o) {
    if (steps[o]) {
      __builtin_memset(rest[o], 0, sizeof rest[o]);
      __builtin_memcpy(rest[o], (const char *)bufs[o] + at * sizes[o], left * (unsigned long)sizes[o]);
    }
    in[o] = steps[o] ? rest[o] : same[o];
  }
  block(in, rest[3]);
  __builtin_memcpy(out + at * size, rest[3], left * (unsigned long)size);
  return CYX_OK;
}

#undef MAP_PREFIX
#undef MAP_BLOCK
