"""Reductions and cumulative functions."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from math import prod
from operator import index
from typing import Any

import numpy as np

from cyxla.errors import DTypeError, ShapeError
from cyxla.numpy import control
from cyxla.numpy.tracing.arrays.traced_array import TracedArray, as_traced, value_of
from cyxla.numpy.tracing.registry import implements
from cyxla.numpy.tracing.results.conversion import convert
from cyxla.numpy.tracing.results.promotion import Dtype
from cyxla.numpy.tracing.trace import require_current
from cyxla.numpy.ufunc_methods.cumulative import cumulative
from cyxla.numpy.ufunc_methods.reduce import (
    NOT_GIVEN,
    REDUCTIONS,
    flag,
    has_start,
    initial_of,
    keepdims_shape,
    mask_of,
    not_less,
    reduce,
    reduce_op,
    reduction_axes,
    reduction_dtype,
    reduction_to_out,
    selects_all,
    single_axis,
)  # fmt: skip
from cyxla.numpy.ufuncs.apply import broadcast_to
from cyxla.types import ElementType, Shape
from cyxla.xla.hlo.builder import XlaBuilder, XlaComputation, XlaOp
from cyxla.xla.hlo.builder import functions as xla
from cyxla.xla.lib import values

_CACHE_BYTES = 1 << 24  # bytes assumed to fit into the caches
_BLOCK_ELEMENTS = 1 << 11  # elements per block of a long vector
_MIN_LONG = 1 << 16  # vectors of fewer elements are cheap to read twice


# -- reductions


@implements(np.sum)
def sum_(
    a: Any, axis: Any = None, dtype: Any = None, out: Any = None, keepdims: Any = NOT_GIVEN, initial: Any = NOT_GIVEN,
    where: Any = NOT_GIVEN,
) -> Any:  # fmt: skip
    """Sum along axes."""
    return reduce(np.add, a, axis, dtype, out, keepdims, initial, where)


@implements(np.prod)
def prod_(
    a: Any, axis: Any = None, dtype: Any = None, out: Any = None, keepdims: Any = NOT_GIVEN, initial: Any = NOT_GIVEN,
    where: Any = NOT_GIVEN,
) -> Any:  # fmt: skip
    """Multiply along axes."""
    return reduce(np.multiply, a, axis, dtype, out, keepdims, initial, where)


@implements(np.max, np.amax)
def max_(
    a: Any, axis: Any = None, out: Any = None, keepdims: Any = NOT_GIVEN, initial: Any = NOT_GIVEN,
    where: Any = NOT_GIVEN,
) -> Any:  # fmt: skip
    """Compute the maximum along axes."""
    return reduce(np.maximum, a, axis, None, out, keepdims, initial, where)


@implements(np.min, np.amin)
def min_(
    a: Any, axis: Any = None, out: Any = None, keepdims: Any = NOT_GIVEN, initial: Any = NOT_GIVEN,
    where: Any = NOT_GIVEN,
) -> Any:  # fmt: skip
    """Compute the minimum along axes."""
    return reduce(np.minimum, a, axis, None, out, keepdims, initial, where)


@implements(np.any)
def any_(a: Any, axis: Any = None, out: Any = None, keepdims: Any = NOT_GIVEN, *, where: Any = NOT_GIVEN) -> Any:
    """Test whether any element along axes is nonzero."""
    return reduce(np.logical_or, a, axis, None, out, keepdims, NOT_GIVEN, where)


@implements(np.all)
def all_(a: Any, axis: Any = None, out: Any = None, keepdims: Any = NOT_GIVEN, *, where: Any = NOT_GIVEN) -> Any:
    """Test whether all elements along axes are nonzero."""
    return reduce(np.logical_and, a, axis, None, out, keepdims, NOT_GIVEN, where)


@implements(np.ptp)
def ptp(a: Any, axis: Any = None, out: Any = None, keepdims: Any = NOT_GIVEN) -> Any:
    """Compute maximum minus minimum."""
    array = as_traced(a)
    maximum, minimum = max_(array, axis, out, keepdims), min_(array, axis, None, keepdims)
    return np.subtract(maximum, minimum, out=out)


@implements(np.count_nonzero)
def count_nonzero(a: Any, axis: Any = None, *, keepdims: bool = False) -> Any:
    """Count nonzero elements."""
    return sum_(as_traced(a, bool), axis, np.int64, None, keepdims)


# -- indices of extremes


@implements(np.argmax)
def argmax(a: Any, axis: Any = None, out: Any = None, *, keepdims: Any = NOT_GIVEN) -> Any:
    """Return the index of the first maximum; nan counts as the greatest."""
    return _arg_extreme(as_traced(a), axis, out, flag(keepdims), "argmax")


@implements(np.argmin)
def argmin(a: Any, axis: Any = None, out: Any = None, *, keepdims: Any = NOT_GIVEN) -> Any:
    """Return the index of the first minimum; nan counts as the least."""
    return _arg_extreme(as_traced(a), axis, out, flag(keepdims), "argmin")


def _arg_extreme(array: TracedArray, axis: Any, out: Any, keepdims: bool, name: str) -> Any:
    op, sizes = value_of(array), array.shape
    if axis is None or not sizes:
        reduction_axes(axis if axis is None else index(axis), len(sizes))
        op, dimension = xla.reshape(op, (prod(sizes),)), 0
    else:
        dimension = single_axis(axis, len(sizes))
    target = out[0] if isinstance(out, tuple) else out
    if target is not None and not np.can_cast(target.dtype, np.int64):
        raise DTypeError(f"Cannot cast array data from {target.dtype!r} to dtype('int64') according to the rule 'safe'")
    if op.shape.dims[dimension] == 0:
        raise ShapeError(f"attempt to get {name} of an empty sequence")
    result = emit_arg_extreme(op, dimension, name)
    if keepdims:
        result = xla.reshape(result, keepdims_shape(sizes, range(len(sizes)) if axis is None else [dimension]))
    return reduction_to_out(result, out, name)


def _remaining_sizes(sizes: Sequence[int], axis: int) -> tuple[int, ...]:
    return tuple(n for d, n in enumerate(sizes) if d != axis)


def emit_arg_extreme(op: XlaOp, axis: int, name: str) -> XlaOp:
    """Return the index of the first extreme along a dimension, as s64; `name` is argmax or argmin."""
    if op.shape.dtype is ElementType.PRED:
        op = xla.convert(op, ElementType.U8)
    if not all(op.shape.dims):
        return xla.broadcast(xla.constant(op.builder, 0, ElementType.S64), _remaining_sizes(op.shape.dims, axis))
    return (_compare_with_extreme if _fits_in_cache(op, axis) else _reduce_pairs)(op, axis, name)  # the faster one


def _fits_in_cache(op: XlaOp, axis: int) -> bool:
    """Return True if reduced lines are contiguous and fit in cache, so that reading them twice is cheap."""
    sizes, dtype = op.shape.dims, op.shape.dtype
    return axis == len(sizes) - 1 and not dtype.is_complex and sizes[axis] * dtype.bits // 8 <= _CACHE_BYTES


def _compare_with_extreme(op: XlaOp, axis: int, name: str) -> XlaOp:
    """Return the first index of an element equal to the extreme, which is nan if any element is."""
    sizes = op.shape.dims
    if sizes == (sizes[axis],) and sizes[axis] >= 2 * _BLOCK_ELEMENTS:
        return _search_in_blocks(op, name)
    extreme = reduce_op(np.maximum if name == "argmax" else np.minimum, op, [axis], keepdims=True)
    is_extreme = xla.eq(op, broadcast_to(extreme, sizes))
    if values.is_float(op):
        is_extreme = xla.or_(is_extreme, xla.ne(op, op))
    index_type = ElementType.S32 if sizes[axis] < 2**31 else ElementType.S64
    indices = values.iota_along(op.builder, index_type, sizes, axis)
    first = reduce_op(np.minimum, xla.select(is_extreme, indices, values.full_like(indices, sizes[axis] - 1)), [axis])
    return xla.convert(first, ElementType.S64)


def _search_in_blocks(op: XlaOp, name: str) -> XlaOp:
    """Return the index of the first extreme of a long vector: of a block, then within it; elements are read once."""
    (size,) = op.shape.dims
    blocked_size = size // _BLOCK_ELEMENTS * _BLOCK_ELEMENTS
    ufunc = np.maximum if name == "argmax" else np.minimum
    extremes = reduce_op(
        ufunc,
        xla.reshape(xla.slice_in_dim(op, 0, blocked_size), (blocked_size // _BLOCK_ELEMENTS, _BLOCK_ELEMENTS)),
        [1],
    )
    if blocked_size < size:
        rest = reduce_op(ufunc, xla.slice_in_dim(op, blocked_size, size), [0], keepdims=True)
        extremes = xla.concatenate([extremes, rest], 0)
    block = _compare_with_extreme(extremes, 0, name)
    start = xla.minimum(
        xla.multiply(block, values.scalar(block, _BLOCK_ELEMENTS)), values.scalar(block, size - _BLOCK_ELEMENTS)
    )
    return xla.add(start, _compare_with_extreme(xla.dynamic_slice(op, [start], (_BLOCK_ELEMENTS,)), 0, name))


def _reduce_pairs(op: XlaOp, axis: int, name: str) -> XlaOp:
    """Return the index of an extreme by a reduction of pairs of elements and indices."""
    start = REDUCTIONS[np.maximum if name == "argmax" else np.minimum].start(op)
    indices = values.iota_along(op.builder, ElementType.S64, op.shape.dims, axis)
    zero = values.scalar(indices, 0)
    pair = xla.reduce([op, indices], [start, zero], _first_extreme(name, op.shape.dtype), [axis])
    return xla.get_tuple_element(pair, 1)


@lru_cache(maxsize=64)
def _first_extreme(name: str, dtype: ElementType) -> XlaComputation:
    """Return the combiner that selects the more extreme of two (value, index) pairs, the lower index if equal."""
    builder = XlaBuilder(f"{name}_{dtype}")
    shapes = [Shape.array(dtype), Shape.array(ElementType.S64)] * 2
    x, i, y, j = (xla.parameter(builder, k, s, n) for k, (s, n) in enumerate(zip(shapes, "xiyj", strict=True)))
    greater = _greater(x, y, name)
    before = xla.or_(greater, xla.and_(xla.eq(x, y), xla.lt(i, j)))
    return builder.build(xla.tuple_(builder, [xla.select(greater, x, y), xla.select(before, i, j)]))


def _greater(x: XlaOp, y: XlaOp, name: str) -> XlaOp:
    dtype = x.shape.dtype
    if dtype.is_complex:
        is_greater = xla.not_(not_less(y, x) if name == "argmax" else not_less(x, y))
        return xla.or_(xla.and_(is_greater, xla.eq(y, y)), xla.ne(x, x))
    is_greater = (xla.gt if name == "argmax" else xla.lt)(x, y)
    return xla.or_(is_greater, xla.ne(x, x)) if dtype.is_float else is_greater


# -- cumulative functions


@implements(np.cumsum)
def cumsum(a: Any, axis: Any = None, dtype: Any = None, out: Any = None) -> Any:
    """Compute cumulative sums."""
    return _cumulative(np.add, as_traced(a), axis, dtype, out)


@implements(np.cumprod)
def cumprod(a: Any, axis: Any = None, dtype: Any = None, out: Any = None) -> Any:
    """Compute cumulative products."""
    return _cumulative(np.multiply, as_traced(a), axis, dtype, out)


def _cumulative(ufunc: np.ufunc, array: TracedArray, axis: Any, dtype: Any, out: Any) -> Any:
    op = value_of(array)
    if axis is None or not array.ndim:
        reduction_axes(axis if axis is None else index(axis), array.ndim)
        op, axis = xla.reshape(op, (array.size,)), 0
    op = convert(op, reduction_dtype(ufunc, array, dtype, out))
    row = REDUCTIONS[ufunc]
    opcode = row.pred_opcode if op.shape.dtype is ElementType.PRED else row.opcode
    result = cumulative(op, opcode, single_axis(axis, len(op.shape.dims)))
    target = out[0] if isinstance(out, tuple) else out
    if target is not None and tuple(target.shape) != result.shape.dims:
        raise ShapeError("provided out is the wrong size for the accumulation.")
    return reduction_to_out(result, out, ufunc.__name__)


@implements(np.cumulative_sum)
def cumulative_sum(
    x: Any, /, *, axis: Any = None, dtype: Any = None, out: Any = None, include_initial: bool = False
) -> Any:
    """Compute cumulative sums, starting with 0 on request."""
    return _array_api_cumulative(np.add, as_traced(x), axis, dtype, out, include_initial)


@implements(np.cumulative_prod)
def cumulative_prod(
    x: Any, /, *, axis: Any = None, dtype: Any = None, out: Any = None, include_initial: bool = False
) -> Any:
    """Compute cumulative products, starting with 1 on request."""
    return _array_api_cumulative(np.multiply, as_traced(x), axis, dtype, out, include_initial)


def _array_api_cumulative(
    ufunc: np.ufunc, array: TracedArray, axis: Any, dtype: Any, out: Any, include_initial: bool
) -> Any:
    if array.ndim == 0:
        array = TracedArray(xla.reshape(value_of(array), (1,)))
    if axis is None and array.ndim > 1:
        raise ShapeError(f"{ufunc.__name__}: axis= must be given for an array of more than one dimension")
    if isinstance(axis, tuple) and len(axis) != 1:
        raise ValueError(f"{ufunc.__name__}: axis= must be a single axis")
    axis = 0 if axis is None else single_axis(axis[0] if isinstance(axis, tuple) else axis, array.ndim)
    result = value_of(_cumulative(ufunc, array, axis, dtype, None))
    if include_initial:
        first = REDUCTIONS[ufunc].start(result)
        result = xla.pad_in_dim(result, first, axis, 1, 0)
    return reduction_to_out(result, out, ufunc.__name__)


# -- ignoring nan


def replace_nan(array: TracedArray, replacement: Any) -> tuple[TracedArray, XlaOp | None]:
    """Replace nan by a number; return the array and the mask of nan, None if the dtype has no nan."""
    if array.dtype.kind not in "fcV":
        return array, None
    op = value_of(array)
    is_nan = xla.ne(op, op)
    filler = replacement(op) if callable(replacement) else values.scalar(op, replacement)
    return TracedArray(xla.select(is_nan, broadcast_to(filler, op.shape.dims), op)), is_nan


@implements(np.nansum)
def nansum(
    a: Any, axis: Any = None, dtype: Any = None, out: Any = None, keepdims: Any = NOT_GIVEN, initial: Any = NOT_GIVEN,
    where: Any = NOT_GIVEN,
) -> Any:  # fmt: skip
    """Sum, ignoring nan."""
    return reduce(np.add, replace_nan(as_traced(a), 0)[0], axis, dtype, out, keepdims, initial, where)


@implements(np.nanprod)
def nanprod(
    a: Any, axis: Any = None, dtype: Any = None, out: Any = None, keepdims: Any = NOT_GIVEN, initial: Any = NOT_GIVEN,
    where: Any = NOT_GIVEN,
) -> Any:  # fmt: skip
    """Multiply, ignoring nan."""
    return reduce(np.multiply, replace_nan(as_traced(a), 1)[0], axis, dtype, out, keepdims, initial, where)


@implements(np.nanmax)
def nanmax(
    a: Any, axis: Any = None, out: Any = None, keepdims: Any = NOT_GIVEN, initial: Any = NOT_GIVEN,
    where: Any = NOT_GIVEN,
) -> Any:  # fmt: skip
    """Compute the maximum, ignoring nan; nan if all elements are."""
    return _nan_extreme(np.maximum, as_traced(a), axis, out, keepdims, initial, where)


@implements(np.nanmin)
def nanmin(
    a: Any, axis: Any = None, out: Any = None, keepdims: Any = NOT_GIVEN, initial: Any = NOT_GIVEN,
    where: Any = NOT_GIVEN,
) -> Any:  # fmt: skip
    """Compute the minimum, ignoring nan; nan if all elements are."""
    return _nan_extreme(np.minimum, as_traced(a), axis, out, keepdims, initial, where)


def _nan_extreme(
    ufunc: np.ufunc, array: TracedArray, axis: Any, out: Any, keepdims: Any, initial: Any, where: Any
) -> Any:
    """Reduce as fmax and fmin do: nan only if all elements are."""
    row = REDUCTIONS[ufunc]
    filled, is_nan = replace_nan(array, row.start)
    if is_nan is None:
        return reduce(ufunc, array, axis, None, out, keepdims, initial, where)
    has_initial = has_start(row, initial)
    start = TracedArray(row.start(value_of(array))) if has_initial else initial
    extreme = convert(
        value_of(reduce(ufunc, filled, axis, None, None, keepdims, start, where)), _result_dtype(ufunc, array, out)
    )
    axes, keepdims_flag = reduction_axes(axis, array.ndim), flag(keepdims)
    if selects_all(where) and array.size >= _MIN_LONG and values.is_float(extreme):
        all_nan = _all_nan(array, extreme, row.start(extreme), axes, keepdims_flag)
    else:
        excluded = is_nan if selects_all(where) else xla.or_(is_nan, xla.not_(mask_of(where, array.shape)))
        all_nan = reduce_op(np.logical_and, excluded, axes, keepdims_flag)
    result: Any = TracedArray(xla.select(all_nan, values.full_like(extreme, np.nan), extreme))
    if has_initial:
        result = (np.fmax if ufunc == np.maximum else np.fmin)(TracedArray(initial_of(initial, extreme)), result)
    return reduction_to_out(value_of(result), out, ufunc.__name__)


def _all_nan(array: TracedArray, extreme: XlaOp, start: XlaOp, axes: Sequence[int], keepdims: bool) -> XlaOp:
    """Return a mask of results whose elements are all nan; computed only if some result equals the start value."""
    may_be_nan: Any = TracedArray(xla.eq(extreme, broadcast_to(start, extreme.shape.dims)))

    def check(array_: TracedArray) -> TracedArray:
        op = value_of(array_)
        return TracedArray(reduce_op(np.logical_and, xla.ne(op, op), axes, keepdims))

    return value_of(control.cond(np.any(may_be_nan), check, lambda array_: np.zeros_like(may_be_nan), array))


def _result_dtype(ufunc: np.ufunc, array: TracedArray, out: Any) -> Dtype:
    return reduction_dtype(ufunc, array, None, out[0] if isinstance(out, tuple) else out)


@implements(np.nanargmax)
def nanargmax(a: Any, axis: Any = None, out: Any = None, *, keepdims: Any = NOT_GIVEN) -> Any:
    """Return the index of the first maximum, ignoring nan."""
    return _nan_arg_extreme(np.maximum, as_traced(a), axis, out, keepdims, "argmax")


@implements(np.nanargmin)
def nanargmin(a: Any, axis: Any = None, out: Any = None, *, keepdims: Any = NOT_GIVEN) -> Any:
    """Return the index of the first minimum, ignoring nan."""
    return _nan_arg_extreme(np.minimum, as_traced(a), axis, out, keepdims, "argmin")


def _nan_arg_extreme(ufunc: np.ufunc, array: TracedArray, axis: Any, out: Any, keepdims: Any, name: str) -> Any:
    filled, is_nan = replace_nan(array, REDUCTIONS[ufunc].start)
    if is_nan is not None:
        axes = reduction_axes(axis, array.ndim)
        all_nan = reduce_op(np.logical_and, is_nan, axes)
        any_all_nan = reduce_op(np.logical_or, all_nan, range(len(all_nan.shape.dims)))
        zero = require_current().constant(0, np.dtype(np.int64))
        require_current().fail_if(any_all_nan, zero, lambda number: ValueError("All-NaN slice encountered"))
    return _arg_extreme(filled, axis, out, flag(keepdims), name)


@implements(np.nancumsum)
def nancumsum(a: Any, axis: Any = None, dtype: Any = None, out: Any = None) -> Any:
    """Compute cumulative sums with nan as 0."""
    return _cumulative(np.add, replace_nan(as_traced(a), 0)[0], axis, dtype, out)


@implements(np.nancumprod)
def nancumprod(a: Any, axis: Any = None, dtype: Any = None, out: Any = None) -> Any:
    """Compute cumulative products with nan as 1."""
    return _cumulative(np.multiply, replace_nan(as_traced(a), 1)[0], axis, dtype, out)
