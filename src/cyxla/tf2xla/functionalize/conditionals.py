"""Rewriting of Switch and Merge to If nodes; see `control_flow`.

Each node has conditions: values of predicates under which it runs. Nodes with the most conditions are rewritten first.
Nodes connected under one condition form a branch; those under the opposite condition that are merged with it form the
other. Nodes that depend on merged values, as gradients of conditionals do, become a separate conditional.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from cyxla.core.framework.attr_value import AttrValue, NameAttrList
from cyxla.core.framework.node_def import NodeDef
from cyxla.core.framework.types import HANDLES
from cyxla.core.graph.algorithm import consumers, reachable_backward, reachable_forward, topological_order
from cyxla.core.graph.graph import Graph, Node, Tensor
from cyxla.errors import UnimplementedError
from cyxla.tf2xla.functionalize.outlining import Outline, replace_node

MERGE, SWITCH = ("Merge", "RefMerge"), ("Switch", "RefSwitch")

Endpoint = tuple[Node, int]
Condition = tuple[Endpoint, int]  # a predicate and its value
Conditions = frozenset[Condition]


def functionalize_conditionals(graph: Graph) -> None:
    """Rewrite Switch and Merge nodes of a graph without loops.

    Raises
    ------
    UnimplementedError
        The graph cannot be expressed with If.
    """
    while True:
        switches = [n for n in topological_order(graph) if n.op in SWITCH]
        if not switches:
            break
        conditions = conditions_of(graph)
        foldable = next((n for n in switches if _side_of(n, conditions[n]) is not None), None)
        if foldable is not None:
            _fold_switch(graph, foldable, conditions[foldable])
            continue
        deepest = max(switches, key=lambda n: len(conditions[n]))
        conditional = _Conditional(graph, deepest, conditions)
        later = conditional.later()
        if later:
            _SplitConditional(conditional, later).split()
        else:
            conditional.replace()
    left = next((n for n in graph.nodes.values() if n.op in MERGE), None)
    if left is not None:
        raise UnimplementedError(f"{left.name!r} joins values of which none depends on a predicate", node=left.name)


def _side_of(switch: Node, conditions: Conditions) -> int | None:
    """Return the side of a Switch that its own conditions imply, or None."""
    return dict(conditions).get(predicate_of(switch))


def _fold_switch(graph: Graph, switch: Node, conditions: Conditions) -> None:
    """Replace a Switch that always takes the same side by an Identity."""
    side = _side_of(switch, conditions)
    assert side is not None  # the caller has checked
    (value, _), name = switch.inputs, graph.unique_name(f"{switch.name}/decided")
    node_def = NodeDef(name, "Identity", [value.name], "", {"T": switch.attrs["T"]})
    made = graph.add_node(node_def, [value], switch.control_inputs)
    outputs = list(switch.outputs)
    outputs[side] = made.outputs[0]
    replace_node(graph, switch, made, outputs)
    graph.remove_node(switch)


def predicate_of(switch: Node) -> Endpoint:
    """Return the predicate of a Switch, looking through Identity nodes."""
    tensor = switch.inputs[1]
    while tensor.node.op == "Identity":
        tensor = tensor.node.inputs[0]
    return tensor.node, tensor.index


def conditions_of(graph: Graph) -> dict[Node, Conditions]:
    """Return the conditions under which each node runs.

    Raises
    ------
    UnimplementedError
        A node can never run, or merges values that are not alternatives.
    """
    found: dict[Node, Conditions] = {}
    for node in topological_order(graph):
        controls = frozenset[Condition]().union(*(found[c] for c in node.control_inputs))
        data = [_tensor_conditions(t, found) for t in node.inputs]
        found[node] = controls | (
            _merge_conditions(node, data) if node.op in MERGE else frozenset[Condition]().union(*data)
        )
        predicates = [endpoint for endpoint, _ in found[node]]
        if len(set(predicates)) != len(predicates):
            raise UnimplementedError(f"{node.name!r} needs both outcomes of a predicate, and so never runs")
    return found


def _tensor_conditions(tensor: Tensor, found: dict[Node, Conditions]) -> Conditions:
    own = found[tensor.node]
    return own | {(predicate_of(tensor.node), tensor.index)} if tensor.node.op in SWITCH else own


def _merge_conditions(node: Node, data: Sequence[Conditions]) -> Conditions:
    """Return the common conditions of alternatives, which must differ in one predicate."""
    common = frozenset.intersection(*data)
    rest = [conditions - common for conditions in data]
    sides = {side for alternative in rest for _, side in alternative}
    if (
        len(rest) != 2
        or any(len(alternative) != 1 for alternative in rest)
        or sides != {0, 1}
        or len({p for r in rest for p, _ in r}) > 1
    ):
        raise UnimplementedError(f"{node.name!r} joins values that are not the two outcomes of one predicate")
    return common


class _Conditional:
    """Nodes connected with a Switch under its predicate.

    Parameters
    ----------
    graph : Graph
    switch : Node
        Switch with the most conditions.
    conditions : dict of Node
        Result of `conditions_of`.
    """

    def __init__(self, graph: Graph, switch: Node, conditions: dict[Node, Conditions]) -> None:
        self.graph, self.conditions = graph, conditions
        self.predicate, self.outer = predicate_of(switch), conditions[switch]
        self.order = {n: i for i, n in enumerate(topological_order(graph))}
        self.inside = [self.outer | {(self.predicate, side)} for side in (0, 1)]
        self.users = consumers(graph)
        self.members = self._connected(switch)
        self.switches = [n for n in self.members if self._is_switch(n)]
        self.merges = [n for n in self.members if self._is_merge(n)]
        self.sides = [[n for n in self.members if self._side(n) == side] for side in (0, 1)]

    # Which nodes

    def _is_switch(self, node: Node) -> bool:
        return node.op in SWITCH and self.conditions[node] == self.outer and predicate_of(node) == self.predicate

    def _side(self, node: Node) -> int:
        """Return the branch of a node, or -1 if it is in none."""
        own = self.conditions[node]
        return self.inside.index(own) if own in self.inside else -1

    def _is_merge(self, node: Node) -> bool:
        if node.op not in MERGE or self._side(node) >= 0:
            return False
        return any(_tensor_conditions(t, self.conditions) in self.inside for t in node.inputs)

    def _belongs(self, node: Node) -> bool:
        return self._is_switch(node) or self._is_merge(node) or self._side(node) >= 0

    def _connected(self, switch: Node) -> list[Node]:
        """Return the connected nodes in topological order; the search stops at Switch and Merge nodes."""
        found, stack = {switch}, [switch]
        while stack:
            node = stack.pop()
            for other in self._neighbours(node):
                if other not in found and self._belongs(other):
                    found.add(other)
                    stack.append(other)
        return sorted(found, key=self.order.__getitem__)

    def _neighbours(self, node: Node) -> Iterable[Node]:
        if not self._is_switch(node):
            yield from (t.node for t in node.inputs)
            yield from node.control_inputs
        if not self._is_merge(node):
            yield from (user for user, _ in self.users[node])

    def later(self) -> set[Node]:
        """Return members that depend on a Merge of the same conditional, such as gradients of the others."""
        if not self.merges:
            return set()
        reached = set(reachable_forward([user for merge in self.merges for user, _ in self.users[merge]], self.graph))
        return {node for node in self.members if node in reached}

    # The If node

    def replace(self) -> None:
        """Replace the nodes by an If node."""
        self._check()
        inputs = self._inputs()
        branches = [self._branch(side, inputs) for side in (0, 1)]
        made = self._node(inputs, branches)
        for k, merge in enumerate(self.merges):
            replace_node(self.graph, merge, made, made.outputs[2 * k : 2 * k + 2])
        members = set(self.members)
        for node in self.graph.nodes.values():
            node.control_inputs = list(dict.fromkeys(made if c in members else c for c in node.control_inputs))
        for node in self.members:
            self.graph.remove_node(node)

    def _check(self) -> None:
        """Raise if a value leaves a branch other than by a Merge, or a branch depends on its own results."""
        inside = [n for side in self.sides for n in side]
        known = {*inside, *self.switches, *self.merges}
        for node in (*inside, *self.switches):
            for user, _ in self.users[node]:
                if user not in known and self._is_conditional(user):
                    raise UnimplementedError(f"{user.name!r} takes a value that is there only on one condition")
            if node.op == "_Retval":
                raise UnimplementedError(f"{node.name!r} gives a value that is there only on one condition")
        before = reachable_backward([t.node for t in self._inputs()] + [self.predicate[0]])
        again = next((m for m in self.merges if m in before), None)
        if again is not None:
            raise UnimplementedError(f"{again.name!r} decides what it joins")

    def _is_conditional(self, user: Node) -> bool:
        return not self.conditions[user] <= self.outer

    def _inputs(self) -> list[Tensor]:
        """Return the tensors that enter by a Switch or from outside."""
        members = set(self.members)
        inner = [t for side in self.sides for n in side for t in n.inputs if t.node not in members]
        joined = [t for n in self.merges for t in n.inputs if t.node not in members]
        found = {(t.node, t.index): t for t in (*(n.inputs[0] for n in self.switches), *inner, *joined)}
        return list(found.values())

    def _branch(self, side: int, inputs: Sequence[Tensor]) -> str:
        name = f"{self.switches[0].name}_{('else', 'then')[side]}"
        outline = Outline(self.graph, name, [t.dtype for t in inputs])
        for i, tensor in enumerate(inputs):
            outline.bind(tensor, i)
        for node in self.switches:
            outline.alias(node.outputs[side], node.inputs[0])
        outline.copy(self.sides[side])
        results: list[Tensor] = []
        for merge in self.merges:
            position = self._input_index(merge, side)
            index = outline.graph.constant(np.int32(position), name=self.graph.unique_name("outline/index"))
            results += [outline.value(merge.inputs[position]), index]
        outline.set_results(results)
        return outline.add_to_library()

    def _input_index(self, merge: Node, side: int) -> int:
        """Return the index of the input of a Merge that comes from a branch."""
        return next(
            i for i, t in enumerate(merge.inputs) if _tensor_conditions(t, self.conditions) == self.inside[side]
        )

    def _node(self, inputs: Sequence[Tensor], branches: Sequence[str]) -> Node:
        attrs = {
            "Tcond": AttrValue("type", self.predicate[0].output_types[self.predicate[1]]),
            "Tin": AttrValue("list(type)", tuple(t.dtype for t in inputs)),
            "Tout": AttrValue("list(type)", tuple(t for n in self.merges for t in n.output_types)),
            "else_branch": AttrValue("func", NameAttrList(branches[0])),
            "then_branch": AttrValue("func", NameAttrList(branches[1])),
        }
        members = set(self.members)
        controls = dict.fromkeys(c for n in self.members for c in n.control_inputs if c not in members)
        name = self.graph.unique_name(f"{self.switches[0].name}/if")
        node, index = self.predicate
        data = [node.outputs[index], *inputs]
        sources = [*(t.name for t in data), *(f"^{c.name}" for c in controls)]
        return self.graph.add_node(NodeDef(name, "If", sources, "", attrs), data, list(controls))


class _SplitConditional:
    """Split of one conditional into two, the later of which uses results of the earlier one and values of its branches.

    A value computed in a branch becomes a result of the earlier conditional, for which the other branch returns a
    placeholder; inputs of branches are passed to the later conditional directly.

    Parameters
    ----------
    whole : _Conditional
    later : set of Node
        Members of the later conditional.
    """

    def __init__(self, whole: _Conditional, later: set[Node]) -> None:
        self.whole, self.graph, self.later = whole, whole.graph, later
        self.earlier = {node for node in whole.members if node not in later}
        self.merge = next(node for node in whole.merges if node in self.earlier)
        self.switch = next(node for node in whole.switches if node in self.earlier)
        self._transferred: dict[tuple[Node, int], Tensor] = {}

    def split(self) -> None:
        """Replace all edges from the earlier to the later conditional except those to its Switch nodes."""
        for node in (n for n in self.whole.members if n in self.later):
            side = self.whole._side(node)
            for i, tensor in enumerate(node.inputs):
                if tensor.node in self.earlier and not self.whole._is_switch(node):
                    self.graph.set_input(node, i, self._transfer(tensor, self._side_of(node, tensor)))
            if any(control in self.earlier for control in node.control_inputs):
                kept = [control for control in node.control_inputs if control not in self.earlier]
                node.control_inputs = [*kept, self._order(node, side)]

    def _side_of(self, node: Node, tensor: Tensor) -> int:
        """Return the branch that uses a tensor."""
        side = self.whole._side(node)
        return side if side >= 0 else self.whole.inside.index(_tensor_conditions(tensor, self.whole.conditions))

    def _order(self, node: Node, side: int) -> Node:
        """Return a control input that orders a node after the earlier conditional."""
        if self.whole._is_switch(node):
            return self.merge
        if side < 0:
            raise UnimplementedError(f"{node.name!r} waits for a branch of what decides over it", node=node.name)
        return self._pass_into_branch(self.merge.outputs[0], side).node

    def _transfer(self, tensor: Tensor, side: int) -> Tensor:
        """Return a tensor of the earlier conditional as an input of a branch of the later one."""
        endpoint = tensor.node, tensor.index
        if endpoint not in self._transferred:
            if tensor.node in self.whole.switches:
                self._transferred[endpoint] = self._pass_into_branch(tensor.node.inputs[0], side)
            elif tensor.node in self.whole.merges:
                return self._pass_into_branch(tensor, side)
            else:
                self._transferred[endpoint] = self._pass_into_branch(self._export(tensor, side), side)
        return self._transferred[endpoint]

    def _export(self, tensor: Tensor, side: int) -> Tensor:
        """Return a tensor of one branch as a result of the conditional."""
        if tensor.dtype in HANDLES:
            raise UnimplementedError(f"{tensor.name!r} is there on one condition only, and is no array")
        dtype = AttrValue("type", tensor.dtype)
        alive = self._add("Identity", [self.switch.outputs[1 - side]], {"T": self.switch.attrs["T"]})
        shape = AttrValue("shape", tensor.shape)
        stand_in = self._add("FakeParam", [], {"dtype": dtype, "shape": shape}, [alive])
        count = AttrValue("int", 2)
        return self._add("Merge", [tensor, stand_in.outputs[0]], {"T": dtype, "N": count}).outputs[0]

    def _pass_into_branch(self, tensor: Tensor, side: int) -> Tensor:
        """Pass a tensor from outside into a branch, by an Identity that nodes can wait for."""
        node, index = self.whole.predicate
        dtype = AttrValue("type", tensor.dtype.base)
        made = self._add("Switch", [tensor, node.outputs[index]], {"T": dtype})
        return self._add("Identity", [made.outputs[side]], {"T": dtype}).outputs[0]

    def _add(
        self, op: str, inputs: Sequence[Tensor], attrs: dict[str, AttrValue], controls: Sequence[Node] = ()
    ) -> Node:
        name = self.graph.unique_name(f"{self.switch.name}/{op}")
        sources = [*(t.name for t in inputs), *(f"^{c.name}" for c in controls)]
        return self.graph.add_node(NodeDef(name, op, sources, "", attrs), inputs, list(controls))
