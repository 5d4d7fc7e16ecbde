"""Gradients of checks and printing."""

from __future__ import annotations

from typing import Any

from cyxla.core.framework.apply import apply_op
from cyxla.core.framework.gradient import gradient, no_gradient
from cyxla.core.gradients.common import Tensor


@gradient("CheckNumerics")
def check_numerics_grad(op: Any, dy: Tensor) -> Tensor:
    """Check the gradient, too."""
    return apply_op("CheckNumerics", dy, message=f"in what flows back to '{op.name}'")


@gradient("Print")
def print_grad(op: Any, dy: Tensor) -> list[Any]:
    """Pass the gradient unchanged."""
    return [dy, *[None] * (len(op.inputs) - 1)]


no_gradient("Assert", "PrintV2", "Timestamp")
