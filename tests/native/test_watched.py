"""Programs that run beside the main thread, which waits for signals and abandons programs that do not stop."""

import contextlib
import gc
import os
import signal
import subprocess
import sys
import threading
import time
import weakref

import numpy as np
import pytest
from support.interrupts import alarm, sending

from cyxla import errors
from cyxla._native import _rt
from cyxla.xla.cpu.native import library as native

# Sees nothing of the caller's wish to stop until flag[1] is set; flag[0] says that it has begun.
DEAF = """
CYX_EXPORT cyx_status entry(void *const *b, const cyx_ctx *ctx) {
  volatile int64_t *flag = b[0];
  const double *x = b[1]; double *y = b[2];
  flag[0] = 1;
  while (!flag[1]) {}
  for (int k = 0; k < 3; ++k) y[k] = x[k] + 1.0;
  return CYX_OK;
}
"""
# The same in tasks: the first one waits.
DEAF_TASKS = """
static cyx_status work(void *const *b, int64_t begin, int64_t end) {
  volatile int64_t *flag = b[0];
  const double *x = b[1]; double *y = b[2];
  flag[0] = 1;
  while (!flag[1]) {}
  for (int64_t k = begin; k < end; ++k) y[k] = x[k] + 1.0;
  return CYX_OK;
}
CYX_EXPORT cyx_status entry(void *const *b, const cyx_ctx *ctx) { return ctx->parallel_for(ctx, work, b, 3); }
"""
POLLING = """
CYX_EXPORT cyx_status entry(void *const *b, const cyx_ctx *ctx) {
  *(volatile int64_t *)b[0] = 1;
  for (;;) { cyx_status s = ctx->poll(ctx); if (s != CYX_OK) return s; }
}
"""
FAILING = """
CYX_EXPORT cyx_status entry(void *const *b, const cyx_ctx *ctx) {
  __builtin_memcpy(ctx->message, "bad", 4);
  return CYX_INVALID_ARGUMENT;
}
"""
SQUARES = """
static cyx_status work(void *const *b, int64_t begin, int64_t end) {
  for (int64_t k = begin; k < end; ++k) ((double *)b[0])[k] = (double)(k * k);
  return CYX_OK;
}
CYX_EXPORT cyx_status entry(void *const *b, const cyx_ctx *ctx) { return ctx->parallel_for(ctx, work, b, 500); }
"""
F3 = ("f8", (3,))
X = np.arange(3.0)


class Interrupted(BaseException):
    pass


@pytest.fixture
def interrupting():
    """A signal raises."""

    def interrupt(*_):
        raise Interrupted

    before = signal.signal(signal.SIGALRM, interrupt)
    yield
    signal.signal(signal.SIGALRM, before)


@pytest.fixture
def flag():
    """Shared with the program, which is let go in the end whatever happens."""
    made = np.zeros(2, np.int64)
    yield made
    made[1] = 1
    until(lambda: _rt.abandoned_runs() == 0)


@pytest.fixture(params=[DEAF, DEAF_TASKS], ids=["serial", "tasks"])
def abandonable(request, program, flag):
    return abandonable_program(program, flag, request.param)


def abandonable_program(program, flag, body=DEAF, **options):
    return program(
        body, [("i8", (2,)), F3], [F3], bound={0: flag}, watched=True, abandonable=True, arena_bytes=1 << 20, **options
    )


def until(holds):
    """Wait until something holds, which another thread is about to bring about."""
    for _ in range(6000):
        if holds():
            return
        time.sleep(0.01)
    raise AssertionError("it never came to be")


def interrupted(call, flag):
    with pytest.raises(Interrupted), sending(signal.SIGALRM, lambda: flag[0]):
        call()


@pytest.mark.usefixtures("interrupting")
def test_programs_that_do_not_stop_are_abandoned_and_kept_alive(abandonable, flag):
    before = native.pool_stats()["in_use_bytes"]
    given = [X.copy()]
    gone = weakref.ref(given[0])
    interrupted(lambda: abandonable(given.pop()), flag)
    gc.collect()
    assert flag[1] == 0  # it is still working
    assert _rt.abandoned_runs() == 1
    assert gone() is not None
    assert native.pool_stats()["in_use_bytes"] > before
    flag[1] = 1
    until(lambda: _rt.abandoned_runs() == 0 and gone() is None)
    assert native.pool_stats()["in_use_bytes"] == before
    np.testing.assert_array_equal(abandonable(X), X + 1)


@pytest.mark.usefixtures("interrupting")
def test_other_programs_run_on_all_threads_meanwhile(abandonable, flag, program):
    interrupted(lambda: abandonable(X), flag)
    squares = program(SQUARES, [], [("f8", (500,))])
    np.testing.assert_array_equal(squares(), np.arange(500.0) ** 2)
    before = native.threads()
    try:
        assert native.threads(before + 1) == before + 1  # this waits for the pool
    finally:
        native.threads(before)
    np.testing.assert_array_equal(squares(), np.arange(500.0) ** 2)


@pytest.mark.usefixtures("interrupting")
def test_arrays_of_the_caller_are_not_written_after_an_interruption(abandonable, flag):
    out = np.full(3, 7.0)
    interrupted(lambda: abandonable(X, out=out), flag)
    flag[1] = 1
    until(lambda: _rt.abandoned_runs() == 0)
    np.testing.assert_array_equal(out, [7.0] * 3)
    assert abandonable(X, out=out) is out
    np.testing.assert_array_equal(out, X + 1)


@pytest.mark.usefixtures("interrupting")
def test_donated_memory_is_waited_for(program, flag):
    donating = abandonable_program(program, flag, donations={1: 0})
    released = []

    def release():
        until(lambda: flag[0])
        os.kill(os.getpid(), signal.SIGALRM)
        time.sleep(0.5)
        released.append(_rt.abandoned_runs())
        flag[1] = 1

    helper = threading.Thread(target=release)
    helper.start()
    with pytest.raises(Interrupted):
        donating(X.copy())
    assert released == [0]  # the call ended after its program
    helper.join()


@pytest.mark.usefixtures("interrupting")
def test_programs_that_poll_stop_by_themselves(program):
    begun = np.zeros(1, np.int64)
    polling = program(POLLING, [("i8", (1,))], [], (), bound={0: begun}, watched=True)
    interrupted(polling, begun)
    assert _rt.abandoned_runs() == 0


def test_cancel_reaches_it(program):
    begun = np.zeros(1, np.int64)
    polling = program(POLLING, [("i8", (1,))], [], (), bound={0: begun}, watched=True)

    def cancel():
        until(lambda: begun[0])
        polling.cancel()

    helper = threading.Thread(target=cancel)
    helper.start()
    with pytest.raises(errors.CancelledError):
        polling()
    helper.join()


def test_errors_come_with_their_message(program):
    with pytest.raises(errors.InvalidArgumentError, match="bad"):
        program(FAILING, [], [], (), watched=True)()


def test_a_handler_that_does_not_raise_changes_nothing(program, flag):
    abandonable, seen = abandonable_program(program, flag), []

    def note(*_):
        seen.append(True)
        flag[1] = 1

    before = signal.signal(signal.SIGALRM, note)
    try:
        with alarm():
            np.testing.assert_array_equal(abandonable(X), X + 1)
    finally:
        signal.signal(signal.SIGALRM, before)
    assert seen == [True]


def test_other_threads_run_it_themselves(program, flag):
    abandonable, made = abandonable_program(program, flag), []
    flag[1] = 1
    threads = [threading.Thread(target=lambda: made.append(abandonable(X))) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all((y == X + 1).all() for y in made)
    assert len(made) == 8


@pytest.mark.usefixtures("interrupting")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_forked_child_has_none_of_the_abandoned_runs(program, flag):
    abandonable = abandonable_program(program, flag)
    interrupted(lambda: abandonable(X), flag)
    child = os.fork()
    if child == 0:
        code = 1
        with contextlib.suppress(BaseException):
            assert _rt.abandoned_runs() == 0
            flag[1] = 1
            np.testing.assert_array_equal(abandonable(X), X + 1)
            code = 0
        os._exit(code)
    assert os.waitpid(child, 0)[1] == 0


ENDING = """
import signal, sys
import numpy as np
sys.path.insert(0, {tests!r})
from support.interrupts import sending
from cyxla._native import _rt
from cyxla.xla.cpu.native import library as native
from cyxla.xla.cpu.c import prelude
signal.signal(signal.SIGINT, signal.default_int_handler)
flag = np.zeros(2, np.int64)
library = native.build_library([prelude.abi() + "\\nCYX_LIBRARY\\n" + {body!r}])
types = [("i8", (2,)), ("f8", (3,))], [("f8", (3,))]
abandonable = native.Program(library, "entry", *types, 0, bound={{0: flag}}, watched=True)
try:
    with sending(signal.SIGINT, lambda: flag[0]):
        abandonable(np.ones(3))
except KeyboardInterrupt:
    print("interrupted", _rt.abandoned_runs(), end="")
sys.exit(3)
"""


def test_a_process_ends_with_its_status_while_something_goes_on_for_ever(program):
    script = ENDING.format(tests=os.path.dirname(os.path.dirname(__file__)), body=DEAF)
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=120, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (3, "interrupted 1", "")
