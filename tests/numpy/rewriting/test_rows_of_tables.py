"""Rows of a list of lists, for which an array stands, are lists in every operation of Python and NumPy."""

# ruff: noqa: RUF015, RUF017, SIM300  operations as people write them

from __future__ import annotations

import bisect
import copy
import functools
import heapq
import itertools
import math

import numpy as np
import pytest

import cyxla
from cyxla.numpy.tracing.arrays.number_table import NumberTable, TableRow
from cyxla.numpy.tracing.arrays.stacked_list import StackedList


def extended(t, x):
    rows = [x]
    rows.extend(t[0])
    rows += t[1]
    rows[1:2] = t[2]
    return rows


def copies(t, x):
    u, w = copy.deepcopy(t), t[0].copy()
    u[0][0], w[0] = x, x + 1
    return u[0], w, t[0]


def changed(t, x):
    t[0] = t[1]
    t[1][0] = x
    return t[0]


def unpacked(t, x):
    (a, b), (c, d), *rest = t
    return a, b, c, d, rest[0], [*t[0], x]


def iterated(t, x):
    rows = iter(t)
    first = next(rows)
    return first, next(rows), next(iter(first)), list(reversed(first))


FUNCTIONS = {
    "+": lambda t, x: (t[0] + t[1], [x] + t[0], t[0] + [x], sum(t, []), sum([t[0], t[1]], [])),
    "*": lambda t, x: (t[0] * 2, 2 * t[0], [t[0]] * 2),
    "==": lambda t, x: (t[0] == t[1], t[0] == [0.0, 2.0], [0.0, 2.0] == t[0], t[0] == (0.0, 2.0)),
    "!=": lambda t, x: (t[0] != t[0], [0.0, 2.0] != t[0], t[0] != t[1]),
    "<": lambda t, x: (t[0] < t[1], t[1] < t[0], [9.0] < t[1], t[0] < [0.0, 5.0]),
    "<=, >=, >": lambda t, x: (t[0] <= t[0], t[0] >= t[1], t[0] > [0.0, 5.0], [0.0, 5.0] > t[0]),
    "in": lambda t, x: ([0.0, 2.0] in t, t[1] in t, t[0] in [t[1]], x in t[0], t.index(t[1]), t.count(t[0])),
    "extremes": lambda t, x: (max(t), min(t), max(t[0]), max(t[0], t[1]), max(t, key=sum)),
    "sorted": lambda t, x: (sorted(t), sorted(t[0]), sorted(t, reverse=True)[0], sorted(t, key=lambda r: -r[1])[0]),
    "conversions": lambda t, x: (tuple(t[0]), list(t[1]), list(t)[0], tuple(t)[1], [*t[0], *t[1]]),
    "slices": lambda t, x: (t[0][::-1], t[::-1][0], t[1:3], t[-1], t[-2][-1]),
    "zip": lambda t, x: (list(zip(*t, strict=True))[0], list(zip(t[0], t[1], strict=True)), list(map(sum, t))[:3]),
    "truth": lambda t, x: (len(t), len(t[0]), bool(t), bool(t[0]), not t[0], any(t[0]), all(t[0])),
    "classes": lambda t, x: (isinstance(t, list), isinstance(t[0], list), type(t[0]) is list, type(t) is list),
    "texts": lambda t, x: (repr(t[0]) == "[0.0, 2.0]", str(t[1]) == "[1.0, 3.0]"),
    "NumPy": lambda t, x: (np.array(t[0]), np.asarray(t[1]) * 2, np.dot(t[0], t[1]), np.vstack([t[0], t[1]]),
                           np.concatenate([t[0], [x]]), np.max(t, axis=0), np.shape(t), np.linalg.norm(t[0])),
    "modules": lambda t, x: (heapq.nsmallest(2, t), bisect.bisect_left(t, [x, 0.0]), math.fsum(t[0]),
                             functools.reduce(lambda a, b: a + b, t[:2]), list(itertools.chain(*t))[:4]),
    "extended": extended, "copies": copies, "changed": changed, "unpacked": unpacked, "iterated": iterated,
}  # fmt: skip


@pytest.mark.filterwarnings("ignore::cyxla.errors.FallbackWarning", "ignore::cyxla.errors.LongTraceWarning")
@pytest.mark.parametrize("count", [3, 40])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_rows_are_lists(name, count):
    compiled = cyxla.jit(FUNCTIONS[name], fallback="numpy")
    for x in (1.5, -1.5):
        given, expected = ([[1.0 * k, 2.0 + k] for k in range(count)] for _ in range(2))
        np.testing.assert_equal(compiled(given, x), FUNCTIONS[name](expected, x))
        assert given == expected


@pytest.mark.parametrize("kind", [NumberTable, TableRow, StackedList])
def test_no_method_of_list_is_inherited(kind):
    """A list is empty while an array stands for it: its own methods would see no elements."""
    harmless = {"__new__", "__init__", "__getattribute__", "__sizeof__", "__class_getitem__"}
    methods = {name for name in vars(list) if callable(getattr(list, name))} - harmless
    own = {name for base in kind.__mro__[: kind.__mro__.index(list)] for name in vars(base)}
    assert methods <= own
    assert "__radd__" in own
