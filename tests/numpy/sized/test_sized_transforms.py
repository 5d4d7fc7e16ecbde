"""Fourier transforms, windows and frequencies of run-time length."""

import numpy as np
import pytest
from numpy.fft import fftfreq, rfft
from support.functions.sized import check

import cyxla

LINES = """
np.fft.fft(x[m]) | np.fft.ifft(c[m]) | np.fft.rfft(x[m]) | np.fft.rfft(n[m]) | np.fft.rfft(m[m])
np.fft.irfft(np.fft.rfft(x[m])) | np.fft.irfft(np.fft.rfft(x[m]), x[m].size) | np.fft.irfft(c[m]) | np.fft.hfft(c[m])
np.fft.ihfft(x[m]) | np.fft.rfft(x[m], 16) | np.fft.fft(x[m], 2) | np.fft.fft(x[m], 3, norm="ortho")
np.fft.fft(x[m], norm="forward") | np.fft.ifft(x[m], norm="ortho") | np.fft.irfft(c[m], norm="forward")
np.fft.hfft(c[m], norm="ortho") | np.fft.fft(x[m], norm="other")
np.fft.fft(x, x[m].size) | np.fft.rfft(x, 2 * x[m].size + 1) | np.fft.ifft(x, n[0] + 2) | np.fft.fft(x, x[m].size - 3)
np.fft.irfft(x, x[m].size) | np.fft.fft(x[m], 2 * x[m].size)
np.real(np.fft.ifft(np.fft.fft(x[m], 2 * x[m].size) * np.fft.fft(x[m][::-1], 2 * x[m].size)))
"""
SEVERAL = """
np.fft.fft(A[m], axis=0) | np.fft.fft(A[m], axis=1) | np.fft.fft(A[m]) | np.fft.rfft(A[m].T) | np.fft.fft2(A[m])
np.fft.ifft2(A[m]) | np.fft.rfft2(A[m]) | np.fft.irfft2(np.fft.rfft2(A[m])) | np.fft.fftn(A[m], axes=(0,))
np.fft.irfft2(np.fft.rfft2(A[m]), s=A[m].shape) | np.fft.fftn(A[m]) | np.fft.ifftn(A[m]) | np.fft.rfftn(A[m].T)
np.fft.irfftn(A[m], norm="ortho") | np.fft.fft2(A, s=(x[m].size, 3)) | np.fft.fftn(A[m], s=(3, 5), axes=(0, 1))
np.fft.fftshift(x[m]) | np.fft.ifftshift(x[m]) | np.fft.fftshift(A[m]) | np.fft.fftshift(A[m], axes=1)
np.fft.ifftshift(A[m], axes=(0,))
"""
CREATION = """
np.fft.fftfreq(x[m].size) | np.fft.rfftfreq(x[m].size, d=0.1) | np.fft.fftshift(np.fft.fftfreq(x[m].size, 2))
np.fft.rfft(x[m])[np.fft.rfftfreq(x[m].size) > 0.1] | np.fft.fftfreq(6)[m] | np.fft.fftfreq(6, x[0])
x[m] * np.hanning(x[m].size) | np.hamming(x[m].size) | np.blackman(x[m].size) | np.bartlett(x[m].size)
np.kaiser(x[m].size, 8.6) | np.hanning(x[m].size - 1) | np.triu_indices(x[m].size) | np.tril_indices(x[m].size, -1)
np.triu_indices(x[m].size, 1) | np.tril_indices(x[m].size, m=2) | np.diag_indices(x[m].size) | np.triu_indices(3)[0][m]
np.logspace(0, 2, x[m].size) | np.logspace(0, 2, x[m].size, endpoint=False) | np.geomspace(1, 1000, x[m].size)
np.geomspace(-1, -100, x[m].size) | np.geomspace(0, 1, x[m].size) | np.logspace(0, 3, num=x[m].size, base=2.0)
np.geomspace(8, 1, x[m].size, endpoint=False) | np.logspace(0, 2, x[m].size, dtype=int)
"""


def expressions(*tables):
    return [e.strip() for table in tables for line in table.strip().splitlines() for e in line.split(" | ")]


@pytest.mark.slow_but_every(4)
@pytest.mark.parametrize("expression", expressions(LINES, SEVERAL, CREATION))
def test_expressions(expression, backend):
    check(expression, backend)


def spectrum(x, spacing):
    windowed = (x - x.mean()) * np.hanning(len(x))
    return fftfreq(len(x), spacing), np.abs(rfft(windowed)) ** 2


def convolved(x, spacing):
    n = 2 * len(x) - 1
    return np.fft.irfft(np.fft.rfft(x, n) * np.fft.rfft(x[::-1], n), n)


@pytest.mark.parametrize("dtype, rtol", [(np.float64, 1e-9), (np.float32, 1e-5)])
@pytest.mark.parametrize("function", [spectrum, convolved])
def test_one_program_for_any_length(function, dtype, rtol, backend):
    compiled = cyxla.jit(function, sizes="any", platform=backend)
    for size in (5, 1, 2, 8, 17, 1000, 1021, 3):
        x = np.random.default_rng(size).standard_normal(size).astype(dtype)
        want, got = function(x, 0.5), compiled(x, 0.5)
        for a, b in zip(got, want, strict=True) if isinstance(want, tuple) else [(got, want)]:
            assert (a.dtype, a.shape) == (b.dtype, b.shape)
            np.testing.assert_allclose(a, b, rtol=rtol, atol=rtol * np.abs(b).max(initial=0))
    assert compiled.cache_info().misses <= 3


def test_real_transforms_of_complex_numbers_are_refused():
    with pytest.raises(TypeError, match="rfft"):
        cyxla.jit(lambda x, m: np.fft.rfft(x[m]), fallback="error")(np.ones(3, complex), np.ones(3, bool))
