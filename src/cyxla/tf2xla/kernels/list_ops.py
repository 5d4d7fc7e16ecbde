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
    held, dtype = ctx.input_tensor_list(0), ctx.attr("element_dtype")
    own = DataType.DT_VARIANT if held.is_nested else held.element_dtype
    if own != dtype:
        raise InvalidArgumentError(f"Invalid data types; op elements {dtype} but list elements {own}")
    return held


def _with_known_shape(ctx: XlaOpKernelContext, held: XlaTensorList) -> XlaTensorList:
    """Return a list with a known element shape, if necessary that of the element_shape input.

    Raises
    ------
    InvalidArgumentError
        The element shape is unknown, or contradicts the input.
    """
    given = _known_shape(ctx)
    if held.element_shape is not None:
        if not given.is_compatible_with(TensorShape(held.element_shape)):
            raise InvalidArgumentError(f"elements of the list have the shape {list(held.element_shape)}, not {given}")
        return held
    sizes = _sizes_or_none(given)
    if sizes is None:
        raise InvalidArgumentError(
            f"the shape of the list's elements is not known: {given}",
            hint="give an element_shape, or set an element first",
        )
    return held.with_shape(ctx.builder, sizes)


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
    made = XlaTensorList.empty(ctx.builder, ctx.attr("element_dtype"), count, _sizes_or_none(_known_shape(ctx)))
    return _full(made)


def _full(held: XlaTensorList) -> XlaTensorList:
    return replace(held, pushed=xla.constant(held.pushed.builder, np.int32(held.capacity)))


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
    held = _list(ctx)
    if ctx.attr("element_dtype") is DataType.DT_VARIANT:
        return _push_list(ctx, held, ctx.input_tensor_list("tensor"))
    item = ctx.input("tensor")
    held = held.with_shape(ctx.builder, sizes_of(item))
    assert held.buffer is not None  # its shape is known
    return replace(held, buffer=write_row(held.buffer, held.pushed, item), pushed=held.pushed + 1)


def _push_list(ctx: XlaOpKernelContext, held: XlaTensorList, item: XlaTensorList) -> XlaTensorList:
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
    ctx.require(item.buffer is not None, "a list whose elements have no known shape cannot be pushed onto a list")
    assert item.buffer is not None  # required above
    if held.buffer is None:
        kind = (item.element_dtype, held.capacity, item.capacity)
        held = replace(
            XlaTensorList.zeros(ctx.builder, kind, (held.capacity, *sizes_of(item.buffer))), pushed=held.pushed
        )
    assert held.buffer is not None
    assert held.inner_pushed is not None  # it is nested
    alike = (held.element_dtype, held.element_shape) == (item.element_dtype, sizes_of(item.buffer))
    ctx.require(alike, f"a list of lists of {held.element_shape} cannot hold a list of {list(sizes_of(item.buffer))}")
    return replace(
        held,
        buffer=write_row(held.buffer, held.pushed, item.buffer),
        inner_pushed=write_row(held.inner_pushed, held.pushed, item.pushed),
        pushed=held.pushed + 1,
    )


@xla_kernel("TensorListPopBack", variant=True)
def _pop_back(ctx: XlaOpKernelContext) -> Any:
    """Return the last element, and decrement the fill count."""
    held = _list(ctx)
    if ctx.attr("element_dtype") is DataType.DT_VARIANT:
        ctx.require(held.buffer is not None, "TensorListPopBack: nothing was pushed onto the list of lists")
    else:
        held = _with_known_shape(ctx, held)
    assert held.buffer is not None  # its shape is known
    _require_elements(ctx, held)
    pushed = held.pushed - 1
    item = read_row(held.buffer, pushed)
    if held.inner_pushed is None:
        return replace(held, pushed=pushed), item
    kind = (held.element_dtype, held.inner_capacity, -1)
    return replace(held, pushed=pushed), XlaTensorList.of(kind, [item, read_row(held.inner_pushed, pushed)])


def _require_elements(ctx: XlaOpKernelContext, held: XlaTensorList) -> None:
    ctx.require(held.capacity, f"{ctx.kernel.type_string}: the list has no elements")


@xla_kernel("TensorListSetItem")
def _set_item(ctx: XlaOpKernelContext) -> Any:
    """Write an element at an index; an index out of range is clamped."""
    held, item = _list(ctx), ctx.input("item")
    ctx.require(not ctx.input_shape("index"), f"index must be a scalar; its shape is {list(ctx.input_shape('index'))}")
    held = held.with_shape(ctx.builder, sizes_of(item))
    if ctx.attr("resize_if_index_out_of_bounds"):
        held = _grow(ctx, held)
    assert held.buffer is not None  # its shape is known
    return replace(held, buffer=write_row(held.buffer, ctx.input("index"), item))


def _grow(ctx: XlaOpKernelContext, held: XlaTensorList) -> XlaTensorList:
    """Pad the buffer up to a constant index."""
    index = ctx.xla.constant_value(ctx.input_expression("index"))
    missing = 0 if index is None else int(index) + 1 - held.capacity
    if missing <= 0 or held.buffer is None:
        return held
    zero = xla.constant(ctx.builder, np.zeros((), held.element_dtype.numpy), held.buffer.shape.dtype)
    buffer = xla.pad_in_dim(held.buffer, zero, 0, 0, missing)
    return replace(_full(replace(held, capacity=held.capacity + missing)), buffer=buffer)


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
    held = _with_known_shape(ctx, _list(ctx))
    assert held.buffer is not None  # its shape is known
    _require_elements(ctx, held)
    ctx.require(not ctx.input_shape("index"), f"index must be a scalar; its shape is {list(ctx.input_shape('index'))}")
    return read_row(held.buffer, ctx.input("index"))


@xla_kernel("TensorListStack")
def _stack(ctx: XlaOpKernelContext) -> Any:
    """Return the buffer."""
    return _with_known_shape(ctx, _list(ctx)).buffer


@xla_kernel("TensorListGather")
def _gather(ctx: XlaOpKernelContext) -> Any:
    """Emit a gather of rows of the buffer."""
    held = _with_known_shape(ctx, _list(ctx))
    assert held.buffer is not None  # its shape is known
    indices = ctx.input("indices")
    return gather_slices(held.buffer, xla.reshape(indices, (indices.shape.size,)), 0)


@xla_kernel("TensorListConcatV2")
def _concat(ctx: XlaOpKernelContext) -> Any:
    """Emit a reshape of the buffer, since all elements have the same length."""
    held = _list(ctx)
    held = _with_concat_shape(ctx, held) if held.element_shape is None else held
    assert held.buffer is not None  # its shape is known
    count, *sizes = sizes_of(held.buffer)
    ctx.require(sizes, "elements must have at least one dimension to be put one after the other")
    return xla.reshape(held.buffer, (count * sizes[0], *sizes[1:])), np.full(count, sizes[0], np.int64)


def _with_concat_shape(ctx: XlaOpKernelContext, held: XlaTensorList) -> XlaTensorList:
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
    return held.with_shape(ctx.builder, sizes)
