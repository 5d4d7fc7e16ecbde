"""Functions of indices: take, put, where."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from operator import index
from typing import Any, Literal, NoReturn

import numpy as np
from numpy.lib.array_utils import normalize_axis_index

from cyxla.errors import InvalidArgumentError, OutOfRangeError, ShapeError, TraceError, UnimplementedError
from cyxla.numpy.functions.movement import along, array_of, ravel
from cyxla.numpy.indexing.access import as_type_of, assign, get, plan_of
from cyxla.numpy.indexing.bounds import fail_where
from cyxla.numpy.indexing.parse import parse
from cyxla.numpy.indexing.ranges import range_of
from cyxla.numpy.tracing import trace as _trace
from cyxla.numpy.tracing.conversion import convert
from cyxla.numpy.tracing.known_array import values_of
from cyxla.numpy.tracing.promotion import result_type
from cyxla.numpy.tracing.registry import implements
from cyxla.numpy.tracing.trace import require_current
from cyxla.numpy.tracing.traced_array import TracedArray, as_traced, value_of
from cyxla.numpy.ufuncs.apply import broadcast_together
from cyxla.xla.hlo.builder import XlaOp
from cyxla.xla.hlo.builder import functions as xla

Array = TracedArray
_MODES = {"raise": None, "wrap": "wrap", "clip": "clip"}
_MOST = int(np.iinfo(np.intp).max)  # most elements of an array
_SELECTS = 8  # most choices that are all computed and then selected from
_WHERE = "np.where(mask, x, other) keeps the size; x[mask] = v, x[mask].sum() and np.count_nonzero can be traced"


def _mode(name: Any) -> str | None:
    if name not in _MODES:
        raise ValueError(f"clipmode must be one of 'clip', 'raise', or 'wrap' (got {name!r})")
    return _MODES[name]


def _indices(value: Any, casting: Literal["safe", "same_kind"] = "safe") -> Any:
    """Convert indices of take and put to integers of the machine's size, or bools."""
    known = values_of(value) if isinstance(value, (np.ndarray, TracedArray)) else None
    if not isinstance(value, (np.ndarray, np.generic, TracedArray)):
        return _listed(value)
    made = known if known is not None else value
    if not np.can_cast(made.dtype, np.int64, casting):
        raise TypeError(
            f"Cannot cast array data from {made.dtype!r} to dtype('int64') according to the rule {casting!r}"
        )
    return made.astype(np.int64) if made.dtype.char in "?LQ" else made


def _listed(value: Any) -> Any:
    try:
        return np.array(value, np.int64)  # numbers in lists are truncated
    except TraceError:
        return _indices(as_traced(value))


def _target(value: Any, name: str) -> Array:
    if not isinstance(value, TracedArray):
        raise TraceError(
            f"{name}: traced values cannot be written to a {type(value).__name__}", where=_trace.user_line(),
            hint="write to np.zeros_like(x), or to a copy",
        )  # fmt: skip
    return value


# -- looking up


@implements(np.take)
def take(a: Any, indices: Any, axis: Any = None, out: Any = None, mode: str = "raise") -> Array:
    """Take elements or slices along an axis."""
    array, at = along(a, axis)
    wanted = _indices(indices, "same_kind")
    if array.shape[at] == 0 and wanted.size:
        raise OutOfRangeError("cannot do a non-empty take from an empty axes.", where=_trace.user_line())
    found = get(array, (*[slice(None)] * at, wanted), _mode(mode))
    made = TracedArray(value_of(found))
    return made if out is None else _to_out(made, out, "take")


def _to_out(made: Array, out: Any, name: str) -> Array:
    target = _target(out, name)
    if target.shape != made.shape:
        raise ValueError(f"output array does not match result of ndarray.{name}")
    if not np.can_cast(target.dtype, made.dtype, "safe"):
        raise TypeError(f"Cannot cast array data from {target.dtype!r} to {made.dtype!r} according to the rule 'safe'")
    assign(target, ..., made)
    return target


def _along(array: Array, indices: Array, axis: Any) -> tuple[Any, ...]:
    """Return the index expression of take_along_axis, with ranges along all other axes."""
    if indices.dtype.kind not in "iu":
        raise IndexError("`indices` must be an integer array")
    if array.ndim != indices.ndim:
        raise ValueError("`indices` and `arr` must have the same number of dimensions")
    along = normalize_axis_index(axis, array.ndim)
    sides = [[-1 if d == k else 1 for k in range(array.ndim)] for d in range(array.ndim)]
    places = [np.arange(n).reshape(side) for n, side in zip(array.shape, sides, strict=True)]
    return tuple(indices if d == along else place for d, place in enumerate(places))


@implements(np.take_along_axis)
def take_along_axis(arr: Any, indices: Any, axis: Any = -1) -> Array:
    """Take elements along an axis by an index for each position of the other axes."""
    array, wanted = array_of(arr), array_of(indices)
    if axis is None:
        if wanted.ndim != 1:
            raise ValueError("when axis=None, `indices` must have a single dimension.")
        array, axis = ravel(array), 0
    return get(array, _along(array, wanted, axis))  # type: ignore[no-any-return]


@implements(np.put_along_axis)
def put_along_axis(arr: Any, indices: Any, values: Any, axis: Any) -> None:
    """Write to the elements that `take_along_axis` reads."""
    array, wanted = _target(arr, "put_along_axis"), array_of(indices)
    if axis is None:
        if wanted.ndim != 1:
            raise ValueError("when axis=None, `indices` must have a single dimension.")
        _write_flat(array, _along(ravel(array), wanted, 0), values, None)
        return
    assign(array, _along(array, wanted, axis), values)


@implements(np.choose)
def choose(a: Any, choices: Any, out: Any = None, mode: str = "raise") -> Array:
    """Select each element from the choice whose index `a` holds."""
    number = array_of(_indices(a))
    listed = [as_traced(c) for c in choices]
    dtype = result_type(*[c.kind for c in listed])
    ops = broadcast_together([value_of(number), *[convert(value_of(c), dtype) for c in listed]], "choose")
    which = _chosen(ops[0], len(listed), _mode(mode))
    made = TracedArray(_pick(which, ops[1:]))
    return made if out is None else _to_out(made, out, "choose")


def _chosen(op: XlaOp, count: int, mode: str | None) -> XlaOp:
    trace = require_current()
    like = np.dtype(op.shape.dtype.numpy_dtype)
    wide = op if like == np.int64 else xla.convert(op, "s64")
    first, last = (trace.constant(n, np.dtype(np.int64)) for n in (0, count - 1))
    if mode == "wrap":
        rest: Any = np.remainder(TracedArray(wide), count)
        return value_of(rest)
    if mode is None:
        _require_inside(wide, count, "invalid entry in choice array")
    return xla.clamp(first, wide, last)


def _pick(which: XlaOp, choices: Sequence[XlaOp]) -> XlaOp:
    if len(choices) > _SELECTS:
        sizes = which.shape.dims
        stacked = xla.concatenate([xla.reshape(c, (1, *sizes)) for c in choices], 0)
        found = take_along_axis(TracedArray(stacked), TracedArray(xla.reshape(which, (1, *sizes))), 0)
        return xla.reshape(value_of(found), sizes)
    made = choices[-1]
    for k in range(len(choices) - 2, -1, -1):
        number = xla.broadcast(require_current().constant(k, np.dtype(np.int64)), which.shape.dims)
        made = xla.select(xla.eq(which, number), choices[k], made)
    return made


def _require_inside(op: XlaOp, size: int, message: str) -> None:
    """Make runs raise an error if an integer is not in 0 .. size - 1; the message may show it as {}."""
    trace = require_current()
    low, high = range_of(op)
    if (low >= 0 and high < size) or not op.shape.size or trace.program.bounds != "raise":
        return
    numbers = [xla.broadcast(trace.constant(n, np.dtype(np.int64)), op.shape.dims) for n in (0, size)]
    bad = xla.or_(xla.lt(op, numbers[0]), xla.ge(op, numbers[1]))
    where = _trace.user_line()
    fail_where(trace, bad, op, lambda number: InvalidArgumentError(message.format(number), where=where))


# -- writing


def _write_flat(array: Array, key: Any, values: Any, mode: str | None) -> None:
    """Write to elements by their row-major index."""
    flat = TracedArray(xla.reshape(value_of(array), (array.size,)))
    plan: Any = plan_of(parse(key, flat.shape, mode), flat)
    op = as_type_of(values, array)
    op = xla.reshape(op, plan.result) if op.shape.size == np.prod(plan.result) else xla.broadcast(op, plan.result)
    array.overwrite(xla.reshape(plan.write(value_of(flat), op), array.shape))


@implements(np.put)
def put(a: Any, ind: Any, v: Any, mode: str = "raise") -> None:
    """Write to elements by their row-major index; values repeat if they are too few."""
    array, places = _target(a, "put"), _indices(ind)
    if places.size == 0:
        return
    if array.size == 0:
        raise OutOfRangeError("cannot replace elements of an empty array", where=_trace.user_line())
    values = _flat(v, array)
    if values.size == 0:
        return
    _write_flat(array, places.reshape(-1), _repeated(values, places.size), _mode(mode))


def _flat(values: Any, array: Array) -> Array:
    op = as_type_of(values, array)
    return TracedArray(xla.reshape(op, (op.shape.size,)))


def _flat_safely(values: Any, array: Array) -> Array:
    """Flatten values after a check of their dtype; lists are converted to that of the array."""
    if isinstance(values, (np.ndarray, TracedArray)):
        have = as_traced(values)
        if have.ndim and not np.can_cast(have.dtype, array.dtype, "safe"):
            raise TypeError(
                f"Cannot cast array data from {have.dtype!r} to {array.dtype!r} according to the rule 'safe'"
            )
    return _flat(values, array)


def _repeated(values: Array, count: int) -> Array:
    """Repeat elements up to a count."""
    if values.size == count:
        return values
    return get(values, np.arange(count) % values.size) if values.size > 1 else values.reshape(())  # type: ignore[no-any-return]


def _flat_mask(mask: Any, array: Array, name: str) -> XlaOp:
    op = value_of(as_traced(mask, bool))
    if op.shape.size != array.size:
        raise ShapeError(f"{name}: mask and data must be the same size", where=_trace.user_line())
    return xla.reshape(op, array.shape)


@implements(np.putmask)
def putmask(a: Any, /, mask: Any, values: Any) -> None:
    """Write where a mask is true, to each element the value at its index."""
    array = _target(a, "putmask")
    chosen = _flat_mask(mask, array, "putmask")
    new = _flat_safely(values, array)
    if new.size == 0 or array.size == 0:
        return
    op = value_of(_repeated(new, array.size))
    op = xla.reshape(op, array.shape) if op.shape.size == array.size else xla.broadcast(op, array.shape)
    array.overwrite(xla.select(chosen, op, value_of(array)))


@implements(np.place)
def place(arr: Any, mask: Any, vals: Any) -> None:
    """Write where a mask is true, one value after the other."""
    if not isinstance(arr, TracedArray):
        raise TypeError(f"argument 1 must be numpy.ndarray, not {type(arr).__name__}")
    chosen = _flat_mask(mask, arr, "place")
    new = _flat_safely(vals, arr)
    if new.size == 0:
        _require_none(chosen)
        return
    if new.size == 1:
        spread = xla.broadcast(xla.reshape(value_of(new), ()), arr.shape)
    else:
        order = np.cumsum(np.ravel(TracedArray(chosen)), dtype=np.int64) - 1
        spread = xla.reshape(value_of(get(new, np.remainder(order, new.size))), arr.shape)
    arr.overwrite(xla.select(chosen, spread, value_of(arr)))


def _require_none(chosen: XlaOp) -> None:
    where = _trace.user_line()
    if chosen.shape.size:
        fail_where(require_current(), chosen, xla.convert(chosen, "s64"), lambda _: InvalidArgumentError(
            "Cannot insert from an empty array!", where=where
        ))  # fmt: skip


# -- masks


@implements(np.where, note="of one argument not: the size of the result would depend on values")
def where(condition: Any, x: Any = None, y: Any = None, /) -> Array:
    """Select elements of one array where a condition holds, else of another."""
    if x is None and y is None:
        return nonzero(condition)
    if x is None or y is None:
        raise ValueError("either both or neither of x and y should be given")
    arrays = [as_traced(v) for v in (x, y)]
    dtype = result_type(*[a.kind for a in arrays])
    mask = value_of(as_traced(condition, bool))
    return TracedArray(xla.select(*broadcast_together([mask, *[convert(value_of(a), dtype) for a in arrays]], "where")))


def _refuse(name: str, hint: str = _WHERE) -> NoReturn:
    raise UnimplementedError(
        f"numpy.{name} cannot be traced: the size of its result depends on values", where=_trace.user_line(), hint=hint
    )


@implements(np.nonzero, note="sizes that depend on values cannot be traced")
def nonzero(a: Any) -> NoReturn:
    """Raise: the size of the result depends on values."""
    _refuse("nonzero")


@implements(np.argwhere, note="sizes that depend on values cannot be traced")
def argwhere(a: Any) -> NoReturn:
    """Raise: the size of the result depends on values."""
    _refuse("argwhere")


@implements(np.flatnonzero, note="sizes that depend on values cannot be traced")
def flatnonzero(a: Any) -> NoReturn:
    """Raise: the size of the result depends on values."""
    _refuse("flatnonzero")


@implements(np.compress, note="of a condition that is not traced")
def compress(condition: Any, a: Any, axis: Any = None, out: Any = None) -> Array:
    """Select along an axis by a list of bools."""
    known = values_of(np.asarray(condition) if not isinstance(condition, TracedArray) else condition)
    if known is None:
        _refuse("compress")
    if known.ndim != 1:
        raise ValueError("condition must be a 1-d array")
    return take(a, np.nonzero(known)[0], axis, out)


@implements(np.extract, note="of a condition that is not traced, or where its result could be traced as x[mask]")
def extract(condition: Any, arr: Any) -> Any:
    """Return the elements where a condition holds."""
    flat = ravel(array_of(arr))
    if isinstance(condition, TracedArray) and values_of(condition) is None:
        return get(flat, ravel(as_traced(condition, bool)))
    return take(flat, np.nonzero(np.ravel(np.asarray(condition)))[0])


# -- flat indices


@implements(np.ravel_multi_index)
def ravel_multi_index(multi_index: Any, dims: Any, mode: Any = "raise", order: str = "C") -> Array:
    """Convert indices to flat ones."""
    sizes = tuple(index(n) for n in (np.atleast_1d(dims).tolist()))
    steps = _steps(sizes, order)
    if any(n > _MOST for n in [*steps, prod(sizes)]):
        raise ValueError("invalid dims: array size defined by dims is larger than the maximum possible size.")
    parts = [array_of(p) for p in multi_index]
    if len(parts) != len(sizes):
        raise ValueError(f"parameter multi_index must be a sequence of length {len(sizes)}")
    for part, array in zip(multi_index, parts, strict=True):
        _check_whole(part, array)
    parts = [p.astype(np.int64) if p.dtype.kind == "b" else p for p in parts]
    modes = mode if isinstance(mode, tuple) else (mode,) * len(sizes)
    if len(modes) != len(sizes):
        raise ValueError(f"list of clipmodes has wrong length ({len(modes)} instead of {len(sizes)})")
    if 0 in sizes and all(p.size for p in parts):
        raise ValueError("cannot unravel if shape has zero entries (is empty).")
    ops = broadcast_together([value_of(p) for p in parts], "ravel_multi_index")
    placed = [_coordinate(op, n, m) for op, n, m in zip(ops, sizes, modes, strict=True)]
    total: Any = 0
    for part, step in zip(placed, steps, strict=True):
        total = total + part * step
    return total  # type: ignore[no-any-return]


def _check_whole(given: Any, array: Array) -> None:
    """Refuse indices that are not integers."""
    if array.dtype.kind in "iub":
        return
    if isinstance(given, (list, tuple)) and not array.size:
        raise TypeError(
            "indices must be integral: the provided empty sequence was inferred as float. Wrap it with "
            "'np.array(indices, dtype=np.intp)'"
        )
    raise TypeError("only int indices permitted")


def _steps(sizes: Sequence[int], order: str) -> list[int]:
    if order not in ("C", "F"):
        raise ValueError(f"order must be one of 'C', 'F', 'A', or 'K' (got {order!r})")
    sides = list(sizes) if order == "F" else list(sizes)[::-1]
    steps = [prod(sides[:k]) for k in range(len(sides))]
    return steps if order == "F" else steps[::-1]


def _coordinate(op: XlaOp, size: int, mode: Any) -> Any:
    wide = op if op.shape.dtype.numpy_dtype == np.int64 else xla.convert(op, "s64")
    name = _mode(mode)
    if name == "wrap":
        return np.remainder(TracedArray(wide), size)
    if name == "clip":
        limits = [require_current().constant(n, np.dtype(np.int64)) for n in (0, size - 1)]
        return TracedArray(xla.clamp(limits[0], wide, limits[1]))
    _require_inside(wide, size, "invalid entry in coordinates array")
    return TracedArray(wide)


@implements(np.unravel_index)
def unravel_index(indices: Any, shape: Any, order: str = "C") -> tuple[Array, ...]:
    """Convert flat indices to indices of each dimension."""
    sizes = (int(shape),) if isinstance(shape, (int, np.integer)) else tuple(index(n) for n in shape)
    number = array_of(indices)
    _check_whole(indices, number)
    if prod(sizes) > _MOST:
        raise ValueError(
            "dimensions are too large; arrays and shapes with a total size greater than 'intp' are not supported."
        )
    steps = _steps(sizes, order)
    op = value_of(number)
    wide = op if number.dtype == np.int64 else xla.convert(op, "s64")
    total = prod(sizes)
    _require_inside(wide, total, f"index {{}} is out of bounds for array with size {total}")
    if not sizes and number.ndim:
        text = "multiple indices are not supported for 0d arrays"
        trace = require_current()
        zero = trace.constant(0, np.dtype(np.int64))
        trace.fail_if(xla.eq(zero, zero), zero, lambda _: ValueError(text))  # after the check of indices out of range
    value: Any = TracedArray(wide)
    return tuple(value // step % n for step, n in zip(steps, sizes, strict=True))
