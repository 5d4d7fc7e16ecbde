"""Shuffles of traced arrays by generators that a function makes."""

import numpy as np
import pytest

import cyxla


def rows(a):
    generator = np.random.default_rng(3)
    generator.shuffle(a)
    return a, generator.random()


def columns(a):
    np.random.default_rng(3).shuffle(a, axis=1)
    return a


def last_axis_of_a_view(a):
    generator = np.random.default_rng(3)
    generator.shuffle(a.T[1:], axis=-1)
    return a, generator.integers(9)


def vectors(a):
    generator = np.random.default_rng(3)
    generator.shuffle(a[:, 0])
    flat = a.reshape(-1)
    generator.shuffle(flat)
    return a, flat, generator.random()


def by_random_state(a):
    generator = np.random.RandomState(3)
    generator.shuffle(a)
    generator.shuffle(a[1:])
    return a, generator.rand()


def lists_of_rows(a):
    generator, parts = np.random.default_rng(3), [a[0], a[1], a[2]]
    generator.shuffle(parts)
    return parts, generator.random()


def _leaves(value):
    return [leaf for part in value for leaf in _leaves(part)] if isinstance(value, (tuple, list)) else [value]


@pytest.mark.parametrize("function", [rows, columns, last_axis_of_a_view, vectors, by_random_state, lists_of_rows])
def test_shuffles_are_those_of_numpy(function):
    compiled = cyxla.jit(function, fallback="error", sizes="exact")
    for n in (3, 5, 40):
        a = np.arange(3.0 * n).reshape(n, 3)
        x, y = a.copy(), a.copy()
        for got, want in zip(_leaves(compiled(x)), _leaves(function(y)), strict=True):
            np.testing.assert_array_equal(got, want)
        np.testing.assert_array_equal(x, y)


def test_an_axis_that_the_array_lacks_is_an_error():
    with pytest.raises(np.exceptions.AxisError):
        cyxla.jit(lambda a: np.random.default_rng(3).shuffle(a, axis=5))(np.ones((2, 2)))
