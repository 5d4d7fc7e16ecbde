#include <Python.h>

#include "watched.hpp"

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <new>
#include <vector>

#include "blocks.hpp"
#include "threads.hpp"

namespace cyxla {
namespace {

using Clock = std::chrono::steady_clock;
constexpr std::chrono::milliseconds kSignalInterval{20};  // between two checks for signals
constexpr std::chrono::milliseconds kStopTimeout{150};  // for a cancelled entry to stop
constexpr size_t kStackBytes = size_t{8} << 20;

// One run, owned by the caller until it is abandoned, then by its thread, which at last adds it to `AbandonedRuns`.
struct Run {
  cyx_entry entry;
  std::vector<void *> bufs;
  cyx_call call;
  size_t arena_request;  // bytes, with the flag of the pool
  char message[CYX_MESSAGE_BYTES] = {};
  cyx_status status = CYX_OK;
  PyObject *keep = nullptr;
  Pool *pool = nullptr;  // pool of threads that only this run still uses
  std::mutex mutex;
  std::condition_variable finished;
  bool done = false, abandoned = false;
};

// Abandoned runs: those that have ended, whose objects are released with the GIL, and the count of the others.
struct AbandonedRuns {
  std::mutex mutex;
  std::vector<Run *> finished;
  int running = 0;  // runs that have not ended
};

AbandonedRuns &abandoned_list() {
  // Never destroyed: a run may end after the last static destructor.
  static AbandonedRuns *const instance = new AbandonedRuns;
  return *instance;
}

int reap(void *) {
  std::vector<Run *> runs;
  {
    std::lock_guard<std::mutex> lock(abandoned_list().mutex);
    runs.swap(abandoned_list().finished);
  }
  for (Run *run : runs) {
    Py_XDECREF(run->keep);
    delete run;
  }
  return 0;
}

void finish_abandoned(Run *run) {
  if (run->call.ctx.arena) block_release(run->call.ctx.arena, run->arena_request);
  if (run->pool) shut_down(run->pool);
  {
    std::lock_guard<std::mutex> lock(abandoned_list().mutex);
    abandoned_list().finished.push_back(run);  // `abandon` has reserved the space
    --abandoned_list().running;
  }
  Py_AddPendingCall(reap, nullptr);  // if this fails, the next run releases them
}

void *run_thread(void *argument) {
  Run *run = static_cast<Run *>(argument);
  const cyx_status status = run->entry(run->bufs.data(), &run->call.ctx);
  bool abandoned;
  {
    std::lock_guard<std::mutex> lock(run->mutex);
    run->status = status;
    run->done = true;
    abandoned = run->abandoned;
    run->finished.notify_one();  // under the lock: the caller deletes the run as soon as it has the lock
  }
  if (abandoned) finish_abandoned(run);
  return nullptr;
}

bool start(Run *run) {
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setstacksize(&attributes, kStackBytes);
  pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
  sigset_t all, before;
  sigfillset(&all);  // only the interpreter's threads handle signals
  pthread_sigmask(SIG_SETMASK, &all, &before);
  pthread_t thread;
  const bool started = pthread_create(&thread, &attributes, run_thread, run) == 0;
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  pthread_attr_destroy(&attributes);
  return started;
}

// Requires the GIL and the run's lock.
bool abandon(Run *run, PyObject *keep) {
  try {
    std::lock_guard<std::mutex> lock(abandoned_list().mutex);
    AbandonedRuns &list = abandoned_list();
    list.finished.reserve(list.finished.size() + static_cast<size_t>(list.running) + 1);
    ++list.running;
  } catch (const std::bad_alloc &) {
    return false;  // wait instead
  }
  Py_INCREF(keep);
  run->keep = keep;
  run->pool = detach_pool();
  run->abandoned = true;
  return true;
}

// Wait for the end of a run; return false if it was abandoned.
bool wait_or_abandon(Run *run, PyObject *keep) {
  bool raised = false;
  Clock::time_point deadline{};
  for (;;) {
    PyThreadState *const state = PyEval_SaveThread();
    bool done;
    {
      std::unique_lock<std::mutex> lock(run->mutex);
      done = run->finished.wait_for(lock, kSignalInterval, [run] { return run->done; });
    }
    PyEval_RestoreThread(state);
    if (done) return true;
    if (!raised) {
      if (PyErr_CheckSignals() == 0) continue;
      raised = true;
      deadline = Clock::now() + kStopTimeout;
      __atomic_store_n(&run->call.stop, 1u, __ATOMIC_RELAXED);
    } else if (keep && Clock::now() > deadline) {
      std::lock_guard<std::mutex> lock(run->mutex);
      if (run->done) return true;
      if (abandon(run, keep)) return false;
    }
  }
}

// At exit, destructors would free the resources of abandoned runs, such as the threads and memory of a BLAS: if there
// are such runs, end the process at once with its status. Python has been finalised by then.
void end_process(int status, void *) {
  if (abandoned_runs() == 0) return;
  fflush(nullptr);
  _exit(status);
}

}  // namespace

cyx_status run_watched(cyx_entry entry, void *const *bufs, size_t count, cyx_call *call, size_t arena_request, void *keep) noexcept {
  reap(nullptr);
  std::unique_ptr<Run> run;
  try {
    run.reset(new Run{entry, std::vector<void *>(bufs, bufs + count), *call, arena_request});
  } catch (const std::bad_alloc &) {
  }
  if (run) run->call.ctx.message = run->message;
  if (!run || !start(run.get())) {
    Py_BEGIN_ALLOW_THREADS
    run.reset();
    const cyx_status status = entry(bufs, &call->ctx);
    Py_BLOCK_THREADS
    return status;
    Py_END_ALLOW_THREADS
  }
  if (!wait_or_abandon(run.get(), static_cast<PyObject *>(keep))) {
    run.release();
    return CYX_ABANDONED;
  }
  memcpy(call->ctx.message, run->message, CYX_MESSAGE_BYTES);
  return run->status;
}

int abandoned_runs() noexcept {
  std::lock_guard<std::mutex> lock(abandoned_list().mutex);
  return abandoned_list().running;
}

void count_abandoned(int runs) noexcept {
  std::lock_guard<std::mutex> lock(abandoned_list().mutex);
  abandoned_list().running += runs;
}

void watched_init() {
  abandoned_list();
  pthread_atfork([] { abandoned_list().mutex.lock(); }, [] { abandoned_list().mutex.unlock(); }, [] {
    abandoned_list().running = 0;  // these threads do not exist in the child
    abandoned_list().mutex.unlock();
  });
#if defined(__GLIBC__)
  on_exit(end_process, nullptr);
#endif
}

}  // namespace cyxla
