"""Complex functions, with HLO's edges where they differ from NumPy's."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from cyxla.xla.evaluator.values import Array


def complex_of(real: Array, imag: Array) -> Array:
    """Put parts together; ``real + 1j * imag`` would lose infinities and signed zeros."""
    real, imag = np.broadcast_arrays(real, imag)
    result = np.empty(real.shape, np.result_type(real.dtype, np.complex64))
    result.real, result.imag = real, imag
    return result


def absolute(z: Array) -> Array:
    """Return the modulus; a NaN part makes it NaN even beside an infinity."""
    return np.where(np.isnan(z.real) | np.isnan(z.imag), np.nan, np.abs(z)).astype(z.real.dtype)


def _sign(z: Array) -> Array:
    size = absolute(z)
    safe = np.where(size == 0, 1, size)
    parts = complex_of(z.real / safe, z.imag / safe)
    parts = np.where(size == 0, z.dtype.type(0), parts)
    return np.where(np.isnan(size), complex_of(size, size), parts)


def _multiply(x: Array, y: Array) -> Array:
    return complex_of(x.real * y.real - x.imag * y.imag, x.real * y.imag + x.imag * y.real)


def _divide(x: Array, y: Array) -> Array:
    """Divide as C99's Annex G: infinities and zeros give infinities and zeros, not NaN."""
    a, b, c, d = x.real, x.imag, y.real, y.imag
    _, scale = np.frexp(np.fmax(np.abs(c), np.abs(d)))
    scale = np.where(np.isfinite(c) & np.isfinite(d), scale, 0)
    c, d = np.ldexp(c, -scale), np.ldexp(d, -scale)
    norm = c * c + d * d
    real = np.ldexp((a * c + b * d) / norm, -scale)
    imag = np.ldexp((b * c - a * d) / norm, -scale)
    lost = np.isnan(real) & np.isnan(imag)
    by_zero = lost & (norm == 0) & (~np.isnan(a) | ~np.isnan(b))
    huge = np.copysign(np.inf, c)
    real, imag = np.where(by_zero, huge * a, real), np.where(by_zero, huge * b, imag)
    from_infinity = lost & (np.isinf(a) | np.isinf(b)) & np.isfinite(c) & np.isfinite(d)
    ia, ib = np.copysign(np.isinf(a).astype(a.dtype), a), np.copysign(np.isinf(b).astype(b.dtype), b)
    real = np.where(from_infinity, np.inf * (ia * c + ib * d), real)
    imag = np.where(from_infinity, np.inf * (ib * c - ia * d), imag)
    by_infinity = lost & (np.isinf(c) | np.isinf(d)) & np.isfinite(a) & np.isfinite(b)
    ic, id_ = np.copysign(np.isinf(c).astype(c.dtype), c), np.copysign(np.isinf(d).astype(d.dtype), d)
    real = np.where(by_infinity, 0.0 * (a * ic + b * id_), real)
    imag = np.where(by_infinity, 0.0 * (b * ic - a * id_), imag)
    return complex_of(real, imag)


def _exponential(z: Array) -> Array:
    """Nothing is known of infinite numbers in an unknown direction."""
    lost = (z.real == np.inf) & ~np.isfinite(z.imag)
    return np.where(lost, complex_of(np.full_like(z.real, np.nan), np.full_like(z.real, np.nan)), np.exp(z))


def _exponential_minus_one(z: Array) -> Array:
    """Real numbers stay on their line."""
    return np.where(z.imag == 0, complex_of(np.expm1(z.real), z.imag), np.expm1(z))


def _rsqrt(z: Array) -> Array:
    """Infinite numbers give zero, whatever the other part is."""
    endless = np.isinf(z.real) | np.isinf(z.imag)
    zero = complex_of(np.zeros_like(z.real), -np.copysign(np.zeros_like(z.imag), z.imag))
    return np.where(endless, zero, 1 / np.sqrt(z))


def _power(x: Array, y: Array) -> Array:
    return np.where((x == 0) & (y == 0), 1, np.power(x, y))


def _log_plus_one(z: Array) -> Array:
    """Keep the real part accurate near zero: log|1 + z| = log1p(2 re + |z|^2) / 2."""
    x, y = z.real, z.imag
    near = np.log1p(x * (2 + x) + y * y) / 2
    real = np.where(np.abs(x) + np.abs(y) < 0.5, near, np.log(np.abs(1 + z)))
    return complex_of(real, np.arctan2(y, 1 + x))


def _atan2(y: Array, x: Array) -> Array:
    i = complex_of(np.zeros_like(y.real), np.ones_like(y.real))
    return np.asarray(-i * np.log((x + i * y) / np.sqrt(x * x + y * y)))


# fmt: off
COMPLEX: dict[str, Callable[..., Any]] = {
    "negate":                np.negative,
    "sign":                  _sign,
    "exponential":           _exponential,
    "exponential-minus-one": _exponential_minus_one,
    "log":                   np.log,
    "log-plus-one":          _log_plus_one,
    "logistic":              lambda z: _divide(np.ones_like(z), 1 + _exponential(-z)),
    "tanh":                  np.tanh,
    "tan":                   np.tan,
    "sine":                  np.sin,
    "cosine":                np.cos,
    "sqrt":                  np.sqrt,
    "rsqrt":                 _rsqrt,
    "acos":                  np.arccos,
    "acosh":                 np.arccosh,
    "asin":                  np.arcsin,
    "asinh":                 np.arcsinh,
    "atanh":                 np.arctanh,
    "sinh":                  np.sinh,
    "cosh":                  np.cosh,
    "add":                   np.add,
    "subtract":              np.subtract,
    "multiply":              _multiply,
    "divide":                _divide,
    "power":                 _power,
    "maximum":               np.maximum,
    "minimum":               np.minimum,
    "atan2":                 _atan2,
}
# fmt: on
