"""The outcome of clustering: the cluster of each node, or the reason against one, and listeners for summaries."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field

from cyxla.autojit.options import CLUSTER, JitOptions
from cyxla.core.runtime.optimization_registry import OptimizationPassOptions


@dataclass(frozen=True)
class ClusterReport:
    """Outcome of clustering for one node.

    Parameters
    ----------
    op : str
        Op of the node.
    cluster : str
        Name of the node's cluster; empty if it is in none.
    reason : str
        Reason why the node is in no cluster; empty if it is in one.
    """

    op: str
    cluster: str
    reason: str


def record(options: OptimizationPassOptions, report: dict[str, ClusterReport]) -> None:
    """Record the outcome for nodes, to be returned by `Session.clusters`."""
    options.settings.setdefault("clusters", {}).update(report)


@dataclass
class ClusterSummary:
    """The number of nodes in a cluster, in total and by op."""

    name: str
    size: int = 0
    ops: Counter[str] = field(default_factory=Counter)


@dataclass
class ClusteringSummary:
    """The clusters of a graph, and the number of nodes outside all clusters, in total and by op."""

    clusters: list[ClusterSummary]
    unclustered: int
    unclustered_ops: Counter[str]


Listener = Callable[[ClusteringSummary], object]
_LISTENERS: list[Listener] = []


def add_listener(listener: Listener) -> None:
    """Call a function with the summary of every graph that is clustered from now on."""
    _LISTENERS.append(listener)


def remove_listener(listener: Listener) -> None:
    """Remove a listener that `add_listener` added."""
    _LISTENERS.remove(listener)


def summarize(jit: JitOptions) -> ClusteringSummary:
    """Count the nodes of a graph whose clusters are marked."""
    clusters: dict[str, ClusterSummary] = {}
    outside: Counter[str] = Counter()
    for node in jit.graph.nodes.values():
        if not node.has_attr(CLUSTER):
            outside[node.op] += 1
            continue
        summary = clusters.setdefault(node.attr(CLUSTER), ClusterSummary(node.attr(CLUSTER)))
        summary.size += 1
        summary.ops[node.op] += 1
    return ClusteringSummary(list(clusters.values()), sum(outside.values()), outside)


def report_clustering_info(jit: JitOptions) -> None:
    """Call the listeners with the summary of a graph."""
    if _LISTENERS:
        summary = summarize(jit)
        for listener in list(_LISTENERS):
            listener(summary)
