"""The kernel that compiles a single node when it runs."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from typing import Any

import numpy as np

from cyxla.autojit.devices import REGISTRY
from cyxla.autojit.runtime.device_compiler import CompileMode, XlaCompilationCache, build_compilation_cache
from cyxla.autojit.runtime.launch import Program, describe, describe_variable, hold_locks, variable_of
from cyxla.core.framework.attr_value import AttrValue
from cyxla.core.framework.kernel_registry import KernelRegistry
from cyxla.core.framework.node_def import NodeDef
from cyxla.core.framework.op_kernel import OpKernel, OpKernelConstruction
from cyxla.core.framework.op_kernel_context import OpKernelContext
from cyxla.core.framework.types import DataType
from cyxla.core.graph.graph import Graph
from cyxla.forking import new_lock
from cyxla.tf2xla.xla_op_registry import XlaOpRegistry

Array = np.ndarray[Any, Any]


class XlaCompileOnDemandOp(OpKernel):
    """Kernel that compiles its node for the arguments at hand, and runs the program."""

    is_expensive = True

    def __init__(self, construction: OpKernelConstruction) -> None:
        super().__init__(construction)
        info = REGISTRY.find(construction.device_type)
        self.platform = "cpu" if info is None else info.platform
        self.library = construction.function_library.library if construction.function_library is not None else None
        self._graph: Graph | None = None
        self._constant: frozenset[int] = frozenset()
        self._lock = new_lock()

    def compute(self, ctx: OpKernelContext) -> None:
        """Run the program for these inputs, compiling it if there is none."""
        inputs = [ctx.input(i) for i in range(ctx.num_inputs)]
        cache = build_compilation_cache(ctx.resource_manager, self.platform)
        graph = self._graph_of_node(cache)
        variables = [
            variable_of(ctx.resource_manager, x) if t is DataType.DT_RESOURCE else None
            for x, t in zip(inputs, self.input_types, strict=True)
        ]
        with hold_locks(variables):
            values: list[Any] = [x if v is None else v.read() for x, v in zip(inputs, variables, strict=True)]
            args = [
                describe(value, t.base, constant=i in self._constant) if v is None else describe_variable(v, value)
                for i, (value, v, t) in enumerate(zip(values, variables, self.input_types, strict=True))
            ]

            def build() -> Program:
                result = cache.compiler(graph.library).compile_graph(self.type_string, graph, args)
                return Program(result, cache.build_executable(result))

            key = (self.type_string, self._text)
            program = cache.compile_if_needed(key, tuple(a.key for a in args), build, CompileMode.STRICT)
            assert program is not None
            results = program.run(values)
            program.write_back(variables, results)
        for i, value in enumerate(program.results(inputs, results)):
            ctx.set_output(i, value)

    def _graph_of_node(self, cache: XlaCompilationCache) -> Graph:
        """Return a graph that consists of the node, its arguments and its results."""
        with self._lock:
            if self._graph is None:
                graph = self._single_node_graph()
                self._constant = frozenset(cache.compiler(graph.library).analysis.run(graph).args)
                self._graph = graph
            return self._graph

    def _single_node_graph(self) -> Graph:
        graph = Graph()
        if self.library is not None:
            graph.library = self.library
        args = []
        for i, dtype in enumerate(self.input_types):
            attrs = {"T": AttrValue("type", dtype.base), "index": AttrValue("int", i)}
            args.append(graph.add_node(NodeDef(f"arg_{i}", "_Arg", [], attr=attrs)).outputs[0])
        node_def = self.props.node_def
        attr = {k: v for k, v in node_def.attr.items() if k != "_class"}
        self._text = repr(sorted((k, repr(v.value)) for k, v in attr.items() if not k.startswith("_")))
        node = graph.add_node(replace(node_def, name="node", input=[t.name for t in args], device="", attr=attr))
        for i, tensor in enumerate(node.outputs):
            attrs = {"T": AttrValue("type", tensor.dtype.base), "index": AttrValue("int", i)}
            graph.add_node(NodeDef(f"retval_{i}", "_Retval", [tensor.name], attr=attrs))
        return graph


def register_on_demand(device_type: str, jit_device: str, without: Collection[str], target: KernelRegistry) -> int:
    """Register the kernel for all ops that compile for a device, except those in `without`; return their number."""
    registry = XlaOpRegistry.global_()
    compilation_only = {
        op for op in registry.get_all_registered_ops() if all(r.compilation_only for r in registry.registrations(op))
    }
    count = 0
    for kernel_def in registry.device_kernels(jit_device, target):
        if kernel_def.op not in without and kernel_def.op not in compilation_only:
            target.register(replace(kernel_def, device_type=device_type), XlaCompileOnDemandOp, "XlaCompileOnDemandOp")
            count += 1
    return count
