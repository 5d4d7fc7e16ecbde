"""Gradients of linear algebra.

Unless noted otherwise by Giles, "An extended collection of matrix derivative results for forward and reverse mode
algorithmic differentiation", 2008.
"""

from __future__ import annotations

from typing import Any

from cyxla.core.framework.apply import apply_op
from cyxla.core.framework.gradient import gradient
from cyxla.core.framework.types import COMPLEX
from cyxla.core.gradients.common import Tensor, conj, unbroadcast
from cyxla.core.gradients.math.einsum import einsum_grad
from cyxla.errors import UnimplementedError

gradient("Einsum")(einsum_grad)


def _product(a: Tensor, b: Tensor, adj_a: bool = False, adj_b: bool = False) -> Tensor:
    return apply_op("BatchMatMulV2", a, b, adj_x=adj_a, adj_y=adj_b)


def _adjoint(x: Tensor) -> Tensor:
    if x.shape.rank is not None:
        rank = x.shape.rank
        return apply_op("ConjugateTranspose", x, [*range(rank - 2), rank - 1, rank - 2])
    known = apply_op("Rank", x)
    order = [apply_op("Range", 0, known - 2, 1), apply_op("Pack", [known - 1, known - 2])]
    return apply_op("ConjugateTranspose", x, apply_op("ConcatV2", order, 0))


def _band(x: Tensor, lower: int, upper: int) -> Tensor:
    return apply_op("MatrixBandPart", x, lower, upper)


def _expand(x: Tensor) -> Tensor:
    """Append two dimensions of size 1, so that one number per matrix broadcasts over the matrices."""
    return apply_op("ExpandDims", apply_op("ExpandDims", x, -1), -1)


def _diagonal(x: Tensor) -> Tensor:
    return apply_op("MatrixDiag", x)


@gradient("Cholesky")
def cholesky_grad(op: Any, dl: Tensor) -> Tensor:
    """Differentiate by Murray, "Differentiation of the Cholesky decomposition", 2016."""
    low = op.outputs[0]
    inner = _product(low, dl, adj_a=True)
    diagonal = apply_op("MatrixDiagPart", inner)
    middle = apply_op("MatrixSetDiag", _band(inner, -1, 0), diagonal * 0.5)
    left = apply_op("MatrixTriangularSolve", low, middle, adjoint=True)
    symmetric = _adjoint(apply_op("MatrixTriangularSolve", low, _adjoint(left), adjoint=True))
    return (symmetric + _adjoint(symmetric)) * 0.5


@gradient("MatrixInverse")
def inverse_grad(op: Any, dy: Tensor) -> Tensor:
    """Return -y' dy y'."""
    y = op.outputs[0]
    if op.attr("adjoint"):
        return -_product(y, _product(dy, y, adj_a=True))
    return -_product(y, _product(dy, y, adj_b=True), adj_a=True)


@gradient("MatrixDeterminant")
def determinant_grad(op: Any, dy: Tensor) -> Tensor:
    """Return dy times the determinant times the adjoint of the inverse."""
    inverse = apply_op("MatrixInverse", op.inputs[0], adjoint=True)
    return _expand(dy * conj(op.outputs[0])) * inverse


@gradient("LogMatrixDeterminant")
def log_determinant_grad(op: Any, _: Tensor, dlog: Tensor) -> Tensor:
    """Return dy times the adjoint of the inverse."""
    return _expand(dlog) * apply_op("MatrixInverse", op.inputs[0], adjoint=True)


@gradient("MatrixSolve")
def solve_grad(op: Any, dy: Tensor) -> tuple[Tensor, Tensor]:
    """Solve the adjoint system for dy."""
    adjoint = op.attr("adjoint")
    drhs = apply_op("MatrixSolve", op.inputs[0], dy, adjoint=not adjoint)
    y = op.outputs[0]
    return -_product(y, drhs, adj_b=True) if adjoint else -_product(drhs, y, adj_b=True), drhs


@gradient("MatrixTriangularSolve")
def triangular_solve_grad(op: Any, dy: Tensor) -> tuple[Tensor, Tensor]:
    """Solve the adjoint system for dy, and keep one triangle of the matrix gradient."""
    matrix, rhs = op.inputs
    lower, adjoint = op.attr("lower"), op.attr("adjoint")
    drhs = apply_op("MatrixTriangularSolve", matrix, dy, lower=lower, adjoint=not adjoint)
    y = op.outputs[0]
    dmatrix = -_product(y, drhs, adj_b=True) if adjoint else -_product(drhs, y, adj_b=True)
    return unbroadcast(matrix, rhs, _band(dmatrix, -1, 0) if lower else _band(dmatrix, 0, -1), drhs)


@gradient("Qr")
def qr_grad(op: Any, dq: Tensor, dr: Tensor) -> Tensor:
    """Differentiate tall matrices of full rank.

    Walter and Lehmann, "Algorithmic differentiation of linear algebra functions", 2011.
    """
    q, r = op.outputs
    inner = _product(r, dr, adj_b=True) - _product(dq, q, adj_a=True)
    low = _band(inner, -1, 0) - _band(inner, 0, 0) * (0.5 if inner.dtype in COMPLEX else 0.0)
    symmetric = low + _adjoint(_band(inner, -1, 0) - _band(inner, 0, 0))
    right = dq + _product(q, symmetric)
    return _adjoint(apply_op("MatrixTriangularSolve", r, _adjoint(right), lower=False))


@gradient("SelfAdjointEigV2")
def eigh_grad(op: Any, de: Tensor, dv: Tensor) -> Tensor:
    """Divide by the differences of eigenvalues; only the lower triangle gets a gradient, since only it is read."""
    if not op.attr("compute_v"):
        _, v = apply_op("SelfAdjointEigV2", op.inputs[0], compute_v=True)
        inner = _diagonal(de)
    else:
        e, v = op.outputs
        gaps = apply_op("ExpandDims", e, -2) - apply_op("ExpandDims", e, -1)
        zero = apply_op("ZerosLike", gaps)
        distinct = apply_op("NotEqual", gaps, zero)
        divisor = apply_op("SelectV2", distinct, gaps, apply_op("OnesLike", gaps))
        inverse_gaps = apply_op("SelectV2", distinct, apply_op("OnesLike", gaps) / divisor, zero)
        inner = _diagonal(de) + inverse_gaps * _product(v, dv, adj_a=True)
    dense = _product(v, _product(inner, v, adj_b=True))
    symmetric = _band(dense + _adjoint(dense), -1, 0)
    return apply_op("MatrixSetDiag", symmetric, apply_op("MatrixDiagPart", symmetric) * 0.5)


# Tridiagonal matrices -------------------------------------------------------------------------------------------------
def _shift_rows(x: Tensor, up: bool, axis: int = -2) -> Tensor:
    """Shift rows, or elements, by one along an axis, filling with zeros."""
    rank = len(x.shape)
    pads, begin = [[0, 0] for _ in range(rank)], [0] * rank
    pads[axis] = [0, 1] if up else [1, 0]
    begin[axis] = 1 if up else 0
    return apply_op("Slice", apply_op("Pad", x, pads), begin, apply_op("Shape", x))


def _row_sums(x: Tensor) -> Tensor:
    return apply_op("Sum", x, [-1])


@gradient("TridiagonalMatMul")
def tridiagonal_matmul_grad(op: Any, dy: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Multiply neighbouring rows."""
    above, main, below, rhs = op.inputs

    def rows(x: Tensor) -> Tensor:
        return apply_op("ExpandDims", _row_sums(x), -2)

    def column(diagonal: Tensor) -> Tensor:
        return _adjoint(diagonal)

    dabove = rows(dy * conj(_shift_rows(rhs, True)))
    dbelow = rows(dy * conj(_shift_rows(rhs, False)))
    drhs = column(main) * dy + _shift_rows(column(above) * dy, False) + _shift_rows(column(below) * dy, True)
    return dabove, rows(dy * conj(rhs)), dbelow, drhs


@gradient("TridiagonalSolve")
def tridiagonal_solve_grad(op: Any, dy: Tensor) -> tuple[Tensor, Tensor]:
    """Solve the adjoint system for dy, and multiply neighbouring rows."""
    x = op.outputs[0]
    above, main, below = apply_op("Unpack", conj(op.inputs[0]), num=3, axis=-2)
    adjoint_input = apply_op("Pack", [_shift_rows(below, True, -1), main, _shift_rows(above, False, -1)], axis=-2)
    attrs = {name: op.attr(name) for name in ("partial_pivoting", "perturb_singular")}
    drhs = apply_op("TridiagonalSolve", adjoint_input, dy, **attrs)
    parts = [_row_sums(drhs * conj(other)) for other in (_shift_rows(x, True), x, _shift_rows(x, False))]
    return -apply_op("Pack", parts, axis=-2), drhs


# Decompositions and matrix functions ----------------------------------------------------------------------------------
@gradient("Svd", none_grads=True)
def svd_grad(op: Any, ds: Tensor | None, du: Tensor | None, dv: Tensor | None) -> Tensor:
    """Differentiate by Townsend, "Differentiating the singular value decomposition", 2016; vectors if real only."""
    x = op.inputs[0]
    s, u, v = op.outputs
    if not op.attr("compute_uv") or (du is None and dv is None):
        if op.attr("full_matrices") or not op.attr("compute_uv"):
            s, u, v = apply_op("Svd", x, compute_uv=True, full_matrices=False)
        if x.dtype.base in COMPLEX:  # singular values are real in any type
            ds = (ds + conj(ds)) * 0.5
        return _product(u, _product(_diagonal(ds), v, adj_b=True))
    _check_svd(op, x)
    return _svd_vectors(s, u, v, ds, du, dv)


def _check_svd(op: Any, x: Tensor) -> None:
    if x.dtype.base in COMPLEX:
        raise UnimplementedError(
            "gradients through the singular vectors of complex matrices, which are fixed up to a phase only",
            hint="differentiate through the singular values alone",
        )
    matrix_dims = x.shape.dims[-2:] if x.shape.dims is not None else (None, None)
    if op.attr("full_matrices") and (None in matrix_dims or matrix_dims[0] != matrix_dims[1]):
        raise UnimplementedError(
            f"gradients through full_matrices=True of a matrix {x.shape}: what completes the bases is arbitrary",
            hint="use full_matrices=False",
        )


def _svd_vectors(s: Tensor, u: Tensor, v: Tensor, ds: Any, du: Any, dv: Any) -> Tensor:
    squares = apply_op("Square", s)
    gaps = apply_op("ExpandDims", squares, -2) - apply_op("ExpandDims", squares, -1)
    inverse_gaps = apply_op("DivNoNan", apply_op("OnesLike", gaps), gaps)  # 0 if equal: the basis is arbitrary
    row, column = apply_op("ExpandDims", s, -2), apply_op("ExpandDims", s, -1)
    inner = _diagonal(apply_op("ZerosLike", s) if ds is None else ds)
    outside = None
    if du is not None:
        skew = _product(u, du, adj_a=True)
        inner = inner + inverse_gaps * (skew - _adjoint(skew)) * row
        rest = apply_op("DivNoNan", du - _product(u, _product(u, du, adj_a=True)), row)
        outside = _product(rest, v, adj_b=True)
    if dv is not None:
        skew = _product(v, dv, adj_a=True)
        inner = inner + column * inverse_gaps * (skew - _adjoint(skew))
        rest = apply_op("DivNoNan", dv - _product(v, _product(v, dv, adj_a=True)), row)
        correction = _product(u, rest, adj_b=True)
        outside = correction if outside is None else outside + correction
    return _product(u, _product(inner, v, adj_b=True)) + outside


@gradient("Lu")
def lu_grad(op: Any, dlu: Tensor, _: Any) -> Tensor:
    """Project products with the factors to their triangles, and undo the row permutation."""
    lu, order = op.outputs
    low = apply_op("MatrixSetDiag", _band(lu, -1, 0), apply_op("OnesLike", apply_op("MatrixDiagPart", lu)))
    below = _product(low, dlu - _band(dlu, 0, -1), adj_a=True)
    above = _product(_band(dlu, 0, -1), _band(lu, 0, -1), adj_b=True)
    middle = below - _band(below, 0, -1) + _band(above, 0, -1)
    left = apply_op("MatrixTriangularSolve", low, middle, adjoint=True)
    solved = _adjoint(apply_op("MatrixTriangularSolve", _band(lu, 0, -1), _adjoint(left), lower=False))
    size = apply_op("StridedSlice", apply_op("Shape", lu), [-1], [0], [1], end_mask=1, shrink_axis_mask=1)
    one, zero = (apply_op("Cast", n, DstT=lu.dtype) for n in (1.0, 0.0))
    return _product(apply_op("OneHot", order, size, one, zero), solved, adj_a=True)


@gradient("MatrixExponential", "MatrixLogarithm", "MatrixSquareRoot")
def matrix_function_grad(op: Any, dy: Tensor) -> Tensor:
    """Evaluate the function on a block matrix and take a block: Higham, "Functions of matrices", 2008, theorem 4.12."""
    adjoint_input = _adjoint(op.inputs[0])
    upper = apply_op("ConcatV2", [adjoint_input, dy], -1)
    lower = apply_op("ConcatV2", [apply_op("ZerosLike", adjoint_input), adjoint_input], -1)
    blocks = apply_op(op.op, apply_op("ConcatV2", [upper, lower], -2))
    _, right = apply_op("Split", -1, blocks, num_split=2)
    corner, _ = apply_op("Split", -2, right, num_split=2)
    return corner
