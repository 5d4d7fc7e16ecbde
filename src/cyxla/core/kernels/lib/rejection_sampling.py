"""Gamma, Poisson, binomial and truncated normal random numbers, most of them by rejection sampling.

Each element has its own blocks and draws from them until a proposal is accepted, so elements are independent.
Sources: Marsaglia and Tsang, "A simple method for generating gamma variables", 2000; Hormann, "The transformed
rejection method for generating Poisson random variables", 1993, and "The generation of binomial random variates", 1993.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from cyxla.core.framework.philox_state import RESERVED
from cyxla.core.kernels.lib.philox import Philox, float64_of, normal_pairs

Array = np.ndarray[Any, Any]


class Streams:
    """One stream of random numbers per element.

    Parameters
    ----------
    generator : Philox
        Generator shared by all streams.
    count : int
        Number of elements.
    """

    def __init__(self, generator: Philox, count: int) -> None:
        self._generator = generator
        self._next = np.arange(count, dtype=np.uint64) * np.uint64(RESERVED)
        self._buffers = {name: np.zeros((count, 2)) for name in ("uniform", "normal")}
        self._num_buffered = {name: np.zeros(count, np.int64) for name in self._buffers}

    def uniform(self, rows: Array) -> Array:
        """Draw a number in [0, 1) for each of the given elements."""
        return self._next_number("uniform", rows, lambda words: float64_of(words.reshape(-1, 2, 2)))

    def normal(self, rows: Array) -> Array:
        """Draw a normal number for each of the given elements."""
        return self._next_number("normal", rows, normal_pairs)

    def _next_number(self, name: str, rows: Array, of: Callable[[Array], Array]) -> Array:
        """Take a number from each stream; a block yields two, the second of which is taken first."""
        buffers, num_buffered = self._buffers[name], self._num_buffered[name]
        exhausted = rows[num_buffered[rows] == 0]
        if exhausted.size:
            buffers[exhausted] = of(self._generator.blocks_at(self._next[exhausted]))
            self._next[exhausted] += np.uint64(1)
            num_buffered[exhausted] = 2
        num_buffered[rows] -= 1
        return np.asarray(buffers[rows, num_buffered[rows]])


def _sample_until_accepted(count: int, draw: Callable[[Array], tuple[Array, Array]]) -> Array:
    """Draw until all elements are accepted, and return f64[count].

    The function `draw` maps indices of elements to values and acceptances.
    """
    samples, pending = np.zeros(count), np.arange(count)
    while pending.size:
        with np.errstate(all="ignore"):
            values, accepted = draw(pending)
        samples[pending[accepted]] = values[accepted]
        pending = pending[~accepted]
    return samples


def gamma(generator: Philox, alpha: Array) -> Array:
    """Draw f64[n] of gamma distributions with shapes `alpha`, f64[n]; NaN where a shape is not positive and finite."""
    streams = Streams(generator, len(alpha))
    is_small, is_one = alpha < 1, alpha == 1
    d = alpha + np.where(is_small, 2 / 3, -1 / 3)
    c = 1 / 3 / np.sqrt(np.maximum(d, 1e-300))
    valid = (alpha > 0) & np.isfinite(alpha)

    def draw(rows: Array) -> tuple[Array, Array]:
        values, accepted = np.full(len(rows), np.nan), ~valid[rows]
        simple = rows[valid[rows] & is_one[rows]]
        values[valid[rows] & is_one[rows]] = -np.log1p(-streams.uniform(simple))
        regular = valid[rows] & ~is_one[rows]
        values[regular], accepted[regular] = _marsaglia_tsang(streams, rows[regular], d, c)
        return values, accepted | is_one[rows]

    samples = _sample_until_accepted(len(alpha), draw)
    rows = np.flatnonzero(valid & is_small)
    samples[rows] *= streams.uniform(rows) ** (1 / alpha[rows])
    return samples


def _marsaglia_tsang(streams: Streams, rows: Array, d: Array, c: Array) -> tuple[Array, Array]:
    """Propose values by the squeeze method of Marsaglia and Tsang."""
    x = streams.normal(rows)
    v = 1 + c[rows] * x
    accepted = v > 0
    v, accepted_rows = v**3, np.flatnonzero(accepted)
    u = np.ones(len(rows))
    u[accepted_rows] = streams.uniform(rows[accepted_rows])  # no draws for proposals that are rejected already
    d_here = d[rows]
    accepted &= (u < 1 - 0.0331 * x**4) | (np.log(u) < 0.5 * x * x + d_here * (1 - v + np.log(v)))
    return d_here * v, accepted


def poisson(generator: Philox, rate: Array) -> Array:
    """Draw f64[n] of Poisson distributions with means `rate`, f64[n]; NaN where a mean is negative or not finite."""
    streams = Streams(generator, len(rate))
    valid = (rate >= 0) & np.isfinite(rate)
    small_rates, large_rates = np.flatnonzero(valid & (rate < 10)), np.flatnonzero(valid & (rate >= 10))
    samples = np.full(len(rate), np.nan)
    samples[small_rates] = _poisson_by_products(streams, small_rates, rate)
    samples[large_rates] = _sample_until_accepted(
        len(large_rates), lambda rows: _poisson_by_rejection(streams, large_rates[rows], rate)
    )
    return samples


def _poisson_by_products(streams: Streams, rows: Array, rate: Array) -> Array:
    """Count the uniform numbers whose product stays above exp(-rate)."""
    least, product, steps = np.exp(-rate[rows]), np.ones(len(rows)), np.zeros(len(rows))
    todo = np.arange(len(rows))
    while todo.size:
        product[todo] *= streams.uniform(rows[todo])
        todo = todo[product[todo] > least[todo]]
        steps[todo] += 1
    return steps


def _poisson_by_rejection(streams: Streams, rows: Array, rate: Array) -> tuple[Array, Array]:
    from scipy.special import gammaln

    mean = rate[rows]
    b = 0.931 + 2.53 * np.sqrt(mean)
    a = -0.059 + 0.02483 * b
    u, v = streams.uniform(rows) - 0.5, streams.uniform(rows)
    inner = 0.5 - np.abs(u)
    k = np.floor((2 * a / inner + b) * u + mean + 0.43)
    at_once = (inner >= 0.07) & (v <= 0.9277 - 3.6224 / (b - 2))
    never = (k < 0) | ((inner < 0.013) & (v > inner))
    hat = np.log(v * (1.1239 + 1.1328 / (b - 3.4)) / (a / inner**2 + b))
    return k, at_once | (~never & (hat <= -mean + k * np.log(mean) - gammaln(k + 1)))


def binomial(generator: Philox, counts: Array, probs: Array) -> Array:
    """Draw f64[n] of binomial distributions; NaN where the parameters are invalid."""
    streams = Streams(generator, len(counts))
    valid = (counts >= 0) & np.isfinite(counts) & (probs >= 0) & (probs <= 1)
    total = np.floor(counts)
    swapped = probs > 0.5
    p = np.where(swapped, 1 - probs, probs)
    samples = np.full(len(counts), np.nan)
    samples[valid] = 0
    is_random = valid & (p > 0) & (total > 0)
    small_counts, large_counts = (
        np.flatnonzero(is_random & (total * p < 10)),
        np.flatnonzero(is_random & (total * p >= 10)),
    )
    samples[small_counts] = _binomial_by_gaps(streams, small_counts, total, p)
    samples[large_counts] = _sample_until_accepted(
        len(large_counts), lambda rows: _binomial_by_rejection(streams, large_counts[rows], total, p)
    )
    return np.asarray(np.where(swapped, total - samples, samples))


def _binomial_by_gaps(streams: Streams, rows: Array, total: Array, p: Array) -> Array:
    """Count the geometric gaps between successes that fit into the trials."""
    position, steps = np.zeros(len(rows)), np.zeros(len(rows))
    todo = np.arange(len(rows))
    while todo.size:
        with np.errstate(divide="ignore"):
            gap = np.ceil(np.log(streams.uniform(rows[todo])) / np.log1p(-p[rows[todo]]))
        position[todo] += gap
        todo = todo[position[todo] <= total[rows[todo]]]
        steps[todo] += 1
    return steps


def _stirling(k: Array) -> Array:
    """Return the error of Stirling's formula for log(k!)."""
    from scipy.special import gammaln

    return np.asarray(gammaln(k + 1) - (0.5 * np.log(2 * np.pi) + (k + 0.5) * np.log(k + 1) - (k + 1)))


def _binomial_by_rejection(streams: Streams, rows: Array, total: Array, probs: Array) -> tuple[Array, Array]:
    n, p = total[rows], probs[rows]
    deviation = np.sqrt(n * p * (1 - p))
    b = 1.15 + 2.53 * deviation
    a = -0.0873 + 0.0248 * b + 0.01 * p
    r, m = p / (1 - p), np.floor((n + 1) * p)
    u, v = streams.uniform(rows) - 0.5, streams.uniform(rows)
    inner = 0.5 - np.abs(u)
    k = np.floor((2 * a / inner + b) * u + n * p + 0.5)
    at_once = (inner >= 0.07) & (v <= 0.92 - 4.2 / b)
    hat = np.log(v * (2.83 + 5.1 / b) * deviation / (a / inner**2 + b))
    bound = (m + 0.5) * np.log((m + 1) / (r * (n - m + 1))) + (n + 1) * np.log((n - m + 1) / (n - k + 1))
    bound += (
        (k + 0.5) * np.log(r * (n - k + 1) / (k + 1))
        + _stirling(m)
        + _stirling(n - m)
        - _stirling(k)
        - _stirling(n - k)
    )
    return k, at_once | ((k >= 0) & (k <= n) & (hat <= bound))


def truncated_normal(generator: Philox, mean: Array, deviation: Array, low: Array, high: Array) -> Array:
    """Draw f64[n] of normal distributions truncated to [low, high), by inverting the distribution function.

    NaN where a spread is not positive or an interval is empty.
    """
    from scipy.special import ndtr, ndtri

    streams = Streams(generator, len(mean))
    with np.errstate(all="ignore"):
        first, last = (low - mean) / deviation, (high - mean) / deviation
        flipped = first > 0  # the lower tail is the accurate one
        near, far = np.where(flipped, -last, first), np.where(flipped, -first, last)
        bottom, top = ndtr(near), ndtr(far)
        z = ndtri(bottom + streams.uniform(np.arange(len(mean))) * (top - bottom))
        z = np.clip(z, near, far)
        result = mean + deviation * np.where(flipped, -z, z)
    valid = (deviation > 0) & (low < high) & np.isfinite(mean)
    return np.asarray(np.where(valid, np.clip(result, low, high), np.nan))
