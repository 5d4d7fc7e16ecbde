"""Inverse circular and hyperbolic functions of complex numbers, by real functions of their parts.

W. Kahan, "Branch cuts for complex elementary functions, or much ado about nothing's sign bit", 1987. Infinite parts are
replaced by huge ones, which leaves the angles as they are, and the logarithms are set right afterwards.
"""

from __future__ import annotations

import numpy as np

from cyxla.xla.hlo.builder import XlaOp
from cyxla.xla.hlo.builder import functions as xla
from cyxla.xla.lib.values import full_like, highest


def _parts(z: XlaOp) -> tuple[XlaOp, XlaOp]:
    return xla.real(z), xla.imag(z)


def _capped(z: XlaOp, root: bool = False) -> XlaOp:
    """Infinite parts as huge ones; with `root`, such that their squares are finite."""
    re, im = _parts(z)
    most = highest(re)
    limit = xla.multiply(xla.sqrt(most) if root else most, xla.constant(re.builder, 0.125, re.shape.dtype))

    def held(x: XlaOp) -> XlaOp:
        huge = xla.multiply(xla.sign(x), xla.broadcast(limit, x.shape.dims))
        return xla.select(_is_inf(x), huge, x)

    return xla.complex_(held(re), held(im))


def _is_inf(x: XlaOp) -> XlaOp:
    return xla.eq(xla.abs_(x), full_like(x, np.inf))


def _endless(z: XlaOp) -> XlaOp:
    """Whether a part is infinite."""
    return xla.or_(_is_inf(xla.real(z)), _is_inf(xla.imag(z)))


def _signed(size: float, sign: XlaOp) -> XlaOp:
    """A number with the sign of another, of zeros too."""
    angle = xla.atan2(sign, full_like(sign, -1))
    return xla.select(xla.lt(angle, full_like(sign, 0)), full_like(sign, -size), full_like(sign, size))


def _roots(z: XlaOp) -> tuple[XlaOp, XlaOp]:
    """The square roots of 1 - z and of 1 + z, on the right sides of their cuts."""
    re, im = _parts(z)
    one = full_like(re, 1)
    return xla.sqrt(xla.complex_(one - re, -im)), xla.sqrt(xla.complex_(one + re, im))


def _crossed(a: XlaOp, b: XlaOp) -> XlaOp:
    """The imaginary part of conj(a) * b."""
    return xla.real(a) * xla.imag(b) - xla.imag(a) * xla.real(b)


def asin(z: XlaOp) -> XlaOp:
    """The number whose sine z is."""
    held = _capped(z)
    below, above = _roots(held)
    product = xla.real(below) * xla.real(above) - xla.imag(below) * xla.imag(above)
    size = xla.asinh(_crossed(below, above))
    size = xla.select(_endless(z), _signed(np.inf, xla.imag(z)), size)
    return xla.complex_(xla.atan2(xla.real(held), product), size)


def acos(z: XlaOp) -> XlaOp:
    """The number whose cosine z is."""
    below, above = _roots(_capped(z))
    half = xla.atan2(xla.real(below), xla.real(above))
    size = xla.asinh(_crossed(above, below))
    return xla.complex_(half + half, xla.select(_endless(z), _signed(np.inf, -xla.imag(z)), size))


def acosh(z: XlaOp) -> XlaOp:
    """The number whose hyperbolic cosine z is."""
    re, im = _parts(_capped(z))
    one = full_like(re, 1)
    below, above = (xla.sqrt(xla.complex_(part, im)) for part in (re - one, re + one))
    half = xla.atan2(xla.imag(below), xla.real(above))
    along = xla.asinh(xla.real(below) * xla.real(above) + xla.imag(below) * xla.imag(above))
    return xla.complex_(xla.select(_endless(z), full_like(along, np.inf), along), half + half)


def asinh(z: XlaOp) -> XlaOp:
    """The number whose hyperbolic sine z is: the other function, a quarter turn before and after it."""
    turned = asin(xla.complex_(-xla.imag(z), xla.real(z)))
    return xla.complex_(xla.imag(turned), -xla.real(turned))


def atanh(z: XlaOp) -> XlaOp:
    """The number whose hyperbolic tangent z is."""
    re, im = _parts(_capped(z, root=True))
    one, quarter, half = (full_like(re, n) for n in (1, 0.25, 0.5))
    size = xla.abs_(re)
    apart = (one - size) * (one - size) + im * im
    along = quarter * xla.log_plus_one(full_like(re, 4) * size / apart)
    along = xla.select(_endless(z), full_like(re, 0), along)
    angle = xla.atan2(im + im, (one - re) * (one + re) - im * im)
    negative = xla.lt(_signed(1, re), full_like(re, 0))
    return xla.complex_(xla.select(negative, -along, along), half * angle)


def atan(z: XlaOp) -> XlaOp:
    """The number whose tangent z is: the hyperbolic function, a quarter turn before and after it."""
    turned = atanh(xla.complex_(-xla.imag(z), xla.real(z)))
    return xla.complex_(xla.imag(turned), -xla.real(turned))
