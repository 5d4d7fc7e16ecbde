"""Functions of `np.apply_along_axis` that are traced once for many vectors: those that change other things are not."""

import warnings

import numpy as np
import pytest

import cyxla
from cyxla.errors import FallbackWarning, TraceError

WEIGHTS = {"scale": 3.0}


def write(a):
    def second(row):
        row[0] = 5
        return row[1]

    np.apply_along_axis(second, 1, a)
    return a


def sort(a):
    def sorted_row(row):
        row.sort()
        return row

    return np.apply_along_axis(sorted_row, 1, a), a


def count_in_dict(a):
    counts = {"calls": 0}

    def total(row):
        counts["calls"] += 1
        return row.sum()

    return np.apply_along_axis(total, 1, a), counts["calls"]


def count_in_name(a):
    calls = 0

    def shifted(row):
        nonlocal calls
        calls += 1
        return row + calls

    return np.apply_along_axis(shifted, 1, a)


def count_in_array(a):
    counts = np.zeros(1)

    def total(row):
        counts[0] += 1
        return row.sum()

    return np.apply_along_axis(total, 1, a), counts


def append(a):
    seen = []

    def total(row):
        seen.append(1)
        return row.sum()

    return np.apply_along_axis(total, 1, a), len(seen)


def draw(a):
    generator = np.random.default_rng(0)
    return np.apply_along_axis(lambda row: row[0] + generator.random(), 1, a)


class Counter:
    def __init__(self):
        self.calls = 0

    def total(self, row):
        self.calls += 1
        return row.sum()


def count_in_method(a):
    counter = Counter()
    return np.apply_along_axis(counter.total, 1, a), counter.calls


def count_in_attribute(a):
    counter = Counter()

    def total(row):
        counter.calls += 1
        return row.sum()

    return np.apply_along_axis(total, 1, a), counter.calls


def write_rows_of_a_mask(a):
    rows = a[a[:, 0] > 0.2]

    def second(row):
        row[0] = 5
        return row[1]

    np.apply_along_axis(second, 1, rows)
    return rows


def use_arrays_of_its_own(a):
    weights = np.array([1.0, 2])

    def summary(row):
        found = np.zeros(2)
        found[0] = row[:2] @ weights * WEIGHTS["scale"]
        found[1] = row.max()
        return found

    return np.apply_along_axis(summary, 1, a)


def use_values_from_outside(a):
    first, totals, factor = a[0] * 2, [row.sum() for row in a[:3]], a.shape[0]
    selected = a[a[:, 0] > 0.3]
    return np.apply_along_axis(lambda row: (row @ first + totals[0] - selected.mean()) * factor, 1, a)


def use_a_function_of_numpy(a):
    return np.apply_along_axis(np.median, 0, a)


def _check(got, want):
    for one, other in zip(*[r if isinstance(r, tuple) else (r,) for r in (got, want)], strict=True):
        np.testing.assert_allclose(one, other)


CHANGING = [
    write, sort, count_in_dict, count_in_name, count_in_array, count_in_method, count_in_attribute, append, draw,
    write_rows_of_a_mask,
]  # fmt: skip


@pytest.mark.parametrize("function", CHANGING)
def test_functions_that_change_other_things_are_left_to_numpy(function):
    a = np.random.default_rng(1).random((40, 3))
    with pytest.raises(
        TraceError, match=r"writes to its vector|changes values outside|created outside of it"
    ) as caught:
        cyxla.jit(function)(a.copy())
    assert "test_functions_traced_once.py" in caught.value.where
    assert caught.value.hint
    compiled = cyxla.jit(function, fallback="numpy")
    for n in (40, 3, 5, 6):
        x, y = a[:n].copy(), a[:n].copy()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", FallbackWarning)
            _check(compiled(x), function(y))
        np.testing.assert_array_equal(x, y)


@pytest.mark.parametrize("function", [use_values_from_outside, use_arrays_of_its_own, use_a_function_of_numpy])
def test_functions_that_change_nothing_else(function):
    compiled = cyxla.jit(function, fallback="error")
    for n in (40, 3, 5, 6, 64):
        a = np.random.default_rng(n).random((n, 3))
        _check(compiled(a), function(a))
