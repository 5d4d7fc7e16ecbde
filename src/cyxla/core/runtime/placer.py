"""Placement: the assignment of the nodes of a graph to devices.

Colocated nodes (references, resources, ``_class: loc:@name``) form groups. A group is assigned to the device of highest
priority that satisfies all its requests and has kernels for all its nodes. Two kinds of nodes are placed last: a source
with one output goes to the device of its consumers, and an op that reads only shapes goes to the device of its input.
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
_PLACED_ANYWHERE = frozenset({"_Arg", "_Retval", "_DeviceArg", "_DeviceRetval"})


@dataclass
class _Group:
    """Colocated nodes."""

    nodes: list[Node] = field(default_factory=list)
    request: DeviceName = field(default_factory=DeviceName)
    types: dict[str, int] | None = None  # minimum priority by device type with kernels for all nodes; None for any type
    device: DeviceBase | None = None


class Placer:
    """Assigns devices to the nodes of a graph.

    Parameters
    ----------
    graph : Graph
        Graph whose nodes get an ``assigned_device``; existing assignments are kept.
    devices : DeviceSet
        Devices on which nodes may be placed.
    soft_placement : bool
        True to ignore type and number of a request that cannot be satisfied, instead of raising an error.
    log : bool
        True to print every placement to the standard error stream.
    kernels : KernelRegistry, optional
        Registry of kernels; the global one by default.
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
            A request cannot be satisfied; the message names the node, the request and the devices.
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
        groups = self._form_groups(nodes)
        later: list[_Group] = []
        for group in groups:
            if len(group.nodes) == 1 and _is_placed_last(group.nodes[0]) and group.device is None:
                later.append(group)
            else:
                self._assign(group)
        users = _users(nodes)
        for group in later:
            self._assign(group, self._preferred_device(group.nodes[0], users))

    # groups ---------------------------------------------------------------------------------------------------
    def _form_groups(self, nodes: list[Node]) -> list[_Group]:
        parent: dict[object, object] = {}

        def root(key: object) -> object:
            while (parent_key := parent.get(key, key)) is not key:
                parent[key] = parent.get(parent_key, parent_key)
                key = parent_key
            return key

        for node in nodes:
            for other in self._colocated_names(node):
                a, b = root(node.name), root(other)
                if a != b:
                    parent[a] = b
        groups: dict[object, _Group] = {}
        for node in nodes:
            groups.setdefault(root(node.name), _Group()).nodes.append(node)
        for group in groups.values():
            self._set_requirements(group)
        return list(groups.values())

    def _colocated_names(self, node: Node) -> Iterable[str]:
        """Yield the names of nodes and groups with which a node is colocated."""
        yield from node.colocation
        if node.op in _PLACED_ANYWHERE or self.graph.library.find(node.op) is not None:
            return
        for k, tensor in enumerate(node.inputs):
            if node.input_types[k].is_ref or tensor.dtype.base == DataType.DT_RESOURCE:
                yield tensor.node.name

    def _set_requirements(self, group: _Group) -> None:
        """Merge the requests of a group's nodes, and intersect the device types that have kernels for them."""
        for node in group.nodes:
            if node.assigned_device:
                self._assign_group(group, node)
            if node.device:
                group.request = self._merge_request(group, node)
            types = self._supported_types(node)
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
            raise _placement_error(
                node, f"it is colocated with nodes on {group.device.name}, but assigned to {device.name}"
            )
        group.device = device

    def _merge_request(self, group: _Group, node: Node) -> DeviceName:
        try:
            request = DeviceName.parse(node.device)
            return group.request.merge(request, allow_soft=self.soft)
        except OpError as error:
            raise _placement_error(node, f"request '{node.device}': {error.message}") from None

    def _supported_types(self, node: Node) -> dict[str, int] | None:
        """Return the device types with a kernel for a node; None if they are unknown, so that the run reports it."""
        if node.op in _PLACED_ANYWHERE or self.graph.library.find(node.op) is not None:
            return None
        attrs = node.attrs
        key = (node.op, *(attrs[k].value for k in sorted(attrs) if attrs[k].kind in ("type", "list(type)")),
               attrs["_kernel"].value if "_kernel" in attrs else "")  # fmt: skip
        if key not in self._supported:
            device_types = self.kernels.supported_device_types_for_node(self.devices.types, node.node_def)
            self._supported[key] = dict(device_types) or None
        return self._supported[key]

    # devices --------------------------------------------------------------------------------------------------
    def _assign(self, group: _Group, preferred: DeviceBase | None = None) -> None:
        device = group.device
        if device is None:
            candidates = self._candidates(group)
            device = preferred if preferred is not None and preferred in candidates else candidates[0]
        for node in group.nodes:
            node.assigned_device = device.name

    def _candidates(self, group: _Group) -> list[DeviceBase]:
        """Return the devices on which a group can be placed, the best first; there is at least one."""
        devices = self._with_kernels(group, self.devices.matching(group.request))
        if not devices and self.soft:
            relaxed = DeviceName(group.request.job, group.request.replica, group.request.task)
            devices = self._with_kernels(group, self.devices.matching(relaxed))
            if devices:
                _LOG.info("'%s' runs on %s, not on %s", group.nodes[0].name, devices[0].name, group.request)
        if not devices:
            raise self._unplaceable_error(group)
        return devices

    def _with_kernels(self, group: _Group, devices: list[DeviceBase]) -> list[DeviceBase]:
        types = group.types
        if types is None:
            return sorted(devices, key=lambda d: d is not self.default)
        supporting = [device for device in devices if device.device_type in types]
        return sorted(supporting, key=lambda d: -types[d.device_type])

    def _unplaceable_error(self, group: _Group) -> InvalidArgumentError:
        node = next((n for n in group.nodes if n.device), group.nodes[0])
        request = group.request
        if request.type is not None and is_compilation_type(request.type):
            reason = f"{request.type} devices serve compilers only"
        elif self.devices.matching(request):
            kernels = self.kernels.kernels_registered_for_op(node.op)
            reason = (
                f"no device that matches '{request}' has kernels for all colocated nodes. Kernels of "
                f"{node.op}:\n{kernels}"
            )
        else:
            reason = f"'{request}' was requested, but the devices are [{', '.join(self.devices.names())}]"
        names = [n.name for n in group.nodes if n is not node][:5]
        colocation = f" It is colocated with {', '.join(names)}." if names else ""
        return _placement_error(node, f"{reason}.{colocation}")

    def _preferred_device(self, node: Node, users: dict[Node, list[Node]]) -> DeviceBase | None:
        """Return the preferred device of a node that is placed last."""
        if node.inputs:
            return self.devices.find(node.inputs[0].node.assigned_device)
        names = {user.assigned_device for user in users.get(node, ())}
        return self.devices.find(names.pop()) if len(names) == 1 and "" not in names else None


def _is_placed_last(node: Node) -> bool:
    """Return True if a node is placed after the others."""
    if node.op in METADATA_OPS:
        return bool(node.inputs[0].node.op not in METADATA_OPS)
    return not node.inputs and len(node.outputs) == 1 and not node.outputs[0].dtype.is_ref


def _users(nodes: Iterable[Node]) -> dict[Node, list[Node]]:
    users: dict[Node, list[Node]] = {}
    for node in nodes:
        for tensor in node.inputs:
            users.setdefault(tensor.node, []).append(node)
    return users


def _placement_error(node: Node, reason: str) -> InvalidArgumentError:
    return InvalidArgumentError(
        f"node '{node.name}' cannot be placed on any device: {reason}",
        node=node.name,
        op=node.op,
        where=f"node '{node.name}' ({node.op})",
        hint="request another device, or use soft_placement=True",
    )
