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
from cyxla.numpy.functions.linalg.factorisations import decomposed
from cyxla.numpy.functions.linalg.gradients import differentiable
from cyxla.numpy.functions.linalg.lapack import LinAlgError, adjoint, fail_where, in_double, nonzero
from cyxla.numpy.tracing import trace as _trace
from cyxla.numpy.tracing.registry import implements
from cyxla.numpy.tracing.traced_array import TracedArray, as_traced, value_of
from cyxla.numpy.ufuncs.gufuncs import check_core
from cyxla.types import ElementType
from cyxla.xla.hlo.builder import XlaOp
from cyxla.xla.hlo.builder import functions as xla
from cyxla.xla.lib.values import broadcast_to, full_like, reduced, scalar, select, zeros_like

_SPACING = float(np.finfo(np.float64).eps)  # spacing of f64 at 1


@implements(np.linalg.solve)
def solve(a: Any, b: Any) -> Any:
    """Solve linear systems by LU; `b` holds matrices unless it is one vector."""
    (matrix,), rhs = lapack.squares(a), as_traced(b)
    (x, y), dtype = in_double(matrix, rhs)
    vector = rhs.ndim == 1
    if rhs.ndim == 0:
        raise ShapeError("solve: the right side is a scalar", where=_trace.user_line())
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
    made = _solved(x, y)
    return lapack.result(xla.reshape(made, made.shape.dims[:-1]) if vector else made, dtype)


def _solved(x: XlaOp, y: XlaOp) -> XlaOp:
    if not x.shape.size:
        return y
    factors, order = _factored(x)
    return gradients.solved_with(x, factors, order, y) if y.shape.size else y


def _factored(x: XlaOp) -> tuple[XlaOp, XlaOp]:
    factors, order = lapack.factored(x)
    main = lapack.diagonal(factors)
    fail_where(xla.eq(main, zeros_like(main)), "Singular matrix")
    return factors, order


@implements(np.linalg.inv)
def inv(a: Any) -> Any:
    """Invert matrices by solving for the identity."""
    (x,), dtype = in_double(*lapack.squares(a))
    if not x.shape.size:
        return lapack.result(x, dtype)
    return lapack.result(_inverse(x, _factored(x)), dtype)


def _inverse(x: XlaOp, factors: tuple[XlaOp, XlaOp]) -> XlaOp:
    made = lapack.solved_by(*factors, lapack.identity(x, x.shape.dims))
    return differentiable([x], [made], gradients.inv)[0]


def inverse_or_nan(x: XlaOp) -> XlaOp:
    """Invert matrices in double precision; nan for singular ones."""
    if not x.shape.size:
        return x
    factors = lapack.factored(x)
    main = lapack.diagonal(factors[0])
    regular = reduced(nonzero(main), "and", scalar(nonzero(main), True), [main.shape.rank - 1])
    return lapack.or_nan(regular, _inverse(x, factors))


def _signs(x: XlaOp, factors: XlaOp, order: XlaOp) -> tuple[XlaOp, XlaOp]:
    """Return sign and logarithm of the absolute value of determinants from LU factors."""
    main = lapack.diagonal(factors)
    sizes = xla.abs_(main)
    last = [main.shape.rank - 1]
    sign = reduced(xla.sign(main), "multiply", scalar(main, 1), last)
    sign = select(lapack.is_odd(order), xla.negate(sign), sign)
    return sign, reduced(xla.log(sizes), "add", scalar(sizes, 0), last)


@implements(np.linalg.slogdet)
def slogdet(a: Any) -> Any:
    """Return sign and logarithm of the absolute value of determinants."""
    (x,), dtype = in_double(*lapack.squares(a))
    if not x.shape.size:
        zero = xla.broadcast(xla.constant(x.builder, 0, lapack.real_type(x)), x.shape.dims[:-2])
        pair = [full_like(lapack.widened(zero, x), 1), zero]
    else:
        factors, order = lapack.factored(x)
        pair = differentiable([x, factors, order], _signs(x, factors, order), gradients.slogdet)
    return results.SlogdetResult(*[lapack.result(v, dtype) for v in pair])


@implements(np.linalg.det)
def det(a: Any) -> Any:
    """Compute determinants from sign and logarithm, which cannot overflow on the way."""
    (x,), dtype = in_double(*lapack.squares(a))
    if not x.shape.size:
        return lapack.result(xla.broadcast(scalar(x, 1), x.shape.dims[:-2]), dtype)
    factors, order = lapack.factored(x)
    sign, log = _signs(x, factors, order)
    made = xla.multiply(sign, lapack.widened(xla.exponential(log), x))
    return lapack.result(differentiable([x, factors, order], [made], gradients.det)[0], dtype)


@implements(np.linalg.pinv)
def pinv(a: Any, rcond: Any = None, hermitian: bool = False, *, rtol: Any = np._NoValue) -> Any:
    """Compute pseudo-inverses from singular values; small ones count as zero."""
    (array,) = lapack.stacks(a)
    limit = _limit(rcond, rtol, array)
    if lapack.without_elements(array):
        *batch, rows, columns = array.shape
        return as_traced(np.zeros((*batch, columns, rows), array.dtype))
    (x,), dtype = in_double(array)
    if hermitian:
        return _hermitian_pinv(a, limit)
    u, s, vh = decomposed(x)
    made = _inverted(u, s, vh, _kept(s, limit))
    return lapack.result(differentiable([x], [made], gradients.pinv)[0], dtype)


def _limit(rcond: Any, rtol: Any, array: TracedArray) -> TracedArray:
    """Return the cutoff of singular values, relative to the greatest one; smaller ones count as zero."""
    if rcond is not None and rtol is not np._NoValue:
        raise ValueError("`rtol` and `rcond` can't be both set.")
    given = rcond if rtol is np._NoValue else rtol
    if given is None:
        small = 1e-15 if rtol is np._NoValue else max(array.shape[-2:]) * float(np.finfo(array.dtype).eps)
        return as_traced(np.asarray(small))
    return as_traced(given)


def _kept(s: XlaOp, limit: TracedArray) -> XlaOp:
    """Return a mask of the singular values that count."""
    (cut,) = (xla.convert(value_of(limit), s.shape.dtype),)
    most = xla.slice_in_dim(s, 0, 1, 1, s.shape.rank - 1)
    cut = xla.reshape(cut, (*cut.shape.dims, 1))
    return xla.gt(s, broadcast_to(xla.multiply(*_paired(cut, most)), s.shape.dims))


def _paired(x: XlaOp, y: XlaOp) -> tuple[XlaOp, XlaOp]:
    sizes = np.broadcast_shapes(x.shape.dims, y.shape.dims)
    return broadcast_to(x, sizes), broadcast_to(y, sizes)


def _inverted(u: XlaOp, s: XlaOp, vh: XlaOp, kept: XlaOp) -> XlaOp:
    """Return the matrices with inverted singular values, zero for those that do not count."""
    v = adjoint(vh)
    scaled = xla.multiply(v, lapack.on_columns(lapack.widened(_inverses(s, kept), v), v))
    return lapack.matmul(scaled, adjoint(u))


def _inverses(s: XlaOp, kept: XlaOp) -> XlaOp:
    return select(kept, xla.divide(full_like(s, 1), select(kept, s, 1)), 0)


def _hermitian_pinv(a: Any, limit: Any) -> Any:
    u, s, vh = np.linalg.svd(a, full_matrices=False, hermitian=True)
    large = s > limit[..., None] * np.max(s, axis=-1, keepdims=True)
    inverse = np.where(large, 1 / np.where(large, s, 1), 0).astype(s.dtype)
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
    (x, y), dtype = in_double(matrix, rhs)
    y = xla.reshape(y, (*rhs.shape, 1)) if rhs.ndim == 1 else y
    found, left, rank, s = _least_squares(x, y, rcond)
    if rhs.ndim == 1:
        found = xla.reshape(found, found.shape.dims[:1])
    return (lapack.result(found, dtype), lapack.result(left, dtype), TracedArray(rank), lapack.result(s, dtype))


def _cut(rcond: Any, sizes: Sequence[int]) -> TracedArray:
    """Return gelsd's relative cutoff of singular values in double precision; smaller ones count as zero."""
    if rcond is None:
        return as_traced(np.asarray(max(sizes) * _SPACING))
    cut = value_of(as_traced(rcond, np.float64))
    unusable = xla.or_(xla.le(cut, scalar(cut, 0)), xla.ge(cut, scalar(cut, 1)))
    return TracedArray(select(unusable, scalar(cut, _SPACING / 2), cut))


def _least_squares(x: XlaOp, y: XlaOp, rcond: Any) -> tuple[XlaOp, XlaOp, XlaOp, XlaOp]:
    rows, columns = x.shape.dims
    u, s, vh = decomposed(x)
    if x.shape.size:
        kept = _kept(s, _cut(rcond, (rows, columns)))
        turned = lapack.matmul(adjoint(u), y)
        scaled = xla.multiply(turned, lapack.on_rows(lapack.widened(_inverses(s, kept), turned), turned))
        solution, inverse = lapack.matmul(adjoint(vh), scaled), _inverted(u, s, vh, kept)
        found = differentiable([x, y], [solution, inverse], gradients.lstsq)[0]
        rank = reduced(xla.convert(kept, ElementType.S32), "add", xla.constant(x.builder, np.int32(0)), [0])
    else:
        found = xla.broadcast(scalar(y, 0), (columns, y.shape.dims[1]))
        rank = xla.constant(x.builder, np.int32(0))
    if rows <= columns:
        return found, xla.slice_(_norms(y), [0], [0]), rank, s
    left = _norms(xla.subtract(y, lapack.matmul(x, found)))
    whole = xla.eq(rank, scalar(rank, columns))
    return found, select(whole, left, np.nan), rank, s


def _norms(y: XlaOp) -> XlaOp:
    """Return sums of squares along columns."""
    parts = [xla.real(y), xla.imag(y)] if y.shape.dtype.is_complex else [y]
    squares = [xla.multiply(p, p) for p in parts]
    total = squares[0] if len(squares) == 1 else xla.add(squares[0], squares[1])
    return reduced(total, "add", scalar(total, 0), [0])


@implements(np.linalg.matrix_power)
def matrix_power(a: Any, n: Any) -> Any:
    """Raise matrices to an integer power by repeated squaring."""
    (x,) = lapack.squares(a)
    count = index(n)
    base: Any = x
    if count == 0:
        one = np.eye(x.shape[-1], dtype=x.dtype)
        return as_traced(np.broadcast_to(one, x.shape))
    if count < 0:
        base, count = inv(x), -count
    if count == 3:
        return np.matmul(np.matmul(base, base), base)
    found: Any = None
    while True:
        if count & 1:
            found = base if found is None else np.matmul(found, base)
        count >>= 1
        if not count:
            return found
        base = np.matmul(base, base)


@implements(np.linalg.tensorinv)
def tensorinv(a: Any, ind: Any = 2) -> Any:
    """Invert a tensor as a map from its last to its first dimensions."""
    x = as_traced(a)
    if ind <= 0:
        raise ValueError("Invalid ind argument.")
    back = x.shape[ind:] + x.shape[:ind]
    return np.reshape(inv(np.reshape(x, (prod(x.shape[ind:]), -1))), back)


@implements(np.linalg.tensorsolve)
def tensorsolve(a: Any, b: Any, axes: Any = None) -> Any:
    """Solve a linear system given by a tensor."""
    x, y = as_traced(a), as_traced(b)
    if axes is not None:
        x = _last(x, axes)
    sizes = x.shape[-(x.ndim - y.ndim) :]
    if prod(sizes) * y.size != x.size or x.size != prod(sizes) ** 2:
        raise LinAlgError("Input arrays must satisfy the requirement prod(a.shape[b.ndim:]) == prod(a.shape[:b.ndim])")
    found = solve(np.reshape(x, (y.size, y.size)), np.ravel(y))
    return np.reshape(found, sizes)


def _last(x: Any, axes: Sequence[int]) -> Any:
    order = list(range(x.ndim))
    for k in axes:
        order.remove(k)
        order.insert(x.ndim, k)
    return np.transpose(x, order)
