"""Gathers of slices along an axis, and scatters of slices and rows."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from cyxla.core.framework.geometry.gather_scatter import check_nd_shapes
from cyxla.errors import ShapeError
from cyxla.types import ElementType, Shape
from cyxla.xla.hlo.builder import XlaBuilder, XlaComputation, XlaOp, scalar_computation
from cyxla.xla.hlo.builder import functions as xla
from cyxla.xla.lib.values import broadcast_to, full_like, rank_of, scalar, sizes_of


def gather_slices(params: XlaOp, indices: XlaOp, axis: int, batch: int = 0) -> XlaOp:
    """Gather slices along an axis; indices out of range are clamped."""
    if sizes_of(params)[:batch] != sizes_of(indices)[:batch]:
        raise ShapeError(f"the batches of {list(sizes_of(params))} and {list(sizes_of(indices))} differ")
    outer, inner = sizes_of(params)[batch:axis], sizes_of(params)[axis + 1 :]
    count = rank_of(indices) - batch
    result = (*sizes_of(params)[:axis], *sizes_of(indices)[batch:], *inner)
    if not sizes_of(params)[axis] or not prod(result):
        return full_like(xla.broadcast(scalar(params, 0), result), 0)
    before, after = len(outer), len(inner)
    return xla.gather(
        params,
        indices,
        offset_dims=(*range(batch, batch + before), *range(batch + before + count, batch + before + count + after)),
        collapsed_slice_dims=(axis,),
        start_index_map=(axis,),
        index_vector_dim=rank_of(indices),
        slice_sizes=(*[1] * batch, *outer, 1, *inner),
        operand_batching_dims=tuple(range(batch)),
        start_indices_batching_dims=tuple(range(batch)),
    )


def scatter_nd(target: XlaOp, indices: XlaOp, updates: XlaOp, op: str) -> XlaOp:
    """Emit a scatter of slices; rows of indices out of range are skipped."""
    check_nd_shapes(sizes_of(target), _like(indices), _like(updates))
    depth = sizes_of(indices)[-1]
    if not prod(sizes_of(updates)) or not prod(sizes_of(target)):
        return target
    batch = rank_of(indices) - 1
    return xla.scatter(
        target,
        indices,
        updates,
        update_computation(op, target.shape.dtype),
        update_window_dims=tuple(range(batch, rank_of(updates))),
        inserted_window_dims=tuple(range(depth)),
        scatter_dims_to_operand_dims=tuple(range(depth)),
        index_vector_dim=batch,
    )


def _like(x: XlaOp) -> np.ndarray[Any, Any]:
    """Return an array of a value's shape that occupies no memory, for shape checks shared with eager kernels."""
    return np.broadcast_to(np.zeros((), bool), sizes_of(x))


def scatter_rows(target: XlaOp, indices: XlaOp, updates: XlaOp, op: str) -> XlaOp:
    """Emit a scatter of rows or of a single number; indices out of range are skipped."""
    rest = sizes_of(target)[1:]
    expected = (*sizes_of(indices), *rest)
    if sizes_of(updates) and sizes_of(updates) != expected:
        raise ShapeError(
            f"updates {list(sizes_of(updates))} for rows {list(sizes_of(indices))} of {list(sizes_of(target))}"
        )
    if not prod(expected) or not prod(sizes_of(target)):
        return target
    batch = len(sizes_of(indices))
    return xla.scatter(
        target,
        indices,
        broadcast_to(updates, expected),
        update_computation(op, target.shape.dtype),
        update_window_dims=tuple(range(batch, len(expected))),
        inserted_window_dims=(0,),
        scatter_dims_to_operand_dims=(0,),
        index_vector_dim=batch,
    )


def update_computation(op: str, dtype: ElementType) -> XlaComputation:
    """Return the scalar computation that combines an old element with an update."""
    opcodes = {"add": "add", "sub": "subtract", "mul": "multiply", "div": "divide", "min": "minimum", "max": "maximum"}
    if op in opcodes and not (dtype is ElementType.PRED and op == "add"):
        return scalar_computation(opcodes[op], dtype)
    if dtype is ElementType.PRED and op == "add":
        return scalar_computation("or", dtype)
    builder = XlaBuilder("update")
    xla.parameter(builder, 0, Shape.array(dtype), "old")
    return builder.build(xla.parameter(builder, 1, Shape.array(dtype), "new"))
