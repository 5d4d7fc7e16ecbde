"""Arithmetic of Python numbers that are traced: runs raise where Python does, or where an int64 would wrap around."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np

from cyxla.numpy.indexing.ranges import range_of
from cyxla.numpy.tracing.trace import require_current, user_line
from cyxla.numpy.tracing.traced_array import as_traced, value_of
from cyxla.types import ElementType
from cyxla.xla.hlo.builder import XlaOp
from cyxla.xla.hlo.builder import functions as xla

_LIMIT: Final = 2**63
_EXACT: Final = 2.0**62  # a wrapped result is off by a multiple of 2**64, a float of it by far less than this
_OVERFLOW_HINT: Final = "mark the argument static, since Python computes with any number of digits"
_DIVISIONS: Final = {
    np.floor_divide: ("integer division or modulo by zero", "float floor division by zero"),
    np.remainder: ("integer modulo by zero", "float modulo"),
    np.divmod: ("integer division or modulo by zero", "float divmod()"),
    np.true_divide: ("division by zero", "float division by zero"),
}
Interval = tuple[int, int]


def _corners(combine: Callable[[int, int], int]) -> Callable[[Interval, Interval], Interval]:
    def bounds(one: Interval, other: Interval) -> Interval:
        values = [combine(a, b) for a in one for b in other]
        return min(values), max(values)

    return bounds


def _power_bounds(base: Interval, exponent: Interval) -> Interval:
    if not 0 <= exponent[1] < 64:
        return -_LIMIT - 1, _LIMIT
    largest = max(abs(base[0]), abs(base[1]), 1) ** exponent[1]
    return -largest, largest


def _shift_bounds(value: Interval, count: Interval) -> Interval:
    if not 0 <= count[1] < 64:
        return -_LIMIT - 1, _LIMIT
    return min(value[0], value[0] << count[1]), max(value[1], value[1] << count[1])


#: Bounds of a result from those of the operands, and the result as a float.
_INTEGER_RESULTS: Final[dict[np.ufunc, tuple[Callable[..., Interval], Callable[..., XlaOp]]]] = {
    np.add: (_corners(lambda a, b: a + b), xla.add),
    np.subtract: (_corners(lambda a, b: a - b), xla.subtract),
    np.multiply: (_corners(lambda a, b: a * b), xla.multiply),
    np.power: (_power_bounds, xla.power),
    np.left_shift: (_shift_bounds, lambda a, b: xla.multiply(a, xla.power(_like(a, 2.0), b))),
    np.negative: (lambda a: (-a[1], -a[0]), xla.negate),
    np.absolute: (lambda a: (0, max(-a[0], a[1])), xla.abs_),
    np.square: (lambda a: (0, max(a[0] ** 2, a[1] ** 2)), lambda a: xla.multiply(a, a)),
}


def check(ufunc: np.ufunc, operands: Sequence[Any], result: Any) -> None:
    """Make runs raise in which an operation of Python numbers divides by zero or exceeds an int64.

    Parameters
    ----------
    ufunc : numpy.ufunc
        Operation.
    operands : sequence
        Python numbers, some of them traced.
    result : TracedArray or tuple of them
        Result of the operation.
    """
    if ufunc in _DIVISIONS:
        _check_divisor(ufunc, operands)
    elif ufunc in _INTEGER_RESULTS and result.dtype == np.int64:
        _check_overflow(ufunc, operands, value_of(result))


def _check_divisor(ufunc: np.ufunc, operands: Sequence[Any]) -> None:
    divisor = value_of(as_traced(operands[1]))
    if _is_integer(divisor):
        low, high = range_of(divisor)
        if low > 0 or high < 0:
            return
    elif isinstance(operands[1], (int, float, complex)) and operands[1] != 0:
        return
    integers = all(_is_integer(value_of(as_traced(o))) for o in operands)
    message, where = _DIVISIONS[ufunc][not integers], user_line()
    zero = xla.eq(divisor, _like(divisor, 0))
    _fail_if(zero, lambda number: ZeroDivisionError(f"{message}\n  at:   {where}"))


def _check_overflow(ufunc: np.ufunc, operands: Sequence[Any], result: XlaOp) -> None:
    values = [value_of(as_traced(o)) for o in operands]
    bounds, as_float = _INTEGER_RESULTS[ufunc]
    low, high = bounds(*map(range_of, values))
    if low >= -_LIMIT and high < _LIMIT:
        return
    floats = as_float(*[xla.convert(v, ElementType.F64) for v in values])
    error = xla.abs_(xla.subtract(floats, xla.convert(result, ElementType.F64)))
    where = user_line()

    text = f"a Python integer exceeds 64 bits\n  at:   {where}\n  mend: {_OVERFLOW_HINT}"
    _fail_if(xla.gt(error, _like(error, _EXACT)), lambda number: OverflowError(text))


def _fail_if(failed: XlaOp, make_error: Callable[[int], Exception]) -> None:
    trace = require_current()
    trace.fail_if(failed, trace.constant(0, np.dtype(np.int64)), make_error)


def _is_integer(op: XlaOp) -> bool:
    dtype = op.shape.dtype.numpy_dtype
    return dtype is not None and dtype.kind in "biu"


def _like(op: XlaOp, value: float) -> XlaOp:
    dtype = op.shape.dtype.numpy_dtype
    assert dtype is not None
    return require_current().constant(value, dtype)
