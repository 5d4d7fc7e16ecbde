"""Pairs of variable accesses that must not be in one cluster.

A cluster reads all its variables when it begins and writes them when it ends. A node that must read or update a
variable after a write therefore needs another cluster than that write.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import IntFlag

from cyxla.core.framework.types import DataType
from cyxla.core.graph.algorithm import topological_order
from cyxla.core.graph.graph import Graph, Node

_NEXT_ITERATIONS = frozenset({"NextIteration", "RefNextIteration"})


class Access(IntFlag):
    """Access of a node to variables."""

    NONE = 0
    READ = 1
    WRITE = 2
    BOTH = 3


_READS = frozenset(
    {"ReadVariableOp", "_ReadVariablesOp", "ResourceGather", "ResourceGatherNd", "VariableShape", "VarIsInitializedOp"}
)
_WRITES = frozenset({"AssignVariableOp", "_AssignVariablesOp"})
_WITHOUT_ACCESS = (
    frozenset({"_Arg", "_Retval", "Identity", "IdentityN", "Switch", "Merge", "Enter", "Exit"}) | _NEXT_ITERATIONS
)


def access_of(node: Node) -> Access:
    """Return the access of a node to the variables whose handles it takes."""
    if node.op in _WITHOUT_ACCESS or DataType.DT_RESOURCE not in node.input_types:
        return Access.NONE
    if node.op in _READS:
        return Access.READ
    return Access.WRITE if node.op in _WRITES else Access.BOTH


def is_safe(first: Access, second: Access) -> bool:
    """Return True if two accesses keep their order inside of one cluster."""
    return first is Access.READ or second is Access.WRITE


def incompatible_pairs(graph: Graph, access: Callable[[Node], Access] = access_of) -> set[tuple[Node, Node]]:
    """Return pairs of nodes that must not be in one cluster; the first of a pair must run before the second."""
    reaching: dict[Node, frozenset[Node]] = {}
    no_nodes: frozenset[Node] = frozenset()
    pairs: set[tuple[Node, Node]] = set()
    for node in topological_order(graph):
        sources = [t.node for t in node.inputs] + node.control_inputs
        sets = {id(s): s for s in (reaching.get(n, no_nodes) for n in sources if n.op not in _NEXT_ITERATIONS) if s}
        before = next(iter(sets.values())) if len(sets) == 1 else no_nodes.union(*sets.values())
        node_access = access(node)
        if node_access is not Access.NONE:
            pairs.update((other, node) for other in before if not is_safe(access(other), node_access))
            before = before | {node}
        reaching[node] = before
    return pairs
