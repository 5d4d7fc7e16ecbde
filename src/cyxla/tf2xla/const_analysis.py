"""Analysis of compile-time constants: the values of a graph that must be known while compiling.

A backward pass: a node whose kernel needs a constant input marks the producer, and marked nodes mark all of their
inputs, except for ops that read shapes only.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from cyxla.core.framework.attr_value import NameAttrList
from cyxla.core.framework.function import FunctionLibraryDefinition
from cyxla.core.framework.node_def import name_ranges
from cyxla.core.graph.algorithm import topological_order
from cyxla.core.graph.function_body import FunctionBody, instantiate
from cyxla.core.graph.graph import Graph, Node, Tensor
from cyxla.errors import NotFoundError
from cyxla.tf2xla.functionalize.control_flow import functionalize_control_flow
from cyxla.tf2xla.xla_op_registry import XlaOpRegistry

_CALLS = {"PartitionedCall": "f", "StatefulPartitionedCall": "f", "RemoteCall": "f", "XlaLaunch": "function"}
_CONDITIONALS = {
    "XlaIf": ("then_branch", "else_branch"),
    "If": ("then_branch", "else_branch"), "StatelessIf": ("then_branch", "else_branch"),
    "_If": ("then_branch", "else_branch"), "Case": ("branches",), "StatelessCase": ("branches",),
}  # fmt: skip
_LOOPS = frozenset({"While", "StatelessWhile", "_While", "XlaWhile"})
# Inputs that a kernel prefers as constants; otherwise the sizes of its results are dynamic.
_PREFERRED_CONSTANTS = {
    "Slice": ("begin", "size"), "StridedSlice": ("begin", "end"), "StridedSliceGrad": ("begin", "end"),
    "TopKV2": ("k",),
}  # fmt: skip
OVERRIDE = "_XlaCompileTimeConstantInputs"


@dataclass
class ConstAnalysis:
    """Result of the analysis.

    Attributes
    ----------
    args : set of int
        Indices of arguments that must be constant.
    nodes : dict of Node
        Nodes whose results must be constant, in the order found.
    """

    args: set[int] = field(default_factory=set)
    nodes: dict[Node, None] = field(default_factory=dict)


class BackwardsConstAnalysis:
    """Analyses graphs over one function library, caching the results of functions.

    Parameters
    ----------
    library : FunctionLibraryDefinition
    registry : XlaOpRegistry, optional
        Registry of XLA kernels; the global one by default.
    """

    def __init__(self, library: FunctionLibraryDefinition, registry: XlaOpRegistry | None = None) -> None:
        self.library = library
        self.registry = XlaOpRegistry.global_() if registry is None else registry
        self._functions: dict[object, set[int]] = {}

    def run(self, graph: Graph) -> ConstAnalysis:
        """Analyse a graph."""
        analysis = ConstAnalysis()
        marked: set[Node] = set()
        for node in reversed(topological_order(graph)):
            if node in marked:
                self._record(node, analysis, marked)
            for i in self.constant_inputs(node):
                self._mark(node.inputs[i], marked, analysis)
        return analysis

    def _record(self, node: Node, analysis: ConstAnalysis, marked: set[Node]) -> None:
        analysis.nodes[node] = None
        if node.op == "_Arg":
            analysis.args.add(node.attr("index"))
        elif not self.registry.is_metadata_op(node.op):
            for tensor in node.inputs:
                self._mark(tensor, marked, analysis)

    @staticmethod
    def _mark(tensor: Tensor, marked: set[Node], analysis: ConstAnalysis) -> None:
        while tensor.node.op == "IdentityN":  # each output depends on one input only
            tensor = tensor.node.inputs[tensor.index]
        marked.add(tensor.node)

    def constant_inputs(self, node: Node) -> list[int]:
        """Return the indices of the inputs of a node that must be constant."""
        if node.op in _LOOPS:
            return self._loop_constants(node)
        if node.op in _CONDITIONALS:
            functions = [f for name in _CONDITIONALS[node.op] for f in _as_list(node.attr(name))]
            return sorted({i + 1 for f in functions for i in self.function_constants(f)})
        if node.op in _CALLS:
            return sorted(self.function_constants(node.attr(_CALLS[node.op])))
        if self.library.find(node.op) is not None:
            return sorted(self.function_constants(NameAttrList(node.op, node.attrs)))
        override = node.attrs[OVERRIDE].value if OVERRIDE in node.attrs else None
        if override is None and node.op in _PREFERRED_CONSTANTS and not _has_known_sizes(node):
            override = [*self.registry.compile_time_constant_input_names(node.op), *_PREFERRED_CONSTANTS[node.op]]
        if override is None and not self.registry.compile_time_constant_input_names(node.op):
            return []
        ranges = name_ranges(node.op_def.input_arg, node.attrs)
        return self.registry.compile_time_constant_inputs(node.op_def, ranges, override)

    def _loop_constants(self, node: Node) -> list[int]:
        """Return the needed inputs that are loop invariants, since no others can be constant."""
        body, cond = node.attr("body"), node.attr("cond")
        invariant = set(loop_invariants(self.body_of(body)))
        return sorted((self.function_constants(body) | self.function_constants(cond)) & invariant)

    def function_constants(self, function: NameAttrList) -> set[int]:
        """Return the indices of arguments of a function that must be constant."""
        key = (function.name, _attrs_key(function.attrs))
        if key not in self._functions:
            self._functions[key] = set()  # recursive calls add no marks
            self._functions[key] = self.run(self.body_of(function).graph).args
        return self._functions[key]

    def body_of(self, function: NameAttrList) -> FunctionBody:
        """Instantiate a function as a graph without frames and branches.

        Raises
        ------
        NotFoundError
            The function does not exist.
        """
        definition = self.library.find(function.name)
        if definition is None:
            raise NotFoundError(f"there is no function {function.name!r}")
        body = instantiate(definition, function.attrs, self.library)
        functionalize_control_flow(body.graph)
        return body


def _has_known_sizes(node: Node) -> bool:
    """Return whether the sizes of a slice are known statically, so that its start may be dynamic."""
    if node.op == "Slice":
        size = node.inputs[2].node
        return size.op == "Const" and bool((size.attr("value").array >= 0).all())
    if node.op == "StridedSlice":
        bits = {name: node.attr(f"{name}_mask") for name in ("begin", "end", "ellipsis", "new_axis", "shrink_axis")}
        covered_bits = bits["shrink_axis"] | bits["new_axis"] | bits["ellipsis"] | (bits["begin"] & bits["end"])
        dims = node.inputs[1].shape.dims
        count = dims[0] if dims else None
        return count is not None and covered_bits == covered_bits | ((1 << count) - 1)
    return False


def loop_invariants(body: FunctionBody) -> Iterable[int]:
    """Yield the indices of arguments that a loop body returns unchanged."""
    for i, ret in enumerate(body.rets):
        source = ret.inputs[0]
        while source.node.op in ("Identity", "IdentityN"):
            source = source.node.inputs[source.index]
        if source.node is body.args[i]:
            yield i


def _as_list(value: object) -> list[NameAttrList]:
    return [value] if isinstance(value, NameAttrList) else list(value)  # type: ignore[call-overload]


def _attrs_key(attrs: Mapping[str, object]) -> tuple[tuple[str, str], ...]:
    return tuple(sorted((name, repr(value)) for name, value in attrs.items()))
