"""The ufuncs of `scipy.special` on traced arrays; SciPy itself is never imported, only recognised."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from math import log, pi, sqrt

import numpy as np

from cyxla.errors import UnimplementedError
from cyxla.numpy.tracing import trace as _trace
from cyxla.numpy.tracing.trace import Rule
from cyxla.numpy.ufuncs import floats as flt
from cyxla.numpy.ufuncs.emitting import Cotangents, Emit, Ops, Vjp, with_derivative
from cyxla.types import ElementType
from cyxla.xla.hlo.builder import XlaOp
from cyxla.xla.hlo.builder import functions as xla
from cyxla.xla.lib import gamma_function, special, special_loops
from cyxla.xla.lib import special_tables as tables
from cyxla.xla.lib.special import chebyshev, in_f64, is_whole, of
from cyxla.xla.lib.values import select

_ROOT_HALF = sqrt(0.5)


# -- derivatives


def by(*slopes: Callable[..., XlaOp] | None) -> Vjp:
    """A rule from the derivative by each operand: a function of the result and the operands, None for zero."""

    def vjp(ops: Ops, outs: Ops, cts: Cotangents) -> Cotangents:
        if cts[0] is None:
            return [None] * len(ops)
        return [None if s is None else xla.multiply(cts[0], s(outs[0], *ops)) for s in slopes]

    return vjp


def partly(function: Emit, name: str, last: Callable[..., XlaOp]) -> Emit:
    """A function whose derivative is known by its last operand only."""

    def again(ops: Sequence[XlaOp], active: Sequence[bool]) -> tuple[list[XlaOp], Callable[..., Cotangents]]:
        if any(active[:-1]):
            raise UnimplementedError(
                f"the gradient of scipy.special.{name} is known by its last argument only", where=_trace.place()
            )
        out: XlaOp = function(*ops)
        nothing: list[XlaOp | None] = [None] * (len(ops) - 1)
        return [out], lambda cts: [*nothing, None if cts[0] is None else cts[0] * last(out, *ops)]

    def emit(*ops: XlaOp) -> XlaOp:
        made: XlaOp = function(*ops)
        trace = _trace.current()
        if trace is not None and made.instruction is not None:
            trace.rules[made.instruction] = Rule(list(ops), [made], again=again)
        return made

    return emit


# -- error functions and normal distributions


def _erfcx(x: XlaOp) -> XlaOp:
    """exp(x^2) erfc(x): a series where x is positive, and what is missing to 2 exp(x^2) elsewhere."""
    size = xla.abs_(x)
    far = xla.gt(size, of(x, 1e30))
    held = select(far, of(x, 1), size)
    place = select(far, of(x, 1), (held - of(x, 3.75)) / (held + of(x, 3.75)))
    found = chebyshev(place, tables.ERFCX) / (of(x, 1) + size + size)
    square = x * x
    mirrored = of(x, 2) * xla.exponential(square) - found
    return select(xla.lt(x, of(x, 0)), mirrored, select(xla.ne(x, x), x, found))


def _ndtr(x: XlaOp) -> XlaOp:
    return of(x, 0.5) * special.erfc(x * of(x, -_ROOT_HALF))


def _log_ndtr(x: XlaOp) -> XlaOp:
    z = x * of(x, -_ROOT_HALF)
    low = xla.lt(x, of(x, -1))
    tail = xla.log(of(x, 0.5) * _erfcx(select(low, z, of(x, 1)))) - z * z
    body = xla.log_plus_one(of(x, -0.5) * special.erfc(-z))
    return select(low, select(xla.eq(x, of(x, -np.inf)), x, tail), body)


def _density(x: XlaOp) -> XlaOp:
    return of(x, 1 / sqrt(2 * pi)) * xla.exponential(of(x, -0.5) * x * x)


def _hazard(out: XlaOp, x: XlaOp) -> XlaOp:
    """The density over the probability, whose logarithm is the result."""
    return xla.exponential(of(x, -0.5) * x * x - out - of(x, log(2 * pi) / 2))


def _erfcinv(y: XlaOp) -> XlaOp:
    return special.ndtri(y * of(y, 0.5)) * of(y, -_ROOT_HALF)


def _erf_slope(scale: float) -> Callable[[XlaOp, XlaOp], XlaOp]:
    return lambda out, x: of(x, scale * 2 / sqrt(pi)) * xla.exponential(-(x * x))


def _inverse_slope(scale: float) -> Callable[[XlaOp, XlaOp], XlaOp]:
    return lambda out, y: of(y, scale * sqrt(pi) / 2) * xla.exponential(out * out)


# -- logistic functions and entropies


def _logit(x: XlaOp) -> XlaOp:
    twice = of(x, 2) * (x - of(x, 0.5))
    near = xla.and_(xla.ge(x, of(x, 0.3)), xla.le(x, of(x, 0.65)))
    series = xla.log_plus_one(twice) - xla.log_plus_one(-twice)
    return select(near, series, xla.log(x / (of(x, 1) - x)))


def _log_expit(x: XlaOp) -> XlaOp:
    return xla.minimum(x, of(x, 0)) - xla.log_plus_one(xla.exponential(-xla.abs_(x)))


def _unless_zero(x: XlaOp, y: XlaOp, made: XlaOp) -> XlaOp:
    """0 where x is 0 and y is a number."""
    return select(xla.and_(xla.eq(x, of(x, 0)), xla.eq(y, y)), of(x, 0), made)


def _entr(x: XlaOp) -> XlaOp:
    zero = of(x, 0)
    found = -x * xla.log(select(xla.gt(x, zero), x, of(x, 1)))
    found = select(xla.eq(x, zero), zero, select(xla.lt(x, zero), of(x, -np.inf), found))
    return select(xla.ne(x, x), x, found)


def _rel_entr(x: XlaOp, y: XlaOp) -> XlaOp:
    zero, one = of(x, 0), of(x, 1)
    inside = xla.and_(xla.gt(x, zero), xla.gt(y, zero))
    found = x * xla.log(select(inside, x, one) / select(inside, y, one))
    edge = xla.and_(xla.eq(x, zero), xla.ge(y, zero))
    found = select(inside, found, select(edge, zero, of(x, np.inf)))
    return select(xla.or_(xla.ne(x, x), xla.ne(y, y)), of(x, np.nan), found)


def _kl_div(x: XlaOp, y: XlaOp) -> XlaOp:
    zero = of(x, 0)
    inside = xla.and_(xla.gt(x, zero), xla.gt(y, zero))
    entropy = _rel_entr(x, y)
    edge = xla.and_(xla.eq(x, zero), xla.ge(y, zero))
    return select(inside, entropy - x + y, select(edge, y, entropy))


def _exprel(x: XlaOp) -> XlaOp:
    nothing = xla.eq(x, of(x, 0))
    held = select(nothing, of(x, 1), x)
    found = xla.exponential_minus_one(held) / held
    found = select(xla.eq(x, of(x, np.inf)), x, found)
    return select(nothing, of(x, 1), found)


# -- transformations and losses


def _huber(delta: XlaOp, r: XlaOp) -> XlaOp:
    size, half = xla.abs_(r), of(r, 0.5)
    found = select(xla.le(size, delta), half * r * r, delta * (size - half * delta))
    return select(xla.lt(delta, of(r, 0)), of(r, np.inf), found)


def _pseudo_huber(delta: XlaOp, r: XlaOp) -> XlaOp:
    zero, one = of(r, 0), of(r, 1)
    nothing = xla.or_(xla.eq(delta, zero), xla.eq(r, zero))
    ratio = r / select(nothing, one, delta)
    square = ratio * ratio
    found = delta * delta * (square / (xla.sqrt(one + square) + one))
    found = select(xla.eq(xla.abs_(r), of(r, np.inf)), of(r, np.inf), select(nothing, zero, found))
    return select(xla.lt(delta, zero), of(r, np.inf), found)


def _boxcox(logarithm: Emit) -> Emit:
    def emit(x: XlaOp, power: XlaOp) -> XlaOp:
        logs: XlaOp = logarithm(x)
        flat = xla.lt(xla.abs_(power), of(x, 1e-19 if x.shape.dtype is ElementType.F64 else 1e-9))
        held = select(flat, of(x, 1), power)
        return select(flat, logs, xla.exponential_minus_one(held * logs) / held)

    return emit


def _inv_boxcox(exponential: Emit) -> Emit:
    def emit(y: XlaOp, power: XlaOp) -> XlaOp:
        flat = xla.eq(power, of(y, 0))
        held = select(flat, of(y, 1), power)
        return select(flat, exponential(y), exponential(xla.log_plus_one(held * y) / held))

    return emit


def _cosm1(x: XlaOp) -> XlaOp:
    half = xla.sine(x * of(x, 0.5))
    made = of(x, -2) * half * half
    if x.shape.dtype is not ElementType.F64:  # SciPy's are rounded from f64: nothing is lost where the cosine is near 1
        return made
    return select(xla.le(xla.abs_(x), of(x, pi / 4)), made, xla.cosine(x) - of(x, 1))


def _powm1(x: XlaOp, y: XlaOp) -> XlaOp:
    near = xla.and_(xla.gt(x, of(x, 0)), xla.lt(xla.abs_(y * xla.log(xla.abs_(x))), of(x, 0.5)))
    held = select(near, x, of(x, 1))
    return select(near, xla.exponential_minus_one(y * xla.log(held)), xla.power(x, y) - of(x, 1))


def _turns(function: Emit, shift: float) -> Emit:
    """A circular function of degrees, exact where its values are."""

    def emit(x: XlaOp) -> XlaOp:
        made: XlaOp = function(x * of(x, 1 / 180) + of(x, shift))
        return made

    return emit


def _tandg(x: XlaOp) -> XlaOp:
    turns = x * of(x, 1 / 180)
    return gamma_function.sine_of_turns(turns) / gamma_function.sine_of_turns(turns + of(x, 0.5))


# -- Bessel functions


def _i0(x: XlaOp) -> XlaOp:
    return xla.exponential(xla.abs_(x)) * special.bessel_i0e(x)


def _i1(x: XlaOp) -> XlaOp:
    return xla.exponential(xla.abs_(x)) * special.bessel_i1e(x)


def _i1_slope(out: XlaOp, x: XlaOp) -> XlaOp:
    nothing = xla.eq(x, of(x, 0))
    ratio = select(nothing, of(x, 0.5), out / select(nothing, of(x, 1), x))
    return _i0(x) - ratio


def _i1e_slope(out: XlaOp, x: XlaOp) -> XlaOp:
    nothing = xla.eq(x, of(x, 0))
    ratio = select(nothing, of(x, 0.5), out / select(nothing, of(x, 1), x))
    return special.bessel_i0e(x) - ratio - xla.sign(x) * out


# -- gamma functions


def _gammaln(x: XlaOp) -> XlaOp:
    return select(xla.eq(x, of(x, -np.inf)), x, gamma_function.log_gamma(x))


def _psi(x: XlaOp) -> XlaOp:
    return select(xla.eq(x, of(x, 0)), of(x, -1) / x, special.digamma(x))


def _hurwitz(x: XlaOp, q: XlaOp) -> XlaOp:
    pole = xla.and_(xla.and_(xla.le(q, of(q, 0)), is_whole(q)), xla.gt(x, of(x, 1)))
    return select(pole, of(x, np.inf), special_loops.zeta(x, q))


def _loggamma(x: XlaOp) -> XlaOp:
    return select(xla.lt(x, of(x, 0)), of(x, np.nan), gamma_function.log_gamma(x))


def _gammasgn(x: XlaOp) -> XlaOp:
    zero, one = of(x, 0), of(x, 1)
    floor = xla.floor(x)
    odd = xla.not_(is_whole(floor * of(x, 0.5)))
    sign = select(odd, -one, one)
    below = select(xla.eq(floor, x), of(x, np.nan), sign)
    found = select(xla.gt(x, zero), one, select(xla.lt(x, zero), below, flt.copysign(one, x)))
    return select(xla.ne(x, x), x, found)


def _rgamma(x: XlaOp) -> XlaOp:
    pole = xla.and_(xla.le(x, of(x, 0)), is_whole(x))
    return select(pole, of(x, 0), of(x, 1) / gamma_function.gamma(select(pole, of(x, 1), x)))


def _betaln(a: XlaOp, b: XlaOp) -> XlaOp:
    plain = gamma_function.log_gamma(a) + gamma_function.log_gamma(b) - gamma_function.log_gamma(a + b)
    great, small = xla.maximum(a, b), xla.minimum(a, b)
    far = xla.and_(xla.gt(great, of(a, 1e6) * xla.maximum(small, of(a, 1))), xla.lt(great, of(a, 1e300)))
    far = xla.and_(far, xla.gt(small, of(a, 0)))
    great, small = select(far, great, of(a, 1e6)), select(far, small, of(a, 1))
    total = great + small  # Stirling's series, in which what cancels is left out
    rest = (of(a, 1 / 12) / great - of(a, 1 / 12) / total) - of(a, 1 / 360) / (great * great * great)
    gap = small - (great - of(a, 0.5)) * xla.log_plus_one(small / great) - small * xla.log(total) + rest
    return select(far, gamma_function.log_gamma(small) + gap, plain)


def _beta(a: XlaOp, b: XlaOp) -> XlaOp:
    total = a + b
    small = xla.and_(xla.lt(xla.abs_(total), of(a, 170)), xla.lt(xla.maximum(xla.abs_(a), xla.abs_(b)), of(a, 170)))
    held = [select(small, v, of(v, 1)) for v in (a, b, total)]
    gammas = [gamma_function.gamma(v) for v in held]
    product = gammas[0] / gammas[2] * gammas[1]
    found = select(small, product, xla.exponential(_betaln(a, b)))
    return select(xla.or_(xla.eq(a, of(a, 0)), xla.eq(b, of(b, 0))), of(a, np.inf), found)


def _binom(n: XlaOp, k: XlaOp) -> XlaOp:
    one = of(n, 1)
    found = one / ((n + one) * _beta(one + n - k, one + k))
    whole = xla.and_(is_whole(n), is_whole(k))
    return select(whole, xla.round_nearest_even(found), found)


def _zeta(x: XlaOp) -> XlaOp:
    """Riemann's; below 0 by the functional equation."""
    one = of(x, 1)
    low = xla.lt(x, of(x, 0))
    held = select(low, one - x, x)
    # between 0 and 1 the alternating series, made to settle by Euler's means, is what there is
    strip = xla.and_(xla.ge(held, of(x, 0)), xla.lt(held, one))
    found = special_loops.zeta(select(strip, of(x, 2), held), one)
    found = select(strip, _in_strip(select(strip, held, of(x, 0.5))), found)
    angle = gamma_function.sine_of_turns(x * of(x, 0.5))
    factor = xla.power(of(x, 2), x) * xla.power(of(x, pi), x - one) * angle * gamma_function.gamma(held)
    return select(low, factor * found, found)


def _in_strip(x: XlaOp) -> XlaOp:
    """P. Borwein, "An efficient algorithm for the Riemann zeta function", 2000, for 0 <= x < 1."""
    count = 24
    weights = _borwein(count)
    total = of(x, 0)
    for k in range(count):
        total = total + of(x, weights[k]) * xla.power(of(x, k + 1), -x)
    return total / (of(x, 1) - xla.power(of(x, 2), of(x, 1) - x))


def _borwein(count: int) -> list[float]:
    from math import factorial as f

    sums, running = [], 0.0
    for i in range(count + 1):
        running += f(count + i - 1) * 4**i / (f(count - i) * f(2 * i))
        sums.append(count * running)
    return [(-1.0) ** k * (sums[-1] - sums[k]) / sums[-1] for k in range(count)]


def _polygamma(n: int) -> Emit:
    """The n-th derivative of the digamma function, whose own derivative is the next."""
    emit: Emit = _wide(lambda x: special_loops.polygamma(of(x, n), x), lambda out, x: _polygamma(n + 1)(x))
    return emit


def _zeta_slope(out: XlaOp, x: XlaOp, q: XlaOp) -> XlaOp:
    following: XlaOp = _ZETA(x + of(x, 1), q)
    return -x * following


def _swapped(function: Emit) -> Emit:
    """The other tail of the incomplete beta function."""
    return lambda a, b, x: function(b, a, of(x, 1) - x)


def _gamma_density(sign: float) -> Callable[..., XlaOp]:
    def slope(out: XlaOp, a: XlaOp, x: XlaOp) -> XlaOp:
        power = (a - of(a, 1)) * xla.log(x) - x - gamma_function.log_gamma(a)
        return of(x, sign) * xla.exponential(power)

    return slope


def _gamma_by_shape(sign: float) -> Callable[..., XlaOp]:
    return lambda out, a, x: of(x, sign) * in_f64(special_loops.igamma_grad_a)(a, x)


def _beta_density(sign: float) -> Callable[..., XlaOp]:
    def slope(out: XlaOp, a: XlaOp, b: XlaOp, x: XlaOp) -> XlaOp:
        one = of(x, 1)
        power = (a - one) * xla.log(x) + (b - one) * xla.log_plus_one(-x) - _betaln(a, b)
        return of(x, sign) * xla.exponential(power)

    return slope


def _lower(a: XlaOp, x: XlaOp) -> XlaOp:
    return select(_all_at_zero(a, x), of(x, 1), special_loops.igamma(a, x))


def _upper(a: XlaOp, x: XlaOp) -> XlaOp:
    return select(_all_at_zero(a, x), of(x, 0), special_loops.igammac(a, x))


def _all_at_zero(a: XlaOp, x: XlaOp) -> XlaOp:
    return xla.and_(xla.eq(a, of(a, 0)), xla.gt(x, of(x, 0)))


def _halves(function: Emit) -> Emit:
    return lambda v, x: function(v * of(v, 0.5), x * of(x, 0.5))


def _poisson(function: Emit) -> Emit:
    def emit(k: XlaOp, m: XlaOp) -> XlaOp:
        made: XlaOp = function(xla.floor(k) + of(k, 1), m)
        return select(xla.lt(k, of(k, 0)), of(k, np.nan), made)

    return emit


def _of(function: Emit, *slopes: Callable[..., XlaOp] | None) -> Emit:
    """A function in the operands' own type, with its derivatives."""
    return with_derivative(function, by(*slopes)) if slopes else function


def _wide(function: Emit, *slopes: Callable[..., XlaOp] | None) -> Emit:
    """The same, computed in f64."""
    return _of(in_f64(function), *slopes)


_DIGAMMA = _wide(special.digamma, lambda out, x: _polygamma(1)(x))
_ZETA = partly(in_f64(_hurwitz), "zeta", _zeta_slope)
_GAMMAINC = _wide(_lower, _gamma_by_shape(1), _gamma_density(1))
_GAMMAINCC = _wide(_upper, _gamma_by_shape(-1), _gamma_density(-1))

# fmt: off
_TABLE: dict[str, Emit] = {
    "erf":           xla.erf,
    "erfc":          _of(special.erfc, _erf_slope(-1)),
    "erfcx":         _wide(_erfcx, lambda out, x: of(x, 2) * x * out - of(x, 2 / sqrt(pi))),
    "erfinv":        _of(special.erfinv, _inverse_slope(1)),
    "erfcinv":       _of(_erfcinv, _inverse_slope(-1)),
    "ndtr":          _wide(_ndtr, lambda out, x: _density(x)),
    "ndtri":         _wide(special.ndtri, lambda out, p: of(p, 1) / _density(out)),
    "log_ndtr":      _wide(_log_ndtr, _hazard),
    "expit":         xla.logistic,
    "logit":         _of(_logit, lambda out, x: of(x, 1) / (x * (of(x, 1) - x))),
    "log_expit":     _of(_log_expit, lambda out, x: xla.logistic(-x)),
    "xlogy":         _of(lambda x, y: _unless_zero(x, y, x * xla.log(y)), lambda out, x, y: xla.log(y),
                         lambda out, x, y: x / y),
    "xlog1py":       _of(lambda x, y: _unless_zero(x, y, x * xla.log_plus_one(y)),
                         lambda out, x, y: xla.log_plus_one(y), lambda out, x, y: x / (of(y, 1) + y)),
    "entr":          _of(_entr, lambda out, x: -(xla.log(x) + of(x, 1))),
    "rel_entr":      _wide(_rel_entr, lambda out, x, y: xla.log(x / y) + of(x, 1), lambda out, x, y: -(x / y)),
    "kl_div":        _wide(_kl_div, lambda out, x, y: xla.log(x / y), lambda out, x, y: of(x, 1) - x / y),
    "exprel":        _exprel,
    "cbrt":          xla.cbrt,
    "exp2":          flt.exp2,
    "exp10":         _of(lambda x: xla.power(of(x, 10), x), lambda out, x: out * of(x, log(10))),
    "expm1":         xla.exponential_minus_one,
    "log1p":         xla.log_plus_one,
    "huber":         _huber,
    "pseudo_huber":  _pseudo_huber,
    "boxcox":        _wide(_boxcox(xla.log)),
    "boxcox1p":      _wide(_boxcox(xla.log_plus_one)),
    "inv_boxcox":    _wide(_inv_boxcox(xla.exponential)),
    "inv_boxcox1p":  _wide(_inv_boxcox(xla.exponential_minus_one)),
    "cosm1":         _cosm1,
    "powm1":         _powm1,
    "sindg":         _wide(_turns(gamma_function.sine_of_turns, 0)),
    "cosdg":         _wide(_turns(gamma_function.sine_of_turns, 0.5)),
    "tandg":         _wide(_tandg),
    "i0":            _wide(_i0, lambda out, x: in_f64(_i1)(x)),
    "i0e":           _wide(special.bessel_i0e, lambda out, x: in_f64(special.bessel_i1e)(x) - xla.sign(x) * out),
    "i1":            _wide(_i1, lambda out, x: in_f64(_i1_slope)(out, x)),
    "i1e":           _wide(special.bessel_i1e, lambda out, x: in_f64(_i1e_slope)(out, x)),
    "gamma":         _wide(gamma_function.gamma, lambda out, x: out * _DIGAMMA(x)),
    "gammaln":       _wide(_gammaln, lambda out, x: _DIGAMMA(x)),
    "loggamma":      _wide(_loggamma, lambda out, x: _DIGAMMA(x)),
    "rgamma":        _wide(_rgamma, lambda out, x: -out * _DIGAMMA(x)),
    "gammasgn":      _gammasgn,
    "psi":           _wide(_psi, lambda out, x: _polygamma(1)(x)),
    "beta":          _wide(_beta, *(lambda out, a, b, k=k: out * (_DIGAMMA((a, b)[k])
                                    - _DIGAMMA(a + b)) for k in range(2))),
    "betaln":        _wide(_betaln, *(lambda out, a, b, k=k: _DIGAMMA((a, b)[k])
                                      - _DIGAMMA(a + b) for k in range(2))),
    "betainc":       partly(in_f64(special_loops.betainc), "betainc", _beta_density(1)),
    "betaincc":      partly(in_f64(_swapped(special_loops.betainc)), "betaincc", _beta_density(-1)),
    "gammainc":      _GAMMAINC,
    "gammaincc":     _GAMMAINCC,
    "chdtr":         _halves(_GAMMAINC),
    "chdtrc":        _halves(_GAMMAINCC),
    "gdtr":          lambda a, b, x: _GAMMAINC(b, a * x),
    "gdtrc":         lambda a, b, x: _GAMMAINCC(b, a * x),
    "pdtr":          _poisson(_GAMMAINCC),
    "pdtrc":         _poisson(_GAMMAINC),
    "binom":         _wide(_binom),
    "_zeta":         _ZETA,
    "_riemann_zeta": _wide(_zeta),
}
# fmt: on


def names() -> list[str]:
    """Names of `scipy.special` that can be traced."""
    public = {n.removeprefix("_") for n in _TABLE} - {"riemann_zeta"}
    return sorted({*public, "digamma", "softplus"})


def find_special(ufunc: np.ufunc) -> Emit | None:
    """The row of a ufunc of `scipy.special`; None if there is none."""
    emit = _TABLE.get(ufunc.__name__)
    module = sys.modules.get("scipy.special._ufuncs")
    if emit is None or module is None or getattr(module, ufunc.__name__, None) is not ufunc:
        return None
    return _of_reals(ufunc.__name__, emit)


def _of_reals(name: str, emit: Emit) -> Emit:
    def checked(*ops: XlaOp) -> XlaOp:
        if ops[0].shape.dtype.is_complex and name not in ("expm1", "log1p"):
            raise UnimplementedError(
                f"scipy.special.{name} of complex numbers cannot be traced", where=_trace.place(),
                hint="of the real and imaginary parts it can",
            )  # fmt: skip
        made: XlaOp = emit(*ops)
        return made

    return checked
