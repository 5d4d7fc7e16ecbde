"""NumPy's reductions and running totals."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from math import prod
from operator import index
from typing import Any

import numpy as np

from cyxla.errors import DTypeError, ShapeError
from cyxla.numpy.control import cond
from cyxla.numpy.tracing.conversion import convert
from cyxla.numpy.tracing.promotion import Dtype
from cyxla.numpy.tracing.registry import implements
from cyxla.numpy.tracing.trace import require_current
from cyxla.numpy.tracing.traced_array import TracedArray, as_traced, value_of
from cyxla.numpy.ufunc_methods.cumulative import cumulative
from cyxla.numpy.ufunc_methods.reduce import (
    NOT_GIVEN,
    REDUCTIONS,
    all_chosen,
    axes_of,
    axis_of,
    flag,
    handed,
    has_start,
    initial_of,
    kept_sizes,
    mask_of,
    not_less,
    reduce,
    reduce_op,
    type_of,
)  # fmt: skip
from cyxla.numpy.ufuncs.apply import broadcast_to
from cyxla.types import ElementType, Shape
from cyxla.xla.hlo.builder import XlaBuilder, XlaComputation, XlaOp
from cyxla.xla.hlo.builder import functions as xla
from cyxla.xla.lib import values

_CACHED = 1 << 24  # bytes that caches may hold
_BLOCK = 1 << 11  # elements of a long vector that are looked at together
_LONG = 1 << 16  # elements from which on a second look at all of them is worth avoiding


# -- joining elements


@implements(np.sum)
def sum_(
    a: Any, axis: Any = None, dtype: Any = None, out: Any = None, keepdims: Any = NOT_GIVEN, initial: Any = NOT_GIVEN,
    where: Any = NOT_GIVEN,
) -> Any:  # fmt: skip
    """Sums along axes."""
    return reduce(np.add, a, axis, dtype, out, keepdims, initial, where)


@implements(np.prod)
def prod_(
    a: Any, axis: Any = None, dtype: Any = None, out: Any = None, keepdims: Any = NOT_GIVEN, initial: Any = NOT_GIVEN,
    where: Any = NOT_GIVEN,
) -> Any:  # fmt: skip
    """Products along axes."""
    return reduce(np.multiply, a, axis, dtype, out, keepdims, initial, where)


@implements(np.max, np.amax)
def max_(
    a: Any, axis: Any = None, out: Any = None, keepdims: Any = NOT_GIVEN, initial: Any = NOT_GIVEN,
    where: Any = NOT_GIVEN,
) -> Any:  # fmt: skip
    """The greatest along axes."""
    return reduce(np.maximum, a, axis, None, out, keepdims, initial, where)


@implements(np.min, np.amin)
def min_(
    a: Any, axis: Any = None, out: Any = None, keepdims: Any = NOT_GIVEN, initial: Any = NOT_GIVEN,
    where: Any = NOT_GIVEN,
) -> Any:  # fmt: skip
    """The least along axes."""
    return reduce(np.minimum, a, axis, None, out, keepdims, initial, where)


@implements(np.any)
def any_(a: Any, axis: Any = None, out: Any = None, keepdims: Any = NOT_GIVEN, *, where: Any = NOT_GIVEN) -> Any:
    """Whether any element along axes is not zero."""
    return reduce(np.logical_or, a, axis, None, out, keepdims, NOT_GIVEN, where)


@implements(np.all)
def all_(a: Any, axis: Any = None, out: Any = None, keepdims: Any = NOT_GIVEN, *, where: Any = NOT_GIVEN) -> Any:
    """Whether all elements along axes are not zero."""
    return reduce(np.logical_and, a, axis, None, out, keepdims, NOT_GIVEN, where)


@implements(np.ptp)
def ptp(a: Any, axis: Any = None, out: Any = None, keepdims: Any = NOT_GIVEN) -> Any:
    """The greatest minus the least."""
    given = as_traced(a)
    most, least = max_(given, axis, out, keepdims), min_(given, axis, None, keepdims)
    return np.subtract(most, least, out=out)


@implements(np.count_nonzero)
def count_nonzero(a: Any, axis: Any = None, *, keepdims: bool = False) -> Any:
    """How many elements are not zero."""
    return sum_(as_traced(a, bool), axis, np.int64, None, keepdims)


# -- where extremes are


@implements(np.argmax)
def argmax(a: Any, axis: Any = None, out: Any = None, *, keepdims: Any = NOT_GIVEN) -> Any:
    """Where the first of the greatest is; nan is the greatest."""
    return _place(as_traced(a), axis, out, flag(keepdims), "argmax")


@implements(np.argmin)
def argmin(a: Any, axis: Any = None, out: Any = None, *, keepdims: Any = NOT_GIVEN) -> Any:
    """Where the first of the least is; nan is the least."""
    return _place(as_traced(a), axis, out, flag(keepdims), "argmin")


def _place(array: TracedArray, axis: Any, out: Any, keepdims: bool, name: str) -> Any:
    op, sizes = value_of(array), array.shape
    if axis is None or not sizes:
        axes_of(axis if axis is None else index(axis), len(sizes))
        op, along = xla.reshape(op, (prod(sizes),)), 0
    else:
        along = axis_of(axis, len(sizes))
    target = out[0] if isinstance(out, tuple) else out
    if target is not None and not np.can_cast(target.dtype, np.int64):
        raise DTypeError(f"Cannot cast array data from {target.dtype!r} to dtype('int64') according to the rule 'safe'")
    if op.shape.dims[along] == 0:
        raise ShapeError(f"attempt to get {name} of an empty sequence")
    made = place_of(op, along, name)
    if keepdims:
        made = xla.reshape(made, kept_sizes(sizes, range(len(sizes)) if axis is None else [along]))
    return handed(made, out, name)


def _others(sizes: Sequence[int], axis: int) -> tuple[int, ...]:
    return tuple(n for d, n in enumerate(sizes) if d != axis)


def place_of(op: XlaOp, axis: int, name: str) -> XlaOp:
    """Where along a dimension the first extreme is, as s64; `name` is argmax or argmin."""
    if op.shape.dtype is ElementType.PRED:
        op = xla.convert(op, ElementType.U8)
    if not all(op.shape.dims):
        return xla.broadcast(xla.constant(op.builder, 0, ElementType.S64), _others(op.shape.dims, axis))
    return (_found if _is_near(op, axis) else _compared)(op, axis, name)  # whichever is the faster


def _is_near(op: XlaOp, axis: int) -> bool:
    """Whether a line of elements lies side by side and is read twice at little cost."""
    sizes, dtype = op.shape.dims, op.shape.dtype
    return axis == len(sizes) - 1 and not dtype.is_complex and sizes[axis] * dtype.bits // 8 <= _CACHED


def _found(op: XlaOp, axis: int, name: str) -> XlaOp:
    """The first place of what equals the extreme; that is nan where any element is."""
    sizes = op.shape.dims
    if sizes == (sizes[axis],) and sizes[axis] >= 2 * _BLOCK:
        return _found_in_blocks(op, name)
    extreme = reduce_op(np.maximum if name == "argmax" else np.minimum, op, [axis], keepdims=True)
    hit = xla.eq(op, broadcast_to(extreme, sizes))
    if values.is_float(op):
        hit = xla.or_(hit, xla.ne(op, op))
    small = ElementType.S32 if sizes[axis] < 2**31 else ElementType.S64
    places = values.iota_along(op.builder, small, sizes, axis)
    first = reduce_op(np.minimum, xla.select(hit, places, values.full_like(places, sizes[axis] - 1)), [axis])
    return xla.convert(first, ElementType.S64)


def _found_in_blocks(op: XlaOp, name: str) -> XlaOp:
    """The same of a long vector: which block has the first extreme, and where in it; elements are read once."""
    (size,) = op.shape.dims
    whole = size // _BLOCK * _BLOCK
    ufunc = np.maximum if name == "argmax" else np.minimum
    extremes = reduce_op(ufunc, xla.reshape(xla.slice_in_dim(op, 0, whole), (whole // _BLOCK, _BLOCK)), [1])
    if whole < size:
        rest = reduce_op(ufunc, xla.slice_in_dim(op, whole, size), [0], keepdims=True)
        extremes = xla.concatenate([extremes, rest], 0)
    block = _found(extremes, 0, name)
    start = xla.minimum(xla.multiply(block, values.scalar(block, _BLOCK)), values.scalar(block, size - _BLOCK))
    return xla.add(start, _found(xla.dynamic_slice(op, [start], (_BLOCK,)), 0, name))


def _compared(op: XlaOp, axis: int, name: str) -> XlaOp:
    """The place that goes with the extreme of pairs of elements and places."""
    least = REDUCTIONS[np.maximum if name == "argmax" else np.minimum].start(op)
    places = values.iota_along(op.builder, ElementType.S64, op.shape.dims, axis)
    zero = values.scalar(places, 0)
    both = xla.reduce([op, places], [least, zero], _first_extreme(name, op.shape.dtype), [axis])
    return xla.get_tuple_element(both, 1)


@lru_cache(maxsize=64)
def _first_extreme(name: str, dtype: ElementType) -> XlaComputation:
    """Joins two elements and their places to the greater, of equal ones the first."""
    builder = XlaBuilder(f"{name}_{dtype}")
    shapes = [Shape.array(dtype), Shape.array(ElementType.S64)] * 2
    x, i, y, j = (xla.parameter(builder, k, s, n) for k, (s, n) in enumerate(zip(shapes, "xiyj", strict=True)))
    greater = _greater(x, y, name)
    before = xla.or_(greater, xla.and_(xla.eq(x, y), xla.lt(i, j)))
    return builder.build(xla.tuple_(builder, [xla.select(greater, x, y), xla.select(before, i, j)]))


def _greater(x: XlaOp, y: XlaOp, name: str) -> XlaOp:
    dtype = x.shape.dtype
    if dtype.is_complex:
        wins = xla.not_(not_less(y, x) if name == "argmax" else not_less(x, y))
        return xla.or_(xla.and_(wins, xla.eq(y, y)), xla.ne(x, x))
    wins = (xla.gt if name == "argmax" else xla.lt)(x, y)
    return xla.or_(wins, xla.ne(x, x)) if dtype.is_float else wins


# -- running totals


@implements(np.cumsum)
def cumsum(a: Any, axis: Any = None, dtype: Any = None, out: Any = None) -> Any:
    """Sums of all elements up to each one."""
    return _cumulative(np.add, as_traced(a), axis, dtype, out)


@implements(np.cumprod)
def cumprod(a: Any, axis: Any = None, dtype: Any = None, out: Any = None) -> Any:
    """Products of all elements up to each one."""
    return _cumulative(np.multiply, as_traced(a), axis, dtype, out)


def _cumulative(ufunc: np.ufunc, array: TracedArray, axis: Any, dtype: Any, out: Any) -> Any:
    op = value_of(array)
    if axis is None or not array.ndim:
        axes_of(axis if axis is None else index(axis), array.ndim)
        op, axis = xla.reshape(op, (array.size,)), 0
    op = convert(op, type_of(ufunc, array, dtype, out))
    row = REDUCTIONS[ufunc]
    opcode = row.boolean if op.shape.dtype is ElementType.PRED else row.opcode
    made = cumulative(op, opcode, axis_of(axis, len(op.shape.dims)))
    target = out[0] if isinstance(out, tuple) else out
    if target is not None and tuple(target.shape) != made.shape.dims:
        raise ShapeError("provided out is the wrong size for the accumulation.")
    return handed(made, out, ufunc.__name__)


@implements(np.cumulative_sum)
def cumulative_sum(
    x: Any, /, *, axis: Any = None, dtype: Any = None, out: Any = None, include_initial: bool = False
) -> Any:
    """Sums of all elements up to each one, and of none if asked for."""
    return _array_api_cumulative(np.add, as_traced(x), axis, dtype, out, include_initial)


@implements(np.cumulative_prod)
def cumulative_prod(
    x: Any, /, *, axis: Any = None, dtype: Any = None, out: Any = None, include_initial: bool = False
) -> Any:
    """Products of all elements up to each one, and of none if asked for."""
    return _array_api_cumulative(np.multiply, as_traced(x), axis, dtype, out, include_initial)


def _array_api_cumulative(
    ufunc: np.ufunc, array: TracedArray, axis: Any, dtype: Any, out: Any, include_initial: bool
) -> Any:
    if array.ndim == 0:
        array = TracedArray(xla.reshape(value_of(array), (1,)))
    if axis is None and array.ndim > 1:
        raise ShapeError("axis= must be given for more than one dimension")
    if isinstance(axis, tuple) and len(axis) != 1:
        raise ValueError(f"{ufunc.__name__}: running totals go along one axis")
    axis = 0 if axis is None else axis_of(axis[0] if isinstance(axis, tuple) else axis, array.ndim)
    made = value_of(_cumulative(ufunc, array, axis, dtype, None))
    if include_initial:
        first = REDUCTIONS[ufunc].start(made)
        made = xla.pad_in_dim(made, first, axis, 1, 0)
    return handed(made, out, ufunc.__name__)


# -- nan left out


def without_nan(array: TracedArray, number: Any) -> tuple[TracedArray, XlaOp | None]:
    """An array with a number in place of nan, and where nan was; None where there is none by its type."""
    if array.dtype.kind not in "fcV":
        return array, None
    op = value_of(array)
    bad = xla.ne(op, op)
    filler = number(op) if callable(number) else values.scalar(op, number)
    return TracedArray(xla.select(bad, broadcast_to(filler, op.shape.dims), op)), bad


@implements(np.nansum)
def nansum(
    a: Any, axis: Any = None, dtype: Any = None, out: Any = None, keepdims: Any = NOT_GIVEN, initial: Any = NOT_GIVEN,
    where: Any = NOT_GIVEN,
) -> Any:  # fmt: skip
    """Sums of what is not nan."""
    return reduce(np.add, without_nan(as_traced(a), 0)[0], axis, dtype, out, keepdims, initial, where)


@implements(np.nanprod)
def nanprod(
    a: Any, axis: Any = None, dtype: Any = None, out: Any = None, keepdims: Any = NOT_GIVEN, initial: Any = NOT_GIVEN,
    where: Any = NOT_GIVEN,
) -> Any:  # fmt: skip
    """Products of what is not nan."""
    return reduce(np.multiply, without_nan(as_traced(a), 1)[0], axis, dtype, out, keepdims, initial, where)


@implements(np.nanmax)
def nanmax(
    a: Any, axis: Any = None, out: Any = None, keepdims: Any = NOT_GIVEN, initial: Any = NOT_GIVEN,
    where: Any = NOT_GIVEN,
) -> Any:  # fmt: skip
    """The greatest of what is not nan; nan where all is."""
    return _nan_extreme(np.maximum, as_traced(a), axis, out, keepdims, initial, where)


@implements(np.nanmin)
def nanmin(
    a: Any, axis: Any = None, out: Any = None, keepdims: Any = NOT_GIVEN, initial: Any = NOT_GIVEN,
    where: Any = NOT_GIVEN,
) -> Any:  # fmt: skip
    """The least of what is not nan; nan where all is."""
    return _nan_extreme(np.minimum, as_traced(a), axis, out, keepdims, initial, where)


def _nan_extreme(
    ufunc: np.ufunc, array: TracedArray, axis: Any, out: Any, keepdims: Any, initial: Any, where: Any
) -> Any:
    """Joined as fmax and fmin join: nan is what comes of nothing but nan."""
    row = REDUCTIONS[ufunc]
    filled, bad = without_nan(array, row.start)
    if bad is None:
        return reduce(ufunc, array, axis, None, out, keepdims, initial, where)
    begun = has_start(row, initial)
    start = TracedArray(row.start(value_of(array))) if begun else initial
    joint = convert(value_of(reduce(ufunc, filled, axis, None, None, keepdims, start, where)), _type(ufunc, array, out))
    axes, keep = axes_of(axis, array.ndim), flag(keepdims)
    if all_chosen(where) and array.size >= _LONG and values.is_float(joint):
        nothing = _all_nan(array, joint, row.start(joint), axes, keep)
    else:
        outside = bad if all_chosen(where) else xla.or_(bad, xla.not_(mask_of(where, array.shape)))
        nothing = reduce_op(np.logical_and, outside, axes, keep)
    made: Any = TracedArray(xla.select(nothing, values.full_like(joint, np.nan), joint))
    if begun:
        made = (np.fmax if ufunc == np.maximum else np.fmin)(TracedArray(initial_of(initial, joint)), made)
    return handed(value_of(made), out, ufunc.__name__)


def _all_nan(array: TracedArray, joint: XlaOp, start: XlaOp, axes: Sequence[int], keepdims: bool) -> XlaOp:
    """Where all is nan: only looked for where a result is what is also made of nothing."""
    suspect: Any = TracedArray(xla.eq(joint, broadcast_to(start, joint.shape.dims)))

    def look(given: TracedArray) -> TracedArray:
        op = value_of(given)
        return TracedArray(reduce_op(np.logical_and, xla.ne(op, op), axes, keepdims))

    return value_of(cond(np.any(suspect), look, lambda given: np.zeros_like(suspect), array))


def _type(ufunc: np.ufunc, array: TracedArray, out: Any) -> Dtype:
    return type_of(ufunc, array, None, out[0] if isinstance(out, tuple) else out)


@implements(np.nanargmax)
def nanargmax(a: Any, axis: Any = None, out: Any = None, *, keepdims: Any = NOT_GIVEN) -> Any:
    """Where the first of the greatest is, nan left out."""
    return _nan_place(np.maximum, as_traced(a), axis, out, keepdims, "argmax")


@implements(np.nanargmin)
def nanargmin(a: Any, axis: Any = None, out: Any = None, *, keepdims: Any = NOT_GIVEN) -> Any:
    """Where the first of the least is, nan left out."""
    return _nan_place(np.minimum, as_traced(a), axis, out, keepdims, "argmin")


def _nan_place(ufunc: np.ufunc, array: TracedArray, axis: Any, out: Any, keepdims: Any, name: str) -> Any:
    filled, bad = without_nan(array, REDUCTIONS[ufunc].start)
    if bad is not None:
        along = axes_of(axis, array.ndim)
        nothing = reduce_op(np.logical_and, bad, along)
        some = reduce_op(np.logical_or, nothing, range(len(nothing.shape.dims)))
        zero = require_current().constant(0, np.dtype(np.int64))
        require_current().fail_if(some, zero, lambda number: ValueError("All-NaN slice encountered"))
    return _place(filled, axis, out, flag(keepdims), name)


@implements(np.nancumsum)
def nancumsum(a: Any, axis: Any = None, dtype: Any = None, out: Any = None) -> Any:
    """Sums of all elements up to each one, nan taken for 0."""
    return _cumulative(np.add, without_nan(as_traced(a), 0)[0], axis, dtype, out)


@implements(np.nancumprod)
def nancumprod(a: Any, axis: Any = None, dtype: Any = None, out: Any = None) -> Any:
    """Products of all elements up to each one, nan taken for 1."""
    return _cumulative(np.multiply, without_nan(as_traced(a), 1)[0], axis, dtype, out)
