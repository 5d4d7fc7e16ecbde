r"""Lowers calls of clusters to ops that compile the cluster and run the executable.

A cluster that must be compiled takes two nodes::

    _XlaCompile -> _XlaRun

Otherwise the function stays as a fallback, and a `Switch` on the success of the compilation chooses between the two::

    _XlaCompile -> Switch -> _XlaRun ------------------> _XlaMerge
                         \-> StatefulPartitionedCall --/
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from cyxla.autojit.devices import Policy
from cyxla.autojit.options import (
    COMPILED_KERNEL,
    LAUNCH_OF,
    MUST_COMPILE,
    NUM_CONSTANTS,
    NUM_RESOURCES,
    JitOptions,
)
from cyxla.autojit.runtime.xla_ops import register_kernels
from cyxla.core.framework.attr_value import AttrValue, NameAttrList, TensorValue
from cyxla.core.framework.types import DataType
from cyxla.core.graph.graph import Node, Tensor
from cyxla.core.runtime.subgraph import insert_node


def build_xla_ops(jit: JitOptions) -> None:
    """Replace all calls of clusters in a graph."""
    register_kernels()
    for node in [n for n in jit.graph.nodes.values() if n.has_attr(COMPILED_KERNEL)]:
        _Replacement(jit, node).run()


def must_compile(jit: JitOptions, node: Node) -> bool:
    """Return True if a cluster has no fallback: running it fails if it cannot be compiled."""
    info = jit.info(node)
    always = info is not None and info.policy is Policy.ALWAYS
    return always or node.has_attr(MUST_COMPILE) or not jit.flags.tf_xla_enable_lazy_compilation


class _Replacement:
    def __init__(self, jit: JitOptions, call: Node) -> None:
        self.jit, self.graph, self.call = jit, jit.graph, call
        self.scope = self._unused_scope(call.name)
        constants, resources = call.attr(NUM_CONSTANTS), call.attr(NUM_RESOURCES)
        self.constants = call.inputs[:constants]
        self.args = call.inputs[constants : len(call.inputs) - resources]
        self.resources = call.inputs[len(call.inputs) - resources :]
        info = jit.info(call)
        self.platform = jit.platform if info is None else info.platform

    def _unused_scope(self, name: str) -> str:
        number = 1
        while any(other.startswith(f"{name}_{number}/") for other in self.graph.nodes):
            number += 1
        return f"{name}_{number}"

    def run(self) -> None:
        strict = must_compile(self.jit, self.call)
        compile_node = self._add_compile(strict)
        outputs, control = self._add_strict(compile_node) if strict else self._add_lazy(compile_node)
        for node in self.graph.nodes.values():
            node.inputs = [outputs[t.index] if t.node is self.call else t for t in node.inputs]
            node.control_inputs = [control if c is self.call else c for c in node.control_inputs]
        del self.graph.nodes[self.call.name]

    def _add(
        self, name: str, op: str, inputs: Sequence[Tensor], controls: Sequence[Node] = (), **attrs: AttrValue
    ) -> Node:
        """Add a node of the replacement, on the device of the call."""
        launch_attrs = {**attrs, LAUNCH_OF: AttrValue("string", self.scope)}
        node = insert_node(self.graph, f"{self.scope}/{name}", op, launch_attrs, inputs)
        node.assigned_device, node.device = self.call.assigned_device, self.call.device
        node.control_inputs = list(controls)
        return node

    def _function_attr(self) -> AttrValue:
        attrs = {k: v for k, v in self.call.attrs.items() if not k.startswith("_")}
        return AttrValue("func", NameAttrList(self.call.op, attrs))

    def _add_compile(self, strict: bool) -> Node:
        return self._add(
            "xla_compile",
            "_XlaCompile",
            [*self.constants, *self.args, *self.resources],
            self.call.control_inputs,
            must_compile=AttrValue("bool", strict),
            Tconstants=_types(self.constants),
            Targs=_types(self.args),
            Nresources=AttrValue("int", len(self.resources)),
            function=self._function_attr(),
            _XlaPlatform=AttrValue("string", self.platform),
        )

    def _add_run(self, key: Tensor) -> Node:
        inputs = [*self.args, *self.resources]
        node = self._add(
            "xla_run",
            "_XlaRun",
            [*inputs, key],
            Targs=_types(inputs),
            Tresults=AttrValue("list(type)", tuple(self.call.output_types)),
            _XlaPlatform=AttrValue("string", self.platform),
        )
        node.output_shapes = list(self.call.output_shapes)
        return node

    def _add_strict(self, compile_node: Node) -> tuple[list[Tensor], Node]:
        run_node = self._add_run(compile_node.outputs[0])
        return run_node.outputs, run_node

    def _add_lazy(self, compile_node: Node) -> tuple[list[Tensor], Node]:
        key, success = compile_node.outputs
        text = AttrValue("type", DataType.DT_STRING)
        switch = self._add("predicated_compilation_key", "Switch", [key, success], T=text)
        run_node = self._add_run(switch.outputs[1])
        failed = self._add("data_as_ctrl", "Identity", [switch.outputs[0]], T=text)
        function = self._add(
            "stateful_partitioned_call",
            "StatefulPartitionedCall",
            self.call.inputs,
            [failed],
            f=self._function_attr(),
            Tin=_types(self.call.inputs),
            Tout=AttrValue("list(type)", tuple(self.call.output_types)),
        )
        merges = [self._add_merge(i, function, run_node) for i in range(len(self.call.outputs))]
        outputs = [merge.outputs[0] for merge in merges]
        return outputs, merges[0] if merges else self._add_merged_control(function, run_node)

    def _add_merge(self, index: int, function: Node, run: Node) -> Node:
        branches = [function.outputs[index], run.outputs[index]]
        merge = self._add(f"merge_oidx_{index}", "_XlaMerge", branches, T=AttrValue("type", branches[0].dtype))
        merge.output_shapes = [self.call.output_shapes[index]]
        return merge

    def _add_merged_control(self, function: Node, run: Node) -> Node:
        """Return a node that is alive once the function or the executable has run, for a cluster without results."""
        tokens = [self._add_token(name, node) for name, node in (("ctrl_as_data", function), ("ctrl_as_data_1", run))]
        return self._add("merged_control", "_XlaMerge", tokens, T=AttrValue("type", DataType.DT_INT32))

    def _add_token(self, name: str, node: Node) -> Tensor:
        value = AttrValue("tensor", TensorValue(DataType.DT_INT32, np.zeros((), np.int32)))
        token = self._add(name, "Const", [], [node], dtype=AttrValue("type", DataType.DT_INT32), value=value)
        return token.outputs[0]


def _types(tensors: Sequence[Tensor]) -> AttrValue:
    return AttrValue("list(type)", tuple(t.dtype.base for t in tensors))
