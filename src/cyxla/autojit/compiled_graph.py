"""A graph that is compiled as a whole: one program for each kind of arguments."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from threading import Lock
from typing import Any

import numpy as np

from cyxla.core.framework.resource_mgr import ResourceHandle
from cyxla.core.framework.step import StepContext
from cyxla.core.framework.tensor_shape import UNKNOWN, TensorShape
from cyxla.core.framework.types import DataType
from cyxla.core.framework.variable import Var
from cyxla.core.graph.graph import Graph
from cyxla.errors import FailedPreconditionError, InvalidArgumentError
from cyxla.tf2xla.argument import Argument, ArgumentKind, CompilationResult, Output
from cyxla.tf2xla.functionalize_control_flow import functionalize_control_flow
from cyxla.tf2xla.xla_compiler import XlaCompiler, XlaCompilerOptions, argument_for
from cyxla.tf2xla.xla_op_registry import XLA_CPU_JIT, XLA_INTERPRETER_JIT
from cyxla.tf2xla.xla_resource import ResourceKind
from cyxla.xla.client import LocalClient, LocalExecutable

Array = np.ndarray[Any, Any]

DEVICES = {"cpu": XLA_CPU_JIT, "interpreter": XLA_INTERPRETER_JIT}


@dataclass(frozen=True)
class Program:
    """A compiled graph with its executable; None where the program computes nothing."""

    result: CompilationResult
    executable: LocalExecutable | None


class CompiledGraph:
    """Compiles a graph on demand and runs it.

    Parameters
    ----------
    name : str
    graph : Graph
        With ``_Arg`` and ``_Retval`` nodes; variables come as handles. Its loops and branches become functions.
    platform : str
        ``"cpu"``, ``"interpreter"``, or a plugin's name.
    """

    def __init__(self, name: str, graph: Graph, platform: str) -> None:
        self.name, self.graph, self.platform = name, graph, platform
        functionalize_control_flow(graph)
        device = DEVICES.get(platform, f"XLA_{platform.upper()}_JIT")
        self.compiler = XlaCompiler(XlaCompilerOptions(device, graph.library))
        args = [node for node in graph.nodes.values() if node.op == "_Arg"]
        self._types = [n.output_types[0] for n in sorted(args, key=lambda n: n.attr("index"))]
        self._constants = self.compiler.analysis.run(graph).args
        self._programs: dict[Any, Program] = {}
        self._lock = Lock()
        self._client: LocalClient | None = None

    @property
    def compiled(self) -> int:
        """How many programs were compiled."""
        return len(self._programs)

    def run(self, step: StepContext, args: Sequence[Array]) -> list[Array]:
        """The values of the ``_Retval`` nodes in order; variables get their new values.

        Raises
        ------
        InvalidArgumentError
            The graph cannot be compiled; the message names the node.
        FailedPreconditionError
            A variable is read that has no value.
        """
        variables = [
            self._variable(step, a) if t is DataType.DT_RESOURCE else None
            for t, a in zip(self._types, args, strict=True)
        ]
        with ExitStack() as locks:
            for variable in sorted({v for v in variables if v is not None}, key=id):
                locks.enter_context(variable.lock)
            values = [a if v is None else v.read() for a, v in zip(args, variables, strict=True)]
            described = [self._describe(i, a, v) for i, (a, v) in enumerate(zip(values, variables, strict=True))]
            program = self._program(described)
            found = self._execute(program, values)
            self._write_back(program.result, variables, found)
        return [self._output(output, args, found) for output in program.result.outputs]

    @staticmethod
    def _variable(step: StepContext, handle: Array) -> Var:
        found: ResourceHandle = handle.item()
        if isinstance(found.resource, Var):
            return found.resource
        dtype = found.dtypes_and_shapes[0][0] if found.dtypes_and_shapes else DataType.DT_INVALID
        made: Var = step.resource_manager.lookup_or_create(found.container, found.name, Var, lambda: Var(dtype))
        return made

    def _describe(self, i: int, value: Array | None, variable: Var | None) -> Argument:
        if variable is None:
            if value is None:
                raise InvalidArgumentError(f"argument {i} of {self.name} has no value")
            return argument_for(value, self._types[i], constant=i in self._constants)
        shape = UNKNOWN if value is None else TensorShape(value.shape)
        return Argument(
            ArgumentKind.RESOURCE,
            variable.dtype,
            shape,
            resource_kind=ResourceKind.VARIABLE,
            initialized=value is not None,
            name=variable.name,
        )

    def _program(self, args: list[Argument]) -> Program:
        key = tuple(arg.key for arg in args)
        with self._lock:
            if key not in self._programs:
                result = self.compiler.compile_graph(self.name, self.graph, args)
                self._programs[key] = Program(result, self._executable(result))
            return self._programs[key]

    def _executable(self, result: CompilationResult) -> LocalExecutable | None:
        if not result.resource_updates and all(not output.places for output in result.outputs):
            return None
        if self._client is None:
            self._client = LocalClient(self.platform)
        return self._client.compile(result.computation)

    @staticmethod
    def _execute(program: Program, values: Sequence[Array | None]) -> tuple[Array, ...]:
        if program.executable is None:
            return ()
        operands = [values[i] for i in program.result.input_mapping]
        if any(x is None for x in operands):
            raise FailedPreconditionError("a variable has no value yet", hint="run its initialiser first")
        found = program.executable.run(operands)
        results: tuple[Array, ...] = found if isinstance(found, tuple) else (found,)
        return results

    @staticmethod
    def _write_back(result: CompilationResult, variables: Sequence[Var | None], found: Sequence[Array]) -> None:
        for update in result.resource_updates:
            variable = variables[update.input_index]
            if variable is not None and update.modified:
                variable.dtype = update.dtype
                variable.assign(found[update.places[0]])

    @staticmethod
    def _output(output: Output, args: Sequence[Array], found: Sequence[Array]) -> Array:
        if output.input_index >= 0:
            return args[output.input_index]
        if output.value is not None:
            known: Array = output.value
            return known
        value: Array = found[output.places[0]]
        return output.cut([found[place] for place in output.places]) if output.dynamic else value
