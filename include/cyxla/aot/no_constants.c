/* Constants of a library that has none. */
#include "runtime.h"

const char *CYX_AOT(constants)(void) { return ""; }
