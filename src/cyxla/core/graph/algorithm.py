"""Orders and reachability of nodes, without recursion: a chain of a million nodes is nothing special."""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Iterable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from cyxla.core.graph.graph import Graph, Node, Tensor

LOOP_EDGES = ("NextIteration", "RefNextIteration")


def sources(node: Node) -> Iterator[Node]:
    """Nodes that a node waits for: of its inputs, then of its control inputs; some perhaps twice."""
    for tensor in node.inputs:
        yield tensor.node
    yield from node.control_inputs


def consumers(graph: Graph) -> dict[Node, list[tuple[Node, int]]]:
    """Who takes what a node gives: ``(user, number of its input)``, the number -1 for a control edge."""
    users: dict[Node, list[tuple[Node, int]]] = {node: [] for node in graph.nodes.values()}
    for node in graph.nodes.values():
        for i, tensor in enumerate(node.inputs):
            users[tensor.node].append((node, i))
        for control in node.control_inputs:
            users[control].append((node, -1))
    return users


def reachable_backward(starts: Iterable[Node], stop: Collection[Node] = ()) -> dict[Node, None]:
    """The nodes that others need, themselves included; what only `stop` needs is left out.

    The result is a dict for its order: breadth first from the starts.
    """
    seen: dict[Node, None] = dict.fromkeys(starts)
    queue = deque(seen)
    while queue:
        node = queue.popleft()
        if node in stop:
            continue
        for source in sources(node):
            if source not in seen:
                seen[source] = None
                queue.append(source)
    return seen


def reachable_forward(starts: Iterable[Node], graph: Graph, *, controls: bool = True) -> dict[Node, None]:
    """The nodes that depend on others, themselves included."""
    users = consumers(graph)
    seen: dict[Node, None] = dict.fromkeys(starts)
    queue = deque(seen)
    while queue:
        for user, position in users[queue.popleft()]:
            if user not in seen and (controls or position >= 0):
                seen[user] = None
                queue.append(user)
    return seen


def post_order(starts: Iterable[Node], among: Collection[Node] | None = None) -> list[Node]:
    """The nodes that others need, every node after its sources, depth first in the order of inputs.

    Parameters
    ----------
    starts : iterable of Node
        The nodes that are needed.
    among : collection of Node, optional
        Look at these alone.

    Notes
    -----
    The edges from a NextIteration to its Merge do not count: they close loops.
    """
    order: list[Node] = []
    entered: set[Node] = set()
    stack: list[tuple[Node, Iterator[Node]]] = []
    for start in starts:
        if start in entered or (among is not None and start not in among):
            continue
        entered.add(start)
        stack.append((start, _forward_sources(start)))
        while stack:
            node, rest = stack[-1]
            source = next(rest, None)
            if source is None:
                stack.pop()
                order.append(node)
            elif source not in entered and (among is None or source in among):
                entered.add(source)
                stack.append((source, _forward_sources(source)))
    return order


def _forward_sources(node: Node) -> Iterator[Node]:
    if node.op in ("Merge", "RefMerge"):
        return (source for source in sources(node) if source.op not in LOOP_EDGES)
    return sources(node)


def topological_order(graph: Graph) -> list[Node]:
    """All nodes, every one after its sources (edges that close loops aside)."""
    return post_order(graph.nodes.values())


def prune(graph: Graph, keep: Iterable[Node]) -> int:
    """Take out all nodes that the given ones do not need; gives how many went."""
    needed = reachable_backward(keep)
    unneeded = [node for node in graph.nodes.values() if node not in needed]
    for node in unneeded:
        graph.remove_node(node)
    return len(unneeded)


def copy_graph(graph: Graph) -> Graph:
    """A graph of new nodes with the same names; functions and constants are shared."""
    from cyxla.core.graph.graph import Graph as NewGraph

    new = NewGraph(graph.library.default_registry)
    new.versions = replace(graph.versions)
    new.library, new.file_access = graph.library.copy(), graph.file_access
    twins = {node: new.shallow_node(node) for node in graph.nodes.values()}
    for node, twin in twins.items():
        twin.inputs = [twins[t.node].outputs[t.index] for t in node.inputs]
        twin.control_inputs = [twins[c] for c in node.control_inputs]
    return new


def replace_tensor(graph: Graph, old: Tensor, new: Tensor) -> int:
    """Let every user of a tensor take another instead; gives how many inputs changed."""
    count = 0
    for node in graph.nodes.values():
        for i, tensor in enumerate(node.inputs):
            if tensor is old and node is not new.node:
                graph.set_input(node, i, new)
                count += 1
    return count
