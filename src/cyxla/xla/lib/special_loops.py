"""Special functions of several arguments in HLO: series and continued fractions, iterated until all elements converge.

All of them compute in f64. Elements outside of the range of a method are replaced by harmless arguments, and their
results are masked afterwards.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

import numpy as np

from cyxla.xla.hlo.builder import XlaOp
from cyxla.xla.hlo.builder import functions as xla
from cyxla.xla.lib import special_tables as tables
from cyxla.xla.lib.loops import while_loop
from cyxla.xla.lib.special import const, digamma, is_integer_or_inf, lgamma
from cyxla.xla.lib.values import rank_of, reduced, scalar, select, sizes_of

State: TypeAlias = Sequence[XlaOp]

_EPS = float(np.finfo(np.float64).eps)
_TINY = 1e-300
_BIG = 1 / _EPS
_MAX_STEPS = 2000  # of a loop


def _iterate(start: State, step: Callable[[XlaOp, State], tuple[State, XlaOp]], most: int = _MAX_STEPS) -> list[XlaOp]:
    """Iterate a step on arrays until all elements have converged.

    Parameters
    ----------
    start : sequence of XlaOp
        Initial arrays.
    step : callable
        Function of the number of the step, from 1 on, and the arrays, which returns the next arrays and a mask of the
        elements that have not converged. The other elements are not updated any more.
    most : int
        Maximum number of steps.
    """
    builder = start[0].builder
    number = xla.constant(builder, np.float64(1))
    active = xla.eq(start[0], start[0])

    def body(given: list[XlaOp]) -> list[XlaOp]:
        count, going, *arrays = given
        after, changing = step(count, arrays)
        kept = [select(going, new, old) for new, old in zip(after, arrays, strict=True)]
        return [count + scalar(count, 1), xla.and_(going, changing), *kept]

    def condition(given: list[XlaOp]) -> XlaOp:
        count, going = given[:2]
        some = reduced(going, "or", scalar(going, False), range(rank_of(going)))
        return xla.and_(some, xla.le(count, scalar(count, most)))

    return while_loop(condition, body, [number, active, *start])[2:]


def _like(count: XlaOp, x: XlaOp) -> XlaOp:
    return xla.broadcast(count, x.shape.dims)


# ------------------------------------------------------------------------------------------- incomplete gamma functions


def _power(a: XlaOp, x: XlaOp) -> XlaOp:
    """Return ``x^a exp(-x) / gamma(a)``."""
    return xla.exponential(a * xla.log(x) - x - lgamma(a))


def _gamma_series(a: XlaOp, x: XlaOp) -> XlaOp:
    """Return the lower function P for small x: the sum of x^n / ((a + 1) .. (a + n))."""

    def step(_: XlaOp, state: State) -> tuple[State, XlaOp]:
        a, x, term, total = state
        a = a + const(a, 1)
        term = term * x / a
        total = total + term
        return (a, x, term, total), xla.gt(term, const(term, _EPS) * total)

    total = _iterate((a, x, const(a, 1), const(a, 1)), step)[3]
    return total * _power(a, x) / a


def _gamma_fraction(a: XlaOp, x: XlaOp) -> XlaOp:
    """Return the upper function Q for large x: Legendre's continued fraction, by Lentz's method."""

    def step(i: XlaOp, state: State) -> tuple[State, XlaOp]:
        a, b, c, d, h = state
        number = _like(i, a)
        an = number * (a - number)
        b = b + const(b, 2)
        d = const(d, 1) / _clamp_from_zero(an * d + b)
        c = _clamp_from_zero(b + an / c)
        change = c * d
        return (a, b, c, d, h * change), xla.gt(xla.abs_(change - const(change, 1)), const(change, _EPS))

    b = x + const(x, 1) - a
    d = const(x, 1) / b
    found = _iterate((a, b, const(x, 1 / _TINY), d, d), step)[4]
    return found * _power(a, x)


def _clamp_from_zero(x: XlaOp) -> XlaOp:
    return select(xla.lt(xla.abs_(x), const(x, _TINY)), const(x, _TINY), x)


def _valid_and_low(a: XlaOp, x: XlaOp) -> tuple[XlaOp, XlaOp]:
    """Return masks of the elements with finite a > 0 and x > 0, and of those among them that use the series."""
    zero = const(x, 0)
    valid = xla.and_(xla.gt(a, zero), xla.and_(xla.gt(x, zero), xla.lt(x, const(x, np.inf))))
    valid = xla.and_(valid, xla.lt(a, const(a, np.inf)))
    return valid, xla.and_(valid, xla.or_(xla.le(x, const(x, 1)), xla.le(x, a)))


def igamma_and_igammac(a: XlaOp, x: XlaOp) -> tuple[XlaOp, XlaOp]:
    """Return P and Q = 1 - P, the smaller one to full relative precision."""
    valid, low = _valid_and_low(a, x)
    high = xla.and_(valid, xla.not_(low))
    lower = _gamma_series(select(low, a, const(a, 1)), select(low, x, const(x, 0.5)))
    upper = _gamma_fraction(select(high, a, const(a, 1)), select(high, x, const(x, 2)))
    one = const(x, 1)
    p, q = select(low, lower, one - upper), select(low, one - lower, upper)
    zero = const(x, 0)
    whole = xla.or_(xla.and_(xla.eq(x, zero), xla.gt(a, zero)), xla.and_(xla.eq(a, const(a, np.inf)), xla.ge(x, zero)))
    none = xla.and_(xla.eq(x, const(x, np.inf)), xla.gt(a, zero))
    p = select(whole, zero, select(none, one, p))
    q = select(whole, one, select(none, zero, q))
    inside = xla.or_(valid, xla.or_(whole, none))
    return select(inside, p, const(x, np.nan)), select(inside, q, const(x, np.nan))


def igamma(a: XlaOp, x: XlaOp) -> XlaOp:
    """Return the regularised lower incomplete gamma function."""
    return igamma_and_igammac(a, x)[0]


def igammac(a: XlaOp, x: XlaOp) -> XlaOp:
    """Return the regularised upper incomplete gamma function."""
    return igamma_and_igammac(a, x)[1]


# ------------------------------------------------------------------------- derivatives of incomplete gamma functions


def _series_derivative(a: XlaOp, x: XlaOp) -> XlaOp:
    """Return dP/da divided by x dP/dx, by differentiating the series term by term."""

    def step(_: XlaOp, state: State) -> tuple[State, XlaOp]:
        r, x, term, dterm, total, dtotal = state
        r = r + const(r, 1)
        ratio = x / r
        dterm = (dterm - term / r) * ratio
        term = term * ratio
        total, dtotal = total + term, dtotal + dterm
        eps = const(r, _EPS)
        changing = xla.or_(xla.gt(xla.abs_(dterm), eps * xla.abs_(dtotal)), xla.gt(term, eps * total))
        return (r, x, term, dterm, total, dtotal), changing

    one, zero = const(a, 1), const(a, 0)
    *_, total, dtotal = _iterate((a, x, one, zero, one, zero), step)
    return (dtotal + total * (xla.log(x) - digamma(a + one))) / a


def _fraction_derivative(a: XlaOp, x: XlaOp) -> XlaOp:
    """Return dP/da divided by x dP/dx from the continued fraction: p / q are its convergents, dp, dq derivatives."""

    def step(i: XlaOp, state: State) -> tuple[State, XlaOp]:
        y, z, value, slope, *rest = state
        p0, p1, q0, q1, dp0, dp1, dq0, dq1 = rest
        c = _like(i, y)
        y, z = y + const(y, 1), z + const(z, 2)
        p, q = p1 * z - p0 * y * c, q1 * z - q0 * y * c
        dp, dq = dp1 * z - p1 - dp0 * y * c + p0 * c, dq1 * z - q1 - dq0 * y * c + q0 * c
        some = xla.ne(q, const(q, 0))
        value = select(some, p / q, value)
        after = select(some, (dp - value * dq) / q, slope)
        changing = xla.gt(xla.abs_(after - slope), const(y, _EPS) * xla.abs_(after))
        scale = select(xla.gt(xla.abs_(p), const(p, _BIG)), const(p, _EPS), const(p, 1))
        held = [part * scale for part in (p1, p, q1, q, dp1, dp, dq1, dq)]
        return (y, z, value, after, *held), changing

    one, zero = const(a, 1), const(a, 0)
    z = x + const(x, 2) - a
    p, q = x + one, z * x
    value = p / q
    slope = value * x / q
    start = (one - a, z, value, slope, one, p, x, q, zero, zero, zero, -x)
    _, _, value, slope, *_ = _iterate(start, step)
    return -(slope + value * (xla.log(x) - digamma(a)))


def _derivative(a: XlaOp, x: XlaOp, finish: Callable[[XlaOp, XlaOp, XlaOp], XlaOp]) -> XlaOp:
    valid, low = _valid_and_low(a, x)
    high = xla.and_(valid, xla.not_(low))
    found = const(x, np.nan)
    for where, method, safe in ((low, _series_derivative, (1.0, 0.5)), (high, _fraction_derivative, (1.0, 2.0))):
        own_a, own_x = select(where, a, const(a, safe[0])), select(where, x, const(x, safe[1]))
        found = select(where, finish(own_a, own_x, method(own_a, own_x)), found)
    at_zero = xla.and_(xla.eq(x, const(x, 0)), xla.gt(a, const(a, 0)))
    return select(at_zero, const(x, 0), found)


def igamma_grad_a(a: XlaOp, x: XlaOp) -> XlaOp:
    """Return the derivative of the regularised lower incomplete gamma function by a."""
    return _derivative(a, x, lambda a, x, slope: slope * _power(a, x))


def gamma_sample_grad(a: XlaOp, x: XlaOp) -> XlaOp:
    """Return the derivative by a of a sample x of the gamma distribution of shape a: -(dP/da) / (dP/dx)."""
    return _derivative(a, x, lambda a, x, slope: -slope * x)


# ------------------------------------------------------------------------------------------- incomplete beta function


def betainc(a: XlaOp, b: XlaOp, x: XlaOp) -> XlaOp:
    """Return the regularised incomplete beta function: a continued fraction of the tail that converges faster."""
    zero, one = const(x, 0), const(x, 1)
    positive = xla.and_(xla.gt(a, zero), xla.gt(b, zero))
    inside = xla.and_(positive, xla.and_(xla.gt(x, zero), xla.lt(x, one)))
    a, b, held = select(inside, a, one), select(inside, b, one), select(inside, x, const(x, 0.5))
    swap = xla.gt(held, (a + one) / (a + b + const(x, 2)))
    logs = xla.log(held), xla.log_plus_one(-held)
    log_left, log_right = (select(swap, logs[1 - k], logs[k]) for k in range(2))
    a, b, left = select(swap, b, a), select(swap, a, b), select(swap, one - held, held)
    factor = xla.exponential(a * log_left + b * log_right + lgamma(a + b) - lgamma(a) - lgamma(b)) / a
    found = factor * _beta_fraction(a, b, left)
    found = select(swap, one - found, found)
    edge = select(xla.eq(x, zero), zero, select(xla.eq(x, one), one, const(x, np.nan)))
    return select(inside, found, select(positive, edge, const(x, np.nan)))


def _beta_fraction(a: XlaOp, b: XlaOp, x: XlaOp) -> XlaOp:
    """Return the continued fraction of the incomplete beta function, by Lentz's method with two terms a step."""

    def term(c: XlaOp, d: XlaOp, weight: XlaOp) -> tuple[XlaOp, XlaOp]:
        one = const(c, 1)
        return _clamp_from_zero(one + weight / c), one / _clamp_from_zero(one + weight * d)

    def step(i: XlaOp, state: State) -> tuple[State, XlaOp]:
        a, b, x, c, d, h = state
        m, one = _like(i, a), const(a, 1)
        twice = a + m + m
        c, d = term(c, d, m * (b - m) * x / ((twice - one) * twice))
        h = h * c * d
        c, d = term(c, d, -(a + m) * (a + b + m) * x / (twice * (twice + one)))
        change = c * d
        return (a, b, x, c, d, h * change), xla.gt(xla.abs_(change - one), const(a, _EPS))

    one = const(a, 1)
    d = one / _clamp_from_zero(one - (a + b) * x / (a + one))
    return _iterate((a, b, x, one, d, d), step)[5]


def binomial_of_small_k(n: XlaOp, k: XlaOp) -> XlaOp:
    """Return binomial coefficients for integers k from 0 to 19, as quotients of products, reduced when large."""

    def step(count: XlaOp, state: State) -> tuple[State, XlaOp]:
        n, k, above, below = state
        i = _like(count, n)
        above, below = above * (n - k + i), below * i
        huge = xla.gt(xla.abs_(above), const(n, 1e50))
        return (n, k, select(huge, above / below, above), select(huge, const(n, 1), below)), xla.lt(i, k)

    one = const(n, 1)
    _, _, above, below = _iterate((n, k, one, one), step, 19)
    return select(xla.lt(k, one), one, above / below)


# -------------------------------------------------------------------------------------------------------- zeta function


def zeta(x: XlaOp, q: XlaOp) -> XlaOp:
    """Return Hurwitz's zeta, the sum of (q + k)^-x; q below 0 is supported only for integers x.

    For q below 0, with r the fractional part of q, the terms between q and r are the difference of the series that
    start at 1 - r and at 1 - q, with the sign of (-1)^x.
    """
    zero, one = const(x, 0), const(x, 1)
    below, whole_x, whole_q = xla.le(q, zero), is_integer_or_inf(x), is_integer_or_inf(q)
    even = xla.and_(whole_x, is_integer_or_inf(x * const(x, 0.5)))
    part = select(below, q - xla.floor(q), q)
    starts = [part, select(below, one - part, one), select(below, one - q, one)]
    found, above, beyond = _unstack(_zeta_above(_stack([x, x, x]), _stack(starts)))
    # At odd halves `found` and `above` cancel entirely, so the small terms are added last.
    found = select(below, select(even, found + above - beyond, found - above + beyond), found)
    nan, inf = const(x, np.nan), const(x, np.inf)
    found = select(below, select(whole_q, select(even, inf, nan), select(whole_x, found, nan)), found)
    return select(xla.eq(x, one), inf, select(xla.gt(x, one), found, nan))


def _stack(parts: Sequence[XlaOp]) -> XlaOp:
    """Stack arrays of one shape, so that the same code computes all of them."""
    return xla.concatenate([xla.reshape(x, (1, *sizes_of(x))) for x in parts], 0)


def _unstack(x: XlaOp) -> list[XlaOp]:
    """Return the arrays that `_stack` stacked."""
    count, *rest = sizes_of(x)
    return [xla.reshape(xla.slice_in_dim(x, k, k + 1), rest) for k in range(count)]


def _zeta_above(x: XlaOp, q: XlaOp) -> XlaOp:
    """Return zeta for q > 0: at least nine terms, up to 10, then the Euler-Maclaurin formula."""

    def step(i: XlaOp, state: State) -> tuple[State, XlaOp]:
        x, q, total = state
        small = xla.or_(xla.lt(q, const(q, 10)), xla.lt(_like(i, q), const(q, 10)))
        total = select(small, total + xla.power(q, -x), total)
        return (x, select(small, q + const(q, 1), q), total), small

    _, w, total = _iterate((x, q, const(q, 0)), step, 11)
    power = xla.power(w, -x)
    rest = power * const(x, 0.5) + power * w / (x - const(x, 1))
    term = power * x / w
    for k, weight in enumerate(tables.EULER_MACLAURIN):
        rest = rest + const(x, weight) * term
        grown = (x + const(x, 2 * k + 1)) / w * ((x + const(x, 2 * k + 2)) / w)
        term = select(xla.eq(term, const(x, 0)), term, term * grown)
    return total + select(xla.eq(power, const(x, 0)), const(x, 0), rest)


def polygamma(n: XlaOp, x: XlaOp) -> XlaOp:
    """Return the n-th derivative of the digamma function; nan unless n is a non-negative integer."""
    one = const(x, 1)
    odd = xla.not_(is_integer_or_inf(n * const(n, 0.5)))
    value = xla.exponential(lgamma(n + one)) * zeta(n + one, x)
    value = select(xla.eq(n, const(n, 0)), digamma(x), select(odd, value, -value))
    valid = xla.and_(xla.ge(n, const(n, 0)), is_integer_or_inf(n))
    return select(valid, value, const(x, np.nan))
