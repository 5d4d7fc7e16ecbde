"""Loops that append in some of their iterations to lists that have elements before."""

import numpy as np
import pytest

import cyxla


def starts_of_runs(x):
    starts = [0]
    for i in range(1, len(x)):
        if x[i] > x[i - 1]:
            starts.append(i)
    return np.array(starts)


def several_at_a_time(x):
    out = [x[0], x[1]]
    for v in x:
        if v > 0:
            out.append(v)
            if v > 0.5:
                out.append(v * 2)
    return np.array(out), len(out), out[0]


def two_loops(x):
    out = []
    for v in x:
        if v > 0:
            out.append(v)
    for v in x:
        if v < -0.5:
            out.append(-v)
    return np.array(out)


def pairs(x):
    out = [(0, x[0])]
    for i in range(len(x)):
        if x[i] > 0:
            out.append((i, x[i]))
    return np.array([i for i, _ in out]), sum([v for _, v in out])


def rows(x):
    table = np.outer(x, np.arange(3.0))
    out = [table[0] * 2]
    for row in table:
        if row[1] > 0:
            out.append(row + 1)
    return np.array(out)


def after_a_comprehension(x):
    out = [v * 2 for v in x]
    for v in x:
        if v > 0.5:
            out.append(v)
    return np.array(out)


@pytest.mark.parametrize("size", [40, 60])
@pytest.mark.parametrize(
    "function", [starts_of_runs, several_at_a_time, two_loops, pairs, rows, after_a_comprehension]
)  # fmt: skip
def test_lists_with_elements(function, size, backend):
    compiled = cyxla.jit(function, platform=backend, fallback="error")
    for x in (np.sin(np.arange(float(size))), -np.ones(size), np.ones(size)):
        got, want = compiled(x), function(x)
        for a, b in zip(got, want, strict=True) if isinstance(want, tuple) else [(got, want)]:
            assert type(a) is type(b)
            np.testing.assert_allclose(a, b, rtol=1e-12)


def of_another_class(x):
    out = [0]
    for v in x:
        if v > 0:
            out.append(v)
    return np.array(out)


def test_elements_of_another_class_are_refused_with_the_line():
    with pytest.raises(cyxla.errors.TraceError, match=r"test_lists_with_elements\.py"):
        cyxla.jit(of_another_class, fallback="error")(np.sin(np.arange(40.0)))
    x = np.sin(np.arange(40.0))
    with pytest.warns(cyxla.errors.FallbackWarning):
        np.testing.assert_array_equal(cyxla.jit(of_another_class, fallback="numpy")(x), of_another_class(x))
