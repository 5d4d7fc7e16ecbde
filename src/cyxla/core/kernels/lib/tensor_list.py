"""Lists of tensors as immutable values: a push returns a new list."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from cyxla.core.framework.op_kernel_context import as_value
from cyxla.core.framework.tensor_shape import TensorShape
from cyxla.core.framework.types import DataType
from cyxla.errors import InvalidArgumentError
from cyxla.forking import new_lock

Array = np.ndarray[Any, Any]
Item = Array | None  # None for elements that are not set


class TensorList:
    """Immutable list of tensors.

    A list and those pushed onto it share one buffer, of which each uses its own length, so building a list by pushes
    copies nothing.

    Parameters
    ----------
    dtype : DataType
        Type of the elements.
    element_shape : TensorShape
        Known part of the elements' shapes.
    items : iterable of ndarray or None
        Elements; None for those that are not set.
    max_num_elements : int
        Maximum number of elements, or -1 if unlimited.
    """

    __slots__ = ("_buffer", "_length", "dtype", "element_shape", "max_num_elements")
    _lock = new_lock()

    def __init__(
        self, dtype: DataType, element_shape: TensorShape, items: Iterable[Item] = (), max_num_elements: int = -1
    ) -> None:
        self.dtype, self.element_shape, self.max_num_elements = dtype, element_shape, max_num_elements
        self._buffer: list[Item] = list(items)
        self._length = len(self._buffer)

    # Not a Python sequence: NumPy would convert an array of lists to an array of their elements

    @property
    def size(self) -> int:
        """Number of elements."""
        return self._length

    @property
    def items(self) -> list[Item]:
        """Copy of the list of elements."""
        return self._buffer[: self._length]

    def at(self, index: int) -> Item:
        """Return the element at an index."""
        return self._buffer[index]

    def __repr__(self) -> str:
        return f"TensorList({self.dtype}, {self.element_shape}, {self._length} items)"

    def with_items(self, items: Iterable[Item]) -> TensorList:
        """Return a list with the same type and limits and other elements."""
        return TensorList(self.dtype, self.element_shape, items, self.max_num_elements)

    def push(self, item: Item) -> TensorList:
        """Return the list with one more element."""
        with self._lock:
            if len(self._buffer) != self._length:  # another push has extended this list: copy
                return self.with_items([*self.items, item])
            self._buffer.append(item)
            return self._prefix(self._length + 1)

    def pop(self) -> TensorList:
        """Return the list without its last element."""
        return self._prefix(self._length - 1)

    def _prefix(self, length: int) -> TensorList:
        other = TensorList(self.dtype, self.element_shape, (), self.max_num_elements)
        other._buffer, other._length = self._buffer, length
        return other

    def resized(self, size: int) -> TensorList:
        """Return the list truncated, or extended by elements that are not set."""
        items = self.items[:size]
        return self.with_items([*items, *[None] * (size - len(items))])

    def zeros_like(self) -> TensorList:
        """Return a list with zeros for all elements that are set."""
        return self.with_items(None if v is None else zeros(v.shape, self.dtype) for v in self.items)

    def add(self, other: TensorList) -> TensorList:
        """Add the elements pairwise; elements that are not set count as zero.

        Raises
        ------
        InvalidArgumentError
            The lists are of different length, type or shape.
        """
        if self.dtype != other.dtype:
            raise InvalidArgumentError(f"lists of {self.dtype} and of {other.dtype} cannot be added")
        if self.size != other.size:
            raise InvalidArgumentError(f"lists of {self.size} and of {other.size} elements cannot be added")
        shape = self.element_shape.merge_with(other.element_shape)
        items = [_sum(a, b) for a, b in zip(self.items, other.items, strict=True)]
        return TensorList(self.dtype, shape, items, self.max_num_elements)


def _sum(a: Item, b: Item) -> Item:
    if a is None or b is None:
        return b if a is None else a
    if a.shape != b.shape:
        raise InvalidArgumentError(f"elements of shapes {list(a.shape)} and {list(b.shape)} cannot be added")
    with np.errstate(all="ignore"):
        return np.asarray(a + b)


def zeros(shape: Sequence[int], dtype: DataType) -> Array:
    """Return an array of zeros; empty strings for strings, None for variants."""
    if dtype == DataType.DT_STRING:
        return np.full(tuple(shape), b"", np.object_)
    return np.zeros(tuple(shape), dtype.numpy) if dtype.numpy != np.object_ else np.full(tuple(shape), None, np.object_)


def as_handle(tensors: TensorList) -> Array:
    """Wrap a list as a variant scalar."""
    return as_value(tensors)


def unwrap_list(handle: Array) -> TensorList:
    """Return the list held by a variant.

    Raises
    ------
    InvalidArgumentError
        It holds something else, or the handle is not a scalar.
    """
    if handle.ndim:
        raise InvalidArgumentError(f"the handle of a list must be a scalar; its shape is {list(handle.shape)}")
    value = handle.item()
    if not isinstance(value, TensorList):
        raise InvalidArgumentError(f"the variant is not a list, but holds '{type(value).__name__}'")
    return value


def unwrap_typed_list(handle: Array, dtype: DataType) -> TensorList:
    """Return the list held by a variant after checking its element type.

    Raises
    ------
    InvalidArgumentError
        The list has another element type, or the variant holds no list.
    """
    tensors = unwrap_list(handle)
    if tensors.dtype != dtype:
        raise InvalidArgumentError(f"the op is for elements of {dtype}, but the list has elements of {tensors.dtype}")
    return tensors


def element_shape(
    tensors: TensorList, given_shape: TensorShape, items: Iterable[Item], unknown_reason: str
) -> list[int]:
    """Return the shape for elements that are not set, merged from all that is known.

    Raises
    ------
    InvalidArgumentError
        The merged shape is not fully defined, or elements differ.
    """
    shape = tensors.element_shape.merge_with(given_shape)
    if not shape.is_fully_defined:
        for item in items:
            if item is not None:
                shape = shape.merge_with(TensorShape(item.shape))
    if not shape.is_fully_defined:
        raise InvalidArgumentError(f"{unknown_reason}: {shape}", hint="give an element_shape, or set an element first")
    return shape.as_list()
