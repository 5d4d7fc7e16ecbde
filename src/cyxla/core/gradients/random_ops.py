"""Gradients of random ops: only gamma samples are differentiable."""

from __future__ import annotations

from typing import Any

from cyxla.core.framework.apply import apply_op
from cyxla.core.framework.gradient import gradient, no_gradient
from cyxla.core.gradients.common import Tensor, unbroadcast


def gamma_gradient(alpha: Tensor, sample: Tensor, dy: Tensor) -> Tensor:
    """Return the gradient of the shape parameters of gamma samples, whose shape ends with that of the parameters."""
    derivatives = apply_op("RandomGammaGrad", apply_op("BroadcastTo", alpha, apply_op("Shape", sample)), sample)
    return unbroadcast(alpha, sample, dy * derivatives, None)[0]


@gradient("RandomGamma")
def random_gamma_grad(op: Any, dy: Tensor) -> tuple[None, Tensor]:
    """Differentiate the samples implicitly with respect to the shape parameter."""
    return None, gamma_gradient(op.inputs[1], op.outputs[0], dy)


no_gradient(
    "Multinomial", "ParameterizedTruncatedNormal", "RandomCrop", "RandomPoissonV2", "RandomShuffle",
    "RandomStandardNormal", "RandomUniform", "RandomUniformInt", "TruncatedNormal",
)  # fmt: skip
