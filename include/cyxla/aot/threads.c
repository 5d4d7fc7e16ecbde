/* Pool of threads: it starts with the first loop that is long enough for it, and serves one call at a time. */
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <unistd.h>

#include "runtime.h"

#define MAX_THREADS 256
#define SPINS 2000 /* looks for the next loop before a thread sleeps: some ten microseconds */

static pthread_mutex_t in_use = PTHREAD_MUTEX_INITIALIZER; /* held by the call that the pool serves */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;   /* of everything below */
static pthread_cond_t begun = PTHREAD_COND_INITIALIZER, ended = PTHREAD_COND_INITIALIZER;
static pthread_t workers[MAX_THREADS];
static int32_t num_workers, is_closing;
static cyx_aot_loop *current; /* the loop that runs, NULL between loops */
static int32_t seats, busy;   /* workers that may still join it, and those inside of it */
static uint64_t generation;   /* number of loops so far, also read without the lock */

static void *serve(void *unused) {
  (void)unused;
  uint64_t seen = 0;
  pthread_mutex_lock(&lock);
  while (!is_closing) {
    if (generation == seen || !current || !seats) {
      seen = generation;
      pthread_mutex_unlock(&lock);
      for (int k = 0; k < SPINS && __atomic_load_n(&generation, __ATOMIC_RELAXED) == seen; ++k) sched_yield();
      pthread_mutex_lock(&lock);
      while (generation == seen && !is_closing) pthread_cond_wait(&begun, &lock);
      continue;
    }
    seen = generation;
    cyx_aot_loop *loop = current;
    --seats;
    ++busy;
    pthread_mutex_unlock(&lock);
    CYX_AOT(work)(loop, NULL);
    pthread_mutex_lock(&lock);
    if (!--busy) pthread_cond_signal(&ended);
  }
  pthread_mutex_unlock(&lock);
  return NULL;
}

/* Forget the threads of the parent process, which a child does not have. */
static void after_fork(void) {
  const pthread_mutex_t free_mutex = PTHREAD_MUTEX_INITIALIZER;
  const pthread_cond_t no_waiters = PTHREAD_COND_INITIALIZER;
  in_use = lock = free_mutex;
  begun = ended = no_waiters;
  num_workers = busy = seats = 0;
  current = NULL;
}

static void register_fork(void) { pthread_atfork(NULL, NULL, after_fork); }

/* Start workers, all signals blocked; with fewer threads than wanted the loop takes longer, and nothing else. */
static void start_workers(int32_t count) {
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  pthread_once(&once, register_fork);
  while (num_workers < count && !pthread_create(&workers[num_workers], NULL, serve, NULL)) ++num_workers;
}

static int32_t processors(void) {
  cpu_set_t set;
  return sched_getaffinity(0, sizeof(set), &set) ? 1 : CPU_COUNT(&set);
}

void CYX_AOT(run_loop)(cyx_aot_loop *loop, const cyx_aot_run *call) {
  static int32_t all; /* processors, 0 while unknown */
  int32_t count = call->threads;
  if (count <= 0) {
    count = __atomic_load_n(&all, __ATOMIC_RELAXED);
    if (!count) __atomic_store_n(&all, count = processors(), __ATOMIC_RELAXED);
  }
  if (count > loop->tasks) count = (int32_t)loop->tasks;
  if (count > MAX_THREADS) count = MAX_THREADS;
  if (count < 2 || pthread_mutex_trylock(&in_use)) {
    CYX_AOT(work)(loop, call);
    return;
  }
  pthread_mutex_lock(&lock);
  start_workers(count - 1);
  current = loop;
  seats = count - 1;
  __atomic_store_n(&generation, generation + 1, __ATOMIC_RELAXED);
  pthread_cond_broadcast(&begun);
  pthread_mutex_unlock(&lock);
  CYX_AOT(work)(loop, call);
  pthread_mutex_lock(&lock);
  current = NULL;
  seats = 0;
  while (busy) pthread_cond_wait(&ended, &lock);
  pthread_mutex_unlock(&lock);
  pthread_mutex_unlock(&in_use);
}

/* End the threads before their code is unloaded. */
__attribute__((destructor)) static void stop_workers(void) {
  pthread_mutex_lock(&lock);
  is_closing = 1;
  pthread_cond_broadcast(&begun);
  pthread_mutex_unlock(&lock);
  for (int32_t k = 0; k < num_workers; ++k) pthread_join(workers[k], NULL);
  num_workers = 0;
}
