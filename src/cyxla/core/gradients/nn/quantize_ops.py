"""Gradients of quantisation, which pass straight through inside of the range."""

from __future__ import annotations

from typing import Any

from cyxla.core.framework.apply import apply_op
from cyxla.core.framework.gradient import gradient, no_gradient
from cyxla.core.gradients.common import Tensor


@gradient("FakeQuantWithMinMaxArgs")
def fake_quant_args_grad(op: Any, dy: Tensor) -> Tensor:
    """Nothing outside of the range."""
    attrs = {name: op.attr(name) for name in ("min", "max", "num_bits", "narrow_range")}
    return apply_op("FakeQuantWithMinMaxArgsGradient", dy, op.inputs[0], **attrs)


@gradient("FakeQuantWithMinMaxVars", "FakeQuantWithMinMaxVarsPerChannel")
def fake_quant_vars_grad(op: Any, dy: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """What lies outside of the range goes to its ends."""
    attrs = {name: op.attr(name) for name in ("num_bits", "narrow_range")}
    found: tuple[Tensor, Tensor, Tensor] = apply_op(op.op + "Gradient", dy, *op.inputs, **attrs)
    return found


@gradient("FakeQuantWithMinMaxArgsGradient")
def fake_quant_args_grad_grad(op: Any, g: Tensor) -> tuple[Tensor, None]:
    """It passes or stops what flows, whatever that is."""
    attrs = {name: op.attr(name) for name in ("min", "max", "num_bits", "narrow_range")}
    return apply_op(op.op, g, op.inputs[1], **attrs), None


no_gradient("Dequantize", "QuantizeV2", "QuantizedConv2D", "QuantizedMatMul", "Requantize")


@gradient("QuantizeAndDequantize", "QuantizeAndDequantizeV2", "QuantizeAndDequantizeV3")
def quantize_and_dequantize_grad(op: Any, dy: Tensor) -> tuple[Tensor | None, ...]:
    """As if nothing were rounded."""
    return dy, *[None] * (len(op.inputs) - 1)


@gradient("QuantizeAndDequantizeV4")
def quantize_and_dequantize_v4_grad(op: Any, dy: Tensor) -> tuple[Tensor, None, None]:
    """As if nothing were rounded, inside of the range that was given."""
    x, low, high = op.inputs
    axis = op.attr("axis")
    if not op.attr("range_given"):
        return dy, None, None
    if axis >= 0:
        shape = [-1 if d == axis else 1 for d in range(len(x.shape))]
        low, high = apply_op("Reshape", low, shape), apply_op("Reshape", high, shape)
    inside = apply_op("LogicalAnd", apply_op("GreaterEqual", x, low), apply_op("LessEqual", x, high))
    return apply_op("SelectV2", inside, dy, apply_op("ZerosLike", dy)), None, None
