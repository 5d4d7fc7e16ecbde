"""Strided slices with constant bounds: reading, writing and updating."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from cyxla.core.framework.geometry.strided_slices import strided_index
from cyxla.errors import ShapeError
from cyxla.xla.hlo.builder import XlaOp
from cyxla.xla.hlo.builder import functions as xla
from cyxla.xla.lib.values import broadcast_to, rank_of, scalar, select, sizes_of

Array = np.ndarray[Any, Any]


def read_index(x: XlaOp, index: tuple[Any, ...]) -> XlaOp:
    """Emit the slice for a NumPy index of slices, integers and None."""
    starts, limits, steps, flips, shape = [], [], [], [], []
    entries = iter(sizes_of(x))
    for entry in _without_ellipsis(index, rank_of(x)):
        if entry is None:
            shape.append(1)
            continue
        size = next(entries)
        selected = _selected_indices(entry, size)
        low, high = (min(selected), max(selected) + 1) if len(selected) else (0, 0)
        step = abs(selected.step)
        flips.append(selected.step < 0)
        starts.append(low)
        limits.append(high)
        steps.append(step)
        if not isinstance(entry, int):
            shape.append(len(selected))
    cut = xla.slice_(x, starts, limits, steps)
    reversed_dims = [d for d, flip in enumerate(flips) if flip]
    return xla.reshape(xla.reverse(cut, reversed_dims) if reversed_dims else cut, shape)


def strided_update(x: XlaOp, begin: Array, end: Array, strides: Array, value: XlaOp, masks: dict[str, int]) -> XlaOp:
    """Set a strided slice of x to a broadcast value."""
    index = strided_index(sizes_of(x), begin, end, strides, masks)
    shape = _like_sizes(sizes_of(x))[index].shape
    return write_index(broadcast_to(value, shape), sizes_of(x), index, x)


def write_index(value: XlaOp, sizes: Sequence[int], index: tuple[Any, ...], under: XlaOp | None) -> XlaOp:
    """Write a value to an index of an array of given sizes, over zeros or over `under`."""
    part_sizes, low, high, holes, flips = [], [], [], [], []
    for entry, size in zip([e for e in _without_ellipsis(index, len(sizes)) if e is not None], sizes, strict=True):
        selected = _selected_indices(entry, size)
        step = abs(selected.step)
        part_sizes.append(len(selected))
        flips.append(selected.step < 0)
        first, last = (min(selected), max(selected)) if len(selected) else (0, -1)
        low.append(first)
        holes.append(step - 1)
        high.append(size - last - 1 if len(selected) else size)
    expected = _like_sizes(sizes)[index].shape
    if sizes_of(value) != expected:
        raise ShapeError(f"a slice of {list(expected)} cannot be set to a value of {list(sizes_of(value))}")
    reversed_dims = [d for d, flip in enumerate(flips) if flip]
    part = xla.reshape(value, part_sizes)
    part = xla.reverse(part, reversed_dims) if reversed_dims else part
    padding = list(zip(low, high, holes, strict=True))
    padded = xla.pad(part, scalar(value, 0), padding)
    if under is None:
        return padded
    mask = np.zeros(tuple(sizes), bool)
    mask[index] = True
    return select(xla.constant(value.builder, mask), padded, under)


def _selected_indices(entry: int | slice, size: int) -> range:
    """Return the indices selected by an entry of an index."""
    return range(entry % size, entry % size + 1) if isinstance(entry, int) else range(*entry.indices(size))


def _without_ellipsis(index: tuple[Any, ...], rank: int) -> list[Any]:
    consumed = sum(e is not None and e is not Ellipsis for e in index)
    full = [slice(None)] * (rank - consumed)
    if Ellipsis not in index:
        return [*index, *full]
    k = index.index(Ellipsis)
    return [*index[:k], *full, *index[k + 1 :]]


def _like_sizes(sizes: Sequence[int]) -> Array:
    return np.broadcast_to(np.zeros((), bool), tuple(sizes))
