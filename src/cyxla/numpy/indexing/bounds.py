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
    inside = -size <= low and high < size
    if mode == "raise" and not inside and op.shape.size:
        _fail_if_outside(trace, op, size, axis)
    wide = _widened(trace, op, size)
    if mode == "wrap":
        return wide if low >= 0 and high < size else _floor_remainder(trace, wide, size)
    if low < 0 and mode != "clip":
        negative = xla.lt(wide, _filled(trace, 0, wide))
        wide = xla.select(negative, xla.add(wide, _filled(trace, size, wide)), wide)
    if (mode == "clamp" and not inside) or (mode == "clip" and not (low >= 0 and high < size)):
        scalars = [trace.constant(n, wide.shape.dtype.numpy_dtype) for n in (0, max(size - 1, 0))]
        wide = xla.clamp(scalars[0], wide, scalars[1])
    return wide


def _filled(trace: Trace, value: int, like: XlaOp) -> XlaOp:
    scalar = trace.constant(value, like.shape.dtype.numpy_dtype)
    return scalar if like.shape.rank == 0 else xla.broadcast(scalar, like.shape.dims)


def _floor_remainder(trace: Trace, op: XlaOp, size: int) -> XlaOp:
    """Compute Python's remainder."""
    divisor = _filled(trace, size, op)
    rest = xla.remainder(op, divisor)
    return xla.select(xla.lt(rest, _filled(trace, 0, op)), xla.add(rest, divisor), rest)


def _widened(trace: Trace, op: XlaOp, size: int) -> XlaOp:
    """Convert indices to a signed dtype that holds the size."""
    have = op.shape.dtype
    if have is ElementType.U64:  # greater values are out of range in any case
        op = xla.minimum(op, _filled(trace, 2**63 - 1, op))
    narrow = size < 2**30 and have.bits <= (32 if have.kind is Kind.SIGNED else 16)
    wanted = ElementType.S32 if narrow else ElementType.S64
    return op if have is wanted else xla.convert(op, wanted)


def _outside_mask(trace: Trace, op: XlaOp, size: int) -> XlaOp:
    """Return a mask of indices out of range; small dtypes are widened first."""
    high = range_of(op)[1] >= size
    low = op.shape.dtype.kind is Kind.SIGNED and range_of(op)[0] < -size
    wide = op if op.shape.dtype.bits >= 32 else xla.convert(op, ElementType.S32)
    over = xla.ge(wide, _filled(trace, size, wide)) if high else None
    under = xla.lt(wide, _filled(trace, -size, wide)) if low else None
    found = [part for part in (under, over) if part is not None]
    return found[0] if len(found) == 1 else xla.or_(found[0], found[1])


def _fail_if_outside(trace: Trace, op: XlaOp, size: int, axis: int) -> None:
    where = _trace.user_line()
    unsigned = op.shape.dtype.kind is Kind.UNSIGNED

    def make(index: int) -> OutOfRangeError:
        index = index % 2**64 if unsigned else index
        return OutOfRangeError(f"index {index} is out of bounds for axis {axis} with size {size}", where=where)

    fail_where(trace, _outside_mask(trace, op, size), op, make)


def fail_where(trace: Trace, bad: XlaOp, numbers: XlaOp, make: Callable[[int], Exception]) -> None:
    """Make runs fail in which an element of a mask is true, with the number at its place.

    Parameters
    ----------
    trace : Trace
        Current trace.
    bad, numbers : XlaOp
        Mask and integers of the same shape.
    make : callable
        Function from the number at the first true element to the exception.
    """
    count = bad.shape.size
    if bad.shape.rank == 0 or count == 1:
        trace.fail_if(_scalar(bad), _as_s64(_scalar(numbers)), make)
        return
    dtype = _S32 if count < 2**31 - 1 else _S64
    flat = xla.reshape(bad, (count,))
    element = ElementType.S32 if dtype is _S32 else ElementType.S64
    positions = xla.iota(trace.builder, flat.shape.with_dtype(element), 0)
    none = trace.constant(count, dtype)
    found = xla.select(flat, positions, xla.broadcast(none, (count,)))
    first = xla.reduce(found, none, scalar_computation("minimum", element), (0,))
    number = xla.dynamic_slice(xla.reshape(numbers, (count,)), [first], (1,))
    trace.fail_if(xla.lt(first, none), _as_s64(_scalar(number)), make)


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
        raise OutOfRangeError(
            f"a slice of {span} elements does not fit on axis {axis} with size {size}", where=_trace.user_line()
        )
    first = _widened(trace, start, size)
    stop = xla.add(first, _filled(trace, length, first))
    low = first if step > 0 else xla.subtract(first, _filled(trace, span - 1, first))
    zero = _filled(trace, 0, first)
    end = stop if step > 0 else first  # negative if the range counts from the end
    if range_of(end)[0] < 0:
        low = xla.select(xla.lt(end, zero), xla.add(low, _filled(trace, size, low)), low)
    bad = [] if mode != "raise" else _slice_outside(low, size - span, trace)
    if mode == "raise" and step < 0 and range_of(stop)[0] < 0:  # NumPy takes such an end from the other side
        bad.append(xla.and_(xla.lt(stop, zero), xla.ge(first, zero)))
    if bad:
        where = _trace.user_line()

        def make(index: int) -> OutOfRangeError:
            text = f"{index}:{index + length}" + (f":{step}" if step != 1 else "")
            return OutOfRangeError(
                f"slice {text} of traced bounds is not within axis {axis} with size {size}", where=where
            )

        trace.fail_if(reduce(xla.or_, bad), _as_s64(first), make)
    return low


def _slice_outside(low: XlaOp, last: int, trace: Trace) -> list[XlaOp]:
    least, most = range_of(low)
    under = [xla.lt(low, _filled(trace, 0, low))] if least < 0 else []
    return under + ([xla.gt(low, _filled(trace, last, low))] if most > last else [])
