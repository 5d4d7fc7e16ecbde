/* Interface of libraries that `cyxla aot` makes; needs nothing but the C library.
 *
 * For a program NAME, the library's header declares
 *
 *   const cyx_aot_info *NAME_info(void);
 *   int32_t NAME(const void *const *args, void *const *results, const cyx_aot_run *run);
 *
 * args[k] and results[k] are arrays in row-major order, as info->args[k] and info->results[k] describe them, aligned to
 * the size of an element; a result overlaps no argument and no other result. An array of bounded size has its bounds,
 * and is followed by an int32_t for each size; a call with a size outside of 0 to the bound returns
 * CYX_INVALID_ARGUMENT and writes nothing. A call returns 0 or one of the codes below. Any number of threads may call
 * at once.
 */
#ifndef CYXLA_AOT_LIBRARY_H
#define CYXLA_AOT_LIBRARY_H

#include <stdint.h>

#include "../call.h"

#define CYX_AOT_VERSION 1
#define CYX_AOT_MESSAGE_BYTES 256

#define CYX_OK 0
#define CYX_CANCELLED 1
#define CYX_INVALID_ARGUMENT 3
#define CYX_RESOURCE_EXHAUSTED 8
#define CYX_FAILED_PRECONDITION 9
#define CYX_UNIMPLEMENTED 12
#define CYX_INTERNAL 13
#define CYX_DATA_LOSS 15

#ifdef __cplusplus
extern "C" {
#endif

typedef struct {
  const char *name;
  int32_t dtype; /* enum cyxla_dtype, or another number for rarer types */
  int32_t rank;
  const int64_t *dims;
  int64_t bytes;
} cyx_aot_array;

/* Options of a call. All fields but size may be zero; NULL in place of a pointer to it is the same. */
typedef struct cyx_aot_run {
  uint32_t size;                  /* sizeof(cyx_aot_run) of the caller; fields are only appended */
  int32_t threads;                /* threads of the library's pool, 0: one for each processor; 1: the caller's alone */
  void *temp;                     /* info->temp_bytes bytes, 64-byte aligned, for this call; NULL: allocated by it */
  char *message;                  /* CYX_AOT_MESSAGE_BYTES bytes for the text of an error, or NULL */
  const volatile int32_t *cancel; /* the call returns CYX_CANCELLED soon after *cancel is not 0; or NULL */
  /* The host's own threads: run task(data, k) for 0 <= k < tasks, return when all are done; or NULL. */
  void (*parallel)(void *host, void (*task)(void *data, int64_t k), void *data, int64_t tasks);
  void *host;
  /* Asked now and then by the thread of the call, which ends as by `cancel` unless the answer is 0; or NULL. */
  int32_t (*poll)(void *host);
} cyx_aot_run;

typedef struct {
  uint32_t version; /* CYX_AOT_VERSION of the library */
  int32_t num_args, num_results;
  const cyx_aot_array *args, *results;
  int64_t temp_bytes;
  const char *build_id; /* equal for libraries of equal programs and options */
} cyx_aot_info;

#ifdef __cplusplus
}
#endif

#endif
