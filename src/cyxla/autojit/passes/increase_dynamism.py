"""Rewrites slices whose sizes are constants with -1 in them, so that another place to begin needs no other program.

The sizes are worked out on the host, from the shape of the input; inside of the cluster only they must be known.
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
    """Rewrite the slices in clusters; gives how many."""
    found = [node for node in jit.graph.nodes.values() if _is_worth_it(node)]
    for node in found:
        _Rewriting(node).run()
    return len(found)


def _is_worth_it(node: Node) -> bool:
    """A slice in a cluster, of constant sizes that are not all given, beginning at a place that is not constant.

    Neither that place nor what is cut may come from the cluster itself, which would wait for itself.
    """
    if node.op != "Slice" or not node.has_attr(CLUSTER):
        return False
    x, begin, size = (t.node for t in node.inputs)
    if begin.op == "Const" or size.op != "Const" or not (size.attr("value").array == -1).any():
        return False
    own = node.attr(CLUSTER)
    before = reachable_backward([x, begin])
    return not any(other.has_attr(CLUSTER) and other.attr(CLUSTER) == own for other in before)


class _Rewriting:
    def __init__(self, node: Node) -> None:
        self.node, self.graph = node, node.graph
        self.index = AttrValue("type", node.attr("Index"))

    def run(self) -> None:
        """Where the size is -1 it is what the input has, less where the slice begins."""
        x, begin, size = self.node.inputs
        given = size.node.attr("value").array
        shape = self._add("shape", "Shape", [x], T=self.node.attrs["T"], out_type=self.index)
        rest = self._add("rest", "Sub", [shape, begin], T=self.index)
        mask = self._constant("is_open", given == -1, DataType.DT_BOOL)
        closed = self._constant("given", given, size.dtype)
        sizes = self._add("sizes", "SelectV2", [mask, rest, closed], T=self.index)
        self.node.inputs[2] = sizes
        self.node.attrs[OVERRIDE] = AttrValue("list(string)", ("size",))

    def _add(self, name: str, op: str, inputs: list[Tensor], **attrs: AttrValue) -> Tensor:
        """A node outside of the cluster."""
        node = insert_node(self.graph, f"{self.node.name}/static_{name}", op, attrs, inputs)
        node.assigned_device = self.node.assigned_device
        node.attrs[ALREADY] = self.node.attrs[ALREADY]
        return node.outputs[0]

    def _constant(self, name: str, value: np.ndarray, dtype: DataType) -> Tensor:
        held = AttrValue("tensor", TensorValue(dtype, np.asarray(value)))
        return self._add(name, "Const", [], dtype=AttrValue("type", dtype), value=held)
