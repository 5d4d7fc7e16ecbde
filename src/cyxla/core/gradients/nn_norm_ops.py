"""Gradients of normalisation."""

from __future__ import annotations

from typing import Any

from cyxla.core.framework.apply import apply_op
from cyxla.core.framework.gradient import gradient
from cyxla.core.gradients.common import Tensor

_BACKWARD = {
    "FusedBatchNorm": "FusedBatchNormGrad",
    "FusedBatchNormV2": "FusedBatchNormGradV2",
    "FusedBatchNormV3": "FusedBatchNormGradV3",
}


@gradient(*_BACKWARD)
def batch_norm_grad(op: Any, dy: Tensor, *_: Tensor) -> tuple[Tensor, Tensor, Tensor, None, None]:
    """By the mean and variance of the batch in training, else by those that were given."""
    x, scale, _, mean, variance = op.inputs
    training = op.attr("is_training")
    if training:
        mean, variance = op.outputs[3], op.outputs[4]
    more = (op.outputs[5],) if op.op == "FusedBatchNormV3" else ()
    attrs = {name: op.attr(name) for name in ("epsilon", "data_format")}
    backward = _BACKWARD[op.op]
    found = apply_op(backward, dy, x, scale, mean, variance, *more, is_training=training, **attrs)
    return found[0], found[1], found[2], None, None


@gradient("LRN")
def lrn_grad(op: Any, dy: Tensor) -> Tensor:
    """Each channel answers for its neighbours too."""
    attrs = {name: op.attr(name) for name in ("depth_radius", "bias", "alpha", "beta")}
    return apply_op("LRNGrad", dy, op.inputs[0], op.outputs[0], **attrs)
