/* Programs that are no more than calls of prebuilt kernels: a list of numbers that is read at every call.
 *
 * RECIPE_MAGIC, the digest of the kernels' library, how many numbers there are in all, how many steps; then the steps:
 *   RECIPE_COPY, target, source, bytes
 *   RECIPE_CALL, function, tasks, phases, n, the places of n buffers, m, m numbers of the kernel
 * A place is twice an offset into the arena, or twice the number of a buffer of the call plus one.
 */
#ifndef CYXLA_RECIPE_H
#define CYXLA_RECIPE_H

#include "cyxla/abi.h"

#define RECIPE_MAGIC 0x31657069636572ll /* "recipe1" in the bytes of a file */
#define RECIPE_HEAD 4
#define RECIPE_COPY 0
#define RECIPE_CALL 1
#define RECIPE_BUFFERS 32 /* of one kernel, with its phase */
#define RECIPE_POLL 16    /* steps between two looks at the caller's wish to stop, where they are short */

/* Whether a recipe of so many numbers is one, for a library of so many functions: nothing in it leads astray `run_recipe`. */
static inline int check_recipe(const int64_t *r, int64_t size, int64_t digest, int64_t functions) {
  if (size < RECIPE_HEAD || r[0] != RECIPE_MAGIC || r[1] != digest || r[2] != size || r[3] < 0) return 0;
  int64_t at = RECIPE_HEAD;
  for (int64_t k = 0; k < r[3]; ++k) {
    if (at + 4 > size) return 0;
    if (r[at] == RECIPE_COPY) {
      at += 4;
      continue;
    }
    if (at + 6 > size) return 0;
    const int64_t n = r[at + 4];
    if (r[at] != RECIPE_CALL || r[at + 1] < 0 || r[at + 1] >= functions || r[at + 2] < 1 || r[at + 3] < 1) return 0;
    if (n < 0 || n >= RECIPE_BUFFERS || n >= size - at - 5) return 0;
    const int64_t m = r[at + 5 + n];
    if (m < 0 || m > size - at - 6 - n) return 0;
    at += 6 + n + m;
  }
  return at == size;
}

static inline void *recipe_place(void *const *bufs, const cyx_ctx *ctx, int64_t place) {
  return place & 1 ? bufs[place >> 1] : ctx->arena + (place >> 1);
}

/* The entry of such programs: the first function of the context is the recipe, the second the table of functions. */
static cyx_status run_recipe(void *const *bufs, const cyx_ctx *ctx) {
  const int64_t *r = ctx->functions[0];
  void *const *functions = ctx->functions[1];
  const int64_t steps = r[3];
  r += RECIPE_HEAD;
  for (int64_t k = 0; k < steps; ++k) {
    if (r[0] == RECIPE_COPY) {
      __builtin_memcpy(recipe_place(bufs, ctx, r[1]), recipe_place(bufs, ctx, r[2]), (unsigned long)r[3]);
      r += 4;
      continue;
    }
    const cyx_kernel kernel = (cyx_kernel)functions[r[1]];
    const int64_t tasks = r[2], phases = r[3], n = r[4];
    int64_t phase = 0;
    void *all[RECIPE_BUFFERS + 2];
    all[0] = (void *)(r + 6 + n); /* where the kernel looks for its numbers */
    for (int64_t i = 0; i < n; ++i) all[i + 1] = recipe_place(bufs, ctx, r[5 + i]);
    all[n + 1] = &phase;
    for (; phase < phases; ++phase) {
      const cyx_status s = tasks == 1 ? kernel(all + 1, 0, 1) : ctx->parallel_for(ctx, kernel, all + 1, tasks);
      if (s) return s;
    }
    if (tasks > 1 || k % RECIPE_POLL == RECIPE_POLL - 1) {
      const cyx_status s = ctx->poll(ctx);
      if (s) return s;
    }
    r += 6 + n + r[5 + n];
  }
  return CYX_OK;
}

#endif
