"""The execution order of a graph without loops."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable

from cyxla.core.graph.graph import Node
from cyxla.errors import InvalidArgumentError

BACK_EDGES = frozenset({"NextIteration", "RefNextIteration"})
MERGES = frozenset({"Merge", "RefMerge", "_XlaMerge"})


def topological_order(nodes: Iterable[Node]) -> list[Node]:
    """Return nodes in topological order, otherwise in the given order and as early as possible (Kahn's algorithm).

    Edges from ``NextIteration`` to ``Merge``, which close loops, are ignored.

    Raises
    ------
    InvalidArgumentError
        The graph has a cycle; the message names nodes that depend on it.
    """
    nodes = list(nodes)
    waiting: dict[Node, int] = {}
    users: dict[Node, list[Node]] = {node: [] for node in nodes}
    for node in nodes:
        before = [t.node for t in node.inputs if not (t.node.op in BACK_EDGES and node.op in MERGES)]
        before += node.control_inputs
        waiting[node] = len(before)
        for other in before:
            users[other].append(node)
    ready = deque(node for node in nodes if not waiting[node])
    order: list[Node] = []
    while ready:
        node = ready.popleft()
        order.append(node)
        for user in users[node]:
            waiting[user] -= 1
            if not waiting[user]:
                ready.append(user)
    if len(order) < len(nodes):
        stuck = [node.name for node in nodes if waiting[node]]
        raise InvalidArgumentError(
            f"the graph has a cycle that is not a loop of NextIteration and Merge; {len(stuck)} nodes wait for it, "
            f"such as {', '.join(stuck[:5])}"
        )
    return order
