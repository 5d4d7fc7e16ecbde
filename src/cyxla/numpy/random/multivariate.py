"""Distributions of vectors."""

from __future__ import annotations

from typing import Any

import numpy as np

from cyxla.numpy.random.discrete import Discrete
from cyxla.numpy.random.source import Array, real, require, sizes_of


class Multivariate(Discrete):
    """Distributions of vectors, by NumPy's names."""

    def dirichlet(self, alpha: Any, size: Any = None) -> Array:
        """Parts of a sum of gamma numbers."""
        require(alpha, lambda v: v > 0, "alpha <= 0")
        shape = real(alpha)
        if shape.ndim != 1:
            raise ValueError("alpha is to be a vector")
        sizes = sizes_of(size, np.zeros(()))
        logs = self._log_gammas(shape, (*sizes, shape.shape[0]))
        parts = np.exp(logs - np.max(logs, axis=-1, keepdims=True))
        return parts / np.sum(parts, axis=-1, keepdims=True)

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
        """Normal vectors of a mean and a covariance, which is taken for one unchecked."""
        if method not in ("svd", "eigh", "cholesky"):
            raise ValueError("method must be one of {'eigh', 'svd', 'cholesky'}")
        middle, spread = real(mean), real(cov)
        if middle.ndim != 1:
            raise ValueError("mean must be 1 dimensional")
        if spread.ndim != 2 or spread.shape[0] != spread.shape[1]:
            raise ValueError("cov must be 2 dimensional and square")
        if middle.shape[0] != spread.shape[0]:
            raise ValueError("mean and cov must have same length")
        draws = self.normals((*sizes_of(size, np.zeros(())), middle.shape[0]))
        return middle + draws @ _root(spread, method)


def _root(cov: Array, method: str) -> Array:
    """A matrix whose transpose times itself is the covariance."""
    if method == "cholesky":
        return np.linalg.cholesky(cov).T
    if method == "eigh":
        values, vectors = np.linalg.eigh(cov)
        return (vectors * np.sqrt(np.maximum(values, 0.0))).T
    _, values, right = np.linalg.svd(cov)
    return np.sqrt(values)[:, None] * right
