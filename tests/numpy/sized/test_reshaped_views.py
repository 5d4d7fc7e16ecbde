"""Reshaped arrays of run-time size: views in NumPy, or copies, which depends on the sizes."""

import warnings

import numpy as np
import pytest

import cyxla
from cyxla.errors import TraceError

VECTORS = ("x[m]", "x[n:]", "x[:n]", "np.arange(n) * 1.0")
MATRICES = ("X[m]", "X[n:]", "X[:, :n]", "X[:, q]", "X[m][:, q]", "X[:n].T")
VIEWS = ("y.reshape(-1, 1)", "y.reshape(2, -1)", "y.reshape(-1)", "y.ravel()", "np.reshape(y, y.size)", "y.reshape(6)")
WRITES = ("z += 1", "z[0] = 7", "y[:1] = 5", "z = z.copy(); z *= 2")


def outcome(function, count, n):
    table = np.arange(24.0).reshape(8, 3)
    m, q = np.arange(8) % 8 < count, np.array([True, False, True])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return function(np.arange(8.0), table, m, n, q)
        except ValueError as error:
            return error


@pytest.mark.parametrize("write", WRITES)
@pytest.mark.parametrize("source, view", [(s, v) for s in (*VECTORS, *MATRICES) for v in VIEWS])
def test_writes_are_seen_where_numpy_has_a_view(source, view, write):
    namespace = {"np": np}
    exec(f"def function(x, X, m, n, q):\n y = {source}\n z = {view}\n {write}\n return y, z, x, X", namespace)
    function = namespace["function"]
    compiled = cyxla.jit(function, platform="interpreter", fallback="numpy")
    for count, n in ((6, 6), (2, 3), (6, 3)):
        got, want = (outcome(f, count, n) for f in (compiled, function))
        if isinstance(want, ValueError):
            assert isinstance(got, ValueError)
            continue
        for one, other in zip(got, want, strict=True):
            np.testing.assert_array_equal(one, other, strict=True)


def test_a_write_to_a_copy_that_may_be_a_view_is_refused():
    def function(table, q):
        y = table[:, q]
        z = y.reshape(-1)
        z += 1
        return y

    with pytest.raises(TraceError, match=r"(?s)a reshaped array is another array or a new one.*mend: copy it$"):
        cyxla.jit(function, fallback="error")(np.ones((4, 3)), np.array([True, False, True]))
