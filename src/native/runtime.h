/* What the C++ side offers to the launcher: one table of functions, handed over in a capsule, so that no call goes
 * through Python. */
#ifndef CYXLA_RUNTIME_H
#define CYXLA_RUNTIME_H

#include <stddef.h>

#include "cyxla/abi.h"

#define CYX_ABANDONED -1 /* of a watched run: nothing of it may be touched */
#define CYX_RUNTIME_CAPSULE "cyxla._native._rt.runtime"

/* The context of one call: what generated code sees, then what only poll() reads. */
typedef struct {
  cyx_ctx ctx;
  const uint32_t *cancel_epoch; /* moves when somebody cancels the calls that are under way */
  uint32_t epoch;               /* where it stood when this call began */
  int64_t next_check;           /* clock of the next look at the signals; 0 before the first poll */
  uint32_t stop;                /* set where this call alone is to end */
} cyx_call;

typedef struct {
  uint32_t size; /* of this struct, checked by the launcher */
  /* 64-byte aligned memory, or NULL. Give it back with the same number of bytes. */
  void *(*acquire)(size_t bytes);
  void (*release)(void *block, size_t bytes);
  cyx_status (*parallel_for)(const cyx_ctx *ctx, cyx_kernel kernel, void *const *bufs, int64_t tasks);
  cyx_status (*poll)(const cyx_ctx *ctx);
  int (*on_main_thread)(void);
  /* See watched.hpp; `keep` is a PyObject, or NULL. */
  cyx_status (*run_watched)(cyx_entry entry, void *const *bufs, size_t count, cyx_call *call, size_t arena_bytes, void *keep);
} cyx_runtime;

#endif
