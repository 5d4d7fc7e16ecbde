"""Gradients of slicing, concatenation, permutation, gather and scatter."""

from __future__ import annotations

from typing import Any

from cyxla.core.framework.apply import apply_op
from cyxla.core.framework.gradient import gradient, no_gradient
from cyxla.core.gradients.common import Tensor, conj, length_of, patches_gradient, reshape_like, sum_rows


# Concatenation and splitting ----------------------------------------------------------------------------------------
@gradient("Concat")
def concat_grad(op: Any, dy: Tensor) -> list[Any]:
    """Slice the gradient into the parts of the inputs."""
    return [None, *_slice_parts(dy, op.inputs[1:], op.inputs[0])]


@gradient("ConcatV2")
def concat_v2_grad(op: Any, dy: Tensor) -> list[Any]:
    """Slice the gradient into the parts of the inputs."""
    return [*_slice_parts(dy, op.inputs[:-1], op.inputs[-1]), None]


def _slice_parts(dy: Tensor, xs: list[Tensor], axis: Tensor) -> list[Tensor]:
    if len(xs) == 1:
        return [dy]
    rank = apply_op("Rank", dy)
    axis = apply_op("FloorMod", apply_op("Cast", axis, DstT="int32") + rank, rank)
    shapes = apply_op("ShapeN", xs)
    offsets = apply_op("ConcatOffset", axis, shapes)
    return [
        reshape_like(apply_op("Slice", dy, offset, shape), x)
        for offset, shape, x in zip(offsets, shapes, xs, strict=True)
    ]


@gradient("Split")
def split_grad(op: Any, *grads: Tensor) -> tuple[None, Tensor]:
    """Concatenate the gradients of the parts."""
    return None, apply_op("ConcatV2", list(grads), op.inputs[0])


@gradient("SplitV")
def split_v_grad(op: Any, *grads: Tensor) -> tuple[Tensor, None, None]:
    """Concatenate the gradients of the parts."""
    return apply_op("ConcatV2", list(grads), op.inputs[2]), None, None


@gradient("Pack")
def pack_grad(op: Any, dy: Tensor) -> list[Tensor]:
    """Split the gradient into one slice per input."""
    parts: list[Tensor] = apply_op("Unpack", dy, num=len(op.inputs), axis=op.attr("axis"))
    return parts


@gradient("Unpack")
def unpack_grad(op: Any, *grads: Tensor) -> Tensor:
    """Stack the gradients of the slices."""
    if not grads:
        return apply_op("ZerosLike", op.inputs[0])
    return apply_op("Pack", list(grads), axis=op.attr("axis"))


@gradient("Slice")
def slice_grad(op: Any, dy: Tensor) -> tuple[Tensor, None, None]:
    """Pad the gradient with zeros."""
    x, begin = op.inputs[:2]
    shape = apply_op("Shape", x, out_type=begin.dtype)
    after = shape - apply_op("Shape", dy, out_type=begin.dtype) - begin
    return reshape_like(apply_op("Pad", dy, apply_op("Pack", [begin, after], axis=1)), x), None, None


_MASKS = ("begin_mask", "end_mask", "ellipsis_mask", "new_axis_mask", "shrink_axis_mask")


@gradient("StridedSlice")
def strided_slice_grad(op: Any, dy: Tensor) -> tuple[Any, ...]:
    """Write the gradient into zeros by StridedSliceGrad."""
    x, *bounds = op.inputs
    masks = {name: op.attr(name) for name in _MASKS}
    shape = apply_op("Shape", x, out_type=op.attr("Index"))
    return apply_op("StridedSliceGrad", shape, *bounds, dy, **masks), None, None, None


@gradient("StridedSliceGrad")
def strided_slice_grad_grad(op: Any, dz: Tensor) -> tuple[Any, ...]:
    """Take the same slice of the gradient."""
    masks = {name: op.attr(name) for name in _MASKS}
    return None, None, None, None, apply_op("StridedSlice", dz, *op.inputs[1:4], **masks)


@gradient("TensorStridedSliceUpdate")
def tensor_strided_slice_update_grad(op: Any, dy: Tensor) -> tuple[Any, ...]:
    """Split the gradient into the slice, for the value, and the rest, for the tensor."""
    bounds, value = op.inputs[1:4], op.inputs[4]
    masks = {name: op.attr(name) for name in _MASKS}
    rest = apply_op("TensorStridedSliceUpdate", dy, *bounds, apply_op("ZerosLike", value), **masks)
    part = apply_op("StridedSlice", dy, *bounds, **masks)
    return rest, None, None, None, _sum_to_shape(part, value)


def _sum_to_shape(grad: Tensor, value: Tensor) -> Tensor:
    """Sum the gradient of a value that was broadcast to a slice."""
    axes, _ = apply_op("BroadcastGradientArgs", apply_op("Shape", value), apply_op("Shape", grad))
    return reshape_like(apply_op("Sum", grad, axes), value)


# Permutation --------------------------------------------------------------------------------------------------------
@gradient("Transpose")
def transpose_grad(op: Any, dy: Tensor) -> tuple[Tensor, None]:
    """Apply the inverse permutation."""
    return apply_op("Transpose", dy, apply_op("InvertPermutation", op.inputs[1])), None


@gradient("ConjugateTranspose")
def conjugate_transpose_grad(op: Any, dy: Tensor) -> tuple[Tensor, None]:
    """Conjugate and apply the inverse permutation."""
    return apply_op("Transpose", conj(dy), apply_op("InvertPermutation", op.inputs[1])), None


@gradient("Reverse", "ReverseV2")
def reverse_grad(op: Any, dy: Tensor) -> tuple[Tensor, None]:
    """Reverse the gradient."""
    return apply_op(op.op, dy, op.inputs[1]), None


@gradient("ReverseSequence")
def reverse_sequence_grad(op: Any, dy: Tensor) -> tuple[Tensor, None]:
    """Reverse the gradient."""
    attrs = {"seq_dim": op.attr("seq_dim"), "batch_dim": op.attr("batch_dim")}
    return apply_op("ReverseSequence", dy, op.inputs[1], **attrs), None


@gradient("Roll")
def roll_grad(op: Any, dy: Tensor) -> tuple[Tensor, None, None]:
    """Roll the gradient back."""
    return apply_op("Roll", dy, -op.inputs[1], op.inputs[2]), None, None


@gradient("Tile")
def tile_grad(op: Any, dy: Tensor) -> tuple[Tensor, None]:
    """Reshape each dimension to copies and size, and sum over the copies."""
    x, multiples = op.inputs
    shape = apply_op("Shape", x, out_type=multiples.dtype)
    split = apply_op("Reshape", apply_op("Pack", [multiples, shape], axis=1), [-1])
    axes = apply_op("Range", 0, apply_op("Size", split), 2)
    return reshape_like(apply_op("Sum", apply_op("Reshape", dy, split), axes), x), None


@gradient("SpaceToDepth")
def space_to_depth_grad(op: Any, dy: Tensor) -> Tensor:
    """Apply the inverse op."""
    return apply_op("DepthToSpace", dy, block_size=op.attr("block_size"), data_format=op.attr("data_format"))


@gradient("DepthToSpace")
def depth_to_space_grad(op: Any, dy: Tensor) -> Tensor:
    """Apply the inverse op."""
    return apply_op("SpaceToDepth", dy, block_size=op.attr("block_size"), data_format=op.attr("data_format"))


@gradient("SpaceToBatch")
def space_to_batch_grad(op: Any, dy: Tensor) -> tuple[Tensor, None]:
    """Apply the inverse op; paddings become crops."""
    return apply_op("BatchToSpace", dy, op.inputs[1], block_size=op.attr("block_size")), None


@gradient("BatchToSpace")
def batch_to_space_grad(op: Any, dy: Tensor) -> tuple[Tensor, None]:
    """Apply the inverse op; crops become paddings."""
    return apply_op("SpaceToBatch", dy, op.inputs[1], block_size=op.attr("block_size")), None


@gradient("SpaceToBatchND")
def space_to_batch_nd_grad(op: Any, dy: Tensor) -> tuple[Tensor, None, None]:
    """Apply the inverse op; paddings become crops."""
    return apply_op("BatchToSpaceND", dy, *op.inputs[1:]), None, None


@gradient("BatchToSpaceND")
def batch_to_space_nd_grad(op: Any, dy: Tensor) -> tuple[Tensor, None, None]:
    """Apply the inverse op; crops become paddings."""
    return apply_op("SpaceToBatchND", dy, *op.inputs[1:]), None, None


# Padding -----------------------------------------------------------------------------------------------------------
def _crop_padding(op: Any, dy: Tensor) -> Tensor:
    x, paddings = op.inputs[:2]
    before = apply_op("StridedSlice", paddings, [0, 0], [0, 1], [1, 1], begin_mask=1, end_mask=1, shrink_axis_mask=2)
    return reshape_like(apply_op("Slice", dy, before, apply_op("Shape", x, out_type=paddings.dtype)), x)


@gradient("Pad")
def pad_grad(op: Any, dy: Tensor) -> tuple[Tensor, None]:
    """Crop the padding off the gradient."""
    return _crop_padding(op, dy), None


@gradient("PadV2")
def pad_v2_grad(op: Any, dy: Tensor) -> tuple[Tensor, None, Tensor]:
    """Crop the padding off the gradient, and sum the rest for the padding value."""
    inside = _crop_padding(op, dy)
    total = apply_op("Sum", dy, apply_op("Range", 0, apply_op("Rank", dy), 1))
    unpadded_sum = apply_op("Sum", inside, apply_op("Range", 0, apply_op("Rank", inside), 1))
    return inside, None, total - unpadded_sum


@gradient("MirrorPad")
def mirror_pad_grad(op: Any, dy: Tensor) -> tuple[Tensor, None]:
    """Fold the padding of the gradient back."""
    return apply_op("MirrorPadGrad", dy, op.inputs[1], mode=op.attr("mode")), None


@gradient("MirrorPadGrad")
def mirror_pad_grad_grad(op: Any, dy: Tensor) -> tuple[Tensor, None]:
    """Pad the gradient by mirroring."""
    return apply_op("MirrorPad", dy, op.inputs[1], mode=op.attr("mode")), None


# Gather and scatter --------------------------------------------------------------------------------------------------


@gradient("Gather")
def gather_grad(op: Any, dy: Tensor) -> tuple[Tensor, None]:
    """Sum the gradients of all copies of each row."""
    params, indices = op.inputs
    return reshape_like(sum_rows(dy, indices, length_of(params, 0)), params), None


@gradient("GatherV2")
def gather_v2_grad(op: Any, dy: Tensor) -> tuple[Tensor, None, None]:
    """Sum the gradients of all copies of each slice: move the gathered axes to the front, sum, and move them back."""
    params, indices, axis = op.inputs
    batch = op.attr("batch_dims")
    batch = batch if batch >= 0 else batch + (indices.shape.rank or 0)
    rank, gathered = apply_op("Rank", params), apply_op("Rank", indices)
    axis = apply_op("FloorMod", apply_op("Cast", axis, DstT="int32") + rank, rank)
    shape = apply_op("Shape", params)
    # dy is [batch, outer, picked, inner], params [batch, outer, axis, inner]
    outer = apply_op("Range", batch, axis, 1)
    gathered_axes = apply_op("Range", axis, axis + gathered - batch, 1)
    inner = apply_op("Range", axis + gathered - batch, apply_op("Rank", dy), 1)
    front = apply_op("Range", 0, batch, 1)
    values = apply_op("Transpose", dy, apply_op("ConcatV2", [front, gathered_axes, outer, inner], 0))
    length = apply_op("GatherV2", shape, axis, 0)
    if batch:
        indices, length = _offset_by_batch(indices, length, batch, params)
    sums = sum_rows(values, indices, length)  # [batch * axis, outer, inner], with batch and axis flattened
    inner_sizes = apply_op("GatherV2", shape, apply_op("Range", axis + 1, rank, 1), 0)
    sizes = apply_op(
        "ConcatV2",
        [
            apply_op("Slice", shape, [0], [batch]),
            apply_op("Reshape", apply_op("GatherV2", shape, axis, 0), [1]),
            apply_op("GatherV2", shape, outer, 0),
            inner_sizes,
        ],
        0,
    )
    grad = apply_op("Reshape", sums, sizes)
    # back to [batch, outer, axis, inner]
    restored = apply_op(
        "ConcatV2",
        [
            front,
            outer + 1,
            apply_op("Reshape", apply_op("Fill", [1], batch), [1]),
            apply_op("Range", axis + 1, rank, 1),
        ],
        0,
    )
    return reshape_like(apply_op("Transpose", grad, restored), params), None, None


def _offset_by_batch(indices: Tensor, length: Tensor, batch: int, params: Tensor) -> tuple[Tensor, Tensor]:
    """Make indices unique across batches by adding an offset per batch."""
    sizes = apply_op("Slice", apply_op("Shape", params), [0], [batch])
    count = apply_op("Prod", sizes, [0])
    numbers = apply_op("Reshape", apply_op("Range", 0, count, 1), sizes)
    ones = apply_op("Fill", apply_op("Reshape", apply_op("Rank", indices) - batch, [1]), 1)
    numbers = apply_op("Reshape", numbers, apply_op("ConcatV2", [sizes, ones], 0))
    offsets = apply_op("Cast", numbers * length, DstT=indices.dtype.base)
    return indices + offsets, count * length


@gradient("GatherNd")
def gather_nd_grad(op: Any, dy: Tensor) -> tuple[Tensor, None]:
    """Scatter the gradients to the gathered slices, summing copies."""
    params, indices = op.inputs
    return apply_op("ScatterNd", indices, dy, apply_op("Shape", params, out_type=indices.dtype)), None


@gradient("ScatterNd")
def scatter_nd_grad(op: Any, dy: Tensor) -> tuple[None, Tensor, None]:
    """Gather the gradients of the updates."""
    return None, apply_op("GatherNd", dy, op.inputs[0]), None


@gradient("ScatterNdNonAliasingAdd")
def scatter_nd_add_grad(op: Any, dy: Tensor) -> tuple[Tensor, None, Tensor]:
    """Pass the gradient to the tensor, and gather the gradients of the updates."""
    return dy, None, apply_op("GatherNd", dy, op.inputs[1])


@gradient("TensorScatterAdd", "TensorScatterSub")
def tensor_scatter_add_grad(op: Any, dy: Tensor) -> tuple[Tensor, None, Tensor]:
    """Pass the gradient to the tensor, and gather the gradients of the updates."""
    gathered = apply_op("GatherNd", dy, op.inputs[1])
    return dy, None, gathered if op.op == "TensorScatterAdd" else -gathered


@gradient("TensorScatterUpdate")
def tensor_scatter_update_grad(op: Any, dy: Tensor) -> tuple[Tensor, None, Tensor]:
    """Zero the gradient of overwritten elements, and gather that of the updates."""
    _, indices, updates = op.inputs
    rest = apply_op("TensorScatterUpdate", dy, indices, apply_op("ZerosLike", updates))
    return rest, None, apply_op("GatherNd", dy, indices)


@gradient("TensorScatterMax", "TensorScatterMin")
def tensor_scatter_extreme_grad(op: Any, dy: Tensor) -> tuple[Tensor, None, Tensor]:
    """Share the gradient equally among all elements that attain the extremum."""
    x, indices, updates = op.inputs
    y = op.outputs[0]

    def hits(a: Tensor, b: Tensor) -> Tensor:
        return apply_op("Cast", apply_op("Equal", a, b), DstT=x.dtype.base)

    from_x = hits(x, y)
    from_updates = hits(updates, apply_op("GatherNd", y, indices))
    count = from_x + apply_op("ScatterNd", indices, from_updates, apply_op("Shape", x, out_type=indices.dtype))
    share = apply_op("DivNoNan", dy, count)
    return from_x * share, None, from_updates * apply_op("GatherNd", share, indices)


gradient("ExtractImagePatches")(patches_gradient)
no_gradient("ConcatOffset")
