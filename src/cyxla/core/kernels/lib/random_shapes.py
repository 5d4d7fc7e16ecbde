"""Reading the operands that the random ops share: shapes, seeds, ranges."""

from __future__ import annotations

from typing import Any

import numpy as np

from cyxla.errors import InvalidArgumentError, ShapeError

Array = np.ndarray[Any, Any]


def seeds_of(seed: Array) -> tuple[int, int]:
    """The two numbers of a seed.

    Raises
    ------
    ShapeError
        It does not hold two numbers.
    """
    if seed.shape != (2,):
        raise ShapeError(f"a seed must hold two numbers; its shape is {list(seed.shape)}")
    return int(seed[0]), int(seed[1])


def int_range(low: Array, high: Array) -> tuple[Array, Array]:
    """The scalars between which integers are drawn.

    Raises
    ------
    ShapeError
        One is not a scalar.
    InvalidArgumentError
        Nothing lies between them.
    """
    for name, operand in (("minval", low), ("maxval", high)):
        if operand.ndim:
            raise ShapeError(f"{name} must be a scalar; its shape is {list(operand.shape)}")
    if low >= high:
        raise InvalidArgumentError(f"minval must be below maxval; they are {low} and {high}")
    return low, high
