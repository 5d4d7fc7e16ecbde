"""Gradients of random ops: only gamma samples are differentiable."""

from __future__ import annotations

from typing import Any

from cyxla.core.framework.gradient import gradient, no_gradient
from cyxla.core.gradients.common import Tensor, gamma_gradient


@gradient("RandomGamma")
def random_gamma_grad(op: Any, dy: Tensor) -> tuple[None, Tensor]:
    """Differentiate the samples implicitly with respect to the shape parameter."""
    return None, gamma_gradient(op.inputs[1], op.outputs[0], dy)


no_gradient(
    "Multinomial", "ParameterizedTruncatedNormal", "RandomCrop", "RandomPoissonV2", "RandomShuffle",
    "RandomStandardNormal", "RandomUniform", "RandomUniformInt", "TruncatedNormal",
)  # fmt: skip
