"""A graph that is compiled as a whole: one program for each signature of its arguments."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from cyxla.autojit.devices import compilation_device_of
from cyxla.autojit.fused_ops.rewrite import specialize
from cyxla.autojit.runtime.launch import (
    HeldLocks,
    Program,
    Variables,
    compile_computation,
    describe,
    describe_variable,
    value_key,
)
from cyxla.core.framework.step.context import StepContext
from cyxla.core.framework.types import DataType
from cyxla.core.framework.variable import Var
from cyxla.core.graph.graph import Graph
from cyxla.errors import InvalidArgumentError
from cyxla.forking import new_lock
from cyxla.gc_pause import fewer_collections
from cyxla.tf2xla.argument import Argument, CompilationResult
from cyxla.tf2xla.functionalize.control_flow import functionalize_control_flow
from cyxla.tf2xla.xla_compiler import CompileOptions, XlaCompiler, XlaCompilerOptions
from cyxla.xla.client import LocalClient, LocalExecutable

Array = np.ndarray[Any, Any]


class CompiledGraph:
    """A graph that is compiled on demand and run.

    Parameters
    ----------
    name : str
        Name for messages.
    graph : Graph
        Graph with ``_Arg`` and ``_Retval`` nodes, which takes variables as handles. Its loops and branches are
        functionalized in place.
    platform : str
        Platform: ``"cpu"``, ``"interpreter"``, or a plugin's name.
    """

    def __init__(self, name: str, graph: Graph, platform: str) -> None:
        self.name, self.graph, self.platform = name, graph, platform
        functionalize_control_flow(graph)
        options = XlaCompilerOptions(compilation_device_of(platform), graph.library, rewrite=specialize)
        self.compiler = XlaCompiler(options)
        specialize(graph, self.compiler.options)
        args = [node for node in graph.nodes.values() if node.op == "_Arg"]
        self._types = [n.output_types[0] for n in sorted(args, key=lambda n: n.attr("index"))]
        self._resources = [i for i, t in enumerate(self._types) if t is DataType.DT_RESOURCE]
        texts = {i for i, t in enumerate(self._types) if t in (DataType.DT_STRING, DataType.DT_VARIANT)}
        self._constants = sorted((self.compiler.analysis.run(graph).args | texts).difference(self._resources))
        self._variables = Variables()
        self._programs: dict[Any, Program] = {}
        self._lock = new_lock()
        self._client: LocalClient | None = None

    @property
    def compiled(self) -> int:
        """The number of programs compiled so far."""
        return len(self._programs)

    @property
    def constants(self) -> frozenset[int]:
        """Numbers of the arguments whose values the compiler needs."""
        return frozenset(self._constants)

    @property
    def types(self) -> Sequence[DataType]:
        """Types of the arguments."""
        return self._types

    def lower(self, args: Sequence[Argument], options: CompileOptions) -> CompilationResult:
        """Return the program for arguments as they are described, without compiling native code."""
        with self._lock, fewer_collections():
            return self.compiler.compile_graph(self.name, self.graph, args, options)

    def run(self, step: StepContext, args: Sequence[Array]) -> list[Array]:
        """Run the graph, write its variables back, and return the values of the ``_Retval`` nodes in order.

        Raises
        ------
        InvalidArgumentError
            The graph cannot be compiled, or reads a variable that has no value; the message names the node.
        """
        if not self._resources:
            program = self._find_program(args, {})
            return program.results(args, program.run(args))
        resource_variables, locks = self._variables.of(step.resource_manager, [args[i] for i in self._resources])
        variables = dict(zip(self._resources, resource_variables, strict=True))
        values: list[Any] = list(args)
        with HeldLocks(locks):
            for i, variable in variables.items():
                values[i] = variable.read()
            program = self._find_program(values, variables)
            results = program.run(values)
            program.write_back(variables, results)
        return program.results(args, results)

    def _find_program(self, values: Sequence[Array | None], variables: Mapping[int, Var]) -> Program:
        """Return the program for arguments of this signature, which includes the values of constants."""
        constants = tuple([value_key(values[i]) for i in self._constants])
        shapes = tuple([None if v is None else v.shape for v in values])
        key = (shapes, constants, tuple([v.dtype for v in variables.values()]))
        program = self._programs.get(key)
        return self._compile(key, values, variables) if program is None else program

    def _compile(self, key: Any, values: Sequence[Array | None], variables: Mapping[int, Var]) -> Program:
        with self._lock, fewer_collections():
            if key not in self._programs:
                args = [self._describe(i, value, variables.get(i)) for i, value in enumerate(values)]
                result = self.compiler.compile_graph(self.name, self.graph, args)
                self._programs[key] = Program(result, self._executable(result))
            return self._programs[key]

    def _describe(self, i: int, value: Array | None, variable: Var | None) -> Argument:
        if variable is not None:
            return describe_variable(variable, value)
        if value is None:
            raise InvalidArgumentError(f"argument {i} of {self.name} has no value")
        return describe(value, self._types[i], constant=i in self._constants)

    def _executable(self, result: CompilationResult) -> LocalExecutable | None:
        if result.is_empty:
            return None
        if self._client is None:
            self._client = LocalClient(self.platform)
        return compile_computation(self._client, result.computation)
