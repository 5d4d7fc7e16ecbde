"""Gamma, beta, binomial and zeta functions as in SciPy: poles, signs, and terms that avoid cancellation."""

from __future__ import annotations

from collections.abc import Callable
from math import e, factorial, log, pi, sqrt
from typing import Final

import numpy as np

from cyxla.numpy.ufuncs import float_loops as flt
from cyxla.xla.hlo.builder import XlaOp
from cyxla.xla.hlo.builder import functions as xla
from cyxla.xla.lib import gamma_function, special, special_loops
from cyxla.xla.lib.special import const, is_integer_or_inf, polynomial
from cyxla.xla.lib.values import select

#: Positive root of the digamma function: a float, and the error of its rounding.
_DIGAMMA_ROOT: Final = (1.4616321449683622, 9.549995429965697e-17)
#: Coefficients of the digamma function by the distance from its root, without the constant term.
_DIGAMMA_SERIES: Final = (
    0.9676722454476212, -0.4427631689835921, 0.258499760955651, -0.16394270544240652, 0.10782405069126237,
    -0.07219956125645471, 0.04880428816414311, -0.03316112647484736, 0.022597648232218104, -0.01542476590494896,
    0.010538791616612175, -0.007204534386356869, 0.004926781395729853, -0.003369801655439328, 0.002305126326734928,
    -0.0015769367714301972, 0.0010788252019162967, -0.0007380709389960052, 0.000504953265834602,
    -0.0003454680251063077, 0.00023635601564027053, -0.00016170622091974803, 0.0001106337276874741,
    -7.569179582195066e-05, 5.178575795222081e-05, -3.5430070947659604e-05,
)  # fmt: skip
#: Coefficients of log(gamma(1 + a)) / a by a.
_LOG_GAMMA_1P: Final = (
    -0.5772156649015329, 0.8224670334241132, -0.40068563438653143, 0.27058080842778454, -0.20738555102867398,
    0.1695571769974082, -0.1440498967688461, 0.12550966952474304, -0.11133426586956469, 0.1000994575127818,
    -0.09095401714582904, 0.083353840546109, -0.0769325164113522, 0.07143294629536133, -0.06666870588242046,
    0.06250095514121304, -0.058823978658684585, 0.055555767627403614, -0.05263167937961666, 0.05000004769810169,
    -0.047619070330142226, 0.04545455629320467, -0.04347826605304026, 0.04166666915034121, -0.04000000119214014,
    0.03846153903467518, -0.037037037312989324,
)  # fmt: skip
#: Coefficients of Temme's expansion for large a, by eta: of 1 and of 1 / a.
_TEMME: Final = (
    (
        -0.3333333333333333, 0.08333333333333333, -0.014814814814814815, 0.0011574074074074073, 0.0003527336860670194,
        -0.0001787551440329218, 3.919263178522438e-05, -2.185448510679992e-06, -1.85406221071516e-06,
        8.296711340953087e-07, -1.7665952736826078e-07, 6.707853543401498e-09, 1.0261809784240309e-08,
        -4.382036018453353e-09,
    ),
    (
        -0.001851851851851852, -0.003472222222222222, 0.0026455026455026454, -0.0009902263374485596,
        0.00020576131687242798, -4.018775720164609e-07, -1.8098550334489977e-05, 7.64916091608111e-06,
    ),
)  # fmt: skip
_STIRLING: Final = (1 / 12, -1 / 360, 1 / 1260, -1 / 1680)


def _is_pole(x: XlaOp) -> XlaOp:
    return xla.and_(xla.le(x, const(x, 0)), is_integer_or_inf(x))


# -- gamma and digamma


def gamma(x: XlaOp) -> XlaOp:
    """Compute gamma; near 0 as the reciprocal."""
    near_zero = xla.lt(xla.abs_(x), const(x, 1e-20))
    return select(near_zero, const(x, 1) / x, gamma_function.gamma(x))


def rgamma(x: XlaOp) -> XlaOp:
    """Compute 1 / gamma; 0 at the poles."""
    near_zero, pole = xla.lt(xla.abs_(x), const(x, 1e-20)), _is_pole(x)
    result = const(x, 1) / gamma_function.gamma(select(xla.or_(pole, near_zero), const(x, 1), x))
    return select(pole, const(x, 0), select(near_zero, x, result))


def gammaln(x: XlaOp) -> XlaOp:
    """Compute log(abs(gamma))."""
    return select(xla.eq(x, const(x, -np.inf)), x, gamma_function.log_gamma(x))


def loggamma(x: XlaOp) -> XlaOp:
    """Compute log(gamma); nan for negative numbers, where it is complex."""
    return select(xla.lt(x, const(x, 0)), const(x, np.nan), gamma_function.log_gamma(x))


def gammasgn(x: XlaOp) -> XlaOp:
    """Compute the sign of gamma; nan at the poles."""
    zero, one = const(x, 0), const(x, 1)
    floor = xla.floor(x)
    odd = xla.not_(is_integer_or_inf(floor * const(x, 0.5)))
    below = select(xla.eq(floor, x), const(x, np.nan), select(odd, -one, one))
    result = select(xla.gt(x, zero), one, select(xla.lt(x, zero), below, flt.copysign(one, x)))
    return select(xla.ne(x, x), x, result)


def psi(x: XlaOp) -> XlaOp:
    """Compute the digamma function, accurately near its positive root."""
    difference = (x - const(x, _DIGAMMA_ROOT[0])) - const(x, _DIGAMMA_ROOT[1])
    is_near = xla.lt(xla.abs_(difference), const(x, 0.3))
    safe = select(is_near, difference, const(x, 0.1))
    result = select(is_near, safe * polynomial(safe, _DIGAMMA_SERIES), special.digamma(x))
    return select(xla.eq(x, const(x, 0)), const(x, -1) / x, result)


# -- incomplete gamma functions


def log1p_minus(d: XlaOp, ratio: XlaOp) -> XlaOp:
    """Compute log(1 + d) - d, with 1 + d given as a ratio, accurately for small d."""
    s = d / (const(d, 2) + d)
    square = s * s
    series = const(d, 2) * s * square * polynomial(square, [1 / (2 * k + 3) for k in range(13)]) - s * d
    small = xla.lt(xla.abs_(d), const(d, 0.35))
    return select(small, series, xla.log(ratio) - d)


def _stirling(y: XlaOp) -> XlaOp:
    """Compute the remainder of Stirling's formula for log(gamma(y)), for y >= 40; less exact below."""
    inverse = const(y, 1) / y
    return inverse * polynomial(inverse * inverse, _STIRLING)


def _power_correction(a: XlaOp, x: XlaOp) -> XlaOp:
    """Compute the correction factor of x**a exp(-x) / gamma(a) as one exponential, which loses digits for large a."""
    large = xla.and_(xla.ge(a, const(a, 40)), xla.and_(xla.gt(x, const(x, 0)), xla.lt(x, const(x, 1e300))))
    large = xla.and_(large, xla.lt(a, const(a, 1e300)))
    a, x = select(large, a, const(a, 40)), select(large, x, const(x, 40))
    exact = a * log1p_minus((x - a) / a, x / a) - _stirling(a) + const(a, 0.5) * xla.log(a * const(a, 1 / (2 * pi)))
    difference = exact - (a * xla.log(x) - x - special.lgamma(a))
    safe = xla.minimum(xla.maximum(difference, const(a, -50)), const(a, 50))  # beyond, the other factor is 0
    return select(large, xla.exponential(safe), const(a, 1))


def _log_gamma_1p(a: XlaOp) -> XlaOp:
    is_near = xla.lt(a, const(a, 0.25))
    series = a * polynomial(select(is_near, a, const(a, 0)), _LOG_GAMMA_1P)
    return select(is_near, series, gamma_function.log_gamma(a + const(a, 1)))


def _upper_for_small(a: XlaOp, x: XlaOp) -> XlaOp:
    """Compute the upper function for x <= 1.1 and a not much greater, without a subtraction from 1."""
    factor = total = const(x, 0)
    factor = factor + const(x, 1)
    for n in range(1, 21):
        factor = factor * x * const(x, -1 / n)
        total = total + factor / (a + const(a, n))
    power = a * xla.log(x) - _log_gamma_1p(a)
    return -xla.exponential_minus_one(power) - xla.exponential(power) * a * total


def _temme(a: XlaOp, x: XlaOp) -> tuple[XlaOp, XlaOp]:
    """Compute both functions for large a by N. M. Temme, "The asymptotic expansion", 1979."""
    difference = (x - a) / a
    half = -log1p_minus(difference, x / a)
    eta = flt.copysign(xla.sqrt(xla.maximum(half + half, const(a, 0))), difference)
    is_near = xla.lt(xla.abs_(eta), const(a, 0.5))  # beyond, the correction is negligible
    safe = select(is_near, eta, const(a, 0))
    series = polynomial(safe, _TEMME[0]) + polynomial(safe, _TEMME[1]) / a
    correction = xla.exponential(-a * half) * xla.rsqrt(a * const(a, 2 * pi)) * series
    correction = select(is_near, correction, const(a, 0))
    argument = eta * xla.sqrt(a * const(a, 0.5))
    return const(a, 0.5) * special.erfc(-argument) - correction, const(a, 0.5) * special.erfc(argument) + correction


def gammainc_pair(a: XlaOp, x: XlaOp) -> tuple[XlaOp, XlaOp]:
    """Compute the regularised lower and upper incomplete gamma functions."""
    zero, one = const(x, 0), const(x, 1)
    lower, upper = special_loops.igamma_and_igammac(a, x)
    factor = _power_correction(a, x)
    low = xla.or_(xla.le(x, one), xla.le(x, a))  # True if the lower function was summed
    lower, upper = lower * factor, upper * factor
    lower, upper = select(low, lower, one - upper), select(low, one - lower, upper)
    in_range = xla.and_(xla.gt(a, zero), xla.and_(xla.gt(x, zero), xla.le(x, const(x, 1.1))))
    a_limit = select(
        xla.le(x, const(x, 0.5)), const(x, -0.4) / xla.log(select(in_range, x, const(x, 0.5))), x * const(x, 1.1)
    )
    small = xla.and_(in_range, xla.le(a, a_limit))
    upper = select(small, _upper_for_small(select(small, a, one), select(small, x, one)), upper)
    is_large = xla.and_(xla.ge(a, const(a, 2e4)), xla.and_(xla.gt(x, zero), xla.lt(x, const(x, np.inf))))
    is_large = xla.and_(is_large, xla.lt(a, const(a, np.inf)))
    tails = _temme(select(is_large, a, const(a, 2e4)), select(is_large, x, const(x, 2e4)))
    lower, upper = select(is_large, tails[0], lower), select(is_large, tails[1], upper)
    is_undefined = xla.and_(xla.eq(a, const(a, np.inf)), xla.eq(x, a))
    lower, upper = (select(is_undefined, const(a, np.nan), v) for v in (lower, upper))
    all_at_zero = xla.and_(xla.eq(a, zero), xla.gt(x, zero))
    return select(all_at_zero, one, lower), select(all_at_zero, zero, upper)


# -- beta and binomial


def _apply_stacked(function: Callable[[XlaOp], XlaOp], *values: XlaOp) -> list[XlaOp]:
    """Apply a function to several arrays of one shape stacked as one, so that its code is emitted once."""
    sizes = values[0].shape.dims
    stacked = xla.concatenate([xla.reshape(v, (1, *sizes)) for v in values], 0)
    result = function(stacked)
    return [xla.reshape(xla.slice_in_dim(result, k, k + 1), sizes) for k in range(len(values))]


def _log_beta(a: XlaOp, b: XlaOp) -> XlaOp:
    """Compute log(abs(beta)) away from poles."""
    swap = xla.gt(xla.abs_(b), xla.abs_(a))
    greater, smaller = select(swap, b, a), select(swap, a, b)
    limit = -smaller * xla.log(greater)
    use_stirling = xla.and_(xla.gt(greater, const(a, 40)), xla.lt(xla.abs_(smaller), greater * const(a, 0.5)))
    safe, smaller_safe = select(use_stirling, greater, const(a, 40)), select(use_stirling, smaller, const(a, 1))
    logs = _apply_stacked(gamma_function.log_gamma, a, b, a + b, smaller_safe)
    direct = logs[0] + logs[1] - logs[2]
    total = safe + smaller_safe  # Stirling's formula twice, without the terms that cancel
    stirling_terms = (
        smaller_safe - (safe - const(a, 0.5)) * xla.log_plus_one(smaller_safe / safe) - smaller_safe * xla.log(total)
    )
    result = logs[3] + (stirling_terms + _stirling(safe) - _stirling(total))
    return select(xla.eq(greater, const(a, np.inf)), limit, select(use_stirling, result, direct))


def _reflect_poles(a: XlaOp, b: XlaOp) -> tuple[XlaOp, XlaOp, XlaOp, XlaOp]:
    """Reflect operands at poles: return them, the sign, and a mask of results that are undefined."""
    first, second = _is_pole(a), _is_pole(b)
    pole, other = select(first, a, b), select(first, b, a)
    any_pole = xla.or_(first, second)
    reflected = const(a, 1) - pole - other
    is_defined = xla.and_(
        xla.and_(any_pole, is_integer_or_inf(other)),
        xla.and_(xla.gt(other, const(a, 0)), xla.gt(reflected, const(a, 0))),
    )
    is_defined = xla.and_(is_defined, xla.lt(reflected, const(a, np.inf)))
    is_even = is_integer_or_inf(other * const(a, 0.5))
    sign = select(xla.and_(is_defined, xla.not_(is_even)), const(a, -1), const(a, 1))
    one = const(a, 1)
    a, b = (select(any_pole, select(is_defined, new, one), old) for new, old in ((reflected, a), (other, b)))
    return a, b, sign, xla.and_(any_pole, xla.not_(is_defined))


def betaln(a: XlaOp, b: XlaOp) -> XlaOp:
    """Compute log(abs(beta))."""
    nan = xla.or_(xla.ne(a, a), xla.ne(b, b))
    a, b, _, undefined = _reflect_poles(a, b)
    return select(undefined, const(a, np.inf), select(nan, const(a, np.nan), _log_beta(a, b)))


def _gamma_quotient(a: XlaOp, b: XlaOp) -> tuple[XlaOp, XlaOp, XlaOp]:
    """Return a mask (the gammas are representable), beta as a quotient of gammas, and its sign; away from poles."""
    total = a + b
    representable = xla.and_(
        xla.lt(xla.abs_(total), const(a, 170)), xla.lt(xla.maximum(xla.abs_(a), xla.abs_(b)), const(a, 170))
    )
    gammas = _apply_stacked(gamma, *(select(representable, v, const(v, 1)) for v in (a, b, total)))
    total_is_pole = _is_pole(total)
    product = select(total_is_pole, const(a, 0), gammas[0] / gammas[2] * gammas[1])
    return representable, product, gammasgn(a) * gammasgn(b) * select(total_is_pole, const(a, 1), gammasgn(total))


def beta(a: XlaOp, b: XlaOp) -> XlaOp:
    """Compute beta as a quotient of gammas, or as an exponential if these overflow."""
    nan = xla.or_(xla.ne(a, a), xla.ne(b, b))
    a, b, sign, undefined = _reflect_poles(a, b)
    representable, product, signs = _gamma_quotient(a, b)
    result = sign * select(representable, product, signs * xla.exponential(_log_beta(a, b)))
    return select(undefined, const(a, np.inf), select(nan, const(a, np.nan), result))


def betainc_pair(a: XlaOp, b: XlaOp, x: XlaOp) -> tuple[XlaOp, XlaOp]:
    """Compute the regularised incomplete beta function and its complement.

    For a and b at their limits all weight is at one end of x.
    """
    zero, one, inf = const(x, 0), const(x, 1), const(x, np.inf)
    in_domain = xla.and_(xla.and_(xla.ge(x, zero), xla.le(x, one)), xla.and_(xla.ge(a, zero), xla.ge(b, zero)))
    first = xla.or_(xla.eq(a, zero), xla.eq(b, inf))
    last = xla.or_(xla.eq(b, zero), xla.eq(a, inf))
    step = select(first, select(xla.gt(x, zero), one, zero), select(xla.lt(x, one), zero, one))
    step = select(xla.and_(first, last), const(x, np.nan), step)
    lower, complement = _refine_betainc(a, b, x, special_loops.betainc(a, b, x))
    undefined = xla.and_(in_domain, xla.ne(lower, lower))  # a or b too large to resolve
    step_at_mean = select(xla.gt(x, a / (a + b)), one, zero)
    lower, complement = select(undefined, step_at_mean, lower), select(undefined, one - step_at_mean, complement)
    at_ends = xla.and_(in_domain, xla.or_(first, last))
    return select(at_ends, step, lower), select(at_ends, one - step, complement)


def _log_beta_density(a: XlaOp, b: XlaOp, x: XlaOp, powers: XlaOp) -> XlaOp:
    """Compute the logarithm of x**a (1 - x)**b / beta; around the mean, for large a and b, by Stirling's formula."""
    large = xla.and_(xla.ge(a, const(a, 20)), xla.ge(b, const(a, 20)))
    large = xla.and_(large, xla.lt(a + b, const(a, 1e150)))
    direct = powers - _log_beta(a, b)
    a, b = select(large, a, const(a, 20)), select(large, b, const(b, 20))
    total, one_minus_x = a + b, const(x, 1) - x
    difference = x * b - one_minus_x * a
    exact = a * log1p_minus(difference / a, x * total / a) + b * log1p_minus(-difference / b, one_minus_x * total / b)
    exact = exact + const(a, 0.5) * xla.log(a / total * b * const(a, 1 / (2 * pi)))
    return select(large, exact + (_stirling(total) - _stirling(a) - _stirling(b)), direct)


def _refine_betainc(a: XlaOp, b: XlaOp, x: XlaOp, lower_estimate: XlaOp) -> tuple[XlaOp, XlaOp]:
    """Recompute the power before the fraction of the incomplete beta function from more exact logarithms.

    Limit: a result below 1e-16 of the number it is subtracted from (of tiny b, or tiny a and the other tail) has no
    correct digits.
    """
    zero, one = const(x, 0), const(x, 1)
    in_range = xla.and_(xla.and_(xla.gt(a, zero), xla.gt(b, zero)), xla.and_(xla.gt(x, zero), xla.lt(x, one)))
    a, b, safe = (select(in_range, v, const(x, c)) for v, c in ((a, 1), (b, 1), (x, 0.5)))
    swap = xla.gt(safe, (a + one) / (a + b + const(x, 2)))  # the other tail was summed
    logs = xla.log(safe), xla.log_plus_one(-safe)
    left, right = (select(swap, logs[1 - k], logs[k]) for k in range(2))
    a, b = select(swap, b, a), select(swap, a, b)
    powers = a * left + b * right
    coarse = powers + special.lgamma(a + b) - special.lgamma(a) - special.lgamma(b)
    accurate = _log_beta_density(a, b, select(swap, one - safe, safe), powers)
    difference = xla.minimum(xla.maximum(accurate - coarse, const(x, -50)), const(x, 50))
    tail = select(swap, one - lower_estimate, lower_estimate) * xla.exponential(difference)
    tail = xla.minimum(xla.maximum(tail, zero), one)
    lower, upper = select(swap, one - tail, tail), select(swap, tail, one - tail)
    return select(in_range, lower, lower_estimate), select(in_range, upper, one - lower_estimate)


def binom(n: XlaOp, k: XlaOp) -> XlaOp:
    """Compute binomial coefficients of real numbers; undefined for negative integer n."""
    zero, one = const(n, 0), const(n, 1)
    k_is_integer, n_is_integer = is_integer_or_inf(k), is_integer_or_inf(n)
    reflected = xla.and_(xla.and_(n_is_integer, xla.gt(n, zero)), xla.gt(k, n * const(n, 0.5)))
    smaller_k = select(xla.and_(k_is_integer, reflected), n - k, k)
    n_is_regular = xla.or_(xla.gt(xla.abs_(n), const(n, 1e-8)), xla.eq(n, zero))
    direct = xla.and_(
        xla.and_(k_is_integer, n_is_regular), xla.and_(xla.ge(smaller_k, zero), xla.lt(smaller_k, const(n, 20)))
    )
    k_is_huge = xla.gt(k, const(n, 1e8) * xla.abs_(n))
    a, b, sign, undefined = _reflect_poles(one + n - k, one + k)
    representable, product, signs = _gamma_quotient(a, b)
    logs = _log_beta(a, b) + xla.log(xla.abs_(n + one))
    result = select(representable, one / ((n + one) * product), signs * xla.sign(n + one) * xla.exponential(-logs))
    result = select(undefined, zero, sign * result)
    result = select(k_is_huge, _binom_large_k(n, select(k_is_huge, k, one)), result)
    result = select(direct, special_loops.binomial_of_small_k(n, select(direct, smaller_k, zero)), result)
    nan = xla.or_(xla.and_(n_is_integer, xla.lt(n, zero)), xla.or_(xla.ne(n, n), xla.ne(k, k)))
    return select(nan, const(n, np.nan), result)


def _binom_large_k(n: XlaOp, k: XlaOp) -> XlaOp:
    """Compute binomial coefficients for k much greater than n by two terms of a series in 1 / k."""
    base = gamma(const(n, 1) + n)
    magnitude = (base / k + base * n / (const(n, 2) * k * k)) / (const(n, pi) * xla.power(k, n))
    floor = xla.floor(k)
    odd = xla.not_(is_integer_or_inf(floor * const(k, 0.5)))
    return magnitude * gamma_function.sinpi(k - floor - n) * select(odd, const(k, -1), const(k, 1))


# -- zeta


def hurwitz(x: XlaOp, q: XlaOp) -> XlaOp:
    """Compute Hurwitz's zeta function; infinite if a term is."""
    pole = xla.and_(_is_pole(q), xla.gt(x, const(x, 1)))
    return select(pole, const(x, np.inf), special_loops.zeta(x, q))


def zeta(x: XlaOp) -> XlaOp:
    """Compute Riemann's zeta function: below -1 by the functional equation, up to 1 by an alternating series."""
    one, zero = const(x, 1), const(x, 0)
    low, strip = xla.lt(x, -one), xla.and_(xla.ge(x, -one), xla.lt(x, one))
    safe = select(low, one - x, select(strip, const(x, 2), x))
    result = special_loops.zeta(safe, one)
    result = select(strip, _alternating_zeta(select(strip, x, const(x, 0.5))), result)
    y = select(low, xla.minimum(one - x, const(x, 400)), const(x, 2))
    is_near = xla.lt(y, const(y, 40))
    small = gamma_function.gamma(select(is_near, y, const(y, 2))) * xla.power(
        const(y, 2 * pi), -select(is_near, y, const(y, 2))
    )
    half = xla.power(y * const(y, 1 / (2 * pi * e)), y * const(y, 0.5) - const(y, 0.25))
    large = half * const(y, sqrt(1 / e)) * xla.exponential(_stirling(select(is_near, const(y, 40), y)))
    angle = const(x, 2) * gamma_function.sinpi(x * const(x, 0.5))
    reflected = select(is_near, angle * small * result, (angle * result * large) * half)
    reflected = select(xla.eq(angle, zero), zero, reflected)
    return select(low, select(xla.eq(x, const(x, -np.inf)), const(x, np.nan), reflected), result)


def _alternating_zeta(x: XlaOp) -> XlaOp:
    """Compute zeta for -1 <= x < 1 by P. Borwein, "An efficient algorithm for the Riemann zeta function", 2000."""
    count = 24
    weights = _borwein_weights(count)
    total = const(x, 0)
    for k in reversed(range(count)):
        total = total + const(x, weights[k]) * xla.power(const(x, k + 1), -x)
    return total / -xla.exponential_minus_one((const(x, 1) - x) * const(x, log(2)))


def _borwein_weights(count: int) -> list[float]:
    sums, running = [], 0
    for i in range(count + 1):
        running += factorial(count + i - 1) * 4**i * count // (factorial(count - i) * factorial(2 * i))
        sums.append(running)
    return [(-1.0) ** k * ((sums[-1] - sums[k]) / sums[-1]) for k in range(count)]
