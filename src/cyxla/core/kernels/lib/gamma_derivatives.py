"""Derivatives of the incomplete gamma function and of gamma samples with respect to the shape parameter.

The power series is differentiated term by term for small x, the continued fraction for large x (Moore, "Algorithm
AS 187: derivatives of the incomplete gamma integral", Applied Statistics 31, 1982).
"""

from __future__ import annotations

from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]

_MAX_TERMS = 2000
_EPS = float(np.finfo(np.float64).eps)
_BIG = 1 / _EPS


def igamma_grad_a(a: Array, x: Array) -> Array:
    """Return d/da of the regularised lower incomplete gamma function P(a, x)."""
    import scipy.special

    return _by_region(a, x, lambda a, x, slope: slope * np.exp(a * np.log(x) - x - scipy.special.gammaln(a)), 0.0)


def gamma_sample_grad(a: Array, x: Array) -> Array:
    """Return d/da of a sample x of the gamma distribution of shape a, by the implicit function theorem."""
    return _by_region(a, x, lambda a, x, slope: -slope * x, 0.0)


def _by_region(a: Array, x: Array, finish: Any, at_zero: float) -> Array:
    """Apply `finish` to dP/da in units of density times x, by the series where x <= max(1, a), else by the fraction."""
    a, x = np.broadcast_arrays(a.astype(np.float64), x.astype(np.float64))
    result = np.full(a.shape, np.nan)
    valid = (x >= 0) & (a > 0)
    result[valid & (x == 0)] = at_zero
    low = valid & (x > 0) & ((x <= 1) | (x <= a))
    for region, method in ((low, _power_series), (valid & (x > 0) & ~low, _continued_fraction)):
        if region.any():
            result[region] = finish(a[region], x[region], method(a[region], x[region]))
    return result


def _power_series(a: Array, x: Array) -> Array:
    """Return dP/da from P = density x / a times the sum of x^n / ((a+1) .. (a+n))."""
    import scipy.special

    r, term, dterm = a.copy(), np.ones_like(a), np.zeros_like(a)
    total, dtotal = np.ones_like(a), np.zeros_like(a)
    for _ in range(_MAX_TERMS):
        r += 1
        dterm = (dterm - term / r) * (x / r)
        term = term * (x / r)
        total += term
        dtotal += dterm
        if (np.abs(dterm) <= _EPS * np.abs(dtotal)).all() and (term <= _EPS * total).all():
            break
    return np.asarray((dtotal + total * (np.log(x) - scipy.special.digamma(a + 1))) / a)


def _continued_fraction(a: Array, x: Array) -> Array:
    """Return dP/da from 1 - P = density times x times a continued fraction.

    Its convergents are p/q; dp and dq are their derivatives.
    """
    import scipy.special

    y, z = 1 - a, x + 2 - a
    p = [np.ones_like(a), x + 1]
    q = [x.copy(), z * x]
    dp, dq = [np.zeros_like(a), np.zeros_like(a)], [np.zeros_like(a), -x]
    value = p[1] / q[1]
    slope = (dp[1] - value * dq[1]) / q[1]
    for c in range(1, _MAX_TERMS):
        y, z = y + 1, z + 2
        dp = [dp[1], dp[1] * z - p[1] - dp[0] * y * c + p[0] * c]
        dq = [dq[1], dq[1] * z - q[1] - dq[0] * y * c + q[0] * c]
        p = [p[1], p[1] * z - p[0] * y * c]
        q = [q[1], q[1] * z - q[0] * y * c]
        with np.errstate(all="ignore"):
            value = np.where(q[1] != 0, p[1] / q[1], value)
            after = np.where(q[1] != 0, (dp[1] - value * dq[1]) / q[1], slope)
        done = np.abs(after - slope) <= _EPS * np.abs(after)
        slope = after
        scale = np.where(np.abs(p[1]) > _BIG, _EPS, 1.0)
        p, q, dp, dq = ([part * scale for part in pair] for pair in (p, q, dp, dq))
        if done.all():
            break
    return np.asarray(-(slope + value * (np.log(x) - scipy.special.digamma(a))))
