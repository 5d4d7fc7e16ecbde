// How a running program notices Ctrl-C, and cancel().
#pragma once

#include "runtime.h"

namespace cyxla {

cyx_status poll(const cyx_ctx *ctx) noexcept;
int on_main_thread() noexcept;
void poll_init();  // on the main thread's behalf, with the GIL

}  // namespace cyxla
