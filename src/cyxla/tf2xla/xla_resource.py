"""What changes while a graph is compiled: variables, stacks and tensor arrays, as values that replace each other."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum

from cyxla.core.framework.tensor_shape import UNKNOWN, TensorShape
from cyxla.core.framework.types import DataType
from cyxla.errors import FailedPreconditionError, InvalidArgumentError
from cyxla.xla.hlo.builder import XlaOp


class ResourceKind(Enum):
    """What sort of resource it is."""

    VARIABLE = "variable"
    STACK = "stack"
    TENSOR_ARRAY = "tensor array"


@dataclass(eq=False)
class XlaResource:
    """A resource and its value at the point that the compilation has reached.

    Parameters
    ----------
    kind : ResourceKind
    arg_num : int
        Which argument of the computation it came with; -1 if it is made inside.
    name : str
        For messages.
    dtype : DataType
        Type of the value, or of the elements of a stack or tensor array.
    shape : TensorShape
        Shape of the value, or of the elements.
    value : XlaOp, optional
        None until something is assigned; of a stack or tensor array the buffer [size, ..].
    pushed : XlaOp, optional
        s32: how many elements a stack has.
    max_array_size : int
        Of a stack or tensor array.
    gradients : dict of str to XlaResource
        Gradients of a tensor array by their source.
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
        """Whether it has a value."""
        return self.value is not None

    @property
    def is_modified(self) -> bool:
        """Whether its value is another than the one it came with."""
        if self.kind is ResourceKind.STACK:
            return self.value is not None  # a value may be gone that still stands in the buffer
        return self.value is not self.initial_value or any(g.is_modified for g in self.gradients.values())

    def set_type_and_shape(self, dtype: DataType, shape: TensorShape) -> None:
        """Say what it holds; what was unknown may become known.

        Raises
        ------
        InvalidArgumentError
            It holds another type, or another shape.
        """
        if self.dtype not in (DataType.DT_INVALID, dtype):
            raise InvalidArgumentError(f"the {self.kind.value} {self.name!r} holds {self.dtype}, not {dtype}")
        if self.kind is not ResourceKind.VARIABLE and not self.shape.is_compatible_with(shape):
            raise InvalidArgumentError(f"elements of {self.name!r} have the shape {self.shape}, not {shape}")
        self.dtype, self.shape = dtype, shape

    def parts(self) -> list[XlaOp]:
        """The instructions that the value is made of; none where there is no value."""
        if self.value is None:
            return []
        own = [self.value] if self.kind is not ResourceKind.STACK or self.pushed is None else [self.value, self.pushed]
        return own + [part for _, g in sorted(self.gradients.items()) for part in g.parts()]

    def set_parts(self, parts: list[XlaOp]) -> None:
        """Replace the instructions that the value is made of."""
        rest = list(parts)
        self.value = rest.pop(0)
        if self.kind is ResourceKind.STACK:
            self.pushed = rest.pop(0)
        for _, gradient in sorted(self.gradients.items()):
            gradient.value = rest.pop(0)

    def read(self) -> XlaOp:
        """The value.

        Raises
        ------
        FailedPreconditionError
            Nothing was assigned yet.
        """
        if self.value is None:
            raise FailedPreconditionError(f"the {self.kind.value} {self.name!r} is read before it has a value")
        return self.value
