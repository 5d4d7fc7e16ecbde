"""In which loops the nodes of a graph are."""

from __future__ import annotations

from cyxla.core.graph.algorithm import topological_order
from cyxla.core.graph.graph import Graph, Node

Frame = tuple[str, ...]  # names of the loops from the outside in
ENTERS = frozenset({"Enter", "RefEnter"})
EXITS = frozenset({"Exit", "RefExit"})


def frames_of(graph: Graph) -> dict[Node, Frame]:
    """The loops that a node runs in; an ``Enter`` and an ``Exit`` count as being inside of theirs."""
    if not any(node.op in ENTERS for node in graph.nodes.values()):
        return dict.fromkeys(graph.nodes.values(), ())
    frames: dict[Node, Frame] = {}
    for node in topological_order(graph):
        before = [*(t.node for t in node.inputs), *node.control_inputs]
        known = [_seen_from(source, frames[source]) for source in before if source in frames]
        inside = max(known, key=len, default=())
        frames[node] = (*inside, node.attr("frame_name")) if node.op in ENTERS else inside
    return frames


def _seen_from(source: Node, frame: Frame) -> Frame:
    """The loops that what a node gives is in."""
    return frame[:-1] if source.op in EXITS else frame
