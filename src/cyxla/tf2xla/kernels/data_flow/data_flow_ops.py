"""Stacks and tensor arrays as functional buffers of fixed size; dynamic stitch and partition."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np

from cyxla.core.framework.tensor_shape import TensorShape
from cyxla.core.framework.types import DataType
from cyxla.errors import InvalidArgumentError, ShapeError, UnimplementedError
from cyxla.tf2xla.lib.buffer_rows import read_row, write_row
from cyxla.tf2xla.lib.gather_scatter import gather_slices, scatter_rows
from cyxla.tf2xla.lib.typed_values import full
from cyxla.tf2xla.xla_op_kernel import XlaOpKernelContext, lowering, xla_kernel
from cyxla.tf2xla.xla_resource import ResourceKind, XlaResource
from cyxla.types import ElementType
from cyxla.xla.hlo.builder import XlaOp
from cyxla.xla.hlo.builder import functions as xla
from cyxla.xla.lib.values import iota_along, scalar, sizes_of, sum_of

Array = np.ndarray[Any, Any]


def _resource(ctx: XlaOpKernelContext, kind: ResourceKind) -> XlaResource:
    """Return the resource of the first input.

    Raises
    ------
    InvalidArgumentError
        The resource is of another kind.
    """
    resource = ctx.input_resource(0)
    if resource.kind is not kind:
        raise InvalidArgumentError(f"{ctx.kernel.type_string} takes a {kind.value}, not a {resource.kind.value}")
    return resource


def _elements(ctx: XlaOpKernelContext, kind: ResourceKind, dtype: DataType, shape: TensorShape) -> XlaResource:
    """Set element type and shape of the first input's resource, and create its buffer once the shape is known."""
    resource = _resource(ctx, kind)
    resource.set_type_and_shape(dtype, shape if resource.value is None else resource.shape.merge_with(shape))
    if resource.value is None and resource.shape.is_fully_defined:
        resource.value = full(ctx.builder, 0, dtype, (resource.max_array_size, *resource.shape.as_list()))
    return resource


def _buffer(ctx: XlaOpKernelContext, kind: ResourceKind, dtype: DataType) -> XlaOp:
    """Return the buffer of the first input's resource.

    Raises
    ------
    InvalidArgumentError
        The elements have another type, or an unknown shape since nothing was written.
    """
    return _elements(ctx, kind, dtype, _resource(ctx, kind).shape).read()


# ----------------------------------------------------------------------------------------------------------- stacks


@xla_kernel("StackV2", const=("max_size",))
def _stack(ctx: XlaOpKernelContext) -> Any:
    """Create a stack without a buffer: the first push determines the shape of the elements."""
    size = ctx.constant_input_as_int_scalar("max_size")
    if size < 0:
        raise InvalidArgumentError(
            f"a compiled stack needs a size, but max_size is {size}", hint="say how many values it may hold"
        )
    name = ctx.attr("stack_name") or ctx.kernel.name
    stack = XlaResource(ResourceKind.STACK, -1, name, ctx.attr("elem_type"), max_array_size=size)
    ctx.set_resource_output(0, stack)


def _fill_count(ctx: XlaOpKernelContext, resource: XlaResource) -> XlaOp:
    return xla.constant(ctx.builder, np.int32(0)) if resource.pushed is None else resource.pushed


@xla_kernel("StackPushV2")
def _push(ctx: XlaOpKernelContext) -> Any:
    """Emit a dynamic-update-slice at the top."""
    value = ctx.input("elem")
    stack = _elements(ctx, ResourceKind.STACK, ctx.attr("T"), TensorShape(sizes_of(value)))
    top = _fill_count(ctx, stack)
    stack.value, stack.pushed = write_row(stack.read(), top, value), top + 1
    return value


@xla_kernel("StackPopV2")
def _pop(ctx: XlaOpKernelContext) -> Any:
    """Emit a dynamic-slice at the top."""
    dtype: DataType = ctx.attr("elem_type")
    stack = _resource(ctx, ResourceKind.STACK)
    buffer = _buffer(ctx, ResourceKind.STACK, dtype)
    ctx.require(stack.max_array_size, f"the stack {stack.name!r} is full")
    stack.pushed = _fill_count(ctx, stack) - 1
    return read_row(buffer, stack.pushed)


@xla_kernel(("StackCloseV2", "TensorArrayCloseV3"))
def _close(ctx: XlaOpKernelContext) -> Any:
    """Emit nothing: the buffer is not stored anywhere."""


# ----------------------------------------------------------------------------------------------------- tensor arrays

_ARRAY = ResourceKind.TENSOR_ARRAY


@xla_kernel("TensorArrayV3", const=("size",))
def _tensor_array(ctx: XlaOpKernelContext) -> Any:
    """Create an array of zeros if the element shape is known; otherwise the first write determines it."""
    size = ctx.constant_input_as_int_scalar("size")
    ctx.require(size >= 0, f"size must not be negative; it is {size}")
    name = ctx.attr("tensor_array_name") or ctx.kernel.name
    array = XlaResource(_ARRAY, -1, name, ctx.attr("dtype"), ctx.attr("element_shape"), max_array_size=size)
    if array.shape.is_fully_defined:
        array.value = full(ctx.builder, 0, array.dtype, (size, *array.shape.as_list()))
    ctx.set_resource_output(0, array)
    ctx.set_constant_output(1, np.float32(0))


def _array_of(ctx: XlaOpKernelContext, dtype_attr: str) -> XlaOp:
    return _buffer(ctx, _ARRAY, ctx.attr(dtype_attr))


def _sum(x: XlaOp, y: XlaOp) -> XlaOp:
    return xla.or_(x, y) if x.shape.dtype is ElementType.PRED else x + y


@xla_kernel("TensorArrayWriteV3")
def _write(ctx: XlaOpKernelContext) -> Any:
    """Add the value to the element, which is zero, or an earlier gradient."""
    index, value = ctx.input("index"), ctx.input("value")
    ctx.require(not sizes_of(index), f"index must be a scalar; its shape is {list(sizes_of(index))}")
    array = _elements(ctx, _ARRAY, ctx.attr("T"), TensorShape(sizes_of(value)))
    if array.max_array_size:
        array.value = write_row(array.read(), index, _sum(read_row(array.read(), index), value))
    return ctx.input_expression("flow_in")


@xla_kernel("TensorArrayReadV3")
def _read(ctx: XlaOpKernelContext) -> Any:
    """Emit a dynamic-slice."""
    index = ctx.input("index")
    ctx.require(not sizes_of(index), f"index must be a scalar; its shape is {list(sizes_of(index))}")
    buffer = _array_of(ctx, "dtype")
    ctx.require(sizes_of(buffer)[0], f"the tensor array {_resource(ctx, _ARRAY).name!r} has no elements to read")
    return read_row(buffer, index)


@xla_kernel("TensorArrayGatherV3")
def _gather(ctx: XlaOpKernelContext) -> Any:
    """Emit a gather of rows, or return the buffer if all are requested in order."""
    dtype: DataType = ctx.attr("dtype")
    array = _elements(ctx, _ARRAY, dtype, ctx.attr("element_shape"))
    ctx.require(len(ctx.input_shape("indices")) == 1, "indices must be a vector")
    if _is_all(ctx, array.max_array_size):
        return array.read()
    return gather_slices(array.read(), ctx.input("indices"), 0)


def _is_all(ctx: XlaOpKernelContext, size: int) -> bool:
    """Return whether the indices are the constants 0, 1, .. size - 1."""
    indices = ctx.xla.constant_value(ctx.input_expression("indices"))
    return indices is not None and np.array_equal(indices, np.arange(size))


@xla_kernel("TensorArrayScatterV3")
def _scatter(ctx: XlaOpKernelContext) -> Any:
    """Add rows to the elements by a scatter, or by one addition if all are given in order."""
    value, indices = ctx.input("value"), ctx.input_shape("indices")
    ctx.require(len(indices) == 1, f"indices must be a vector; their shape is {list(indices)}")
    ctx.require(sizes_of(value), "the value must have at least one dimension")
    count, *rest = sizes_of(value)
    ctx.require(count == indices[0], f"{indices[0]} indices for {count} rows", ShapeError)
    array = _elements(ctx, _ARRAY, ctx.attr("T"), TensorShape(rest))
    if _is_all(ctx, array.max_array_size):
        array.value = _sum(array.read(), value)
    else:
        array.value = scatter_rows(array.read(), ctx.input("indices"), value, "add")
    return ctx.input_expression("flow_in")


@xla_kernel("TensorArrayConcatV3")
def _concat(ctx: XlaOpKernelContext) -> Any:
    """Emit a reshape, since all elements have the same length."""
    rest: TensorShape = ctx.attr("element_shape_except0")
    buffer = _array_of(ctx, "dtype")
    count, *sizes = sizes_of(buffer)
    ctx.require(sizes, "elements must have at least one dimension to be put one after the other")
    shape = TensorShape(sizes[1:])
    ctx.require(rest.is_compatible_with(shape), f"elements have the shape {sizes}, but element_shape_except0 is {rest}")
    return xla.reshape(buffer, (count * sizes[0], *sizes[1:])), np.full(count, sizes[0], np.int64)


@xla_kernel("TensorArraySplitV3", const=("lengths",))
def _split(ctx: XlaOpKernelContext) -> Any:
    """Add a reshaped value; all parts must have the same length."""
    value, lengths = ctx.input("value"), ctx.constant_input_as_int_vector("lengths")
    ctx.require(sizes_of(value), "the value must have at least one dimension")
    rows, *rest = sizes_of(value)
    ctx.require(min(lengths, default=0) >= 0, f"lengths must not be negative: {lengths}")
    ctx.require(sum(lengths) == rows, f"lengths {lengths} do not add up to the {rows} rows of the value")
    if len(set(lengths)) > 1:
        raise UnimplementedError(f"TensorArraySplitV3 into pieces of different lengths {lengths} is not compiled")
    shape = (lengths[0] if lengths else 0, *rest)
    array = _elements(ctx, _ARRAY, ctx.attr("T"), TensorShape(shape))
    size = array.max_array_size
    ctx.require(len(lengths) == size, f"{len(lengths)} lengths for a tensor array of {size} elements")
    array.value = _sum(array.read(), xla.reshape(value, (size, *shape)))
    return ctx.input_expression("flow_in")


@xla_kernel("TensorArraySizeV3")
def _size(ctx: XlaOpKernelContext) -> Any:
    """Output a constant."""
    return np.array(_resource(ctx, _ARRAY).max_array_size, np.int32)


@xla_kernel("TensorArrayGradV3")
def _grad(ctx: XlaOpKernelContext) -> Any:
    """Return the array of gradients of a source, which is created with zeros."""
    array, source = _resource(ctx, _ARRAY), ctx.attr("source")
    if source not in array.gradients:
        zeros = full(ctx.builder, 0, array.dtype, sizes_of(array.read()))
        gradient = XlaResource(_ARRAY, -1, f"{array.name}@{source}", array.dtype, array.shape, zeros)
        gradient.max_array_size = array.max_array_size
        array.gradients[source] = gradient
    ctx.set_resource_output(0, array.gradients[source])
    ctx.set_output_expression(1, ctx.input_expression("flow_in"))


# ---------------------------------------------------------------------------------------------- partition and stitch


@lowering(("DynamicStitch", "ParallelDynamicStitch"), const=("indices",))
def _stitch(indices: list[Array], data: list[XlaOp]) -> XlaOp:
    """Gather rows from all data with constant indices; missing rows are zeros, and the last of equal indices wins."""
    rest = sizes_of(data[0])[indices[0].ndim :]
    for i, (index, values) in enumerate(zip(indices, data, strict=True)):
        if sizes_of(values) != (*index.shape, *rest):
            raise InvalidArgumentError(
                f"data[{i}] must have the shape {[*index.shape, *rest]}, not {list(sizes_of(values))}"
            )
    flat = np.concatenate([index.reshape(-1) for index in indices])
    if flat.size and flat.min() < 0:
        raise InvalidArgumentError(f"indices must not be negative, but {flat.min()} is among them")
    source = np.full(int(flat.max(initial=-1)) + 1, flat.size, np.int64)
    source[flat] = np.arange(flat.size)
    rows = [xla.reshape(v, (index.size, *rest)) for index, v in zip(indices, data, strict=True)]
    return _gather_rows([*rows, xla.broadcast(scalar(data[0], 0), (1, *rest))], source)


def _gather_rows(rows: Sequence[XlaOp], source: Array) -> XlaOp:
    all_rows = xla.concatenate(list(rows), 0)
    if not source.size:
        return xla.slice_in_dim(all_rows, 0, 0)
    if np.array_equal(source, np.arange(source.size)):
        return xla.slice_in_dim(all_rows, 0, source.size)
    return gather_slices(all_rows, xla.constant(all_rows.builder, source), 0)


@lowering("DynamicPartition", attrs=("num_partitions",))
def _partition(data: XlaOp, partitions: XlaOp, *, num_partitions: int) -> list[XlaOp]:
    """Sort stably by partition; each part is a dynamic-slice with the partition's dynamic size."""
    depth = len(sizes_of(partitions))
    if sizes_of(data)[:depth] != sizes_of(partitions):
        raise InvalidArgumentError(f"data {list(sizes_of(data))} does not start with {list(sizes_of(partitions))}")
    count, rest = prod(sizes_of(partitions)), sizes_of(data)[depth:]
    keys = xla.reshape(partitions, (count,))
    order = _argsort(keys)
    rows = gather_slices(xla.reshape(data, (count, *rest)), order, 0)
    padded = xla.concatenate([rows, xla.broadcast(scalar(data, 0), (count, *rest))], 0)
    return [_part(padded, keys, count, i) for i in range(num_partitions)]


def _argsort(keys: XlaOp) -> XlaOp:
    """Return the indices that sort the keys stably."""
    index = iota_along(keys.builder, ElementType.S32, sizes_of(keys), 0)
    return xla.get_tuple_element(xla.sort([keys, index], None, 0, is_stable=True), 1)


def _part(padded: XlaOp, keys: XlaOp, count: int, number: int) -> XlaOp:
    """Slice the rows of one partition, which follow those of smaller number."""
    like = scalar(keys, number)
    start, size = (
        sum_of(xla.convert(compare(keys, xla.broadcast(like, (count,))), ElementType.S32), [0])
        for compare in (xla.lt, xla.eq)
    )
    rest = sizes_of(padded)[1:]
    part = xla.dynamic_slice(padded, [start, *[0] * len(rest)], (count, *rest))
    return xla.set_dimension_size(part, size, 0)
