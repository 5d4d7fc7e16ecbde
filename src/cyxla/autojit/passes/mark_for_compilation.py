"""Chooses clusters: sets of nodes that are compiled and run as one, marked by the attribute ``_XlaCluster``.

Every node that can be compiled starts as a cluster of its own. Edges between clusters are contracted, in post-order,
as long as the result is legal: alive under one condition, on one device, in one scope, not too large, reading
variables before it writes them, and without a path that leaves it and returns. Clusters that are large enough, or
were requested, are kept.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from weakref import WeakKeyDictionary

from cyxla.autojit.analysis.candidates import FILTERED, STRUCTURED, RecursiveCompilabilityChecker
from cyxla.autojit.analysis.deadness import DeadnessAnalysis
from cyxla.autojit.analysis.frames import ENTERS, EXITS, frames_of
from cyxla.autojit.analysis.graph_cycles import GraphCycles
from cyxla.autojit.analysis.indivisible_groups import indivisible_groups
from cyxla.autojit.analysis.list_lengths import ListLengths
from cyxla.autojit.analysis.op_groups import expand
from cyxla.autojit.analysis.resource_safety import Access, access_of, incompatible_pairs
from cyxla.autojit.devices import ENCLOSING, ClusterFilter, DeviceInfo, Policy
from cyxla.autojit.dump import dump
from cyxla.autojit.options import (
    ALREADY,
    CLUSTER,
    COMPILE,
    COMPILED_KERNEL,
    INTERNAL_SCOPE,
    REGION,
    SCOPE,
    JitOptions,
    device_type,
)
from cyxla.autojit.report import ClusterReport, record
from cyxla.core.framework.attr_value import AttrValue
from cyxla.core.framework.function import FunctionLibraryDefinition
from cyxla.core.framework.types import INTEGRAL, DataType
from cyxla.core.graph.algorithm import topological_order
from cyxla.core.graph.graph import Graph, Node
from cyxla.errors import InvalidArgumentError
from cyxla.forking import new_lock
from cyxla.tf2xla.const_analysis import BackwardsConstAnalysis

_LOG = logging.getLogger("cyxla.autojit")
_TRIVIAL_OPS = frozenset({"Const", "Identity", "IdentityN"})  # do not count towards a cluster's size
_SHAPE_CONSUMERS = frozenset({"Shape", "ShapeN", "Rank", "Size"})
_NEXT_ITERATIONS = frozenset({"NextIteration", "RefNextIteration"})
_ARGS_AND_RETVALS = frozenset({"_Arg", "_Retval"})
_ARRAY_OPS = FILTERED["tensor_arrays"][1] | FILTERED["stacks"][1]


@dataclass(eq=False)
class Cluster:
    """Nodes that are compiled and run as one."""

    number: int  # in the graph of cycles
    nodes: list[Node]
    size: int
    device: str
    deadness: int
    scope: str | None
    requested: bool  # by _XlaCompile=true
    has_control_flow: bool
    resources: list[Node] = field(default_factory=list)

    def merge(self, other: Cluster) -> None:
        """Add the nodes of another cluster."""
        self.nodes += other.nodes
        self.size += other.size
        self.scope = self.scope if self.scope is not None else other.scope
        self.requested |= other.requested
        self.has_control_flow |= other.has_control_flow
        self.resources += other.resources


class MarkForCompilation:
    """The clustering of one graph.

    Parameters
    ----------
    jit : JitOptions
        Graph, level and flags.
    """

    def __init__(self, jit: JitOptions) -> None:
        self.jit, self.flags, self.graph = jit, jit.flags, jit.graph
        self.report: dict[str, ClusterReport] = {}
        self.checkers: dict[str, RecursiveCompilabilityChecker | None] = {}
        self.clusters: dict[Node, Cluster] = {}
        self.enclosed: dict[Node, frozenset[Node]] = {}  # nodes of indivisible groups, with their group
        self.list_reasons: dict[Node, str] = {}  # of nodes at which a compiled list would differ

    def run(self) -> list[Cluster]:
        """Mark the nodes of clusters, and return the clusters in order."""
        if any(node.has_attr(ALREADY) for node in self.graph.nodes.values()):
            return []
        self.deadness = DeadnessAnalysis(self.graph)
        self.regions = _regions(self.graph)
        self.list_reasons = ListLengths(self.graph.library).reasons(self.graph)
        clusters = self._form_clusters(indivisible_groups(self.graph))
        self._name_clusters(clusters)
        record(self.jit.options.settings, self.report)
        return clusters

    def _form_clusters(self, groups: list[frozenset[Node]]) -> list[Cluster]:
        """Return clusters that hold whole groups; retry without the groups that no cluster can hold."""
        while True:
            self.report, self.clusters, self.enclosed = {}, {}, {}
            groups = [g for g in groups if not any(self._reason(node, enclosed=True) for node in g)]
            self.enclosed = {node: group for group in groups for node in group}
            candidates = self._candidates()
            clusters: list[Cluster] = []
            if candidates or self.regions:
                self._build_clusters(candidates)
                self._contract_all()
                clusters = self._keep_large_enough()
            enclosed_groups = [g for g in groups if self._encloses(clusters, g)]
            if len(enclosed_groups) == len(groups):
                return clusters
            groups = enclosed_groups

    def _encloses(self, clusters: list[Cluster], group: frozenset[Node]) -> bool:
        holders = {id(self.clusters.get(node)) for node in group}
        return len(holders) == 1 and any(id(c) in holders for c in clusters)

    # Candidates

    def _candidates(self) -> list[Node]:
        """Return the nodes that can be compiled, as far as the fuel lasts."""
        constants: set[Node] | None = None
        included = expand(self.flags.tf_xla_ops_to_cluster) if self.flags.tf_xla_ops_to_cluster else None
        excluded = frozenset(self.flags.tf_xla_cluster_exclude_ops)
        fuel = self.flags.tf_xla_clustering_fuel
        candidates: list[Node] = []
        for node in sorted(self.graph.nodes.values(), key=lambda n: n.id):
            if node.has_attr(REGION) or node.has_attr(COMPILED_KERNEL):
                continue
            reason = self._reason(node, included, excluded, enclosed=node in self.enclosed)
            if not reason and node.is_stateful:
                if constants is None:
                    constants = set(BackwardsConstAnalysis(self.graph.library).run(self.graph).nodes)
                reason = (
                    "its result must be a compile-time constant, but it has side effects" if node in constants else ""
                )
            if not reason and fuel <= 0:
                reason = "the fuel of --tf_xla_clustering_fuel is exhausted"
            if reason:
                self.report[node.name] = ClusterReport(node.op, "", reason)
            else:
                fuel -= 1
                candidates.append(node)
        return candidates

    def _reason(
        self,
        node: Node,
        included: frozenset[str] | None = None,
        excluded: frozenset[str] = frozenset(),
        *,
        enclosed: bool = False,
    ) -> str:
        if node.op in _ARGS_AND_RETVALS:
            return "it is an argument or a result"
        info = self.jit.info(node)
        if info is None:
            return f"devices of type {device_type(node)} have no compilation device"
        reason = self._policy_reason(node, info)
        if reason:
            return reason
        if (included is not None and node.op not in included) or node.op in excluded:
            return "--tf_xla_ops_to_cluster or --tf_xla_cluster_exclude_ops excludes its op"
        checker = self._checker(node, info, enclosed)
        if node in self.list_reasons and not checker.filter.growing:
            return f"{node.op}: {self.list_reasons[node]}"
        return checker.reason(node)

    def _policy_reason(self, node: Node, info: DeviceInfo) -> str:
        """Return the reason why policy forbids a compilation: neither the device nor the node asks for it."""
        if info.policy is Policy.ALWAYS and self.flags.tf_xla_compile_on_demand:
            return "each op is compiled on its own: --tf_xla_compile_on_demand"
        if info.policy is Policy.ALWAYS or self._is_requested(node):
            return ""
        if info.policy is Policy.IF_ENABLED_GLOBALLY and self.jit.is_global:
            return ""
        if info.policy is Policy.IF_REQUESTED and self.jit.is_global:
            _warn_once()
            return "on CPUs, nodes are clustered only on request: --tf_xla_cpu_global_jit is not set"
        return "clustering is off, and the node does not request it"

    @staticmethod
    def _is_requested(node: Node) -> bool:
        return node.has_attr(COMPILE) and node.attr(COMPILE) is True

    def _checker(self, node: Node, info: DeviceInfo, enclosed: bool) -> RecursiveCompilabilityChecker:
        """Return the checker for a node's device; explicitly marked nodes have one that admits slow ops too."""
        key = device_type(node) + "!" * self._is_requested(node) + "()" * enclosed
        if key not in self.checkers:
            admitted = replace(ClusterFilter.all(), control_trigger=False) if self._is_requested(node) else info.filter
            if enclosed:
                admitted |= ENCLOSING
            self.checkers[key] = RecursiveCompilabilityChecker(
                info, self.jit.options.engine.kernels, self.graph.library, admitted
            )
        checker = self.checkers[key]
        assert checker is not None
        return checker

    # Clusters of one node

    def _build_clusters(self, candidates: list[Node]) -> None:
        order = topological_order(self.graph)
        self.ids = {node: i for i, node in enumerate(order)}
        self.cycles = GraphCycles(len(order))
        frames = frames_of(self.graph)
        loops: dict[tuple[str, ...], int] = {}

        def loop(node: Node) -> int:
            if frames[node] not in loops:
                loops[frames[node]] = self.cycles.new_node()
            return loops[frames[node]]

        for node in order:
            for source in [*(t.node for t in node.inputs), *node.control_inputs]:
                if source.op in _NEXT_ITERATIONS:
                    continue
                # From outside, a loop is a single node: a path may enter it, go around, and leave.
                start = loop(source) if source.op in EXITS else self.ids[source]
                end = loop(node) if node.op in ENTERS else self.ids[node]
                self.cycles.insert_edge(start, end)
        for node in candidates:
            self.clusters[node] = self._single_node_cluster(node)
        self.by_number = {cluster.number: cluster for cluster in self.clusters.values()}
        for name, nodes in self.regions.items():
            self._contract_region(name, nodes)
        self.unsafe: dict[Node, set[Node]] = {}
        if not self.flags.tf_xla_disable_resource_variable_safety_checks_for_debugging:
            for first, second in incompatible_pairs(self.graph, self._access):
                self.unsafe.setdefault(first, set()).add(second)
                self.unsafe.setdefault(second, set()).add(first)

    def _contract_region(self, name: str, nodes: list[Node]) -> None:
        """Contract the nodes of a region to one in the graph of cycles; clusters do not absorb them."""
        first, *rest = sorted(self.ids[node] for node in nodes)
        for other in rest:
            if not self.cycles.insert_edge(first, other):
                self.cycles.insert_edge(other, first)
            edge = (first, other) if self.cycles.has_edge(first, other) else (other, first)
            merged = self.cycles.contract_edge(*edge)
            if merged is None:
                raise InvalidArgumentError(
                    f"the region '{name}' cannot be compiled as one program: a path leaves it and returns to it",
                    node=nodes[0].name,
                    op=nodes[0].op,
                    hint="add the nodes in between to the region, or split it into two regions",
                )
            first = merged

    def _single_node_cluster(self, node: Node) -> Cluster:
        ignores_deadness = self.flags.tf_xla_disable_deadness_safety_checks_for_debugging
        return Cluster(
            self.ids[node],
            [node],
            0 if node.op in _TRIVIAL_OPS else 1,
            node.assigned_device or node.device,
            0 if ignores_deadness else self.deadness.control(node),
            self._scope(node),
            self._is_requested(node),
            node.op in STRUCTURED,
            [node] if self._access(node) is not Access.NONE else [],
        )

    def _access(self, node: Node) -> Access:
        """Return the access of a node to variables; tensor arrays and stacks inside a cluster do not count."""
        return Access.NONE if node in self.enclosed and node.op in _ARRAY_OPS else access_of(node)

    def _scope(self, node: Node) -> str | None:
        """Return the scope that bounds a node's cluster: the user's if clustering is off, else that of the passes."""
        name = INTERNAL_SCOPE if self.jit.is_global else SCOPE
        return str(node.attr(name)) if node.has_attr(name) else None

    # Contraction

    def _contract_all(self) -> None:
        self._contract_edges(lambda a, b: any(n.op in _SHAPE_CONSUMERS for n in b.nodes))
        self._contract_edges(lambda a, b: not self._is_sink(b) and not self._is_counter(a))
        self._contract_edges(lambda a, b: True)

    def _contract_edges(self, is_candidate: Callable[[Cluster, Cluster], bool]) -> None:
        """Contract edges in post-order until none can be contracted."""
        changed = True
        while changed:
            changed = False
            for number in sorted(self.by_number, key=self.cycles.rank.__getitem__, reverse=True):
                if number in self.by_number:
                    changed |= self._contract_from(number, is_candidate)

    def _contract_from(self, number: int, is_candidate: Callable[[Cluster, Cluster], bool]) -> bool:
        """Contract edges that leave a cluster, again and again, since it gains edges as it grows."""
        changed = False
        tried: set[int] = set()
        while True:
            source = self.by_number[number]
            targets = [t for t in self.cycles.successors[number] if t in self.by_number and t not in tried]
            for target in sorted(targets, key=self.cycles.rank.__getitem__):
                tried.add(target)
                successor = self.by_number[target]
                merged = self._merge(source, successor) if is_candidate(source, successor) else None
                if merged is not None:
                    changed, number = True, merged
                    break
            else:
                return changed

    def _merge(self, a: Cluster, b: Cluster) -> int | None:
        if not self._may_merge(a, b):
            return None
        merged = self.cycles.contract_edge(a.number, b.number)
        if merged is None:
            return None
        del self.by_number[a.number], self.by_number[b.number]
        larger, smaller = (a, b) if len(a.nodes) >= len(b.nodes) else (b, a)
        larger.merge(smaller)
        larger.number = merged
        self.by_number[merged] = larger
        for node in smaller.nodes:
            self.clusters[node] = larger
        return merged

    def _may_merge(self, a: Cluster, b: Cluster) -> bool:
        if a.deadness != b.deadness or a.device != b.device:
            return False
        if a.scope is not None and b.scope is not None and a.scope != b.scope:
            return False
        if a.size + b.size > self.flags.tf_xla_max_cluster_size:
            return False
        fewer, more = sorted((a.resources, b.resources), key=len)
        return not fewer or not any(not self.unsafe.get(n, set()).isdisjoint(more) for n in fewer)

    @staticmethod
    def _is_sink(cluster: Cluster) -> bool:
        """Return True for a lone NoOp: merged last, since it would connect otherwise unrelated nodes."""
        return len(cluster.nodes) == 1 and cluster.nodes[0].op == "NoOp"

    @staticmethod
    def _is_counter(cluster: Cluster) -> bool:
        """Return True for a lone update of an integer scalar, such as a step counter.

        It is merged last, so that it does not keep a larger cluster from growing.
        """
        if len(cluster.nodes) != 1 or not cluster.resources:
            return False
        node = cluster.nodes[0]
        dtype = node.attrs.get("dtype")
        if dtype is None or dtype.value not in INTEGRAL:
            return False
        shapes = [*node.output_shapes, *(t.shape for t in node.inputs if t.dtype is not DataType.DT_RESOURCE)]
        return bool(shapes) and all(shape.rank == 0 for shape in shapes)

    # Results

    def _keep_large_enough(self) -> list[Cluster]:
        """Return the clusters that are kept, in the order of their first nodes."""
        clusters = {id(c): c for node in self.graph.nodes.values() if (c := self.clusters.get(node)) is not None}
        kept = []
        for cluster in clusters.values():
            reason = self._size_reason(cluster)
            if reason:
                self.report.update({n.name: ClusterReport(n.op, "", reason) for n in cluster.nodes})
            else:
                kept.append(cluster)
        return kept

    def _size_reason(self, cluster: Cluster) -> str:
        min_size = self.flags.tf_xla_min_cluster_size
        if cluster.size >= min_size or cluster.has_control_flow or cluster.requested:
            return ""
        if not cluster.size:
            return "it computes nothing, and no adjacent node is compiled"
        return f"its cluster would have {cluster.size} of at least {min_size} nodes: {self._growth_reason(cluster)}"

    def _growth_reason(self, cluster: Cluster) -> str:
        """Return the reason why a cluster does not grow."""
        inside = set(cluster.nodes)
        for node in cluster.nodes:
            for source in [*(t.node for t in node.inputs), *node.control_inputs]:
                if source not in inside and source in self.clusters:
                    return f"'{source.name}' cannot join it ({self._merge_obstacle(self.clusters[source], cluster)})"
        return "no other adjacent node can be compiled"

    def _border_of(self, node: Node) -> str:
        """Return the reason why a node that another one reads is in another cluster; empty if none is."""
        cluster = self.clusters.get(node)
        for source in dict.fromkeys(t.node for t in node.inputs):
            other = self.clusters.get(source)
            if cluster is not None and other is not None and other is not cluster and not self._size_reason(other):
                return f"'{source.name}' is in another cluster, since {self._merge_obstacle(other, cluster)}"
        return ""

    def _merge_obstacle(self, a: Cluster, b: Cluster) -> str:
        if a.deadness != b.deadness:
            return "it runs under a different condition"
        if a.device != b.device:
            return "it is on another device"
        if a.scope != b.scope and a.scope is not None and b.scope is not None:
            return "it is in another scope"
        if a.size + b.size > self.flags.tf_xla_max_cluster_size:
            return "the cluster would be too large"
        return (
            "the order of reads and writes would be lost"
            if not self._may_merge(a, b)
            else "merging would create a cycle"
        )

    def _name_clusters(self, clusters: list[Cluster]) -> None:
        members = [*(cluster.nodes for cluster in clusters), *self.regions.values()]
        for name, nodes in zip(cluster_names(self.graph, len(members)), members, strict=True):
            for node in nodes:
                node.attrs[CLUSTER] = node.attrs[ALREADY] = AttrValue("string", name)
                self.report[node.name] = ClusterReport(node.op, name, "", self._border_of(node))


def _regions(graph: Graph) -> dict[str, list[Node]]:
    """Return the nodes of each region that the user marked, by the name of the region."""
    regions: dict[str, list[Node]] = {}
    for node in graph.nodes.values():
        if node.has_attr(REGION):
            regions.setdefault(node.attr(REGION), []).append(node)
    return regions


_NUMBERS: WeakKeyDictionary[FunctionLibraryDefinition, int] = WeakKeyDictionary()  # the next for each library
_LOCK = new_lock()


def cluster_names(graph: Graph, count: int) -> list[str]:
    """Return new names that no node of the graph and no function of its library has; none is returned twice."""
    names: list[str] = []
    with _LOCK:
        number = _NUMBERS.get(graph.library, 0)
        while len(names) < count:
            name = f"cluster_{number}"
            if name not in graph.nodes and graph.library.find(name) is None:
                names.append(name)
            number += 1
        _NUMBERS[graph.library] = number
    return names


_warned = False


def _warn_once() -> None:
    global _warned
    if not _warned:
        _warned = True
        _LOG.warning("clustering is on, but not for CPUs: add --tf_xla_cpu_global_jit to TF_XLA_FLAGS")


def mark_for_compilation(jit: JitOptions) -> None:
    """Mark the clusters of a graph; with ``--tf_xla_clustering_debug``, dump it before and after."""
    debug = jit.flags.tf_xla_clustering_debug
    if debug:
        dump(jit.graph, "before_mark_for_compilation", jit.flags.tf_dump_graph_prefix)
    MarkForCompilation(jit).run()
    if debug:
        dump(jit.graph, "mark_for_compilation", jit.flags.tf_dump_graph_prefix)
