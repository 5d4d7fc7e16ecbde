"""Matches the forms of fused ops in graphs, and expands fused nodes into plain ones."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from cyxla.autojit.fused_ops.patterns import Apply, ConstantAttr, Either, Form, Fusion, Match, Number, Pattern, Value
from cyxla.core.framework.attr_value import AttrValue, TensorValue
from cyxla.core.framework.types import DataType
from cyxla.core.graph.graph import Graph, Node, Tensor
from cyxla.core.runtime.subgraph import insert_node
from cyxla.errors import InternalError

_FORWARDING = frozenset({"Identity", "StopGradient", "PreventGradient", "Snapshot"})
_MAX_ULPS = 4  # tolerance for constants
_MATCH_ORDER = {Apply: 0, Either: 1, Number: 2, ConstantAttr: 2, Value: 3}  # the most selective patterns first


def match(form: Form, node: Node) -> Match | None:
    """Match a form whose root is `node`; None if it does not match."""
    if node.op not in form.root.ops:
        return None
    for candidate in _match_apply(form.root, node, Match()):
        if form.condition is None or form.condition(candidate):
            candidate.attrs.update(form.attrs)
            return candidate
    return None


def _match_pattern(pattern: Pattern, tensor: Tensor, match: Match, user: Node) -> Iterator[Match]:
    if isinstance(pattern, Either):
        for option in pattern.options:
            yield from _match_pattern(option, tensor, match, user)
    elif isinstance(pattern, Apply):
        yield from _match_source(pattern, tensor, match)
    elif isinstance(pattern, Value):
        yield from _match_value(pattern, tensor, match)
    else:
        yield from _match_constant(pattern, tensor, match, user)


def _match_source(pattern: Apply, tensor: Tensor, match: Match) -> Iterator[Match]:
    source, forwarding = _skip_forwarding(tensor)
    if source.node.op not in pattern.ops or source.index:
        return
    if forwarding:
        match = match.copy()
        match.other_nodes += forwarding
    yield from _match_apply(pattern, source.node, match)


def _skip_forwarding(tensor: Tensor) -> tuple[Tensor, tuple[Node, ...]]:
    """Return the producer's tensor behind forwarding nodes, and those nodes."""
    forwarding: list[Node] = []
    while tensor.node.op in _FORWARDING:
        forwarding.append(tensor.node)
        tensor = tensor.node.inputs[0]
    return tensor, tuple(forwarding)


def _match_apply(pattern: Apply, node: Node, match: Match) -> Iterator[Match]:
    matched_node = match.nodes.get(pattern)
    if matched_node is node:
        yield match
        return
    if len(node.inputs) != len(pattern.inputs) or not _has_attrs(pattern, node):
        return
    match = match.copy()
    if matched_node is None:
        match.nodes[pattern] = node
    else:
        match.other_nodes += (node,)  # a duplicate computation
    if not all(_bind(match, name, node.attrs[name]) for name in pattern.shared_attrs):
        return
    if pattern.op_attr and not _bind(match, pattern.op_attr, AttrValue("string", node.op)):
        return
    for inputs in _operand_orders(node):
        pairs = sorted(zip(pattern.inputs, inputs, strict=True), key=lambda pair: _MATCH_ORDER[type(pair[0])])
        yield from _match_all(pairs, match, node)


def _match_all(pairs: Sequence[tuple[Pattern, Tensor]], match: Match, node: Node) -> Iterator[Match]:
    if not pairs:
        yield match
        return
    for extended in _match_pattern(*pairs[0], match, node):
        yield from _match_all(pairs[1:], extended, node)


def _has_attrs(pattern: Apply, node: Node) -> bool:
    return all(name not in node.attrs or node.attr(name) == value for name, value in pattern.attrs.items())


def _operand_orders(node: Node) -> Iterator[Sequence[Tensor]]:
    yield node.inputs
    if node.op_def.is_commutative and node.inputs[0] is not node.inputs[1]:
        yield node.inputs[::-1]


def _bind(match: Match, name: str, value: AttrValue) -> bool:
    return match.attrs.setdefault(name, value) == value


def _match_value(pattern: Value, tensor: Tensor, match: Match) -> Iterator[Match]:
    bound_tensor = match.values.get(pattern.name)
    if bound_tensor is None:
        match = match.copy()
        match.values[pattern.name] = tensor
        yield match
    elif _skip_forwarding(bound_tensor)[0] is _skip_forwarding(tensor)[0]:
        yield match


def _match_constant(pattern: Number | ConstantAttr, tensor: Tensor, match: Match, user: Node) -> Iterator[Match]:
    source, forwarding = _skip_forwarding(tensor)
    if source.node.op != "Const":
        return
    array = source.node.attr("value").array
    extended = match.copy()
    extended.constants += (source.node, *forwarding)
    if isinstance(pattern, Number):
        if array.ndim == 0 and _is_near(array, pattern.value):
            yield extended
        return
    value = _reduction_axes(array, user) if pattern.kind == "list(int)" else _scalar_value(array)
    if value is not None and _bind(extended, pattern.name, AttrValue(pattern.kind, value)):
        yield extended


def _is_near(array: np.ndarray[Any, Any], value: float) -> bool:
    if array.dtype.kind in "iub":
        return False
    expected = float(np.asarray(value, array.dtype))
    return abs(float(array) - expected) <= _MAX_ULPS * abs(float(np.spacing(np.asarray(expected, array.dtype))))


def _scalar_value(array: np.ndarray[Any, Any]) -> float | None:
    return float(array) if array.ndim == 0 else None


def _reduction_axes(array: np.ndarray[Any, Any], user: Node) -> tuple[int, ...] | None:
    """Return the sorted axes of a reduction, non-negative if the rank is known; None if one is out of range."""
    dims = user.inputs[0].shape.dims
    axes = [int(k) for k in array.reshape(-1)]
    if dims is None:
        return tuple(sorted(axes))
    if any(not -len(dims) <= k < len(dims) for k in axes):
        return None  # an error, which the reduction itself reports
    return tuple(sorted(k % len(dims) for k in axes))


# ---------------------------------------------------------------------------------------------------------- expansion


def write_out(graph: Graph, node: Node, fusion: Fusion, anchored: bool = False) -> None:
    """Expand a fused node into plain nodes; it becomes the last of them, and the others get names below its own.

    Parameters
    ----------
    graph : Graph
        Graph of the node.
    node : Node
        Fused node.
    fusion : Fusion
        Forms of the node's op.
    anchored : bool
        True to give constants a control dependency on an input of the node, so that they belong to its loop or branch.

    Raises
    ------
    InternalError
        No form of the op has the node's attributes.
    """
    form = next((form for form in fusion.forms if _is_form_of(form, node)), None)
    if form is None:
        raise InternalError(
            f"'{node.name}' cannot be expanded: no form of {node.op} has its attributes", node=node.name, op=node.op
        )
    _Writer(graph, node, fusion, anchored).run(form.root)


def _is_form_of(form: Form, node: Node) -> bool:
    op_attr = form.root.op_attr
    return all(node.attrs[name] == value for name, value in form.attrs.items()) and (
        not op_attr or node.attr(op_attr) in form.root.ops
    )


class _Writer:
    """Builder of the nodes of a form, each after its inputs."""

    def __init__(self, graph: Graph, node: Node, fusion: Fusion, anchored: bool) -> None:
        self.graph, self.node, self.anchored = graph, node, anchored
        self.dtype = node.output_types[0]
        self.tensors: dict[Pattern, Tensor] = {}
        self.values = dict(zip(fusion.inputs, node.inputs, strict=False))

    def run(self, root: Apply) -> None:
        inputs = [self._tensor_for(part) for part in root.inputs]
        attrs = self._attrs(root, self._op(root), inputs)
        self.graph.update_node(self.node, attrs, inputs, op_name=self._op(root))

    def _op(self, part: Apply) -> str:
        return str(self.node.attr(part.op_attr)) if part.op_attr else part.ops[0]

    def _tensor_for(self, part: Pattern) -> Tensor:
        if isinstance(part, Either):
            return self._tensor_for(part.options[0])
        if isinstance(part, Value):
            return self.values[part.name]
        if part not in self.tensors:
            self.tensors[part] = self._apply(part) if isinstance(part, Apply) else self._constant(part)
        return self.tensors[part]

    def _apply(self, part: Apply) -> Tensor:
        inputs = [self._tensor_for(p) for p in part.inputs]
        return self._insert(part.ops[0], self._attrs(part, part.ops[0], inputs), inputs).outputs[0]

    def _attrs(self, part: Apply, op: str, inputs: Sequence[Tensor]) -> dict[str, AttrValue]:
        """Return a plain op's attributes: fixed ones, those shared with the fused op, types of inputs, defaults."""
        op_def = self.graph.look_up(op).op_def
        attrs = {a.name: a.default for a in op_def.attr if a.default is not None}
        for name, value in part.attrs.items():
            if name in attrs:
                attrs[name] = AttrValue(attrs[name].kind, value)
        attrs |= {name: self.node.attrs[name] for name in part.shared_attrs}
        for arg, tensor in zip(op_def.input_arg, inputs, strict=True):
            attrs[arg.type_attr] = AttrValue("type", tensor.dtype)
        return attrs

    def _constant(self, part: Number | ConstantAttr) -> Tensor:
        value = part.value if isinstance(part, Number) else self.node.attr(part.name)
        is_axes = isinstance(part, ConstantAttr) and part.kind == "list(int)"
        dtype = DataType.DT_INT32 if is_axes else self.dtype
        array = np.asarray(value, dtype.numpy)
        attrs = {"dtype": AttrValue("type", dtype), "value": AttrValue("tensor", TensorValue(dtype, array))}
        node = self._insert("Const", attrs, ())
        if self.anchored:
            node.control_inputs = list(dict.fromkeys([self.node.inputs[0].node, *node.control_inputs]))
        return node.outputs[0]

    def _insert(self, op: str, attrs: Mapping[str, AttrValue], inputs: Sequence[Tensor]) -> Node:
        private = {name: value for name, value in self.node.attrs.items() if name.startswith("_")}
        node = insert_node(
            self.graph, self.graph.unique_name(f"{self.node.name}/{op}"), op, {**private, **attrs}, inputs
        )
        node.device, node.assigned_device = self.node.device, self.node.assigned_device
        node.control_inputs = list(self.node.control_inputs)
        return node
