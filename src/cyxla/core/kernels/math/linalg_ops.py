"""Linear algebra on batches of matrices, by the LAPACK of NumPy and SciPy."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import Any

import numpy as np

from cyxla.core.framework.kernel_decorators import array_kernel
from cyxla.core.framework.numeric_limits import wide_type
from cyxla.core.framework.types import COMPLEX, FLOATING, NUMBER, DataType, as_data_type
from cyxla.core.kernels.lib.einsum import contract
from cyxla.errors import InvalidArgumentError, ShapeError

Array = np.ndarray[Any, Any]

_TYPES = {"T": (*map(as_data_type, ("half", "float", "double")), *COMPLEX)}


def _check_matrices(x: Array, name: str = "input") -> None:
    if x.ndim < 2:
        raise ShapeError(f"{name} must hold matrices; its shape is {list(x.shape)}")


def _check_square(x: Array, name: str = "input") -> None:
    _check_matrices(x, name)
    if x.shape[-1] != x.shape[-2]:
        raise ShapeError(f"{name} must hold square matrices; its shape is {list(x.shape)}")


def _wide(x: Array) -> Array:
    return x.astype(wide_type(x.dtype), copy=False)


def _adjoint(x: Array) -> Array:
    return np.swapaxes(x, -1, -2).conj()


def _call_lapack(function: Callable[..., Any], *operands: Array) -> Any:
    """Call a function of numpy.linalg and translate its errors.

    Raises
    ------
    InvalidArgumentError
        A matrix is singular or not positive definite, or an iteration did not converge.
    """
    try:
        with np.errstate(all="ignore"):
            return function(*operands)
    except np.linalg.LinAlgError as error:
        raise InvalidArgumentError(f"the input cannot be decomposed: {error}") from None


# --------------------------------------------------------------------------------------------------- decompositions


@array_kernel("Cholesky", types=_TYPES)
def _cholesky(x: Array) -> Array:
    """Return the lower factor, reading only the lower triangle of the input."""
    _check_square(x)
    return np.asarray(_call_lapack(np.linalg.cholesky, _wide(x))).astype(x.dtype, copy=False) if x.size else x


@array_kernel("CholeskyGrad")
def _cholesky_grad(factor: Array, grad: Array) -> Array:
    """Return the gradient by Murray, "Differentiation of the Cholesky decomposition", 2016, equation 10."""
    _check_square(factor, "l")
    if factor.shape != grad.shape:
        raise ShapeError(f"l {list(factor.shape)} and grad {list(grad.shape)} must have one shape")
    low, bar = np.tril(_wide(factor)), np.tril(_wide(grad))
    middle = np.tril(_adjoint(low) @ bar)
    middle -= 0.5 * middle * np.eye(low.shape[-1], dtype=low.dtype)
    inverse = np.linalg.inv(low)
    result = _adjoint(inverse) @ middle @ inverse
    return np.asarray(0.5 * (result + _adjoint(result))).astype(factor.dtype, copy=False)


@array_kernel("Qr", attrs=("full_matrices",), types=_TYPES)
def _qr(x: Array, *, full_matrices: bool) -> tuple[Array, Array]:
    _check_matrices(x)
    rows, columns = x.shape[-2:]
    if not x.size:
        return _empty_qr(x, rows if full_matrices else min(rows, columns))
    q, r = _call_lapack(np.linalg.qr, _wide(x), "complete" if full_matrices else "reduced")  # type: ignore[arg-type]
    return q.astype(x.dtype, copy=False), r.astype(x.dtype, copy=False)


def _empty_qr(x: Array, inner: int) -> tuple[Array, Array]:
    q = np.zeros((*x.shape[:-1], inner), x.dtype)
    q[...] = np.eye(x.shape[-2], inner)
    return q, np.zeros((*x.shape[:-2], inner, x.shape[-1]), x.dtype)


@array_kernel("SelfAdjointEigV2", attrs=("compute_v",), types=_TYPES)
def _eigh(x: Array, *, compute_v: bool) -> tuple[Array, Array]:
    """Return ascending eigenvalues and eigenvectors, reading only the lower triangle of the input."""
    _check_square(x)
    if not compute_v:
        values = _call_lapack(np.linalg.eigvalsh, _wide(x)) if x.size else np.zeros(x.shape[:-1])
        return values.astype(x.dtype), np.zeros((0,), x.dtype)
    values, vectors = _call_lapack(np.linalg.eigh, _wide(x)) if x.size else (np.zeros(x.shape[:-1]), x)
    return values.astype(x.dtype), vectors.astype(x.dtype, copy=False)


@array_kernel("SelfAdjointEig")
def _eigh_v1(x: Array) -> Array:
    """Return the eigenvalues as a first row above the eigenvectors."""
    values, vectors = _eigh(x, compute_v=True)
    return np.concatenate([values[..., None, :], vectors], axis=-2)


@array_kernel("Svd", attrs=("compute_uv", "full_matrices"), types=_TYPES)
def _svd(x: Array, *, compute_uv: bool, full_matrices: bool) -> tuple[Array, Array, Array]:
    _check_matrices(x)
    nothing = np.zeros((0,), x.dtype)
    if not x.size:
        return _empty_svd(x, compute_uv, full_matrices)
    if not compute_uv:
        values = _call_lapack(lambda a: np.linalg.svd(a, compute_uv=False), _wide(x))
        return values.astype(x.dtype), nothing, nothing
    u, s, vh = _call_lapack(lambda a: np.linalg.svd(a, full_matrices=full_matrices), _wide(x))
    return s.astype(x.dtype), u.astype(x.dtype, copy=False), _adjoint(vh).astype(x.dtype, copy=False)


def _empty_svd(x: Array, compute_uv: bool, full_matrices: bool) -> tuple[Array, Array, Array]:
    rows, columns = x.shape[-2:]
    rank = min(rows, columns)
    s, nothing = np.zeros((*x.shape[:-2], rank), x.dtype), np.zeros((0,), x.dtype)
    if not compute_uv:
        return s, nothing, nothing
    u, v = (np.zeros((*x.shape[:-2], n, n if full_matrices else rank), x.dtype) for n in (rows, columns))
    for vectors in (u, v):
        vectors[...] = np.eye(*vectors.shape[-2:])
    return s, u, v


@array_kernel("Lu", attrs=("output_idx_type",), types=_TYPES)
def _lu(x: Array, *, output_idx_type: DataType) -> tuple[Array, Array]:
    """Return both factors packed into one matrix, and the row permutation of the input."""
    import scipy.linalg

    _check_square(x)
    size = x.shape[-1]
    flat = _wide(x).reshape(prod(x.shape[:-2]), size, size)
    factors, orders = np.empty_like(flat), np.empty(flat.shape[:-1], output_idx_type.numpy)
    for k, matrix in enumerate(flat):
        if not size:
            continue
        factors[k], pivots = _call_lapack(lambda a: scipy.linalg.lu_factor(a, check_finite=False), matrix)
        if not np.diagonal(factors[k]).all():
            raise InvalidArgumentError("the input is singular: a pivot is 0")
        order = np.arange(size)
        for row, pivot in enumerate(pivots):
            order[[row, pivot]] = order[[pivot, row]]
        orders[k] = order
    return factors.astype(x.dtype, copy=False).reshape(x.shape), orders.reshape(x.shape[:-1])


# ------------------------------------------------------------------------------------------------------- equations


@array_kernel("MatrixInverse", attrs=("adjoint",), types=_TYPES)
def _inverse(x: Array, *, adjoint: bool) -> Array:
    _check_square(x)
    if not x.size:
        return x
    wide = _adjoint(_wide(x)) if adjoint else _wide(x)
    return np.asarray(_call_lapack(np.linalg.inv, wide)).astype(x.dtype, copy=False)


@array_kernel("MatrixSolve", attrs=("adjoint",), types=_TYPES)
def _solve(matrix: Array, rhs: Array, *, adjoint: bool) -> Array:
    _check_square(matrix, "matrix")
    _check_matrices(rhs, "rhs")
    if matrix.shape[:-1] != rhs.shape[:-1]:
        raise ShapeError(f"matrix {list(matrix.shape)} and rhs {list(rhs.shape)} have different batches or rows")
    if not rhs.size:
        return rhs
    wide = _adjoint(_wide(matrix)) if adjoint else _wide(matrix)
    return np.asarray(_call_lapack(np.linalg.solve, wide, _wide(rhs))).astype(rhs.dtype, copy=False)


@array_kernel("MatrixTriangularSolve", attrs=("lower", "adjoint"), types={"T": (*FLOATING, *COMPLEX)})
def _triangular_solve(matrix: Array, rhs: Array, *, lower: bool, adjoint: bool) -> Array:
    """Solve by substitution; batches broadcast, and the other triangle is not read."""
    import scipy.linalg

    _check_square(matrix, "matrix")
    _check_matrices(rhs, "rhs")
    if matrix.shape[-1] != rhs.shape[-2]:
        raise ShapeError(f"matrix {list(matrix.shape)} and rhs {list(rhs.shape)} do not fit each other")
    try:
        batch = np.broadcast_shapes(matrix.shape[:-2], rhs.shape[:-2])
    except ValueError:
        raise ShapeError(f"the batches of {list(matrix.shape)} and {list(rhs.shape)} do not broadcast") from None
    result = np.empty((*batch, *rhs.shape[-2:]), rhs.dtype)
    if not result.size:
        return result
    if not np.diagonal(matrix, axis1=-2, axis2=-1).all():
        raise InvalidArgumentError("the matrix is singular: its diagonal holds a 0")
    left = np.broadcast_to(_wide(matrix), (*batch, *matrix.shape[-2:]))
    right = np.broadcast_to(_wide(rhs), result.shape)
    for index in np.ndindex(batch):
        result[index] = scipy.linalg.solve_triangular(
            left[index], right[index], trans="C" if adjoint else "N", lower=lower, check_finite=False
        )
    return result


@array_kernel("TridiagonalMatMul")
def _tridiagonal_matmul(above: Array, main: Array, below: Array, rhs: Array) -> Array:
    """Multiply by diagonals of shape [.., 1, m]; entries outside the matrix are not read."""
    _check_matrices(rhs, "rhs")
    for name, diagonal in (("superdiag", above), ("maindiag", main), ("subdiag", below)):
        if diagonal.shape != (*rhs.shape[:-2], 1, rhs.shape[-2]):
            raise ShapeError(f"{name} {list(diagonal.shape)} does not fit a right side of {list(rhs.shape)}")
    upper, middle, lower = (np.swapaxes(d, -1, -2) for d in (above, main, below))
    result = middle * rhs
    result[..., :-1, :] += upper[..., :-1, :] * rhs[..., 1:, :]
    result[..., 1:, :] += lower[..., 1:, :] * rhs[..., :-1, :]
    return np.asarray(result)


@array_kernel("TridiagonalSolve", attrs=("partial_pivoting",))
def _tridiagonal_solve(diagonals: Array, rhs: Array, *, partial_pivoting: bool) -> Array:
    """Solve for diagonals [.., 3, m]: upper, main and lower."""
    _check_matrices(rhs, "rhs")
    if diagonals.shape != (*rhs.shape[:-2], 3, rhs.shape[-2]):
        raise ShapeError(f"diagonals {list(diagonals.shape)} do not fit a right side of {list(rhs.shape)}")
    result = np.empty_like(rhs)
    solve = _banded_matrix if partial_pivoting else _thomas
    for index in np.ndindex(rhs.shape[:-2]):
        if rhs[index].size:
            result[index] = solve(diagonals[index], rhs[index])
    return result


def _banded_matrix(diagonals: Array, rhs: Array) -> Array:
    import scipy.linalg

    bands = np.zeros_like(diagonals)
    bands[0, 1:], bands[1], bands[2, :-1] = diagonals[0, :-1], diagonals[1], diagonals[2, 1:]
    solved = _call_lapack(lambda a, b: scipy.linalg.solve_banded((1, 1), a, b, check_finite=False), bands, rhs)
    return np.asarray(solved)


def _thomas(diagonals: Array, rhs: Array) -> Array:
    """Solve by Thomas's algorithm, without pivoting."""
    upper, main, lower = diagonals
    factor, result = np.zeros_like(upper), rhs.copy()
    for k in range(len(main)):
        pivot = main[k] - (lower[k] * factor[k - 1] if k else 0)
        if pivot == 0:
            raise InvalidArgumentError(f"the pivot of row {k} is 0", hint="use partial_pivoting")
        factor[k] = upper[k] / pivot
        result[k] = (rhs[k] - (lower[k] * result[k - 1] if k else 0)) / pivot
    for k in range(len(main) - 2, -1, -1):
        result[k] -= factor[k] * result[k + 1]
    return result


# ------------------------------------------------------------------------------------------ determinants and functions


@array_kernel("MatrixDeterminant", types=_TYPES)
def _determinant(x: Array) -> Array:
    _check_square(x)
    return np.asarray(np.linalg.det(_wide(x))).astype(x.dtype)


@array_kernel("LogMatrixDeterminant", types=_TYPES)
def _log_determinant(x: Array) -> tuple[Array, Array]:
    _check_square(x)
    sign, log = np.linalg.slogdet(_wide(x))
    return np.asarray(sign).astype(x.dtype), np.asarray(log).astype(x.dtype)


def _matrix_function(op: str, name: str) -> None:
    @array_kernel(op, types=_TYPES if op != "MatrixLogarithm" else {"T": COMPLEX})
    def kernel(x: Array) -> Array:
        import scipy.linalg

        _check_square(x)
        double = np.complex128 if x.dtype.kind == "c" else np.float64
        result = np.empty_like(x)
        for index in np.ndindex(x.shape[:-2]):
            if x.shape[-1]:
                value = np.asarray(getattr(scipy.linalg, name)(x[index].astype(double)))
                if value.dtype.kind == "c" and x.dtype.kind != "c":
                    if np.abs(value.imag).max() > 1e-6 * np.abs(value).max():
                        raise InvalidArgumentError(f"{op} of this real matrix is complex", hint="cast it to complex")
                    value = value.real
                result[index] = value
        return result


_matrix_function("MatrixExponential", "expm")
_matrix_function("MatrixSquareRoot", "sqrtm")
_matrix_function("MatrixLogarithm", "logm")


@array_kernel("Einsum", attrs=("equation",), types={"T": NUMBER})
def _einsum(inputs: Sequence[Array], *, equation: str) -> Array:
    return contract(equation, inputs)
