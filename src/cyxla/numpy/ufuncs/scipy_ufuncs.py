"""Ufuncs of `scipy.special` on traced arrays; SciPy itself is never imported, only recognised."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from math import log, pi, sqrt

import numpy as np

from cyxla.errors import UnimplementedError
from cyxla.numpy.tracing import trace as _trace
from cyxla.numpy.tracing.trace import Rule
from cyxla.numpy.ufuncs import float_loops as flt
from cyxla.numpy.ufuncs import gamma_functions
from cyxla.numpy.ufuncs.loop_helpers import Cotangents, Emit, Ops, Vjp, with_vjp
from cyxla.types import ElementType
from cyxla.xla.hlo.builder import XlaOp
from cyxla.xla.hlo.builder import functions as xla
from cyxla.xla.lib import gamma_function, special, special_loops
from cyxla.xla.lib import special_tables as tables
from cyxla.xla.lib.special import chebyshev, const, in_f64, is_integer_or_inf
from cyxla.xla.lib.values import select

_ROOT_HALF = sqrt(0.5)


# -- derivatives


def vjp_from_partials(*derivatives: Callable[..., XlaOp] | None) -> Vjp:
    """Return a derivative rule from one function per operand, of result and operands; None for zero."""

    def vjp(ops: Ops, outs: Ops, cts: Cotangents) -> Cotangents:
        if cts[0] is None:
            return [None] * len(ops)
        return [None if d is None else xla.multiply(cts[0], d(outs[0], *ops)) for d in derivatives]

    return vjp


def last_operand_only(function: Emit, name: str, derivative: Callable[..., XlaOp]) -> Emit:
    """Return a function that is differentiable with respect to its last operand only."""

    def forward(ops: Sequence[XlaOp], active: Sequence[bool]) -> tuple[list[XlaOp], Callable[..., Cotangents]]:
        if any(active[:-1]):
            raise UnimplementedError(
                f"scipy.special.{name} can be differentiated by its last argument only", where=_trace.user_line()
            )
        out: XlaOp = function(*ops)
        no_cotangents: list[XlaOp | None] = [None] * (len(ops) - 1)

        def pull(cts: Cotangents) -> Cotangents:
            capture = _trace.require_current().capture  # this may be another trace, such as the body of a loop
            return [*no_cotangents, None if cts[0] is None else cts[0] * derivative(*map(capture, (out, *ops)))]

        return [out], pull

    def emit(*ops: XlaOp) -> XlaOp:
        result: XlaOp = function(*ops)
        trace = _trace.current()
        if trace is not None and result.instruction is not None:
            trace.rules[result.instruction] = Rule(list(ops), [result], forward=forward)
        return result

    return emit


# -- error functions and normal distributions


def _erfcx(x: XlaOp) -> XlaOp:
    """Compute exp(x**2) erfc(x): by a Chebyshev series for positive x, else as the complement to 2 exp(x**2)."""
    magnitude = xla.abs_(x)
    is_huge = xla.gt(magnitude, const(x, 1e30))
    safe = select(is_huge, const(x, 1), magnitude)
    argument = select(is_huge, const(x, 1), (safe - const(x, 3.75)) / (safe + const(x, 3.75)))
    result = chebyshev(argument, tables.ERFCX) / (const(x, 1) + magnitude + magnitude)
    square = x * x
    mirrored = const(x, 2) * xla.exponential(square) - result
    return select(xla.lt(x, const(x, 0)), mirrored, select(xla.ne(x, x), x, result))


def _ndtr(x: XlaOp) -> XlaOp:
    return const(x, 0.5) * special.erfc(x * const(x, -_ROOT_HALF))


def _log_ndtr(x: XlaOp) -> XlaOp:
    z = x * const(x, -_ROOT_HALF)
    low = xla.lt(x, const(x, -1))
    tail = xla.log(const(x, 0.5) * _erfcx(select(low, z, const(x, 1)))) - z * z
    body = xla.log_plus_one(const(x, -0.5) * special.erfc(-z))
    return select(low, select(xla.eq(x, const(x, -np.inf)), x, tail), body)


def _density(x: XlaOp) -> XlaOp:
    return const(x, 1 / sqrt(2 * pi)) * xla.exponential(const(x, -0.5) * x * x)


def _hazard(out: XlaOp, x: XlaOp) -> XlaOp:
    """Compute the density over the probability, whose logarithm is the result."""
    return xla.exponential(const(x, -0.5) * x * x - out - const(x, log(2 * pi) / 2))


def _erfcinv(y: XlaOp) -> XlaOp:
    return special.ndtri(y * const(y, 0.5)) * const(y, -_ROOT_HALF)


def _erf_derivative(scale: float) -> Callable[[XlaOp, XlaOp], XlaOp]:
    return lambda out, x: const(x, scale * 2 / sqrt(pi)) * xla.exponential(-(x * x))


def _erfinv_derivative(scale: float) -> Callable[[XlaOp, XlaOp], XlaOp]:
    return lambda out, y: const(y, scale * sqrt(pi) / 2) * xla.exponential(out * out)


# -- logistic functions and entropies


def _logit(x: XlaOp) -> XlaOp:
    twice = const(x, 2) * (x - const(x, 0.5))
    is_near = xla.and_(xla.ge(x, const(x, 0.3)), xla.le(x, const(x, 0.65)))
    series = xla.log_plus_one(twice) - xla.log_plus_one(-twice)
    return select(is_near, series, xla.log(x / (const(x, 1) - x)))


def _log_expit(x: XlaOp) -> XlaOp:
    return xla.minimum(x, const(x, 0)) - xla.log_plus_one(xla.exponential(-xla.abs_(x)))


def _zero_times(x: XlaOp, y: XlaOp, product: XlaOp) -> XlaOp:
    """Replace results by 0 where x is 0 and y is not nan."""
    return select(xla.and_(xla.eq(x, const(x, 0)), xla.eq(y, y)), const(x, 0), product)


def _entr(x: XlaOp) -> XlaOp:
    zero = const(x, 0)
    result = -x * xla.log(select(xla.gt(x, zero), x, const(x, 1)))
    result = select(xla.eq(x, zero), zero, select(xla.lt(x, zero), const(x, -np.inf), result))
    return select(xla.ne(x, x), x, result)


def _rel_entr(x: XlaOp, y: XlaOp) -> XlaOp:
    zero, one = const(x, 0), const(x, 1)
    in_domain = xla.and_(xla.gt(x, zero), xla.gt(y, zero))
    a, b = select(in_domain, x, one), select(in_domain, y, one)
    ratio = a / b
    is_near = xla.and_(xla.gt(ratio, const(x, 0.5)), xla.lt(ratio, const(x, 2)))
    is_regular = xla.and_(xla.gt(ratio, const(x, np.finfo(np.float64).tiny)), xla.lt(ratio, const(x, np.inf)))
    logs = select(is_regular, xla.log(ratio), xla.log(a) - xla.log(b))
    result = x * select(is_near, xla.log_plus_one((a - b) / b), logs)
    at_zero = xla.and_(xla.eq(x, zero), xla.ge(y, zero))
    result = select(in_domain, result, select(at_zero, zero, const(x, np.inf)))
    return select(xla.or_(xla.ne(x, x), xla.ne(y, y)), const(x, np.nan), result)


def _kl_div(x: XlaOp, y: XlaOp) -> XlaOp:
    zero = const(x, 0)
    in_domain = xla.and_(xla.gt(x, zero), xla.gt(y, zero))
    entropy = _rel_entr(x, y)
    at_zero = xla.and_(xla.eq(x, zero), xla.ge(y, zero))
    difference = select(in_domain, (x - y) / y, zero)
    ratio = select(in_domain, x / y, const(x, 1))
    is_near = xla.and_(xla.gt(ratio, const(x, 0.5)), xla.lt(ratio, const(x, 2)))
    series = y * (ratio * gamma_functions.log1p_minus(difference, ratio) + difference * difference)
    result = select(is_near, series, entropy - x + y)
    return select(in_domain, result, select(at_zero, y, entropy))


def _exprel(x: XlaOp) -> XlaOp:
    is_zero = xla.eq(x, const(x, 0))
    safe = select(is_zero, const(x, 1), x)
    result = xla.exponential_minus_one(safe) / safe
    result = select(xla.eq(x, const(x, np.inf)), x, result)
    return select(is_zero, const(x, 1), result)


# -- transformations and losses


def _huber(delta: XlaOp, r: XlaOp) -> XlaOp:
    magnitude, half = xla.abs_(r), const(r, 0.5)
    result = select(xla.le(magnitude, delta), half * r * r, delta * (magnitude - half * delta))
    return select(xla.lt(delta, const(r, 0)), const(r, np.inf), result)


def _pseudo_huber(delta: XlaOp, r: XlaOp) -> XlaOp:
    zero, one = const(r, 0), const(r, 1)
    is_zero = xla.or_(xla.eq(delta, zero), xla.eq(r, zero))
    ratio = r / select(is_zero, one, delta)
    square = ratio * ratio
    quotient = select(xla.eq(square, const(r, np.inf)), square, square / (xla.sqrt(one + square) + one))
    result = select(is_zero, zero, delta * delta * quotient)
    return select(xla.lt(delta, zero), const(r, np.inf), result)


def _boxcox(logarithm: Emit) -> Emit:
    def emit(x: XlaOp, power: XlaOp) -> XlaOp:
        logs: XlaOp = logarithm(x)
        is_zero = xla.lt(xla.abs_(power), const(x, 1e-19 if x.shape.dtype is ElementType.F64 else 1e-9))
        safe = select(is_zero, const(x, 1), power)
        result = xla.exponential_minus_one(safe * logs) / safe
        is_large = xla.ge(safe * logs, const(x, 709.78))  # the quotient may be finite where the exponential overflows
        large_result = xla.sign(safe) * xla.exponential(safe * logs - xla.log(xla.abs_(safe))) - const(x, 1) / safe
        return select(is_zero, logs, select(is_large, large_result, result))

    return emit


def _inv_boxcox(exponential: Emit) -> Emit:
    def emit(y: XlaOp, power: XlaOp) -> XlaOp:
        is_zero = xla.eq(power, const(y, 0))
        safe = select(is_zero, const(y, 1), power)
        result = exponential(xla.log_plus_one(safe * y) / safe)
        if exponential is xla.exponential_minus_one:  # as in SciPy, for any y
            result = select(xla.lt(xla.abs_(safe * y), const(y, 1e-154)), y, result)
        return select(is_zero, exponential(y), result)

    return emit


def _cosm1(x: XlaOp) -> XlaOp:
    half = xla.sine(x * const(x, 0.5))
    result = const(x, -2) * half * half
    if x.shape.dtype is not ElementType.F64:  # SciPy rounds from f64: nothing is lost where the cosine is near 1
        return result
    return select(xla.le(xla.abs_(x), const(x, pi / 4)), result, xla.cosine(x) - const(x, 1))


def _powm1(x: XlaOp, y: XlaOp) -> XlaOp:
    is_near = xla.and_(xla.gt(x, const(x, 0)), xla.lt(xla.abs_(y * xla.log(xla.abs_(x))), const(x, 0.5)))
    safe = select(is_near, x, const(x, 1))
    return select(is_near, xla.exponential_minus_one(y * xla.log(safe)), xla.power(x, y) - const(x, 1))


def _quarter_turns(x: XlaOp) -> tuple[XlaOp, XlaOp, XlaOp]:
    """Reduce degrees: return the number of quarter turns modulo 4, and sine and cosine of the rest."""
    turn = xla.remainder(x, const(x, 360))
    count = xla.round_nearest_even(turn * const(x, 1 / 90))
    angle = (turn - count * const(x, 90)) * const(x, pi / 180)
    count = count - const(x, 4) * xla.floor(count * const(x, 0.25))
    return count, xla.sine(angle), xla.cosine(angle)


def _sine_of_degrees(start: int) -> Emit:
    """Return the sine of degrees plus quarter turns; 0 beyond 1e14, as in SciPy."""

    def emit(x: XlaOp) -> XlaOp:
        count, sine, cosine = _quarter_turns(x)
        count = count + const(x, start)
        odd = xla.not_(is_integer_or_inf(count * const(x, 0.5)))
        result = select(odd, cosine, sine)
        below = xla.and_(xla.ge(count, const(x, 2)), xla.lt(count, const(x, 4)))
        return _zero_if_huge(x, select(below, -result, result))

    return emit


def _zero_if_huge(x: XlaOp, result: XlaOp) -> XlaOp:
    return select(xla.gt(xla.abs_(x), const(x, 1e14)), const(x, 0), result)


def _tandg(x: XlaOp) -> XlaOp:
    count, sine, cosine = _quarter_turns(x)
    odd = xla.not_(is_integer_or_inf(count * const(x, 0.5)))
    result = select(odd, -cosine / sine, sine / cosine)
    pole = xla.and_(odd, xla.eq(sine, const(x, 0)))
    return _zero_if_huge(x, select(pole, const(x, np.inf), result))


# -- Bessel functions


def _i0(x: XlaOp) -> XlaOp:
    return xla.exponential(xla.abs_(x)) * special.bessel_i0e(x)


def _i1(x: XlaOp) -> XlaOp:
    return xla.exponential(xla.abs_(x)) * special.bessel_i1e(x)


def _i1_derivative(out: XlaOp, x: XlaOp) -> XlaOp:
    is_zero = xla.eq(x, const(x, 0))
    ratio = select(is_zero, const(x, 0.5), out / select(is_zero, const(x, 1), x))
    return _i0(x) - ratio


def _i1e_derivative(out: XlaOp, x: XlaOp) -> XlaOp:
    is_zero = xla.eq(x, const(x, 0))
    ratio = select(is_zero, const(x, 0.5), out / select(is_zero, const(x, 1), x))
    return special.bessel_i0e(x) - ratio - xla.sign(x) * out


# -- gamma functions


def _polygamma(n: int) -> Emit:
    """Return the n-th derivative of the digamma function, which is differentiable in turn."""
    emit: Emit = _f64(lambda x: special_loops.polygamma(const(x, n), x), lambda out, x: _polygamma(n + 1)(x))
    return emit


def _zeta_derivative(out: XlaOp, x: XlaOp, q: XlaOp) -> XlaOp:
    next_zeta: XlaOp = _ZETA(x + const(x, 1), q)
    return -x * next_zeta


def _gamma_density(sign: float) -> Callable[..., XlaOp]:
    def slope(out: XlaOp, a: XlaOp, x: XlaOp) -> XlaOp:
        power = (a - const(a, 1)) * xla.log(x) - x - gamma_function.log_gamma(a)
        return const(x, sign) * xla.exponential(power)

    return slope


def _gamma_by_shape(sign: float) -> Callable[..., XlaOp]:
    return lambda out, a, x: const(x, sign) * in_f64(special_loops.igamma_grad_a)(a, x)


def _beta_density(sign: float) -> Callable[..., XlaOp]:
    def slope(out: XlaOp, a: XlaOp, b: XlaOp, x: XlaOp) -> XlaOp:
        one = const(x, 1)
        power = (a - one) * xla.log(x) + (b - one) * xla.log_plus_one(-x) - gamma_functions.betaln(a, b)
        return const(x, sign) * xla.exponential(power)

    return slope


def _chi_square(function: Emit) -> Emit:
    return lambda v, x: function(v * const(v, 0.5), x * const(x, 0.5))


def _poisson(function: Emit) -> Emit:
    def emit(k: XlaOp, m: XlaOp) -> XlaOp:
        result: XlaOp = function(xla.floor(k) + const(k, 1), m)
        return select(xla.lt(k, const(k, 0)), const(k, np.nan), result)

    return emit


def _gamma_distribution(function: Emit) -> Emit:
    def emit(a: XlaOp, b: XlaOp, x: XlaOp) -> XlaOp:
        result: XlaOp = function(b, a * x)
        return select(xla.lt(x, const(x, 0)), const(x, np.nan), result)

    return emit


def _with_partials(function: Emit, *derivatives: Callable[..., XlaOp] | None) -> Emit:
    """Return a function in the operands' own dtype with derivatives."""
    return with_vjp(function, vjp_from_partials(*derivatives)) if derivatives else function


def _f64(function: Emit, *derivatives: Callable[..., XlaOp] | None) -> Emit:
    """Return a function computed in f64 with derivatives."""
    return _with_partials(in_f64(function), *derivatives)


_DIGAMMA = _f64(gamma_functions.psi, lambda out, x: _polygamma(1)(x))
_ZETA = last_operand_only(in_f64(gamma_functions.hurwitz), "zeta", _zeta_derivative)
_GAMMAINC = _f64(lambda a, x: gamma_functions.gammainc_pair(a, x)[0], _gamma_by_shape(1), _gamma_density(1))
_GAMMAINCC = _f64(lambda a, x: gamma_functions.gammainc_pair(a, x)[1], _gamma_by_shape(-1), _gamma_density(-1))

# fmt: off
_TABLE: dict[str, Emit] = {
    "erf":           xla.erf,
    "erfc":          _with_partials(special.erfc, _erf_derivative(-1)),
    "erfcx":         _f64(_erfcx, lambda out, x: const(x, 2) * x * out - const(x, 2 / sqrt(pi))),
    "erfinv":        _with_partials(special.erfinv, _erfinv_derivative(1)),
    "erfcinv":       _with_partials(_erfcinv, _erfinv_derivative(-1)),
    "ndtr":          _f64(_ndtr, lambda out, x: _density(x)),
    "ndtri":         _f64(special.ndtri, lambda out, p: const(p, 1) / _density(out)),
    "log_ndtr":      _f64(_log_ndtr, _hazard),
    "expit":         xla.logistic,
    "logit":         _with_partials(_logit, lambda out, x: const(x, 1) / (x * (const(x, 1) - x))),
    "log_expit":     _with_partials(_log_expit, lambda out, x: xla.logistic(-x)),
    "xlogy":         _with_partials(lambda x, y: _zero_times(x, y, x * xla.log(y)), lambda out, x, y: xla.log(y),
                         lambda out, x, y: x / y),
    "xlog1py":       _with_partials(lambda x, y: _zero_times(x, y, x * xla.log_plus_one(y)),
                         lambda out, x, y: xla.log_plus_one(y), lambda out, x, y: x / (const(y, 1) + y)),
    "entr":          _with_partials(_entr, lambda out, x: -(xla.log(x) + const(x, 1))),
    "rel_entr":      _f64(_rel_entr, lambda out, x, y: xla.log(x / y) + const(x, 1), lambda out, x, y: -(x / y)),
    "kl_div":        _f64(_kl_div, lambda out, x, y: xla.log(x / y), lambda out, x, y: const(x, 1) - x / y),
    "exprel":        _f64(_exprel),
    "cbrt":          xla.cbrt,
    "exp2":          flt.exp2,
    "exp10":         _with_partials(lambda x: xla.power(const(x, 10), x), lambda out, x: out * const(x, log(10))),
    "expm1":         xla.exponential_minus_one,
    "log1p":         xla.log_plus_one,
    "huber":         _huber,
    "pseudo_huber":  _f64(_pseudo_huber),
    "boxcox":        _f64(_boxcox(xla.log)),
    "boxcox1p":      _f64(_boxcox(xla.log_plus_one)),
    "inv_boxcox":    _f64(_inv_boxcox(xla.exponential)),
    "inv_boxcox1p":  _f64(_inv_boxcox(xla.exponential_minus_one)),
    "cosm1":         _cosm1,
    "powm1":         _powm1,
    "sindg":         _f64(_sine_of_degrees(0)),
    "cosdg":         _f64(_sine_of_degrees(1)),
    "tandg":         _f64(_tandg),
    "i0":            _f64(_i0, lambda out, x: in_f64(_i1)(x)),
    "i0e":           _f64(special.bessel_i0e, lambda out, x: in_f64(special.bessel_i1e)(x) - xla.sign(x) * out),
    "i1":            _f64(_i1, lambda out, x: in_f64(_i1_derivative)(out, x)),
    "i1e":           _f64(special.bessel_i1e, lambda out, x: in_f64(_i1e_derivative)(out, x)),
    "gamma":         _f64(gamma_functions.gamma, lambda out, x: out * _DIGAMMA(x)),
    "gammaln":       _f64(gamma_functions.gammaln, lambda out, x: _DIGAMMA(x)),
    "loggamma":      _f64(gamma_functions.loggamma, lambda out, x: _DIGAMMA(x)),
    "rgamma":        _f64(gamma_functions.rgamma, lambda out, x: -out * _DIGAMMA(x)),
    "gammasgn":      gamma_functions.gammasgn,
    "psi":           _f64(gamma_functions.psi, lambda out, x: _polygamma(1)(x)),
    "beta":          _f64(gamma_functions.beta, *(lambda out, a, b, k=k: out * (_DIGAMMA((a, b)[k])
                                    - _DIGAMMA(a + b)) for k in range(2))),
    "betaln":        _f64(gamma_functions.betaln, *(lambda out, a, b, k=k: _DIGAMMA((a, b)[k])
                                      - _DIGAMMA(a + b) for k in range(2))),
    "betainc":       last_operand_only(in_f64(lambda a, b, x: gamma_functions.betainc_pair(a, b, x)[0]), "betainc",
                                       _beta_density(1)),
    "betaincc":      last_operand_only(in_f64(lambda a, b, x: gamma_functions.betainc_pair(a, b, x)[1]), "betaincc",
                                       _beta_density(-1)),
    "gammainc":      _GAMMAINC,
    "gammaincc":     _GAMMAINCC,
    "chdtr":         _chi_square(_GAMMAINC),
    "chdtrc":        _chi_square(_GAMMAINCC),
    "gdtr":          _gamma_distribution(_GAMMAINC),
    "gdtrc":         _gamma_distribution(_GAMMAINCC),
    "pdtr":          _poisson(_GAMMAINCC),
    "pdtrc":         _poisson(_GAMMAINC),
    "binom":         _f64(gamma_functions.binom),
    "_zeta":         _ZETA,
    "_riemann_zeta": _f64(gamma_functions.zeta),
}
# fmt: on


def names() -> list[str]:
    """Return the names of `scipy.special` that can be traced."""
    public = {n.removeprefix("_") for n in _TABLE} - {"riemann_zeta"}
    return sorted({*public, "digamma", "softplus"})


def find_special(ufunc: np.ufunc) -> Emit | None:
    """Return the loop of a ufunc of `scipy.special`; None if it is not supported."""
    emit = _TABLE.get(ufunc.__name__)
    module = sys.modules.get("scipy.special._ufuncs")
    if emit is None or module is None or getattr(module, ufunc.__name__, None) is not ufunc:
        return None
    return _real_only(ufunc.__name__, emit)


def _real_only(name: str, emit: Emit) -> Emit:
    def checked(*ops: XlaOp) -> XlaOp:
        if ops[0].shape.dtype.is_complex and name not in ("expm1", "log1p"):
            raise UnimplementedError(
                f"scipy.special.{name} of complex numbers cannot be traced", where=_trace.user_line(),
                hint="apply it to real numbers",
            )  # fmt: skip
        result: XlaOp = emit(*ops)
        return result

    return checked
