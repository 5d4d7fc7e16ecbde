"""A compiled function, and how arrays and variables go in and come out."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from cyxla.core.framework.resource_mgr import ResourceHandle, ResourceMgr
from cyxla.core.framework.tensor_shape import UNKNOWN, TensorShape
from cyxla.core.framework.types import DataType
from cyxla.core.framework.variable import Var
from cyxla.errors import FailedPreconditionError
from cyxla.tf2xla.argument import Argument, ArgumentKind, CompilationResult
from cyxla.tf2xla.xla_compiler import argument_for
from cyxla.tf2xla.xla_resource import ResourceKind
from cyxla.xla.client import LocalExecutable

Array = np.ndarray[Any, Any]


@dataclass
class Program:
    """A compiled graph with its executable; None where the program computes nothing."""

    result: CompilationResult
    executable: LocalExecutable | None
    outputs: list[tuple[int, int, Array | None]] = field(init=False)

    def __post_init__(self) -> None:
        self.outputs = [(o.input_index, o.places[0] if o.places else -1, o.value) for o in self.result.outputs]

    def run(self, values: Sequence[Array | None]) -> Sequence[Array]:
        """Run on the values of all arguments: what it gives is not yet sorted into results and updates.

        Raises
        ------
        FailedPreconditionError
            A variable that is read has no value.
        """
        if self.executable is None:
            return ()
        operands = [values[i] for i in self.result.input_mapping]
        if any(x is None for x in operands):
            raise FailedPreconditionError("a variable has no value yet", hint="run its initialiser first")
        found = self.executable.run(operands)
        return found if isinstance(found, tuple) else (found,)

    def write_back(self, variables: Sequence[Var | None], found: Sequence[Array]) -> None:
        """Give the variables their new values."""
        for update in self.result.resource_updates:
            variable = variables[update.input_index]
            if variable is not None and update.modified:
                variable.dtype = update.dtype
                variable.assign(found[update.places[0]])

    def results(self, args: Sequence[Array], found: Sequence[Array]) -> list[Array]:
        """The results in order."""
        return [
            args[index] if index >= 0 else found[place] if value is None else value
            for index, place, value in self.outputs
        ]


def variable_of(manager: ResourceMgr, handle: Array) -> Var:
    """The variable of a handle; made, without a value, where it is not there yet."""
    found: ResourceHandle = handle.item()
    if isinstance(found.resource, Var):
        return found.resource
    dtype = found.dtypes_and_shapes[0][0] if found.dtypes_and_shapes else DataType.DT_INVALID
    made: Var = manager.lookup_or_create(found.container, found.name, Var, lambda: Var(dtype))
    return made


def locked(variables: Sequence[Var | None]) -> ExitStack:
    """Hold the locks of variables, each once, in an order that is the same for everybody."""
    stack = ExitStack()
    for variable in sorted({v for v in variables if v is not None}, key=id):
        stack.enter_context(variable.lock)
    return stack


def describe(value: Array, dtype: DataType, *, constant: bool) -> Argument:
    """How an array enters."""
    return argument_for(value, dtype, constant=constant)


def describe_variable(variable: Var, value: Array | None) -> Argument:
    """How a variable enters, whose value was read."""
    return Argument(
        ArgumentKind.RESOURCE,
        variable.dtype,
        UNKNOWN if value is None else TensorShape(value.shape),
        resource_kind=ResourceKind.VARIABLE,
        initialized=value is not None,
        name=variable.name,
    )
