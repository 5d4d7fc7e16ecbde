"""Text dumps of clustered graphs, for debugging the choice of clusters."""

from __future__ import annotations

from itertools import count
from pathlib import Path

from cyxla.autojit.options import CLUSTER
from cyxla.core.graph.algorithm import copy_graph
from cyxla.core.graph.graph import Graph

_NUMBERS = count()


def dump(graph: Graph, name: str, folder: str) -> Path:
    """Write a graph as a text GraphDef, with the cluster's name as prefix of each node's name, and return the path.

    Parameters
    ----------
    folder : str
        Output folder; the current one if empty.
    """
    renamed = copy_graph(graph)
    for node in list(renamed.nodes.values()):
        if node.has_attr(CLUSTER):
            del renamed.nodes[node.name]
            node.name = f"{node.attr(CLUSTER)}/{node.name}"
            renamed.nodes[node.name] = node
    target = Path(folder or ".")
    target.mkdir(parents=True, exist_ok=True)
    path = target / f"{name}_{next(_NUMBERS)}.pbtxt"
    path.write_text(str(renamed.to_graph_def()))
    return path
