"""Gradients of tensor arrays, partition and stitch.

What flows back to a tensor array goes into an array of its own, which sums up what comes to one element. Both have a
flow: a number without meaning that orders what is done with them.
"""

from __future__ import annotations

from typing import Any

from cyxla.core.framework.apply import apply_op
from cyxla.core.framework.gradient import gradient, no_gradient
from cyxla.core.gradients.common import Tensor, reshape_like

_SOURCE = "gradients"


def _gradient_array(handle: Tensor, flow: Tensor) -> tuple[Tensor, Tensor]:
    """The array of gradients, and a flow behind its making."""
    made, behind = apply_op("TensorArrayGradV3", handle, flow, source=_SOURCE)
    return made, behind


@gradient("TensorArrayReadV3")
def tensor_array_read_grad(op: Any, dy: Tensor) -> tuple[Any, ...]:
    """Write it where it was read."""
    handle, index, flow = op.inputs
    array, behind = _gradient_array(handle, flow)
    return None, None, apply_op("TensorArrayWriteV3", array, index, dy, behind)


@gradient("TensorArrayWriteV3")
def tensor_array_write_grad(op: Any, flow: Tensor) -> tuple[Any, ...]:
    """Read it where it was written."""
    handle, index, value, _ = op.inputs
    array, behind = _gradient_array(handle, flow)
    return None, None, apply_op("TensorArrayReadV3", array, index, behind, dtype=value.dtype), flow


@gradient("TensorArrayGatherV3")
def tensor_array_gather_grad(op: Any, dy: Tensor) -> tuple[Any, ...]:
    """Write the rows where they were read."""
    handle, indices, flow = op.inputs
    array, behind = _gradient_array(handle, flow)
    return None, None, apply_op("TensorArrayScatterV3", array, indices, dy, behind)


@gradient("TensorArrayScatterV3")
def tensor_array_scatter_grad(op: Any, flow: Tensor) -> tuple[Any, ...]:
    """Read the rows where they were written."""
    handle, indices, value, _ = op.inputs
    array, behind = _gradient_array(handle, flow)
    grad = apply_op("TensorArrayGatherV3", array, indices, behind, dtype=value.dtype)
    return None, None, reshape_like(grad, value), flow


@gradient("TensorArrayConcatV3", none_grads=True)
def tensor_array_concat_grad(op: Any, dy: Tensor | None, _: Any) -> tuple[Any, ...]:
    """Write the pieces where they were read."""
    if dy is None:
        return None, None
    handle, flow = op.inputs
    array, behind = _gradient_array(handle, flow)
    return None, apply_op("TensorArraySplitV3", array, dy, op.outputs[1], behind)


@gradient("TensorArraySplitV3")
def tensor_array_split_grad(op: Any, flow: Tensor) -> tuple[Any, ...]:
    """Read the pieces where they were written."""
    handle, value, _, _ = op.inputs
    array, behind = _gradient_array(handle, flow)
    grad, _ = apply_op("TensorArrayConcatV3", array, behind, dtype=value.dtype)
    return None, reshape_like(grad, value), None, flow


@gradient("DynamicPartition")
def dynamic_partition_grad(op: Any, *grads: Tensor) -> tuple[Tensor, None]:
    """The slices back in their places."""
    data, partitions = op.inputs
    count = apply_op("Size", partitions)
    places = apply_op("Reshape", apply_op("Range", 0, count, 1), apply_op("Shape", partitions))
    spots = apply_op("DynamicPartition", places, partitions, num_partitions=len(grads))
    return reshape_like(apply_op("ParallelDynamicStitch", spots, list(grads)), data), None


@gradient("DynamicStitch", "ParallelDynamicStitch")
def dynamic_stitch_grad(op: Any, dy: Tensor) -> list[Tensor | None]:
    """To every row what flows to its copy; none to those that another one has overwritten."""
    half = len(op.inputs) // 2
    indices, data = op.inputs[:half], op.inputs[half:]
    winners = _winners(indices, dy)
    grads: list[Tensor | None] = [None] * half
    for places, number, values in zip(indices, _numbers(indices), data, strict=True):
        kept = apply_op("Cast", apply_op("Equal", apply_op("GatherV2", winners, places, 0), number), DstT=dy.dtype)
        picked = apply_op("GatherV2", dy, places, 0)
        grads.append(reshape_like(picked * _column(kept, picked), values))
    return grads


def _numbers(indices: list[Tensor]) -> list[Tensor]:
    """A number for each row of all inputs, in order."""
    numbers, start = [], apply_op("Size", indices[0]) * 0
    for places in indices:
        size = apply_op("Size", places)
        count = apply_op("Range", start, start + size, 1)
        numbers.append(apply_op("Reshape", count, apply_op("Shape", places)))
        start = start + size
    return numbers


def _winners(indices: list[Tensor], dy: Tensor) -> Tensor:
    """The number of the row that stayed in each place."""
    flat = [apply_op("Reshape", t, [-1]) for t in indices]
    rows = apply_op("StridedSlice", apply_op("Shape", dy), [0], [1], [1], shrink_axis_mask=1)
    numbers = [apply_op("Reshape", t, [-1]) for t in _numbers(indices)]
    if len(flat) == 1:
        return apply_op("UnsortedSegmentMax", numbers[0], flat[0], rows)
    return apply_op("UnsortedSegmentMax", apply_op("ConcatV2", numbers, 0), apply_op("ConcatV2", flat, 0), rows)


def _column(kept: Tensor, like: Tensor) -> Tensor:
    """A number for each row, spread over the row's own dimensions."""
    ones = apply_op("Rank", like) - apply_op("Rank", kept)
    shape = apply_op("ConcatV2", [apply_op("Shape", kept), apply_op("Fill", apply_op("Reshape", ones, [1]), 1)], 0)
    return apply_op("Reshape", kept, shape)


@gradient("OptionalFromValue", none_grads=True)
def optional_from_value_grad(op: Any, dy: Tensor) -> Any:
    """The components of an optional gradient."""
    shapes = [t.shape for t in op.inputs]
    found = apply_op("OptionalGetValue", dy, output_types=op.attr("Toutput_types"), output_shapes=shapes)
    return found if isinstance(found, (list, tuple)) else [found]


@gradient("OptionalGetValue")
def optional_get_value_grad(op: Any, *grads: Tensor) -> Tensor:
    """An optional of what flows to each component."""
    return apply_op("OptionalFromValue", list(grads))


no_gradient(
    "Barrier", "OptionalHasValue", "OptionalNone", "Stack", "StackClose", "StackCloseV2", "StackPop", "StackPopV2",
    "StackPush", "StackPushV2", "StackV2", "TensorArrayCloseV3", "TensorArrayGradV3", "TensorArrayGradWithShape",
    "TensorArraySizeV3", "TensorArrayV2", "TensorArrayV3",
)  # fmt: skip
