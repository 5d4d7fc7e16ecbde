"""Removes nodes from clusters if a place outside is cheaper.

1. A node whose result is read only in host memory is not computed on another device first.
2. A compile-time constant that depends on data from outside is computed outside: otherwise each new value of that
   data would need a recompilation.
3. Ops that read only shapes leave their cluster if no node in it reads their result.
"""

from __future__ import annotations

from cyxla.autojit.analysis.graph_cycles import GraphCycles
from cyxla.autojit.options import CLUSTER, JitOptions, device_type
from cyxla.autojit.report import ClusterReport, record
from cyxla.core.framework.kernel_def import MemoryType
from cyxla.core.framework.kernel_registry import KernelRegistry, memory_types_for_node
from cyxla.core.framework.node_def import name_ranges
from cyxla.core.graph.algorithm import LOOP_EDGES, reachable_backward, topological_order
from cyxla.core.graph.graph import Graph, Node
from cyxla.core.runtime.subgraph import insert_node
from cyxla.errors import OpError
from cyxla.tf2xla.const_analysis import BackwardsConstAnalysis

_SHAPE_READERS = frozenset({"Shape", "ShapeN", "Rank", "Size"})


def partially_decluster(jit: JitOptions) -> None:
    """Run the three parts on a graph whose clusters are marked."""
    if not any(node.has_attr(CLUSTER) for node in jit.graph.nodes.values()):
        return
    _Declustering(jit).run()


class _Declustering:
    def __init__(self, jit: JitOptions) -> None:
        self.jit, self.graph = jit, jit.graph
        self.kernels: KernelRegistry = jit.options.engine.kernels
        self.users = _users(self.graph)

    def run(self) -> None:
        self._reduce_copies()
        self._reduce_recompilation()
        self._drop_shape_readers()

    def _remove_from_cluster(self, node: Node, reason: str) -> None:
        del node.attrs[CLUSTER]
        record(self.jit.options.settings, {node.name: ClusterReport(node.op, "", reason)})

    # 1

    def _reduce_copies(self) -> None:
        for node in reversed(topological_order(self.graph)):
            if node.has_attr(CLUSTER) and device_type(node) != "CPU" and self._is_for_host(node):
                self._remove_from_cluster(node, "only the host needs its result")

    def _is_for_host(self, node: Node) -> bool:
        users = [user for user in self.users.get(node, ()) if node in (t.node for t in user.inputs)]
        return bool(users) and not node.is_stateful and all(self._reads_on_host(user, node) for user in users)

    def _reads_on_host(self, user: Node, node: Node) -> bool:
        if user.has_attr(CLUSTER):
            return False
        try:
            registration, _ = self.kernels.find_kernel_registration(device_type(user), user.op, user.attrs)
        except OpError:
            return False
        if registration is None:
            return False
        ranges = [name_ranges(args, user.attrs) for args in (user.op_def.input_arg, user.op_def.output_arg)]
        inputs, _ = memory_types_for_node(registration.kernel_def, user.op_def, *ranges)
        return all(m is MemoryType.HOST for t, m in zip(user.inputs, inputs, strict=True) if t.node is node)

    # 2

    def _reduce_recompilation(self) -> None:
        constants = BackwardsConstAnalysis(self.graph.library).run(self.graph).nodes
        for node in topological_order(self.graph):
            if (
                node in constants
                and node.has_attr(CLUSTER)
                and self._depends_on_outside(node)
                and not self._would_close_cycle(node)
            ):
                self._copy_constants(node)
                self._remove_from_cluster(
                    node, "its result must be a compile-time constant, but depends on data from outside the cluster"
                )

    def _depends_on_outside(self, node: Node) -> bool:
        """Return True if a node without side effects has a kernel and an operand from outside of its cluster."""
        if node.is_stateful or not node.inputs or not self._has_kernel(node):
            return False
        cluster = node.attr(CLUSTER)
        return any(not (t.node.has_attr(CLUSTER) and t.node.attr(CLUSTER) == cluster) for t in node.inputs)

    def _has_kernel(self, node: Node) -> bool:
        try:
            return self.kernels.find_kernel_registration(device_type(node), node.op, node.attrs)[0] is not None
        except OpError:
            return False

    def _would_close_cycle(self, node: Node) -> bool:
        """Return True if moving a node out would close a cycle with its cluster; its constants can be copied."""
        cluster = node.attr(CLUSTER)
        constants = {t.node for t in node.inputs if _is_constant(t.node)}
        starts = [s for s in [*(t.node for t in node.inputs), *node.control_inputs] if s not in constants]
        ancestors = reachable_backward(starts)
        return any(other.has_attr(CLUSTER) and other.attr(CLUSTER) == cluster for other in ancestors)

    def _copy_constants(self, node: Node) -> None:
        """Copy the constants that a node reads out of its cluster."""
        for i, tensor in enumerate(node.inputs):
            if _is_constant(tensor.node) and tensor.node.has_attr(CLUSTER):
                attrs = {key: value for key, value in tensor.node.attrs.items() if key != CLUSTER}
                copy = insert_node(self.graph, f"{tensor.node.name}/outside", "Const", attrs)
                copy.assigned_device, copy.device = tensor.node.assigned_device, tensor.node.device
                node.inputs[i] = copy.outputs[0]

    # 3

    def _drop_shape_readers(self) -> None:
        for node in reversed(topological_order(self.graph)):
            if node.op in _SHAPE_READERS and node.has_attr(CLUSTER) and not self._must_stay(node):
                self._remove_from_cluster(node, "nothing in its cluster reads the shape")

    def _must_stay(self, node: Node) -> bool:
        cluster = node.attr(CLUSTER)
        is_read = any(u.has_attr(CLUSTER) and u.attr(CLUSTER) == cluster for u in self.users.get(node, ()))
        return is_read or not self._has_kernel(node)


def _users(graph: Graph) -> dict[Node, dict[Node, None]]:
    users: dict[Node, dict[Node, None]] = {}
    for node in graph.nodes.values():
        for source in [*(t.node for t in node.inputs), *node.control_inputs]:
            users.setdefault(source, {})[node] = None
    return users


def _is_constant(node: Node) -> bool:
    return node.op == "Const" and not node.control_inputs


def is_acyclic(graph: Graph) -> bool:
    """Return True if a graph has no cycle, apart from loops, when each cluster is taken as one node."""
    numbers: dict[str, int] = {}
    number = {n: numbers.setdefault(n.attr(CLUSTER) if n.has_attr(CLUSTER) else f"={n.name}", len(numbers))
             for n in graph.nodes.values()}  # fmt: skip
    cycles = GraphCycles(len(numbers))
    return all(
        number[source] == number[node] or cycles.insert_edge(number[source], number[node])
        for node in graph.nodes.values()
        for source in [*(t.node for t in node.inputs), *node.control_inputs]
        if source.op not in LOOP_EDGES
    )
