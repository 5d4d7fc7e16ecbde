#include "threads.hpp"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/resource.h>
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

constexpr int64_t kSpinNs = 50'000;  // ns that an idle worker spins before it parks: about one Python call
constexpr int64_t kLongSpinNs = 400'000;  // the same where no other thread wants its CPU: waking it takes 30 us
constexpr int64_t kSharedNs = 100'000'000;  // ns for which CPUs are taken as shared
constexpr int64_t kLossIntervalNs = 20'000'000;  // ns within which a thread that shares its CPU loses it again
constexpr int64_t kLossNs = 200'000;  // mean ns of such losses: another program has the CPU for longer, the kernel not
constexpr int64_t kDescheduledNs = 10'000;  // a worker with less CPU time between two checks waits for a CPU
constexpr std::chrono::milliseconds kWaitInterval{1};  // between two checks of a waiting caller whether workers run
constexpr int64_t kMinWakeNs = 30'000;  // ns of remaining work from which parked workers are woken
constexpr int64_t kShortChunkNs = 20'000;  // ns of a chunk below which a thread doubles its chunk size
constexpr int kMaxShares = 16;  // each is a cache line that all threads read at the end of a region
constexpr int kChunksPerThread = 8;  // least number of chunks per thread, for load balance at the end
constexpr int kWokenForBits = 6;  // log2 of the size of the table of regions for which workers were woken
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

// Spin until `done` returns true or `ns` have passed; return its last value.
template <class Done>
bool spin_until(Done done, int64_t ns = kSpinNs) {
  const int64_t end = clock_ns() + ns;
  do {
    for (int k = 0; k < 64; ++k) {
      if (done()) return true;
      relax();
    }
  } while (clock_ns() < end);
  return false;
}

// CPU use of this thread at one time.
struct CpuUse {
  int64_t losses = 0;  // times that the kernel has given the CPU to another thread
  int64_t ns = 0, cpu_ns = 0;
};

CpuUse cpu_use() {
  rusage usage{};
  if (getrusage(RUSAGE_THREAD, &usage) != 0) return {};
  const auto ns = [](const timeval &t) { return t.tv_sec * int64_t{1'000'000'000} + t.tv_usec * int64_t{1'000}; };
  return {usage.ru_nivcsw, clock_ns(), ns(usage.ru_utime) + ns(usage.ru_stime)};
}

// State word of a pool: generation of the region, a bit that workers may join it, and the number that have joined.
constexpr uint64_t kActiveMask = 0xffff, kOpen = 0x10000, kGeneration = 0x20000;
uint64_t generation(uint64_t word) { return word / kGeneration; }
uint64_t active(uint64_t word) { return word & kActiveMask; }

struct Region {
  const cyx_ctx *ctx;
  cyx_kernel kernel;
  void *const *bufs;
  int64_t tasks, max_chunk;  // max_chunk: tasks in a chunk, at most
  int threads;
  int shares() const { return static_cast<int>(std::min<int64_t>({threads, tasks, kMaxShares})); }
};

// Consecutive tasks of a region that the same thread runs each time, so that their data stay in the caches of its CPU:
// CPUs may have L3 caches of their own too. Threads that have run theirs go on with the shares of others.
struct alignas(64) Share {
  std::atomic<int64_t> next{0};  // first task that no thread has claimed
  int64_t begin = 0, end = 0;
  int64_t claimed() const { return std::min(next.load(std::memory_order_relaxed), end) - begin; }
};

// Number of tasks that a thread claims at once: one at first, since Ctrl-C should not wait for many long tasks.
class ChunkSize {
 public:
  explicit ChunkSize(int64_t max_chunk) : max_chunk_(max_chunk) {}
  int64_t chunk() const { return chunk_; }
  void start() {
    if (chunk_ < max_chunk_) start_ = clock_ns();
  }
  void stop() {
    if (chunk_ < max_chunk_ && clock_ns() - start_ < kShortChunkNs) chunk_ = std::min(2 * chunk_, max_chunk_);
  }

 private:
  int64_t max_chunk_, chunk_ = 1, start_ = 0;
};

thread_local bool inside_task = false;

// A thread of a pool, in a list that the pool's mutex guards.
struct Worker {
  pid_t thread = 0;
  clockid_t clock{};  // clock of its CPU time
  cpu_set_t allowed{};
  std::atomic<bool> active{false};
  int64_t cpu_ns = 0;  // `clock` at the last check
  CpuUse use;  // at the last check for losses, or when it last woke
  Worker *next = nullptr;
};

}  // namespace

class Pool {
 public:
  cyx_status run(const Region &region) noexcept;
  bool try_acquire() noexcept { return !busy_.exchange(true, std::memory_order_acquire); }
  void release() noexcept { busy_.store(false, std::memory_order_release); }
  void stop_workers_above(int workers) noexcept;
  int started() noexcept {
    std::lock_guard<std::mutex> lock(mutex_);
    return started_;
  }

 private:
  void start_workers(int count) noexcept;
  void open(const Region &region) noexcept;
  void close() noexcept;
  Worker *find_descheduled() noexcept;
  void wake() noexcept;
  void note_lost_cpu(Worker *worker) noexcept;
  void work(int index) noexcept;
  void register_worker(Worker *worker) noexcept;
  bool wait_for_region(uint64_t last_generation, int index, Worker *worker) noexcept;
  template <class Done>
  bool spin(Done done, Worker *worker) noexcept;
  bool join(uint64_t *last_generation) noexcept;
  void leave() noexcept;
  bool run_chunk(ChunkSize &chunk_size, int *share_index) noexcept;
  int64_t claimed() const noexcept;
  void run_as_caller() noexcept;
  void fail(int64_t task, cyx_status status) noexcept;

  alignas(64) std::atomic<uint64_t> word_{0};
  Share shares_[kMaxShares];
  alignas(64) std::atomic<int64_t> limit_{0};  // tasks from here on are not started, since an earlier one failed
  alignas(64) std::atomic<bool> busy_{false};
  Region region_{};  // read only by workers that have joined
  std::atomic<int> caller_cpu_{-1};
  std::atomic<int64_t> last_loss_{0};     // time at which a thread was last found to have lost its CPU
  std::atomic<int64_t> shared_until_{0};  // time until which other threads are taken to want the CPUs
  std::atomic<int> sleepers_{0};
  std::atomic<bool> caller_sleeps_{false};
  std::atomic<int> target_workers_{0};  // number of workers; those with an index from here on end
  std::mutex mutex_;
  std::condition_variable wake_, idle_;
  int started_ = 0;
  Worker *workers_ = nullptr;
  uint64_t woken_for_[1 << kWokenForBits] = {};  // keys of regions for which workers were woken
  std::mutex error_mutex_;
  int64_t error_task_ = kNoTask;
  cyx_status error_ = CYX_OK;
};

namespace {

// A worker on the caller's CPU would only run while the caller does not: move it to another CPU before it joins.
void move_off_cpu(int cpu, const cpu_set_t &allowed) {
  if (cpu < 0 || sched_getcpu() != cpu) return;
  cpu_set_t others = allowed;
  CPU_CLR(cpu, &others);
  if (CPU_COUNT(&others)) sched_setaffinity(0, sizeof others, &others);
}

// A worker may have lost its CPU to another program for milliseconds while the caller only waits for it: move it to the
// CPU that the caller is about to leave.
void lend_cpu(const Worker *worker) {
  const int cpu = sched_getcpu();
  if (!worker || cpu < 0 || !CPU_ISSET(cpu, &worker->allowed)) return;
  cpu_set_t cpu_set;
  CPU_ZERO(&cpu_set);
  CPU_SET(cpu, &cpu_set);
  sched_setaffinity(worker->thread, sizeof cpu_set, &cpu_set);  // migrates the thread
  sched_setaffinity(worker->thread, sizeof worker->allowed, &worker->allowed);
}

}  // namespace

void Pool::register_worker(Worker *worker) noexcept {
  worker->thread = static_cast<pid_t>(syscall(SYS_gettid));
  pthread_getcpuclockid(pthread_self(), &worker->clock);
  sched_getaffinity(0, sizeof worker->allowed, &worker->allowed);
  std::lock_guard<std::mutex> lock(mutex_);
  worker->use = cpu_use();
  worker->next = workers_;
  workers_ = worker;
}

void Pool::work(int index) noexcept {
  inside_task = true;
  Worker self;
  register_worker(&self);
  uint64_t last_generation = 0;
  while (wait_for_region(last_generation, index, &self)) {
    move_off_cpu(caller_cpu_.load(std::memory_order_relaxed), self.allowed);
    if (join(&last_generation)) {
      self.active.store(true, std::memory_order_relaxed);
      ChunkSize chunk_size(region_.max_chunk);
      int share_index = (index + 1) * region_.shares() / region_.threads;
      while (run_chunk(chunk_size, &share_index)) {
      }
      self.active.store(false, std::memory_order_relaxed);
      leave();
    }
  }
}

// Wait for a new region; return false if this worker is to end.
bool Pool::wait_for_region(uint64_t last_generation, int index, Worker *worker) noexcept {
  const auto is_ready = [&] {
    return generation(word_.load(std::memory_order_seq_cst)) != last_generation ||
           index >= target_workers_.load(std::memory_order_relaxed);
  };
  if (!spin(is_ready, worker)) {
    std::unique_lock<std::mutex> lock(mutex_);
    sleepers_.fetch_add(1, std::memory_order_seq_cst);
    wake_.wait(lock, is_ready);
    sleepers_.fetch_sub(1, std::memory_order_seq_cst);
    worker->use = cpu_use();
  }
  if (index < target_workers_.load(std::memory_order_relaxed)) return true;
  std::lock_guard<std::mutex> lock(mutex_);
  if (index < target_workers_.load(std::memory_order_relaxed)) return true;
  Worker **link = &workers_;
  while (*link != worker) link = &(*link)->next;
  *link = worker->next;
  --started_;
  return false;
}

// Threads that spin take CPUs from other threads, also from those of other processes. If there are any, the kernel
// gives them the CPU of this thread time and again, and for milliseconds; its own work takes a fraction of one.
void Pool::note_lost_cpu(Worker *worker) noexcept {
  const CpuUse before = std::exchange(worker->use, cpu_use()), &use = worker->use;
  const int64_t losses = use.losses - before.losses, lost_ns = (use.ns - before.ns) - (use.cpu_ns - before.cpu_ns);
  if (losses == 0 || lost_ns < losses * kLossNs) return;
  const int64_t since = use.ns - last_loss_.exchange(use.ns, std::memory_order_relaxed);
  if (since < kLossIntervalNs) shared_until_.store(use.ns + kSharedNs, std::memory_order_relaxed);
}

// Spin until `done` returns true, for longer if no other threads want the CPUs; return its last value.
template <class Done>
bool Pool::spin(Done done, Worker *worker) noexcept {
  if (spin_until(done)) return true;
  note_lost_cpu(worker);
  return clock_ns() > shared_until_.load(std::memory_order_relaxed) && spin_until(done, kLongSpinNs);
}

bool Pool::join(uint64_t *last_generation) noexcept {
  uint64_t word = word_.load(std::memory_order_acquire);
  do {
    *last_generation = generation(word);
    if (!(word & kOpen)) return false;
  } while (!word_.compare_exchange_weak(word, word + 1, std::memory_order_acq_rel, std::memory_order_acquire));
  return true;
}

void Pool::leave() noexcept {
  const uint64_t before = word_.fetch_sub(1, std::memory_order_seq_cst);
  if ((before & kOpen) || active(before) != 1 || !caller_sleeps_.load(std::memory_order_seq_cst)) return;
  std::lock_guard<std::mutex> lock(mutex_);
  idle_.notify_one();
}

void Pool::open(const Region &region) noexcept {
  region_ = region;
  caller_cpu_.store(sched_getcpu(), std::memory_order_relaxed);
  error_task_ = kNoTask;
  error_ = CYX_OK;
  const int shares = region.shares();
  for (int k = 0; k < shares; ++k) {
    Share &share = shares_[k];
    share.begin = region.tasks * k / shares;
    share.end = region.tasks * (k + 1) / shares;
    share.next.store(share.begin, std::memory_order_relaxed);
  }
  limit_.store(region.tasks, std::memory_order_relaxed);
  const uint64_t last = generation(word_.load(std::memory_order_relaxed));
  word_.store((last + 1) * kGeneration | kOpen, std::memory_order_seq_cst);
}

// Let no more workers join, and wait until those that have joined have left.
void Pool::close() noexcept {
  word_.fetch_and(~kOpen, std::memory_order_seq_cst);
  const auto is_idle = [&] { return active(word_.load(std::memory_order_seq_cst)) == 0; };
  if (spin_until(is_idle)) return;
  std::unique_lock<std::mutex> lock(mutex_);
  find_descheduled();
  if (spin_until(is_idle)) return;
  caller_sleeps_.store(true, std::memory_order_seq_cst);
  do lend_cpu(find_descheduled());
  while (!idle_.wait_for(lock, kWaitInterval, is_idle));
  caller_sleeps_.store(false, std::memory_order_seq_cst);
}

// Check the active workers; return one that has hardly run since the last check, or null.
Worker *Pool::find_descheduled() noexcept {
  Worker *found = nullptr;
  for (Worker *worker = workers_; worker; worker = worker->next) {
    if (!worker->active.load(std::memory_order_relaxed)) continue;
    const int64_t before = std::exchange(worker->cpu_ns, clock_ns(worker->clock));
    if (worker->cpu_ns - before < kDescheduledNs) found = worker;
  }
  return found;
}

void Pool::wake() noexcept {
  if (!sleepers_.load(std::memory_order_seq_cst)) return;
  { std::lock_guard<std::mutex> lock(mutex_); }  // a worker about to park has parked, or has seen the new region
  wake_.notify_all();
}

void Pool::fail(int64_t task, cyx_status status) noexcept {
  std::lock_guard<std::mutex> lock(error_mutex_);
  if (task >= error_task_) return;
  // Every earlier task runs all the same, and still reports its error.
  error_task_ = task;
  error_ = status;
  limit_.store(task, std::memory_order_relaxed);
}

// Claim and run a chunk of a share, or of the next one that has tasks left; return false if none has.
bool Pool::run_chunk(ChunkSize &chunk_size, int *share_index) noexcept {
  const int shares = region_.shares();
  for (int k = 0; k < shares; ++k) {
    Share &share = shares_[*share_index];
    const int64_t end = std::min(share.end, limit_.load(std::memory_order_relaxed)), chunk = chunk_size.chunk();
    if (share.next.load(std::memory_order_relaxed) < end) {
      const int64_t begin = share.next.fetch_add(chunk, std::memory_order_relaxed);
      if (begin < end) {
        chunk_size.start();
        const cyx_status status = region_.kernel(region_.bufs, begin, std::min(begin + chunk, share.end));
        chunk_size.stop();
        if (status != CYX_OK) fail(begin, status);
        return true;
      }
    }
    *share_index = (*share_index + 1) % shares;
  }
  return false;
}

int64_t Pool::claimed() const noexcept {
  int64_t tasks = 0;
  for (int k = 0; k < region_.shares(); ++k) tasks += shares_[k].claimed();
  return tasks;
}

// Waking a thread costs as much as a small region. With many tasks, the caller measures those that it runs first, and
// wakes workers as soon as the rest is estimated to take long. It remembers the keys of such regions.
void Pool::run_as_caller() noexcept {
  const cyx_ctx *ctx = region_.ctx;
  ChunkSize chunk_size(region_.max_chunk);
  const uint64_t key = reinterpret_cast<uintptr_t>(region_.kernel) + static_cast<uint64_t>(region_.tasks);
  uint64_t &remembered = woken_for_[key * 0x9e3779b97f4a7c15 >> (64 - kWokenForBits)];
  bool undecided = sleepers_.load(std::memory_order_seq_cst) != 0;
  if (undecided && (region_.tasks < int64_t{kChunksPerThread} * region_.threads || remembered == key)) {
    wake();
    undecided = false;
  }
  const int64_t start = undecided ? clock_ns() : 0;
  int share_index = 0;
  do {
    const int64_t done = undecided ? claimed() : 0;
    if (done && (clock_ns() - start) / done * (region_.tasks - done) > kMinWakeNs) {
      remembered = key;
      wake();
      undecided = false;
    }
    const cyx_status status = ctx->poll(ctx);
    if (status != CYX_OK) fail(-1, status);
  } while (run_chunk(chunk_size, &share_index));
}

cyx_status Pool::run(const Region &region) noexcept {
  start_workers(region.threads - 1);
  open(region);
  inside_task = true;
  run_as_caller();
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

void Pool::start_workers(int count) noexcept {
  if (target_workers_.load(std::memory_order_relaxed) == count) return;
  std::lock_guard<std::mutex> lock(mutex_);
  target_workers_.store(count, std::memory_order_relaxed);
  // Only the interpreter's threads handle signals.
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  while (started_ < count) {
    Start *start = new (std::nothrow) Start{this, started_, &Pool::work};
    pthread_t thread;
    const auto body = [](void *raw) -> void * {
      const std::unique_ptr<Start> start(static_cast<Start *>(raw));
      (start->pool->*start->work)(start->index);
      return nullptr;
    };
    if (!start || pthread_create(&thread, nullptr, body, start) != 0) {
      delete start;
      break;  // fewer threads run the tasks
    }
    pthread_detach(thread);
    ++started_;
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

// Requires the pool to be acquired: end the workers above a number, and wait for their ends.
void Pool::stop_workers_above(int workers) noexcept {
  std::unique_lock<std::mutex> lock(mutex_);
  if (started_ <= workers) return;
  target_workers_.store(workers, std::memory_order_seq_cst);
  wake_.notify_all();
  while (started_ > workers) {
    lock.unlock();
    sched_yield();
    lock.lock();
  }
}

namespace {

std::atomic<Pool *> current{nullptr};
std::atomic<int> thread_target{1};

Pool &pool() {
  Pool *found = current.load(std::memory_order_acquire);
  if (found) return *found;
  Pool *created = new Pool;  // never destroyed: workers may be parked in it until the process ends
  if (current.compare_exchange_strong(found, created, std::memory_order_acq_rel)) return *created;
  delete created;
  return *found;
}

cyx_status run_serially(const Region &region) {
  ChunkSize chunk_size(region.max_chunk);
  for (int64_t begin = 0; begin < region.tasks;) {
    const cyx_status stop = region.ctx->poll(region.ctx);
    if (stop != CYX_OK) return stop;
    const int64_t end = std::min(begin + chunk_size.chunk(), region.tasks);
    chunk_size.start();
    const cyx_status status = region.kernel(region.bufs, begin, end);
    chunk_size.stop();
    if (status != CYX_OK) return status;
    begin = end;
  }
  return CYX_OK;
}

}  // namespace

cyx_status parallel_for(const cyx_ctx *ctx, cyx_kernel kernel, void *const *bufs, int64_t tasks) noexcept {
  if (tasks <= 1) return tasks == 1 ? kernel(bufs, 0, 1) : CYX_OK;
  const int threads = thread_target.load(std::memory_order_relaxed);
  const int64_t max_chunk = std::max<int64_t>(1, tasks / (int64_t{kChunksPerThread} * threads));
  const Region region{ctx, kernel, bufs, tasks, max_chunk, threads};
  if (threads == 1 || inside_task) return run_serially(region);
  Pool &acquired = pool();  // another pool may replace it meanwhile
  if (!acquired.try_acquire()) return run_serially(region);
  const cyx_status status = acquired.run(region);
  acquired.release();
  return status;
}

int thread_count() noexcept { return thread_target.load(std::memory_order_relaxed); }

void set_thread_count(int n) noexcept {
  n = std::clamp(n, 1, 1024);
  Pool &acquired = pool();
  while (!acquired.try_acquire()) sched_yield();
  thread_target.store(n, std::memory_order_relaxed);
  acquired.stop_workers_above(n - 1);
  acquired.release();
}

int started_workers() noexcept { return pool().started(); }

Pool *detach_pool() noexcept { return current.exchange(nullptr, std::memory_order_acq_rel); }

void shut_down(Pool *pool) noexcept {
  while (!pool->try_acquire()) sched_yield();
  pool->stop_workers_above(0);
  pool->release();  // for a thread that got the pool before it was detached
}

void threads_init() {
  // The threads do not exist in the child, which creates a new pool when it first needs one.
  pthread_atfork(nullptr, nullptr, [] {
    current.store(nullptr, std::memory_order_relaxed);
    inside_task = false;
  });
}

}  // namespace cyxla
