"""What flows along the edges of a graph that is being compiled."""

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
    """What an expression is."""

    CONSTANT = "constant"
    XLA_OP = "instruction"
    RESOURCE = "resource"
    TENSOR_LIST = "tensor list"


@dataclass(frozen=True, slots=True, eq=False)
class XlaExpression:
    """The symbolic value of an edge.

    Parameters
    ----------
    kind : ExpressionKind
    dtype : DataType
        Type of the edge.
    value : ndarray, XlaOp, XlaResource or XlaTensorList
        What the kind says.
    """

    kind: ExpressionKind
    dtype: DataType
    value: Any

    @classmethod
    def constant(cls, array: Array, dtype: DataType) -> XlaExpression:
        """A value known now; it becomes an instruction only where one is needed."""
        return cls(ExpressionKind.CONSTANT, dtype, array)

    @classmethod
    def of(cls, op: XlaOp, dtype: DataType) -> XlaExpression:
        """What an instruction computes."""
        return cls(ExpressionKind.XLA_OP, dtype, op)

    @classmethod
    def resource(cls, resource: XlaResource) -> XlaExpression:
        """A resource."""
        return cls(ExpressionKind.RESOURCE, DataType.DT_RESOURCE, resource)

    @classmethod
    def tensor_list(cls, value: XlaTensorList) -> XlaExpression:
        """A tensor list."""
        return cls(ExpressionKind.TENSOR_LIST, DataType.DT_VARIANT, value)

    @property
    def is_constant(self) -> bool:
        """Whether the value is known now."""
        return self.kind is ExpressionKind.CONSTANT

    @property
    def shape(self) -> tuple[int, ...]:
        """Sizes of an array.

        Raises
        ------
        InternalError
            It is no array.
        """
        if self.kind is ExpressionKind.CONSTANT:
            return tuple(self.value.shape)
        if self.kind is ExpressionKind.XLA_OP:
            return tuple(self.value.shape.dims)
        raise InternalError(f"a {self.kind.value} has no shape of its own")

    @property
    def tensor_shape(self) -> TensorShape:
        """The same as a shape of graphs."""
        return TensorShape(self.shape)

    def as_xla_op(self, builder: XlaBuilder) -> XlaOp:
        """The instruction, made now for a constant.

        Raises
        ------
        InvalidArgumentError
            It is no array, or a constant of a type that HLO lacks.
        """
        if self.kind is ExpressionKind.XLA_OP:
            op: XlaOp = self.value
            return op
        if self.kind is ExpressionKind.CONSTANT:
            if self.value.dtype.hasobject:
                raise InvalidArgumentError(f"a constant of type {self.dtype} cannot be compiled")
            return functions.constant(builder, self.value, element_type(self.dtype))
        raise InvalidArgumentError(f"a {self.kind.value} is not an array")
