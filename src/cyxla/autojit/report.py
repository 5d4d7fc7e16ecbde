"""The outcome of clustering: the cluster of each node, or the reason against one, and listeners for summaries."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from cyxla import config
from cyxla.autojit.options import CLUSTER, JitOptions
from cyxla.hashing import blake2b
from cyxla.xla.service.explanation import Explanation
from cyxla.xla.service.refusal import Refusal

_ARGS_AND_RETVALS = frozenset({"_Arg", "_Retval"})


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
    border : str
        Reason why a node that it reads is in another cluster; empty if none is.
    """

    op: str
    cluster: str
    reason: str
    border: str = ""


def record(settings: dict[str, Any], report: Mapping[str, ClusterReport]) -> None:
    """Record the outcome for nodes in the settings of a session, to be returned by its methods."""
    settings.setdefault("clusters", {}).update(report)
    settings["explain_clusters"] = explanation


def explanation(report: Mapping[str, ClusterReport], platform: str = "") -> Explanation:
    """Return the explanation of clusters: a refusal for each node outside of them, and for each border between two."""
    nodes = {name: row for name, row in report.items() if row.op not in _ARGS_AND_RETVALS}
    sizes = Counter(row.cluster for row in nodes.values() if row.cluster)
    listed = ", ".join(f"{name} of {count} nodes" for name, count in sorted(sizes.items(), key=_by_number))
    outside = sum(not row.cluster for row in nodes.values())
    summary = f"{len(sizes)} clusters{': ' if listed else ''}{listed}; {outside} nodes run by their kernels"
    refusals = [
        Refusal("clustering", f"{row.op} '{name}'", row.reason or row.border)
        for name, row in nodes.items()
        if row.reason or row.border
    ]
    return Explanation(platform, "graph", summary, (), tuple(refusals))


def _by_number(item: tuple[str, int]) -> tuple[int, str]:
    digits = re.search(r"\d+$", item[0])
    return int(digits[0]) if digits else 0, item[0]


def _dump(root: str, report: Mapping[str, ClusterReport], platform: str) -> None:
    """Write the explanation of a graph's clusters into a folder named by the digest of its nodes."""
    digest = blake2b(digest_size=8)
    for name, row in report.items():
        digest.update(f"{name} {row.op}\n".encode())
    folder, found = Path(root) / f"graph.{digest.hexdigest()}", explanation(report, platform)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "clusters.txt").write_text(f"{found}\n", encoding="utf-8")
    (folder / "clusters.json").write_text(json.dumps(found.as_dict(), indent=2) + "\n", encoding="utf-8")


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
    """Call the listeners with the summary of a graph, and dump the clusters if CYXLA_DUMP is set."""
    settings = jit.options.settings
    if config.get("DUMP") and settings.get("clusters"):
        _dump(config.get("DUMP"), settings["clusters"], settings.get("platform", ""))
    if _LISTENERS:
        summary = summarize(jit)
        for listener in list(_LISTENERS):
            listener(summary)
