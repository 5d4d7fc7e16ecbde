"""Derivatives of functions written with NumPy, emitted as HLO of the same program; imported on first use."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cyxla.lazy_attributes import lazy_attributes

if TYPE_CHECKING:
    from cyxla.numpy.gradient.api import grad, value_and_grad, vjp
    from cyxla.numpy.gradient.composites import composite
    from cyxla.numpy.gradient.custom_derivatives import checkpoint, custom_vjp, stop_gradient
    from cyxla.numpy.gradient.forward import jvp

__all__ = ["checkpoint", "composite", "custom_vjp", "grad", "jvp", "stop_gradient", "value_and_grad", "vjp"]

__getattr__ = lazy_attributes(__name__, {
    "checkpoint": ".custom_derivatives", "composite": ".composites", "custom_vjp": ".custom_derivatives",
    "grad": ".api", "jvp": ".forward", "stop_gradient": ".custom_derivatives", "value_and_grad": ".api", "vjp": ".api",
})  # fmt: skip
