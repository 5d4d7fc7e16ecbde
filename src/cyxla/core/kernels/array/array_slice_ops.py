"""Concatenation, slicing, padding, permutation, gather and scatter."""

from __future__ import annotations

from collections.abc import Callable, Sequence
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
from cyxla.core.framework.geometry.shape_operands import axis_of, each_axis, sizes_of
from cyxla.core.framework.geometry.strided_slices import MASKS, slice_index, strided_index
from cyxla.core.framework.kernel_decorators import array_kernel
from cyxla.core.framework.types import NUMBER, REAL, DataType, as_data_type
from cyxla.core.kernels.lib.scatter import raise_bad_row, scatter_nd
from cyxla.errors import InvalidArgumentError, ShapeError

Array = np.ndarray[Any, Any]


# ----------------------------------------------------------------------------------------------- joining and cutting


def _concatenate(values: list[Array], axis: int) -> Array:
    check_joinable([value.shape for value in values], axis)
    return np.concatenate(values, axis=axis)


def _concat(values: list[Array], axis: Array) -> Array:
    if not values[0].ndim:
        raise ShapeError("scalars cannot be joined", hint="use Pack")
    return _concatenate(values, axis_of(axis, values[0].ndim, "the dimension to join in"))


array_kernel("ConcatV2", _concat)
array_kernel("Concat", lambda axis, values: _concat(values, axis))


array_kernel("ConcatOffset", concat_offsets)


@array_kernel("Pack", attrs=("axis",))
def _pack(values: list[Array], *, axis: int) -> Array:
    for value in values[1:]:
        if value.shape != values[0].shape:
            raise ShapeError(f"{list(values[0].shape)} and {list(value.shape)} cannot be stacked: the shapes differ")
    return np.stack(values, axis_of(np.array(axis), values[0].ndim + 1))


@array_kernel("Unpack", attrs=("num", "axis"))
def _unpack(value: Array, *, num: int, axis: int) -> list[Array]:
    along = axis_of(np.array(axis), value.ndim)
    if value.shape[along] != num:
        raise InvalidArgumentError(f"dimension {along} of {list(value.shape)} does not have num={num} slices")
    return [np.take(value, k, axis=along) for k in range(num)]


@array_kernel("Split", attrs=("num_split",))
def _split(split_dim: Array, value: Array, *, num_split: int) -> list[Array]:
    axis, _ = equal_parts(value.shape, split_dim, num_split)
    return np.split(value, num_split, axis=axis)


@array_kernel("SplitV", attrs=("num_split",))
def _split_v(value: Array, size_splits: Array, split_dim: Array, *, num_split: int) -> list[Array]:
    """Split into parts of given sizes; one size may be -1, for the rest."""
    axis, sizes = split_v_sizes(value.shape, size_splits, split_dim, num_split)
    return np.split(value, np.cumsum(sizes[:-1]), axis=axis)


@array_kernel("Slice")
def _slice(x: Array, begin: Array, size: Array) -> Array:
    """Return `size` elements per dimension from `begin` on; size -1 means all up to the end."""
    return x[slice_index(x.shape, begin, size)]


@array_kernel("StridedSlice", attrs=MASKS)
def _strided_slice(x: Array, begin: Array, end: Array, strides: Array, **masks: int) -> Array:
    return np.asarray(x[strided_index(x.shape, begin, end, strides, masks)])


@array_kernel("StridedSliceGrad", attrs=MASKS)
def _strided_slice_grad(shape: Array, begin: Array, end: Array, strides: Array, dy: Array, **masks: int) -> Array:
    """Return zeros of a shape with dy written to the slice."""
    return _assign_slice(np.zeros(sizes_of(shape, "shape"), dy.dtype), begin, end, strides, dy, masks, exact=True)


@array_kernel("TensorStridedSliceUpdate", attrs=MASKS)
def _strided_slice_update(x: Array, begin: Array, end: Array, strides: Array, value: Array, **masks: int) -> Array:
    return _assign_slice(x.copy(), begin, end, strides, value, masks, exact=False)


def _assign_slice(
    x: Array, begin: Array, end: Array, strides: Array, value: Array, masks: dict[str, int], exact: bool
) -> Array:
    index = strided_index(x.shape, begin, end, strides, masks)
    shape = x[index].shape
    if shape != value.shape and (exact or not _is_broadcastable(value.shape, shape)):
        raise ShapeError(f"a slice of {list(shape)} cannot be set to a value of {list(value.shape)}")
    x[index] = value
    return x


def _is_broadcastable(shape: Sequence[int], target: Sequence[int]) -> bool:
    try:
        return np.broadcast_shapes(tuple(shape), tuple(target)) == tuple(target)
    except ValueError:
        return False


@array_kernel("Tile")
def _tile(x: Array, multiples: Array) -> Array:
    times = tile_multiples(x.ndim, multiples)
    return np.tile(x, times) if x.ndim else x


# ---------------------------------------------------------------------------------------------------------- padding


def _pad(x: Array, paddings: Array, constant_values: Array | None = None) -> Array:
    if constant_values is not None and constant_values.ndim:
        raise ShapeError(f"constant_values must be a scalar; its shape is {list(constant_values.shape)}")
    pads = pads_of(x.ndim, paddings)
    value = _zero(x.dtype) if constant_values is None else constant_values
    result = np.full([low + n + high for (low, high), n in zip(pads, x.shape, strict=True)], value, x.dtype)
    result[tuple(slice(low, low + n) for (low, _), n in zip(pads, x.shape, strict=True))] = x
    return result


def _zero(dtype: np.dtype[Any]) -> Any:
    return b"" if dtype.hasobject else np.zeros((), dtype)


array_kernel(("Pad", "PadV2"), _pad)


@array_kernel("MirrorPad", attrs=("mode",))
def _mirror_pad(x: Array, paddings: Array, *, mode: str) -> Array:
    pads_of(x.ndim, paddings)
    return x[np.ix_(*mirrored(paddings, mode, x.shape))] if x.ndim else x


@array_kernel("MirrorPadGrad", attrs=("mode",), types={"T": NUMBER})
def _mirror_pad_grad(dy: Array, paddings: Array, *, mode: str) -> Array:
    """Sum the gradients of all copies of each element."""
    pads = pads_of(dy.ndim, paddings)
    shape = [n - low - high for n, (low, high) in zip(dy.shape, pads, strict=True)]
    if min(shape, default=0) < 0:
        raise InvalidArgumentError(f"{list(dy.shape)} is smaller than its paddings {paddings.tolist()}")
    for d, indices_of_dim in enumerate(mirrored(paddings, mode, shape)):
        summed = np.zeros((shape[d], *np.delete(dy.shape, d)), dy.dtype)
        np.add.at(summed, indices_of_dim, np.moveaxis(dy, d, 0))
        dy = np.moveaxis(summed, 0, d)
    return np.ascontiguousarray(dy)


# -------------------------------------------------------------------------------------------------------- permuting


@array_kernel("Transpose")
def _transpose(x: Array, perm: Array) -> Array:
    return x.transpose(permutation(x.ndim, perm))


@array_kernel("ConjugateTranspose")
def _conjugate_transpose(x: Array, perm: Array) -> Array:
    transposed = x.transpose(permutation(x.ndim, perm))
    return transposed.conj() if x.dtype.kind == "c" else transposed


@array_kernel("Reverse")
def _reverse(x: Array, dims: Array) -> Array:
    if dims.shape != (x.ndim,):
        raise ShapeError(f"dims must hold a bool for each of {x.ndim} dimensions; its shape is {list(dims.shape)}")
    return x[tuple(slice(None, None, -1 if flip else 1) for flip in dims.tolist())]


@array_kernel("ReverseV2")
def _reverse_v2(x: Array, axis: Array) -> Array:
    return np.flip(x, reversed_axes(x.ndim, axis))


@array_kernel("ReverseSequence", attrs=("seq_dim", "batch_dim"))
def _reverse_sequence(x: Array, seq_lengths: Array, *, seq_dim: int, batch_dim: int) -> Array:
    """Reverse the first `seq_lengths` elements of each example."""
    along, batch = (axis_of(np.array(d), x.ndim, n) for d, n in ((seq_dim, "seq_dim"), (batch_dim, "batch_dim")))
    if along == batch:
        raise InvalidArgumentError(f"seq_dim and batch_dim are both {along}")
    if seq_lengths.shape != (x.shape[batch],):
        raise ShapeError(f"seq_lengths {list(seq_lengths.shape)}: {x.shape[batch]} lengths are needed")
    if ((seq_lengths < 0) | (seq_lengths > x.shape[along])).any():
        raise InvalidArgumentError(f"seq_lengths must lie in [0, {x.shape[along]}]: {seq_lengths.tolist()}")
    sequences = np.moveaxis(x, (batch, along), (0, 1))
    positions = np.arange(x.shape[along])
    lengths = seq_lengths[:, None].astype(np.int64)
    order = np.where(positions < lengths, lengths - 1 - positions, positions)
    result = sequences[np.arange(len(sequences))[:, None], order]
    return np.ascontiguousarray(np.moveaxis(result, (0, 1), (batch, along)))


@array_kernel("Roll")
def _roll(x: Array, shift: Array, axis: Array) -> Array:
    if not x.ndim:
        raise ShapeError("the input must have at least one dimension; it is a scalar")
    if shift.shape != axis.shape or shift.ndim > 1:
        raise ShapeError(f"shift {list(shift.shape)} and axis {list(axis.shape)} must be alike, vectors or scalars")
    for by, along in zip(shift.reshape(-1).tolist(), each_axis(axis, x.ndim), strict=True):
        x = np.roll(x, by, axis=along)
    return x


# ------------------------------------------------------------------------------------------------ space, batch, depth


def _space_to_batch(x: Array, block: Sequence[int], pads: Sequence[tuple[int, int]]) -> Array:
    """Move each position within a block to a batch entry of its own."""
    rest = [(0, 0)] * (x.ndim - 1 - len(block))
    padded = np.pad(x, [(0, 0), *pads, *rest])
    shape = [len(padded)]
    for d, (size, b) in enumerate(zip(padded.shape[1:], block, strict=False)):
        if size % b:
            raise InvalidArgumentError(f"dimension {d + 1}, padded to {size}, is not a multiple of the block size {b}")
        shape += [size // b, b]
    count = len(block)
    parts = padded.reshape(*shape, *padded.shape[1 + count :])
    inner, outer = range(2, 2 * count + 1, 2), range(1, 2 * count, 2)
    transposed = parts.transpose(*inner, 0, *outer, *range(2 * count + 1, parts.ndim))
    return transposed.reshape(len(padded) * prod(block), *(parts.shape[d] for d in outer), *padded.shape[1 + count :])


def _batch_to_space(x: Array, block: Sequence[int], crops: Sequence[tuple[int, int]]) -> Array:
    count, blocks = len(block), prod(block)
    inside = cropped_bounds(x.shape, block, crops)
    parts = x.reshape(*block, len(x) // blocks, *x.shape[1:])
    order = [count]
    for d in range(count):
        order += [count + 1 + d, d]
    transposed = parts.transpose(*order, *range(2 * count + 1, parts.ndim))
    sizes = [size * b for size, b in zip(x.shape[1:], block, strict=False)]
    uncropped = transposed.reshape(len(x) // blocks, *sizes, *x.shape[1 + count :])
    return uncropped[(slice(None), *(slice(*bounds) for bounds in inside))]


@array_kernel("SpaceToBatchND")
def _space_to_batch_nd(x: Array, block_shape: Array, paddings: Array) -> Array:
    return _space_to_batch(x, *blocks_of(x.shape, block_shape, paddings, "paddings"))


@array_kernel("BatchToSpaceND")
def _batch_to_space_nd(x: Array, block_shape: Array, crops: Array) -> Array:
    return _batch_to_space(x, *blocks_of(x.shape, block_shape, crops, "crops"))


@array_kernel("SpaceToBatch", attrs=("block_size",))
def _space_to_batch_2d(x: Array, paddings: Array, *, block_size: int) -> Array:
    check_rank4(x.shape)
    return _space_to_batch_nd(x, np.array([block_size] * 2), paddings)


@array_kernel("BatchToSpace", attrs=("block_size",))
def _batch_to_space_2d(x: Array, crops: Array, *, block_size: int) -> Array:
    check_rank4(x.shape)
    return _batch_to_space_nd(x, np.array([block_size] * 2), crops)


def _with_depth_last(function: Callable[[Array, int], Array]) -> Callable[..., Array]:
    def kernel(x: Array, *, block_size: int, data_format: str) -> Array:
        if data_format == "NCHW_VECT_C":  # [batch, depth / 4, height, width, 4]
            if x.ndim != 5 or x.shape[4] != 4:
                raise ShapeError(f"NCHW_VECT_C needs rank 5 with a last dimension of 4; the shape is {list(x.shape)}")
            flat = x.transpose(0, 2, 3, 1, 4).reshape(x.shape[0], x.shape[2], x.shape[3], x.shape[1] * 4)
            result = function(flat, block_size)
            parts = result.reshape(*result.shape[:3], result.shape[3] // 4, 4)
            return np.ascontiguousarray(parts.transpose(0, 3, 1, 2, 4))
        check_rank4(x.shape)
        if data_format == "NCHW":
            return np.ascontiguousarray(np.moveaxis(function(np.moveaxis(x, 1, -1), block_size), -1, 1))
        return function(x, block_size)

    return kernel


def _space_to_depth(x: Array, block: int) -> Array:
    batch, height, width, depth = x.shape
    if height % block or width % block:
        raise InvalidArgumentError(f"{height} x {width} is not a multiple of the block size {block}")
    parts = x.reshape(batch, height // block, block, width // block, block, depth).transpose(0, 1, 3, 2, 4, 5)
    return parts.reshape(batch, height // block, width // block, block * block * depth)


def _depth_to_space(x: Array, block: int) -> Array:
    batch, height, width, depth = x.shape
    if depth % (block * block):
        raise InvalidArgumentError(f"a depth of {depth} is not a multiple of {block} x {block}")
    parts = x.reshape(batch, height, width, block, block, depth // block**2).transpose(0, 1, 3, 2, 4, 5)
    return parts.reshape(batch, height * block, width * block, depth // block**2)


array_kernel("SpaceToDepth", _with_depth_last(_space_to_depth), attrs=("block_size", "data_format"))
array_kernel("DepthToSpace", _with_depth_last(_depth_to_space), attrs=("block_size", "data_format"))


# -------------------------------------------------------------------------------------------------------- gathering


def _check_indices(indices: Array, size: int) -> None:
    bad = (indices < 0) | (indices >= size)
    if bad.any():
        coordinates = np.argwhere(bad)[0].tolist()
        raise InvalidArgumentError(
            f"indices{coordinates or ''} = {indices[tuple(coordinates)]} lies outside of [0, {size})"
        )


def _gather(params: Array, indices: Array, axis: int, batch: int) -> Array:
    if params.shape[:batch] != indices.shape[:batch]:
        raise ShapeError(f"the batches of params {list(params.shape)} and indices {list(indices.shape)} differ")
    _check_indices(indices, params.shape[axis])
    if not batch:
        return np.take(params, indices, axis=axis)
    count = prod(params.shape[:batch])
    flat = params.reshape(count, *params.shape[batch:])
    flat_indices = indices.reshape(count, *indices.shape[batch:])
    rows = [np.take(p, i, axis=axis - batch) for p, i in zip(flat, flat_indices, strict=True)]
    shape = (*params.shape[:axis], *indices.shape[batch:], *params.shape[axis + 1 :])
    return np.array(rows, params.dtype).reshape(shape)


@array_kernel("GatherV2", attrs=("batch_dims",))
def _gather_v2(params: Array, indices: Array, axis: Array, *, batch_dims: int) -> Array:
    if not params.ndim:
        raise ShapeError("params must have at least one dimension; it is a scalar")
    along = axis_of(axis, params.ndim)
    batch = batch_dims + indices.ndim if batch_dims < 0 else batch_dims
    if not 0 <= batch <= min(indices.ndim, along):
        raise InvalidArgumentError(
            f"batch_dims {batch_dims} must not exceed the rank of indices, {indices.ndim}, nor the axis, {along}"
        )
    return _gather(params, indices, along, batch)


@array_kernel("Gather")
def _gather_rows(params: Array, indices: Array) -> Array:
    if not params.ndim:
        raise ShapeError("params must have at least one dimension; it is a scalar")
    return _gather(params, indices, 0, 0)


@array_kernel("GatherNd", attrs=("bad_indices_policy",))
def _gather_nd(params: Array, indices: Array, *, bad_indices_policy: str) -> Array:
    """Gather the slices selected by the rows of indices; ignored rows give zeros."""
    check_policy(bad_indices_policy)
    if not params.ndim or not indices.ndim:
        raise ShapeError(f"params {list(params.shape)} and indices {list(indices.shape)} must have a dimension or more")
    depth = indices.shape[-1]
    if depth > params.ndim:
        raise ShapeError(f"rows of {depth} indices into an array of rank {params.ndim}")
    rows = indices.reshape(prod(indices.shape[:-1]), depth)
    bad = ((rows < 0) | (rows >= np.array(params.shape[:depth], np.int64))).any(axis=1)
    if bad.any() and bad_indices_policy != "IGNORE":
        raise_bad_row(indices, rows, int(np.argmax(bad)), params.shape)
    result = np.full((len(rows), *params.shape[depth:]), _zero(params.dtype), params.dtype)
    result[~bad] = params[tuple(rows[~bad].T)] if depth else params
    return result.reshape(indices.shape[:-1] + params.shape[depth:])


# ------------------------------------------------------------------------------------------------------- scattering


def _zeros(shape: Sequence[int], dtype: np.dtype[Any]) -> Array:
    return np.full(shape, _zero(dtype), dtype)


@array_kernel("ScatterNd", attrs=("bad_indices_policy",))
def _scatter_nd(indices: Array, updates: Array, shape: Array, *, bad_indices_policy: str) -> Array:
    """Add updates to zeros; string updates are assigned."""
    sizes = sizes_of(shape, "shape")
    if not prod(sizes) and (indices.size or updates.size):
        raise InvalidArgumentError(f"updates cannot go into an array without elements, {list(sizes)}")
    result = _zeros(sizes, updates.dtype)
    op = "update" if updates.dtype.hasobject else "add"
    scatter_nd(result, indices, updates, op, check_policy(bad_indices_policy))
    return result


def _register_scatter(name: str, op: str, types: Sequence[DataType] | None) -> None:
    @array_kernel(name, attrs=("bad_indices_policy",), types=None if types is None else {"T": types})
    def kernel(x: Array, indices: Array, updates: Array, *, bad_indices_policy: str) -> Array:
        """Return a copy of x with some slices changed."""
        result = x.copy()
        scatter_nd(result, indices, updates, op, check_policy(bad_indices_policy))
        return result


_ADD_TYPES = (*NUMBER, as_data_type("bool"))
for _name, _op, _types in (
    ("TensorScatterUpdate", "update", None),
    ("TensorScatterAdd", "add", _ADD_TYPES),
    ("TensorScatterSub", "sub", NUMBER),
    ("TensorScatterMax", "max", REAL),
    ("TensorScatterMin", "min", REAL),
    ("ScatterNdNonAliasingAdd", "add", _ADD_TYPES),
):
    _register_scatter(_name, _op, _types)


# --------------------------------------------------------------------------------------------------------- patches


@array_kernel("ExtractImagePatches", attrs=("ksizes", "strides", "rates", "padding"))
def _extract_patches(
    images: Array, *, ksizes: Sequence[int], strides: Sequence[int], rates: Sequence[int], padding: str
) -> Array:
    check_patches(images.shape, ksizes, strides, rates)
    starts, reach = [], []
    pads = [(0, 0)] * 4
    for d in (1, 2):
        span = (ksizes[d] - 1) * rates[d] + 1
        size = images.shape[d]
        out = -(-size // strides[d]) if padding == "SAME" else -(-(size - span + 1) // strides[d])
        out = max(out, 0)
        padding_total = max((out - 1) * strides[d] + span - size, 0) if padding == "SAME" else 0
        pads[d] = (padding_total // 2, padding_total - padding_total // 2)
        starts.append(np.arange(out) * strides[d])
        reach.append(np.arange(ksizes[d]) * rates[d])
    rows = starts[0][:, None, None, None] + reach[0][None, None, :, None]
    columns = starts[1][None, :, None, None] + reach[1][None, None, None, :]
    patches = np.pad(images, pads)[:, rows, columns]
    return patches.reshape(images.shape[0], len(starts[0]), len(starts[1]), ksizes[1] * ksizes[2] * images.shape[3])
