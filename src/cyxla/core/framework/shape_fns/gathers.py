"""Helpers of shape functions for gathers, scatters, variables behind handles, and tiles."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from cyxla.core.framework.shape_inference import InferenceContext
from cyxla.core.framework.tensor_shape import UNKNOWN, TensorShape
from cyxla.core.framework.types import DataType
from cyxla.errors import InvalidArgumentError, ShapeError


def variable_shape(c: InferenceContext, i: int = 0, dtype: DataType | None = None) -> TensorShape:
    """Return the shape of the variable behind a handle, possibly unknown.

    Raises
    ------
    InvalidArgumentError
        The type of the variable is known and is not `dtype`.
    """
    handle = c.input_handle(i)
    if not handle:
        return UNKNOWN
    shape, variable_type = handle[0]
    if dtype is not None and variable_type and variable_type != dtype:
        raise InvalidArgumentError(
            f"{c.op_def.name}: the variable is of type {variable_type}, but the node says {dtype}"
        )
    return shape


def gather_shape(
    c: InferenceContext, params: TensorShape, indices: TensorShape, axis: int | None, batch_dims: int = 0
) -> TensorShape:
    """Shape of ``params`` with the dimension `axis` replaced by those of ``indices`` behind their batch dimensions.

    An axis of None is unknown.
    """
    if batch_dims < 0 and indices.rank is None:
        return UNKNOWN
    batch_dims += (indices.rank or 0) if batch_dims < 0 else 0
    if batch_dims < 0:
        raise ShapeError(f"{c.op_def.name}: batch_dims is out of range for indices of shape {indices}")
    c.with_rank_at_least(indices, batch_dims)
    c.with_rank_at_least(params, batch_dims + 1)
    if axis is None:
        ranks_known = params.rank is not None and indices.rank is not None
        return c.unknown_shape_of_rank(len(params) - 1 + len(indices) - batch_dims) if ranks_known else UNKNOWN
    if params.rank is not None:
        axis = c.axis(axis, params)
        if axis < batch_dims:
            raise ShapeError(f"{c.op_def.name}: axis {axis} is one of the {batch_dims} batch dimensions")
    elif axis < 0:
        return UNKNOWN
    outer, rest = c.sub_shape(params, 0, axis), c.sub_shape(params, axis + 1)
    if batch_dims:
        head = c.merge(c.sub_shape(params, 0, batch_dims), c.sub_shape(indices, 0, batch_dims))
        outer = c.concatenate(head, c.sub_shape(params, batch_dims, axis))
    return c.concatenate(c.concatenate(outer, c.sub_shape(indices, batch_dims)), rest)


def gather_nd_shape(c: InferenceContext, params: TensorShape, indices: TensorShape) -> TensorShape:
    """The last dimension of ``indices`` addresses the first ones of ``params``."""
    c.with_rank_at_least(indices, 1)
    depth = indices[-1]
    if depth is None or params.rank is None:
        return UNKNOWN
    if depth > params.rank:
        raise ShapeError(f"{c.op_def.name}: indices have {depth} coordinates, but the shape has rank {params.rank}")
    return c.concatenate(c.sub_shape(indices, 0, -1), c.sub_shape(params, depth))


def check_scatter(c: InferenceContext, shape: TensorShape, indices: TensorShape, updates: TensorShape) -> None:
    """Check that updates are one row of the shape for each index, or a scalar."""
    c.with_rank_at_least(shape, 1)
    if updates.rank != 0:
        c.merge(updates, c.concatenate(indices, c.sub_shape(shape, 1)))


def check_scatter_nd(c: InferenceContext, shape: TensorShape, indices: TensorShape, updates: TensorShape) -> None:
    """Check that updates are one slice of the shape for each index vector."""
    if shape.num_elements == 0 and (indices.num_elements or updates.num_elements):
        raise ShapeError(f"{c.op_def.name}: indices and updates must be empty for the empty shape {shape}")
    if not indices.rank or not updates.rank:
        return
    outer, depth = indices.rank - 1, indices[-1]
    c.merge(c.sub_shape(indices, 0, outer), c.sub_shape(c.with_rank_at_least(updates, outer), 0, outer))
    if shape.rank is not None and depth is not None:
        if depth > shape.rank:
            raise ShapeError(f"{c.op_def.name}: indices have {depth} coordinates, but the shape is {shape}")
        c.merge(c.sub_shape(updates, outer), c.sub_shape(shape, depth))


def tiles(c: InferenceContext, name: str, count: int) -> tuple[Sequence[int], Sequence[int]]:
    """Return the number of tiles along each dimension, given by an attribute, and the padding of the last ones."""
    counts: Sequence[int] = c.attr(name)
    paddings: Sequence[int] = c.attr("paddings") or [0] * len(counts)
    if min(counts, default=1) <= 0 or prod(counts) != count or len(paddings) != len(counts):
        raise ShapeError(
            f"{c.op_def.name}: {list(counts)} tiles with the paddings {list(paddings)} do not match {count} tiles"
        )
    return counts, paddings


def split_nd_shape(c: InferenceContext, shape: TensorShape) -> None:
    """Every output is one of equal tiles of a padded shape."""
    counts, paddings = tiles(c, "num_splits", c.num_outputs)
    shape = c.with_rank(shape, len(counts))
    tile = [c.divide(c.add(d, p), n) for d, p, n in zip(shape, paddings, counts, strict=True)]
    for i in range(c.num_outputs):
        c.set_output(i, tile)
