"""Common subgraph elimination: equal nodes are merged into one."""

from __future__ import annotations

from typing import Any

from cyxla.core.framework.node_def import STACK_TRACE_ATTR
from cyxla.core.graph.graph import Graph, Node
from cyxla.core.runtime.optimization_registry import Grouping, OptimizationPassOptions, OptimizationPassRegistry
from cyxla.core.runtime.schedule import topological_order

PHASE = 20
MAX_CONSTANT = 4096  # bytes; larger constants are not compared
_IGNORED_ATTRS = frozenset({"_class", "_output_shapes", STACK_TRACE_ATTR})  # attributes that do not affect the result
_EXCLUDED_OPS = frozenset(
    prefix + op for prefix in ("", "Ref") for op in ("Switch", "Merge", "Enter", "Exit", "NextIteration", "Select")
) | {"_Arg", "_Retval", "LoopCond", "ControlTrigger", "Placeholder", "PlaceholderV2", "NoOp"}


def register(registry: OptimizationPassRegistry) -> None:
    """Add the pass to a registry."""
    registry.register(Grouping.POST_PARTITIONING, PHASE, common_subgraph_elimination, "common_subgraph_elimination")


def common_subgraph_elimination(options: OptimizationPassOptions) -> int:
    """Merge equal nodes of a graph in place, and return the number of removed nodes.

    Nodes are equal if they have the same op, attributes, inputs, control inputs and device; the inputs of a commutative
    op may be in any order. Stateful nodes are never merged.
    """
    return eliminate(options.graph)


def eliminate(graph: Graph) -> int:
    """Merge equal nodes of a graph in place, and return the number of removed nodes."""
    node_of_key: dict[Any, Node] = {}
    replacements: dict[Node, Node] = {}
    for node in topological_order(graph.nodes.values()):
        _redirect(node, replacements)
        if _may_merge(node):
            representative = node_of_key.setdefault(_key(node), node)
            if representative is not node:
                replacements[node] = representative
    for node in graph.nodes.values():  # once more, for the loop back edges of merges
        _redirect(node, replacements)
    for node in replacements:
        del graph.nodes[node.name]
    return len(replacements)


def _redirect(node: Node, replacements: dict[Node, Node]) -> None:
    if any(t.node in replacements for t in node.inputs):
        node.inputs = [replacements[t.node].outputs[t.index] if t.node in replacements else t for t in node.inputs]
    if any(c in replacements for c in node.control_inputs):
        node.control_inputs = list(dict.fromkeys(replacements.get(c, c) for c in node.control_inputs))


def _may_merge(node: Node) -> bool:
    if node.is_stateful or node.op in _EXCLUDED_OPS or not node.outputs:
        return False
    if node.op == "Const" and node.attr("value").array.nbytes > MAX_CONSTANT:
        return False
    return not any(t.is_ref for t in (*node.input_types, *node.output_types))


def _key(node: Node) -> Any:
    inputs = [(t.node.id, t.node.name, t.index) for t in node.inputs]
    if node.op_def.is_commutative:
        inputs.sort()
    attrs = frozenset((name, value) for name, value in node.attrs.items() if name not in _IGNORED_ATTRS)
    controls = frozenset(control.name for control in node.control_inputs)
    return (node.op, attrs, tuple(inputs), controls, node.assigned_device)
