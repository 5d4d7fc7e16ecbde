"""Continuous distributions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from cyxla.numpy.gradient.composites import attach
from cyxla.numpy.random.random_words import Array, Source, as_float64, float_type, require, sizes_of, to_out
from cyxla.numpy.tracing.arrays.traced_array import TracedArray, value_of
from cyxla.xla.hlo.builder import XlaOp
from cyxla.xla.hlo.builder import functions as xla
from cyxla.xla.lib.special_loops import gamma_sample_grad


def require_nonnegative(value: Any, name: str) -> None:
    """Check that a parameter is not negative; -0.0 and nan are allowed."""
    require(value, lambda v: ~np.signbit(v) | np.isnan(v), f"{name} < 0")


def require_positive(value: Any, name: str) -> None:
    """Check that a parameter is positive; nan is allowed."""
    require(value, lambda v: ~(v <= 0), f"{name} <= 0")


class Continuous(Source):
    """Methods of a generator for continuous distributions, by NumPy's names."""

    def standard_normal(self, size: Any = None, dtype: Any = np.float64, out: Any = None) -> Array:
        """Draw standard normal numbers."""
        sizes = out.shape if size is None and out is not None else sizes_of(size, np.zeros(()))
        return to_out(self.normals(sizes, float_type(dtype, "standard_normal")), out)

    def normal(self, loc: Any = 0.0, scale: Any = 1.0, size: Any = None) -> Array:
        """Draw normal numbers of mean `loc` and standard deviation `scale`."""
        require_nonnegative(scale, "scale")
        mean, deviation = as_float64(loc), as_float64(scale)
        return mean + deviation * self.normals(sizes_of(size, mean, deviation))

    def lognormal(self, mean: Any = 0.0, sigma: Any = 1.0, size: Any = None) -> Array:
        """Draw log-normal numbers."""
        require_nonnegative(sigma, "sigma")
        return np.exp(self.normal(mean, sigma, size))

    def standard_exponential(
        self, size: Any = None, dtype: Any = np.float64, method: str = "zig", out: Any = None
    ) -> Array:
        """Draw exponential numbers of mean 1, by the inverse of the distribution whatever the method."""
        if method not in ("zig", "inv"):
            raise ValueError(f"method must be 'zig' or 'inv', not {method!r}")
        sizes = out.shape if size is None and out is not None else sizes_of(size, np.zeros(()))
        return to_out(-np.log(self.positive(sizes, float_type(dtype, "standard_exponential"))), out)

    def _exponentials(self, *sizes: int) -> Array:
        return -np.log(self.positive(sizes))

    def exponential(self, scale: Any = 1.0, size: Any = None) -> Array:
        """Draw exponential numbers of mean `scale`."""
        require_nonnegative(scale, "scale")
        mean = as_float64(scale)
        return mean * self._exponentials(*sizes_of(size, mean))

    def standard_gamma(self, shape: Any, size: Any = None, dtype: Any = np.float64, out: Any = None) -> Array:
        """Draw gamma numbers by rejection from cubed normal numbers (Marsaglia and Tsang)."""
        require_nonnegative(shape, "shape")
        result_dtype = float_type(dtype, "standard_gamma")
        a = as_float64(shape)
        sizes = out.shape if size is None and out is not None else sizes_of(size, a)
        return to_out(self._gammas(a, sizes).astype(result_dtype), out)

    def _gammas(self, shape: Array, sizes: tuple[int, ...]) -> Array:
        return np.exp(self._log_gammas(shape, sizes))

    def _log_gammas(self, shape: Array, sizes: tuple[int, ...]) -> Array:
        """Draw logarithms of gamma numbers, which do not underflow for small shapes."""
        valid = (shape > 0) & np.isfinite(shape)
        a = np.where(valid, shape, 1.0)
        is_small = a < 1
        logs = self._log_gammas_of_large_shape(np.broadcast_to(np.where(is_small, a + 1, a), sizes), sizes)
        logs = logs + np.where(is_small, np.log(self.positive(sizes)) / np.where(is_small, a, 1.0), 0.0)
        return np.where(valid, logs, np.log(np.where(valid, 1.0, shape)))

    def _log_gammas_of_large_shape(self, shape: Array, sizes: tuple[int, ...]) -> Array:
        """Draw logarithms of gamma numbers for shapes of at least 1."""
        d = shape - 1 / 3
        c = 1 / np.sqrt(9 * d)

        def propose(source: Source) -> tuple[Array, Array]:
            x, u = source.normals(sizes), source.positive(sizes)
            v = 1 + c * x
            cube = np.where(v > 0, v, 1.0) ** 3
            accepted = (v > 0) & (np.log(u) < 0.5 * x * x + d - d * cube + d * np.log(cube))
            return np.log(d * cube), accepted

        drawn = self.sample_by_rejection(sizes, np.float64, propose)
        return TracedArray(attach([value_of(shape)], [value_of(drawn)], vjp=_log_gamma_vjp)[0])

    def gamma(self, shape: Any, scale: Any = 1.0, size: Any = None) -> Array:
        """Draw gamma numbers of mean ``shape * scale``."""
        require_nonnegative(shape, "shape")
        require_nonnegative(scale, "scale")
        a, b = as_float64(shape), as_float64(scale)
        return b * self._gammas(a, sizes_of(size, a, b))

    def beta(self, a: Any, b: Any, size: Any = None) -> Array:
        """Draw beta numbers as a gamma number's share of a sum of two."""
        require_positive(a, "a")
        require_positive(b, "b")
        first, second = as_float64(a), as_float64(b)
        sizes = sizes_of(size, first, second)
        x, y = self._log_gammas(first, sizes), self._log_gammas(second, sizes)
        return np.exp(x - np.logaddexp(x, y))

    def chisquare(self, df: Any, size: Any = None) -> Array:
        """Draw chi-square numbers: sums of `df` squared normal numbers."""
        require_positive(df, "df")
        freedom = as_float64(df)
        return 2 * self._gammas(freedom / 2, sizes_of(size, freedom))

    def f(self, dfnum: Any, dfden: Any, size: Any = None) -> Array:
        """Draw F numbers: ratios of two mean squares."""
        require_positive(dfnum, "dfnum")
        require_positive(dfden, "dfden")
        numerator, denominator = as_float64(dfnum), as_float64(dfden)
        sizes = sizes_of(size, numerator, denominator)
        return (self._gammas(numerator / 2, sizes) / numerator) / (self._gammas(denominator / 2, sizes) / denominator)

    def standard_t(self, df: Any, size: Any = None) -> Array:
        """Draw Student's t numbers: a normal number over the root of a mean square of `df` others."""
        require_positive(df, "df")
        freedom = as_float64(df)
        sizes = sizes_of(size, freedom)
        return self.normals(sizes) / np.sqrt(2 * self._gammas(freedom / 2, sizes) / freedom)

    def standard_cauchy(self, size: Any = None) -> Array:
        """Draw Cauchy numbers: tangents of uniform angles."""
        return np.tan(np.pi * (self.positive(sizes_of(size, np.zeros(()))) - 0.5))

    def laplace(self, loc: Any = 0.0, scale: Any = 1.0, size: Any = None) -> Array:
        """Draw Laplace numbers: exponential ones of random sign."""
        require_nonnegative(scale, "scale")
        mean, width = as_float64(loc), as_float64(scale)
        sizes = sizes_of(size, mean, width)
        signs = np.where(self.words(sizes, np.uint8) < np.uint8(128), -1.0, 1.0)
        return mean + width * signs * self._exponentials(*sizes)

    def logistic(self, loc: Any = 0.0, scale: Any = 1.0, size: Any = None) -> Array:
        """Draw logistic numbers: logarithms of ratios of two exponential ones."""
        require_nonnegative(scale, "scale")
        mean, width = as_float64(loc), as_float64(scale)
        sizes = sizes_of(size, mean, width)
        return mean + width * (np.log(self._exponentials(*sizes)) - np.log(self._exponentials(*sizes)))

    def gumbel(self, loc: Any = 0.0, scale: Any = 1.0, size: Any = None) -> Array:
        """Draw Gumbel numbers: negative logarithms of exponential ones."""
        require_nonnegative(scale, "scale")
        mode, width = as_float64(loc), as_float64(scale)
        return mode - width * np.log(_clamp_to_normal(self._exponentials(*sizes_of(size, mode, width))))

    def pareto(self, a: Any, size: Any = None) -> Array:
        """Draw numbers of Lomax's distribution, also called Pareto II."""
        require_positive(a, "a")
        shape = as_float64(a)
        return np.expm1(self._exponentials(*sizes_of(size, shape)) / shape)

    def power(self, a: Any, size: Any = None) -> Array:
        """Draw numbers in [0, 1] of density ``a x^(a-1)``."""
        require_positive(a, "a")
        shape = as_float64(a)
        return self.positive(sizes_of(size, shape)) ** (1 / shape)

    def rayleigh(self, scale: Any = 1.0, size: Any = None) -> Array:
        """Draw Rayleigh numbers: lengths of normal vectors in the plane."""
        require_nonnegative(scale, "scale")
        width = as_float64(scale)
        return width * np.sqrt(2 * self._exponentials(*sizes_of(size, width)))

    def weibull(self, a: Any, size: Any = None) -> Array:
        """Draw Weibull numbers: powers of exponential ones."""
        require_nonnegative(a, "a")
        shape = as_float64(a)
        draws = self._exponentials(*sizes_of(size, shape))
        return np.where(shape == 0, 0.0, draws ** (1 / np.where(shape == 0, 1.0, shape)))

    def triangular(self, left: Any, mode: Any, right: Any, size: Any = None) -> Array:
        """Draw numbers of a triangular density, by the inverse of the distribution."""
        a, c, b = as_float64(left), as_float64(mode), as_float64(right)
        require(_compare_parameters(a, left, c, mode, lambda x, y: ~(x > y)), lambda ok: ok, "left > mode")
        require(_compare_parameters(c, mode, b, right, lambda x, y: ~(x > y)), lambda ok: ok, "mode > right")
        require(_compare_parameters(a, left, b, right, lambda x, y: x != y), lambda ok: ok, "left == right")
        u = self.unit(sizes_of(size, a, c, b))
        rising, falling = a + np.sqrt(u * (b - a) * (c - a)), b - np.sqrt((1 - u) * (b - a) * (b - c))
        return np.where(u <= (c - a) / (b - a), rising, falling)

    def vonmises(self, mu: Any, kappa: Any, size: Any = None) -> Array:
        """Draw angles around `mu` by rejection from wrapped Cauchy numbers (Best and Fisher)."""
        require_nonnegative(kappa, "kappa")
        center, concentration = as_float64(mu), as_float64(kappa)
        sizes = sizes_of(size, center, concentration)
        is_uniform, is_narrow = concentration < 1e-8, concentration > 1e6
        k = np.where((concentration >= 1e-8) & ~is_narrow, concentration, 1.0)
        signed_uniform = 2 * self.unit(sizes) - 1
        angles = np.where(
            is_uniform, np.pi * signed_uniform, np.where(signed_uniform < 0, -1.0, 1.0) * self._angles(k, sizes)
        )
        angles = np.where(is_narrow, self.normals(sizes) / np.sqrt(np.where(is_narrow, concentration, 1.0)), angles)
        return _wrap_angle(center + np.where(np.isnan(concentration), concentration, angles))

    def _angles(self, concentration: Array, sizes: tuple[int, ...]) -> Array:
        """Draw absolute values of von Mises angles around 0."""
        r = 1 + np.sqrt(1 + 4 * concentration * concentration)
        rho = (r - np.sqrt(2 * r)) / (2 * concentration)
        s = np.where(
            concentration < 1e-5,
            1 / concentration + concentration,
            (1 + rho * rho) / (2 * np.where(rho == 0, 1.0, rho)),
        )

        def propose(source: Source) -> tuple[Array, Array]:
            z = np.cos(np.pi * source.unit(sizes))
            w = (1 + s * z) / (s + z)
            y, v = concentration * (s - w), source.positive(sizes)
            accepted = (y * (2 - y) >= v) | (np.log(np.maximum(y, np.finfo(float).tiny) / v) + 1 >= y)
            return np.arccos(np.clip(w, -1.0, 1.0)), accepted

        return self.sample_by_rejection(sizes, np.float64, propose)

    def wald(self, mean: Any, scale: Any, size: Any = None) -> Array:
        """Draw first-passage times of Brownian motion with drift (Michael, Schucany and Haas)."""
        require_positive(mean, "mean")
        require_positive(scale, "scale")
        m, s = as_float64(mean), as_float64(scale)
        sizes = sizes_of(size, m, s)
        y = m * self.normals(sizes) ** 2
        ratio = m / (2 * s)
        smaller_root = m + ratio * (y - np.sqrt(4 * s * y + y * y))
        return np.where(self.unit(sizes) <= m / (m + smaller_root), smaller_root, m * m / smaller_root)


def _log_gamma_vjp(inputs: list[XlaOp], outputs: list[XlaOp], cotangents: Sequence[XlaOp | None]) -> list[XlaOp | None]:
    """Differentiate logarithms of gamma numbers with respect to the shape at a fixed quantile."""
    (shape,), (g,) = inputs, cotangents
    if g is None:
        return [None]
    drawn = xla.exponential(outputs[0])
    return [g * gamma_sample_grad(shape, drawn) / drawn]


def _clamp_to_normal(x: Array) -> Array:
    """Clamp to the least positive normal number."""
    return np.maximum(x, np.finfo(np.float64).tiny)


def _wrap_angle(angle: Array) -> Array:
    """Wrap angles to [-pi, pi]."""
    magnitude = np.fmod(np.abs(angle) + np.pi, 2 * np.pi) - np.pi
    return np.where(angle < 0, -magnitude, magnitude)


def _compare_parameters(x: Array, first: Any, y: Array, second: Any, test: Any) -> Any:
    """Compare two parameters, by NumPy while tracing if both are known."""
    if isinstance(first, TracedArray) or isinstance(second, TracedArray):
        return test(x, y)
    return test(np.asarray(first), np.asarray(second))
