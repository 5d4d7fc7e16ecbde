"""Gradients with respect to variables: the gradient of a handle is that of its value."""

from __future__ import annotations

from typing import Any

from cyxla.core.framework.apply import apply_op
from cyxla.core.framework.gradient import gradient, no_gradient
from cyxla.core.gradients.common import Tensor


@gradient("ReadVariableOp")
def read_variable_grad(op: Any, dy: Tensor) -> Tensor:
    """Pass the gradient unchanged."""
    return dy


@gradient("ResourceGather")
def resource_gather_grad(op: Any, dy: Tensor) -> tuple[Tensor, None]:
    """Sum the gradients of all copies of each row."""
    handle, indices = op.inputs
    shape = apply_op("VariableShape", handle)
    batch = op.attr("batch_dims")
    flat = apply_op("Reshape", indices, [-1])
    rows = apply_op("StridedSlice", shape, [batch], [batch + 1], [1], shrink_axis_mask=1)
    if batch:
        count = apply_op("Prod", apply_op("Slice", shape, [0], [batch]), [0])
        per_batch = apply_op("FloorDiv", apply_op("Size", flat), apply_op("Maximum", count, 1))
        numbers = apply_op("Reshape", apply_op("Range", 0, count, 1), [-1, 1]) * rows
        offsets = apply_op("BroadcastTo", numbers, apply_op("Pack", [count, per_batch]))
        flat = flat + apply_op("Cast", apply_op("Reshape", offsets, [-1]), DstT=flat.dtype)
        rows = rows * count
    inner = apply_op("StridedSlice", shape, [batch + 1], [0], [1], end_mask=1)
    sizes = apply_op("ConcatV2", [apply_op("Reshape", apply_op("Size", flat), [1]), inner], 0)
    summed = apply_op("UnsortedSegmentSum", apply_op("Reshape", dy, sizes), flat, rows)
    return apply_op("Reshape", summed, shape), None


@gradient("ResourceGatherNd")
def resource_gather_nd_grad(op: Any, dy: Tensor) -> tuple[Tensor, None]:
    """Scatter the gradients to the gathered slices, summing copies."""
    handle, indices = op.inputs
    return apply_op("ScatterNd", indices, dy, apply_op("VariableShape", handle, out_type=indices.dtype)), None


@gradient("_ReadVariablesOp")
def read_variables_grad(op: Any, *grads: Tensor) -> list[Tensor]:
    """Pass the gradients unchanged."""
    return list(grads)


no_gradient(
    "AssignAddVariableOp",
    "AssignSubVariableOp",
    "AssignVariableOp",
    "DestroyResourceOp",
    "MutexV2",
    "ResourceStridedSliceAssign",
    "VarHandleOp",
    "DisableCopyOnRead",
    "VarIsInitializedOp",
    "VariableShape",
    "_VarHandlesOp",
)
