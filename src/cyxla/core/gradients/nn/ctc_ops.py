"""Gradient of connectionist temporal classification, which is an output of the op."""

from __future__ import annotations

from typing import Any

from cyxla.core.framework.apply import apply_op
from cyxla.core.framework.gradient import gradient
from cyxla.core.gradients.common import Tensor


@gradient("CTCLoss")
def ctc_loss_grad(op: Any, dloss: Tensor, _: Any) -> tuple[Tensor, None, None, None]:
    """Scale the second output, which is itself not differentiable."""
    dlogits = apply_op("PreventGradient", op.outputs[1], message="CTCLoss has no second derivative; use StopGradient")
    weight = apply_op("ExpandDims", apply_op("ExpandDims", dloss, 0), -1)
    return dlogits * weight, None, None, None
