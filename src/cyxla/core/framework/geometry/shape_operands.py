"""Decoding of operands that hold sizes, shapes and dimensions."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from cyxla.core.framework.tensor_shape import UNKNOWN, TensorShape
from cyxla.errors import InvalidArgumentError, ResourceExhaustedError, ShapeError

Array = np.ndarray[Any, Any]

MOST_ELEMENTS = 1 << 48


def sizes_of(operand: Array, name: str) -> tuple[int, ...]:
    """Return the sizes in a vector.

    Raises
    ------
    ShapeError
        The operand is not a vector.
    InvalidArgumentError
        A size is negative.
    """
    if operand.ndim != 1:
        raise ShapeError(f"{name} must be a vector of sizes; its shape is {list(operand.shape)}")
    if (operand < 0).any():
        raise InvalidArgumentError(f"{name} must not hold negative sizes: {operand.tolist()}")
    return tuple(operand.tolist())


def scalar_of(operand: Array, name: str) -> int:
    """Return the number in a scalar.

    Raises
    ------
    ShapeError
        The operand is not a scalar.
    """
    if operand.ndim:
        raise ShapeError(f"{name} must be a scalar; its shape is {list(operand.shape)}")
    return int(operand)


def axis_of(operand: Array, rank: int, name: str = "axis") -> int:
    """Return the dimension in a scalar or a vector of one number; negative ones count from the end.

    Raises
    ------
    ShapeError
        The operand is not one number.
    InvalidArgumentError
        There is no such dimension.
    """
    if operand.size != 1 or operand.ndim > 1:
        raise ShapeError(f"{name} must be a scalar; its shape is {list(operand.shape)}")
    axis = int(operand.reshape(()))
    if not -rank <= axis < rank:
        raise InvalidArgumentError(f"{name} {axis} is out of range [{-rank}, {rank})")
    return axis % rank


def each_axis(axes: Array, rank: int) -> list[int]:
    """Return the dimensions in a scalar or a vector, in order; duplicates are allowed.

    Raises
    ------
    ShapeError
        The operand is a matrix or more.
    InvalidArgumentError
        There is no such dimension.
    """
    if axes.ndim > 1:
        raise ShapeError(f"axis must be a vector of dimensions; its shape is {list(axes.shape)}")
    return [axis_of(np.array(axis), rank) for axis in axes.reshape(-1).tolist()]


def axes_of(operand: Array, rank: int) -> tuple[int, ...]:
    """Return the dimensions in a scalar or a vector; negative ones count from the end.

    Raises
    ------
    ShapeError
        The operand is a matrix or more.
    InvalidArgumentError
        There is no such dimension, or it occurs twice.
    """
    if operand.ndim > 1:
        raise ShapeError(f"reduction_indices must be a scalar or a vector; their shape is {list(operand.shape)}")
    axes = []
    for axis in operand.reshape(-1).tolist():
        if not -rank <= axis < rank:
            raise InvalidArgumentError(
                f"reduction dimension {axis} is out of range [{-rank}, {rank}) for an input of rank {rank}"
            )
        axes.append(axis % rank)
    if len(set(axes)) != len(axes):
        raise InvalidArgumentError(f"a dimension is reduced twice: {operand.tolist()}")
    return tuple(sorted(axes))


def shape_of(shape: Array) -> tuple[tuple[int, ...], int]:
    """Return the shape in a vector of sizes, and its number of elements.

    Raises
    ------
    ShapeError
        The operand is not a vector.
    InvalidArgumentError
        A size is negative.
    ResourceExhaustedError
        The number of elements exceeds any memory.
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


def shape_from(tensor: Array) -> TensorShape:
    """Return the shape in a tensor of sizes: -1 is an unknown size, a scalar of -1 an unknown shape.

    Raises
    ------
    InvalidArgumentError
        The tensor is another scalar, has rank 2 or more, or has sizes below -1.
    """
    if tensor.ndim == 0:
        if int(tensor) != -1:
            raise InvalidArgumentError(f"a scalar shape must be -1, which denotes an unknown shape, not {int(tensor)}")
        return UNKNOWN
    if tensor.ndim != 1:
        raise InvalidArgumentError(f"a shape must be a vector of sizes, or the scalar -1; its rank is {tensor.ndim}")
    sizes = tensor.tolist()
    if any(size < -1 for size in sizes):
        raise InvalidArgumentError(
            f"sizes of a shape must be at least -1, not {sizes}", hint="-1 denotes an unknown size"
        )
    return TensorShape(None if size == -1 else size for size in sizes)


def shape_to(shape: TensorShape, dtype: np.dtype[Any]) -> Array:
    """Return the tensor of sizes of a shape; the inverse of `shape_from`."""
    if shape.dims is None:
        return np.array(-1, dtype)
    return np.array([-1 if d is None else d for d in shape], dtype)
