"""Division of integers, which must not be by zero, in the ways that TensorFlow rounds it."""

from __future__ import annotations

from typing import Any

import numpy as np

from cyxla.core.framework.limits import is_integer
from cyxla.errors import InvalidArgumentError, OpError

Array = np.ndarray[Any, Any]


def check_divisor(y: Array, error: type[OpError] = InvalidArgumentError) -> None:
    """Refuse an integer zero.

    Raises
    ------
    InvalidArgumentError
        There is one; or `error` instead.
    """
    if is_integer(y.dtype) and not np.all(y):
        raise error("integer division by zero")


def truncated(x: Array, y: Array) -> Array:
    """The quotient cut off towards zero; of floats too."""
    check_divisor(y)
    if not is_integer(x.dtype):
        return np.asarray(np.trunc(x / y))
    floor = np.floor_divide(x, y)
    if x.dtype.kind == "u":
        return np.asarray(floor)
    return np.asarray(floor + ((floor * y != x) & ((x < 0) != (y < 0))).astype(x.dtype))


def remainder(x: Array, y: Array) -> Array:
    """What the truncated quotient leaves, of the sign of x; of floats too."""
    check_divisor(y)
    return np.asarray(np.fmod(x, y))


def floored(x: Array, y: Array) -> Array:
    """The quotient rounded down; of floats too."""
    check_divisor(y)
    return np.asarray(np.floor_divide(x, y) if is_integer(x.dtype) else np.floor(x / y))


def modulo(x: Array, y: Array) -> Array:
    """What the floored quotient leaves, of the sign of y; of floats too."""
    check_divisor(y)
    if is_integer(x.dtype):
        return np.asarray(np.mod(x, y))
    left = np.fmod(x, y)
    return np.asarray(np.where((left != 0) & ((left < 0) != (y < 0)), left + y, left))
