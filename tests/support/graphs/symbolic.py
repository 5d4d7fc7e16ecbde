"""Graphs with arguments and results, compiled without a session."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from cyxla.core.framework.apply import apply_op
from cyxla.core.framework.tensor_shape import TensorShape
from cyxla.core.framework.types import DataType, as_data_type
from cyxla.core.graph.function_body import graph_of_args_to_function
from cyxla.core.graph.graph import Graph
from cyxla.tf2xla.argument import Argument, ArgumentKind, CompilationResult
from cyxla.tf2xla.xla_backends import XLA_INTERPRETER_JIT
from cyxla.tf2xla.xla_compiler import XlaCompiler, XlaCompilerOptions
from cyxla.tf2xla.xla_resource import ResourceKind
from cyxla.xla.client import LocalClient


def graph_of(make: Callable[..., Any], *types: str, graph: Graph | None = None) -> Graph:
    """Return a graph with the results of `make`, called with ``_Arg`` nodes, as ``_Retval`` nodes."""
    graph = Graph() if graph is None else graph
    with graph.as_default():
        args = [apply_op("_Arg", T=as_data_type(t), index=i, name=f"arg{i}") for i, t in enumerate(types)]
        made = make(*args)
        if made is None:
            made = ()
        for i, tensor in enumerate(made if isinstance(made, (tuple, list)) else [made]):
            apply_op("_Retval", tensor, index=i, name=f"ret{i}")
    return graph


def add_function(graph: Graph, name: str, make: Callable[..., Any], *types: str) -> None:
    """Add a function to the library of a graph."""
    graph.library.add(graph_of_args_to_function(graph_of(make, *types, graph=Graph(graph.library)), name))


def parameter(dtype: str, *sizes: int) -> Argument:
    """Return an argument whose value is known at run time."""
    return Argument(ArgumentKind.PARAMETER, as_data_type(dtype), TensorShape(sizes))


def constant(value: Any, dtype: str = "int32") -> Argument:
    """Return an argument whose value is a compile-time constant."""
    array = np.asarray(value, as_data_type(dtype).numpy)
    return Argument(ArgumentKind.CONSTANT, as_data_type(dtype), TensorShape(array.shape), array)


def variable(dtype: str, *sizes: int, initialized: bool = True) -> Argument:
    """Return an argument that is a variable."""
    kind = ResourceKind.VARIABLE
    shape = TensorShape(sizes) if initialized else TensorShape(None)
    held = as_data_type(dtype) if initialized else DataType.DT_INVALID
    return Argument(ArgumentKind.RESOURCE, held, shape, resource_kind=kind, initialized=initialized)


def compiler_for(graph: Graph, device: str = XLA_INTERPRETER_JIT, **options: Any) -> XlaCompiler:
    """Return a compiler for the functions of a graph."""
    return XlaCompiler(XlaCompilerOptions(device, graph.library, **options))


def compiled(graph: Graph, *args: Argument, **options: Any) -> CompilationResult:
    """Compile a graph for arguments."""
    return compiler_for(graph, **options).compile_graph("g", graph, args)


def opcodes(result: CompilationResult) -> list[str]:
    """Return the opcodes of the entry computation but for its parameters and its root tuple."""
    entry = result.computation.module().entry
    return [ins.opcode for ins in entry.instructions if ins.opcode not in ("parameter", "tuple")]


def run(result: CompilationResult, values: Sequence[Any]) -> tuple[np.ndarray[Any, Any], ...]:
    """Return the results of the computation on the interpreter."""
    found = LocalClient("interpreter").compile(result.computation).run(list(values))
    return found if isinstance(found, tuple) else (found,)
