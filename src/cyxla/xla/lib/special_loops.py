"""Special functions of several numbers in HLO: series and continued fractions, run until every element has settled.

All of them are computed in f64. Elements that a method is not for are replaced by harmless ones, and their results
left out afterwards.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

import numpy as np

from cyxla.types import Shape
from cyxla.xla.hlo.builder import XlaBuilder, XlaComputation, XlaOp
from cyxla.xla.hlo.builder import functions as xla
from cyxla.xla.lib import special_tables as tables
from cyxla.xla.lib.special import digamma, is_whole, lgamma, of
from cyxla.xla.lib.values import rank_of, reduced, scalar, select, sizes_of

State: TypeAlias = Sequence[XlaOp]

_EPS = float(np.finfo(np.float64).eps)
_TINY = 1e-300
_BIG = 1 / _EPS
_MOST = 2000  # steps of a loop


def _until_settled(start: State, step: Callable[[XlaOp, State], tuple[State, XlaOp]], most: int = _MOST) -> list[XlaOp]:
    """Run a step on arrays until none of them changes much.

    Parameters
    ----------
    start : sequence of XlaOp
    step : callable
        Gets the number of the step, from 1 on, and the arrays; gives the next arrays and where they still change.
        Elsewhere they stay.
    """
    builder = start[0].builder
    number = xla.constant(builder, np.float64(1))
    active = xla.eq(start[0], start[0])
    init = xla.tuple_(builder, [number, active, *start])
    shape = init.shape

    def body(given: list[XlaOp]) -> XlaOp:
        count, going, *arrays = given
        after, changing = step(count, arrays)
        kept = [select(going, new, old) for new, old in zip(after, arrays, strict=True)]
        return xla.tuple_(count.builder, [count + scalar(count, 1), xla.and_(going, changing), *kept])

    def condition(given: list[XlaOp]) -> XlaOp:
        count, going = given[:2]
        some = reduced(going, "or", scalar(going, False), range(rank_of(going)))
        return xla.and_(some, xla.le(count, scalar(count, most)))

    made = xla.while_(_computation("going", shape, condition), _computation("step", shape, body), init)
    return [xla.get_tuple_element(made, i + 2) for i in range(len(start))]


def _computation(name: str, shape: Shape, write: Callable[[list[XlaOp]], XlaOp]) -> XlaComputation:
    builder = XlaBuilder(name)
    state = xla.parameter(builder, 0, shape, "state")
    return builder.build(write([xla.get_tuple_element(state, i) for i in range(len(shape.elements))]))


def _like(count: XlaOp, x: XlaOp) -> XlaOp:
    return xla.broadcast(count, x.shape.dims)


# ------------------------------------------------------------------------------------------- incomplete gamma functions


def _power(a: XlaOp, x: XlaOp) -> XlaOp:
    """x^a exp(-x) / gamma(a)."""
    return xla.exponential(a * xla.log(x) - x - lgamma(a))


def _gamma_series(a: XlaOp, x: XlaOp) -> XlaOp:
    """The lower function P where x is small: the sum of x^n / ((a + 1) .. (a + n))."""

    def step(_: XlaOp, state: State) -> tuple[State, XlaOp]:
        a, x, term, total = state
        a = a + of(a, 1)
        term = term * x / a
        total = total + term
        return (a, x, term, total), xla.gt(term, of(term, _EPS) * total)

    total = _until_settled((a, x, of(a, 1), of(a, 1)), step)[3]
    return total * _power(a, x) / a


def _gamma_fraction(a: XlaOp, x: XlaOp) -> XlaOp:
    """The upper function Q where x is large: Legendre's continued fraction, by Lentz's method."""

    def step(i: XlaOp, state: State) -> tuple[State, XlaOp]:
        a, b, c, d, h = state
        number = _like(i, a)
        an = number * (a - number)
        b = b + of(b, 2)
        d = of(d, 1) / _away_from_zero(an * d + b)
        c = _away_from_zero(b + an / c)
        change = c * d
        return (a, b, c, d, h * change), xla.gt(xla.abs_(change - of(change, 1)), of(change, _EPS))

    b = x + of(x, 1) - a
    d = of(x, 1) / b
    found = _until_settled((a, b, of(x, 1 / _TINY), d, d), step)[4]
    return found * _power(a, x)


def _away_from_zero(x: XlaOp) -> XlaOp:
    return select(xla.lt(xla.abs_(x), of(x, _TINY)), of(x, _TINY), x)


def _parts(a: XlaOp, x: XlaOp) -> tuple[XlaOp, XlaOp]:
    """Where a and x are in the domain with finite x > 0, and of these where the series is for."""
    zero = of(x, 0)
    valid = xla.and_(xla.gt(a, zero), xla.and_(xla.gt(x, zero), xla.lt(x, of(x, np.inf))))
    valid = xla.and_(valid, xla.lt(a, of(a, np.inf)))
    return valid, xla.and_(valid, xla.or_(xla.le(x, of(x, 1)), xla.le(x, a)))


def gammas(a: XlaOp, x: XlaOp) -> tuple[XlaOp, XlaOp]:
    """P, and Q = 1 - P, each with all its digits where it is the smaller one."""
    valid, low = _parts(a, x)
    high = xla.and_(valid, xla.not_(low))
    lower = _gamma_series(select(low, a, of(a, 1)), select(low, x, of(x, 0.5)))
    upper = _gamma_fraction(select(high, a, of(a, 1)), select(high, x, of(x, 2)))
    one = of(x, 1)
    p, q = select(low, lower, one - upper), select(low, one - lower, upper)
    zero = of(x, 0)
    whole = xla.or_(xla.and_(xla.eq(x, zero), xla.gt(a, zero)), xla.and_(xla.eq(a, of(a, np.inf)), xla.ge(x, zero)))
    none = xla.and_(xla.eq(x, of(x, np.inf)), xla.gt(a, zero))
    p = select(whole, zero, select(none, one, p))
    q = select(whole, one, select(none, zero, q))
    inside = xla.or_(valid, xla.or_(whole, none))
    return select(inside, p, of(x, np.nan)), select(inside, q, of(x, np.nan))


def igamma(a: XlaOp, x: XlaOp) -> XlaOp:
    """The regularised lower incomplete gamma function."""
    return gammas(a, x)[0]


def igammac(a: XlaOp, x: XlaOp) -> XlaOp:
    """The regularised upper incomplete gamma function."""
    return gammas(a, x)[1]


# ------------------------------------------------------------------------- derivatives of incomplete gamma functions


def _slope_of_series(a: XlaOp, x: XlaOp) -> XlaOp:
    """dP/da in units of the density times x, the series differentiated term by term."""

    def step(_: XlaOp, state: State) -> tuple[State, XlaOp]:
        r, x, term, dterm, total, dtotal = state
        r = r + of(r, 1)
        ratio = x / r
        dterm = (dterm - term / r) * ratio
        term = term * ratio
        total, dtotal = total + term, dtotal + dterm
        eps = of(r, _EPS)
        changing = xla.or_(xla.gt(xla.abs_(dterm), eps * xla.abs_(dtotal)), xla.gt(term, eps * total))
        return (r, x, term, dterm, total, dtotal), changing

    one, zero = of(a, 1), of(a, 0)
    *_, total, dtotal = _until_settled((a, x, one, zero, one, zero), step)
    return (dtotal + total * (xla.log(x) - digamma(a + one))) / a


def _slope_of_fraction(a: XlaOp, x: XlaOp) -> XlaOp:
    """The same by a continued fraction: p / q are its convergents, dp and dq their derivatives."""

    def step(i: XlaOp, state: State) -> tuple[State, XlaOp]:
        y, z, value, slope, *rest = state
        p0, p1, q0, q1, dp0, dp1, dq0, dq1 = rest
        c = _like(i, y)
        y, z = y + of(y, 1), z + of(z, 2)
        p, q = p1 * z - p0 * y * c, q1 * z - q0 * y * c
        dp, dq = dp1 * z - p1 - dp0 * y * c + p0 * c, dq1 * z - q1 - dq0 * y * c + q0 * c
        some = xla.ne(q, of(q, 0))
        value = select(some, p / q, value)
        after = select(some, (dp - value * dq) / q, slope)
        changing = xla.gt(xla.abs_(after - slope), of(y, _EPS) * xla.abs_(after))
        scale = select(xla.gt(xla.abs_(p), of(p, _BIG)), of(p, _EPS), of(p, 1))
        held = [part * scale for part in (p1, p, q1, q, dp1, dp, dq1, dq)]
        return (y, z, value, after, *held), changing

    one, zero = of(a, 1), of(a, 0)
    z = x + of(x, 2) - a
    p, q = x + one, z * x
    value = p / q
    slope = value * x / q
    start = (one - a, z, value, slope, one, p, x, q, zero, zero, zero, -x)
    _, _, value, slope, *_ = _until_settled(start, step)
    return -(slope + value * (xla.log(x) - digamma(a)))


def _slope(a: XlaOp, x: XlaOp, finish: Callable[[XlaOp, XlaOp, XlaOp], XlaOp]) -> XlaOp:
    valid, low = _parts(a, x)
    high = xla.and_(valid, xla.not_(low))
    found = of(x, np.nan)
    for where, method, safe in ((low, _slope_of_series, (1.0, 0.5)), (high, _slope_of_fraction, (1.0, 2.0))):
        own_a, own_x = select(where, a, of(a, safe[0])), select(where, x, of(x, safe[1]))
        found = select(where, finish(own_a, own_x, method(own_a, own_x)), found)
    at_zero = xla.and_(xla.eq(x, of(x, 0)), xla.gt(a, of(a, 0)))
    return select(at_zero, of(x, 0), found)


def igamma_grad_a(a: XlaOp, x: XlaOp) -> XlaOp:
    """Derivative of the regularised lower incomplete gamma function by a."""
    return _slope(a, x, lambda a, x, slope: slope * _power(a, x))


def gamma_sample_grad(a: XlaOp, x: XlaOp) -> XlaOp:
    """Derivative by a of a sample x of the gamma distribution of shape a: dx/da = -(dP/da) / (dP/dx)."""
    return _slope(a, x, lambda a, x, slope: -slope * x)


# ------------------------------------------------------------------------------------------- incomplete beta function


def betainc(a: XlaOp, b: XlaOp, x: XlaOp) -> XlaOp:
    """The regularised incomplete beta function: a continued fraction, of the other tail where that converges faster."""
    zero, one = of(x, 0), of(x, 1)
    positive = xla.and_(xla.gt(a, zero), xla.gt(b, zero))
    inside = xla.and_(positive, xla.and_(xla.gt(x, zero), xla.lt(x, one)))
    a, b, held = select(inside, a, one), select(inside, b, one), select(inside, x, of(x, 0.5))
    swap = xla.gt(held, (a + one) / (a + b + of(x, 2)))
    logs = xla.log(held), xla.log_plus_one(-held)
    log_left, log_right = (select(swap, logs[1 - k], logs[k]) for k in range(2))
    a, b, left = select(swap, b, a), select(swap, a, b), select(swap, one - held, held)
    factor = xla.exponential(a * log_left + b * log_right + lgamma(a + b) - lgamma(a) - lgamma(b)) / a
    found = factor * _beta_fraction(a, b, left)
    found = select(swap, one - found, found)
    edge = select(xla.eq(x, zero), zero, select(xla.eq(x, one), one, of(x, np.nan)))
    return select(inside, found, select(positive, edge, of(x, np.nan)))


def _beta_fraction(a: XlaOp, b: XlaOp, x: XlaOp) -> XlaOp:
    """Lentz's method, two terms a step."""

    def term(c: XlaOp, d: XlaOp, weight: XlaOp) -> tuple[XlaOp, XlaOp]:
        one = of(c, 1)
        return _away_from_zero(one + weight / c), one / _away_from_zero(one + weight * d)

    def step(i: XlaOp, state: State) -> tuple[State, XlaOp]:
        a, b, x, c, d, h = state
        m, one = _like(i, a), of(a, 1)
        twice = a + m + m
        c, d = term(c, d, m * (b - m) * x / ((twice - one) * twice))
        h = h * c * d
        c, d = term(c, d, -(a + m) * (a + b + m) * x / (twice * (twice + one)))
        change = c * d
        return (a, b, x, c, d, h * change), xla.gt(xla.abs_(change - one), of(a, _EPS))

    one = of(a, 1)
    d = one / _away_from_zero(one - (a + b) * x / (a + one))
    return _until_settled((a, b, x, one, d, d), step)[5]


def few_of(n: XlaOp, k: XlaOp) -> XlaOp:
    """Binomial coefficients for whole k from 0 to 19: products over products, divided each time they grow too large."""

    def step(count: XlaOp, state: State) -> tuple[State, XlaOp]:
        n, k, above, below = state
        i = _like(count, n)
        above, below = above * (n - k + i), below * i
        huge = xla.gt(xla.abs_(above), of(n, 1e50))
        return (n, k, select(huge, above / below, above), select(huge, of(n, 1), below)), xla.lt(i, k)

    one = of(n, 1)
    _, _, above, below = _until_settled((n, k, one, one), step, 19)
    return select(xla.lt(k, one), one, above / below)


# -------------------------------------------------------------------------------------------------------- zeta function


def zeta(x: XlaOp, q: XlaOp) -> XlaOp:
    """Hurwitz's zeta: the sum of (q + k)^-x; below 0 only for whole x.

    With r the part of q in (0, 1), what is missing between q and r are terms of both series that start at 1 - r and at
    1 - q, with the sign of (-1)^x.
    """
    zero, one = of(x, 0), of(x, 1)
    below, whole_x, whole_q = xla.le(q, zero), is_whole(x), is_whole(q)
    even = xla.and_(whole_x, is_whole(x * of(x, 0.5)))
    part = select(below, q - xla.floor(q), q)
    starts = [part, select(below, one - part, one), select(below, one - q, one)]
    found, above, beyond = _apart(_zeta_above(_together([x, x, x]), _together(starts)))
    # At odd halves all of `found` and `above` cancel, so what is small comes last.
    found = select(below, select(even, found + above - beyond, found - above + beyond), found)
    nan, inf = of(x, np.nan), of(x, np.inf)
    found = select(below, select(whole_q, select(even, inf, nan), select(whole_x, found, nan)), found)
    return select(xla.eq(x, one), inf, select(xla.gt(x, one), found, nan))


def _together(parts: Sequence[XlaOp]) -> XlaOp:
    """Arrays of one shape as one, so that the same code is for all of them."""
    return xla.concatenate([xla.reshape(x, (1, *sizes_of(x))) for x in parts], 0)


def _apart(x: XlaOp) -> list[XlaOp]:
    """What `_together` made one."""
    count, *rest = sizes_of(x)
    return [xla.reshape(xla.slice_in_dim(x, k, k + 1), rest) for k in range(count)]


def _zeta_above(x: XlaOp, q: XlaOp) -> XlaOp:
    """For q > 0: terms up to 10, nine or more, then Euler's and Maclaurin's formula."""

    def step(i: XlaOp, state: State) -> tuple[State, XlaOp]:
        x, q, total = state
        small = xla.or_(xla.lt(q, of(q, 10)), xla.lt(_like(i, q), of(q, 10)))
        total = select(small, total + xla.power(q, -x), total)
        return (x, select(small, q + of(q, 1), q), total), small

    _, w, total = _until_settled((x, q, of(q, 0)), step, 11)
    power = xla.power(w, -x)
    rest = power * of(x, 0.5) + power * w / (x - of(x, 1))
    term = power * x / w
    for k, weight in enumerate(tables.EULER_MACLAURIN):
        rest = rest + of(x, weight) * term
        grown = (x + of(x, 2 * k + 1)) / w * ((x + of(x, 2 * k + 2)) / w)
        term = select(xla.eq(term, of(x, 0)), term, term * grown)
    return total + select(xla.eq(power, of(x, 0)), of(x, 0), rest)


def polygamma(n: XlaOp, x: XlaOp) -> XlaOp:
    """The n-th derivative of the digamma function; nan unless n is whole and not negative."""
    one = of(x, 1)
    odd = xla.not_(is_whole(n * of(n, 0.5)))
    value = xla.exponential(lgamma(n + one)) * zeta(n + one, x)
    value = select(xla.eq(n, of(n, 0)), digamma(x), select(odd, value, -value))
    valid = xla.and_(xla.ge(n, of(n, 0)), is_whole(n))
    return select(valid, value, of(x, np.nan))
