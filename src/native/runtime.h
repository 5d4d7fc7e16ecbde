/* Table of functions of the C++ runtime for the launcher, passed in a capsule, so that no call goes through Python. */
#ifndef CYXLA_RUNTIME_H
#define CYXLA_RUNTIME_H

#include <stddef.h>

#include "cyxla/abi.h"

#define CYX_ABANDONED -1 /* status of a watched run that still uses its buffers */
#define CYX_RUNTIME_CAPSULE "cyxla._native._rt.runtime"

/* Context of one call: the part that generated code reads, then the part that only poll() reads. */
typedef struct {
  cyx_ctx ctx;
  const uint32_t *cancel_epoch; /* incremented to cancel all running calls */
  uint32_t epoch;               /* its value when this call began */
  int64_t next_check;           /* time of the next check for signals; 0 before the first poll */
  uint32_t stop;                /* set to cancel this call alone */
} cyx_call;

typedef struct {
  uint32_t size; /* size of this struct, checked by the launcher */
  size_t small_pages; /* flag of a number of bytes, see `kSmallPages` in blocks.hpp */
  /* 64-byte aligned memory, or NULL; it is released with the same number of bytes. */
  void *(*acquire)(size_t bytes);
  void (*release)(void *block, size_t bytes);
  int (*discard)(void *block, size_t bytes, size_t keep); /* see `block_discard` in blocks.hpp */
  cyx_status (*parallel_for)(const cyx_ctx *ctx, cyx_kernel kernel, void *const *bufs, int64_t tasks);
  cyx_status (*poll)(const cyx_ctx *ctx);
  int (*on_main_thread)(void);
  /* See watched.hpp; `keep` is a PyObject or NULL. */
  cyx_status (*run_watched)(cyx_entry entry, void *const *bufs, size_t count, cyx_call *call, size_t arena_request, void *keep);
} cyx_runtime;

#endif
