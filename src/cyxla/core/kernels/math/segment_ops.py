"""Reductions over segments of rows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np

from cyxla.core.framework.kernel_decorators import array_kernel
from cyxla.core.framework.numeric_limits import highest, lowest, wide_type
from cyxla.core.framework.types import FLOATING, NUMBER, REAL, DataType
from cyxla.errors import InvalidArgumentError, ShapeError

Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class Reduction:
    """Reduction of the rows of a segment, and its value for an empty segment."""

    ufunc: np.ufunc
    empty: Callable[[np.dtype[Any]], Any]
    types: tuple[DataType, ...]


def _constant(value: int) -> Callable[[np.dtype[Any]], Any]:
    return lambda dtype: np.asarray(value).astype(dtype)[()]


_SUM = Reduction(np.add, _constant(0), NUMBER)
_PRODUCT = Reduction(np.multiply, _constant(1), NUMBER)
_MAX = Reduction(np.maximum, lowest, REAL)
_MIN = Reduction(np.minimum, highest, REAL)


def _reduce(reduction: Reduction, data: Array, ids: Array, count: int) -> Array:
    """Reduce the rows of data to [count, ...]; segment numbers must lie in [0, count)."""
    dtype = data.dtype
    wide = wide_type(dtype)
    result = np.full((count, *data.shape[1:]), reduction.empty(dtype), wide)
    with np.errstate(all="ignore"):
        reduction.ufunc.at(result, ids, data.astype(wide, copy=False))
    return result.astype(dtype, copy=False)


# ----------------------------------------------------------------------------------------------------- sorted segments


def _check_sorted(data: Array, ids: Array) -> None:
    if ids.ndim != 1 or not data.ndim or len(ids) != len(data):
        raise ShapeError(f"segment_ids {list(ids.shape)} must hold a number for each row of {list(data.shape)}")
    if (ids[1:] < ids[:-1]).any():
        raise InvalidArgumentError(f"segment_ids must be sorted: {ids.tolist()[:20]}")
    if len(ids) and ids[0] < 0:
        raise InvalidArgumentError(f"segment_ids must not be negative: {ids[0]}")


def _empty_segments(ids: Array, count: int) -> Array:
    """Return a mask of the segments without rows."""
    return np.bincount(ids, minlength=count)[:count] == 0


def _register_sorted(name: str, reduction: Reduction, gap: int) -> None:
    """Register both forms; `gap` is the value of an empty segment in the form without a count."""

    @array_kernel(name, types={"T": reduction.types})
    def segments(data: Array, segment_ids: Array) -> Array:
        _check_sorted(data, segment_ids)
        count = int(segment_ids[-1]) + 1 if len(segment_ids) else 0
        result = _reduce(reduction, data, segment_ids, count)
        result[_empty_segments(segment_ids, count)] = gap
        return result

    @array_kernel(name + "V2", types={"T": reduction.types})
    def kernel_with_count(data: Array, segment_ids: Array, num_segments: Array) -> Array:
        _check_sorted(data, segment_ids)
        count = _count(num_segments)
        if len(segment_ids) and segment_ids[-1] >= count:
            raise InvalidArgumentError(f"segment {segment_ids[-1]} of {count}")
        return _reduce(reduction, data, segment_ids, count)


for _name, _reduction, _gap in (
    ("SegmentSum", _SUM, 0),
    ("SegmentProd", _PRODUCT, 1),
    ("SegmentMax", _MAX, 0),
    ("SegmentMin", _MIN, 0),
):
    _register_sorted(_name, _reduction, _gap)


def _count(num_segments: Array) -> int:
    if num_segments.ndim:
        raise ShapeError(f"num_segments must be a scalar; its shape is {list(num_segments.shape)}")
    if num_segments < 0:
        raise InvalidArgumentError(f"num_segments must not be negative; it is {num_segments}")
    return int(num_segments)


def _scale_by_count(data: Array, ids: Array, power: float) -> Array:
    """Return the sums of segments divided by a power of their number of rows."""
    count = int(ids[-1]) + 1 if len(ids) else 0
    wide = wide_type(data.dtype)
    total = _reduce(_SUM, data.astype(wide, copy=False), ids, count)
    rows = np.maximum(np.bincount(ids, minlength=count)[:count], 1).astype(wide)
    scaled = total / rows.reshape(count, *[1] * (data.ndim - 1)) ** power
    return np.asarray(scaled).astype(data.dtype, copy=False)


@array_kernel("SegmentMean", types={"T": NUMBER})
def _segment_mean(data: Array, segment_ids: Array) -> Array:
    _check_sorted(data, segment_ids)
    return _scale_by_count(data, segment_ids, 1)


def _register_sparse(name: str, power: float, types: tuple[DataType, ...]) -> None:
    @array_kernel(name, types={"T": types})
    def kernel(data: Array, indices: Array, segment_ids: Array) -> Array:
        """Reduce selected rows of data."""
        if indices.ndim != 1 or not data.ndim:
            raise ShapeError(f"indices {list(indices.shape)} must be a vector, and data {list(data.shape)} have rows")
        bad = (indices < 0) | (indices >= len(data))
        if bad.any():
            raise InvalidArgumentError(f"row {indices[bad][0]} of {len(data)}")
        rows = data[indices]
        _check_sorted(rows, segment_ids)
        if not power:
            count = int(segment_ids[-1]) + 1 if len(segment_ids) else 0
            return _reduce(_SUM, rows, segment_ids, count)
        return _scale_by_count(rows, segment_ids, power)


_register_sparse("SparseSegmentSum", 0, REAL)
_register_sparse("SparseSegmentMean", 1, FLOATING)
_register_sparse("SparseSegmentSqrtN", 0.5, FLOATING)


# --------------------------------------------------------------------------------------------------- any order of rows


def _register_unsorted(name: str, reduction: Reduction) -> None:
    @array_kernel(name, types={"T": reduction.types})
    def kernel(data: Array, segment_ids: Array, num_segments: Array) -> Array:
        """Reduce rows in any order, skipping negative segment numbers."""
        count = _count(num_segments)
        rank = segment_ids.ndim
        if data.shape[:rank] != segment_ids.shape:
            raise ShapeError(
                f"data {list(data.shape)} does not begin with the shape of segment_ids, {segment_ids.shape}"
            )
        ids = segment_ids.reshape(-1)
        if (ids >= count).any():
            raise InvalidArgumentError(f"segment {ids.max()} of {count}")
        rows = data.reshape(prod(data.shape[:rank]), *data.shape[rank:])
        is_valid = ids >= 0
        return _reduce(reduction, rows[is_valid], ids[is_valid], count)


for _name, _reduction in (
    ("UnsortedSegmentSum", _SUM),
    ("UnsortedSegmentProd", _PRODUCT),
    ("UnsortedSegmentMax", _MAX),
    ("UnsortedSegmentMin", _MIN),
):
    _register_unsorted(_name, _reduction)
