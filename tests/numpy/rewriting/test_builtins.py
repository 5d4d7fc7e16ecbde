"""Python's functions of iterables, and look-ups in lists of numbers, with traced numbers."""

import itertools
import math
import warnings

import numpy as np
import pytest
from support.functions.function_rows import outcome

import cyxla

X = np.array([1.5, -2.5, 3.5])
LONG = np.linspace(-1, 1, 50)
M = np.random.default_rng(0).random((12, 9))
COEFFICIENTS = [1.0, 0.5, 0.25, 0.125] * 5


def look_up(x):
    table, total = [1.0, 2.0, 3.0] * 20, 0.0
    for i in range(60):
        total += table[i] * x[i % 3] + table[-i - 1]
    return total


def look_up_outside(x):
    total = 0.0
    for i in range(20):
        total += COEFFICIENTS[i] * x[i % 3]
    return total


def neighbours(x):
    rows, columns = [0, 1, 0, -1] * 9, (1, 0, -1, 0) * 9
    out = np.zeros(x.shape)
    for i in range(1, x.shape[0] - 1):
        for j in range(1, x.shape[1] - 1):
            for k in range(36):
                out[i, j] += x[i + rows[k], j + columns[k]]
    return out


def traced_elements(x):
    table, total = [x[0] * 2, x[1], x[2]], 0.0
    for i in range(60):
        total += table[i % 3]
    return total


def integers(n):
    table, total = (3, -1, 2) * 30, 0
    for i in range(90):
        total = total + table[i] * n
    return total


def repeat(x, n):
    w = np.zeros(2)
    for _ in itertools.repeat(None, n):
        w += 0.1 * (x[:2] - w)
    return w


def static_keys(n):
    cells = [0, 0, 0]
    cells[n] = 5
    return {1: "a", 2: "b"}.get(n, "c"), [1, 2.5, "x"][n], n in {2, 3}, cells


CASES = {
    "any": (lambda x: (any(v > 2 for v in x), any([x[0] > 5, x[1] > 5]), any(x > 3)), X),
    "all": (lambda x: (all(v > -3 for v in x), all([x[0] > 0, True]), all(x > 0), all([])), X),
    "of many": (lambda x: (any(x > 0.9), all(x > 0), max(x), min(x)), LONG),
    "keys": (lambda x: (max(x, key=lambda v: -v), min(x, key=abs)), X),
    "iterators": (lambda x: (max(v * 2 for v in x), min(iter(x)), max([1, 2], key=abs), max([], default=3)), X),
    "sorted": (lambda x: (sorted([x[0], x[1], x[2]]), sorted(x, reverse=True), sorted([3, 1])), X),
    "sorted numbers": (lambda a, b: sorted([a, b, 2]), 3, 1),
    "prod": (lambda x: (math.prod(x), math.prod([2, 3]), sum(v * v for v in x)), X),
    "isclose": (lambda x: (math.isclose(x[0], 1.5), math.isclose(x[0], x[1], abs_tol=5)), X),
    "modf": (lambda x: (math.modf(x[0]), math.modf(x[1]), math.modf(x[2] * math.inf)), X),
    "look-up": (look_up, X), "look-up outside": (look_up_outside, X), "neighbours": (neighbours, M),
    "traced elements": (traced_elements, X), "integers": (integers, 4), "repeat": (repeat, X, 30),
    "static keys": (static_keys, 2),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_compiled_as_python_does(name, backend):
    function, *args = CASES[name]
    f = cyxla.jit(function, platform=backend)
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # of loops that are unrolled
        got, want = f(*args), function(*args)
    if isinstance(want, np.ndarray):
        np.testing.assert_allclose(got, want, rtol=1e-12)
    elif isinstance(want, float):
        assert type(got) is type(want)
        assert got == pytest.approx(want, rel=1e-12)
    else:
        assert repr(got) == repr(want)


def test_elements_that_may_fail_are_not_computed_ahead():
    def found(x, i):
        return any(x[k] > 2 for k in (i, i + 1))

    f = cyxla.jit(found, platform="interpreter", fallback="numpy")
    with pytest.warns(cyxla.errors.FallbackWarning, match="may fail"):
        assert f(X, np.int64(2))


def test_nan_is_left_to_python():
    f = cyxla.jit(lambda x: (max(x), sorted(x[:3])), platform="interpreter", fallback="numpy")
    nan = np.array([1.0, np.nan, *range(20)])
    assert repr(f(nan)) == repr((max(nan), sorted(nan[:3])))


@pytest.mark.filterwarnings("ignore:overflow")
@pytest.mark.parametrize("count", [5, 40])
@pytest.mark.parametrize("dtype", ["?", "i1", "u1", "i2", "u4", "i8", "f4"])
def test_sums_have_the_class_of_the_numbers(dtype, count):
    x = (np.arange(count) * 9 % 7).astype(dtype)
    got, want = cyxla.jit(lambda x: sum(x), platform="interpreter")(x), sum(x)
    assert got == want
    assert type(got) is type(want)


OF_SELECTED = {
    "sum": lambda x: sum(x[x > 1]), "max": lambda x: max(x[x > 1]), "min": lambda x: min(np.unique(x)),
    "any": lambda x: (any(x[x > 1] > 4), all(x[x > 1] > 1)), "entropy": lambda x: -sum(x[x > 0] * np.log(x[x > 0])),
    "empty": lambda x: (sum(x[:0][x[:0] > 1]), any(x[:0][x[:0] > 1])), "sum and more": lambda x: sum(x[x > 1]) / 2,
}  # fmt: skip


@pytest.mark.filterwarnings("ignore::cyxla.errors.FallbackWarning")
@pytest.mark.parametrize("name", OF_SELECTED)
def test_of_elements_selected_by_a_mask(name, backend):
    function = OF_SELECTED[name]
    compiled = cyxla.jit(function, platform=backend, fallback="numpy")
    for x in (np.arange(9.0), np.array([3.0, 0.5, 2.5]), np.arange(8), np.ones(4), np.zeros(3, int)):
        (want, failure), (got, ours) = outcome(function, [x]), outcome(compiled, [x])
        assert isinstance(ours, ValueError) is isinstance(failure, ValueError)
        assert str(failure) in str(ours)
        assert type(got) is type(want)
        if failure is None:
            np.testing.assert_allclose(got, want, rtol=1e-12)


def membership(x, k):
    y = k[x > 0.1]
    return 3 in y, 7 not in y, (k[0] in y) and x.sum() > 0


def table_of_bytes(x, k):
    return np.frombuffer(b"ABCDEFGH", np.uint8)[k % 8]


def indices_without_any(x, k):
    found = np.array([i for i in range(len(x)) if x[i] > 9], dtype=int)
    return np.setdiff1d(np.arange(len(x)), found)


@pytest.mark.parametrize("function", [membership, table_of_bytes, indices_without_any])
def test_arrays_of_run_time_size_and_of_bytes(function):
    x, k = np.arange(5.0) / 4, np.array([0, 2, 3, 1, 3])
    got, want = cyxla.jit(function, fallback="error")(x, k), function(x, k)
    for a, b in zip(got, want, strict=True):
        assert np.asarray(a).dtype == np.asarray(b).dtype
        np.testing.assert_array_equal(a, b)
