"""Preparation of graphs that a session compiles as a whole, and the runner of the compiled graph."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from cyxla.autojit.report import ClusterReport, record
from cyxla.autojit.runtime.compiled_graph import CompiledGraph
from cyxla.core.framework.attr_value import AttrValue
from cyxla.core.framework.node_def import NodeDef
from cyxla.core.framework.step.context import StepContext
from cyxla.core.framework.types import DataType
from cyxla.core.graph.algorithm import copy_graph, replace_tensor
from cyxla.core.graph.graph import Graph, Node
from cyxla.core.runtime.engine import Engine, Runner

Array = np.ndarray[Any, Any]

HANDLE_OPS = frozenset({"VarHandleOp", "_VarHandlesOp", "_XlaAotOnlyVarHandleOp"})  # run on the host
_ON_HOST = "it produces a resource handle, which stays on the host"


class CompiledRunner(Runner):
    """Runner of a whole graph as one program, apart from the nodes that produce handles of variables."""

    def __init__(self, handles: Runner | None, compiled: CompiledGraph) -> None:
        self.parts, self.compiled, self._handles = [compiled.graph], compiled, handles

    def run(self, step: StepContext, args: Sequence[Array]) -> list[Any]:
        """Run the graph and return the values of the ``_Retval`` nodes in order."""
        handles = [] if self._handles is None else self._handles.run(step, [])
        return self.compiled.run(step, [*args, *handles])


def prepare_compiled(engine: Engine, graph: Graph) -> Runner:
    """Prepare one program for a placed graph: ``jit="on"``."""
    handles, cluster = split_handles(graph)
    report = {n.name: ClusterReport(n.op, "graph", "") for n in cluster.nodes.values() if n.name in graph.nodes}
    report |= {n.name: ClusterReport(n.op, "", _ON_HOST) for n in handles.nodes.values() if n.name in graph.nodes}
    record(engine.settings, report)
    runner = engine.prepare(handles) if len(handles) else None
    return CompiledRunner(runner, CompiledGraph("graph", cluster, engine.settings.get("platform", "cpu")))


def split_handles(graph: Graph) -> tuple[Graph, Graph]:
    """Split a graph into one that produces the handles of variables, and the rest, which takes them as arguments."""
    cluster, handles = copy_graph(graph), Graph(graph.library)
    count = sum(node.op == "_Arg" for node in cluster.nodes.values())
    index = 0
    for node in [n for n in cluster.nodes.values() if n.op in HANDLE_OPS]:
        handle_node = handles.add_node(_without_controls(node.node_def))
        for tensor in node.outputs:
            arg = _add(cluster, f"{node.name}/handle", "_Arg", [], count + index)
            replace_tensor(cluster, tensor, arg.outputs[0])
            _add(handles, f"{node.name}/retval", "_Retval", [handle_node.outputs[tensor.index].name], index)
            index += 1
        _drop(cluster, node)
    return handles, cluster


def _without_controls(node_def: NodeDef) -> NodeDef:
    return NodeDef(node_def.name, node_def.op, [], node_def.device, dict(node_def.attr))


def _add(graph: Graph, name: str, op: str, inputs: list[str], index: int) -> Node:
    attrs = {"T": AttrValue("type", DataType.DT_RESOURCE), "index": AttrValue("int", index)}
    return graph.add_node(NodeDef(graph.unique_name(name), op, inputs, "", attrs))


def _drop(graph: Graph, node: Node) -> None:
    for other in graph.nodes.values():
        other.control_inputs = [c for c in other.control_inputs if c is not node]
    graph.remove_node(node)
