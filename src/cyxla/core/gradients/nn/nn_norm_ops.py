"""Gradients of normalisation."""

from __future__ import annotations

from typing import Any

from cyxla.core.framework.apply import apply_op
from cyxla.core.framework.gradient import gradient
from cyxla.core.gradients.common import Tensor, cast_like

_BACKWARD = {
    "FusedBatchNorm": "FusedBatchNormGrad",
    "FusedBatchNormV2": "FusedBatchNormGradV2",
    "FusedBatchNormV3": "FusedBatchNormGradV3",
}


@gradient(*_BACKWARD)
def batch_norm_grad(op: Any, dy: Tensor, *_: Tensor) -> tuple[Tensor, Tensor, Tensor, None, None]:
    """Use the batch statistics in training, else the given mean and variance."""
    x, scale, _, mean, variance = op.inputs
    training = op.attr("is_training")
    if training:
        mean, variance = op.outputs[3], op.outputs[4]
    extra_inputs = (op.outputs[5],) if op.op == "FusedBatchNormV3" else ()
    attrs = {name: op.attr(name) for name in ("epsilon", "data_format")}
    backward = _BACKWARD[op.op]
    grads = apply_op(backward, dy, x, scale, mean, variance, *extra_inputs, is_training=training, **attrs)
    return grads[0], grads[1], grads[2], None, None


# Second derivatives ---------------------------------------------------------------------------------------------------
class _Channels:
    """Sums and broadcasts per channel of a batch."""

    def __init__(self, data_format: str) -> None:
        channel = data_format.index("C")
        self.axes = [d for d in range(len(data_format)) if d != channel]
        self._broadcast_dims = [-1 if d == channel else 1 for d in range(len(data_format))]

    def broadcast(self, vector: Tensor) -> Tensor:
        """Reshape a vector of channels to broadcast over the batch."""
        return apply_op("Reshape", vector, self._broadcast_dims)

    def sum(self, x: Tensor) -> Tensor:
        """Sum over all dimensions except the channels."""
        return apply_op("Sum", x, self.axes)

    def mean(self, x: Tensor) -> Tensor:
        """Average over all dimensions except the channels, keeping dimensions."""
        return apply_op("Mean", x, self.axes, keep_dims=True)


@gradient(*_BACKWARD.values())
def batch_norm_grad_grad(op: Any, g: Tensor, g_scale: Tensor, g_offset: Tensor, *_: Any) -> list[Tensor | None]:
    """Differentiate dx = scale r (dy - mean(dy) - n mean(dy n)), dscale = sum(dy n), doffset = sum(dy).

    Here n = (x - mean) r is the normalised batch, and r = 1 / sqrt(variance + epsilon). Outside of training the two
    means of dy are absent, and mean and variance are constants.
    """
    dy, x, scale, mean, variance = op.inputs[:5]
    of = _Channels(op.attr("data_format"))
    u, wide, g = (cast_like(t, scale) for t in (dy, x, g))
    r = of.broadcast(apply_op("Rsqrt", variance + op.attr("epsilon")))
    n = (wide - of.broadcast(mean)) * r
    a, b, gamma = of.broadcast(g_scale), of.broadcast(g_offset), of.broadcast(scale)
    gradients_of = _training_gradients if op.attr("is_training") else _inference_gradients
    to_dy, to_x, to_scale = gradients_of(of, u, g, n, r, gamma, a)
    grads = [cast_like(to_dy + b, dy), cast_like(to_x, x), to_scale]
    return grads + [None] * (len(op.inputs) - 3)


def _inference_gradients(
    of: _Channels, u: Tensor, g: Tensor, n: Tensor, r: Tensor, gamma: Tensor, a: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    return gamma * r * g + a * n, a * u * r, of.sum(r * g * u)


def _training_gradients(
    of: _Channels, u: Tensor, g: Tensor, n: Tensor, r: Tensor, gamma: Tensor, a: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    mean_gn, mean_un = of.mean(g * n), of.mean(u * n)
    free = g - of.mean(g) - n * mean_gn
    to_dy = gamma * r * free + a * n
    product = free * u  # summed over the batch: the inner product of g and the bracket in dx
    to_n = a * u - gamma * r * (u * mean_gn + g * mean_un)
    through_n = r * (to_n - of.mean(to_n) - n * of.mean(to_n * n))
    to_x = through_n - gamma * r * r * n * of.mean(product)
    return to_dy, to_x, of.sum(r * product)


# Others ---------------------------------------------------------------------------------------------------------------
@gradient("BatchNormWithGlobalNormalization")
def global_norm_grad(op: Any, dy: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor]:
    """Differentiate (t - m) gamma / sqrt(v + epsilon) + beta, with channels last."""
    t, m, v, _, gamma = op.inputs
    of = _Channels("NHWC")
    r = apply_op("Rsqrt", v + op.attr("variance_epsilon"))
    scaled = op.attr("scale_after_normalization")
    factor = r * gamma if scaled else r
    dt = dy * factor
    centred = t - m
    dv = of.sum(dt * centred) * (r * r * -0.5)
    dgamma = of.sum(dy * centred) * r if scaled else apply_op("ZerosLike", gamma)
    return dt, -of.sum(dt), dv, of.sum(dy), dgamma


@gradient("LRN")
def lrn_grad(op: Any, dy: Tensor) -> Tensor:
    """Apply LRNGrad."""
    attrs = {name: op.attr(name) for name in ("depth_radius", "bias", "alpha", "beta")}
    return apply_op("LRNGrad", dy, op.inputs[0], op.outputs[0], **attrs)
