"""Fourier transforms against their sums."""

import numpy as np
import pytest

KINDS = [("FFT", "c128", "c128"), ("IFFT", "c128", "c128"), ("RFFT", "f64", "c128"), ("IRFFT", "c128", "f64")]
NARROW = {"c128": "c64", "f64": "f32"}


def transform(x, lengths, sign):
    """The sums over the last dimensions, one after the other."""
    for n, axis in zip(lengths, range(-len(lengths), 0), strict=True):
        turns = np.exp(sign * 2j * np.pi * np.outer(np.arange(n), np.arange(n)) / n)
        x = np.moveaxis(np.moveaxis(x, axis, -1) @ turns, -1, axis)
    return x


@pytest.mark.parametrize(
    "shape, rank", [((5,), 1), ((2, 6), 1), ((3, 4), 2), ((2, 3, 2, 5), 3), ((1,), 1), ((0, 4), 1)]
)
@pytest.mark.parametrize("kind, source, result", KINDS)
@pytest.mark.parametrize("narrow", [False, True])
def test_fft(hlo, kind, source, result, shape, rank, narrow):
    rng = np.random.default_rng(0)
    lengths = shape[len(shape) - rank :]
    half = (*shape[:-1], shape[-1] // 2 + 1)
    full = rng.standard_normal(shape) + (1j * rng.standard_normal(shape) if kind in ("FFT", "IFFT") else 0)
    if kind == "IRFFT":
        x, want = transform(full, lengths, -1)[..., : half[-1]], full
    else:
        x, want = full, transform(full, lengths, 1 if kind == "IFFT" else -1)
        want = want / np.prod(lengths) if kind == "IFFT" else want[..., : half[-1]] if kind == "RFFT" else want
    source, result = (NARROW[source], NARROW[result]) if narrow else (source, result)
    x = x.astype({"c64": np.complex64, "f32": np.float32}.get(source, x.dtype))
    lengths_text = ",".join(map(str, lengths))
    dims = ",".join(map(str, want.shape))
    got = hlo(f"{result}[{dims}] fft(p0), fft_type={kind}, fft_length={{{lengths_text}}}", x)
    np.testing.assert_allclose(got, want, rtol=0, atol=1e-5 if narrow else 1e-12)


def test_irfft_ignores_the_imaginary_part_of_the_ends(hlo):
    x = np.array([1 + 5j, 2 - 1j, 3 + 7j], np.complex64)
    clean = np.array([1, 2 - 1j, 3], np.complex64)
    text = "f32[4] fft(p0), fft_type=IRFFT, fft_length={4}"
    np.testing.assert_array_equal(hlo(text, x), hlo(text, clean))
