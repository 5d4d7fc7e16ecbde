"""Places the compile-time constant arguments of functions that must be compiled in host memory."""

from __future__ import annotations

from cyxla.autojit.analysis.candidates import FUNCTION_ATTRS
from cyxla.autojit.options import MUST_COMPILE, JitOptions
from cyxla.core.framework.attr_value import AttrValue
from cyxla.core.graph.graph import Node
from cyxla.tf2xla.const_analysis import BackwardsConstAnalysis

HOST_INPUTS = "_input_hostmem"


def force_xla_constants_on_host(jit: JitOptions) -> None:
    """Set ``_input_hostmem`` of all calls of such functions in a graph."""
    library = jit.graph.library
    analysis = BackwardsConstAnalysis(library)
    for node in jit.graph.nodes.values():
        if is_must_compile(node):
            node.attrs[HOST_INPUTS] = AttrValue("list(int)", tuple(analysis.constant_inputs(node)))


def is_must_compile(node: Node) -> bool:
    """Return True if a node calls a function, and the node or the function is marked ``_XlaMustCompile``."""
    library = node.graph.library
    if library.find(node.op) is None and FUNCTION_ATTRS.get(node.op) != ("f",):
        return False
    if MUST_COMPILE in node.attrs:
        return bool(node.attr(MUST_COMPILE))
    definition = library.find(node.op) or library.find(node.attr("f").name)
    mark = None if definition is None else definition.attr.get(MUST_COMPILE)
    return mark is not None and bool(mark.value)
