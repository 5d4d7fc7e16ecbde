"""Gradients of biases and top-k."""

from __future__ import annotations

from typing import Any

from cyxla.core.framework.apply import apply_op
from cyxla.core.framework.gradient import gradient, no_gradient
from cyxla.core.gradients.common import Tensor


@gradient("BiasAdd", "BiasAddV1")
def bias_add_grad(op: Any, dy: Tensor) -> tuple[Tensor, Tensor]:
    """Pass the gradient to the value, and sum it over all dimensions except the channels for the bias."""
    layout = op.attr("data_format") if op.op == "BiasAdd" else "NHWC"
    return dy, apply_op("BiasAddGrad", dy, data_format=layout)


@gradient("BiasAddGrad")
def bias_add_grad_grad(op: Any, g: Tensor) -> Tensor:
    """Broadcast the gradient of each channel."""
    return apply_op("BiasAdd", apply_op("ZerosLike", op.inputs[0]), g, data_format=op.attr("data_format"))


def _scatter_to_indices(x: Tensor, indices: Tensor, dy: Tensor) -> Tensor:
    """Scatter gradients of selected elements to their indices in each row."""
    size = apply_op("Reshape", apply_op("StridedSlice", apply_op("Shape", x), [-1], [0], [1], end_mask=1), [])
    depth = apply_op("OneHot", indices, size, 1.0, 0.0)  # [.., k, size]
    return apply_op("Sum", apply_op("Cast", depth, DstT=dy.dtype) * apply_op("ExpandDims", dy, -1), [-2])


@gradient("TopK")
def top_k_grad(op: Any, dy: Tensor, _: Tensor) -> Tensor:
    """Scatter the gradient to the selected elements."""
    return _scatter_to_indices(op.inputs[0], op.outputs[1], dy)


@gradient("TopKV2")
def top_k_v2_grad(op: Any, dy: Tensor, _: Tensor) -> tuple[Tensor, None]:
    """Scatter the gradient to the selected elements."""
    indices = op.outputs[1]
    if indices.dtype.text == "int16":
        indices = apply_op("Cast", indices, DstT="int32")
    return _scatter_to_indices(op.inputs[0], indices, dy), None


@gradient("ApproxTopK")
def approximate_top_k_grad(op: Any, dy: Tensor, _: Any) -> Tensor:
    """Scatter the gradient to the selected elements along one dimension."""
    x, indices, rank = op.inputs[0], op.outputs[1], len(op.inputs[0].shape)
    axis = op.attr("reduction_dimension") % rank
    if axis == rank - 1:
        return _scatter_to_indices(x, indices, dy)
    order = list(range(rank))
    order[axis], order[-1] = order[-1], order[axis]  # its own inverse
    x, indices, dy = (apply_op("Transpose", t, order) for t in (x, indices, dy))
    return apply_op("Transpose", _scatter_to_indices(x, indices, dy), order)


no_gradient("InTopK", "InTopKV2", "DataFormatDimMap", "DataFormatVecPermute")
