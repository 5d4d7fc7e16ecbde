"""Linear systems, inverses, determinants, matrix powers."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from operator import index
from typing import Any

import numpy as np
from numpy.linalg import _linalg as results

from cyxla.errors import ShapeError
from cyxla.numpy.functions.linalg import gradients, lapack
from cyxla.numpy.functions.linalg.factorisations import decompose_svd
from cyxla.numpy.functions.linalg.gradients import differentiable
from cyxla.numpy.functions.linalg.lapack import LinAlgError, adjoint, fail_where, nonzero, to_double
from cyxla.numpy.tracing import trace as _trace
from cyxla.numpy.tracing.arrays.traced_array import TracedArray, as_traced, value_of
from cyxla.numpy.tracing.registry import implements
from cyxla.numpy.ufuncs.gufuncs import check_core
from cyxla.types import ElementType
from cyxla.xla.hlo.builder import XlaOp
from cyxla.xla.hlo.builder import functions as xla
from cyxla.xla.lib.values import broadcast_to, full_like, reduced, scalar, select, zeros_like

_SPACING = float(np.finfo(np.float64).eps)  # spacing of f64 at 1


@implements(np.linalg.solve)
def solve(a: Any, b: Any) -> Any:
    """Solve linear systems by LU; `b` holds matrices unless it is one vector."""
    (matrix,), rhs = lapack.square_matrices(a), as_traced(b)
    (x, y), dtype = to_double(matrix, rhs)
    vector = rhs.ndim == 1
    if rhs.ndim == 0:
        raise ShapeError("solve: b must be a vector or a stack of matrices, not a scalar", where=_trace.user_line())
    y = xla.reshape(y, (*y.shape.dims, 1)) if vector else y
    if x.shape.dims[-1] != y.shape.dims[-2]:
        signature = "(m,m),(m)->(m)" if vector else "(m,m),(m,n)->(m,n)"
        check_core(
            "solve1" if vector else "solve",
            signature,
            [x.shape.dims[-2:], y.shape.dims[-2:-1] if vector else y.shape.dims[-2:]],
        )
    batch = np.broadcast_shapes(x.shape.dims[:-2], y.shape.dims[:-2])
    x, y = (broadcast_to(v, (*batch, *v.shape.dims[-2:])) for v in (x, y))
    result = _solve(x, y)
    return lapack.convert_result(xla.reshape(result, result.shape.dims[:-1]) if vector else result, dtype)


def _solve(x: XlaOp, y: XlaOp) -> XlaOp:
    if not x.shape.size:
        return y
    factors, order = _factor_nonsingular(x)
    return gradients.solve_with_factors(x, factors, order, y) if y.shape.size else y


def _factor_nonsingular(x: XlaOp) -> tuple[XlaOp, XlaOp]:
    factors, order = lapack.factor_lu(x)
    pivots = lapack.diagonal(factors)
    fail_where(xla.eq(pivots, zeros_like(pivots)), "Singular matrix")
    return factors, order


@implements(np.linalg.inv)
def inv(a: Any) -> Any:
    """Invert matrices by solving for the identity."""
    (x,), dtype = to_double(*lapack.square_matrices(a))
    if not x.shape.size:
        return lapack.convert_result(x, dtype)
    return lapack.convert_result(_inverse(x, _factor_nonsingular(x)), dtype)


def _inverse(x: XlaOp, factors: tuple[XlaOp, XlaOp]) -> XlaOp:
    result = lapack.solve_factored(*factors, lapack.identity(x, x.shape.dims))
    return differentiable([x], [result], gradients.inv)[0]


def inverse_or_nan(x: XlaOp) -> XlaOp:
    """Invert matrices in double precision; nan for singular ones."""
    if not x.shape.size:
        return x
    factors = lapack.factor_lu(x)
    pivots = lapack.diagonal(factors[0])
    regular = reduced(nonzero(pivots), "and", scalar(nonzero(pivots), True), [pivots.shape.rank - 1])
    return lapack.nan_where_failed(regular, _inverse(x, factors))


def _sign_and_log(x: XlaOp, factors: XlaOp, order: XlaOp) -> tuple[XlaOp, XlaOp]:
    """Return sign and logarithm of the absolute value of determinants from LU factors."""
    pivots = lapack.diagonal(factors)
    magnitudes = xla.abs_(pivots)
    last = [pivots.shape.rank - 1]
    sign = reduced(xla.sign(pivots), "multiply", scalar(pivots, 1), last)
    sign = select(lapack.is_odd(order), xla.negate(sign), sign)
    return sign, reduced(xla.log(magnitudes), "add", scalar(magnitudes, 0), last)


@implements(np.linalg.slogdet)
def slogdet(a: Any) -> Any:
    """Return sign and logarithm of the absolute value of determinants."""
    (x,), dtype = to_double(*lapack.square_matrices(a))
    if not x.shape.size:
        zero = xla.broadcast(xla.constant(x.builder, 0, lapack.real_type(x)), x.shape.dims[:-2])
        pair = [full_like(lapack.to_dtype_of(zero, x), 1), zero]
    else:
        factors, order = lapack.factor_lu(x)
        pair = differentiable([x, factors, order], _sign_and_log(x, factors, order), gradients.slogdet)
    return results.SlogdetResult(*[lapack.convert_result(v, dtype) for v in pair])


@implements(np.linalg.det)
def det(a: Any) -> Any:
    """Compute determinants from sign and logarithm, which cannot overflow on the way."""
    (x,), dtype = to_double(*lapack.square_matrices(a))
    if not x.shape.size:
        return lapack.convert_result(xla.broadcast(scalar(x, 1), x.shape.dims[:-2]), dtype)
    factors, order = lapack.factor_lu(x)
    sign, log = _sign_and_log(x, factors, order)
    result = xla.multiply(sign, lapack.to_dtype_of(xla.exponential(log), x))
    return lapack.convert_result(differentiable([x, factors, order], [result], gradients.det)[0], dtype)


@implements(np.linalg.pinv)
def pinv(a: Any, rcond: Any = None, hermitian: bool = False, *, rtol: Any = np._NoValue) -> Any:
    """Compute pseudo-inverses from singular values; small ones count as zero."""
    (array,) = lapack.matrix_stacks(a)
    cutoff = _relative_cutoff(rcond, rtol, array)
    if lapack.has_empty_matrices(array):
        *batch, rows, columns = array.shape
        return as_traced(np.zeros((*batch, columns, rows), array.dtype))
    (x,), dtype = to_double(array)
    if hermitian:
        return _hermitian_pinv(a, cutoff)
    u, s, vh = decompose_svd(x)
    result = _pseudo_inverse(u, s, vh, _significant_mask(s, cutoff))
    return lapack.convert_result(differentiable([x], [result], gradients.pinv)[0], dtype)


def _relative_cutoff(rcond: Any, rtol: Any, array: TracedArray) -> TracedArray:
    """Return the cutoff of singular values, relative to the greatest one; smaller ones count as zero."""
    if rcond is not None and rtol is not np._NoValue:
        raise ValueError("`rtol` and `rcond` can't be both set.")
    cutoff = rcond if rtol is np._NoValue else rtol
    if cutoff is None:
        default = 1e-15 if rtol is np._NoValue else max(array.shape[-2:]) * float(np.finfo(array.dtype).eps)
        return as_traced(np.asarray(default))
    return as_traced(cutoff)


def _significant_mask(s: XlaOp, relative_cutoff: TracedArray) -> XlaOp:
    """Return a mask of the singular values that count."""
    (cutoff,) = (xla.convert(value_of(relative_cutoff), s.shape.dtype),)
    greatest = xla.slice_in_dim(s, 0, 1, 1, s.shape.rank - 1)
    cutoff = xla.reshape(cutoff, (*cutoff.shape.dims, 1))
    return xla.gt(s, broadcast_to(xla.multiply(*_broadcast_pair(cutoff, greatest)), s.shape.dims))


def _broadcast_pair(x: XlaOp, y: XlaOp) -> tuple[XlaOp, XlaOp]:
    sizes = np.broadcast_shapes(x.shape.dims, y.shape.dims)
    return broadcast_to(x, sizes), broadcast_to(y, sizes)


def _pseudo_inverse(u: XlaOp, s: XlaOp, vh: XlaOp, significant: XlaOp) -> XlaOp:
    """Return the matrices with inverted singular values, zero for those that do not count."""
    v = adjoint(vh)
    scaled = xla.multiply(v, lapack.broadcast_columns(lapack.to_dtype_of(_reciprocals(s, significant), v), v))
    return lapack.matmul(scaled, adjoint(u))


def _reciprocals(s: XlaOp, significant: XlaOp) -> XlaOp:
    return select(significant, xla.divide(full_like(s, 1), select(significant, s, 1)), 0)


def _hermitian_pinv(a: Any, cutoff: Any) -> Any:
    u, s, vh = np.linalg.svd(a, full_matrices=False, hermitian=True)
    significant = s > cutoff[..., None] * np.max(s, axis=-1, keepdims=True)
    inverse = np.where(significant, 1 / np.where(significant, s, 1), 0).astype(s.dtype)
    v, uh = (np.swapaxes(np.conj(m), -1, -2) for m in (vh, u))
    return np.matmul(v * inverse[..., None, :], uh)


@implements(np.linalg.lstsq, note="residuals of a matrix with dependent columns are nan, not missing")
def lstsq(a: Any, b: Any, rcond: Any = None) -> Any:
    """Solve by least squares: solution of least norm, residuals, rank, singular values."""
    matrix, rhs = as_traced(a), as_traced(b)
    if matrix.ndim != 2:
        raise LinAlgError(f"{matrix.ndim}-dimensional array given. Array must be two-dimensional")
    if rhs.ndim not in (1, 2):
        raise LinAlgError(f"{rhs.ndim}-dimensional array given. Array must be two-dimensional")
    if rhs.shape[0] != matrix.shape[0]:
        raise LinAlgError("Incompatible dimensions")
    (x, y), dtype = to_double(matrix, rhs)
    y = xla.reshape(y, (*rhs.shape, 1)) if rhs.ndim == 1 else y
    solution, residuals, rank, s = _least_squares(x, y, rcond)
    if rhs.ndim == 1:
        solution = xla.reshape(solution, solution.shape.dims[:1])
    return (
        lapack.convert_result(solution, dtype),
        lapack.convert_result(residuals, dtype),
        TracedArray(rank),
        lapack.convert_result(s, dtype),
    )


def _gelsd_cutoff(rcond: Any, sizes: Sequence[int]) -> TracedArray:
    """Return gelsd's relative cutoff of singular values in double precision; smaller ones count as zero."""
    if rcond is None:
        return as_traced(np.asarray(max(sizes) * _SPACING))
    cutoff = value_of(as_traced(rcond, np.float64))
    unusable = xla.or_(xla.le(cutoff, scalar(cutoff, 0)), xla.ge(cutoff, scalar(cutoff, 1)))
    return TracedArray(select(unusable, scalar(cutoff, _SPACING / 2), cutoff))


def _least_squares(x: XlaOp, y: XlaOp, rcond: Any) -> tuple[XlaOp, XlaOp, XlaOp, XlaOp]:
    rows, columns = x.shape.dims
    u, s, vh = decompose_svd(x)
    if x.shape.size:
        significant = _significant_mask(s, _gelsd_cutoff(rcond, (rows, columns)))
        projected = lapack.matmul(adjoint(u), y)
        scaled = xla.multiply(
            projected, lapack.broadcast_rows(lapack.to_dtype_of(_reciprocals(s, significant), projected), projected)
        )
        solution, inverse = lapack.matmul(adjoint(vh), scaled), _pseudo_inverse(u, s, vh, significant)
        result = differentiable([x, y], [solution, inverse], gradients.lstsq)[0]
        rank = reduced(xla.convert(significant, ElementType.S32), "add", xla.constant(x.builder, np.int32(0)), [0])
    else:
        result = xla.broadcast(scalar(y, 0), (columns, y.shape.dims[1]))
        rank = xla.constant(x.builder, np.int32(0))
    if rows <= columns:
        return result, xla.slice_(_squared_norms(y), [0], [0]), rank, s
    residuals = _squared_norms(xla.subtract(y, lapack.matmul(x, result)))
    full_rank = xla.eq(rank, scalar(rank, columns))
    return result, select(full_rank, residuals, np.nan), rank, s


def _squared_norms(y: XlaOp) -> XlaOp:
    """Return sums of squares along columns."""
    parts = [xla.real(y), xla.imag(y)] if y.shape.dtype.is_complex else [y]
    squares = [xla.multiply(p, p) for p in parts]
    total = squares[0] if len(squares) == 1 else xla.add(squares[0], squares[1])
    return reduced(total, "add", scalar(total, 0), [0])


@implements(np.linalg.matrix_power)
def matrix_power(a: Any, n: Any) -> Any:
    """Raise matrices to an integer power by repeated squaring."""
    (x,) = lapack.square_matrices(a)
    exponent = index(n)
    base: Any = x
    if exponent == 0:
        one = np.eye(x.shape[-1], dtype=x.dtype)
        return as_traced(np.broadcast_to(one, x.shape))
    if exponent < 0:
        base, exponent = inv(x), -exponent
    return power_by_squaring(base, exponent)


def power_by_squaring(base: Any, exponent: int) -> Any:
    """Raise matrices of any kind to a positive power by the products that NumPy computes."""
    if exponent == 3:
        return np.matmul(np.matmul(base, base), base)
    power: Any = None
    while True:
        if exponent & 1:
            power = base if power is None else np.matmul(power, base)
        exponent >>= 1
        if not exponent:
            return power
        base = np.matmul(base, base)


@implements(np.linalg.tensorinv)
def tensorinv(a: Any, ind: Any = 2) -> Any:
    """Invert a tensor as a map from its last to its first dimensions."""
    x = as_traced(a)
    if ind <= 0:
        raise ValueError("Invalid ind argument.")
    inverse_shape = x.shape[ind:] + x.shape[:ind]
    return np.reshape(inv(np.reshape(x, (prod(x.shape[ind:]), -1))), inverse_shape)


@implements(np.linalg.tensorsolve)
def tensorsolve(a: Any, b: Any, axes: Any = None) -> Any:
    """Solve a linear system given by a tensor."""
    x, y = as_traced(a), as_traced(b)
    if axes is not None:
        x = _move_axes_last(x, axes)
    sizes = x.shape[-(x.ndim - y.ndim) :]
    if prod(sizes) * y.size != x.size or x.size != prod(sizes) ** 2:
        raise LinAlgError("Input arrays must satisfy the requirement prod(a.shape[b.ndim:]) == prod(a.shape[:b.ndim])")
    solution = solve(np.reshape(x, (y.size, y.size)), np.ravel(y))
    return np.reshape(solution, sizes)


def _move_axes_last(x: Any, axes: Sequence[int]) -> Any:
    order = list(range(x.ndim))
    for k in axes:
        order.remove(k)
        order.insert(x.ndim, k)
    return np.transpose(x, order)
