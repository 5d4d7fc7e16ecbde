"""Deadness analysis: the condition under which each node runs.

The output that a ``Switch`` does not choose is dead, and so are all nodes that read it. Nodes under different
conditions must not be in one cluster, since a cluster runs as a whole or not at all. A condition is a boolean function
of the predicates of switches.
"""

from __future__ import annotations

from cyxla.autojit.analysis.frames import frames_of
from cyxla.autojit.analysis.predicates import TRUE, Predicates
from cyxla.core.graph.algorithm import topological_order
from cyxla.core.graph.graph import Graph, Node, Tensor

_SWITCHES = frozenset({"Switch", "RefSwitch"})
_MERGES = frozenset({"Merge", "RefMerge", "_XlaMerge"})
_NEXT_ITERATIONS = frozenset({"NextIteration", "RefNextIteration"})
_EXITS = frozenset({"Exit", "RefExit"})
_OPAQUE = frozenset({"_Recv", "_HostRecv", "_SwitchN"})  # alive under a condition that the graph does not show
_DEADNESS_OPS = _SWITCHES | _MERGES | _OPAQUE


class DeadnessAnalysis:
    """The condition of every node of a graph.

    All loop variables that enter a loop under one condition are first assumed to be alive in the same iterations. If
    the values on the back edges contradict this, the variables get separate conditions and the analysis runs again.
    """

    def __init__(self, graph: Graph) -> None:
        self.predicates = Predicates()
        self._controls: dict[Node, int] = {}
        self._outputs: dict[tuple[Node, int], int] = {}
        self._separate: set[Node] = set()  # loop variables with a condition of their own
        self._frames = frames_of(graph)
        if any(node.op in _DEADNESS_OPS for node in graph.nodes.values()):
            self._order = topological_order(graph)
            while not self._compute_conditions():
                pass

    def control(self, node: Node) -> int:
        """Return the condition under which a node runs, as a number that is equal for equal conditions."""
        return self._controls.get(node, TRUE)

    def output(self, tensor: Tensor) -> int:
        """Return the condition under which a value is alive."""
        return self._outputs.get((tensor.node, tensor.index), self.control(tensor.node))

    def has_mismatching_inputs(self, node: Node) -> bool:
        """Return True if a node's inputs are alive under different conditions."""
        return len({self.output(t) for t in node.inputs} | {self.control(c) for c in node.control_inputs}) > 1

    def _compute_conditions(self) -> bool:
        """Compute all conditions; return False if loop variables had to be separated, so that it must run again."""
        self._controls.clear()
        self._outputs.clear()
        for node in self._order:
            self._controls[node] = self._condition(node)
            if node.op in _SWITCHES:
                self._set_switch_outputs(node)
        classes: dict[int, set[int]] = {}
        members: dict[int, list[Node]] = {}
        for node in self._order:
            back_edges = [t for t in node.inputs if t.node.op in _NEXT_ITERATIONS] if node.op in _MERGES else []
            if back_edges and node not in self._separate:
                key = self._controls[node]
                classes.setdefault(key, set()).add(self.predicates.disjunction(self.output(t) for t in back_edges))
                members.setdefault(key, []).append(node)
        unequal = [key for key, conditions in classes.items() if len(conditions) > 1]
        for key in unequal:
            self._separate.update(members[key])
        return not unequal

    def _condition(self, node: Node) -> int:
        predicates = self.predicates
        controls = [self.control(c) for c in node.control_inputs]
        if node.op == "ControlTrigger":
            return TRUE
        if node.op in _OPAQUE or predicates.is_full:
            return predicates.variable(("node", node))
        if node.op in _MERGES:
            return predicates.conjunction([self._merge_condition(node), *controls])
        condition = predicates.conjunction([*(self.output(t) for t in node.inputs), *controls])
        if node.op in _EXITS and condition != TRUE:  # conditions of the last iteration mean nothing outside of the loop
            return predicates.variable(("exit", self._frames[node], condition))
        return condition

    def _merge_condition(self, node: Node) -> int:
        entering = self.predicates.disjunction(self.output(t) for t in node.inputs if t.node.op not in _NEXT_ITERATIONS)
        if all(t.node.op not in _NEXT_ITERATIONS for t in node.inputs):
            return entering
        identity = node if node in self._separate else None
        return self.predicates.variable(("loop", self._frames[node], entering, identity))

    def _set_switch_outputs(self, node: Node) -> None:
        predicate = node.inputs[1]
        while predicate.node.op in ("Identity", "LoopCond"):
            predicate = predicate.node.inputs[0]
        taken_if_true = self.predicates.variable(("switch", predicate.node, predicate.index))
        alive = self._controls[node]
        self._outputs[node, 0] = self.predicates.conjunction([alive, self.predicates.negation(taken_if_true)])
        self._outputs[node, 1] = self.predicates.conjunction([alive, taken_if_true])
