"""Partitioning of a placed graph into one graph per device, with sends and receives between them."""

from __future__ import annotations

import numpy as np

from cyxla.core.framework.attr_value import AttrValue, TensorValue
from cyxla.core.framework.types import DataType
from cyxla.core.graph.graph import Graph, Node, Tensor
from cyxla.core.runtime.device import DeviceSet
from cyxla.core.runtime.subgraph import empty_like, insert_node
from cyxla.errors import UnimplementedError

_ENTERS, _EXITS = frozenset({"Enter", "RefEnter"}), frozenset({"Exit", "RefExit"})


def partition(graph: Graph, devices: DeviceSet) -> dict[str, Graph]:
    """Split a graph by the devices to which its nodes are assigned.

    Parameters
    ----------
    graph : Graph
        Placed graph. A graph on one device is returned unchanged.
    devices : DeviceSet
        Devices by name.

    Returns
    -------
    dict of Graph
        Partitions by device name, in the order of the devices' first nodes.

    Raises
    ------
    UnimplementedError
        A loop of ``Enter``, ``Exit`` and ``NextIteration`` spans devices.
    """
    names = list(dict.fromkeys(node.assigned_device for node in graph.nodes.values()))
    if len(names) < 2:
        return dict.fromkeys(names, graph)
    return _Partitioning(graph, devices, names).run()


class _Partitioning:
    def __init__(self, graph: Graph, devices: DeviceSet, names: list[str]) -> None:
        self.graph, self.devices = graph, devices
        self.parts = {name: empty_like(graph) for name in names}
        self.copies: dict[Node, Node] = {}
        self.received: dict[tuple[Node, int, str], Node] = {}
        self.levels = _loop_levels(graph)

    def run(self) -> dict[str, Graph]:
        for node in self.graph.nodes.values():
            self.copies[node] = self.parts[node.assigned_device].shallow_node(node)
        for node, copy in self.copies.items():
            copy.inputs = [self._local_input(t, node) for t in node.inputs]
            copy.control_inputs = [self._local_control(c, node) for c in node.control_inputs]
        return self.parts

    def _local_input(self, tensor: Tensor, user: Node) -> Tensor:
        if tensor.node.assigned_device == user.assigned_device:
            return self.copies[tensor.node].outputs[tensor.index]
        return self._receive_node(tensor.node, tensor.index, user).outputs[0]

    def _local_control(self, node: Node, user: Node) -> Node:
        if node.assigned_device == user.assigned_device:
            return self.copies[node]
        return self._receive_node(node, -1, user)

    def _receive_node(self, node: Node, index: int, user: Node) -> Node:
        """Return the node that receives an output on another device; index -1 stands for a control edge."""
        target = user.assigned_device
        receive_node = self.received.get((node, index, target))
        if receive_node is not None:
            return receive_node
        if self.levels.get(node, 0):
            raise UnimplementedError(
                f"the edge from '{node.name}' on {node.assigned_device} to '{user.name}' on {target} is in a loop, "
                "and loops of Enter, Exit and NextIteration must stay on one device",
                node=user.name,
                op=user.op,
                hint="request one device for all nodes of the loop",
            )
        source = self.copies[node].outputs[index] if index >= 0 else self._add_token(node)
        receive = self._add_transfer(source, node, index, target)
        if index < 0:  # an Identity propagates deadness, which a control edge from the receive would not
            receive = self._add_identity(receive)
        self.received[node, index, target] = receive
        return receive

    def _add_identity(self, receive: Node) -> Node:
        attrs = {"T": AttrValue("type", receive.output_types[0])}
        identity = insert_node(receive.graph, f"{receive.name}/identity", "Identity", attrs, receive.outputs)
        identity.assigned_device = receive.assigned_device
        return identity

    def _add_token(self, node: Node) -> Tensor:
        """Return a constant that is available once the node has run."""
        value = TensorValue(DataType.DT_FLOAT, np.zeros((0,), np.float32))
        attrs = {"dtype": AttrValue("type", DataType.DT_FLOAT), "value": AttrValue("tensor", value)}
        token = insert_node(self.parts[node.assigned_device], f"{node.name}/_has_run", "Const", attrs)
        token.control_inputs, token.assigned_device = [self.copies[node]], node.assigned_device
        return token.outputs[0]

    def _add_transfer(self, source: Tensor, node: Node, index: int, target: str) -> Node:
        dtype, send_device = source.dtype.base, node.assigned_device
        edge = f"edge_{node.id}_{node.name}" if index < 0 else f"edge_{node.id}_{node.name}:{index}"
        common = {
            "tensor_name": AttrValue("string", edge.replace(";", "_")),
            "send_device": AttrValue("string", send_device),
            "send_device_incarnation": AttrValue("int", self.devices.find(send_device).incarnation),
            "recv_device": AttrValue("string", target),
            "client_terminated": AttrValue("bool", False),
        }
        stem = f"{node.name}/_{'control' if index < 0 else index}_to_{target.rpartition('/')[2].replace(':', '_')}"
        send_attrs = {"T": AttrValue("type", dtype), **common}
        insert_node(
            self.parts[send_device], f"{stem}/send", "_Send", send_attrs, [source]
        ).assigned_device = send_device
        receive_attrs = {"tensor_type": AttrValue("type", dtype), **common}
        receive = insert_node(self.parts[target], f"{stem}/recv", "_Recv", receive_attrs)
        receive.assigned_device = target
        receive.output_shapes = [source.shape] if index >= 0 else receive.output_shapes
        return receive


def _loop_levels(graph: Graph) -> dict[Node, int]:
    """Return the loop depth of the outputs of nodes; nodes outside of loops are omitted."""
    users: dict[Node, list[Node]] = {}
    for node in graph.nodes.values():
        for other in [*(t.node for t in node.inputs), *node.control_inputs]:
            users.setdefault(other, []).append(node)
    levels = {node: 1 for node in graph.nodes.values() if node.op in _ENTERS}
    stack = list(levels)
    while stack:
        node = stack.pop()
        for user in users.get(node, ()):
            level = levels[node] + (user.op in _ENTERS) - (user.op in _EXITS)
            if level > levels.get(user, 0):
                levels[user] = level
                stack.append(user)
    return levels
