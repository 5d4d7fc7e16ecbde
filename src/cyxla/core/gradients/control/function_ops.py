"""Gradients of conversions at function boundaries."""

from __future__ import annotations

from typing import Any

from cyxla.core.framework.gradient import gradient, no_gradient
from cyxla.core.gradients.common import Tensor


@gradient("_ArrayToList", "_ListToArray", none_grads=True)
def list_grad(op: Any, *grads: Tensor | None) -> list[Tensor | None]:
    """Pass each gradient to the input of the same index."""
    return list(grads)


@gradient("_EagerConst")
def eager_const_grad(op: Any, dy: Tensor) -> Tensor:
    """Pass the gradient unchanged."""
    return dy


no_gradient("_Arg", "_DeviceArg", "_DeviceRetval", "_Retval", "DeviceIndex", "FakeParam")
