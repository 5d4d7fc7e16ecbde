"""Replaces the nodes that compile and run a cluster by one ``XlaLaunch`` for the executor.

`_XlaCompile`, `_XlaRun` and the nodes of the fallback become one node, which does the same without branches, so that
a graph of clusters runs on the executor without frames.
"""

from __future__ import annotations

from cyxla.autojit.options import LAUNCH_OF, LAZY, PLATFORM, JitOptions
from cyxla.core.framework.attr_value import AttrValue
from cyxla.core.graph.graph import Graph, Node, Tensor
from cyxla.core.runtime.subgraph import insert_node, shallow_copy


def compose_launches(jit: JitOptions) -> None:
    """Replace each launch by one node, in a copy of the graph."""
    options = jit.options
    if not any(node.op == "_XlaCompile" and node.has_attr(LAUNCH_OF) for node in options.graph.nodes.values()):
        return
    graph = options.graph = shallow_copy(options.graph)
    groups: dict[str, list[Node]] = {}
    for node in graph.nodes.values():
        if node.has_attr(LAUNCH_OF):
            groups.setdefault(node.attr(LAUNCH_OF), []).append(node)
    _Composition(graph).run(groups)


class _Composition:
    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.outputs: dict[tuple[Node, int], Tensor] = {}
        self.controls: dict[Node, Node] = {}

    def run(self, groups: dict[str, list[Node]]) -> None:
        for name, members in groups.items():
            self._compose(name, members)
        for node in self.graph.nodes.values():
            node.inputs = [self.outputs.get((t.node, t.index), t) for t in node.inputs]
            node.control_inputs = list(dict.fromkeys(self.controls.get(c, c) for c in node.control_inputs))

    def _compose(self, name: str, members: list[Node]) -> None:
        compile_node = next((n for n in members if n.op == "_XlaCompile"), None)
        run_node = next((n for n in members if n.op == "_XlaRun"), None)
        if compile_node is None or run_node is None:
            return
        attrs = {key: compile_node.attrs[key] for key in ("Tconstants", "Targs", "Nresources", "function")}
        attrs |= {PLATFORM: compile_node.attrs[PLATFORM], "Tresults": run_node.attrs["Tresults"]}
        attrs[LAZY] = AttrValue("bool", not compile_node.attr("must_compile"))
        launch = insert_node(self.graph, f"{name}/xla_launch", "XlaLaunch", attrs, compile_node.inputs)
        launch.assigned_device, launch.output_shapes = compile_node.assigned_device, list(run_node.output_shapes)
        launch.control_inputs = list(compile_node.control_inputs)
        for node in members:
            self.controls[node] = launch
            if node.op == "_XlaMerge" and node.inputs[1].node is run_node:
                self.outputs[node, 0] = launch.outputs[node.inputs[1].index]
            del self.graph.nodes[node.name]
        for i, output in enumerate(launch.outputs):
            self.outputs[run_node, i] = output
