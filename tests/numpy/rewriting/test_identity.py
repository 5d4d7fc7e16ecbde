"""`is` between arrays, lists and other containers is that of the plain run, or a reason to run it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest

import cyxla
from cyxla.errors import FallbackWarning

X, Y = np.arange(6.0), np.arange(6.0)
COUNT = 40  # rows that are an array of the program


@dataclass
class Body:
    mass: float
    place: float


def pairs_of_rows(rows, scale):
    total = 0.0
    for a in rows:
        for b in rows:
            if a is not b:
                total += a[0] * b[1]
    return total * scale


def pairs_by_index(rows, scale):
    total = 0.0
    for i in range(len(rows)):
        for j in range(len(rows)):
            if rows[i] is rows[j]:
                continue
            total += rows[i][0] * rows[j][1]
    return total * scale


def pairs_of_bodies(bodies, scale):
    total = 0.0
    for a in bodies:
        for b in bodies:
            if a is not b:
                total += a.mass * b.place
    return total * scale


def pairs_of_new_rows(x, scale):
    rows = [[x[i], x[i] * 2] for i in range(len(x))]
    return pairs_of_rows(rows, scale)


def pairs_of_new_tuples(x, scale):
    rows = []
    for i in range(len(x)):
        rows.append((x[i], x[i] * 2))
    return pairs_of_rows(rows, scale)


def pairs_of_new_arrays(x, scale):
    rows = [x * i for i in range(len(x))]
    return pairs_of_rows(rows, scale)


def at_index(rows, k):
    row = rows[int(k)]
    return row is rows[0], row is rows[1], row is not rows[1], rows[0] is rows[0]


def same_argument(a, b):
    return a + 1 if a is b else a - b


def given_result(a, out=None):
    return np.add(a, 1, out=out) is out, np.asarray(a) is a, a.T is a, a[:] is a


def changed_in_a_loop(a, n):
    before = a
    for i in range(n):
        after = before
        if i > 3:
            after = before * 2
        if after is not before:
            a = a + after
        before = after
    return a


def same_elements(xs, ys):
    return xs is ys, xs is xs, [v is w for v, w in zip(xs, ys, strict=True)]


def dtypes_and_classes(a):
    return a.dtype is np.dtype(float), type(a) is np.ndarray, type(a) is list


def rows(kind, count=COUNT):
    return [kind((1.0 * k, 2.0)) for k in range(count)]


LIST, TUPLE = [1.0, 2.0], (1.0, 2.0)
#: Functions, arguments of calls one after the other, and whether one of them runs plainly.
CASES = [
    (pairs_of_rows, [(rows(list), 1.0)], False),
    (pairs_of_rows, [(rows(tuple), 1.0)], False),
    (pairs_by_index, [([{0: 1.0 * k, 1: 2.0} for k in range(3)], 1.0)], False),
    (pairs_of_rows, [(np.arange(80.0).reshape(40, 2), 1.0)], False),
    (pairs_of_rows, [([TUPLE] * 3, 1.0)], True),
    (pairs_by_index, [(rows(list), 1.0)], False),
    (pairs_of_bodies, [([Body(1.0 * k, 2.0) for k in range(COUNT)], 1.0)], False),
    (pairs_of_bodies, [([Body(1.0, 2.0)] * 3, 1.0)], True),
    (pairs_of_new_rows, [(np.arange(40.0), 1.0)], True),
    (pairs_of_new_tuples, [(np.arange(40.0), 1.0)], True),
    (pairs_of_new_arrays, [(np.arange(40.0), 1.0)], True),
    (at_index, [(rows(list), 1.0), (rows(list), 0.0), (rows(list, 3), 1.0)], False),
    (same_argument, [(X, Y), (Y, X)], False),
    (same_argument, [(X, X), (X, Y)], True),
    (same_argument, [(X, Y), (X, X)], True),
    (given_result, [(X,), (X, np.zeros(6))], False),
    (changed_in_a_loop, [(X, 8), (X, 2)], False),
    (same_elements, [([X, Y], [Y, X])], True),
    (same_elements, [([LIST, [1.0]], [[1.0, 2.0], [3.0]])], False),
    (same_elements, [([TUPLE, (1.0, 3.0)], [TUPLE, (1.0, 4.0)])], True),
    (dtypes_and_classes, [(X,)], False),
]


@pytest.mark.parametrize("function, calls, runs_plainly", CASES)
def test_identity(function, calls, runs_plainly, recwarn):
    compiled = cyxla.jit(function, fallback="numpy")
    for arguments in calls:
        found, expected = compiled(*arguments), function(*arguments)
        np.testing.assert_equal(found, expected)
        assert type(found) is type(expected)
    assert any(issubclass(w.category, FallbackWarning) for w in recwarn) == runs_plainly


def test_identity_of_objects_of_a_class():
    class Point:
        def __init__(self, x):
            self.x = x

        def distance(self, other):
            return 0.0 if self is other else abs(self.x - other.x) + 1

    p, q = Point(1.0), Point(1.0)
    distance = cyxla.jit(Point.distance)
    assert [distance(*pair) for pair in ((p, q), (p, p), (q, p))] == [1.0, 0.0, 1.0]


def test_programs_keep_no_values_of_their_trace():
    @cyxla.jit
    def carried(a):
        for _ in range(100):
            a = np.sin(a) + 1
        return a

    carried(X)
    assert [entry.lowered.program.copies for entry in carried.programs.entries.values()] == [{}]


def has_one_row_twice(rows, x):
    return x + (1 if rows[0] is rows[1] else 2)


@pytest.mark.filterwarnings("ignore::cyxla.errors.FallbackWarning")
def test_rows_of_tables_of_any_size_may_be_one_list(backend):
    row = [1.0, 2.0]
    compiled = cyxla.jit(has_one_row_twice, platform=backend, fallback="numpy")
    for rows in (
        [[1.0, 2.0], [1.0, 2.0], [3.0, 4.0]],
        [row, row],
        [row, row, row],
        [[1.0, 2.0], [1.0, 2.0]],
        [row] * 5,
    ):
        np.testing.assert_array_equal(compiled(rows, X), has_one_row_twice(rows, X))
