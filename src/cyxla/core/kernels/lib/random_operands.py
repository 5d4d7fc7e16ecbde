"""Validation of operands of random ops: seeds and ranges."""

from __future__ import annotations

from typing import Any

import numpy as np

from cyxla.errors import InvalidArgumentError, ShapeError

Array = np.ndarray[Any, Any]


def seeds_of(seed: Array) -> tuple[int, int]:
    """Return the two integers of a seed.

    Raises
    ------
    ShapeError
        It does not hold two integers.
    """
    if seed.shape != (2,):
        raise ShapeError(f"a seed must hold two numbers; its shape is {list(seed.shape)}")
    return int(seed[0]), int(seed[1])


def int_range(low: Array, high: Array) -> tuple[Array, Array]:
    """Check the bounds of random integers and return them.

    Raises
    ------
    ShapeError
        A bound is not a scalar.
    InvalidArgumentError
        The range is empty.
    """
    for name, operand in (("minval", low), ("maxval", high)):
        if operand.ndim:
            raise ShapeError(f"{name} must be a scalar; its shape is {list(operand.shape)}")
    if low >= high:
        raise InvalidArgumentError(f"minval must be below maxval; they are {low} and {high}")
    return low, high
