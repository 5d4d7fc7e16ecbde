"""When the outputs of nodes are dead.

What a ``Switch`` does not choose is dead, and whatever reads it. Nodes under different conditions must not be in one
cluster, since a cluster runs as a whole or not at all. A condition is a function of the switches' predicates.
"""

from __future__ import annotations

from cyxla.autojit.analysis.frames import frames_of
from cyxla.autojit.analysis.predicates import TRUE, Predicates
from cyxla.core.graph.algorithm import topological_order
from cyxla.core.graph.graph import Graph, Node, Tensor

_SWITCHES = frozenset({"Switch", "RefSwitch"})
_MERGES = frozenset({"Merge", "RefMerge", "_XlaMerge"})
_NEXT = frozenset({"NextIteration", "RefNextIteration"})
_EXITS = frozenset({"Exit", "RefExit"})
_OPAQUE = frozenset({"_Recv", "_HostRecv", "_SwitchN"})  # alive or dead for reasons that the graph does not tell
_MOVERS = _SWITCHES | _MERGES | _OPAQUE


class DeadnessAnalysis:
    """The condition of every node of a graph.

    All loop variables that enter a loop under one condition are first taken to be alive in the same iterations; if
    what comes back around the loop shows that they are not, they are told apart and the analysis is run again.
    """

    def __init__(self, graph: Graph) -> None:
        self.predicates = Predicates()
        self._controls: dict[Node, int] = {}
        self._outputs: dict[tuple[Node, int], int] = {}
        self._apart: set[Node] = set()  # loop variables with a condition of their own
        self._frames = frames_of(graph)
        if any(node.op in _MOVERS for node in graph.nodes.values()):
            self._order = topological_order(graph)
            while not self._run():
                pass

    def control(self, node: Node) -> int:
        """The condition under which a node runs; a number that is the same for equal conditions."""
        return self._controls.get(node, TRUE)

    def output(self, tensor: Tensor) -> int:
        """The condition under which a value is alive."""
        return self._outputs.get((tensor.node, tensor.index), self.control(tensor.node))

    def has_mismatching_inputs(self, node: Node) -> bool:
        """Whether a node's inputs are alive under different conditions."""
        return len({self.output(t) for t in node.inputs} | {self.control(c) for c in node.control_inputs}) > 1

    def _run(self) -> bool:
        """Work all conditions out; False if loop variables had to be told apart, so that it must be done again."""
        self._controls.clear()
        self._outputs.clear()
        for node in self._order:
            self._controls[node] = self._condition(node)
            if node.op in _SWITCHES:
                self._split(node)
        classes: dict[int, set[int]] = {}
        members: dict[int, list[Node]] = {}
        for node in self._order:
            back = [t for t in node.inputs if t.node.op in _NEXT] if node.op in _MERGES else []
            if back and node not in self._apart:
                key = self._controls[node]
                classes.setdefault(key, set()).add(self.predicates.disjunction(self.output(t) for t in back))
                members.setdefault(key, []).append(node)
        unequal = [key for key, backs in classes.items() if len(backs) > 1]
        for key in unequal:
            self._apart.update(members[key])
        return not unequal

    def _condition(self, node: Node) -> int:
        known = self.predicates
        controls = [self.control(c) for c in node.control_inputs]
        if node.op == "ControlTrigger":
            return TRUE
        if node.op in _OPAQUE or known.is_full:
            return known.variable(("node", node))
        if node.op in _MERGES:
            return known.conjunction([self._merged(node), *controls])
        found = known.conjunction([*(self.output(t) for t in node.inputs), *controls])
        if node.op in _EXITS and found != TRUE:  # outside of the loop, the conditions of its last iteration are no more
            return known.variable(("exit", self._frames[node], found))
        return found

    def _merged(self, node: Node) -> int:
        entering = self.predicates.disjunction(self.output(t) for t in node.inputs if t.node.op not in _NEXT)
        if all(t.node.op not in _NEXT for t in node.inputs):
            return entering
        own = node if node in self._apart else None
        return self.predicates.variable(("loop", self._frames[node], entering, own))

    def _split(self, node: Node) -> None:
        asked = node.inputs[1]
        while asked.node.op in ("Identity", "LoopCond"):
            asked = asked.node.inputs[0]
        chosen = self.predicates.variable(("switch", asked.node, asked.index))
        alive = self._controls[node]
        self._outputs[node, 0] = self.predicates.conjunction([alive, self.predicates.negation(chosen)])
        self._outputs[node, 1] = self.predicates.conjunction([alive, chosen])
