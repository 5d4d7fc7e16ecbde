"""Fusion and expansion: a device with a kernel for a composition of ops gets one node, any other the plain nodes.

    Max, Sub, Exp, Sum, RealDiv   <->   _FusedSoftmax

Compositions are matched in the pruned graph of a run, where all readers of a node are known: nodes are not fused if
another node, a fetch or a feed needs an intermediate result. Fused nodes of the original graph are expanded if their
device has no kernel for them. The root of a composition and its fused node have the same name and the same output
tensor object, so that references to it stay valid.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from cyxla.autojit.fused_ops.matcher import match, write_out
from cyxla.autojit.fused_ops.patterns import Form, Fusion, Match, fusions
from cyxla.core.framework.attr_value import AttrValue
from cyxla.core.framework.device_base import DeviceName
from cyxla.core.framework.kernel_registry import KernelRegistry
from cyxla.core.framework.node_def import NodeDef
from cyxla.core.framework.types import DataType
from cyxla.core.graph.algorithm import sources, topological_order
from cyxla.core.graph.graph import Graph, Node
from cyxla.core.runtime.optimization_registry import Grouping, OptimizationPassOptions, OptimizationPassRegistry

if TYPE_CHECKING:
    from cyxla.tf2xla.xla_compiler import XlaCompilerOptions

WRITE_OUT_PHASE, FUSE_PHASE = 5, 3  # before placement, where kernels count; before anything is clustered
FUSED_OPS = frozenset(
    {
        "_FusedSoftmax", "_FusedLayerNorm", "_FusedBatchNorm", "_FusedGelu", "_FusedConv2DBiasActivation",
        "_FusedMatMulBiasActivation",
    }
)  # fmt: skip
_TYPES = frozenset({DataType.DT_HALF, DataType.DT_BFLOAT16, DataType.DT_FLOAT, DataType.DT_DOUBLE})
_FRAMES = frozenset({"Enter", "RefEnter", "Switch", "RefSwitch"})
_SCOPES = ("_Xla", "_xla")  # prefixes of attributes that control clustering

DeviceTypes = Callable[[Node], Iterable[str]]


def register(registry: OptimizationPassRegistry) -> None:
    """Add both passes to a registry."""
    registry.register(Grouping.PRE_PLACEMENT, WRITE_OUT_PHASE, write_out_fused, "write_out_fused")
    registry.register(Grouping.POST_REWRITE_FOR_EXEC, FUSE_PHASE, fuse_graph, "fuse_graph")


def write_out_fused(options: OptimizationPassOptions) -> int:
    """Expand the fused nodes of a graph for which no possible device has a kernel, and return their number."""
    placeable = list(dict.fromkeys(device.device_type for device in options.engine.devices.placeable))

    def types(node: Node) -> Iterable[str]:
        requested = DeviceName.parse(node.device).type if node.device else None
        return (requested,) if requested in placeable else placeable

    return expand(options.graph, options.engine.kernels, types)


def fuse_graph(options: OptimizationPassOptions) -> int:
    """Expand and fuse the nodes of a placed graph by the kernels of their devices, and return the number of changes."""
    engine = options.engine

    def types(node: Node) -> Iterable[str]:
        return (engine.device_of(node).device_type,)

    expanded = expand(options.graph, engine.kernels, types)
    return expanded + fuse(options.graph, engine.kernels, types) if engine.optimize else expanded


def specialize(graph: Graph, options: XlaCompilerOptions) -> int:
    """Expand and fuse a graph that is about to be compiled, by the kernels of the compilation device."""

    def types(_: Node) -> Iterable[str]:
        return (options.device_type,)

    return expand(graph, options.kernels, types) + fuse(graph, options.kernels, types)


def expand(graph: Graph, kernels: KernelRegistry, types: DeviceTypes) -> int:
    """Expand the fused nodes of a graph for which no device of the given types has a kernel; return their number."""
    fused_nodes = [node for node in graph.nodes.values() if node.op in FUSED_OPS]
    fusion_of_op = {fusion.op: fusion for fusion in fusions()} if fused_nodes else {}
    unsupported = [node for node in fused_nodes if not _has_kernel(kernels, types(node), node.node_def)]
    anchored = bool(unsupported) and any(node.op in _FRAMES for node in graph.nodes.values())
    for node in unsupported:
        write_out(graph, node, fusion_of_op[node.op], anchored)
    return len(unsupported)


def fuse(graph: Graph, kernels: KernelRegistry, types: DeviceTypes) -> int:
    """Fuse nodes of a graph whose only results are its ``_Retval`` nodes, and return the number of new fused nodes."""
    candidates = tuple(fusion for fusion in fusions() if kernels.get_registered_kernels_for_op(fusion.op))
    return _Fuser(graph, kernels, types, candidates).run() if candidates else 0


def _has_kernel(kernels: KernelRegistry, types: Iterable[str], node_def: NodeDef) -> bool:
    return any(kernels.kernel_def_available(device, node_def) for device in types)


class _Fuser:
    """Fuses nodes from the results to the arguments, so that the largest composition is found first."""

    def __init__(self, graph: Graph, kernels: KernelRegistry, types: DeviceTypes, fusions: Iterable[Fusion]) -> None:
        self.graph, self.kernels, self.types = graph, kernels, types
        self.forms: dict[str, list[tuple[Fusion, Form]]] = {}
        for fusion in fusions:
            for form in fusion.forms:
                for op in form.root.ops:
                    self.forms.setdefault(op, []).append((fusion, form))
        self.users: dict[Node, set[Node]] = {node: set() for node in graph.nodes.values()}
        for node in graph.nodes.values():
            self._add_uses(node)

    def run(self) -> int:
        dropped: set[Node] = set()
        count = 0
        for node in reversed(topological_order(self.graph)):
            if node not in dropped and node.op in self.forms and node.output_types[0] in _TYPES:
                removed = self._fuse(node)
                if removed is not None:
                    dropped |= removed
                    count += 1
        return count

    def _fuse(self, root: Node) -> set[Node] | None:
        """Fuse the composition that ends at a node, and return the removed nodes; None if there is none."""
        for fusion, form in self.forms[root.op]:
            matched = match(form, root)
            if matched is not None and self._is_closed(root, matched) and _is_uniform(root, matched):
                node_def = _fused_node_def(root, fusion, matched)
                if _has_kernel(self.kernels, self.types(root), node_def):
                    return self._replace(root, node_def, fusion, matched)
        return None

    def _is_closed(self, root: Node, matched: Match) -> bool:
        """Return True if no node outside of the match reads an intermediate result."""
        inside = {*matched.nodes.values(), *matched.other_nodes}
        return all(self.users[node] <= inside for node in inside if node is not root) and inside.isdisjoint(
            t.node for t in matched.values.values()
        )

    def _replace(self, root: Node, node_def: NodeDef, fusion: Fusion, matched: Match) -> set[Node]:
        parts = dict.fromkeys([*matched.nodes.values(), *matched.other_nodes, *matched.constants])
        controls = dict.fromkeys(c for node in (root, *parts) for c in node.control_inputs)
        inputs = [matched.values[name] for name in fusion.inputs if name in matched.values]
        self._remove_uses(root)
        self.graph.update_node(root, node_def.attr, inputs, op_name=fusion.op)
        root.control_inputs = [c for c in controls if c not in parts]
        self._add_uses(root)
        return self._drop([node for node in parts if node is not root])

    def _drop(self, nodes: list[Node]) -> set[Node]:
        """Remove the nodes without readers; constants may have other readers."""
        dropped: set[Node] = set()
        remaining = [node for node in nodes if node.op != "Const"]
        while remaining:
            unread = [node for node in remaining if not self.users[node]]
            if not unread:
                break
            for node in unread:
                self._remove(node)
                dropped.add(node)
            remaining = [node for node in remaining if node not in dropped]
        for node in nodes:
            if node.op == "Const" and not self.users[node] and node.name in self.graph.nodes:
                self._remove(node)
                dropped.add(node)
        return dropped

    def _remove(self, node: Node) -> None:
        self._remove_uses(node)
        self.graph.remove_node(node)

    def _add_uses(self, node: Node) -> None:
        for source in sources(node):
            self.users[source].add(node)

    def _remove_uses(self, node: Node) -> None:
        for source in sources(node):
            self.users[source].discard(node)


def _is_uniform(root: Node, matched: Match) -> bool:
    """Return True if all parts have one type, one device, and the same attributes that control clustering."""
    dtype, scope = root.output_types[0], _clustering_attrs(root)
    return all(t.dtype == dtype for t in matched.values.values()) and all(
        node.assigned_device == root.assigned_device and _clustering_attrs(node) == scope
        for node in (*matched.nodes.values(), *matched.other_nodes)
    )


def _clustering_attrs(node: Node) -> dict[str, AttrValue]:
    return {name: value for name, value in node.attrs.items() if name.startswith(_SCOPES)}


def _fused_node_def(root: Node, fusion: Fusion, matched: Match) -> NodeDef:
    """Return the fused node, with the root's name and private attributes."""
    private = {name: value for name, value in root.attrs.items() if name.startswith("_")}
    attrs = {**private, **matched.attrs, "T": AttrValue("type", root.output_types[0])}
    defaults = {a.name: a.default for a in root.graph.look_up(fusion.op).op_def.attr if a.default is not None}
    inputs = [matched.values[name].name for name in fusion.inputs if name in matched.values]
    return NodeDef(root.name, fusion.op, inputs, root.assigned_device or root.device, {**defaults, **attrs})
