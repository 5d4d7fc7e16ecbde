"""Concatenation and splitting of arrays of run-time size."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from operator import index
from typing import Any

import numpy as np

from cyxla.errors import OutOfRangeError, ShapeError
from cyxla.numpy.indexing.stored_numbers import require_storable
from cyxla.numpy.sized.frames import fail_unless, fit, rank_of, require_equal, resized, wrapped
from cyxla.numpy.sized.table import call, sized
from cyxla.numpy.tracing.arrays.sized_array import SizedArray, as_size, is_sized, raise_unsupported
from cyxla.numpy.tracing.arrays.traced_array import TracedArray, as_traced, is_traced, value_of
from cyxla.numpy.tracing.results.promotion import result_type
from cyxla.numpy.tracing.trace import user_line
from cyxla.xla.hlo.builder import functions as xla

_np: Any = np  # its functions dispatch to this package
_MESSAGE = (
    "all the input array dimensions except for the concatenation axis must match exactly, but sizes are {} and {}"
)

_INSERT_MESSAGE = "could not broadcast input array: sizes are {} and {}"


@sized(np.concatenate)
def concatenate(func: Callable[..., Any], arguments: dict[str, Any]) -> Any:
    """Concatenate along an axis."""
    arrays, axis = list(arguments["arrays"]), arguments.get("axis", 0)
    if arguments.get("out") is not None:
        raise_unsupported("be concatenated with out=", "use the result")
    arrays = [a if isinstance(a, SizedArray) else _np.asarray(a) if is_sized(a) else as_traced(a) for a in arrays]
    kinds = [a.kind if isinstance(a, TracedArray) else a.dtype for a in arrays]
    if axis is None:
        arrays, axis = [_np.ravel(a) for a in arrays], 0
    ranks = {a.ndim for a in arrays}
    if len(ranks) > 1 or 0 in ranks:
        raise ShapeError("all the input array dimensions must match exactly in number", where=user_line())
    axis = int(np.lib.array_utils.normalize_axis_index(axis, ranks.pop()))
    dtype = arguments.get("dtype") or result_type(*kinds)
    arrays = [a.astype(dtype) for a in arrays]
    arrays = _with_equal_sizes(arrays, axis)
    return (
        _along(arrays, axis) if any(isinstance(a.shape[axis], TracedArray) for a in arrays) else _across(arrays, axis)
    )


def _with_equal_sizes(arrays: Sequence[Any], axis: int) -> list[Any]:
    """Return arrays padded to the same bounds but along an axis; runs in which their sizes differ fail."""
    datas = [a.padded if isinstance(a, SizedArray) else a for a in arrays]
    counts: dict[int, TracedArray] = {}
    for d in range(datas[0].ndim):
        sizes = [a.shape[d] for a in arrays]
        traced = [n for n in sizes if isinstance(n, TracedArray)]
        if d == axis:
            continue
        if not traced:
            if len(set(sizes)) > 1:
                raise ShapeError(_MESSAGE.format(*sorted(set(sizes))[:2]), where=user_line())
            continue
        for n in sizes:
            require_equal(traced[0], n, _MESSAGE)
        counts[d], bound = traced[0], max(x.shape[d] for x in datas)
        datas = [resized(x, d, bound) for x in datas]
    own = [{axis: a.counts[axis]} if isinstance(a, SizedArray) and axis in a.counts else {} for a in arrays]
    return [wrapped(x, {**counts, **n}) for x, n in zip(datas, own, strict=True)]


def _along(arrays: Sequence[Any], axis: int) -> SizedArray:
    """Concatenate along a run-time dimension: each array is written behind the one before it, over its padding."""
    sizes = [a.shape[axis] for a in arrays]
    datas = [value_of(a.padded if isinstance(a, SizedArray) else a) for a in arrays]
    bound = sum(x.shape.dims[axis] for x in datas)
    known = next((k for k, n in enumerate(sizes) if isinstance(n, TracedArray)), len(sizes)) + 1
    joined, end = xla.concatenate(datas[:known], axis), sum(sizes[1:known], start=sizes[0])
    joined = value_of(resized(TracedArray(joined), axis, bound))
    zero = value_of(as_traced(np.int64(0)))
    for data, size in zip(datas[known:], sizes[known:], strict=True):
        starts = [value_of(as_traced(end)) if d == axis else zero for d in range(data.shape.rank)]
        joined, end = xla.dynamic_update_slice(joined, data, starts), end + size
    counts = {d: n for a in arrays if isinstance(a, SizedArray) for d, n in a.counts.items()}
    counts[axis] = as_size(as_traced(end), bound)
    return SizedArray(TracedArray(joined), counts)


def _across(arrays: Sequence[Any], axis: int) -> SizedArray:
    """Concatenate along a dimension of known size."""
    first = next(a for a in arrays if isinstance(a, SizedArray))
    return first.like(_np.concatenate([a.padded if isinstance(a, SizedArray) else a for a in arrays], axis))


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


@sized(np.insert)
def insert(func: Callable[..., Any], arguments: dict[str, Any]) -> Any:
    """Insert values before one index."""
    array, values, axis = arguments["arr"], arguments["values"], arguments.get("axis")
    if axis is None:
        array, axis = _np.ravel(array), 0
    array = array if isinstance(array, SizedArray) else _np.asarray(array)
    axis = int(np.lib.array_utils.normalize_axis_index(axis, array.ndim))
    start = _first_index(arguments["obj"], array.shape[axis], axis)
    require_storable(values, array.dtype)
    values = _values_to_insert(values, array, axis)
    leading = [slice(None)] * axis
    parts = [array[(*leading, slice(None, start))], values, array[(*leading, slice(start, None))]]
    joined = _np.concatenate(parts, axis)
    if not isinstance(joined, SizedArray) or axis not in joined.counts:
        return joined
    bound = sum(x.padded.shape[axis] if isinstance(x, SizedArray) else x.shape[axis] for x in (array, values))
    return SizedArray(resized(joined.padded, axis, bound), joined.counts)


def _first_index(index_: Any, size: Any, axis: int) -> Any:
    """Return the index before which values are inserted, from the start; runs in which it is out of bounds fail."""
    if isinstance(index_, SizedArray) or np.ndim(index_) or as_traced(index_).dtype.kind not in "iu":
        raise_unsupported("be passed to np.insert with other indices than one integer", "use np.concatenate")
    number = index_ if is_traced(index_) else index(index_)
    message = f"index {{}} is out of bounds for axis {axis} with size {{}}"
    fits = _np.logical_and(_np.less_equal(number, size), _np.greater_equal(number + size, 0))
    fail_unless(fits, number, size, message, OutOfRangeError)
    return number if not is_traced(number) and number >= 0 else _np.where(_np.less(number, 0), number + size, number)


def _values_to_insert(values: Any, array: Any, axis: int) -> Any:
    """Return values with the sizes that an array has along the other dimensions."""
    values = values if isinstance(values, SizedArray) else _np.asarray(values)
    values = _np.expand_dims(values, tuple(range(array.ndim - values.ndim)))
    values = _np.moveaxis(values, 0, axis).astype(array.dtype)
    data, own = (values.padded, values.counts) if isinstance(values, SizedArray) else (values, {})
    if array.ndim == 1:
        return values
    padded = array.padded if isinstance(array, SizedArray) else array
    shape, bounds = list(array.shape), list(padded.shape)
    shape[axis], bounds[axis] = values.shape[axis], data.shape[axis]
    fitting = _np.broadcast_to(fit(values, shape, bounds, _INSERT_MESSAGE), tuple(bounds))
    counts = {d: n for d, n in array.counts.items() if d != axis} if isinstance(array, SizedArray) else {}
    return wrapped(fitting, counts | {d: n for d, n in own.items() if d == axis})


# -- splitting

_NUMBER_OF_PARTS = "the number of parts is known at run time only"


@sized(np.split, np.array_split, np.hsplit, np.vsplit, np.dsplit)
def split(func: Callable[..., Any], arguments: dict[str, Any]) -> Any:
    """Split along a dimension."""
    given, sections = arguments["ary"], arguments["indices_or_sections"]
    if isinstance(sections, SizedArray):
        raise_unsupported(f"be the indices of np.{func.__name__}", f"{_NUMBER_OF_PARTS}: use slices x[i:j] in a loop")
    array: Any = given if isinstance(given, SizedArray) else as_traced(given)
    fixed = {"vsplit": 0, "dsplit": 2, "hsplit": min(1, array.ndim - 1)}
    axis = fixed.get(func.__name__, arguments.get("axis", 0))
    axis = int(np.lib.array_utils.normalize_axis_index(axis, array.ndim))
    if isinstance(array, SizedArray) and axis not in array.counts and not is_traced(sections):
        return [array.like(part) for part in call(func, {**arguments, "ary": array.padded})]
    if not np.ndim(sections):
        return _equal_parts(array, axis, index(sections), exact=func.__name__ != "array_split")
    limits = [0, *(n if is_traced(n) else index(n) for n in sections), None]
    leading = [slice(None)] * axis
    return [array[(*leading, slice(first, last))] for first, last in pairwise(limits)]


def _equal_parts(array: SizedArray, axis: int, sections: int, *, exact: bool) -> list[Any]:
    """Split a dimension of run-time size into parts of equal sizes; unless exact, the first may be longer by one."""
    if sections <= 0:
        raise ValueError("number sections must be larger than 0.")
    size = array.counts[axis]
    length, extra = size // sections, size % sections
    if exact:
        message = "array split does not result in an equal division: {1} elements"
        fail_unless(_np.equal(extra, 0), extra, size, message, ValueError)
        limits = [k * length for k in range(sections)]
    else:
        limits = [k * length + _np.minimum(extra, k) for k in range(sections)]
    leading = [slice(None)] * axis
    return [array[(*leading, slice(as_traced(first), last))] for first, last in pairwise([*limits, None])]


@sized(np.unstack)
def unstack(func: Callable[..., Any], arguments: dict[str, Any]) -> Any:
    """Split into the arrays along a dimension of known size."""
    array = arguments["x"]
    axis = int(np.lib.array_utils.normalize_axis_index(arguments.get("axis", 0), array.ndim))
    if axis in array.counts:
        raise_unsupported("be unstacked along that dimension")
    return tuple([array[(*[slice(None)] * axis, k)] for k in range(array.padded.shape[axis])])
