"""Convolutions and correlations of vectors."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from cyxla.errors import ShapeError
from cyxla.numpy.control import cond, fori_loop
from cyxla.numpy.functions.mathematics import strong
from cyxla.numpy.tracing.conversion import convert
from cyxla.numpy.tracing.promotion import Dtype, result_type
from cyxla.numpy.tracing.registry import implements
from cyxla.numpy.tracing.trace import require_current
from cyxla.numpy.tracing.traced_array import TracedArray, as_traced, value_of
from cyxla.xla.hlo.builder import XlaOp
from cyxla.xla.hlo.builder import functions as xla
from cyxla.xla.lib import values

_MODES = {"valid": 0, "same": 1, "full": 2}
_FEW = 32  # largest number of taps that are unrolled
_AT_ONCE = 16  # taps per iteration of a loop over more of them


@implements(np.convolve)
def convolve(a: Any, v: Any, mode: Any = "full") -> Any:
    """Convolve two vectors."""
    first, second = np.atleast_1d(strong(a)), np.atleast_1d(strong(v))
    for name, series in (("a", first), ("v", second)):
        if len(series) == 0:
            raise ShapeError(f"{name} cannot be empty")
    if len(second) > len(first):
        first, second = second, first
    return _correlated(first, second[::-1], mode)


@implements(np.correlate)
def correlate(a: Any, v: Any, mode: Any = "valid") -> Any:
    """Correlate a vector with the conjugate of another one."""
    first, second = strong(a), strong(v)
    if not (first.ndim and second.ndim):
        raise ValueError("object of too small depth for desired array")
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
    wide = _wide(dtype)
    before, after = _padding(mode, len(short))
    series, taps = TracedArray(convert(value_of(long), wide)), TracedArray(convert(value_of(short), wide))
    if wide.kind in "biu" or not (before or after):
        made = _sums(_around(value_of(series), before, after), value_of(taps), None)
    else:  # taps outside of the vector add zero, even if they are not finite
        finite = np.all(np.isfinite(taps))
        made = value_of(cond(finite, partial(_padded, before, after), partial(_within, before, after), series, taps))
    return TracedArray(convert(made, dtype))


def _around(op: XlaOp, before: int, after: int) -> XlaOp:
    return xla.pad_in_dim(op, values.scalar(op, 0), 0, before, after)


def _padded(before: int, after: int, series: Any, taps: Any) -> TracedArray:
    return TracedArray(_sums(_around(value_of(series), before, after), value_of(taps), None))


def _within(before: int, after: int, series: Any, taps: Any) -> TracedArray:
    there: Any = np.ones(series.shape, bool)
    inside = _around(value_of(as_traced(there)), before, after)
    return TracedArray(_sums(_around(value_of(series), before, after), value_of(taps), inside))


def _padding(mode: Any, size: int) -> tuple[int, int]:
    number = _MODES.get(mode) if isinstance(mode, str) else mode
    if isinstance(mode, str) and number is None:
        raise ValueError("Use one of 'valid', 'same', or 'full' for convolve/correlate mode")
    if not isinstance(number, (int, np.integer)):
        raise TypeError("convolve/correlate mode not understood")
    if number not in (0, 1, 2):
        raise ValueError("integer convolve/correlate mode must be 0, 1, or 2")
    return ((0, 0), (size // 2, size - 1 - size // 2), (size - 1, size - 1))[number]


def _wide(dtype: Dtype) -> Dtype:
    """Return the dtype of the accumulator."""
    if dtype.kind == "b":
        return np.dtype(np.int32)
    return np.dtype(np.float32) if dtype.itemsize == 2 and dtype.kind in "fV" else dtype


def _sums(x: XlaOp, taps: XlaOp, inside: XlaOp | None) -> XlaOp:
    """Accumulate products of all taps with as many successive elements, a few taps at a time; only inside if masked."""
    (count,), size = taps.shape.dims, x.shape.dims[0] - taps.shape.dims[0] + 1
    if count <= _FEW:
        return _products(x, taps, inside, size)
    whole = count // _AT_ONCE
    last = whole * _AT_ONCE
    rest = TracedArray(_products(x, taps, inside, size, last))
    return value_of(fori_loop(0, whole, partial(_more, x, taps, inside), rest))


def _more(x: XlaOp, taps: XlaOp, inside: XlaOp | None, number: Any, total: TracedArray) -> TracedArray:
    trace = require_current()
    start = xla.multiply(value_of(number), values.scalar(value_of(number), _AT_ONCE))
    near, there = (
        None if op is None else xla.dynamic_slice(trace.capture(op), [start], (total.size + _AT_ONCE - 1,))
        for op in (x, inside)
    )
    assert near is not None
    few = xla.dynamic_slice(trace.capture(taps), [start], (_AT_ONCE,))
    return TracedArray(xla.add(value_of(total), _products(near, few, there, total.size)))


def _products(x: XlaOp, taps: XlaOp, inside: XlaOp | None, size: int, first: int = 0) -> XlaOp:
    """Accumulate products with the taps from `first` on; zeros if there are none."""
    nothing = xla.broadcast(values.scalar(x, 0), (size,))
    total = None
    for k in range(first, taps.shape.dims[0]):
        tap = xla.broadcast(xla.reshape(xla.slice_in_dim(taps, k, k + 1), ()), (size,))
        term = xla.multiply(xla.slice_in_dim(x, k, k + size), tap)
        if inside is not None:
            term = xla.select(xla.slice_in_dim(inside, k, k + size), term, nothing)
        total = term if total is None else xla.add(total, term)
    return nothing if total is None else total
