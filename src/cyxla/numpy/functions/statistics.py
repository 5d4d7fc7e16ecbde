"""Means, variances and related statistics."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np
from numpy.lib.array_utils import normalize_axis_tuple

from cyxla.errors import DTypeError, ShapeError
from cyxla.numpy.tracing.conversion import convert
from cyxla.numpy.tracing.promotion import Dtype, result_type
from cyxla.numpy.tracing.registry import implements
from cyxla.numpy.tracing.trace import require_current
from cyxla.numpy.tracing.traced_array import TracedArray, as_traced, cast, value_of
from cyxla.numpy.ufunc_methods.reduce import (
    NOT_GIVEN,
    axes_of,
    flag,
    known_values,
    mask_of,
    reduce_op,
    reduction_to_out,
    selects_all,
    type_of,
)  # fmt: skip
from cyxla.numpy.ufuncs.apply import broadcast_to
from cyxla.types import ElementType
from cyxla.xla.hlo.builder import XlaOp
from cyxla.xla.hlo.builder import functions as xla
from cyxla.xla.lib import values

# -- means and variances


def _axes(axis: Any, array: TracedArray, where: Any) -> tuple[int, ...]:
    """Return the axes of a mean: those of a scalar count only with ``where=``, as in NumPy."""
    return axes_of(axis, array.ndim, of_scalars=not selects_all(where))


def _count(where: Any, sizes: Sequence[int], axes: Sequence[int], keepdims: bool) -> Any:
    """Return the number of elements of a mean: a NumPy number, or traced with ``where=``."""
    if selects_all(where):
        return np.int64(prod(sizes[d] for d in axes))
    chosen = xla.convert(mask_of(where, sizes), ElementType.S64)
    return TracedArray(reduce_op(np.add, chosen, axes, keepdims))


def _sum(array: TracedArray, dtype: Dtype, axes: Sequence[int], keepdims: bool, where: Any) -> XlaOp:
    """Sum masked elements in a dtype."""
    op = convert(value_of(array), dtype)
    if not selects_all(where):
        op = xla.select(mask_of(where, op.shape.dims), op, values.zeros_like(op))
    return reduce_op(np.add, op, axes, keepdims)


def _divided(op: XlaOp, count: Any) -> XlaOp:
    """Divide sums by counts; quotients of integers are truncated."""
    dtype = values.numpy_type(op)
    if dtype.kind in "biu":
        return convert(_divided(convert(op, np.dtype(np.float64)), count), dtype)
    if dtype.itemsize == 2:  # 16-bit floats do not hold counts
        return convert(_divided(convert(op, np.dtype(np.float32)), count), dtype)
    real = _real(dtype)
    given = broadcast_to(convert(value_of(as_traced(count)), real), op.shape.dims)
    return _each_part(op, given) if dtype.kind == "c" else xla.divide(op, given)


def _each_part(op: XlaOp, count: XlaOp) -> XlaOp:
    real, imag = xla.real(op), xla.imag(op)
    none = values.zeros_like(real)  # a complex count has 0 for a part, which makes nan of infinities
    real, imag = xla.add(real, xla.multiply(imag, none)), xla.subtract(imag, xla.multiply(real, none))
    return xla.complex_(xla.divide(real, count), xla.divide(imag, count))


def _real(dtype: Dtype) -> Dtype:
    return np.dtype(f"f{dtype.itemsize // 2}") if dtype.kind == "c" else dtype


def _asked(dtype: Any, array: TracedArray) -> Dtype | None:
    """Return the dtype requested for sums: integers are averaged as float64."""
    if dtype is not None:
        asked: Dtype = np.dtype(dtype)
        return asked
    return np.dtype(np.float64) if array.dtype.kind in "biu" else None


def _held(op: XlaOp, out: Any) -> XlaOp:
    """Convert sums as if they were stored in ``out=``, if it is given."""
    return op if out is None else convert(op, out.dtype)


@implements(np.mean)
def mean(
    a: Any, axis: Any = None, dtype: Any = None, out: Any = None, keepdims: Any = NOT_GIVEN, *, where: Any = NOT_GIVEN
) -> Any:
    """Compute means along axes."""
    given = as_traced(a)
    axes, keep = _axes(axis, given, where), flag(keepdims)
    asked = _asked(dtype, given)
    if asked is None and given.itemsize == 2:
        asked = np.dtype(np.float32)
    sums = _held(_sum(given, type_of(np.add, given, asked, out), axes, keep, where), out)
    made = _divided(sums, _count(where, given.shape, axes, keep))
    if dtype is None and out is None and given.itemsize == 2 and given.dtype.kind in "fV":
        made = convert(made, given.dtype)
    return reduction_to_out(made, out, "mean")


def _degrees(ddof: Any, correction: Any) -> Any:
    if correction is NOT_GIVEN:
        return ddof
    if ddof != 0:
        raise ValueError("ddof and correction can't be provided simultaneously.")
    return correction


@implements(np.var)
def var(
    a: Any, axis: Any = None, dtype: Any = None, out: Any = None, ddof: Any = 0, keepdims: Any = NOT_GIVEN, *,
    where: Any = NOT_GIVEN, mean: Any = NOT_GIVEN, correction: Any = NOT_GIVEN,
) -> Any:  # fmt: skip
    """Compute variances along axes."""
    made = _variance(as_traced(a), axis, dtype, out, _degrees(ddof, correction), flag(keepdims), where, mean)
    return reduction_to_out(made, out, "var")


@implements(np.std)
def std(
    a: Any, axis: Any = None, dtype: Any = None, out: Any = None, ddof: Any = 0, keepdims: Any = NOT_GIVEN, *,
    where: Any = NOT_GIVEN, mean: Any = NOT_GIVEN, correction: Any = NOT_GIVEN,
) -> Any:  # fmt: skip
    """Compute standard deviations along axes."""
    made = _variance(as_traced(a), axis, dtype, out, _degrees(ddof, correction), flag(keepdims), where, mean)
    return reduction_to_out(_root(made, out), out, "std")


def _root(op: XlaOp, out: Any) -> XlaOp:
    """Compute square roots in the dtype of the variances; of integers only if there is a loop, as in NumPy."""
    dtype = values.numpy_type(op)
    if dtype.kind in "biu" and (op.shape.dims or out is not None):
        raise DTypeError(f"square roots cannot be held as {dtype}")
    root: Any = np.sqrt(TracedArray(op))
    return convert(value_of(root), dtype)


def _variance(
    array: TracedArray, axis: Any, dtype: Any, out: Any, ddof: Any, keepdims: bool, where: Any, known: Any
) -> XlaOp:
    """Compute variances as NumPy does: the mean in the requested dtype, deviations in the promoted one."""
    axes, asked = _axes(axis, array, where), _asked(dtype, array)
    middle = known
    if known is NOT_GIVEN:
        sums = _sum(array, type_of(np.add, array, asked, None), axes, True, where)
        middle = TracedArray(_divided(sums, _count(where, array.shape, axes, True)))
    apart: Any = np.subtract(TracedArray(value_of(array)), middle)
    squares = as_traced(np.square(apart) if array.dtype.kind in "iuf" else _lengths(apart))
    made = _held(_sum(squares, type_of(np.add, squares, asked, out), axes, keepdims, where), out)
    count: Any = np.maximum(_count(where, array.shape, axes, keepdims) - ddof, 0)
    return _divided(made, count)


def _lengths(array: Any) -> Any:
    """Compute squares of absolute values."""
    if array.dtype.kind != "c":
        return array * array
    real, imag = np.real(array), np.imag(array)
    return real * real + imag * imag


# -- ignoring nan


def _check_inexact(dtype: Any, out: Any) -> None:
    for what, asked in (("dtype", dtype), ("out", None if out is None else out.dtype)):
        if asked is not None and np.dtype(asked).kind not in "fcV":
            raise TypeError(f"If a is inexact, then {what} must be inexact")


def _present(array: TracedArray, where: Any) -> tuple[TracedArray, XlaOp]:
    """Replace nan and masked elements by 0; return the array and a mask of the others."""
    op = value_of(array)
    there = xla.eq(op, op)
    if not selects_all(where):
        there = xla.and_(there, mask_of(where, op.shape.dims))
    return TracedArray(xla.select(there, op, values.zeros_like(op))), there


def _counted(there: XlaOp, axes: Sequence[int], keepdims: bool) -> Any:
    return TracedArray(reduce_op(np.add, xla.convert(there, ElementType.S64), axes, keepdims))


@implements(np.nanmean)
def nanmean(
    a: Any, axis: Any = None, dtype: Any = None, out: Any = None, keepdims: Any = NOT_GIVEN, *, where: Any = NOT_GIVEN
) -> Any:
    """Compute means, ignoring nan."""
    given = as_traced(a)
    if given.dtype.kind not in "fcV":
        return mean(given, axis, dtype, out, keepdims, where=where)
    _check_inexact(dtype, out)
    axes, keep = axes_of(axis, given.ndim), flag(keepdims)
    filled, there = _present(given, where)
    sums = _held(_sum(filled, type_of(np.add, given, dtype, out), axes, keep, NOT_GIVEN), out)
    return reduction_to_out(_divided(sums, _counted(there, axes, keep)), out, "nanmean")


@implements(np.nanvar)
def nanvar(
    a: Any, axis: Any = None, dtype: Any = None, out: Any = None, ddof: Any = 0, keepdims: Any = NOT_GIVEN, *,
    where: Any = NOT_GIVEN, mean: Any = NOT_GIVEN, correction: Any = NOT_GIVEN,
) -> Any:  # fmt: skip
    """Compute variances, ignoring nan."""
    given = as_traced(a)
    if given.dtype.kind not in "fcV":
        return var(given, axis, dtype, out, ddof, keepdims, where=where, mean=mean, correction=correction)
    _check_inexact(dtype, out)
    made = _nan_variance(given, axis, dtype, out, _degrees(ddof, correction), flag(keepdims), where, mean)
    return reduction_to_out(made, out, "nanvar")


@implements(np.nanstd)
def nanstd(
    a: Any, axis: Any = None, dtype: Any = None, out: Any = None, ddof: Any = 0, keepdims: Any = NOT_GIVEN, *,
    where: Any = NOT_GIVEN, mean: Any = NOT_GIVEN, correction: Any = NOT_GIVEN,
) -> Any:  # fmt: skip
    """Compute standard deviations, ignoring nan."""
    given = as_traced(a)
    if given.dtype.kind not in "fcV":
        return std(given, axis, dtype, out, ddof, keepdims, where=where, mean=mean, correction=correction)
    _check_inexact(dtype, out)
    made = _nan_variance(given, axis, dtype, out, _degrees(ddof, correction), flag(keepdims), where, mean)
    return reduction_to_out(_root(made, out), out, "nanstd")


def _nan_variance(
    array: TracedArray, axis: Any, dtype: Any, out: Any, ddof: Any, keepdims: bool, where: Any, known: Any
) -> XlaOp:
    """Compute variances as NumPy does: deviations are kept in the array's dtype."""
    axes = axes_of(axis, array.ndim)
    filled, there = _present(array, where)
    middle = known
    if known is NOT_GIVEN:
        sums = _sum(filled, type_of(np.add, array, dtype, None), axes, True, NOT_GIVEN)
        middle = TracedArray(_divided(sums, _counted(there, axes, True)))
    apart = convert(value_of(np.subtract(filled, middle)), array.dtype)
    squares = _lengths(TracedArray(xla.select(there, apart, values.zeros_like(apart))))
    made = _held(_sum(squares, type_of(np.add, squares, dtype, out), axes, keepdims, NOT_GIVEN), out)
    left: Any = _counted(there, axes, keepdims) - ddof
    return xla.select(value_of(left > 0), _divided(made, left), values.full_like(made, np.nan))


# -- weights and covariances


@implements(np.average)
def average(a: Any, axis: Any = None, weights: Any = None, returned: bool = False, *, keepdims: Any = NOT_GIVEN) -> Any:
    """Compute weighted means."""
    array = as_traced(a)
    if weights is None:
        made = mean(array, axis, keepdims=keepdims)
        total = TracedArray(values.full_like(value_of(made), array.size / made.size if made.size else np.nan))
    else:
        made, total = _weighted(array, axis, weights, flag(keepdims))
    return (made, total) if returned else made


def _weighted(array: TracedArray, axis: Any, weights: Any, keepdims: bool) -> tuple[TracedArray, TracedArray]:
    axes = axes_of(axis, array.ndim, of_scalars=False)
    given = as_traced(weights)
    extra = [np.dtype(np.float64)] if array.dtype.kind in "iub" else []
    common = result_type(array.dtype, given.dtype, *extra)
    spread = spread_weights(value_of(given), array, axis)
    total = reduce_op(np.add, convert(spread, common), axes, keepdims)
    _refuse_zero(total, weights)
    products = xla.multiply(*(broadcast_to(convert(v, common), array.shape) for v in (value_of(array), spread)))
    made = xla.divide(reduce_op(np.add, products, axes, keepdims), total)
    return TracedArray(made), TracedArray(total)


def spread_weights(weights: XlaOp, array: TracedArray, axis: Any) -> XlaOp:
    """Reshape weights, of the array or of the averaged axes, for broadcasting with the array."""
    if weights.shape.dims == array.shape:
        return weights
    if axis is None:
        raise TypeError("Axis must be specified when shapes of a and weights differ.")
    named = normalize_axis_tuple(axis, array.ndim)
    if weights.shape.dims != tuple(array.shape[d] for d in named):
        raise ShapeError("Shape of weights must be consistent with shape of a along specified axis.")
    return xla.broadcast_in_dim(weights, array.shape, named)


def _refuse_zero(total: XlaOp, weights: Any) -> None:
    """Make runs raise an error if weights sum to zero; known positive weights are not checked."""
    zero = xla.eq(total, values.zeros_like(total))
    known = known_values(weights)
    if known is not None and known.dtype.kind in "iuf" and (known > 0).all():
        return
    some = reduce_op(np.logical_or, zero, range(len(zero.shape.dims)))
    nothing = require_current().constant(0, np.dtype(np.int64))
    make = ZeroDivisionError("Weights sum to zero, can't be normalized")
    require_current().fail_if(some, nothing, lambda number: make)


@implements(np.cov)
def cov(
    m: Any, y: Any = None, rowvar: bool = True, bias: bool = False, ddof: Any = None, fweights: Any = None,
    aweights: Any = None, *, dtype: Any = None,
) -> Any:  # fmt: skip
    """Compute covariances."""
    if ddof is not None and ddof != int(ddof):
        raise ValueError("ddof must be integer")
    observed = _observations(as_traced(m), None if y is None else as_traced(y), rowvar, dtype)
    if observed.shape[0] == 0:
        return as_traced(np.zeros((0, 0)))  # for any variables
    degrees = (0 if bias else 1) if ddof is None else ddof
    weights = _weights_of(observed, fweights, aweights)
    middle, total = average(observed, 1, weights, returned=True)
    count = observed.shape[1] - degrees if weights is None else _degrees_left(total[0], weights, aweights, degrees)
    apart = observed - middle[:, None]
    other = apart if weights is None else apart * weights
    return np.squeeze(np.dot(apart, np.conj(other.T)) * _inverse(count, apart))


def _observations(one: TracedArray, other: TracedArray | None, rowvar: bool, dtype: Any) -> Any:
    """Return observations, a row for each variable."""
    given = [one] if other is None else [one, other]
    if any(x.ndim > 2 for x in given):
        raise ValueError("m has more than 2 dimensions" if one.ndim > 2 else "y has more than 2 dimensions")
    wanted = result_type(*(x.dtype for x in given), np.dtype(np.float64)) if dtype is None else np.dtype(dtype)
    rows = [_rows(TracedArray(convert(value_of(x), wanted)), rowvar) for x in given]
    return rows[0] if len(rows) == 1 else np.concatenate(rows, axis=0)


def _rows(array: Any, rowvar: bool) -> Any:
    if array.ndim < 2:
        return np.reshape(array, (1, array.size))
    return array if rowvar else np.transpose(array)


def _weights_of(observed: TracedArray, fweights: Any, aweights: Any) -> Any:
    """Multiply the weights of both kinds; None if there are none."""
    made: Any = None
    for given, name in ((fweights, "fweights"), (aweights, "aweights")):
        if given is None:
            continue
        weights = as_traced(given)
        if name == "fweights" and weights.dtype.kind not in "iub":
            raise TypeError("fweights must be integer")
        if weights.ndim != 1:
            raise RuntimeError(f"cannot handle multidimensional {name}")
        if weights.size != observed.shape[1]:
            raise RuntimeError(f"incompatible numbers of samples and {name}")
        _refuse_negative(weights, name)
        weights = cast(weights, np.float64)
        made = weights if made is None else made * weights
    return made


def _refuse_negative(weights: TracedArray, name: str) -> None:
    op = value_of(weights)
    bad = reduce_op(np.logical_or, xla.lt(op, values.zeros_like(op)), [0])
    nothing = require_current().constant(0, np.dtype(np.int64))
    require_current().fail_if(bad, nothing, lambda number: ValueError(f"{name} cannot be negative"))


def _degrees_left(total: Any, weights: Any, aweights: Any, degrees: Any) -> Any:
    if degrees == 0:
        return total
    if aweights is None:
        return total - degrees
    return total - degrees * np.sum(weights * as_traced(aweights)) / total


def _inverse(count: Any, like: TracedArray) -> TracedArray:
    """Divide one by the degrees of freedom, which are at least 0."""
    dtype = _real(like.dtype)
    op = value_of(as_traced(count, dtype) if not isinstance(count, TracedArray) else count)
    op = convert(op, dtype)
    return TracedArray(xla.divide(values.scalar(op, 1), xla.maximum(op, values.scalar(op, 0))))


@implements(np.corrcoef)
def corrcoef(x: Any, y: Any = None, rowvar: bool = True, *, dtype: Any = None) -> Any:
    """Compute correlation coefficients."""
    joint = cov(x, y, rowvar, dtype=dtype)
    if joint.ndim == 0:
        return joint / joint
    spread = value_of(as_traced(np.diagonal(joint)))
    size = TracedArray(xla.sqrt(xla.real(spread) if values.is_complex(spread) else spread))
    made = value_of(joint / size[:, None] / size[None, :])
    if values.is_complex(made):
        return TracedArray(xla.complex_(_within_one(xla.real(made)), _within_one(xla.imag(made))))
    return TracedArray(_within_one(made))


def _within_one(op: XlaOp) -> XlaOp:
    return xla.clamp(values.scalar(op, -1), op, values.scalar(op, 1))
