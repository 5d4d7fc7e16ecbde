"""Pruning of a graph for a run, with explicit feeds and fetches.

`executable_graph` copies the nodes that the fetches and targets depend on. Every fed tensor becomes a node ``_Arg``,
every fetched one an input of a node ``_Retval``, as in function bodies, so that one executor runs both.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from cyxla.core.framework.attr_value import AttrValue
from cyxla.core.framework.node_def import NodeDef
from cyxla.core.graph.graph import Graph, Node, Tensor

_PLACEHOLDERS = frozenset({"Placeholder", "PlaceholderV2"})


def needed_nodes(fetches: Iterable[Tensor], targets: Iterable[Node], fed: Iterable[Tensor] = ()) -> set[Node]:
    """Return the nodes on which fetches and targets depend, given the fed tensors."""
    fed_keys = {(t.node, t.index) for t in fed}
    fed_placeholders = {t.node for t in fed if t.node.op in _PLACEHOLDERS}
    stack = [t.node for t in fetches if (t.node, t.index) not in fed_keys]
    stack += [node for node in targets if node not in fed_placeholders]
    needed = set(stack)
    while stack:
        node = stack.pop()
        sources = [t.node for t in node.inputs if (t.node, t.index) not in fed_keys]
        sources += [c for c in node.control_inputs if c not in fed_placeholders]
        for source in sources:
            if source not in needed:
                needed.add(source)
                stack.append(source)
    return needed


def executable_graph(
    graph: Graph, feeds: Sequence[Tensor] = (), fetches: Sequence[Tensor] = (), targets: Sequence[Node] = ()
) -> Graph:
    """Return a new graph that computes the fetches from the feeds and runs the targets.

    Parameters
    ----------
    graph : Graph
        Graph to prune, which is not modified; the new graph shares its functions.
    feeds : sequence of Tensor
        Fed tensors, in the order of the ``_Arg`` nodes.
    fetches : sequence of Tensor
        Fetched tensors, in the order of the ``_Retval`` nodes.
    targets : sequence of Node
        Nodes to run for their side effects.

    Returns
    -------
    Graph
        Pruned graph, whose nodes keep their names, attributes, devices and inferred shapes.
    """
    return _Copy(graph, feeds).run(fetches, targets)


def shallow_copy(graph: Graph) -> Graph:
    """Return a graph with copies of all nodes, which can be rewritten; versions and the library are shared."""
    new = empty_like(graph)
    copies = {node: new.shallow_node(node) for node in graph.nodes.values()}
    for node, copy in copies.items():
        copy.inputs = [copies[t.node].outputs[t.index] for t in node.inputs]
        copy.control_inputs = [copies[c] for c in node.control_inputs]
    return new


class _Copy:
    def __init__(self, graph: Graph, feeds: Sequence[Tensor]) -> None:
        self.source = graph
        self.feeds = feeds
        self.graph = empty_like(graph)
        self.copies: dict[Node, Node] = {}
        self.args: dict[tuple[Node, int], Tensor] = {}

    def run(self, fetches: Sequence[Tensor], targets: Sequence[Node]) -> Graph:
        needed = needed_nodes(fetches, targets, self.feeds)
        nodes = [node for node in self.source.nodes.values() if node in needed]
        for k, tensor in enumerate(self.feeds):
            self._add_arg(k, tensor)
        for node in nodes:
            self.copies[node] = self.graph.shallow_node(node)
        for node in nodes:
            self._copy_inputs(node)
        for k, tensor in enumerate(fetches):
            self._add_retval(k, tensor)
        return self.graph

    def _copy_inputs(self, node: Node) -> None:
        copy = self.copies[node]
        copy.inputs = [self._copied_tensor(t) for t in node.inputs]
        copy.control_inputs = [c for c in map(self._copied_control, node.control_inputs) if c is not None]

    def _copied_tensor(self, tensor: Tensor) -> Tensor:
        arg = self.args.get((tensor.node, tensor.index))
        return arg if arg is not None else self.copies[tensor.node].outputs[tensor.index]

    def _copied_control(self, node: Node) -> Node | None:
        """Return the copy of a control input; None for a fed placeholder, which is dropped."""
        return self.copies.get(node)

    def _add_arg(self, index: int, tensor: Tensor) -> None:
        attrs = {"T": AttrValue("type", tensor.dtype.base), "index": AttrValue("int", index)}
        node = insert_node(self.graph, f"_arg_{tensor.node.name}_{tensor.index}_{index}", "_Arg", attrs)
        node.output_shapes = [tensor.shape]
        node.assigned_device = tensor.node.assigned_device
        self.args[tensor.node, tensor.index] = node.outputs[0]

    def _add_retval(self, index: int, tensor: Tensor) -> None:
        attrs = {"T": AttrValue("type", tensor.dtype.base), "index": AttrValue("int", index)}
        name = f"_retval_{tensor.node.name}_{tensor.index}_{index}"
        node = insert_node(self.graph, name, "_Retval", attrs, [self._copied_tensor(tensor)])
        node.assigned_device = tensor.node.assigned_device


def empty_like(graph: Graph) -> Graph:
    """Return a graph without nodes that shares versions and the library."""
    new = Graph(graph.library.default_registry)
    new.library, new.versions = graph.library, graph.versions
    return new


def insert_node(graph: Graph, name: str, op: str, attrs: dict[str, AttrValue], inputs: Sequence[Tensor] = ()) -> Node:
    """Add a node for a rewrite, with underscores appended to its name if the name is used."""
    while name in graph.nodes:
        name += "_"
    return graph.add_node(NodeDef(name, op, [t.name for t in inputs], attr=attrs), inputs)
