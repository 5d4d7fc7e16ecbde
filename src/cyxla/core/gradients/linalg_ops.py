"""Gradients of linear algebra.

Giles, "An extended collection of matrix derivative results for forward and reverse mode algorithmic
differentiation", 2008, where nothing else is said.
"""

from __future__ import annotations

from typing import Any

from cyxla.core.framework.apply import apply_op
from cyxla.core.framework.gradient import gradient
from cyxla.core.framework.types import COMPLEX
from cyxla.core.gradients.common import Tensor, conj, unbroadcast


def _product(a: Tensor, b: Tensor, adj_a: bool = False, adj_b: bool = False) -> Tensor:
    return apply_op("BatchMatMulV2", a, b, adj_x=adj_a, adj_y=adj_b)


def _adjoint(x: Tensor) -> Tensor:
    rank = len(x.shape)
    return apply_op("ConjugateTranspose", x, [*range(rank - 2), rank - 1, rank - 2])


def _band(x: Tensor, lower: int, upper: int) -> Tensor:
    return apply_op("MatrixBandPart", x, lower, upper)


def _last(x: Tensor) -> Tensor:
    """Numbers of matrices as matrices of one element."""
    return apply_op("ExpandDims", apply_op("ExpandDims", x, -1), -1)


def _diagonal(x: Tensor) -> Tensor:
    return apply_op("MatrixDiag", x)


@gradient("Cholesky")
def cholesky_grad(op: Any, dl: Tensor) -> Tensor:
    """Murray, "Differentiation of the Cholesky decomposition", 2016."""
    low = op.outputs[0]
    inner = _product(low, dl, adj_a=True)
    diagonal = apply_op("MatrixDiagPart", inner)
    middle = apply_op("MatrixSetDiag", _band(inner, -1, 0), diagonal * 0.5)
    left = apply_op("MatrixTriangularSolve", low, middle, adjoint=True)
    both = _adjoint(apply_op("MatrixTriangularSolve", low, _adjoint(left), adjoint=True))
    return (both + _adjoint(both)) * 0.5


@gradient("MatrixInverse")
def inverse_grad(op: Any, dy: Tensor) -> Tensor:
    """-y' dy y'."""
    y = op.outputs[0]
    if op.attr("adjoint"):
        return -_product(y, _product(dy, y, adj_a=True))
    return -_product(y, _product(dy, y, adj_b=True), adj_a=True)


@gradient("MatrixDeterminant")
def determinant_grad(op: Any, dy: Tensor) -> Tensor:
    """The determinant times the adjoint of the inverse."""
    inverse = apply_op("MatrixInverse", op.inputs[0], adjoint=True)
    return _last(dy * conj(op.outputs[0])) * inverse


@gradient("LogMatrixDeterminant")
def log_determinant_grad(op: Any, _: Tensor, dlog: Tensor) -> Tensor:
    """The adjoint of the inverse."""
    return _last(dlog) * apply_op("MatrixInverse", op.inputs[0], adjoint=True)


@gradient("MatrixSolve")
def solve_grad(op: Any, dy: Tensor) -> tuple[Tensor, Tensor]:
    """The other system, solved for dy."""
    adjoint = op.attr("adjoint")
    drhs = apply_op("MatrixSolve", op.inputs[0], dy, adjoint=not adjoint)
    y = op.outputs[0]
    return -_product(y, drhs, adj_b=True) if adjoint else -_product(drhs, y, adj_b=True), drhs


@gradient("MatrixTriangularSolve")
def triangular_solve_grad(op: Any, dy: Tensor) -> tuple[Tensor, Tensor]:
    """As that of MatrixSolve, on one triangle."""
    matrix, rhs = op.inputs
    lower, adjoint = op.attr("lower"), op.attr("adjoint")
    drhs = apply_op("MatrixTriangularSolve", matrix, dy, lower=lower, adjoint=not adjoint)
    y = op.outputs[0]
    dmatrix = -_product(y, drhs, adj_b=True) if adjoint else -_product(drhs, y, adj_b=True)
    return unbroadcast(matrix, rhs, _band(dmatrix, -1, 0) if lower else _band(dmatrix, 0, -1), drhs)


@gradient("Qr")
def qr_grad(op: Any, dq: Tensor, dr: Tensor) -> Tensor:
    """Walter and Lehmann, "Algorithmic differentiation of linear algebra functions", 2011; of tall full ranks."""
    q, r = op.outputs
    inner = _product(r, dr, adj_b=True) - _product(dq, q, adj_a=True)
    low = _band(inner, -1, 0) - _band(inner, 0, 0) * (0.5 if inner.dtype in COMPLEX else 0.0)
    symmetric = low + _adjoint(_band(inner, -1, 0) - _band(inner, 0, 0))
    right = dq + _product(q, symmetric)
    return _adjoint(apply_op("MatrixTriangularSolve", r, _adjoint(right), lower=False))


@gradient("SelfAdjointEigV2")
def eigh_grad(op: Any, de: Tensor, dv: Tensor) -> Tensor:
    """Differences of eigenvalues divide; only the lower triangle was read, so it alone gets any."""
    if not op.attr("compute_v"):
        _, v = apply_op("SelfAdjointEigV2", op.inputs[0], compute_v=True)
        inner = _diagonal(de)
    else:
        e, v = op.outputs
        gaps = apply_op("ExpandDims", e, -2) - apply_op("ExpandDims", e, -1)
        zero = apply_op("ZerosLike", gaps)
        apart = apply_op("NotEqual", gaps, zero)
        divisor = apply_op("SelectV2", apart, gaps, apply_op("OnesLike", gaps))
        turns = apply_op("SelectV2", apart, apply_op("OnesLike", gaps) / divisor, zero)
        inner = _diagonal(de) + turns * _product(v, dv, adj_a=True)
    full = _product(v, _product(inner, v, adj_b=True))
    both = _band(full + _adjoint(full), -1, 0)
    return apply_op("MatrixSetDiag", both, apply_op("MatrixDiagPart", both) * 0.5)


@gradient("TridiagonalMatMul")
def tridiagonal_matmul_grad(op: Any, dy: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Products of neighbouring rows."""
    above, main, below, rhs = op.inputs

    def shifted(x: Tensor, up: bool) -> Tensor:
        pads = [[0, 0]] * (len(x.shape) - 2) + [[0, 1] if up else [1, 0], [0, 0]]
        begin, size = [0] * len(x.shape), [-1] * len(x.shape)
        begin[-2] = 1 if up else 0
        if not up:
            size[-2] = x.shape.as_list()[-2] - 1
        return apply_op("Pad", apply_op("Slice", x, begin, size), pads)

    def rows(x: Tensor) -> Tensor:
        return apply_op("ExpandDims", apply_op("Sum", x, [-1]), -2)

    def column(diagonal: Tensor) -> Tensor:
        return apply_op("Reshape", conj(diagonal), [*rhs.shape.as_list()[:-1], 1])

    dabove = rows(dy * conj(shifted(rhs, True)))
    dbelow = rows(dy * conj(shifted(rhs, False)))
    drhs = column(main) * dy + shifted(column(above) * dy, False) + shifted(column(below) * dy, True)
    return dabove, rows(dy * conj(rhs)), dbelow, drhs
