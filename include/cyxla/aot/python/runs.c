/* Runs of programs: temporaries, Python's lock, interrupts. */
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include "function.h"

static void *take_temporaries(Function *f, int64_t bytes) {
  void *temp = __atomic_exchange_n(&f->temp, NULL, __ATOMIC_ACQ_REL);
  return temp || !posix_memalign(&temp, 64, (size_t)bytes) ? temp : NULL;
}

static void give_temporaries(Function *f, void *temp) { free(__atomic_exchange_n(&f->temp, temp, __ATOMIC_ACQ_REL)); }

/* --- interrupts: while the main thread runs a program, a signal cancels it as well as telling Python --- */

static volatile int32_t is_interrupted;
static struct sigaction python_action; /* of the signal while a program runs */

static void on_interrupt(int number) {
  is_interrupted = 1;
  python_action.sa_handler(number);
}

static int is_main_thread(void) {
  static __thread int known; /* 1 for the main thread, -1 for others, 0 while unknown */
  if (!known) known = gettid() == getpid() ? 1 : -1;
  return known > 0;
}

/* Take the signal over; return false if Python does not handle it. */
static int begin_interrupts(void) {
  const struct sigaction own = {.sa_handler = on_interrupt, .sa_flags = SA_ONSTACK};
  is_interrupted = 0;
  if (sigaction(SIGINT, &own, &python_action)) return 0;
  if (python_action.sa_handler != SIG_DFL && python_action.sa_handler != SIG_IGN) return 1;
  sigaction(SIGINT, &python_action, NULL);
  return 0;
}

static int32_t run_unlocked(const Function *f, const Call *call, cyx_aot_run *run) {
  int32_t status;
  Py_BEGIN_ALLOW_THREADS status = f->run(call->data, call->result_data, run);
  Py_END_ALLOW_THREADS return status;
}

/* Run a program that an interrupt ends, unless its handler returns: then the program runs again. */
static int32_t run_interruptible(const Function *f, const Call *call, cyx_aot_run *run) {
  while (is_main_thread() && begin_interrupts()) {
    run->cancel = &is_interrupted;
    const int32_t status = run_unlocked(f, call, run);
    sigaction(SIGINT, &python_action, NULL);
    if (status != CYX_CANCELLED || PyErr_CheckSignals()) return status;
  }
  run->cancel = NULL;
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
