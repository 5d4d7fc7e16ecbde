// The pool behind parallel_for.
//
// One region at a time: a caller that finds the pool taken, and a call from inside a task, runs its tasks itself.
// Chunks of tasks are claimed from one counter, the caller claims too, and waits only for workers that have joined,
// so a worker that the system has not scheduled yet costs nothing. One that loses its CPU later on gets the caller's.
// Idle workers spin for a moment, then park.
#pragma once

#include "runtime.h"

namespace cyxla {

cyx_status parallel_for(const cyx_ctx *ctx, cyx_kernel kernel, void *const *bufs, int64_t tasks) noexcept;

int thread_count() noexcept;             // the caller included
void set_thread_count(int n) noexcept;   // at least 1; workers start when first needed
int started_workers() noexcept;
class Pool;
Pool *forsake_pool() noexcept;           // whoever comes next gets a pool of its own
void retire(Pool *pool) noexcept;        // end its threads, when it is free
void threads_init();                     // once: makes the pool survive fork

}  // namespace cyxla
