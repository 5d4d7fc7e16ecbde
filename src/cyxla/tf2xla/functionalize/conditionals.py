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
    merge = next((n for n in graph.nodes.values() if n.op in MERGE), None)
    if merge is not None:
        raise UnimplementedError(f"{merge.name!r} joins values of which none depends on a predicate", node=merge.name)


def _side_of(switch: Node, conditions: Conditions) -> int | None:
    """Return the side of a Switch that its own conditions imply, or None."""
    return dict(conditions).get(predicate_of(switch))


def _fold_switch(graph: Graph, switch: Node, conditions: Conditions) -> None:
    """Replace a Switch that always takes the same side by an Identity."""
    branch = _side_of(switch, conditions)
    assert branch is not None  # the caller has checked
    (value, _), name = switch.inputs, graph.unique_name(f"{switch.name}/decided")
    node_def = NodeDef(name, "Identity", [value.name], "", {"T": switch.attrs["T"]})
    identity = graph.add_node(node_def, [value], switch.control_inputs)
    outputs = list(switch.outputs)
    outputs[branch] = identity.outputs[0]
    replace_node(graph, switch, identity, outputs)
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
    conditions: dict[Node, Conditions] = {}
    for node in topological_order(graph):
        controls = frozenset[Condition]().union(*(conditions[c] for c in node.control_inputs))
        data = [_tensor_conditions(t, conditions) for t in node.inputs]
        conditions[node] = controls | (
            _merge_conditions(node, data) if node.op in MERGE else frozenset[Condition]().union(*data)
        )
        predicates = [endpoint for endpoint, _ in conditions[node]]
        if len(set(predicates)) != len(predicates):
            raise UnimplementedError(f"{node.name!r} depends on both branches of a predicate, so it never runs")
    return conditions


def _tensor_conditions(tensor: Tensor, conditions: dict[Node, Conditions]) -> Conditions:
    node_conditions = conditions[tensor.node]
    return (
        node_conditions | {(predicate_of(tensor.node), tensor.index)} if tensor.node.op in SWITCH else node_conditions
    )


def _merge_conditions(node: Node, data: Sequence[Conditions]) -> Conditions:
    """Return the common conditions of alternatives, which must differ in one predicate."""
    common = frozenset.intersection(*data)
    rest = [conditions - common for conditions in data]
    branches = {side for alternative in rest for _, side in alternative}
    if (
        len(rest) != 2
        or any(len(alternative) != 1 for alternative in rest)
        or branches != {0, 1}
        or len({p for r in rest for p, _ in r}) > 1
    ):
        raise UnimplementedError(f"{node.name!r} merges values that are not the two branches of one predicate")
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
        self.members = self._connected_switches(switch)
        self.switches = [n for n in self.members if self._is_switch(n)]
        self.merges = [n for n in self.members if self._is_merge(n)]
        self.sides = [[n for n in self.members if self._branch_of(n) == side] for side in (0, 1)]

    # Which nodes

    def _is_switch(self, node: Node) -> bool:
        return node.op in SWITCH and self.conditions[node] == self.outer and predicate_of(node) == self.predicate

    def _branch_of(self, node: Node) -> int:
        """Return the branch of a node, or -1 if it is in none."""
        conditions = self.conditions[node]
        return self.inside.index(conditions) if conditions in self.inside else -1

    def _is_merge(self, node: Node) -> bool:
        if node.op not in MERGE or self._branch_of(node) >= 0:
            return False
        return any(_tensor_conditions(t, self.conditions) in self.inside for t in node.inputs)

    def _is_member(self, node: Node) -> bool:
        return self._is_switch(node) or self._is_merge(node) or self._branch_of(node) >= 0

    def _connected_switches(self, switch: Node) -> list[Node]:
        """Return the connected nodes in topological order; the search stops at Switch and Merge nodes."""
        connected, stack = {switch}, [switch]
        while stack:
            node = stack.pop()
            for other in self._neighbours(node):
                if other not in connected and self._is_member(other):
                    connected.add(other)
                    stack.append(other)
        return sorted(connected, key=self.order.__getitem__)

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
        descendants = set(
            reachable_forward([user for merge in self.merges for user, _ in self.users[merge]], self.graph)
        )
        return {node for node in self.members if node in descendants}

    # The If node

    def replace(self) -> None:
        """Replace the nodes by an If node."""
        self._check()
        inputs = self._inputs()
        branches = [self._branch(side, inputs) for side in (0, 1)]
        conditional = self._node(inputs, branches)
        for k, merge in enumerate(self.merges):
            replace_node(self.graph, merge, conditional, conditional.outputs[2 * k : 2 * k + 2])
        members = set(self.members)
        for node in self.graph.nodes.values():
            node.control_inputs = list(dict.fromkeys(conditional if c in members else c for c in node.control_inputs))
        for node in self.members:
            self.graph.remove_node(node)

    def _check(self) -> None:
        """Raise if a value leaves a branch other than by a Merge, or a branch depends on its own results."""
        inside = [n for side in self.sides for n in side]
        replaced = {*inside, *self.switches, *self.merges}
        for node in (*inside, *self.switches):
            for user, _ in self.users[node]:
                if user not in replaced and self._is_conditional(user):
                    raise UnimplementedError(f"{user.name!r} takes a value that is alive only under a condition")
            if node.op == "_Retval":
                raise UnimplementedError(f"{node.name!r} has a result that is alive only under a condition")
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
        merged_inputs = [t for n in self.merges for t in n.inputs if t.node not in members]
        tensors = {(t.node, t.index): t for t in (*(n.inputs[0] for n in self.switches), *inner, *merged_inputs)}
        return list(tensors.values())

    def _branch(self, branch_index: int, inputs: Sequence[Tensor]) -> str:
        name = f"{self.switches[0].name}_{('else', 'then')[branch_index]}"
        outline = Outline(self.graph, name, [t.dtype for t in inputs])
        for i, tensor in enumerate(inputs):
            outline.bind(tensor, i)
        for node in self.switches:
            outline.alias(node.outputs[branch_index], node.inputs[0])
        outline.copy(self.sides[branch_index])
        results: list[Tensor] = []
        for merge in self.merges:
            position = self._input_index(merge, branch_index)
            index = outline.graph.constant(np.int32(position), name=self.graph.unique_name("outline/index"))
            results += [outline.value(merge.inputs[position]), index]
        outline.set_results(results)
        return outline.add_to_library()

    def _input_index(self, merge: Node, branch_index: int) -> int:
        """Return the index of the input of a Merge that comes from a branch."""
        return next(
            i for i, t in enumerate(merge.inputs) if _tensor_conditions(t, self.conditions) == self.inside[branch_index]
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

    def __init__(self, conditional: _Conditional, later: set[Node]) -> None:
        self.conditional, self.graph, self.later = conditional, conditional.graph, later
        self.earlier = {node for node in conditional.members if node not in later}
        self.merge = next(node for node in conditional.merges if node in self.earlier)
        self.switch = next(node for node in conditional.switches if node in self.earlier)
        self._transferred: dict[tuple[Node, int], Tensor] = {}

    def split(self) -> None:
        """Replace all edges from the earlier to the later conditional except those to its Switch nodes."""
        for node in (n for n in self.conditional.members if n in self.later):
            branch_index = self.conditional._branch_of(node)
            for i, tensor in enumerate(node.inputs):
                if tensor.node in self.earlier and not self.conditional._is_switch(node):
                    self.graph.set_input(node, i, self._transfer(tensor, self._side_of(node, tensor)))
            if any(control in self.earlier for control in node.control_inputs):
                other_controls = [control for control in node.control_inputs if control not in self.earlier]
                node.control_inputs = [*other_controls, self._ordering_control(node, branch_index)]

    def _side_of(self, node: Node, tensor: Tensor) -> int:
        """Return the branch that uses a tensor."""
        branch_index = self.conditional._branch_of(node)
        return (
            branch_index
            if branch_index >= 0
            else self.conditional.inside.index(_tensor_conditions(tensor, self.conditional.conditions))
        )

    def _ordering_control(self, node: Node, branch_index: int) -> Node:
        """Return a control input that orders a node after the earlier conditional."""
        if self.conditional._is_switch(node):
            return self.merge
        if branch_index < 0:
            raise UnimplementedError(f"{node.name!r} waits for a branch of what decides over it", node=node.name)
        return self._pass_into_branch(self.merge.outputs[0], branch_index).node

    def _transfer(self, tensor: Tensor, branch_index: int) -> Tensor:
        """Return a tensor of the earlier conditional as an input of a branch of the later one."""
        endpoint = tensor.node, tensor.index
        if endpoint not in self._transferred:
            if tensor.node in self.conditional.switches:
                self._transferred[endpoint] = self._pass_into_branch(tensor.node.inputs[0], branch_index)
            elif tensor.node in self.conditional.merges:
                return self._pass_into_branch(tensor, branch_index)
            else:
                self._transferred[endpoint] = self._pass_into_branch(self._export(tensor, branch_index), branch_index)
        return self._transferred[endpoint]

    def _export(self, tensor: Tensor, branch_index: int) -> Tensor:
        """Return a tensor of one branch as a result of the conditional."""
        if tensor.dtype in HANDLES:
            raise UnimplementedError(f"{tensor.name!r} is alive only under a condition, and is not an array")
        dtype = AttrValue("type", tensor.dtype)
        alive = self._add("Identity", [self.switch.outputs[1 - branch_index]], {"T": self.switch.attrs["T"]})
        shape = AttrValue("shape", tensor.shape)
        stand_in = self._add("FakeParam", [], {"dtype": dtype, "shape": shape}, [alive])
        count = AttrValue("int", 2)
        return self._add("Merge", [tensor, stand_in.outputs[0]], {"T": dtype, "N": count}).outputs[0]

    def _pass_into_branch(self, tensor: Tensor, branch_index: int) -> Tensor:
        """Pass a tensor from outside into a branch, by an Identity that nodes can wait for."""
        node, index = self.conditional.predicate
        dtype = AttrValue("type", tensor.dtype.base)
        switch = self._add("Switch", [tensor, node.outputs[index]], {"T": dtype})
        return self._add("Identity", [switch.outputs[branch_index]], {"T": dtype}).outputs[0]

    def _add(
        self, op: str, inputs: Sequence[Tensor], attrs: dict[str, AttrValue], controls: Sequence[Node] = ()
    ) -> Node:
        name = self.graph.unique_name(f"{self.switch.name}/{op}")
        sources = [*(t.name for t in inputs), *(f"^{c.name}" for c in controls)]
        return self.graph.add_node(NodeDef(name, op, sources, "", attrs), inputs, list(controls))
