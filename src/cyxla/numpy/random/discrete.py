"""Discrete distributions, and continuous ones derived from them."""

from __future__ import annotations

from typing import Any

import numpy as np

from cyxla.numpy.control.loops import while_loop
from cyxla.numpy.random.continuous import Continuous, require_nonnegative, require_positive
from cyxla.numpy.random.source import Array, Source, as_float64, require, sizes_of
from cyxla.numpy.tracing.traced_array import TracedArray, as_traced, value_of
from cyxla.xla.lib import special

_INVERSION_BELOW = 10.0  # means below which inversion takes fewer steps than rejection
_MAX_POISSON_MEAN = 2.0**63 - 10 * 2.0**31.5  # greatest mean with room for int64 results around it
_INT64_END = 2.0**63  # least number beyond int64
MAX_POPULATION = 10**9  # population size from which the hypergeometric distribution is not supported, as in NumPy


def _lgamma(x: Array) -> Array:
    return TracedArray(special.lgamma(value_of(x)))


def _require_probability(value: Any, name: str = "p") -> None:
    require(value, lambda v: (v >= 0) & (v <= 1), f"{name} < 0, {name} > 1 or {name} is NaN")


def _invert(u: Array, first: Array, ratio: Any, most: Any) -> Array:
    """Invert a discrete distribution: count the partial sums of its probabilities below uniform numbers.

    Parameters
    ----------
    u : array
        Uniform numbers.
    first : array
        Probability of 0.
    ratio : callable
        Function from k to the ratio of the probabilities of k and k - 1.
    most : array
        Greatest result, in case the sums stay below 1 by rounding.
    """

    def step(now: Any) -> Any:
        k, term, total = now
        below = (u > total) & (k < most)
        following = np.where(below, term * ratio(k + 1), term)
        return np.where(below, k + 1, k), following, np.where(below, total + following, total)

    def unfinished(now: Any) -> Any:
        return np.any((u > now[2]) & (now[0] < most))

    start = np.broadcast_to(first, u.shape)
    return while_loop(unfinished, step, (np.zeros_like(u), as_traced(start), as_traced(start)))[0]


class Discrete(Continuous):
    """Methods of a generator for discrete distributions, by NumPy's names."""

    def poisson(self, lam: Any = 1.0, size: Any = None) -> Array:
        """Draw Poisson numbers by inversion for small means, else by transformed rejection (Hoermann's PTRS)."""
        require(lam, lambda v: v >= 0, "lam < 0 or lam is NaN")
        require(lam, lambda v: v <= _MAX_POISSON_MEAN, "lam value too large")
        mean = as_float64(lam)
        sizes = sizes_of(size, mean)
        by_inversion = mean < _INVERSION_BELOW
        small, large = np.where(by_inversion, mean, 1.0), np.where(by_inversion, _INVERSION_BELOW, mean)
        counted = _invert(self.unit(sizes), np.exp(-small), lambda k: small / k, 1000.0)
        drawn = self._poisson_by_rejection(large, sizes, np.broadcast_to(~by_inversion, sizes))
        found: Array = np.where(by_inversion, counted, drawn)
        return found.astype(np.int64)

    def _poisson_by_rejection(self, mean: Array, sizes: tuple[int, ...], active: Array) -> Array:
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

        return self.sample_by_rejection(sizes, np.float64, propose, active)

    def binomial(self, n: Any, p: Any, size: Any = None) -> Array:
        """Draw binomial numbers by inversion for small means, else by transformed rejection (Hoermann's BTRS)."""
        require(n, lambda v: v >= 0, "n < 0")
        _require_probability(p)
        count, probability = as_float64(n), as_float64(p)
        sizes = sizes_of(size, count, probability)
        less = np.where(probability > 0.5, 1 - probability, probability)
        by_inversion = count * less < _INVERSION_BELOW
        rare = np.where(by_inversion, less, 0.0)
        odds = rare / (1 - rare)
        counted = _invert(
            self.unit(sizes), np.exp(count * np.log1p(-rare)), lambda k: (count - k + 1) / k * odds, count
        )
        drawn = self._binomial_by_rejection(
            np.where(by_inversion, 40.0, count), np.where(by_inversion, 0.5, less), sizes,
            np.broadcast_to(~by_inversion, sizes),
        )  # fmt: skip
        found = np.where(by_inversion, counted, drawn)
        return np.where(probability > 0.5, count - found, found).astype(np.int64)

    def _binomial_by_rejection(self, n: Array, p: Array, sizes: tuple[int, ...], active: Array) -> Array:
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

        return self.sample_by_rejection(sizes, np.float64, propose, active)

    def noncentral_chisquare(self, df: Any, nonc: Any, size: Any = None) -> Array:
        """Draw non-central chi-square numbers: `chisquare` with twice a Poisson number of extra degrees of freedom."""
        require_positive(df, "df")
        require_nonnegative(nonc, "nonc")
        freedom, shift = as_float64(df), as_float64(nonc)
        sizes = sizes_of(size, freedom, shift)
        fine = shift / 2 <= _MAX_POISSON_MEAN
        more = self.poisson(np.where(fine, shift / 2, 0.0), sizes).astype(np.float64)
        return 2 * self._gammas(freedom / 2 + np.where(fine, more, shift / 2), sizes)

    def noncentral_f(self, dfnum: Any, dfden: Any, nonc: Any, size: Any = None) -> Array:
        """Draw non-central F numbers: ratios of a non-central mean square to a central one."""
        require_positive(dfnum, "dfnum")
        require_positive(dfden, "dfden")
        over, under, shift = as_float64(dfnum), as_float64(dfden), as_float64(nonc)
        sizes = sizes_of(size, over, under, shift)
        return (self.noncentral_chisquare(dfnum, nonc, sizes) / over) / (2 * self._gammas(under / 2, sizes) / under)

    def negative_binomial(self, n: Any, p: Any, size: Any = None) -> Array:
        """Draw numbers of failures before the n-th success: Poisson numbers with gamma-distributed means."""
        require(n, lambda v: v > 0, "n <= 0")
        require(p, lambda v: (v > 0) & (v <= 1), "p <= 0, p > 1 or p is NaN")
        count, probability = as_float64(n), as_float64(p)
        sizes = sizes_of(size, count, probability)
        return self.poisson(self.gamma(count, (1 - probability) / probability, sizes), sizes)

    def geometric(self, p: Any, size: Any = None) -> Array:
        """Draw numbers of trials to the first success, by the inverse of the distribution."""
        require(p, lambda v: (v > 0) & (v <= 1), "p <= 0, p > 1 or p is NaN")
        probability = as_float64(p)
        trials = np.ceil(np.log(self.positive(sizes_of(size, probability))) / np.log1p(-probability))
        found = np.maximum(np.where(probability == 1, 1.0, trials), 1.0)
        return np.where(found < 2.0**63, found, np.inf).astype(np.int64)

    def zipf(self, a: Any, size: Any = None) -> Array:
        """Draw Zipf numbers by rejection from floors of powers of uniform numbers (Devroye)."""
        require(a, lambda v: v > 1, "a <= 1 or a is NaN")
        shape = as_float64(a)
        sizes = sizes_of(size, shape)
        power = np.where(shape > 1, shape, 2.0) - 1
        steep = power > 1024
        power = np.where(steep, 1.0, power)
        most, base = _INT64_END**-power, np.exp2(power)

        def propose(source: Source) -> tuple[Array, Array]:
            u, v = source.positive(sizes), source.unit(sizes)
            x = np.floor((u + (1 - u) * most) ** (-1 / power))
            ratio = (1 + 1 / x) ** power
            grown = np.expm1(power * np.log1p(1 / x))
            return x, (x >= 1) & (x < _INT64_END) & (v * x * grown / (base - 1) <= ratio / base)

        found = self.sample_by_rejection(sizes, np.float64, propose)
        return np.where(steep, 1.0, found).astype(np.int64)

    def logseries(self, p: Any, size: Any = None) -> Array:
        """Draw logarithmic-series numbers from two uniform ones (Kemp)."""
        require(p, lambda v: (v >= 0) & (v < 1), "p < 0, p >= 1 or p is NaN")
        probability = as_float64(p)
        sizes = sizes_of(size, probability)
        v, u = self.positive(sizes), self.unit(sizes)
        q = -np.expm1(u * np.log1p(-probability))
        held = np.where((q > 0) & (q < 1), q, 0.5)
        far = np.minimum(np.floor(1 + np.log(v) / np.log(held)), _INT64_END - 1024)
        found = np.where(v > probability, 1.0, np.where(v <= q * q, np.maximum(far, 1.0), np.where(v > q, 1.0, 2.0)))
        return found.astype(np.int64)

    def hypergeometric(self, ngood: Any, nbad: Any, nsample: Any, size: Any = None) -> Array:
        """Draw hypergeometric numbers by inversion for small samples, else by the ratio of uniforms (Stadlober)."""
        for value, name in ((ngood, "ngood"), (nbad, "nbad"), (nsample, "nsample")):
            require(value, lambda v: v >= 0, f"{name} < 0")
        for value in (ngood, nbad):
            require(value, lambda v: v < MAX_POPULATION, f"both ngood and nbad must be less than {MAX_POPULATION}")
        good, bad, taken = (np.trunc(as_float64(v)) for v in (ngood, nbad, nsample))
        if any(isinstance(v, TracedArray) for v in (ngood, nbad, nsample)):
            require(good + bad >= taken, lambda ok: ok, "ngood + nbad < nsample")
        else:
            whole = [np.trunc(np.asarray(v, np.float64)) for v in (ngood, nbad, nsample)]
            require(whole[0] + whole[1] >= whole[2], lambda ok: ok, "ngood + nbad < nsample")
        return self._hypergeometric(good, bad, taken, sizes_of(size, good, bad, taken))

    def _hypergeometric(self, good: Array, bad: Array, taken: Array, sizes: tuple[int, ...]) -> Array:
        """Draw the count of the rarer kind in the smaller of sample and remainder; other counts follow by symmetry."""
        total = good + bad
        rare, often = np.minimum(good, bad), np.maximum(good, bad)
        less = np.minimum(taken, total - taken)
        by_inversion = np.broadcast_to(less < _INVERSION_BELOW, sizes)
        counted = self._hypergeometric_by_inversion(
            rare, often, np.where(by_inversion, np.maximum(less, 0.0), 0.0), sizes
        )
        held = [np.where(by_inversion, 40.0, v) for v in (rare, often, less)]
        drawn = self._hypergeometric_by_rejection(held[0], held[1], held[2], sizes, ~by_inversion)
        found: Array = np.where(by_inversion, counted, drawn)
        found = np.where(good > bad, less - found, found)
        return np.where(less < taken, good - found, found).astype(np.int64)

    def _hypergeometric_by_inversion(self, rare: Array, often: Array, less: Array, sizes: tuple[int, ...]) -> Array:
        first: Array = 1.0
        for k in range(int(_INVERSION_BELOW) - 1):  # probability that the sample contains none of the rarer kind
            first = first * np.where(k < less, np.maximum(often - k, 0.0) / np.maximum(rare + often - k, 1.0), 1.0)
        return _invert(
            self.unit(sizes), first,
            lambda k: (rare - k + 1) / k * (less - k + 1) / np.maximum(often - less + k, 1.0), np.minimum(rare, less),
        )  # fmt: skip

    def _hypergeometric_by_rejection(
        self, rare: Array, often: Array, less: Array, sizes: tuple[int, ...], active: Array
    ) -> Array:
        total = rare + often
        mean = less * rare / total
        deviation = np.sqrt((total - less) / (total - 1) * mean * (often / total) + 0.5)
        width = 2 * np.sqrt(2 / np.e) * deviation + (3 - 2 * np.sqrt(3 / np.e))
        mode = np.floor((less + 1) * (rare + 1) / (total + 2))
        end = np.minimum(np.minimum(less, rare) + 1, np.floor(mean + 0.5 + 16 * deviation))

        def weight(k: Array) -> Array:
            return sum(_lgamma(v + 1) for v in (k, rare - k, less - k, often - less + k))

        at_mode = weight(mode)

        def propose(source: Source) -> tuple[Array, Array]:
            u, v = source.positive(sizes), source.unit(sizes)
            x = mean + 0.5 + width * (v - 0.5) / u
            inside = (x >= 0) & (x < end)
            k = np.floor(np.where(inside, x, 0.0))
            return k, inside & (2 * np.log(u) <= at_mode - weight(k))

        return self.sample_by_rejection(sizes, np.float64, propose, active)

    def multinomial(self, n: Any, pvals: Any, size: Any = None) -> Array:
        """Draw counts of several outcomes: successive binomial numbers of the remainder."""
        left: Array = as_traced(n, np.int64)
        probabilities = as_float64(pvals)
        if not probabilities.ndim or not probabilities.shape[-1]:
            raise ValueError("pvals must have a dimension or more, and the last one must not be empty")
        require(n, lambda v: v >= 0, "n < 0")
        require(pvals, lambda v: (v >= 0) & (v <= 1), "pvals < 0, pvals > 1 or pvals contains NaNs")
        require(pvals, lambda v: np.sum(v[..., :-1], axis=-1) <= 1 + 1e-12, "sum(pvals[:-1]) > 1.0")
        sizes = sizes_of(size, left, probabilities[..., 0])
        left, share = np.broadcast_to(left, sizes), 1.0
        found = []
        for k in range(probabilities.shape[-1] - 1):
            probability = probabilities[..., k]
            one = np.where(
                probability > 0, np.clip(probability / np.maximum(share, np.finfo(float).tiny), 0.0, 1.0), 0.0
            )
            found.append(self.binomial(left, np.broadcast_to(one, sizes)))
            left, share = left - found[-1], share - probability
        return np.stack([*found, left], axis=-1)
