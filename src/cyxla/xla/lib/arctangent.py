"""The inverse tangent, which is no opcode."""

from __future__ import annotations

from cyxla.xla.hlo.builder import XlaOp
from cyxla.xla.hlo.builder import functions as xla
from cyxla.xla.lib.values import full_like


def atan(x: XlaOp) -> XlaOp:
    """The number whose tangent is given; of complex ones, atanh a quarter turn before and after it."""
    if not x.shape.dtype.is_complex:
        return xla.atan2(x, full_like(x, 1))
    turned = xla.atanh(xla.complex_(-xla.imag(x), xla.real(x)))
    return xla.complex_(xla.imag(turned), -xla.real(turned))
