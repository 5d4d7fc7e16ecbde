"""Regions of a graph that the user marks for compilation.

A scope (`jit_scope`) bounds the clusters that form inside it; a region (`compile_region`) becomes one program.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from weakref import WeakKeyDictionary

from cyxla.autojit.options import COMPILE, MUST_COMPILE, REGION, SCOPE, JitOptions
from cyxla.autojit.passes.force_constants import is_must_compile
from cyxla.core.framework.attr_value import AttrValue
from cyxla.core.graph.graph import Graph

_SCOPES: WeakKeyDictionary[Graph, list[str]] = WeakKeyDictionary()
_COUNTS: WeakKeyDictionary[Graph, int] = WeakKeyDictionary()


@contextmanager
def jit_scope(graph: Graph, *, compile_ops: bool = True) -> Iterator[str]:
    """Mark the nodes added in a ``with`` statement for compilation; no cluster spans two scopes.

    Parameters
    ----------
    graph : Graph
        Graph to which the nodes are added.
    compile_ops : bool
        False forbids compiling the nodes.

    Yields
    ------
    str
        Name of the scope; that of the outermost one where scopes are nested.
    """
    stack = _SCOPES.setdefault(graph, [])
    if not stack:
        _COUNTS[graph] = _COUNTS.get(graph, 0) + 1
    name = stack[0] if stack else f"jit_scope_{_COUNTS[graph] - 1}"
    with _mark_added_nodes(graph, **{COMPILE: AttrValue("bool", compile_ops), SCOPE: AttrValue("string", name)}):
        stack.append(name)
        try:
            yield name
        finally:
            stack.pop()


@contextmanager
def compile_region(graph: Graph, name: str = "") -> Iterator[str]:
    """Mark the nodes added in a ``with`` statement as one program, which must compile."""
    _COUNTS[graph] = _COUNTS.get(graph, 0) + 1
    region = name or f"region_{_COUNTS[graph] - 1}"
    with _mark_added_nodes(graph, **{REGION: AttrValue("string", region)}):
        yield region


@contextmanager
def _mark_added_nodes(graph: Graph, **attrs: AttrValue) -> Iterator[None]:
    """Give the nodes added in a ``with`` statement attributes; those a node already has take precedence."""
    existing = set(graph.nodes)
    try:
        yield
    finally:
        for name, node in graph.nodes.items():
            if name not in existing:
                node.attrs = {**attrs, **node.attrs}


def encapsulate_xla_computations(jit: JitOptions) -> None:
    """Mark all nodes of regions, and calls of functions that must be compiled, with ``_XlaMustCompile``."""
    for node in jit.graph.nodes.values():
        if node.has_attr(REGION):
            node.attrs[MUST_COMPILE] = AttrValue("bool", True)
        elif is_must_compile(node):
            node.attrs[REGION] = AttrValue("string", node.name)
            node.attrs[MUST_COMPILE] = AttrValue("bool", True)
