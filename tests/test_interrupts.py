"""Ctrl-C in the middle of one long kernel, or of one long call of NumPy."""

import itertools
import signal
import threading
import time
from contextvars import ContextVar

import numpy as np
import pytest
from support.interrupts import Interrupted, interrupted_before, sending

import cyxla
from cyxla import interrupts
from cyxla._native import _rt
from cyxla.interrupts import interruptible
from cyxla.xla.cpu.dump import Dump
from cyxla.xla.cpu.lowering import emit, run_passes
from cyxla.xla.cpu.run.executable import ABANDONABLE_ABOVE, WATCHED_ABOVE
from cyxla.xla.evaluator.evaluation import _is_long
from cyxla.xla.service import CompileOptions

KIND = ContextVar("KIND", default="default")


@pytest.fixture
def ctrl_c():
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def quiet():
    """Wait until nothing is under way any more that was abandoned."""
    while _rt.abandoned_runs():
        time.sleep(0.01)


# --- calls of libraries ---


def test_calls_return_results_and_errors():
    assert interruptible(lambda: 3) == 3
    with pytest.raises(ZeroDivisionError):
        interruptible(lambda: 1 / 0)


def test_it_is_called_in_the_context_of_the_caller():
    token = KIND.set("set")
    try:
        assert interruptible(KIND.get) == "set"
        with np.errstate(divide="raise"), pytest.raises(FloatingPointError):
            interruptible(lambda: np.ones(1) / np.zeros(1))
    finally:
        KIND.reset(token)


def test_the_main_thread_alone_has_calls_made_by_others():
    assert interruptible(threading.get_ident) != threading.get_ident()
    seen = []
    other = threading.Thread(target=lambda: seen.append(interruptible(threading.get_ident) == threading.get_ident()))
    other.start()
    other.join()
    assert seen == [True]


@pytest.mark.usefixtures("ctrl_c")
def test_a_call_goes_on_and_its_result_is_dropped():
    begun, go_on, ended = threading.Event(), threading.Event(), threading.Event()

    def call():
        begun.set()
        go_on.wait(60)
        ended.set()

    with pytest.raises(KeyboardInterrupt), sending(signal.SIGINT, begun.is_set):
        interruptible(call)
    assert not ended.is_set()
    assert _rt.abandoned_runs() == 1
    go_on.set()
    ended.wait(60)
    quiet()
    assert interruptible(lambda: 4) == 4


def test_a_call_that_goes_on_is_counted_wherever_it_was_interrupted():
    for number in itertools.count(1):
        seen = []

        def call(seen=seen):
            seen.append("begun")
            time.sleep(0.1)
            seen.append("ended")
            return 5

        try:
            with interrupted_before(number, [interrupts.__file__], pause=0.03):
                assert interruptible(call) == 5
                break
        except Interrupted:
            counted = _rt.abandoned_runs()
            assert counted == 1 or seen != ["begun"]
            quiet()
    assert number > 15


# --- which instructions, and which programs ---

LONG = {
    "product": (lambda x: x @ x, (6000, 6000)),
    "product of integers": (lambda x: x.astype(np.int64) @ x.astype(np.int64), (3000, 3000)),
    "svd": (lambda x: np.linalg.svd(x)[1], (1500, 1500)),
    "eig": (lambda x: np.linalg.eigvals(x), (1500, 1500)),
    "eigh": (lambda x: np.linalg.eigh(x)[1], (1500, 1500)),
    "qr": (lambda x: np.linalg.qr(x)[0], (3000, 3000)),
    "cholesky": (lambda x: np.linalg.cholesky(x), (6000, 6000)),
    "solve": (lambda x: np.linalg.solve(x, x), (4000, 4000)),
    "inverse": (lambda x: np.linalg.inv(x), (4000, 4000)),
    "determinant": (lambda x: np.linalg.det(x), (4000, 4000)),
    "sort": (lambda x: np.sort(x), (30_000_000,)),
    "argsort": (lambda x: np.argsort(x), (30_000_000,)),
    "unique counts": (lambda x: np.median(x), (30_000_000,)),
    "fft": (lambda x: np.fft.fft(x), (20_000, 4096)),
    "convolution": (lambda x: np.convolve(x, x[:100_000]), (1_000_000,)),
    "running total": (lambda x: np.cumsum(x), (100_000_000,)),
    "sum": (lambda x: np.sum(x), (300_000_000,)),
    "sines": (lambda x: np.sin(x), (300_000_000,)),
    "transposition": (lambda x: x.T + 0, (30_000, 30_000)),
    "histogram": (lambda x: np.bincount(x.astype(np.int64), minlength=10), (100_000_000,)),
}
SHORT = {
    "product": (lambda x: x @ x, (128, 128)),
    "sines": (lambda x: np.sin(x), (100_000,)),
    "svd": (lambda x: np.linalg.svd(x)[1], (50, 50)),
    "sort": (lambda x: np.sort(x), (20_000,)),
    "many kernels": (lambda x: sum(np.cumsum(x * k) for k in range(30)), (1000,)),
    "loop of any length": (
        lambda x: cyxla.fori_loop(0, x[0, 0].astype(int), lambda k, s: s + x[k % 8] @ x[3], 0.0),
        (8, 500),
    ),
}


def module_of(function, sizes):
    return cyxla.jit(function).lower((sizes, "f8"))


def plan_of(module):
    options = CompileOptions()
    return emit(run_passes(module, options, Dump(module)), options)[0]


@pytest.mark.parametrize("name", LONG)
def test_long_programs_are_watched(name):
    plan = plan_of(module_of(*LONG[name]))
    assert plan.longest > ABANDONABLE_ABOVE or plan.cost > WATCHED_ABOVE
    assert 0 < plan.longest <= plan.cost


@pytest.mark.parametrize("name", SHORT)
def test_short_programs_are_not(name):
    plan = plan_of(module_of(*SHORT[name]))
    assert plan.longest <= ABANDONABLE_ABOVE
    assert plan.cost <= WATCHED_ABOVE


@pytest.mark.parametrize("name", LONG)
def test_long_instructions_are_evaluated_aside(name):
    module = module_of(*LONG[name])
    assert any(_is_long(i) for computation in module.post_order() for i in computation.instructions)


@pytest.mark.parametrize("name", SHORT)
def test_short_instructions_are_evaluated_in_place(name):
    module = module_of(*SHORT[name])
    assert not any(_is_long(i) for computation in module.post_order() for i in computation.instructions)


def test_functions_of_the_user_are_called_by_the_main_thread():
    seen = []

    def mine(x):
        seen.append(threading.current_thread() is threading.main_thread())
        return x

    text = """
    ENTRY e {
      x = f64[300,300] parameter(0)
      ROOT r = f64[300,300] custom-call(x), custom_call_target="mine"
    }
    """
    for platform in ("interpreter", "cpu"):
        cyxla.compile(text, platform=platform, custom_calls={"mine": lambda ev, ins, x: mine(x)})(np.ones((300, 300)))
    assert seen == [True, True]


# --- the whole ---


@pytest.mark.usefixtures("ctrl_c")
def test_ctrl_c_in_the_middle_of_lapack(backend):
    """No program is long enough for every machine: one that has ended before the signal is run on more."""
    for size in (400, 800, 1600, 3200):
        x = np.random.default_rng(0).standard_normal((size, size))
        run = cyxla.compile(lambda x: np.linalg.svd(x)[1], x, platform=backend)
        try:
            with sending(signal.SIGINT):
                run(x)
                signal.pause()  # it has ended; the signal is still to come
        except KeyboardInterrupt:
            if _rt.abandoned_runs():
                break
    else:
        pytest.fail("nothing was interrupted")
    small = x[:20, :20]
    after = cyxla.compile(lambda x: x @ x, small, platform=backend)
    np.testing.assert_allclose(after(small), small @ small)
    quiet()


@pytest.mark.usefixtures("ctrl_c")
def test_ctrl_c_in_the_middle_of_a_jitted_function():
    function = cyxla.jit(lambda x: np.linalg.eigvals(x))
    for size in (400, 800, 1600):
        x = np.random.default_rng(0).standard_normal((size, size))
        function(x)  # compiled and all
        try:
            with sending(signal.SIGINT):
                function(x)
                signal.pause()
        except KeyboardInterrupt:
            if _rt.abandoned_runs():
                break
    else:
        pytest.fail("nothing was interrupted")
    assert function(np.eye(3)).tolist() == [1, 1, 1]
    quiet()
