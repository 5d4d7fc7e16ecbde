"""Multivariate distributions."""

from __future__ import annotations

from operator import index
from typing import Any

import numpy as np

from cyxla.numpy.random.discrete import MAX_POPULATION, Discrete
from cyxla.numpy.random.random_words import Array, as_float64, require, sizes_of
from cyxla.numpy.tracing.arrays.traced_array import TracedArray, as_traced


class Multivariate(Discrete):
    """Methods of a generator for multivariate distributions, by NumPy's names."""

    def dirichlet(self, alpha: Any, size: Any = None) -> Array:
        """Draw Dirichlet vectors: gamma numbers divided by their sum."""
        shape = as_float64(alpha)
        if shape.ndim == 0:
            raise TypeError("alpha must be a vector, not a number")
        if shape.ndim != 1:
            raise ValueError("alpha must be a vector")
        require(alpha, lambda v: ~(v < 0), "alpha < 0")
        sizes = sizes_of(size, np.zeros(()))
        logs = self._log_gammas(shape, (*sizes, shape.shape[0]))
        maximum = np.max(logs, axis=-1, keepdims=True, initial=-np.inf)
        weights = np.exp(logs - np.where(np.isneginf(maximum), 0.0, maximum))
        total = np.sum(weights, axis=-1, keepdims=True)
        return weights / np.where(total == 0, 1.0, total)

    def multivariate_normal(
        self,
        mean: Any,
        cov: Any,
        size: Any = None,
        check_valid: str = "warn",
        tol: float = 1e-8,
        *,
        method: str = "svd",
    ) -> Array:
        """Draw normal vectors of a mean and a covariance, whose validity is not checked."""
        if method not in ("svd", "eigh", "cholesky"):
            raise ValueError("method must be one of {'eigh', 'svd', 'cholesky'}")
        center, covariance = as_float64(mean), as_float64(cov)
        if center.ndim != 1:
            raise ValueError("mean must be 1 dimensional")
        if covariance.ndim != 2 or covariance.shape[0] != covariance.shape[1]:
            raise ValueError("cov must be 2 dimensional and square")
        if center.shape[0] != covariance.shape[0]:
            raise ValueError("mean and cov must have same length")
        draws = self.normals((*sizes_of(size, np.zeros(())), center.shape[0]))
        return center + draws @ _square_root(covariance, method)

    def multivariate_hypergeometric(
        self, colors: Any, nsample: Any, size: Any = None, method: str = "marginals"
    ) -> Array:
        """Draw counts of each colour in a sample: successive hypergeometric numbers of the remainder."""
        if method not in ("marginals", "count"):
            raise ValueError('method must be "count" or "marginals".')
        colours: Array = as_traced(colors)
        if colours.ndim != 1 or (colours.size and colours.dtype.kind not in "iu"):
            raise ValueError("colors must be a one-dimensional sequence of nonnegative integers")
        require(colors, lambda v: v >= 0, "colors must be a one-dimensional sequence of nonnegative integers")
        require(colors, lambda v: np.sum(v) < MAX_POPULATION, f"sum(colors) must be less than {MAX_POPULATION}")
        remaining: Array = as_traced(_as_count(nsample), np.int64)
        require(nsample, lambda v: v >= 0, "nsample must be nonnegative.")
        _require_enough(colors, nsample)
        sizes = sizes_of(size, np.zeros(()))
        remaining, colours = np.broadcast_to(remaining, sizes).astype(np.float64), colours.astype(np.float64)
        population = np.sum(colours)
        counts = []
        for k in range(colours.shape[0] - 1):
            population = population - colours[k]
            counts.append(
                self._hypergeometric(
                    colours[k].astype(np.float64), population.astype(np.float64), remaining.astype(np.float64), sizes
                )
            )
            remaining = remaining - counts[-1]
        return np.stack([*counts, remaining.astype(np.int64)], axis=-1)[..., : colours.shape[0]]


def _as_count(value: Any) -> Any:
    """Return a count, traced or not.

    Raises
    ------
    ValueError
        The value is not an integer.
    """
    if isinstance(value, TracedArray):
        if value.shape or value.dtype.kind not in "iu":
            raise ValueError("nsample must be an integer")
        return value
    try:
        return index(value)
    except TypeError as error:
        raise ValueError("nsample must be an integer") from error


def _require_enough(colors: Any, nsample: Any) -> None:
    if isinstance(colors, TracedArray) or isinstance(nsample, TracedArray):
        enough: Any = np.sum(as_traced(colors).astype(np.int64)) >= as_traced(nsample)
        require(enough, lambda ok: ok, "nsample > sum(colors)")
    else:
        require(np.sum(colors), lambda v: v >= nsample, "nsample > sum(colors)")


def _square_root(cov: Array, method: str) -> Array:
    """Return a matrix R with R^T R equal to the covariance."""
    if method == "cholesky":
        return np.linalg.cholesky(cov).T
    if method == "eigh":
        values, vectors = np.linalg.eigh(cov)
        return (vectors * np.sqrt(np.maximum(values, 0.0))).T
    _, values, right = np.linalg.svd(cov)
    return np.sqrt(values)[:, None] * right
