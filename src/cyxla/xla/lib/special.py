"""Special functions of one argument in HLO: series of fixed length, with a select between the ranges."""

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
    """Wrap a function to compute in f64 and round the result back, for functions that lose precision."""

    def wrapped(*operands: XlaOp, **attrs: Any) -> XlaOp:
        dtype = operands[0].shape.dtype
        if dtype is ElementType.F64:
            return function(*operands, **attrs)
        return xla.convert(function(*(xla.convert(x, ElementType.F64) for x in operands), **attrs), dtype)

    return wrapped


def const(x: XlaOp, value: Any) -> XlaOp:
    """Return a constant of the type and shape of another value."""
    return full_like(x, value)


def chebyshev(x: XlaOp, terms: Sequence[float]) -> XlaOp:
    """Return a Chebyshev series at x in [-1, 1] by Clenshaw's recurrence, truncated to the precision of the type."""
    smallest = epsilon(x) / 32 * max(map(abs, terms))  # the dropped terms must not change an exact sum such as I0(0)
    kept = [*terms]
    while abs(kept[-1]) < smallest:
        kept.pop()
    twice = x + x
    after = last = const(x, 0)
    for term in reversed(kept[1:]):
        after, last = last, twice * last - after + const(x, term)
    return x * last - after + const(x, kept[0])


def _scaled(x: XlaOp, low: float, high: float) -> XlaOp:
    """Map an interval linearly to [-1, 1], after clamping to it."""
    clamped = xla.minimum(xla.maximum(x, const(x, low)), const(x, high))
    return (clamped - const(x, (low + high) / 2)) * const(x, 2 / (high - low))


def polynomial(x: XlaOp, terms: Sequence[float]) -> XlaOp:
    """Return a polynomial by Horner's rule; the constant term comes first."""
    found = const(x, terms[-1])
    for term in reversed(terms[:-1]):
        found = found * x + const(x, term)
    return found


def is_integer_or_inf(x: XlaOp) -> XlaOp:
    """Return true for integers and infinities."""
    return xla.eq(x, xla.floor(x))


def next_after(x: XlaOp, y: XlaOp) -> XlaOp:
    """Return the next float after x towards y, by a step of 1 on the bits as an integer."""
    dtype = x.shape.dtype
    as_bits = xla.bitcast_convert(x, ElementType[f"S{dtype.bits}"])
    up = xla.eq(xla.gt(y, x), xla.gt(x, const(x, 0)))
    stepped = xla.bitcast_convert(select(up, as_bits + full_like(as_bits, 1), as_bits - full_like(as_bits, 1)), dtype)
    smallest = xla.bitcast_convert(full_like(as_bits, 1), dtype)
    from_zero = select(xla.gt(y, x), smallest, -smallest)
    result = select(xla.eq(x, const(x, 0)), from_zero, stepped)
    nan = xla.or_(xla.ne(x, x), xla.ne(y, y))
    return select(nan, x + y, select(xla.eq(x, y), y, result))


# --------------------------------------------------------------------------------------------------- error functions


def erfc(x: XlaOp) -> XlaOp:
    """Return ``1 - erf(x)`` to full relative precision, as a series times exp(-x^2) with an exactly split exponent."""
    size = xla.abs_(x)
    k = 3.75
    t = (size - const(x, k)) / (size + const(x, k))
    t = select(xla.gt(size, const(x, 1e30)), const(x, 1), t)
    scaled = chebyshev(t, tables.ERFCX) / (const(x, 1) + size + size)
    coarse = xla.floor(xla.minimum(size, const(x, 64)) * const(x, 16)) * const(x, 1 / 16)
    power = xla.exponential(-coarse * coarse) * xla.exponential((coarse - size) * (coarse + size))
    tail = select(xla.gt(size, const(x, 64)), const(x, 0), power * scaled)
    near = const(x, 1) - xla.erf(x)
    found = select(xla.lt(x, const(x, 0)), const(x, 2) - tail, tail)
    return select(xla.lt(size, const(x, 0.5)), near, select(xla.ne(x, x), x, found))


def _inverse(y: XlaOp, tail: XlaOp) -> XlaOp:
    """Return |erfinv(y)|: from y near 0, else from tail = (1 - |y|) / 2, which may be more exact than y."""
    near = xla.abs_(y) * chebyshev(_scaled(y * y, 0, 0.5625), tables.ERFINV)
    t = xla.sqrt(-xla.log(tail))
    u = const(y, 1) / t
    far = t * chebyshev(_scaled(u, 1 / 27.5, 1 / 10), tables.TAIL_FAR)
    for terms, low, high in ((tables.TAIL_MIDDLE, 1 / 10, 1 / 4), (tables.TAIL_NEAR, 1 / 4, 1 / 1.44)):
        far = select(xla.gt(u, const(y, low)), t * chebyshev(_scaled(u, low, high), terms), far)
    far = select(xla.eq(tail, const(y, 0)), const(y, np.inf), far)
    return select(xla.lt(xla.abs_(y), const(y, 0.75)), near, far)


def erfinv(y: XlaOp) -> XlaOp:
    """Return the inverse error function; nan outside of [-1, 1]."""
    found = xla.sign(y) * _inverse(y, (const(y, 1) - xla.abs_(y)) * const(y, 0.5))  # keeps the sign of a zero
    return select(xla.le(xla.abs_(y), const(y, 1)), found, const(y, np.nan))


def ndtri(p: XlaOp) -> XlaOp:
    """Return the quantile function of the standard normal distribution; nan outside of [0, 1]."""
    y = (p - const(p, 0.5)) * const(p, 2)
    found = _inverse(y, xla.minimum(p, const(p, 1) - p)) * const(p, sqrt(2))
    found = select(xla.lt(y, const(p, 0)), -found, found)
    inside = xla.and_(xla.ge(p, const(p, 0)), xla.le(p, const(p, 1)))
    return select(inside, found, const(p, np.nan))


# ---------------------------------------------------------------------------------------------------- Bessel functions


def _bessel(x: XlaOp, near: Sequence[float], far: Sequence[float]) -> tuple[XlaOp, XlaOp, XlaOp]:
    """Return |x|, the series for |x| <= 8, and the asymptotic series times 1 / sqrt(|x|)."""
    size = xla.abs_(x)
    inverse = const(x, 8) / xla.maximum(size, const(x, 8))
    outside = chebyshev(_scaled(inverse, 0, 1), far) * xla.rsqrt(xla.maximum(size, const(x, 8)))
    return size, chebyshev(_scaled(size, 0, 8), near), outside


def bessel_i0(x: XlaOp) -> XlaOp:
    """Return I0(x), computed in the order in which NumPy and Cephes compute it."""
    size = xla.abs_(x)
    inside = xla.minimum(size, const(x, 8))
    outside = xla.maximum(size, const(x, 8))
    near = _clenshaw(inside / const(x, 2) - const(x, 2), tables.I0E_NEAR)
    far = _clenshaw(const(x, 32) / outside - const(x, 2), tables.I0E_FAR)
    grown = xla.exponential(size)
    return select(xla.le(size, const(x, 8)), grown * near, grown * far / xla.sqrt(outside))


def _clenshaw(twice: XlaOp, terms: Sequence[float]) -> XlaOp:
    """Return Chebyshev's series at ``twice / 2`` with all its terms; the first is doubled and the sum halved."""
    before = last = const(twice, 0)
    found = const(twice, terms[-1])
    for term in [*reversed(terms[1:-1]), 2 * terms[0]]:
        before, last = last, found
        found = twice * last - before + const(twice, term)
    return const(twice, 0.5) * (found - before)


def bessel_i0e(x: XlaOp) -> XlaOp:
    """Return ``exp(-|x|) I0(x)``."""
    size, near, far = _bessel(x, tables.I0E_NEAR, tables.I0E_FAR)
    return select(xla.ne(x, x), x, select(xla.le(size, const(x, 8)), near, far))


def bessel_i1e(x: XlaOp) -> XlaOp:
    """Return ``exp(-|x|) I1(x)``, which is odd."""
    size, near, far = _bessel(x, tables.I1E_NEAR, tables.I1E_FAR)
    signed = select(xla.lt(x, const(x, 0)), -far, far)
    return select(xla.ne(x, x), x, select(xla.le(size, const(x, 8)), x * near, signed))


# ----------------------------------------------------------------------------------------------------- gamma functions


def lgamma(x: XlaOp) -> XlaOp:
    """Return log |gamma(x)| by Lanczos's approximation, reflected below 1/2; infinite at poles and infinities."""
    one = const(x, 1)
    low = xla.lt(x, const(x, 0.5))
    z = select(low, -x, x - one)
    total = const(x, tables.LANCZOS[0])
    for k, weight in enumerate(tables.LANCZOS[1:], 1):
        total = total + const(x, weight) / (z + const(x, k))
    t = z + const(x, 7.5)
    high = const(x, log(2 * pi) / 2 - 7) + (z + const(x, 0.5)) * (xla.log(t) - one) + xla.log(total)
    size = xla.abs_(x)
    part = size - xla.floor(size)
    sine = xla.sine(const(x, pi) * xla.minimum(part, one - part))
    reflected = const(x, log(pi)) - xla.log(sine) - high
    reflected = select(xla.eq(sine, const(x, 0)), const(x, np.inf), reflected)
    found = select(low, reflected, high)
    return select(xla.eq(size, const(x, np.inf)), const(x, np.inf), found)


def digamma(x: XlaOp) -> XlaOp:
    """Return the derivative of log gamma by an asymptotic series from 10 on, reflected below 1/2."""
    one = const(x, 1)
    low = xla.lt(x, const(x, 0.5))
    y = select(low, one - x, x)
    steps = const(x, 0)
    for _ in range(10):
        small = xla.lt(y, const(x, 10))
        steps = select(small, steps + one / y, steps)
        y = select(small, y + one, y)
    inverse = one / (y * y)
    series = inverse * polynomial(inverse, tables.DIGAMMA)
    high = xla.log(y) - const(x, 0.5) / y - series - steps
    angle = const(x, pi) * (x - xla.round_nearest_even(x))
    found = select(low, high - const(x, pi) * xla.cosine(angle) / xla.sine(angle), high)
    pole = xla.and_(xla.le(x, const(x, 0)), is_integer_or_inf(x))
    return select(pole, const(x, np.nan), select(xla.eq(x, const(x, np.inf)), x, found))
