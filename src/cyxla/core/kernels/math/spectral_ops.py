"""Fourier transforms of trailing dimensions, by SciPy's pocketfft."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from cyxla.core.framework.kernel_decorators import array_kernel
from cyxla.core.framework.types import DataType
from cyxla.errors import InvalidArgumentError, ShapeError

Array = np.ndarray[Any, Any]


def _transform(name: str, x: Array, axes: tuple[int, ...], sizes: tuple[int, ...] | None = None) -> Array:
    """Call a transform of SciPy; without axes, return the input."""
    import scipy.fft

    if not axes:
        return x
    return np.asarray(getattr(scipy.fft, name)(x, s=sizes, axes=axes))


def _check_rank(x: Array, rank: int) -> tuple[int, ...]:
    if x.ndim < rank:
        raise ShapeError(f"a transform of {rank} dimensions needs an input of that rank; its shape is {list(x.shape)}")
    return tuple(range(-rank, 0))


def _complex(rank: int, name: str) -> Callable[[Array], Array]:
    def transform(x: Array) -> Array:
        axes = _check_rank(x, rank)
        return _transform(name, x, axes) if x.size else x

    return transform


for _rank, _suffix in ((1, ""), (2, "2D"), (3, "3D")):
    array_kernel("FFT" + _suffix, _complex(_rank, "fftn"))
    array_kernel("IFFT" + _suffix, _complex(_rank, "ifftn"))
array_kernel("BatchFFT", _complex(1, "fftn"))
array_kernel("BatchIFFT", _complex(1, "ifftn"))


# -------------------------------------------------------------------------------------------- between real and complex


def _lengths(fft_length: Array, rank: int) -> tuple[int, ...]:
    if fft_length.shape != (rank,):
        raise ShapeError(f"fft_length must hold {rank} sizes; its shape is {list(fft_length.shape)}")
    if (fft_length < 0).any():
        raise InvalidArgumentError(f"fft_length must not be negative: {fft_length.tolist()}")
    return tuple(fft_length.tolist())


def _check_lengths(x: Array, axes: tuple[int, ...], needed: tuple[int, ...]) -> None:
    """Raise if a dimension is too short: inputs are not padded, but may be empty."""
    for axis, needed_size in zip(axes, needed, strict=True):
        if x.size and x.shape[axis] < needed_size:
            raise InvalidArgumentError(
                f"dimension {axis % x.ndim} of the input {list(x.shape)} must be at least {needed_size} for "
                "these lengths"
            )


def _crop(x: Array, axes: tuple[int, ...], sizes: tuple[int, ...]) -> Array:
    at = [slice(None)] * x.ndim
    for axis, size in zip(axes, sizes, strict=True):
        at[axis] = slice(size)
    return x[tuple(at)]


def _shape(x: Array, axes: tuple[int, ...], sizes: tuple[int, ...]) -> list[int]:
    shape = list(x.shape)
    for axis, size in zip(axes, sizes, strict=True):
        shape[axis] = size
    return shape


def _half_length(length: int) -> int:
    return length // 2 + 1 if length else 0


def to_complex(x: Array, axes: tuple[int, ...], lengths: tuple[int, ...], dtype: np.dtype[Any]) -> Array:
    """Transform a real input, cropped to the lengths, to the nonredundant half of its spectrum."""
    _check_lengths(x, axes, lengths)
    sizes = (*lengths[:-1], _half_length(lengths[-1]))
    if not x.size or not all(lengths):
        return np.zeros(_shape(x, axes, sizes), dtype)
    return _transform("rfftn", _crop(x, axes, lengths), axes, lengths).astype(dtype, copy=False)


def to_real(x: Array, axes: tuple[int, ...], lengths: tuple[int, ...], dtype: np.dtype[Any]) -> Array:
    """Transform a half spectrum, cropped to fit the lengths, to a real array."""
    needed = (*lengths[:-1], _half_length(lengths[-1]))
    _check_lengths(x, axes, needed)
    if not x.size or not all(lengths):
        return np.zeros(_shape(x, axes, lengths), dtype)
    return _transform("irfftn", _crop(x, axes, needed), axes, lengths).astype(dtype, copy=False)


def _forward(rank: int) -> Callable[..., Array]:
    def transform(x: Array, fft_length: Array, *, Tcomplex: DataType) -> Array:
        axes = _check_rank(x, rank)
        return to_complex(x, axes, _lengths(fft_length, rank), Tcomplex.numpy)

    return transform


def _backward(rank: int) -> Callable[..., Array]:
    def transform(x: Array, fft_length: Array, *, Treal: DataType) -> Array:
        axes = _check_rank(x, rank)
        return to_real(x, axes, _lengths(fft_length, rank), Treal.numpy)

    return transform


for _rank, _suffix in ((1, ""), (2, "2D"), (3, "3D")):
    array_kernel("RFFT" + _suffix, _forward(_rank), attrs=("Tcomplex",))
    array_kernel("IRFFT" + _suffix, _backward(_rank), attrs=("Treal",))


# ---------------------------------------------------------------------------------------------- any dimensions


def _axes(x: Array, operand: Array, fft_length: Array) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return the dimensions to transform in the given order, and their lengths."""
    if operand.ndim != 1:
        raise ShapeError(f"axes must be a vector; its shape is {list(operand.shape)}")
    for axis in operand.tolist():
        if not -x.ndim <= axis < x.ndim:
            raise InvalidArgumentError(f"axis {axis} of an input of rank {x.ndim}")
    axes = tuple(axis % x.ndim for axis in operand.tolist())
    if len(set(axes)) != len(axes):
        raise InvalidArgumentError(f"a dimension is transformed twice: {operand.tolist()}")
    return axes, _lengths(fft_length, len(axes))


def _any_complex(name: str) -> Callable[[Array, Array, Array], Array]:
    def transform(x: Array, fft_length: Array, axes: Array) -> Array:
        along, lengths = _axes(x, axes, fft_length)
        _check_lengths(x, along, lengths)
        cropped = _crop(x, along, lengths)
        return _transform(name, cropped, along) if cropped.size else np.ascontiguousarray(cropped)

    return transform


array_kernel("FFTND", _any_complex("fftn"))
array_kernel("IFFTND", _any_complex("ifftn"))


@array_kernel("RFFTND", attrs=("Tcomplex",))
def _any_forward(x: Array, fft_length: Array, axes: Array, *, Tcomplex: DataType) -> Array:
    return to_complex(x, *_axes(x, axes, fft_length), Tcomplex.numpy)


@array_kernel("IRFFTND", attrs=("Treal",))
def _any_backward(x: Array, fft_length: Array, axes: Array, *, Treal: DataType) -> Array:
    return to_real(x, *_axes(x, axes, fft_length), Treal.numpy)
