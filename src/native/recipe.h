/* Programs that only call prebuilt kernels: a list of numbers that every call interprets.
 *
 * RECIPE_MAGIC, the digest of the kernels' library, the count of all numbers, the count of steps; then the steps:
 *   RECIPE_COPY, target, source, bytes
 *   RECIPE_CALL, function, tasks, phases, n, n buffer references, m, m numbers of the kernel
 *   RECIPE_CHAIN, calls, tasks, 0: the calls that follow make each task one after the other, while it is in a cache.
 *     The last n numbers of these are the bytes of a task in the temporaries that nothing reads after the chain, and
 *     otherwise 0: consecutive tasks use the same memory of such a buffer
 * A buffer reference is 2 * offset into the arena, or 2 * index of a buffer of the call + 1.
 */
#ifndef CYXLA_RECIPE_H
#define CYXLA_RECIPE_H

#include "cyxla/abi.h"

#define RECIPE_MAGIC 0x31657069636572ll /* "recipe1" in the bytes of a file */
#define RECIPE_HEAD 4
#define RECIPE_COPY 0
#define RECIPE_CALL 1
#define RECIPE_CHAIN 2
#define RECIPE_BUFFERS 32 /* buffers of one kernel, its phase included */
#define RECIPE_POLL 16    /* short steps between two polls for cancellation */
#define RECIPE_LINKS 16   /* calls of a chain */
#define RECIPE_OPERANDS 4 /* buffers of a call in a chain */

/* Return whether numbers are a valid recipe for a library of so many functions, which `run_recipe` requires. */
static inline int check_recipe(const int64_t *r, int64_t size, int64_t digest, int64_t functions) {
  if (size < RECIPE_HEAD || r[0] != RECIPE_MAGIC || r[1] != digest || r[2] != size || r[3] < 0) return 0;
  int64_t position = RECIPE_HEAD, links = 0, tasks = 0; /* that are left in a chain, and its tasks */
  for (int64_t k = 0; k < r[3]; ++k) {
    if (position + 4 > size) return 0;
    if (links && r[position] != RECIPE_CALL) return 0;
    if (r[position] == RECIPE_CHAIN) {
      links = r[position + 1], tasks = r[position + 2];
      if (links < 1 || links > RECIPE_LINKS || links > r[3] - k - 1) return 0;
    }
    if (r[position] == RECIPE_COPY || r[position] == RECIPE_CHAIN) {
      position += 4;
      continue;
    }
    if (position + 6 > size) return 0;
    if (links && (r[position + 2] != tasks || r[position + 3] != 1 || r[position + 4] > RECIPE_OPERANDS)) return 0;
    const int64_t n = r[position + 4];
    if (r[position] != RECIPE_CALL || r[position + 1] < 0 || r[position + 1] >= functions) return 0;
    if (r[position + 2] < 1 || r[position + 3] < 1) return 0;
    if (n < 0 || n >= RECIPE_BUFFERS || n >= size - position - 5) return 0;
    const int64_t m = r[position + 5 + n];
    if (m < (links ? n : 0) || m > size - position - 6 - n) return 0;
    if (links) --links;
    position += 6 + n + m;
  }
  return position == size;
}

static inline void *recipe_pointer(void *const *bufs, const cyx_ctx *ctx, int64_t reference) {
  return reference & 1 ? bufs[reference >> 1] : ctx->arena + (reference >> 1);
}

typedef struct {
  cyx_kernel kernel;
  int64_t n;
  void *buffers[RECIPE_OPERANDS + 1]; /* after the numbers of the kernel */
  const int64_t *task_bytes;
} recipe_link;

typedef struct {
  int64_t count;
  recipe_link links[RECIPE_LINKS];
} recipe_chain;

/* Kernel that calls those of a chain in turn for each task. */
static cyx_status run_links(void *const *bufs, int64_t begin, int64_t end) {
  const recipe_chain *chain = bufs[0];
  for (int64_t task = begin; task < end; ++task) {
    for (int64_t k = 0; k < chain->count; ++k) {
      const recipe_link *link = &chain->links[k];
      void *buffers[RECIPE_OPERANDS + 1] = {link->buffers[0]};
      for (int64_t i = 0; i < link->n; ++i)
        buffers[i + 1] = (char *)link->buffers[i + 1] - (task - begin) * link->task_bytes[i];
      const cyx_status s = link->kernel(buffers + 1, task, task + 1);
      if (s) return s;
    }
  }
  return CYX_OK;
}

/* Run a chain, and return its end. */
static const int64_t *run_chain(const int64_t *r, void *const *bufs, const cyx_ctx *ctx, cyx_status *status) {
  recipe_chain chain;
  void *const argument = &chain;
  const int64_t tasks = r[2];
  chain.count = r[1];
  r += 4;
  for (int64_t k = 0; k < chain.count; ++k) {
    recipe_link *link = &chain.links[k];
    const int64_t n = r[4];
    link->n = n;
    link->kernel = (cyx_kernel)((void *const *)ctx->functions[1])[r[1]];
    link->buffers[0] = (void *)(r + 6 + n);
    for (int64_t i = 0; i < n; ++i) link->buffers[i + 1] = recipe_pointer(bufs, ctx, r[5 + i]);
    r += 6 + n + r[5 + n];
    link->task_bytes = r - n;
  }
  *status = ctx->parallel_for(ctx, run_links, &argument, tasks);
  if (!*status) *status = ctx->poll(ctx);
  return r;
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
    if (r[0] == RECIPE_CHAIN) {
      cyx_status s;
      k += r[1];
      r = run_chain(r, bufs, ctx, &s);
      if (s) return s;
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
