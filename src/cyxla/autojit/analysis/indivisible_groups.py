"""Groups of nodes that are clustered together or not at all: those connected by tensor lists, arrays or stacks.

A tensor list of compiled code is not a value of the session, so that it can be neither an argument nor a result of a
cluster. All nodes that are connected by such values must therefore be in one cluster.
"""

from __future__ import annotations

from collections.abc import Iterator

from cyxla.core.framework.types import DataType
from cyxla.core.graph.algorithm import topological_order
from cyxla.core.graph.graph import Graph, Node, Tensor

_PRODUCERS = frozenset({"TensorArrayV3", "TensorArrayGradV3", "StackV2"})  # return handles of arrays or stacks
_FORWARDING = frozenset({"Identity", "IdentityN", "While", "StatelessWhile"})  # result i is the handle of input i


def indivisible_groups(graph: Graph) -> list[frozenset[Node]]:
    """Return disjoint sets of nodes that are connected by lists, arrays or stacks."""
    groups: dict[Node, set[Node]] = {}
    for source, user in _edges(graph):
        group = groups.setdefault(source, {source}) | groups.setdefault(user, {user})
        for node in group:
            groups[node] = group
    return list(dict.fromkeys(frozenset(g) for g in {id(g): g for g in groups.values()}.values()))


def _edges(graph: Graph) -> Iterator[tuple[Node, Node]]:
    handles: set[tuple[Node, int]] = set()
    for node in topological_order(graph):
        for tensor in node.inputs:
            if tensor.dtype is DataType.DT_VARIANT or (tensor.node, tensor.index) in handles:
                yield tensor.node, node
        handles.update((node, i) for i in _handles(node, handles))


def _handles(node: Node, handles: set[tuple[Node, int]]) -> list[int]:
    """Return the indices of the results that are handles of arrays or stacks."""
    resources = [i for i, t in enumerate(node.output_types) if t is DataType.DT_RESOURCE]
    if node.op in _PRODUCERS:
        return resources
    return [i for i in resources if node.op in _FORWARDING and _is_handle(node.inputs[i], handles)]


def _is_handle(tensor: Tensor, handles: set[tuple[Node, int]]) -> bool:
    return (tensor.node, tensor.index) in handles
