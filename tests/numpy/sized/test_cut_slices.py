"""Slices of traced bounds of known distance that reach beyond an end of their axis, where NumPy's are shorter."""

import numpy as np
import pytest

import cyxla


def window(a, i):
    return a[i : i + 3]


def before(a):
    i = a.argmax()
    return a[i - 2 : i]


def add_in_loop(a):
    for j in range(len(a)):
        a[j : j + 2] += 1
    return a


def least_of_windows(a):
    total = 0.0
    for j in range(len(a)):
        total += a[j : j + 3].min()
    return total


def seams(a):
    where = np.zeros(a.shape, int)
    for i in range(1, a.shape[0]):
        for j in range(a.shape[1]):
            where[i, j] = np.argmin(a[i - 1, j : j + 2])
    return where


def none_but_for_zero(a, i):
    return a[i : i - 1]


def wider_than_all(a, i):
    return a[i : i + 7].sum()


def backward(a, i):
    return a[i : i - 3 : -1]


def every_other(a, i):
    return a[i + 1 : i - 2 : -2]


def write(a, i):
    a[i : i + 3] = 5
    return a


def write_windows(a, i):
    a[i : i + 3] = a[:3] * 2
    return a


def overlap_add(x, w):
    for s in range(0, len(x), 3):
        x[s : s + 5] += w[: len(x[s : s + 5])]
    return x


A = np.arange(5.0)
STARTS = [(A, np.int64(i)) for i in (0, 1, 2, 3, 4, 5, 9, -1, -3, -5, -9)]
SIZES = [(np.arange(float(n)),) for n in (12, 3, 1, 0, 20, 15)]
CASES = [
    (window, STARTS), (none_but_for_zero, STARTS), (wider_than_all, STARTS), (backward, STARTS), (every_other, STARTS),
    (write, STARTS), (write_windows, STARTS), (add_in_loop, SIZES), (least_of_windows, [s for s in SIZES if len(s[0])]),
    (before, [(A,), (A[::-1],), (np.array([1.0, 5, 3]),), (np.array([2.0, 1]),)]),
    (seams, [(np.eye(n)[:3],) for n in (7, 9, 4)]), (overlap_add, [(np.zeros(n), np.ones(5)) for n in (12, 14, 3)]),
]  # fmt: skip


@pytest.mark.parametrize("function, calls", CASES, ids=lambda value: getattr(value, "__name__", ""))
def test_they_are_cut_as_numpy_cuts_them(function, calls):
    compiled = cyxla.jit(function)
    for arguments in [*calls, *calls]:
        try:
            expected = function(*map(np.copy, arguments))
        except ValueError:  # of shapes
            with pytest.raises(ValueError, match="broadcast"):
                compiled(*map(np.copy, arguments))
            continue
        got = compiled(*map(np.copy, arguments))
        np.testing.assert_array_equal(got, expected, strict=True)
        assert type(got) is type(expected)


def test_slices_within_their_axis_have_a_known_length():
    compiled = cyxla.jit(window)
    for i in (0, 2, 1):
        compiled(A, np.int64(i))
    assert compiled.cache_info().misses == 1
    assert compiled.trace(A, np.int64(0)).tree.kind is None


@pytest.mark.parametrize("bounds", ["clamp", "unchecked"])
def test_they_are_as_long_as_they_say_in_other_modes(bounds):
    compiled = cyxla.jit(window, bounds=bounds)
    assert compiled(A, np.int64(2)).shape == (3,)
    if bounds == "clamp":
        np.testing.assert_array_equal(compiled(A, np.int64(9)), A[2:])


def test_a_run_that_is_made_anew_writes_once():
    def count(a, i):
        a += 1
        return a[i : i + 3]

    a = A.copy()
    np.testing.assert_array_equal(cyxla.jit(count)(a, np.int64(3)), [4, 5])
    np.testing.assert_array_equal(a, A + 1)
