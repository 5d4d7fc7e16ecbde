"""Gradients of tensor arrays, optionals, dynamic partition and stitch.

The gradients of a tensor array accumulate in a second array. Operations on both are ordered by their flow, a scalar
whose value is unused.
"""

from __future__ import annotations

from typing import Any

from cyxla.core.framework.apply import apply_op
from cyxla.core.framework.gradient import gradient, no_gradient
from cyxla.core.gradients.common import Tensor, reshape_like

_SOURCE = "gradients"


def _gradient_array(op: Any, handle: Tensor, flow: Tensor) -> tuple[Tensor, Tensor]:
    """Return the array of gradients, and a flow that follows its creation."""
    if op.op.endswith("V3"):
        array, next_flow = apply_op("TensorArrayGradV3", handle, flow, source=_SOURCE)
        return array, next_flow
    array = apply_op("TensorArrayGradV2", handle, flow, source=_SOURCE)
    with op.graph.control_dependencies([array]):
        return array, apply_op("Identity", flow)


def _apply(op: Any, action: str, *inputs: Any, **attrs: Any) -> Any:
    """Apply an op on tensor arrays of the version of another."""
    return apply_op(f"TensorArray{action}{op.op[-2:]}", *inputs, **attrs)


@gradient("TensorArrayReadV2", "TensorArrayReadV3")
def tensor_array_read_grad(op: Any, dy: Tensor) -> tuple[Any, ...]:
    """Write the gradient at the index that was read."""
    handle, index, flow = op.inputs
    array, next_flow = _gradient_array(op, handle, flow)
    return None, None, _apply(op, "Write", array, index, dy, next_flow)


@gradient("TensorArrayWriteV2", "TensorArrayWriteV3")
def tensor_array_write_grad(op: Any, flow: Tensor) -> tuple[Any, ...]:
    """Read the gradient at the index that was written."""
    handle, index, value, _ = op.inputs
    array, next_flow = _gradient_array(op, handle, flow)
    return None, None, _apply(op, "Read", array, index, next_flow, dtype=value.dtype), flow


@gradient("TensorArrayGatherV2", "TensorArrayGatherV3")
def tensor_array_gather_grad(op: Any, dy: Tensor) -> tuple[Any, ...]:
    """Scatter the gradients to the indices that were read."""
    handle, indices, flow = op.inputs
    array, next_flow = _gradient_array(op, handle, flow)
    return None, None, _apply(op, "Scatter", array, indices, dy, next_flow)


@gradient("TensorArrayScatterV2", "TensorArrayScatterV3")
def tensor_array_scatter_grad(op: Any, flow: Tensor) -> tuple[Any, ...]:
    """Gather the gradients at the indices that were written."""
    handle, indices, value, _ = op.inputs
    array, next_flow = _gradient_array(op, handle, flow)
    grad = _apply(op, "Gather", array, indices, next_flow, dtype=value.dtype)
    return None, None, reshape_like(grad, value), flow


@gradient("TensorArrayConcatV2", "TensorArrayConcatV3", none_grads=True)
def tensor_array_concat_grad(op: Any, dy: Tensor | None, _: Any) -> tuple[Any, ...]:
    """Split the gradient into the elements that were read."""
    if dy is None:
        return None, None
    handle, flow = op.inputs
    array, next_flow = _gradient_array(op, handle, flow)
    return None, _apply(op, "Split", array, dy, op.outputs[1], next_flow)


@gradient("TensorArraySplitV2", "TensorArraySplitV3")
def tensor_array_split_grad(op: Any, flow: Tensor) -> tuple[Any, ...]:
    """Concatenate the gradients of the elements that were written."""
    handle, value, _, _ = op.inputs
    array, next_flow = _gradient_array(op, handle, flow)
    grad, _ = _apply(op, "Concat", array, next_flow, dtype=value.dtype)
    return None, reshape_like(grad, value), None, flow


@gradient("DynamicPartition")
def dynamic_partition_grad(op: Any, *grads: Tensor) -> tuple[Tensor, None]:
    """Stitch the gradients of the partitions together."""
    data, partitions = op.inputs
    count = apply_op("Size", partitions)
    positions = apply_op("Reshape", apply_op("Range", 0, count, 1), apply_op("Shape", partitions))
    parts = apply_op("DynamicPartition", positions, partitions, num_partitions=len(grads))
    return reshape_like(apply_op("ParallelDynamicStitch", parts, list(grads)), data), None


@gradient("DynamicStitch", "ParallelDynamicStitch")
def dynamic_stitch_grad(op: Any, dy: Tensor) -> list[Tensor | None]:
    """Gather the gradient of each row; rows that were overwritten get zeros."""
    half = len(op.inputs) // 2
    indices, data = op.inputs[:half], op.inputs[half:]
    stitched_rows = _stitched_rows(indices, dy)
    grads: list[Tensor | None] = [None] * half
    for positions, number, values in zip(indices, _row_numbers(indices), data, strict=True):
        is_stitched = apply_op(
            "Cast", apply_op("Equal", apply_op("GatherV2", stitched_rows, positions, 0), number), DstT=dy.dtype
        )
        gathered = apply_op("GatherV2", dy, positions, 0)
        grads.append(reshape_like(gathered * _broadcast_rows(is_stitched, gathered), values))
    return grads


def _row_numbers(indices: list[Tensor]) -> list[Tensor]:
    """Number the rows of all inputs consecutively."""
    numbers, start = [], apply_op("Size", indices[0]) * 0
    for positions in indices:
        size = apply_op("Size", positions)
        count = apply_op("Range", start, start + size, 1)
        numbers.append(apply_op("Reshape", count, apply_op("Shape", positions)))
        start = start + size
    return numbers


def _stitched_rows(indices: list[Tensor], dy: Tensor) -> Tensor:
    """Return the number of the row that was kept at each index."""
    flat = [apply_op("Reshape", t, [-1]) for t in indices]
    rows = apply_op("StridedSlice", apply_op("Shape", dy), [0], [1], [1], shrink_axis_mask=1)
    numbers = [apply_op("Reshape", t, [-1]) for t in _row_numbers(indices)]
    if len(flat) == 1:
        return apply_op("UnsortedSegmentMax", numbers[0], flat[0], rows)
    return apply_op("UnsortedSegmentMax", apply_op("ConcatV2", numbers, 0), apply_op("ConcatV2", flat, 0), rows)


def _broadcast_rows(row_values: Tensor, like: Tensor) -> Tensor:
    """Reshape one number per row so that it broadcasts over the row."""
    ones = apply_op("Rank", like) - apply_op("Rank", row_values)
    shape = apply_op(
        "ConcatV2", [apply_op("Shape", row_values), apply_op("Fill", apply_op("Reshape", ones, [1]), 1)], 0
    )
    return apply_op("Reshape", row_values, shape)


@gradient("OptionalFromValue", none_grads=True)
def optional_from_value_grad(op: Any, dy: Tensor) -> Any:
    """Take the components of the gradient, an optional."""
    shapes = [t.shape for t in op.inputs]
    components = apply_op("OptionalGetValue", dy, output_types=op.attr("Toutput_types"), output_shapes=shapes)
    return components if isinstance(components, (list, tuple)) else [components]


@gradient("OptionalGetValue")
def optional_get_value_grad(op: Any, *grads: Tensor) -> Tensor:
    """Wrap the gradients of the components in an optional."""
    return apply_op("OptionalFromValue", list(grads))


no_gradient(
    "OptionalHasValue", "OptionalNone", "Stack", "StackClose", "StackCloseV2", "StackPop", "StackPopV2",
    "StackPush", "StackPushV2", "StackV2", "TensorArrayCloseV3", "TensorArrayGradV3", "TensorArrayGradWithShape",
    "TensorArrayCloseV2", "TensorArrayGradV2", "TensorArraySizeV2", "TensorArraySizeV3", "TensorArrayV2",
    "TensorArrayV3",
)  # fmt: skip
