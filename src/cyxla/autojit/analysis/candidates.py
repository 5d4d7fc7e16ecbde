"""Compilability of nodes, with the reason for each node that cannot be compiled."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from cyxla.autojit.devices import ClusterFilter, DeviceInfo
from cyxla.core.framework.attr_value import NameAttrList
from cyxla.core.framework.function import FunctionLibraryDefinition
from cyxla.core.framework.kernel_registry import KernelRegistry
from cyxla.core.framework.types import DataType
from cyxla.core.graph.function_body import instantiate
from cyxla.core.graph.function_gradients import symbolic_gradient
from cyxla.core.graph.graph import Node
from cyxla.errors import OpError
from cyxla.tf2xla.xla_op_registry import XlaOpRegistry

MAX_DEPTH = 50  # of nested function calls
_ARGS_AND_RETVALS = frozenset({"_Arg", "_Retval"})
_CONTROL_FLOW = frozenset(
    prefix + op for prefix in ("", "Ref") for op in ("Switch", "Merge", "Enter", "Exit", "NextIteration")
) | {"LoopCond", "_XlaMerge"}  # fmt: skip
_TRANSFERS = frozenset({"_Send", "_Recv", "_HostSend", "_HostRecv"})
FUNCTION_ATTRS = {
    "PartitionedCall": ("f",), "StatefulPartitionedCall": ("f",), "If": ("then_branch", "else_branch"),
    "StatelessIf": ("then_branch", "else_branch"), "_If": ("then_branch", "else_branch"), "Case": ("branches",),
    "StatelessCase": ("branches",), "While": ("cond", "body"), "StatelessWhile": ("cond", "body"),
    "_While": ("cond", "body"), "SymbolicGradient": ("f",),
}  # fmt: skip
STRUCTURED = frozenset({"If", "StatelessIf", "Case", "StatelessCase", "While", "StatelessWhile"})

# The ops that are excluded by default, with the reason, by the field of `ClusterFilter` that admits them.
FILTERED: dict[str, tuple[str, frozenset[str]]] = {
    "stateful_rng": ("random numbers with a hidden state", frozenset({
        "RandomUniform", "RandomShuffle", "RandomUniformInt", "RandomStandardNormal", "TruncatedNormal", "Multinomial",
    })),
    "control_trigger": ("it is alive even if its inputs are dead", frozenset({"ControlTrigger"})),
    "stacks": ("stacks stay on the host", frozenset({"StackV2", "StackPushV2", "StackPopV2", "StackCloseV2"})),
    "tensor_arrays": ("tensor arrays stay on the host", frozenset(f"TensorArray{name}V3" for name in (
        "", "Close", "Concat", "Gather", "Grad", "Read", "Scatter", "Size", "Split", "Write"))),
    "assertions": ("compiled code would omit the check", frozenset({"Assert", "CheckNumerics"})),
    "slow": ("it is slower when compiled", frozenset({
        "SelfAdjointEigV2", "Svd", "Qr", "MatrixInverse", "MatrixSolve", "ResizeNearestNeighbor", "ResizeBilinear",
        "ResizeBilinearGrad", "ResizeNearestNeighborGrad",
    })),
    "dynamic_shapes": ("the shape of its result depends on data", frozenset({
        "Where", "Unique", "UniqueV2", "UniqueWithCounts", "UniqueWithCountsV2", "DynamicPartition",
        "NonMaxSuppression", "NonMaxSuppressionV2", "NonMaxSuppressionV3", "NonMaxSuppressionV4",
        "XlaSetDynamicDimensionSize",
    })),
    "collectives": ("it waits for the other devices of its group", frozenset({
        "CollectiveReduceV2", "CollectiveAssignGroupV2",
    })),
    "inaccurate": ("it is less accurate when compiled", frozenset({"SelfAdjointEigV2", "Svd"})),
}  # fmt: skip
_FILTERED_OPS = [(op, name, why) for name, (why, ops) in FILTERED.items() for op in sorted(ops)]
_REASONS: dict[str, list[tuple[str, str]]] = {}
for _op, _name, _why in _FILTERED_OPS:
    _REASONS.setdefault(_op, []).append((_name, _why))


class RecursiveCompilabilityChecker:
    """Checks whether nodes, and the functions they call, can be compiled for a device.

    Parameters
    ----------
    info : DeviceInfo
        Compilation device of the nodes.
    kernels : KernelRegistry
        Registry that holds the kernels of the compilation device.
    library : FunctionLibraryDefinition
        Library of the functions that the nodes call.
    filter : ClusterFilter, optional
        Kinds of ops that are clustered; the filter of the device by default.
    """

    def __init__(
        self,
        info: DeviceInfo,
        kernels: KernelRegistry,
        library: FunctionLibraryDefinition,
        filter: ClusterFilter | None = None,
    ) -> None:
        self.info, self.kernels, self.library = info, kernels, library
        self.filter = info.filter if filter is None else filter
        self.registry = XlaOpRegistry.global_()
        self.registry.register_compilation_kernels(kernels)
        self._kernels: dict[tuple[Any, ...], str] = {}
        self._functions: dict[tuple[Any, ...], str] = {}

    def reason(self, node: Node, depth: int = 0) -> str:
        """Return the reason why a node cannot be compiled; empty if it can."""
        if node.op in _CONTROL_FLOW:
            return "branches and loops of single nodes stay on the host"
        if node.op in _TRANSFERS:
            return "it exchanges values with another device"
        if node.has_attr("_XlaCompile") and node.attr("_XlaCompile") is False:
            return "_XlaCompile=false forbids it"
        return self._filter_reason(node, depth) or self._callee_reason(node, depth) or self._kernel_reason(node)

    def _filter_reason(self, node: Node, depth: int) -> str:
        if node.op == "TensorArrayV3" and node.attr("dynamic_size") and not self.filter.growing:
            return "TensorArrayV3: a compiled array does not become longer than it was made"
        for field, reason in _REASONS.get(node.op, ()):
            if not getattr(self.filter, field):
                return f"{node.op}: {reason}"
        types = [*node.input_types, *node.output_types]
        if DataType.DT_VARIANT in types and not self.filter.variants and depth == 0:
            return "its type variant stays on the host"
        if depth == 0 and DataType.DT_RESOURCE in node.output_types and not self.filter.resource_producers:
            return "it produces a resource handle, which stays on the host"
        return ""

    def _callee_reason(self, node: Node, depth: int) -> str:
        """Return the reason why a function that a node calls cannot be compiled; empty if all can."""
        if self.library.find(node.op) is not None:
            return self._function_reason(NameAttrList(node.op, node.attrs), depth)
        if node.op == "SymbolicGradient":
            return self._gradient_reason(node.attr("f"), depth)
        for name in FUNCTION_ATTRS.get(node.op, ()):
            value = node.attr(name)
            for function in (value,) if isinstance(value, NameAttrList) else value:
                reason = self._function_reason(function, depth)
                if reason:
                    return reason
        return ""

    def _gradient_reason(self, function: NameAttrList, depth: int) -> str:
        try:
            return self._function_reason(symbolic_gradient(function, self.library), depth)
        except OpError as error:
            return f"function '{function.name}' has no gradient: {error.message}"

    def _function_reason(self, function: NameAttrList, depth: int) -> str:
        if depth >= MAX_DEPTH:
            return f"functions are nested more than {MAX_DEPTH} deep"
        definition = self.library.find(function.name)
        if definition is None:
            return f"there is no function '{function.name}'"
        forbidden = definition.attr.get("_XlaCompile")
        if forbidden is not None and forbidden.value is False:
            return f"_XlaCompile=false forbids function '{function.name}'"
        key = (function.name, attrs_key(function.attrs))
        if key not in self._functions:
            self._functions[key] = self._body_reason(function, depth)
        return self._functions[key]

    def _body_reason(self, function: NameAttrList, depth: int) -> str:
        definition = self.library.find(function.name)
        assert definition is not None
        try:
            body = instantiate(definition, function.attrs, self.library)
        except OpError as error:
            return f"function '{function.name}' cannot be instantiated: {error.message}"
        for node in body.graph.nodes.values():
            reason = "" if node.op in _ARGS_AND_RETVALS else self.reason(node, depth + 1)
            if reason:
                return f"function '{function.name}' contains '{node.name}' ({node.op}): {reason}"
        return ""

    def _kernel_reason(self, node: Node) -> str:
        if self.library.find(node.op) is not None:
            return ""
        key = (node.op, attrs_key({k: v for k, v in node.attrs.items() if v.kind in _KERNEL_KINDS or k == "_kernel"}))
        if key not in self._kernels:
            self._kernels[key] = self._find_kernel_reason(node)
        return self._kernels[key]

    def _find_kernel_reason(self, node: Node) -> str:
        try:
            registration, _ = self.kernels.find_kernel_registration(self.info.compilation_device, node.op, node.attrs)
        except OpError as error:
            return error.message
        if registration is not None:
            return ""
        if self.registry.registrations(node.op):
            types = ", ".join(f"{k}={v.value}" for k, v in sorted(node.attrs.items()) if v.kind == "type")
            return f"{node.op} has no {self.info.compilation_device} kernel for {types or 'these types'}"
        return f"{node.op} has no {self.info.compilation_device} kernel"


_KERNEL_KINDS = ("type", "list(type)", "list", "string")


def attrs_key(attrs: Mapping[str, Any]) -> tuple[tuple[str, str], ...]:
    """Return the public attributes as a hashable key."""
    return tuple(sorted((name, repr(value.value)) for name, value in attrs.items() if not name.startswith("_")))
