"""Concatenation, slicing, padding, permutation, gather and scatter."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from math import prod
from typing import Any

import numpy as np

from cyxla.core.framework.geometry.blocks_and_patches import blocks_of, check_patches, check_rank4, cropped_bounds
from cyxla.core.framework.geometry.concat_split_tile import (
    check_joinable,
    concat_offsets,
    equal_parts,
    split_v_sizes,
    tile_multiples,
)
from cyxla.core.framework.geometry.gather_scatter import check_policy
from cyxla.core.framework.geometry.pad_and_transpose import mirrored, pads_of, permutation, reversed_axes
from cyxla.core.framework.geometry.shape_operands import axis_of
from cyxla.core.framework.geometry.shape_operands import sizes_of as read_sizes
from cyxla.core.framework.geometry.strided_slices import MASKS, slice_index, strided_index
from cyxla.core.framework.geometry.windows import Windows
from cyxla.core.framework.types import FLOATING, DataType
from cyxla.errors import InvalidArgumentError, ShapeError
from cyxla.tf2xla.lib.dynamic_sizes import is_dynamic
from cyxla.tf2xla.lib.dynamic_slices import DynamicStridedSlice, slice_from
from cyxla.tf2xla.lib.gather_scatter import gather_slices, scatter_nd
from cyxla.tf2xla.lib.strided_slices import read_index, strided_update, write_index
from cyxla.tf2xla.xla_op_kernel import XlaOpKernelContext, checked, lowering, xla_kernel
from cyxla.types import ElementType
from cyxla.xla.hlo.builder import XlaOp
from cyxla.xla.hlo.builder import functions as xla
from cyxla.xla.lib.values import (
    broadcast_to,
    full_like,
    iota_along,
    is_complex,
    rank_of,
    reduced,
    scalar,
    select,
    sizes_of,
    zeros_like,
)

Array = np.ndarray[Any, Any]


# ----------------------------------------------------------------------------------------- concatenation and slicing


def _concat(values: list[XlaOp], axis: Array) -> XlaOp:
    if not rank_of(values[0]):
        raise ShapeError("scalars cannot be joined", hint="use Pack")
    along = axis_of(axis, rank_of(values[0]), "the dimension to join in")
    check_joinable([sizes_of(value) for value in values], along)
    return xla.concatenate(values, along)


lowering("ConcatV2", _concat, const=("axis",))
lowering("Concat", lambda axis, values: _concat(values, axis), const=("concat_dim",))


@xla_kernel("ConcatOffset", const=("concat_dim", "shape"))
def _concat_offset(ctx: XlaOpKernelContext) -> Any:
    """Output constants computed from constant shapes."""
    shapes = [ctx.constant_input(i) for i in range(1, ctx.num_inputs)]
    for i, value in enumerate(concat_offsets(ctx.constant_input(0), shapes)):
        ctx.set_constant_output(i, value)


def _insert_dim(x: XlaOp, axis: int) -> XlaOp:
    return xla.reshape(x, (*sizes_of(x)[:axis], 1, *sizes_of(x)[axis:]))


def _remove_dim(x: XlaOp, axis: int) -> XlaOp:
    return xla.reshape(x, (*sizes_of(x)[:axis], *sizes_of(x)[axis + 1 :]))


@lowering("Pack", attrs=("axis",))
def _pack(values: list[XlaOp], *, axis: int) -> XlaOp:
    for value in values[1:]:
        if sizes_of(value) != sizes_of(values[0]):
            raise ShapeError(f"{list(sizes_of(values[0]))} and {list(sizes_of(value))} cannot be stacked")
    along = axis_of(np.array(axis), rank_of(values[0]) + 1)
    return xla.concatenate([_insert_dim(value, along) for value in values], along)


@lowering("Unpack", attrs=("num", "axis"))
def _unpack(value: XlaOp, *, num: int, axis: int) -> list[XlaOp]:
    along = axis_of(np.array(axis), rank_of(value))
    if sizes_of(value)[along] != num:
        raise InvalidArgumentError(f"dimension {along} of {list(sizes_of(value))} does not have num={num} slices")
    return [_remove_dim(xla.slice_in_dim(value, k, k + 1, 1, along), along) for k in range(num)]


def _split_parts(value: XlaOp, sizes: Sequence[int], axis: int) -> list[XlaOp]:
    offsets = np.cumsum([0, *sizes]).tolist()
    return [xla.slice_in_dim(value, a, b, 1, axis) for a, b in pairwise(offsets)]


@lowering("Split", attrs=("num_split",), const=("split_dim",))
def _split(split_dim: Array, value: XlaOp, *, num_split: int) -> list[XlaOp]:
    axis, sizes = equal_parts(sizes_of(value), split_dim, num_split)
    return _split_parts(value, sizes, axis)


@lowering("SplitV", attrs=("num_split",), const=("size_splits", "split_dim"))
def _split_v(value: XlaOp, size_splits: Array, split_dim: Array, *, num_split: int) -> list[XlaOp]:
    axis, sizes = split_v_sizes(sizes_of(value), size_splits, split_dim, num_split)
    return _split_parts(value, sizes, axis)


@xla_kernel("Slice")
def _slice(ctx: XlaOpKernelContext) -> Any:
    """Emit a static slice if start and sizes are constants, a dynamic-slice if only the sizes are."""
    x = ctx.dynamic_input("input")
    begin, size = (ctx.xla.constant_value(ctx.input_expression(name)) for name in ("begin", "size"))
    if size is None:
        return _slice_of_any_size(ctx, x)
    if begin is not None:
        index = slice_index(sizes_of(x), begin, size)
        if is_dynamic(x):
            return _slice_of_any_size(ctx, x, index)
        return xla.slice_(x, [part.start for part in index], [part.stop for part in index])
    if size.shape != (rank_of(x),):
        raise ShapeError(f"size must hold {rank_of(x)} numbers; its shape is {list(size.shape)}")
    if (size < 0).any() or is_dynamic(x):
        return _slice_of_any_size(ctx, x)
    starts = ctx.input("begin")
    indices = [xla.reshape(xla.slice_in_dim(starts, d, d + 1), ()) for d in range(rank_of(x))]
    return xla.dynamic_slice(x, indices, size.tolist())


def _slice_of_any_size(ctx: XlaOpKernelContext, x: XlaOp, known: Sequence[slice] | None = None) -> XlaOp:
    begin, size = ctx.input("begin"), ctx.input("size")
    for name, vector in (("begin", begin), ("size", size)):
        if sizes_of(vector) != (rank_of(x),):
            raise ShapeError(f"{name} must hold {rank_of(x)} numbers; its shape is {list(sizes_of(vector))}")
    return checked(ctx, *slice_from(x, begin, size, known))


# Strided slices


_SLICE = ("begin", "end", "strides")


@xla_kernel("StridedSlice", const=("strides",))
def _strided_slice(ctx: XlaOpKernelContext) -> Any:
    """Emit static slices for constant bounds, else gathers with a dynamic size."""
    x, strides, masks = ctx.dynamic_input("input"), ctx.constant_input("strides"), _masks(ctx)
    bounds = _known_ends(ctx)
    index = None if bounds is None else strided_index(sizes_of(x), *bounds, strides, masks)
    if index is not None and not is_dynamic(x):
        return read_index(x, index)
    ranges = DynamicStridedSlice(sizes_of(x), ctx.input("begin"), ctx.input("end"), strides, masks, index)
    return checked(ctx, *ranges.apply(x))


@xla_kernel("StridedSliceGrad", const=("shape", "strides"))
def _strided_slice_grad(ctx: XlaOpKernelContext) -> Any:
    """Pad dy to the shape, with interior padding for strides; dynamic bounds use a dynamic-update-slice."""
    dy, strides, masks = ctx.input("dy"), ctx.constant_input("strides"), _masks(ctx)
    sizes, bounds = read_sizes(ctx.constant_input("shape"), "shape"), _known_ends(ctx)
    if bounds is not None:
        return write_index(dy, sizes, strided_index(sizes, *bounds, strides, masks), None)
    return DynamicStridedSlice(sizes, ctx.input("begin"), ctx.input("end"), strides, masks).scatter(dy, sizes)


def _masks(ctx: XlaOpKernelContext) -> dict[str, int]:
    return {name: ctx.attr(name) for name in MASKS}


def _known_ends(ctx: XlaOpKernelContext) -> tuple[Array, Array] | None:
    begin, end = (ctx.xla.constant_value(ctx.input_expression(name)) for name in ("begin", "end"))
    return None if begin is None or end is None else (begin, end)


@lowering("TensorStridedSliceUpdate", attrs=MASKS, const=_SLICE)
def _strided_update(x: XlaOp, begin: Array, end: Array, strides: Array, value: XlaOp, **masks: int) -> XlaOp:
    return strided_update(x, begin, end, strides, value, masks)


@lowering("Tile", const=("multiples",))
def _tile(x: XlaOp, multiples: Array) -> XlaOp:
    times = tile_multiples(rank_of(x), multiples)
    sizes, dims = [], []
    for d, (n, m) in enumerate(zip(sizes_of(x), times, strict=True)):
        sizes += [m, n]
        dims.append(2 * d + 1)
    wide = xla.broadcast_in_dim(x, sizes, dims)
    return xla.reshape(wide, [n * m for n, m in zip(sizes_of(x), times, strict=True)])


# ---------------------------------------------------------------------------------------------------------- padding


@lowering("Pad", const=("paddings",))
def _pad(x: XlaOp, paddings: Array) -> XlaOp:
    return xla.pad(x, scalar(x, 0), [(a, b, 0) for a, b in pads_of(rank_of(x), paddings)])


@lowering("PadV2", const=("paddings",))
def _pad_v2(x: XlaOp, paddings: Array, value: XlaOp) -> XlaOp:
    if rank_of(value):
        raise ShapeError(f"constant_values must be a scalar; its shape is {list(sizes_of(value))}")
    return xla.pad(x, value, [(a, b, 0) for a, b in pads_of(rank_of(x), paddings)])


@lowering("MirrorPad", attrs=("mode",), const=("paddings",))
def _mirror_pad(x: XlaOp, paddings: Array, *, mode: str) -> XlaOp:
    """Concatenate reversed slices to both sides of each dimension."""
    pads_of(rank_of(x), paddings)
    mirrored(paddings, mode, sizes_of(x))
    edge = 0 if mode == "SYMMETRIC" else 1
    for d, (low, high) in enumerate(paddings.tolist()):
        size = sizes_of(x)[d]
        below = xla.reverse(xla.slice_in_dim(x, edge, edge + low, 1, d), [d])
        above = xla.reverse(xla.slice_in_dim(x, size - edge - high, size - edge, 1, d), [d])
        x = xla.concatenate([below, x, above], d)
    return x


@lowering("MirrorPadGrad", attrs=("mode",), const=("paddings",))
def _mirror_pad_grad(dy: XlaOp, paddings: Array, *, mode: str) -> XlaOp:
    """Add the reversed margins to the elements they mirror."""
    pads = pads_of(rank_of(dy), paddings)
    edge = 0 if mode == "SYMMETRIC" else 1
    for d, (low, high) in enumerate(pads):
        size = sizes_of(dy)[d] - low - high
        if size < 0:
            raise InvalidArgumentError(f"{list(sizes_of(dy))} is smaller than its paddings {paddings.tolist()}")
        below = xla.reverse(xla.slice_in_dim(dy, 0, low, 1, d), [d])
        above = xla.reverse(xla.slice_in_dim(dy, low + size, low + size + high, 1, d), [d])
        inner = xla.slice_in_dim(dy, low, low + size, 1, d)
        zero = scalar(dy, 0)
        inner = inner + xla.pad_in_dim(below, zero, d, edge, size - edge - low)
        dy = inner + xla.pad_in_dim(above, zero, d, size - edge - high, edge)
    return dy


# ------------------------------------------------------------------------------------------------------ permutation


@lowering("Transpose", const=("perm",))
def _transpose(x: XlaOp, perm: Array) -> XlaOp:
    return xla.transpose(x, permutation(rank_of(x), perm))


@lowering("ConjugateTranspose", const=("perm",))
def _conjugate_transpose(x: XlaOp, perm: Array) -> XlaOp:
    result = xla.transpose(x, permutation(rank_of(x), perm))
    return xla.complex_(xla.real(result), -xla.imag(result)) if is_complex(x) else result


@lowering("Reverse", const=("dims",))
def _reverse(x: XlaOp, dims: Array) -> XlaOp:
    if dims.shape != (rank_of(x),):
        raise ShapeError(f"dims must hold a bool for each of {rank_of(x)} dimensions; its shape is {list(dims.shape)}")
    axes = np.flatnonzero(dims).tolist()
    return xla.reverse(x, axes) if axes else x


@lowering("ReverseV2", const=("axis",))
def _reverse_v2(x: XlaOp, axis: Array) -> XlaOp:
    axes = reversed_axes(rank_of(x), axis)
    return xla.reverse(x, axes) if axes else x


@lowering("ReverseSequence", attrs=("seq_dim", "batch_dim"))
def _reverse_sequence(x: XlaOp, lengths: XlaOp, *, seq_dim: int, batch_dim: int) -> XlaOp:
    """Gather the elements of each example, with the first `lengths` in reverse."""
    along, batch = (axis_of(np.array(d), rank_of(x), n) for d, n in ((seq_dim, "seq_dim"), (batch_dim, "batch_dim")))
    if along == batch:
        raise InvalidArgumentError(f"seq_dim and batch_dim are both {along}")
    if sizes_of(lengths) != (sizes_of(x)[batch],):
        raise ShapeError(f"seq_lengths {list(sizes_of(lengths))}: {sizes_of(x)[batch]} lengths are needed")
    if not prod(sizes_of(x)):
        return x
    count, size = sizes_of(x)[batch], sizes_of(x)[along]
    positions = iota_along(x.builder, ElementType.S64, (count, size), 1)
    sequence_ends = xla.broadcast_in_dim(xla.convert(lengths, ElementType.S64), (count, size), (0,))
    source = select(xla.lt(positions, sequence_ends), sequence_ends - scalar(positions, 1) - positions, positions)
    rest = [d for d in range(rank_of(x)) if d not in (batch, along)]
    transposed = xla.transpose(x, [batch, along, *rest])
    inner = sizes_of(transposed)[2:]
    result = xla.gather(
        transposed,
        source,
        offset_dims=tuple(range(2, 2 + len(inner))),
        collapsed_slice_dims=(1,),
        start_index_map=(1,),
        index_vector_dim=2,
        slice_sizes=(1, 1, *inner),
        operand_batching_dims=(0,),
        start_indices_batching_dims=(0,),
    )
    order = [batch, along, *rest]
    return xla.transpose(result, [order.index(d) for d in range(rank_of(x))])


@xla_kernel("Roll", const=("axis",))
def _roll(ctx: XlaOpKernelContext) -> Any:
    """Concatenate the array with itself and take a dynamic-slice at the shift."""
    x, shift, axis = ctx.input(0), ctx.input(1), ctx.constant_input(2)
    if not rank_of(x):
        raise ShapeError("the input must have at least one dimension; it is a scalar")
    shifts = xla.reshape(shift, (prod(sizes_of(shift)),))
    for k, d in enumerate(axis.reshape(-1).tolist()):
        along = axis_of(np.array(d), rank_of(x))
        size = sizes_of(x)[along]
        if not size:
            continue
        by = xla.reshape(xla.slice_in_dim(shifts, k, k + 1), ())
        length = scalar(by, size)
        start = xla.remainder(length - xla.remainder(xla.remainder(by, length) + length, length), length)
        starts = [start if e == along else scalar(by, 0) for e in range(rank_of(x))]
        x = xla.dynamic_slice(xla.concatenate([x, x], along), starts, sizes_of(x))
    return x


# ------------------------------------------------------------------------------------------- space to batch and depth


@lowering("SpaceToBatchND", const=("block_shape", "paddings"))
def _space_to_batch_nd(x: XlaOp, block_shape: Array, paddings: Array) -> XlaOp:
    return _space_to_batch(x, *blocks_of(sizes_of(x), block_shape, paddings, "paddings"))


@lowering("SpaceToBatch", attrs=("block_size",), const=("paddings",))
def _space_to_batch_2d(x: XlaOp, paddings: Array, *, block_size: int) -> XlaOp:
    check_rank4(sizes_of(x))
    return _space_to_batch_nd(x, np.array([block_size] * 2), paddings)


def _space_to_batch(x: XlaOp, block: Sequence[int], pads: Sequence[tuple[int, int]]) -> XlaOp:
    rest = rank_of(x) - 1 - len(block)
    padded = xla.pad(x, scalar(x, 0), [(0, 0, 0), *((a, b, 0) for a, b in pads), *[(0, 0, 0)] * rest])
    shape, count = [sizes_of(padded)[0]], len(block)
    for d, b in enumerate(block):
        size = sizes_of(padded)[d + 1]
        if size % b:
            raise InvalidArgumentError(f"dimension {d + 1}, padded to {size}, is not a multiple of the block size {b}")
        shape += [size // b, b]
    parts = xla.reshape(padded, (*shape, *sizes_of(padded)[1 + count :]))
    inner, outer = range(2, 2 * count + 1, 2), range(1, 2 * count, 2)
    transposed = xla.transpose(parts, [*inner, 0, *outer, *range(2 * count + 1, rank_of(parts))])
    sizes = (shape[0] * prod(block), *(shape[d] for d in outer), *sizes_of(padded)[1 + count :])
    return xla.reshape(transposed, sizes)


@lowering("BatchToSpaceND", const=("block_shape", "crops"))
def _batch_to_space_nd(x: XlaOp, block_shape: Array, crops: Array) -> XlaOp:
    block, pairs = blocks_of(sizes_of(x), block_shape, crops, "crops")
    bounds = cropped_bounds(sizes_of(x), block, pairs)
    count, batch = len(block), sizes_of(x)[0] // prod(block)
    parts = xla.reshape(x, (*block, batch, *sizes_of(x)[1:]))
    order = [count]
    for d in range(count):
        order += [count + 1 + d, d]
    transposed = xla.transpose(parts, [*order, *range(2 * count + 1, rank_of(parts))])
    sizes = [n * b for n, b in zip(sizes_of(x)[1:], block, strict=False)]
    merged = xla.reshape(transposed, (batch, *sizes, *sizes_of(x)[1 + count :]))
    bounds = [(0, batch), *bounds, *((0, n) for n in sizes_of(x)[1 + count :])]
    return xla.slice_(merged, [low for low, _ in bounds], [high for _, high in bounds])


@lowering("BatchToSpace", attrs=("block_size",), const=("crops",))
def _batch_to_space_2d(x: XlaOp, crops: Array, *, block_size: int) -> XlaOp:
    check_rank4(sizes_of(x))
    return _batch_to_space_nd(x, np.array([block_size] * 2), crops)


def _with_depth_last(function: Callable[[XlaOp, int], XlaOp]) -> Callable[..., XlaOp]:
    def kernel(x: XlaOp, *, block_size: int, data_format: str) -> XlaOp:
        if data_format == "NCHW_VECT_C":
            b, c, h, w, _ = sizes_of(x)
            flat = xla.reshape(xla.transpose(x, [0, 2, 3, 1, 4]), (b, h, w, c * 4))
            result = function(flat, block_size)
            b, h, w, c = sizes_of(result)
            return xla.transpose(xla.reshape(result, (b, h, w, c // 4, 4)), [0, 3, 1, 2, 4])
        check_rank4(sizes_of(x))
        if data_format == "NCHW":
            return xla.transpose(function(xla.transpose(x, [0, 2, 3, 1]), block_size), [0, 3, 1, 2])
        return function(x, block_size)

    return kernel


def _space_to_depth(x: XlaOp, block: int) -> XlaOp:
    b, h, w, c = sizes_of(x)
    if h % block or w % block:
        raise InvalidArgumentError(f"{h} x {w} does not fall into blocks of {block}")
    parts = xla.reshape(x, (b, h // block, block, w // block, block, c))
    return xla.reshape(xla.transpose(parts, [0, 1, 3, 2, 4, 5]), (b, h // block, w // block, block * block * c))


def _depth_to_space(x: XlaOp, block: int) -> XlaOp:
    b, h, w, c = sizes_of(x)
    if c % (block * block):
        raise InvalidArgumentError(f"a depth of {c} is not a multiple of {block} x {block}")
    parts = xla.reshape(x, (b, h, w, block, block, c // block**2))
    return xla.reshape(xla.transpose(parts, [0, 1, 3, 2, 4, 5]), (b, h * block, w * block, c // block**2))


lowering("SpaceToDepth", _with_depth_last(_space_to_depth), attrs=("block_size", "data_format"))
lowering("DepthToSpace", _with_depth_last(_depth_to_space), attrs=("block_size", "data_format"))


# ----------------------------------------------------------------------------------------------------------- gather


@lowering("GatherV2", attrs=("batch_dims",), const=("axis",))
def _gather_v2(params: XlaOp, indices: XlaOp, axis: Array, *, batch_dims: int) -> XlaOp:
    if not rank_of(params):
        raise ShapeError("params must have at least one dimension; it is a scalar")
    along = axis_of(axis, rank_of(params))
    batch = batch_dims + rank_of(indices) if batch_dims < 0 else batch_dims
    if not 0 <= batch <= min(rank_of(indices), along):
        raise InvalidArgumentError(f"batch_dims {batch_dims} for indices of rank {rank_of(indices)} and axis {along}")
    return gather_slices(params, indices, along, batch)


@lowering("Gather")
def _gather(params: XlaOp, indices: XlaOp) -> XlaOp:
    if not rank_of(params):
        raise ShapeError("params must have at least one dimension; it is a scalar")
    return gather_slices(params, indices, 0)


@lowering("GatherNd", attrs=("bad_indices_policy",))
def _gather_nd(params: XlaOp, indices: XlaOp, *, bad_indices_policy: str) -> XlaOp:
    check_policy(bad_indices_policy)
    if not rank_of(params) or not rank_of(indices):
        raise ShapeError("params and indices must have a dimension or more")
    depth = sizes_of(indices)[-1]
    if depth > rank_of(params):
        raise ShapeError(f"rows of {depth} indices into an array of rank {rank_of(params)}")
    batch, inner = sizes_of(indices)[:-1], sizes_of(params)[depth:]
    result = (*batch, *inner)
    if not prod(result) or not prod(sizes_of(params)):
        return full_like(xla.broadcast(scalar(params, 0), result), 0)
    if not depth:
        return broadcast_to(params, result)
    computed = xla.gather(
        params,
        indices,
        offset_dims=tuple(range(len(batch), len(result))),
        collapsed_slice_dims=tuple(range(depth)),
        start_index_map=tuple(range(depth)),
        index_vector_dim=rank_of(indices) - 1,
        slice_sizes=(*[1] * depth, *inner),
    )
    if bad_indices_policy != "IGNORE":
        return computed
    return select(_in_range(indices, sizes_of(params)[:depth], result), computed, zeros_like(computed))


def _in_range(indices: XlaOp, limits: Sequence[int], result: Sequence[int]) -> XlaOp:
    """Return a mask of the rows of indices that are in range, broadcast to the result."""
    bounds = broadcast_to(xla.constant(indices.builder, np.array(limits), indices.shape.dtype), sizes_of(indices))
    inside = xla.and_(xla.ge(indices, zeros_like(indices)), xla.lt(indices, bounds))
    rows = reduced(inside, "and", scalar(inside, True), [-1])
    return xla.broadcast_in_dim(rows, tuple(result), range(rank_of(rows)))


# ---------------------------------------------------------------------------------------------------------- scatter


@lowering("ScatterNd", attrs=("bad_indices_policy",), const=("shape",))
def _scatter_nd(indices: XlaOp, updates: XlaOp, shape: Array, *, bad_indices_policy: str) -> XlaOp:
    check_policy(bad_indices_policy)
    sizes = read_sizes(shape, "shape")
    if 0 in sizes and not (0 in sizes_of(indices) and 0 in sizes_of(updates)):
        raise InvalidArgumentError(f"updates cannot go into an array without elements, {list(sizes)}")
    return scatter_nd(xla.broadcast(scalar(updates, 0), sizes), indices, updates, "add")


def _register_scatter(name: str, op: str) -> None:
    @lowering(name, attrs=("bad_indices_policy",))
    def kernel(x: XlaOp, indices: XlaOp, updates: XlaOp, *, bad_indices_policy: str) -> XlaOp:
        check_policy(bad_indices_policy)
        return scatter_nd(x, indices, updates, op)


for _name, _op in (
    ("TensorScatterUpdate", "update"),
    ("TensorScatterAdd", "add"),
    ("TensorScatterSub", "sub"),
    ("TensorScatterMax", "max"),
    ("TensorScatterMin", "min"),
    ("ScatterNdNonAliasingAdd", "add"),
):
    _register_scatter(_name, _op)


_IMAGES = (*FLOATING, DataType.DT_INT32)


@lowering("ExtractImagePatches", attrs=("ksizes", "strides", "rates", "padding"), types={"T": _IMAGES})
def _extract_patches(
    images: XlaOp, *, ksizes: Sequence[int], strides: Sequence[int], rates: Sequence[int], padding: str
) -> XlaOp:
    """Concatenate one strided slice per tap of the window."""
    check_patches(sizes_of(images), ksizes, strides, rates)
    b, h, w, c = sizes_of(images)
    windows = Windows.of((h, w), ksizes[1:3], strides[1:3], rates[1:3], padding)
    pads = [(0, 0, 0), *((low, high, 0) for low, high in windows.pads), (0, 0, 0)]
    padded = xla.pad(images, scalar(images, 0), pads)
    taps = []
    for _, (_, rows, columns) in windows.taps():
        taps.append(
            xla.slice_(
                padded,
                (0, rows.start, columns.start, 0),
                (b, rows.stop, columns.stop, c),
                (1, rows.step, columns.step, 1),
            )
        )
    return xla.concatenate(taps, 3)
