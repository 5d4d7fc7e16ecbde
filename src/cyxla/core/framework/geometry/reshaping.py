"""Shapes of reshaping, squeezing and broadcasting."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np

from cyxla.core.framework.geometry.shape_operands import axis_of
from cyxla.errors import InvalidArgumentError, ShapeError

Array = np.ndarray[Any, Any]


def reshaped(size: int, shape: Array) -> tuple[int, ...]:
    """Return the shape of a reshaped array of `size` elements; a size of -1 is inferred.

    Raises
    ------
    ShapeError
        The operand is not a vector.
    InvalidArgumentError
        The number of elements does not match.
    """
    if shape.ndim != 1:
        raise ShapeError(f"shape must be a vector of sizes; its shape is {list(shape.shape)}")
    sizes = shape.tolist()
    if sizes.count(-1) > 1 or min(sizes, default=0) < -1:
        raise InvalidArgumentError(f"at most one size may be -1, and no size less than -1: {sizes}")
    if -1 in sizes:
        rest = prod(n for n in sizes if n != -1)
        if not rest and size:
            raise InvalidArgumentError(f"{size} elements do not fit the shape {sizes}")
        sizes[sizes.index(-1)] = size // rest if rest else 0
    if prod(sizes) != size:
        raise InvalidArgumentError(f"{size} elements do not fit the shape {shape.tolist()}")
    return tuple(sizes)


def squeezed_axes(shape: Sequence[int], squeeze_dims: Sequence[int]) -> tuple[int, ...]:
    """Return the dimensions to remove: the given ones, or by default all of size 1.

    Raises
    ------
    InvalidArgumentError
        There is no such dimension, or its size is not 1.
    """
    if not squeeze_dims:
        return tuple(d for d, n in enumerate(shape) if n == 1)
    axes = {axis_of(np.array(d), len(shape), "squeeze_dims") for d in squeeze_dims}
    for axis in axes:
        if shape[axis] != 1:
            raise InvalidArgumentError(f"dimension {axis} has {shape[axis]} elements, not 1: {list(shape)}")
    return tuple(axes)


def _broadcast_sizes(s0: Array, s1: Array) -> tuple[list[int], list[int], list[int]]:
    """Return two shapes padded to equal rank, and their broadcast shape."""
    for name, operand in (("s0", s0), ("s1", s1)):
        if operand.ndim != 1:
            raise ShapeError(f"{name} must be a vector of sizes; its shape is {list(operand.shape)}")
    rank = max(len(s0), len(s1))
    a, b = ([1] * (rank - len(s)) + s.tolist() for s in (s0, s1))
    for m, n in zip(a, b, strict=True):
        if m != n and 1 not in (m, n):
            raise InvalidArgumentError(f"the shapes {s0.tolist()} and {s1.tolist()} do not broadcast")
    return a, b, [n if m == 1 else m for m, n in zip(a, b, strict=True)]


def broadcast_args(s0: Array, s1: Array) -> Array:
    """Return the broadcast shape of two shapes.

    Raises
    ------
    ShapeError
        An operand is not a vector.
    InvalidArgumentError
        The shapes are not broadcastable.
    """
    return np.array(_broadcast_sizes(s0, s1)[2], s0.dtype)


def broadcast_gradient_args(s0: Array, s1: Array) -> tuple[Array, Array]:
    """Return the dimensions of the result over which the gradient of each operand is summed.

    Raises
    ------
    ShapeError
        A shape is not a vector.
    InvalidArgumentError
        The shapes are not broadcastable.
    """
    a, b, _ = _broadcast_sizes(s0, s1)
    rank = len(a)
    axes: list[list[int]] = []
    for sizes, other, own_rank in ((a, b, len(s0)), (b, a, len(s1))):
        if a == b and len(s0) == len(s1):
            axes.append([])
            continue
        axes.append(
            [d for d in range(rank) if sizes[d] == 1 and (other[d] != 1 or d < rank - own_rank or a[d] == b[d])]
        )
    return np.array(axes[0], s0.dtype), np.array(axes[1], s0.dtype)
