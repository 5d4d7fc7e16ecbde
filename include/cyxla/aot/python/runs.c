/* Runs of programs: temporaries, Python's lock, interrupts. */
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "function.h"

static void *take_temporaries(Function *f, int64_t bytes) {
  void *temp = __atomic_exchange_n(&f->temp, NULL, __ATOMIC_ACQ_REL);
  return temp || !posix_memalign(&temp, 64, (size_t)bytes) ? temp : NULL;
}

static void give_temporaries(Function *f, void *temp) { free(__atomic_exchange_n(&f->temp, temp, __ATOMIC_ACQ_REL)); }

/* --- interrupts: a program that the main thread runs looks for signals now and then --- */

#define SIGNALS_NS 20000000 /* time between two looks, each of which takes Python's lock */

/* State of a run without Python's lock. */
typedef struct {
  PyThreadState *thread;
  int64_t next; /* time of the next look for signals; 0 before the first poll */
} Unlocked;

static int64_t coarse_clock(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC_COARSE, &now); /* takes a few ns; exact to a few ms */
  return now.tv_sec * INT64_C(1000000000) + now.tv_nsec;
}

/* Run the handlers of signals; return true if one raised. */
static int32_t check_signals(void *host) {
  Unlocked *run = host;
  const int64_t now = coarse_clock();
  if (now < run->next) return 0;
  const int is_first = !run->next;
  run->next = now + SIGNALS_NS;
  if (is_first) return 0;
  PyEval_RestoreThread(run->thread);
  const int32_t raised = PyErr_CheckSignals() != 0;
  run->thread = PyEval_SaveThread();
  return raised;
}

static int is_main_thread(void) {
  static __thread int known; /* 1 for the main thread, -1 for others, 0 while unknown */
  if (!known) known = gettid() == getpid() ? 1 : -1;
  return known > 0;
}

static int32_t run_unlocked(const Function *f, const Call *call, cyx_aot_run *run) {
  Unlocked state = {PyEval_SaveThread(), 0};
  run->host = &state;
  const int32_t status = f->run(call->data, call->result_data, run);
  PyEval_RestoreThread(state.thread);
  return status;
}

/* Run a program whose length is unknown: an interrupt ends it unless its handler returns. */
static int32_t run_interruptible(const Function *f, const Call *call, cyx_aot_run *run) {
  if (is_main_thread()) run->poll = check_signals;
  return run_unlocked(f, call, run);
}

/* --- runs --- */

/* Set the exception of a failed call. */
static void set_error(const Function *f, int32_t status, const char *message) {
  if (PyErr_Occurred()) return; /* of a handler of signals */
  PyObject *none = PyObject_CallMethod(f->slow, "fail", "is", status, message);
  Py_XDECREF(none);
  if (!PyErr_Occurred()) PyErr_Format(PyExc_SystemError, "%s() failed with status %d", f->name, status);
}

static int32_t run_by_length(const Function *f, const Call *call, cyx_aot_run *run) {
  if (f->length == RUN_SHORT) return f->run(call->data, call->result_data, run);
  return f->length == RUN_LONG ? run_unlocked(f, call, run) : run_interruptible(f, call, run);
}

static int run_program(Function *f, const Call *call) {
  char message[CYX_AOT_MESSAGE_BYTES] = "";
  cyx_aot_run run = {.size = sizeof(run), .message = message, .threads = num_threads};
  const int64_t bytes = f->info()->temp_bytes;
  if (bytes > SMALL_BYTES && !(run.temp = take_temporaries(f, bytes))) {
    PyErr_NoMemory();
    return -1;
  }
  const int32_t status = run_by_length(f, call, &run);
  if (run.temp) give_temporaries(f, run.temp);
  if (status) set_error(f, status, message);
  return status ? -1 : 0;
}
