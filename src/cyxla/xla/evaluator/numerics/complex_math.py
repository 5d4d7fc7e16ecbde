"""Complex functions, with HLO's special cases where they differ from NumPy's."""

from __future__ import annotations

import numpy as np

from cyxla.xla.evaluator.values import Array


def complex_of(real: Array, imag: Array) -> Array:
    """Return complex numbers of two parts; ``real + 1j * imag`` would lose infinities and signed zeros."""
    real, imag = np.broadcast_arrays(real, imag)
    result = np.empty(real.shape, np.result_type(real.dtype, np.complex64))
    result.real, result.imag = real, imag
    return result


def absolute(z: Array) -> Array:
    """Return the modulus; if a part is NaN, it is NaN even if the other is infinite."""
    return np.where(np.isnan(z.real) | np.isnan(z.imag), np.nan, np.abs(z)).astype(z.real.dtype)


def sign(z: Array) -> Array:
    """Return the number of modulus 1 in the same direction; 0 for zero."""
    size = absolute(z)
    safe = np.where(size == 0, 1, size)
    parts = complex_of(z.real / safe, z.imag / safe)
    parts = np.where(size == 0, z.dtype.type(0), parts)
    return np.where(np.isnan(size), complex_of(size, size), parts)


def multiply(x: Array, y: Array) -> Array:
    """Multiply by four products of parts."""
    return complex_of(x.real * y.real - x.imag * y.imag, x.real * y.imag + x.imag * y.real)


def divide(x: Array, y: Array) -> Array:
    """Divide as in C99's Annex G: infinities and zeros give infinities and zeros, not NaN."""
    a, b, c, d = x.real, x.imag, y.real, y.imag
    _, scale = np.frexp(np.fmax(np.abs(c), np.abs(d)))
    scale = np.where(np.isfinite(c) & np.isfinite(d), scale, 0)
    c, d = np.ldexp(c, -scale), np.ldexp(d, -scale)
    norm = c * c + d * d
    real = np.ldexp((a * c + b * d) / norm, -scale)
    imag = np.ldexp((b * c - a * d) / norm, -scale)
    undefined = np.isnan(real) & np.isnan(imag)
    by_zero = undefined & (norm == 0) & (~np.isnan(a) | ~np.isnan(b))
    huge = np.copysign(np.inf, c)
    real, imag = np.where(by_zero, huge * a, real), np.where(by_zero, huge * b, imag)
    from_infinity = undefined & (np.isinf(a) | np.isinf(b)) & np.isfinite(c) & np.isfinite(d)
    ia, ib = np.copysign(np.isinf(a).astype(a.dtype), a), np.copysign(np.isinf(b).astype(b.dtype), b)
    real = np.where(from_infinity, np.inf * (ia * c + ib * d), real)
    imag = np.where(from_infinity, np.inf * (ib * c - ia * d), imag)
    by_infinity = undefined & (np.isinf(c) | np.isinf(d)) & np.isfinite(a) & np.isfinite(b)
    ic, id_ = np.copysign(np.isinf(c).astype(c.dtype), c), np.copysign(np.isinf(d).astype(d.dtype), d)
    real = np.where(by_infinity, 0.0 * (a * ic + b * id_), real)
    imag = np.where(by_infinity, 0.0 * (b * ic - a * id_), imag)
    return complex_of(real, imag)


def exponential(z: Array) -> Array:
    """Return exp(z), with NaN for an infinite real part and an imaginary part that is not finite."""
    undefined = np.isinf(z.real) & ~np.isfinite(z.imag)
    return np.where(undefined, complex_of(np.full_like(z.real, np.nan), np.full_like(z.real, np.nan)), np.exp(z))


def exponential_minus_one(z: Array) -> Array:
    """Return exp(z) - 1, with an exact imaginary part for real numbers."""
    return np.where(z.imag == 0, complex_of(np.expm1(z.real), z.imag), np.expm1(z))


def logistic(z: Array) -> Array:
    """Return 1 / (1 + exp(-z)), computed from the power that does not overflow."""
    negative = z.real < 0
    e = exponential(np.where(negative, z, -z))
    return divide(np.where(negative, e, 1), 1 + e)


def cosh(z: Array) -> Array:
    """Return cosh(z), with the sign of a product of zeros."""
    zero = (z.real == 0) & (z.imag == 0)
    return np.where(zero, complex_of(np.ones_like(z.real), z.real * z.imag), np.cosh(z))


def rsqrt(z: Array) -> Array:
    """Return 1 / sqrt(z), zero if either part is infinite."""
    infinite = np.isinf(z.real) | np.isinf(z.imag)
    zero = complex_of(np.zeros_like(z.real), -np.copysign(np.zeros_like(z.imag), z.imag))
    return np.where(infinite, zero, 1 / np.sqrt(z))


def cbrt(z: Array) -> Array:
    """Return the cube root of the modulus at a third of the angle."""
    size, angle = np.cbrt(np.abs(z)), np.arctan2(z.imag, z.real) / 3
    return complex_of(size * np.cos(angle), np.where(angle == 0, angle, size * np.sin(angle)))


def power(x: Array, y: Array) -> Array:
    """Return exp(y log(x)); zero to an exponent with positive real part is zero, and 0 to the power of 0 is 1."""
    unknown = complex_of(np.full_like(x.real, np.nan), np.full_like(x.real, np.nan))
    of_zero = np.where(y.real > 0, 0, unknown)
    value = exponential(multiply(y, np.log(np.where(x == 0, 1, x))))
    return np.where(y == 0, 1, np.where(x == 0, of_zero, value))


def log_plus_one(z: Array) -> Array:
    """Return log(1 + z) with an accurate real part near zero: log|1 + z| = log1p(2 re + |z|^2) / 2."""
    x, y = z.real, z.imag
    near_zero = np.log1p(x * (2 + x) + y * y) / 2
    real = np.where(np.abs(x) + np.abs(y) < 0.5, near_zero, np.log(1 + z).real)
    return complex_of(real, np.arctan2(y, 1 + x))


def atan2(y: Array, x: Array) -> Array:
    """Return -i log((x + iy) / sqrt(x^2 + y^2))."""
    size = np.sqrt(multiply(x, x) + multiply(y, y))
    value = np.log(divide(complex_of(x.real - y.imag, x.imag + y.real), size))
    return complex_of(value.imag, -value.real)
