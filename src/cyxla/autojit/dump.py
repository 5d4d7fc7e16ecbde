"""Graphs written to files, for people who look for the reason of a clustering."""

from __future__ import annotations

from itertools import count
from pathlib import Path

from cyxla.autojit.options import CLUSTER
from cyxla.core.graph.algorithm import copy_graph
from cyxla.core.graph.graph import Graph

_NUMBERS = count()


def dump(graph: Graph, name: str, folder: str) -> Path:
    """Write a graph as a text GraphDef, every node's name behind that of its cluster; gives the file.

    Parameters
    ----------
    folder : str
        Where to; the current one if empty.
    """
    shown = copy_graph(graph)
    for node in list(shown.nodes.values()):
        if node.has_attr(CLUSTER):
            del shown.nodes[node.name]
            node.name = f"{node.attr(CLUSTER)}/{node.name}"
            shown.nodes[node.name] = node
    target = Path(folder or ".")
    target.mkdir(parents=True, exist_ok=True)
    path = target / f"{name}_{next(_NUMBERS)}.pbtxt"
    path.write_text(str(shown.to_graph_def()))
    return path
