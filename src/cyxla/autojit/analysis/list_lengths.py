"""Nodes at which a compiled tensor list would differ from a list of the session.

A compiled list is a buffer of fixed capacity, and its length is that capacity. This is also the length of a list made
from a tensor or with a given number of elements, but no longer once elements are pushed or popped. A list made with
``max_num_elements`` has room for all pushes that are allowed, but its length is not known. The analysis follows lists
through functions, branches and loops, and gives a reason for each node whose result could differ; programs that raise
an error when they are not compiled are left out of account.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain

from cyxla.autojit.analysis.candidates import FUNCTION_ATTRS, MAX_DEPTH, attrs_key
from cyxla.core.framework.attr_value import AttrValue, NameAttrList
from cyxla.core.framework.function import FunctionLibraryDefinition
from cyxla.core.framework.node_def import NodeDef
from cyxla.core.framework.types import DataType
from cyxla.core.graph.algorithm import topological_order
from cyxla.core.graph.function_body import FunctionBody, instantiate
from cyxla.core.graph.function_gradients import symbolic_gradient
from cyxla.core.graph.graph import Graph, Node, Tensor
from cyxla.errors import OpError

# Without these ops, compiled lists are as those of the session; gradients of functions may contain them.
_CRITICAL = frozenset({
    "EmptyTensorList", "TensorListPushBack", "TensorListPopBack", "TensorListSetItem", "TensorListElementShape",
    "SymbolicGradient",
})  # fmt: skip
_LOOPS = frozenset({"While", "StatelessWhile", "_While"})
_BRANCHES = frozenset({"If", "StatelessIf", "_If", "Case", "StatelessCase"})
_SHAPE = "element_shape"
_GROWS = "a compiled list does not become longer than it was made"


@dataclass(frozen=True)
class ListFacts:
    """Facts about a list that hold in all runs without an error.

    Attributes
    ----------
    is_full : bool
        The list's length is the capacity of its buffer.
    is_limited : bool
        The capacity is also the greatest length of the session's list.
    has_whole_shape : bool
        The list was made with a fully defined element shape.
    """

    is_full: bool = False
    is_limited: bool = False
    has_whole_shape: bool = False

    def __and__(self, other: ListFacts) -> ListFacts:
        return ListFacts(
            self.is_full and other.is_full,
            self.is_limited and other.is_limited,
            self.has_whole_shape and other.has_whole_shape,
        )


_NOTHING = ListFacts()
Facts = Sequence[ListFacts]  # of the inputs or results of a node, whether or not they are lists
Known = dict[tuple[Node, int], ListFacts]
Rule = Callable[[Node, Facts], tuple[Facts, str]]  # gives the facts of the results, and a reason


@dataclass
class ListLengths:
    """Analysis of the graphs over one function library.

    Parameters
    ----------
    library : FunctionLibraryDefinition
        Library of the functions that nodes call.
    """

    library: FunctionLibraryDefinition
    _functions: dict[object, tuple[Facts, str]] = field(default_factory=dict)
    _depth: int = 0

    def reasons(self, graph: Graph) -> dict[Node, str]:
        """Return the nodes of a graph whose results could differ, each with the reason."""
        return self._walk(graph, [])[1] if self._is_critical(graph) else {}

    def _is_critical(self, graph: Graph) -> bool:
        """Return True if a graph, or a function that it reaches, contains a critical op."""
        pending: list[tuple[str, Iterable[AttrValue]]] = [(n.op, n.attrs.values()) for n in graph.nodes.values()]
        seen: set[str] = set()
        while pending:
            op, attrs = pending.pop()
            if op in _CRITICAL:
                return True
            for name in [op, *_functions_in(attrs)]:
                definition = self.library.find(name)
                if definition is not None and name not in seen:
                    seen.add(name)
                    nodes: list[NodeDef] = definition.node_def
                    pending += [(node.op, node.attr.values()) for node in nodes]
        return False

    def _walk(self, graph: Graph, args: Facts) -> tuple[Known, dict[Node, str]]:
        """Return the facts of all results in a graph, and the reasons of its nodes."""
        known: Known = {}
        reasons: dict[Node, str] = {}
        for node in topological_order(graph):
            inputs = [known.get((t.node, t.index), _NOTHING) for t in node.inputs]
            results, reason = self._visit(node, inputs, args, known)
            known.update(((node, i), facts) for i, facts in enumerate(results))
            if reason:
                reasons[node] = reason
        return known, reasons

    def _visit(self, node: Node, inputs: Facts, args: Facts, known: Known) -> tuple[Facts, str]:
        if node.op == "_Arg":
            return args[node.attr("index") :][:1], ""
        if node.op == "TensorListElementShape":
            return _element_shape(node, inputs)
        if node.op in _RULES:
            results, reason = _RULES[node.op](node, inputs)
            if node.op in _MAKERS and _is_whole(node.input_arg(_SHAPE)[0], known):
                results = [replace(facts, has_whole_shape=True) for facts in results]
            return results, reason
        if node.op in _LOOPS:
            return self._visit_loop(node, inputs)
        return self._join([self._call(f, inputs[skipped:]) for f, skipped in self._callees(node)])

    def _callees(self, node: Node) -> Iterator[tuple[NameAttrList, int]]:
        """Yield the functions that a node calls, each with the number of inputs that precede its arguments."""
        if self.library.find(node.op) is not None:
            yield NameAttrList(node.op, node.attrs), 0
        elif node.op == "SymbolicGradient":
            try:
                yield symbolic_gradient(node.attr("f"), self.library), 0
            except OpError:  # the node cannot be compiled
                return
        elif node.op == "RemoteCall":
            yield node.attr("f"), 1
        else:
            for name in FUNCTION_ATTRS.get(node.op, ()):
                value = node.attr(name)
                for function in (value,) if isinstance(value, NameAttrList) else value:
                    yield function, int(node.op in _BRANCHES)

    @staticmethod
    def _join(outcomes: Sequence[tuple[Facts, str]]) -> tuple[Facts, str]:
        """Return what holds whichever of several functions is called."""
        if not outcomes:
            return [], ""
        results = [_all_of(facts) for facts in zip(*(facts for facts, _ in outcomes), strict=False)]
        return results, next((reason for _, reason in outcomes if reason), "")

    def _visit_loop(self, node: Node, inputs: Facts) -> tuple[Facts, str]:
        """Return what holds after any number of iterations."""
        state = list(inputs)
        while True:
            after, reason = self._call(node.attr("body"), state)
            joined = [a & b for a, b in zip(state, after, strict=False)]
            if joined == state or len(joined) < len(state):
                return joined, reason or self._call(node.attr("cond"), state)[1]
            state = joined

    def _call(self, function: NameAttrList, args: Facts) -> tuple[Facts, str]:
        """Return the facts of a function's results, and the reason of one of its nodes."""
        key = (function.name, attrs_key(function.attrs), tuple(args))
        if key not in self._functions:
            self._depth += 1
            self._functions[key] = self._follow(function, args)
            self._depth -= 1
        return self._functions[key]

    def _follow(self, function: NameAttrList, args: Facts) -> tuple[Facts, str]:
        body = self._body(function)
        if body is None:
            return [], ""
        known, reasons = self._walk(body.graph, args)
        results = [known.get((t.node, t.index), _NOTHING) for t in body.results]
        for node, reason in reasons.items():
            return results, f"function '{function.name}' contains '{node.name}' ({node.op}): {reason}"
        return results, ""

    def _body(self, function: NameAttrList) -> FunctionBody | None:
        """Return the body of a function; None for a function that cannot be compiled."""
        definition = self.library.find(function.name)
        if definition is None or self._depth > MAX_DEPTH:
            return None
        try:
            return instantiate(definition, function.attrs, self.library)
        except OpError:
            return None


def _functions_in(attrs: Iterable[AttrValue]) -> Iterator[str]:
    """Yield the names of the functions among attributes."""
    for attr in attrs:
        values = attr.value if isinstance(attr.value, (list, tuple)) else (attr.value,)
        yield from (value.name for value in values if isinstance(value, NameAttrList))


def _all_of(facts: Iterable[ListFacts]) -> ListFacts:
    first, *others = facts
    for other in others:
        first = first & other
    return first


# Rules of ops


def _empty(node: Node, inputs: Facts) -> tuple[Facts, str]:
    limit = node.input_arg("max_num_elements")[0].node
    is_unlimited = limit.op == "Const" and limit.attr("value").array.min(initial=0) < 0
    return [ListFacts(is_limited=True)], "a compiled list needs max_num_elements" if is_unlimited else ""


def _made_full(node: Node, inputs: Facts) -> tuple[Facts, str]:
    return [ListFacts(is_full=True)], ""


def _push(node: Node, inputs: Facts) -> tuple[Facts, str]:
    return [replace(inputs[0], is_full=False)], "" if inputs[0].is_limited else _GROWS


def _pop(node: Node, inputs: Facts) -> tuple[Facts, str]:
    return [replace(inputs[0], is_full=False), _NOTHING], ""


def _set_item(node: Node, inputs: Facts) -> tuple[Facts, str]:
    may_grow = node.attr("resize_if_index_out_of_bounds")
    is_known = inputs[0].is_full and node.input_arg("index")[0].node.op == "Const"
    return inputs[:1], _GROWS if may_grow and not is_known else ""


def _needs_length(node: Node, inputs: Facts) -> tuple[Facts, str]:
    return [], "" if inputs[0].is_full else "the length of a compiled list does not follow pushes and pops"


def _forward(node: Node, inputs: Facts) -> tuple[Facts, str]:
    return inputs, ""


def _add(node: Node, inputs: Facts) -> tuple[Facts, str]:
    return [_all_of(inputs)], ""


_MAKERS: dict[str, Rule] = {
    "EmptyTensorList": _empty,
    **dict.fromkeys(("TensorListReserve", "TensorListFromTensor", "TensorListSplit"), _made_full),
}
_RULES: dict[str, Rule] = {
    **_MAKERS,
    "TensorListPushBack": _push,
    "TensorListPopBack": _pop,
    "TensorListSetItem": _set_item,
    **dict.fromkeys(("TensorListLength", "TensorListStack", "TensorListConcatV2"), _needs_length),
    **dict.fromkeys(("Identity", "IdentityN", "StopGradient", "ZerosLike"), _forward),
    "AddN": _add,
}


def _element_shape(node: Node, inputs: Facts) -> tuple[Facts, str]:
    """Give a reason unless the shape was declared, or only ops on lists read it, to which it makes no difference."""
    if inputs[0].has_whole_shape:
        return inputs, ""
    for user in node.graph.nodes.values():
        operands = user.input_arg(_SHAPE) if _takes_element_shape(user) else []
        if sum(t.node is node for t in user.inputs) > sum(t.node is node for t in operands):
            return [_NOTHING], "compiled code returns the shape of the elements, not the one that was declared"
    return [_NOTHING], ""


def _takes_element_shape(node: Node) -> bool:
    return DataType.DT_VARIANT in chain(node.input_types, node.output_types) and any(
        arg.name == _SHAPE for arg in node.op_def.input_arg
    )


def _is_whole(shape: Tensor, known: Known) -> bool:
    """Return True if a shape operand is known to have no unknown sizes."""
    if shape.node.op == "Const":
        value = shape.node.attr("value").array
        return bool(value.ndim == 1 and (value >= 0).all())
    return shape.node.op == "TensorListElementShape" and known.get((shape.node, 0), _NOTHING).has_whole_shape
