"""Real functions on NumPy floats: exact ones in the given type, others for a type wider than the result."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from cyxla.xla.evaluator.values import Array


def _maximum(x: Array, y: Array) -> Array:
    both_zero = (x == 0) & (y == 0)
    return np.where(both_zero, x + y, np.maximum(x, y))  # -0 + +0 is +0


def _minimum(x: Array, y: Array) -> Array:
    both_zero = (x == 0) & (y == 0)
    return np.where(both_zero, -((-x) + (-y)), np.minimum(x, y))


def _sign(x: Array) -> Array:
    return np.where((x == 0) | np.isnan(x), x, np.copysign(x.dtype.type(1), x))


def _round_away(x: Array) -> Array:
    whole = np.trunc(x)
    up = np.abs(x - whole) >= 0.5  # the difference is exact
    return np.copysign(np.where(up, np.abs(whole) + 1, np.abs(whole)), x).astype(x.dtype)


def _erf(x: Array) -> Array:
    from scipy.special import erf

    return np.asarray(erf(x.astype(np.float64)))


def _logistic(x: Array) -> Array:
    return 1 / (1 + np.exp(-x))


# fmt: off
EXACT: dict[str, Callable[..., Any]] = {  # one correctly rounded operation, or none
    "abs":                np.abs,
    "negate":             np.negative,
    "sign":               _sign,
    "ceil":               np.ceil,
    "floor":              np.floor,
    "round-nearest-afz":  _round_away,
    "round-nearest-even": np.rint,
    "real":               lambda x: x,
    "imag":               np.zeros_like,
    "sqrt":               np.sqrt,
    "add":                np.add,
    "subtract":           np.subtract,
    "multiply":           np.multiply,
    "divide":             np.divide,
    "remainder":          np.fmod,
    "maximum":            _maximum,
    "minimum":            _minimum,
}

SMOOTH: dict[str, Callable[..., Any]] = {
    "exponential":           np.exp,
    "exponential-minus-one": np.expm1,
    "log":                   np.log,
    "log-plus-one":          np.log1p,
    "logistic":              _logistic,
    "tanh":                  np.tanh,
    "tan":                   np.tan,
    "sine":                  np.sin,
    "cosine":                np.cos,
    "rsqrt":                 lambda x: 1 / np.sqrt(x),
    "cbrt":                  np.cbrt,
    "erf":                   _erf,
    "acos":                  np.arccos,
    "acosh":                 np.arccosh,
    "asin":                  np.arcsin,
    "asinh":                 np.arcsinh,
    "atanh":                 np.arctanh,
    "sinh":                  np.sinh,
    "cosh":                  np.cosh,
    "power":                 np.power,
    "atan2":                 np.arctan2,
}
# fmt: on
