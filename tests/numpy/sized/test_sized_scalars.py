"""Functions of arrays of run-time size beside numbers and lists: classes, shapes and errors of NumPy."""

import numpy as np
import pytest

import cyxla

X = np.array([1.0, 0, 3, 2])

CASES = {
    "interp of a number": lambda x: np.interp(0.5, np.arange(len(x[x > 0])), x[x > 0]),
    "interp of an element": lambda x: np.interp(x[x > 0][0], x[x > 0], x[x > 0], right=7),
    "interp of an array": lambda x: np.interp(np.array([0.5, 9]), x[x > 0], x[x > 0]),
    "isin of a number": lambda x: np.isin(1.0, x[x > 0]),
    "isin of an element": lambda x: np.isin(x[x > 0][0], x[x > 0], invert=True),
    "isin of an array": lambda x: np.isin([1.0, 9], x[x > 0]),
    "empty_like": lambda x: np.empty_like(x[x > 0]) * 0,
    "zeros_like": lambda x: np.zeros_like(x[x > 0], int),
    "kron with a list": lambda x: np.kron(x[x > 0], [1, 2]),
    "kron of a list": lambda x: np.kron([1, 2], x[x > 0]),
    "kron with a number": lambda x: np.kron(x[x > 0], 2),
    "kron of a matrix": lambda x: np.kron(x[x > 0], [[1, 2], [3, 4]]),
}


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("size", [4, 3, 1])
def test_results_are_those_of_numpy(name, size):
    expected, got = CASES[name](X[:size]), cyxla.jit(CASES[name])(X[:size])
    assert type(got) is type(expected)
    np.testing.assert_array_equal(got, expected, strict=True)


def fill(y):
    """Fill NaNs by interpolation."""
    missing = np.isnan(y)
    y[missing] = np.interp(np.flatnonzero(missing), np.flatnonzero(~missing), y[~missing])
    return y


@pytest.mark.parametrize("y", [[1, np.nan, 3, np.nan], [np.nan, 2, np.nan], [1, 2]], ids=str)
def test_missing_numbers_are_interpolated(y):
    y = np.array(y, float)
    np.testing.assert_array_equal(cyxla.jit(fill)(y.copy()), fill(y.copy()))


@pytest.mark.parametrize("function, x, message", [
    (fill, np.full(4, np.nan), "array of sample points is empty"),
    (lambda x: np.interp(0.5, x[x > 0], x[x > 1]), X, "fp and xp are not of the same length"),
])  # fmt: skip
def test_points_that_numpy_refuses(function, x, message):
    for call in (function, cyxla.jit(function)):
        with pytest.raises(ValueError, match=message):
            call(x.copy())


def test_iterators_of_numpy_are_refused():
    with pytest.raises(cyxla.errors.UnimplementedError, match="nditer cannot be traced"):
        cyxla.jit(lambda x: [v * 2 for v in np.nditer(x[x > 0])], fallback="error")(X)


K = np.array([2, 0, 5, 2])

LENGTHS = {
    "of a number": lambda k, n: np.bincount(k, minlength=n),
    "of a selection": lambda k, n: np.bincount(k[k > 1], minlength=n),
    "with weights": lambda k, n: np.bincount(k, weights=k * 0.5, minlength=n),
    "of a selection with weights": lambda k, n: np.bincount(k[k > 1], k[k > 1] * 0.5, minlength=n),
    "of a length": lambda k, n: np.bincount(k, minlength=len(k[k > 1]) + n),
    "of groups": lambda k, n: np.bincount(np.unique(k, return_inverse=True)[1], minlength=len(np.unique(k))),
    "of pairs": lambda k, n: np.bincount(k * n + k, minlength=n * n).reshape(-1, 1),
}


@pytest.mark.parametrize("name", LENGTHS)
@pytest.mark.parametrize("n", [0, 3, 9])
def test_least_lengths_of_counts(name, n):
    compiled = cyxla.jit(LENGTHS[name])
    for k in (K, K[:1], K[1:2], K[:0]):
        if (k > 1).any() or "weights" not in name:  # NumPy counts no elements in integers despite weights
            expected = LENGTHS[name](k, np.int64(n))
            np.testing.assert_array_equal(compiled(k, np.int64(n)), expected, strict=True)


@pytest.mark.parametrize("n, error, message", [
    (-1, ValueError, "'minlength' must not be negative"),
    (1 << 40, cyxla.errors.UnimplementedError, "minlength= is beyond"),
])  # fmt: skip
def test_least_lengths_that_are_refused(n, error, message):
    with pytest.raises(error, match=message):
        cyxla.jit(lambda k, n: np.bincount(k, minlength=n), fallback="error")(K, np.int64(n))


KNOWN = {
    "an array that is broadcast": lambda x: np.broadcast_to(np.arange(4), (len(x[x > 0]), 4)),
    "a constant that is broadcast": lambda x: np.broadcast_to(K, (len(x[x > 0]), 4)) * 1,
    "a list that is broadcast": lambda x: np.broadcast_to([1.0, 2], (len(x[x > 0]), 2)),
    "a number that is broadcast": lambda x: np.broadcast_to(2.5, len(x[x > 0])),
    "a mask of a window": lambda x: np.hanning(4)[x > 0],
    "an index of a window": lambda x: np.kaiser(4, 2.0)[np.argmax(x)],
    "windows": lambda x: (np.bartlett(4) + np.blackman(4) * np.hamming(4))[x > 1],
}


@pytest.mark.parametrize("name", KNOWN)
def test_known_arrays_take_sizes_and_masks_known_at_run_time(name):
    expected, got = KNOWN[name](X), cyxla.jit(KNOWN[name], fallback="error")(X)
    assert type(got) is type(expected)
    np.testing.assert_allclose(got, expected, rtol=1e-15, strict=True)
