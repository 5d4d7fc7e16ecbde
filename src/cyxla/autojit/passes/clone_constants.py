"""Clones small constants for each of their users, so that no shared constant connects two clusters."""

from __future__ import annotations

from cyxla.autojit.options import JitOptions
from cyxla.core.framework.attr_value import AttrValue
from cyxla.core.graph.graph import Graph, Node
from cyxla.core.runtime.subgraph import insert_node

MAX_SIZE = 16  # elements: a constant of this size or larger stays shared
_INPLACE_OPS = frozenset(
    {"InplaceAdd", "InplaceSub", "InplaceUpdate", "AliasInplaceAdd", "AliasInplaceSub", "AliasInplaceUpdate"}
)


def clone_constants_for_better_clustering(jit: JitOptions) -> None:
    """Clone the small constants of a graph that is clustered and has no op that updates its input in place."""
    graph = jit.graph
    if not jit.is_global or any(node.op in _INPLACE_OPS for node in graph.nodes.values()):
        return
    users: dict[Node, list[tuple[Node, int]]] = {}
    for node in graph.nodes.values():
        for i, tensor in enumerate(node.inputs):
            if _is_small(tensor.node):
                users.setdefault(tensor.node, []).append((node, i))
    for constant, uses in users.items():
        for number, (user, i) in enumerate(uses[1:]):
            user.inputs[i] = _clone(graph, constant, number).outputs[0]


def _is_small(node: Node) -> bool:
    return node.op == "Const" and node.attr("value").array.size < MAX_SIZE


def _clone(graph: Graph, constant: Node, number: int) -> Node:
    attrs: dict[str, AttrValue] = dict(constant.attrs)
    clone = insert_node(graph, f"{constant.name}/clone_{number}", "Const", attrs)
    clone.assigned_device, clone.device = constant.assigned_device, constant.device
    clone.control_inputs = list(constant.control_inputs)
    return clone
