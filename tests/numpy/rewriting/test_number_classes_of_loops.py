"""Numbers whose class depends on the values, such as int or float, keep it through loops."""

import warnings

import numpy as np
import pytest

import cyxla
from cyxla.errors import FallbackWarning

Z = np.array([-1 + 1j, -2 - 1j, -0.5, 0.25j])
Y = np.array([-0.5, -1, -2, -0.25])


def doubled(c, k):
    s = 1 if c[0] > 0 else 0.5
    for _ in range(20):
        s = s * 2
    return s


def doubled_or_halved(c, k):
    s = 1
    for i in range(20):
        s = s * 2
        if c[i % 4] > 5:
            s = s * 0.25
    return s


def sum_of_complex(c, k):
    s = 0.0
    for i in range(20):
        if c[i % 4] > 5:
            s += Z[i % 4]
    return s


def sum_of_imaginary(c, k):
    s = 0.0
    for i in range(20):
        if c[i % 4] > 5:
            s += 1j
    return s


def real_or_imaginary(c, k):
    s = 1.5 if c[0] > 0 else 2j
    for _ in range(20):
        s = s * 2
    return s


def sum_from_an_index(c, k):
    s = 0.0
    for i in range(k, 20):
        if c[i % 4] > 5:
            s += Z[i % 4]
    return s


def sum_of_all_from_an_index(c, k):
    s = 0
    for i in range(k, 20):
        s += Z[i % 4]
    return s


def sum_of_both(c, k):
    s = 0.0
    for _ in range(k, 20):
        s -= Y.sum() / 8
        if c[k] > 5:
            s -= Z.sum() / 8
    return s


def sum_of_both_in_nested_loops(c, k):
    s = 0.0
    for _ in range(k, 20):
        for _ in range(30):
            s -= Y[0]
        if c[k] > 5:
            s -= Z[0]
    return s


def maximum(c, k):
    s = 0.0
    for _ in range(20):
        s += max(Z[k], s) * 0.125
        s -= Y[0]
    return s


def maximum_in_a_nested_while(c, k):
    s = 0.0
    for _ in range(k, 20):
        s += max(Z[k], s) * 0.125
        q = 0
        while q < 3:
            q += 1
            s -= Y.sum() / 8
    return s


FUNCTIONS = [
    doubled, doubled_or_halved, sum_of_complex, sum_of_imaginary, real_or_imaginary, sum_from_an_index,
    sum_of_all_from_an_index, sum_of_both, sum_of_both_in_nested_loops, maximum, maximum_in_a_nested_while,
]  # fmt: skip


@pytest.mark.parametrize("function", FUNCTIONS)
def test_classes(function, monkeypatch):
    monkeypatch.setenv("CYXLA_FALLBACK", "numpy")
    jitted = cyxla.jit(function)
    for c in ([1, 2, 3, 4], [-1, 2, 3, 4], [9, 2, 9, 4]):
        for k in (0, 1, 3):
            expected = function(np.array(c), k)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", FallbackWarning)
                got = jitted(np.array(c), k)
            assert type(got) is type(expected)
            assert got == pytest.approx(expected, rel=1e-12)


def test_numbers_that_become_complex_are_compiled():
    jitted = cyxla.jit(sum_of_all_from_an_index, fallback="error")
    assert jitted(np.zeros(4), 1) == pytest.approx(sum_of_all_from_an_index(np.zeros(4), 1))
