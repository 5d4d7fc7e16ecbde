/* Loops over tasks in a library without threads of its own. */
#include "runtime.h"

void CYX_AOT(run_loop)(cyx_aot_loop *loop, const cyx_aot_run *call) { CYX_AOT(work)(loop, call); }
