"""`round` of Python numbers to decimal digits: to the nearest decimal of the exact value, unlike ``np.round``."""

from __future__ import annotations

from operator import index
from typing import Any, Final

import numpy as np

from cyxla.errors import TraceError
from cyxla.numpy.tracing.arrays.traced_array import TracedArray, traced, value_of
from cyxla.numpy.tracing.trace import require_current, user_line
from cyxla.xla.hlo.builder import XlaOp
from cyxla.xla.hlo.builder import functions as xla

_MOST_DIGITS: Final = 22  # of which powers of ten are exact floats
_MOST_DIGITS_OF_INTEGERS: Final = 18  # of powers of ten that an int64 holds
_WHOLE: Final = 2.0**53  # products from here on are too coarse for their decimals, which the value itself is nearest to
_SPLIT: Final = 2.0**27 + 1  # splits a float into halves, whose products are exact
_LARGEST: Final = 2.0**996  # beyond which that overflows


def rounded_decimal(value: TracedArray, digits: Any) -> TracedArray:
    """Return ``round(value, digits)`` of a Python float.

    The product with the power of ten is computed with its rounding error, so that halves are told from their
    neighbours; the quotient of a whole number and that power is the float nearest to the decimal.
    """
    count = index(digits)
    if not 0 <= count <= _MOST_DIGITS:
        raise TraceError(
            f"round to {count} digits cannot be traced", where=user_line(), hint=f"use 0 to {_MOST_DIGITS} digits"
        )
    x, scale = value_of(value), _number(10.0**count)
    product, error = _product(x, scale)
    low = xla.floor(product)
    above = xla.subtract(xla.subtract(product, low), _number(0.5))  # exact
    is_half = xla.eq(above, _number(0.0))
    upwards = xla.select(is_half, xla.gt(error, _number(0.0)), xla.gt(above, _number(0.0)))
    is_tie = xla.and_(is_half, xla.eq(error, _number(0.0)))
    whole = xla.select(upwards, xla.add(low, _number(1.0)), low)
    even = xla.multiply(_number(2.0), xla.floor(xla.multiply(xla.add(low, _number(1.0)), _number(0.5))))
    nearest = xla.select(is_tie, even, whole)
    is_large = xla.not_(xla.lt(xla.abs_(product), _number(_WHOLE)))  # or NaN
    rounded = _with_sign(xla.divide(nearest, scale), x)
    return traced(xla.select(is_large, x, rounded), float)


def rounded_integer(value: TracedArray, digits: Any) -> Any:
    """Return ``round(value, digits)`` of a Python int: itself, or the nearest multiple of a power of ten."""
    count = 0 if digits is None else index(digits)
    if count >= 0:
        return value
    if -count > _MOST_DIGITS_OF_INTEGERS:
        raise TraceError(
            f"round to {count} digits cannot be traced", where=user_line(), hint="divide by the power of ten"
        )
    unit = 10**-count
    quotient, rest = divmod(value, unit)
    is_tie = (2 * rest == unit) & (quotient % 2 == 1)
    return (quotient + ((2 * rest > unit) | is_tie)) * unit


def _number(value: float) -> XlaOp:
    return require_current().constant(value, np.dtype(np.float64))


def _product(a: XlaOp, b: XlaOp) -> tuple[XlaOp, XlaOp]:
    """Return a product and its rounding error."""
    product = xla.multiply(a, b)
    fits = xla.lt(xla.abs_(a), _number(_LARGEST))
    (a1, a2), (b1, b2) = _halves(xla.select(fits, a, _number(0.0))), _halves(b)
    error = xla.subtract(xla.multiply(a1, b1), product)
    for one, other in ((a1, b2), (a2, b1), (a2, b2)):
        error = xla.add(error, xla.multiply(one, other))
    return product, error


def _halves(a: XlaOp) -> tuple[XlaOp, XlaOp]:
    scaled = xla.multiply(a, _number(_SPLIT))
    high = xla.subtract(scaled, xla.subtract(scaled, a))
    return high, xla.subtract(a, high)


def _with_sign(magnitude: XlaOp, sign: XlaOp) -> XlaOp:
    """Return a number with the sign of another one, which zeros may lose."""
    is_negative = xla.lt(xla.divide(_number(1.0), sign), _number(0.0))
    is_negative = xla.or_(is_negative, xla.lt(sign, _number(0.0)))
    positive = xla.abs_(magnitude)
    return xla.select(is_negative, xla.negate(positive), positive)
