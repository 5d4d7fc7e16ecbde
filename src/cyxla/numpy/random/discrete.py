"""Distributions of whole numbers, and those made with them."""

from __future__ import annotations

from typing import Any

import numpy as np

from cyxla.numpy.control.looping import while_loop
from cyxla.numpy.random.continuous import Continuous
from cyxla.numpy.random.source import Array, Source, real, require, sizes_of
from cyxla.numpy.tracing.traced_array import TracedArray, as_traced, value_of
from cyxla.xla.lib import special

_FEW = 10.0  # means below which counting up takes fewer steps than drawing again
_MOST = 2.0**63 - 10 * 2.0**31.5  # the greatest mean that whole numbers have room around


def _lgamma(x: Array) -> Array:
    return TracedArray(special.lgamma(value_of(x)))


def _are_parts(value: Any, name: str = "p") -> None:
    require(value, lambda v: (v >= 0) & (v <= 1), f"{name} < 0, {name} > 1 or {name} is NaN")


def _counted(u: Array, first: Array, ratio: Any, most: Any) -> Array:
    """How many terms of a sum of probabilities lie below uniform numbers.

    Parameters
    ----------
    u : array
        The numbers.
    first : array
        The probability of 0.
    ratio : callable
        From k to the probability of k over that of k - 1.
    most : array
        Where to stop, should sums stay below 1 by rounding.
    """

    def step(now: Any) -> Any:
        k, term, total = now
        below = (u > total) & (k < most)
        following = np.where(below, term * ratio(k + 1), term)
        return np.where(below, k + 1, k), following, np.where(below, total + following, total)

    def some(now: Any) -> Any:
        return np.any((u > now[2]) & (now[0] < most))

    start = np.broadcast_to(first, u.shape)
    return while_loop(some, step, (np.zeros_like(u), as_traced(start), as_traced(start)))[0]


class Discrete(Continuous):
    """Discrete distributions, by NumPy's names."""

    def poisson(self, lam: Any = 1.0, size: Any = None) -> Array:
        """Counted up where the mean is small, by transformed rejection elsewhere (Hoermann's PTRS)."""
        require(lam, lambda v: v >= 0, "lam < 0 or lam is NaN")
        require(lam, lambda v: v <= _MOST, "lam value too large")
        mean = real(lam)
        sizes = sizes_of(size, mean)
        few = mean < _FEW
        small, large = np.where(few, mean, 1.0), np.where(few, _FEW, mean)
        counted = _counted(self.unit(sizes), np.exp(-small), lambda k: small / k, 1000.0)
        drawn = self._poisson(large, sizes, np.broadcast_to(~few, sizes))
        found: Array = np.where(few, counted, drawn)
        return found.astype(np.int64)

    def _poisson(self, mean: Array, sizes: tuple[int, ...], busy: Array) -> Array:
        b = 0.931 + 2.53 * np.sqrt(mean)
        a = -0.059 + 0.02483 * b
        inverse = 1.1239 + 1.1328 / (b - 3.4)
        quick, log_mean = 0.9277 - 3.6224 / (b - 2), np.log(mean)

        def propose(source: Source) -> tuple[Array, Array]:
            u, v = source.unit(sizes) - 0.5, source.positive(sizes)
            s = 0.5 - np.abs(u)
            k = np.floor((2 * a / s + b) * u + mean + 0.43)
            whole = np.maximum(k, 0.0)
            fits = np.log(v * inverse / (a / (s * s) + b)) <= k * log_mean - mean - _lgamma(whole + 1)
            return whole, (k >= 0) & (((s >= 0.07) & (v <= quick)) | (((s >= 0.013) | (v <= s)) & fits))

        return self.accepted(sizes, np.float64, propose, busy)

    def binomial(self, n: Any, p: Any, size: Any = None) -> Array:
        """Counted up where the mean is small, by transformed rejection elsewhere (Hoermann's BTRS)."""
        require(n, lambda v: v >= 0, "n < 0")
        _are_parts(p)
        count, part = real(n), real(p)
        sizes = sizes_of(size, count, part)
        less = np.where(part > 0.5, 1 - part, part)
        few = count * less < _FEW
        rare = np.where(few, less, 0.0)
        odds = rare / (1 - rare)
        counted = _counted(
            self.unit(sizes), np.exp(count * np.log1p(-rare)), lambda k: (count - k + 1) / k * odds, count
        )
        drawn = self._binomial(
            np.where(few, 40.0, count), np.where(few, 0.5, less), sizes, np.broadcast_to(~few, sizes)
        )
        found = np.where(few, counted, drawn)
        return np.where(part > 0.5, count - found, found).astype(np.int64)

    def _binomial(self, n: Array, p: Array, sizes: tuple[int, ...], busy: Array) -> Array:
        deviation = np.sqrt(n * p * (1 - p))
        b = 1.15 + 2.53 * deviation
        a = -0.0873 + 0.0248 * b + 0.01 * p
        quick, alpha = 0.92 - 4.2 / b, (2.83 + 5.1 / b) * deviation
        log_odds, mode = np.log(p / (1 - p)), np.floor((n + 1) * p)
        at_mode = _lgamma(mode + 1) + _lgamma(n - mode + 1)

        def propose(source: Source) -> tuple[Array, Array]:
            u, v = source.unit(sizes) - 0.5, source.positive(sizes)
            s = 0.5 - np.abs(u)
            k = np.floor((2 * a / s + b) * u + n * p + 0.5)
            inside = (k >= 0) & (k <= n)
            whole = np.where(inside, k, 0.0)
            weight = at_mode - _lgamma(whole + 1) - _lgamma(n - whole + 1) + (whole - mode) * log_odds
            fits = np.log(v * alpha / (a / (s * s) + b)) <= weight
            return whole, inside & (((s >= 0.07) & (v <= quick)) | fits)

        return self.accepted(sizes, np.float64, propose, busy)

    def noncentral_chisquare(self, df: Any, nonc: Any, size: Any = None) -> Array:
        """Like `chisquare`, with as many more degrees of freedom as twice a Poisson number says."""
        require(df, lambda v: v > 0, "df <= 0")
        require(nonc, lambda v: v >= 0, "nonc < 0")
        freedom, shift = real(df), real(nonc)
        sizes = sizes_of(size, freedom, shift)
        more = self.poisson(shift / 2, sizes).astype(np.float64)
        return 2 * self._gammas(freedom / 2 + more, sizes)

    def noncentral_f(self, dfnum: Any, dfden: Any, nonc: Any, size: Any = None) -> Array:
        """Like `f`, of squares of numbers whose means are not zero."""
        require(dfnum, lambda v: v > 0, "dfnum <= 0")
        require(dfden, lambda v: v > 0, "dfden <= 0")
        over, under, shift = real(dfnum), real(dfden), real(nonc)
        sizes = sizes_of(size, over, under, shift)
        return (self.noncentral_chisquare(dfnum, nonc, sizes) / over) / (2 * self._gammas(under / 2, sizes) / under)

    def negative_binomial(self, n: Any, p: Any, size: Any = None) -> Array:
        """Failures before the n-th success: a Poisson number of a gamma mean."""
        require(n, lambda v: v > 0, "n <= 0")
        require(p, lambda v: (v > 0) & (v <= 1), "p <= 0, p > 1 or p is NaN")
        count, part = real(n), real(p)
        sizes = sizes_of(size, count, part)
        return self.poisson(self.gamma(count, (1 - part) / part, sizes), sizes)

    def geometric(self, p: Any, size: Any = None) -> Array:
        """Trials to the first success, by the inverse of the distribution."""
        require(p, lambda v: (v > 0) & (v <= 1), "p <= 0, p > 1 or p is NaN")
        part = real(p)
        trials = np.ceil(np.log(self.positive(sizes_of(size, part))) / np.log1p(-part))
        found = np.maximum(np.where(part == 1, 1.0, trials), 1.0)
        return np.where(found < 2.0**63, found, np.inf).astype(np.int64)

    def multinomial(self, n: Any, pvals: Any, size: Any = None) -> Array:
        """How often each of several outcomes comes: binomial numbers of what is left."""
        require(n, lambda v: v >= 0, "n < 0")
        require(pvals, lambda v: (v >= 0) & (v <= 1), "pvals < 0, pvals > 1 or pvals contains NaNs")
        require(pvals, lambda v: np.sum(v[..., :-1], axis=-1) <= 1 + 1e-12, "sum(pvals[:-1]) > 1.0")
        left: Array = as_traced(n, np.int64)
        parts = real(pvals)
        sizes = sizes_of(size, left, parts[..., 0])
        left, share = np.broadcast_to(left, sizes), 1.0
        found = []
        for k in range(parts.shape[-1] - 1):
            part = parts[..., k]
            one = np.where(part > 0, np.clip(part / np.maximum(share, np.finfo(float).tiny), 0.0, 1.0), 0.0)
            found.append(self.binomial(left, np.broadcast_to(one, sizes)))
            left, share = left - found[-1], share - part
        return np.stack([*found, left], axis=-1)
