"""Arithmetic of Python numbers that are traced: runs raise where Python does, or where an int64 would wrap around.

Where the class of Python's result depends on values, or an int64 cannot hold it, a run ends, and the plain function is
called instead.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from types import FrameType
from typing import Any, Final, cast

import numpy as np

from cyxla.numpy.indexing.ranges import range_of
from cyxla.numpy.tracing.arrays.traced_array import TracedArray, as_traced, traced, value_of
from cyxla.numpy.tracing.results.conversion import convert
from cyxla.numpy.tracing.results.promotion import WEAK_DTYPES
from cyxla.numpy.tracing.results.zero_dim import Rank0
from cyxla.numpy.tracing.trace import PACKAGE, plain_run, require_current, user_line
from cyxla.numpy.tracing.user_program.api_boundary import api_boundary
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


_OF_BOOLS: Final = (np.bitwise_and, np.bitwise_or, np.bitwise_xor)  # whose results are bools
_SQUARE: Final = np.square
_OPERATORS: Final = (str(Path(__file__).parent), api_boundary.__code__.co_filename)
_SHIFTS: Final = (np.left_shift, np.right_shift)


def kind_of(value: Any) -> type | None:
    """Return the class of a Python number, which may be traced; None for any other value."""
    if not isinstance(value, TracedArray):
        return type(value) if type(value) in WEAK_DTYPES else None
    is_bool = value.rank0 is Rank0.PYTHON and value.ndim == 0 and value.dtype.kind == "b"
    return bool if is_bool else value.weak


def without_subclass(value: Any) -> Any:
    """Return a Python number for one of a class derived from it, such as `enum.IntEnum`, whose operators are the same.

    Raises
    ------
    PlainRunError
        The class has operators of its own.
    """
    if not isinstance(value, (int, float, complex)) or isinstance(value, np.generic) or kind_of(value) is not None:
        return value
    kind: Any = next(k for k in (int, float, complex) if isinstance(value, k))
    if any(getattr(type(value), name) is not getattr(kind, name) for name in _OWN_OPERATORS if name in vars(kind)):
        raise plain_run(
            f"a {type(value).__name__} has operators of its own, and is used with a traced number",
            f"convert it: {kind.__name__}(value)",
        )
    return kind(value)


_OWN_OPERATORS: Final = (
    "__add__", "__and__", "__eq__", "__floordiv__", "__lt__", "__mod__", "__mul__", "__or__", "__pow__", "__radd__",
    "__rmul__", "__rsub__", "__sub__", "__truediv__", "__xor__",
)  # fmt: skip


def without_bools(ufunc: np.ufunc, operands: Sequence[Any], kinds: Sequence[type | None]) -> Sequence[Any]:
    """Return the operands of an operation of Python numbers, with integers for bools, which Python computes with.

    Code of this package means NumPy's bools.
    """
    if bool not in kinds or (ufunc in _OF_BOOLS and set(kinds) == {bool}) or _is_used_by_package():
        return operands
    return [_as_integer(o) if k is bool else o for o, k in zip(operands, kinds, strict=True)]


def without_bool(value: TracedArray) -> TracedArray:
    """Return a value, or the integer that a bool of Python is in a property or method of numbers."""
    return cast(TracedArray, _as_integer(value)) if kind_of(value) is bool else value


def _is_used_by_package() -> bool:
    """Return True if an operator is applied by code of this package."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and frame.f_code.co_filename.startswith(_OPERATORS):
        frame = frame.f_back
    return frame is not None and frame.f_code.co_filename.startswith(PACKAGE)


def _as_integer(value: Any) -> Any:
    return traced(convert(value_of(value), np.dtype(np.int64)), int) if isinstance(value, TracedArray) else int(value)


_ORDERS = {np.less: "<", np.less_equal: "<=", np.greater: ">", np.greater_equal: ">="}


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
        return
    if ufunc in _ORDERS and complex in (kinds := [kind_of(o) for o in operands]):
        names = [kind.__name__ for kind in kinds if kind is not None]
        raise TypeError(f"'{_ORDERS[ufunc]}' not supported between instances of '{names[0]}' and '{names[1]}'")
    if ufunc in _SHIFTS:
        _leave_if_negative(operands[1], "negative shift count")
    if ufunc is _SQUARE and result.dtype.kind == "f":
        _leave_if_not_finite(operands, result)
    if ufunc in _INTEGER_RESULTS and result.dtype == np.int64:
        _check_overflow(ufunc, operands, value_of(result))


def power(compute: Callable[[Any, Any], Any], base: Any, exponent: Any) -> Any:
    """Return a power of Python numbers, whose class Python decides by their values.

    Parameters
    ----------
    compute : callable
        NumPy's function of numbers of one class.
    base, exponent : object
        Python numbers, at least one of them traced.
    """
    kinds = (kind_of(base), kind_of(exponent))
    if kinds == (int, int):
        low, high = range_of(value_of(as_traced(exponent)))
        if high >= 0:
            if low < 0:
                _leave_if_negative(exponent, "a negative power of an integer is a float")
                exponent = _limited(exponent)
            return compute(base, exponent)
        base, exponent = _as_float(base), _as_float(exponent)
    result = compute(base, exponent)
    if result.dtype.kind == "c":
        _leave_if(xla.not_(xla.is_finite(_magnitude(result))), _POWER)
    else:
        _leave_if_not_finite((base, exponent), result)
    return result


_POWER: Final = "a power is complex, too large, or one of zero"


def _magnitude(value: Any) -> XlaOp:
    op = value_of(value)
    return xla.add(xla.real(op), xla.imag(op))


def _as_float(value: Any) -> Any:
    if not isinstance(value, TracedArray):
        return float(value)
    return traced(convert(value_of(value), np.dtype(np.float64)), float)


def _limited(exponent: Any) -> Any:
    op = value_of(exponent)
    return traced(xla.maximum(op, _like(op, 0)), int)


def _leave_if_negative(value: Any, reason: str) -> None:
    op = value_of(as_traced(value))
    if range_of(op)[0] < 0:
        _leave_if(xla.lt(op, _like(op, 0)), reason)


def _leave_if_not_finite(operands: Sequence[Any], result: Any) -> None:
    """Leave runs in which floats have a result that is not finite, unless they are not finite themselves."""
    finite = None
    for o in operands:
        if isinstance(o, TracedArray) and o.dtype.kind == "f":
            is_finite = xla.is_finite(value_of(o))
            finite = is_finite if finite is None else xla.and_(finite, is_finite)
    failed = xla.not_(xla.is_finite(value_of(result)))
    _leave_if(failed if finite is None else xla.and_(failed, finite), _POWER)


def _leave_if(failed: XlaOp, reason: str) -> None:
    where = user_line()
    require_current().leave_if(failed, lambda number: OverflowError(f"{reason}\n  at:   {where}"))


def _check_divisor(ufunc: np.ufunc, operands: Sequence[Any]) -> None:
    divisor = value_of(as_traced(operands[1]))
    if _is_integer(divisor):
        low, high = range_of(divisor)
        if low > 0 or high < 0:
            return
    elif isinstance(operands[1], (int, float, complex)) and operands[1] != 0:
        return
    integers = all(_is_integer(value_of(as_traced(o))) for o in operands)
    message = _DIVISIONS[ufunc][not integers]
    zero = xla.eq(divisor, _like(divisor, 0))
    _fail_if(zero, lambda number: ZeroDivisionError(message))


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
    require_current().leave_if(xla.gt(error, _like(error, _EXACT)), lambda number: OverflowError(text), warns=True)


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
