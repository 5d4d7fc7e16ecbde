"""Loops of scalar statements and short vectors are one kernel, whatever the bounds of the arrays that they slice."""

import numpy as np
import pytest

import cyxla

RNG = np.random.default_rng(0)
ROWS, NONZERO = 500, 80_000  # vectors of the bound's length would be too long for one kernel
STARTS = np.sort(RNG.integers(0, NONZERO, ROWS + 1)).astype(np.uint32)
STARTS[0], STARTS[-1] = 0, NONZERO
COLUMNS = RNG.integers(0, ROWS, NONZERO)
VALUES = RNG.standard_normal(NONZERO)


def sparse_product(starts, columns, values, x):
    y = np.empty(starts.size - 1, values.dtype)
    for i in range(starts.size - 1):
        part = slice(starts[i], starts[i + 1])
        y[i] = values[part] @ x[columns[part]]
    return y


def segment_sums(starts, columns, values, x):
    y = np.zeros(starts.size - 1)
    for i in range(starts.size - 1):
        y[i] = values[starts[i] : starts[i + 1]].sum()
    return y


def scaled_segments(starts, columns, values, x):
    for i in range(starts.size - 1):
        values[starts[i] : starts[i + 1]] *= x[i]
    return values


@pytest.mark.parametrize("function", [sparse_product, segment_sums, scaled_segments])
def test_segments_of_long_arrays(function):
    x = RNG.standard_normal(ROWS)
    compiled = cyxla.jit(function)
    expected = function(STARTS, COLUMNS, VALUES.copy(), x)
    np.testing.assert_allclose(compiled(STARTS, COLUMNS, VALUES.copy(), x), expected, rtol=1e-10, atol=1e-10)
    assert " loop nest " in compiled.explain()


def lu_factors(a):
    for i in range(a.shape[0] - 1):
        a[i + 1 :, i] /= a[i, i]
        a[i + 1 :, i + 1 :] -= np.outer(a[i + 1 :, i], a[i, i + 1 :])
    return a


def back_substitution(a):
    x = np.zeros(a.shape[0])
    for i in range(a.shape[0] - 1, -1, -1):
        x[i] = (a[i, 0] - a[i, i + 1 :] @ x[i + 1 :]) / a[i, i]
    return x


def mirrored_triangle(a):
    for i in range(a.shape[0]):
        a[i, i:] = a[i:, i] * 2
        a[:i, :i] += a[i, :i]
    return a


@pytest.mark.parametrize("size", [1, 2, 50, 400])
@pytest.mark.parametrize("function", [lu_factors, back_substitution, mirrored_triangle])
def test_parts_of_matrices(function, size):
    a = RNG.random((size, size)) + size * np.eye(size)
    if function is mirrored_triangle:
        a /= 1e3
    compiled = cyxla.jit(function)
    with np.errstate(all="ignore"):
        expected = function(a.copy())
    np.testing.assert_allclose(compiled(a.copy()), expected, rtol=1e-9, atol=1e-9)
    assert size < 50 or " loop nest " in compiled.explain()


def clipped_windows(x, w):
    out = np.empty_like(x)
    for i in range(x.size):
        out[i] = x[max(0, i - w) : i + w + 1].mean()
    return out


def windows_of_known_size(x, w):
    out = np.empty_like(x)
    for i in range(x.size):
        out[i] = np.median(x[max(i - 2, 0) : min(i + 3, x.size)]) * w
    return out


def windows_by_minimum(x, w):
    for i in range(x.size):
        x[i : min(x.size, i + w)] += 1 / (i + 1)
    return x


def windows_of_data(x, w):
    total = 0.0
    for i in range(x.size):
        k = int(abs(x[i]) * 3)
        total += x[max(i - k, 0) : i + k].sum()
    return total


@pytest.mark.slow_but_every(3)
@pytest.mark.parametrize("size", [0, 1, 5, 3000])
@pytest.mark.parametrize("w", [0, 2, 70])
@pytest.mark.parametrize("function", [clipped_windows, windows_of_known_size, windows_by_minimum, windows_of_data])
def test_windows(function, w, size):
    x = np.random.default_rng(w).standard_normal(size)
    expected = function(x.copy(), w)
    compiled = cyxla.jit(function)
    for _ in range(2):
        np.testing.assert_allclose(compiled(x.copy(), w), expected, rtol=1e-9, atol=1e-9)
    assert compiled.cache_info().misses == 1


def test_windows_have_the_bound_of_their_length():
    module = cyxla.jit(windows_of_known_size).lower(np.ones(3000), 1)
    assert "dynamic_slice_sizes={5}" in module.to_text()
