// Programs that may work for long without a poll: a thread of their own runs them, so that the main thread sees Ctrl-C.
#pragma once

#include "runtime.h"

namespace cyxla {

// With the GIL, on the main thread: run an entry and give its status. Where a signal handler raises, the entry is asked
// to stop; one that does not within a moment is abandoned: CYX_ABANDONED is returned, the arena is given back and `keep`
// (a PyObject) let go when it has ended. Without `keep` it is waited for.
cyx_status run_watched(cyx_entry entry, void *const *bufs, size_t count, cyx_call *call, size_t arena_bytes, void *keep) noexcept;

int abandoned_runs() noexcept;  // that have not ended
void count_abandoned(int runs) noexcept;
void watched_init();            // once: for forks, and for processes that end meanwhile

}  // namespace cyxla
