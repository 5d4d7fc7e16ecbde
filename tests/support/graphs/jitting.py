"""Small graphs for tests of clustering, and the clusters of a session."""

from __future__ import annotations

from typing import Any

import numpy as np

import cyxla
from cyxla.autojit.runtime.device_compiler import XlaCompilationCache, build_compilation_cache
from cyxla.core.framework.apply import apply_op
from cyxla.core.graph.graph import Graph, Tensor

UNARY = ("Exp", "Neg", "Tanh", "Sin", "Cos", "Sigmoid", "Abs", "Square")


def chain(
    length: int, graph: Graph | None = None, x: Tensor | None = None, shape: Any = None
) -> tuple[Graph, Tensor, Tensor]:
    """Return a graph of a chain of unary ops, its input and its result."""
    graph = graph or Graph()
    x = graph.placeholder("float", shape, name="x") if x is None else x
    y = x
    with graph.as_default():
        for k in range(length):
            y = apply_op(UNARY[k % len(UNARY)], y)
    return graph, x, y


def nodes_that_run(session: cyxla.Session, fetches: Any, feeds: Any = None) -> dict[str, str]:
    """Return the op of every node by name, after all graph passes."""
    metadata = cyxla.RunMetadata()
    session.run(fetches, feeds, metadata=metadata)
    return {name: node.op for graph in metadata.partition_graphs for name, node in graph.nodes.items()}


def clusters(session: cyxla.Session) -> dict[str, set[str]]:
    """Return the nodes of each cluster."""
    found: dict[str, set[str]] = {}
    for name, row in session.clusters().items():
        if row.cluster:
            found.setdefault(row.cluster, set()).add(name)
    return found


def auto(graph: Graph, **options: Any) -> cyxla.Session:
    """Return a session that clusters, on the interpreter."""
    return cyxla.Session(graph, jit="auto", platform="interpreter", **options)


def cache(session: cyxla.Session, platform: str = "interpreter") -> XlaCompilationCache:
    """Return the cache of compiled clusters of a session."""
    return build_compilation_cache(session.engine.resource_manager, platform)


def ones(*shape: int) -> Any:
    """Return an array of ones in float32."""
    return np.ones(shape, np.float32)
