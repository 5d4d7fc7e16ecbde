"""Stacks, tensor arrays, optionals, dynamic partition and stitch."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import count

import numpy as np

from cyxla.core.framework.kernel_decorators import array_kernel, kernel
from cyxla.core.framework.op_kernel_context import OpKernelContext, as_value
from cyxla.core.framework.resource_mgr import ResourceBase
from cyxla.core.framework.tensor_shape import TensorShape
from cyxla.core.framework.types import DataType
from cyxla.core.framework.variable import Ref
from cyxla.core.kernels.lib.resource_op import legacy_handle, resource_of
from cyxla.core.kernels.lib.tensor_array import Array, TensorArray
from cyxla.core.kernels.lib.tensor_list import zeros
from cyxla.errors import InvalidArgumentError, UnimplementedError
from cyxla.forking import new_lock

_NUMBERS = count()  # numbers that make resource names unique


def _require(cond: object, message: str) -> None:
    if not cond:
        raise InvalidArgumentError(message)


# Stacks


class Stack(ResourceBase):
    """Stack of values of one type."""

    def __init__(self, name: str, dtype: DataType, max_size: int) -> None:
        self.name, self.dtype, self.max_size = name, dtype, max_size
        self.values: list[Array] = []
        self.closed = False
        self._lock = new_lock()

    def push(self, value: Array) -> None:
        """Push a value."""
        with self._lock:
            self._check_open()
            if 0 <= self.max_size <= len(self.values):
                raise InvalidArgumentError(f"the stack {self.name} is full: its max_size is {self.max_size}")
            self.values.append(value)

    def pop(self) -> Array:
        """Pop the last value."""
        with self._lock:
            self._check_open()
            _require(self.values, f"the stack {self.name} is empty, so that nothing can be popped")
            return self.values.pop()

    def finish(self) -> None:
        """Drop all values; later accesses raise."""
        with self._lock:
            self.values, self.closed = [], True

    def _check_open(self) -> None:
        _require(not self.closed, f"the stack {self.name} was closed")


def _new_stack(ctx: OpKernelContext, max_size: int) -> Stack:
    name = f"{ctx.attr('stack_name') or ctx.op_kernel.name}_{next(_NUMBERS)}"
    stack = Stack(name, ctx.attr("elem_type"), max_size)
    ctx.resource_manager.create(ctx.step_container.name, name, stack)
    return stack


@kernel("StackV2")
def stack_v2(ctx: OpKernelContext) -> None:
    """Create a stack and output its handle."""
    size = ctx.input("max_size")
    ctx.require(size.ndim == 0, f"max_size must be a scalar; its shape is {list(size.shape)}")
    stack = _new_stack(ctx, int(size))
    ctx.set_output(0, ctx.make_handle(ctx.step_container.name, stack.name, Stack))


@kernel("Stack")
def stack_v1(ctx: OpKernelContext) -> None:
    """Create a stack and output a reference to its container and name."""
    stack = _new_stack(ctx, -1)
    handle = np.array([ctx.step_container.name.encode(), stack.name.encode()], np.object_)
    ctx.set_output_ref(0, Ref(DataType.DT_STRING, handle, ctx.op_kernel.name))


def _stack(ctx: OpKernelContext) -> Stack:
    if not ctx.input_is_ref(0):
        return ctx.lookup_resource(0, Stack)
    handle = ctx.input(0)
    ctx.require(handle.shape == (2,), f"a stack's handle is two strings, not {list(handle.shape)}")
    container, name = handle.tolist()
    return ctx.resource_manager.lookup(container.decode(), name.decode(), Stack)


@kernel(("StackPush", "StackPushV2"))
def stack_push(ctx: OpKernelContext) -> None:
    """Push the value and forward it."""
    stack, dtype = _stack(ctx), ctx.input_dtype(1)
    ctx.require(stack.dtype == dtype, f"the stack holds {stack.dtype}, but the op is declared for {dtype}")
    stack.push(ctx.input(1))
    ctx.set_output(0, ctx.input(1))


@kernel(("StackPop", "StackPopV2"))
def stack_pop(ctx: OpKernelContext) -> None:
    """Pop a value."""
    stack, dtype = _stack(ctx), ctx.expected_output_dtype(0)
    ctx.require(stack.dtype == dtype, f"the stack holds {stack.dtype}, but the op is declared for {dtype}")
    ctx.set_output(0, stack.pop())


@kernel(("StackClose", "StackCloseV2"))
def stack_close(ctx: OpKernelContext) -> None:
    """Drop the values of a stack."""
    _stack(ctx).finish()


# Tensor arrays


@kernel(("TensorArrayV2", "TensorArrayV3"))
def tensor_array(ctx: OpKernelContext) -> None:
    """Create an array; output its handle, and a flow value that orders operations on it."""
    size = ctx.input("size")
    ctx.require(size.ndim == 0, f"size must be a scalar; its shape is {list(size.shape)}")
    ctx.require(int(size) >= 0, f"size is {int(size)}; an array has 0 elements or more")
    name = f"{ctx.attr('tensor_array_name') or ctx.op_kernel.name}_{next(_NUMBERS)}"
    array = TensorArray(
        name,
        ctx.attr("dtype"),
        int(size),
        ctx.attr("element_shape"),
        identical=ctx.num_outputs > 1 and ctx.attr("identical_element_shapes"),
        dynamic=ctx.attr("dynamic_size"),
        clear_after_read=ctx.attr("clear_after_read"),
    )
    ctx.resource_manager.create(ctx.step_container.name, name, array)
    _set_array_handle(ctx, name)
    if ctx.num_outputs > 1:
        ctx.set_output(1, np.array(0, np.float32))


def _set_array_handle(ctx: OpKernelContext, name: str) -> None:
    container = ctx.step_container.name
    is_resource = ctx.expected_output_dtype(0) == DataType.DT_RESOURCE
    handle = ctx.make_handle(container, name, TensorArray) if is_resource else legacy_handle(container, name)
    ctx.set_output(0, handle)


@kernel(("TensorArrayGradV2", "TensorArrayGradV3", "TensorArrayGradWithShape"))
def tensor_array_grad(ctx: OpKernelContext) -> None:
    """Output the handle of the array of gradients; there is one per source."""
    array, source = resource_of(ctx, TensorArray), ctx.attr("source")
    prefix = None
    if ctx.num_inputs > 2:
        sizes = ctx.input("shape_to_prepend")
        ctx.require(sizes.ndim == 1, f"shape_to_prepend must be a vector; its shape is {list(sizes.shape)}")
        prefix = tuple(sizes.tolist())
    name = f"{array.name}@{source}"
    container = ctx.step_container.name
    ctx.resource_manager.lookup_or_create(container, name, TensorArray, lambda: array.gradient(name, prefix))
    _set_array_handle(ctx, name)
    if ctx.num_outputs > 1:
        ctx.set_output(1, ctx.input("flow_in"))


@contextmanager
def _locked_array(ctx: OpKernelContext) -> Iterator[TensorArray]:
    """Lock the array of the first input and check that it is open."""
    array = resource_of(ctx, TensorArray)
    with array.lock:
        array.check_open()
        yield array


@kernel(("TensorArrayWriteV2", "TensorArrayWriteV3"))
def tensor_array_write(ctx: OpKernelContext) -> None:
    """Write one element."""
    index = _index(ctx)
    with _locked_array(ctx) as array:
        array.check_dtype(ctx.attr("T"), "write")
        array.write(index, ctx.input("value"))
    ctx.set_output(0, ctx.input("flow_in"))


def _index(ctx: OpKernelContext) -> int:
    index = ctx.input("index")
    ctx.require(index.ndim == 0, f"index must be a scalar; its shape is {list(index.shape)}")
    return int(index)


@kernel(("TensorArrayReadV2", "TensorArrayReadV3"))
def tensor_array_read(ctx: OpKernelContext) -> None:
    """Read one element."""
    index = _index(ctx)
    with _locked_array(ctx) as array:
        array.check_dtype(ctx.attr("dtype"), "read")
        ctx.set_output(0, array.read(index))


@kernel(("TensorArraySizeV2", "TensorArraySizeV3"))
def tensor_array_size(ctx: OpKernelContext) -> None:
    """Return the number of elements."""
    with _locked_array(ctx) as array:
        ctx.set_output(0, np.array(len(array), np.int32))


@kernel(("TensorArrayCloseV2", "TensorArrayCloseV3"))
def tensor_array_close(ctx: OpKernelContext) -> None:
    """Drop all elements."""
    resource_of(ctx, TensorArray).close_array()


@kernel(("TensorArrayScatterV2", "TensorArrayScatterV3"))
def tensor_array_scatter(ctx: OpKernelContext) -> None:
    """Write the rows of a value to the elements at the given indices."""
    indices, value = ctx.input("indices"), ctx.input("value")
    _require(indices.ndim == 1, f"indices must be a vector; its shape is {list(indices.shape)}")
    _require(value.ndim, "value is a scalar, which has no rows to scatter")
    _require(
        len(indices) == len(value),
        f"there are {len(indices)} indices for {len(value)} rows of the value",
    )
    with _locked_array(ctx) as array:
        array.check_dtype(ctx.attr("T"), "write")
        largest = max(indices.tolist(), default=-1)
        _require(
            largest < len(array) or array.dynamic,
            f"index {largest} lies outside of the array: it has {len(array)} elements, and their number is fixed",
        )
        for i, index in enumerate(indices.tolist()):
            array.write(index, value[i, ...])
    ctx.set_output(0, ctx.input("flow_in"))


@kernel(("TensorArraySplitV2", "TensorArraySplitV3"))
def tensor_array_split(ctx: OpKernelContext) -> None:
    """Split a value by rows and write the parts to all elements."""
    value, lengths = ctx.input("value"), ctx.input("lengths")
    _require(lengths.ndim == 1, f"lengths must be a vector; its shape is {list(lengths.shape)}")
    _require(value.ndim, "value is a scalar, which has no rows to split")
    sizes = lengths.tolist()
    _require(min(sizes, default=0) >= 0, f"lengths must not be negative: {sizes}")
    _require(
        sum(sizes) == value.shape[0],
        f"the lengths add up to {sum(sizes)}, but the value {list(value.shape)} has {value.shape[0]} rows",
    )
    with _locked_array(ctx) as array:
        array.check_dtype(ctx.attr("T"), "write")
        _require(
            len(array) == len(sizes) or (array.dynamic and len(sizes) > len(array)),
            f"there are {len(sizes)} lengths for {len(array)} elements, and the size of the array is fixed",
        )
        start = 0
        for i, size in enumerate(sizes):
            array.write(i, value[start : start + size])
            start += size
    ctx.set_output(0, ctx.input("flow_in"))


@kernel(("TensorArrayGatherV2", "TensorArrayGatherV3"))
def tensor_array_gather(ctx: OpKernelContext) -> None:
    """Stack the elements at the given indices."""
    indices = ctx.input("indices")
    _require(indices.ndim == 1, f"indices must be a vector; its shape is {list(indices.shape)}")
    with _locked_array(ctx) as array:
        array.check_dtype(ctx.attr("dtype"), "read")
        array.narrow(ctx.attr("element_shape"))
        if not indices.size:
            ctx.set_output(0, _empty_result(array, array.element_shape, "element shape"))
            return
        values = [array.read(index) for index in indices.tolist()]
    _check_equal_shapes(values, 0)
    ctx.set_output(0, np.stack(values))


@kernel(("TensorArrayConcatV2", "TensorArrayConcatV3"))
def tensor_array_concat(ctx: OpKernelContext) -> None:
    """Concatenate all elements, and return their lengths."""
    with _locked_array(ctx) as array:
        array.check_dtype(ctx.attr("dtype"), "read")
        rest: TensorShape = ctx.attr("element_shape_except0")
        if not len(array):
            ctx.set_output(0, _empty_result(array, rest, "element_shape_except0"))
            ctx.set_output(1, np.zeros(0, np.int64))
            return
        values = [array.read(index) for index in range(len(array))]
    for i, value in enumerate(values):
        _require(value.ndim, f"element {i} is a scalar: only elements with a first dimension can be joined")
        _require(
            rest.is_compatible_with(TensorShape(value.shape[1:])),
            f"element {i} has the shape {list(value.shape)}, but element_shape_except0 is {rest}",
        )
    _check_equal_shapes(values, 1)
    ctx.set_output(0, np.concatenate(values))
    ctx.set_output(1, np.array([len(value) for value in values], np.int64))


def _empty_result(array: TensorArray, shape: TensorShape, op_name: str) -> Array:
    if not shape.is_fully_defined:
        raise UnimplementedError(
            f"tensor array {array.name} has no elements to tell their shape, and {op_name} is {shape}",
            hint=f"give the full {op_name}",
        )
    return zeros([0, *shape.as_list()], array.dtype)


def _check_equal_shapes(values: Sequence[Array], skipped: int) -> None:
    for i, value in enumerate(values):
        _require(
            value.shape[skipped:] == values[0].shape[skipped:],
            f"element {i} has the shape {list(value.shape)}, element 0 {list(values[0].shape)}",
        )


# Optionals


class Optional:
    """Tuple of values, or nothing."""

    __slots__ = ("values",)

    def __init__(self, values: tuple[Array, ...] | None) -> None:
        self.values = values


@array_kernel("OptionalFromValue")
def optional_from_value(components: list[Array]) -> Array:
    """Wrap values in an optional."""
    return as_value(Optional(tuple(components)))


@array_kernel("OptionalNone")
def optional_none() -> Array:
    """Make an optional without values."""
    return as_value(Optional(None))


def _optional(handle: Array) -> Optional:
    value = handle.item() if handle.ndim == 0 else None
    if not isinstance(value, Optional):
        raise InvalidArgumentError("the input is not an optional, as OptionalFromValue returns")
    return value


@array_kernel("OptionalHasValue")
def optional_has_value(handle: Array) -> Array:
    """Return whether an optional has values."""
    return np.array(_optional(handle).values is not None)


@array_kernel("OptionalGetValue", attrs=("output_types", "output_shapes"))
def optional_get_value(
    handle: Array, *, output_types: tuple[DataType, ...], output_shapes: tuple[TensorShape, ...]
) -> list[Array]:
    """Return the values of an optional."""
    values = _optional(handle).values
    if values is None:
        raise InvalidArgumentError("the optional has no value")
    _require(
        len(values) == len(output_types), f"{len(output_types)} values were requested, but there are {len(values)}"
    )
    for i, (value, dtype, shape) in enumerate(zip(values, output_types, output_shapes, strict=False)):
        _require(value.dtype == dtype.numpy, f"component {i} is {value.dtype}, not {dtype}")
        _require(
            shape.is_compatible_with(TensorShape(value.shape)),
            f"component {i} has the shape {list(value.shape)}, not {shape}",
        )
    return list(values)


# Partition and stitch


@array_kernel("DynamicPartition", attrs=("num_partitions",))
def dynamic_partition(data: Array, partitions: Array, *, num_partitions: int) -> list[Array]:
    """Split the slices of data by the number of their partition."""
    _require(
        data.shape[: partitions.ndim] == partitions.shape,
        f"data {list(data.shape)} must begin with the dimensions of partitions {list(partitions.shape)}",
    )
    bad = (partitions < 0) | (partitions >= num_partitions)
    if bad.any():
        coordinates = tuple(int(i) for i in np.argwhere(bad)[0])
        index_text = f"[{','.join(map(str, coordinates))}]" if coordinates else ""
        raise InvalidArgumentError(
            f"partitions{index_text} = {int(partitions[coordinates])} lies outside of [0, {num_partitions})"
        )
    return [data[partitions == i] for i in range(num_partitions)]


@array_kernel(("DynamicStitch", "ParallelDynamicStitch"))
def dynamic_stitch(indices: list[Array], data: list[Array]) -> Array:
    """Merge rows of several arrays into one by index; the last of equal indices wins."""
    rest = data[0].shape[indices[0].ndim :]
    for i, (positions, values) in enumerate(zip(indices, data, strict=True)):
        _check_stitch(i, positions, values, rest)
    size = max((int(positions.max()) for positions in indices if positions.size), default=-1) + 1
    smallest = min((int(positions.min()) for positions in indices if positions.size), default=0)
    _require(smallest >= 0, f"indices must not be negative, but {smallest} is among them")
    merged = np.full((size, *rest), b"" if data[0].dtype.hasobject else 0, data[0].dtype)
    for positions, values in zip(indices, data, strict=True):
        merged[positions] = values
    return merged


def _check_stitch(i: int, positions: Array, values: Array, rest: tuple[int, ...]) -> None:
    _require(
        values.shape[: positions.ndim] == positions.shape,
        f"data[{i}].shape = {list(values.shape)} does not start with indices[{i}].shape = {list(positions.shape)}",
    )
    _require(
        values.shape[positions.ndim :] == rest,
        f"after the dimensions of their indices, data[0] has {list(rest)}, but data[{i}] "
        f"{list(values.shape[positions.ndim :])}",
    )
