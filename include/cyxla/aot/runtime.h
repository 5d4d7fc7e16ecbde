/* Parts of a library made by `cyxla aot` that do not depend on its programs.
 *
 * A file that includes this one defines CYX_AOT(name), the name of a function with the library's prefix.
 */
#ifndef CYXLA_AOT_RUNTIME_H
#define CYXLA_AOT_RUNTIME_H

#include "../abi.h"
#include "library.h"

#pragma GCC visibility push(hidden)

/* Machine code of a program for one level of processors. */
typedef struct {
  cyx_entry entry;
  int32_t num_bound, num_constants; /* constants in place of the last arguments, and further ones */
  const int64_t *constants;         /* their offsets, in this order */
  int64_t arena_bytes;
} cyx_aot_code;

/* Error of a check at run time; in the text, %n is the number that failed, %h and %l two numbers that it holds. */
typedef struct {
  int32_t code;
  const char *text;
} cyx_aot_check;

/* Argument that is the size of a bounded array, an int32_t from 0 to the bound; %n in the text is another size. */
typedef struct {
  int32_t arg, bound;
  const char *text;
} cyx_aot_size;

typedef struct {
  const cyx_aot_info *info;
  const cyx_aot_code *codes; /* by level of the library */
  int32_t fails; /* 1 if the last result of the code, s64[2], is the number of a failed check and a number to show */
  const cyx_aot_check *checks;
  int32_t num_sizes;
  const cyx_aot_size *sizes;
} cyx_aot_program;

/* The context of a call, whose address is that of the part that generated code knows. */
typedef struct {
  cyx_ctx base;
  const cyx_aot_run *run;
} cyx_aot_context;

/* One loop over the tasks of a kernel, which any number of threads run. */
typedef struct {
  cyx_kernel kernel;
  void *const *bufs;
  int64_t tasks;
  const volatile int32_t *cancel;
  int64_t next;   /* first task that nobody has begun */
  int64_t failed; /* least task with an error, and its status; tasks beyond are not begun */
  cyx_status status;
  int32_t lock;
} cyx_aot_loop;

/* Return the index of the best code for this processor; -1 if there is none. */
int CYX_AOT(level)(void);

/* Return the bytes of the constants; NULL before they are loaded. */
const char *CYX_AOT(constants)(void);

/* Run a program; args and results are those of the library's interface. */
int32_t CYX_AOT(call)(const cyx_aot_program *program, const void *const *args, void *const *results,
                      const cyx_aot_run *run);

/* Run all tasks of a loop of a call on this thread and on those of the pool. */
void CYX_AOT(run_loop)(cyx_aot_loop *loop, const cyx_aot_run *call);

/* Run tasks of a loop until none is left; the thread of the call gives its options, others give NULL. */
void CYX_AOT(work)(cyx_aot_loop *loop, const cyx_aot_run *call);

/* Write a message into a run's buffer, if it has one, with a number in place of %n; return the code. */
int32_t CYX_AOT(fail)(const cyx_aot_run *run, int32_t code, const char *text, int64_t number);

#pragma GCC visibility pop

#endif
