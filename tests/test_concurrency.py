"""One executable, many threads, forks, and a user who presses Ctrl-C."""

import os
import signal
import threading

import numpy as np
import pytest
from support.interrupts import sending

import cyxla

PROGRAM = "ENTRY e { x = f32[4096] parameter(0) t = f32[4096] tanh(x) ROOT r = f32[4096] add(t, x) }"
FOREVER = """
cond {
  s = (s32[], f32[64]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  z = s32[] constant(0)
  ROOT p = pred[] compare(i, z), direction=GE
}
body {
  s = (s32[], f32[64]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  x = f32[64] get-tuple-element(s), index=1
  y = f32[64] sine(x)
  ROOT t = (s32[], f32[64]) tuple(i, y)
}
ENTRY e {
  i = s32[] parameter(0)
  x = f32[64] parameter(1)
  s = (s32[], f32[64]) tuple(i, x)
  w = (s32[], f32[64]) while(s), condition=cond, body=body
  ROOT r = f32[64] get-tuple-element(w), index=1
}
"""


@pytest.fixture(scope="module")
def executable():
    return cyxla.compile(PROGRAM)


def test_a_hundred_threads(executable):
    rng = np.random.default_rng(0)
    inputs = [rng.standard_normal(4096, dtype=np.float32) for _ in range(100)]
    wanted = [executable(x).tobytes() for x in inputs]
    wrong = []

    def work(k):
        for _ in range(1000):
            if executable(inputs[k]).tobytes() != wanted[k]:
                wrong.append(k)

    workers = [threading.Thread(target=work, args=(k,)) for k in range(100)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert not wrong


def at_once(count, work):
    """Run `work(k)` in a number of threads that start together, and return their exceptions."""
    raised, begin = [], threading.Barrier(count)

    def run(k):
        begin.wait()
        try:
            work(k)
        except Exception as error:
            raised.append(error)

    threads = [threading.Thread(target=run, args=(k,)) for k in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return raised


def test_many_threads_call_a_function_for_the_first_time():
    traced = []
    record = traced.append.__call__

    @cyxla.jit(sizes="exact")
    def function(x):
        record(x.shape)
        return np.sin(x) + x.sum()

    def work(k):
        x = np.arange(8.0 + k % 4)
        for _ in range(20):
            np.testing.assert_allclose(function(x), np.sin(x) + x.sum())

    assert at_once(24, work) == []
    assert sorted(traced) == [(8,), (9,), (10,), (11,)]


def test_errors_of_many_threads_are_their_own():
    function = cyxla.jit(lambda x, k: x[k])
    x = np.arange(100.0)

    def work(k):
        for _ in range(20):
            if k % 2:
                with pytest.raises(IndexError, match=str(1000 + k)):
                    function(x, np.int64(1000 + k))
            else:
                assert function(x, np.int64(k)) == k

    assert at_once(24, work) == []


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_forks_while_other_threads_call(executable):
    x = np.ones(4096, np.float32)
    want = executable(x).tobytes()
    ended = threading.Event()

    def call():
        while not ended.is_set():
            executable(x)

    threads = [threading.Thread(target=call) for _ in range(4)]
    for thread in threads:
        thread.start()
    try:
        for _ in range(20):
            child = os.fork()
            if child == 0:
                os._exit(0 if executable(x).tobytes() == want else 1)
            assert os.waitpid(child, 0)[1] == 0
    finally:
        ended.set()
        for thread in threads:
            thread.join()


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_forks_after_use(executable):
    x = np.ones(4096, np.float32)
    want = executable(x).tobytes()
    for _ in range(80):
        child = os.fork()
        if child == 0:
            os._exit(0 if executable(x).tobytes() == want else 1)
        _, status = os.waitpid(child, 0)
        assert status == 0


@pytest.fixture
def ctrl_c():
    """Ctrl-C raises KeyboardInterrupt, which is not so in a process that a shell started in the background."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("ctrl_c")
def test_ctrl_c_ends_a_loop_and_the_next_call_works(executable):
    loop = cyxla.compile(FOREVER)
    with pytest.raises(KeyboardInterrupt), sending(signal.SIGINT):
        loop(np.int32(1), np.ones(64, np.float32))
    ended = loop(np.int32(-1), np.full(64, 2, np.float32))
    np.testing.assert_array_equal(ended, np.full(64, 2, np.float32))
    assert executable(np.zeros(4096, np.float32)).shape == (4096,)
