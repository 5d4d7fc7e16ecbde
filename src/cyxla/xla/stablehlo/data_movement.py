"""Operations that move elements, also with sizes that are operands."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from cyxla.errors import InvalidArgumentError, ShapeError, UnimplementedError
from cyxla.types import ElementType, Shape
from cyxla.xla.hlo.builder import XlaOp
from cyxla.xla.hlo.builder import functions as xla
from cyxla.xla.stablehlo.attributes import Record
from cyxla.xla.stablehlo.context import Context, require_integers
from cyxla.xla.stablehlo.elementwise import arity
from cyxla.xla.stablehlo.registry import Results, field_int, flag, handles, int_list, integer, ints, required
from cyxla.xla.stablehlo.sizes.bounded import RunTimeSizes, bounded_dims, known_size
from cyxla.xla.stablehlo.sizes.equal_values import are_equal
from cyxla.xla.stablehlo.sizes.unknown import UnknownSizeError
from cyxla.xla.stablehlo.syntax import Operation


def result_dims(c: Context, op: Operation, sizes: XlaOp) -> tuple[int, ...]:
    """Return the sizes of a result: the stated ones, else the values of an operand."""
    stated, name = c.stated(op), f"the result of {op.name}"
    require_integers(sizes, name)
    return stated.dims if not stated.is_dynamic else c.constant_ints(sizes, name)


def _run_time_sizes(c: Context, op: Operation, sizes: XlaOp) -> RunTimeSizes | None:
    """Return the sizes of a result with bounds that are computed at run time; None for others."""
    require_integers(sizes, f"the result of {op.name}")
    if not bounded_dims(c.stated(op)) or c.constant_value(sizes) is not None:
        return None
    return RunTimeSizes(op.name, c.stated(op), sizes, c.constant_int)


@handles("broadcast")
def _broadcast(c: Context, op: Operation, xs: list[XlaOp]) -> Results:
    arity(op, xs, 1)
    return xla.broadcast(xs[0], int_list(op, "broadcast_sizes"))


@handles("broadcast_in_dim")
def _broadcast_in_dim(c: Context, op: Operation, xs: list[XlaOp]) -> Results:
    arity(op, xs, 1)
    stated = c.stated_statically(op, instead="dynamic_broadcast_in_dim")
    return broadcast(xs[0], stated.dims, int_list(op, "broadcast_dimensions"))


def broadcast(x: XlaOp, dims: Sequence[int], result_dims: Sequence[int]) -> XlaOp:
    """Broadcast an array; scalars and sizes of 1 are repeated along missing dimensions."""
    if x.shape.dims == tuple(dims) and list(result_dims) == list(range(len(dims))):
        return x
    return xla.broadcast_in_dim(x, dims, result_dims)


@handles("dynamic_broadcast_in_dim")
def _dynamic_broadcast_in_dim(c: Context, op: Operation, xs: list[XlaOp]) -> Results:
    arity(op, xs, 2)
    sizes, dimensions = _run_time_sizes(c, op, xs[1]), int_list(op, "broadcast_dimensions")
    return sizes.broadcast(xs[0], dimensions) if sizes else broadcast(xs[0], result_dims(c, op, xs[1]), dimensions)


@handles("reshape")
def _reshape(c: Context, op: Operation, xs: list[XlaOp]) -> Results:
    arity(op, xs, 1)
    return c.builder.add("reshape", xs, shape=c.stated_statically(op, instead="dynamic_reshape"))


@handles("dynamic_reshape")
def _dynamic_reshape(c: Context, op: Operation, xs: list[XlaOp]) -> Results:
    arity(op, xs, 2)
    sizes = _run_time_sizes(c, op, xs[1])
    if sizes is None and not (xs[0].shape.is_dynamic and bounded_dims(c.stated(op))):
        return xla.reshape(xs[0], result_dims(c, op, xs[1]))
    sizes = sizes or RunTimeSizes(op.name, c.stated(op), xs[1], c.constant_int)
    return xla.dynamic_reshape(xs[0], sizes.scalars(), sizes.dims, sizes.dynamic)


@handles("dynamic_iota")
def _dynamic_iota(c: Context, op: Operation, xs: list[XlaOp]) -> Results:
    arity(op, xs, 1)
    sizes, dtype, dimension = _run_time_sizes(c, op, xs[0]), c.stated(op).dtype, integer(op, "iota_dimension")
    if sizes is not None:
        return sizes.set(xla.iota(c.builder, Shape.array(dtype, sizes.dims), dimension))
    return xla.iota(c.builder, Shape.array(dtype, result_dims(c, op, xs[0])), dimension)


@handles("transpose")
def _transpose(c: Context, op: Operation, xs: list[XlaOp]) -> Results:
    arity(op, xs, 1)
    return xla.transpose(xs[0], int_list(op, "permutation"))


@handles("reverse")
def _reverse(c: Context, op: Operation, xs: list[XlaOp]) -> Results:
    arity(op, xs, 1)
    return xla.reverse(xs[0], int_list(op, "dimensions"))


@handles("concatenate", least=1)
def _concatenate(c: Context, op: Operation, xs: list[XlaOp]) -> Results:
    return xla.concatenate(xs, integer(op, "dimension"))


# Slices


@handles("slice")
def _slice(c: Context, op: Operation, xs: list[XlaOp]) -> Results:
    arity(op, xs, 1)
    starts = int_list(op, "start_indices")
    strides = int_list(op, "strides", [1] * len(starts))
    return xla.slice_(xs[0], starts, int_list(op, "limit_indices"), strides)


@handles("real_dynamic_slice")
def _real_dynamic_slice(c: Context, op: Operation, xs: list[XlaOp]) -> Results:
    arity(op, xs, 4)
    stated = c.stated(op)
    bounds = [c.constant_value(x) for x in xs[1:]]
    if all(k is not None for k in bounds):
        starts, limits, strides = (c.constant_ints(x, op.name) for x in xs[1:])
        return xla.slice_(xs[0], starts, limits, strides)
    added = None if not stated.is_dynamic else _addend(xs[1], xs[2])
    sizes = stated.dims if not stated.is_dynamic else _slice_sizes(c, xs[2], added)
    if sizes is None or bounds[2] is None or any(s != 1 for s in bounds[2].ravel()):
        error = UnknownSizeError(f"the sizes of {op.name} depend on the arguments of the program")
        end = op.operands[2].owner
        if added is not None and end is not None and end.kind == "add":
            error.values = [end.operands[added], op.operands[3]]
        raise error
    return xla.dynamic_slice(xs[0], _scalars(xs[1], stated.rank), sizes)


def _addend(start: XlaOp, limit: XlaOp) -> int | None:
    """Return the number of the addend of a limit that is the size of a slice; the other one is equal to the start."""
    end = limit.instruction
    if end is None or end.opcode != "add" or not start.shape.dtype.is_integer:
        return None
    return next((k for k in (1, 0) if are_equal(start.instruction, end.operands[1 - k])), None)


def _slice_sizes(c: Context, limit: XlaOp, added: int | None) -> tuple[int, ...] | None:
    """Return the value of an addend of the limit, else None."""
    if added is None or limit.instruction is None:
        return None
    sizes = c.constant_value(XlaOp(limit.builder, limit.instruction.operands[added]))
    return None if sizes is None else tuple(sizes.ravel().tolist())


def _scalars(x: XlaOp, count: int) -> list[XlaOp]:
    """Return the elements of a vector."""
    return [xla.reshape(xla.slice_in_dim(x, k, k + 1), ()) for k in range(count)]


@handles("dynamic_slice", least=1)
def _dynamic_slice(c: Context, op: Operation, xs: list[XlaOp]) -> Results:
    return xla.dynamic_slice(xs[0], xs[1:], int_list(op, "slice_sizes"))


@handles("dynamic_update_slice", least=2)
def _dynamic_update_slice(c: Context, op: Operation, xs: list[XlaOp]) -> Results:
    return xla.dynamic_update_slice(xs[0], xs[1], xs[2:])


@handles("pad")
def _pad(c: Context, op: Operation, xs: list[XlaOp]) -> Results:
    arity(op, xs, 2)
    low, high = int_list(op, "edge_padding_low"), int_list(op, "edge_padding_high")
    return _pad_by(xs, low, high, int_list(op, "interior_padding", [0] * len(low)))


@handles("dynamic_pad")
def _dynamic_pad(c: Context, op: Operation, xs: list[XlaOp]) -> Results:
    arity(op, xs, 5)
    low, high, interior = (c.constant_ints(x, f"the padding of {op.name}") for x in xs[2:])
    return _pad_by(xs[:2], low, high, interior)


def _pad_by(xs: list[XlaOp], *parts: Sequence[int]) -> XlaOp:
    if len({len(p) for p in parts}) != 1:
        raise ShapeError(f"padding has {', '.join(str(len(p)) for p in parts)} numbers")
    return xla.pad(xs[0], xs[1], list(zip(*parts, strict=True)))


# Gather and scatter


def dimension_numbers(op: Operation, name: str) -> dict[str, Any]:
    """Return the fields of dimension numbers."""
    value = required(op, name)
    if not isinstance(value, Record):
        raise InvalidArgumentError(f"attribute {name} of {op.name} is to be dimension numbers")
    return value.fields


def dim_lists(fields: dict[str, Any], names: Sequence[str]) -> dict[str, tuple[int, ...]]:
    """Return lists of dimensions, empty for missing fields."""
    return {name: ints(fields.get(name, ()), name) for name in names}


_GATHER = (
    "offset_dims", "collapsed_slice_dims", "operand_batching_dims", "start_indices_batching_dims", "start_index_map",
)  # fmt: skip


@handles("gather", "dynamic_gather")
def _gather(c: Context, op: Operation, xs: list[XlaOp]) -> Results:
    dynamic = op.kind == "dynamic_gather"
    arity(op, xs, 3 if dynamic else 2)
    sizes = c.constant_ints(xs[2], f"the slices of {op.name}") if dynamic else int_list(op, "slice_sizes")
    fields = dimension_numbers(op, "dimension_numbers")
    return xla.gather(
        xs[0], xs[1], **dim_lists(fields, _GATHER), index_vector_dim=field_int(fields, "index_vector_dim"),
        slice_sizes=sizes, indices_are_sorted=flag(op, "indices_are_sorted"),
    )  # fmt: skip


@handles("torch_index_select")
def _torch_index_select(c: Context, op: Operation, xs: list[XlaOp]) -> Results:
    """Lower to a gather along dimension `dim`; leading batch dimensions are shared by array and indices."""
    arity(op, xs, 2)
    x, indices = xs[0].shape, xs[1].shape
    dim, batch = integer(op, "dim"), integer(op, "batch_dims", 0)
    dim, batch = dim + x.rank * (dim < 0), batch + indices.rank * (batch < 0)
    if not 0 <= batch <= min(indices.rank, dim) or dim >= x.rank:
        raise ShapeError(f"{op.name} of {x} along dimension {dim} with {batch} batch dimensions")
    num_index_dims = indices.rank - batch
    batch_dims = tuple(range(batch))
    offsets = [*range(batch, dim), *range(dim + num_index_dims, x.rank - 1 + num_index_dims)]
    return xla.gather(
        xs[0], xs[1], offset_dims=offsets, collapsed_slice_dims=(dim,), start_index_map=(dim,),
        operand_batching_dims=batch_dims, start_indices_batching_dims=batch_dims, index_vector_dim=indices.rank,
        slice_sizes=[1 if d == dim or d < batch else n for d, n in enumerate(x.dims)],
    )  # fmt: skip


# Tuples and sizes


@handles("tuple")
def _tuple(c: Context, op: Operation, xs: list[XlaOp]) -> Results:
    return xla.tuple_(c.builder, xs)


@handles("get_tuple_element")
def _get_tuple_element(c: Context, op: Operation, xs: list[XlaOp]) -> Results:
    arity(op, xs, 1)
    return xla.get_tuple_element(xs[0], integer(op, "index"))


@handles("get_dimension_size")
def _get_dimension_size(c: Context, op: Operation, xs: list[XlaOp]) -> Results:
    arity(op, xs, 1)
    return _size(c, xs[0], integer(op, "dimension"))


def _size(c: Context, x: XlaOp, dimension: int) -> XlaOp:
    """Return the size of a dimension, as a constant if it is known."""
    known = known_size(x, dimension)
    return xla.get_dimension_size(x, dimension) if known is None else xla.constant(c.builder, known, ElementType.S32)


@handles("shape_of")
def _shape_of(c: Context, op: Operation, xs: list[XlaOp]) -> Results:
    """Lower ``shape.shape_of`` to a vector of sizes."""
    arity(op, xs, 1)
    dtype, rank = c.stated(op).dtype, xs[0].shape.rank
    if not rank:
        return xla.constant(c.builder, np.zeros(0, dtype.numpy_dtype), dtype)
    sizes = [xla.convert(_size(c, xs[0], d), dtype) for d in range(rank)]
    return xla.concatenate([xla.reshape(size, (1,)) for size in sizes], 0)


@handles("set_dimension_size")
def _set_dimension_size(c: Context, op: Operation, xs: list[XlaOp]) -> Results:
    arity(op, xs, 2)
    dimension, stated = integer(op, "dimension"), c.stated(op)
    if 0 <= dimension < stated.rank and not stated.dynamic[dimension]:
        size = c.constant_value(xs[1])
        if size is not None and int(size) == xs[0].shape.dims[dimension]:
            return xs[0]
    return xla.set_dimension_size(xs[0], xs[1], dimension)


@handles("dim")
def _dim(c: Context, op: Operation, xs: list[XlaOp]) -> Results:
    """Lower ``tensor.dim`` of a static size."""
    arity(op, xs, 2)
    dimension = c.constant_int(xs[1], f"the dimension of {op.name}")
    if not 0 <= dimension < xs[0].shape.rank or xs[0].shape.dynamic[dimension]:
        raise UnimplementedError(f"{op.name} with an unknown size")
    return xla.constant(c.builder, xs[0].shape.dims[dimension], ElementType.S64)
