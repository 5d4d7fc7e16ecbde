"""The order in which a graph without loops runs, and the places of its values."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable

from cyxla.core.graph.graph import Node
from cyxla.errors import InvalidArgumentError

BACK_EDGES = frozenset({"NextIteration", "RefNextIteration"})
MERGES = frozenset({"Merge", "RefMerge", "_XlaMerge"})


def topological_order(nodes: Iterable[Node]) -> list[Node]:
    """The nodes so that each follows what it depends on; else in the given order, as early as possible.

    Edges from ``NextIteration`` to ``Merge`` close loops and do not count.

    Raises
    ------
    InvalidArgumentError
        There is a cycle; the message names nodes on it.
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
