"""What became of each node, and whom to tell."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field

from cyxla.autojit.options import CLUSTER, JitOptions
from cyxla.core.runtime.optimization_registry import OptimizationPassOptions


@dataclass(frozen=True)
class ClusterReport:
    """Where a node is.

    Parameters
    ----------
    op : str
        Its op.
    cluster : str
        Name of its cluster; empty if it is in none.
    reason : str
        Why it is in none; empty if it is in one.
    """

    op: str
    cluster: str
    reason: str


def record(options: OptimizationPassOptions, report: dict[str, ClusterReport]) -> None:
    """Keep what became of nodes, for `Session.clusters`."""
    options.settings.setdefault("clusters", {}).update(report)


@dataclass
class ClusterSummary:
    """A cluster: how many nodes it has, and of which ops."""

    name: str
    size: int = 0
    ops: Counter[str] = field(default_factory=Counter)


@dataclass
class ClusteringSummary:
    """A graph after clustering."""

    clusters: list[ClusterSummary]
    unclustered: int
    unclustered_ops: Counter[str]


Listener = Callable[[ClusteringSummary], object]
_LISTENERS: list[Listener] = []


def add_listener(listener: Listener) -> None:
    """Let somebody be told of every graph that was clustered."""
    _LISTENERS.append(listener)


def remove_listener(listener: Listener) -> None:
    """The contrary of `add_listener`."""
    _LISTENERS.remove(listener)


def summarize(jit: JitOptions) -> ClusteringSummary:
    """Count a graph whose clusters are marked."""
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
    """Tell the listeners."""
    if _LISTENERS:
        summary = summarize(jit)
        for listener in list(_LISTENERS):
            listener(summary)
