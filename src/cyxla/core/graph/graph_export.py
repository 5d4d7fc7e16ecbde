"""Export of graphs as GraphDefs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from cyxla.core.framework import node_def
from cyxla.core.framework.protos import messages as proto
from cyxla.core.graph.function_proto import library_to_proto

if TYPE_CHECKING:
    from cyxla.core.graph.graph import Graph


def to_graph_def(graph: Graph, *, strip_defaults: bool = False) -> Any:
    """Convert a graph to a GraphDef message, with the nodes in the graph's order."""
    message = proto.message("GraphDef")()
    message.versions.producer = graph.versions.producer
    message.versions.min_consumer = graph.versions.min_consumer
    message.versions.bad_consumers.extend(graph.versions.bad_consumers)
    for node in graph.nodes.values():
        record = node.node_def
        if strip_defaults:
            node_def.strip_defaults(record, node.op_def)
        message.node.append(record.to_proto())
    if len(graph.library):
        message.library.CopyFrom(library_to_proto(graph.library))
    return message
