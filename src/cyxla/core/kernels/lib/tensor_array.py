"""Tensor arrays: tensors that are written and read by index within a step."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from cyxla.core.framework.resource_mgr import ResourceBase
from cyxla.core.framework.tensor_shape import TensorShape
from cyxla.core.framework.types import DataType
from cyxla.core.kernels.lib.tensor_list import zeros
from cyxla.errors import InvalidArgumentError
from cyxla.forking import new_lock

Array = np.ndarray[Any, Any]


@dataclass(slots=True)
class Element:
    """One element and its state; if only its shape is known, its value is zeros."""

    value: Array | None = None
    shape: tuple[int, ...] | None = None
    written: bool = False
    read: bool = False
    cleared: bool = False


class TensorArray(ResourceBase):
    """Indexed tensors of one type.

    Parameters
    ----------
    name : str
        Name for error messages.
    dtype : DataType
        Type of the elements.
    size : int
        Number of elements.
    element_shape : TensorShape
        Known part of the elements' shapes.
    identical : bool
        True if all elements must have the shape of the first.
    dynamic : bool
        True if a write past the end extends the array.
    aggregates : bool
        True if a second write adds to the first, as for gradients.
    clear_after_read : bool
        True if reading an element clears it.
    """

    def __init__(
        self,
        name: str,
        dtype: DataType,
        size: int,
        element_shape: TensorShape,
        *,
        identical: bool = False,
        dynamic: bool = False,
        aggregates: bool = False,
        clear_after_read: bool = True,
    ) -> None:
        self.name, self.dtype, self.element_shape = name, dtype, element_shape
        self.identical, self.dynamic, self.aggregates = identical, dynamic, aggregates
        self.clear_after_read = clear_after_read
        self.closed = False
        self.elements = [Element() for _ in range(size)]
        self.lock = new_lock()

    def __len__(self) -> int:
        return len(self.elements)

    def debug_string(self) -> str:
        """Return name and size."""
        return f"TensorArray[{len(self)}] {self.name}"

    def close_array(self) -> None:
        """Drop all elements; later accesses raise."""
        with self.lock:
            self.elements, self.closed = [], True

    def check_open(self) -> None:
        """Raise if the array is closed."""
        if self.closed:
            raise InvalidArgumentError(f"the tensor array {self.name} was closed")

    def check_dtype(self, dtype: DataType, verb: str) -> None:
        """Raise unless elements have this type."""
        if dtype != self.dtype:
            raise InvalidArgumentError(f"{verb} of {dtype}, but the tensor array {self.name} holds {self.dtype}")

    def narrow(self, shape: TensorShape) -> None:
        """Merge more knowledge into the shape of elements.

        Raises
        ------
        ShapeError
            It contradicts the known shape.
        """
        self.element_shape = self.element_shape.merge_with(shape)

    def write(self, index: int, value: Array) -> None:
        """Write an element; its memory must not change afterwards.

        Raises
        ------
        InvalidArgumentError
            The index is out of range and the size fixed, the shape does not fit, or the element was written or read.
        """
        self._grow_to(index)
        self._check_shape(index, value)
        element = self.elements[index]
        if element.read:
            raise InvalidArgumentError(f"{self._cannot('written', index)}: it was read before")
        if element.written and not self.aggregates:
            raise InvalidArgumentError(f"{self._cannot('written', index)}: it was written before")
        element.value = self._sum(index, element, value) if element.written else value
        element.shape, element.written = value.shape, True

    def _cannot(self, done: str, index: int) -> str:
        return f"element {index} of the tensor array {self.name} cannot be {done}"

    def _grow_to(self, index: int) -> None:
        size = len(self.elements)
        if index < 0 or (index >= size and not self.dynamic):
            raise InvalidArgumentError(
                f"{self._cannot('written', index)}: there are {size} elements, and their number is fixed",
                hint="make it larger, or with dynamic_size",
            )
        self.elements += [Element() for _ in range(index + 1 - size)]

    def _check_shape(self, index: int, value: Array) -> None:
        shape = TensorShape(value.shape)
        if not self.element_shape.is_compatible_with(shape):
            raise InvalidArgumentError(
                f"{self._cannot('written', index)}: the value has the shape {shape}, elements have {self.element_shape}"
            )
        if self.identical:
            self.narrow(shape)

    def _sum(self, index: int, element: Element, value: Array) -> Array:
        if element.shape != value.shape:
            raise InvalidArgumentError(
                f"{self._cannot('added to', index)}: it has the shape {list(element.shape or ())}, the value "
                f"{list(value.shape)}"
            )
        with np.errstate(all="ignore"):
            return value if element.value is None else np.asarray(element.value + value)

    def read(self, index: int) -> Array:
        """Read an element; zeros of its shape if it was not written.

        Raises
        ------
        InvalidArgumentError
            The index is out of range, or the element was cleared, or was not written and has an unknown shape.
        """
        if not 0 <= index < len(self.elements):
            raise InvalidArgumentError(f"{self._cannot('read', index)}: there are {len(self.elements)} elements")
        element = self.elements[index]
        if element.cleared:
            raise InvalidArgumentError(
                f"{self._cannot('read', index)}: it was cleared when it was read before",
                hint="make the array with clear_after_read=false",
            )
        value = element.value if element.value is not None else self._zeros(index, element)
        element.read = True
        if self.clear_after_read:
            element.value, element.cleared = None, True
        return value

    def _zeros(self, index: int, element: Element) -> Array:
        shape: Sequence[int] | None = element.shape
        if shape is None and self.element_shape.is_fully_defined:
            shape = self.element_shape.as_list()
        if shape is None:
            raise InvalidArgumentError(
                f"{self._cannot('read', index)}: never written, and elements have the shape {self.element_shape}",
                hint="write the element first, or make the array with its full element_shape",
            )
        return zeros(shape, self.dtype)

    def gradient(self, name: str, prefix: tuple[int, ...] | None) -> TensorArray:
        """Make the array of the elements' gradients, whose shapes are prefixed by `prefix`.

        This array does not grow afterwards.
        """
        with self.lock:
            self.check_open()
            self.dynamic = False
            shape = self.element_shape if prefix is None else TensorShape(prefix) + self.element_shape
            gradient = TensorArray(
                name, self.dtype, len(self), shape, identical=self.identical, aggregates=True, clear_after_read=True
            )
            for element, gradient_element in zip(self.elements, gradient.elements, strict=True):
                if element.shape is not None:
                    gradient_element.shape, gradient_element.written = (prefix or ()) + element.shape, element.written
            return gradient
