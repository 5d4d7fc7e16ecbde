/* Interface between generated code and its callers: the launcher and custom calls.
 *
 * Generated C includes no system header, since parsing one takes longer than compiling a kernel. Fields of cyx_ctx are
 * only appended; a loader refuses a library whose CYX_ABI_VERSION it does not know.
 */
#ifndef CYXLA_ABI_H
#define CYXLA_ABI_H

#define CYX_ABI_VERSION 1

#ifndef INT64_MAX /* <stdint.h> */
typedef __INT8_TYPE__ int8_t;
typedef __INT16_TYPE__ int16_t;
typedef __INT32_TYPE__ int32_t;
typedef __INT64_TYPE__ int64_t;
typedef __UINT8_TYPE__ uint8_t;
typedef __UINT16_TYPE__ uint16_t;
typedef __UINT32_TYPE__ uint32_t;
typedef __UINT64_TYPE__ uint64_t;
#endif

/* A status is 0 or one of TensorFlow's canonical error codes; cyx_ctx.message then holds the text. */
typedef int32_t cyx_status;
#define CYX_OK 0
#define CYX_CANCELLED 1
#define CYX_INVALID_ARGUMENT 3
#define CYX_RESOURCE_EXHAUSTED 8
#define CYX_UNIMPLEMENTED 12
#define CYX_INTERNAL 13
#define CYX_MESSAGE_BYTES 256

/* Symbols that a library exports: the entry and, once, CYX_LIBRARY, by which a loader checks the version. */
#define CYX_EXPORT __attribute__((visibility("default")))
#define CYX_LIBRARY CYX_EXPORT const uint32_t cyx_library_version = CYX_ABI_VERSION;

typedef struct cyx_ctx cyx_ctx;

/* Run tasks [begin, end) of one kernel. The number of tasks depends on the kernel's shapes, never on the threads. */
typedef cyx_status (*cyx_kernel)(void *const *bufs, int64_t begin, int64_t end);

/* Run a whole module: bufs holds the inputs, then the results, then the constants, each in flattened order. */
typedef cyx_status (*cyx_entry)(void *const *bufs, const cyx_ctx *ctx);

struct cyx_ctx {
  uint32_t version; /* CYX_ABI_VERSION of the caller */
  uint32_t size;    /* sizeof(cyx_ctx) of the caller */
  char *arena;      /* temporaries of this call: 64-byte aligned, of the size that the module requires */
  char *message;    /* CYX_MESSAGE_BYTES bytes for the text of an error */
  void *pool;       /* thread pool of parallel_for, opaque */
  /* Run the tasks [0, tasks) and return the first error by task number; serial for one task and inside of tasks. */
  cyx_status (*parallel_for)(const cyx_ctx *ctx, cyx_kernel kernel, void *const *bufs, int64_t tasks);
  /* To be called every few milliseconds of work, on the calling thread; return its status if not CYX_OK. */
  cyx_status (*poll)(const cyx_ctx *ctx);
  /* Host functions of the module, by number (custom calls, LAPACK, ...). */
  void *const *functions;
};

#endif
