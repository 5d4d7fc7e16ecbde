"""NumPy's means, variances, and what is made of them."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np
from numpy.lib.array_utils import normalize_axis_tuple

from cyxla.errors import ShapeError, UnimplementedError
from cyxla.numpy.conversion import convert
from cyxla.numpy.promotion import Dtype, result_type
from cyxla.numpy.reducing import NOT_GIVEN, axes_of, flag, handed, known_values, mask_of, reduce_op
from cyxla.numpy.registry import implements
from cyxla.numpy.tracing.trace import require_current
from cyxla.numpy.tracing.traced_array import TracedArray, as_traced, cast, value_of
from cyxla.numpy.ufuncs.apply import broadcast_to
from cyxla.types import ElementType, from_numpy
from cyxla.xla.hlo.builder import XlaOp
from cyxla.xla.hlo.builder import functions as xla
from cyxla.xla.lib import values

# -- means and variances


def _types(dtype: Dtype, asked: Any) -> tuple[Dtype, Dtype]:
    """The types that a mean is computed in, and given in."""
    result = np.dtype(asked) if asked is not None else dtype if dtype.kind in "fcV" else np.dtype(np.float64)
    narrow = result.itemsize == 2 and result.kind in "fV"
    return (np.dtype(np.float32) if narrow else result), result


def _count(where: Any, sizes: Sequence[int], axes: Sequence[int], keepdims: bool, like: XlaOp) -> XlaOp:
    """How many elements a mean is of, as numbers of a type that it can be divided by."""
    real = xla.real(like) if values.is_complex(like) else like
    if where is NOT_GIVEN or where is True:
        return values.scalar(real, prod(sizes[d] for d in axes))
    chosen = xla.convert(mask_of(where, sizes), from_numpy(np.dtype(np.int64)))
    return xla.convert(reduce_op(np.add, chosen, axes, keepdims), real.shape.dtype)


def _chosen(op: XlaOp, where: Any) -> XlaOp:
    """The elements, 0 in place of those that ``where=`` leaves out."""
    if where is NOT_GIVEN or where is True:
        return op
    return xla.select(mask_of(where, op.shape.dims), op, values.zeros_like(op))


def divided(op: XlaOp, count: XlaOp) -> XlaOp:
    """Elements divided by counts of the same sizes, or by one."""
    count = broadcast_to(count, op.shape.dims)
    if not values.is_complex(op):
        return xla.divide(op, count)
    real, imag = xla.real(op), xla.imag(op)
    none = values.zeros_like(real)  # a complex count has 0 for a part, which makes nan of infinities
    real, imag = xla.add(real, xla.multiply(imag, none)), xla.subtract(imag, xla.multiply(real, none))
    return xla.complex_(xla.divide(real, count), xla.divide(imag, count))


def _mean(op: XlaOp, axes: Sequence[int], keepdims: bool, where: Any) -> XlaOp:
    sums = reduce_op(np.add, _chosen(op, where), axes, keepdims)
    return divided(sums, _count(where, op.shape.dims, axes, keepdims, sums))


@implements(np.mean)
def mean(
    a: Any, axis: Any = None, dtype: Any = None, out: Any = None, keepdims: Any = NOT_GIVEN, *, where: Any = NOT_GIVEN
) -> Any:
    """Means along axes."""
    given = as_traced(a)
    inner, outer = _types(given.dtype, dtype)
    made = _mean(convert(value_of(given), inner), axes_of(axis, given.ndim, of_scalars=False), flag(keepdims), where)
    return handed(convert(made, outer), out, "mean")


def _degrees(ddof: Any, correction: Any) -> Any:
    if correction is NOT_GIVEN:
        return ddof
    if ddof != 0:
        raise ValueError("ddof and correction can't be provided simultaneously.")
    return correction


def _squares(op: XlaOp) -> XlaOp:
    if not values.is_complex(op):
        return xla.multiply(op, op)
    real, imag = xla.real(op), xla.imag(op)
    return xla.add(xla.multiply(real, real), xla.multiply(imag, imag))


def _variance(op: XlaOp, axes: Sequence[int], ddof: Any, keepdims: bool, where: Any, known: Any) -> XlaOp:
    sizes = op.shape.dims
    if known is NOT_GIVEN:
        middle = _mean(op, axes, True, where)
    else:
        middle = convert(value_of(as_traced(known)), values.numpy_type(op))
    squares = _squares(xla.subtract(op, broadcast_to(middle, sizes)))
    sums = reduce_op(np.add, _chosen(squares, where), axes, keepdims)
    count = _count(where, sizes, axes, keepdims, sums)
    less = value_of(as_traced(ddof))
    return divided(sums, xla.maximum(_less(count, less), broadcast_to(values.scalar(count, 0), count.shape.dims)))


def _less(count: XlaOp, ddof: XlaOp) -> XlaOp:
    return xla.subtract(count, broadcast_to(convert(ddof, values.numpy_type(count)), count.shape.dims))


@implements(np.var)
def var(
    a: Any, axis: Any = None, dtype: Any = None, out: Any = None, ddof: Any = 0, keepdims: Any = NOT_GIVEN, *,
    where: Any = NOT_GIVEN, mean: Any = NOT_GIVEN, correction: Any = NOT_GIVEN,
) -> Any:  # fmt: skip
    """Variances along axes."""
    made = _var(as_traced(a), axis, dtype, _degrees(ddof, correction), keepdims, where, mean)
    return handed(made, out, "var")


@implements(np.std)
def std(
    a: Any, axis: Any = None, dtype: Any = None, out: Any = None, ddof: Any = 0, keepdims: Any = NOT_GIVEN, *,
    where: Any = NOT_GIVEN, mean: Any = NOT_GIVEN, correction: Any = NOT_GIVEN,
) -> Any:  # fmt: skip
    """Standard deviations along axes."""
    made = _var(as_traced(a), axis, dtype, _degrees(ddof, correction), keepdims, where, mean, root=True)
    return handed(made, out, "std")


def _var(
    array: TracedArray, axis: Any, dtype: Any, ddof: Any, keepdims: Any, where: Any, known: Any, root: bool = False
) -> XlaOp:
    inner, outer = _types(array.dtype, dtype)
    if root and inner.kind not in "fcV":
        raise UnimplementedError(f"std with dtype={inner} cannot be traced", hint="np.std(x).astype(..)")
    axes = axes_of(axis, array.ndim, of_scalars=False)
    made = _variance(convert(value_of(array), inner), axes, ddof, flag(keepdims), where, known)
    return convert(xla.sqrt(made) if root else made, _real(outer))


def _real(dtype: Dtype) -> Dtype:
    return np.dtype(f"f{dtype.itemsize // 2}") if dtype.kind == "c" else dtype


# -- nan left out


def _check_inexact(dtype: Any, out: Any) -> None:
    for what, asked in (("dtype", dtype), ("out", None if out is None else out.dtype)):
        if asked is not None and np.dtype(asked).kind not in "fcV":
            raise TypeError(f"If a is inexact, then {what} must be inexact")


def _present(op: XlaOp, where: Any) -> XlaOp:
    """Where elements are that are not nan and that ``where=`` does not leave out."""
    there = xla.eq(op, op)
    return there if where is NOT_GIVEN or where is True else xla.and_(there, mask_of(where, op.shape.dims))


def _counted(there: XlaOp, axes: Sequence[int], keepdims: bool) -> XlaOp:
    return reduce_op(np.add, xla.convert(there, ElementType.S64), axes, keepdims)


def _mean_of(op: XlaOp, there: XlaOp, axes: Sequence[int], keepdims: bool) -> XlaOp:
    sums = reduce_op(np.add, xla.select(there, op, values.zeros_like(op)), axes, keepdims)
    return divided(sums, _as_real(_counted(there, axes, keepdims), sums))


def _as_real(count: XlaOp, like: XlaOp) -> XlaOp:
    return convert(count, _real(values.numpy_type(like)))


@implements(np.nanmean)
def nanmean(
    a: Any, axis: Any = None, dtype: Any = None, out: Any = None, keepdims: Any = NOT_GIVEN, *, where: Any = NOT_GIVEN
) -> Any:
    """Means of what is not nan."""
    given = as_traced(a)
    if given.dtype.kind not in "fcV":
        return mean(given, axis, dtype, out, keepdims, where=where)
    _check_inexact(dtype, out)
    inner, outer = _types(given.dtype, dtype)
    op = convert(value_of(given), inner)
    made = _mean_of(op, _present(op, where), axes_of(axis, given.ndim), flag(keepdims))
    return handed(convert(made, outer), out, "nanmean")


@implements(np.nanvar)
def nanvar(
    a: Any, axis: Any = None, dtype: Any = None, out: Any = None, ddof: Any = 0, keepdims: Any = NOT_GIVEN, *,
    where: Any = NOT_GIVEN, mean: Any = NOT_GIVEN, correction: Any = NOT_GIVEN,
) -> Any:  # fmt: skip
    """Variances of what is not nan."""
    given = as_traced(a)
    if given.dtype.kind not in "fcV":
        return var(given, axis, dtype, out, ddof, keepdims, where=where, mean=mean, correction=correction)
    _check_inexact(dtype, out)
    made = _nan_variance(given, axis, dtype, _degrees(ddof, correction), flag(keepdims), where, mean)
    return handed(made, out, "nanvar")


@implements(np.nanstd)
def nanstd(
    a: Any, axis: Any = None, dtype: Any = None, out: Any = None, ddof: Any = 0, keepdims: Any = NOT_GIVEN, *,
    where: Any = NOT_GIVEN, mean: Any = NOT_GIVEN, correction: Any = NOT_GIVEN,
) -> Any:  # fmt: skip
    """Standard deviations of what is not nan."""
    given = as_traced(a)
    if given.dtype.kind not in "fcV":
        return std(given, axis, dtype, out, ddof, keepdims, where=where, mean=mean, correction=correction)
    _check_inexact(dtype, out)
    made = _nan_variance(given, axis, dtype, _degrees(ddof, correction), flag(keepdims), where, mean, root=True)
    return handed(made, out, "nanstd")


def _nan_variance(
    array: TracedArray, axis: Any, dtype: Any, ddof: Any, keepdims: bool, where: Any, known: Any, root: bool = False
) -> XlaOp:
    inner, outer = _types(array.dtype, dtype)
    op, axes = convert(value_of(array), inner), axes_of(axis, array.ndim)
    there = _present(op, where)
    middle = _mean_of(op, there, axes, True) if known is NOT_GIVEN else convert(value_of(as_traced(known)), inner)
    apart = xla.subtract(op, broadcast_to(middle, op.shape.dims))
    narrow = apart if dtype is None else convert(apart, array.dtype)  # NumPy keeps them in the array's own type
    squares = convert(_squares(narrow), _real(inner))
    sums = reduce_op(np.add, xla.select(there, squares, values.zeros_like(squares)), axes, keepdims)
    count = _less(_as_real(_counted(there, axes, keepdims), sums), value_of(as_traced(ddof)))
    enough = xla.gt(count, values.zeros_like(count))
    made = xla.select(enough, divided(sums, count), values.full_like(sums, np.nan))
    return convert(xla.sqrt(made) if root else made, _real(outer))


# -- weights and pairs


@implements(np.average)
def average(a: Any, axis: Any = None, weights: Any = None, returned: bool = False, *, keepdims: Any = NOT_GIVEN) -> Any:
    """Means in which elements have weights."""
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
    """Weights of the sizes of an array, or of the axes that are averaged, as ones that stand under its elements."""
    if weights.shape.dims == array.shape:
        return weights
    if axis is None:
        raise TypeError("Axis must be specified when shapes of a and weights differ.")
    named = normalize_axis_tuple(axis, array.ndim)
    if weights.shape.dims != tuple(array.shape[d] for d in named):
        raise ShapeError("Shape of weights must be consistent with shape of a along specified axis.")
    return xla.broadcast_in_dim(weights, array.shape, named)


def _refuse_zero(total: XlaOp, weights: Any) -> None:
    """Weights that are known are looked at now; what a run finds is checked by the run."""
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
    """Covariances of variables."""
    if ddof is not None and ddof != int(ddof):
        raise ValueError("ddof must be integer")
    observed = _observations(as_traced(m), None if y is None else as_traced(y), rowvar, dtype)
    if observed.shape[0] == 0:
        return TracedArray(xla.reshape(value_of(observed), (0, 0)))
    degrees = (0 if bias else 1) if ddof is None else ddof
    weights = _weights_of(observed, fweights, aweights)
    middle, total = average(observed, 1, weights, returned=True)
    count = observed.shape[1] - degrees if weights is None else _degrees_left(total[0], weights, aweights, degrees)
    apart = observed - middle[:, None]
    other = apart if weights is None else apart * weights
    return np.squeeze(np.dot(apart, np.conj(other.T)) * _inverse(count, apart))


def _observations(one: TracedArray, other: TracedArray | None, rowvar: bool, dtype: Any) -> Any:
    """One row for each variable, one column for each time that it was observed."""
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
    """The weights of both kinds together; None where there are none."""
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
    """One by the degrees of freedom, which are never less than 0."""
    dtype = _real(like.dtype)
    op = value_of(as_traced(count, dtype) if not isinstance(count, TracedArray) else count)
    op = convert(op, dtype)
    return TracedArray(xla.divide(values.scalar(op, 1), xla.maximum(op, values.scalar(op, 0))))


@implements(np.corrcoef)
def corrcoef(x: Any, y: Any = None, rowvar: bool = True, *, dtype: Any = None) -> Any:
    """Correlations of variables."""
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
