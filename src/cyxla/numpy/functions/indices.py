"""Functions of indices: take, put, where."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from operator import index
from typing import Any, Literal

import numpy as np
from numpy.lib.array_utils import normalize_axis_index

from cyxla.errors import InvalidArgumentError, OutOfRangeError, ShapeError, TraceError, UnimplementedError
from cyxla.numpy.functions.movement import ravel, resolve_axis
from cyxla.numpy.indexing.access import assign, convert_for_assignment, get, make_plan
from cyxla.numpy.indexing.bounds import fail_where
from cyxla.numpy.indexing.packing import nonzero_indices
from cyxla.numpy.indexing.parse import parse
from cyxla.numpy.indexing.ranges import range_of
from cyxla.numpy.tracing import trace as _trace
from cyxla.numpy.tracing.arrays.known_array import values_of
from cyxla.numpy.tracing.arrays.sized_array import SizedArray
from cyxla.numpy.tracing.arrays.traced_array import TracedArray, as_strong, as_traced, is_traced, value_of
from cyxla.numpy.tracing.hooks import hooks
from cyxla.numpy.tracing.registry import implements
from cyxla.numpy.tracing.results.conversion import convert
from cyxla.numpy.tracing.results.promotion import result_type
from cyxla.numpy.tracing.trace import require_current
from cyxla.numpy.ufuncs.apply import broadcast_together
from cyxla.xla.hlo.builder import XlaOp
from cyxla.xla.hlo.builder import functions as xla

Array = TracedArray
_MODES = {"raise": None, "wrap": "wrap", "clip": "clip"}
_MAX_SIZE = int(np.iinfo(np.intp).max)  # greatest number of elements of an array
_MAX_SELECTS = 8  # greatest number of choices for which a chain of selects is emitted


def _mode(name: Any) -> str | None:
    if name not in _MODES:
        raise ValueError(f"clipmode must be one of 'clip', 'raise', or 'wrap' (got {name!r})")
    return _MODES[name]


def _convert_indices(value: Any, casting: Literal["safe", "same_kind"] = "safe") -> Any:
    """Convert indices of take and put to integers of the machine's size, or bools."""
    known = values_of(value) if isinstance(value, (np.ndarray, TracedArray)) else None
    if not isinstance(value, (np.ndarray, np.generic, TracedArray)):
        return _convert_index_list(value)
    result = known if known is not None else value
    if not np.can_cast(result.dtype, np.int64, casting):
        raise TypeError(
            f"Cannot cast array data from {result.dtype!r} to dtype('int64') according to the rule {casting!r}"
        )
    return result.astype(np.int64) if result.dtype.char in "?LQ" else result


def _convert_index_list(value: Any) -> Any:
    try:
        return np.array(value, np.int64)  # truncates floats in lists
    except TraceError:
        return _convert_indices(as_traced(value))


def _require_traced(value: Any, name: str) -> Array:
    if not isinstance(value, TracedArray):
        raise TraceError(
            f"{name}: traced values cannot be written to a {type(value).__name__}", where=_trace.user_line(),
            hint="write to a traced array, such as np.zeros_like(x) of a traced x",
        )  # fmt: skip
    return value


# -- looking up


@implements(np.take)
def take(a: Any, indices: Any, axis: Any = None, out: Any = None, mode: str = "raise") -> Array:
    """Take elements or slices along an axis."""
    array, dimension = resolve_axis(a, axis)
    index_array = _convert_indices(indices, "same_kind")
    if array.shape[dimension] == 0 and index_array.size:
        raise OutOfRangeError("cannot do a non-empty take from an empty axes.", where=_trace.user_line())
    selected = get(array, (*[slice(None)] * dimension, index_array), _mode(mode))
    result = TracedArray(value_of(selected))
    return result if out is None else _to_out(result, out, "take")


def _to_out(result: Array, out: Any, name: str) -> Array:
    target = _require_traced(out, name)
    _check_out_shape(result, target, name)
    if not np.can_cast(target.dtype, result.dtype, "safe"):
        raise TypeError(
            f"Cannot cast array data from {target.dtype!r} to {result.dtype!r} according to the rule 'safe'"
        )
    assign(target, ..., result)
    return target


def _check_out_shape(result: Array, target: Array, name: str) -> None:
    if target.shape != result.shape:
        raise ValueError(f"output array does not match result of ndarray.{name}")


def _index_expression(array: Array, indices: Array, axis: Any) -> tuple[Any, ...]:
    """Return the index expression of take_along_axis, with ranges along all other axes."""
    if indices.dtype.kind not in "iu":
        raise IndexError("`indices` must be an integer array")
    if array.ndim != indices.ndim:
        raise ValueError("`indices` and `arr` must have the same number of dimensions")
    dimension = normalize_axis_index(axis, array.ndim)
    shapes = [[-1 if d == k else 1 for k in range(array.ndim)] for d in range(array.ndim)]
    coordinates = [np.arange(n).reshape(shape_) for n, shape_ in zip(array.shape, shapes, strict=True)]
    return tuple(indices if d == dimension else coordinate for d, coordinate in enumerate(coordinates))


@implements(np.take_along_axis)
def take_along_axis(arr: Any, indices: Any, axis: Any = -1) -> Array:
    """Take elements along an axis by an index for each position of the other axes."""
    array, index_array = as_strong(arr), as_strong(indices)
    if axis is None:
        if index_array.ndim != 1:
            raise ValueError("when axis=None, `indices` must have a single dimension.")
        array, axis = ravel(array), 0
    return get(array, _index_expression(array, index_array, axis))  # type: ignore[no-any-return]


@implements(np.put_along_axis)
def put_along_axis(arr: Any, indices: Any, values: Any, axis: Any) -> None:
    """Write to the elements that `take_along_axis` reads."""
    array, index_array = _require_traced(arr, "put_along_axis"), as_strong(indices)
    if axis is None:
        if index_array.ndim != 1:
            raise ValueError("when axis=None, `indices` must have a single dimension.")
        _write_flat(array, _index_expression(ravel(array), index_array, 0), values, None)
        return
    assign(array, _index_expression(array, index_array, axis), values)


@implements(np.choose)
def choose(a: Any, choices: Any, out: Any = None, mode: str = "raise") -> Array:
    """Select each element from the choice whose index `a` holds."""
    selector = as_strong(_convert_indices(a))
    choice_arrays = [as_traced(c) for c in choices]
    dtype = result_type(*[c.kind for c in choice_arrays])
    ops = broadcast_together([value_of(selector), *[convert(value_of(c), dtype) for c in choice_arrays]], "choose")
    selector_op = _normalize_selector(ops[0], len(choice_arrays), _mode(mode))
    result = TracedArray(_select_by_index(selector_op, ops[1:]))
    if out is None:
        return result
    target = _require_traced(out, "choose")
    _check_out_shape(result, target, "choose")
    target.overwrite(convert(value_of(result), target.dtype))  # to any dtype, unlike those of `take`
    return target


def _normalize_selector(op: XlaOp, count: int, mode: str | None) -> XlaOp:
    trace = require_current()
    dtype = np.dtype(op.shape.dtype.numpy_dtype)
    op64 = op if dtype == np.int64 else xla.convert(op, "s64")
    first, last = (trace.constant(n, np.dtype(np.int64)) for n in (0, count - 1))
    if mode == "wrap":
        remainder: Any = np.remainder(TracedArray(op64), count)
        return value_of(remainder)
    if mode is None:
        _fail_if_out_of_bounds(op64, count, "invalid entry in choice array")
    return xla.clamp(first, op64, last)


def _select_by_index(selector: XlaOp, choices: Sequence[XlaOp]) -> XlaOp:
    if len(choices) > _MAX_SELECTS:
        sizes = selector.shape.dims
        stacked = xla.concatenate([xla.reshape(c, (1, *sizes)) for c in choices], 0)
        gathered = take_along_axis(TracedArray(stacked), TracedArray(xla.reshape(selector, (1, *sizes))), 0)
        return xla.reshape(value_of(gathered), sizes)
    result = choices[-1]
    for k in range(len(choices) - 2, -1, -1):
        candidate = xla.broadcast(require_current().constant(k, np.dtype(np.int64)), selector.shape.dims)
        result = xla.select(xla.eq(selector, candidate), choices[k], result)
    return result


def _fail_if_out_of_bounds(op: XlaOp, size: int, message: str) -> None:
    """Make runs raise an error if an integer is not in 0 .. size - 1; the message may show it as {}."""
    trace = require_current()
    low, high = range_of(op)
    if (low >= 0 and high < size) or not op.shape.size or trace.program.bounds != "raise":
        return
    numbers = [xla.broadcast(trace.constant(n, np.dtype(np.int64)), op.shape.dims) for n in (0, size)]
    out_of_bounds = xla.or_(xla.lt(op, numbers[0]), xla.ge(op, numbers[1]))
    where = _trace.user_line()
    fail_where(trace, out_of_bounds, op, lambda number: InvalidArgumentError(message.format(number), where=where))


# -- writing


def _write_flat(array: Array, key: Any, values: Any, mode: str | None) -> None:
    """Write to elements by their row-major index."""
    flat = TracedArray(xla.reshape(value_of(array), (array.size,)))
    plan: Any = make_plan(parse(key, flat.shape, mode), flat)
    op = convert_for_assignment(values, array)
    op = xla.reshape(op, plan.result) if op.shape.size == np.prod(plan.result) else xla.broadcast(op, plan.result)
    array.overwrite(xla.reshape(plan.write(value_of(flat), op), array.shape))


@implements(np.put)
def put(a: Any, ind: Any, v: Any, mode: str = "raise") -> None:
    """Write to elements by their row-major index; values repeat if they are too few."""
    array, index_array = _require_traced(a, "put"), _convert_indices(ind)
    if index_array.size == 0:
        return
    if array.size == 0:
        raise OutOfRangeError("cannot replace elements of an empty array", where=_trace.user_line())
    values = _flatten_values(v, array)
    if values.size == 0:
        return
    _write_flat(array, index_array.reshape(-1), _repeat_to_count(values, index_array.size), _mode(mode))


def _flatten_values(values: Any, array: Array) -> Array:
    op = convert_for_assignment(values, array)
    return TracedArray(xla.reshape(op, (op.shape.size,)))


def _flatten_castable(values: Any, array: Array) -> Array:
    """Flatten values after a check of their dtype; lists are converted to that of the array."""
    if isinstance(values, (np.ndarray, TracedArray)):
        source = as_traced(values)
        if source.ndim and not np.can_cast(source.dtype, array.dtype, "safe"):
            raise TypeError(
                f"Cannot cast array data from {source.dtype!r} to {array.dtype!r} according to the rule 'safe'"
            )
    return _flatten_values(values, array)


def _repeat_to_count(values: Array, count: int) -> Array:
    """Repeat elements up to a count."""
    if values.size == count:
        return values
    return get(values, np.arange(count) % values.size) if values.size > 1 else values.reshape(())  # type: ignore[no-any-return]


def _mask_like(mask: Any, array: Array, name: str) -> XlaOp:
    op = value_of(as_traced(mask, bool))
    if op.shape.size != array.size:
        raise ShapeError(f"{name}: mask and data must be the same size", where=_trace.user_line())
    return xla.reshape(op, array.shape)


@implements(np.putmask)
def putmask(a: Any, /, mask: Any, values: Any) -> None:
    """Write where a mask is true, to each element the value at its index."""
    array = _require_traced(a, "putmask")
    mask_op = _mask_like(mask, array, "putmask")
    new_values = _flatten_castable(values, array)
    if new_values.size == 0 or array.size == 0:
        return
    op = value_of(_repeat_to_count(new_values, array.size))
    op = xla.reshape(op, array.shape) if op.shape.size == array.size else xla.broadcast(op, array.shape)
    array.overwrite(xla.select(mask_op, op, value_of(array)))


@implements(np.place)
def place(arr: Any, mask: Any, vals: Any) -> None:
    """Write where a mask is true, one value after the other."""
    if not isinstance(arr, TracedArray):
        raise TypeError(f"argument 1 must be numpy.ndarray, not {type(arr).__name__}")
    mask_op = _mask_like(mask, arr, "place")
    new_values = _flatten_castable(vals, arr)
    if new_values.size == 0:
        _fail_if_any_selected(mask_op)
        return
    if new_values.size == 1:
        expanded = xla.broadcast(xla.reshape(value_of(new_values), ()), arr.shape)
    else:
        positions = np.cumsum(np.ravel(TracedArray(mask_op)), dtype=np.int64) - 1
        expanded = xla.reshape(value_of(get(new_values, np.remainder(positions, new_values.size))), arr.shape)
    arr.overwrite(xla.select(mask_op, expanded, value_of(arr)))


def _fail_if_any_selected(selected: XlaOp) -> None:
    where = _trace.user_line()
    if selected.shape.size:
        fail_where(require_current(), selected, xla.convert(selected, "s64"), lambda _: InvalidArgumentError(
            "Cannot insert from an empty array!", where=where
        ))  # fmt: skip


# -- masks


@implements(np.where)
def where(condition: Any, x: Any = np._NoValue, y: Any = np._NoValue, /) -> Any:
    """Select elements of one array where a condition holds, else of another."""
    if x is np._NoValue:
        return nonzero(condition)
    if y is np._NoValue:
        raise ValueError("either both or neither of x and y should be given")
    arrays = [as_traced(v) for v in (x, y)]
    dtype = result_type(*[a.kind for a in arrays])
    mask = value_of(as_traced(condition, bool))
    return TracedArray(xla.select(*broadcast_together([mask, *[convert(value_of(a), dtype) for a in arrays]], "where")))


@implements(np.nonzero)
def nonzero(a: Any) -> tuple[Any, ...]:
    """Return the indices of nonzero elements, whose number is known at run time."""
    array = as_strong(a)
    if not array.ndim:
        raise ValueError(
            "Calling nonzero on 0d arrays is not allowed. Use np.atleast_1d(scalar).nonzero() instead. If the context "
            "of this error is of the form `arr[nonzero(cond)]`, just use `arr[cond]`."
        )
    return nonzero_indices(value_of(as_traced(array, bool)))


@implements(np.argwhere)
def argwhere(a: Any) -> Any:
    """Return the indices of nonzero elements as rows."""
    array = as_strong(a)
    if not array.ndim:
        (rows,) = nonzero(ravel(array))
        return SizedArray(TracedArray(xla.reshape(value_of(rows.padded[:0]), (1, 0))), {0: rows.count})
    stack: Any = np.stack  # dispatches to this package
    return stack(nonzero(array), axis=1)


@implements(np.flatnonzero)
def flatnonzero(a: Any) -> Any:
    """Return the flat indices of nonzero elements."""
    return nonzero(ravel(as_strong(a)))[0]


@implements(np.compress)
def compress(condition: Any, a: Any, axis: Any = None, out: Any = None) -> Any:
    """Select along an axis by a list of bools."""
    known = None if is_traced(condition) else values_of(np.asarray(condition))
    if (condition.ndim if isinstance(condition, TracedArray) else np.ndim(condition)) != 1:
        raise ValueError("condition must be a 1-d array")
    if known is not None:
        return take(a, np.nonzero(known)[0], axis, out)
    if out is not None:
        raise UnimplementedError(
            "numpy.compress with out= and a traced condition cannot be traced", where=_trace.user_line(),
            hint="use the result",
        )  # fmt: skip
    array, dimension = resolve_axis(a, axis)
    return array[(*[slice(None)] * dimension, nonzero(condition)[0])]


@implements(np.extract)
def extract(condition: Any, arr: Any) -> Any:
    """Return the elements where a condition holds."""
    flat = ravel(as_strong(arr))
    if is_traced(condition):
        mask = ravel(as_traced(condition, bool))
        return get(flat, mask) if mask.shape == flat.shape else flat[nonzero(mask)[0]]
    return take(flat, np.nonzero(np.ravel(np.asarray(condition)))[0])


# -- flat indices


@implements(np.ravel_multi_index)
def ravel_multi_index(multi_index: Any, dims: Any, mode: Any = "raise", order: str = "C") -> Array:
    """Convert indices to flat ones."""
    if is_traced(dims):
        flat: Array = hooks.sized_function(np.ravel_multi_index, (multi_index, dims, mode, order), {})
        return flat
    sizes = tuple(index(n) for n in (np.atleast_1d(dims).tolist()))
    strides = _strides(sizes, order)
    if any(n > _MAX_SIZE for n in [*strides, prod(sizes)]):
        raise ValueError("invalid dims: array size defined by dims is larger than the maximum possible size.")
    index_arrays = [as_strong(p) for p in multi_index]
    if len(index_arrays) != len(sizes):
        raise ValueError(f"parameter multi_index must be a sequence of length {len(sizes)}")
    for part, array in zip(multi_index, index_arrays, strict=True):
        _check_integral(part, array)
    index_arrays = [p.astype(np.int64) if p.dtype.kind == "b" else p for p in index_arrays]
    modes = mode if isinstance(mode, tuple) else (mode,) * len(sizes)
    if len(modes) != len(sizes):
        raise ValueError(f"list of clipmodes has wrong length ({len(modes)} instead of {len(sizes)})")
    if 0 in sizes and all(p.size for p in index_arrays):
        raise ValueError("cannot unravel if shape has zero entries (is empty).")
    ops = broadcast_together([value_of(p) for p in index_arrays], "ravel_multi_index")
    coordinates = [_apply_mode(op, n, m) for op, n, m in zip(ops, sizes, modes, strict=True)]
    total: Any = 0
    for part, stride in zip(coordinates, strides, strict=True):
        total = total + part * stride
    return total  # type: ignore[no-any-return]


def _check_integral(value: Any, array: Array) -> None:
    """Refuse indices that are not integers."""
    if array.dtype.kind in "iub":
        return
    if isinstance(value, (list, tuple)) and not array.size:
        raise TypeError(
            "indices must be integral: the provided empty sequence was inferred as float. Wrap it with "
            "'np.array(indices, dtype=np.intp)'"
        )
    raise TypeError("only int indices permitted")


def _strides(sizes: Sequence[int], order: str) -> list[int]:
    if order not in ("C", "F"):
        raise ValueError(f"order must be one of 'C', 'F', 'A', or 'K' (got {order!r})")
    ordered_sizes = list(sizes) if order == "F" else list(sizes)[::-1]
    strides = [prod(ordered_sizes[:k]) for k in range(len(ordered_sizes))]
    return strides if order == "F" else strides[::-1]


def _apply_mode(op: XlaOp, size: int, mode: Any) -> Any:
    op64 = op if op.shape.dtype.numpy_dtype == np.int64 else xla.convert(op, "s64")
    name = _mode(mode)
    if name == "wrap":
        return np.remainder(TracedArray(op64), size)
    if name == "clip":
        limits = [require_current().constant(n, np.dtype(np.int64)) for n in (0, size - 1)]
        return TracedArray(xla.clamp(limits[0], op64, limits[1]))
    _fail_if_out_of_bounds(op64, size, "invalid entry in coordinates array")
    return TracedArray(op64)


@implements(np.unravel_index)
def unravel_index(indices: Any, shape: Any, order: str = "C") -> tuple[Array, ...]:
    """Convert flat indices to indices of each dimension."""
    if is_traced(shape):
        parts: tuple[Array, ...] = hooks.sized_function(np.unravel_index, (indices, shape, order), {})
        return parts
    sizes = (int(shape),) if isinstance(shape, (int, np.integer)) else tuple(index(n) for n in shape)
    index_array = as_strong(indices)
    _check_integral(indices, index_array)
    if prod(sizes) > _MAX_SIZE:
        raise ValueError(
            "dimensions are too large; arrays and shapes with a total size greater than 'intp' are not supported."
        )
    strides = _strides(sizes, order)
    op = value_of(index_array)
    op64 = op if index_array.dtype == np.int64 else xla.convert(op, "s64")
    total = prod(sizes)
    _fail_if_out_of_bounds(op64, total, f"index {{}} is out of bounds for array with size {total}")
    if not sizes and index_array.ndim:
        message = "multiple indices are not supported for 0d arrays"
        trace = require_current()
        zero = trace.constant(0, np.dtype(np.int64))
        trace.fail_if(
            xla.eq(zero, zero), zero, lambda _: ValueError(message)
        )  # after the check of indices out of range
    value: Any = TracedArray(op64)
    return tuple(value // stride % n for stride, n in zip(strides, sizes, strict=True))
