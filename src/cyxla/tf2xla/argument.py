"""What goes into a compiled computation, and what comes out of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

import numpy as np

from cyxla.core.framework.tensor_shape import UNKNOWN, TensorShape
from cyxla.core.framework.types import DataType
from cyxla.tf2xla.lib.tensor_list import ListKind
from cyxla.tf2xla.xla_resource import ResourceKind
from cyxla.xla.hlo.builder import XlaComputation

Array = np.ndarray[Any, Any]


class ArgumentKind(Enum):
    """How an argument enters."""

    CONSTANT = "constant"  # its value is part of the program
    PARAMETER = "parameter"
    RESOURCE = "resource"
    TENSOR_LIST = "tensor list"


@dataclass(frozen=True)
class Argument:
    """An argument of a graph or function.

    Parameters
    ----------
    kind : ArgumentKind
    dtype : DataType
        Type of the value, or of the elements of a list, stack or tensor array.
    shape : TensorShape
        Shape of the same; unknown where nothing has a value yet.
    value : ndarray, optional
        Of a constant.
    resource_kind : ResourceKind, optional
        Of a resource.
    initialized : bool
        Whether a resource has a value.
    size : int
        Capacity of a list, stack or tensor array.
    gradients : tuple of str
        Sources of a tensor array's gradients.
    name : str
        For messages.
    inner_size : int
        Capacity of the lists in a list of lists; -1 for others.
    """

    kind: ArgumentKind
    dtype: DataType
    shape: TensorShape = UNKNOWN
    value: Array | None = field(default=None, compare=False)
    resource_kind: ResourceKind | None = None
    initialized: bool = True
    size: int = -1
    gradients: tuple[str, ...] = ()
    name: str = field(default="", compare=False)
    inner_size: int = -1

    @property
    def key(self) -> tuple[Any, ...]:
        """What tells arguments apart that need different programs."""
        value = None if self.value is None else (str(self.value.dtype), self.value.shape, _bytes(self.value))
        return (
            self.kind,
            self.dtype,
            self.shape,
            value,
            self.resource_kind,
            self.initialized,
            self.size,
            self.inner_size,
            self.gradients,
        )


def _bytes(value: Array) -> Any:
    return tuple(value.reshape(-1).tolist()) if value.dtype.hasobject else value.tobytes()


@dataclass(frozen=True)
class Output:
    """One result of a graph.

    Parameters
    ----------
    dtype : DataType
    shape : tuple of int or None
        None for what is no array.
    value : ndarray, optional
        Of a result that is known while compiling; it is in no program.
    places : tuple of int
        Which elements of the computation's tuple it is made of.
    input_index : int
        Of a resource that is handed through: the argument it came with.
    tensor_list : tuple, optional
        Kind of a tensor list.
    dynamic : tuple of int
        Dimensions whose sizes are known only at run time: after the whole array, `places` tells where the size of each
        is.
    """

    dtype: DataType
    shape: tuple[int, ...] | None = None
    value: Array | None = None
    places: tuple[int, ...] = ()
    input_index: int = -1
    tensor_list: ListKind | None = None
    dynamic: tuple[int, ...] = ()

    def cut(self, parts: Sequence[Array]) -> Array:
        """The array from what stands at its places."""
        at = [slice(None)] * parts[0].ndim
        for dimension, size in zip(self.dynamic, parts[1:], strict=True):
            at[dimension] = slice(int(size))
        return parts[0][tuple(at)]


@dataclass(frozen=True)
class ResourceUpdate:
    """A resource that has another value afterwards.

    Parameters
    ----------
    input_index : int
        The argument it came with.
    dtype : DataType
    shape : TensorShape
    places : tuple of int
        Which elements of the computation's tuple its value is made of.
    modified : bool
        Whether the value changed; it may be given back unchanged.
    gradients : tuple of str
        Sources of a tensor array's gradients.
    """

    input_index: int
    dtype: DataType
    shape: TensorShape
    places: tuple[int, ...]
    modified: bool
    gradients: tuple[str, ...] = ()


@dataclass(frozen=True)
class CompilationResult:
    """A compiled graph.

    Parameters
    ----------
    name : str
    computation : XlaComputation
        Gives a tuple, even of one element or of none.
    input_mapping : tuple of int
        Which argument each parameter comes from; an argument may be several parameters.
    outputs : tuple of Output
        By index of the results.
    resource_updates : tuple of ResourceUpdate
        By number of the argument.
    """

    name: str
    computation: XlaComputation
    input_mapping: tuple[int, ...]
    outputs: tuple[Output, ...]
    resource_updates: tuple[ResourceUpdate, ...]

    @property
    def is_empty(self) -> bool:
        """Whether the program gives nothing and does nothing: there is no need to run it."""
        if self.resource_updates or any(output.places for output in self.outputs):
            return False
        instructions = (i for c in self.computation.module().post_order() for i in c.instructions)
        return not any(i.row.side_effect or i.attrs.get("custom_call_has_side_effect") for i in instructions)
