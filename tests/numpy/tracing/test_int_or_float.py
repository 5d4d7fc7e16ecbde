"""Numbers that are ints or floats by the values, where Python takes ints alone: the plain function runs."""

import warnings

import numpy as np
import pytest

import cyxla


def index(x, k):
    k = k / 2 if x[0] > 5 else k
    return x[k]


def slice_(x, k):
    if x[0] > 5:
        k = k / 2
    return x[:k].sum()


def bound_of_a_range(x, k):
    if x[0] > 5:
        k = k / 2
    total = 0.0
    for i in range(20, k, -1):
        total += x[i % 4]
    return total


def size(x, k):
    if x[0] > 5:
        k = k / 2
    return np.zeros(k)


def shift(x, k):
    if x[0] > 5:
        k = k / 2
    return k << 1


def repeated_list(x, k):
    if x[0] > 5:
        k = k / 2
    return [1] * k


def repeated_tuple(x, k):
    if x[0] > 5:
        k = k / 2
    return k * (1, 2)


def repeated_by_an_element(x, k):
    return [k] * x[0]


FUNCTIONS = [index, slice_, bound_of_a_range, size, shift, repeated_list, repeated_tuple, repeated_by_an_element]


def _outcome(function, *args):
    try:
        return repr(function(*args))
    except (TypeError, IndexError) as error:
        return "IndexError" if isinstance(error, IndexError) else "TypeError"


@pytest.mark.parametrize("function", FUNCTIONS)
def test_results_and_errors_are_numpys(function):
    compiled = cyxla.jit(function, platform="interpreter", fallback="numpy")
    for value in (1.0, 9.0, 1.0):
        x = np.full(4, value)
        with warnings.catch_warnings(action="ignore"):
            assert _outcome(compiled, x, 2) == _outcome(function, x, 2)
