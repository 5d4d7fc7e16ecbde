"""Indexing of arrays of run-time size, by arrays of run-time size, and by slices of run-time length."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import zip_longest
from typing import Any

import numpy as np

from cyxla.errors import OutOfRangeError, ShapeError
from cyxla.numpy.indexing.access import assign as assign_static
from cyxla.numpy.indexing.access import convert_for_assignment
from cyxla.numpy.indexing.bounds import fail_where
from cyxla.numpy.indexing.equal_values import same_size
from cyxla.numpy.indexing.packing import nonzero_indices
from cyxla.numpy.indexing.parse import convert_item, has_run_time_size, is_mask
from cyxla.numpy.indexing.ranges import difference
from cyxla.numpy.indexing.stored_numbers import require_storable
from cyxla.numpy.sized.frames import Frame, Mismatch, align, fail_unless, fit, resized, wrapped
from cyxla.numpy.sized.slices import slice_along
from cyxla.numpy.tracing import trace as _trace
from cyxla.numpy.tracing.arrays.sized_array import SizedArray, filled, is_within, valid
from cyxla.numpy.tracing.arrays.traced_array import TracedArray, as_traced, is_traced, value_of
from cyxla.numpy.tracing.trace import require_current, user_line
from cyxla.numpy.tracing.user_program.classes import is_number
from cyxla.numpy.ufuncs.apply import broadcast_to
from cyxla.records import dataclass
from cyxla.xla.hlo.builder import functions as xla

_np: Any = np  # its functions dispatch to this package

_MISSING = object()
_INDICES = Mismatch(
    "shape mismatch: indexing arrays could not be broadcast together with shapes ({},) ({},)", OutOfRangeError
)
_LARGEST_SHOWN = 1 << 30  # indices beyond this are shown as this in errors


@dataclass(frozen=True)
class Index:
    """Index expression whose items are of known size, of which the result may have run-time dimensions.

    Attributes
    ----------
    target : TracedArray
        Padded array that is indexed.
    items : list
        Items of the index, without an ellipsis.
    sizes : mapping of int to TracedArray
        Sizes of the dimensions of the target that slices select, which are dimensions of the result.
    frame : Frame
        Run-time dimensions of the index arrays, broadcast together.
    padding : mapping of int to mapping
        Run-time sizes of each of these items by dimension, by the number of the item.
    """

    target: TracedArray
    items: list[Any]
    sizes: Mapping[int, TracedArray]
    frame: Frame
    padding: Mapping[int, Mapping[int, TracedArray]]

    @property
    def key(self) -> tuple[Any, ...]:
        """Index of the padded array."""
        return tuple(self.items)

    def counts(self) -> dict[int, TracedArray]:
        """Return the run-time sizes of the result, but not that of the elements of a mask."""
        found: dict[int, TracedArray] = {}
        arrays = [k for k, i in enumerate(self.items) if _is_array(i)]
        advanced = [k for k, i in enumerate(self.items) if arrays and i is not None and not isinstance(i, slice)]
        is_together = not advanced or advanced[-1] - advanced[0] == len(advanced) - 1
        first = advanced[0] if advanced and is_together else 0
        rank = max([1 if is_mask(self.items[k]) else self.items[k].ndim for k in arrays], default=0)
        axis = position = 0
        for k, item in enumerate([*self.items, None]):
            if k == first and arrays:
                found |= {position + rank - from_right: n for from_right, n in self.frame.counts.items()}
                position += rank
            if isinstance(item, slice) and axis in self.sizes:
                found[position] = self.sizes[axis]
            position += item is None or isinstance(item, slice)
            axis += _axes_used(item)
        return found


def _is_array(item: Any) -> bool:
    """Return True if an item is an index array or a mask."""
    return is_mask(item) or (isinstance(item, (TracedArray, np.ndarray)) and item.ndim > 0)


# -- items


def _expanded(key: Any, rank: int) -> list[Any]:
    """Return the items of an index, with slices for an ellipsis and for missing dimensions."""
    items = [_converted(i) for i in (key if isinstance(key, tuple) else (key,))]
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


def _converted(item: Any) -> Any:
    if isinstance(item, SizedArray):
        return item
    return item.as_index_array() if has_run_time_size(item) else convert_item(item)


def _axes_used(item: Any) -> int:
    if item is None or item is Ellipsis:
        return 0
    return int(item.ndim) if is_mask(item) or (isinstance(item, SizedArray) and item.dtype.kind == "b") else 1


def resolve(array: Any, key: Any) -> Index:
    """Return an index expression with items of known size."""
    array, items = _with_ranked_masks(array, _expanded(key, array.ndim))
    array, items = _with_integers_applied(array, items)
    axis = 0
    data, sizes = array, {}
    for k, item in enumerate(items):
        used = _axes_used(item)
        if isinstance(item, slice):
            if (isinstance(array, SizedArray) and axis in array.counts and item != slice(None)) or _is_traced_slice(
                item
            ):
                array, items[k] = slice_along(array, axis, item), slice(None)
            if isinstance(array, SizedArray) and axis in array.counts:
                sizes[axis] = array.counts[axis]
        elif used and (is_mask(item) or isinstance(item, SizedArray) or _covers(array, axis, used)):
            items[k] = _item_along(array, item, axis)
        axis += used
    data = array.padded if isinstance(array, SizedArray) else array
    items = _without_masks(items, all_of_them=bool(sizes))
    frame, padding = Frame({}), {}
    positions = [k for k, i in enumerate(items) if isinstance(i, (SizedArray, TracedArray, np.ndarray))]
    if any(isinstance(items[k], SizedArray) for k in positions):
        aligned, frame = align([items[k] for k in positions], _INDICES)
        for k, item in zip(positions, aligned, strict=True):
            own = items[k].counts if isinstance(items[k], SizedArray) else {}
            padding[k] = {d: frame.counts[item.ndim - d] for d in own if item.ndim - d in frame.counts}
            items[k] = filled(SizedArray(item, padding[k]), 0) if padding[k] else item
    return Index(_with_elements(data, items), items, sizes, frame, padding)


def _with_ranked_masks(array: Any, items: list[Any]) -> tuple[Any, list[Any]]:
    """Return an array with a new dimension for each bool among the items of an index with a traced mask, and masks."""
    has_masks = any(map(_is_traced_mask, items))
    axis = 0
    for k, item in enumerate(items):
        is_known = has_masks and isinstance(item, np.ndarray) and item.dtype.kind == "b"
        if item is not None and (is_known or _is_traced_mask(item)) and item.ndim == 0:
            array = array[(*[slice(None)] * axis, None)]
            items = [*items[:k], item.reshape(1), *items[k + 1 :]]
        axis += _axes_used(items[k])
    return array, items


def _is_traced_mask(item: Any) -> bool:
    return isinstance(item, TracedArray) and item.known is None and item.dtype.kind == "b"


def _with_integers_applied(array: Any, items: list[Any]) -> tuple[Any, list[Any]]:
    """Return the view that the integers of a basic index select, and the other items.

    Slices of run-time length, whose elements are moved, then move fewer.
    """
    integers = list(map(_is_integer, items))
    is_basic = all(n or i is None or isinstance(i, slice) for n, i in zip(integers, items, strict=True))
    if not is_basic or not any(integers):
        return array, items
    if not any(isinstance(i, slice) and _is_traced_slice(i) for i in items):
        return array, items
    key = tuple(i if n else slice(None) for n, i in zip(integers, items, strict=True) if i is not None)
    return array[key], [i for n, i in zip(integers, items, strict=True) if not n]


def _is_integer(item: Any) -> bool:
    if isinstance(item, TracedArray):
        return item.ndim == 0 and item.dtype.kind in "iu"
    return isinstance(item, (int, np.integer)) and not isinstance(item, bool)


def _is_traced_slice(item: slice) -> bool:
    return any(is_traced(b) for b in (item.start, item.stop, item.step)) and not _has_known_length(item)


def _has_known_length(item: slice) -> bool:
    """Return True if a slice has traced bounds of known distance, and need not be one of run-time length."""
    if any(b is None for b in (item.start, item.stop)) or is_traced(item.step) or require_current().program.cuts_slices:
        return False
    start, stop = (value_of(as_traced(b, np.int64)) for b in (item.start, item.stop))
    return difference(start, stop) is not None


def _covers(array: Any, axis: int, used: int) -> bool:
    """Return True if an item of an index takes a run-time dimension."""
    return isinstance(array, SizedArray) and any(d in array.counts for d in range(axis, axis + used))


def _with_elements(array: TracedArray, items: Sequence[Any]) -> TracedArray:
    """Return an array with an element along dimensions of size 0 that index arrays index; there are no such indices."""
    axis = 0
    for item in items:
        if isinstance(item, TracedArray) and item.dtype.kind != "b" and item.size and array.shape[axis] == 0:
            array = resized(array, axis, 1)
        axis += _axes_used(item)
    return array


def _item_along(array: Any, item: Any, axis: int) -> Any:
    """Return an index or a mask of run-time dimensions, or of run-time size, as one of the padded array."""
    if isinstance(item, SizedArray) and item.dtype.kind == "b":
        return _mask_along(array, filled(item, False), item.shape, axis)
    if is_mask(item):
        return _mask_along(array, item, item.shape, axis)
    data = array.padded if isinstance(array, SizedArray) else array
    return normalised(item, array.shape[axis], axis, data.shape[axis])


def _mask_along(array: Any, mask: Any, shape: Sequence[Any], axis: int) -> Any:
    """Return a mask in the padded form of the dimensions that it covers; runs in which their sizes differ fail."""
    data = array.padded if isinstance(array, SizedArray) else array
    bounds = data.shape[axis : axis + len(shape)]
    for k, n in enumerate(shape):
        size = array.shape[axis + k]
        if isinstance(n, TracedArray) or isinstance(size, TracedArray):
            if not (isinstance(n, TracedArray) and isinstance(size, TracedArray) and same_size(n, size)):
                fits = _np.logical_or(_np.equal(n, size), _np.equal(n, 0))  # no elements fit any dimension
                fail_unless(fits, n, size, _MASK_MESSAGE.format(axis + k), OutOfRangeError)
        elif n not in (size, 0):
            raise OutOfRangeError(
                f"boolean index did not match indexed array along axis {axis + k}; size of axis is {size} but size of "
                f"corresponding boolean axis is {n}",
                where=user_line(),
            )
    if any(not isinstance(n, TracedArray) and n == 0 for n in shape):
        return np.zeros(bounds, bool)
    for k, bound in enumerate(bounds):
        mask = resized(as_traced(mask), k, bound)
    return mask


_MASK_MESSAGE = "boolean index did not match indexed array along axis {}; sizes are {{}} and {{}}"


def normalised(item: Any, size: Any, axis: int, bound: int | None = None, inside: Any = None) -> Any:
    """Return indices as non-negative ones that are in range; runs with others fail, if a condition holds."""
    if isinstance(item, SizedArray):
        within = valid(item) if inside is None else _np.logical_and(valid(item), inside)
        return item.like(_normalised(item.padded, size, axis, bound, within))
    return _normalised(as_traced(item, np.int64), size, axis, bound, inside)


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


def _without_masks(items: Sequence[Any], *, all_of_them: bool) -> list[Any]:
    """Replace traced masks by index arrays, if other index arrays, new axes or run-time dimensions need them."""
    masks = list(filter(_is_traced_mask, items))
    others = [i for i in items if hasattr(i, "ndim") and not any(i is m for m in masks)]
    is_alone = len(masks) + len(others) + sum(i is None for i in items) < 2
    if not masks or (is_alone and not all_of_them):
        return list(items)
    result: list[Any] = []
    for item in items:
        if any(item is m for m in masks):
            result += nonzero_indices(value_of(item))
        elif isinstance(item, np.ndarray) and item.dtype.kind == "b":
            result += np.nonzero(item)
        else:
            result.append(item)
    return result


# -- reading


def only_element(array: SizedArray, *, empty: str, several: str) -> TracedArray:
    """Return the element of an array; runs in which it has none or several fail with these messages."""
    elements: TracedArray = array.padded.ravel()
    if not elements.size:
        raise ShapeError(empty, where=_trace.user_line())
    fail_unless(_np.greater(array.size, 0), array.size, 0, empty)
    fail_unless(_np.less(array.size, 2), array.size, 0, several)
    return elements[0]


def get(array: Any, key: Any) -> Any:
    """Return ``array[key]``."""
    at = resolve(array, key)
    result = at.target[at.key]
    if isinstance(result, SizedArray):
        return result
    if result.ndim == 0 and any(item is Ellipsis for item in (key if isinstance(key, tuple) else (key,))):
        return at.target[(*at.key, ...)]
    elements = wrapped(result, at.counts())
    if isinstance(elements, SizedArray) and not any(map(_is_array, at.items)):
        elements.part_of = array, _key_parts(key)
    return elements


# -- writing


def assign(array: Any, key: Any, value: Any) -> None:
    """Assign ``array[key] = value``."""
    if _is_part(array, key, value):
        return
    is_item = not any(map(_is_advanced, key if isinstance(key, tuple) else (key,)))
    require_storable(value, array.dtype, is_item=is_item)
    value = TracedArray(value_of(value)) if is_number(value) else value  # is checked once
    at = resolve(array, key)
    counts = at.counts()
    if at.frame.counts and at.sizes:
        _write_at_indices(at, lambda target, items: _assign_within(target, items, counts, value, is_indexed=True))
    elif at.frame.counts:
        _write_at_indices(at, lambda target, items: _assign_all(target, items, counts, value))
    elif counts:
        _assign_within(at.target, at.key, counts, value)
    else:
        assign_static(at.target, at.key, value if not isinstance(value, SizedArray) else _static_value(at, value))


def _is_advanced(item: Any) -> bool:
    if item is None or item is Ellipsis or isinstance(item, slice):
        return False
    is_array = isinstance(item, (list, SizedArray, bool, np.bool_)) or is_mask(item) or has_run_time_size(item)
    return is_array or _np.ndim(item) > 0


def _is_part(array: Any, key: Any, value: Any) -> bool:
    """Return whether a value is the view that a key selects, as it is after ``array[key] += x``."""
    if not isinstance(value, SizedArray) or value.part_of is None or value.part_of[0] is not array:
        return False
    return all(a is b for a, b in zip_longest(_key_parts(key), value.part_of[1], fillvalue=_MISSING))


def _key_parts(key: Any) -> list[Any]:
    """Return the integers of a basic index: their present values, since traced ones may be changed in place."""
    items = key if isinstance(key, tuple) else (key,)
    parts = [p for i in items for p in ((i.start, i.stop, i.step) if isinstance(i, slice) else (i,))]
    return [value_of(p).instruction if isinstance(p, TracedArray) else p for p in parts]


def _assign_within(
    target: TracedArray, key: Any, counts: Mapping[int, TracedArray], value: Any, *, is_indexed: bool = False
) -> None:
    """Assign to elements inside run-time sizes, but not to padding."""
    part: Any = target[key]
    region = SizedArray(part, counts)
    op = _value_like(region, value, is_indexed=is_indexed)
    target[key] = TracedArray(xla.select(value_of(valid(region)), op, value_of(part)))


def _assign_all(target: TracedArray, key: Any, counts: Mapping[int, TracedArray], value: Any) -> None:
    """Assign to elements of which those of the padding do not matter."""
    target[key] = TracedArray(_value_like(SizedArray(target[key], counts), value, is_indexed=True))


def _value_like(region: SizedArray, value: Any, *, is_indexed: bool) -> Any:
    """Convert a value to the dtype of a region, and broadcast it to its padded shape."""
    is_array = isinstance(value, (SizedArray, TracedArray)) or is_traced(value)
    if is_array or np.ndim(value):
        value = fit(value, region.shape, region.padded.shape, _ASSIGN_MESSAGE, is_indexed=is_indexed)
    op = convert_for_assignment(value, region.padded)
    leading = max(op.shape.rank - region.ndim, 0)
    if any(n != 1 for n in op.shape.dims[:leading]):
        raise ShapeError(f"could not broadcast input array from shape {op.shape.dims}", where=_trace.user_line())
    return broadcast_to(xla.reshape(op, op.shape.dims[leading:]) if leading else op, region.padded.shape)


_ASSIGN_MESSAGE = "could not broadcast input array from shape ({},) into shape ({},)"


def _write_at_indices(at: Index, write: Callable[[TracedArray, tuple[Any, ...]], None]) -> None:
    """Write to an array with one more element along a dimension, at which the padding of indices points."""
    k = next(k for k, counts in at.padding.items() if counts)
    axis = sum(map(_axes_used, at.items[:k]))
    size = at.target.shape[axis]
    items = list(at.items)
    block = np.broadcast_shapes(*[item.shape for item in at.items if _is_array(item)])
    numbers: Any = _np.broadcast_to(at.items[k].astype(np.int64), block)
    inside = is_within(value_of(numbers), {len(block) - d: value_of(n) for d, n in at.frame.counts.items()})
    items[k] = _np.where(TracedArray(inside), numbers, size)
    target = resized(at.target, axis, size + 1)
    write(target, tuple(items))
    at.target.overwrite(value_of(resized(TracedArray(value_of(target)), axis, size)))


def _static_value(at: Index, value: SizedArray) -> Any:
    """Return a value of run-time size for a region of known size, or for the elements of a mask."""
    region: Any = at.target[at.key]
    return value if isinstance(region, SizedArray) else fit(value, region.shape, region.shape, _ASSIGN_MESSAGE)


def update_at(ufunc: Any, array: Any, key: Any, value: Any) -> None:
    """Compute ``ufunc.at(array, key, value)``."""
    at = resolve(array, key)
    counts, operands = at.counts(), [] if value is None else [value]

    def write(target: TracedArray, items: tuple[Any, ...]) -> None:
        region = wrapped(target[items], counts)
        if isinstance(region, SizedArray):
            shape = region.padded.shape
            values = [fit(v, region.shape, shape, _ASSIGN_MESSAGE) for v in operands] if counts else operands
        else:
            values = [fit(v, region.shape, region.shape, _ASSIGN_MESSAGE) for v in operands]
        new = target.copy()
        ufunc.at(new, items, *values)
        op = value_of(new)
        if at.sizes:  # the padding may be another's elements
            inside = is_within(op, {d: value_of(n) for d, n in at.sizes.items()})
            op = xla.select(inside, op, value_of(target))
        target.overwrite(op)

    if at.frame.counts:
        _write_at_indices(at, write)
    else:
        write(at.target, at.key)


__all__ = ["assign", "get", "normalised", "update_at"]
