// Polls of a running program for Ctrl-C and cancel().
#pragma once

#include "runtime.h"

namespace cyxla {

cyx_status poll(const cyx_ctx *ctx) noexcept;
int on_main_thread() noexcept;
void poll_init();  // with the GIL

}  // namespace cyxla
