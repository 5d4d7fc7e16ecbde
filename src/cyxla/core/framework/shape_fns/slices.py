"""Shape of a strided slice with partially known bounds and masks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from cyxla.core.framework.shape_inference import InferenceContext
from cyxla.core.framework.tensor_shape import UNKNOWN, Dim, TensorShape
from cyxla.errors import ShapeError

Array = np.ndarray[Any, Any]
_MASKS = ("begin_mask", "end_mask", "ellipsis_mask", "new_axis_mask", "shrink_axis_mask")


@dataclass(frozen=True)
class _Key:
    """Entry of the bounds for one dimension."""

    begin: int | None
    end: int | None
    stride: int | None
    from_start: bool
    to_end: bool
    shrink: bool


def strided_slice_shape(
    c: InferenceContext, x: TensorShape, begin: Array | None, end: Array | None, strides: Array | None
) -> TensorShape:
    """Return the shape of ``x[begin:end:strides]`` with the masks of the op.

    Raises
    ------
    ShapeError
        There are more entries than dimensions, a stride of 0, several ellipses, or an index out of bounds.
    """
    masks = {name: int(c.attr(name)) for name in _MASKS}
    count = _num_entries(c, begin, end, strides)
    if count is None or x.rank is None or masks["ellipsis_mask"].bit_count() > 1:
        if masks["ellipsis_mask"].bit_count() > 1:
            raise ShapeError(f"{c.op_def.name}: there is more than one ellipsis")
        return UNKNOWN
    dims: list[Dim] = []
    at = 0
    num_indexed = sum(not (masks["new_axis_mask"] | masks["ellipsis_mask"]) >> i & 1 for i in range(count))
    if num_indexed > x.rank:
        raise ShapeError(f"{c.op_def.name}: {num_indexed} dimensions are sliced, but the shape is {x}")
    for i in range(count):
        if masks["ellipsis_mask"] >> i & 1:
            dims += x[at : at + x.rank - num_indexed]
            at += x.rank - num_indexed
        elif masks["new_axis_mask"] >> i & 1:
            dims.append(1)
        else:
            dims += _sliced_dims(c, x[at], _key(i, begin, end, strides, masks))
            at += 1
    return TensorShape([*dims, *x[at:]])


def _num_entries(c: InferenceContext, *bounds: Array | None) -> int | None:
    """Return the number of entries of the bounds, None if unknown."""
    for bound in bounds:
        if bound is not None:
            return int(bound.size)
    shapes = (c.input(name) for name in ("begin", "end", "strides"))
    return next((s[0] for s in shapes if s.rank == 1 and s[0] is not None), None)


def _key(i: int, begin: Array | None, end: Array | None, strides: Array | None, masks: dict[str, int]) -> _Key:
    b, e, s = (None if v is None else int(v[i]) for v in (begin, end, strides))
    return _Key(b, e, s, bool(masks["begin_mask"] >> i & 1), bool(masks["end_mask"] >> i & 1),
                bool(masks["shrink_axis_mask"] >> i & 1))  # fmt: skip


def _sliced_dims(c: InferenceContext, size: Dim, key: _Key) -> Sequence[Dim]:
    """Return the size of a sliced dimension; empty if an index removes it."""
    if key.stride == 0:
        raise ShapeError(f"{c.op_def.name}: a stride is 0")
    if key.shrink:
        _check_index(c, size, key)
        return ()
    if key.stride is None:
        return (None,)
    if size is None:
        return (_size_of_unknown(key),)
    if (key.begin is None and not key.from_start) or (key.end is None and not key.to_end):
        return (None,)
    begin = None if key.from_start else key.begin
    end = None if key.to_end else key.end
    return (len(range(*slice(begin, end, key.stride).indices(size))),)


def _check_index(c: InferenceContext, size: Dim, key: _Key) -> None:
    if key.stride is not None and key.stride < 0:
        raise ShapeError(
            f"{c.op_def.name}: an index that selects one element must have a positive stride, not {key.stride}"
        )
    if key.begin is not None and size is not None and not key.from_start and not -size <= key.begin < size:
        raise ShapeError(f"{c.op_def.name}: index {key.begin} is out of range for a dimension of size {size}")


def _size_of_unknown(key: _Key) -> Dim:
    """Return the size of a slice of an unknown dimension: 0 if the bounds are empty, else unknown."""
    if key.from_start or key.to_end or key.begin is None or key.end is None or key.stride is None:
        return None
    same_side = (key.begin < 0) == (key.end < 0)
    is_empty = key.begin >= key.end if key.stride > 0 else key.begin <= key.end
    return 0 if same_side and is_empty else None
