"""Tensor lists."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from cyxla.core.framework.geometry.shape_operands import shape_from, shape_to
from cyxla.core.framework.kernel_decorators import array_kernel
from cyxla.core.framework.op_kernel_context import as_value
from cyxla.core.framework.tensor_shape import UNKNOWN, TensorShape
from cyxla.core.framework.types import DataType
from cyxla.core.kernels.lib.tensor_list import (
    Array,
    Item,
    TensorList,
    as_handle,
    element_shape,
    unwrap_list,
    unwrap_typed_list,
    zeros,
)
from cyxla.core.kernels.lib.tensor_map import TensorMap, unwrap_map
from cyxla.errors import InvalidArgumentError

_UNSET = "the element was not set, and zeros cannot be created because its shape is unknown"


def _require(cond: object, message: str) -> None:
    if not cond:
        raise InvalidArgumentError(message)


def _scalar(value: Array, name: str) -> int:
    _require(value.ndim == 0, f"{name} must be a scalar; its shape is {list(value.shape)}")
    return int(value)


def _single_number(value: Array, name: str) -> int:
    _require(value.size == 1, f"{name} must be one number; its shape is {list(value.shape)}")
    return int(value.flat[0])


# Construction of lists


@array_kernel("EmptyTensorList", attrs=("element_dtype",))
def empty_tensor_list(shape: Array, max_num_elements: Array, *, element_dtype: DataType) -> Array:
    """Make an empty list."""
    return as_handle(TensorList(element_dtype, shape_from(shape), (), _scalar(max_num_elements, "max_num_elements")))


@array_kernel("TensorListReserve", attrs=("element_dtype",))
def reserve(shape: Array, num_elements: Array, *, element_dtype: DataType) -> Array:
    """Make a list of elements that are not set."""
    count = _single_number(num_elements, "num_elements")
    _require(count >= 0, f"num_elements is {count}; a list has 0 elements or more")
    return as_handle(TensorList(element_dtype, shape_from(shape), [None] * count))


@array_kernel("TensorListFromTensor", attrs=("element_dtype",))
def from_tensor(tensor: Array, shape: Array, *, element_dtype: DataType) -> Array:
    """Make a list of the rows of a tensor."""
    _require(tensor.ndim, "the tensor is a scalar, which has no rows to split into elements")
    expected = shape_from(shape)
    _check_rows(tensor, expected)
    return as_handle(TensorList(element_dtype, expected, _rows(tensor)))


def _rows(tensor: Array) -> list[Item]:
    return [tensor[i, ...] for i in range(tensor.shape[0])]


def _check_rows(tensor: Array, expected: TensorShape) -> None:
    _require(
        expected.is_compatible_with(TensorShape(tensor.shape[1:])),
        f"rows of the tensor are {list(tensor.shape[1:])}, but element_shape is {expected}",
    )


@array_kernel("TensorListSplit", attrs=("element_dtype",))
def split(tensor: Array, shape: Array, lengths: Array, *, element_dtype: DataType) -> Array:
    """Make a list of consecutive slices of a tensor."""
    expected = shape_from(shape)
    _require(tensor.ndim, "the tensor is a scalar, which has no rows to split into elements")
    _require(lengths.ndim == 1, f"lengths must be a vector; its shape is {list(lengths.shape)}")
    if expected.dims is not None:
        _require(expected.rank, "element_shape is that of scalars, but pieces have a first dimension")
    rest = expected[1:]
    _require(
        rest.is_compatible_with(TensorShape(tensor.shape[1:])),
        f"pieces of a tensor {list(tensor.shape)} do not have the element_shape {expected}",
    )
    return as_handle(TensorList(element_dtype, expected, _split_items(tensor, lengths.tolist())))


def _split_items(tensor: Array, lengths: Sequence[int]) -> list[Item]:
    pieces: list[Item] = []
    start = 0
    for length in lengths:
        _require(length >= 0, f"one of the lengths is {length}; a piece has 0 rows or more")
        end = start + length
        _require(
            end <= tensor.shape[0],
            f"the lengths reach row {end}, but the tensor has {tensor.shape[0]} rows",
        )
        pieces.append(tensor[start:end])
        start = end
    _require(
        start == tensor.shape[0],
        f"the lengths add up to {start}, but the tensor has {tensor.shape[0]} rows",
    )
    return pieces


@array_kernel("TensorListScatter", attrs=("element_dtype",))
def scatter(tensor: Array, indices: Array, shape: Array, *, element_dtype: DataType) -> Array:
    """Make a list with the rows of a tensor at the given indices."""
    return _scatter(TensorList(element_dtype, shape_from(shape)), tensor, indices, -1)


@array_kernel("TensorListScatterV2", attrs=("element_dtype",))
def scatter_v2(tensor: Array, indices: Array, shape: Array, num_elements: Array, *, element_dtype: DataType) -> Array:
    """Make a list as `scatter` does, with a minimum length."""
    count = _scalar(num_elements, "num_elements")
    _require(count >= -1, f"num_elements is {count}; give 0 or more, or -1 for as many as the indices need")
    return _scatter(TensorList(element_dtype, shape_from(shape)), tensor, indices, count)


@array_kernel("TensorListScatterIntoExistingList", attrs=("element_dtype",))
def scatter_into_existing(handle: Array, tensor: Array, indices: Array, *, element_dtype: DataType) -> Array:
    """Set the elements at the given indices to the rows of a tensor."""
    return _scatter(unwrap_typed_list(handle, element_dtype), tensor, indices, -1)


def _scatter(tensors: TensorList, tensor: Array, indices: Array, count: int) -> Array:
    _require(tensor.ndim, "the tensor is a scalar, which has no rows to split into elements")
    _require(indices.ndim == 1, f"indices must be a vector; its shape is {list(indices.shape)}")
    _check_rows(tensor, tensors.element_shape)
    _require(
        tensor.shape[0] == indices.shape[0],
        f"there are {indices.shape[0]} indices for {tensor.shape[0]} rows of the tensor",
    )
    positions = indices.tolist()
    _require(min(positions, default=0) >= 0, f"indices must not be negative: {positions}")
    largest = max(positions, default=-1)
    _require(
        count == -1 or largest < count,
        f"index {largest} lies outside of a list of num_elements={count}",
    )
    items = tensors.resized(max(tensors.size, largest + 1, count)).items
    for position, row in zip(positions, _rows(tensor), strict=True):
        items[position] = row
    return as_handle(tensors.with_items(items))


# Lists from lists


@array_kernel("TensorListPushBack", attrs=("element_dtype",))
def push_back(handle: Array, tensor: Array, *, element_dtype: DataType) -> Array:
    """Append an element."""
    return as_handle(_push(unwrap_typed_list(handle, element_dtype), tensor))


def _push(tensors: TensorList, tensor: Array) -> TensorList:
    _require(
        tensors.element_shape.is_compatible_with(TensorShape(tensor.shape)),
        f"a tensor {list(tensor.shape)} does not fit a list of elements {tensors.element_shape}",
    )
    limit = tensors.max_num_elements
    _require(
        limit == -1 or tensors.size < limit,
        f"the list is full: it has {tensors.size} elements of at most {limit} (max_num_elements)",
    )
    return tensors.push(tensor)


@array_kernel("TensorListPushBackBatch", attrs=("element_dtype",))
def push_back_batch(handles: Array, tensor: Array, *, element_dtype: DataType) -> Array:
    """Append one element to each list."""
    _require(
        tensor.ndim >= handles.ndim, f"a tensor {list(tensor.shape)} does not match {handles.ndim} dimensions of lists"
    )
    _require(
        tensor.shape[: handles.ndim] == handles.shape,
        f"the first dimensions of tensor {list(tensor.shape)} must be those of input_handles {list(handles.shape)}",
    )
    results = np.empty(handles.shape, np.object_)
    for position in np.ndindex(handles.shape):
        results[position] = _push(unwrap_typed_list(handles[(*position, ...)], element_dtype), tensor[(*position, ...)])
    return results


@array_kernel("TensorListPopBack", attrs=("element_dtype",))
def pop_back(handle: Array, shape: Array, *, element_dtype: DataType) -> tuple[Array, Array]:
    """Return the list without its last element, and that element."""
    tensors = unwrap_typed_list(handle, element_dtype)
    _require(tensors.size, "the list is empty, so that nothing can be popped")
    item = _read_item(tensors, tensors.size - 1, shape, ())  # the shapes of other elements are not used here
    return as_handle(tensors.pop()), item


def _read_item(tensors: TensorList, index: int, shape: Array, other_items: Sequence[Item]) -> Array:
    item = tensors.at(index)
    if item is not None:
        return item
    return zeros(element_shape(tensors, shape_from(shape), other_items, _UNSET), tensors.dtype)


@array_kernel("TensorListResize")
def resize(handle: Array, size: Array) -> Array:
    """Truncate the list, or extend it by elements that are not set."""
    count = _scalar(size, "size")
    _require(count >= 0, f"size is {count}; a list has 0 elements or more")
    return as_handle(unwrap_list(handle).resized(count))


@array_kernel("TensorListSetItem", attrs=("element_dtype", "resize_if_index_out_of_bounds"))
def set_item(
    handle: Array, index: Array, item: Array, *, element_dtype: DataType, resize_if_index_out_of_bounds: bool
) -> Array:
    """Replace the element at an index."""
    tensors, position = unwrap_typed_list(handle, element_dtype), _scalar(index, "index")
    if resize_if_index_out_of_bounds and position >= tensors.size:
        tensors = tensors.resized(position + 1)
    _require(0 <= position < tensors.size, f"element {position} cannot be set: the list has {tensors.size} elements")
    _require(
        tensors.element_shape.is_compatible_with(TensorShape(item.shape)),
        f"an item {list(item.shape)} does not fit a list of elements {tensors.element_shape}",
    )
    items = tensors.items
    items[position] = item
    return as_handle(tensors.with_items(items))


@array_kernel("TensorListConcatLists", attrs=("element_dtype",))
def concat_lists(first: Array, second: Array, *, element_dtype: DataType) -> Array:
    """Concatenate lists pairwise."""
    _require(
        first.shape == second.shape,
        f"input_a {list(first.shape)} and input_b {list(second.shape)} must have one shape",
    )
    results = np.empty(first.shape, np.object_)
    for position in np.ndindex(first.shape):
        a, b = (unwrap_typed_list(handles[(*position, ...)], element_dtype) for handles in (first, second))
        results[position] = _concatenate(a, b)
    return results


def _concatenate(a: TensorList, b: TensorList) -> TensorList:
    shape = a.element_shape.merge_with(b.element_shape)
    return TensorList(a.dtype, shape, [*a.items, *b.items])


# Sums and zeros of lists, for gradients of loops

_LISTS = {"T": DataType.DT_VARIANT}


@array_kernel("AddN", types=_LISTS)
def add_n(inputs: list[Array]) -> Array:
    """Add lists element by element, or maps key by key."""
    unwrap: Callable[[Array], Any] = unwrap_map if _is_map(inputs[0]) else unwrap_list
    total = unwrap(inputs[0])
    for other in inputs[1:]:
        total = total.add(unwrap(other))
    return as_value(total)


def _is_map(handle: Array) -> bool:
    return handle.size == 1 and isinstance(handle.item(), TensorMap)


@array_kernel("ZerosLike", types=_LISTS)
def zeros_like(handles: Array) -> Array:
    """Make lists and maps of zeros."""
    results = np.empty(handles.shape, np.object_)
    for position in np.ndindex(handles.shape):
        handle = handles[(*position, ...)]
        results[position] = (unwrap_map(handle) if _is_map(handle) else unwrap_list(handle)).zeros_like()
    return results


# Queries


@array_kernel("TensorListLength")
def length(handle: Array) -> Array:
    """Return the number of elements."""
    return np.array(unwrap_list(handle).size, np.int32)


@array_kernel("TensorListElementShape", attrs=("shape_type",))
def shape_of_elements(handle: Array, *, shape_type: DataType) -> Array:
    """Return the known part of the elements' shapes."""
    return shape_to(unwrap_list(handle).element_shape, shape_type.numpy)


@array_kernel("TensorListGetItem", attrs=("element_dtype",))
def get_item(handle: Array, index: Array, shape: Array, *, element_dtype: DataType) -> Array:
    """Return the element at an index; zeros if it is not set."""
    tensors, position = unwrap_typed_list(handle, element_dtype), _scalar(index, "index")
    _require(0 <= position < tensors.size, f"index {position} is out of range for a list of {tensors.size} elements")
    return _read_item(tensors, position, shape, tensors.items)


@array_kernel("TensorListStack", attrs=("element_dtype", "num_elements"))
def stack(handle: Array, shape: Array, *, element_dtype: DataType, num_elements: int) -> Array:
    """Stack all elements."""
    tensors, given_shape = unwrap_typed_list(handle, element_dtype), shape_from(shape)
    merged = tensors.element_shape.merge_with(given_shape)
    _require(
        tensors.size or merged.is_fully_defined,
        f"an empty list can be stacked only if the shape of its elements is known; it is {merged}",
    )
    _require(
        num_elements in (-1, tensors.size),
        f"num_elements is {num_elements}, but the list has {tensors.size} elements",
    )
    unknown_reason = "no element was set, and zeros cannot be created because the shape of elements is unknown"
    return _stack(tensors, tensors.items, given_shape, unknown_reason)


def _stack(tensors: TensorList, items: Sequence[Item], given_shape: TensorShape, unknown_reason: str) -> Array:
    shape = element_shape(tensors, given_shape, items, unknown_reason)
    result = zeros([len(items), *shape], tensors.dtype)
    for i, item in enumerate(items):
        if item is not None:
            _require(
                list(item.shape) == shape,
                f"element {i} has the shape {list(item.shape)}, but all must have the shape {shape}",
            )
            result[i] = item
    return result


@array_kernel("TensorListGather", attrs=("element_dtype",))
def gather(handle: Array, indices: Array, shape: Array, *, element_dtype: DataType) -> Array:
    """Stack the elements at the given indices."""
    tensors, given_shape = unwrap_typed_list(handle, element_dtype), shape_from(shape)
    merged = tensors.element_shape.merge_with(given_shape)
    _require(
        indices.size or merged.is_fully_defined,
        f"an empty gather needs a known shape of elements; it is {merged}",
    )
    positions = indices.reshape(-1).tolist()
    for position in positions:
        _require(
            0 <= position < tensors.size,
            f"index {position} lies outside of the list, which has {tensors.size} elements",
        )
    unknown_reason = "no gathered element was set, and zeros cannot be created because the shape of elements is unknown"
    return _stack(tensors, [tensors.at(position) for position in positions], given_shape, unknown_reason)


@array_kernel("TensorListConcat", attrs=("element_dtype", "element_shape"))
def concat(handle: Array, *, element_dtype: DataType, element_shape: TensorShape) -> tuple[Array, Array]:
    """Concatenate all elements along their first dimension, and return their lengths."""
    return _concat(unwrap_typed_list(handle, element_dtype), element_shape, [])


@array_kernel("TensorListConcatV2", attrs=("element_dtype",))
def concat_v2(handle: Array, shape: Array, leading_dims: Array, *, element_dtype: DataType) -> tuple[Array, Array]:
    """Concatenate as `concat` does; `leading_dims` are the lengths of elements that are not set."""
    return _concat(unwrap_typed_list(handle, element_dtype), shape_from(shape), leading_dims.reshape(-1).tolist())


def _concat(tensors: TensorList, given_shape: TensorShape, leading: Sequence[int]) -> tuple[Array, Array]:
    items = tensors.items
    shape = tensors.element_shape.merge_with(given_shape)
    _require(shape.rank != 0, "elements are scalars: only elements with a first dimension can be joined")
    for item in items:
        if item is not None:
            _require(item.ndim, "an element is a scalar: only elements with a first dimension can be joined")
            rest = shape[1:].merge_with(TensorShape(item.shape[1:]))
            shape = TensorShape([shape[0], *rest]) if rest.dims is not None else UNKNOWN
    rest = shape[1:] if shape.dims is not None else UNKNOWN
    _require(
        rest.is_fully_defined,
        "All except the first dimension must be fully defined when concating an empty tensor list. "
        f"element_shape: {shape}",
    )
    first = _first_size(items, shape)
    filled = [
        item if item is not None else zeros([_length(i, first, leading), *rest.as_list()], tensors.dtype)
        for i, item in enumerate(items)
    ]
    lengths = np.array([len(item) for item in filled], np.int64)
    if not filled:
        return zeros([0, *rest.as_list()], tensors.dtype), lengths
    return np.concatenate(filled), lengths


def _first_size(items: Sequence[Item], shape: TensorShape) -> int | None:
    """Return the length of elements that are not set: the declared one, or the common length of the others."""
    sizes = [item.shape[0] for item in items if item is not None]
    for size in sizes:
        _require(shape[0] in (None, size), f"the first dimension of an element is {size}, but element_shape is {shape}")
    if shape[0] is not None:
        return shape[0]
    return sizes[0] if len(set(sizes)) == 1 else None


def _length(i: int, first: int | None, leading: Sequence[int]) -> int:
    """Return the length of an element that is not set: its own in `leading`, else the common one."""
    if i >= len(leading) and first is not None:
        return first
    _require(
        i < len(leading),
        f"element {i} was never set, and leading_dims has {len(leading)} numbers only",
    )
    _require(leading[i] >= 0, f"leading_dims has the negative size {leading[i]}")
    return leading[i]
