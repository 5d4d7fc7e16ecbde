"""Division and remainder with TensorFlow's rounding; integers must not be divided by zero."""

from __future__ import annotations

from typing import Any

import numpy as np

from cyxla.core.framework.numeric_limits import is_integer
from cyxla.errors import InvalidArgumentError, OpError

Array = np.ndarray[Any, Any]


def check_divisor(y: Array, error: type[OpError] = InvalidArgumentError) -> None:
    """Raise if an integer divisor contains zero.

    Raises
    ------
    InvalidArgumentError
        A divisor is zero; its class is `error` if given.
    """
    if is_integer(y.dtype) and not np.all(y):
        raise error("integer division by zero")


def truncate_div(x: Array, y: Array) -> Array:
    """Return the quotient rounded towards zero, for integers and floats."""
    check_divisor(y)
    if not is_integer(x.dtype):
        return np.asarray(np.trunc(x / y))
    floor = np.floor_divide(x, y)
    if x.dtype.kind == "u":
        return np.asarray(floor)
    return np.asarray(floor + ((floor * y != x) & ((x < 0) != (y < 0))).astype(x.dtype))


def truncate_mod(x: Array, y: Array) -> Array:
    """Return the remainder of the truncated quotient, which has the sign of x, for integers and floats."""
    check_divisor(y)
    return np.asarray(np.fmod(x, y))


def floor_div(x: Array, y: Array) -> Array:
    """Return the quotient rounded down, for integers and floats."""
    check_divisor(y)
    return np.asarray(np.floor_divide(x, y) if is_integer(x.dtype) else np.floor(x / y))


def floor_mod(x: Array, y: Array) -> Array:
    """Return the remainder of the floored quotient, which has the sign of y, for integers and floats."""
    check_divisor(y)
    if is_integer(x.dtype):
        return np.asarray(np.mod(x, y))
    remainder = np.fmod(x, y)
    return np.asarray(np.where((remainder != 0) & ((remainder < 0) != (y < 0)), remainder + y, remainder))
