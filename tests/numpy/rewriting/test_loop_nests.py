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
