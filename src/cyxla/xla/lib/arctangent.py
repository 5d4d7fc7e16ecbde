"""The arctangent of one argument, which has no opcode."""

from __future__ import annotations

from cyxla.xla.hlo.builder import XlaOp
from cyxla.xla.hlo.builder import functions as xla
from cyxla.xla.lib.values import full_like


def atan(x: XlaOp) -> XlaOp:
    """Return the arctangent; of a complex x it is ``-i atanh(i x)``."""
    if not x.shape.dtype.is_complex:
        return xla.atan2(x, full_like(x, 1))
    rotated = xla.atanh(xla.complex_(-xla.imag(x), xla.real(x)))
    return xla.complex_(xla.imag(rotated), -xla.real(rotated))
