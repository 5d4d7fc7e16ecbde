"""Adds a small amount to chosen tensors, to test the numerical sensitivity of a program."""

from __future__ import annotations

import numpy as np

from cyxla.autojit.options import JitOptions
from cyxla.core.framework.attr_value import AttrValue, TensorValue
from cyxla.core.framework.types import FLOATING
from cyxla.core.graph.graph import Tensor
from cyxla.core.runtime.subgraph import insert_node
from cyxla.errors import InvalidArgumentError


def introduce_floating_point_jitter(jit: JitOptions) -> None:
    """Add the jitter amount of the flags to the tensors that the flags name.

    Raises
    ------
    InvalidArgumentError
        A tensor is not of a floating-point type.
    """
    for name in jit.flags.tf_introduce_floating_point_jitter_to_tensors:
        node_name = name.partition(":")[0]
        if node_name in jit.graph.nodes:
            _add_jitter(jit, jit.graph.tensor(name))


def _add_jitter(jit: JitOptions, tensor: Tensor) -> None:
    if tensor.dtype not in FLOATING:
        raise InvalidArgumentError(f"'{tensor.name}' is {tensor.dtype}: only floating-point tensors can be perturbed")
    graph, dtype = jit.graph, AttrValue("type", tensor.dtype)
    users = [(n, i) for n in graph.nodes.values() for i, t in enumerate(n.inputs) if t is tensor]
    amount = np.array(jit.flags.tf_introduce_floating_point_jitter_amount, tensor.dtype.numpy)
    attrs = {"dtype": dtype, "value": AttrValue("tensor", TensorValue(tensor.dtype, amount))}
    constant = insert_node(graph, f"{tensor.node.name}/jitter_amount", "Const", attrs)
    shifted = insert_node(graph, f"{tensor.node.name}/jitter", "Add", {"T": dtype}, [tensor, constant.outputs[0]])
    for node, i in users:
        node.inputs[i] = shifted.outputs[0]
