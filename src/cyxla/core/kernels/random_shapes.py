"""Reading the operands that the random ops share: shapes, seeds, ranges."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from cyxla.errors import InvalidArgumentError, ResourceExhaustedError, ShapeError

Array = np.ndarray[Any, Any]

MOST_ELEMENTS = 1 << 48


def shape_of(shape: Array) -> tuple[tuple[int, ...], int]:
    """The shape that a vector of sizes gives, and its number of elements.

    Raises
    ------
    ShapeError
        It is not a vector.
    InvalidArgumentError
        A size is negative.
    ResourceExhaustedError
        More elements than any memory holds.
    """
    if shape.ndim != 1:
        raise ShapeError(f"a shape must be a vector of sizes; this operand's shape is {list(shape.shape)}")
    sizes = tuple(int(n) for n in shape)
    if any(n < 0 for n in sizes):
        raise InvalidArgumentError(f"a shape must not hold negative sizes: {list(sizes)}")
    count = prod(sizes)
    if count > MOST_ELEMENTS:
        raise ResourceExhaustedError(f"an array of shape {list(sizes)} is too large")
    return sizes, count


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
