"""Gradients with respect to the values of sparse tensors."""

from __future__ import annotations

from typing import Any

from cyxla.core.framework.apply import apply_op
from cyxla.core.framework.gradient import gradient, no_gradient
from cyxla.core.gradients.common import Tensor, conj, reshape_like


def _sum_all(x: Tensor) -> Tensor:
    return apply_op("Sum", x, apply_op("Range", 0, apply_op("Rank", x), 1))


@gradient("SparseToDense")
def sparse_to_dense_grad(op: Any, dy: Tensor) -> tuple[None, None, Tensor, Tensor]:
    """Gather the gradients at the indices; the default gets the sum of the rest."""
    indices, shape, values, _ = op.inputs
    depth = apply_op("Size", shape)
    positions = apply_op("Reshape", indices, apply_op("Pack", [-1, depth]))
    gathered = apply_op("GatherNd", dy, positions)
    rest = _sum_all(dy) - _sum_all(gathered)
    if values.shape.rank == 0:
        return None, None, _sum_all(gathered), rest
    return None, None, reshape_like(gathered, values), rest


@gradient("SparseTensorDenseMatMul")
def sparse_tensor_dense_mat_mul_grad(op: Any, dy: Tensor) -> tuple[None, Tensor, None, Tensor]:
    """Differentiate a matrix product, for the values at the indices only."""
    indices, values, shape, b = op.inputs
    adjoint_a, adjoint_b = op.attr("adjoint_a"), op.attr("adjoint_b")
    db = apply_op("SparseTensorDenseMatMul", indices, values, shape, dy, adjoint_a=not adjoint_a)
    if adjoint_b:
        db = conj(apply_op("Transpose", db, [1, 0]))
    rows, columns = (
        apply_op("StridedSlice", indices, [0, i], [0, i + 1], [1, 1], begin_mask=1, end_mask=1, shrink_axis_mask=2)
        for i in (0, 1)
    )
    b = b if not adjoint_b else conj(apply_op("Transpose", b, [1, 0]))
    left = apply_op("GatherV2", dy, columns if adjoint_a else rows, 0)
    right = apply_op("GatherV2", b, rows if adjoint_a else columns, 0)
    product = conj(left) * right if adjoint_a else left * conj(right)
    return None, apply_op("Sum", product, [1]), None, db


@gradient("SparseReduceSum")
def sparse_reduce_sum_grad(op: Any, dy: Tensor) -> tuple[None, Tensor, None, None]:
    """Gather for each value the gradient of its sum."""
    indices, _, shape, axes = op.inputs
    rank = apply_op("Size", shape)
    axes = apply_op("FloorMod", apply_op("Reshape", axes, [-1]) + rank, apply_op("Maximum", rank, 1))
    numbers = apply_op("Range", 0, rank, 1)
    ones = apply_op("Fill", apply_op("Shape", axes), 1)
    reduced = apply_op("ScatterNd", apply_op("ExpandDims", axes, 1), ones, apply_op("Pack", [rank])) > 0
    reduced = apply_op("LogicalOr", reduced, apply_op("Equal", apply_op("Size", axes), 0))  # no axes mean all axes
    kept_coordinates = apply_op("SelectV2", reduced, 0, apply_op("OnesLike", numbers))
    shape32 = apply_op("Cast", shape, DstT="int32")
    expanded = apply_op("Reshape", dy, apply_op("SelectV2", reduced, 1, shape32))
    positions = indices * apply_op("Cast", kept_coordinates, DstT=indices.dtype)
    return None, apply_op("GatherNd", expanded, positions), None, None


@gradient("SparseFillEmptyRows")
def sparse_fill_empty_rows_grad(op: Any, *grads: Tensor) -> tuple[None, Tensor, None, Tensor]:
    """Gather the gradients of the original values; the default gets the sum of the rest."""
    dvalues, index_map = grads[1], op.outputs[3]
    values_grad = apply_op("GatherV2", dvalues, index_map, 0)
    return None, values_grad, None, _sum_all(dvalues) - _sum_all(values_grad)


no_gradient("EditDistance", "SparseReshape")
