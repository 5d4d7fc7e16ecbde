"""Gradients of losses, whose kernels also output the first derivative."""

from __future__ import annotations

from typing import Any

from cyxla.core.framework.apply import apply_op
from cyxla.core.framework.gradient import gradient
from cyxla.core.gradients.common import Tensor, unbroadcast


def _scale_rows(rows: Tensor, x: Tensor) -> Tensor:
    return apply_op("ExpandDims", rows, -1) * x


def _softmax_gradient(logits: Tensor, g: Tensor) -> Tensor:
    """Return the gradient through the softmax of the second output."""
    probabilities = apply_op("Softmax", logits)
    return (g - apply_op("Sum", g * probabilities, [1], keep_dims=True)) * probabilities


@gradient("SoftmaxCrossEntropyWithLogits")
def cross_entropy_grad(op: Any, dloss: Tensor, dback: Tensor) -> tuple[Tensor, Tensor]:
    """Return the gradients of logits and labels."""
    logits, labels = op.inputs
    dlogits = _scale_rows(dloss, op.outputs[1]) + _softmax_gradient(logits, dback)
    dlabels = -_scale_rows(dloss, apply_op("LogSoftmax", logits)) - dback
    return unbroadcast(logits, labels, dlogits, dlabels)


@gradient("SparseSoftmaxCrossEntropyWithLogits")
def sparse_cross_entropy_grad(op: Any, dloss: Tensor, dback: Tensor) -> tuple[Tensor, None]:
    """Return the gradient of the logits."""
    return _scale_rows(dloss, op.outputs[1]) + _softmax_gradient(op.inputs[0], dback), None
