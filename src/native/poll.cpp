#include <Python.h>

#include "poll.hpp"

#include <pthread.h>
#include <time.h>

namespace cyxla {
namespace {

constexpr int64_t kCheckIntervalNs = 20'000'000;  // time between two checks for signals, which take the GIL

unsigned long main_thread;  // the only one on which Python runs signal handlers

int64_t coarse_clock() {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC_COARSE, &now);  // takes a few ns; exact to a few ms
  return now.tv_sec * int64_t{1'000'000'000} + now.tv_nsec;
}

// An exception that a handler raises stays set; the launcher finds it when no worker runs any more.
cyx_status check_signals() {
  const PyGILState_STATE gil = PyGILState_Ensure();
  const bool raised = PyErr_Occurred() || PyErr_CheckSignals() != 0;
  PyGILState_Release(gil);
  return raised ? CYX_CANCELLED : CYX_OK;
}

}  // namespace

cyx_status poll(const cyx_ctx *ctx) noexcept {
  // The context is the first member of a cyx_call, which only the calling thread uses.
  cyx_call *call = reinterpret_cast<cyx_call *>(const_cast<cyx_ctx *>(ctx));
  if (__atomic_load_n(call->cancel_epoch, __ATOMIC_RELAXED) != call->epoch) return CYX_CANCELLED;
  if (__atomic_load_n(&call->stop, __ATOMIC_RELAXED)) return CYX_CANCELLED;
  if (PyThread_get_thread_ident() != main_thread) return CYX_OK;
  const int64_t now = coarse_clock();
  if (now < call->next_check) return CYX_OK;
  const bool first = call->next_check == 0;
  call->next_check = now + kCheckIntervalNs;
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
  // The forking thread is the main thread of the child.
  pthread_atfork(nullptr, nullptr, [] { main_thread = PyThread_get_thread_ident(); });
}

}  // namespace cyxla
