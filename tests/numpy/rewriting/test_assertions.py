"""Assertions of `numpy.testing` in compiled functions: they hold in the program, or NumPy raises its error."""

import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose as close

import cyxla

X = np.array([1.0, 2.0, 3.0])
T = np.testing

# functions of two values, with values for which they pass, and such for which they do not
CASES = {
    "close": (lambda x, y: T.assert_allclose(x, y), [(X, X), (X, X + 1e-9)], [(X, X + 1e-3), (X, X[:2])]),
    "close by position": (lambda x, y: T.assert_allclose(x, y, 0.1, 0.5), [(X, X + 0.5)], [(X, X + 1)]),
    "close by name": (lambda x, y: close(x, y, atol=1, verbose=False), [(X, X + 1), (X * np.nan,) * 2], [(X, X + 2)]),
    "close to nan": (lambda x, y: close(x, y, equal_nan=False), [(X, X)], [(X * np.nan, X * np.nan)]),
    "a sum": (
        lambda x, y: T.assert_allclose(np.sum(x), y, err_msg="{}".format(np.sum(x))), [(X, 6)], [(X, 7.0)],  # noqa: UP032
    ),
    "almost equal": (lambda x, y: T.assert_almost_equal(x.sum(), y), [(X, 6), (X, 6 + 1e-8)], [(X, 6 + 2e-7)]),
    "almost equal integers": (lambda x, y: T.assert_almost_equal(x, y), [(2**60, 2**60)], [(2**60, 2**60 + 1)]),
    "decimals": (lambda x, y: T.assert_array_almost_equal(x, y, 2), [(X, X + 1e-2)], [(X, X + 0.1), (X, X * np.nan)]),
    "bools": (lambda x, y: T.assert_array_almost_equal(x > 1, y), [(X, X > 1)], [(X, X > 2)]),
    "equal": (lambda x, y: T.assert_equal(x, y, f"not {x}"), [(X, X), (3, 3), (2.5, 2.5)], [(3, 4), (0.0, -0.0)]),
    "equal arrays": (
        lambda x, y: T.assert_array_equal(x, y), [(X, X), (X * 0, -X * 0), (X, [1, 2, 3])], [(X, X + 1), (X, X[None])],
    ),
    "equal complex": (lambda x, y: T.assert_equal(x + 1j, y), [(2.0, 2 + 1j)], [(2.0, 2 - 1j)]),
    "less": (lambda x, y: T.assert_array_less(x, y), [(X, X + 1), (X, 4.0)], [(X, X), (X, [2, 3, 3])]),
}  # fmt: skip


def outcome(function, args):
    try:
        return function(*args)
    except AssertionError as error:
        return str(error)


@pytest.mark.parametrize("name", CASES)
def test_assertions(name, backend):
    function, right, wrong = CASES[name]
    compiled = cyxla.jit(function, platform=backend, fallback="numpy")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for args in (*right, *wrong, *right):
            assert outcome(compiled, args) == outcome(function, args)
    for args in right:
        assert cyxla.jit(function, platform=backend, fallback="error")(*args) is None


def test_what_numpy_compares_by_itself():
    """Assertions with further rules are NumPy's, and NumPy runs the function."""
    compiled = cyxla.jit(lambda x: T.assert_array_equal(x, X, strict=True), fallback="numpy")
    with pytest.warns(cyxla.errors.FallbackWarning):
        compiled(X)
    with pytest.raises(AssertionError, match="dtypes float32"):
        compiled(X.astype(np.float32))
