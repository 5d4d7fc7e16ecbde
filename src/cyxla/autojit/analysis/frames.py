"""The loop frames of the nodes of a graph."""

from __future__ import annotations

from cyxla.core.graph.algorithm import topological_order
from cyxla.core.graph.graph import Graph, Node

Frame = tuple[str, ...]  # names of the enclosing loops, outermost first
ENTERS = frozenset({"Enter", "RefEnter"})
EXITS = frozenset({"Exit", "RefExit"})


def frames_of(graph: Graph) -> dict[Node, Frame]:
    """Return the frame in which each node runs; an ``Enter`` and an ``Exit`` belong to the frame of their loop."""
    if not any(node.op in ENTERS for node in graph.nodes.values()):
        return dict.fromkeys(graph.nodes.values(), ())
    frames: dict[Node, Frame] = {}
    for node in topological_order(graph):
        producers = [*(t.node for t in node.inputs), *node.control_inputs]
        producer_frames = [_output_frame(source, frames[source]) for source in producers if source in frames]
        innermost = max(producer_frames, key=len, default=())
        frames[node] = (*innermost, node.attr("frame_name")) if node.op in ENTERS else innermost
    return frames


def _output_frame(source: Node, frame: Frame) -> Frame:
    """Return the frame of a node's results: the enclosing one for an ``Exit``."""
    return frame[:-1] if source.op in EXITS else frame
