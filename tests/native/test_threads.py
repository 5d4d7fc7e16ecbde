"""The thread pool: every task once, the first error by number, inline when taken, alive after fork."""

import os
import subprocess
import sys
import textwrap
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from support.interrupts import repeatedly

from cyxla import errors
from cyxla._native import _rt
from cyxla.xla.cpu.native import library as native

COUNT_TASKS = """
static cyx_status task(void *const *b, int64_t begin, int64_t end) {
  for (int64_t k = begin; k < end; ++k) ((unsigned char *)b[0])[k] += 1;
  return CYX_OK;
}
CYX_EXPORT cyx_status entry(void *const *b, const cyx_ctx *c) {
  unsigned char *y = b[0];
  for (int k = 0; k < N; ++k) y[k] = 0;
  return c->parallel_for(c, task, b, N);
}
"""


@pytest.fixture(autouse=True)
def _threads():
    before = native.threads()
    yield
    native.threads(before)


def counting(program, n):
    return program(COUNT_TASKS.replace("N", str(n)), [], [("u1", (n,))])


@pytest.mark.parametrize("threads", [1, 2, 3, 8])
@pytest.mark.parametrize("tasks", [0, 1, 2, 3, 17, 100, 5000])
def test_every_task_runs_once(program, threads, tasks):
    native.threads(threads)
    count = counting(program, tasks)
    for _ in range(20):
        np.testing.assert_array_equal(count(), np.ones(tasks, np.uint8))


def test_workers_start_when_needed_and_end_when_too_many(program):
    native.threads(1)
    assert _rt.started_workers() == 0
    native.threads(4)
    counting(program, 1)()
    assert _rt.started_workers() == 0
    counting(program, 2)()
    assert _rt.started_workers() == 3
    native.threads(2)
    assert _rt.started_workers() == 1
    counting(program, 100)()
    assert _rt.started_workers() == 1


WHO = """
static __thread int mark;
static cyx_status task(void *const *b, int64_t begin, int64_t end) {
  for (volatile int k = 0; k < 1000000; ++k) {}
  for (int64_t k = begin; k < end; ++k) ((int64_t *)b[0])[k] = (int64_t)&mark;
  return CYX_OK;
}
CYX_EXPORT cyx_status entry(void *const *b, const cyx_ctx *c) { return c->parallel_for(c, task, b, 64); }
"""


@pytest.mark.parametrize("pause", [0, 0.001], ids=["spinning", "parked"])
def test_workers_take_part(program, pause):
    native.threads(2)
    who = program(WHO, [], [("i8", (64,))])
    seen = 0
    for _ in range(2000):  # on a loaded machine the caller may do all of them many times over
        time.sleep(pause)
        seen = max(seen, len(set(who().tolist())))
        if seen == 2:
            break
    assert seen == 2


def test_threads_begin_with_the_same_tasks_each_time(program):
    """The data of a task are in the caches of the thread that has run it before."""
    native.threads(2)
    who = program(WHO, [], [("i8", (64,))])
    halves = []
    for _ in range(2000):  # on a loaded machine the caller takes over tasks of the worker
        threads = who().reshape(2, 32)
        first = [set(half[:24].tolist()) for half in threads]
        if [len(found) for found in first] == [1, 1] and first[0] != first[1]:
            halves.append(first)
        if len(halves) == 5:
            break
    assert len(halves) == 5
    assert halves == halves[:1] * 5


HELD_UP = """
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
extern long syscall(long, ...);
extern int sched_getcpu(void);

static void run_for(clockid_t clock, long ns, volatile int64_t *until) {
  struct timespec now;
  clock_gettime(clock, &now);
  const int64_t end = now.tv_sec * 1000000000L + now.tv_nsec + ns;
  do clock_gettime(clock, &now);
  while (now.tv_sec * 1000000000L + now.tv_nsec < end && !*until);
}
static cyx_status task(void *const *b, int64_t begin, int64_t end) {
  volatile int64_t *y = b[0];
  unsigned long mask[16] = {0};
  mask[BUSY / 64] = 1UL << BUSY % 64;
  for (int64_t k = begin; k < end; ++k) {
    if (syscall(SYS_gettid) == getpid()) {
      run_for(CLOCK_MONOTONIC, 1000000000L, y);  // until the worker has the other task
    } else {
      syscall(SYS_sched_setaffinity, 0, sizeof mask, mask);
      y[0] = 1;
      run_for(CLOCK_THREAD_CPUTIME_ID, 20000000L, y + 2);
      y[1] = sched_getcpu();
    }
  }
  return CYX_OK;
}
CYX_EXPORT cyx_status entry(void *const *b, const cyx_ctx *c) {
  int64_t *y = b[0];
  y[0] = y[2] = 0;
  y[1] = BUSY;
  return c->parallel_for(c, task, b, 2);
}
"""


@pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="needs two processors")
def test_a_worker_that_lost_its_processor_gets_the_callers(program):
    allowed = os.sched_getaffinity(0)
    here, busy = min(allowed), max(allowed)
    native.threads(2)
    where = program(HELD_UP.replace("BUSY", str(busy)), [], [("i8", (3,))])
    where()  # the worker starts with all processors
    other = subprocess.Popen([sys.executable, "-c", f"import os; os.sched_setaffinity(0, [{busy}])\nwhile True: pass"])
    try:
        os.sched_setaffinity(0, [here])
        assert any(where()[1] == here for _ in range(30))
    finally:
        os.sched_setaffinity(0, allowed)
        other.kill()
        other.wait()
    assert all(os.sched_getaffinity(int(thread)) == allowed for thread in os.listdir("/proc/self/task"))


FAIL = """
static cyx_status task(void *const *b, int64_t begin, int64_t end) {
  for (volatile int k = 0; k < (begin ? LATER : FIRST); ++k) {}
  return begin ? 5 : 3;
}
CYX_EXPORT cyx_status entry(void *const *b, const cyx_ctx *c) { return c->parallel_for(c, task, b, 64); }
"""


@pytest.mark.parametrize("threads", [1, 2, 4])
@pytest.mark.parametrize("first, later", [(2_000_000, 1_000_000), (1_000_000, 2_000_000)], ids=["late", "early"])
def test_the_first_error_by_task_number_wins(program, threads, first, later):
    native.threads(threads)
    fails = program(FAIL.replace("FIRST", str(first)).replace("LATER", str(later)), [], [], ())
    for _ in range(30):
        with pytest.raises(errors.InvalidArgumentError):
            fails()


def test_concurrent_callers_run_their_tasks_themselves(program):
    native.threads(2)
    count = counting(program, 500)

    def work(_):
        return all((count() == 1).all() for _ in range(200))

    with ThreadPoolExecutor(16) as pool:
        assert all(pool.map(work, range(16)))


def test_setting_threads_while_programs_run(program):
    count = counting(program, 300)
    stop = threading.Event()
    wrong = []

    def work():
        while not stop.is_set():
            if not (count() == 1).all():
                wrong.append(1)

    threads = [threading.Thread(target=work) for _ in range(3)]
    for thread in threads:
        thread.start()
    for n in [1, 4, 2, 3, 1, 2] * 10:
        native.threads(n)
    stop.set()
    for thread in threads:
        thread.join()
    assert not wrong


FORK = """
import os, numpy as np
from cyxla.xla.cpu.native import library as native
from cyxla.xla.cpu.c import prelude

native.threads(3)
text = '''{text}'''.replace("N", "1000")
library = native.build_library([prelude.abi() + "CYX_LIBRARY" + text])
count = native.Program(library, "entry", [], [("u1", (1000,))], 0)
assert (count() == 1).all() and native._rt.started_workers() == 2
for k in range(200):
    count()
    pid = os.fork()
    if pid == 0:
        ok = native._rt.started_workers() == 0 and (count() == 1).all() and native._rt.started_workers() == 2
        os._exit(0 if ok else 1)
    assert os.waitpid(pid, 0)[1] == 0, k
assert (count() == 1).all()
print("done")
"""


def test_two_hundred_forks(program, tmp_path):
    counting(program, 2)  # skips without a compiler
    script = FORK.format(text=textwrap.dedent(COUNT_TASKS))
    command = [sys.executable, "-W", "ignore", "-c", script]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600, check=False)
    assert done.stdout == "done\n", done.stderr


@pytest.mark.parametrize("threads", [1, 2])
def test_cancel_between_tasks(program, threads):
    native.threads(threads)
    slow = program(
        """
        static cyx_status task(void *const *b, int64_t begin, int64_t end) {
          for (int64_t t = begin; t < end; ++t) for (volatile int k = 0; k < 1000000; ++k) {}
          return CYX_OK;
        }
        CYX_EXPORT cyx_status entry(void *const *b, const cyx_ctx *c) { return c->parallel_for(c, task, b, 1 << 20); }
        """,
        [], [], (),
    )  # fmt: skip
    with repeatedly(slow.cancel), pytest.raises(errors.CancelledError):
        slow()  # all tasks would take some ten minutes


QUOTAS = {"max 100000": 1 << 16, "150000 100000": 2, "50000 100000": 1, "400000 100000": 4}


@pytest.mark.parametrize("text, cpus", QUOTAS.items())
def test_cgroup_quota(tmp_path, monkeypatch, text, cpus):
    (tmp_path / "cpu.max").write_text(text + "\n")
    monkeypatch.setattr(native, "_cgroup_directories", lambda: [tmp_path, tmp_path / "missing"])
    assert native.cgroup_quota.__wrapped__() == cpus


def test_default_threads(monkeypatch):
    monkeypatch.setenv("CYXLA_NUM_THREADS", "5")
    assert native.default_threads() == 5
    monkeypatch.setenv("CYXLA_THREADS", "7")
    assert native.default_threads() == 7
    monkeypatch.delenv("CYXLA_THREADS")
    monkeypatch.delenv("CYXLA_NUM_THREADS")
    assert native.default_threads() >= 1
