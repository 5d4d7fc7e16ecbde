"""Rewrites slices whose constant sizes contain -1, so that a different begin index needs no recompilation.

The sizes are computed on the host, from the shape of the input; in the cluster only they are compile-time constants.
"""

from __future__ import annotations

import numpy as np

from cyxla.autojit.options import ALREADY, CLUSTER, JitOptions
from cyxla.core.framework.attr_value import AttrValue, TensorValue
from cyxla.core.framework.types import DataType
from cyxla.core.graph.algorithm import reachable_backward
from cyxla.core.graph.graph import Node, Tensor
from cyxla.core.runtime.subgraph import insert_node
from cyxla.tf2xla.const_analysis import OVERRIDE


def increase_dynamism(jit: JitOptions) -> int:
    """Rewrite the slices in clusters, and return their number."""
    slices = [node for node in jit.graph.nodes.values() if _is_rewritable(node)]
    for node in slices:
        _SliceRewriter(node).run()
    return len(slices)


def _is_rewritable(node: Node) -> bool:
    """Return True for a slice in a cluster with a constant size that contains -1 and a begin index that varies.

    Neither the begin index nor the operand may depend on the cluster itself: the new nodes would close a cycle.
    """
    if node.op != "Slice" or not node.has_attr(CLUSTER):
        return False
    x, begin, size = (t.node for t in node.inputs)
    if begin.op == "Const" or size.op != "Const" or not (size.attr("value").array == -1).any():
        return False
    cluster = node.attr(CLUSTER)
    ancestors = reachable_backward([x, begin])
    return not any(other.has_attr(CLUSTER) and other.attr(CLUSTER) == cluster for other in ancestors)


class _SliceRewriter:
    def __init__(self, node: Node) -> None:
        self.node, self.graph = node, node.graph
        self.index = AttrValue("type", node.attr("Index"))

    def run(self) -> None:
        """Replace the size by ``where(size == -1, shape(input) - begin, size)``."""
        x, begin, size = self.node.inputs
        static_size = size.node.attr("value").array
        shape = self._add("shape", "Shape", [x], T=self.node.attrs["T"], out_type=self.index)
        rest = self._add("rest", "Sub", [shape, begin], T=self.index)
        mask = self._constant("is_open", static_size == -1, DataType.DT_BOOL)
        static = self._constant("given", static_size, size.dtype)
        sizes = self._add("sizes", "SelectV2", [mask, rest, static], T=self.index)
        self.node.inputs[2] = sizes
        self.node.attrs[OVERRIDE] = AttrValue("list(string)", ("size",))

    def _add(self, name: str, op: str, inputs: list[Tensor], **attrs: AttrValue) -> Tensor:
        """Add a node outside of the cluster."""
        node = insert_node(self.graph, f"{self.node.name}/static_{name}", op, attrs, inputs)
        node.assigned_device = self.node.assigned_device
        node.attrs[ALREADY] = self.node.attrs[ALREADY]
        return node.outputs[0]

    def _constant(self, name: str, value: np.ndarray, dtype: DataType) -> Tensor:
        tensor = AttrValue("tensor", TensorValue(dtype, np.asarray(value)))
        return self._add(name, "Const", [], dtype=AttrValue("type", dtype), value=tensor)
