"""Tensor lists in compiled code: a buffer of fixed capacity, and how many elements were pushed."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from cyxla.core.framework.types import DataType
from cyxla.errors import InvalidArgumentError
from cyxla.tf2xla.types import element_type
from cyxla.xla.hlo.builder import XlaBuilder, XlaOp, functions


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
    """

    element_dtype: DataType
    capacity: int
    buffer: XlaOp | None
    pushed: XlaOp

    @classmethod
    def empty(cls, builder: XlaBuilder, dtype: DataType, capacity: int, shape: tuple[int, ...] | None) -> XlaTensorList:
        """A list of zeros with nothing pushed."""
        pushed = functions.constant(builder, np.zeros((), np.int32))
        bare = cls(dtype, capacity, None, pushed)
        return bare if shape is None else bare.with_shape(builder, shape)

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
        return [] if self.buffer is None else [self.buffer, self.pushed]

    def rebuilt(self, parts: list[XlaOp]) -> XlaTensorList:
        """The same kind of list with other instructions."""
        buffer: Any = parts[0]
        return replace(self, buffer=buffer, pushed=parts[1])
