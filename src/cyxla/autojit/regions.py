"""Regions of a graph that the user wants compiled: scopes, in which clusters form, and regions that become one."""

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
    """Mark nodes made in a ``with`` statement to be compiled; clusters do not reach from one scope into another.

    Parameters
    ----------
    graph : Graph
        Gets the nodes.
    compile_ops : bool
        False forbids compiling them.

    Yields
    ------
    str
        Name of the scope; that of the outermost one where scopes are nested.
    """
    stack = _SCOPES.setdefault(graph, [])
    if not stack:
        _COUNTS[graph] = _COUNTS.get(graph, 0) + 1
    name = stack[0] if stack else f"jit_scope_{_COUNTS[graph] - 1}"
    with _marked(graph, **{COMPILE: AttrValue("bool", compile_ops), SCOPE: AttrValue("string", name)}):
        stack.append(name)
        try:
            yield name
        finally:
            stack.pop()


@contextmanager
def compile_region(graph: Graph, name: str = "") -> Iterator[str]:
    """Mark nodes made in a ``with`` statement to be compiled as one program, or to fail."""
    _COUNTS[graph] = _COUNTS.get(graph, 0) + 1
    region = name or f"region_{_COUNTS[graph] - 1}"
    with _marked(graph, **{REGION: AttrValue("string", region)}):
        yield region


@contextmanager
def _marked(graph: Graph, **attrs: AttrValue) -> Iterator[None]:
    before = set(graph.nodes)
    try:
        yield
    finally:
        for name, node in graph.nodes.items():
            if name not in before:
                node.attrs = {**attrs, **node.attrs}


def encapsulate_xla_computations(jit: JitOptions) -> None:
    """Say of everything in a region, and of calls that must be compiled, that they are to be compiled."""
    for node in jit.graph.nodes.values():
        if node.has_attr(REGION):
            node.attrs[MUST_COMPILE] = AttrValue("bool", True)
        elif is_must_compile(node):
            node.attrs[REGION] = AttrValue("string", node.name)
            node.attrs[MUST_COMPILE] = AttrValue("bool", True)
