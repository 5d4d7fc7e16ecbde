"""Symbolic values on the edges of a graph that is being compiled."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Any

import numpy as np

from cyxla.core.framework.tensor_shape import TensorShape
from cyxla.core.framework.types import DataType
from cyxla.errors import InternalError, InvalidArgumentError
from cyxla.tf2xla.lib.tensor_list import XlaTensorList
from cyxla.tf2xla.types import element_type
from cyxla.tf2xla.xla_resource import XlaResource
from cyxla.xla.hlo.builder import XlaBuilder, XlaOp, functions

Array = np.ndarray[Any, Any]


class ExpressionKind(Enum):
    """Kind of a symbolic value."""

    CONSTANT = "constant"
    XLA_OP = "instruction"
    RESOURCE = "resource"
    TENSOR_LIST = "tensor list"


@dataclass(frozen=True, slots=True, eq=False)
class XlaExpression:
    """Symbolic value of an edge.

    Parameters
    ----------
    kind : ExpressionKind
    dtype : DataType
        Type of the edge.
    value : ndarray, XlaOp, XlaResource or XlaTensorList
        Value of the class that belongs to the kind.
    """

    kind: ExpressionKind
    dtype: DataType
    value: Any

    @classmethod
    def constant(cls, array: Array, dtype: DataType) -> XlaExpression:
        """Wrap a compile-time constant, which becomes an instruction only if needed."""
        return cls(ExpressionKind.CONSTANT, dtype, array)

    @classmethod
    def of(cls, op: XlaOp, dtype: DataType) -> XlaExpression:
        """Wrap the result of an instruction."""
        return cls(ExpressionKind.XLA_OP, dtype, op)

    @classmethod
    def resource(cls, resource: XlaResource) -> XlaExpression:
        """Wrap a resource."""
        return cls(ExpressionKind.RESOURCE, DataType.DT_RESOURCE, resource)

    @classmethod
    def tensor_list(cls, value: XlaTensorList) -> XlaExpression:
        """Wrap a tensor list."""
        return cls(ExpressionKind.TENSOR_LIST, DataType.DT_VARIANT, value)

    @property
    def is_constant(self) -> bool:
        """True if the value is a compile-time constant."""
        return self.kind is ExpressionKind.CONSTANT

    @property
    def shape(self) -> tuple[int, ...]:
        """Dimensions of an array.

        Raises
        ------
        InternalError
            The expression is not an array.
        """
        if self.kind is ExpressionKind.CONSTANT:
            return tuple(self.value.shape)
        if self.kind is ExpressionKind.XLA_OP:
            return tuple(self.value.shape.dims)
        raise InternalError(f"a {self.kind.value} has no shape of its own")

    @property
    def tensor_shape(self) -> TensorShape:
        """Shape as a `TensorShape`."""
        return TensorShape(self.shape)

    def as_xla_op(self, builder: XlaBuilder) -> XlaOp:
        """Return the instruction; a constant is emitted.

        Raises
        ------
        InvalidArgumentError
            The expression is not an array, or a constant of a type that HLO does not have.
        """
        if self.kind is ExpressionKind.XLA_OP:
            op: XlaOp = self.value
            return op
        if self.kind is ExpressionKind.CONSTANT:
            if self.value.dtype.hasobject:
                raise InvalidArgumentError(f"a constant of type {self.dtype} cannot be compiled")
            return functions.constant(builder, self.value, element_type(self.dtype))
        raise InvalidArgumentError(f"a {self.kind.value} is not an array")
