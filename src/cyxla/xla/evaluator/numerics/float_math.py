"""Real functions on NumPy floats: exact ones in the given type, others for a type wider than the result."""

from __future__ import annotations

import numpy as np

from cyxla.xla.evaluator.values import Array


def maximum(x: Array, y: Array) -> Array:
    """Return the greater number; of two zeros the positive one."""
    both_zero = (x == 0) & (y == 0)
    return np.where(both_zero, x + y, np.maximum(x, y))  # -0 + +0 is +0


def minimum(x: Array, y: Array) -> Array:
    """Return the lesser number; of two zeros the negative one."""
    both_zero = (x == 0) & (y == 0)
    return np.where(both_zero, -((-x) + (-y)), np.minimum(x, y))


def sign(x: Array) -> Array:
    """Return -1 or 1; zeros and NaN as they are."""
    return np.where((x == 0) | np.isnan(x), x, np.copysign(x.dtype.type(1), x))


def round_away(x: Array) -> Array:
    """Round to the nearest integer, halves away from zero."""
    truncated = np.trunc(x)
    up = np.abs(x - truncated) >= 0.5  # the difference is exact
    return np.copysign(np.where(up, np.abs(truncated) + 1, np.abs(truncated)), x).astype(x.dtype)


def erf(x: Array) -> Array:
    """Compute the error function, in f64."""
    from scipy.special import erf

    return np.asarray(erf(x.astype(np.float64)))


def logistic(x: Array) -> Array:
    """Compute 1 / (1 + exp(-x))."""
    return 1 / (1 + np.exp(-x))
