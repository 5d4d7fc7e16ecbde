/* What the loops of generated code need around the arithmetic: memory types, streaming stores, tile transposes.
 *
 * A sequence of blocks separated by blank lines, one definition each; generated code pastes the blocks it names and what they need.
 * Needs abi.h for the integer types.
 */

/* Copy a block past the caches; plain copy where the place is not aligned or the target has no such stores. */
#if defined(__AVX512F__) && !defined(__clang__)
typedef double cyx_stream_vector __attribute__((vector_size(64), may_alias));
#define CYX_STREAM_ONE(to, from) __builtin_ia32_movntpd512((double *)(to), from)
#elif defined(__AVX__) && !defined(__clang__)
typedef double cyx_stream_vector __attribute__((vector_size(32), may_alias));
#define CYX_STREAM_ONE(to, from) __builtin_ia32_movntpd256((double *)(to), from)
#elif defined(__clang__)
typedef double cyx_stream_vector __attribute__((vector_size(32), may_alias));
#define CYX_STREAM_ONE(to, from) __builtin_nontemporal_store(from, (cyx_stream_vector *)(to))
#else
typedef double cyx_stream_vector __attribute__((vector_size(16), may_alias));
#define CYX_STREAM_ONE(to, from) (*(cyx_stream_vector *)(to) = (from))
#endif
static inline __attribute__((always_inline)) void cyx_stream(void *to, const void *from, int64_t bytes) {
  if ((uint64_t)to % sizeof(cyx_stream_vector) || bytes % (int64_t)sizeof(cyx_stream_vector)) {
    __builtin_memcpy(to, from, (unsigned long)bytes);
    return;
  }
  for (int64_t i = 0; i < bytes; i += (int64_t)sizeof(cyx_stream_vector))
    CYX_STREAM_ONE((char *)to + i, *(const cyx_stream_vector *)((const char *)from + i));
}

/* Order streaming stores before whatever tells others that they are done. */
static inline void cyx_stream_end(void) { __sync_synchronize(); }
