"""Numbers that are ints or floats by the values, where Python takes ints alone: the plain function runs."""

import warnings

import numpy as np
import pytest

import cyxla
from cyxla.errors import TraceError


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


FUNCTIONS = [
    index,
    slice_,
    bound_of_a_range,
    size,
    shift,
    repeated_list,
    repeated_tuple,
    repeated_by_an_element,
]


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


def greatest_sum(values):
    best, total = float("-inf"), 0
    for k in range(3):
        total += values[k]
        if total > best:
            best = total
    return best


def last_of_range(n):
    last = 0.5
    for k in range(n):
        last = k
    return last


def last_element(values):
    last = 0.5
    for k in range(len(values)):
        last = values[k]
    return last


def sum_of_none_or_some(x, n):
    total = 0
    for k in range(x[n]):
        total = total + x[0] * 0.5 + k
    return total


def sum_while(x, n):
    total = 0
    while x[n] > total:
        total = total + 0.5
    return total


def place_of_least(values):
    least, place = float("inf"), -1
    for k in range(len(values)):
        if values[k] < least:
            least, place = values[k], k
    return place, least


LOOPS = {  # function, and arguments of its calls
    "sum of ints": (greatest_sum, ([3, 1, 4],), ([-3, -1, -4],)), "sum of floats": (greatest_sum, ([1.5, 2.0, -3.0],)),
    "range": (last_of_range, (30,), (0,)), "elements": (last_element, ([1] * 30,), ([2.5] * 30,)),
    "iterations by an array": (sum_of_none_or_some, (np.array([4, 0, 3]), 2), (np.array([4, 0, 3]), 1)),
    "while": (sum_while, (np.array([4, 0, 3]), 2), (np.array([4, 0, 3]), 1)),
    "class of another variable": (place_of_least, ([3, 1, 4] * 10,), ([3.5, 1.5] * 15,)),
}  # fmt: skip


@pytest.mark.parametrize("name", LOOPS)
def test_numbers_after_loops_have_pythons_class(name, backend):
    function, *calls = LOOPS[name]
    compiled = cyxla.jit(function, platform=backend, fallback="numpy")
    with warnings.catch_warnings(action="ignore"):
        for args in calls:
            assert repr(compiled(*args)) == repr(function(*args))


def test_classes_of_numbers_that_stay_inside_do_not_matter():
    compiled = cyxla.jit(lambda values: place_of_least(values)[0], fallback="error")
    assert compiled([3, 1, 4] * 10) == 1


def length_of_a_slice(x, k):
    s = float(k)
    for i in range(1, 6):
        x[i] -= x[k % 7 : k % 7 + 2].sum()
        if x[0] < x[i] < -100:
            k = -s
    return x


def test_bounds_of_slices_that_are_floats_by_the_values_are_refused():
    x = np.arange(8.0)
    with warnings.catch_warnings(action="ignore"):
        found = cyxla.jit(length_of_a_slice, fallback="numpy")(x.copy(), 2)
    np.testing.assert_array_equal(found, length_of_a_slice(x.copy(), 2))
    with pytest.raises(TraceError, match="a bound of a slice is a float, or by the values an int"):
        cyxla.jit(length_of_a_slice, fallback="error")(x, 2)
