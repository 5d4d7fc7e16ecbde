"""Placement: which device each node of a graph runs on.

Nodes that must stand together (references, resources, ``_class: loc:@name``) form groups. A group goes to the first
device, by preference, that all its requests allow and that has kernels for all its nodes. Two kinds of nodes wait for
the others: a source with one output goes where its consumers are, and an op that looks only at shapes goes where its
input is.
"""

from __future__ import annotations

import logging
import sys
from collections.abc import Iterable
from dataclasses import dataclass, field

from cyxla.core.framework.device_base import DeviceBase, DeviceName
from cyxla.core.framework.kernel_registry import KernelRegistry
from cyxla.core.framework.types import DataType
from cyxla.core.graph.graph import Graph, Node
from cyxla.core.runtime.device import DeviceSet, default_device, is_compilation_type
from cyxla.errors import InvalidArgumentError, OpError

_LOG = logging.getLogger("cyxla.placer")
METADATA_OPS = frozenset({"Shape", "ShapeN", "Size", "Rank"})
_ANYWHERE = frozenset({"_Arg", "_Retval", "_DeviceArg", "_DeviceRetval"})


@dataclass
class _Group:
    """Nodes that stand together."""

    nodes: list[Node] = field(default_factory=list)
    request: DeviceName = field(default_factory=DeviceName)
    types: dict[str, int] | None = None  # with kernels for all nodes, and the least of their priorities; None: any
    device: DeviceBase | None = None


class Placer:
    """Assigns devices to the nodes of a graph.

    Parameters
    ----------
    graph : Graph
        ``assigned_device`` of its nodes is set; what is assigned already stays.
    devices : DeviceSet
        Where nodes may go.
    soft_placement : bool
        Drop type and number of a request that cannot be met, instead of an error.
    log : bool
        Print every decision to the standard error stream.
    kernels : KernelRegistry, optional
        The global registry by default.
    """

    def __init__(
        self,
        graph: Graph,
        devices: DeviceSet,
        *,
        soft_placement: bool = True,
        log: bool = False,
        kernels: KernelRegistry | None = None,
    ) -> None:
        self.graph, self.devices = graph, devices
        self.soft, self.log = soft_placement, log
        self.kernels = kernels or KernelRegistry.global_()
        self.default = default_device(devices.devices)
        self._supported: dict[tuple[object, ...], dict[str, int] | None] = {}

    def run(self) -> None:
        """Place every node.

        Raises
        ------
        InvalidArgumentError
            A request that cannot be met: it names the node, the request and the devices there are.
        """
        nodes = list(self.graph.nodes.values())
        if len(self.devices.placeable) == 1 and not any(n.device or n.assigned_device or n.colocation for n in nodes):
            for node in nodes:
                node.assigned_device = self.default.name
        else:
            self._place(nodes)
        if self.log:
            for node in nodes:
                print(f"{node.name}: ({node.op}): {node.assigned_device}", file=sys.stderr)

    def _place(self, nodes: list[Node]) -> None:
        groups = self._groups(nodes)
        later: list[_Group] = []
        for group in groups:
            if len(group.nodes) == 1 and _waits(group.nodes[0]) and group.device is None:
                later.append(group)
            else:
                self._settle(group)
        users = _users(nodes)
        for group in later:
            self._settle(group, self._wish(group.nodes[0], users))

    # groups ---------------------------------------------------------------------------------------------------
    def _groups(self, nodes: list[Node]) -> list[_Group]:
        parent: dict[object, object] = {}

        def root(key: object) -> object:
            while (up := parent.get(key, key)) is not key:
                parent[key] = parent.get(up, up)
                key = up
            return key

        for node in nodes:
            for other in self._companions(node):
                a, b = root(node.name), root(other)
                if a != b:
                    parent[a] = b
        found: dict[object, _Group] = {}
        for node in nodes:
            found.setdefault(root(node.name), _Group()).nodes.append(node)
        for group in found.values():
            self._describe(group)
        return list(found.values())

    def _companions(self, node: Node) -> Iterable[str]:
        """Names of nodes and groups that a node must stand with."""
        yield from node.colocation
        if node.op in _ANYWHERE or self.graph.library.find(node.op) is not None:
            return
        for k, tensor in enumerate(node.inputs):
            if node.input_types[k].is_ref or tensor.dtype.base == DataType.DT_RESOURCE:
                yield tensor.node.name

    def _describe(self, group: _Group) -> None:
        """Merge the requests of a group's nodes, and find the types of devices that have kernels for all."""
        for node in group.nodes:
            if node.assigned_device:
                self._assign_group(group, node)
            if node.device:
                group.request = self._merged(group, node)
            types = self._types(node)
            if types is not None:
                common = (
                    types
                    if group.types is None
                    else {t: min(p, types[t]) for t, p in group.types.items() if t in types}
                )
                group.types = common

    def _assign_group(self, group: _Group, node: Node) -> None:
        device = self.devices.find(node.assigned_device)
        if group.device is not None and group.device is not device:
            raise _impossible(node, f"it must stand with nodes on {group.device.name}, but is on {device.name}")
        group.device = device

    def _merged(self, group: _Group, node: Node) -> DeviceName:
        try:
            wanted = DeviceName.parse(node.device)
            return group.request.merge(wanted, allow_soft=self.soft)
        except OpError as error:
            raise _impossible(node, f"request '{node.device}': {error.message}") from None

    def _types(self, node: Node) -> dict[str, int] | None:
        """Types of devices with a kernel for a node; None where nothing can be said, so that the run will."""
        if node.op in _ANYWHERE or self.graph.library.find(node.op) is not None:
            return None
        attrs = node.attrs
        key = (node.op, *(attrs[k].value for k in sorted(attrs) if attrs[k].kind in ("type", "list(type)")),
               attrs["_kernel"].value if "_kernel" in attrs else "")  # fmt: skip
        if key not in self._supported:
            found = self.kernels.supported_device_types_for_node(self.devices.types, node.node_def)
            self._supported[key] = dict(found) or None
        return self._supported[key]

    # devices --------------------------------------------------------------------------------------------------
    def _settle(self, group: _Group, wish: DeviceBase | None = None) -> None:
        device = group.device
        if device is None:
            candidates = self._candidates(group)
            device = wish if wish is not None and wish in candidates else candidates[0]
        for node in group.nodes:
            node.assigned_device = device.name

    def _candidates(self, group: _Group) -> list[DeviceBase]:
        """The devices a group may go to, the best first; never none."""
        found = self._able(group, self.devices.matching(group.request))
        if not found and self.soft:
            relaxed = DeviceName(group.request.job, group.request.replica, group.request.task)
            found = self._able(group, self.devices.matching(relaxed))
            if found:
                _LOG.info("'%s' runs on %s, not on %s", group.nodes[0].name, found[0].name, group.request)
        if not found:
            raise self._refusal(group)
        return found

    def _able(self, group: _Group, devices: list[DeviceBase]) -> list[DeviceBase]:
        types = group.types
        if types is None:
            return sorted(devices, key=lambda d: d is not self.default)
        able = [device for device in devices if device.device_type in types]
        return sorted(able, key=lambda d: -types[d.device_type])

    def _refusal(self, group: _Group) -> InvalidArgumentError:
        node = next((n for n in group.nodes if n.device), group.nodes[0])
        wanted = group.request
        if wanted.type is not None and is_compilation_type(wanted.type):
            why = f"{wanted.type} devices serve compilers only"
        elif self.devices.matching(wanted):
            kernels = self.kernels.kernels_registered_for_op(node.op)
            why = f"no device that '{wanted}' covers has a kernel for all of it. Kernels of {node.op}:\n{kernels}"
        else:
            why = f"'{wanted}' was requested, but the devices are [{', '.join(self.devices.names())}]"
        names = [n.name for n in group.nodes if n is not node][:5]
        together = f" It must stand with {', '.join(names)}." if names else ""
        return _impossible(node, f"{why}.{together}")

    def _wish(self, node: Node, users: dict[Node, list[Node]]) -> DeviceBase | None:
        """Where a node that waited wants to go."""
        if node.inputs:
            return self.devices.find(node.inputs[0].node.assigned_device)
        places = {user.assigned_device for user in users.get(node, ())}
        return self.devices.find(places.pop()) if len(places) == 1 and "" not in places else None


def _waits(node: Node) -> bool:
    """Whether a node is placed after the others."""
    if node.op in METADATA_OPS:
        return bool(node.inputs[0].node.op not in METADATA_OPS)
    return not node.inputs and len(node.outputs) == 1 and not node.outputs[0].dtype.is_ref


def _users(nodes: Iterable[Node]) -> dict[Node, list[Node]]:
    users: dict[Node, list[Node]] = {}
    for node in nodes:
        for tensor in node.inputs:
            users.setdefault(tensor.node, []).append(node)
    return users


def _impossible(node: Node, why: str) -> InvalidArgumentError:
    return InvalidArgumentError(
        f"node '{node.name}' can be put on no device: {why}",
        node=node.name,
        op=node.op,
        where=f"node '{node.name}' ({node.op})",
        hint="ask for another device, or use soft_placement=True",
    )
