"""Indexing of arrays of run-time size, by arrays of run-time size, and by slices of run-time length."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from cyxla.errors import OutOfRangeError, ShapeError
from cyxla.numpy.indexing.access import assign as assign_static
from cyxla.numpy.indexing.access import convert_for_assignment
from cyxla.numpy.indexing.bounds import fail_where
from cyxla.numpy.indexing.packing import nonzero_indices
from cyxla.numpy.indexing.parse import convert_item, is_mask
from cyxla.numpy.sized.frames import Frame, align, require_equal, resized
from cyxla.numpy.sized.slices import slice_along
from cyxla.numpy.tracing import trace as _trace
from cyxla.numpy.tracing.sized_array import SizedArray, as_size, filled, is_within, raise_unsupported, valid
from cyxla.numpy.tracing.trace import require_current
from cyxla.numpy.tracing.traced_array import TracedArray, as_traced, is_traced, value_of
from cyxla.numpy.ufuncs.apply import broadcast_to
from cyxla.xla.hlo.builder import functions as xla

_np: Any = np  # its functions dispatch to this package

_PROBES = (2, 3)  # two sizes with which NumPy is asked where the run-time dimension of a result is
_LARGEST_SHOWN = 1 << 30  # indices beyond this are shown as this in errors


@dataclass(frozen=True)
class Index:
    """Index expression whose items are of known size, but for the run-time dimension of its result.

    Attributes
    ----------
    target : TracedArray
        Padded array that is indexed.
    items : list
        Items of the index, without an ellipsis.
    array : SizedArray or None
        The array, if its run-time dimension is one of the result.
    frame : Frame or None
        Run-time dimension of the index arrays, if they have one.
    """

    target: TracedArray
    items: list[Any]
    array: SizedArray | None
    frame: Frame | None

    @property
    def key(self) -> tuple[Any, ...]:
        """Index of the padded array."""
        return tuple(self.items)

    def result_axis(self) -> int:
        """Return the run-time dimension of the result."""
        first, second = (self._probe(n) for n in _PROBES)
        return next(d for d, (n, m) in enumerate(zip(first, second, strict=True)) if n != m)

    def _probe(self, size: int) -> tuple[int, ...]:
        sizes = [size if self.array is not None and d == self.array.axis else n
                 for d, n in enumerate(self.target.shape)]  # fmt: skip
        key = tuple([self._probe_item(item, size) for item in self.items])
        dummy = np.broadcast_to(np.int8(0), [max(n, size) for n in sizes] if self.frame else sizes)[key]
        return tuple(dummy.shape)

    def _probe_item(self, item: Any, size: int) -> Any:
        if isinstance(item, slice):
            return slice(None)
        if item is None or not hasattr(item, "ndim"):
            return item if item is None else 0
        sizes = list(item.shape)
        if self.frame is not None and len(sizes) >= self.frame.from_right:
            at = len(sizes) - self.frame.from_right
            sizes[at] = size if sizes[at] != 1 or is_traced(item) else 1
        return np.zeros(sizes, np.int64) if sizes else 0


# -- items


def _expanded(key: Any, rank: int) -> list[Any]:
    """Return the items of an index, with slices for an ellipsis and for missing dimensions."""
    items = [i if isinstance(i, SizedArray) else convert_item(i) for i in (key if isinstance(key, tuple) else (key,))]
    used = sum(map(_axes_used, items))
    if used > rank:
        raise OutOfRangeError(
            f"too many indices for array: array is {rank}-dimensional, but {used} were indexed",
            where=_trace.user_line(),
        )
    if sum(i is Ellipsis for i in items) > 1:
        raise OutOfRangeError("an index can only have a single ellipsis ('...')", where=_trace.user_line())
    at = next((k for k, i in enumerate(items) if i is Ellipsis), None)
    rest = [slice(None)] * (rank - used)
    return [*items, *rest] if at is None else [*items[:at], *rest, *items[at + 1 :]]


def _axes_used(item: Any) -> int:
    if item is None or item is Ellipsis:
        return 0
    return int(item.ndim) if is_mask(item) or (isinstance(item, SizedArray) and item.dtype.kind == "b") else 1


def _is_whole(item: Any) -> bool:
    return isinstance(item, slice) and item == slice(None)


def _has_run_time_length(item: Any) -> bool:
    return isinstance(item, slice) and any(is_traced(b) for b in (item.start, item.stop, item.step))


def resolve(array: Any, key: Any) -> Index:
    """Return an index expression with items of known size."""
    items = _expanded(key, array.ndim)
    for k, item in enumerate(items):
        axis = sum(map(_axes_used, items[:k]))
        if isinstance(array, SizedArray) and axis <= array.axis < axis + _axes_used(item):
            array, items[k] = _resolve_along(array, item, axis)
        elif _has_run_time_length(item):
            array, items[k] = _sliced(array, item, axis), slice(None)
        elif isinstance(item, SizedArray) and item.dtype.kind != "b":
            items[k] = normalised(item, array.shape[axis], axis)
    items = _without_masks(items)
    frame = None
    positions = [k for k, i in enumerate(items) if isinstance(i, (SizedArray, TracedArray, np.ndarray))]
    if any(isinstance(items[k], SizedArray) for k in positions):
        aligned, frame = align([items[k] for k in positions])
        for k, item in zip(positions, aligned, strict=True):
            items[k] = _clean(item, frame)
    survives = isinstance(array, SizedArray)
    if survives and frame is not None:
        if frame.count is not None:
            raise_unsupported("be indexed along another dimension by one: the result would have two such sizes")
        frame = None
    target = array.data if survives else _with_elements(array, items)
    return Index(target, items, array if survives else None, frame if frame and frame.count is not None else None)


def _with_elements(array: TracedArray, items: Sequence[Any]) -> TracedArray:
    """Return an array with an element along dimensions of size 0 that index arrays index; there are no such indices."""
    for k, item in enumerate(items):
        axis = sum(map(_axes_used, items[:k]))
        if isinstance(item, TracedArray) and item.dtype.kind != "b" and item.size and array.shape[axis] == 0:
            array = resized(array, axis, 1)
    return array


def _sliced(array: Any, item: slice, axis: int) -> SizedArray:
    """Slice a dimension of known size by bounds known at run time."""
    if isinstance(array, SizedArray):
        raise_unsupported("be sliced along another dimension by traced bounds: it would have two such sizes")
    size = as_size(as_traced(np.int64(array.shape[axis])), array.shape[axis])
    return slice_along(SizedArray(array, axis, size), item)


def _resolve_along(array: SizedArray, item: Any, axis: int) -> tuple[Any, Any]:
    """Return the array to index and the item of its run-time dimension."""
    if isinstance(item, slice):
        return (array if _is_whole(item) else slice_along(array, item)), slice(None)
    if isinstance(item, SizedArray) and item.dtype.kind == "b":
        at = array.axis - axis
        if item.axis != at:
            raise_unsupported("be indexed by a mask whose size is that of another dimension")
        require_equal(item.count, array.count, _MASK_MESSAGE.format(array.axis), OutOfRangeError)
        return array.data, resized(filled(item, False), at, array.bound)
    if is_mask(item):
        size = item.shape[array.axis - axis]
        if size == 0:
            return array.data, np.zeros([array.data.shape[axis + k] for k in range(item.ndim)], bool)
        require_equal(array.count, size, _MASK_MESSAGE.format(array.axis), OutOfRangeError)
        return TracedArray(value_of(resized(array.data, array.axis, size))), item
    return array.data, normalised(item, array.count, array.axis, array.bound)


_MASK_MESSAGE = "boolean index did not match indexed array along axis {}; sizes are {{}} and {{}}"


def normalised(item: Any, size: Any, axis: int, bound: int | None = None) -> Any:
    """Return indices as non-negative ones that are in range; runs with others fail."""
    if isinstance(item, SizedArray):
        inside = valid(item)
        return SizedArray(_normalised(item.data, size, axis, bound, inside), item.axis, item.count)
    return _normalised(as_traced(item, np.int64), size, axis, bound, None)


def _normalised(data: Any, size: Any, axis: int, bound: int | None, inside: TracedArray | None) -> Any:
    indices, trace, bound = as_traced(data, np.int64), require_current(), size if bound is None else bound
    if not indices.size:
        return indices
    outside = _np.logical_or(_np.less(indices, -size), _np.greater_equal(indices, size))
    outside = outside if inside is None else _np.logical_and(outside, inside)
    if trace.program.bounds == "raise":
        where = _trace.user_line()
        shown: Any = _np.clip(indices, -_LARGEST_SHOWN, _LARGEST_SHOWN) * (1 << 31) + size

        def make_error(number: int) -> OutOfRangeError:
            position, length = number >> 31, number & (1 << 31) - 1
            message = f"index {position} is out of bounds for axis {axis} with size {length}"
            return OutOfRangeError(message, where=where)

        fail_where(trace, value_of(outside), value_of(shown), make_error)
    positive: Any = _np.where(_np.less(indices, 0), indices + size, indices)
    if trace.program.bounds != "raise":
        positive = _np.minimum(positive, size - 1)
    return _np.clip(positive, 0, max(bound - 1, 0))


def _without_masks(items: Sequence[Any]) -> list[Any]:
    """Replace traced masks by index arrays, if other index arrays or new axes need them."""
    masks = [i for i in items if isinstance(i, TracedArray) and i.known is None and i.dtype.kind == "b"]
    sized_masks = [i for i in items if isinstance(i, SizedArray) and i.dtype.kind == "b"]
    others = [i for i in items if hasattr(i, "ndim") and not any(i is m for m in masks)]
    if not sized_masks and (len(masks) + len(others) + sum(i is None for i in items) < 2 or not masks):
        return list(items)
    result: list[Any] = []
    for item in items:
        if any(item is m for m in masks):
            result += nonzero_indices(value_of(item))
        elif any(item is m for m in sized_masks):
            raise_unsupported("index a dimension of known size as a mask", "use np.nonzero(mask)")
        elif isinstance(item, np.ndarray) and item.dtype.kind == "b":
            result += np.nonzero(item)
        else:
            result.append(item)
    return result


def _clean(item: Any, frame: Frame) -> Any:
    """Return an index array with 0 for its padding."""
    if frame.count is None or not isinstance(item, TracedArray) or item.ndim < frame.from_right:
        return item
    axis = item.ndim - frame.from_right
    if item.shape[axis] == 1:
        return item
    return filled(SizedArray(item, axis, frame.count), 0)


# -- reading


def get(array: Any, key: Any) -> Any:
    """Return ``array[key]``."""
    at = resolve(array, key)
    result = at.target[at.key]
    if at.array is not None:
        if isinstance(result, SizedArray):
            raise_unsupported("be indexed along another dimension by a mask: the result would have two such sizes")
        return SizedArray(result, at.result_axis(), at.array.count)
    if at.frame is None or at.frame.count is None:
        return result
    return SizedArray(result, at.result_axis(), at.frame.count)


# -- writing


def assign(array: Any, key: Any, value: Any) -> None:
    """Assign ``array[key] = value``."""
    at = resolve(array, key)
    if at.array is not None:
        _assign_within(at, value)
    elif at.frame is not None and at.frame.count is not None:
        _assign_at_indices(at, value)
    else:
        assign_static(at.target, at.key, value if not isinstance(value, SizedArray) else _static_value(at, value))


def _assign_within(at: Index, value: Any) -> None:
    """Assign to all elements along the run-time dimension, but not to its padding."""
    assert at.array is not None
    part: Any = at.target[at.key]
    region = SizedArray(part, at.result_axis(), at.array.count)
    op = _value_like(region, value)
    op = xla.select(value_of(valid(region)), op, value_of(part))
    at.target[at.key] = TracedArray(op)


def _value_like(region: SizedArray, value: Any) -> Any:
    """Convert a value to the dtype of a region, and broadcast it to its padded shape."""
    from_right = region.ndim - region.axis
    if isinstance(value, SizedArray):
        if value.ndim - value.axis != from_right:
            raise_unsupported("be assigned to one whose run-time dimension is another")
        aligned, frame = align([region, value])
        require_equal(as_traced(frame.count), region.count, _ASSIGN_MESSAGE)
        data = resized(aligned[1], value.axis, region.bound)
    else:
        data = as_traced(value) if is_traced(value) or isinstance(value, TracedArray) else value
        shape = np.shape(data)
        if len(shape) >= from_right and shape[-from_right] != 1:
            require_equal(region.count, shape[-from_right], _ASSIGN_MESSAGE)
            data = resized(as_traced(data), len(shape) - from_right, region.bound)
    op = convert_for_assignment(data, region.data)
    leading = max(op.shape.rank - region.ndim, 0)
    if any(n != 1 for n in op.shape.dims[:leading]):
        raise ShapeError(f"could not broadcast input array from shape {op.shape.dims}", where=_trace.user_line())
    return broadcast_to(xla.reshape(op, op.shape.dims[leading:]) if leading else op, region.data.shape)


_ASSIGN_MESSAGE = "could not broadcast input array from shape ({},) into shape ({},)"


def _extended(at: Index) -> tuple[TracedArray, list[Any], int]:
    """Return the target with one more element along a dimension, at which the padding of indices points."""
    frame = at.frame
    assert frame is not None
    assert frame.count is not None
    k = next(k for k, i in enumerate(at.items) if _has_run_time_dimension(i, frame))
    axis = sum(map(_axes_used, at.items[:k]))
    size = at.target.shape[axis]
    item = at.items[k].astype(np.int64)
    op = value_of(item)
    inside = is_within(op, item.ndim - frame.from_right, value_of(frame.count))
    items = list(at.items)
    items[k] = _np.where(TracedArray(inside), item, size)
    return resized(at.target, axis, size + 1), items, axis


def _has_run_time_dimension(item: Any, frame: Frame) -> bool:
    """Return True if an index array has the run-time dimension, along which it is not broadcast."""
    return isinstance(item, TracedArray) and item.ndim >= frame.from_right and item.shape[-frame.from_right] != 1


def _assign_at_indices(at: Index, value: Any) -> None:
    """Assign to the elements at indices of which there are as many as known at run time."""
    target, items, axis = _extended(at)
    part: Any = target[tuple(items)]
    target[tuple(items)] = TracedArray(_value_like(SizedArray(part, at.result_axis(), at.frame.count), value))  # type: ignore
    at.target.overwrite(value_of(resized(TracedArray(value_of(target)), axis, at.target.shape[axis])))


def _static_value(at: Index, value: SizedArray) -> Any:
    """Return a value of run-time size for a region of known size, or for the elements of a mask."""
    region: Any = at.target[at.key]
    if isinstance(region, SizedArray):
        return value
    (_, data), frame = align([_np.broadcast_to(np.int8(0), region.shape), value])
    if frame.count is None:
        return data
    require_equal(frame.count, 1, _ASSIGN_MESSAGE)
    return resized(data, value.axis, 1)


def update_at(ufunc: Any, array: Any, key: Any, value: Any) -> None:
    """Compute ``ufunc.at(array, key, value)``."""
    at = resolve(array, key)
    operands = [] if value is None else [value]
    if at.frame is None or at.frame.count is None:
        if at.array is not None or any(isinstance(v, SizedArray) for v in operands):
            raise_unsupported(f"be passed to np.{ufunc.__name__}.at with this index")
        ufunc.at(at.target, at.key, *operands)
        return
    target, items, axis = _extended(at)
    part: Any = target[tuple(items)]
    region = SizedArray(part, at.result_axis(), at.frame.count)
    ufunc.at(target, tuple(items), *[TracedArray(_value_like(region, v)) for v in operands])
    at.target.overwrite(value_of(resized(TracedArray(value_of(target)), axis, at.target.shape[axis])))


__all__ = ["assign", "get", "normalised", "update_at"]
