/* Programs that only call prebuilt kernels: a list of numbers that every call interprets.
 *
 * RECIPE_MAGIC, the digest of the kernels' library, the count of all numbers, the count of steps; then the steps:
 *   RECIPE_COPY, target, source, bytes
 *   RECIPE_CALL, function, tasks, phases, n, n buffer references, m, m numbers of the kernel
 * A buffer reference is 2 * offset into the arena, or 2 * index of a buffer of the call + 1.
 */
#ifndef CYXLA_RECIPE_H
#define CYXLA_RECIPE_H

#include "cyxla/abi.h"

#define RECIPE_MAGIC 0x31657069636572ll /* "recipe1" in the bytes of a file */
#define RECIPE_HEAD 4
#define RECIPE_COPY 0
#define RECIPE_CALL 1
#define RECIPE_BUFFERS 32 /* buffers of one kernel, its phase included */
#define RECIPE_POLL 16    /* short steps between two polls for cancellation */

/* Return whether numbers are a valid recipe for a library of so many functions, which `run_recipe` requires. */
static inline int check_recipe(const int64_t *r, int64_t size, int64_t digest, int64_t functions) {
  if (size < RECIPE_HEAD || r[0] != RECIPE_MAGIC || r[1] != digest || r[2] != size || r[3] < 0) return 0;
  int64_t position = RECIPE_HEAD;
  for (int64_t k = 0; k < r[3]; ++k) {
    if (position + 4 > size) return 0;
    if (r[position] == RECIPE_COPY) {
      position += 4;
      continue;
    }
    if (position + 6 > size) return 0;
    const int64_t n = r[position + 4];
    if (r[position] != RECIPE_CALL || r[position + 1] < 0 || r[position + 1] >= functions) return 0;
    if (r[position + 2] < 1 || r[position + 3] < 1) return 0;
    if (n < 0 || n >= RECIPE_BUFFERS || n >= size - position - 5) return 0;
    const int64_t m = r[position + 5 + n];
    if (m < 0 || m > size - position - 6 - n) return 0;
    position += 6 + n + m;
  }
  return position == size;
}

static inline void *recipe_pointer(void *const *bufs, const cyx_ctx *ctx, int64_t reference) {
  return reference & 1 ? bufs[reference >> 1] : ctx->arena + (reference >> 1);
}

/* Entry of a recipe: the first function of the context is the recipe, the second one the table of functions. */
static cyx_status run_recipe(void *const *bufs, const cyx_ctx *ctx) {
  const int64_t *r = ctx->functions[0];
  void *const *functions = ctx->functions[1];
  const int64_t steps = r[3];
  r += RECIPE_HEAD;
  for (int64_t k = 0; k < steps; ++k) {
    if (r[0] == RECIPE_COPY) {
      __builtin_memcpy(recipe_pointer(bufs, ctx, r[1]), recipe_pointer(bufs, ctx, r[2]), (unsigned long)r[3]);
      r += 4;
      continue;
    }
    const cyx_kernel kernel = (cyx_kernel)functions[r[1]];
    const int64_t tasks = r[2], phases = r[3], n = r[4];
    int64_t phase = 0;
    void *all[RECIPE_BUFFERS + 2];
    all[0] = (void *)(r + 6 + n); /* CYX_NUMBERS(bufs) of the kernel */
    for (int64_t i = 0; i < n; ++i) all[i + 1] = recipe_pointer(bufs, ctx, r[5 + i]);
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
