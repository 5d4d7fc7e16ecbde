// Thread pool of parallel_for.
//
// It runs one region at a time: a caller that finds the pool busy runs its tasks itself, and so does a task.
// Each thread, the caller included, claims chunks of tasks of a share of its own, the same one each time, then those
// that others have left of theirs. The caller waits only for workers that have joined, so that a worker which is not
// scheduled yet costs nothing; one that loses its CPU later gets the caller's.
// Idle workers spin for a moment, then park.
#pragma once

#include "runtime.h"

namespace cyxla {

cyx_status parallel_for(const cyx_ctx *ctx, cyx_kernel kernel, void *const *bufs, int64_t tasks) noexcept;

int thread_count() noexcept;             // with the caller
void set_thread_count(int n) noexcept;   // at least 1; workers start when first needed
int started_workers() noexcept;
class Pool;
Pool *detach_pool() noexcept;           // later callers get a new pool
void shut_down(Pool *pool) noexcept;        // ends its threads when it is free
void threads_init();                     // once; installs the fork handler

}  // namespace cyxla
