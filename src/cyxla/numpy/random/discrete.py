"""Discrete distributions, and continuous ones derived from them."""

from __future__ import annotations

from typing import Any

import numpy as np

from cyxla.numpy.control.loops import while_loop
from cyxla.numpy.random.continuous import Continuous, require_nonnegative, require_positive
from cyxla.numpy.random.random_words import Array, Source, as_float64, require, sizes_of
from cyxla.numpy.tracing.arrays.traced_array import TracedArray, as_traced, value_of
from cyxla.xla.lib import special

_MAX_INVERSION_MEAN = 10.0  # means below which inversion takes fewer steps than rejection
_MAX_POISSON_MEAN = 2.0**63 - 10 * 2.0**31.5  # greatest mean with room for int64 results around it
_INT64_LIMIT = 2.0**63  # least number beyond int64
MAX_POPULATION = 10**9  # population size from which the hypergeometric distribution is not supported, as in NumPy


def _lgamma(x: Array) -> Array:
    return TracedArray(special.lgamma(value_of(x)))


def _require_probability(value: Any, name: str = "p") -> None:
    require(value, lambda v: (v >= 0) & (v <= 1), f"{name} < 0, {name} > 1 or {name} is NaN")


def _invert(u: Array, first: Array, ratio: Any, maximum: Any) -> Array:
    """Invert a discrete distribution: count the partial sums of its probabilities below uniform numbers.

    Parameters
    ----------
    u : array
        Uniform numbers.
    first : array
        Probability of 0.
    ratio : callable
        Function from k to the ratio of the probabilities of k and k - 1.
    maximum : array
        Greatest result, in case the sums stay below 1 by rounding.
    """

    def step(state: Any) -> Any:
        k, term, total = state
        below = (u > total) & (k < maximum)
        next_term = np.where(below, term * ratio(k + 1), term)
        return np.where(below, k + 1, k), next_term, np.where(below, total + next_term, total)

    def unfinished(state: Any) -> Any:
        return np.any((u > state[2]) & (state[0] < maximum))

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
        by_inversion = mean < _MAX_INVERSION_MEAN
        small, large = np.where(by_inversion, mean, 1.0), np.where(by_inversion, _MAX_INVERSION_MEAN, mean)
        inverted = _invert(self.unit(sizes), np.exp(-small), lambda k: small / k, 1000.0)
        rejection_samples = self._poisson_by_rejection(large, sizes, np.broadcast_to(~by_inversion, sizes))
        samples: Array = np.where(by_inversion, inverted, rejection_samples)
        return samples.astype(np.int64)

    def _poisson_by_rejection(self, mean: Array, sizes: tuple[int, ...], active: Array) -> Array:
        b = 0.931 + 2.53 * np.sqrt(mean)
        a = -0.059 + 0.02483 * b
        inverse = 1.1239 + 1.1328 / (b - 3.4)
        squeeze_limit, log_mean = 0.9277 - 3.6224 / (b - 2), np.log(mean)

        def propose(source: Source) -> tuple[Array, Array]:
            u, v = source.unit(sizes) - 0.5, source.positive(sizes)
            s = 0.5 - np.abs(u)
            k = np.floor((2 * a / s + b) * u + mean + 0.43)
            count = np.maximum(k, 0.0)
            accepted = np.log(v * inverse / (a / (s * s) + b)) <= k * log_mean - mean - _lgamma(count + 1)
            return count, (k >= 0) & (((s >= 0.07) & (v <= squeeze_limit)) | (((s >= 0.013) | (v <= s)) & accepted))

        return self.sample_by_rejection(sizes, np.float64, propose, active)

    def binomial(self, n: Any, p: Any, size: Any = None) -> Array:
        """Draw binomial numbers by inversion for small means, else by transformed rejection (Hoermann's BTRS)."""
        require(n, lambda v: v >= 0, "n < 0")
        _require_probability(p)
        count, probability = as_float64(n), as_float64(p)
        sizes = sizes_of(size, count, probability)
        smaller_probability = np.where(probability > 0.5, 1 - probability, probability)
        by_inversion = count * smaller_probability < _MAX_INVERSION_MEAN
        rare = np.where(by_inversion, smaller_probability, 0.0)
        odds = rare / (1 - rare)
        inverted = _invert(
            self.unit(sizes), np.exp(count * np.log1p(-rare)), lambda k: (count - k + 1) / k * odds, count
        )
        rejection_samples = self._binomial_by_rejection(
            np.where(by_inversion, 40.0, count), np.where(by_inversion, 0.5, smaller_probability), sizes,
            np.broadcast_to(~by_inversion, sizes),
        )  # fmt: skip
        samples = np.where(by_inversion, inverted, rejection_samples)
        return np.where(probability > 0.5, count - samples, samples).astype(np.int64)

    def _binomial_by_rejection(self, n: Array, p: Array, sizes: tuple[int, ...], active: Array) -> Array:
        deviation = np.sqrt(n * p * (1 - p))
        b = 1.15 + 2.53 * deviation
        a = -0.0873 + 0.0248 * b + 0.01 * p
        squeeze_limit, alpha = 0.92 - 4.2 / b, (2.83 + 5.1 / b) * deviation
        log_odds, mode = np.log(p / (1 - p)), np.floor((n + 1) * p)
        at_mode = _lgamma(mode + 1) + _lgamma(n - mode + 1)

        def propose(source: Source) -> tuple[Array, Array]:
            u, v = source.unit(sizes) - 0.5, source.positive(sizes)
            s = 0.5 - np.abs(u)
            k = np.floor((2 * a / s + b) * u + n * p + 0.5)
            inside = (k >= 0) & (k <= n)
            count = np.where(inside, k, 0.0)
            weight = at_mode - _lgamma(count + 1) - _lgamma(n - count + 1) + (count - mode) * log_odds
            accepted = np.log(v * alpha / (a / (s * s) + b)) <= weight
            return count, inside & (((s >= 0.07) & (v <= squeeze_limit)) | accepted)

        return self.sample_by_rejection(sizes, np.float64, propose, active)

    def noncentral_chisquare(self, df: Any, nonc: Any, size: Any = None) -> Array:
        """Draw non-central chi-square numbers: `chisquare` with twice a Poisson number of extra degrees of freedom."""
        require_positive(df, "df")
        require_nonnegative(nonc, "nonc")
        freedom, shift = as_float64(df), as_float64(nonc)
        sizes = sizes_of(size, freedom, shift)
        small_enough = shift / 2 <= _MAX_POISSON_MEAN
        extra = self.poisson(np.where(small_enough, shift / 2, 0.0), sizes).astype(np.float64)
        return 2 * self._gammas(freedom / 2 + np.where(small_enough, extra, shift / 2), sizes)

    def noncentral_f(self, dfnum: Any, dfden: Any, nonc: Any, size: Any = None) -> Array:
        """Draw non-central F numbers: ratios of a non-central mean square to a central one."""
        require_positive(dfnum, "dfnum")
        require_positive(dfden, "dfden")
        numerator, denominator, shift = as_float64(dfnum), as_float64(dfden), as_float64(nonc)
        sizes = sizes_of(size, numerator, denominator, shift)
        return (self.noncentral_chisquare(dfnum, nonc, sizes) / numerator) / (
            2 * self._gammas(denominator / 2, sizes) / denominator
        )

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
        samples = np.maximum(np.where(probability == 1, 1.0, trials), 1.0)
        return np.where(samples < 2.0**63, samples, np.inf).astype(np.int64)

    def zipf(self, a: Any, size: Any = None) -> Array:
        """Draw Zipf numbers by rejection from floors of powers of uniform numbers (Devroye)."""
        require(a, lambda v: v > 1, "a <= 1 or a is NaN")
        shape = as_float64(a)
        sizes = sizes_of(size, shape)
        power = np.where(shape > 1, shape, 2.0) - 1
        steep = power > 1024
        power = np.where(steep, 1.0, power)
        least_uniform, base = _INT64_LIMIT**-power, np.exp2(power)

        def propose(source: Source) -> tuple[Array, Array]:
            u, v = source.positive(sizes), source.unit(sizes)
            x = np.floor((u + (1 - u) * least_uniform) ** (-1 / power))
            ratio = (1 + 1 / x) ** power
            growth = np.expm1(power * np.log1p(1 / x))
            return x, (x >= 1) & (x < _INT64_LIMIT) & (v * x * growth / (base - 1) <= ratio / base)

        samples = self.sample_by_rejection(sizes, np.float64, propose)
        return np.where(steep, 1.0, samples).astype(np.int64)

    def logseries(self, p: Any, size: Any = None) -> Array:
        """Draw logarithmic-series numbers from two uniform ones (Kemp)."""
        require(p, lambda v: (v >= 0) & (v < 1), "p < 0, p >= 1 or p is NaN")
        probability = as_float64(p)
        sizes = sizes_of(size, probability)
        v, u = self.positive(sizes), self.unit(sizes)
        q = -np.expm1(u * np.log1p(-probability))
        safe_q = np.where((q > 0) & (q < 1), q, 0.5)
        tail = np.minimum(np.floor(1 + np.log(v) / np.log(safe_q)), _INT64_LIMIT - 1024)
        samples = np.where(v > probability, 1.0, np.where(v <= q * q, np.maximum(tail, 1.0), np.where(v > q, 1.0, 2.0)))
        return samples.astype(np.int64)

    def hypergeometric(self, ngood: Any, nbad: Any, nsample: Any, size: Any = None) -> Array:
        """Draw hypergeometric numbers by inversion for small samples, else by the ratio of uniforms (Stadlober)."""
        for value, name in ((ngood, "ngood"), (nbad, "nbad"), (nsample, "nsample")):
            require(value, lambda v: v >= 0, f"{name} < 0")
        for value in (ngood, nbad):
            require(value, lambda v: v < MAX_POPULATION, f"both ngood and nbad must be less than {MAX_POPULATION}")
        good, bad, sample_size = (np.trunc(as_float64(v)) for v in (ngood, nbad, nsample))
        if any(isinstance(v, TracedArray) for v in (ngood, nbad, nsample)):
            require(good + bad >= sample_size, lambda ok: ok, "ngood + nbad < nsample")
        else:
            known_values = [np.trunc(np.asarray(v, np.float64)) for v in (ngood, nbad, nsample)]
            require(known_values[0] + known_values[1] >= known_values[2], lambda ok: ok, "ngood + nbad < nsample")
        return self._hypergeometric(good, bad, sample_size, sizes_of(size, good, bad, sample_size))

    def _hypergeometric(self, good: Array, bad: Array, sample_size: Array, sizes: tuple[int, ...]) -> Array:
        """Draw the count of the rarer kind in the smaller of sample and remainder; other counts follow by symmetry."""
        total = good + bad
        rare, common = np.minimum(good, bad), np.maximum(good, bad)
        smaller_sample = np.minimum(sample_size, total - sample_size)
        by_inversion = np.broadcast_to(smaller_sample < _MAX_INVERSION_MEAN, sizes)
        inverted = self._hypergeometric_by_inversion(
            rare, common, np.where(by_inversion, np.maximum(smaller_sample, 0.0), 0.0), sizes
        )
        safe = [np.where(by_inversion, 40.0, v) for v in (rare, common, smaller_sample)]
        rejection_samples = self._hypergeometric_by_rejection(safe[0], safe[1], safe[2], sizes, ~by_inversion)
        samples: Array = np.where(by_inversion, inverted, rejection_samples)
        samples = np.where(good > bad, smaller_sample - samples, samples)
        return np.where(smaller_sample < sample_size, good - samples, samples).astype(np.int64)

    def _hypergeometric_by_inversion(
        self, rare: Array, common: Array, sample_size: Array, sizes: tuple[int, ...]
    ) -> Array:
        first: Array = 1.0
        for k in range(int(_MAX_INVERSION_MEAN) - 1):  # probability that the sample contains none of the rarer kind
            first = first * np.where(
                k < sample_size, np.maximum(common - k, 0.0) / np.maximum(rare + common - k, 1.0), 1.0
            )
        return _invert(
            self.unit(sizes), first,
            lambda k: (rare - k + 1) / k * (sample_size - k + 1) / np.maximum(common - sample_size + k, 1.0),
            np.minimum(rare, sample_size),
        )  # fmt: skip

    def _hypergeometric_by_rejection(
        self, rare: Array, common: Array, sample_size: Array, sizes: tuple[int, ...], active: Array
    ) -> Array:
        total = rare + common
        mean = sample_size * rare / total
        deviation = np.sqrt((total - sample_size) / (total - 1) * mean * (common / total) + 0.5)
        width = 2 * np.sqrt(2 / np.e) * deviation + (3 - 2 * np.sqrt(3 / np.e))
        mode = np.floor((sample_size + 1) * (rare + 1) / (total + 2))
        end = np.minimum(np.minimum(sample_size, rare) + 1, np.floor(mean + 0.5 + 16 * deviation))

        def weight(k: Array) -> Array:
            return sum(_lgamma(v + 1) for v in (k, rare - k, sample_size - k, common - sample_size + k))

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
        remaining: Array = as_traced(n, np.int64)
        probabilities = as_float64(pvals)
        if not probabilities.ndim or not probabilities.shape[-1]:
            raise ValueError("pvals must have at least one dimension, and the last one must not be empty")
        require(n, lambda v: v >= 0, "n < 0")
        require(pvals, lambda v: (v >= 0) & (v <= 1), "pvals < 0, pvals > 1 or pvals contains NaNs")
        require(pvals, lambda v: np.sum(v[..., :-1], axis=-1) <= 1 + 1e-12, "sum(pvals[:-1]) > 1.0")
        sizes = sizes_of(size, remaining, probabilities[..., 0])
        remaining, remaining_share = np.broadcast_to(remaining, sizes), 1.0
        counts = []
        for k in range(probabilities.shape[-1] - 1):
            probability = probabilities[..., k]
            conditional = np.where(
                probability > 0, np.clip(probability / np.maximum(remaining_share, np.finfo(float).tiny), 0.0, 1.0), 0.0
            )
            counts.append(self.binomial(remaining, np.broadcast_to(conditional, sizes)))
            remaining, remaining_share = remaining - counts[-1], remaining_share - probability
        return np.stack([*counts, remaining], axis=-1)
