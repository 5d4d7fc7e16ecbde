/* Prebuilt functions of the package, for calls from generated code.
 *
 * A sequence of blocks separated by blank lines; generated code pastes those that it names. Needs abi.h.
 *
 * Internal: generated code pastes blocks of it; it may change with every version.
 */
#ifndef CYXLA_PREBUILT_H
#define CYXLA_PREBUILT_H

#include "abi.h"

/* Table of the functions. A loader of a library with this symbol sets it before the first call. */
CYX_EXPORT __attribute__((weak)) void *const *cyx_prebuilt;

/* Sizes, strides .. of a prebuilt kernel, an array before its buffers. */
#define CYX_NUMBERS(bufs) ((const int64_t *)(bufs)[-1])

#endif
