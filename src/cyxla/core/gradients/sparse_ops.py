"""Gradients of ops on sparse tensors: of their values, as their places are no smooth matter."""

from __future__ import annotations

from typing import Any

from cyxla.core.framework.apply import apply_op
from cyxla.core.framework.gradient import gradient, no_gradient
from cyxla.core.gradients.common import Tensor, conj, reshape_like


def _total(x: Tensor) -> Tensor:
    return apply_op("Sum", x, apply_op("Range", 0, apply_op("Rank", x), 1))


@gradient("SparseToDense")
def sparse_to_dense_grad(op: Any, dy: Tensor) -> tuple[None, None, Tensor, Tensor]:
    """What lies at the places, and everything else for the default."""
    indices, shape, values, _ = op.inputs
    depth = apply_op("Size", shape)
    places = apply_op("Reshape", indices, apply_op("Pack", [-1, depth]))
    picked = apply_op("GatherNd", dy, places)
    rest = _total(dy) - _total(picked)
    if values.shape.rank == 0:
        return None, None, _total(picked), rest
    return None, None, reshape_like(picked, values), rest


@gradient("SparseTensorDenseMatMul")
def sparse_tensor_dense_mat_mul_grad(op: Any, dy: Tensor) -> tuple[None, Tensor, None, Tensor]:
    """For a value: the product of the rows that it joins. For the dense factor: the other product."""
    indices, values, shape, b = op.inputs
    turned_a, turned_b = op.attr("adjoint_a"), op.attr("adjoint_b")
    db = apply_op("SparseTensorDenseMatMul", indices, values, shape, dy, adjoint_a=not turned_a)
    if turned_b:
        db = conj(apply_op("Transpose", db, [1, 0]))
    rows, columns = (
        apply_op("StridedSlice", indices, [0, i], [0, i + 1], [1, 1], begin_mask=1, end_mask=1, shrink_axis_mask=2)
        for i in (0, 1)
    )
    b = b if not turned_b else conj(apply_op("Transpose", b, [1, 0]))
    left = apply_op("GatherV2", dy, columns if turned_a else rows, 0)
    right = apply_op("GatherV2", b, rows if turned_a else columns, 0)
    product = conj(left) * right if turned_a else left * conj(right)
    return None, apply_op("Sum", product, [1]), None, db


@gradient("SparseReduceSum")
def sparse_reduce_sum_grad(op: Any, dy: Tensor) -> tuple[None, Tensor, None, None]:
    """Each value gets the gradient of the sum that it is in."""
    indices, _, shape, axes = op.inputs
    rank = apply_op("Size", shape)
    axes = apply_op("FloorMod", apply_op("Reshape", axes, [-1]) + rank, apply_op("Maximum", rank, 1))
    numbers = apply_op("Range", 0, rank, 1)
    ones = apply_op("Fill", apply_op("Shape", axes), 1)
    reduced = apply_op("ScatterNd", apply_op("ExpandDims", axes, 1), ones, apply_op("Pack", [rank])) > 0
    reduced = apply_op("LogicalOr", reduced, apply_op("Equal", apply_op("Size", axes), 0))  # no axes stand for all
    kept = apply_op("SelectV2", reduced, 0, apply_op("OnesLike", numbers))
    shape32 = apply_op("Cast", shape, DstT="int32")
    full = apply_op("Reshape", dy, apply_op("SelectV2", reduced, 1, shape32))
    places = indices * apply_op("Cast", kept, DstT=indices.dtype)
    return None, apply_op("GatherNd", full, places), None, None


@gradient("SparseFillEmptyRows")
def sparse_fill_empty_rows_grad(op: Any, *grads: Tensor) -> tuple[None, Tensor, None, Tensor]:
    """Values that were there, and the total of those that were filled in."""
    dvalues, where = grads[1], op.outputs[3]
    kept = apply_op("GatherV2", dvalues, where, 0)
    return None, kept, None, _total(dvalues) - _total(kept)


no_gradient("EditDistance", "SparseReshape")
