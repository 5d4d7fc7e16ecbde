"""Inverse circular and hyperbolic functions of complex numbers whose squares are no floats, and beside their poles.

Far from 0 all of them are logarithms: asinh(z) is log(2 z), and its parts are the logarithm of the size and the angle.
Nearer to it they are those of `cyxla.xla.lib.complex_inverse`. Infinite parts and nan are as C99's Annex G says.
"""

from __future__ import annotations

from collections.abc import Callable
from math import log, pi

import numpy as np

from cyxla.numpy.ufuncs.emitting import BIAS, full
from cyxla.numpy.ufuncs.floats import copysign, is_inf, is_nan
from cyxla.xla.hlo.builder import XlaOp
from cyxla.xla.hlo.builder import functions as xla
from cyxla.xla.lib import complex_inverse

Parts = tuple[XlaOp, XlaOp]


def _either(test: Callable[[XlaOp], XlaOp], re: XlaOp, im: XlaOp) -> XlaOp:
    return xla.or_(test(re), test(im))


def _is_far(x: XlaOp) -> XlaOp:
    """Whether the square of a number may be too large for a float."""
    return xla.gt(xla.abs_(x), full(x, 2.0 ** (BIAS[x.shape.dtype] // 2 - 2)))


def _size(re: XlaOp, im: XlaOp) -> XlaOp:
    """log|2 z| of numbers of which a part is huge."""
    a, b = xla.abs_(re), xla.abs_(im)
    long, ratio = xla.maximum(a, b), xla.minimum(a, b) / xla.maximum(a, b)
    found = xla.log(long) + full(re, log(2)) + full(re, 0.5) * xla.log_plus_one(ratio * ratio)
    return xla.select(_either(is_inf, re, im), full(re, np.inf), found)


def _joined(z: XlaOp, near: Callable[[XlaOp], XlaOp], far: Callable[[XlaOp, XlaOp], Parts]) -> XlaOp:
    """One of two ways for each number; the near one is not shown the others."""
    re, im = xla.real(z), xla.imag(z)
    huge = _either(_is_far, re, im)
    return xla.select(huge, xla.complex_(*far(re, im)), near(xla.select(huge, full(z, 0.5), z)))


def asinh(z: XlaOp) -> XlaOp:
    """The number whose hyperbolic sine z is."""

    def far(re: XlaOp, im: XlaOp) -> Parts:
        return copysign(_size(re, im), re), xla.atan2(im, xla.abs_(re))

    made, im = _joined(z, complex_inverse.asinh, far), xla.imag(z)
    return xla.complex_(xla.real(made), xla.select(xla.eq(im, full(im, 0)), im, xla.imag(made)))


def asin(z: XlaOp) -> XlaOp:
    """The number whose sine z is: the other function, a quarter turn before and after it."""
    turned = asinh(xla.complex_(-xla.imag(z), xla.real(z)))
    return xla.complex_(xla.imag(turned), -xla.real(turned))


def acos(z: XlaOp) -> XlaOp:
    """The number whose cosine z is."""

    def far(re: XlaOp, im: XlaOp) -> Parts:
        return xla.atan2(xla.abs_(im), re), -copysign(_size(re, im), im)

    made, (re, im) = _joined(z, complex_inverse.acos, far), (xla.real(z), xla.imag(z))
    quarter = xla.and_(xla.eq(re, full(re, 0)), is_nan(im))
    return xla.complex_(xla.select(quarter, full(re, pi / 2), xla.real(made)), xla.imag(made))


def acosh(z: XlaOp) -> XlaOp:
    """The number whose hyperbolic cosine z is."""
    made, re = _joined(z, complex_inverse.acosh, lambda re, im: (_size(re, im), xla.atan2(im, re))), xla.real(z)
    quarter = xla.and_(xla.eq(re, full(re, 0)), is_nan(xla.imag(z)))
    return xla.complex_(xla.real(made), xla.select(quarter, full(re, pi / 2), xla.imag(made)))


def atanh(z: XlaOp) -> XlaOp:
    """The number whose hyperbolic tangent z is: far from 0 the inverse of z, and a quarter turn."""

    def far(re: XlaOp, im: XlaOp) -> Parts:
        long = xla.maximum(xla.abs_(re), xla.abs_(im))
        a, b = re / long, im / long
        found = xla.select(_either(is_inf, re, im), copysign(full(re, 0), re), a / (a * a + b * b) / long)
        unknown = xla.or_(is_nan(im), xla.and_(is_nan(re), xla.not_(is_inf(im))))
        return found, xla.select(unknown, full(im, np.nan), copysign(full(re, pi / 2), im))

    made, (re, im) = _joined(z, complex_inverse.atanh, far), (xla.real(z), xla.imag(z))
    tiny = full(im, 2.0 ** -(BIAS[im.shape.dtype] // 3))
    beside = xla.and_(xla.eq(xla.abs_(re), full(re, 1)), xla.lt(xla.abs_(im), tiny))
    pole = copysign(full(re, 0.5) * (full(re, log(2)) - xla.log(xla.abs_(im))), re)
    along = xla.select(xla.eq(re, full(re, 0)), re, xla.select(beside, pole, xla.real(made)))
    return xla.complex_(along, xla.imag(made))


def atan(z: XlaOp) -> XlaOp:
    """The number whose tangent z is: the hyperbolic function, a quarter turn before and after it."""
    turned = atanh(xla.complex_(-xla.imag(z), xla.real(z)))
    return xla.complex_(xla.imag(turned), -xla.real(turned))
