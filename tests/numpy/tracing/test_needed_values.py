"""Numbers among the arguments whose values a function needs while it is traced become static by themselves."""

import warnings

import numpy as np
import pytest

import cyxla
from cyxla.errors import FallbackWarning, RecompileWarning, TraceError
from cyxla.numpy.calls.recompilation import MOST_SPECIALISATIONS

X = np.arange(6.0)


def loop(x, n):
    for k in range(n):
        x = x * 2 + k
    return x


def early(x, n):
    if n > 2 and x.ndim:
        return x
    return -x


def in_a_loop(x, n):
    return cyxla.fori_loop(0, 3, lambda k, state: state + np.ones(n)[0] * k, x)


def with_a_default(x, n=3):
    return x.reshape(n, -1)


CASES = {
    "size": (lambda x, n: np.zeros(n) + x[0], [2, 3, np.int64(2), np.int8(1)]),
    "computed size": (lambda x, n: np.zeros((n // 2 + 1, 2)) * n, [4, 5, np.uint8(6)]),
    "shape": (lambda x, n: np.full(n, x[1]), [(2, 3), [2, 2], np.array([3, 1]), np.array([], int), 4]),
    "reshape": (lambda x, n: x.reshape(n, -1) * n, [1, 2, 3, 6]),
    "axis": (lambda x, n: np.sum(x.reshape(2, 3), axis=n), [0, 1, -1, (0, 1), None]),
    "bound of range": (loop, [0, 1, 4]),
    "flag": (lambda x, n: x * 2 if n else x, [True, False, np.bool_(True), 0, 1.5]),
    "condition": (early, [1, 3, 2.5, np.float32(7)]),
    "int": (lambda x, n: x[: int(n)], [1.5, 2.0, np.float64(3)]),
    "arange": (lambda x, n: np.arange(n) * 2, [3, 3.5, np.int32(4)]),
    "repeated list": (lambda x, n: np.stack([x] * n), [1, 2, np.int64(3)]),
    "repeated tuple": (lambda x, n: x.reshape(n * (1,) + (-1,)), [0, 2]),
    "shape of a function": (lambda x, n: np.fromfunction(lambda i, j: i * 3 + j, (n, 2)) + x[0], [2, 3]),
    "seed": (lambda x, n: np.random.default_rng(n).normal(size=3) + x[0], [2, 3]),
    "width of padding": (lambda x, n: np.pad(x, ((n, 0),)), [0, 2, np.int64(3)]),
    "computed widths": (lambda x, n: np.pad(x.reshape(2, 3), [(n[0], n[1]), (0, n[0] + n[1])]), [(1, 2), [0, 1]]),
    "widths": (lambda x, n: np.pad(x, n), [np.array([[2, 1]]), np.array(3)]),
    "repetitions": (lambda x, n: np.repeat(x, n), [0, 3, np.int32(2)]),
    "repetitions of each": (lambda x, n: np.repeat(x.reshape(2, 3), [n, 1], axis=0), [2, 3]),
    "position to insert at": (lambda x, n: np.insert(x, n, 0.5), [0, 2, [1, 3], np.array([2, 5])]),
    "inside of a loop": (in_a_loop, [2, 3]),
    "width": (lambda x, n: np.pad(x, int(n / 2), mode="reflect"), [2, 3, np.int64(4)]),
    "pairs of widths": (lambda x, n: np.pad(x, ((n, n + 1),)), [0, 2]),
    "counts": (lambda x, n: np.repeat(x, n), [2, 0, np.arange(6)]),
    "inserted place": (lambda x, n: np.insert(x, n, x[0]), [2, 0, [1, 2]]),
    "inside of another function": (cyxla.jit(lambda x, n: np.zeros(n) + x[0], platform="interpreter"), [2, 3]),
    "least dtype": (lambda x, n: x.astype(np.min_scalar_type(n)), [3, 300, -1, 2.5, 1e300, np.uint16(7)]),
    "as a size and as a number": (lambda x, n: np.linspace(0, n, n), [3, 4]),
}


@pytest.mark.parametrize("name", CASES)
def test_values(name, backend):
    function, numbers = CASES[name]
    plain = getattr(function, "function", function)
    compiled = cyxla.jit(function, platform=backend)
    for n in [*numbers, *numbers]:
        got, want = compiled(X, n), plain(X, n)
        assert type(got) is type(want)
        np.testing.assert_array_equal(got, want)
        assert np.asarray(got).dtype == np.asarray(want).dtype
    assert compiled.cache_info().misses <= len(numbers)


def test_defaults():
    compiled = cyxla.jit(with_a_default)
    for arguments in ((X,), (X, 2), (X, 3), (X,)):
        np.testing.assert_array_equal(compiled(*arguments), with_a_default(*arguments))


def test_members_of_containers():
    compiled = cyxla.jit(lambda x, options: np.zeros(options["n"]) + x[0] * options["scale"])
    for n, scale in ((2, 1.5), (3, 1.5), (3, 2.5)):
        np.testing.assert_array_equal(compiled(X, {"n": n, "scale": scale}), np.zeros(n) + X[0] * scale)
    assert compiled.cache_info().misses == 2  # scale stays traced


def test_other_numbers_stay_traced():
    compiled = cyxla.jit(lambda x, n, scale: x.reshape(n, -1) * scale)
    for scale in (1.0, 2.0, 3.0):
        np.testing.assert_array_equal(compiled(X, 2, scale), X.reshape(2, -1) * scale)
    assert compiled.cache_info().misses == 1


def test_many_values_are_warned_about():
    compiled = cyxla.jit(lambda x, n: x[0] + np.zeros(n))
    for n in range(1, 8):
        compiled(X, n)
    with pytest.warns(RecompileWarning, match="argument n changes"):
        compiled(X, 8)


REFUSED = {
    "size from an array": lambda x, n: np.zeros((x[0] + n).astype(int)),
    "state of a loop": lambda x, n: cyxla.fori_loop(0, 3, lambda k, s: s + np.zeros(s.astype(int))[0], x[0] + n),
    "list times an element": lambda x, n: np.array([1, 2] * x.astype(int)[0]),
    "hash": lambda x, n: {1: x}[x[0] + n],
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused(name):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(TraceError, match=r"test_needed_values\.py"):
            cyxla.jit(REFUSED[name], platform="interpreter")(X, 1)
    np.testing.assert_array_equal(X, np.arange(6.0))


COMPILED = {
    "condition of an array": lambda x, n: x if x.sum() > n else -x,
    "float": lambda x, n: float(n),
    "float of an element": lambda x, n: float(x[1]) * n,
}


@pytest.mark.parametrize("name", COMPILED)
def test_values_that_stay_traced(name, backend):
    function = COMPILED[name]
    compiled = cyxla.jit(function, platform=backend)
    for n in (1, 14, 15, 16, -3):
        got, want = compiled(X, n), function(X, n)
        assert type(got) is type(want)
        np.testing.assert_array_equal(got, want)
    assert compiled.cache_info().misses == 1


OUTSIDE = X.copy()


def test_numbers_written_to_an_array_outside_stay_traced(backend):
    compiled = cyxla.jit(lambda x, n: OUTSIDE.__setitem__(0, n), platform=backend)
    for n in (1, 7, -2):
        assert compiled(X, n) is None
        np.testing.assert_array_equal(OUTSIDE, [n, *X[1:]])
    assert compiled.cache_info().misses == 1
    assert compiled(OUTSIDE, 5) is None  # it shares memory with what is written
    np.testing.assert_array_equal(OUTSIDE, [5, *X[1:]])


def test_shapes_that_are_written_are_refused():
    def function(n):
        x = np.zeros(n)
        n[0] = 7
        return x

    with pytest.raises(TraceError, match="used as an index or a size"):
        cyxla.jit(function, platform="interpreter")(np.array([2, 3]))


def _binary_digits(n):
    digits = []
    while n > 1:
        digits.append(n % 2)
        n //= 2
    return digits


SPECIALISED = {  # function, arguments of the k-th call, what the warning names
    "needed values": (_binary_digits, lambda k: (k,), "argument n"),
    "great integers": (lambda n: n & (n - 1) == 0, lambda k: (2 ** (64 + k),), "argument n"),
    "texts": (lambda text, x: (len(text), x + 1), lambda k: ("a" * k, 1.0), "argument text"),
    "lengths of tuples": (lambda values: values[-1] + 1, lambda k: ((1,) * k,), "structure of its arguments"),
}


@pytest.mark.filterwarnings("ignore::cyxla.RecompileWarning")
@pytest.mark.parametrize("name", SPECIALISED)
def test_specialisation_comes_to_an_end(name):
    function, arguments, subject = SPECIALISED[name]
    compiled = cyxla.jit(function, platform="interpreter", fallback="numpy")
    calls = [arguments(k) for k in range(1, MOST_SPECIALISATIONS + 4)]
    with pytest.warns(FallbackWarning, match=f"(?s){subject} changes.*test_needed_values") as found:
        results = [compiled(*args) for args in calls]
    assert results == [function(*args) for args in calls]
    assert len([w for w in found if w.category is FallbackWarning]) == 1
    assert compiled.cache_info().misses <= MOST_SPECIALISATIONS


@pytest.mark.filterwarnings("ignore::cyxla.RecompileWarning")
def test_static_arguments_are_always_specialised_for():
    compiled = cyxla.jit(lambda x, n: x[0] + np.zeros(n), static="n", platform="interpreter", fallback="numpy")
    with warnings.catch_warnings():
        warnings.simplefilter("error", FallbackWarning)
        for n in range(MOST_SPECIALISATIONS + 2):
            np.testing.assert_array_equal(compiled(X, n), X[0] + np.zeros(n))
