#include "threads.hpp"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <limits>
#include <memory>
#include <mutex>
#include <new>
#include <utility>

namespace cyxla {
namespace {

constexpr int64_t kSpin = 50'000;            // ns an idle worker stays awake: about one Python call
constexpr int64_t kHeldUp = 10'000;          // ns: who has run for less than this between two looks waits for a CPU
constexpr std::chrono::milliseconds kLook{1};  // how often a caller that waits for workers sees whether they run
constexpr int64_t kWorthWaking = 30'000;     // ns of remaining work below which parked workers come too late
constexpr int64_t kShortChunk = 20'000;      // ns: a thread whose chunk took less claims twice as much the next time
constexpr int kChunksPerThread = 8;          // no chunk is a larger part of the whole, so that the ends balance
constexpr int kRememberedBits = 6;           // of the number of regions that are remembered
constexpr int64_t kNoTask = std::numeric_limits<int64_t>::max();

int64_t clock_ns(clockid_t clock = CLOCK_MONOTONIC) {
  timespec now{};
  clock_gettime(clock, &now);
  return now.tv_sec * int64_t{1'000'000'000} + now.tv_nsec;
}

void relax() {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

// Spin until `done` holds or kSpin has passed; tells whether it holds.
template <class Done>
bool spin_until(Done done) {
  const int64_t end = clock_ns() + kSpin;
  do {
    for (int k = 0; k < 64; ++k) {
      if (done()) return true;
      relax();
    }
  } while (clock_ns() < end);
  return false;
}

// The word on which everything turns: which region, whether workers may still join it, how many have.
constexpr uint64_t kActiveMask = 0xffff, kOpen = 0x10000, kGeneration = 0x20000;
uint64_t generation(uint64_t word) { return word / kGeneration; }
uint64_t active(uint64_t word) { return word & kActiveMask; }

struct Region {
  const cyx_ctx *ctx;
  cyx_kernel kernel;
  void *const *bufs;
  int64_t tasks, longest;  // longest: most tasks in a chunk
};

// How many tasks a thread runs at a stretch: few at first, since a task may be long and Ctrl-C should not wait for many.
class Pace {
 public:
  explicit Pace(int64_t longest) : longest_(longest) {}
  int64_t chunk() const { return chunk_; }
  void start() {
    if (chunk_ < longest_) start_ = clock_ns();
  }
  void stop() {
    if (chunk_ < longest_ && clock_ns() - start_ < kShortChunk) chunk_ = std::min(2 * chunk_, longest_);
  }

 private:
  int64_t longest_, chunk_ = 1, start_ = 0;
};

thread_local bool inside_task = false;

// A thread of the pool. Those of a pool are a list that its mutex guards.
struct Worker {
  pid_t thread = 0;
  clockid_t clock{};        // of the time it has run
  cpu_set_t allowed{};
  std::atomic<bool> active{false};
  int64_t ran = 0;          // of `clock`, when it was last looked at
  Worker *next = nullptr;
};

}  // namespace

class Pool {
 public:
  cyx_status run(const Region &region, int threads) noexcept;
  bool try_take() noexcept { return !busy_.exchange(true, std::memory_order_acquire); }
  void give() noexcept { busy_.store(false, std::memory_order_release); }
  void retire_above(int workers) noexcept;
  int started() noexcept {
    std::lock_guard<std::mutex> hold(mutex_);
    return started_;
  }

 private:
  void start_workers(int wanted) noexcept;
  void open(const Region &region) noexcept;
  void close() noexcept;
  Worker *held_up() noexcept;
  void wake() noexcept;
  void work(int index) noexcept;
  void enter(Worker *worker) noexcept;
  bool await_region(uint64_t seen, int index, Worker *worker) noexcept;
  bool join(uint64_t *seen) noexcept;
  void leave() noexcept;
  bool run_chunk(Pace &pace) noexcept;
  void drain_as_caller(int threads) noexcept;
  void fail(int64_t task, cyx_status status) noexcept;

  alignas(64) std::atomic<uint64_t> word_{0};
  alignas(64) std::atomic<int64_t> next_{0};   // first task that nobody has claimed
  std::atomic<int64_t> limit_{0};              // tasks from here on are not worth starting
  alignas(64) std::atomic<bool> busy_{false};
  Region region_{};                            // read by those who have joined
  std::atomic<int> caller_cpu_{-1};
  std::atomic<int> sleepers_{0};
  std::atomic<bool> caller_sleeps_{false};
  std::atomic<int> wanted_{0};                 // workers with an index from here on end
  std::mutex mutex_;
  std::condition_variable wake_, quiet_;
  int started_ = 0;
  Worker *workers_ = nullptr;
  uint64_t worth_[1 << kRememberedBits] = {};   // regions that were worth waking for
  std::mutex error_mutex_;
  int64_t error_task_ = kNoTask;
  cyx_status error_ = CYX_OK;
};

namespace {

// A worker that shares the caller's CPU can only run when the caller does not: move over before taking part.
void leave_cpu(int cpu, const cpu_set_t &allowed) {
  if (cpu < 0 || sched_getcpu() != cpu) return;
  cpu_set_t others = allowed;
  CPU_CLR(cpu, &others);
  if (CPU_COUNT(&others)) sched_setaffinity(0, sizeof others, &others);
}

// A worker may have lost its CPU to another program, for milliseconds, and the caller has nothing left to do but wait for it:
// give it the CPU that the caller is about to leave.
void give_cpu(const Worker *worker) {
  const int cpu = sched_getcpu();
  if (!worker || cpu < 0 || !CPU_ISSET(cpu, &worker->allowed)) return;
  cpu_set_t here;
  CPU_ZERO(&here);
  CPU_SET(cpu, &here);
  sched_setaffinity(worker->thread, sizeof here, &here);  // moves it
  sched_setaffinity(worker->thread, sizeof worker->allowed, &worker->allowed);
}

}  // namespace

void Pool::enter(Worker *worker) noexcept {
  worker->thread = static_cast<pid_t>(syscall(SYS_gettid));
  pthread_getcpuclockid(pthread_self(), &worker->clock);
  sched_getaffinity(0, sizeof worker->allowed, &worker->allowed);
  std::lock_guard<std::mutex> hold(mutex_);
  worker->next = workers_;
  workers_ = worker;
}

void Pool::work(int index) noexcept {
  inside_task = true;
  Worker self;
  enter(&self);
  uint64_t seen = 0;
  while (await_region(seen, index, &self)) {
    leave_cpu(caller_cpu_.load(std::memory_order_relaxed), self.allowed);
    if (join(&seen)) {
      self.active.store(true, std::memory_order_relaxed);
      Pace pace(region_.longest);
      while (run_chunk(pace)) {
      }
      self.active.store(false, std::memory_order_relaxed);
      leave();
    }
  }
}

// False when this worker is to end.
bool Pool::await_region(uint64_t seen, int index, Worker *worker) noexcept {
  const auto news = [&] {
    return generation(word_.load(std::memory_order_seq_cst)) != seen || index >= wanted_.load(std::memory_order_relaxed);
  };
  if (!spin_until(news)) {
    std::unique_lock<std::mutex> hold(mutex_);
    sleepers_.fetch_add(1, std::memory_order_seq_cst);
    wake_.wait(hold, news);
    sleepers_.fetch_sub(1, std::memory_order_seq_cst);
  }
  if (index < wanted_.load(std::memory_order_relaxed)) return true;
  std::lock_guard<std::mutex> hold(mutex_);
  if (index < wanted_.load(std::memory_order_relaxed)) return true;
  Worker **link = &workers_;
  while (*link != worker) link = &(*link)->next;
  *link = worker->next;
  --started_;
  return false;
}

bool Pool::join(uint64_t *seen) noexcept {
  uint64_t word = word_.load(std::memory_order_acquire);
  do {
    *seen = generation(word);
    if (!(word & kOpen)) return false;
  } while (!word_.compare_exchange_weak(word, word + 1, std::memory_order_acq_rel, std::memory_order_acquire));
  return true;
}

void Pool::leave() noexcept {
  const uint64_t before = word_.fetch_sub(1, std::memory_order_seq_cst);
  if ((before & kOpen) || active(before) != 1 || !caller_sleeps_.load(std::memory_order_seq_cst)) return;
  std::lock_guard<std::mutex> hold(mutex_);
  quiet_.notify_one();
}

void Pool::open(const Region &region) noexcept {
  region_ = region;
  caller_cpu_.store(sched_getcpu(), std::memory_order_relaxed);
  error_task_ = kNoTask;
  error_ = CYX_OK;
  next_.store(0, std::memory_order_relaxed);
  limit_.store(region.tasks, std::memory_order_relaxed);
  const uint64_t last = generation(word_.load(std::memory_order_relaxed));
  word_.store((last + 1) * kGeneration | kOpen, std::memory_order_seq_cst);
}

// Nobody joins from here on; wait for those who did.
void Pool::close() noexcept {
  word_.fetch_and(~kOpen, std::memory_order_seq_cst);
  const auto quiet = [&] { return active(word_.load(std::memory_order_seq_cst)) == 0; };
  if (spin_until(quiet)) return;
  std::unique_lock<std::mutex> hold(mutex_);
  held_up();
  if (spin_until(quiet)) return;
  caller_sleeps_.store(true, std::memory_order_seq_cst);
  do give_cpu(held_up());
  while (!quiet_.wait_for(hold, kLook, quiet));
  caller_sleeps_.store(false, std::memory_order_seq_cst);
}

// Looks at those who still work; gives one that has hardly run since the last look.
Worker *Pool::held_up() noexcept {
  Worker *found = nullptr;
  for (Worker *worker = workers_; worker; worker = worker->next) {
    if (!worker->active.load(std::memory_order_relaxed)) continue;
    const int64_t before = std::exchange(worker->ran, clock_ns(worker->clock));
    if (worker->ran - before < kHeldUp) found = worker;
  }
  return found;
}

void Pool::wake() noexcept {
  if (!sleepers_.load(std::memory_order_seq_cst)) return;
  { std::lock_guard<std::mutex> hold(mutex_); }  // whoever is about to park has parked, or has seen the news
  wake_.notify_all();
}

void Pool::fail(int64_t task, cyx_status status) noexcept {
  std::lock_guard<std::mutex> hold(error_mutex_);
  if (task >= error_task_) return;
  // Claims ascend, so every earlier task is already running somewhere and still gets to report.
  error_task_ = task;
  error_ = status;
  limit_.store(task, std::memory_order_relaxed);
}

// Claim and run a chunk; false when there is none left.
bool Pool::run_chunk(Pace &pace) noexcept {
  const int64_t begin = next_.fetch_add(pace.chunk(), std::memory_order_relaxed);
  if (begin >= limit_.load(std::memory_order_relaxed)) return false;
  pace.start();
  const cyx_status status = region_.kernel(region_.bufs, begin, std::min(begin + pace.chunk(), region_.tasks));
  pace.stop();
  if (status != CYX_OK) fail(begin, status);
  return true;
}

// Waking a thread costs as much as a small region. Where there are many tasks, see first what some of them take: each one
// that the caller does says more about the rest, and the first may be the shortest. What was worth it once is so again.
void Pool::drain_as_caller(int threads) noexcept {
  const cyx_ctx *ctx = region_.ctx;
  Pace pace(region_.longest);
  const uint64_t key = reinterpret_cast<uintptr_t>(region_.kernel) + static_cast<uint64_t>(region_.tasks);
  uint64_t &known = worth_[key * 0x9e3779b97f4a7c15 >> (64 - kRememberedBits)];
  bool unsure = sleepers_.load(std::memory_order_seq_cst) != 0;
  if (unsure && (region_.tasks < int64_t{kChunksPerThread} * threads || known == key)) {
    wake();
    unsure = false;
  }
  const int64_t start = unsure ? clock_ns() : 0;
  do {
    const int64_t done = unsure ? std::min(next_.load(std::memory_order_relaxed), region_.tasks) : 0;
    if (done && (clock_ns() - start) / done * (region_.tasks - done) > kWorthWaking) {
      known = key;
      wake();
      unsure = false;
    }
    const cyx_status status = ctx->poll(ctx);
    if (status != CYX_OK) fail(-1, status);
  } while (run_chunk(pace));
}

cyx_status Pool::run(const Region &region, int threads) noexcept {
  start_workers(threads - 1);
  open(region);
  inside_task = true;
  drain_as_caller(threads);
  close();
  inside_task = false;
  return error_;
}

namespace {

struct Start {
  Pool *pool;
  int index;
  void (Pool::*work)(int) noexcept;
};

}  // namespace

void Pool::start_workers(int wanted) noexcept {
  if (wanted_.load(std::memory_order_relaxed) == wanted) return;
  std::lock_guard<std::mutex> hold(mutex_);
  wanted_.store(wanted, std::memory_order_relaxed);
  // Signals belong to the interpreter's threads.
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  while (started_ < wanted) {
    Start *start = new (std::nothrow) Start{this, started_, &Pool::work};
    pthread_t thread;
    const auto body = [](void *raw) -> void * {
      const std::unique_ptr<Start> start(static_cast<Start *>(raw));
      (start->pool->*start->work)(start->index);
      return nullptr;
    };
    if (!start || pthread_create(&thread, nullptr, body, start) != 0) {
      delete start;
      break;  // the tasks are done all the same, by fewer
    }
    pthread_detach(thread);
    ++started_;
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

// With the pool taken: end the workers that are too many, and wait until they have.
void Pool::retire_above(int workers) noexcept {
  std::unique_lock<std::mutex> hold(mutex_);
  if (started_ <= workers) return;
  wanted_.store(workers, std::memory_order_seq_cst);
  wake_.notify_all();
  while (started_ > workers) {
    hold.unlock();
    sched_yield();
    hold.lock();
  }
}

namespace {

std::atomic<Pool *> current{nullptr};
std::atomic<int> thread_target{1};

Pool &pool() {
  Pool *found = current.load(std::memory_order_acquire);
  if (found) return *found;
  Pool *fresh = new Pool;  // never destroyed: workers may be parked in it until the process ends
  if (current.compare_exchange_strong(found, fresh, std::memory_order_acq_rel)) return *fresh;
  delete fresh;
  return *found;
}

cyx_status run_serially(const Region &region) {
  Pace pace(region.longest);
  for (int64_t begin = 0; begin < region.tasks;) {
    const cyx_status stop = region.ctx->poll(region.ctx);
    if (stop != CYX_OK) return stop;
    const int64_t end = std::min(begin + pace.chunk(), region.tasks);
    pace.start();
    const cyx_status status = region.kernel(region.bufs, begin, end);
    pace.stop();
    if (status != CYX_OK) return status;
    begin = end;
  }
  return CYX_OK;
}

}  // namespace

cyx_status parallel_for(const cyx_ctx *ctx, cyx_kernel kernel, void *const *bufs, int64_t tasks) noexcept {
  if (tasks <= 1) return tasks == 1 ? kernel(bufs, 0, 1) : CYX_OK;
  const int threads = thread_target.load(std::memory_order_relaxed);
  const Region region{ctx, kernel, bufs, tasks, std::max<int64_t>(1, tasks / (int64_t{kChunksPerThread} * threads))};
  if (threads == 1 || inside_task) return run_serially(region);
  Pool &mine = pool();  // another one may take its place meanwhile
  if (!mine.try_take()) return run_serially(region);
  const cyx_status status = mine.run(region, threads);
  mine.give();
  return status;
}

int thread_count() noexcept { return thread_target.load(std::memory_order_relaxed); }

void set_thread_count(int n) noexcept {
  n = std::clamp(n, 1, 1024);
  Pool &mine = pool();
  while (!mine.try_take()) sched_yield();
  thread_target.store(n, std::memory_order_relaxed);
  mine.retire_above(n - 1);
  mine.give();
}

int started_workers() noexcept { return pool().started(); }

Pool *forsake_pool() noexcept { return current.exchange(nullptr, std::memory_order_acq_rel); }

void retire(Pool *pool) noexcept {
  while (!pool->try_take()) sched_yield();
  pool->retire_above(0);
  pool->give();  // to nobody, or to who had asked for it before it was forsaken
}

void threads_init() {
  // The child has none of the threads: it starts over with a pool of its own, when it first needs one.
  pthread_atfork(nullptr, nullptr, [] {
    current.store(nullptr, std::memory_order_relaxed);
    inside_task = false;
  });
}

}  // namespace cyxla
