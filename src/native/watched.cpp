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
constexpr std::chrono::milliseconds kLook{20};      // between two looks at the signals
constexpr std::chrono::milliseconds kPatience{150};  // that an entry has to stop by itself
constexpr size_t kStack = size_t{8} << 20;

// One run. It belongs to the caller until it is abandoned, then to its thread, which hands it over to `Ended`.
struct Run {
  cyx_entry entry;
  std::vector<void *> bufs;
  cyx_call call;
  size_t arena_bytes;
  char message[CYX_MESSAGE_BYTES] = {};
  cyx_status status = CYX_OK;
  PyObject *keep = nullptr;
  Pool *pool = nullptr;  // that nobody else uses any more
  std::mutex mutex;
  std::condition_variable ended;
  bool done = false, abandoned = false;
};

// Runs that were abandoned and have ended; what they kept can only be let go with the GIL.
struct Ended {
  std::mutex mutex;
  std::vector<Run *> runs;
  int under_way = 0;  // abandoned, not ended
};

Ended &ended() {
  static Ended *const instance = new Ended;  // never destroyed: a run may end after the last static destructor
  return *instance;
}

int reap(void *) {
  std::vector<Run *> runs;
  {
    std::lock_guard<std::mutex> hold(ended().mutex);
    runs.swap(ended().runs);
  }
  for (Run *run : runs) {
    Py_XDECREF(run->keep);
    delete run;
  }
  return 0;
}

void bury(Run *run) {
  if (run->call.ctx.arena) block_release(run->call.ctx.arena, run->arena_bytes);
  if (run->pool) retire(run->pool);
  {
    std::lock_guard<std::mutex> hold(ended().mutex);
    ended().runs.push_back(run);  // there is room: `abandon` saw to that
    --ended().under_way;
  }
  Py_AddPendingCall(reap, nullptr);  // if that fails, the next run reaps
}

void *body(void *raw) {
  Run *run = static_cast<Run *>(raw);
  const cyx_status status = run->entry(run->bufs.data(), &run->call.ctx);
  bool abandoned;
  {
    std::lock_guard<std::mutex> hold(run->mutex);
    run->status = status;
    run->done = true;
    abandoned = run->abandoned;
    run->ended.notify_one();  // with the lock: the caller deletes the run once it has it
  }
  if (abandoned) bury(run);
  return nullptr;
}

bool start(Run *run) {
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setstacksize(&attributes, kStack);
  pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
  sigset_t all, before;
  sigfillset(&all);  // signals belong to the interpreter's threads
  pthread_sigmask(SIG_SETMASK, &all, &before);
  pthread_t thread;
  const bool started = pthread_create(&thread, &attributes, body, run) == 0;
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  pthread_attr_destroy(&attributes);
  return started;
}

// With the GIL and the run's lock.
bool abandon(Run *run, PyObject *keep) {
  try {
    std::lock_guard<std::mutex> hold(ended().mutex);
    ended().runs.reserve(ended().runs.size() + static_cast<size_t>(ended().under_way) + 1);
    ++ended().under_way;
  } catch (const std::bad_alloc &) {
    return false;  // wait instead
  }
  Py_INCREF(keep);
  run->keep = keep;
  run->pool = forsake_pool();
  run->abandoned = true;
  return true;
}

// Whether the run has ended; if not, it was abandoned.
bool await(Run *run, PyObject *keep) {
  bool raised = false;
  Clock::time_point deadline{};
  for (;;) {
    PyThreadState *const state = PyEval_SaveThread();
    bool done;
    {
      std::unique_lock<std::mutex> hold(run->mutex);
      done = run->ended.wait_for(hold, kLook, [run] { return run->done; });
    }
    PyEval_RestoreThread(state);
    if (done) return true;
    if (!raised) {
      if (PyErr_CheckSignals() == 0) continue;
      raised = true;
      deadline = Clock::now() + kPatience;
      __atomic_store_n(&run->call.stop, 1u, __ATOMIC_RELAXED);
    } else if (keep && Clock::now() > deadline) {
      std::lock_guard<std::mutex> hold(run->mutex);
      if (run->done) return true;
      if (abandon(run, keep)) return false;
    }
  }
}

// A process that ends must not take away what abandoned runs use, such as the threads and memory of a BLAS, which its
// destructors would: it ends at once, with the status that it has. Python has finished by then.
void end_process(int status, void *) {
  if (abandoned_runs() == 0) return;
  fflush(nullptr);
  _exit(status);
}

}  // namespace

cyx_status run_watched(cyx_entry entry, void *const *bufs, size_t count, cyx_call *call, size_t arena_bytes, void *keep) noexcept {
  reap(nullptr);
  std::unique_ptr<Run> run;
  try {
    run.reset(new Run{entry, std::vector<void *>(bufs, bufs + count), *call, arena_bytes});
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
  if (!await(run.get(), static_cast<PyObject *>(keep))) {
    run.release();
    return CYX_ABANDONED;
  }
  memcpy(call->ctx.message, run->message, CYX_MESSAGE_BYTES);
  return run->status;
}

int abandoned_runs() noexcept {
  std::lock_guard<std::mutex> hold(ended().mutex);
  return ended().under_way;
}

void count_abandoned(int runs) noexcept {
  std::lock_guard<std::mutex> hold(ended().mutex);
  ended().under_way += runs;
}

void watched_init() {
  ended();
  pthread_atfork([] { ended().mutex.lock(); }, [] { ended().mutex.unlock(); }, [] {
    ended().under_way = 0;  // the child has none of the threads
    ended().mutex.unlock();
  });
#if defined(__GLIBC__)
  on_exit(end_process, nullptr);
#endif
}

}  // namespace cyxla
