"""Sorting and bins: padding is filled with values that sort last."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from cyxla.numpy.sized.frames import align, fail_unless, leave_if, require_same_shape
from cyxla.numpy.sized.table import call, sized
from cyxla.numpy.tracing.arrays.sized_array import SizedArray, filled, valid
from cyxla.xla.hlo.builder import XlaOp
from cyxla.xla.lib import values

_np: Any = np  # its functions dispatch to this package


def last(op: XlaOp) -> XlaOp:
    """Return the element that sorts last in the dtype of a value."""
    dtype = values.numpy_type(op)
    if dtype.kind in "fV":
        return values.scalar(op, np.nan)
    if dtype.kind == "c":
        return values.scalar(op, complex(np.nan, np.nan))
    return values.scalar(op, True if dtype.kind == "b" else np.iinfo(dtype).max)


def flat_if_no_axis(array: Any, arguments: dict[str, Any], default: Any = -1) -> tuple[SizedArray, int]:
    """Return the array and the dimension of a function that flattens it for ``axis=None``."""
    axis = arguments.get("axis", default)
    if axis is None:
        return _np.ravel(array), 0
    return array, int(np.lib.array_utils.normalize_axis_index(axis, array.ndim))


@sized(np.sort, np.argsort)
def sort(func: Callable[..., Any], arguments: dict[str, Any]) -> Any:
    """Sort, or return the indices that sort."""
    array, axis = flat_if_no_axis(arguments["a"], arguments)
    return array.like(call(func, {**arguments, "a": filled(array, last, (axis,)), "axis": axis}))


@sized(np.partition, np.argpartition)
def partition(func: Callable[..., Any], arguments: dict[str, Any]) -> Any:
    """Partition by sorting; indices beyond the size fail at run time."""
    array, axis = flat_if_no_axis(arguments["a"], arguments)
    if axis not in array.counts:
        return array.like(call(func, {**arguments, "a": array.padded, "axis": axis}))
    count = array.counts[axis]
    for k in _np.ravel(np.asarray(arguments["kth"])).tolist():
        inside = _np.logical_and(_np.less(k, count), _np.greater_equal(k, -count))
        fail_unless(_np.logical_or(inside, _np.equal(count, 0)), abs(k), count, f"kth(={k}) out of bounds ({{1}})")
    by_sorting = np.sort if func.__name__ == "partition" else np.argsort
    return by_sorting(array, axis)


@sized(np.lexsort)
def lexsort(func: Callable[..., Any], arguments: dict[str, Any]) -> Any:
    """Return the indices that sort by several keys; padding comes last by a key of its own."""
    keys: Sequence[Any] = list(arguments["keys"])
    require_same_shape(keys, "all keys need to be the same shape", ValueError)
    aligned, frame = align(keys)
    if not frame.counts:
        return func(tuple(aligned), *([arguments["axis"]] if "axis" in arguments else []))
    first = frame.wrap(aligned[0])
    axis = int(np.lib.array_utils.normalize_axis_index(arguments.get("axis", -1), first.ndim))
    padding = [_np.logical_not(valid(first, (axis,)))] if axis in first.counts else []
    return frame.wrap(func((*aligned, *padding), axis))


@sized(np.sort_complex)
def sort_complex(func: Callable[..., Any], arguments: dict[str, Any]) -> Any:
    """Sort as complex numbers."""
    array = arguments["a"]
    dtype = array.dtype if array.dtype.kind == "c" else np.dtype("F" if array.dtype.char in "bhBH" else "D")
    return _np.sort(array, -1).astype(dtype)


# -- bins


def digitize(func: Callable[..., Any], arguments: dict[str, Any]) -> Any:
    """Return the bins of elements between edges of run-time size, which may increase or decrease."""
    points, edges, right = arguments["x"], arguments["bins"], arguments.get("right", False)
    for array, error in ((points, "x may not be complex"), (edges, "Cannot cast array data to dtype('float64')")):
        if getattr(array, "dtype", np.asarray(0).dtype).kind == "c":
            raise TypeError(error)
    if edges.ndim != 1:
        raise ValueError("object of too small depth for desired array" if not edges.ndim else "object too deep")
    rises, falls = (_np.any(test(edges[1:], edges[:-1])) for test in (np.greater, np.less))
    if edges.dtype.kind == "f":
        leave_if(_has_misplaced_nan(edges), "NumPy takes edges with nan for decreasing ones")
    message = "bins must be monotonically increasing or decreasing"
    fail_unless(_np.logical_not(_np.logical_and(rises, falls)), edges.count, edges.count, message, ValueError)
    side = "left" if right else "right"
    upwards = _np.searchsorted(edges, points, side)
    downwards = edges.count - _np.searchsorted(edges[::-1], points, side)
    return _np.where(falls, downwards, upwards)[()]


def _has_misplaced_nan(edges: SizedArray) -> Any:
    """Return True if edges have nan elsewhere than behind increasing ones."""
    is_nan = _np.not_equal(edges, edges)
    increases = _np.any(_np.greater(edges, edges[:1]))
    is_inside = _np.any(_np.logical_and(is_nan[:-1], _np.logical_not(is_nan[1:])))
    return _np.logical_and(_np.any(is_nan), _np.logical_or(is_inside, _np.logical_not(increases)))
