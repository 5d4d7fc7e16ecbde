"""Special functions of one number in HLO: series of fixed length, each branch computed and one of them chosen."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import log, pi, sqrt
from typing import Any

import numpy as np

from cyxla.types import ElementType
from cyxla.xla.hlo.builder import XlaOp
from cyxla.xla.hlo.builder import functions as xla
from cyxla.xla.lib import special_tables as tables
from cyxla.xla.lib.values import epsilon, full_like, select


def in_f64(function: Callable[..., XlaOp]) -> Callable[..., XlaOp]:
    """The function computed in f64, and rounded back: for what loses digits on its way."""

    def wrapped(*operands: XlaOp, **attrs: Any) -> XlaOp:
        dtype = operands[0].shape.dtype
        if dtype is ElementType.F64:
            return function(*operands, **attrs)
        return xla.convert(function(*(xla.convert(x, ElementType.F64) for x in operands), **attrs), dtype)

    return wrapped


def of(x: XlaOp, value: Any) -> XlaOp:
    """A number repeated to the type and shape of another value."""
    return full_like(x, value)


def chebyshev(x: XlaOp, terms: Sequence[float]) -> XlaOp:
    """Chebyshev's series at x in [-1, 1] by Clenshaw's rule, as many terms as the type can tell."""
    least = epsilon(x) / 32 * max(map(abs, terms))  # where a sum ends in 1, as I0(0), what is left out must not show
    kept = [*terms]
    while abs(kept[-1]) < least:
        kept.pop()
    twice = x + x
    after = last = of(x, 0)
    for term in reversed(kept[1:]):
        after, last = last, twice * last - after + of(x, term)
    return x * last - after + of(x, kept[0])


def _scaled(x: XlaOp, low: float, high: float) -> XlaOp:
    """The interval moved to [-1, 1]; numbers outside of it to the nearer end."""
    held = xla.minimum(xla.maximum(x, of(x, low)), of(x, high))
    return (held - of(x, (low + high) / 2)) * of(x, 2 / (high - low))


def polynomial(x: XlaOp, terms: Sequence[float]) -> XlaOp:
    """A polynomial by Horner's rule, the constant first."""
    found = of(x, terms[-1])
    for term in reversed(terms[:-1]):
        found = found * x + of(x, term)
    return found


def is_whole(x: XlaOp) -> XlaOp:
    """Whether a number is whole, or infinite."""
    return xla.eq(x, xla.floor(x))


def next_after(x: XlaOp, y: XlaOp) -> XlaOp:
    """The neighbour of x towards y: one step in the integer that its bits are."""
    dtype = x.shape.dtype
    as_bits = xla.bitcast_convert(x, ElementType[f"S{dtype.bits}"])
    up = xla.eq(xla.gt(y, x), xla.gt(x, of(x, 0)))
    stepped = xla.bitcast_convert(select(up, as_bits + full_like(as_bits, 1), as_bits - full_like(as_bits, 1)), dtype)
    smallest = xla.bitcast_convert(full_like(as_bits, 1), dtype)
    from_zero = select(xla.gt(y, x), smallest, -smallest)
    moved = select(xla.eq(x, of(x, 0)), from_zero, stepped)
    nan = xla.or_(xla.ne(x, x), xla.ne(y, y))
    return select(nan, x + y, select(xla.eq(x, y), y, moved))


# --------------------------------------------------------------------------------------------------- error functions


def erfc(x: XlaOp) -> XlaOp:
    """1 - erf(x), small numbers with all their digits: exp(-x^2), its exponent split to be exact, times a series."""
    size = xla.abs_(x)
    k = 3.75
    place = (size - of(x, k)) / (size + of(x, k))
    place = select(xla.gt(size, of(x, 1e30)), of(x, 1), place)
    scaled = chebyshev(place, tables.ERFCX) / (of(x, 1) + size + size)
    coarse = xla.floor(xla.minimum(size, of(x, 64)) * of(x, 16)) * of(x, 1 / 16)
    power = xla.exponential(-coarse * coarse) * xla.exponential((coarse - size) * (coarse + size))
    tail = select(xla.gt(size, of(x, 64)), of(x, 0), power * scaled)
    near = of(x, 1) - xla.erf(x)
    found = select(xla.lt(x, of(x, 0)), of(x, 2) - tail, tail)
    return select(xla.lt(size, of(x, 0.5)), near, select(xla.ne(x, x), x, found))


def _inverse(y: XlaOp, tail: XlaOp) -> XlaOp:
    """The size of erfinv(y): by y near 0, else by tail = (1 - |y|) / 2, which may be exact where y is not."""
    near = xla.abs_(y) * chebyshev(_scaled(y * y, 0, 0.5625), tables.ERFINV)
    t = xla.sqrt(-xla.log(tail))
    u = of(y, 1) / t
    far = t * chebyshev(_scaled(u, 1 / 27.5, 1 / 10), tables.TAIL_FAR)
    for terms, low, high in ((tables.TAIL_MIDDLE, 1 / 10, 1 / 4), (tables.TAIL_NEAR, 1 / 4, 1 / 1.44)):
        far = select(xla.gt(u, of(y, low)), t * chebyshev(_scaled(u, low, high), terms), far)
    far = select(xla.eq(tail, of(y, 0)), of(y, np.inf), far)
    return select(xla.lt(xla.abs_(y), of(y, 0.75)), near, far)


def erfinv(y: XlaOp) -> XlaOp:
    """The number whose error function is y; nan outside of [-1, 1]."""
    found = xla.sign(y) * _inverse(y, (of(y, 1) - xla.abs_(y)) * of(y, 0.5))  # the sign of a zero stays
    return select(xla.le(xla.abs_(y), of(y, 1)), found, of(y, np.nan))


def ndtri(p: XlaOp) -> XlaOp:
    """The number that a normal variable is below with probability p; nan outside of [0, 1]."""
    y = (p - of(p, 0.5)) * of(p, 2)
    found = _inverse(y, xla.minimum(p, of(p, 1) - p)) * of(p, sqrt(2))
    found = select(xla.lt(y, of(p, 0)), -found, found)
    inside = xla.and_(xla.ge(p, of(p, 0)), xla.le(p, of(p, 1)))
    return select(inside, found, of(p, np.nan))


# ---------------------------------------------------------------------------------------------------- Bessel functions


def _bessel(x: XlaOp, near: Sequence[float], far: Sequence[float]) -> tuple[XlaOp, XlaOp, XlaOp]:
    """The size of x, and the values of both series with the factor that the far one needs."""
    size = xla.abs_(x)
    inverse = of(x, 8) / xla.maximum(size, of(x, 8))
    outside = chebyshev(_scaled(inverse, 0, 1), far) * xla.rsqrt(xla.maximum(size, of(x, 8)))
    return size, chebyshev(_scaled(size, 0, 8), near), outside


def bessel_i0(x: XlaOp) -> XlaOp:
    """Return I0(x), computed in the order in which NumPy and Cephes compute it."""
    size = xla.abs_(x)
    inside = xla.minimum(size, of(x, 8))
    outside = xla.maximum(size, of(x, 8))
    near = _clenshaw(inside / of(x, 2) - of(x, 2), tables.I0E_NEAR)
    far = _clenshaw(of(x, 32) / outside - of(x, 2), tables.I0E_FAR)
    grown = xla.exponential(size)
    return select(xla.le(size, of(x, 8)), grown * near, grown * far / xla.sqrt(outside))


def _clenshaw(twice: XlaOp, terms: Sequence[float]) -> XlaOp:
    """Return Chebyshev's series at ``twice / 2`` with all its terms; the first is doubled and the sum halved."""
    before = last = of(twice, 0)
    found = of(twice, terms[-1])
    for term in [*reversed(terms[1:-1]), 2 * terms[0]]:
        before, last = last, found
        found = twice * last - before + of(twice, term)
    return of(twice, 0.5) * (found - before)


def bessel_i0e(x: XlaOp) -> XlaOp:
    """exp(-|x|) I0(x)."""
    size, near, far = _bessel(x, tables.I0E_NEAR, tables.I0E_FAR)
    return select(xla.ne(x, x), x, select(xla.le(size, of(x, 8)), near, far))


def bessel_i1e(x: XlaOp) -> XlaOp:
    """exp(-|x|) I1(x), which is odd."""
    size, near, far = _bessel(x, tables.I1E_NEAR, tables.I1E_FAR)
    signed = select(xla.lt(x, of(x, 0)), -far, far)
    return select(xla.ne(x, x), x, select(xla.le(size, of(x, 8)), x * near, signed))


# ----------------------------------------------------------------------------------------------------- gamma functions


def lgamma(x: XlaOp) -> XlaOp:
    """log |gamma(x)|: Lanczos's approximation, reflected below 1/2; infinite at the poles and at both infinities."""
    one = of(x, 1)
    low = xla.lt(x, of(x, 0.5))
    z = select(low, -x, x - one)
    total = of(x, tables.LANCZOS[0])
    for k, weight in enumerate(tables.LANCZOS[1:], 1):
        total = total + of(x, weight) / (z + of(x, k))
    t = z + of(x, 7.5)
    high = of(x, log(2 * pi) / 2 - 7) + (z + of(x, 0.5)) * (xla.log(t) - one) + xla.log(total)
    size = xla.abs_(x)
    part = size - xla.floor(size)
    sine = xla.sine(of(x, pi) * xla.minimum(part, one - part))
    reflected = of(x, log(pi)) - xla.log(sine) - high
    reflected = select(xla.eq(sine, of(x, 0)), of(x, np.inf), reflected)
    found = select(low, reflected, high)
    return select(xla.eq(size, of(x, np.inf)), of(x, np.inf), found)


def digamma(x: XlaOp) -> XlaOp:
    """Derivative of the log of the gamma function: an asymptotic series from 10 on, reflected below 1/2."""
    one = of(x, 1)
    low = xla.lt(x, of(x, 0.5))
    y = select(low, one - x, x)
    steps = of(x, 0)
    for _ in range(10):
        small = xla.lt(y, of(x, 10))
        steps = select(small, steps + one / y, steps)
        y = select(small, y + one, y)
    inverse = one / (y * y)
    series = inverse * polynomial(inverse, tables.DIGAMMA)
    high = xla.log(y) - of(x, 0.5) / y - series - steps
    angle = of(x, pi) * (x - xla.round_nearest_even(x))
    found = select(low, high - of(x, pi) * xla.cosine(angle) / xla.sine(angle), high)
    pole = xla.and_(xla.le(x, of(x, 0)), is_whole(x))
    return select(pole, of(x, np.nan), select(xla.eq(x, of(x, np.inf)), x, found))
