"""Gradients of convolutions: of input, filter and result, each is linear in the two others."""

from __future__ import annotations

from typing import Any

from cyxla.core.framework.apply import apply_op
from cyxla.core.framework.gradient import gradient
from cyxla.core.gradients.common import Tensor

_2D = ("strides", "padding", "explicit_paddings", "data_format", "dilations")
_3D = ("strides", "padding", "data_format", "dilations")


def _family(forward: str, by_input: str, by_filter: str, names: tuple[str, ...]) -> None:
    def geometry(op: Any) -> dict[str, Any]:
        return {name: op.attr(name) for name in names}

    @gradient(forward)
    def of_result(op: Any, dy: Tensor) -> tuple[Tensor, Tensor]:
        x, w = op.inputs
        dx = apply_op(by_input, apply_op("Shape", x), w, dy, **geometry(op))
        return dx, apply_op(by_filter, x, apply_op("Shape", w), dy, **geometry(op))

    @gradient(by_input)
    def of_input_gradient(op: Any, g: Tensor) -> tuple[None, Tensor, Tensor]:
        _, w, dy = op.inputs
        dw = apply_op(by_filter, g, apply_op("Shape", w), dy, **geometry(op))
        return None, dw, apply_op(forward, g, w, **geometry(op))

    @gradient(by_filter)
    def of_filter_gradient(op: Any, g: Tensor) -> tuple[Tensor, None, Tensor]:
        x, _, dy = op.inputs
        dx = apply_op(by_input, apply_op("Shape", x), g, dy, **geometry(op))
        return dx, None, apply_op(forward, x, g, **geometry(op))


_family("Conv2D", "Conv2DBackpropInput", "Conv2DBackpropFilter", _2D)
_family("Conv3D", "Conv3DBackpropInputV2", "Conv3DBackpropFilterV2", _3D)
_family("DepthwiseConv2dNative", "DepthwiseConv2dNativeBackpropInput", "DepthwiseConv2dNativeBackpropFilter", _2D)
