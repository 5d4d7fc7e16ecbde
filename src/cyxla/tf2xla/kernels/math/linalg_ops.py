"""Linear algebra on batches of matrices, by HLO's solvers and custom calls of LAPACK."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from cyxla.core.framework.types import COMPLEX, FLOATING, as_data_type
from cyxla.errors import ShapeError
from cyxla.tf2xla.lib.einsum import contract
from cyxla.tf2xla.lib.linalg import (
    as_type_of,
    call_lapack,
    check_matrices,
    check_square,
    eigh,
    identity_matrices,
    is_empty,
    nan_unless,
    svd,
    transpose_matrices,
)
from cyxla.tf2xla.lib.unique import rows_at
from cyxla.tf2xla.xla_op_kernel import lowering
from cyxla.types import ElementType, Shape
from cyxla.xla.hlo.builder import XlaOp
from cyxla.xla.hlo.builder import functions as xla
from cyxla.xla.lib.values import (
    broadcast_shape,
    broadcast_to,
    full_like,
    in_f32,
    iota_along,
    is_complex,
    rank_of,
    scalar,
    select,
    sizes_of,
    widened,
    zeros_like,
)

_S32 = ElementType.S32
_HALF_AND_UP = tuple(map(as_data_type, ("half", "float", "double")))
_REAL = {"T": _HALF_AND_UP}
_TYPES = {"T": (*_HALF_AND_UP, *COMPLEX)}
_WIDE = {"T": _HALF_AND_UP[1:]}


def _upper(x: XlaOp) -> XlaOp:
    """Return the upper triangle including the diagonal."""
    rank = rank_of(x)
    row, column = (iota_along(x.builder, _S32, sizes_of(x), rank - k) for k in (2, 1))
    return select(xla.le(row, column), x, zeros_like(x))


def _window(x: XlaOp, rows: int, columns: int) -> XlaOp:
    """Slice the first rows and columns of matrices."""
    batch = sizes_of(x)[:-2]
    return xla.slice_(x, [0] * rank_of(x), [*batch, rows, columns])


# --------------------------------------------------------------------------------------------------- decompositions


@lowering("Cholesky", types=_TYPES)
@in_f32
def _cholesky(x: XlaOp) -> XlaOp:
    """Emit HLO's Cholesky; NaN for matrices that are not positive definite."""
    check_square(x)
    return x if is_empty(x) else xla.cholesky(x, lower=True)


@lowering("Qr", attrs=("full_matrices",), types=_TYPES)
def _qr(x: XlaOp, *, full_matrices: bool) -> list[XlaOp]:
    """Compute reflectors by geqrf and Q by orgqr; R is the upper triangle of geqrf's result."""
    check_matrices(x)
    *batch, rows, columns = sizes_of(x)
    least = min(rows, columns)
    width = rows if full_matrices else least
    if is_empty(x):
        return [identity_matrices(x, (*batch, rows, width)), xla.broadcast(scalar(x, 0), (*batch, width, columns))]
    wide = widened(x)
    dtype = wide.shape.dtype
    result_shapes = [wide.shape, Shape.array(dtype, (*batch, least))]
    packed, factors = call_lapack(wide, "geqrf", [wide], result_shapes)
    reflectors = _window(packed, rows, least)
    if width > least:
        reflectors = xla.pad_in_dim(reflectors, scalar(wide, 0), rank_of(x) - 1, 0, width - least)
    name = "ungqr" if is_complex(x) else "orgqr"
    (q,) = call_lapack(wide, name, [reflectors, factors], [Shape.array(dtype, (*batch, rows, width))])
    return [as_type_of(v, x) for v in (q, _upper(_window(packed, width, columns)))]


lowering("SelfAdjointEigV2", eigh, attrs=("compute_v",), types=_TYPES)
lowering("Svd", svd, attrs=("compute_uv", "full_matrices"), types=_REAL)


# -------------------------------------------------------------------------------------------------- linear systems


def _lu(x: XlaOp) -> tuple[XlaOp, XlaOp]:
    """Emit a custom call of LU decomposition; return packed factors and row permutation."""
    order = Shape.array(_S32, sizes_of(x)[:-1])
    result = xla.custom_call(x.builder, "LuDecomposition", [x], Shape.tuple([x.shape, order, order]))
    return xla.get_tuple_element(result, 0), xla.get_tuple_element(result, 2)


def _permute_rows(x: XlaOp, order: XlaOp) -> XlaOp:
    """Permute the rows of matrices by one gather from all rows of the batch."""
    *batch, rows, columns = sizes_of(x)
    count = prod(batch)
    starts = iota_along(x.builder, _S32, (count, rows), 0) * xla.broadcast(scalar(order, rows), (count, rows))
    row_indices = xla.reshape(xla.reshape(order, (count, rows)) + starts, (count * rows,))
    return xla.reshape(rows_at(xla.reshape(x, (count * rows, columns)), row_indices), sizes_of(x))


def _inverse_permutation(order: XlaOp) -> XlaOp:
    """Return the inverse permutation, by a sort."""
    last = rank_of(order) - 1
    indices = iota_along(order.builder, _S32, sizes_of(order), last)
    return xla.get_tuple_element(xla.sort([order, indices], dimension=last), 1)


def _solve_by_lu(matrix: XlaOp, rhs: XlaOp, adjoint: bool) -> XlaOp:
    """Solve by LU with pivoting: two triangular systems and a row permutation."""
    factors, order = _lu(matrix)
    if adjoint:
        return _permute_rows(
            _solve_lower(factors, _solve_upper(factors, rhs, "TRANSPOSE"), "TRANSPOSE"), _inverse_permutation(order)
        )
    return _solve_upper(factors, _solve_lower(factors, _permute_rows(rhs, order)))


def _solve_lower(factors: XlaOp, rhs: XlaOp, transpose: str = "NO_TRANSPOSE") -> XlaOp:
    """Solve with the lower factor, which has a unit diagonal."""
    return xla.triangular_solve(factors, rhs, left_side=True, lower=True, unit_diagonal=True, transpose_a=transpose)


def _solve_upper(factors: XlaOp, rhs: XlaOp, transpose: str = "NO_TRANSPOSE") -> XlaOp:
    """Solve with the upper factor."""
    return xla.triangular_solve(factors, rhs, left_side=True, lower=False, transpose_a=transpose)


@lowering("MatrixInverse", attrs=("adjoint",), types=_REAL)
@in_f32
def _inverse(x: XlaOp, *, adjoint: bool) -> XlaOp:
    check_square(x)
    return x if is_empty(x) else _solve_by_lu(x, identity_matrices(x, sizes_of(x)), adjoint)


@lowering("MatrixSolve", attrs=("adjoint",), types=_REAL)
@in_f32
def _solve(matrix: XlaOp, rhs: XlaOp, *, adjoint: bool) -> XlaOp:
    check_square(matrix, "matrix")
    check_matrices(rhs, "rhs")
    if sizes_of(matrix)[:-1] != sizes_of(rhs)[:-1]:
        raise ShapeError(
            f"matrix {list(sizes_of(matrix))} and rhs {list(sizes_of(rhs))} have different batches or rows"
        )
    return rhs if is_empty(rhs) else _solve_by_lu(matrix, rhs, adjoint)


@lowering("MatrixTriangularSolve", attrs=("lower", "adjoint"), types={"T": (*FLOATING, *COMPLEX)})
@in_f32
def _triangular_solve(matrix: XlaOp, rhs: XlaOp, *, lower: bool, adjoint: bool) -> XlaOp:
    """Emit HLO's triangular-solve with broadcast batches."""
    check_square(matrix, "matrix")
    check_matrices(rhs, "rhs")
    if sizes_of(matrix)[-1] != sizes_of(rhs)[-2]:
        raise ShapeError(f"matrix {list(sizes_of(matrix))} and rhs {list(sizes_of(rhs))} do not fit each other")
    batch = broadcast_shape(sizes_of(matrix)[:-2], sizes_of(rhs)[:-2])
    a, b = (broadcast_to(x, (*batch, *sizes_of(x)[-2:])) for x in (matrix, rhs))
    if is_empty(b):
        return b
    return xla.triangular_solve(a, b, left_side=True, lower=lower, transpose_a="ADJOINT" if adjoint else "NO_TRANSPOSE")


# ------------------------------------------------------------------------------------------------------- tridiagonal


@lowering("TridiagonalMatMul", types=_WIDE)
def _tridiagonal_matmul(above: XlaOp, main: XlaOp, below: XlaOp, rhs: XlaOp) -> XlaOp:
    """Multiply rows by the diagonals, with neighbouring rows shifted; entries outside are not read."""
    check_matrices(rhs, "rhs")
    *batch, rows, _ = sizes_of(rhs)
    for name, diagonal in (("superdiag", above), ("maindiag", main), ("subdiag", below)):
        if sizes_of(diagonal) != (*batch, 1, rows):
            raise ShapeError(f"{name} {list(sizes_of(diagonal))} does not fit a right side of {list(sizes_of(rhs))}")
    if is_empty(rhs):
        return rhs
    along = rank_of(rhs) - 2

    def shifted(x: XlaOp, by: int) -> XlaOp:
        return xla.pad_in_dim(x, scalar(x, 0), along, by, -by)

    def times(diagonal: XlaOp, x: XlaOp) -> XlaOp:
        return broadcast_to(transpose_matrices(diagonal), sizes_of(x)) * x

    row = iota_along(rhs.builder, _S32, sizes_of(rhs), along)
    upper = select(xla.lt(row, full_like(row, rows - 1)), times(above, shifted(rhs, -1)), zeros_like(rhs))
    lower = select(xla.gt(row, zeros_like(row)), times(below, shifted(rhs, 1)), zeros_like(rhs))
    return times(main, rhs) + upper + lower


@lowering("TridiagonalSolve", types=_WIDE)
def _tridiagonal_solve(diagonals: XlaOp, rhs: XlaOp) -> XlaOp:
    """Call gtsv, which always pivots; the diagonals are upper, main and lower."""
    check_matrices(rhs, "rhs")
    *batch, rows, _ = sizes_of(rhs)
    if sizes_of(diagonals) != (*batch, 3, rows):
        raise ShapeError(f"diagonals {list(sizes_of(diagonals))} do not fit a right side of {list(sizes_of(rhs))}")
    if is_empty(rhs):
        return rhs
    along = rank_of(diagonals) - 2
    upper, main, lower = (
        xla.reshape(xla.slice_in_dim(diagonals, k, k + 1, 1, along), (*batch, rows)) for k in range(3)
    )
    result_shapes = [main.shape] * 3 + [rhs.shape, Shape.array(_S32, tuple(batch))]
    *_, x, info = call_lapack(rhs, "gtsv", [lower, main, upper, rhs], result_shapes)
    return nan_unless(xla.eq(info, zeros_like(info)), x, 2)


_EINSUM_TYPES = (*FLOATING, *COMPLEX, *map(as_data_type, ("int32", "int64", "uint64")))


@lowering("Einsum", attrs=("equation",), types={"T": _EINSUM_TYPES})
def _einsum(inputs: Sequence[XlaOp], *, equation: str) -> XlaOp:
    """Emit one dot per pair of operands."""
    return contract(equation, inputs)
