/* Constants that are part of the library. */
#include "runtime.h"

__attribute__((visibility("hidden"))) extern const uint64_t CYX_AOT_DATA[];

const char *CYX_AOT(constants)(void) { return (const char *)CYX_AOT_DATA; }
