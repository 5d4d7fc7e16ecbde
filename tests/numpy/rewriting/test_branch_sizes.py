"""Branches that leave arrays of different sizes: the program goes on with an array of run-time size."""

import numpy as np
import pytest

import cyxla
from cyxla.errors import FallbackWarning
from cyxla.numpy.tracing.arrays.sharing import SharedArrayError


def shorter(x):
    if x[0] > 1:
        x = x[1:]
    return x * 2, len(x)


def longer(x):
    if x[0] > 1:
        x = np.insert(x, 0, 0)
    if x[-1] > 2:
        x = np.append(x, 9)
    return np.diff(x), x[:-1], x[-1]


def collected(x):
    found = x[:0]
    for k in range(4):
        if x[k] > 1:
            found = np.append(found, x[k])
    return found


def selected_or_known(x):
    y = x[x > 1]
    if len(y) < 4:
        y = np.array([7, 8])
    return y.max(), y


def selected_or_part(x):
    y = x[x > 2] if x[0] > 1 else x[:3]
    return y.mean(), y


def one_of_three(x):
    if x[0] > 2:
        x = x[1:]
    elif x[0] > 1:
        x = x[2:]
    else:
        x = x[x > 0]
    return x.reshape(-1, 1) * x


def two_dims(x):
    rows = x.reshape(3, 3)
    if rows[0, 0] > 1:
        rows = rows[:, 1:]
    if rows[1, 1] > 1:
        rows = rows[1:]
    return rows.sum(0), rows @ rows.T, rows.T


def returned_early(x):
    if x[0] > 1:
        return x[1:], x[:2] * 2.0, "a"
    if x[1] > 1:
        return x, x * 1.0, "a"
    return x[x > 0], x[:0] * 1.0, "a"


def of_calls(x):
    def half(v):
        if v[0] > v[-1]:
            return v[: len(v) // 2]
        return v

    return half(half(x)), half(x).mean()


def written_before(x):
    y = x[1:]
    if x[2] > 1:
        y = y[1:]
        y[0] = 8
    return x, y


def written_on_a_side(x):
    y = x[1:].copy()
    z = y
    if x[0] > 1:
        y = np.concatenate((y, [4]))
    else:
        y[0] = 5
    return y, z


def new_array_is_written(x):
    y = x.copy()
    if x.sum() > 15:
        y = y[1:]
    y[0] = 9
    return y


def no_elements(x):
    if x[0] > 1:
        return x[:0]
    return x[:1]


def items(x):
    table, rows = {"a": x}, [x, x + 1]
    if x[0] > 1:
        table["a"] = x[1:]
    else:
        rows[1] = np.append(x, 3)
    return table["a"] * 2, rows[0], rows[1]


class Polygon:
    def __init__(self, points):
        self.points, self.cuts = points, 0

    def cut(self):
        if self.points[0] > 1:
            self.points, self.cuts = self.points[1:], self.cuts + 1
        elif self.points[-1] > 2:
            self.points = np.append(self.points, 2)


def attributes(x):
    polygon = Polygon(x)
    polygon.cut()
    polygon.cut()
    return polygon.points * 2, polygon.cuts


RIGHT = [
    items, attributes,
    shorter, longer, collected, selected_or_known, selected_or_part, one_of_three, two_dims, returned_early, of_calls,
    written_before, written_on_a_side, new_array_is_written, no_elements,
]  # fmt: skip


def arguments():
    return [np.random.default_rng(seed).integers(0, 5, 9) for seed in range(8)]


def is_equal(got, want):
    if isinstance(want, tuple):
        return type(got) is tuple and all(map(is_equal, got, want))
    return type(got) is type(want) and np.array_equal(got, want) and np.asarray(got).dtype == np.asarray(want).dtype


@pytest.mark.slow_but_every(3)
@pytest.mark.parametrize("function", RIGHT)
def test_results(function, backend):
    compiled = cyxla.jit(function, platform=backend)
    for x in arguments():
        y = x.copy()
        want, got = function(x), compiled(y)
        assert is_equal(got, want), f"{got} is not {want}"
        np.testing.assert_array_equal(y, x)
    assert compiled.cache_info().misses == 1


def cut(polygon):
    polygon.cut()
    return polygon.points.sum()


def test_attributes_of_arguments(backend):
    compiled = cyxla.jit(cut, platform=backend)
    for x in arguments():
        ours, theirs = Polygon(x.copy()), Polygon(x.copy())
        for _ in range(3):
            assert compiled(ours) == cut(theirs)
            assert is_equal(ours.points, theirs.points)
            assert ours.cuts == theirs.cuts


def view_is_written(x):
    y = x * 2
    z = y
    if x[0] > 1:
        z = y[1:]
    z[0] = 9
    return y, z


def whole_is_written(x):
    if x[0] > 1:
        w = x * 2
        y = w[1:]
    else:
        w = x * 3
        y = w[:3]
    w[2] = 5
    return w, y


def argument_is_written(x):
    y = x[: x[0]]
    if x[1] > 1:
        y = x[:2]
    x[0] = 70
    return y


@pytest.mark.parametrize("function", [view_is_written, whole_is_written, argument_is_written])
def test_writes_to_memory_that_a_branch_decides_on_are_refused(function):
    x = arguments()[0]
    with pytest.raises(SharedArrayError, match="by a branch on a traced condition"):
        cyxla.jit(function)(x.copy())
    with pytest.warns(FallbackWarning):
        got = cyxla.jit(function, fallback="numpy")(x.copy())
    assert is_equal(got, function(x.copy()))
