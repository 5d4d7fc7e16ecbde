"""Gradients of random ops: only a gamma distribution's shape can be moved smoothly."""

from __future__ import annotations

from typing import Any

from cyxla.core.framework.apply import apply_op
from cyxla.core.framework.gradient import gradient, no_gradient
from cyxla.core.gradients.common import Tensor, unbroadcast


def gamma_slopes(alpha: Tensor, sample: Tensor, dy: Tensor) -> Tensor:
    """What samples say about the parameters they were drawn with, whose shape their own ends with."""
    slopes = apply_op("RandomGammaGrad", apply_op("BroadcastTo", alpha, apply_op("Shape", sample)), sample)
    return unbroadcast(alpha, sample, dy * slopes, None)[0]


@gradient("RandomGamma")
def random_gamma_grad(op: Any, dy: Tensor) -> tuple[None, Tensor]:
    """By moving the sample as its distribution moves."""
    return None, gamma_slopes(op.inputs[1], op.outputs[0], dy)


no_gradient(
    "Multinomial", "ParameterizedTruncatedNormal", "RandomCrop", "RandomPoissonV2", "RandomShuffle",
    "RandomStandardNormal", "RandomUniform", "RandomUniformInt", "TruncatedNormal",
)  # fmt: skip
