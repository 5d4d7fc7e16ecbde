"""Functions of numpy.fft: HLO transforms up to three last dimensions at once; others are transposed there."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod, sqrt
from operator import index
from typing import Any

import numpy as np
from numpy.lib.array_utils import normalize_axis_index, normalize_axis_tuple

from cyxla.errors import DTypeError, ShapeError
from cyxla.numpy.functions.fft_gradient import transform
from cyxla.numpy.tracing.arrays.sized_array import is_sized
from cyxla.numpy.tracing.arrays.traced_array import TracedArray, as_traced, is_traced, traced, value_of
from cyxla.numpy.tracing.hooks import hooks
from cyxla.numpy.tracing.registry import implements
from cyxla.numpy.tracing.results.conversion import convert
from cyxla.numpy.tracing.results.promotion import Dtype, result_type
from cyxla.numpy.tracing.trace import warn_user
from cyxla.numpy.ufuncs.apply import to_outputs
from cyxla.xla.hlo.builder import XlaOp
from cyxla.xla.hlo.builder import functions as xla
from cyxla.xla.lib.values import scalar

_INVERSE_NORMS = {None: "forward", "backward": "forward", "ortho": "ortho", "forward": "backward"}
_LINE_FUNCTIONS: dict[str, Any] = {"FFT": np.fft.fft, "IFFT": np.fft.ifft, "RFFT": np.fft.rfft, "IRFFT": np.fft.irfft}
_SPACE_FUNCTIONS: dict[str, Any] = {
    "FFT": np.fft.fftn,
    "IFFT": np.fft.ifftn,
    "RFFT": np.fft.rfftn,
    "IRFFT": np.fft.irfftn,
}
_MAX_HLO_DIMENSIONS = 3  # greatest number of dimensions that HLO transforms at once
_NO_AXES_WARNING = (
    "`axes` should not be `None` if `s` is not `None` (Deprecated in NumPy 2.0). In a future version of NumPy, "
    "this will raise an error and `s[i]` will correspond to the size along the transformed axis specified by "
    "`axes[i]`. To retain current behaviour, pass a sequence [0, ..., k-1] to `axes` for an array of dimension k."
)
_NO_SIZE_WARNING = (
    "Passing an array containing `None` values to `s` is deprecated in NumPy 2.0 and will raise an error in a future "
    "version of NumPy. To use the default behaviour of the corresponding 1-D transform, pass the value matching the "
    "default for its `n` parameter. To use the default behaviour for every axis, the `s` argument can be omitted."
)


def _real_type(array: TracedArray) -> Dtype:
    return result_type(np.zeros((), array.dtype).real.dtype, float)


def _check_norm(norm: Any) -> None:
    if norm not in _INVERSE_NORMS:
        raise ValueError(f'Invalid norm value {norm}; should be "backward","ortho" or "forward".')


def _factor(kind: str, norm: Any, count: int, real: Dtype) -> float:
    """Return the factor for a normalisation of HLO's transform, whose inverse divides.

    For half precision NumPy rounds the factor to it before it continues in single precision.
    """
    is_inverse = kind in ("IFFT", "IRFFT")
    power = 0.5 if norm == "ortho" else float(is_inverse == (norm != "forward"))
    factor: float = count**-power
    if real == np.float16:
        factor = float(np.float16(factor))
        return factor * count if is_inverse else factor
    return {"ortho": sqrt(count), "forward": float(count)}.get(norm, 1.0) if is_inverse else factor


def _fit_size(op: XlaOp, axis: int, size: int) -> XlaOp:
    """Truncate a dimension, or pad it with zeros."""
    length = op.shape.dims[axis]
    if size < length:
        return xla.slice_in_dim(op, 0, size, 1, axis)
    return xla.pad_in_dim(op, scalar(op, 0), axis, 0, size - length) if size > length else op


def _transform_axes(array: TracedArray, kind: str, sizes: Sequence[int], axes: Sequence[int], norm: Any) -> TracedArray:
    """Transform distinct dimensions at once; the last one is halved by real transforms."""
    _check_norm(norm)
    for n in sizes:
        if n < 1:
            raise ValueError(f"Invalid number of FFT data points ({n}) specified.")
    rank, real = array.ndim, _real_type(array)
    if kind == "RFFT" and array.dtype.kind == "c":
        raise DTypeError(f"rfft: the array must be real, not {array.dtype}", hint="use numpy.fft.fft")
    compute_dtype = np.dtype(np.float32) if real.itemsize < 4 else real
    op = convert(value_of(array), compute_dtype if kind == "RFFT" else result_type(compute_dtype, complex))
    order = [*(d for d in range(rank) if d not in axes), *axes]
    if order != list(range(rank)):
        op = xla.transpose(op, order)
    first = rank - len(axes)
    lengths = [*sizes[:-1], sizes[-1] // 2 + 1] if kind == "IRFFT" else sizes
    for k, n in enumerate(lengths):
        op = _fit_size(op, first + k, n)
    op = transform(op, kind, tuple(sizes))
    factor = (
        prod([_factor(kind, norm, n, real) for n in sizes])
        if real == np.float16
        else _factor(kind, norm, prod(sizes), real)
    )
    op = op if factor == 1 else xla.multiply(op, scalar(op, factor))
    if order != list(range(rank)):
        op = xla.transpose(op, [order.index(d) for d in range(rank)])
    return TracedArray(convert(op, real if kind == "IRFFT" else result_type(compute_dtype, complex)))


def _to_out(result: TracedArray, out: Any, name: str) -> Any:
    if is_sized(result) and out is None:
        return result
    sizes = getattr(out, "shape", None)
    if sizes is not None and (
        len(sizes) != result.ndim or any(b not in (1, a) for a, b in zip(sizes, result.shape, strict=True))
    ):
        raise ShapeError("output array has wrong shape.")
    return to_outputs([result], out, True, "same_kind", name)


def _operand(a: Any, out: Any) -> TracedArray:
    """Convert an operand to the precision of the result, or of ``out=`` if that is higher."""
    array = as_traced(a)
    if not isinstance(out, TracedArray) or out.dtype.kind not in "fc":
        return array
    real = np.zeros((), out.dtype).real.dtype
    return TracedArray(convert(value_of(array), result_type(array.dtype, real)))


def _transform_axis(a: Any, n: Any, axis: Any, kind: str, norm: Any) -> TracedArray:
    array = as_traced(a)
    if is_traced(n):
        return hooks.sized_function(_LINE_FUNCTIONS[kind], (array, n, axis, norm), {})  # type: ignore[no-any-return]
    dimension = normalize_axis_index(index(axis), array.ndim)
    size = array.shape[dimension] if n is None else index(n)
    if n is None and kind == "IRFFT":
        size = 2 * (size - 1)
    return _transform_axes(array, kind, [size], [dimension], norm)


@implements(np.fft.fft)
def fft(a: Any, n: Any = None, axis: Any = -1, norm: Any = None, out: Any = None) -> Any:
    """Transform one dimension."""
    return _to_out(_transform_axis(_operand(a, out), n, axis, "FFT", norm), out, "fft")


@implements(np.fft.ifft)
def ifft(a: Any, n: Any = None, axis: Any = -1, norm: Any = None, out: Any = None) -> Any:
    """Invert `fft`."""
    return _to_out(_transform_axis(_operand(a, out), n, axis, "IFFT", norm), out, "ifft")


@implements(np.fft.rfft)
def rfft(a: Any, n: Any = None, axis: Any = -1, norm: Any = None, out: Any = None) -> Any:
    """Transform one dimension of real numbers; return the non-negative frequencies."""
    return _to_out(_transform_axis(_operand(a, out), n, axis, "RFFT", norm), out, "rfft")


@implements(np.fft.irfft)
def irfft(a: Any, n: Any = None, axis: Any = -1, norm: Any = None, out: Any = None) -> Any:
    """Invert `rfft`."""
    return _to_out(_transform_axis(_operand(a, out), n, axis, "IRFFT", norm), out, "irfft")


@implements(np.fft.hfft)
def hfft(a: Any, n: Any = None, axis: Any = -1, norm: Any = None, out: Any = None) -> Any:
    """Transform one dimension of which one half is given, the other being its conjugate."""
    _check_norm(norm)
    array: Any = _operand(a, out)
    return _to_out(_transform_axis(np.conjugate(array), n, axis, "IRFFT", _INVERSE_NORMS[norm]), out, "hfft")


@implements(np.fft.ihfft)
def ihfft(a: Any, n: Any = None, axis: Any = -1, norm: Any = None, out: Any = None) -> Any:
    """Invert `hfft`."""
    _check_norm(norm)
    result: Any = _transform_axis(_operand(a, out), n, axis, "RFFT", _INVERSE_NORMS[norm])
    return _to_out(np.conjugate(result), out, "ihfft")


def _sizes_and_dimensions(
    array: TracedArray, s: Any, axes: Any, inverse_real: bool = False
) -> tuple[list[int], list[int]]:
    """Return sizes and axes of a transform of several dimensions."""
    if axes is None:
        if s is not None:
            warn_user(_NO_AXES_WARNING, DeprecationWarning)
        axes = range(array.ndim) if s is None else range(-len(s), 0)
    dimensions = [normalize_axis_index(index(d), array.ndim) for d in axes]
    if s is None:
        s = [None] * len(dimensions)
    elif len(s) != len(dimensions):
        raise ValueError("Shape and axes have different lengths.")
    elif any(n is None for n in s):
        warn_user(_NO_SIZE_WARNING, DeprecationWarning)
    last = len(dimensions) - 1
    sizes = [
        _transform_size(array.shape[d], n, inverse_real and k == last)
        for k, (n, d) in enumerate(zip(s, dimensions, strict=True))
    ]
    return sizes, dimensions


def _transform_size(length: int, requested: Any, inverse_real: bool) -> int:
    """Return the size of a transformed dimension: -1 means all of it, None the default."""
    if requested is None:
        return 2 * (length - 1) if inverse_real else length
    return length if requested == -1 else index(requested)


def _transform_several(a: Any, s: Any, axes: Any, norm: Any, kind: str) -> TracedArray:
    array = as_traced(a)
    if s is not None and any(map(is_traced, s)):
        return hooks.sized_function(_SPACE_FUNCTIONS[kind], (array, s, axes, norm), {})  # type: ignore[no-any-return]
    sizes, dimensions = _sizes_and_dimensions(array, s, axes, kind == "IRFFT")
    if not dimensions:
        if kind in ("RFFT", "IRFFT"):
            raise IndexError("list index out of range")
        return array
    is_half = _real_type(array) == np.float16  # only the first step computes in half precision
    if len(dimensions) == 1 or (
        len(dimensions) <= _MAX_HLO_DIMENSIONS and len(set(dimensions)) == len(dimensions) and not is_half
    ):
        return _transform_axes(array, kind, sizes, dimensions, norm)
    steps = [("IFFT" if kind in ("IFFT", "IRFFT") else "FFT", n, d) for n, d in zip(sizes, dimensions, strict=True)]
    if kind in ("RFFT", "IRFFT"):
        steps[-1] = (kind, *steps[-1][1:])
    for step, n, d in steps if kind == "IRFFT" else steps[::-1]:
        array = _transform_axes(array, step, [n], [d], norm)
    return array


@implements(np.fft.fftn)
def fftn(a: Any, s: Any = None, axes: Any = None, norm: Any = None, out: Any = None) -> Any:
    """Transform several dimensions, by default all."""
    return _to_out(_transform_several(_operand(a, out), s, axes, norm, "FFT"), out, "fftn")


@implements(np.fft.ifftn)
def ifftn(a: Any, s: Any = None, axes: Any = None, norm: Any = None, out: Any = None) -> Any:
    """Invert `fftn`."""
    return _to_out(_transform_several(_operand(a, out), s, axes, norm, "IFFT"), out, "ifftn")


@implements(np.fft.rfftn)
def rfftn(a: Any, s: Any = None, axes: Any = None, norm: Any = None, out: Any = None) -> Any:
    """Transform several dimensions of real numbers; return the non-negative frequencies of the last one."""
    return _to_out(_transform_several(_operand(a, out), s, axes, norm, "RFFT"), out, "rfftn")


@implements(np.fft.irfftn)
def irfftn(a: Any, s: Any = None, axes: Any = None, norm: Any = None, out: Any = None) -> Any:
    """Invert `rfftn`."""
    return _to_out(_transform_several(_operand(a, out), s, axes, norm, "IRFFT"), out, "irfftn")


@implements(np.fft.fft2)
def fft2(a: Any, s: Any = None, axes: Any = (-2, -1), norm: Any = None, out: Any = None) -> Any:
    """Transform two dimensions."""
    return fftn(a, s, axes, norm, out)


@implements(np.fft.ifft2)
def ifft2(a: Any, s: Any = None, axes: Any = (-2, -1), norm: Any = None, out: Any = None) -> Any:
    """Invert `fft2`."""
    return ifftn(a, s, axes, norm, out)


@implements(np.fft.rfft2)
def rfft2(a: Any, s: Any = None, axes: Any = (-2, -1), norm: Any = None, out: Any = None) -> Any:
    """Transform two dimensions of real numbers."""
    return rfftn(a, s, axes, norm, out)


@implements(np.fft.irfft2)
def irfft2(a: Any, s: Any = None, axes: Any = (-2, -1), norm: Any = None, out: Any = None) -> Any:
    """Invert `rfft2`."""
    return irfftn(a, s, axes, norm, out)


def _shift(x: Any, axes: Any, sign: int) -> TracedArray:
    array = as_traced(x)
    dimensions = range(array.ndim) if axes is None else normalize_axis_tuple(axes, array.ndim, allow_duplicate=True)
    op = value_of(array)
    for d in dimensions:
        size = array.shape[d]
        amount = sign * (size // 2) % size if size else 0
        if amount:
            op = xla.concatenate(
                [xla.slice_in_dim(op, size - amount, size, 1, d), xla.slice_in_dim(op, 0, size - amount, 1, d)], d
            )
    return traced(op)


@implements(np.fft.fftshift)
def fftshift(x: Any, axes: Any = None) -> TracedArray:
    """Shift the zero frequency to the middle."""
    return _shift(x, axes, 1)


@implements(np.fft.ifftshift)
def ifftshift(x: Any, axes: Any = None) -> TracedArray:
    """Invert `fftshift`."""
    return _shift(x, axes, -1)


@implements(np.fft.fftfreq)
def fftfreq(n: Any, d: Any = 1.0, device: Any = None) -> Any:
    """Return the frequencies of `fft` for a traced sample spacing."""
    spacing: Any = as_traced(d)
    return np.fft.fftfreq(n) / spacing


@implements(np.fft.rfftfreq)
def rfftfreq(n: Any, d: Any = 1.0, device: Any = None) -> Any:
    """Return the frequencies of `rfft` for a traced sample spacing."""
    spacing: Any = as_traced(d)
    return np.fft.rfftfreq(n) / spacing
