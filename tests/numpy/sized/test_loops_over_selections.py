"""Loops over the elements that a mask, `np.unique` or `np.nonzero` selects, and over columns of such rows."""

import numpy as np
import pytest

import cyxla


def in_one_place_of_a_row(x, values=None):
    if values is None:
        values = np.unique(x)
    result = np.zeros_like(x, dtype=bool)
    for value in values:
        test = np.equal(x, value)
        rows = test.sum(axis=1) == 1
        result[rows] = test[rows]
    return result


def sums_of_equal(x):
    return np.array([x[x == v].sum() for v in np.unique(x)])


def weighted(x):
    total = 0
    for i, j in zip(*np.nonzero(x > 1), strict=True):
        total += x[i, j] * i
    for i, j in np.argwhere(x > 2):
        total += x[i, j] * j
    return total


def most_frequent(x):
    best = most = 0
    for value, count in zip(*np.unique(x, return_counts=True), strict=True):
        if count > most:
            best, most = value, count
    return best, most


def nested(x):
    total = 0
    for row in x[x[:, 0] > 1]:
        for value in row:
            total = (total * 3 + value) % 1000
    return total


def numbered(x):
    found = np.zeros(9, int)
    for k, value in enumerate(np.unique(x)):
        found[k] = value
    return found


def columns(x):
    rows = x[x[:, 0] > 1]
    a, b, c = rows.T
    largest = [column.sum() for column in rows.T]
    return a + b * c, largest, len(rows.T)


@pytest.mark.parametrize("rows", [0, 1, 4, 40])
@pytest.mark.parametrize(
    "function", [in_one_place_of_a_row, sums_of_equal, weighted, most_frequent, nested, numbered, columns]
)
def test_results(function, rows, backend):
    x = np.random.default_rng(rows).integers(0, 5, (rows, 3))
    got, want = cyxla.jit(function, platform=backend)(x), function(x)
    for g, w in zip(*[r if isinstance(r, tuple) else (r,) for r in (got, want)], strict=True):
        np.testing.assert_array_equal(g, w, strict=isinstance(w, np.ndarray))
