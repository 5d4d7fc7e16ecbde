"""Small graphs with arguments and results, compiled without a session."""

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
from cyxla.tf2xla.xla_compiler import XlaCompiler, XlaCompilerOptions
from cyxla.tf2xla.xla_op_registry import XLA_INTERPRETER_JIT
from cyxla.tf2xla.xla_resource import ResourceKind
from cyxla.xla.client import LocalClient


def graph_of(make: Callable[..., Any], *types: str, graph: Graph | None = None) -> Graph:
    """A graph whose ``_Arg`` nodes are given to `make`, and whose results are ``_Retval`` nodes."""
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
    """Put a function into a graph's library."""
    graph.library.add(graph_of_args_to_function(graph_of(make, *types, graph=Graph(graph.library)), name))


def parameter(dtype: str, *sizes: int) -> Argument:
    """An argument that is known at run time."""
    return Argument(ArgumentKind.PARAMETER, as_data_type(dtype), TensorShape(sizes))


def constant(value: Any, dtype: str = "int32") -> Argument:
    """An argument whose value is part of the program."""
    array = np.asarray(value, as_data_type(dtype).numpy)
    return Argument(ArgumentKind.CONSTANT, as_data_type(dtype), TensorShape(array.shape), array)


def variable(dtype: str, *sizes: int, initialized: bool = True) -> Argument:
    """A variable."""
    kind = ResourceKind.VARIABLE
    shape = TensorShape(sizes) if initialized else TensorShape(None)
    held = as_data_type(dtype) if initialized else DataType.DT_INVALID
    return Argument(ArgumentKind.RESOURCE, held, shape, resource_kind=kind, initialized=initialized)


def compiler_for(graph: Graph, device: str = XLA_INTERPRETER_JIT, **options: Any) -> XlaCompiler:
    """A compiler for a graph's functions."""
    return XlaCompiler(XlaCompilerOptions(device, graph.library, **options))


def compiled(graph: Graph, *args: Argument, **options: Any) -> CompilationResult:
    """A graph compiled for arguments."""
    return compiler_for(graph, **options).compile_graph("g", graph, args)


def opcodes(result: CompilationResult) -> list[str]:
    """Opcodes of the entry computation, without its parameters and the tuple at its end."""
    entry = result.computation.module().entry
    return [ins.opcode for ins in entry.instructions if ins.opcode not in ("parameter", "tuple")]


def run(result: CompilationResult, values: Sequence[Any]) -> tuple[np.ndarray[Any, Any], ...]:
    """What the computation gives, evaluated."""
    found = LocalClient("interpreter").compile(result.computation).run(list(values))
    return found if isinstance(found, tuple) else (found,)
