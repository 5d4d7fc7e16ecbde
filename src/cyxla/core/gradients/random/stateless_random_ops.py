"""Gradients of stateless random ops."""

from __future__ import annotations

from typing import Any

from cyxla.core.framework.gradient import gradient, no_gradient
from cyxla.core.gradients.common import Tensor, gamma_gradient


@gradient("StatelessRandomGammaV2")
def stateless_random_gamma_v2_grad(op: Any, dy: Tensor) -> tuple[None, None, Tensor]:
    """Differentiate the samples implicitly with respect to the shape parameter."""
    return None, None, gamma_gradient(op.inputs[2], op.outputs[0], dy)


@gradient("StatelessRandomGammaV3")
def stateless_random_gamma_v3_grad(op: Any, dy: Tensor) -> tuple[None, None, None, None, Tensor]:
    """Differentiate the samples implicitly with respect to the shape parameter."""
    return None, None, None, None, gamma_gradient(op.inputs[4], op.outputs[0], dy)


no_gradient(
    "StatelessMultinomial", "StatelessParameterizedTruncatedNormal", "StatelessRandomBinomial", "StatelessRandomGetAlg",
    "StatelessRandomGetKeyCounter", "StatelessRandomGetKeyCounterAlg", "StatelessRandomNormal",
    "StatelessRandomNormalV2", "StatelessRandomUniform", "StatelessRandomUniformFullInt",
    "StatelessRandomUniformFullIntV2", "StatelessRandomUniformInt", "StatelessRandomUniformIntV2",
    "StatelessRandomUniformV2", "StatelessTruncatedNormal", "StatelessTruncatedNormalV2",
)  # fmt: skip
