#include <Python.h>

#include "poll.hpp"

#include <pthread.h>
#include <time.h>

namespace cyxla {
namespace {

constexpr int64_t kEvery = 20'000'000;  // ns between two looks at the signals: taking the GIL is not free

unsigned long main_thread;  // Python runs signal handlers on this one only

int64_t coarse_clock() {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC_COARSE, &now);  // a few ns, right to a few ms
  return now.tv_sec * int64_t{1'000'000'000} + now.tv_nsec;
}

// The exception, if a handler raised one, stays set: the launcher finds it when the pool is quiet.
cyx_status check_signals() {
  const PyGILState_STATE gil = PyGILState_Ensure();
  const bool raised = PyErr_Occurred() || PyErr_CheckSignals() != 0;
  PyGILState_Release(gil);
  return raised ? CYX_CANCELLED : CYX_OK;
}

}  // namespace

cyx_status poll(const cyx_ctx *ctx) noexcept {
  // The launcher made this context, inside a cyx_call that only the calling thread touches.
  cyx_call *call = reinterpret_cast<cyx_call *>(const_cast<cyx_ctx *>(ctx));
  if (__atomic_load_n(call->cancel_epoch, __ATOMIC_RELAXED) != call->epoch) return CYX_CANCELLED;
  if (__atomic_load_n(&call->stop, __ATOMIC_RELAXED)) return CYX_CANCELLED;
  if (PyThread_get_thread_ident() != main_thread) return CYX_OK;
  const int64_t now = coarse_clock();
  if (now < call->next_check) return CYX_OK;
  const bool first = call->next_check == 0;
  call->next_check = now + kEvery;
  return first ? CYX_OK : check_signals();
}

int on_main_thread() noexcept { return PyThread_get_thread_ident() == main_thread; }

void poll_init() {
  PyObject *threading = PyImport_ImportModule("threading");
  PyObject *thread = threading ? PyObject_CallMethod(threading, "main_thread", nullptr) : nullptr;
  PyObject *ident = thread ? PyObject_GetAttrString(thread, "ident") : nullptr;
  main_thread = ident ? PyLong_AsUnsignedLong(ident) : 0;
  Py_XDECREF(ident);
  Py_XDECREF(thread);
  Py_XDECREF(threading);
  PyErr_Clear();
  // Whoever forks is the child's main thread.
  pthread_atfork(nullptr, nullptr, [] { main_thread = PyThread_get_thread_ident(); });
}

}  // namespace cyxla
