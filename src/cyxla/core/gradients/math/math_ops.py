"""Gradients of matrix products, casts, sums and clipping."""

from __future__ import annotations

from typing import Any

from cyxla.core.framework.apply import apply_op
from cyxla.core.framework.gradient import gradient, no_gradient
from cyxla.core.framework.types import COMPLEX, FLOATING, DataType
from cyxla.core.gradients.common import Tensor, conj, unbroadcast


# Matrix products -----------------------------------------------------------------------------------------------------
# For product = a b: da = dz b', db = a' dz; transposed operands are transposed here, too.
def _matmul(a: Tensor, b: Tensor, transpose_a: bool = False, transpose_b: bool = False) -> Tensor:
    return apply_op("MatMul", a, b, transpose_a=transpose_a, transpose_b=transpose_b)


@gradient("MatMul")
def mat_mul_grad(op: Any, dz: Tensor) -> tuple[Tensor, Tensor]:
    """Multiply the gradient by the other factor."""
    a, b = conj(op.inputs[0]), conj(op.inputs[1])
    transposed = op.attr("transpose_a"), op.attr("transpose_b")
    if transposed == (False, False):
        return _matmul(dz, b, transpose_b=True), _matmul(a, dz, transpose_a=True)
    if transposed == (False, True):
        return _matmul(dz, b), _matmul(dz, a, transpose_a=True)
    if transposed == (True, False):
        return _matmul(b, dz, transpose_b=True), _matmul(a, dz)
    return _matmul(b, dz, True, True), _matmul(dz, a, True, True)


@gradient("BatchMatMul", "BatchMatMulV2", "BatchMatMulV3")
def batch_mat_mul_grad(op: Any, dz: Tensor) -> tuple[Tensor, Tensor]:
    """Multiply the gradient by the other factor, and sum over broadcast batches."""
    x, y = op.inputs
    types = {"Tout": dz.dtype} if op.op == "BatchMatMulV3" else {}

    def product(a: Tensor, b: Tensor, adj_a: bool, adj_b: bool) -> Tensor:
        return apply_op(op.op, a, b, adj_x=adj_a, adj_y=adj_b, **types)

    adj_x, adj_y = op.attr("adj_x"), op.attr("adj_y")
    dx = product(y, dz, adj_y, True) if adj_x else product(dz, y, False, not adj_y)
    dy = product(dz, x, True, adj_x) if adj_y else product(x, dz, not adj_x, False)
    if op.op == "BatchMatMul":
        return dx, dy
    dx, dy = _sum_batches(x, y, dx), _sum_batches(y, x, dy)
    if op.op == "BatchMatMulV3":
        dx, dy = (g if g.dtype == t.dtype else apply_op("Cast", g, DstT=t.dtype) for g, t in ((dx, x), (dy, y)))
    return dx, dy


def _sum_batches(x: Tensor, other: Tensor, grad: Tensor) -> Tensor:
    """Sum over the batch dimensions along which an operand was broadcast."""
    if x.shape.is_fully_defined and other.shape.is_fully_defined and x.shape.dims[:-2] == other.shape.dims[:-2]:
        return grad
    batches = [apply_op("StridedSlice", apply_op("Shape", t), [0], [-2], [1], begin_mask=1) for t in (x, other)]
    axes, _ = apply_op("BroadcastGradientArgs", *batches)
    return apply_op("Reshape", apply_op("Sum", grad, axes), apply_op("Shape", x))


@gradient("SparseMatMul")
def sparse_mat_mul_grad(op: Any, dz: Tensor) -> tuple[Tensor, Tensor]:
    """Multiply the gradient by the other factor, and cast to the types of the factors."""
    a, b = (t if t.dtype == DataType.DT_FLOAT else apply_op("Cast", t, DstT="float") for t in op.inputs)
    transpose_a, transpose_b = op.attr("transpose_a"), op.attr("transpose_b")
    da = _matmul(b, dz, transpose_b, True) if transpose_a else _matmul(dz, b, False, not transpose_b)
    db = _matmul(dz, a, True, transpose_a) if transpose_b else _matmul(a, dz, not transpose_a, False)
    da, db = (
        g if t.dtype == g.dtype else apply_op("Cast", g, DstT=t.dtype) for g, t in zip((da, db), op.inputs, strict=True)
    )
    return da, db


@gradient("Cross")
def cross_grad(op: Any, dz: Tensor) -> tuple[Tensor, Tensor]:
    """Return the cross products of the gradient with the other operand."""
    a, b = op.inputs
    return apply_op("Cross", b, dz), apply_op("Cross", dz, a)


# Sums and values --------------------------------------------------------------------------------------------------
@gradient("AccumulateNV2")
@gradient("AddN")
def add_n_grad(op: Any, dz: Tensor) -> list[Tensor]:
    """Pass the gradient to each input."""
    return [dz] * len(op.inputs)


@gradient("L2Loss")
def l2_loss_grad(op: Any, dz: Tensor) -> Tensor:
    """Multiply the input by the gradient."""
    return op.inputs[0] * dz


@gradient("Cast")
def cast_grad(op: Any, dy: Tensor) -> Tensor | None:
    """Cast back; integers get no gradient."""
    source = op.inputs[0].dtype.base
    if source not in FLOATING + COMPLEX or op.attr("DstT") not in FLOATING + COMPLEX:
        return None
    return apply_op("Cast", dy, DstT=source)


@gradient("ClipByValue")
def clip_by_value_grad(op: Any, dz: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Pass the gradient to the value, or to the bound where it is active."""
    x, low, high = op.inputs
    zeros = apply_op("ZerosLike", dz)
    below, above = apply_op("Less", x, low), apply_op("Greater", x, high)
    inside = apply_op("LogicalNot", apply_op("LogicalOr", below, above))

    def masked_sum(mask: Tensor, like: Tensor) -> Tensor:
        return unbroadcast(like, op.outputs[0], apply_op("SelectV2", mask, dz, zeros), None)[0]

    return masked_sum(inside, x), masked_sum(below, low), masked_sum(above, high)


@gradient("NthElement")
def nth_element_grad(op: Any, dy: Tensor) -> tuple[Tensor, None]:
    """Share the gradient equally among all elements equal to the result."""
    x = op.inputs[0]
    mask = apply_op("Cast", apply_op("Equal", apply_op("ExpandDims", op.outputs[0], -1), x), DstT=dy.dtype)
    return mask / apply_op("Sum", mask, [-1], keep_dims=True) * apply_op("ExpandDims", dy, -1), None


@gradient("Range")
def range_grad(op: Any, dy: Tensor) -> tuple[None, None, None]:
    """Return no gradients: the length depends on the operands."""
    return None, None, None


no_gradient("Bincount", "Bucketize", "DenseBincount", "HistogramFixedWidth", "RaggedBincount", "SparseBincount")
