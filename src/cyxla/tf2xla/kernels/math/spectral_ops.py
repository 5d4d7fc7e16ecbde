"""Fourier transforms of trailing dimensions, by HLO's fft."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from cyxla.core.framework.types import DataType, as_data_type
from cyxla.errors import InvalidArgumentError, ShapeError
from cyxla.tf2xla.types import element_type
from cyxla.tf2xla.xla_op_kernel import lowering
from cyxla.xla.hlo.builder import XlaOp
from cyxla.xla.hlo.builder import functions as xla
from cyxla.xla.lib.values import rank_of, scalar, sizes_of

Array = np.ndarray[Any, Any]

_RANKS = ((1, ""), (2, "2D"), (3, "3D"))
_COMPLEX = tuple(map(as_data_type, ("complex64", "complex128")))
_REAL = tuple(map(as_data_type, ("float", "double")))


def _check_rank(x: XlaOp, rank: int) -> None:
    if rank_of(x) < rank:
        raise ShapeError(f"a transform of {rank} dimensions needs that rank; the shape is {list(sizes_of(x))}")


def _transform_complex(rank: int, kind: str) -> Callable[[XlaOp], XlaOp]:
    def transform(x: XlaOp) -> XlaOp:
        _check_rank(x, rank)
        return xla.fft(x, kind, sizes_of(x)[-rank:]) if 0 not in sizes_of(x) else x

    return transform


# ----------------------------------------------------------------------------------------------------- real transforms


def _lengths(fft_length: Array, rank: int) -> tuple[int, ...]:
    if fft_length.shape != (rank,):
        raise ShapeError(f"fft_length must hold {rank} sizes; its shape is {list(fft_length.shape)}")
    if (fft_length < 0).any():
        raise InvalidArgumentError(f"fft_length must not be negative: {fft_length.tolist()}")
    return tuple(int(n) for n in fft_length)


def _half_spectrum(lengths: tuple[int, ...]) -> tuple[int, ...]:
    """Return the sizes of the nonredundant half of a spectrum."""
    return (*lengths[:-1], lengths[-1] // 2 + 1 if lengths[-1] else 0)


def _crop(x: XlaOp, needed: tuple[int, ...]) -> XlaOp:
    """Crop the last dimensions to the needed sizes; inputs are not padded."""
    batch = sizes_of(x)[: rank_of(x) - len(needed)]
    have = sizes_of(x)[len(batch) :]
    if any(size < need for size, need in zip(have, needed, strict=True)):
        raise InvalidArgumentError(f"the last dimensions of {list(sizes_of(x))} must be at least {list(needed)}")
    return x if have == needed else xla.slice_(x, [0] * rank_of(x), [*batch, *needed])


def _transform_real(
    x: XlaOp, fft_length: Array, rank: int, dtype: DataType, kind: str, sizes: tuple[Callable[..., Any], ...]
) -> XlaOp:
    """Transform between real and complex; `sizes` map the lengths to the sizes of input and result."""
    _check_rank(x, rank)
    lengths = _lengths(fft_length, rank)
    needed, result = (size(lengths) for size in sizes)
    if 0 in sizes_of(x) or 0 in lengths:
        nothing = xla.convert(scalar(xla.real(x) if x.shape.dtype.is_complex else x, 0), element_type(dtype))
        return xla.broadcast(nothing, (*sizes_of(x)[: rank_of(x) - rank], *result))
    return xla.convert(xla.fft(_crop(x, needed), kind, lengths), element_type(dtype))


def _rfft(rank: int) -> Callable[..., XlaOp]:
    def transform(x: XlaOp, fft_length: Array, *, Tcomplex: DataType) -> XlaOp:
        return _transform_real(x, fft_length, rank, Tcomplex, "RFFT", (tuple, _half_spectrum))

    return transform


def _irfft(rank: int) -> Callable[..., XlaOp]:
    def transform(x: XlaOp, fft_length: Array, *, Treal: DataType) -> XlaOp:
        return _transform_real(x, fft_length, rank, Treal, "IRFFT", (_half_spectrum, tuple))

    return transform


_TYPES = {"Tcomplex": _COMPLEX, "Treal": _REAL}
for _rank, _suffix in _RANKS:
    lowering("FFT" + _suffix, _transform_complex(_rank, "FFT"), types={"Tcomplex": _COMPLEX})
    lowering("IFFT" + _suffix, _transform_complex(_rank, "IFFT"), types={"Tcomplex": _COMPLEX})
    lowering("RFFT" + _suffix, _rfft(_rank), attrs=("Tcomplex",), const=("fft_length",), types=_TYPES)
    lowering("IRFFT" + _suffix, _irfft(_rank), attrs=("Treal",), const=("fft_length",), types=_TYPES)
