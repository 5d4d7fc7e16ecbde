"""Grids and histograms whose sizes are arguments, and ``reduceat``."""

import numpy as np
import pytest

import cyxla
from cyxla.errors import TraceError, UnimplementedError

X = np.arange(6.0)
A = X.reshape(2, 3)
SIZES = {
    "mgrid": lambda n: np.mgrid[0:n],
    "mgrid, two": lambda n: np.mgrid[0:n, 0:2],
    "mgrid, step": lambda n: np.mgrid[0 : 2 * n : n, 1:n],
    "mgrid, number of points": lambda n: np.mgrid[0 : 1 : n * 1j],
    "ogrid": lambda n: np.ogrid[0:n],
    "ogrid, two": lambda n: np.ogrid[0:n, 0 : n**2],
    "r_": lambda n: np.r_[0:n, 7.0],
    "c_": lambda n: np.c_[0:n],
    "histogram": lambda n: np.histogram(np.arange(9.0) * n, n),
    "ndarray": lambda n: np.ndarray(n).shape,
}


def equal(got, expected):
    if isinstance(expected, (tuple, list)):
        assert type(got) is type(expected)
        assert len(got) == len(expected)
        for one, other in zip(got, expected, strict=True):
            equal(one, other)
    else:
        np.testing.assert_array_equal(got, expected)
        assert np.asarray(got).dtype == np.asarray(expected).dtype


@pytest.mark.parametrize("case", SIZES)
def test_sizes_of_arguments(case):
    function = cyxla.jit(SIZES[case])
    for n in (3, 4, 3):
        equal(function(n), SIZES[case](n))


def test_grids_can_be_written_and_used():
    def f(x, n):
        i, j = np.mgrid[0:n, 0:2]
        i[0] = 5
        j[:, 0] = x[:n]
        return i * x[1] + j

    equal(cyxla.jit(f)(X.astype(int), 3), f(X.astype(int), 3))


def test_bounds_that_depend_on_arrays():
    with pytest.raises(TraceError, match="cannot be a bound or step of a grid"):
        cyxla.jit(lambda x: np.mgrid[0 : x[2]])(X)
    with pytest.raises(TraceError, match="cannot be a number of bins"):
        cyxla.jit(lambda x, n: np.histogram(x, n[0]))(X, np.arange(200))


REDUCEAT = {
    "list": lambda x: np.add.reduceat(x, [0, 2, 4]),
    "array": lambda x: np.maximum.reduceat(x, np.array([0, 3, 1, 5])),
    "range": lambda x: np.multiply.reduceat(x, np.arange(0, 6, 2)),
    "computed": lambda x: np.add.reduceat(x, np.flatnonzero(np.arange(6) % 2)),
}


@pytest.mark.parametrize("case", REDUCEAT)
def test_reduceat_of_known_indices(case):
    equal(cyxla.jit(REDUCEAT[case])(X), REDUCEAT[case](X))


def test_reduceat_of_traced_indices():
    equal(cyxla.jit(np.add.reduceat, fallback="error")(X, np.array([0, 2])), np.add.reduceat(X, np.array([0, 2])))
    with pytest.raises(UnimplementedError, match="reduceat with traced indices"):
        cyxla.jit(np.subtract.reduceat)(X, np.array([0, 2]))
