// Programs that may run for long without a poll: a separate thread runs them, so that the main thread notices Ctrl-C.
#pragma once

#include "runtime.h"

namespace cyxla {

// With the GIL, on the main thread: run an entry and return its status. If a signal handler raises, the entry is
// cancelled; one that does not stop soon is abandoned: CYX_ABANDONED is returned, and the arena and `keep` (a PyObject)
// are released when it has ended. Without `keep`, the call waits for its end.
cyx_status run_watched(cyx_entry entry, void *const *bufs, size_t count, cyx_call *call, size_t arena_request, void *keep) noexcept;

int abandoned_runs() noexcept;  // number of abandoned runs that have not ended
void count_abandoned(int runs) noexcept;
void watched_init();            // once; installs the handlers of fork and exit

}  // namespace cyxla
