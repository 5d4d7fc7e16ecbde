"""Batching of gather, scatter, and slices at indices computed at run time."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

import numpy as np

from cyxla.types import ElementType, Shape
from cyxla.xla.batching.table import Node, rule, shifted
from cyxla.xla.batching.values import Value
from cyxla.xla.hlo.builder import XlaBuilder, XlaComputation, XlaOp
from cyxla.xla.hlo.builder import functions as xla


@rule("gather")
def gather(node: Node) -> Value:
    """Make the batch a batching dimension if operand and indices differ, else a dimension of the one that does."""
    operand, indices = node.operands
    a = node.attrs
    if not operand.mapped:
        return node.emit(
            [operand.array, indices.array], offset_dims=shifted(a["offset_dims"]),
            start_indices_batching_dims=shifted(a["start_indices_batching_dims"]),
            index_vector_dim=a["index_vector_dim"] + 1, indices_are_sorted=False,
        )  # fmt: skip
    moved = {n: shifted(a[n]) for n in ("collapsed_slice_dims", "start_index_map", "operand_batching_dims")}
    if not indices.mapped:
        return node.emit(
            [operand.array, indices.array], **moved, offset_dims=(0, *shifted(a["offset_dims"])),
            slice_sizes=(node.size, *a["slice_sizes"]),
        )  # fmt: skip
    moved["operand_batching_dims"] = (0, *moved["operand_batching_dims"])
    return node.emit(
        [operand.array, indices.array], **moved, offset_dims=shifted(a["offset_dims"]),
        start_indices_batching_dims=(0, *shifted(a["start_indices_batching_dims"])),
        index_vector_dim=a["index_vector_dim"] + 1, slice_sizes=(1, *a["slice_sizes"]), indices_are_sorted=False,
    )  # fmt: skip


@rule("scatter")
def scatter(node: Node) -> Value:
    """Make the batch a batching dimension if the indices differ, else a dimension of the windows."""
    count = len(node.operands) // 2
    indices, operands, a = node.operands[count], node.all_lead(), node.attrs
    names = ("inserted_window_dims", "scatter_dims_to_operand_dims", "input_batching_dims")
    moved = {n: shifted(a[n]) for n in names}
    if not indices.mapped:
        operands[count] = indices.array
        return node.emit(operands, **moved, update_window_dims=(0, *shifted(a["update_window_dims"])))
    moved["input_batching_dims"] = (0, *moved["input_batching_dims"])
    return node.emit(
        operands, **moved, update_window_dims=shifted(a["update_window_dims"]),
        scatter_indices_batching_dims=(0, *shifted(a["scatter_indices_batching_dims"])),
        index_vector_dim=a["index_vector_dim"] + 1, indices_are_sorted=False,
    )  # fmt: skip


@rule("dynamic-slice")
def dynamic_slice(node: Node) -> Value:
    """Slice behind the batch; starts that differ are indices of a gather, which clamps them in the same way."""
    operand, starts = node.operands[0], _starts(node, node.operands[1:])
    sizes = node.attrs["dynamic_slice_sizes"]
    if not starts:
        return Value(node.lead(0), True)
    if not any(v.mapped for v in starts):
        return node.emit([node.lead(0), *_with_zero(starts)], dynamic_slice_sizes=(node.size, *sizes))
    dims, indices = tuple(range(1, len(sizes) + 1)), _index_vectors(node, starts)
    batching: tuple[int, ...] = (0,) if operand.mapped else ()
    return Value(xla.gather(
        operand.array, indices, offset_dims=dims, collapsed_slice_dims=(), index_vector_dim=1,
        start_index_map=dims if operand.mapped else range(len(sizes)), operand_batching_dims=batching,
        start_indices_batching_dims=batching, slice_sizes=(*[1 for _ in batching], *sizes),
    ), True)  # fmt: skip


@rule("dynamic-update-slice")
def dynamic_update_slice(node: Node) -> Value:
    """Update behind the batch; starts that differ are indices of a scatter, after they are clamped."""
    starts, (operand, update) = _starts(node, node.operands[2:]), node.shapes[:2]
    if not starts:
        return Value(node.lead(1), True)
    if not any(v.mapped for v in starts):
        return node.emit([node.lead(0), node.lead(1), *_with_zero(starts)])
    if not update.size:
        return Value(node.lead(0), True)
    limits = [n - m for n, m in zip(operand.dims, update.dims, strict=True)]
    indices = _index_vectors(node, [_clamped(v, limit) for v, limit in zip(starts, limits, strict=True)])
    dims = tuple(range(1, operand.rank + 1))
    return Value(xla.scatter(
        node.lead(0), indices, node.lead(1), _second(operand.dtype), update_window_dims=dims, inserted_window_dims=(),
        scatter_dims_to_operand_dims=dims, index_vector_dim=1, input_batching_dims=(0,),
        scatter_indices_batching_dims=(0,), unique_indices=True,
    ), True)  # fmt: skip


def _starts(node: Node, starts: Sequence[Value]) -> list[Value]:
    """Return the start indices as scalars, also if they are given as one vector."""
    if len(starts) != 1 or node.shapes[-1].rank == 0:
        return list(starts)
    vector, axis = starts[0], int(starts[0].mapped)
    return [_component(vector, k, axis) for k in range(vector.array.shape.dims[axis])]


def _component(vector: Value, k: int, axis: int) -> Value:
    op = xla.slice_in_dim(vector.array, k, k + 1, 1, axis)
    return Value(xla.reshape(op, op.shape.dims[:axis]), vector.mapped)


def _with_zero(starts: Sequence[Value]) -> list[XlaOp]:
    """Return start indices with one for the batch."""
    ops = [v.array for v in starts]
    return [xla.constant(ops[0].builder, 0, ops[0].shape.dtype), *ops]


def _index_vectors(node: Node, starts: Sequence[Value]) -> XlaOp:
    return xla.concatenate([xla.reshape(node.batcher.lead(v), (node.size, 1)) for v in starts], 1)


def _clamped(start: Value, limit: int) -> Value:
    dtype = start.array.shape.dtype
    numpy_dtype = dtype.numpy_dtype
    assert numpy_dtype is not None  # of an integer
    low, high = (
        xla.constant(start.array.builder, min(n, int(np.iinfo(numpy_dtype).max)), dtype) for n in (0, limit)
    )  # fmt: skip
    return Value(xla.clamp(low, start.array, high), start.mapped)


@lru_cache(maxsize=64)
def _second(dtype: ElementType) -> XlaComputation:
    builder = XlaBuilder("second")
    _, new = (xla.parameter(builder, k, Shape.array(dtype)) for k in range(2))
    return builder.build(new)
