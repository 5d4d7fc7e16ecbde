"""Tensor lists in compiled code: a buffer of fixed capacity and a fill count."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from cyxla.core.framework.types import DataType
from cyxla.errors import InvalidArgumentError
from cyxla.tf2xla.types import element_type
from cyxla.xla.hlo.builder import XlaBuilder, XlaOp, functions

ListKind = tuple[DataType, int, int]  # element type, capacity, capacity of inner lists


@dataclass(frozen=True)
class XlaTensorList:
    """List whose elements have one shape.

    Parameters
    ----------
    element_dtype : DataType
    capacity : int
        Number of elements of the buffer.
    buffer : XlaOp or None
        Buffer [capacity, *element shape]; None while the element shape is unknown.
    pushed : XlaOp
        Number of pushed elements, as s32.
    inner_capacity : int
        Capacity of the elements of a list of lists, whose buffer is [capacity, inner capacity, ..] of the innermost
        type; -1 for other lists, and while nothing is known.
    inner_pushed : XlaOp, optional
        Number of pushed elements of each inner list, s32[capacity].
    """

    element_dtype: DataType
    capacity: int
    buffer: XlaOp | None
    pushed: XlaOp
    inner_capacity: int = -1
    inner_pushed: XlaOp | None = None

    @classmethod
    def empty(cls, builder: XlaBuilder, dtype: DataType, capacity: int, shape: tuple[int, ...] | None) -> XlaTensorList:
        """Make a list of zeros with no elements pushed."""
        pushed = functions.constant(builder, np.zeros((), np.int32))
        empty_list = cls(dtype, capacity, None, pushed)
        return empty_list if shape is None else empty_list.with_shape(builder, shape)

    @classmethod
    def of(cls, kind: ListKind, parts: Sequence[XlaOp]) -> XlaTensorList:
        """Make a list of a kind from its instructions."""
        dtype, capacity, inner = kind
        return cls(dtype, capacity, parts[0], parts[1], inner, parts[2] if inner >= 0 else None)

    @classmethod
    def zeros(cls, builder: XlaBuilder, kind: ListKind, sizes: Sequence[int]) -> XlaTensorList:
        """Make a list of a kind with no elements pushed and a buffer of zeros of the given sizes."""
        dtype, capacity, _ = kind
        zero = functions.constant(builder, np.zeros((), dtype.numpy), element_type(dtype))
        none = functions.constant(builder, np.zeros((), np.int32))
        return cls.of(kind, [functions.broadcast(zero, sizes), none, functions.broadcast(none, (capacity,))])

    @property
    def kind(self) -> ListKind:
        """Key of lists that differ at most in the element shape."""
        return self.element_dtype, self.capacity, self.inner_capacity

    @property
    def is_nested(self) -> bool:
        """True if the elements are lists."""
        return self.inner_capacity >= 0

    @property
    def element_shape(self) -> tuple[int, ...] | None:
        """Shape of an element, or None if unknown."""
        return None if self.buffer is None else tuple(self.buffer.shape.dims[1:])

    def with_shape(self, builder: XlaBuilder, shape: tuple[int, ...]) -> XlaTensorList:
        """Set the element shape of the list.

        Raises
        ------
        InvalidArgumentError
            The elements have another shape.
        """
        if self.buffer is not None:
            if self.element_shape != tuple(shape):
                raise InvalidArgumentError(f"a list of {self.element_shape} cannot hold an element of {list(shape)}")
            return self
        zero = functions.constant(builder, np.zeros((), self.element_dtype.numpy), element_type(self.element_dtype))
        return replace(self, buffer=functions.broadcast(zero, (self.capacity, *shape)))

    def parts(self) -> list[XlaOp]:
        """Return the instructions of the list."""
        if self.buffer is None:
            return []
        return [self.buffer, self.pushed, *([] if self.inner_pushed is None else [self.inner_pushed])]

    def with_parts(self, parts: list[XlaOp]) -> XlaTensorList:
        """Make a list of the same kind from other instructions."""
        return XlaTensorList.of(self.kind, parts)
