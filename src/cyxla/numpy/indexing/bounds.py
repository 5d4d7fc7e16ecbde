"""Bounds of traced indices: negative ones count from the end, those out of range are errors of the run."""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce

import numpy as np

from cyxla.errors import OutOfRangeError
from cyxla.numpy.indexing.ranges import range_of
from cyxla.numpy.tracing import trace as _trace
from cyxla.numpy.tracing.trace import Trace, require_current
from cyxla.types import ElementType, Kind
from cyxla.xla.hlo.builder import XlaOp, scalar_computation
from cyxla.xla.hlo.builder import functions as xla

_S64 = np.dtype(np.int64)
_S32 = np.dtype(np.int32)


class CutSliceError(OutOfRangeError):
    """A slice that was compiled with a known length reaches beyond an end of its axis, where NumPy's is shorter."""


def check_indices(op: XlaOp, size: int, axis: int, mode: str | None = None) -> XlaOp:
    """Normalise traced indices of an axis and check or clamp them by the mode.

    Parameters
    ----------
    op : XlaOp
        Integers of any dtype and shape.
    size, axis : int
        Size and number of the axis.
    mode : str, optional
        "raise", "clamp", "clip" (which clamps negative indices to 0), "wrap" or "unchecked"; by default that of the
        program.

    Raises
    ------
    IndexError
        The axis is empty.
    """
    trace = require_current()
    mode = mode or trace.program.bounds
    if size == 0 and op.shape.size:
        raise OutOfRangeError(f"index 0 is out of bounds for axis {axis} with size 0", where=_trace.user_line())
    low, high = range_of(op)
    in_bounds = -size <= low and high < size
    if mode == "raise" and not in_bounds and op.shape.size:
        _fail_if_out_of_bounds(trace, op, size, axis)
    indices = _widen(trace, op, size)
    if mode == "wrap":
        return indices if low >= 0 and high < size else _floor_remainder(trace, indices, size)
    if low < 0 and mode != "clip":
        negative = xla.lt(indices, _full_like(trace, 0, indices))
        indices = xla.select(negative, xla.add(indices, _full_like(trace, size, indices)), indices)
    if (mode == "clamp" and not in_bounds) or (mode == "clip" and not (low >= 0 and high < size)):
        scalars = [trace.constant(n, indices.shape.dtype.numpy_dtype) for n in (0, max(size - 1, 0))]
        indices = xla.clamp(scalars[0], indices, scalars[1])
    return indices


def _full_like(trace: Trace, value: int, like: XlaOp) -> XlaOp:
    scalar = trace.constant(value, like.shape.dtype.numpy_dtype)
    return scalar if like.shape.rank == 0 else xla.broadcast(scalar, like.shape.dims)


def _floor_remainder(trace: Trace, op: XlaOp, size: int) -> XlaOp:
    """Compute Python's remainder."""
    divisor = _full_like(trace, size, op)
    remainder = xla.remainder(op, divisor)
    return xla.select(xla.lt(remainder, _full_like(trace, 0, op)), xla.add(remainder, divisor), remainder)


def _widen(trace: Trace, op: XlaOp, size: int) -> XlaOp:
    """Convert indices to a signed dtype that holds the size."""
    dtype = op.shape.dtype
    if dtype is ElementType.U64:  # greater values are always out of range
        op = xla.minimum(op, _full_like(trace, 2**63 - 1, op))
    narrow = size < 2**30 and dtype.bits <= (32 if dtype.kind is Kind.SIGNED else 16)
    target = ElementType.S32 if narrow else ElementType.S64
    return op if dtype is target else xla.convert(op, target)


def _out_of_bounds_mask(trace: Trace, op: XlaOp, size: int) -> XlaOp:
    """Return a mask of indices out of range; small dtypes are widened first."""
    high = range_of(op)[1] >= size
    low = op.shape.dtype.kind is Kind.SIGNED and range_of(op)[0] < -size
    indices = op if op.shape.dtype.bits >= 32 else xla.convert(op, ElementType.S32)
    too_high = xla.ge(indices, _full_like(trace, size, indices)) if high else None
    too_low = xla.lt(indices, _full_like(trace, -size, indices)) if low else None
    masks = [mask for mask in (too_low, too_high) if mask is not None]
    return masks[0] if len(masks) == 1 else xla.or_(masks[0], masks[1])


def _fail_if_out_of_bounds(trace: Trace, op: XlaOp, size: int, axis: int) -> None:
    where = _trace.user_line()
    unsigned = op.shape.dtype.kind is Kind.UNSIGNED

    def make(index: int) -> OutOfRangeError:
        index = index % 2**64 if unsigned else index
        return OutOfRangeError(f"index {index} is out of bounds for axis {axis} with size {size}", where=where)

    fail_where(trace, _out_of_bounds_mask(trace, op, size), op, make)


def fail_where(trace: Trace, mask: XlaOp, values_: XlaOp, make: Callable[[int], Exception]) -> None:
    """Make runs fail in which an element of a mask is true, with the number at its place.

    Numbers at other places are never read, such as those in the padding, where the mask of a run-time size is false.

    Parameters
    ----------
    trace : Trace
        Current trace.
    mask, values_ : XlaOp
        Mask and integers of the same shape.
    make : callable
        Function from the number at the first true element to the exception.
    """
    count = mask.shape.size
    if mask.shape.rank == 0 or count == 1:
        trace.fail_if(_scalar(mask), _as_s64(_scalar(values_)), make)
        return
    dtype = _S32 if count < 2**31 - 1 else _S64
    flat = xla.reshape(mask, (count,))
    element = ElementType.S32 if dtype is _S32 else ElementType.S64
    positions = xla.iota(trace.builder, flat.shape.with_dtype(element), 0)
    end = trace.constant(count, dtype)
    failing = xla.select(flat, positions, xla.broadcast(end, (count,)))
    position = xla.reduce(failing, end, scalar_computation("minimum", element), (0,))
    numbers = xla.reshape(values_, (count,))
    numbers = xla.select(flat, numbers, _full_like(trace, 0, numbers))
    value = xla.dynamic_slice(numbers, [position], (1,))
    trace.fail_if(xla.lt(position, end), _as_s64(_scalar(value)), make)


def _scalar(op: XlaOp) -> XlaOp:
    return op if op.shape.rank == 0 else xla.reshape(op, ())


def _as_s64(op: XlaOp) -> XlaOp:
    return op if op.shape.dtype is ElementType.S64 else xla.convert(op, ElementType.S64)


def check_slice(start: XlaOp, length: int, step: int, size: int, axis: int, mode: str | None = None) -> XlaOp:
    """Return the lowest index of a slice of known length with a traced start.

    Parameters
    ----------
    start : XlaOp
        First index, a scalar; it counts from the end if it and the exclusive end are negative.
    length : int
        Difference of the exclusive end and the start.
    step, size, axis : int
        Step of the slice; size and number of the axis.
    mode : str, optional
        Mode, as for `check_indices`.
    """
    trace = require_current()
    mode = mode or trace.program.bounds
    span = (len(range(0, length, step)) - 1) * abs(step) + 1
    if span > size:
        raise CutSliceError(
            f"a slice of {span} elements is out of bounds for axis {axis} with size {size}", where=_trace.user_line()
        )
    first = _widen(trace, start, size)
    stop = xla.add(first, _full_like(trace, length, first))
    low = first if step > 0 else xla.subtract(first, _full_like(trace, span - 1, first))
    zero = _full_like(trace, 0, first)
    end = stop if step > 0 else first  # negative if the range counts from the end
    if range_of(end)[0] < 0:
        low = xla.select(xla.lt(end, zero), xla.add(low, _full_like(trace, size, low)), low)
    failures = [] if mode != "raise" else _slice_out_of_bounds(low, size - span, trace)
    if mode == "raise" and step < 0 and range_of(stop)[0] < 0:  # NumPy would count such an end from the end of the axis
        failures.append(xla.and_(xla.lt(stop, zero), xla.ge(first, zero)))
    if failures:
        where = _trace.user_line()

        def make(index: int) -> CutSliceError:
            slice_text = f"{index}:{index + length}" + (f":{step}" if step != 1 else "")
            return CutSliceError(
                f"slice {slice_text} of traced bounds is out of bounds for axis {axis} with size {size}", where=where
            )

        trace.fail_if(reduce(xla.or_, failures), _as_s64(first), make)
    return low


def lies_within(start: XlaOp, length: int, step: int, size: int) -> bool:
    """Return True if a slice of known length lies within its axis for all values of its start (see `check_slice`)."""
    low, high = range_of(start)
    if not range(0, length, step):
        return length == 0
    return (low >= 0 and high + length <= size) if step > 0 else (low + length >= -1 and high < size)


def require_empty(start: XlaOp, length: int, step: int) -> None:
    """Check that a slice whose bounds are equal, or in the wrong order for its step, has no elements.

    Raises
    ------
    CutSliceError
        One of its bounds alone may be negative, and count from the end: ``x[i:i - 1]`` has elements if ``i`` is 0.
    """
    low, high = range_of(start)
    ends = sorted((0, length))
    if length * step < 0 and low + ends[0] < 0 <= high + ends[1]:
        raise CutSliceError("a bound of a slice may count from the end of its axis", where=_trace.user_line())


def _slice_out_of_bounds(low: XlaOp, last: int, trace: Trace) -> list[XlaOp]:
    low_bound, high_bound = range_of(low)
    too_low = [xla.lt(low, _full_like(trace, 0, low))] if low_bound < 0 else []
    return too_low + ([xla.gt(low, _full_like(trace, last, low))] if high_bound > last else [])
