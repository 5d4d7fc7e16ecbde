"""Arguments and results of compiled computations."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

import numpy as np

from cyxla.core.framework.tensor_shape import UNKNOWN, TensorShape
from cyxla.core.framework.types import DataType
from cyxla.tf2xla.lib.size_checks import SizeCheck
from cyxla.tf2xla.lib.tensor_list import ListKind
from cyxla.tf2xla.xla_resource import ResourceKind
from cyxla.xla.hlo.builder import XlaComputation

Array = np.ndarray[Any, Any]


class ArgumentKind(Enum):
    """Ways to pass an argument."""

    CONSTANT = "constant"  # its value is compiled into the program
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
        Shape of the value or of the elements; unknown if there is no value yet.
    value : ndarray, optional
        Value of a constant.
    resource_kind : ResourceKind, optional
        Kind of a resource.
    initialized : bool
        True if a resource has a value.
    size : int
        Capacity of a list, stack or tensor array.
    gradients : tuple of str
        Sources of a tensor array's gradients.
    name : str
        Name for error messages.
    inner_size : int
        Capacity of the inner lists of a list of lists; -1 otherwise.
    dynamic : tuple of int
        Dimensions, in ascending order, whose sizes are known only at run time; parameters follow for them.
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
    dynamic: tuple[int, ...] = ()

    @property
    def key(self) -> tuple[Any, ...]:
        """Key that is equal for arguments that share a program."""
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
            self.dynamic,
        )


def _bytes(value: Array) -> Any:
    return tuple(value.reshape(-1).tolist()) if value.dtype.hasobject else value.tobytes()


@dataclass(frozen=True)
class Output:
    """Result of a graph.

    Parameters
    ----------
    dtype : DataType
    shape : tuple of int or None
        Shape of an array; None for other values.
    value : ndarray, optional
        Value of a result that is known at compile time, and is not computed by the program.
    tuple_indices : tuple of int
        Indices of the computation's tuple elements that hold the value.
    input_index : int
        Index of the argument of a resource that is passed through.
    tensor_list : tuple, optional
        Kind of a tensor list.
    dynamic : tuple of int
        Dimensions whose sizes are known only at run time; `tuple_indices` lists their sizes after the array.
    """

    dtype: DataType
    shape: tuple[int, ...] | None = None
    value: Array | None = None
    tuple_indices: tuple[int, ...] = ()
    input_index: int = -1
    tensor_list: ListKind | None = None
    dynamic: tuple[int, ...] = ()

    def trim(self, parts: Sequence[Array]) -> Array:
        """Slice the array to its dynamic sizes."""
        at = [slice(None)] * parts[0].ndim
        for dimension, size in zip(self.dynamic, parts[1:], strict=True):
            at[dimension] = slice(int(size))
        return parts[0][tuple(at)]


@dataclass(frozen=True)
class ResourceUpdate:
    """Resource whose value the computation returns.

    Parameters
    ----------
    input_index : int
        Index of its argument.
    dtype : DataType
    shape : TensorShape
    tuple_indices : tuple of int
        Indices of the computation's tuple elements that hold the value.
    modified : bool
        True if the value changed; unchanged values may be returned as well.
    gradients : tuple of str
        Sources of a tensor array's gradients.
    """

    input_index: int
    dtype: DataType
    shape: TensorShape
    tuple_indices: tuple[int, ...]
    modified: bool
    gradients: tuple[str, ...] = ()


@dataclass(frozen=True)
class CompilationResult:
    """Compiled graph.

    Parameters
    ----------
    name : str
    computation : XlaComputation
        Computation that returns a tuple, even of one element or none.
    input_mapping : tuple of int
        Index of the argument of each parameter; an argument may take several parameters.
    outputs : tuple of Output
        Results in order.
    resource_updates : tuple of ResourceUpdate
        Updates of resources in the order of their arguments.
    size_checks : tuple of SizeCheck
        Checks of sizes, whose numbers are the last element of the computation's tuple if there are any.
    """

    name: str
    computation: XlaComputation
    input_mapping: tuple[int, ...]
    outputs: tuple[Output, ...]
    resource_updates: tuple[ResourceUpdate, ...]
    size_checks: tuple[SizeCheck, ...] = ()

    @property
    def is_empty(self) -> bool:
        """True if the program has no results, effects and checks, so that it need not run."""
        if self.resource_updates or self.size_checks or any(output.tuple_indices for output in self.outputs):
            return False
        instructions = (i for c in self.computation.module().post_order() for i in c.instructions)
        return not any(i.row.side_effect or i.attrs.get("custom_call_has_side_effect") for i in instructions)
