"""Gradients of activations."""

from __future__ import annotations

from typing import Any

from cyxla.core.framework.apply import apply_op
from cyxla.core.framework.gradient import gradient
from cyxla.core.gradients.common import Tensor, unary_gradient


def _zeros(x: Tensor) -> Tensor:
    return apply_op("ZerosLike", x)


def _sum_classes(x: Tensor) -> Tensor:
    return apply_op("Sum", x, [-1], keep_dims=True)


# fmt: off
unary_gradient("Relu",       lambda x, y, dy: apply_op("ReluGrad", dy, y))
unary_gradient("Relu6",      lambda x, y, dy: apply_op("Relu6Grad", dy, y))
unary_gradient("Elu",        lambda x, y, dy: apply_op("EluGrad", dy, y))
unary_gradient("Selu",       lambda x, y, dy: apply_op("SeluGrad", dy, y))
unary_gradient("Softplus",   lambda x, y, dy: apply_op("SoftplusGrad", dy, x))
unary_gradient("Softsign",   lambda x, y, dy: apply_op("SoftsignGrad", dy, x))
unary_gradient("Softmax",    lambda x, y, dy: (dy - _sum_classes(dy * y)) * y)
unary_gradient("LogSoftmax", lambda x, y, dy: dy - _sum_classes(dy) * apply_op("Exp", y))
# fmt: on


@gradient("LeakyRelu")
def leaky_relu_grad(op: Any, dy: Tensor) -> Tensor:
    """Apply LeakyReluGrad."""
    return apply_op("LeakyReluGrad", dy, op.inputs[0], alpha=op.attr("alpha"))


# Second derivatives: gradients are linear in dy, and constant in the features of piecewise linear functions.
@gradient("ReluGrad", "Relu6Grad")
def relu_grad_grad(op: Any, g: Tensor) -> tuple[Tensor, Tensor]:
    """Apply the same op; the features get zeros."""
    x = op.inputs[1]
    return apply_op(op.op, g, x), _zeros(x)


@gradient("LeakyReluGrad")
def leaky_relu_grad_grad(op: Any, g: Tensor) -> tuple[Tensor, Tensor]:
    """Apply the same op; the features get zeros."""
    x = op.inputs[1]
    return apply_op("LeakyReluGrad", g, x, alpha=op.attr("alpha")), _zeros(x)


@gradient("EluGrad", "SeluGrad")
def exponential_grad_grad(op: Any, g: Tensor) -> tuple[Tensor, Tensor]:
    """Apply the same op; negative results depend on the features."""
    dy, y = op.inputs
    return apply_op(op.op, g, y), apply_op("SelectV2", apply_op("Less", y, _zeros(y)), g * dy, _zeros(y))


@gradient("SoftplusGrad")
def softplus_grad_grad(op: Any, g: Tensor) -> tuple[Tensor, Tensor]:
    """Apply the same op, and the derivative of the sigmoid."""
    dy, x = op.inputs
    return apply_op("SoftplusGrad", g, x), g * dy / (apply_op("Exp", -x) + 2.0 + apply_op("Exp", x))


@gradient("SoftsignGrad")
def softsign_grad_grad(op: Any, g: Tensor) -> tuple[Tensor, Tensor]:
    """Differentiate dy / (1 + |x|)^2 with respect to both operands."""
    dy, x = op.inputs
    size = apply_op("Abs", x) + 1.0
    return apply_op("SoftsignGrad", g, x), -2.0 * g * dy * apply_op("Sign", x) / (size * size * size)
