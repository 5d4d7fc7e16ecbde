"""Groups of nodes that only one cluster can hold, all or none: those connected by lists, tensor arrays or stacks.

A list made by a compiled node is no value of a session's; a cluster can neither take nor give one. So nodes that are
connected through lists belong into one cluster, all or none.
"""

from __future__ import annotations

from collections.abc import Iterator

from cyxla.core.framework.types import DataType
from cyxla.core.graph.algorithm import topological_order
from cyxla.core.graph.graph import Graph, Node, Tensor

_MAKERS = frozenset({"TensorArrayV3", "TensorArrayGradV3", "StackV2"})  # give handles of what they make
_PASSING = frozenset({"Identity", "IdentityN", "While", "StatelessWhile"})  # result i is what input i was


def indivisible_groups(graph: Graph) -> list[frozenset[Node]]:
    """Sets of nodes that are connected through lists and the like, each in no other."""
    groups: dict[Node, set[Node]] = {}
    for source, user in _edges(graph):
        joined = groups.setdefault(source, {source}) | groups.setdefault(user, {user})
        for node in joined:
            groups[node] = joined
    return list(dict.fromkeys(frozenset(g) for g in {id(g): g for g in groups.values()}.values()))


def _edges(graph: Graph) -> Iterator[tuple[Node, Node]]:
    handles: set[tuple[Node, int]] = set()
    for node in topological_order(graph):
        for tensor in node.inputs:
            if tensor.dtype is DataType.DT_VARIANT or (tensor.node, tensor.index) in handles:
                yield tensor.node, node
        handles.update((node, i) for i in _handles(node, handles))


def _handles(node: Node, known: set[tuple[Node, int]]) -> list[int]:
    """Which results of a node are handles of arrays or stacks."""
    resources = [i for i, t in enumerate(node.output_types) if t is DataType.DT_RESOURCE]
    if node.op in _MAKERS:
        return resources
    return [i for i in resources if node.op in _PASSING and _is_known(node.inputs[i], known)]


def _is_known(tensor: Tensor, known: set[tuple[Node, int]]) -> bool:
    return (tensor.node, tensor.index) in known
