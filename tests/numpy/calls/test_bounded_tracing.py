"""Functions whose traces would take long: they are given up in time, and NumPy runs them."""

import warnings

import numpy as np
import pytest

import cyxla
from cyxla.errors import FallbackWarning, RecompileWarning
from cyxla.numpy.calls.recompilation import MOST_REFUSALS, MOST_SPECIALISATIONS


@pytest.fixture(autouse=True)
def fallback(monkeypatch):
    """Use the default, which is to fall back."""
    monkeypatch.delenv("CYXLA_FALLBACK")


def fibonacci(n):
    return n if n < 2 else fibonacci(n - 1) + fibonacci(n - 2)


@cyxla.jit
def jitted_fibonacci(n):
    return n if n < 2 else jitted_fibonacci(n - 1) + jitted_fibonacci(n - 2)


class Walk:
    def steps(self, n):
        return n if n < 2 else self.steps(n - 1) + self.steps(n - 2)


RECURSIONS = {"function": (fibonacci, 6765), "jitted": (jitted_fibonacci, 6765), "method": (Walk().steps, 6765)}


@pytest.mark.parametrize("name", RECURSIONS)
def test_recursions_that_branch(name):
    function, value = RECURSIONS[name]
    with pytest.warns(FallbackWarning, match="10000 calls"):
        assert cyxla.jit(function)(20) == value


def _bubbles(values):
    values = list(values)
    for _ in range(len(values)):
        for k in range(len(values) - 1):
            if values[k] > values[k + 1]:
                values[k], values[k + 1] = values[k + 1], values[k]
            else:
                values[k] = values[k]
    return values


def test_the_time_of_traces_is_bounded(monkeypatch):
    monkeypatch.setenv("CYXLA_TRACE_SECONDS", "0.05")
    sort = cyxla.jit(_bubbles)
    with pytest.warns(FallbackWarning, match=r"(?s)traced for 0\.05 s.*test_bounded_tracing.*CYXLA_TRACE_SECONDS"):
        assert sort([3.0, 1.0, 2.0] * 7) == sorted([3.0, 1.0, 2.0] * 7)
    misses = sort.cache_info().misses
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for n in range(8, 12):  # which are not traced
            assert sort([3.0, 1.0, 2.0] * n) == sorted([3.0, 1.0, 2.0] * n)
    assert sort.cache_info().misses == misses


def _repeated(values):
    return [[v] * v for v in values]


def test_elements_of_long_lists_do_not_become_static():
    function = cyxla.jit(_repeated, platform="interpreter")
    assert function([2, 1]) == _repeated([2, 1])
    with pytest.warns(FallbackWarning, match="cannot be used as an index or a size"):
        assert function([1, 2] * 65) == _repeated([1, 2] * 65)
    misses = function.cache_info().misses
    for k in range(5):
        assert function([k, 2] * 65) == _repeated([k, 2] * 65)
    assert function.cache_info().misses == misses


def test_shapes_stay_static():
    function = cyxla.jit(lambda x, shape: x.reshape(shape), platform="interpreter", fallback="error")
    for shape in ([1] * 15 + [4], [1] * 14 + [2, 2]):
        np.testing.assert_array_equal(function(np.arange(4.0), shape), np.arange(4.0).reshape(shape))


def test_signatures_are_not_refused_for_ever():
    compiled = cyxla.jit(lambda x: x.tobytes(), sizes="exact")
    with warnings.catch_warnings(action="ignore"):
        results = [compiled(np.zeros(n)) for n in range(40)]
    assert results == [bytes(8 * n) for n in range(40)]
    assert compiled.cache_info().misses == MOST_REFUSALS


def test_results_of_many_known_numbers():
    def rows():
        return [list(range(k, k + 400)) for k in range(200)]

    with pytest.warns(FallbackWarning, match="a result has more than 50000 parts"):
        assert cyxla.jit(rows)() == rows()


class Unit:
    def __init__(self, factor):
        self.factor = np.full(2, factor)


class Scale:
    def __init__(self, factor):
        self.unit = Unit(factor)

    @cyxla.jit
    def named_self(self, x):
        return x * self.unit.factor

    @cyxla.jit
    def named_otherwise(this, x):  # noqa: N805 - which no signature tells from an argument
        return x * this.unit.factor


@pytest.mark.parametrize("method, subject", [("named_self", "of the method"), ("named_otherwise", "this")])
def test_methods_of_many_objects(method, subject):
    scales = [Scale(float(n)) for n in range(MOST_SPECIALISATIONS + 3)]
    with pytest.warns() as found:
        results = [[getattr(scale, method)(np.ones(2)) for _ in range(2)] for scale in scales]
    np.testing.assert_array_equal(results, [[scale.unit.factor] * 2 for scale in scales])
    texts = [str(w.message) for w in found]
    assert [type(w.message) for w in found] == [RecompileWarning, FallbackWarning]
    assert all(f"since the object {subject} changes" in text and "function of their arrays" in text for text in texts)
