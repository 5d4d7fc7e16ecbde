"""Means, variances and related statistics."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np
from numpy.lib.array_utils import normalize_axis_tuple

from cyxla.errors import DTypeError, ShapeError
from cyxla.numpy.tracing.arrays.traced_array import TracedArray, as_traced, cast, value_of
from cyxla.numpy.tracing.registry import implements
from cyxla.numpy.tracing.results.conversion import convert
from cyxla.numpy.tracing.results.promotion import Dtype, result_type
from cyxla.numpy.tracing.trace import require_current
from cyxla.numpy.ufunc_methods.reduce import (
    NOT_GIVEN,
    flag,
    known_values,
    mask_of,
    reduce_op,
    reduction_axes,
    reduction_dtype,
    reduction_to_out,
    selects_all,
)  # fmt: skip
from cyxla.numpy.ufuncs.apply import broadcast_to
from cyxla.types import ElementType
from cyxla.xla.hlo.builder import XlaOp
from cyxla.xla.hlo.builder import functions as xla
from cyxla.xla.lib import values

# -- means and variances


def _axes(axis: Any, array: TracedArray, where: Any) -> tuple[int, ...]:
    """Return the axes of a mean: those of a scalar count only with ``where=``, as in NumPy."""
    return reduction_axes(axis, array.ndim, of_scalars=not selects_all(where))


def _count(where: Any, sizes: Sequence[int], axes: Sequence[int], keepdims: bool) -> Any:
    """Return the number of elements of a mean: a NumPy number, or traced with ``where=``."""
    if selects_all(where):
        return np.int64(prod(sizes[d] for d in axes))
    selected = xla.convert(mask_of(where, sizes), ElementType.S64)
    return TracedArray(reduce_op(np.add, selected, axes, keepdims))


def _sum(array: TracedArray, dtype: Dtype, axes: Sequence[int], keepdims: bool, where: Any) -> XlaOp:
    """Sum masked elements in a dtype."""
    op = convert(value_of(array), dtype)
    if not selects_all(where):
        op = xla.select(mask_of(where, op.shape.dims), op, values.zeros_like(op))
    return reduce_op(np.add, op, axes, keepdims)


def _divide(op: XlaOp, count: Any) -> XlaOp:
    """Divide sums by counts; quotients of integers are truncated."""
    dtype = values.numpy_type(op)
    if dtype.kind in "biu":
        return convert(_divide(convert(op, np.dtype(np.float64)), count), dtype)
    if dtype.itemsize == 2:  # 16-bit floats cannot represent large counts
        return convert(_divide(convert(op, np.dtype(np.float32)), count), dtype)
    real = _real_dtype(dtype)
    divisor = broadcast_to(convert(value_of(as_traced(count)), real), op.shape.dims)
    return _divide_complex(op, divisor) if dtype.kind == "c" else xla.divide(op, divisor)


def _divide_complex(op: XlaOp, count: XlaOp) -> XlaOp:
    real, imag = xla.real(op), xla.imag(op)
    zero = values.zeros_like(real)  # NumPy divides by the complex number count + 0j, so infinities become nan
    real, imag = xla.add(real, xla.multiply(imag, zero)), xla.subtract(imag, xla.multiply(real, zero))
    return xla.complex_(xla.divide(real, count), xla.divide(imag, count))


def _real_dtype(dtype: Dtype) -> Dtype:
    return np.dtype(f"f{dtype.itemsize // 2}") if dtype.kind == "c" else dtype


def _requested_dtype(dtype: Any, array: TracedArray) -> Dtype | None:
    """Return the dtype requested for sums: integers are averaged as float64."""
    if dtype is not None:
        requested: Dtype = np.dtype(dtype)
        return requested
    return np.dtype(np.float64) if array.dtype.kind in "biu" else None


def _convert_like_out(op: XlaOp, out: Any) -> XlaOp:
    """Convert sums as if they were stored in ``out=``, if it is given."""
    return op if out is None else convert(op, out.dtype)


@implements(np.mean)
def mean(
    a: Any, axis: Any = None, dtype: Any = None, out: Any = None, keepdims: Any = NOT_GIVEN, *, where: Any = NOT_GIVEN
) -> Any:
    """Compute means along axes."""
    array = as_traced(a)
    axes, keep = _axes(axis, array, where), flag(keepdims)
    requested = _requested_dtype(dtype, array)
    if requested is None and array.itemsize == 2:
        requested = np.dtype(np.float32)
    sums = _convert_like_out(_sum(array, reduction_dtype(np.add, array, requested, out), axes, keep, where), out)
    result = _divide(sums, _count(where, array.shape, axes, keep))
    if dtype is None and out is None and array.itemsize == 2 and array.dtype.kind in "fV":
        result = convert(result, array.dtype)
    return reduction_to_out(result, out, "mean")


def _resolve_ddof(ddof: Any, correction: Any) -> Any:
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
    result = _variance(as_traced(a), axis, dtype, out, _resolve_ddof(ddof, correction), flag(keepdims), where, mean)
    return reduction_to_out(result, out, "var")


@implements(np.std)
def std(
    a: Any, axis: Any = None, dtype: Any = None, out: Any = None, ddof: Any = 0, keepdims: Any = NOT_GIVEN, *,
    where: Any = NOT_GIVEN, mean: Any = NOT_GIVEN, correction: Any = NOT_GIVEN,
) -> Any:  # fmt: skip
    """Compute standard deviations along axes."""
    result = _variance(as_traced(a), axis, dtype, out, _resolve_ddof(ddof, correction), flag(keepdims), where, mean)
    return reduction_to_out(_square_root(result, out), out, "std")


def _square_root(op: XlaOp, out: Any) -> XlaOp:
    """Compute square roots in the dtype of the variances; of integers only if there is a loop, as in NumPy."""
    dtype = values.numpy_type(op)
    if dtype.kind in "biu" and (op.shape.dims or out is not None):
        raise DTypeError(f"std: square roots cannot be stored as {dtype}")
    root: Any = np.sqrt(TracedArray(op))
    return convert(value_of(root), dtype)


def _variance(
    array: TracedArray, axis: Any, dtype: Any, out: Any, ddof: Any, keepdims: bool, where: Any, given_mean: Any
) -> XlaOp:
    """Compute variances as NumPy does: the mean in the requested dtype, deviations in the promoted one."""
    axes, requested = _axes(axis, array, where), _requested_dtype(dtype, array)
    center = given_mean
    if given_mean is NOT_GIVEN:
        sums = _sum(array, reduction_dtype(np.add, array, requested, None), axes, True, where)
        center = TracedArray(_divide(sums, _count(where, array.shape, axes, True)))
    deviations: Any = np.subtract(TracedArray(value_of(array)), center)
    squares = as_traced(np.square(deviations) if array.dtype.kind in "iuf" else _squared_magnitudes(deviations))
    result = _convert_like_out(
        _sum(squares, reduction_dtype(np.add, squares, requested, out), axes, keepdims, where), out
    )
    count: Any = np.maximum(_count(where, array.shape, axes, keepdims) - ddof, 0)
    return _divide(result, count)


def _squared_magnitudes(array: Any) -> Any:
    """Compute squares of absolute values."""
    if array.dtype.kind != "c":
        return array * array
    real, imag = np.real(array), np.imag(array)
    return real * real + imag * imag


# -- ignoring nan


def _check_inexact(dtype: Any, out: Any) -> None:
    for name, requested in (("dtype", dtype), ("out", None if out is None else out.dtype)):
        if requested is not None and np.dtype(requested).kind not in "fcV":
            raise TypeError(f"If a is inexact, then {name} must be inexact")


def _mask_nan(array: TracedArray, where: Any) -> tuple[TracedArray, XlaOp]:
    """Replace nan and masked elements by 0; return the array and a mask of the others."""
    op = value_of(array)
    present = xla.eq(op, op)
    if not selects_all(where):
        present = xla.and_(present, mask_of(where, op.shape.dims))
    return TracedArray(xla.select(present, op, values.zeros_like(op))), present


def _count_true(mask: XlaOp, axes: Sequence[int], keepdims: bool) -> Any:
    return TracedArray(reduce_op(np.add, xla.convert(mask, ElementType.S64), axes, keepdims))


@implements(np.nanmean)
def nanmean(
    a: Any, axis: Any = None, dtype: Any = None, out: Any = None, keepdims: Any = NOT_GIVEN, *, where: Any = NOT_GIVEN
) -> Any:
    """Compute means, ignoring nan."""
    array = as_traced(a)
    if array.dtype.kind not in "fcV":
        return mean(array, axis, dtype, out, keepdims, where=where)
    _check_inexact(dtype, out)
    axes, keep = reduction_axes(axis, array.ndim), flag(keepdims)
    filled, present = _mask_nan(array, where)
    sums = _convert_like_out(_sum(filled, reduction_dtype(np.add, array, dtype, out), axes, keep, NOT_GIVEN), out)
    return reduction_to_out(_divide(sums, _count_true(present, axes, keep)), out, "nanmean")


@implements(np.nanvar)
def nanvar(
    a: Any, axis: Any = None, dtype: Any = None, out: Any = None, ddof: Any = 0, keepdims: Any = NOT_GIVEN, *,
    where: Any = NOT_GIVEN, mean: Any = NOT_GIVEN, correction: Any = NOT_GIVEN,
) -> Any:  # fmt: skip
    """Compute variances, ignoring nan."""
    array = as_traced(a)
    if array.dtype.kind not in "fcV":
        return var(array, axis, dtype, out, ddof, keepdims, where=where, mean=mean, correction=correction)
    _check_inexact(dtype, out)
    result = _nan_variance(array, axis, dtype, out, _resolve_ddof(ddof, correction), flag(keepdims), where, mean)
    return reduction_to_out(result, out, "nanvar")


@implements(np.nanstd)
def nanstd(
    a: Any, axis: Any = None, dtype: Any = None, out: Any = None, ddof: Any = 0, keepdims: Any = NOT_GIVEN, *,
    where: Any = NOT_GIVEN, mean: Any = NOT_GIVEN, correction: Any = NOT_GIVEN,
) -> Any:  # fmt: skip
    """Compute standard deviations, ignoring nan."""
    array = as_traced(a)
    if array.dtype.kind not in "fcV":
        return std(array, axis, dtype, out, ddof, keepdims, where=where, mean=mean, correction=correction)
    _check_inexact(dtype, out)
    result = _nan_variance(array, axis, dtype, out, _resolve_ddof(ddof, correction), flag(keepdims), where, mean)
    return reduction_to_out(_square_root(result, out), out, "nanstd")


def _nan_variance(
    array: TracedArray, axis: Any, dtype: Any, out: Any, ddof: Any, keepdims: bool, where: Any, given_mean: Any
) -> XlaOp:
    """Compute variances as NumPy does: deviations are kept in the array's dtype."""
    axes = reduction_axes(axis, array.ndim)
    filled, present = _mask_nan(array, where)
    center = given_mean
    if given_mean is NOT_GIVEN:
        sums = _sum(filled, reduction_dtype(np.add, array, dtype, None), axes, True, NOT_GIVEN)
        center = TracedArray(_divide(sums, _count_true(present, axes, True)))
    deviations = convert(value_of(np.subtract(filled, center)), array.dtype)
    squares = _squared_magnitudes(TracedArray(xla.select(present, deviations, values.zeros_like(deviations))))
    result = _convert_like_out(
        _sum(squares, reduction_dtype(np.add, squares, dtype, out), axes, keepdims, NOT_GIVEN), out
    )
    degrees: Any = _count_true(present, axes, keepdims) - ddof
    return xla.select(value_of(degrees > 0), _divide(result, degrees), values.full_like(result, np.nan))


# -- weights and covariances


@implements(np.average)
def average(a: Any, axis: Any = None, weights: Any = None, returned: bool = False, *, keepdims: Any = NOT_GIVEN) -> Any:
    """Compute weighted means."""
    array = as_traced(a)
    if weights is None:
        result = mean(array, axis, keepdims=keepdims)
        total = TracedArray(values.full_like(value_of(result), array.size / result.size))  # raises NumPy's error
    else:
        result, total = _weighted_mean(array, axis, weights, flag(keepdims))
    return (result, total) if returned else result


def _weighted_mean(array: TracedArray, axis: Any, weights: Any, keepdims: bool) -> tuple[TracedArray, TracedArray]:
    axes = reduction_axes(axis, array.ndim, of_scalars=False)
    weights_array = as_traced(weights)
    extra = [np.dtype(np.float64)] if array.dtype.kind in "iub" else []
    common = result_type(array.dtype, weights_array.dtype, *extra)
    expanded = broadcast_weights(value_of(weights_array), array, axis)
    total = reduce_op(np.add, convert(expanded, common), axes, keepdims)
    _fail_if_zero_total(total, weights)
    products = xla.multiply(*(broadcast_to(convert(v, common), array.shape) for v in (value_of(array), expanded)))
    result = xla.divide(reduce_op(np.add, products, axes, keepdims), total)
    return TracedArray(result), TracedArray(total)


def broadcast_weights(weights: XlaOp, array: TracedArray, axis: Any) -> XlaOp:
    """Reshape weights, of the array or of the averaged axes, for broadcasting with the array."""
    if weights.shape.dims == array.shape:
        return weights
    if axis is None:
        raise TypeError("Axis must be specified when shapes of a and weights differ.")
    axes = normalize_axis_tuple(axis, array.ndim)
    if weights.shape.dims != tuple(array.shape[d] for d in axes):
        raise ShapeError("Shape of weights must be consistent with shape of a along specified axis.")
    return xla.broadcast_in_dim(weights, array.shape, axes)


def _fail_if_zero_total(total: XlaOp, weights: Any) -> None:
    """Make runs raise an error if weights sum to zero; known positive weights are not checked."""
    zero = xla.eq(total, values.zeros_like(total))
    known = known_values(weights)
    if known is not None and known.dtype.kind in "iuf" and known.size and (known > 0).all():
        return
    any_zero = reduce_op(np.logical_or, zero, range(len(zero.shape.dims)))
    index = require_current().constant(0, np.dtype(np.int64))
    error = ZeroDivisionError("Weights sum to zero, can't be normalized")
    require_current().fail_if(any_zero, index, lambda number: error)


@implements(np.cov)
def cov(
    m: Any, y: Any = None, rowvar: bool = True, bias: bool = False, ddof: Any = None, fweights: Any = None,
    aweights: Any = None, *, dtype: Any = None,
) -> Any:  # fmt: skip
    """Compute covariances."""
    if ddof is not None and ddof != int(ddof):
        raise ValueError("ddof must be integer")
    observations = _observations(as_traced(m), None if y is None else as_traced(y), rowvar, dtype)
    if observations.shape[0] == 0:
        return as_traced(np.zeros((0, 0)))  # NumPy's result without variables
    degrees = (0 if bias else 1) if ddof is None else ddof
    weights = _combine_weights(observations, fweights, aweights)
    center, total = average(observations, 1, weights, returned=True)
    count = (
        observations.shape[1] - degrees
        if weights is None
        else _degrees_of_freedom(total[0], weights, aweights, degrees)
    )
    deviations = observations - center[:, None]
    weighted = deviations if weights is None else deviations * weights
    return np.squeeze(np.dot(deviations, np.conj(weighted.T)) * _reciprocal(count, deviations))


def _observations(first: TracedArray, second: TracedArray | None, rowvar: bool, dtype: Any) -> Any:
    """Return observations, a row for each variable."""
    arrays = [first] if second is None else [first, second]
    if any(x.ndim > 2 for x in arrays):
        raise ValueError("m has more than 2 dimensions" if first.ndim > 2 else "y has more than 2 dimensions")
    common = result_type(*(x.dtype for x in arrays), np.dtype(np.float64)) if dtype is None else np.dtype(dtype)
    matrices: list[Any] = [np.atleast_2d(TracedArray(convert(value_of(x), common))) for x in arrays]
    rows = matrices[0] if rowvar or first.ndim == 1 else matrices[0].T
    if second is None or not rows.shape[0]:  # then NumPy has no variables, whatever the second array has
        return rows
    return np.concatenate([rows, matrices[1] if rowvar or matrices[1].shape[0] == 1 else matrices[1].T], axis=0)


def _combine_weights(observations: TracedArray, fweights: Any, aweights: Any) -> Any:
    """Multiply the weights of both kinds; None if there are none."""
    result: Any = None
    for argument, name in ((fweights, "fweights"), (aweights, "aweights")):
        if argument is None:
            continue
        weights = as_traced(argument)
        if name == "fweights" and weights.dtype.kind not in "iub":
            raise TypeError("fweights must be integer")
        if weights.ndim != 1:
            raise RuntimeError(f"cannot handle multidimensional {name}")
        if weights.size != observations.shape[1]:
            raise RuntimeError(f"incompatible numbers of samples and {name}")
        _fail_if_negative(weights, name)
        weights = cast(weights, np.float64)
        result = weights if result is None else result * weights
    return result


def _fail_if_negative(weights: TracedArray, name: str) -> None:
    op = value_of(weights)
    negative = reduce_op(np.logical_or, xla.lt(op, values.zeros_like(op)), [0])
    index = require_current().constant(0, np.dtype(np.int64))
    require_current().fail_if(negative, index, lambda number: ValueError(f"{name} cannot be negative"))


def _degrees_of_freedom(total: Any, weights: Any, aweights: Any, degrees: Any) -> Any:
    if degrees == 0:
        return total
    if aweights is None:
        return total - degrees
    return total - degrees * np.sum(weights * as_traced(aweights)) / total


def _reciprocal(count: Any, like: TracedArray) -> TracedArray:
    """Divide one by the degrees of freedom, which are at least 0."""
    dtype = _real_dtype(like.dtype)
    op = value_of(as_traced(count, dtype) if not isinstance(count, TracedArray) else count)
    op = convert(op, dtype)
    return TracedArray(xla.divide(values.scalar(op, 1), xla.maximum(op, values.scalar(op, 0))))


@implements(np.corrcoef)
def corrcoef(x: Any, y: Any = None, rowvar: bool = True, *, dtype: Any = None) -> Any:
    """Compute correlation coefficients."""
    covariance = cov(x, y, rowvar, dtype=dtype)
    if covariance.ndim == 0:
        return covariance / covariance
    variances = value_of(as_traced(np.diagonal(covariance)))
    deviations = TracedArray(xla.sqrt(xla.real(variances) if values.is_complex(variances) else variances))
    result = value_of(covariance / deviations[:, None] / deviations[None, :])
    if values.is_complex(result):
        return TracedArray(xla.complex_(_clamp_to_one(xla.real(result)), _clamp_to_one(xla.imag(result))))
    return TracedArray(_clamp_to_one(result))


def _clamp_to_one(op: XlaOp) -> XlaOp:
    return xla.clamp(values.scalar(op, -1), op, values.scalar(op, 1))
