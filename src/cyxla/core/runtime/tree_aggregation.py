"""Aggregation by devices: a sum of tensors of several devices adds those of each other device there first.

::

    cpu:0  y = AddN(a, b, c, d)         y = AddN(a, b, partial)
    cpu:1  c, d                         partial = AddN(c, d)

Each device then sends one tensor. The sum of floats has another order, and may differ by their rounding.
"""

from __future__ import annotations

from collections.abc import Iterable

from cyxla.core.framework.attr_value import AttrValue
from cyxla.core.framework.device_base import DeviceName
from cyxla.core.graph.graph import Graph, Node, Tensor
from cyxla.core.runtime.optimization_registry import Grouping, OptimizationPassOptions, OptimizationPassRegistry
from cyxla.core.runtime.subgraph import insert_node

PHASE = 1  # before clusters are formed


def register(registry: OptimizationPassRegistry) -> None:
    """Add the pass to a registry."""
    registry.register(Grouping.POST_REWRITE_FOR_EXEC, PHASE, tree_aggregation, "tree_aggregation")


def tree_aggregation(options: OptimizationPassOptions) -> int:
    """Add nodes that aggregate on each device what it sends to an aggregate op, and return their number.

    Tensors that the other device needs anyway are sent as they are.
    """
    graph = options.graph
    if not options.engine.optimize or len({node.assigned_device for node in graph.nodes.values()}) < 2:
        return 0
    sums = [node for node in graph.nodes.values() if _is_sum(node)]
    return sum(_aggregate(graph, node, options) for node in sums)


def _is_sum(node: Node) -> bool:
    """Return True for a stateless aggregate op of one list of tensors, such as AddN."""
    op_def = node.op_def
    is_list = len(op_def.input_arg) == 1 and bool(op_def.input_arg[0].number_attr)
    return op_def.is_aggregate and is_list and not node.is_stateful and not any(t.is_ref for t in node.input_types)


def _aggregate(graph: Graph, node: Node, options: OptimizationPassOptions) -> int:
    """Rewrite the inputs of one node; return the number of new nodes."""
    needed_anyway = _sent(graph.nodes.values(), node)
    groups: dict[str, list[Tensor]] = {}
    for tensor in node.inputs:
        if tensor.node.assigned_device != node.assigned_device and tensor not in needed_anyway:
            groups.setdefault(tensor.node.assigned_device, []).append(tensor)
    partial_sums = [
        _partial_sum(graph, node, device, tensors)
        for device, tensors in groups.items()
        if len(set(tensors)) > 1 and _has_kernel(node, device, options)
    ]
    aggregated = {t for partial in partial_sums for t in partial.inputs}
    rest = [t for t in node.inputs if t not in aggregated]
    _set_inputs(node, [*rest, *[partial.outputs[0] for partial in partial_sums]])
    return len(partial_sums)


def _sent(nodes: Iterable[Node], node: Node) -> set[Tensor]:
    """Return the tensors that other nodes on the device of a node read."""
    readers = [n for n in nodes if n is not node and n.assigned_device == node.assigned_device]
    return {t for reader in readers for t in reader.inputs}


def _has_kernel(node: Node, device: str, options: OptimizationPassOptions) -> bool:
    device_type = DeviceName.parse(device).type or ""
    return options.engine.kernels.kernel_def_available(device_type, node.node_def)


def _partial_sum(graph: Graph, node: Node, device: str, tensors: list[Tensor]) -> Node:
    """Add a node that aggregates tensors of a device there."""
    arg = node.op_def.input_arg[0]
    attrs = {**node.attrs, arg.number_attr: AttrValue("int", len(tensors))}
    attrs = {name: value for name, value in attrs.items() if not name.startswith("_")}
    partial = insert_node(graph, f"{node.name}/partial", node.op, attrs, tensors)
    partial.assigned_device = device
    return partial


def _set_inputs(node: Node, tensors: list[Tensor]) -> None:
    node.inputs = tensors
    node.input_types = node.input_types[: len(tensors)]
    node.attrs[node.op_def.input_arg[0].number_attr] = AttrValue("int", len(tensors))
