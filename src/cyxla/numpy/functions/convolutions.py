"""Convolutions and correlations of vectors."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from cyxla.errors import ShapeError
from cyxla.numpy.control import cond, fori_loop
from cyxla.numpy.tracing.arrays.traced_array import TracedArray, as_strong, as_traced, value_of
from cyxla.numpy.tracing.registry import implements
from cyxla.numpy.tracing.results.conversion import convert
from cyxla.numpy.tracing.results.promotion import Dtype, result_type
from cyxla.numpy.tracing.trace import require_current
from cyxla.xla.hlo.builder import XlaOp
from cyxla.xla.hlo.builder import functions as xla
from cyxla.xla.lib import values

_MODES = {"valid": 0, "same": 1, "full": 2}
_MAX_UNROLLED_TAPS = 32  # greatest number of taps for which the loop over taps is unrolled
_TAPS_PER_ITERATION = 16  # taps per iteration where there are more


@implements(np.convolve)
def convolve(a: Any, v: Any, mode: Any = "full") -> Any:
    """Convolve two vectors."""
    first, second = np.atleast_1d(as_strong(a)), np.atleast_1d(as_strong(v))
    for name, series in (("a", first), ("v", second)):
        if len(series) == 0:
            raise ShapeError(f"{name} cannot be empty")
    if len(second) > len(first):
        first, second = second, first
    return _correlate(first, second[::-1], mode)


@implements(np.correlate)
def correlate(a: Any, v: Any, mode: Any = "valid") -> Any:
    """Correlate a vector with the conjugate of another one."""
    first, second = as_strong(a), as_strong(v)
    if not (first.ndim and second.ndim):
        raise ValueError("object of too small depth for desired array")
    second = np.conjugate(second) if second.dtype.kind == "c" else second
    for name, series in (("first", first), ("second", second)):
        if len(series) == 0:
            raise ShapeError(f"{name} array argument cannot be empty")
    if len(first) < len(second):
        return _correlate(second, first, mode)[::-1]
    return _correlate(first, second, mode)


def _correlate(long: Any, short: Any, mode: Any) -> TracedArray:
    if long.ndim != 1 or short.ndim != 1:
        raise ValueError("object too deep for desired array")
    dtype = result_type(long.dtype, short.dtype)
    accumulator = _accumulator_dtype(dtype)
    before, after = _padding(mode, len(short))
    series, taps = TracedArray(convert(value_of(long), accumulator)), TracedArray(convert(value_of(short), accumulator))
    if accumulator.kind in "biu" or not (before or after):
        result = _accumulate_taps(_pad(value_of(series), before, after), value_of(taps), None)
    else:  # taps outside of the vector add zero, even if they are not finite
        finite = np.all(np.isfinite(taps))
        result = value_of(
            cond(
                finite,
                partial(_correlate_padded, before, after),
                partial(_correlate_masked, before, after),
                series,
                taps,
            )
        )
    return TracedArray(convert(result, dtype))


def _pad(op: XlaOp, before: int, after: int) -> XlaOp:
    return xla.pad_in_dim(op, values.scalar(op, 0), 0, before, after)


def _correlate_padded(before: int, after: int, series: Any, taps: Any) -> TracedArray:
    return TracedArray(_accumulate_taps(_pad(value_of(series), before, after), value_of(taps), None))


def _correlate_masked(before: int, after: int, series: Any, taps: Any) -> TracedArray:
    ones: Any = np.ones(series.shape, bool)
    mask = _pad(value_of(as_traced(ones)), before, after)
    return TracedArray(_accumulate_taps(_pad(value_of(series), before, after), value_of(taps), mask))


def _padding(mode: Any, size: int) -> tuple[int, int]:
    number = _MODES.get(mode) if isinstance(mode, str) else mode
    if isinstance(mode, str) and number is None:
        raise ValueError("Use one of 'valid', 'same', or 'full' for convolve/correlate mode")
    if not isinstance(number, (int, np.integer)):
        raise TypeError("convolve/correlate mode not understood")
    if number not in (0, 1, 2):
        raise ValueError("integer convolve/correlate mode must be 0, 1, or 2")
    return ((0, 0), (size // 2, size - 1 - size // 2), (size - 1, size - 1))[number]


def _accumulator_dtype(dtype: Dtype) -> Dtype:
    """Return the dtype of the accumulator."""
    if dtype.kind == "b":
        return np.dtype(np.int32)
    return np.dtype(np.float32) if dtype.itemsize == 2 and dtype.kind in "fV" else dtype


def _accumulate_taps(x: XlaOp, taps: XlaOp, mask: XlaOp | None) -> XlaOp:
    """Accumulate products of all taps with as many successive elements, a few taps at a time; only inside if masked."""
    (count,), size = taps.shape.dims, x.shape.dims[0] - taps.shape.dims[0] + 1
    if count <= _MAX_UNROLLED_TAPS:
        return _accumulate_products(x, taps, mask, size)
    iterations = count // _TAPS_PER_ITERATION
    rest_start = iterations * _TAPS_PER_ITERATION
    rest = TracedArray(_accumulate_products(x, taps, mask, size, rest_start))
    return value_of(fori_loop(0, iterations, partial(_accumulate_block, x, taps, mask), rest))


def _accumulate_block(x: XlaOp, taps: XlaOp, mask: XlaOp | None, iteration: Any, total: TracedArray) -> TracedArray:
    trace = require_current()
    start = xla.multiply(value_of(iteration), values.scalar(value_of(iteration), _TAPS_PER_ITERATION))
    block, block_mask = (
        None if op is None else xla.dynamic_slice(trace.capture(op), [start], (total.size + _TAPS_PER_ITERATION - 1,))
        for op in (x, mask)
    )
    assert block is not None
    block_taps = xla.dynamic_slice(trace.capture(taps), [start], (_TAPS_PER_ITERATION,))
    return TracedArray(xla.add(value_of(total), _accumulate_products(block, block_taps, block_mask, total.size)))


def _accumulate_products(x: XlaOp, taps: XlaOp, mask: XlaOp | None, size: int, first: int = 0) -> XlaOp:
    """Accumulate products with the taps from `first` on; zeros if there are none."""
    zeros = xla.broadcast(values.scalar(x, 0), (size,))
    total = None
    for k in range(first, taps.shape.dims[0]):
        tap = xla.broadcast(xla.reshape(xla.slice_in_dim(taps, k, k + 1), ()), (size,))
        term = xla.multiply(xla.slice_in_dim(x, k, k + size), tap)
        if mask is not None:
            term = xla.select(xla.slice_in_dim(mask, k, k + size), term, zeros)
        total = term if total is None else xla.add(total, term)
    return zeros if total is None else total
