"""Fourier transforms."""

from collections.abc import Callable

import numpy as np

from cyxla.core.framework.declarations.op import op
from cyxla.core.framework.shape_fns.common import unchanged_shape_with_rank_at_least
from cyxla.core.framework.shape_inference import InferenceContext


def _real_shape(dims: int, *, forward: bool) -> Callable[[InferenceContext], None]:
    """Make the shape function for transforms of `dims` real dimensions.

    The lengths are those of the last dimensions; a spectrum stores the nonredundant half of the last one.
    """

    def fn(c: InferenceContext) -> None:
        x, lengths = c.with_rank_at_least(c.input(0), dims), c.input_tensor(1)
        c.merge_dim(c.with_rank(c.input(1), 1)[0], dims)
        sizes: list[int | None] = [None] * dims if lengths is None else [int(n) for n in np.ravel(lengths)]
        if forward and sizes[-1]:
            sizes[-1] = sizes[-1] // 2 + 1
        c.set_output(0, c.concatenate(c.sub_shape(x, 0, -dims), sizes))

    return fn


def _any_rank_shape(c: InferenceContext) -> None:
    """Keep the rank only: the axes are operands."""
    if c.input(0).rank is not None:
        c.set_output(0, c.unknown_shape_of_rank(len(c.input(0))))


op("BatchFFT", "input: complex64 -> output: complex64", deprecated=(15, "Use FFT."),
    shape=unchanged_shape_with_rank_at_least(1), doc="Compute the discrete Fourier transform of the last dimension.",
)  # fmt: skip
op("BatchIFFT", "input: complex64 -> output: complex64", deprecated=(15, "Use IFFT."),
    shape=unchanged_shape_with_rank_at_least(1),
    doc="Compute the inverse discrete Fourier transform of the last dimension.",
)  # fmt: skip
op("FFT", "input: Tcomplex -> output: Tcomplex", "Tcomplex: {complex64, complex128} = DT_COMPLEX64",
    shape=unchanged_shape_with_rank_at_least(1), doc="Compute the discrete Fourier transform of the last dimension.",
)  # fmt: skip
op("FFT2D", "input: Tcomplex -> output: Tcomplex", "Tcomplex: {complex64, complex128} = DT_COMPLEX64",
    shape=unchanged_shape_with_rank_at_least(2),
    doc="Compute the discrete Fourier transform of the last two dimensions.",
)  # fmt: skip
op("FFT3D", "input: Tcomplex -> output: Tcomplex", "Tcomplex: {complex64, complex128} = DT_COMPLEX64",
    shape=unchanged_shape_with_rank_at_least(3),
    doc="Compute the discrete Fourier transform of the last three dimensions.",
)  # fmt: skip
op("FFTND", "input: Tcomplex, fft_length: int32, axes: int32 -> output: Tcomplex",
    "Tcomplex: {complex64, complex128} = DT_COMPLEX64", shape=_any_rank_shape,
    doc="Compute the discrete Fourier transform of some dimensions.",
)  # fmt: skip
op("IFFT", "input: Tcomplex -> output: Tcomplex", "Tcomplex: {complex64, complex128} = DT_COMPLEX64",
    shape=unchanged_shape_with_rank_at_least(1),
    doc="Compute the inverse discrete Fourier transform of the last dimension.",
)  # fmt: skip
op("IFFT2D", "input: Tcomplex -> output: Tcomplex", "Tcomplex: {complex64, complex128} = DT_COMPLEX64",
    shape=unchanged_shape_with_rank_at_least(2),
    doc="Compute the inverse discrete Fourier transform of the last two dimensions.",
)  # fmt: skip
op("IFFT3D", "input: Tcomplex -> output: Tcomplex", "Tcomplex: {complex64, complex128} = DT_COMPLEX64",
    shape=unchanged_shape_with_rank_at_least(3),
    doc="Compute the inverse discrete Fourier transform of the last three dimensions.",
)  # fmt: skip
op("IFFTND", "input: Tcomplex, fft_length: int32, axes: int32 -> output: Tcomplex",
    "Tcomplex: {complex64, complex128} = DT_COMPLEX64", shape=_any_rank_shape,
    doc="Compute the inverse discrete Fourier transform of some dimensions.",
)  # fmt: skip
op("IRFFT", "input: Tcomplex, fft_length: int32 -> output: Treal", "Treal: {float, double} = DT_FLOAT",
    "Tcomplex: {complex64, complex128} = DT_COMPLEX64", shape=_real_shape(1, forward=False),
    doc="Compute the inverse of RFFT.",
)  # fmt: skip
op("IRFFT2D", "input: Tcomplex, fft_length: int32 -> output: Treal", "Treal: {float, double} = DT_FLOAT",
    "Tcomplex: {complex64, complex128} = DT_COMPLEX64", shape=_real_shape(2, forward=False),
    doc="Compute the inverse of RFFT2D.",
)  # fmt: skip
op("IRFFT3D", "input: Tcomplex, fft_length: int32 -> output: Treal", "Treal: {float, double} = DT_FLOAT",
    "Tcomplex: {complex64, complex128} = DT_COMPLEX64", shape=_real_shape(3, forward=False),
    doc="Compute the inverse of RFFT3D.",
)  # fmt: skip
op("IRFFTND", "input: Tcomplex, fft_length: int32, axes: int32 -> output: Treal", "Treal: {float, double} = DT_FLOAT",
    "Tcomplex: {complex64, complex128} = DT_COMPLEX64", shape=_any_rank_shape, doc="Compute the inverse of RFFTND.",
)  # fmt: skip
op("RFFT", "input: Treal, fft_length: int32 -> output: Tcomplex", "Treal: {float, double} = DT_FLOAT",
    "Tcomplex: {complex64, complex128} = DT_COMPLEX64", shape=_real_shape(1, forward=True),
    doc="Compute the nonredundant half of the discrete Fourier transform of real numbers in the last dimension.",
)  # fmt: skip
op("RFFT2D", "input: Treal, fft_length: int32 -> output: Tcomplex", "Treal: {float, double} = DT_FLOAT",
    "Tcomplex: {complex64, complex128} = DT_COMPLEX64", shape=_real_shape(2, forward=True),
    doc="Compute the discrete Fourier transform of real numbers in the last two dimensions.",
)  # fmt: skip
op("RFFT3D", "input: Treal, fft_length: int32 -> output: Tcomplex", "Treal: {float, double} = DT_FLOAT",
    "Tcomplex: {complex64, complex128} = DT_COMPLEX64", shape=_real_shape(3, forward=True),
    doc="Compute the discrete Fourier transform of real numbers in the last three dimensions.",
)  # fmt: skip
op("RFFTND", "input: Treal, fft_length: int32, axes: int32 -> output: Tcomplex", "Treal: {float, double} = DT_FLOAT",
    "Tcomplex: {complex64, complex128} = DT_COMPLEX64", shape=_any_rank_shape,
    doc="Compute the discrete Fourier transform of real numbers in some dimensions.",
)  # fmt: skip
