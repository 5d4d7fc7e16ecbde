"""Concatenation, slicing, padding, permutation, gather and scatter."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

import numpy as np

from cyxla.core.framework.declarations.op import op
from cyxla.core.framework.shape_fns.common import concat_shape, concat_v2_shape, unchanged_shape
from cyxla.core.framework.shape_fns.gathers import check_scatter_nd, gather_nd_shape, gather_shape
from cyxla.core.framework.shape_fns.slices import strided_slice_shape
from cyxla.core.framework.shape_fns.windows import Layout, windowed_output_size
from cyxla.core.framework.shape_inference import InferenceContext
from cyxla.core.framework.tensor_shape import UNKNOWN, Dim, TensorShape
from cyxla.errors import ShapeError


def _of_rank(c: InferenceContext, rank: int | None) -> TensorShape:
    return UNKNOWN if rank is None else c.unknown_shape_of_rank(rank)


def _numbers(c: InferenceContext, i: int) -> list[int] | None:
    """Return the numbers of a constant vector, or None if unknown."""
    value = c.input_tensor(i)
    return None if value is None else [int(v) for v in np.ravel(value)]


def _scalar(c: InferenceContext, i: int | str) -> int | None:
    c.with_rank(c.input(i), 0)
    value = c.input_tensor(i)
    return None if value is None else int(value)


# Slices ----------------------------------------------------------------------------------------------------------


def _slice_shape(c: InferenceContext) -> None:
    """Set the sizes of a slice; -1 means up to the end."""
    x = c.input(0)
    begin_shape = c.merge(c.with_rank(c.input(1), 1), c.with_rank(c.input(2), 1))
    rank = x.rank if begin_shape[0] is None else begin_shape[0]
    if rank is None:
        return
    x = c.with_rank(x, rank)
    begin, size = _numbers(c, 1), _numbers(c, 2)
    if size is None:
        c.set_output(0, c.unknown_shape_of_rank(rank))
        return
    begins: Sequence[int | None] = begin or [None] * rank
    c.set_output(0, [_slice_size(c, d, b, s) for d, b, s in zip(x, begins, size, strict=True)])


def _slice_size(c: InferenceContext, dim: Dim, begin: int | None, size: int) -> Dim:
    if size < -1 or (begin is not None and begin < 0):
        raise ShapeError(f"Slice: begin {begin} or size {size} is negative")
    if size == -1:
        return None if begin is None else c.subtract(dim, begin)
    if dim is not None and (begin or 0) + size > dim:
        raise ShapeError(f"Slice: {size} elements from index {begin} are out of range for a dimension of size {dim}")
    return size


def _strided_slice_shape(c: InferenceContext) -> None:
    bounds_shape = c.with_rank(c.input(1), 1)
    for i in (2, 3):
        bounds_shape = c.merge(bounds_shape, c.with_rank(c.input(i), 1))
    bounds = (c.input_tensor(i) for i in (1, 2, 3))
    c.set_output(0, strided_slice_shape(c, c.input(0), *bounds))


def _strided_slice_grad_shape(c: InferenceContext) -> None:
    c.set_output(0, c.make_shape_from_shape_tensor(0))


# Concatenation and splitting -----------------------------------------------------------------------------------------


def _concat_offset_shape(c: InferenceContext) -> None:
    for i in range(c.num_outputs):
        c.set_output(i, c.with_rank(c.input(i + 1), 1))


def _pack_shape(c: InferenceContext) -> None:
    """Insert a dimension with the number of inputs."""
    shape = UNKNOWN
    for i in range(c.num_inputs):
        shape = c.merge(shape, c.input(i))
    if shape.rank is None:
        return
    axis = c.axis(c.attr("axis"), c.unknown_shape_of_rank(shape.rank + 1))
    c.set_output(0, (*shape[:axis], c.num_inputs, *shape[axis:]))


def _unpack_shape(c: InferenceContext) -> None:
    x = c.input(0)
    if x.rank is None:
        return
    axis = c.axis(c.attr("axis"), x)
    c.with_value(x[axis], c.num_outputs)
    for i in range(c.num_outputs):
        c.set_output(i, (*x[:axis], *x[axis + 1 :]))


def _split_shape(c: InferenceContext) -> None:
    """Divide a dimension into equal parts."""
    axis, x = _scalar(c, 0), c.input(1)
    if x.rank is not None and axis is not None:
        at = c.axis(axis, x)
        part = c.replace_dim(x, at, c.divide(x[at], c.num_outputs))
    else:
        part = _of_rank(c, x.rank)
    for i in range(c.num_outputs):
        c.set_output(i, part)


def _split_v_shape(c: InferenceContext) -> None:
    """Set the given sizes of parts; one may be -1, for the rest."""
    x, axis, sizes = c.input(0), _scalar(c, 2), _numbers(c, 1)
    c.merge_dim(c.with_rank(c.input(1), 1)[0], c.num_outputs)
    if x.rank is None or axis is None:
        for i in range(c.num_outputs):
            c.set_output(i, _of_rank(c, x.rank))
        return
    at = c.axis(axis, x)
    for i, size in enumerate(_split_sizes(c, x[at], sizes)):
        c.set_output(i, c.replace_dim(x, at, size))


def _split_sizes(c: InferenceContext, total: Dim, sizes: list[int] | None) -> Sequence[Dim]:
    if c.num_outputs == 1:
        return [total]
    if sizes is None:
        return [None] * c.num_outputs
    known_total = sum(s for s in sizes if s != -1)
    if total is not None and (known_total > total or (-1 not in sizes and known_total != total)):
        raise ShapeError(f"SplitV: the sizes {sizes} do not add up to {total}")
    return [(None if total is None else total - known_total) if s == -1 else s for s in sizes]


# Padding and tiling ----------------------------------------------------------------------------------------------


def _pad_shape(c: InferenceContext, sign: int = 1) -> None:
    """Add a pair of paddings, before and after, to each dimension."""
    x, paddings = c.input(0), c.with_rank(c.input(1), 2)
    c.merge_dim(paddings[1], 2)
    value = c.input_tensor(1)
    rank = x.rank if paddings[0] is None else paddings[0]
    if rank is None:
        return
    x = c.with_rank(x, rank)
    if value is None:
        c.set_output(0, c.unknown_shape_of_rank(rank))
        return
    if (value < 0).any():
        raise ShapeError(f"{c.op_def.name}: a padding is negative: {value.tolist()}")
    sums = [int(before) + int(after) for before, after in value]
    combine = c.add if sign > 0 else c.subtract
    c.set_output(0, [combine(d, p) for d, p in zip(x, sums, strict=True)])


def _mirror_pad_grad_shape(c: InferenceContext) -> None:
    _pad_shape(c, -1)


def _tile_shape(c: InferenceContext) -> None:
    x, times = c.input(0), c.make_shape_from_shape_tensor(1)
    c.with_rank(c.input(1), 1)
    rank = x.rank if times.rank is None else times.rank
    if rank is None:
        return
    x, times = c.with_rank(x, rank), c.with_rank(times, rank)
    c.set_output(0, [c.multiply(d, n) for d, n in zip(x, times, strict=True)])


# Permutations -----------------------------------------------------------------------------------------------------


def _transpose_shape(c: InferenceContext) -> None:
    x, perm = c.input(0), _numbers(c, 1)
    count = c.with_rank(c.input(1), 1)[0]
    rank = x.rank if count is None else count
    if rank is None:
        return
    x = c.with_rank(x, rank)
    if perm is None:
        c.set_output(0, c.unknown_shape_of_rank(rank))
        return
    axes = [c.axis(p, x) for p in perm]
    if len(set(axes)) != rank:
        raise ShapeError(f"{c.op_def.name}: {perm} is not a permutation of the dimensions of {x}")
    c.set_output(0, [x[axis] for axis in axes])


def _reverse_shape(c: InferenceContext) -> None:
    """Check that there is one flag per dimension; the rank is at most eight."""
    x, flags = c.with_rank_at_most(c.input(0), 8), c.with_rank(c.input(1), 1)
    if x.rank is not None:
        c.merge_dim(flags[0], x.rank)
    c.set_output(0, x)


def _reverse_axes_shape(c: InferenceContext) -> None:
    x, axes = c.with_rank_at_most(c.input(0), 8), _numbers(c, 1)
    c.with_rank(c.input(1), 1)
    if x.rank is not None and axes is not None:
        reversed_axes = [c.axis(axis, x) for axis in axes]
        if len(set(reversed_axes)) != len(reversed_axes):
            raise ShapeError(f"ReverseV2: axes {axes} contain a dimension twice")
    c.set_output(0, x)


def _reverse_sequence_shape(c: InferenceContext) -> None:
    """Check that there is one length per row."""
    x, lengths = c.input(0), c.with_rank(c.input(1), 1)
    row, sequence = c.attr("batch_dim"), c.attr("seq_dim")
    if x.rank is None:
        return
    if not 0 <= row < x.rank or not 0 <= sequence < x.rank or row == sequence:
        raise ShapeError(f"ReverseSequence: batch_dim {row} and seq_dim {sequence} are not two dimensions of {x}")
    c.set_output(0, c.replace_dim(x, row, c.merge_dim(x[row], lengths[0])))


def _roll_shape(c: InferenceContext) -> None:
    c.with_rank_at_most(c.input(1), 1)
    c.with_rank_at_most(c.input(2), 1)
    c.set_output(0, c.with_rank_at_least(c.input(0), 1))


# Gathering and scattering ----------------------------------------------------------------------------------------


def _gather_shape(c: InferenceContext) -> None:
    c.set_output(0, gather_shape(c, c.with_rank_at_least(c.input(0), 1), c.input(1), 0))


def _gather_along_shape(c: InferenceContext) -> None:
    params = c.with_rank_at_least(c.input(0), 1)
    c.set_output(0, gather_shape(c, params, c.input(1), _scalar(c, 2), c.attr("batch_dims")))


def _gather_nd_shape(c: InferenceContext) -> None:
    c.set_output(0, gather_nd_shape(c, c.input(0), c.input(1)))


def _scatter_nd_shape(c: InferenceContext) -> None:
    shape = c.make_shape_from_shape_tensor(2)
    check_scatter_nd(c, shape, c.with_rank_at_least(c.input(0), 1), c.with_rank_at_least(c.input(1), 1))
    c.set_output(0, shape)


def _tensor_scatter_shape(c: InferenceContext) -> None:
    check_scatter_nd(c, c.input(0), c.input(1), c.input(2))
    c.set_output(0, c.input(0))


# Space and batch -------------------------------------------------------------------------------------------------


def _block(c: InferenceContext) -> list[int] | None:
    """Return the sizes of a block: two equal ones from an attribute, or those of an input; None if unknown."""
    if c.op_def.find_attr("block_size"):
        return [c.attr("block_size")] * 2
    return _numbers(c, 1)


def _space_shape(c: InferenceContext, to_batch: bool) -> None:
    """Move blocks of the spatial dimensions to the batch or back."""
    x, block = c.input(0), _block(c)
    edges = c.input_tensor(c.num_inputs - 1)
    c.merge_dim(c.with_rank(c.input(c.num_inputs - 1), 2)[1], 2)
    if block is None or x.rank is None:
        c.set_output(0, _of_rank(c, x.rank))
        return
    c.with_rank_at_least(x, len(block) + 1)
    if min(block, default=1) < 1:
        raise ShapeError(f"{c.op_def.name}: the block {block} has a size below 1")
    known_edges: Sequence[Sequence[int] | None] = [None] * len(block)
    if edges is not None:
        known_edges = np.reshape(edges, (-1, 2)).tolist()
        if len(known_edges) != len(block) or (edges < 0).any():
            raise ShapeError(f"{c.op_def.name}: {edges.tolist()} are no edges of {len(block)} dimensions")
    change = _to_batch_size if to_batch else _from_batch_size
    sizes = [change(c, d, b, e) for d, b, e in zip(x[1 : len(block) + 1], block, known_edges, strict=True)]
    batch = c.multiply(x[0], prod(block)) if to_batch else c.divide(x[0], prod(block))
    c.set_output(0, (batch, *sizes, *x[len(block) + 1 :]))


def _to_batch_size(c: InferenceContext, dim: Dim, block: int, edge: Sequence[int] | None) -> Dim:
    return None if edge is None else c.divide(c.add(dim, sum(edge)), block)


def _from_batch_size(c: InferenceContext, dim: Dim, block: int, edge: Sequence[int] | None) -> Dim:
    return None if edge is None else c.subtract(c.multiply(dim, block), sum(edge))


def _space_to_batch_shape(c: InferenceContext) -> None:
    _space_shape(c, to_batch=True)


def _batch_to_space_shape(c: InferenceContext) -> None:
    _space_shape(c, to_batch=False)


def _depth_shape(c: InferenceContext, to_depth: bool) -> None:
    """Move blocks of the spatial dimensions to the channels or back."""
    layout, block = Layout.of(c.attr("data_format"), 2), c.attr("block_size")
    x = c.with_rank(c.input(0), layout.rank)
    shrink, grow = (c.divide, c.multiply) if to_depth else (c.multiply, c.divide)
    sizes = list(x)
    for at in layout.spatial:
        sizes[at] = shrink(x[at], block)
    sizes[layout.channels] = grow(x[layout.channels], block * block)
    c.set_output(0, sizes)


def _space_to_depth_shape(c: InferenceContext) -> None:
    _depth_shape(c, to_depth=True)


def _depth_to_space_shape(c: InferenceContext) -> None:
    _depth_shape(c, to_depth=False)


def _patches_shape(c: InferenceContext) -> None:
    """Set the shape of windows at each position, flattened into the channels."""
    x, window, strides, rates = c.with_rank(c.input(0), 4), c.attr("ksizes"), c.attr("strides"), c.attr("rates")
    for name, values in (("ksizes", window), ("strides", strides), ("rates", rates)):
        if len(values) != 4:
            raise ShapeError(f"ExtractImagePatches: {name} must have 4 numbers, but is {list(values)}")
    sizes = [windowed_output_size(x[i], window[i], strides[i], c.attr("padding"), rates[i]) for i in (1, 2)]
    c.set_output(0, (x[0], *sizes, c.multiply(x[3], window[1] * window[2])))


op("BatchToSpace", "input: T, crops: Tidx -> output: T", "T: type", "block_size: int >= 2",
    "Tidx: {int32, int64} = DT_INT32", shape=_batch_to_space_shape,
    doc="Move blocks of the batch to height and width, then crop.",
)  # fmt: skip
op("BatchToSpaceND", "input: T, block_shape: Tblock_shape, crops: Tcrops -> output: T", "T: type",
    "Tblock_shape: {int32, int64} = DT_INT32", "Tcrops: {int32, int64} = DT_INT32", shape=_batch_to_space_shape,
    doc="Move blocks of the batch to other dimensions, then crop.",
)  # fmt: skip
op("Concat", "concat_dim: int32, values: N * T -> output: T", "N: int >= 2", "T: type", shape=concat_shape,
    doc="Concatenate arrays along a dimension.",
)  # fmt: skip
op("ConcatOffset", "concat_dim: int32, shape: N * shape_type -> offset: N * shape_type", "N: int >= 2",
    "shape_type: {int32, int64} = DT_INT32", shape=_concat_offset_shape,
    doc="Return the offset of each array within their concatenation.",
)  # fmt: skip
op("ConcatV2", "values: N * T, axis: Tidx -> output: T", "N: int >= 2", "T: type", "Tidx: {int32, int64} = DT_INT32",
    shape=concat_v2_shape, doc="Concatenate arrays along an axis.",
)  # fmt: skip
op("ConjugateTranspose", "x: T, perm: Tperm -> y: T", "T: type", "Tperm: {int32, int64} = DT_INT32",
    shape=_transpose_shape, doc="Permute the dimensions and conjugate the elements.",
)  # fmt: skip
op("DepthToSpace", "input: T -> output: T", "T: type", "block_size: int >= 2",
    "data_format: {'NHWC', 'NCHW', 'NCHW_VECT_C'} = 'NHWC'", shape=_depth_to_space_shape,
    doc="Move blocks of channels to height and width.",
)  # fmt: skip
op("Gather", "params: Tparams, indices: Tindices -> output: Tparams", "validate_indices: bool = true", "Tparams: type",
    "Tindices: {int32, int64}", shape=_gather_shape, doc="Gather rows by index.",
)  # fmt: skip
op("GatherNd", "params: Tparams, indices: Tindices -> output: Tparams", "Tparams: type",
    "Tindices: {int16, int32, int64}", "bad_indices_policy: string = ''", shape=_gather_nd_shape,
    doc="Gather slices by vectors of indices.",
)  # fmt: skip
op("GatherV2", "params: Tparams, indices: Tindices, axis: Taxis -> output: Tparams", "batch_dims: int = 0",
    "Tparams: type", "Tindices: {int16, int32, int64}", "Taxis: {int32, int64}", shape=_gather_along_shape,
    doc="Gather slices along an axis by index, optionally per batch.",
)  # fmt: skip
op("MirrorPad", "input: T, paddings: Tpaddings -> output: T", "T: type", "Tpaddings: {int32, int64} = DT_INT32",
    "mode: {'REFLECT', 'SYMMETRIC'}", shape=_pad_shape, doc="Pad by mirroring the contents.",
)  # fmt: skip
op("MirrorPadGrad", "input: T, paddings: Tpaddings -> output: T", "T: type", "Tpaddings: {int32, int64} = DT_INT32",
    "mode: {'REFLECT', 'SYMMETRIC'}", shape=_mirror_pad_grad_shape,
    doc="Compute the gradient of MirrorPad by folding back the padding.",
)  # fmt: skip
op("Pack", "values: N * T -> output: T", "N: int", "T: type", "axis: int = 0", shape=_pack_shape,
    doc="Stack arrays along a new dimension.",
)  # fmt: skip
op("Pad", "input: T, paddings: Tpaddings -> output: T", "T: type", "Tpaddings: {int32, int64} = DT_INT32",
    shape=_pad_shape, doc="Pad with zeros.",
)  # fmt: skip
op("PadV2", "input: T, paddings: Tpaddings, constant_values: T -> output: T", "T: type",
    "Tpaddings: {int32, int64} = DT_INT32", shape=_pad_shape, doc="Pad with a value.",
)  # fmt: skip
op("Reverse", "tensor: T, dims: bool -> output: T",
    "T: {uint8, int8, uint16, int16, uint32, int32, uint64, int64, bool, bfloat16, half, float, double, "
    "complex64, complex128, string}", shape=_reverse_shape,
    doc="Reverse the order along the flagged dimensions.",
)  # fmt: skip
op("ReverseSequence", "input: T, seq_lengths: Tlen -> output: T", "seq_dim: int", "batch_dim: int = 0", "T: type",
    "Tlen: {int32, int64} = DT_INT64", shape=_reverse_sequence_shape,
    doc="Reverse the first elements of each row, up to the length of the row.",
)  # fmt: skip
op("ReverseV2", "tensor: T, axis: Tidx -> output: T", "Tidx: {int32, int64} = DT_INT32",
    "T: {uint8, int8, uint16, int16, int32, uint32, int64, uint64, bool, bfloat16, half, float, double, "
    "complex64, complex128, string}", shape=_reverse_axes_shape, doc="Reverse the order along some axes.",
)  # fmt: skip
op("Roll", "input: T, shift: Tshift, axis: Taxis -> output: T", "T: type", "Tshift: {int32, int64}",
    "Taxis: {int32, int64}", shape=_roll_shape, doc="Shift elements cyclically along some axes.",
)  # fmt: skip
op("ScatterNd", "indices: Tindices, updates: T, shape: Tindices -> output: T", "T: type",
    "Tindices: {int16, int32, int64}", "bad_indices_policy: string = ''", shape=_scatter_nd_shape,
    doc="Add updates at vectors of indices to zeros.",
)  # fmt: skip
op("ScatterNdNonAliasingAdd", "input: T, indices: Tindices, updates: T -> output: T", "T: {numbertype, bool}",
    "Tindices: {int32, int64}", "bad_indices_policy: string = ''", shape=_tensor_scatter_shape,
    doc="Add updates at vectors of indices to an array.",
)  # fmt: skip
op("Slice", "input: T, begin: Index, size: Index -> output: T", "T: type", "Index: {int32, int64}", shape=_slice_shape,
    doc="Slice a box out of an array.",
)  # fmt: skip
op("SpaceToBatch", "input: T, paddings: Tpaddings -> output: T", "T: type", "Tpaddings: {int32, int64} = DT_INT32",
    "block_size: int >= 2", shape=_space_to_batch_shape,
    doc="Pad height and width, and move their blocks to the batch.",
)  # fmt: skip
op("SpaceToBatchND", "input: T, block_shape: Tblock_shape, paddings: Tpaddings -> output: T", "T: type",
    "Tblock_shape: {int32, int64} = DT_INT32", "Tpaddings: {int32, int64} = DT_INT32", shape=_space_to_batch_shape,
    doc="Pad dimensions, and move their blocks to the batch.",
)  # fmt: skip
op("SpaceToDepth", "input: T -> output: T", "T: type", "block_size: int >= 2",
    "data_format: {'NHWC', 'NCHW', 'NCHW_VECT_C'} = 'NHWC'", shape=_space_to_depth_shape,
    doc="Move blocks of height and width to the channels.",
)  # fmt: skip
op("Split", "split_dim: int32, value: T -> output: num_split * T", "num_split: int", "T: type", shape=_split_shape,
    doc="Split into equal parts along a dimension.",
)  # fmt: skip
op("SplitV", "value: T, size_splits: Tlen, split_dim: int32 -> output: num_split * T", "num_split: int", "T: type",
    "Tlen: {int8, int32, int64} = DT_INT64", shape=_split_v_shape,
    doc="Split into parts of given sizes along a dimension.",
)  # fmt: skip
op("StridedSlice", "input: T, begin: Index, end: Index, strides: Index -> output: T", "T: type",
    "Index: {int16, int32, int64}", "begin_mask: int = 0", "end_mask: int = 0", "ellipsis_mask: int = 0",
    "new_axis_mask: int = 0", "shrink_axis_mask: int = 0", shape=_strided_slice_shape,
    doc="Slice each dimension from begin to end with a stride.\n\nMask bits leave out a bound, mark an ellipsis or a "
    "new axis, or select one element and remove its dimension.",
)  # fmt: skip
op("StridedSliceGrad", "shape: Index, begin: Index, end: Index, strides: Index, dy: T -> output: T", "T: type",
    "Index: {int32, int64}", "begin_mask: int = 0", "end_mask: int = 0", "ellipsis_mask: int = 0",
    "new_axis_mask: int = 0", "shrink_axis_mask: int = 0", shape=_strided_slice_grad_shape,
    doc="Compute the gradient of StridedSlice: zeros around the slice.",
)  # fmt: skip
op("TensorScatterAdd", "tensor: T, indices: Tindices, updates: T -> output: T", "T: type", "Tindices: {int32, int64}",
    "bad_indices_policy: string = ''", shape=_tensor_scatter_shape,
    doc="Add updates at vectors of indices to an array.",
)  # fmt: skip
op("TensorScatterMax", "tensor: T, indices: Tindices, updates: T -> output: T", "T: type", "Tindices: {int32, int64}",
    "bad_indices_policy: string = ''", shape=_tensor_scatter_shape,
    doc="Take the maximum of an array and updates at vectors of indices.",
)  # fmt: skip
op("TensorScatterMin", "tensor: T, indices: Tindices, updates: T -> output: T", "T: type", "Tindices: {int32, int64}",
    "bad_indices_policy: string = ''", shape=_tensor_scatter_shape,
    doc="Take the minimum of an array and updates at vectors of indices.",
)  # fmt: skip
op("TensorScatterSub", "tensor: T, indices: Tindices, updates: T -> output: T", "T: type", "Tindices: {int32, int64}",
    "bad_indices_policy: string = ''", shape=_tensor_scatter_shape,
    doc="Subtract updates at vectors of indices from an array.",
)  # fmt: skip
op("TensorScatterUpdate", "tensor: T, indices: Tindices, updates: T -> output: T", "T: type",
    "Tindices: {int16, int32, int64, uint16}", "bad_indices_policy: string = ''", shape=_tensor_scatter_shape,
    doc="Replace elements of an array at vectors of indices.",
)  # fmt: skip
op("TensorStridedSliceUpdate", "input: T, begin: Index, end: Index, strides: Index, value: T -> output: T", "T: type",
    "Index: {int32, int64}", "begin_mask: int = 0", "end_mask: int = 0", "ellipsis_mask: int = 0",
    "new_axis_mask: int = 0", "shrink_axis_mask: int = 0", shape=unchanged_shape,
    doc="Replace a strided slice of an array.",
)  # fmt: skip
op("Tile", "input: T, multiples: Tmultiples -> output: T", "T: type", "Tmultiples: {int32, int64} = DT_INT32",
    shape=_tile_shape, doc="Repeat an array along each dimension.",
)  # fmt: skip
op("Transpose", "x: T, perm: Tperm -> y: T", "T: type", "Tperm: {int32, int64} = DT_INT32", shape=_transpose_shape,
    doc="Permute the dimensions.",
)  # fmt: skip
op("Unpack", "value: T -> output: num * T", "num: int >= 0", "T: type", "axis: int = 0", shape=_unpack_shape,
    doc="Split into slices along a dimension, which is removed.",
)  # fmt: skip
op("ExtractImagePatches", "images: T -> patches: T", "ksizes: list(int) >= 4", "strides: list(int) >= 4",
    "rates: list(int) >= 4",
    "T: {bfloat16, half, float, double, int8, int16, int32, int64, uint8, uint16, uint32, uint64, complex64, "
    "complex128, bool}", "padding: {'SAME', 'VALID'}", shape=_patches_shape,
    doc="Extract the window around each position of an image into the channels.",
)  # fmt: skip
