"""Outlines each cluster into a function, and replaces its nodes by one call.

The arguments of the function are, in this order: compile-time constants, other values, handles of variables.
Attributes of the call hold the number of constants and of handles.
"""

from __future__ import annotations

from cyxla.autojit.options import (
    CLUSTER,
    COMPILED_KERNEL,
    MUST_COMPILE,
    NUM_CONSTANTS,
    NUM_RESOURCES,
    REGION,
    JitOptions,
)
from cyxla.core.framework.attr_value import AttrValue
from cyxla.core.framework.types import DataType
from cyxla.core.graph.function_body import graph_of_args_to_function
from cyxla.core.graph.graph import Graph, Node, Tensor
from cyxla.core.runtime.subgraph import empty_like, insert_node
from cyxla.tf2xla.const_analysis import BackwardsConstAnalysis

Key = tuple[Node, int]
_DROPPED_ATTRS = frozenset({CLUSTER, MUST_COMPILE, REGION, "_class"})  # meaningless inside of the function


def encapsulate_subgraphs(jit: JitOptions) -> None:
    """Replace all marked clusters of a graph."""
    members: dict[str, list[Node]] = {}
    for node in jit.graph.nodes.values():
        if node.has_attr(CLUSTER):
            members.setdefault(node.attr(CLUSTER), []).append(node)
    if members:
        users = _users(jit.graph)
        for name, nodes in members.items():
            _Encapsulation(jit.graph, name, nodes, users).run()


def _users(graph: Graph) -> dict[Node, dict[Node, None]]:
    """Return the nodes that depend on each node."""
    users: dict[Node, dict[Node, None]] = {}
    for node in graph.nodes.values():
        for source in [*(t.node for t in node.inputs), *node.control_inputs]:
            users.setdefault(source, {})[node] = None
    return users


class _Encapsulation:
    """The replacement of one cluster of a graph."""

    def __init__(self, graph: Graph, name: str, nodes: list[Node], users: dict[Node, dict[Node, None]]) -> None:
        self.graph, self.name, self.nodes, self.users = graph, name, nodes, users
        self.inside = set(nodes)
        self.body = empty_like(graph)

    def run(self) -> Node:
        inputs, outputs = self._find_inputs(), self._find_outputs()
        copies, order, constants = self._build_body(inputs, outputs)
        sinks = [copies[n] for n in self.nodes if self._is_sink(n)]
        self.graph.library.add_derived(graph_of_args_to_function(self.body, self.name, control_outputs=sinks))
        resources = sum(t.dtype is DataType.DT_RESOURCE for t in order)
        attrs = {
            COMPILED_KERNEL: AttrValue("bool", True),
            NUM_CONSTANTS: AttrValue("int", constants),
            NUM_RESOURCES: AttrValue("int", resources),
        }
        if any(node.has_attr(MUST_COMPILE) for node in self.nodes):
            attrs[MUST_COMPILE] = AttrValue("bool", True)
        call = insert_node(self.graph, self.name, self.name, attrs, order)
        call.assigned_device = self.nodes[0].assigned_device
        call.control_inputs = self._outside_controls()
        call.output_shapes = [t.shape for t in outputs]
        self._replace_nodes(call, outputs)
        return call

    def _find_inputs(self) -> list[Tensor]:
        """Return the tensors from outside that the cluster reads, each once, in the order of its nodes."""
        tensors: dict[Key, Tensor] = {}
        for node in self.nodes:
            for tensor in node.inputs:
                if tensor.node not in self.inside:
                    tensors.setdefault((tensor.node, tensor.index), tensor)
        return list(tensors.values())

    def _find_outputs(self) -> list[Tensor]:
        """Return the tensors of the cluster that nodes outside read."""
        read_outside = {
            (t.node, t.index)
            for node in self.nodes
            for user in self.users.get(node, ())
            if user not in self.inside
            for t in user.inputs
        }
        return [t for node in self.nodes for t in node.outputs if (node, t.index) in read_outside]

    def _is_sink(self, node: Node) -> bool:
        """Return True if a node has side effects, or a node outside has a control dependency on it."""
        users = self.users.get(node, {})
        return node.is_stateful or any(u not in self.inside and node in u.control_inputs for u in users)

    def _outside_controls(self) -> list[Node]:
        controls = (c for node in self.nodes for c in node.control_inputs if c not in self.inside)
        return list(dict.fromkeys(controls))

    def _build_body(self, inputs: list[Tensor], outputs: list[Tensor]) -> tuple[dict[Node, Node], list[Tensor], int]:
        """Build the body.

        Returns
        -------
        copies : dict of Node to Node
            Node of the body for each node of the cluster.
        order : list of Tensor
            Arguments in their final order.
        constants : int
            Number of leading arguments that must be compile-time constants.
        """
        args = {(t.node, t.index): self._add_arg(i, t) for i, t in enumerate(inputs)}
        copies = {node: self.body.shallow_node(node) for node in self.nodes}
        for node, copy in copies.items():
            copy.attrs = {key: value for key, value in node.attrs.items() if key not in _DROPPED_ATTRS}
            copy.inputs = [
                copies[t.node].outputs[t.index] if t.node in copies else args[t.node, t.index].outputs[0]
                for t in node.inputs
            ]
            copy.control_inputs = [copies[c] for c in node.control_inputs if c in copies]
        for i, tensor in enumerate(outputs):
            source = copies[tensor.node].outputs[tensor.index]
            name = f"{tensor.node.name}_{tensor.index}_retval"
            insert_node(self.body, name, "_Retval", _arg_attrs(tensor, i), [source])
        constant = BackwardsConstAnalysis(self.graph.library).run(self.body).args
        kinds = [_argument_rank(i in constant, t) for i, t in enumerate(inputs)]
        order = sorted(range(len(inputs)), key=kinds.__getitem__)
        for position, i in enumerate(order):
            args[inputs[i].node, inputs[i].index].attrs["index"] = AttrValue("int", position)
        return copies, [inputs[i] for i in order], kinds.count(0)

    def _add_arg(self, index: int, tensor: Tensor) -> Node:
        arg = insert_node(self.body, f"{tensor.node.name}_{tensor.index}_arg", "_Arg", _arg_attrs(tensor, index))
        arg.output_shapes = [tensor.shape]
        return arg

    def _replace_nodes(self, call: Node, outputs: list[Tensor]) -> None:
        call_outputs = {(t.node, t.index): call.outputs[i] for i, t in enumerate(outputs)}
        users = dict.fromkeys(u for node in self.nodes for u in self.users.get(node, ()) if u not in self.inside)
        for user in users:
            user.inputs = [call_outputs.get((t.node, t.index), t) for t in user.inputs]
            controls = (call if c in self.inside else c for c in user.control_inputs)
            user.control_inputs = list(dict.fromkeys(controls))
        self.users[call] = users
        for source in dict.fromkeys([*(t.node for t in call.inputs), *call.control_inputs]):
            self.users[source] = {u: None for u in self.users[source] if u not in self.inside} | {call: None}
        for node in self.nodes:
            del self.graph.nodes[node.name]


def _argument_rank(constant: bool, tensor: Tensor) -> int:
    """Return the rank of an argument in the order: 0 for constants, 1 for other values, 2 for handles."""
    if tensor.dtype is DataType.DT_RESOURCE:
        return 2
    return 0 if constant else 1


def _arg_attrs(tensor: Tensor, index: int) -> dict[str, AttrValue]:
    return {"T": AttrValue("type", tensor.dtype.base), "index": AttrValue("int", index)}
