"""Gradients of quantisation by the straight-through estimator."""

from __future__ import annotations

from typing import Any

from cyxla.core.framework.apply import apply_op
from cyxla.core.framework.gradient import gradient, no_gradient
from cyxla.core.gradients.common import Tensor


@gradient("FakeQuantWithMinMaxArgs")
def fake_quant_args_grad(op: Any, dy: Tensor) -> Tensor:
    """Pass the gradient within the range."""
    attrs = {name: op.attr(name) for name in ("min", "max", "num_bits", "narrow_range")}
    return apply_op("FakeQuantWithMinMaxArgsGradient", dy, op.inputs[0], **attrs)


@gradient("FakeQuantWithMinMaxVars", "FakeQuantWithMinMaxVarsPerChannel")
def fake_quant_vars_grad(op: Any, dy: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Pass the gradient within the range; the bounds get the gradient of values beyond them."""
    attrs = {name: op.attr(name) for name in ("num_bits", "narrow_range")}
    grads: tuple[Tensor, Tensor, Tensor] = apply_op(op.op + "Gradient", dy, *op.inputs, **attrs)
    return grads


@gradient("FakeQuantWithMinMaxArgsGradient")
def fake_quant_args_grad_grad(op: Any, g: Tensor) -> tuple[Tensor, None]:
    """Mask the gradient by the range."""
    attrs = {name: op.attr(name) for name in ("min", "max", "num_bits", "narrow_range")}
    return apply_op(op.op, g, op.inputs[1], **attrs), None


no_gradient("Dequantize", "QuantizeV2", "QuantizedConv2D", "QuantizedMatMul", "Requantize")


@gradient("QuantizeAndDequantize", "QuantizeAndDequantizeV2", "QuantizeAndDequantizeV3")
def quantize_and_dequantize_grad(op: Any, dy: Tensor) -> tuple[Tensor | None, ...]:
    """Pass the gradient unchanged."""
    return dy, *[None] * (len(op.inputs) - 1)


@gradient("QuantizeAndDequantizeV4")
def quantize_and_dequantize_v4_grad(op: Any, dy: Tensor) -> tuple[Tensor, None, None]:
    """Pass the gradient within the range, if one was given."""
    x, low, high = op.inputs
    axis = op.attr("axis")
    if not op.attr("range_given"):
        return dy, None, None
    if axis >= 0:
        shape = [-1 if d == axis else 1 for d in range(len(x.shape))]
        low, high = apply_op("Reshape", low, shape), apply_op("Reshape", high, shape)
    inside = apply_op("LogicalAnd", apply_op("GreaterEqual", x, low), apply_op("LessEqual", x, high))
    return apply_op("SelectV2", inside, dy, apply_op("ZerosLike", dy)), None, None
