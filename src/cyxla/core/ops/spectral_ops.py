"""Fourier transforms."""

from cyxla.core.framework.op import op

op("BatchFFT", "input: complex64 -> output: complex64", deprecated=(15, "Use FFT."), shape=None)
op("BatchIFFT", "input: complex64 -> output: complex64", deprecated=(15, "Use IFFT."), shape=None)
op("FFT", "input: Tcomplex -> output: Tcomplex", "Tcomplex: {complex64, complex128} = DT_COMPLEX64", shape=None)
op("FFT2D", "input: Tcomplex -> output: Tcomplex", "Tcomplex: {complex64, complex128} = DT_COMPLEX64", shape=None)
op("FFT3D", "input: Tcomplex -> output: Tcomplex", "Tcomplex: {complex64, complex128} = DT_COMPLEX64", shape=None)
op("FFTND", "input: Tcomplex, fft_length: int32, axes: int32 -> output: Tcomplex",
    "Tcomplex: {complex64, complex128} = DT_COMPLEX64", shape=None,
)  # fmt: skip
op("IFFT", "input: Tcomplex -> output: Tcomplex", "Tcomplex: {complex64, complex128} = DT_COMPLEX64", shape=None)
op("IFFT2D", "input: Tcomplex -> output: Tcomplex", "Tcomplex: {complex64, complex128} = DT_COMPLEX64", shape=None)
op("IFFT3D", "input: Tcomplex -> output: Tcomplex", "Tcomplex: {complex64, complex128} = DT_COMPLEX64", shape=None)
op("IFFTND", "input: Tcomplex, fft_length: int32, axes: int32 -> output: Tcomplex",
    "Tcomplex: {complex64, complex128} = DT_COMPLEX64", shape=None,
)  # fmt: skip
op("IRFFT", "input: Tcomplex, fft_length: int32 -> output: Treal", "Treal: {float, double} = DT_FLOAT",
    "Tcomplex: {complex64, complex128} = DT_COMPLEX64", shape=None,
)  # fmt: skip
op("IRFFT2D", "input: Tcomplex, fft_length: int32 -> output: Treal", "Treal: {float, double} = DT_FLOAT",
    "Tcomplex: {complex64, complex128} = DT_COMPLEX64", shape=None,
)  # fmt: skip
op("IRFFT3D", "input: Tcomplex, fft_length: int32 -> output: Treal", "Treal: {float, double} = DT_FLOAT",
    "Tcomplex: {complex64, complex128} = DT_COMPLEX64", shape=None,
)  # fmt: skip
op("IRFFTND", "input: Tcomplex, fft_length: int32, axes: int32 -> output: Treal", "Treal: {float, double} = DT_FLOAT",
    "Tcomplex: {complex64, complex128} = DT_COMPLEX64", shape=None,
)  # fmt: skip
op("RFFT", "input: Treal, fft_length: int32 -> output: Tcomplex", "Treal: {float, double} = DT_FLOAT",
    "Tcomplex: {complex64, complex128} = DT_COMPLEX64", shape=None,
)  # fmt: skip
op("RFFT2D", "input: Treal, fft_length: int32 -> output: Tcomplex", "Treal: {float, double} = DT_FLOAT",
    "Tcomplex: {complex64, complex128} = DT_COMPLEX64", shape=None,
)  # fmt: skip
op("RFFT3D", "input: Treal, fft_length: int32 -> output: Tcomplex", "Treal: {float, double} = DT_FLOAT",
    "Tcomplex: {complex64, complex128} = DT_COMPLEX64", shape=None,
)  # fmt: skip
op("RFFTND", "input: Treal, fft_length: int32, axes: int32 -> output: Tcomplex", "Treal: {float, double} = DT_FLOAT",
    "Tcomplex: {complex64, complex128} = DT_COMPLEX64", shape=None,
)  # fmt: skip
