"""Operands of padding, mirroring, transposition and reversal."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from cyxla.core.framework.geometry.shape_operands import each_axis
from cyxla.errors import InvalidArgumentError, ShapeError

Array = np.ndarray[Any, Any]


def pads_of(rank: int, paddings: Array) -> list[tuple[int, int]]:
    """Return the low and high padding of each dimension.

    Raises
    ------
    ShapeError
        There is not one pair for each dimension.
    InvalidArgumentError
        A number is negative.
    """
    if paddings.shape != (rank, 2):
        raise ShapeError(f"paddings must be pairs, one for each of {rank} dimensions; the shape is {paddings.shape}")
    if (paddings < 0).any():
        raise InvalidArgumentError(f"paddings must not be negative: {paddings.tolist()}")
    return [(low, high) for low, high in paddings.tolist()]


def mirrored(paddings: Array, mode: str, shape: Sequence[int]) -> list[Array]:
    """Return s64[size + padding] for each dimension: the index of the mirrored element.

    Raises
    ------
    InvalidArgumentError
        There are not enough elements to mirror.
    """
    edge = 0 if mode == "SYMMETRIC" else 1
    indices = []
    for d, ((low, high), size) in enumerate(zip(paddings.tolist(), shape, strict=True)):
        most = size - edge
        if low > most or high > most:
            raise InvalidArgumentError(f"dimension {d} of {size} cannot be mirror-padded by {low} and {high}")
        below = np.arange(low, 0, -1) - (1 - edge)
        above = size - 1 - edge - np.arange(high)
        indices.append(np.concatenate([below, np.arange(size), above]).astype(np.intp))
    return indices


def permutation(rank: int, perm: Array) -> tuple[int, ...]:
    """Return a permutation of the dimensions.

    Raises
    ------
    ShapeError
        The number of entries is not the rank.
    InvalidArgumentError
        The operand is not a permutation.
    """
    if perm.shape != (rank,):
        raise ShapeError(f"perm must hold {rank} dimensions; its shape is {list(perm.shape)}")
    axes = [axis + rank if axis < 0 else axis for axis in perm.tolist()]
    if sorted(axes) != list(range(rank)):
        raise InvalidArgumentError(f"{perm.tolist()} is not a permutation of the {rank} dimensions")
    return tuple(axes)


def reversed_axes(rank: int, axis: Array) -> tuple[int, ...]:
    """Return the reversed dimensions.

    Raises
    ------
    ShapeError
        The operand is a matrix or more.
    InvalidArgumentError
        There is no such dimension, or it occurs twice.
    """
    axes = each_axis(axis, rank)
    if len(set(axes)) != len(axes):
        raise InvalidArgumentError(f"a dimension is reversed twice: {axis.tolist()}")
    return tuple(axes)
