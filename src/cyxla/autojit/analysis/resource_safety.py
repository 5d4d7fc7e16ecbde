"""Which operations on variables must not be in one cluster.

A cluster reads all its variables when it begins and writes them when it ends. Whatever must read after a write, or
update after a write, therefore belongs into another cluster than that write.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import IntFlag

from cyxla.core.framework.types import DataType
from cyxla.core.graph.algorithm import topological_order
from cyxla.core.graph.graph import Graph, Node

_NEXT = frozenset({"NextIteration", "RefNextIteration"})


class Access(IntFlag):
    """What a node does to variables."""

    NONE = 0
    READ = 1
    WRITE = 2
    BOTH = 3


_READS = frozenset(
    {"ReadVariableOp", "_ReadVariablesOp", "ResourceGather", "ResourceGatherNd", "VariableShape", "VarIsInitializedOp"}
)
_WRITES = frozenset({"AssignVariableOp", "_AssignVariablesOp"})
_WITHOUT_ACCESS = frozenset({"_Arg", "_Retval", "Identity", "IdentityN", "Switch", "Merge", "Enter", "Exit"}) | _NEXT


def access_of(node: Node) -> Access:
    """What a node does to the variables whose handles it takes."""
    if node.op in _WITHOUT_ACCESS or DataType.DT_RESOURCE not in node.input_types:
        return Access.NONE
    if node.op in _READS:
        return Access.READ
    return Access.WRITE if node.op in _WRITES else Access.BOTH


def is_safe(first: Access, second: Access) -> bool:
    """Whether two accesses keep their order inside of one cluster."""
    return first is Access.READ or second is Access.WRITE


def incompatible_pairs(graph: Graph, access: Callable[[Node], Access] = access_of) -> set[tuple[Node, Node]]:
    """Pairs of nodes, the first of which must run before the second, that must not be in one cluster."""
    reaching: dict[Node, frozenset[Node]] = {}
    none: frozenset[Node] = frozenset()
    pairs: set[tuple[Node, Node]] = set()
    for node in topological_order(graph):
        sources = [t.node for t in node.inputs] + node.control_inputs
        sets = {id(s): s for s in (reaching.get(n, none) for n in sources if n.op not in _NEXT) if s}
        before = next(iter(sets.values())) if len(sets) == 1 else none.union(*sets.values())
        own = access(node)
        if own is not Access.NONE:
            pairs.update((other, node) for other in before if not is_safe(access(other), own))
            before = before | {node}
        reaching[node] = before
    return pairs
