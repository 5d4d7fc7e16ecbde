"""Constant folding: nodes that depend only on constants are computed once, before the first run."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from cyxla.core.framework.attr_value import AttrValue, TensorValue
from cyxla.core.framework.step.context import StepContext
from cyxla.core.framework.types import HANDLES
from cyxla.core.graph.graph import Graph, Node, Tensor
from cyxla.core.runtime.invoke import KernelCall
from cyxla.core.runtime.optimization_registry import Grouping, OptimizationPassOptions, OptimizationPassRegistry
from cyxla.core.runtime.schedule import topological_order
from cyxla.core.runtime.subgraph import insert_node
from cyxla.errors import OpError

if TYPE_CHECKING:
    from cyxla.core.runtime.engine import Engine

PHASE = 10
MAX_BYTES = 10 << 20  # of a folded value; a larger one is computed in every run
_CONTROL_FLOW = frozenset(
    prefix + op for prefix in ("", "Ref") for op in ("Switch", "Merge", "Enter", "Exit", "NextIteration", "Select")
)  # evaluated by the executor
_EXCLUDED_OPS = _CONTROL_FLOW | {"Const", "LoopCond", "ControlTrigger", "Placeholder", "PlaceholderV2", "FakeParam"}


def register(registry: OptimizationPassRegistry) -> None:
    """Add the pass to a registry."""
    registry.register(Grouping.POST_PARTITIONING, PHASE, constant_folding, "constant_folding")


def constant_folding(options: OptimizationPassOptions) -> int:
    """Fold the constants of a graph in place, and return the number of folded nodes."""
    return _Folding(options.graph, options.engine).run()


class _Folding:
    def __init__(self, graph: Graph, engine: Engine) -> None:
        self.graph, self.engine = graph, engine
        self.values: dict[Tensor, Any] = {}
        self.constants: dict[Tensor, Tensor] = {}
        self.step = StepContext(engine.resource_manager, file_access=engine.file_access)

    def run(self) -> int:
        folded: list[Node] = []
        for node in topological_order(self.graph.nodes.values()):
            if node.op == "Const" and not node.control_inputs:
                self.values[node.outputs[0]] = None  # read on demand
            elif self._may_fold(node) and self._fold(node):
                folded.append(node)
        if folded:
            self._replace(set(folded))
        return len(folded)

    def _may_fold(self, node: Node) -> bool:
        return (
            bool(node.outputs)
            and bool(node.inputs)
            and not node.control_inputs
            and not node.is_stateful
            and node.op not in _EXCLUDED_OPS
            and all(t in self.values for t in node.inputs)
            and not any(t.is_ref or t in HANDLES for t in (*node.output_types, *node.input_types))
            and self.graph.library.find(node.op) is None
            and not any(attr.kind in ("func", "list(func)") for attr in node.attrs.values())
        )

    def _fold(self, node: Node) -> bool:
        """Compute a node; return False if it fails or its result is too large, so that the run computes it."""
        try:
            kernel = self.engine.kernel(node, keep=False)
            if kernel.is_async:
                return False
            with np.errstate(all="ignore"):
                outputs = KernelCall(node, kernel)(self.step, [self._value(t) for t in node.inputs])
        except (OpError, Exception):
            return False
        if any(value is None or value.nbytes > MAX_BYTES for value in outputs):
            return False
        self.values.update(zip(node.outputs, outputs, strict=True))
        return True

    def _value(self, tensor: Tensor) -> Any:
        value = self.values[tensor]
        return tensor.node.attr("value").array if value is None else value

    def _replace(self, folded: set[Node]) -> None:
        """Replace the computed values by constants, and remove the nodes that have no users any more."""
        for node in list(self.graph.nodes.values()):
            if node not in folded:
                node.inputs = [self._constant_for(t) if t.node in folded else t for t in node.inputs]
                node.control_inputs = [c for c in node.control_inputs if c not in folded]
        for node in folded:
            del self.graph.nodes[node.name]
        self._drop_unused_constants()

    def _constant_for(self, tensor: Tensor) -> Tensor:
        constant = self.constants.get(tensor)
        if constant is None:
            value = TensorValue(
                tensor.dtype, np.ascontiguousarray(self.values[tensor]).reshape(self.values[tensor].shape)
            )
            attrs = {"dtype": AttrValue("type", tensor.dtype), "value": AttrValue("tensor", value)}
            node = insert_node(self.graph, f"{tensor.node.name}/folded_{tensor.index}", "Const", attrs)
            node.assigned_device, node.output_shapes = tensor.node.assigned_device, [tensor.shape]
            constant = self.constants[tensor] = node.outputs[0]
        return constant

    def _drop_unused_constants(self) -> None:
        nodes = self.graph.nodes
        read_nodes = {t.node for node in nodes.values() for t in node.inputs}
        read_nodes.update(control for node in nodes.values() for control in node.control_inputs)
        for node in [n for n in nodes.values() if n.op == "Const" and n not in read_nodes]:
            del nodes[node.name]
