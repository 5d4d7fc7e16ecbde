"""Geometry of SpaceToBatch, BatchToSpace, and the extraction of image patches."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np

from cyxla.errors import InvalidArgumentError, ShapeError

Array = np.ndarray[Any, Any]


def blocks_of(
    shape: Sequence[int], block_shape: Array, pairs: Array, name: str
) -> tuple[list[int], list[tuple[int, int]]]:
    """Return block sizes, and the pairs of paddings or crops of the blocked dimensions.

    Raises
    ------
    ShapeError
        An operand has the wrong shape, or the input too few dimensions.
    InvalidArgumentError
        A block size is not positive, or a pair is negative.
    """
    if block_shape.ndim != 1:
        raise ShapeError(f"block_shape must be a vector; its shape is {list(block_shape.shape)}")
    block = block_shape.tolist()
    if len(shape) < 1 + len(block):
        raise ShapeError(f"an input of rank {len(shape)} does not have {len(block)} dimensions besides the batch")
    if pairs.shape != (len(block), 2):
        raise ShapeError(f"{name} must be pairs, one for each block size; its shape is {list(pairs.shape)}")
    if min(block, default=1) < 1:
        raise InvalidArgumentError(f"block sizes must be positive: {block}")
    if (pairs < 0).any():
        raise InvalidArgumentError(f"{name} must not be negative: {pairs.tolist()}")
    return block, [(low, high) for low, high in pairs.tolist()]


def cropped_bounds(
    shape: Sequence[int], block: Sequence[int], crops: Sequence[tuple[int, int]]
) -> list[tuple[int, int]]:
    """Return the start and end of the blocked dimensions after cropping.

    Raises
    ------
    InvalidArgumentError
        The batch size is not a multiple of the block size, or crops exceed the dimension.
    """
    if shape[0] % prod(block):
        raise InvalidArgumentError(f"a batch of {shape[0]} is not a multiple of the block size {prod(block)}")
    bounds = []
    for d, ((low, high), size, b) in enumerate(zip(crops, shape[1:], block, strict=False)):
        if low + high > size * b:
            raise InvalidArgumentError(f"dimension {d + 1} of {size * b} cannot be cropped by {low} and {high}")
        bounds.append((low, size * b - high))
    return bounds


def check_rank4(shape: Sequence[int]) -> None:
    """Check that an input has rank 4.

    Raises
    ------
    ShapeError
        The rank is not 4.
    """
    if len(shape) != 4:
        raise ShapeError(f"the input must have rank 4; its shape is {list(shape)}")


def check_patches(shape: Sequence[int], ksizes: Sequence[int], strides: Sequence[int], rates: Sequence[int]) -> None:
    """Check that patches of the given sizes can be extracted from images.

    Raises
    ------
    ShapeError
        The rank of the images is not 4.
    InvalidArgumentError
        A size is invalid.
    """
    if len(shape) != 4:
        raise ShapeError(f"images must have rank 4: batch, height, width, channels; the shape is {list(shape)}")
    for name, numbers in (("ksizes", ksizes), ("strides", strides), ("rates", rates)):
        if len(numbers) != 4 or numbers[0] != 1 or numbers[3] != 1 or min(numbers) < 1:
            raise InvalidArgumentError(f"{name} must be four positive numbers, the first and last 1: {list(numbers)}")
