"""Arithmetic sequences."""

from __future__ import annotations

from typing import Any

import numpy as np

from cyxla.core.framework.numeric_limits import is_integer
from cyxla.errors import InvalidArgumentError, ShapeError

Array = np.ndarray[Any, Any]


def stepped_range(start: Array, limit: Array, delta: Array) -> Array:
    """Return the numbers from `start` to `limit`, exclusive, in steps of `delta`.

    Raises
    ------
    ShapeError
        An operand is not a scalar.
    InvalidArgumentError
        `delta` is zero or has the wrong sign.
    """
    for name, operand in (("start", start), ("limit", limit), ("delta", delta)):
        if operand.ndim:
            raise ShapeError(f"{name} must be a scalar; its shape is {list(operand.shape)}")
    if delta == 0:
        raise InvalidArgumentError("the delta of a range must not be 0")
    if (delta > 0 and start > limit) or (delta < 0 and start < limit):
        raise InvalidArgumentError(f"delta {delta} has the wrong sign for a range from {start} to {limit}")
    return _range_values(start, limit, delta)


def _range_values(start: Array, limit: Array, delta: Array) -> Array:
    """Compute integers exactly, and floats by repeated addition of the delta, as TensorFlow does."""
    if is_integer(start.dtype):
        span, step = int(limit) - int(start), int(delta)
        count = -(-abs(span) // abs(step))
        numbers = np.arange(count, dtype=np.int64) * step + int(start)
        return numbers.astype(start.dtype)
    count = int(np.ceil(np.abs((limit.astype(np.float64) - start) / delta)))
    steps = np.full(count, delta, start.dtype)
    steps[:1] = start
    return np.add.accumulate(steps, dtype=start.dtype) if count else steps
