"""Loops over indices, combinations and reversed iterables become loops of the program."""

import itertools

import numpy as np
import pytest

import cyxla
from cyxla.errors import FallbackWarning, TraceError

X = np.random.default_rng(0).random((30, 20))


def all_indices(x):
    y = np.zeros(x.shape)
    for i in np.ndindex(x.shape):
        y[i] = x[i] * i[0] + i[1]
    return y


def neighbours(x):
    count = np.zeros(x.shape, int)
    for i, j in np.ndindex(*x.shape):
        for di, dj in np.ndindex(3, 3):
            count[i, j] += x[(i + di - 1) % x.shape[0], (j + dj - 1) % x.shape[1]] <= x[i, j]
    return count


def rows(x):
    sums = np.empty(x.shape[0])
    for (i,) in np.ndindex(x.shape[:1]):
        sums[i] = x[i].sum()
    return sums


def elements(x):
    total, y = 0.0, np.zeros_like(x)
    for (i, j), v in np.ndenumerate(x):
        total += v * i
        y[i, j] = v - total
    return total, y


def pairs(x):
    total = 0.0
    for i, j in itertools.product(range(x.shape[0]), range(x.shape[1])):
        total += x[i, j] / (i + j + 1)
    return total


def backwards(x):
    total = 0.0
    for i in reversed(range(x.shape[0])):
        total = total * 0.5 + x[i, 0]
    for row in reversed(x):
        total = total * 0.25 + row[1]
    return total


def numbered(x):
    total = 0.0
    for k, (i, row) in enumerate(zip(np.ndindex(x.shape[0]), x, strict=True)):
        total += row[0] * k + i[0]
    return total


def known(x):
    no_elements = list(np.ndindex((0, 3)))
    return [i * j for i, j in itertools.product(range(3), [1, 2])], no_elements, list(np.ndindex(2, 2)), x[0, 0]


def traced_bound(x, n):
    total = 0.0
    for i in reversed(range(n)):
        total = total * 0.5 + x[i, 0]
    return total


@pytest.mark.slow_but_every(3)
@pytest.mark.parametrize(
    "function", [all_indices, neighbours, rows, elements, pairs, backwards, numbered, known, traced_bound]
)
def test_results(function, backend):
    args = (X, 20) if function is traced_bound else (X,)
    got = cyxla.jit(function, platform=backend)(*args)
    np.testing.assert_equal(type(got), type(function(*args)))
    for one, other in (
        zip(np.atleast_1d(got), np.atleast_1d(function(*args)), strict=True)
        if isinstance(got, np.ndarray | float)
        else zip(got, function(*args), strict=True)
    ):
        np.testing.assert_allclose(one, other, rtol=1e-12)


@pytest.mark.parametrize("function", [all_indices, neighbours, rows, elements, pairs, backwards])
def test_programs_do_not_grow_with_the_data(function):
    sizes = [len(cyxla.jit(function).lower(cyxla.spec((n, 20))).computations) for n in (30, 300)]
    assert sizes[0] == sizes[1]


def backwards_in_a_nest(x):
    y = np.zeros(len(x))
    for i in reversed(range(len(x) - 1)):
        for j in range(6):
            y[i] += np.sqrt(x[i, j] + y[i + 1]) * j
    for k in reversed(np.arange(len(x))):
        y[k] = y[k] * 2 + k
    for v in reversed([a * 2 for a in x[:, 0]]):
        y[0] = y[0] * 0.5 + v
    return y


def test_loops_from_the_end_are_recorded_once(backend):
    compiled = cyxla.jit(backwards_in_a_nest, platform=backend, fallback="error")
    np.testing.assert_allclose(compiled(X), backwards_in_a_nest(X), rtol=1e-12)
    module = compiled.lower(cyxla.spec((600, 6)))
    assert sum(len(c.instructions) for c in module.computations.values()) < 1000


def many_iterations(n):
    found, k = [], 0
    while k < n:
        k += 1
        if k % 1000 == 0:
            found.append(k)
    return found


def many_operations(x):
    return np.array([np.sin(x[k]) * k + x[-k] for k in range(len(x)) if k >= 0])


def long_list(values):
    values[0], values[-1] = values[-1], values[0]
    return values[1]


LONG = {
    "iterations": (many_iterations, (30_000,), "iterations"),
    "operations": (many_operations, (np.ones(6000),), "operations"),
    "numbers": (long_list, ([*range(3000)],), "numbers"),
    "nested numbers": (lambda m: m[0][1], ([(1.0,) * 60 for _ in range(60)],), "numbers"),
}


@pytest.mark.slow_but_every(3)
@pytest.mark.parametrize("name", LONG)
def test_long_traces_are_given_up(name):
    function, args, message = LONG[name]
    with pytest.raises(TraceError, match=message):
        cyxla.jit(function, static=("n",) if name == "iterations" else (), platform="interpreter")(*args)
    f = cyxla.jit(function, static=("n",) if name == "iterations" else (), platform="interpreter", fallback="numpy")
    with pytest.warns(FallbackWarning, match=message):
        np.testing.assert_array_equal(f(*args), function(*args))


def upper_triangle(n, x):
    table = np.zeros((n, n))
    for i in range(n - 1, -1, -1):
        for j in range(i + 1, n):
            table[i, j] = table[i, j - 1] + x[j]
            for k in range(i + 1, j):
                table[i, j] = max(table[i, j], table[i, k] + table[k + 1, j])
    return table


def lower_triangle(n, x):
    table = np.zeros((n, n))
    for i in range(n):
        for j in range(i, 0, -1):
            table[i, j] = table[i, j - 1] + x[j] + x[i - j]
    return table


def last_may_be_outside(n, x):
    table = np.zeros((n, n))
    for i in range(n):
        for j in range(i, n):
            table[i, j] = x[j + 1]
    return table


@pytest.mark.parametrize("function", [upper_triangle, lower_triangle])
def test_elements_of_ranges_lie_between_their_bounds(function):
    x = np.random.default_rng(0).normal(size=30)
    assert not cyxla.jit(function).trace(30, x).fails
    np.testing.assert_allclose(cyxla.jit(function)(30, x), function(30, x), rtol=1e-12)


def test_indices_behind_a_range_are_checked():
    with pytest.raises(IndexError, match="index 30 is out of bounds for axis 0 with size 30"):
        cyxla.jit(last_may_be_outside)(30, np.zeros(30))
