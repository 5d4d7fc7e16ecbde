"""Convolutions and correlations of series."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from cyxla.errors import ShapeError
from cyxla.numpy.control import fori_loop
from cyxla.numpy.conversion import convert
from cyxla.numpy.functions.mathematics import strong
from cyxla.numpy.promotion import Dtype, result_type
from cyxla.numpy.registry import implements
from cyxla.numpy.tracing.trace import require_current
from cyxla.numpy.tracing.traced_array import TracedArray, value_of
from cyxla.xla.hlo.builder import XlaOp
from cyxla.xla.hlo.builder import functions as xla
from cyxla.xla.lib import values

_MODES = {"valid": 0, "same": 1, "full": 2}
_FEW = 32  # taps that are written out as products
_AT_ONCE = 16  # of more taps, those that one turn of a loop takes


@implements(np.convolve)
def convolve(a: Any, v: Any, mode: Any = "full") -> Any:
    """Sums of products of a series and another one turned round, at each distance."""
    first, second = np.atleast_1d(strong(a)), np.atleast_1d(strong(v))
    for name, series in (("a", first), ("v", second)):
        if len(series) == 0:
            raise ShapeError(f"{name} cannot be empty")
    if len(second) > len(first):
        first, second = second, first
    return _correlated(first, second[::-1], mode)


@implements(np.correlate)
def correlate(a: Any, v: Any, mode: Any = "valid") -> Any:
    """Sums of products of a series and the conjugate of another one, at each distance."""
    first, second = np.atleast_1d(strong(a)), np.atleast_1d(strong(v))
    second = np.conjugate(second) if second.dtype.kind == "c" else second
    for name, series in (("first", first), ("second", second)):
        if len(series) == 0:
            raise ShapeError(f"{name} array argument cannot be empty")
    if len(first) < len(second):
        return _correlated(second, first, mode)[::-1]
    return _correlated(first, second, mode)


def _correlated(long: Any, short: Any, mode: Any) -> TracedArray:
    if long.ndim != 1 or short.ndim != 1:
        raise ValueError("object too deep for desired array")
    dtype = result_type(long.dtype, short.dtype)
    size = len(short)
    before, after = _padding(mode, size)
    wide = _wide(dtype)
    x = xla.pad_in_dim(convert(value_of(long), wide), 0, 0, before, after)
    made = _sums(x, convert(value_of(short), wide))
    return TracedArray(convert(made, dtype))


def _padding(mode: Any, size: int) -> tuple[int, int]:
    number = _MODES.get(mode, mode) if isinstance(mode, str) else mode
    if number not in (0, 1, 2):
        raise ValueError(f"mode must be one of 'valid', 'same', or 'full' (got {mode!r})")
    return ((0, 0), (size // 2, size - 1 - size // 2), (size - 1, size - 1))[number]


def _wide(dtype: Dtype) -> Dtype:
    """The type that sums are made in."""
    if dtype.kind == "b":
        return np.dtype(np.int32)
    return np.dtype(np.float32) if dtype.itemsize == 2 and dtype.kind in "fV" else dtype


def _sums(x: XlaOp, taps: XlaOp) -> XlaOp:
    """Sums of products of all taps with as many elements in a row, a few taps at a time."""
    (count,), size = taps.shape.dims, x.shape.dims[0] - taps.shape.dims[0] + 1
    if count <= _FEW:
        return _products(x, taps, size)
    whole = count // _AT_ONCE
    last = whole * _AT_ONCE
    total = fori_loop(0, whole, partial(_more, x, taps), TracedArray(_products(x, taps, size, last)))
    return value_of(total)


def _more(x: XlaOp, taps: XlaOp, number: Any, total: TracedArray) -> TracedArray:
    trace = require_current()
    start = xla.multiply(value_of(number), values.scalar(value_of(number), _AT_ONCE))
    near = xla.dynamic_slice(trace.inner(x), [start], (total.size + _AT_ONCE - 1,))
    few = xla.dynamic_slice(trace.inner(taps), [start], (_AT_ONCE,))
    return TracedArray(xla.add(value_of(total), _products(near, few, total.size)))


def _products(x: XlaOp, taps: XlaOp, size: int, first: int = 0) -> XlaOp:
    """Sums of products with the taps from the first one wanted on; zeros where there are none."""
    total = None
    for k in range(first, taps.shape.dims[0]):
        tap = xla.broadcast(xla.reshape(xla.slice_in_dim(taps, k, k + 1), ()), (size,))
        term = xla.multiply(xla.slice_in_dim(x, k, k + size), tap)
        total = term if total is None else xla.add(total, term)
    return xla.broadcast(values.scalar(x, 0), (size,)) if total is None else total
