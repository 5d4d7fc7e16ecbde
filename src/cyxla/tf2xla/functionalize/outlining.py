"""Outlining of parts of a graph as functions of its library."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any

from cyxla.core.framework.attr_value import AttrValue
from cyxla.core.framework.node_def import NodeDef
from cyxla.core.framework.types import DataType
from cyxla.core.graph.algorithm import replace_tensor
from cyxla.core.graph.function_body import graph_of_args_to_function
from cyxla.core.graph.graph import Graph, Node, Tensor
from cyxla.errors import InternalError

_NOT_A_NAME = re.compile(r"[^A-Za-z0-9_]")
Endpoint = tuple[Node, int]


class Outline:
    """Function under construction from nodes of a graph.

    Parameters
    ----------
    source : Graph
        Graph that holds the nodes; its library gains the function.
    name : str
        Name of the function, to which a number is appended if it is taken.
    types : sequence of DataType
        Types of the arguments.
    """

    def __init__(self, source: Graph, name: str, types: Sequence[DataType]) -> None:
        self.source, self.name = source, _NOT_A_NAME.sub("_", name)
        self.graph = Graph(source.library.default_registry)
        self.graph.library = source.library
        self._values: dict[Endpoint, Tensor] = {}
        self._aliases: dict[Endpoint, Tensor] = {}
        self._copies: dict[Node, Node] = {}
        self.args = [self._add_indexed("_Arg", i, t, []) for i, t in enumerate(types)]

    def _add_indexed(self, op: str, index: int, dtype: DataType, inputs: list[Tensor]) -> Node:
        attrs = {"T": AttrValue("type", dtype), "index": AttrValue("int", index)}
        name = self.source.unique_name(f"outline/{op.strip('_').lower()}{index}")
        return self.graph.add_node(NodeDef(name, op, [t.name for t in inputs], "", attrs), inputs, [])

    # Substitution

    def bind(self, tensor: Tensor, index: int) -> None:
        """Substitute an argument for a tensor of the graph."""
        self._values[tensor.node, tensor.index] = self.args[index].outputs[0]

    def bind_constant(self, tensor: Tensor, value: Any) -> None:
        """Substitute a constant for a tensor of the graph."""
        name = self.source.unique_name("outline/constant")
        self._values[tensor.node, tensor.index] = self.graph.constant(value, tensor.dtype, name=name)

    def alias(self, tensor: Tensor, other: Tensor) -> None:
        """Use the substitution of another tensor for a tensor."""
        self._aliases[tensor.node, tensor.index] = other

    def resolve(self, tensor: Tensor) -> Tensor:
        """Return the tensor at the end of a chain of aliases."""
        while (tensor.node, tensor.index) in self._aliases:
            tensor = self._aliases[tensor.node, tensor.index]
        return tensor

    def has(self, tensor: Tensor) -> bool:
        """Return whether a tensor has a substitution, so that its node need not be copied."""
        resolved = self.resolve(tensor)
        return (resolved.node, resolved.index) in self._values

    def value(self, tensor: Tensor) -> Tensor:
        """Return the tensor of the function that corresponds to a tensor of the graph.

        Raises
        ------
        InternalError
            The tensor has no counterpart.
        """
        resolved = self.resolve(tensor)
        if (resolved.node, resolved.index) in self._values:
            return self._values[resolved.node, resolved.index]
        if resolved.node not in self._copies:
            raise InternalError(f"{tensor.name!r} is needed in the function {self.name!r}, but is not in it")
        return self._copies[resolved.node].outputs[resolved.index]

    # Construction

    def copy(self, nodes: Iterable[Node]) -> None:
        """Copy nodes in topological order; control edges from outside are dropped."""
        for node in nodes:
            copied = self.graph.shallow_node(node)
            copied.inputs = [self.value(t) for t in node.inputs]
            copied.control_inputs = [self._copies[c] for c in node.control_inputs if c in self._copies]
            self._copies[node] = copied

    def set_results(self, results: Sequence[Tensor]) -> None:
        """Set the results of the function."""
        for i, tensor in enumerate(results):
            self._add_indexed("_Retval", i, tensor.dtype, [tensor])

    def add_to_library(self) -> str:
        """Add the function, with its stateful nodes as control outputs, to the library, and return its name."""
        library = self.source.library
        name, number = self.name, 0
        while library.find(name) is not None:
            number += 1
            name = f"{self.name}_{number}"
        effects = [n for n in self.graph.nodes.values() if n.is_stateful and n.op not in ("_Arg", "_Retval")]
        library.add(graph_of_args_to_function(self.graph, name, control_outputs=effects))
        return name


def replace_node(graph: Graph, old: Node, new: Node, outputs: Sequence[Tensor]) -> None:
    """Redirect the users of a node to other tensors, and its control edges to another node."""
    for tensor, other in zip(old.outputs, outputs, strict=True):
        replace_tensor(graph, tensor, other)
    for node in graph.nodes.values():
        if old in node.control_inputs:
            controls = [new if c is old else c for c in node.control_inputs]
            node.control_inputs = list(dict.fromkeys(c for c in controls if c is not node))
