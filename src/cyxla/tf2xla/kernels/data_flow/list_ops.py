"""Tensor lists as buffers of fixed capacity; elements are written by dynamic-update-slice."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from cyxla.core.framework.geometry.shape_operands import shape_from, shape_to
from cyxla.core.framework.tensor_shape import UNKNOWN, TensorShape
from cyxla.core.framework.types import DataType
from cyxla.errors import InvalidArgumentError, UnimplementedError
from cyxla.tf2xla.lib.buffer_rows import read_row, write_row
from cyxla.tf2xla.lib.gather_scatter import gather_slices
from cyxla.tf2xla.lib.tensor_list import XlaTensorList
from cyxla.tf2xla.xla_expression import XlaExpression
from cyxla.tf2xla.xla_op_kernel import XlaOpKernelContext, xla_kernel
from cyxla.xla.hlo.builder import XlaOp
from cyxla.xla.hlo.builder import functions as xla
from cyxla.xla.lib.values import sizes_of

_SHAPE = "element_shape"


def _known_shape(ctx: XlaOpKernelContext) -> TensorShape:
    """Return the element_shape input as far as it is constant."""
    value = ctx.xla.constant_value(ctx.input_expression(_SHAPE))
    return UNKNOWN if value is None else shape_from(value)


def _sizes_or_none(shape: TensorShape) -> tuple[int, ...] | None:
    return tuple(shape.as_list()) if shape.is_fully_defined else None


def _list(ctx: XlaOpKernelContext) -> XlaTensorList:
    """Return the list of the first input after checking its element type."""
    tensor_list, dtype = ctx.input_tensor_list(0), ctx.attr("element_dtype")
    list_dtype = DataType.DT_VARIANT if tensor_list.is_nested else tensor_list.element_dtype
    if list_dtype != dtype:
        raise InvalidArgumentError(f"Invalid data types; op elements {dtype} but list elements {list_dtype}")
    return tensor_list


def _with_known_shape(ctx: XlaOpKernelContext, tensor_list: XlaTensorList) -> XlaTensorList:
    """Return a list with a known element shape, if necessary that of the element_shape input.

    Raises
    ------
    InvalidArgumentError
        The element shape is unknown, or contradicts the input.
    """
    known_shape = _known_shape(ctx)
    if tensor_list.element_shape is not None:
        if not known_shape.is_compatible_with(TensorShape(tensor_list.element_shape)):
            raise InvalidArgumentError(
                f"elements of the list have the shape {list(tensor_list.element_shape)}, not {known_shape}"
            )
        return tensor_list
    sizes = _sizes_or_none(known_shape)
    if sizes is None:
        raise InvalidArgumentError(
            f"the shape of the list's elements is not known: {known_shape}",
            hint="give an element_shape, or set an element first",
        )
    return tensor_list.with_shape(ctx.builder, sizes)


# Construction of lists


@xla_kernel("EmptyTensorList", const=("max_num_elements",), variant=True)
def _empty(ctx: XlaOpKernelContext) -> Any:
    """Create a buffer of zeros with no elements pushed."""
    capacity = ctx.constant_input_as_int_scalar("max_num_elements")
    if capacity < 0:
        raise InvalidArgumentError(
            "a compiled list needs a capacity, but max_num_elements is -1", hint="say how many elements it may hold"
        )
    dtype: DataType = ctx.attr("element_dtype")
    shape = None if dtype is DataType.DT_VARIANT else _sizes_or_none(_known_shape(ctx))
    return XlaTensorList.empty(ctx.builder, dtype, capacity, shape)


@xla_kernel("TensorListReserve", const=("num_elements",))
def _reserve(ctx: XlaOpKernelContext) -> Any:
    """Create a full buffer of zeros."""
    value = ctx.constant_input("num_elements")
    ctx.require(value.size == 1, f"num_elements must be one number; its shape is {list(value.shape)}")
    count = int(value.reshape(())[()])
    ctx.require(count >= 0, f"num_elements must not be negative; it is {count}")
    result = XlaTensorList.empty(ctx.builder, ctx.attr("element_dtype"), count, _sizes_or_none(_known_shape(ctx)))
    return _filled_list(result)


def _filled_list(tensor_list: XlaTensorList) -> XlaTensorList:
    return replace(tensor_list, pushed=xla.constant(tensor_list.pushed.builder, np.int32(tensor_list.capacity)))


def _list_of_buffer(ctx: XlaOpKernelContext, buffer: XlaOp) -> XlaTensorList:
    count = sizes_of(buffer)[0]
    return XlaTensorList(ctx.attr("element_dtype"), count, buffer, xla.constant(ctx.builder, np.int32(count)))


@xla_kernel("TensorListFromTensor")
def _from_tensor(ctx: XlaOpKernelContext) -> Any:
    """Use the tensor as the buffer."""
    tensor = ctx.input("tensor")
    ctx.require(tensor.shape.rank, "a tensor must have at least one dimension to become a list of its rows")
    rest, expected = TensorShape(sizes_of(tensor)[1:]), _known_shape(ctx)
    ctx.require(expected.is_compatible_with(rest), f"rows have the shape {rest}, but element_shape is {expected}")
    return _list_of_buffer(ctx, tensor)


@xla_kernel("TensorListSplit", const=("lengths",))
def _split(ctx: XlaOpKernelContext) -> Any:
    """Emit a reshape; all parts must have the same length."""
    tensor, lengths = ctx.input("tensor"), ctx.constant_input_as_int_vector("lengths")
    ctx.require(tensor.shape.rank, "a tensor must have at least one dimension to be split into a list")
    rows, *rest = sizes_of(tensor)
    ctx.require(min(lengths, default=0) >= 0, f"lengths must not be negative: {lengths}")
    ctx.require(sum(lengths) == rows, f"lengths {lengths} do not add up to the {rows} rows of the tensor")
    if len(set(lengths)) > 1:
        raise UnimplementedError(f"TensorListSplit into pieces of different lengths {lengths} is not compiled")
    length = lengths[0] if lengths else 0
    return _list_of_buffer(ctx, xla.reshape(tensor, (len(lengths), length, *rest)))


# Lists from lists


@xla_kernel("TensorListPushBack", variant=True)
def _push_back(ctx: XlaOpKernelContext) -> Any:
    """Write the element to the next index; beyond the capacity, to the last one."""
    tensor_list = _list(ctx)
    _require_room(ctx, tensor_list)
    if ctx.attr("element_dtype") is DataType.DT_VARIANT:
        return _push_list(ctx, tensor_list, ctx.input_tensor_list("tensor"))
    item = ctx.input("tensor")
    tensor_list = tensor_list.with_shape(ctx.builder, sizes_of(item))
    assert tensor_list.buffer is not None  # the shape of the value is known
    return replace(
        tensor_list, buffer=write_row(tensor_list.buffer, tensor_list.pushed, item), pushed=tensor_list.pushed + 1
    )


def _known_length(ctx: XlaOpKernelContext, tensor_list: XlaTensorList) -> int | None:
    """Return the number of pushed elements if it is known at compile time."""
    count = ctx.xla.constant_value(XlaExpression.of(tensor_list.pushed, DataType.DT_INT32))
    return None if count is None else int(count)


def _require_room(ctx: XlaOpKernelContext, tensor_list: XlaTensorList) -> None:
    """Raise if a list is known to be full."""
    length = _known_length(ctx, tensor_list)
    if length is not None and length >= tensor_list.capacity:
        raise UnimplementedError(
            f"an element cannot be pushed: a compiled list does not become longer than it was made, and this one is "
            f"full with {length} elements",
            hint="make it by EmptyTensorList with a sufficient max_num_elements, or run it uncompiled (jit='off')",
        )


def _push_list(ctx: XlaOpKernelContext, tensor_list: XlaTensorList, item: XlaTensorList) -> XlaTensorList:
    """Write buffer and fill count of a list to the next index.

    Raises
    ------
    UnimplementedError
        The element is a list of lists.
    InvalidArgumentError
        The element shape is unknown, or the list differs in kind from those pushed before.
    """
    if item.is_nested or item.element_dtype is DataType.DT_VARIANT:
        raise UnimplementedError(f"{ctx.kernel.type_string}: lists of lists of lists are not compiled")
    ctx.require(item.buffer is not None, "a list with an unknown element shape cannot be pushed onto a list")
    assert item.buffer is not None  # required above
    if tensor_list.buffer is None:
        kind = (item.element_dtype, tensor_list.capacity, item.capacity)
        tensor_list = replace(
            XlaTensorList.zeros(ctx.builder, kind, (tensor_list.capacity, *sizes_of(item.buffer))),
            pushed=tensor_list.pushed,
        )
    assert tensor_list.buffer is not None
    assert tensor_list.inner_pushed is not None  # the list is nested
    alike = (tensor_list.element_dtype, tensor_list.element_shape) == (item.element_dtype, sizes_of(item.buffer))
    ctx.require(
        alike, f"a list of lists of {tensor_list.element_shape} cannot hold a list of {list(sizes_of(item.buffer))}"
    )
    return replace(
        tensor_list,
        buffer=write_row(tensor_list.buffer, tensor_list.pushed, item.buffer),
        inner_pushed=write_row(tensor_list.inner_pushed, tensor_list.pushed, item.pushed),
        pushed=tensor_list.pushed + 1,
    )


@xla_kernel("TensorListPopBack", variant=True)
def _pop_back(ctx: XlaOpKernelContext) -> Any:
    """Return the last element, and decrement the fill count."""
    tensor_list = _list(ctx)
    if ctx.attr("element_dtype") is DataType.DT_VARIANT:
        ctx.require(tensor_list.buffer is not None, "TensorListPopBack: the list of lists is empty")
    else:
        tensor_list = _with_known_shape(ctx, tensor_list)
    assert tensor_list.buffer is not None  # the shape of the value is known
    _require_pushed(ctx, tensor_list)
    pushed = tensor_list.pushed - 1
    item = read_row(tensor_list.buffer, pushed)
    if tensor_list.inner_pushed is None:
        return replace(tensor_list, pushed=pushed), item
    kind = (tensor_list.element_dtype, tensor_list.inner_capacity, -1)
    return replace(tensor_list, pushed=pushed), XlaTensorList.of(
        kind, [item, read_row(tensor_list.inner_pushed, pushed)]
    )


def _require_elements(ctx: XlaOpKernelContext, tensor_list: XlaTensorList) -> None:
    ctx.require(tensor_list.capacity, f"{ctx.kernel.type_string}: the list has no elements")


def _require_pushed(ctx: XlaOpKernelContext, tensor_list: XlaTensorList) -> None:
    """Raise if a list is known to be empty."""
    _require_elements(ctx, tensor_list)
    ctx.require(_known_length(ctx, tensor_list) != 0, "the list is empty, so that nothing can be popped")


@xla_kernel("TensorListSetItem")
def _set_item(ctx: XlaOpKernelContext) -> Any:
    """Write an element at an index; an index out of range is clamped."""
    tensor_list, item = _list(ctx), ctx.input("item")
    ctx.require(not ctx.input_shape("index"), f"index must be a scalar; its shape is {list(ctx.input_shape('index'))}")
    tensor_list = tensor_list.with_shape(ctx.builder, sizes_of(item))
    if ctx.attr("resize_if_index_out_of_bounds"):
        tensor_list = _grow(ctx, tensor_list)
    assert tensor_list.buffer is not None  # the shape of the value is known
    return replace(tensor_list, buffer=write_row(tensor_list.buffer, ctx.input("index"), item))


def _grow(ctx: XlaOpKernelContext, tensor_list: XlaTensorList) -> XlaTensorList:
    """Pad the buffer up to a constant index."""
    index = ctx.xla.constant_value(ctx.input_expression("index"))
    num_missing = 0 if index is None else int(index) + 1 - tensor_list.capacity
    if num_missing <= 0 or tensor_list.buffer is None:
        return tensor_list
    zero = xla.constant(ctx.builder, np.zeros((), tensor_list.element_dtype.numpy), tensor_list.buffer.shape.dtype)
    buffer = xla.pad_in_dim(tensor_list.buffer, zero, 0, 0, num_missing)
    return replace(_filled_list(replace(tensor_list, capacity=tensor_list.capacity + num_missing)), buffer=buffer)


# Queries


@xla_kernel("TensorListLength")
def _length(ctx: XlaOpKernelContext) -> Any:
    """Output the capacity, a constant."""
    return np.array(ctx.input_tensor_list(0).capacity, np.int32)


@xla_kernel("TensorListElementShape")
def _element_shape(ctx: XlaOpKernelContext) -> Any:
    """Output a constant."""
    sizes = ctx.input_tensor_list(0).element_shape
    out: DataType = ctx.attr("shape_type")
    return shape_to(UNKNOWN if sizes is None else TensorShape(sizes), out.numpy)


@xla_kernel("TensorListGetItem")
def _get_item(ctx: XlaOpKernelContext) -> Any:
    """Read the element at an index; an index out of range is clamped."""
    tensor_list = _with_known_shape(ctx, _list(ctx))
    assert tensor_list.buffer is not None  # the shape of the value is known
    _require_elements(ctx, tensor_list)
    ctx.require(not ctx.input_shape("index"), f"index must be a scalar; its shape is {list(ctx.input_shape('index'))}")
    return read_row(tensor_list.buffer, ctx.input("index"))


@xla_kernel("TensorListStack")
def _stack(ctx: XlaOpKernelContext) -> Any:
    """Return the buffer."""
    return _with_known_shape(ctx, _list(ctx)).buffer


@xla_kernel("TensorListGather")
def _gather(ctx: XlaOpKernelContext) -> Any:
    """Emit a gather of rows of the buffer."""
    tensor_list = _with_known_shape(ctx, _list(ctx))
    assert tensor_list.buffer is not None  # the shape of the value is known
    indices = ctx.input("indices")
    return gather_slices(tensor_list.buffer, xla.reshape(indices, (indices.shape.size,)), 0)


@xla_kernel("TensorListConcatV2")
def _concat(ctx: XlaOpKernelContext) -> Any:
    """Emit a reshape of the buffer, since all elements have the same length."""
    tensor_list = _list(ctx)
    tensor_list = _with_concat_shape(ctx, tensor_list) if tensor_list.element_shape is None else tensor_list
    assert tensor_list.buffer is not None  # the shape of the value is known
    count, *sizes = sizes_of(tensor_list.buffer)
    ctx.require(sizes, "elements must have at least one dimension to be put one after the other")
    return xla.reshape(tensor_list.buffer, (count * sizes[0], *sizes[1:])), np.full(count, sizes[0], np.int64)


def _with_concat_shape(ctx: XlaOpKernelContext, tensor_list: XlaTensorList) -> XlaTensorList:
    """Set the element shape from leading_dims if these are all equal."""
    shape = _known_shape(ctx)
    lengths = ctx.xla.constant_value(ctx.input_expression("leading_dims"))
    alike = lengths is not None and lengths.size > 0 and bool((lengths == lengths.flat[0]).all())
    if alike and lengths is not None and shape.rank and shape[0] is None:
        shape = TensorShape([int(lengths.flat[0]), *shape[1:]])
    sizes = _sizes_or_none(shape)
    if sizes is None:
        raise InvalidArgumentError(
            f"the shape of the list's elements is not known: {shape}", hint="give an element_shape"
        )
    return tensor_list.with_shape(ctx.builder, sizes)
