"""Gradients of losses, whose kernels give the first gradient beside the loss."""

from __future__ import annotations

from typing import Any

from cyxla.core.framework.apply import apply_op
from cyxla.core.framework.gradient import gradient
from cyxla.core.gradients.common import Tensor, unbroadcast


def _by_row(rows: Tensor, x: Tensor) -> Tensor:
    return apply_op("ExpandDims", rows, -1) * x


def _of_backprop(logits: Tensor, g: Tensor) -> Tensor:
    """What the softmax inside of the first gradient adds."""
    odds = apply_op("Softmax", logits)
    return (g - apply_op("Sum", g * odds, [1], keep_dims=True)) * odds


@gradient("SoftmaxCrossEntropyWithLogits")
def cross_entropy_grad(op: Any, dloss: Tensor, dback: Tensor) -> tuple[Tensor, Tensor]:
    """Of the logits and, as they are probabilities, of the labels."""
    logits, labels = op.inputs
    dlogits = _by_row(dloss, op.outputs[1]) + _of_backprop(logits, dback)
    dlabels = -_by_row(dloss, apply_op("LogSoftmax", logits)) - dback
    return unbroadcast(logits, labels, dlogits, dlabels)


@gradient("SparseSoftmaxCrossEntropyWithLogits")
def sparse_cross_entropy_grad(op: Any, dloss: Tensor, dback: Tensor) -> tuple[Tensor, None]:
    """Of the logits alone."""
    return _by_row(dloss, op.outputs[1]) + _of_backprop(op.inputs[0], dback), None
