"""Loops over a few complex numbers, of which gcc 12 drops the stores if it is told that they are independent."""

import numpy as np
import pytest

import cyxla


def from_both_ends(x):
    z = x + 1j * x[::-1]
    return np.sort(z.ravel())[: z.shape[1]], np.abs(z).max()


def scaled_pairs(x):
    z = (x * (1 + 2j)).reshape(-1, 1, x.shape[1]) * x[::-1, None]
    return np.sort(z.ravel())[::2], z.imag.sum()


@pytest.mark.parametrize("columns", range(1, 21))
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("function", [from_both_ends, scaled_pairs])
def test_every_length(function, dtype, columns):
    x = (np.arange(3 * columns) * 7 % 11 - 3).astype(dtype).reshape(3, columns)
    for got, want in zip(cyxla.jit(function, sizes="exact")(x), function(x), strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-6)
