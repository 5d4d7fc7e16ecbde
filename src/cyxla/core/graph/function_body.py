"""Conversion between functions and graphs."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from cyxla.core.framework.attr_value import PLACEHOLDER, AttrValue, NameAttrList
from cyxla.core.framework.declarations.op_def import ArgDef, OpDef
from cyxla.core.framework.function import FunctionDef, FunctionLibraryDefinition
from cyxla.core.framework.node_def import NodeDef, add_defaults_to_node_def, arg_types
from cyxla.core.framework.types import DataType
from cyxla.core.graph.algorithm import post_order, reachable_backward
from cyxla.core.graph.graph import Graph
from cyxla.core.graph.graph_constructor import import_nodes
from cyxla.errors import InvalidArgumentError, OpError

if TYPE_CHECKING:
    from cyxla.core.graph.graph import Node, Tensor

_NOT_A_NAME = re.compile(r"[^a-z0-9_]")


@dataclass
class FunctionBody:
    """An instantiated function: its body as a graph, with the values of its attributes substituted.

    Parameters
    ----------
    function : FunctionDef
        Definition of the function.
    graph : Graph
        Graph of the body, including `args` and `rets`; its library is that of the caller.
    args, rets : list of Node
        ``_Arg`` and ``_Retval`` nodes by index; list arguments are flattened.
    control_rets : list of Node
        Nodes that must run before the function returns.
    """

    function: FunctionDef
    graph: Graph
    args: list[Node]
    rets: list[Node]
    control_rets: list[Node]

    @property
    def arg_types(self) -> list[DataType]:
        """The types of the arguments."""
        return [node.output_types[0] for node in self.args]

    @property
    def ret_types(self) -> list[DataType]:
        """The types of the results."""
        return [node.input_types[0] for node in self.rets]

    @property
    def results(self) -> list[Tensor]:
        """The returned tensors."""
        return [node.inputs[0] for node in self.rets]


# FunctionDef -> graph ----------------------------------------------------------------------------------------------
def instantiate(
    function: FunctionDef,
    attrs: Mapping[str, AttrValue],
    library: FunctionLibraryDefinition,
    arg_hints: Sequence[Mapping[str, AttrValue]] = (),
) -> FunctionBody:
    """Instantiate a function: substitute its attributes and build its body as a graph.

    Parameters
    ----------
    function : FunctionDef
        Definition of the function.
    attrs : mapping
        Values of its attributes.
    library : FunctionLibraryDefinition
        Library of functions for the body, which the graph shares.
    arg_hints : sequence of mappings, optional
        Further attributes of each ``_Arg`` node, such as ``_output_shapes``; list arguments are flattened.

    Raises
    ------
    InvalidArgumentError
        An attribute is missing, or the body is malformed.
    NotFoundError
        The body uses an op that is neither declared nor in the library.
    """
    try:
        return _Instantiation(function, attrs, library, arg_hints).run()
    except OpError as error:
        error.where = error.where or f"the body of function '{function.name}'"
        raise


class _Instantiation:
    def __init__(
        self,
        function: FunctionDef,
        attrs: Mapping[str, AttrValue],
        library: FunctionLibraryDefinition,
        arg_hints: Sequence[Mapping[str, AttrValue]],
    ) -> None:
        self.arg_hints = arg_hints
        self.function = function
        self.library = library
        self.attrs = self._complete_attrs(attrs)
        self.names: dict[str, list[str]] = {}  # tensors of "argument" and "node:output"
        self.node_defs: list[NodeDef] = []
        self.args: list[str] = []
        self.rets: list[str] = []

    def _complete_attrs(self, attr_values: Mapping[str, AttrValue]) -> dict[str, AttrValue]:
        attrs = dict(attr_values)
        for attr in self.function.signature.attr:
            if attr.name not in attrs:
                if attr.default is None:
                    raise InvalidArgumentError(f"function '{self.function.name}' needs the attribute '{attr.name}'")
                attrs[attr.name] = attr.default
        return attrs

    def run(self) -> FunctionBody:
        used_names = {node.name for node in self.function.node_def}
        for index, arg in enumerate(self.function.signature.input_arg):
            self._add_arg(index, arg, used_names)
        body = [self._body_node(node) for node in self.function.node_def]
        for node in body:
            node.input = [source for text in node.input for source in self._resolve_input(text)]
        self.node_defs += body
        for arg in self.function.signature.output_arg:
            self._add_rets(arg, used_names)
        graph = Graph(self.library.default_registry)
        graph.library = self.library
        import_nodes(graph, self.node_defs)
        controls = [self._control_output(graph, name) for name in self.function.control_ret.values()]
        return FunctionBody(
            self.function, graph, [graph.nodes[n] for n in self.args], [graph.nodes[n] for n in self.rets], controls
        )

    def _control_output(self, graph: Graph, name: str) -> Node:
        if name not in graph.nodes:
            raise InvalidArgumentError(f"control output '{name}' is not a node of the body")
        return graph.nodes[name]

    def _add_arg(self, arg_index: int, arg: ArgDef, used_names: set[str]) -> None:
        types = arg_types(arg, self.attrs)
        extra = self.function.arg_attr.get(arg_index, {})
        nodes = []
        for i, dtype in enumerate(types):
            name = _unused_name(f"{arg.name}_{i}" if arg.is_list else arg.name, used_names)
            attrs = {"T": AttrValue("type", dtype), "index": AttrValue("int", len(self.args))}
            attrs |= {key: value for key, value in extra.items() if key.startswith("_")}
            if len(self.args) < len(self.arg_hints):
                attrs |= self.arg_hints[len(self.args)]
            self.node_defs.append(NodeDef(name, "_Arg", [], attr=attrs))
            self.args.append(name)
            nodes.append(name)
        self.names[arg.name] = nodes

    def _add_rets(self, arg: ArgDef, used_names: set[str]) -> None:
        types = arg_types(arg, self.attrs)
        text = self.function.ret.get(arg.name)
        if text is None:
            raise InvalidArgumentError(
                f"output '{arg.name}' has no source: it is missing in the returns of the function"
            )
        sources = self._resolve_source(text)
        if len(sources) != len(types):
            raise InvalidArgumentError(f"output '{arg.name}' is {len(types)} tensors, '{text}' is {len(sources)}")
        for i, (dtype, source) in enumerate(zip(types, sources, strict=True)):
            name = _unused_name(f"{arg.name}_{i}_RetVal" if arg.is_list else f"{arg.name}_RetVal", used_names)
            attrs = {"T": AttrValue("type", dtype), "index": AttrValue("int", len(self.rets))}
            self.node_defs.append(NodeDef(name, "_Retval", [source], attr=attrs))
            self.rets.append(name)

    def _body_node(self, template: NodeDef) -> NodeDef:
        attrs = {name: self._substitute(value) for name, value in template.attr.items()}
        node = replace(template, attr=attrs, input=list(template.input))
        try:
            op_def = self.library.look_up(node.op).op_def
            add_defaults_to_node_def(node, op_def)
            flat = 0
            for arg in op_def.output_arg:
                count = len(arg_types(arg, node.attr))
                self.names[f"{node.name}:{arg.name}"] = [
                    node.name if k == 0 else f"{node.name}:{k}" for k in range(flat, flat + count)
                ]
                flat += count
        except OpError as error:
            error.node, error.op = node.name, node.op
            raise
        return node

    def _substitute(self, value: AttrValue) -> AttrValue:
        """Replace the placeholders of the function's attributes in a value."""
        if value.kind == PLACEHOLDER:
            if value.value not in self.attrs:
                raise InvalidArgumentError(f"the body uses the attribute '{value.value}', which has no value")
            return self.attrs[value.value]
        if value.kind == "func":
            return AttrValue("func", self._substitute_function(value.value))
        if value.kind == "list(func)":
            return AttrValue("list(func)", tuple(map(self._substitute_function, value.value)))
        return value

    def _substitute_function(self, function: NameAttrList) -> NameAttrList:
        return NameAttrList(function.name, {k: self._substitute(v) for k, v in function.attrs.items()})

    def _resolve_input(self, text: str) -> list[str]:
        """Return the tensors or control inputs of an input of a body node; several if it names a list."""
        if not text.startswith("^"):
            return self._resolve_source(text)
        names = self.names.get(text[1:])
        return [text] if names is None else [f"^{name}" for name in names]

    def _resolve_source(self, text: str) -> list[str]:
        """Return the tensors, in the notation of a GraphDef, of an input in the notation of a function body."""
        names = self.names.get(text)
        if names is not None:
            return names
        head, _, index = text.rpartition(":")
        names = self.names.get(head)
        if names is None or not index.isdigit() or int(index) >= len(names):
            raise InvalidArgumentError(
                f"'{text}' is neither an argument nor an output of a node",
                hint="write 'argument' or 'node:output:index'",
            )
        return [names[int(index)]]


def _unused_name(name: str, used_names: set[str]) -> str:
    candidate, number = name, 0
    while candidate in used_names:
        number += 1
        candidate = f"{name}_{number}"
    used_names.add(candidate)
    return candidate


# graph -> FunctionDef ----------------------------------------------------------------------------------------------
def graph_to_function(
    name: str,
    inputs: Sequence[Tensor],
    outputs: Sequence[Tensor],
    *,
    control_outputs: Iterable[Node] = (),
    output_names: Sequence[str] | None = None,
    attr: Mapping[str, AttrValue] | None = None,
) -> FunctionDef:
    """Build a function from the part of a graph that computes outputs from inputs.

    Parameters
    ----------
    name : str
        Name of the function.
    inputs : sequence of Tensor
        Arguments, named after their nodes; typically outputs of ``_Arg`` or ``Placeholder`` nodes.
    outputs : sequence of Tensor
        Results.
    control_outputs : iterable of Node
        Nodes that run even if no output depends on them.
    output_names : sequence of str, optional
        Names of the results; those of their nodes by default.
    attr : mapping, optional
        Attributes of the function.

    Raises
    ------
    InvalidArgumentError
        An input occurs twice.
    """
    controls = list(control_outputs)
    input_nodes = {tensor.node for tensor in inputs}
    ancestors = reachable_backward([*(t.node for t in outputs), *controls])  # includes sources of loop back edges
    nodes = [n for n in post_order(ancestors) if n not in input_nodes]
    used_names: set[str] = {node.name for node in nodes}
    sources: dict[tuple[Node, int], str] = {}
    args = []
    for tensor in inputs:
        if (tensor.node, tensor.index) in sources:
            raise InvalidArgumentError(f"'{tensor.name}' is an input of function '{name}' twice")
        arg = _unused_name(_argument_name(tensor.node.name), used_names)
        sources[tensor.node, tensor.index] = arg
        args.append(ArgDef(arg, tensor.dtype))
    for node in nodes:
        for key, text in _body_names(node).items():
            sources[node, key] = text
    signature_names = {arg.name for arg in args}
    names = output_names or [_argument_name(t.node.name) for t in outputs]
    rets = [_unused_name(text, signature_names) for text in names]
    signature = OpDef(
        name,
        tuple(args),
        tuple(ArgDef(ret, t.dtype) for ret, t in zip(rets, outputs, strict=True)),
        is_stateful=any(node.is_stateful for node in nodes),
        control_output=tuple(node.name for node in controls),
    )
    body = [_body_node_def(node, sources, input_nodes) for node in nodes]
    ret = {key: _source_name(sources, t) for key, t in zip(rets, outputs, strict=True)}
    return FunctionDef(signature, body, ret, {node.name: node.name for node in controls}, dict(attr or {}))


def graph_of_args_to_function(graph: Graph, name: str, *, control_outputs: Iterable[Node] = ()) -> FunctionDef:
    """Build a function from a graph with ``_Arg`` and ``_Retval`` nodes.

    Raises
    ------
    InvalidArgumentError
        The indices of these nodes are not 0, 1, 2 and so on, each once.
    """
    args, rets = _nodes_by_index(graph, "_Arg"), _nodes_by_index(graph, "_Retval")
    inputs = [node.outputs[0] for node in args]
    outputs = [node.inputs[0] for node in rets]
    names = [_argument_name(node.name) for node in rets]
    return graph_to_function(name, inputs, outputs, control_outputs=control_outputs, output_names=names)


def _nodes_by_index(graph: Graph, op: str) -> list[Node]:
    """Return the nodes of an op in the order of their ``index``."""
    nodes = sorted((n for n in graph.nodes.values() if n.op == op), key=lambda node: int(node.attr("index")))
    for expected, node in enumerate(nodes):
        if node.attr("index") != expected:
            raise InvalidArgumentError(
                f"node '{node.name}' ({op}) has the index {node.attr('index')}, but {expected} was expected",
                node=node.name,
                op=op,
                hint="number them from 0, each number once",
            )
    return nodes


def _argument_name(node_name: str) -> str:
    text = _NOT_A_NAME.sub("_", node_name.lower())
    return text if text[:1].isalpha() else f"arg_{text.lstrip('_')}"


def _body_names(node: Node) -> dict[int, str]:
    """Return the name of each output of a node in the notation of a function body."""
    names = {}
    flat = 0
    for arg in node.op_def.output_arg:
        for i in range(len(arg_types(arg, node.attrs))):
            names[flat] = f"{node.name}:{arg.name}:{i}"
            flat += 1
    return names


def _source_name(sources: Mapping[tuple[Node, int], str], tensor: Tensor) -> str:
    try:
        return sources[tensor.node, tensor.index]
    except KeyError:
        raise InvalidArgumentError(
            f"'{tensor.name}' is needed, but its node is replaced by an input of the function", node=tensor.node.name
        ) from None


def _body_node_def(node: Node, sources: Mapping[tuple[Node, int], str], input_nodes: set[Node]) -> NodeDef:
    node_def = node.node_def
    controls: list[Any] = [f"^{c.name}" for c in node.control_inputs if c not in input_nodes]
    return replace(node_def, input=[_source_name(sources, t) for t in node.inputs] + controls)
