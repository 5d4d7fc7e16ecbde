"""Fourier transforms of run-time length, as a convolution with a chirp.

The transform of n points is a convolution with exp(i pi k^2 / n), which transforms of any longer length compute
(Bluestein, 1970): a length that is known while tracing serves all run-time lengths up to a bound.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from operator import index
from typing import Any

import numpy as np
from numpy.lib.array_utils import normalize_axis_index, normalize_axis_tuple

from cyxla.numpy.sized.creation import bound_of, bounded_size
from cyxla.numpy.sized.frames import fail_unless, resized, wrapped
from cyxla.numpy.sized.table import sized
from cyxla.numpy.tracing.arrays.sized_array import SizedArray, as_size, raise_unsupported
from cyxla.numpy.tracing.arrays.traced_array import TracedArray, as_traced, is_traced, value_of
from cyxla.numpy.tracing.results.promotion import result_type
from cyxla.numpy.tracing.trace import require_current
from cyxla.types import Shape
from cyxla.xla.hlo.builder import functions as xla

_np: Any = np  # its functions dispatch to this package

_INVERSE_NORMS = {None: "forward", "backward": "forward", "ortho": "ortho", "forward": "backward"}
_ODD_FACTORS = (1, 3, 5, 9, 15)  # of lengths that are transformed fast
_PASSES = 4  # about how many arrays of the bound a transform reads and writes
_FEW_POINTS = "Invalid number of FFT data points ({}) specified."


def _convolution_length(bound: int) -> int:
    """Return a length for the convolution of up to `bound` points: a multiple of a power of two."""
    least = max(2 * bound - 1, 1)
    return min(q << (-(-least // q) - 1).bit_length() for q in _ODD_FACTORS)


# -- one dimension


def _chirp(points: int, count: Any, dtype: Any) -> Any:
    """Return exp(-i pi k^2 / n) for the first numbers k."""
    k = np.arange(points, dtype=np.float64)
    turn: Any = 2.0 * count  # the squares count modulo 2 n alone; all numbers are integers below 2^53
    rest: Any = k * k - _np.floor(k * k / turn) * turn
    angles: Any = rest * (np.pi / count)
    parts = [value_of(part.astype(dtype)) for part in (_np.cos(angles), -_np.sin(angles))]
    return TracedArray(xla.complex_(*parts))


def _fitted(array: Any, axis: int, count: Any, bound: int) -> Any:
    """Return the padded elements of so many points along the axis: others are cut off, missing ones zeros."""
    data = array.padded if isinstance(array, SizedArray) else array
    own = array.counts.get(axis) if isinstance(array, SizedArray) else None
    data = _np.moveaxis(resized(as_traced(data), axis, bound), axis, -1)
    points = np.arange(bound)
    inside = _np.less(points, count)
    if own is not None:
        inside = _np.logical_and(inside, _np.less(points, own))
    return _np.where(inside, data, np.zeros((), data.dtype))


def _forward(points: Any, count: Any, precision: Any) -> Any:
    """Transform the last dimension, in which elements from a count on are zeros."""
    bound = points.shape[-1]
    length = _convolution_length(bound)
    table = _chirp(length // 2 + 1, count, precision)
    chirp, conjugate = table[:bound], _np.conjugate(table)
    filter_ = _np.fft.fft(_np.concatenate((conjugate, conjugate[1 : (length + 1) // 2][::-1])))
    spectrum = _np.fft.fft(points * chirp, length)
    moved = Shape.array(value_of(points).shape.dtype, (*points.shape, _PASSES))
    require_current().program.flattened.append(moved)  # time follows the bound
    return _np.fft.ifft(spectrum * filter_)[..., :bound] * chirp


def _hermitian(half: Any, count: Any, bound: int) -> Any:
    """Return all frequencies of real numbers for the non-negative ones."""
    k = np.arange(bound)
    is_given: Any = _np.less(k, count // 2 + 1)
    source = _np.where(is_given, k, count - k)
    taken = _np.take(half, source, axis=-1, mode="clip")
    return _np.where(is_given, taken, _np.conjugate(taken)) * _np.less(k, count)


def _points(array: Any, kind: str, count: Any, axis: int, bound: int) -> Any:
    """Return the points of a transform as the last dimension."""
    if kind == "IRFFT":
        return _hermitian(_fitted(array, axis, count // 2 + 1, bound // 2 + 1), count, bound)
    return _fitted(array, axis, count, bound)


def _scale(kind: str, norm: Any, count: Any) -> Any:
    """Return the factor of a transform; None for 1."""
    if norm == "ortho":
        return 1 / _np.sqrt(count)
    return 1 / count if (kind in ("IFFT", "IRFFT")) == (norm != "forward") else None


def _points_size(length: Any) -> Any:
    """Return a number of points as a size; runs in which it is not positive fail."""
    fail_unless(_np.not_equal(length, 0), 0, 0, _FEW_POINTS, ValueError)
    fail_unless(_np.greater_equal(length, 0), _np.abs(length), 0, _FEW_POINTS.replace("{}", "-{}"), ValueError)
    return bounded_size(_np.maximum(length, 0))


def _transform(array: Any, kind: str, count: Any, axis: int, norm: Any) -> Any:
    """Transform a run-time number of points along an axis."""
    bound, count = bound_of(count), _np.maximum(count, 1)
    real = result_type(np.zeros((), array.dtype).real.dtype, float)
    precision = np.dtype(np.float32) if real.itemsize < 4 else np.dtype(real)
    if kind == "RFFT" and array.dtype.kind == "c":
        raise TypeError("ufunc 'rfft_n_even' did not contain a loop with signature matching types of a complex array")
    points = _points(array, kind, count, axis, bound).astype(result_type(precision, complex))
    if kind in ("IFFT", "IRFFT"):
        result = _np.conjugate(_forward(_np.conjugate(points), count, precision))
    else:
        result = _forward(points, count, precision)
    result = _np.real(result) if kind == "IRFFT" else result[..., : bound // 2 + 1] if kind == "RFFT" else result
    factor = _scale(kind, norm, count)
    result = result if factor is None else result * factor.astype(precision)
    sizes = {d: n for d, n in array.counts.items() if d != axis} if isinstance(array, SizedArray) else {}
    own = count // 2 + 1 if kind == "RFFT" else count
    sizes[axis] = as_size(as_traced(own), result.shape[-1])
    result = result.astype(real) if kind == "IRFFT" else result
    return SizedArray(as_traced(_np.moveaxis(result, -1, axis)), sizes)


_FUNCTIONS: dict[str, Any] = {"FFT": np.fft.fft, "IFFT": np.fft.ifft, "RFFT": np.fft.rfft, "IRFFT": np.fft.irfft}


def _along(array: Any, kind: str, n: Any, axis: int, norm: Any) -> Any:
    """Transform along one axis, to a length that is known or not."""
    if norm not in _INVERSE_NORMS:
        raise ValueError(f'Invalid norm value {norm}; should be "backward","ortho" or "forward".')
    axis = normalize_axis_index(index(axis), array.ndim)
    length = n
    if n is None:
        length = array.shape[axis]
        length = 2 * (length - 1) if kind == "IRFFT" else length
    if is_traced(length):
        return _transform(array, kind, _points_size(length), axis, norm)
    counts = {}
    if isinstance(array, SizedArray):
        counts = {d: c for d, c in array.counts.items() if d != axis}
        used = index(length) // 2 + 1 if kind == "IRFFT" else index(length)
        array = _np.moveaxis(_fitted(array, axis, array.shape[axis], used), -1, axis)
    return wrapped(_FUNCTIONS[kind](array, length, axis, norm), counts)


def _operand(arguments: dict[str, Any]) -> Any:
    if arguments.get("out") is not None:
        raise_unsupported("be transformed with out=", "use the result")
    array = arguments["a"]
    return array if isinstance(array, SizedArray) else as_traced(array)


@sized(np.fft.fft, np.fft.ifft, np.fft.rfft, np.fft.irfft)
def transform_line(func: Callable[..., Any], arguments: dict[str, Any]) -> Any:
    """Transform one dimension."""
    axis, norm = arguments.get("axis", -1), arguments.get("norm")
    return _along(_operand(arguments), func.__name__.upper(), arguments.get("n"), axis, norm)


@sized(np.fft.hfft)
def hfft(func: Callable[..., Any], arguments: dict[str, Any]) -> Any:
    """Transform one dimension of which one half is given, the other being its conjugate."""
    norm = _INVERSE_NORMS.get(arguments.get("norm"), arguments.get("norm"))
    array = _np.conjugate(_operand(arguments))
    return _along(array, "IRFFT", arguments.get("n"), arguments.get("axis", -1), norm)


@sized(np.fft.ihfft)
def ihfft(func: Callable[..., Any], arguments: dict[str, Any]) -> Any:
    """Invert `hfft`."""
    norm = _INVERSE_NORMS.get(arguments.get("norm"), arguments.get("norm"))
    return _np.conjugate(_along(_operand(arguments), "RFFT", arguments.get("n"), arguments.get("axis", -1), norm))


# -- several dimensions


@sized(
    np.fft.fftn, np.fft.ifftn, np.fft.rfftn, np.fft.irfftn, np.fft.fft2, np.fft.ifft2, np.fft.rfft2, np.fft.irfft2
)  # fmt: skip
def transform_several(func: Callable[..., Any], arguments: dict[str, Any]) -> Any:
    """Transform several dimensions, one after the other."""
    array, lengths, norm = _operand(arguments), arguments.get("s"), arguments.get("norm")
    axes = arguments.get("axes", (-2, -1) if func.__name__.endswith("2") else None)
    if axes is None:
        axes = range(array.ndim) if lengths is None else range(-len(lengths), 0)
    steps = list(zip([None] * len(axes) if lengths is None else lengths, axes, strict=True))
    kind = func.__name__[:-1].upper()
    others = "IFFT" if kind in ("IFFT", "IRFFT") else "FFT"
    kinds = [others] * (len(steps) - 1) + [kind]
    order: Sequence[int] = range(len(steps)) if kind == "IRFFT" else range(len(steps))[::-1]
    for k in order:
        length, axis = steps[k]
        length = array.shape[axis] if isinstance(length, int) and length == -1 else length
        array = _along(array, kinds[k], length, axis, norm)
    return array


# -- order of frequencies


def _shift(direction: int, func: Callable[..., Any], arguments: dict[str, Any]) -> Any:
    array, axes = arguments["x"], arguments.get("axes")
    chosen = range(array.ndim) if axes is None else normalize_axis_tuple(axes, array.ndim)
    for d in chosen:
        array = _np.roll(array, direction * (array.shape[d] // 2), d)
    return array


sized(np.fft.fftshift)(partial(_shift, 1))
sized(np.fft.ifftshift)(partial(_shift, -1))
