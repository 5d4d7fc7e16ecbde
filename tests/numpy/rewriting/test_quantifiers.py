"""`any` and `all` of generators, and functions of Python that are applied to elements by `map` and others."""

from __future__ import annotations

import functools
import itertools
import math

import numpy as np
import pytest

import cyxla

ROW = [float(7 * k % 11) + 0.5 for k in range(20)]
ROWS = [ROW, ROW[::-1], [2.0 * x for x in ROW]]
calls = []


def noted(x):
    calls.append(1)
    return x > 2


def above(xs):
    return any(x > 5 for x in xs), all(x > -1 for x in xs), any(x > 1e9 for x in xs), all(x > 5 for x in xs)


def close(xs, ys):
    return all(abs(x - y) < 1e-3 for x, y in zip(xs, ys, strict=False))


def nested(rows):
    return any(any(x > 5 for x in row) for row in rows), all(len(row) == len(rows[0]) for row in rows)


def counted(xs):
    return sum(all(x >= y for y in xs) for x in xs)


def in_loop(xs):
    found = 0
    for i in range(len(xs)):
        if all(xs[i] >= xs[j] for j in range(len(xs))):
            found += i
    return found


QUANTIFIED = {
    "array": (above, (np.array(ROW),)), "long array": (above, (np.arange(4000.0),)), "list": (above, (ROW,)),
    "long list": (above, (ROW * 100,)), "empty list": (above, ([],)), "empty array": (above, (np.zeros(0),)),
    "pairs": (close, (np.arange(30.0), np.arange(30.0))), "pairs of lists": (close, (ROW * 20, ROW * 19 + ROW[::-1])),
    "nested": (nested, (np.ones((20, 30)),)), "nested lists": (nested, (ROWS,)), "counted": (counted, (np.array(ROW),)),
    "in a loop": (in_loop, (np.array(ROW),)),
}  # fmt: skip


@pytest.mark.parametrize("name", QUANTIFIED)
def test_any_and_all_of_generators(name):
    function, args = QUANTIFIED[name]
    assert cyxla.jit(function)(*args) == function(*args)


def calls_of_a_global(xs):
    return any(noted(x) for x in xs)


@pytest.mark.filterwarnings("ignore::cyxla.errors.FallbackWarning")
@pytest.mark.parametrize("count", [4, 30])
def test_elements_that_change_something_are_computed_as_far_as_python_does(count):
    compiled = cyxla.jit(calls_of_a_global, fallback="numpy")
    values = np.arange(float(count))
    compiled(values)
    calls.clear()
    assert compiled(values)
    assert len(calls) == 4


@pytest.mark.filterwarnings("ignore::cyxla.errors.FallbackWarning")
@pytest.mark.parametrize("count", [3, 30])
def test_arrays_written_by_elements(count):
    def first_above(xs):
        written = np.zeros(2)

        def test(x):
            written[0] += 1
            return x > 1

        return any(test(x) for x in xs), all(test(x) for x in xs), written

    compiled = cyxla.jit(first_above, fallback="numpy")
    for values in (np.arange(float(count)), np.zeros(count)):
        found, expected = compiled(values), first_above(values)
        assert found[:2] == expected[:2]
        np.testing.assert_array_equal(found[2], expected[2])


APPLIED = {
    "max of rows": lambda rows: (max(map(max, rows)), min(map(min, rows)), sum(map(sum, rows))),
    "math": lambda rows: [sum(map(math.sqrt, rows[0])), *map(math.floor, rows[0])],
    "reduce": lambda rows: functools.reduce(max, rows[0]),
    "accumulate": lambda rows: list(itertools.accumulate(rows[0], max)),
    "starmap": lambda rows: list(map(math.hypot, rows[0], rows[1])),
    "classes": lambda rows: [*map(int, rows[0]), *map(float, rows[0]), *map(bool, rows[0])],
    "len": lambda rows: [*map(len, rows), bool(rows[0]), bool(rows)],
    "numpy": lambda rows: list(map(np.sqrt, rows[0])),
}


@pytest.mark.parametrize("name", APPLIED)
def test_functions_of_python_applied_to_elements(name):
    function = APPLIED[name]
    compiled = cyxla.jit(function)
    for scale in (1.0, 3.0):
        rows = [[scale * x for x in row] for row in ROWS]
        np.testing.assert_allclose(np.hstack([compiled(rows)]), np.hstack([function(rows)]), rtol=1e-14)
    assert compiled.cache_info().misses == 1  # no value became static


@pytest.mark.parametrize("operator", ["<", "<=", ">", ">="])
@pytest.mark.parametrize("other", [1, 2.5, 1j])
def test_complex_numbers_of_python_have_no_order(operator, other):
    space = {}
    exec(f"def compare(z, x): return z {operator} x", space)
    message = f"'{operator}' not supported between instances of 'complex' and '{type(other).__name__}'"
    with pytest.raises(TypeError, match=message):
        cyxla.jit(space["compare"])(1j, other)
    assert cyxla.jit(space["compare"])(np.complex128(1), 3) == space["compare"](np.complex128(1), 3)
