/* Calls of programs: buffers, temporaries, errors, cancellation. */
#define _GNU_SOURCE
#include <stdlib.h>
#include <string.h>

#include "runtime.h"

#define SMALL_BYTES 4096 /* temporaries up to this size are on the stack */

/* Write the digits of a number before `end`; return the first. */
static char *digits(char *end, int64_t number) {
  uint64_t rest = number < 0 ? -(uint64_t)number : (uint64_t)number;
  do *--end = (char)('0' + rest % 10);
  while (rest /= 10);
  if (number < 0) *--end = '-';
  return end;
}

int32_t CYX_AOT(fail)(const cyx_aot_run *run, int32_t code, const char *text, int64_t number) {
  if (!run->message) return code;
  char *at = run->message, *const end = at + CYX_AOT_MESSAGE_BYTES - 1;
  for (; *text && at < end; ++text) {
    if (*text != '%' || *++text == '%') {
      *at++ = *text;
      continue;
    }
    char room[24];
    const int64_t low = number & (((int64_t)1 << 31) - 1);
    const char *digit = digits(room + sizeof(room), *text == 'n' ? number : *text == 'h' ? number >> 31 : low);
    while (digit < room + sizeof(room) && at < end) *at++ = *digit++;
  }
  *at = 0;
  return code;
}

static cyx_status cancelled(const cyx_aot_run *run) {
  return CYX_AOT(fail)(run, CYX_CANCELLED, "the call was cancelled", 0);
}

static cyx_status poll(const cyx_ctx *ctx) {
  const cyx_aot_run *run = ((const cyx_aot_context *)ctx)->run;
  return (run->cancel && *run->cancel) || (run->poll && run->poll(run->host)) ? cancelled(run) : CYX_OK;
}

/* --- loops over tasks --- */

static __thread int is_inside; /* true while this thread runs tasks: loops inside of them are serial */

static void set_failed(cyx_aot_loop *loop, int64_t task, cyx_status status) {
  while (__atomic_exchange_n(&loop->lock, 1, __ATOMIC_ACQUIRE)) {
  }
  if (task < loop->failed) {
    loop->status = status;
    __atomic_store_n(&loop->failed, task, __ATOMIC_RELAXED);
  }
  __atomic_store_n(&loop->lock, 0, __ATOMIC_RELEASE);
}

static int is_cancelled(const cyx_aot_loop *loop, const cyx_aot_run *call) {
  return (loop->cancel && *loop->cancel) || (call && call->poll && call->poll(call->host));
}

static void run_task(cyx_aot_loop *loop, int64_t task, const cyx_aot_run *call) {
  if (task > __atomic_load_n(&loop->failed, __ATOMIC_RELAXED)) return;
  const cyx_status s = is_cancelled(loop, call) ? CYX_CANCELLED : loop->kernel(loop->bufs, task, task + 1);
  if (s) set_failed(loop, task, s);
}

void CYX_AOT(work)(cyx_aot_loop *loop, const cyx_aot_run *call) {
  const int outer = is_inside;
  is_inside = 1;
  for (int64_t task; (task = __atomic_fetch_add(&loop->next, 1, __ATOMIC_RELAXED)) < loop->tasks;)
    run_task(loop, task, call);
  is_inside = outer;
}

/* Task of the host's threads. */
static void host_task(void *data, int64_t task) {
  const int outer = is_inside;
  is_inside = 1;
  run_task(data, task, NULL);
  is_inside = outer;
}

static cyx_status parallel_for(const cyx_ctx *ctx, cyx_kernel kernel, void *const *bufs, int64_t tasks) {
  const cyx_aot_run *run = ((const cyx_aot_context *)ctx)->run;
  cyx_aot_loop loop = {kernel, bufs, tasks, run->cancel, 0, INT64_MAX, CYX_OK, 0};
  if (tasks < 2 || is_inside) {
    CYX_AOT(work)(&loop, run);
  } else if (run->parallel) {
    run->parallel(run->host, host_task, &loop, tasks);
  } else {
    CYX_AOT(run_loop)(&loop, run);
  }
  return loop.status == CYX_CANCELLED ? cancelled(run) : loop.status;
}

/* --- calls --- */

static cyx_aot_run options_of(const cyx_aot_run *run) {
  cyx_aot_run options = {0};
  if (run) memcpy(&options, run, run->size < sizeof(options) ? run->size : sizeof(options));
  options.size = sizeof(options);
  return options;
}

/* Return the status of a program that checks its arguments: the last result is the number of a check, from 1 on. */
static int32_t checked(const cyx_aot_program *program, const int64_t *failure, const cyx_aot_run *run) {
  if (!failure[0]) return CYX_OK;
  const cyx_aot_check *check = program->checks + failure[0] - 1;
  return CYX_AOT(fail)(run, check->code, check->text, failure[1]);
}

/* Return the status of sizes among the arguments: an array has no elements beyond its bound. */
static int32_t sized(const cyx_aot_program *program, const void *const *args, const cyx_aot_run *run) {
  for (int32_t k = 0; k < program->num_sizes; ++k) {
    const cyx_aot_size *size = program->sizes + k;
    int32_t given;
    memcpy(&given, args[size->arg], sizeof(given));
    if (given < 0 || given > size->bound) return CYX_AOT(fail)(run, CYX_INVALID_ARGUMENT, size->text, given);
  }
  return CYX_OK;
}

static int32_t run_code(const cyx_aot_program *program, const cyx_aot_code *code, const void *const *args,
                        void *const *results, const cyx_aot_run *run, char *arena) {
  const cyx_aot_info *info = program->info;
  const char *constants = CYX_AOT(constants)();
  const int32_t num_bufs = info->num_args + code->num_bound + info->num_results + program->fails + code->num_constants;
  void *bufs[num_bufs + 1];
  int64_t failure[2] = {0, 0};
  void **next = bufs;
  for (int32_t k = 0; k < info->num_args; ++k) *next++ = (void *)args[k];
  for (int32_t k = 0; k < code->num_bound; ++k) *next++ = (void *)(constants + code->constants[k]);
  for (int32_t k = 0; k < info->num_results; ++k) *next++ = results[k];
  if (program->fails) *next++ = failure;
  for (int32_t k = 0; k < code->num_constants; ++k)
    *next++ = (void *)(constants + code->constants[code->num_bound + k]);
  char ignored[CYX_MESSAGE_BYTES];
  char *message = run->message ? run->message : ignored;
  message[0] = 0;
  cyx_aot_context context = {{CYX_ABI_VERSION, sizeof(cyx_ctx), arena, message, NULL, parallel_for, poll, NULL}, run};
  const int32_t status = code->entry(bufs, &context.base);
  return status || !program->fails ? status : checked(program, failure, run);
}

int32_t CYX_AOT(call)(const cyx_aot_program *program, const void *const *args, void *const *results,
                      const cyx_aot_run *given) {
  const cyx_aot_run run = options_of(given);
  const int level = CYX_AOT(level)();
  if (level < 0) return CYX_AOT(fail)(&run, CYX_UNIMPLEMENTED, "the library has no code for this processor", 0);
  const cyx_aot_code *code = program->codes + level;
  if (code->num_bound + code->num_constants && !CYX_AOT(constants)())
    return CYX_AOT(fail)(&run, CYX_FAILED_PRECONDITION, "the file of weights is not loaded", 0);
  const int32_t wrong = sized(program, args, &run);
  if (wrong) return wrong;
  if (run.temp) return run_code(program, code, args, results, &run, run.temp);
  if (code->arena_bytes <= SMALL_BYTES) {
    _Alignas(64) char small[SMALL_BYTES];
    return run_code(program, code, args, results, &run, small);
  }
  void *arena = NULL;
  if (posix_memalign(&arena, 64, (size_t)code->arena_bytes))
    return CYX_AOT(fail)(&run, CYX_RESOURCE_EXHAUSTED, "no memory for %n bytes of temporaries", code->arena_bytes);
  const int32_t status = run_code(program, code, args, results, &run, arena);
  free(arena);
  return status;
}
