"""Windows of arrays of run-time size, and functions that write to their argument."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from operator import index
from typing import Any

import numpy as np

from cyxla.errors import OutOfRangeError, ShapeError, TraceError
from cyxla.numpy.functions.creation import require_castable
from cyxla.numpy.indexing.equal_values import same_size
from cyxla.numpy.indexing.stored_numbers import require_storable
from cyxla.numpy.sized.access import normalised
from cyxla.numpy.sized.creation import arange
from cyxla.numpy.sized.frames import array_of, fail_unless, padded_of, rank_of, require_equal, shape_of
from cyxla.numpy.sized.table import sized
from cyxla.numpy.tracing.arrays.sized_array import SizedArray, as_size, raise_unsupported
from cyxla.numpy.tracing.arrays.traced_array import TracedArray, as_traced, is_traced
from cyxla.numpy.tracing.trace import user_line
from cyxla.numpy.ufuncs.apply import require_in_range

_np: Any = np  # its functions dispatch to this package
_MODES = ("raise", "clip", "wrap")


# -- windows


@sized(np.lib.stride_tricks.sliding_window_view)
def sliding_window_view(func: Callable[..., Any], arguments: dict[str, Any]) -> Any:
    """Return a read-only view of all windows; runs fail in which a window is longer than its dimension."""
    array, window, axis = arguments["x"], arguments["window_shape"], arguments.get("axis")
    if arguments.get("writeable"):
        raise_unsupported("be viewed by windows that are written to", "overlapping windows share elements")
    windows = [index(n) for n in (window if isinstance(window, (tuple, list)) else [window])]
    axes = range(array.ndim) if axis is None else np.lib.array_utils.normalize_axis_tuple(axis, array.ndim, None, True)
    view = func(array.padded, tuple(windows), axis)  # raises if no array of up to this size has such windows
    counts = dict(array.counts)
    for d, n in zip(axes, windows, strict=True):
        if d in counts:
            message = "window shape cannot be larger than input array shape: {1} and {0}"
            fail_unless(_np.greater_equal(counts[d], n), counts[d], n, message, ValueError)
            counts[d] = as_size(as_traced(_np.maximum(counts[d] - (n - 1), 0)), view.shape[d])
    return SizedArray(view, counts)


# -- operands of functions that write


def _target(array: Any, name: str) -> Any:
    """Return the array that a function writes to."""
    if not isinstance(array, (SizedArray, TracedArray)):
        raise TraceError(
            f"{name}: traced values cannot be written to a {type(array).__name__}", where=user_line(),
            hint="write to a traced array, such as np.zeros_like(x) of a traced x",
        )  # fmt: skip
    return array


def _flat(value: Any) -> Any:
    """Return the elements of anything that is an array for NumPy as a vector."""
    array = array_of(value)
    return array if array.ndim == 1 else _np.ravel(array)


def _castable(values: Any, dtype: Any) -> Any:
    """Return values as a vector of a dtype; an array must have a dtype that is safe to convert to it."""
    require_storable(values, dtype)
    is_array = isinstance(values, (SizedArray, TracedArray, np.ndarray)) and rank_of(values)
    if is_array and not np.can_cast(values.dtype, dtype, "safe"):
        raise TypeError(f"Cannot cast array data from {values.dtype!r} to {dtype!r} according to the rule 'safe'")
    return _flat(values).astype(dtype)


def _like(array: Any, data: Any) -> Any:
    return array.like(data) if isinstance(array, SizedArray) else data


def _range(size: Any) -> Any:
    """Return the integers below a size, which may be traced."""
    return arange(size) if is_traced(size) else as_traced(np.arange(size))


def _coordinate(array: Any, axis: int) -> Any:
    """Return the indices of a dimension, as an array that is broadcast along the others."""
    return _range(array.shape[axis])[tuple([slice(None) if d == axis else None for d in range(array.ndim)])]


def _is_same_shape(first: Sequence[Any], second: Sequence[Any]) -> bool:
    """Return True if two shapes are known to be equal in all runs."""
    return len(first) == len(second) and all(
        same_size(n, m) if is_traced(n) and is_traced(m) else not is_traced(n) and not is_traced(m) and n == m
        for n, m in zip(first, second, strict=True)
    )


def _shaped(values: Any, array: Any, message: str) -> Any:
    """Return values in the shape of an array, in row-major order; runs fail in which they are more or fewer."""
    if _is_same_shape(shape_of(values), shape_of(array)):
        return values
    flat, size = _flat(values), array.size
    if not is_traced(flat.size) and not is_traced(size):
        if flat.size != size:
            raise ShapeError(message, where=user_line())
        return _np.reshape(flat, array.shape)
    require_equal(flat.size, size, message)
    if not isinstance(flat, SizedArray):
        flat = flat[:size]
    return _np.reshape(flat, array.shape)


def _cycled(values: Any, positions: Callable[[], Any]) -> Any:
    """Return the values of a vector at positions, counted from its first value again behind its last.

    Of no values the result has any; it has rank 0 if it does not depend on the positions.
    """
    data, size = padded_of(values), values.shape[0]
    if data.shape[0] < 2:
        return data[0] if data.shape[0] else np.zeros((), data.dtype)
    numbers = _np.remainder(positions(), _np.maximum(size, 1))
    return _like(numbers, _np.take(data, padded_of(numbers), mode="clip"))


def _has_elements(vector: Any) -> Any:
    """Return whether a vector has elements: a bool, traced if that is known at run time."""
    size = vector.shape[0]
    return _np.greater(size, 0) if is_traced(size) else size > 0


# -- writing to elements by their index


def _indices(value: Any) -> Any:
    """Return indices as a vector of 64-bit integers.

    Raises
    ------
    TypeError
        They are floats.
    """
    is_array = isinstance(value, (SizedArray, TracedArray, np.ndarray, np.generic))
    indices = _flat(value)
    if is_array and not np.can_cast(indices.dtype, np.int64, "safe"):
        raise TypeError(f"Cannot cast array data from {indices.dtype!r} to dtype('int64') according to the rule 'safe'")
    return indices.astype(np.int64)


def _write_flat(array: Any, positions: Any, values: Any) -> None:
    """Write to elements by their row-major index, which may be negative; runs with others fail."""
    if array.ndim == 1:
        array[positions] = values
        return
    rest = normalised(positions, array.size, 0, padded_of(array).size)
    coordinates: list[Any] = []
    for n in reversed(array.shape):
        size = _np.maximum(n, 1)
        coordinates.insert(0, _np.remainder(rest, size))
        rest = _np.floor_divide(rest, size)
    if coordinates:
        array[tuple(coordinates)] = values
    else:
        _np.reshape(array, 1)[positions] = values


@sized(np.put)
def put(func: Callable[..., Any], arguments: dict[str, Any]) -> None:
    """Write to elements by their row-major index; values repeat if they are too few."""
    array, mode = _target(arguments["a"], "put"), arguments.get("mode", "raise")
    if mode not in _MODES:
        raise ValueError(f"clipmode must be one of 'clip', 'raise', or 'wrap' (got {mode!r})")
    require_storable(arguments["v"], array.dtype)
    indices, values = _indices(arguments["ind"]), _flat(arguments["v"]).astype(array.dtype)
    size = array.size
    _fail_if_nowhere(indices, size)
    has_values = _has_elements(values)
    if has_values is False or not padded_of(indices).size or not padded_of(array).size:
        return
    if has_values is not True:  # without values nothing is written, to no index
        indices = indices[: _np.where(has_values, indices.shape[0], 0)]
    if mode != "raise":
        last = _np.maximum(size, 1) - 1
        indices = _np.clip(indices, 0, last) if mode == "clip" else _np.remainder(indices, last + 1)
    _write_flat(array, indices, _cycled(values, lambda: _range(indices.shape[0])))


def _fail_if_nowhere(indices: Any, size: Any) -> None:
    """Make runs fail in which an array has no elements to write to."""
    message, count = "cannot replace elements of an empty array", indices.shape[0]
    if not is_traced(size) and not is_traced(count):
        if count and not size:
            raise OutOfRangeError(message, where=user_line())
        return
    possible = _np.logical_or(_np.greater(size, 0), _np.equal(count, 0))
    fail_unless(possible, 0, 0, message, OutOfRangeError)


@sized(np.put_along_axis)
def put_along_axis(func: Callable[..., Any], arguments: dict[str, Any]) -> None:
    """Write to the elements that `take_along_axis` reads."""
    array, axis = _target(arguments["arr"], "put_along_axis"), arguments.get("axis", -1)
    indices, values = array_of(arguments["indices"]), arguments["values"]
    if indices.dtype.kind not in "iu":
        raise IndexError("`indices` must be an integer array")
    if axis is None:
        if indices.ndim != 1:
            raise ValueError("when axis=None, `indices` must have a single dimension.")
        _write_flat(array, indices, values)
        return
    if indices.ndim != array.ndim:
        raise ValueError("`indices` and `arr` must have the same number of dimensions")
    axis = int(np.lib.array_utils.normalize_axis_index(axis, array.ndim))
    array[tuple([indices if d == axis else _coordinate(array, d) for d in range(array.ndim)])] = values


# -- writing under a mask


def _replace(array: Any, mask: Any, values: Any) -> None:
    """Write values where a mask of the same shape is true."""
    array[...] = _np.where(mask, values, array)


@sized(np.putmask)
def putmask(func: Callable[..., Any], arguments: dict[str, Any]) -> None:
    """Write where a mask is true, to each element the value at its index."""
    array, given = _target(arguments["a"], "putmask"), arguments["values"]
    mask = _shaped(array_of(arguments["mask"]).astype(bool), array, "putmask: mask and data must be the same size")
    values = _castable(given, array.dtype)
    if _is_same_shape(shape_of(given), shape_of(array)):
        _replace(array, mask, array_of(given).astype(array.dtype))
        return
    chosen = _cycled(values, lambda: _shaped(_range(array.size), array, ""))
    _replace(array, _np.logical_and(mask, _has_elements(values)), chosen)


@sized(np.place)
def place(func: Callable[..., Any], arguments: dict[str, Any]) -> None:
    """Write where a mask is true, one value after the other."""
    array = _target(arguments["arr"], "place")
    mask = _shaped(array_of(arguments["mask"]).astype(bool), array, "place: mask and data must be the same size")
    values = _castable(arguments["vals"], array.dtype)
    has_values = _has_elements(values)
    if has_values is not True:
        possible = _np.logical_or(has_values, _np.logical_not(_np.any(mask)))
        fail_unless(possible, 0, 0, "Cannot insert from an empty array!", ValueError)
    chosen = _cycled(values, lambda: _shaped(_np.cumsum(_flat(mask), dtype=np.int64) - 1, array, ""))
    _replace(array, mask, chosen)


@sized(np.copyto)
def copyto(func: Callable[..., Any], arguments: dict[str, Any]) -> None:
    """Copy the elements of one array to another, or those where a mask is true."""
    array, source = _target(arguments["dst"], "copyto"), array_of(arguments["src"])
    require_castable(padded_of(source), array.dtype, arguments.get("casting", "same_kind"))
    require_in_range(arguments["src"], array.dtype)
    source = source.astype(array.dtype)
    where = arguments.get("where", True)
    if where is True:
        array[...] = source
        return
    mask = array_of(where)
    if mask.dtype.kind != "b":
        raise TypeError(f"Cannot cast array data from {mask.dtype!r} to dtype('bool') according to the rule 'safe'")
    if mask.ndim > array.ndim:
        raise ValueError(f"could not broadcast where mask from rank {mask.ndim} into rank {array.ndim}")
    _replace(array, mask, source)


@sized(np.fill_diagonal)
def fill_diagonal(func: Callable[..., Any], arguments: dict[str, Any]) -> None:
    """Write to the main diagonal; values repeat if they are too few, and the diagonal in tall matrices with wrap=."""
    array, wrap = _target(arguments["a"], "fill_diagonal"), arguments.get("wrap", False)
    if array.ndim < 2:
        raise ValueError("array must be at least 2-d")
    values = _flat(arguments["val"]).astype(array.dtype)
    if array.ndim > 2:
        _require_equal_sizes(array.shape)
    row = _coordinate(array, 0)
    mask = _np.equal(row, _coordinate(array, 1))
    for d in range(2, array.ndim):
        mask = _np.logical_and(mask, _np.equal(row, _coordinate(array, d)))
    if wrap and array.ndim == 2:
        position: Any = row * array.shape[1] + _coordinate(array, 1)
        mask, row = _np.equal(position % (array.shape[1] + 1), 0), position // (array.shape[1] + 1)
    _replace(array, _np.logical_and(mask, _has_elements(values)), _cycled(values, lambda: row))


def _require_equal_sizes(sizes: Sequence[Any]) -> None:
    """Make runs fail in which the sizes of an array differ."""
    message = "All dimensions of input must be of equal length"
    for n in sizes[1:]:
        if is_traced(n) or is_traced(sizes[0]):
            require_equal(sizes[0], n, message, ValueError)
        elif n != sizes[0]:
            raise ValueError(message)
