"""The module math, and NumPy's scalar classes, for numbers at the edges of what they take."""

import math

import numpy as np
import pytest

import cyxla

INF, NAN = math.inf, math.nan


def hypot(*lengths):
    return math.hypot(*lengths)


def hypot_of_vector(p):
    return math.hypot(*p)


def power(x, y):
    return math.pow(x, y)


def root(x):
    return x**0.5


def root_by_numpy(x):
    return x ** np.float64(0.5)


def trunc(x):
    return math.trunc(x)


def uint8(x):
    return np.uint8(x)


def int64(x):
    return np.int64(x)


CASES = [
    (hypot, [(1.0, 2.0, 2.0), (1, 2, 2), (-3.0,), (-3,), (3.0, 4.0), (1.0, 2.0, 3.0, 4.0, 5.0), (INF, NAN)]),
    (hypot, [(NAN, 1.0), (NAN, 1.0, -INF), (1.7e308, 1.7e308), (1.7e308,) * 3, (5e-324, 0.0, 0.0)]),
    (hypot_of_vector, [(np.array([1.0, 2, 2]),), (np.array([-4.0]),), (np.arange(9.0),)]),
    (power, [(2.0, 3.0), (0.0, -1.0), (-0.0, -3.0), (0.0, -0.5), (0.0, -INF), (1e200, 2.0), (-8.0, 0.5), (NAN, 0.0)]),
    (root, [(4.0,), (-INF,), (-0.0,), (NAN,), (INF,), (4,), (np.float16(3),), (np.float32(2),), (np.float32(-INF),)]),
    (root, [(np.float64(-INF),), (np.float64(-0.0),), (np.array([-INF, -0.0]),), (np.array(-INF),)]),
    (root_by_numpy, [(np.float32(2),), (np.float16(2),), (np.float64(2),), (4.0,)]),
    (trunc, [(2.5,), (-2.5,), (3,), (np.float64(2.5),), (np.float32(0.3),), (np.int64(3),)]),
    (uint8, [(7.9,), (255.9,), (-0.9,), (-2.5,), (300.5,), (256.0,), (-2,), (300,), (INF,), (NAN,), (1e300,)]),
    (int64, [(3.7,), (-3.7,), (INF,), (NAN,), (1e300,), (2.0**63,)]),
]  # fmt: skip


@pytest.mark.parametrize("fallback", ["error", "numpy"])
@pytest.mark.parametrize(
    "function, arguments", [(f, a) for f, calls in CASES for a in calls], ids=lambda v: getattr(v, "__name__", str(v))
)
@pytest.mark.filterwarnings("ignore::cyxla.errors.FallbackWarning")
def test_results_and_errors_are_those_of_python(function, arguments, fallback):
    compiled = cyxla.jit(function, fallback=fallback)
    try:
        with np.errstate(all="ignore"):
            expected = function(*arguments)
    except (OverflowError, TypeError, ValueError) as error:
        # Where NumPy is not to run, all floats that are no integer of 64 bits have the same error.
        refused = (type(error), OverflowError) if fallback == "error" else type(error)
        with pytest.raises(refused):
            compiled(*arguments)
        return
    got = compiled(*arguments)
    assert type(got) is type(expected)
    np.testing.assert_allclose(got, expected, rtol=1e-15)
    is_number = ~np.isnan(expected)
    np.testing.assert_array_equal(np.signbit(got)[is_number], np.signbit(expected)[is_number])
