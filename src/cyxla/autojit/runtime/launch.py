"""A compiled function, and the transfer of arrays and variables to its arguments and from its results."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from operator import is_
from threading import RLock
from typing import Any

import numpy as np

from cyxla.core.framework.resource_mgr import ResourceHandle, ResourceMgr
from cyxla.core.framework.tensor_shape import UNKNOWN, TensorShape
from cyxla.core.framework.types import DataType
from cyxla.core.framework.variable import Var
from cyxla.errors import UnimplementedError
from cyxla.tf2xla.argument import Argument, ArgumentKind, CompilationResult, Output
from cyxla.tf2xla.lib.size_checks import raise_failure
from cyxla.tf2xla.xla_compiler import argument_for
from cyxla.tf2xla.xla_resource import ResourceKind
from cyxla.xla.client import LocalClient, LocalExecutable
from cyxla.xla.hlo.builder import XlaComputation
from cyxla.xla.hlo.ops.host import HOST_TRANSFERS

Array = np.ndarray[Any, Any]


@dataclass
class Program:
    """A compiled graph with its executable, which is None if the program computes nothing."""

    result: CompilationResult
    executable: LocalExecutable | None
    _is_plain: bool = field(init=False)  # True if the results are the executable's first results, in order

    def __post_init__(self) -> None:
        outputs = self.result.outputs
        self._is_plain = all(o.tuple_indices == (k,) and o.value is None for k, o in enumerate(outputs))

    def run(self, values: Sequence[Array | None]) -> Sequence[Array]:
        """Run the executable on the values of all arguments, and return its results: outputs and variable updates.

        Raises
        ------
        OpError
            Sizes that are known only at run time do not agree.
        """
        if self.executable is None:
            return ()
        results = self.executable.run([values[i] for i in self.result.input_mapping])
        results = results if isinstance(results, tuple) else (results,)
        if self.result.size_checks:
            raise_failure(self.result.size_checks, results[-1])
        return results

    def write_back(self, variables: Sequence[Var | None] | Mapping[int, Var], values: Sequence[Array]) -> None:
        """Assign the variables their new values."""
        for update in self.result.resource_updates:
            variable = variables[update.input_index]
            if variable is not None and update.modified:
                variable.dtype = update.dtype
                variable.assign(values[update.tuple_indices[0]])

    def results(self, args: Sequence[Array], values: Sequence[Array]) -> list[Array]:
        """Return the results of the graph in order."""
        if self._is_plain:
            return list(values[: len(self.result.outputs)])
        return [self._output(output, args, values) for output in self.result.outputs]

    @staticmethod
    def _output(output: Output, args: Sequence[Array], values: Sequence[Array]) -> Array:
        if output.input_index >= 0:
            return args[output.input_index]
        if output.value is not None:
            constant: Array = output.value
            return constant
        result: Array = values[output.tuple_indices[0]]
        return output.trim([values[k] for k in output.tuple_indices]) if output.dynamic else result


class Variables:
    """The variables of a kernel's handles, looked up again only if a handle or the set of resources has changed."""

    __slots__ = ("_cached",)

    def __init__(self) -> None:
        self._cached: tuple[ResourceMgr | None, int, list[Array], list[Var], list[RLock]] = (None, 0, [], [], [])

    def of(self, manager: ResourceMgr, handles: list[Array]) -> tuple[list[Var], list[RLock]]:
        """Return the variables in the order of their handles, and their locks, each once, in a global order."""
        cached_manager, removals, cached_handles, variables, locks = self._cached
        if cached_manager is manager and removals == manager.removals and all(map(is_, cached_handles, handles)):
            return variables, locks
        removals = manager.removals  # read before the look-up, so that a concurrent removal is noticed
        variables = [variable_of(manager, handle) for handle in handles]
        locks = [v.lock for v in sorted(set(variables), key=id)]
        self._cached = (manager, removals, list(handles), variables, locks)
        return variables, locks


class HeldLocks:
    """Context manager that holds several locks."""

    __slots__ = ("_locks",)

    def __init__(self, locks: Sequence[RLock]) -> None:
        self._locks = locks

    def __enter__(self) -> None:
        for lock in self._locks:
            lock.acquire()

    def __exit__(self, *_: object) -> None:
        for lock in self._locks:
            lock.release()


def compile_computation(client: LocalClient, computation: XlaComputation) -> LocalExecutable:
    """Compile a computation of a graph.

    Raises
    ------
    UnimplementedError
        It sends to or receives from a host, which a session is not the other end for.
    """
    transfers = sorted(computation.opcodes & HOST_TRANSFERS)
    if transfers:
        raise UnimplementedError(
            f"a session is no other end for {', '.join(transfers)}",
            hint="compile the graph to HLO, and use cyxla.compile(module, feeds=cyxla.Feeds())",
        )
    return client.compile(computation)


def variable_of(manager: ResourceMgr, handle: Array) -> Var:
    """Return the variable of a handle; it is created without a value if it does not exist."""
    resource_handle: ResourceHandle = handle.item()
    if isinstance(resource_handle.resource, Var):
        return resource_handle.resource
    dtype = resource_handle.dtypes_and_shapes[0][0] if resource_handle.dtypes_and_shapes else DataType.DT_INVALID
    variable: Var = manager.lookup_or_create(resource_handle.container, resource_handle.name, Var, lambda: Var(dtype))
    return variable


def hold_locks(variables: Sequence[Var | None]) -> HeldLocks:
    """Return a context manager that holds the locks of variables, each once, in a global order."""
    return HeldLocks([variable.lock for variable in sorted({v for v in variables if v is not None}, key=id)])


def describe(value: Array, dtype: DataType, *, constant: bool) -> Argument:
    """Return the compiler's description of an array argument."""
    return argument_for(value, dtype, constant=constant)


def describe_variable(variable: Var, value: Array | None) -> Argument:
    """Return the compiler's description of a variable whose value was read."""
    return Argument(
        ArgumentKind.RESOURCE,
        variable.dtype,
        UNKNOWN if value is None else TensorShape(value.shape),
        resource_kind=ResourceKind.VARIABLE,
        initialized=value is not None,
        name=variable.name,
    )


def value_key(value: Array | None) -> Any:
    """Return a hashable key of an array's value, for arrays of one type."""
    if value is None:
        return None
    return tuple(value.reshape(-1).tolist()) if value.dtype.hasobject else value.tobytes()
