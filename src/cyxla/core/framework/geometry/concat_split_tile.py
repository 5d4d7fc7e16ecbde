"""Shapes of concatenation, splitting and tiling."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from cyxla.core.framework.geometry.shape_operands import axis_of, sizes_of
from cyxla.errors import InvalidArgumentError, ShapeError

Array = np.ndarray[Any, Any]


def check_joinable(shapes: Sequence[Sequence[int]], axis: int) -> None:
    """Check that arrays can be concatenated along a dimension.

    Raises
    ------
    ShapeError
        The ranks differ, or sizes of another dimension differ.
    """
    first = shapes[0]
    for shape in shapes[1:]:
        same = len(shape) == len(first) and all(
            m == n for d, (m, n) in enumerate(zip(first, shape, strict=True)) if d != axis
        )
        if not same:
            raise ShapeError(f"{list(first)} and {list(shape)} cannot be joined in dimension {axis}")


def concat_offsets(concat_dim: Array, shape: list[Array]) -> list[Array]:
    """Return the offset of each array in the concatenation.

    Raises
    ------
    ShapeError
        The shapes have different ranks.
    InvalidArgumentError
        Sizes of another dimension differ.
    """
    axis = axis_of(concat_dim, len(shape[0]), "concat_dim")
    offsets, start = [], 0
    for sizes in shape:
        if sizes.ndim != 1 or len(sizes) != len(shape[0]):
            raise ShapeError(f"the shapes {shape[0].tolist()} and {sizes.tolist()} have different ranks")
        if any(m != n for d, (m, n) in enumerate(zip(shape[0], sizes, strict=True)) if d != axis):
            raise InvalidArgumentError(f"{shape[0].tolist()} and {sizes.tolist()} cannot be joined in dimension {axis}")
        offset = np.zeros_like(sizes)
        offset[axis] = start
        offsets.append(offset)
        start += int(sizes[axis])
    return offsets


def equal_parts(shape: Sequence[int], split_dim: Array, num_split: int) -> tuple[int, list[int]]:
    """Return the dimension that is split into equal parts, and the sizes of the parts.

    Raises
    ------
    ShapeError
        The dimension is not one number.
    InvalidArgumentError
        There is no such dimension, or its size is not a multiple of the number of parts.
    """
    axis = axis_of(split_dim, len(shape), "split_dim")
    if shape[axis] % num_split:
        raise InvalidArgumentError(f"dimension {axis} of {list(shape)} cannot be split into {num_split} equal parts")
    return axis, [shape[axis] // num_split] * num_split


def split_v_sizes(shape: Sequence[int], size_splits: Array, split_dim: Array, num_split: int) -> tuple[int, list[int]]:
    """Return the dimension that is split and the sizes of its parts; a size of -1 takes the remainder.

    Raises
    ------
    ShapeError
        The dimension is not one number, or the number of sizes is wrong.
    InvalidArgumentError
        There is no such dimension, or the sizes do not add up to it.
    """
    axis = axis_of(split_dim, len(shape), "split_dim")
    if size_splits.shape != (num_split,):
        raise ShapeError(f"size_splits must hold {num_split} sizes; its shape is {list(size_splits.shape)}")
    sizes, total = size_splits.tolist(), shape[axis]
    if sizes.count(-1) > 1 or min(sizes) < -1:
        raise InvalidArgumentError(f"at most one size may be -1, and no size less than -1: {sizes}")
    if -1 in sizes:
        sizes[sizes.index(-1)] = total - sum(sizes) - 1
    if sum(sizes) != total or min(sizes) < 0:
        raise InvalidArgumentError(
            f"parts of {size_splits.tolist()} do not add up to the size {total} of dimension {axis}"
        )
    return axis, sizes


def tile_multiples(rank: int, multiples: Array) -> tuple[int, ...]:
    """Return the number of repetitions along each dimension.

    Raises
    ------
    ShapeError
        There is not one number for each dimension.
    InvalidArgumentError
        A number is negative.
    """
    if multiples.shape != (rank,):
        raise ShapeError(f"multiples must hold {rank} numbers; its shape is {list(multiples.shape)}")
    return sizes_of(multiples, "multiples")
