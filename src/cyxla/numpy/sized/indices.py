"""Indices of elements, and elements at indices, of arrays of run-time size."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce
from operator import index
from typing import Any

import numpy as np

from cyxla.errors import InvalidArgumentError, OutOfRangeError
from cyxla.numpy.functions.resizing import kept_mask
from cyxla.numpy.indexing.bounds import fail_where
from cyxla.numpy.indexing.packing import nonzero_indices
from cyxla.numpy.sized.access import normalised
from cyxla.numpy.sized.creation import arange
from cyxla.numpy.sized.frames import rank_of, shape_of
from cyxla.numpy.sized.table import call, sized
from cyxla.numpy.tracing.arrays.sized_array import SizedArray, filled, is_sized, product, raise_unsupported
from cyxla.numpy.tracing.arrays.traced_array import TracedArray, as_strong, as_traced, is_traced, value_of
from cyxla.numpy.tracing.registry import implementation_of
from cyxla.numpy.tracing.results.conversion import convert
from cyxla.numpy.tracing.trace import require_current, user_line

_np: Any = np  # its functions dispatch to this package


def as_mask(array: SizedArray) -> TracedArray:
    """Return the mask of nonzero elements, false in the padding."""
    return filled(array.like(TracedArray(convert(value_of(array.padded), np.dtype(bool)))), False)


@sized(np.nonzero)
def nonzero(func: Callable[..., Any], arguments: dict[str, Any]) -> Any:
    """Return the indices of nonzero elements."""
    return nonzero_indices(value_of(as_mask(arguments["a"])))


@sized(np.argwhere)
def argwhere(func: Callable[..., Any], arguments: dict[str, Any]) -> Any:
    """Return the indices of nonzero elements as rows."""
    return _np.stack(_np.nonzero(arguments["a"]), axis=1)


@sized(np.flatnonzero)
def flatnonzero(func: Callable[..., Any], arguments: dict[str, Any]) -> Any:
    """Return the flat indices of nonzero elements."""
    return _np.nonzero(_np.ravel(arguments["a"]))[0]


@sized(np.take)
def take(func: Callable[..., Any], arguments: dict[str, Any]) -> Any:
    """Take elements along an axis."""
    array, indices, axis, mode = (arguments.get(n) for n in ("a", "indices", "axis", "mode"))
    if arguments.get("out") is not None:
        raise_unsupported("be computed with out=", "use the result")
    if not isinstance(array, SizedArray):
        array = as_traced(_np.asarray(array))
    if axis is None:
        array, axis = _np.ravel(array), 0
    axis = int(np.lib.array_utils.normalize_axis_index(axis, array.ndim))
    if mode in ("clip", "wrap"):
        size: Any = array.shape[axis]
        _fail_without_elements(array, axis, indices)
        indices = _np.clip(indices, 0, size - 1) if mode == "clip" else _np.remainder(indices, size)
    if not isinstance(indices, (SizedArray, TracedArray)):
        indices = np.asarray(indices)
    if indices.dtype.kind == "b":  # numbers here, not a mask
        indices = indices.astype(np.int64)
    others = [n for n in shape_of(array)[:axis] if isinstance(n, TracedArray)]
    if not others or not isinstance(array, SizedArray):
        return array[(*[slice(None)] * axis, indices)]
    has_elements = reduce(_np.logical_and, [_np.greater(n, 0) for n in others])
    indices = normalised(indices, array.shape[axis], axis, array.padded.shape[axis], has_elements)
    with require_current().program.bounds_mode("clamp"):
        return array[(*[slice(None)] * axis, indices)]


def _fail_without_elements(array: Any, axis: int, indices: Any) -> None:
    """Make runs fail that take elements from a dimension of size 0."""
    if (
        isinstance(array, SizedArray)
        and axis in array.counts
        and not isinstance(indices, SizedArray)
        and np.size(indices)
    ):
        where, count = user_line(), value_of(array.counts[axis])
        others = [n for d, n in array.counts.items() if d != axis]
        is_empty = value_of(
            reduce(_np.logical_and, [_np.equal(array.counts[axis], 0), *(_np.greater(n, 0) for n in others)])
        )
        message = "cannot do a non-empty take from an empty axes."
        require_current().fail_if(is_empty, count, lambda n: OutOfRangeError(message, where=where))


@sized(np.take_along_axis)
def take_along_axis(func: Callable[..., Any], arguments: dict[str, Any]) -> Any:
    """Take elements by an index for each position of the other axes."""
    array, indices, axis = arguments["arr"], arguments["indices"], arguments.get("axis", -1)
    if axis is None:
        array, axis = _np.ravel(array), 0
    rank = array.ndim
    axis = int(np.lib.array_utils.normalize_axis_index(axis, rank))
    if rank == 1:
        return array[indices]
    items = [indices if d == axis else _positions(n, d, rank) for d, n in enumerate(shape_of(array))]
    return (array if isinstance(array, SizedArray) else as_traced(array))[tuple(items)]


def _positions(size: Any, axis: int, rank: int) -> Any:
    """Return the indices of a dimension, as an array that is broadcast along the others."""
    numbers = arange(size) if is_traced(size) else np.arange(size)
    return numbers[tuple([slice(None) if d == axis else None for d in range(rank)])]


@sized(np.compress)
def compress(func: Callable[..., Any], arguments: dict[str, Any]) -> Any:
    """Select along an axis by bools."""
    array, axis = arguments["a"], arguments.get("axis")
    if arguments.get("out") is not None:
        raise_unsupported("be computed with out=", "use the result")
    if axis is None:
        array, axis = _np.ravel(array), 0
    array = array if isinstance(array, SizedArray) else _np.asarray(array)
    axis = int(np.lib.array_utils.normalize_axis_index(axis, array.ndim))
    return array[(*[slice(None)] * axis, _np.nonzero(arguments["condition"])[0])]


@sized(np.extract)
def extract(func: Callable[..., Any], arguments: dict[str, Any]) -> Any:
    """Return the elements where a condition holds."""
    return _np.take(_np.ravel(arguments["arr"]), _np.nonzero(_np.ravel(arguments["condition"]))[0])


# -- flat indices

_MODES = {"raise", "wrap", "clip"}


def _sizes(shape: Any) -> list[Any]:
    """Return the sizes of a shape, which may be one size."""
    sizes = list(shape) if isinstance(shape, (tuple, list)) or rank_of(shape) else [shape]
    return [n if is_traced(n) else index(n) for n in sizes]


def _strides(sizes: Sequence[Any], order: Any) -> list[Any]:
    """Return the distances of neighbours along each dimension."""
    if order not in ("C", "F"):
        raise ValueError(f"order must be one of 'C', 'F', 'A', or 'K' (got {order!r})")
    if order == "C":
        return _strides(sizes[::-1], "F")[::-1]
    return [product(sizes[:k]) for k in range(len(sizes))]


def _integers(value: Any) -> Any:
    """Return indices as an array of the machine's integers."""
    array = value if isinstance(value, SizedArray) else as_strong(value)
    if array.dtype.kind not in "iub":
        raise TypeError("only int indices permitted")
    return array.astype(np.int64)


def _fail_outside(indices: Any, size: Any, message: str) -> None:
    """Make runs fail in which an index is negative or not below a size."""
    outside = _np.logical_or(_np.less(indices, 0), _np.greater_equal(indices, size))
    flat = filled(outside, False) if isinstance(outside, SizedArray) else outside
    numbers = indices.padded if isinstance(indices, SizedArray) else indices
    if require_current().program.bounds == "raise" and flat.size:
        where = user_line()
        fail_where(
            require_current(), value_of(flat), value_of(numbers),
            lambda n: InvalidArgumentError(message.format(n), where=where),
        )  # fmt: skip


@sized(np.unravel_index)
def unravel_index(func: Callable[..., Any], arguments: dict[str, Any]) -> Any:
    """Convert flat indices to indices of each dimension, whose sizes may be traced."""
    indices, sizes = _integers(arguments["indices"]), _sizes(arguments["shape"])
    total = product(sizes)
    if not sizes:
        raise_unsupported("be the indices of an array without dimensions", "pass its shape")
    size = "the size of the shape" if is_traced(total) else f"size {total}"
    _fail_outside(indices, total, f"index {{}} is out of bounds for array with {size}")
    strides = _strides(sizes, arguments.get("order", "C"))
    return tuple([indices // _at_least_one(s) % _at_least_one(n) for s, n in zip(strides, sizes, strict=True)])


def _at_least_one(size: Any) -> Any:
    return _np.maximum(size, 1) if is_traced(size) else max(size, 1)


@sized(np.ravel_multi_index)
def ravel_multi_index(func: Callable[..., Any], arguments: dict[str, Any]) -> Any:
    """Convert indices of each dimension to flat ones."""
    sizes, parts = _sizes(arguments["dims"]), list(arguments["multi_index"])
    if len(parts) != len(sizes):
        raise ValueError(f"parameter multi_index must be a sequence of length {len(sizes)}")
    mode = arguments.get("mode", "raise")
    modes = mode if isinstance(mode, tuple) else (mode,) * len(sizes)
    if len(modes) != len(sizes):
        raise ValueError(f"list of clipmodes has wrong length ({len(modes)} instead of {len(sizes)})")
    indices = _np.broadcast_arrays(*map(_integers, parts))
    strides = _strides(sizes, arguments.get("order", "C"))
    terms = [_limited(i, n, m) * s for i, n, m, s in zip(indices, sizes, modes, strides, strict=True)]
    return reduce(_np.add, terms)


def _limited(indices: Any, size: Any, mode: Any) -> Any:
    """Return indices within a size; runs in which it has no elements to take fail."""
    if mode not in _MODES:
        raise ValueError(f"clipmode must be one of 'clip', 'raise', or 'wrap' (got {mode!r})")
    message = "invalid entry in coordinates array"
    _fail_outside(indices if mode == "raise" else indices * 0, size, message)
    if mode == "raise":
        return indices
    return _np.remainder(indices, _at_least_one(size)) if mode == "wrap" else _np.clip(indices, 0, size - 1)


@sized(np.delete)
def delete(func: Callable[..., Any], arguments: dict[str, Any]) -> Any:
    """Delete the elements at indices."""
    array, axis = arguments["arr"], arguments.get("axis")
    if axis is None:
        array, axis = _np.ravel(array), 0
    axis = int(np.lib.array_utils.normalize_axis_index(axis, array.ndim))
    if isinstance(arguments["obj"], (list, tuple)) and not arguments["obj"]:
        arguments = {**arguments, "obj": np.zeros(0, np.int64)}
    if is_sized(arguments["obj"]) and not isinstance(array, SizedArray):
        kept = kept_mask(array.shape[axis], arguments["obj"], axis)
    elif isinstance(array, SizedArray) and axis in array.counts:
        kept = kept_mask(array.counts[axis], arguments["obj"], axis, array.padded.shape[axis])
    else:
        return array.like(call(func, {**arguments, "arr": array.padded, "axis": axis}))
    return array[(*[slice(None)] * axis, kept)]


@sized(
    np.unique, np.unique_all, np.unique_counts, np.unique_inverse, np.unique_values, np.union1d, np.setdiff1d,
    np.setxor1d, np.intersect1d, np.trim_zeros,
)  # fmt: skip
def set_function(func: Callable[..., Any], arguments: dict[str, Any]) -> Any:
    """Compute a function whose implementation takes arrays of run-time size, too."""
    return implementation_of(func)(**arguments)
