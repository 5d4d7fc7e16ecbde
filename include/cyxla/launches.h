/* Sequences of kernel calls as tables, which compile in a fraction of the time of statements.
 *
 * A sequence of blocks separated by blank lines; generated code pastes those that it names. Needs abi.h.
 *
 * Internal: generated code pastes blocks of it; it may change with every version.
 */
#ifndef CYXLA_LAUNCHES_H
#define CYXLA_LAUNCHES_H

#include "abi.h"

/* One call of a kernel. `test`, if not negative, is its number in the function that tells whether the work of a call is
 * too little for several threads. */
typedef struct {
  cyx_kernel kernel;
  int64_t test;
  int64_t tasks, phases;
  int64_t buffers; /* number of its buffers */
} cyx_launch;

/* Words for the buffers of launches: an offset in the arena, or a number, above the bits that tell which. The number of
 * a buffer has 21 bits, and above them an offset in bytes. */
#define CYX_ARENA(offset) ((int64_t)(offset) << 3)
#define CYX_BUFFER(number) CYX_INSIDE(number, 0)
#define CYX_INSIDE(number, offset) ((int64_t)(offset) << 24 | (int64_t)(number) << 3 | 1)
#define CYX_FUNCTION(number) ((int64_t)(number) << 3 | 2)
#define CYX_CONTEXT 3
#define CYX_PHASE 4

/* Make `count` launches in order. `words` has their buffers, one launch after the other; `b` has room for the most, and
 * `is_short` tells of each test whether it holds. */
static __attribute__((noinline, unused)) cyx_status cyx_launch_all(const cyx_launch *launches, int64_t count,
                                                           int (*is_short)(int64_t test, void *const *bufs),
                                                           const int64_t *words, void **b, void *const *bufs,
                                                           const cyx_ctx *ctx) {
  for (const cyx_launch *launch = launches; launch < launches + count; ++launch) {
    int64_t phase;
    for (int64_t i = 0; i < launch->buffers; ++i) {
      const int64_t at = *words >> 3;
      switch (*words++ & 7) {
        case CYX_ARENA(0): b[i] = ctx->arena + at; break;
        case CYX_BUFFER(0): b[i] = (char *)bufs[at & 0x1fffff] + (at >> 21); break;
        case CYX_FUNCTION(0): b[i] = ctx->functions[at]; break;
        case CYX_CONTEXT: b[i] = (void *)ctx; break;
        default: b[i] = &phase;
      }
    }
    for (phase = 0; phase < launch->phases; ++phase) {
      const int is_alone = launch->tasks == 1 || (launch->test >= 0 && is_short(launch->test, b));
      const cyx_status s = is_alone ? launch->kernel(b, 0, launch->tasks)
                                    : ctx->parallel_for(ctx, launch->kernel, b, launch->tasks);
      if (s) return s;
    }
  }
  return CYX_OK;
}

#endif
