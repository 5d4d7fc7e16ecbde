"""Classes of NumPy's scalars called with arrays, which return an array of their dtype itself; `issubclass`."""

from collections.abc import Sequence

import numpy as np
import pytest
from support.functions.sized import alike

import cyxla

X = np.array([[1.0, -2.0], [3.0, 4.0]])


def written(x):
    y = np.float64(x)
    y[0] = 5
    return y, y is x


def written_view(x):
    y = np.double(x[:1])
    y[0] = 5
    return x * 1


def written_by_its_dtype(x):
    z = x * 2
    y = x.dtype.type(z)
    y[0] = 5
    return z


def other_dtype(x):
    y = np.float32(x)
    y[0] = 5
    return y, x, y is x


def known(x):
    k, n = np.arange(3.0), np.arange(3)
    y, z = np.float64(k), np.float64(n)
    y[0] = z[1] = x[0, 0]
    return k, n, y, z


def of_selected(x):
    y = x[x > 0]
    z, f = np.float64(y), np.float32(y)
    z[0] = f[1] = 9
    return y, z is y, f, np.bool_(y), np.complex64(y), np.int64(y)


def of_numbers(x):
    return np.float64(x[0, 0]), np.float32(x.sum()), np.float64(np.array(3.0)), np.int64(x.shape[0])


def of_lists(x):
    return np.float32([x[0, 0], 2]), np.float64([x[0], x[1]])


def subclasses(x):
    kinds = type(x), type(x[0, 0]), bool
    return [issubclass(kind, (list, np.ndarray, Sequence, float)) for kind in kinds]


FUNCTIONS = [
    written, written_view, written_by_its_dtype, other_dtype, known, of_selected, of_numbers, of_lists, subclasses,
]  # fmt: skip


@pytest.mark.parametrize("function", FUNCTIONS)
def test_classes(function, backend):
    ours, theirs = X.copy(), X.copy()
    got, want = cyxla.jit(function, platform=backend)(ours), function(theirs)
    alike(got, want, function.__name__)
    np.testing.assert_array_equal(ours, theirs)
