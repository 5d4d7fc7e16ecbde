"""NumPy's means, variances, and what is made of them."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np

from cyxla.numpy.conversion import convert
from cyxla.numpy.promotion import Dtype
from cyxla.numpy.reducing import NOT_GIVEN, axes_of, flag, mask_of, reduce_op
from cyxla.numpy.registry import implements
from cyxla.numpy.traced_array import TracedArray, as_traced, value_of
from cyxla.numpy.ufuncs import broadcast_to, deliver
from cyxla.types import from_numpy
from cyxla.xla.hlo.builder import XlaOp
from cyxla.xla.hlo.builder import functions as xla
from cyxla.xla.lib import values

# -- means and variances


def _types(dtype: Dtype, asked: Any) -> tuple[Dtype, Dtype]:
    """The types that a mean is computed in, and given in."""
    result = np.dtype(asked) if asked is not None else dtype if dtype.kind in "fcV" else np.dtype(np.float64)
    narrow = asked is None and result.itemsize == 2 and result.kind in "fV"
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
    if values.is_complex(op):
        return xla.complex_(xla.divide(xla.real(op), count), xla.divide(xla.imag(op), count))
    return xla.divide(op, count)


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
    return deliver([TracedArray(convert(made, outer))], out, True, "unsafe", "mean")


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
    return deliver([TracedArray(made)], out, True, "unsafe", "var")


@implements(np.std)
def std(
    a: Any, axis: Any = None, dtype: Any = None, out: Any = None, ddof: Any = 0, keepdims: Any = NOT_GIVEN, *,
    where: Any = NOT_GIVEN, mean: Any = NOT_GIVEN, correction: Any = NOT_GIVEN,
) -> Any:  # fmt: skip
    """Standard deviations along axes."""
    made = _var(as_traced(a), axis, dtype, _degrees(ddof, correction), keepdims, where, mean, root=True)
    return deliver([TracedArray(made)], out, True, "unsafe", "std")


def _var(
    array: TracedArray, axis: Any, dtype: Any, ddof: Any, keepdims: Any, where: Any, known: Any, root: bool = False
) -> XlaOp:
    inner, outer = _types(array.dtype, dtype)
    axes = axes_of(axis, array.ndim, of_scalars=False)
    made = _variance(convert(value_of(array), inner), axes, ddof, flag(keepdims), where, known)
    return convert(xla.sqrt(made) if root else made, _real(outer))


def _real(dtype: Dtype) -> Dtype:
    return np.dtype(f"f{dtype.itemsize // 2}") if dtype.kind == "c" else dtype
