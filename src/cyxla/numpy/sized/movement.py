"""Permutations and repetition of arrays of run-time size."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from operator import index
from typing import Any

import numpy as np

from cyxla.numpy.functions.resizing import repeat_by_counts
from cyxla.numpy.indexing.equal_values import same_size
from cyxla.numpy.indexing.ranges import declare_range, range_of, range_within_size
from cyxla.numpy.sized.creation import bound_of, bounded_size
from cyxla.numpy.sized.frames import (
    align,
    fail_unless,
    fit,
    leave_if,
    padded_of,
    rank_of,
    require_equal,
    resized,
    shape_of,
    wrapped,
)
from cyxla.numpy.sized.slices import slice_along
from cyxla.numpy.sized.table import call, sized
from cyxla.numpy.tracing.arrays.sized_array import SizedArray, as_size, filled, raise_unsupported
from cyxla.numpy.tracing.arrays.traced_array import TracedArray, as_strong, as_traced, is_traced, value_of

_np: Any = np  # its functions dispatch to this package


def _moved(func: Callable[[Any], Any], array: SizedArray) -> Any:
    """Return NumPy's result of a function that permutes dimensions, or inserts some of size 1."""
    marked = _np.broadcast_to(np.int8(0), range(2, array.ndim + 2))  # each dimension has a size of its own
    positions = func(marked).shape
    return SizedArray(func(array.padded), {positions.index(d + 2): n for d, n in array.counts.items()})


@sized(
    np.transpose, np.swapaxes, np.moveaxis, np.rollaxis, np.expand_dims, np.matrix_transpose,
    np.linalg.matrix_transpose,
)  # fmt: skip
def permute(func: Callable[..., Any], arguments: dict[str, Any]) -> Any:
    """Permute dimensions, or insert some of size 1."""
    name = next(iter(arguments))
    return _moved(lambda array: call(func, {**arguments, name: array}), arguments[name])


@sized(np.atleast_1d, np.atleast_2d, np.atleast_3d)
def at_least(func: Callable[..., Any], arguments: dict[str, Any]) -> Any:
    """Add dimensions."""
    results = [_at_least(func, a) for a in arguments["arys"]]
    return results[0] if len(results) == 1 else tuple(results)


def _at_least(func: Callable[..., Any], array: Any) -> Any:
    return _moved(func, array) if isinstance(array, SizedArray) else func(array)


@sized(np.squeeze)
def squeeze(func: Callable[..., Any], arguments: dict[str, Any]) -> Any:
    """Remove dimensions of size 1; NumPy runs where a run-time dimension that is not named has that size."""
    array, axis = arguments["a"], arguments.get("axis")
    if axis is None:
        axes = tuple(d for d, n in enumerate(array.padded.shape) if n == 1 and d not in array.counts)
        message = "np.squeeze: a dimension of run-time size has size 1: name the dimensions by axis="
        for n in array.counts.values():
            leave_if(_np.equal(n, 1), message)
    else:
        axes = tuple(np.lib.array_utils.normalize_axis_tuple(axis, array.ndim))
    data, counts = array.padded, {}
    for d, n in array.counts.items():
        if d in axes:
            require_equal(n, 1, "cannot select an axis to squeeze out which has size not equal to one ({})")
            data = data[(*[slice(None)] * d, slice(0, 1))] if data.shape[d] else resized(data, d, 1)
        else:
            counts[d - sum(a < d for a in axes)] = n
    return wrapped(func(data, axes), counts)


@sized(np.shape)
def shape(func: Callable[..., Any], arguments: dict[str, Any]) -> Any:
    """Return the shape, with a traced integer."""
    return arguments["a"].shape


@sized(np.ndim)
def ndim(func: Callable[..., Any], arguments: dict[str, Any]) -> Any:
    """Return the rank."""
    return arguments["a"].ndim


@sized(np.size)
def size(func: Callable[..., Any], arguments: dict[str, Any]) -> Any:
    """Return the number of elements, or a dimension size."""
    axis = arguments.get("axis")
    return arguments["a"].size if axis is None else arguments["a"].shape[axis]


# -- reversal, rotation, repetition


@sized(np.flip, np.flipud, np.fliplr)
def flip(func: Callable[..., Any], arguments: dict[str, Any]) -> Any:
    """Reverse dimensions."""
    array = arguments["m"]
    fixed = {"flipud": 0, "fliplr": 1}
    axis = fixed.get(func.__name__, arguments.get("axis"))
    axes = range(array.ndim) if axis is None else np.lib.array_utils.normalize_axis_tuple(axis, array.ndim)
    for d in array.counts.keys() & set(axes):
        array = slice_along(array, d, slice(None, None, -1))
    others = tuple(d for d in axes if d not in array.counts)
    return array.like(_np.flip(array.padded, others)) if others else array


@sized(np.rot90)
def rot90(func: Callable[..., Any], arguments: dict[str, Any]) -> Any:
    """Rotate by 90 degrees in the plane of two dimensions."""
    array, k, axes = arguments["m"], index(arguments.get("k", 1)) % 4, arguments.get("axes", (0, 1))
    first, second = np.lib.array_utils.normalize_axis_tuple(axes, array.ndim)
    if k == 2:
        return _np.flip(array, (first, second))
    array = _np.flip(array, second) if k == 1 else array
    array = _np.swapaxes(array, first, second) if k else array
    return _np.flip(array, second) if k == 3 else array


@sized(np.roll)
def roll(func: Callable[..., Any], arguments: dict[str, Any]) -> Any:
    """Rotate elements along a dimension."""
    array, shift, axis = arguments["a"], arguments["shift"], arguments.get("axis")
    if not isinstance(shift, (tuple, list)) and rank_of(shift):
        raise_unsupported("be rotated by an array of shifts", "pass a tuple of shifts, and one of dimensions")
    if isinstance(shift, (tuple, list)) or isinstance(axis, (tuple, list)):
        shifts, axes = _np.broadcast_arrays(shift, axis)
        for s, d in zip(shifts.tolist(), axes.tolist(), strict=True):
            array = _np.roll(array, s, d)
        return array
    if axis is None:
        flat = _roll_along(_np.ravel(array), shift, 0)
        return flat if array.ndim == 1 else _np.reshape(flat, array.shape)
    axis = int(np.lib.array_utils.normalize_axis_index(axis, array.ndim))
    if axis in array.counts:
        return _roll_along(array, shift, axis)
    return array.like(_np.roll(array.padded, shift, axis))


def _roll_along(array: SizedArray, shift: Any, axis: int) -> SizedArray:
    bound = array.padded.shape[axis]
    if not bound:
        return array
    source: Any = _np.remainder(np.arange(bound) - shift, _np.maximum(array.counts[axis], 1))
    return array.like(_np.take(array.padded, source, axis=axis, mode="clip"))


@sized(np.tile)
def tile(func: Callable[..., Any], arguments: dict[str, Any]) -> Any:
    """Repeat an array as a whole, a number of times that may be traced."""
    array, reps = arguments["A"], arguments["reps"]
    data, own = (array.padded, array.counts) if isinstance(array, SizedArray) else (as_traced(array), {})
    counts = list(reps) if isinstance(reps, (tuple, list)) else [reps] if is_traced(reps) else np.ravel(reps).tolist()
    counts = [bounded_size(n) if is_traced(n) else index(n) for n in counts]
    if any(n < 0 for n in counts if not is_traced(n)):
        raise ValueError("negative dimensions are not allowed")
    rank = max(data.ndim, len(counts))
    counts = [1] * (rank - len(counts)) + counts
    data = data.reshape((*[1] * (rank - data.ndim), *data.shape))
    sizes = {d + rank - array.ndim: n for d, n in own.items()}
    data = _np.tile(data, [1 if d in sizes else bound_of(n) if is_traced(n) else n for d, n in enumerate(counts)])
    for axis, count in enumerate(counts):
        if axis in sizes and not (type(count) is int and count == 1):
            bound = data.shape[axis] * (bound_of(count) if is_traced(count) else count)
            source: Any = _np.remainder(np.arange(bound), _np.maximum(sizes[axis], 1))
            data = _np.take(data, source, axis=axis, mode="clip") if bound else resized(data, axis, bound)
            sizes[axis] = as_size(as_traced(sizes[axis] * count), bound)
        elif is_traced(count):
            once = data.shape[axis] // bound_of(count) if bound_of(count) else 0
            sizes[axis] = as_size(as_traced(count * once), data.shape[axis])
    return wrapped(data, sizes)


@sized(np.repeat)
def repeat(func: Callable[..., Any], arguments: dict[str, Any]) -> Any:
    """Repeat each element a number of times."""
    array, repeats, axis = arguments["a"], arguments["repeats"], arguments.get("axis")
    if axis is None:
        array = _np.ravel(array if isinstance(array, SizedArray) else as_strong(array))
    axis = 0 if axis is None else int(np.lib.array_utils.normalize_axis_index(axis, array.ndim))
    if isinstance(repeats, SizedArray) or is_traced(repeats) or np.size(repeats) != 1:
        sizes = dict(array.counts) if isinstance(array, SizedArray) else {}
        data = padded_of(array)
        if isinstance(repeats, SizedArray):
            repeats = _counts_of(repeats, sizes.get(axis, data.shape[axis]), data.shape[axis])
        repeated = repeat_by_counts(data, sizes.get(axis), repeats, axis)
        return SizedArray(repeated.padded, sizes | repeated.counts)
    count = index(np.asarray(repeats).reshape(()).item())
    data = _np.repeat(array.padded, count, axis)
    if axis not in array.counts:
        return array.like(data)
    return SizedArray(data, {**array.counts, axis: as_size(as_traced(array.counts[axis] * count), data.shape[axis])})


def _counts_of(repeats: SizedArray, size: Any, bound: int) -> Any:
    """Return a count for each of some elements; one count stands for all of them."""
    is_one: Any = _np.equal(repeats.count, 1)
    message = "operands could not be broadcast together: {} counts of {}"
    fail_unless(_np.logical_or(is_one, _np.equal(repeats.count, size)), repeats.count, size, message, ValueError)
    counts = filled(repeats, 0)
    if repeats.bound == 0:
        return resized(counts, 0, bound)
    each: Any = _np.where(is_one, counts[:1], resized(counts, 0, bound))
    low, high = range_within_size(value_of(repeats.padded))
    declare_range(value_of(each), min(low, 0), max(high, 0))
    return each


@sized(np.broadcast_arrays)
def broadcast_arrays(func: Callable[..., Any], arguments: dict[str, Any]) -> Any:
    """Broadcast arrays together."""
    aligned, frame = align(arguments["args"])
    return tuple(frame.wrap(list(func(*aligned))))


@sized(np.broadcast_to)
def broadcast_to(func: Callable[..., Any], arguments: dict[str, Any]) -> Any:
    """Broadcast an array to a shape."""
    shape = arguments["shape"]
    return broadcast_to_sizes(arguments["array"], list(shape) if isinstance(shape, (tuple, list)) else [shape])


def broadcast_to_sizes(array: Any, sizes: Sequence[Any]) -> Any:
    """Broadcast an array of known or of run-time size to sizes, some of which may be traced."""
    sizes = [bounded_size(n) if is_traced(n) else index(n) for n in sizes]
    if rank_of(array) > len(sizes):
        raise ValueError("input operand has more dimensions than allowed by the axis remapping")
    own = shape_of(array)
    bounds = [range_of(value_of(n))[1] if is_traced(n) else n for n in sizes]
    for k in range(1, len(own) + 1):  # an array of one size has the bound of that size
        if isinstance(own[-k], TracedArray) and is_traced(sizes[-k]) and same_size(own[-k], sizes[-k]):
            bounds[-k] = min(bounds[-k], array.padded.shape[-k])
    message = "operands could not be broadcast together with remapped shapes: {} to {}"
    data = fit(array, sizes, bounds, message, as_view=True)
    return wrapped(_np.broadcast_to(data, bounds), {d: n for d, n in enumerate(sizes) if is_traced(n)})
