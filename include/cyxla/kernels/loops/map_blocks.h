/* Element-wise operations in blocks of constant length: tasks of a kernel, around a function that does several blocks.
 *
 * A template: define the parameters and include it, any number of times; it undefines them.
 *   MAP_PREFIX  prefix of all names; the entry point is `prefix_run(bufs, begin, end, operands, sizes, function)`.
 *               `function` computes blocks from the operands in `in`, which are `steps` bytes apart; its type is
 *               `prefix_function`
 *   MAP_BLOCK   elements of a block; shorter rows are copied to buffers of this length
 *
 * The numbers: elements of the result, elements of a task; the number of loops over the result and their lengths, the
 * last one that of a row; for each operand the index of its first element and its strides in these loops, of which the
 * last one is 1, or 0 for one element in all of a row. The sizes are the bytes of an element of each operand, of which
 * there are at most three, then of the result.
 */
#include "../../abi.h"
#include "../../compiler.h"
#include "../../prebuilt.h"

#define MAP(name) CYX_JOIN(MAP_PREFIX, name)
typedef void (*MAP(function))(const char *const *in, char *out, int64_t blocks, const int64_t *steps);

/* Fill a block with one element. */
#define MAP_FILL(bits)                                                         \
  static void MAP(fill_##bits)(char *to, const char *from) {                   \
    typedef uint##bits##_t item __attribute__((aligned(1), may_alias));        \
    for (int k = 0; k < MAP_BLOCK; ++k) ((item *)to)[k] = *(const item *)from; \
  }
MAP_FILL(8)
MAP_FILL(16)
MAP_FILL(32)
MAP_FILL(64)
#undef MAP_FILL

static void MAP(fill)(char *to, const char *from, int size) {
  if (size == 1) MAP(fill_8)(to, from);
  if (size == 2) MAP(fill_16)(to, from);
  if (size == 4) MAP(fill_32)(to, from);
  if (size == 8) MAP(fill_64)(to, from);
  for (int k = 0; k < MAP_BLOCK && size == 16; ++k) __builtin_memcpy(to + 16 * k, from, 16);
}

/* Compute less than a block by way of buffers. */
static void MAP(rest)(const char *const *from, char *out, int64_t count, int operands, const int *sizes,
                      const int64_t *steps, MAP(function) function) {
  char rest[4][MAP_BLOCK * 16] __attribute__((aligned(64)));
  const char *in[3];
  for (int o = 0; o < operands; ++o) {
    in[o] = steps[o] ? rest[o] : from[o];
    if (!steps[o]) continue;
    __builtin_memset(rest[o], 0, sizeof rest[o]);
    __builtin_memcpy(rest[o], from[o], (unsigned long)(count * sizes[o]));
  }
  function(in, rest[3], 1, steps);
  __builtin_memcpy(out, rest[3], (unsigned long)(count * sizes[3]));
}

/* Compute a part of a row. Elements behind the last whole block are the end of a block that overlaps it, unless an
   operand is overwritten. */
static void MAP(part)(const char *const *from, char *out, int64_t count, int operands, const int *sizes,
                      const int64_t *steps, int overwrites, MAP(function) function) {
  const int64_t blocks = count / MAP_BLOCK, whole = blocks * MAP_BLOCK;
  const int64_t next = count > MAP_BLOCK && !overwrites ? count - MAP_BLOCK : whole;
  const char *in[3];
  if (blocks) function(from, out, blocks, steps);
  if (whole == count) return;
  for (int o = 0; o < operands; ++o) in[o] = steps[o] ? from[o] + next * sizes[o] : from[o];
  if (next < whole)
    function(in, out + next * sizes[3], 1, steps);
  else
    MAP(rest)(in, out + next * sizes[3], count - next, operands, sizes, steps, function);
}

/* Return the index of an operand's element at the start of a row. `read` is its first index, then its strides. */
static int64_t MAP(start)(const int64_t *read, const int64_t *lengths, int64_t loops, int64_t row) {
  int64_t index = read[0];
  for (int64_t l = loops - 2; l >= 0; --l) {
    index += row % lengths[l] * read[1 + l];
    row /= lengths[l];
  }
  return index;
}

static cyx_status MAP(run)(void *const *bufs, int64_t begin, int64_t end, int operands, const int *sizes,
                           MAP(function) function) {
  const int64_t *numbers = CYX_NUMBERS(bufs), loops = numbers[2], *lengths = numbers + 3;
  const int64_t length = lengths[loops - 1], *reads = lengths + loops;
  const int64_t first = begin * numbers[1], last = end * numbers[1] < numbers[0] ? end * numbers[1] : numbers[0];
  char same[3][MAP_BLOCK * 16] __attribute__((aligned(64)));
  const char *in[3], *filled[3] = {0, 0, 0};
  char *const out = bufs[operands];
  int64_t steps[3];
  int overwrites = 0;
  for (int o = 0; o < operands; ++o) {
    steps[o] = reads[o * (loops + 1) + loops] * MAP_BLOCK * sizes[o];
    overwrites |= bufs[o] == (void *)out;
  }
  for (int64_t at = first, count; at < last; at += count) {
    const int64_t row = at / length, column = at - row * length;
    count = length - column < last - at ? length - column : last - at;
    for (int o = 0; o < operands; ++o) {
      const int64_t start = MAP(start)(reads + o * (loops + 1), lengths, loops, row);
      in[o] = (const char *)bufs[o] + (start + (steps[o] ? column : 0)) * sizes[o];
      if (steps[o]) continue;
      if (in[o] != filled[o]) MAP(fill)(same[o], in[o], sizes[o]);
      filled[o] = in[o];
      in[o] = same[o];
    }
    MAP(part)(in, out + at * sizes[3], count, operands, sizes, steps, overwrites, function);
  }
  return CYX_OK;
}

#undef MAP_PREFIX
#undef MAP_BLOCK
