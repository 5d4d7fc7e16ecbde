"""Graphs become GraphDefs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from cyxla.core.framework import proto
from cyxla.core.graph.function_proto import library_to_proto

if TYPE_CHECKING:
    from cyxla.core.framework.node_def import NodeDef
    from cyxla.core.framework.op_def import OpDef
    from cyxla.core.graph.graph import Graph


def to_graph_def(graph: Graph, *, strip_defaults: bool = False) -> Any:
    """A graph as a GraphDef message, nodes in the graph's order."""
    message = proto.message("GraphDef")()
    message.versions.producer = graph.versions.producer
    message.versions.min_consumer = graph.versions.min_consumer
    message.versions.bad_consumers.extend(graph.versions.bad_consumers)
    for node in graph.nodes.values():
        node_def = node.node_def
        if strip_defaults:
            strip_default_attrs(node_def, node.op_def)
        message.node.append(node_def.to_proto())
    if len(graph.library):
        message.library.CopyFrom(library_to_proto(graph.library))
    return message


def strip_default_attrs(node_def: NodeDef, op_def: OpDef) -> None:
    """Take out the attributes that say no more than the declaration."""
    for attr in op_def.attr:
        if attr.default is not None and node_def.attr.get(attr.name) == attr.default:
            del node_def.attr[attr.name]
