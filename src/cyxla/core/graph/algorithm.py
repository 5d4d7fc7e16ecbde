"""Orders, reachability and copies of nodes; nothing is recursive, so that chains of a million nodes are fine."""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Iterable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from cyxla.core.graph.graph import Graph, Node, Tensor

LOOP_EDGES = ("NextIteration", "RefNextIteration")


def sources(node: Node) -> Iterator[Node]:
    """Yield the sources of a node's inputs, then its control inputs; a node may occur twice."""
    for tensor in node.inputs:
        yield tensor.node
    yield from node.control_inputs


def consumers(graph: Graph) -> dict[Node, list[tuple[Node, int]]]:
    """Return the users of each node as ``(user, input index)``, with the index -1 for a control edge."""
    users: dict[Node, list[tuple[Node, int]]] = {node: [] for node in graph.nodes.values()}
    for node in graph.nodes.values():
        for i, tensor in enumerate(node.inputs):
            users[tensor.node].append((node, i))
        for control in node.control_inputs:
            users[control].append((node, -1))
    return users


def reachable_backward(starts: Iterable[Node], stop: Collection[Node] = ()) -> dict[Node, None]:
    """Return the ancestors of nodes, including the nodes; the search does not continue beyond nodes in `stop`.

    The result is a dict, whose order is breadth first from the starts.
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
    """Return the descendants of nodes, including the nodes."""
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
    """Return the ancestors of nodes in post-order: each after its sources, depth first in the order of inputs.

    Parameters
    ----------
    starts : iterable of Node
        Nodes to start from.
    among : collection of Node, optional
        Nodes to which the search is limited.

    Notes
    -----
    Edges from a NextIteration to its Merge, which close loops, are ignored.
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
    """Return all nodes, each after its sources; edges that close loops are ignored."""
    return post_order(graph.nodes.values())


def prune(graph: Graph, keep: Iterable[Node]) -> int:
    """Remove all nodes that are not ancestors of the given ones, and return the number of removed nodes."""
    needed = reachable_backward(keep)
    unneeded = [node for node in graph.nodes.values() if node not in needed]
    for node in unneeded:
        graph.remove_node(node)
    return len(unneeded)


def copy_graph(graph: Graph) -> Graph:
    """Return a copy of a graph with a library of its own; functions and constants are shared."""
    new = type(graph)(graph.library.default_registry)
    new.versions = replace(graph.versions)
    new.library, new.file_access = graph.library.copy(), graph.file_access
    copies = {node: new.shallow_node(node) for node in graph.nodes.values()}
    for node, copy in copies.items():
        copy.inputs = [copies[t.node].outputs[t.index] for t in node.inputs]
        copy.control_inputs = [copies[c] for c in node.control_inputs]
    return new


def replace_tensor(graph: Graph, old: Tensor, new: Tensor) -> int:
    """Replace a tensor in the inputs of all its users, and return the number of changed inputs."""
    count = 0
    for node in graph.nodes.values():
        for i, tensor in enumerate(node.inputs):
            if tensor is old and node is not new.node:
                graph.set_input(node, i, new)
                count += 1
    return count
