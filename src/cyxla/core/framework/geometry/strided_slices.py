"""NumPy indices of Slice and of StridedSlice with masks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from cyxla.errors import InvalidArgumentError, ShapeError

Array = np.ndarray[Any, Any]
MASKS = ("begin_mask", "end_mask", "ellipsis_mask", "new_axis_mask", "shrink_axis_mask")


def slice_index(shape: Sequence[int], begin: Array, size: Array) -> tuple[slice, ...]:
    """Return an index that selects `size` elements of each dimension from `begin`; -1 selects all that follow.

    Raises
    ------
    ShapeError
        The operands do not hold one number for each dimension.
    InvalidArgumentError
        The slice is out of bounds.
    """
    for name, operand in (("begin", begin), ("size", size)):
        if operand.shape != (len(shape),):
            raise ShapeError(f"{name} must hold {len(shape)} numbers; its shape is {list(operand.shape)}")
    at = []
    for d, (start, count, total) in enumerate(zip(begin.tolist(), size.tolist(), shape, strict=True)):
        stop = total if count == -1 else start + count
        if not 0 <= start <= stop <= total:
            raise InvalidArgumentError(
                f"{count} elements from index {start} exceed dimension {d}, whose size is {total}"
            )
        at.append(slice(start, stop))
    return tuple(at)


def strided_index(
    shape: Sequence[int], begin: Array, end: Array, strides: Array, masks: Mapping[str, int]
) -> tuple[Any, ...]:
    """Return the index of a strided slice of an array of the given shape.

    Raises
    ------
    InvalidArgumentError
        The bounds are not vectors of equal length, a stride is zero, there are two ellipses or too many indices, or
        an index is out of bounds.
    """
    if not begin.ndim == end.ndim == strides.ndim == 1 or not len(begin) == len(end) == len(strides):
        raise InvalidArgumentError(
            f"begin {list(begin.shape)}, end {list(end.shape)} and strides {list(strides.shape)} must be vectors of "
            "one length"
        )
    ellipsis, new_axis = masks["ellipsis_mask"], masks["new_axis_mask"]
    if bin(ellipsis & ((1 << len(begin)) - 1)).count("1") > 1:
        raise InvalidArgumentError("ellipsis_mask has more than one bit set")
    indexed = [i for i in range(len(begin)) if not (ellipsis >> i & 1 or new_axis >> i & 1)]
    if len(indexed) > len(shape):
        raise InvalidArgumentError(f"{len(indexed)} dimensions are indexed, but the input has {len(shape)}")
    dim_of_entry = _entry_dims(indexed, ellipsis, len(shape))
    parts = zip(begin.tolist(), end.tolist(), strides.tolist(), strict=True)
    index: list[Any] = [_subscript(i, *part, masks, shape, dim_of_entry) for i, part in enumerate(parts)]
    return tuple(index)


def _entry_dims(indexed: list[int], ellipsis: int, rank: int) -> dict[int, int]:
    """Return the dimension of each entry; entries behind an ellipsis count from the end."""
    ellipsis_index = ellipsis.bit_length() - 1
    before = [i for i in indexed if not ellipsis or i < ellipsis_index]
    after = [i for i in indexed if ellipsis and i > ellipsis_index]
    return {i: k for k, i in enumerate(before)} | {i: rank - len(after) + k for k, i in enumerate(after)}


def _subscript(
    i: int, begin: int, end: int, stride: int, masks: Mapping[str, int], shape: Sequence[int], dims: Mapping[int, int]
) -> Any:
    bit = {name: masks[name] >> i & 1 for name in MASKS}
    if bit["ellipsis_mask"]:
        return Ellipsis
    if bit["new_axis_mask"]:
        return np.newaxis
    if stride == 0:
        raise InvalidArgumentError(f"strides[{i}] must not be 0")
    if not bit["shrink_axis_mask"]:
        return slice(None if bit["begin_mask"] else begin, None if bit["end_mask"] else end, stride)
    if stride < 0:
        raise InvalidArgumentError(
            f"strides[{i}] is {stride}, but must be positive where shrink_axis_mask selects a single element"
        )
    size = shape[dims[i]]
    # begin_mask takes precedence over the index, and selects the first element
    index = 0 if bit["begin_mask"] else begin
    if not -size <= index < size:
        raise InvalidArgumentError(f"begin[{i}] = {index} lies outside of dimension {dims[i]}, whose size is {size}")
    return index
