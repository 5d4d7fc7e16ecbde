"""`disable_jit` and ``CYXLA_DISABLE_JIT``: jitted functions run as plain Python."""

import threading

import numpy as np
import pytest
from cyxla.numpy.tracing.arrays.traced_array import is_traced

import cyxla

X = np.arange(4.0)
TRACED = "traced"


def kind_of(x):
    """Return the type of an argument, or a text for one that is traced."""
    return TRACED if is_traced(x) else type(x)


class Model:
    def __init__(self):
        self.kinds = []

    @cyxla.jit
    def run(self, x, *, scale=1):
        self.kinds.append(kind_of(x))
        return x * scale


def make():
    """Return two jitted functions, of which one calls the other, and the types of the arguments that they saw."""
    kinds = []

    @cyxla.jit
    def inner(x):
        kinds.append(kind_of(x))
        return x + 1

    @cyxla.jit
    def outer(x, n=2):
        kinds.append(kind_of(x))
        return inner(x) * n

    return outer, kinds


@pytest.fixture(params=["context", "variable"])
def disabled(request, monkeypatch):
    if request.param == "variable":
        monkeypatch.setenv("CYXLA_DISABLE_JIT", "1")
        yield
    else:
        with cyxla.disable_jit():
            yield


@pytest.mark.usefixtures("disabled")
def test_plain_calls_see_arrays():
    outer, kinds = make()
    for _ in range(2):
        np.testing.assert_array_equal(outer(X, n=3), (X + 1) * 3)
    assert kinds == [np.ndarray] * 4
    assert outer.cache_info().entries == 0


@pytest.mark.usefixtures("disabled")
def test_plain_calls_of_methods():
    model = Model()
    np.testing.assert_array_equal(model.run(X, scale=2), X * 2)
    np.testing.assert_array_equal(Model.run(model, X), X)
    assert model.kinds == [np.ndarray] * 2


@pytest.mark.usefixtures("disabled")
def test_plain_calls_return_what_python_returns():
    assert cyxla.jit(lambda a, b: a * b)(10**20, 3) == 3 * 10**20
    assert cyxla.jit(lambda s: s + "b")("a") == "ab"
    with pytest.raises(ZeroDivisionError):
        cyxla.jit(lambda a: 1 // a)(0)


@pytest.mark.usefixtures("disabled")
def test_plain_calls_write_to_arguments_and_to_out():
    x, y = X.copy(), np.empty(4)

    @cyxla.jit
    def f(a):
        a += 1
        return a * 2

    assert f(x, out=y) is y
    np.testing.assert_array_equal(x, X + 1)
    np.testing.assert_array_equal(y, 2 * (X + 1))


@pytest.mark.usefixtures("disabled")
def test_plain_control_flow():
    f = cyxla.jit(lambda x: cyxla.while_loop(lambda v: v.sum() < 100, lambda v: v * 2, x))
    np.testing.assert_array_equal(f(X), X * 32)


@pytest.mark.usefixtures("disabled")
def test_gradients_are_traced_still():
    outer, kinds = make()
    np.testing.assert_array_equal(cyxla.grad(lambda x: outer(x).sum())(X), np.full(4, 2.0))
    assert kinds == [TRACED] * 2


@pytest.mark.usefixtures("disabled")
def test_programs_are_lowered_and_compiled_still():
    inner = cyxla.jit(lambda x: x + 1)
    outer = cyxla.jit(lambda x: inner(x) * 2)
    np.testing.assert_array_equal(outer.compile(X)(X), (X + 1) * 2)
    assert "add" in outer.lower(X).to_text()
    np.testing.assert_array_equal(cyxla.compile(outer, X)(X), (X + 1) * 2)


def test_context_ends_and_nests():
    outer, kinds = make()
    outer(X)
    with cyxla.disable_jit():
        with cyxla.disable_jit():
            outer(X)
        outer(X)  # was compiled before, and is not dispatched to its program
    outer(X)
    assert kinds.count(np.ndarray) == 4
    with pytest.raises(KeyError), cyxla.disable_jit():
        raise KeyError
    outer(X)
    assert kinds.count(np.ndarray) == 4


def test_context_is_of_one_thread():
    outer, kinds = make()
    with cyxla.disable_jit():
        thread = threading.Thread(target=outer, args=(X,))
        thread.start()
        thread.join()
    assert kinds == [TRACED] * 2


def test_queued_calls_are_plain():
    outer, kinds = make()
    with cyxla.disable_jit():
        future = outer.call_async(X)
    np.testing.assert_array_equal(future.result(), (X + 1) * 2)
    assert kinds == [np.ndarray] * 2


def test_decorator():
    kinds = []

    @cyxla.disable_jit()
    def f(x):
        return cyxla.jit(lambda v: kinds.append(type(v)))(x)

    f(X)
    f(X)
    assert kinds == [np.ndarray] * 2
