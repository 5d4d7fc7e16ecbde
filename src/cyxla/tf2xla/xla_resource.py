"""Mutable state during compilation: variables, stacks and tensor arrays, as values that replace each other."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum

from cyxla.core.framework.tensor_shape import UNKNOWN, TensorShape
from cyxla.core.framework.types import DataType
from cyxla.errors import FailedPreconditionError, InvalidArgumentError
from cyxla.xla.hlo.builder import XlaOp


class ResourceKind(Enum):
    """Kind of a resource."""

    VARIABLE = "variable"
    STACK = "stack"
    TENSOR_ARRAY = "tensor array"


@dataclass(eq=False)
class XlaResource:
    """Resource with its value at the current point of the compilation.

    Parameters
    ----------
    kind : ResourceKind
    arg_num : int
        Index of its argument of the computation; -1 if created inside.
    name : str
        Name for error messages.
    dtype : DataType
        Type of the value, or of the elements of a stack or tensor array.
    shape : TensorShape
        Shape of the value, or of the elements.
    value : XlaOp, optional
        Value, or buffer [size, ..] of a stack or tensor array; None until it is assigned.
    pushed : XlaOp, optional
        Number of elements of a stack, as s32.
    max_array_size : int
        Capacity of a stack or tensor array.
    gradients : dict of str to XlaResource
        Gradients of a tensor array by source.
    """

    kind: ResourceKind
    arg_num: int
    name: str
    dtype: DataType
    shape: TensorShape = UNKNOWN
    value: XlaOp | None = None
    pushed: XlaOp | None = None
    max_array_size: int = -1
    gradients: dict[str, XlaResource] = field(default_factory=dict)
    initial_value: XlaOp | None = None

    def __post_init__(self) -> None:
        if self.initial_value is None:
            self.initial_value = self.value

    @property
    def is_initialized(self) -> bool:
        """True if the resource has a value."""
        return self.value is not None

    @property
    def is_modified(self) -> bool:
        """True if the value differs from the initial one."""
        if self.kind is ResourceKind.STACK:
            return self.value is not None  # a popped element remains in the buffer, so the buffer may be the same
        return self.value is not self.initial_value or any(g.is_modified for g in self.gradients.values())

    def set_type_and_shape(self, dtype: DataType, shape: TensorShape) -> None:
        """Set the type and shape; unknown ones may become known.

        Raises
        ------
        InvalidArgumentError
            The resource holds another type or shape.
        """
        if self.dtype not in (DataType.DT_INVALID, dtype):
            raise InvalidArgumentError(f"the {self.kind.value} {self.name!r} holds {self.dtype}, not {dtype}")
        if self.kind is not ResourceKind.VARIABLE and not self.shape.is_compatible_with(shape):
            raise InvalidArgumentError(f"elements of {self.name!r} have the shape {self.shape}, not {shape}")
        self.dtype, self.shape = dtype, shape

    def parts(self) -> list[XlaOp]:
        """Return the instructions of the value; none without a value."""
        if self.value is None:
            return []
        own_parts = (
            [self.value] if self.kind is not ResourceKind.STACK or self.pushed is None else [self.value, self.pushed]
        )
        return own_parts + [part for _, g in sorted(self.gradients.items()) for part in g.parts()]

    def set_parts(self, parts: list[XlaOp]) -> None:
        """Replace the instructions of the value."""
        rest = list(parts)
        self.value = rest.pop(0)
        if self.kind is ResourceKind.STACK:
            self.pushed = rest.pop(0)
        for _, gradient in sorted(self.gradients.items()):
            gradient.value = rest.pop(0)

    def read(self) -> XlaOp:
        """Return the value.

        Raises
        ------
        FailedPreconditionError
            The resource has no value yet.
        """
        if self.value is None:
            raise FailedPreconditionError(f"the {self.kind.value} {self.name!r} is read before it has a value")
        return self.value
