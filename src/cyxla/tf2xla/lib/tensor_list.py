"""Tensor lists in compiled code: a buffer of fixed capacity, and how many elements were pushed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from cyxla.core.framework.types import DataType
from cyxla.errors import InvalidArgumentError
from cyxla.tf2xla.types import element_type
from cyxla.xla.hlo.builder import XlaBuilder, XlaOp, functions

ListKind = tuple[DataType, int, int]  # type of elements, capacity, capacity of inner lists


@dataclass(frozen=True)
class XlaTensorList:
    """A list whose elements have one shape.

    Parameters
    ----------
    element_dtype : DataType
    capacity : int
        How many elements the buffer holds.
    buffer : XlaOp or None
        [capacity, *element shape]; None while the shape of an element is not known.
    pushed : XlaOp
        s32: where the next element is pushed to.
    inner_capacity : int
        Of a list of lists, how many elements each of them holds: the buffer is [capacity, inner capacity, ..], and its
        type is that of the innermost elements. -1 for others, and while nothing is known.
    inner_pushed : XlaOp, optional
        s32[capacity]: where the next element of each inner list is pushed to.
    """

    element_dtype: DataType
    capacity: int
    buffer: XlaOp | None
    pushed: XlaOp
    inner_capacity: int = -1
    inner_pushed: XlaOp | None = None

    @classmethod
    def empty(cls, builder: XlaBuilder, dtype: DataType, capacity: int, shape: tuple[int, ...] | None) -> XlaTensorList:
        """A list of zeros with nothing pushed."""
        pushed = functions.constant(builder, np.zeros((), np.int32))
        bare = cls(dtype, capacity, None, pushed)
        return bare if shape is None else bare.with_shape(builder, shape)

    @classmethod
    def of(cls, kind: ListKind, parts: Sequence[XlaOp]) -> XlaTensorList:
        """A list of a kind, made of instructions."""
        dtype, capacity, inner = kind
        return cls(dtype, capacity, parts[0], parts[1], inner, parts[2] if inner >= 0 else None)

    @classmethod
    def zeros(cls, builder: XlaBuilder, kind: ListKind, sizes: Sequence[int]) -> XlaTensorList:
        """A list of a kind with nothing pushed, whose buffer has some sizes."""
        dtype, capacity, _ = kind
        zero = functions.constant(builder, np.zeros((), dtype.numpy), element_type(dtype))
        none = functions.constant(builder, np.zeros((), np.int32))
        return cls.of(kind, [functions.broadcast(zero, sizes), none, functions.broadcast(none, (capacity,))])

    @property
    def kind(self) -> ListKind:
        """What tells lists apart besides the shape of an element."""
        return self.element_dtype, self.capacity, self.inner_capacity

    @property
    def is_nested(self) -> bool:
        """Whether its elements are lists."""
        return self.inner_capacity >= 0

    @property
    def element_shape(self) -> tuple[int, ...] | None:
        """Shape of an element, if it is known."""
        return None if self.buffer is None else tuple(self.buffer.shape.dims[1:])

    def with_shape(self, builder: XlaBuilder, shape: tuple[int, ...]) -> XlaTensorList:
        """The same list, whose elements are now known to have a shape.

        Raises
        ------
        InvalidArgumentError
            They have another.
        """
        if self.buffer is not None:
            if self.element_shape != tuple(shape):
                raise InvalidArgumentError(f"a list of {self.element_shape} cannot hold an element of {list(shape)}")
            return self
        zero = functions.constant(builder, np.zeros((), self.element_dtype.numpy), element_type(self.element_dtype))
        return replace(self, buffer=functions.broadcast(zero, (self.capacity, *shape)))

    def parts(self) -> list[XlaOp]:
        """The instructions that a list is made of."""
        if self.buffer is None:
            return []
        return [self.buffer, self.pushed, *([] if self.inner_pushed is None else [self.inner_pushed])]

    def rebuilt(self, parts: list[XlaOp]) -> XlaTensorList:
        """The same kind of list with other instructions."""
        return XlaTensorList.of(self.kind, parts)
