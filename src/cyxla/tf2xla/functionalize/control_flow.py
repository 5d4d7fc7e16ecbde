"""Rewriting of v1 control flow (Switch, Merge, Enter, Exit, NextIteration) to While and If nodes.

Loops are rewritten first, innermost first: a frame becomes a condition and a body function. Conditionals follow, also
innermost first: nodes that run under one value of a predicate become a branch function.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from cyxla.core.framework.attr_value import AttrValue, NameAttrList
from cyxla.core.framework.node_def import NodeDef
from cyxla.core.framework.types import DataType
from cyxla.core.graph.algorithm import consumers, topological_order
from cyxla.core.graph.graph import Graph, Node, Tensor
from cyxla.errors import InvalidArgumentError, UnimplementedError
from cyxla.tf2xla.functionalize.conditionals import MERGE as _MERGE
from cyxla.tf2xla.functionalize.conditionals import SWITCH as _SWITCH
from cyxla.tf2xla.functionalize.conditionals import functionalize_conditionals
from cyxla.tf2xla.functionalize.outlining import Outline, replace_node

_FRAMES = frozenset({"Enter", "Exit", "NextIteration", "RefEnter", "RefExit", "RefNextIteration", "LoopCond"})
_NEXT = ("NextIteration", "RefNextIteration")
_ENTER, _EXIT = ("Enter", "RefEnter"), ("Exit", "RefExit")

Frame = tuple[str, ...]


def has_control_flow(graph: Graph) -> bool:
    """Return whether a graph has frames or branches."""
    return any(node.op in _FRAMES or node.op in _SWITCH or node.op in _MERGE for node in graph.nodes.values())


def functionalize_control_flow(graph: Graph) -> None:
    """Rewrite frames and branches of a graph; its library gains the functions.

    Raises
    ------
    InvalidArgumentError
        A loop is malformed.
    UnimplementedError
        The graph cannot be expressed with While and If.
    """
    if not has_control_flow(graph):
        return
    frames = frames_of(graph)
    for frame in sorted(dict.fromkeys(frames.values()), key=len, reverse=True):
        if frame:
            _Loop(graph, frame, frames).replace()
    functionalize_conditionals(graph)


def frames_of(graph: Graph) -> dict[Node, Frame]:
    """Return the frame of each node, as names of frames from the outermost; empty for the root."""
    frames: dict[Node, Frame] = {}
    for node in topological_order(graph):
        around = [frames[s] for s in (*(t.node for t in node.inputs), *node.control_inputs) if s in frames]
        inside = max(around, key=len, default=())
        if node.op in _ENTER:
            inside = (*frames[node.inputs[0].node], node.attr("frame_name"))
        elif node.op in _EXIT:
            inside = inside[:-1]
        frames[node] = inside
    return frames


class _Loop:
    """Loop whose inner loops have been rewritten.

    Parameters
    ----------
    graph : Graph
    frame : tuple of str
    frames : dict of Node
        Result of `frames_of`, which is kept up to date.
    """

    def __init__(self, graph: Graph, frame: Frame, frames: dict[Node, Frame]) -> None:
        self.graph, self.frame, self.frames = graph, frame, frames
        self.name = frame[-1]
        self.nodes = [n for n in topological_order(graph) if frames[n] == frame]
        self.users = consumers(graph)
        self.merges = [n for n in self.nodes if n.op in _MERGE and any(t.node.op in _NEXT for t in n.inputs)]
        self.invariants = [n for n in self.nodes if n.op in _ENTER and self._is_invariant(n)]
        self.cond = self._loop_cond()
        self.exits = [u for n in self.nodes for u, k in self.users[n] if u.op in _EXIT and k == 0]

    def _is_invariant(self, enter: Node) -> bool:
        """Return whether a value enters as a loop invariant."""
        return any(user not in self.merges for user, _ in self.users[enter])

    def _loop_cond(self) -> Node:
        loop_conds = [n for n in self.nodes if n.op == "LoopCond"]
        if len(loop_conds) != 1:
            raise InvalidArgumentError(
                f"the frame {self.name!r} has {len(loop_conds)} LoopCond nodes, where a loop has one",
                node=self._any_node_name(),
            )
        return loop_conds[0]

    def _any_node_name(self) -> str:
        return self.nodes[0].name if self.nodes else ""

    def replace(self) -> None:
        """Replace the loop by a While node."""
        inputs = [*map(self._initial_value, self.merges), *(enter.inputs[0] for enter in self.invariants)]
        types = [tensor.dtype for tensor in inputs]
        loop = self._node(inputs, types, self._condition(types), self._body(types))
        self.frames[loop] = self.frame[:-1]
        for exit_node in self.exits:
            replace_node(self.graph, exit_node, loop, [loop.outputs[self._variable_index(exit_node.inputs[0])]])
        for node in (*self.nodes, *self.exits):
            self.graph.remove_node(node)
            del self.frames[node]

    def _initial_value(self, merge: Node) -> Tensor:
        enters = [t.node for t in merge.inputs if t.node.op in _ENTER]
        if len(enters) != 1 or len(merge.inputs) != 2:
            raise InvalidArgumentError(f"{merge.name!r} does not join a value that enters with its next one")
        return enters[0].inputs[0]

    def _variable_index(self, tensor: Tensor) -> int:
        """Return the index of the loop variable of a value that leaves the loop."""
        node = tensor.node
        while node.op in _SWITCH or node.op == "Identity":
            node = node.inputs[0].node
        variables = [*self.merges, *self.invariants]
        if node not in variables:
            raise UnimplementedError(f"{tensor.name!r} leaves the loop {self.name!r}, but is not one of its variables")
        return variables.index(node)

    def _node(self, inputs: Sequence[Tensor], types: Sequence[DataType], cond: str, body: str) -> Node:
        attrs = {
            "T": AttrValue("list(type)", tuple(types)),
            "cond": AttrValue("func", NameAttrList(cond)),
            "body": AttrValue("func", NameAttrList(body)),
        }
        enters = [n for n in self.nodes if n.op in _ENTER]
        controls = list(dict.fromkeys(c for n in enters for c in n.control_inputs))
        name = self.graph.unique_name(self.name if _is_name(self.name) else "while")
        sources = [*(t.name for t in inputs), *(f"^{c.name}" for c in controls)]
        return self.graph.add_node(NodeDef(name, "While", sources, "", attrs), inputs, controls)

    # Functions

    def _outline(self, kind: str, types: Sequence[DataType]) -> Outline:
        outline = Outline(self.graph, f"{self.name}_{kind}", types)
        for i, node in enumerate((*self.merges, *self.invariants)):
            outline.bind(node.outputs[0], i)
        return outline

    def _condition(self, types: Sequence[DataType]) -> str:
        outline = self._outline("cond", types)
        return self._finish(outline, self.cond.inputs[:1], ())

    def _body(self, types: Sequence[DataType]) -> str:
        outline = self._outline("body", types)
        for node in self.nodes:
            if node.op in _SWITCH and node.inputs[1].node is self.cond:
                outline.alias(node.outputs[1], node.inputs[0])
        outline.bind_constant(self.cond.outputs[0], True)
        results = [next(t.node for t in m.inputs if t.node.op in _NEXT).inputs[0] for m in self.merges]
        tested = self._needed(self.cond.inputs[:1], (), self._outline("tested", types))
        effects = [n for n in self.nodes if n.is_stateful and n not in tested and not self._is_frame(n)]
        return self._finish(outline, [*results, *(enter.outputs[0] for enter in self.invariants)], effects)

    def _needed(self, tensors: Sequence[Tensor], nodes: Iterable[Node], outline: Outline) -> dict[Node, None]:
        """Return the nodes of the frame that others depend on, without those of the loop structure."""
        stack = [*(outline.resolve(t).node for t in tensors if not outline.has(t)), *nodes]
        needed: set[Node] = set()
        while stack:
            node = stack.pop()
            if node in needed or self.frames[node] != self.frame or self._is_frame(node):
                continue
            needed.add(node)
            stack += [outline.resolve(t).node for t in node.inputs if not outline.has(t)]
            stack += node.control_inputs
        return {n: None for n in self.nodes if n in needed}

    def _is_frame(self, node: Node) -> bool:
        """Return whether a node belongs to the loop structure."""
        if node.op in _SWITCH:
            return node.inputs[1].node is self.cond
        return node.op in _FRAMES or node in self.merges

    def _finish(self, outline: Outline, results: Sequence[Tensor], effects: Iterable[Node]) -> str:
        outline.copy(self._needed(results, effects, outline))
        outline.set_results([outline.value(t) for t in results])
        functionalize_conditionals(outline.graph)
        return outline.add_to_library()


def _is_name(name: str) -> bool:
    return name.replace("_", "a").replace("/", "a").replace(".", "a").replace("-", "a").isalnum()
