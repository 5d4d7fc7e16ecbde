"""Derivatives of functions written with NumPy, emitted as HLO of the same program."""

from cyxla.numpy.gradient.api import grad, value_and_grad, vjp
from cyxla.numpy.gradient.composites import composite
from cyxla.numpy.gradient.custom_derivatives import checkpoint, custom_vjp, stop_gradient
from cyxla.numpy.gradient.forward import jvp

__all__ = ["checkpoint", "composite", "custom_vjp", "grad", "jvp", "stop_gradient", "value_and_grad", "vjp"]
