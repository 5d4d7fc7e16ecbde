"""Concatenation of arrays of run-time size."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from cyxla.errors import ShapeError
from cyxla.numpy.indexing.packing import pack
from cyxla.numpy.sized.elementwise import contains_sized
from cyxla.numpy.sized.frames import rank_of, require_equal, resized
from cyxla.numpy.sized.table import sized
from cyxla.numpy.tracing.promotion import result_type
from cyxla.numpy.tracing.sized_array import SizedArray, as_size, raise_unsupported, valid
from cyxla.numpy.tracing.trace import user_line
from cyxla.numpy.tracing.traced_array import TracedArray, as_traced, value_of
from cyxla.xla.hlo.builder import functions as xla

_np: Any = np  # its functions dispatch to this package
_MESSAGE = (
    "all the input array dimensions except for the concatenation axis must match exactly, but sizes are {} and {}"
)


@sized(np.concatenate)
def concatenate(func: Callable[..., Any], arguments: dict[str, Any]) -> Any:
    """Concatenate along an axis."""
    arrays, axis = list(arguments["arrays"]), arguments.get("axis", 0)
    if arguments.get("out") is not None:
        raise_unsupported("be concatenated with out=", "use the result")
    arrays = [a if isinstance(a, SizedArray) else _np.asarray(a) if contains_sized(a) else as_traced(a) for a in arrays]
    if axis is None:
        arrays, axis = [_np.ravel(a) for a in arrays], 0
    ranks = {a.ndim for a in arrays}
    if len(ranks) > 1 or 0 in ranks:
        raise ShapeError("all the input array dimensions must match exactly in number", where=user_line())
    axis = int(np.lib.array_utils.normalize_axis_index(axis, ranks.pop()))
    dtype = arguments.get("dtype") or result_type(*[a.dtype for a in arrays])
    arrays = [a.astype(dtype) for a in arrays]
    axes = {a.axis for a in arrays if isinstance(a, SizedArray)}
    if axes == {axis}:
        return _along(arrays, axis)
    if len(axes) > 1:
        raise_unsupported("be concatenated with one whose run-time dimension is another")
    return _across(arrays, axis, axes.pop())


def _along(arrays: Sequence[Any], axis: int) -> SizedArray:
    """Concatenate along the run-time dimension: elements that are not padding are packed."""
    sizes = [a.count if isinstance(a, SizedArray) else a.shape[axis] for a in arrays]
    datas = [a.data if isinstance(a, SizedArray) else a for a in arrays]
    joined = _np.concatenate(datas, axis)
    total: Any = sum(sizes[1:], start=sizes[0])
    count = as_size(as_traced(total), joined.shape[axis])
    if not any(isinstance(a, SizedArray) for a in arrays[:-1]):  # all padding is at the end already
        return SizedArray(joined, axis, count)
    inside = [_mask(a, axis) for a in arrays]
    rows = _np.moveaxis(joined, axis, 0)
    (packed,), _ = pack(value_of(_np.concatenate(inside)), [value_of(rows)])
    return SizedArray(TracedArray(value_of(_np.moveaxis(TracedArray(packed), 0, axis))), axis, count)


def _mask(array: Any, axis: int) -> TracedArray:
    """Return the mask of the elements along an axis that are not padding."""
    if not isinstance(array, SizedArray):
        return as_traced(np.ones(array.shape[axis], bool))
    line = TracedArray(xla.broadcast(xla.constant(value_of(array.data).builder, False), (array.bound,)))
    return valid(SizedArray(line, 0, array.count))


def _across(arrays: Sequence[Any], axis: int, sized_axis: int) -> SizedArray:
    """Concatenate along another dimension; the run-time sizes must be equal."""
    first = next(a for a in arrays if isinstance(a, SizedArray))
    bound = max(a.bound if isinstance(a, SizedArray) else a.shape[sized_axis] for a in arrays)
    for a in arrays:
        size = a.count if isinstance(a, SizedArray) else a.shape[sized_axis]
        require_equal(first.count, size, _MESSAGE)
    datas = [resized(a.data if isinstance(a, SizedArray) else a, sized_axis, bound) for a in arrays]
    return SizedArray(_np.concatenate(datas, axis), sized_axis, first.count)


@sized(np.stack)
def stack(func: Callable[..., Any], arguments: dict[str, Any]) -> Any:
    """Stack along a new axis."""
    arrays, axis = list(arguments["arrays"]), arguments.get("axis", 0)
    if len({rank_of(a) for a in arrays}) > 1:
        raise ValueError("all input arrays must have the same shape")
    axis = int(np.lib.array_utils.normalize_axis_index(axis, rank_of(arrays[0]) + 1))
    return _np.concatenate([_np.expand_dims(a, axis) for a in arrays], axis, **_options(arguments))


@sized(np.vstack, np.hstack, np.dstack, np.column_stack)
def stack_dimension(func: Callable[..., Any], arguments: dict[str, Any]) -> Any:
    """Stack along the first, second or third dimension."""
    arrays = list(arguments["tup"])
    if func.__name__ == "column_stack":
        return _np.concatenate([_np.atleast_2d(a).T if rank_of(a) < 2 else a for a in arrays], 1)
    at_least = {"vstack": _np.atleast_2d, "hstack": _np.atleast_1d, "dstack": _np.atleast_3d}[func.__name__]
    arrays = [at_least(a) for a in arrays]
    axis = {"vstack": 0, "dstack": 2}.get(func.__name__, 0 if rank_of(arrays[0]) == 1 else 1)
    return _np.concatenate(arrays, axis, **_options(arguments))


def _options(arguments: dict[str, Any]) -> dict[str, Any]:
    return {n: arguments[n] for n in ("dtype",) if arguments.get(n) is not None}


@sized(np.append)
def append(func: Callable[..., Any], arguments: dict[str, Any]) -> Any:
    """Append values."""
    array, values, axis = arguments["arr"], arguments["values"], arguments.get("axis")
    if axis is None:
        array, values, axis = _np.ravel(array), _np.ravel(values), 0
    return _np.concatenate([array, values], axis)
