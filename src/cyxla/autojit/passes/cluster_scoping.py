"""Keeps pipeline stages in separate clusters: the producers of a ``Stage`` and the consumers of an ``Unstage``."""

from __future__ import annotations

from cyxla.autojit.options import INTERNAL_SCOPE, JitOptions
from cyxla.core.framework.attr_value import AttrValue
from cyxla.core.graph.algorithm import reachable_backward, reachable_forward


def cluster_scoping(jit: JitOptions) -> None:
    """Add an internal scope to all ancestors of each Stage and all descendants of each Unstage."""
    graph = jit.graph
    if not jit.is_global:
        return
    number = 0
    for node in list(graph.nodes.values()):
        if node.op not in ("Stage", "Unstage"):
            continue
        scoped_nodes = reachable_backward([node]) if node.op == "Stage" else reachable_forward([node], graph)
        for other in scoped_nodes:
            scope = other.attrs.get(INTERNAL_SCOPE)
            text = f"stage_{number}" if scope is None else f"{scope.value}&stage_{number}"
            other.attrs[INTERNAL_SCOPE] = AttrValue("string", text)
        number += 1
