"""Checks of numbers that are stored in arrays of integers: NumPy converts them as ``int`` does, with its errors."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from cyxla.numpy.indexing.ranges import range_of
from cyxla.numpy.tracing.arrays.traced_array import TracedArray, value_of
from cyxla.numpy.tracing.results.conversion import convert
from cyxla.numpy.tracing.results.promotion import Dtype
from cyxla.numpy.tracing.trace import require_current
from cyxla.numpy.tracing.user_program.classes import is_number
from cyxla.numpy.ufuncs.apply import convert_checked
from cyxla.types import ElementType
from cyxla.xla.hlo.builder import XlaOp
from cyxla.xla.hlo.builder import functions as xla

_INT64: Final = np.dtype(np.int64)
_EXACT: Final = 1 << 53  # a conversion to float does not round integers up to here
_TOO_LARGE: Final = "Python int too large to convert to C long"
_NAN, _INFINITE, _LARGE = range(3)


def require_storable(value: Any, dtype: Dtype, *, is_item: bool = False) -> None:
    """Raise NumPy's error for a number that an array of integers cannot store, also at run time.

    Numbers of Python do not wrap, nor do those in lists. Arrays wrap, and so do scalars of NumPy, except in a basic
    assignment to an array of signed integers, such as ``a[0] = x`` or ``a[:] = x``.

    Parameters
    ----------
    value : object
        Number, array, or nested lists of them.
    dtype : numpy.dtype
        Dtype of the array.
    is_item : bool
        Whether scalars of NumPy are checked as well.

    Raises
    ------
    OverflowError, ValueError
        A number known while tracing is too large, or NaN.
    TypeError
        A complex number of Python would be stored in an array of real numbers.
    """
    if dtype.kind not in "iuf":
        return
    if type(value) in (list, tuple):
        for part in value:
            require_storable(part, dtype, is_item=True)
    elif type(value) in (int, float, complex) or (is_item and isinstance(value, np.generic)):
        if dtype.kind in "iu" or type(value) is complex:
            _store(value, dtype)
    elif isinstance(value, TracedArray) and is_number(value):
        if value.weak is complex:
            _store(1j, dtype)
        elif dtype.kind == "i" or (value.weak is not None and dtype.kind == "u"):
            _check_traced(value, dtype, is_item=is_item)


def _store(value: Any, dtype: Dtype) -> None:
    np.empty((), dtype)[()] = value  # raises NumPy's errors


def _check_traced(value: TracedArray, dtype: Dtype, *, is_item: bool) -> None:
    if value.weak is int:
        convert_checked(value, dtype)
    elif (value.weak is not None or is_item) and require_current().program.bounds == "raise":
        op = value_of(value)
        op = xla.real(op) if value.dtype.kind == "c" else op
        if not _always_fits(op, dtype):
            (_fail_unless_integer if value.dtype.kind in "fc" else _fail_if_outside)(op, dtype)


def _always_fits(op: XlaOp, dtype: Dtype) -> bool:
    """Return True if an integer, also one converted to a float, is known to be in the range of a dtype."""
    instruction = op.instruction
    assert instruction is not None
    is_converted = instruction.opcode == "convert" and op.shape.dtype is ElementType.F64
    low, high = range_of(XlaOp(op.builder, instruction.operands[0]) if is_converted else op)
    info = np.iinfo(dtype)
    return max(info.min, -_EXACT) <= low and high <= min(info.max, _EXACT)


def _fail_unless_integer(op: XlaOp, dtype: Dtype) -> None:
    """Make runs raise an error in which a float is NaN, infinite, or out of range of a dtype."""
    trace, info = require_current(), np.iinfo(dtype)
    wide = convert(op, np.dtype(np.float64))
    magnitude, infinity = xla.abs_(wide), trace.constant(np.inf)
    is_unsigned = dtype.kind == "u" and dtype.itemsize >= 4  # NumPy makes a long of a number for shorter ones
    low, high = trace.constant(-(2.0**63)), trace.constant(2.0**64 if is_unsigned else 2.0**63)
    is_outside = xla.not_(xla.and_(xla.ge(wide, low), xla.lt(wide, high)))
    kinds = [trace.constant(k, _INT64) for k in (_NAN, _INFINITE, _LARGE)]
    kind = xla.select(xla.eq(magnitude, infinity), kinds[_INFINITE], kinds[_LARGE])
    trace.fail_if(is_outside, xla.select(xla.ne(wide, wide), kinds[_NAN], kind), _not_an_integer)
    if dtype != _INT64:
        least, greatest = trace.constant(info.min - 1.0), trace.constant(info.max + 1.0)
        is_outside = xla.or_(xla.le(wide, least), xla.ge(wide, greatest))
        trace.fail_if(is_outside, convert(wide, _INT64), lambda n: _out_of_bounds(n, dtype))


def _fail_if_outside(op: XlaOp, dtype: Dtype) -> None:
    """Make runs raise an error in which an integer is out of range of a signed dtype."""
    trace, info = require_current(), np.iinfo(dtype)
    is_unsigned = op.shape.dtype is ElementType.U64
    number = xla.convert(op, ElementType.S64)
    greatest = trace.constant(info.max, np.dtype(np.uint64 if is_unsigned else np.int64))
    is_outside = xla.gt(op if is_unsigned else number, greatest)
    if not is_unsigned:
        is_outside = xla.or_(is_outside, xla.lt(number, trace.constant(info.min, _INT64)))
    trace.fail_if(is_outside, number, lambda n: _out_of_bounds(n % 2**64 if is_unsigned else n, dtype))


def _not_an_integer(kind: int) -> Exception:
    if kind == _NAN:
        return ValueError("cannot convert float NaN to integer")
    return OverflowError("cannot convert float infinity to integer" if kind == _INFINITE else _TOO_LARGE)


def _out_of_bounds(number: int, dtype: Dtype) -> OverflowError:
    is_large = number >= 2**63 and dtype.kind == "i"
    return OverflowError(_TOO_LARGE if is_large else f"Python integer {number} out of bounds for {dtype}")


__all__ = ["require_storable"]
