"""Lists of tensors."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from cyxla.core.framework.op_kernel import array_kernel
from cyxla.core.framework.tensor_shape import UNKNOWN, TensorShape
from cyxla.core.framework.types import DataType
from cyxla.core.kernels.tensor_list import (
    Array,
    Item,
    TensorList,
    as_handle,
    element_shape,
    list_in,
    list_of,
    shape_from,
    shape_to,
    zeros,
)
from cyxla.errors import InvalidArgumentError

_UNSET = "Trying to read an uninitialized element but element_shape is not fully defined"


def _require(cond: object, message: str) -> None:
    if not cond:
        raise InvalidArgumentError(message)


def _scalar(value: Array, name: str) -> int:
    _require(value.ndim == 0, f"{name} expected to be a scalar but got shape: {list(value.shape)}")
    return int(value)


def _one(value: Array, name: str) -> int:
    _require(value.size == 1, f"The {name} must be a tensor size 1, but got {list(value.shape)}")
    return int(value.flat[0])


# Making lists


@array_kernel("EmptyTensorList", attrs=("element_dtype",))
def empty_tensor_list(shape: Array, max_num_elements: Array, *, element_dtype: DataType) -> Array:
    """A list of nothing."""
    return as_handle(TensorList(element_dtype, shape_from(shape), (), _scalar(max_num_elements, "max_num_elements")))


@array_kernel("TensorListReserve", attrs=("element_dtype",))
def reserve(shape: Array, num_elements: Array, *, element_dtype: DataType) -> Array:
    """A list of elements that are not set."""
    count = _one(num_elements, "num_elements to reserve")
    _require(count >= 0, f"The num_elements to reserve must be a non negative number, but got {count}")
    return as_handle(TensorList(element_dtype, shape_from(shape), [None] * count))


@array_kernel("TensorListFromTensor", attrs=("element_dtype",))
def from_tensor(tensor: Array, shape: Array, *, element_dtype: DataType) -> Array:
    """A list of the rows of a tensor."""
    _require(tensor.ndim, f"Tensor must be at least a vector, but saw shape: {list(tensor.shape)}")
    expected = shape_from(shape)
    _check_rows(tensor, expected)
    return as_handle(TensorList(element_dtype, expected, _rows(tensor)))


def _rows(tensor: Array) -> list[Item]:
    return [tensor[i, ...] for i in range(tensor.shape[0])]


def _check_rows(tensor: Array, expected: TensorShape) -> None:
    _require(
        expected.is_compatible_with(TensorShape(tensor.shape[1:])),
        f"Specified a list with shape {expected} from a tensor with shape {list(tensor.shape[1:])}",
    )


@array_kernel("TensorListSplit", attrs=("element_dtype",))
def split(tensor: Array, shape: Array, lengths: Array, *, element_dtype: DataType) -> Array:
    """A list of pieces of a tensor."""
    expected = shape_from(shape)
    _require(tensor.ndim, f"Tensor must be at least a vector, but saw shape: {list(tensor.shape)}")
    _require(lengths.ndim == 1, f"Expected lengths to be a vector, received shape: {list(lengths.shape)}")
    if expected.dims is not None:
        _require(expected.rank, "TensorListSplit requires element_shape to be at least of rank 1, but saw: []")
    rest = expected[1:]
    _require(
        rest.is_compatible_with(TensorShape(tensor.shape[1:])),
        f"tensor shape {list(tensor.shape)} is not compatible with element_shape {expected}",
    )
    return as_handle(TensorList(element_dtype, expected, _pieces(tensor, lengths.tolist())))


def _pieces(tensor: Array, lengths: Sequence[int]) -> list[Item]:
    pieces: list[Item] = []
    start = 0
    for length in lengths:
        _require(length >= 0, f"Invalid value in lengths: {length}")
        end = start + length
        _require(
            end <= tensor.shape[0],
            f"Attempting to slice [{start}, {end}] from tensor with length {tensor.shape[0]}",
        )
        pieces.append(tensor[start:end])
        start = end
    _require(
        start == tensor.shape[0],
        f"Unused values in tensor. Length of tensor: {tensor.shape[0]} Values used: {start}",
    )
    return pieces


@array_kernel("TensorListScatter", attrs=("element_dtype",))
def scatter(tensor: Array, indices: Array, shape: Array, *, element_dtype: DataType) -> Array:
    """A list with the rows of a tensor at the given places."""
    return _scatter(TensorList(element_dtype, shape_from(shape)), tensor, indices, -1)


@array_kernel("TensorListScatterV2", attrs=("element_dtype",))
def scatter_v2(tensor: Array, indices: Array, shape: Array, num_elements: Array, *, element_dtype: DataType) -> Array:
    """As `scatter`, with a least length."""
    count = _scalar(num_elements, "num_elements")
    _require(count >= -1, f"TensorListScatter expects num_elements >= -1, found: {count}")
    return _scatter(TensorList(element_dtype, shape_from(shape)), tensor, indices, count)


@array_kernel("TensorListScatterIntoExistingList", attrs=("element_dtype",))
def scatter_into_existing(handle: Array, tensor: Array, indices: Array, *, element_dtype: DataType) -> Array:
    """The list with the rows of a tensor at the given places."""
    return _scatter(list_of(handle, element_dtype), tensor, indices, -1)


def _scatter(tensors: TensorList, tensor: Array, indices: Array, count: int) -> Array:
    _require(tensor.ndim, f"Tensor must be at least a vector, but saw shape: {list(tensor.shape)}")
    _require(indices.ndim == 1, f"indices must be a vector, but saw shape: {list(indices.shape)}")
    _check_rows(tensor, tensors.element_shape)
    _require(
        tensor.shape[0] == indices.shape[0],
        f"Invalid number of rows in input tensor. Expected: {indices.shape[0]} Actual: {tensor.shape[0]}",
    )
    places = indices.tolist()
    _require(min(places, default=0) >= 0, "Indices in TensorListScatter must all be non-negative.")
    largest = max(places, default=-1)
    _require(
        count == -1 or largest < count,
        f"TensorListScatter: Trying to scatter at index {largest} in list with size {count}",
    )
    items = tensors.resized(max(tensors.size, largest + 1, count)).items
    for place, row in zip(places, _rows(tensor), strict=True):
        items[place] = row
    return as_handle(tensors.with_items(items))


# Lists from lists


@array_kernel("TensorListPushBack", attrs=("element_dtype",))
def push_back(handle: Array, tensor: Array, *, element_dtype: DataType) -> Array:
    """The list with one element more."""
    return as_handle(_pushed(list_of(handle, element_dtype), tensor))


def _pushed(tensors: TensorList, tensor: Array) -> TensorList:
    _require(
        tensors.element_shape.is_compatible_with(TensorShape(tensor.shape)),
        "Tried to append a tensor with incompatible shape to a list. "
        f"Op element shape: {list(tensor.shape)} list shape: {tensors.element_shape}",
    )
    limit = tensors.max_num_elements
    _require(
        limit == -1 or tensors.size < limit,
        f"Tried to push item into a full list. list size: {tensors.size} max_num_elements: {limit}",
    )
    return tensors.push(tensor)


@array_kernel("TensorListPushBackBatch", attrs=("element_dtype",))
def push_back_batch(handles: Array, tensor: Array, *, element_dtype: DataType) -> Array:
    """Lists with one element more each."""
    _require(tensor.ndim >= handles.ndim, f"tensor must be at least rank {handles.ndim}, but saw {list(tensor.shape)}")
    _require(
        tensor.shape[: handles.ndim] == handles.shape,
        f"the first dimensions of tensor {list(tensor.shape)} must be those of input_handles {list(handles.shape)}",
    )
    results = np.empty(handles.shape, np.object_)
    for place in np.ndindex(handles.shape):
        results[place] = _pushed(list_of(handles[(*place, ...)], element_dtype), tensor[(*place, ...)])
    return results


@array_kernel("TensorListPopBack", attrs=("element_dtype",))
def pop_back(handle: Array, shape: Array, *, element_dtype: DataType) -> tuple[Array, Array]:
    """The list without its last element, and that element."""
    tensors = list_of(handle, element_dtype)
    _require(tensors.size, "Trying to pop from an empty list.")
    item = _read(tensors, tensors.size - 1, shape, ())  # here other elements tell nothing of the shape
    return as_handle(tensors.pop()), item


def _read(tensors: TensorList, index: int, shape: Array, others: Sequence[Item]) -> Array:
    item = tensors.at(index)
    if item is not None:
        return item
    return zeros(element_shape(tensors, shape_from(shape), others, _UNSET), tensors.dtype)


@array_kernel("TensorListResize")
def resize(handle: Array, size: Array) -> Array:
    """The list cut or filled up."""
    count = _scalar(size, "size")
    _require(count >= 0, f"TensorListSlice expects size to be non-negative. Got: {count}")
    return as_handle(list_in(handle).resized(count))


@array_kernel("TensorListSetItem", attrs=("element_dtype", "resize_if_index_out_of_bounds"))
def set_item(
    handle: Array, index: Array, item: Array, *, element_dtype: DataType, resize_if_index_out_of_bounds: bool
) -> Array:
    """The list with another element at a place."""
    tensors, place = list_of(handle, element_dtype), _scalar(index, "index")
    if resize_if_index_out_of_bounds and place >= tensors.size:
        tensors = tensors.resized(place + 1)
    _require(0 <= place < tensors.size, f"Trying to modify element {place} in a list with {tensors.size} elements.")
    _require(
        tensors.element_shape.is_compatible_with(TensorShape(item.shape)),
        "Tried to set a tensor with incompatible shape at a list index. "
        f"Item element shape: {list(item.shape)} list shape: {tensors.element_shape}",
    )
    items = tensors.items
    items[place] = item
    return as_handle(tensors.with_items(items))


@array_kernel("TensorListConcatLists", attrs=("element_dtype",))
def concat_lists(first: Array, second: Array, *, element_dtype: DataType) -> Array:
    """Lists with the elements of one and then of another."""
    _require(
        first.shape == second.shape,
        f"input_a.shape must be input_b.shape, but saw {list(first.shape)} vs. {list(second.shape)}",
    )
    results = np.empty(first.shape, np.object_)
    for place in np.ndindex(first.shape):
        a, b = (list_of(handles[(*place, ...)], element_dtype) for handles in (first, second))
        results[place] = _joined(a, b)
    return results


def _joined(a: TensorList, b: TensorList) -> TensorList:
    shape = a.element_shape.merge_with(b.element_shape)
    return TensorList(a.dtype, shape, [*a.items, *b.items])


# Sums and zeros of lists, for gradients of loops

_LISTS = {"T": DataType.DT_VARIANT}


@array_kernel("AddN", types=_LISTS)
def add_n(inputs: list[Array]) -> Array:
    """The sums of elements, list by list."""
    total = list_in(inputs[0])
    for other in inputs[1:]:
        total = total.add(list_in(other))
    return as_handle(total)


@array_kernel("ZerosLike", types=_LISTS)
def zeros_like(handles: Array) -> Array:
    """Lists of zeros."""
    results = np.empty(handles.shape, np.object_)
    for place in np.ndindex(handles.shape):
        results[place] = list_in(handles[(*place, ...)]).zeros_like()
    return results


# What lists tell


@array_kernel("TensorListLength")
def length(handle: Array) -> Array:
    """The number of elements."""
    return np.array(list_in(handle).size, np.int32)


@array_kernel("TensorListElementShape", attrs=("shape_type",))
def shape_of_elements(handle: Array, *, shape_type: DataType) -> Array:
    """What is known of the shapes of elements."""
    return shape_to(list_in(handle).element_shape, shape_type.numpy)


@array_kernel("TensorListGetItem", attrs=("element_dtype",))
def get_item(handle: Array, index: Array, shape: Array, *, element_dtype: DataType) -> Array:
    """The element at a place; zeros if it was not set."""
    tensors, place = list_of(handle, element_dtype), _scalar(index, "index")
    _require(0 <= place < tensors.size, f"Trying to access element {place} in a list with {tensors.size} elements.")
    return _read(tensors, place, shape, tensors.items)


@array_kernel("TensorListStack", attrs=("element_dtype", "num_elements"))
def stack(handle: Array, shape: Array, *, element_dtype: DataType, num_elements: int) -> Array:
    """All elements as rows of one tensor."""
    tensors, given = list_of(handle, element_dtype), shape_from(shape)
    merged = tensors.element_shape.merge_with(given)
    _require(
        tensors.size or merged.is_fully_defined,
        f"Tried to stack elements of an empty list with non-fully-defined element_shape: {merged}",
    )
    _require(
        num_elements in (-1, tensors.size),
        f"Operation expected a list with {num_elements} elements but got a list with {tensors.size} elements.",
    )
    why = "Tried to stack list which only contains uninitialized tensors and has a non-fully-defined element_shape"
    return _stacked(tensors, tensors.items, given, why)


def _stacked(tensors: TensorList, items: Sequence[Item], given: TensorShape, why: str) -> Array:
    shape = element_shape(tensors, given, items, why)
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
    """The elements at the given places as rows of one tensor."""
    tensors, given = list_of(handle, element_dtype), shape_from(shape)
    merged = tensors.element_shape.merge_with(given)
    _require(
        indices.size or merged.is_fully_defined,
        f"Tried to gather 0-elements from a list with non-fully-defined shape: {merged}",
    )
    places = indices.reshape(-1).tolist()
    for place in places:
        _require(0 <= place < tensors.size, f"Index {place} out o range; list only has {tensors.size} elements.")
    why = "Tried to gather uninitialized tensors from a list with non-fully-defined element_shape"
    return _stacked(tensors, [tensors.at(place) for place in places], given, why)


@array_kernel("TensorListConcat", attrs=("element_dtype", "element_shape"))
def concat(handle: Array, *, element_dtype: DataType, element_shape: TensorShape) -> tuple[Array, Array]:
    """All elements one after the other along their first dimension, and their lengths."""
    return _concat(list_of(handle, element_dtype), element_shape, [])


@array_kernel("TensorListConcatV2", attrs=("element_dtype",))
def concat_v2(handle: Array, shape: Array, leading_dims: Array, *, element_dtype: DataType) -> tuple[Array, Array]:
    """As `concat`; `leading_dims` are the lengths of elements that were not set."""
    return _concat(list_of(handle, element_dtype), shape_from(shape), leading_dims.reshape(-1).tolist())


def _concat(tensors: TensorList, given: TensorShape, leading: Sequence[int]) -> tuple[Array, Array]:
    items = tensors.items
    shape = tensors.element_shape.merge_with(given)
    _require(shape.rank != 0, "Concat requires elements to be at least vectors, found scalars instead.")
    for item in items:
        if item is not None:
            _require(item.ndim, "Concat saw a scalar shape at an element, but requires at least vectors.")
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
    """The length of elements that were not set: the one that is told, or that all others have."""
    sizes = [item.shape[0] for item in items if item is not None]
    for size in sizes:
        _require(shape[0] in (None, size), f"the first dimension of an element is {size}, but element_shape is {shape}")
    if shape[0] is not None:
        return shape[0]
    return sizes[0] if len(set(sizes)) == 1 else None


def _length(i: int, first: int | None, leading: Sequence[int]) -> int:
    """The length of an element that was not set: as told for it, else as all have it."""
    if i >= len(leading) and first is not None:
        return first
    _require(
        i < len(leading),
        f"List contains uninitialized tensor at index {i} but leading_dims has only {len(leading)} elements.",
    )
    _require(leading[i] >= 0, f"leading_dims has the negative size {leading[i]}")
    return leading[i]
