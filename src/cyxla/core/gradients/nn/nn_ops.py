"""Gradients of biases and of the greatest of many."""

from __future__ import annotations

from typing import Any

from cyxla.core.framework.apply import apply_op
from cyxla.core.framework.gradient import gradient, no_gradient
from cyxla.core.gradients.common import Tensor


@gradient("BiasAdd", "BiasAddV1")
def bias_add_grad(op: Any, dy: Tensor) -> tuple[Tensor, Tensor]:
    """All to the value; its sums over all but the channels to the bias."""
    layout = op.attr("data_format") if op.op == "BiasAdd" else "NHWC"
    return dy, apply_op("BiasAddGrad", dy, data_format=layout)


@gradient("BiasAddGrad")
def bias_add_grad_grad(op: Any, g: Tensor) -> Tensor:
    """Each channel's to all of its elements."""
    return apply_op("BiasAdd", apply_op("ZerosLike", op.inputs[0]), g, data_format=op.attr("data_format"))


def _to_places(x: Tensor, places: Tensor, dy: Tensor) -> Tensor:
    """Gradients of the chosen elements of each row, put where they were."""
    size = apply_op("Reshape", apply_op("StridedSlice", apply_op("Shape", x), [-1], [0], [1], end_mask=1), [])
    depth = apply_op("OneHot", places, size, 1.0, 0.0)  # [.., k, size]
    return apply_op("Sum", apply_op("Cast", depth, DstT=dy.dtype) * apply_op("ExpandDims", dy, -1), [-2])


@gradient("TopK")
def top_k_grad(op: Any, dy: Tensor, _: Tensor) -> Tensor:
    """To the elements that were chosen."""
    return _to_places(op.inputs[0], op.outputs[1], dy)


@gradient("TopKV2")
def top_k_v2_grad(op: Any, dy: Tensor, _: Tensor) -> tuple[Tensor, None]:
    """To the elements that were chosen."""
    places = op.outputs[1]
    if places.dtype.text == "int16":
        places = apply_op("Cast", places, DstT="int32")
    return _to_places(op.inputs[0], places, dy), None


@gradient("ApproxTopK")
def approximate_top_k_grad(op: Any, dy: Tensor, _: Any) -> Tensor:
    """To the elements that were chosen, along one dimension."""
    x, places, rank = op.inputs[0], op.outputs[1], len(op.inputs[0].shape)
    axis = op.attr("reduction_dimension") % rank
    if axis == rank - 1:
        return _to_places(x, places, dy)
    order = list(range(rank))
    order[axis], order[-1] = order[-1], order[axis]  # its own inverse
    x, places, dy = (apply_op("Transpose", t, order) for t in (x, places, dy))
    return apply_op("Transpose", _to_places(x, places, dy), order)


no_gradient("InTopK", "InTopKV2", "DataFormatDimMap", "DataFormatVecPermute")
