/* Functions that come compiled with the package, as generated code calls them.
 *
 * A sequence of blocks separated by blank lines; generated code pastes those that it names. Needs abi.h.
 */

/* The functions by number. Whoever loads a library that has this symbol sets it before the first call. */
CYX_EXPORT __attribute__((weak)) void *const *cyx_prebuilt;

/* The sizes, strides .. of a kernel that is compiled for all of them: they lie before its buffers. */
#define CYX_NUMBERS(bufs) ((const int64_t *)(bufs)[-1])
