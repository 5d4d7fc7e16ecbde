"""Fit the polynomials of ``include/cyxla/math*.h`` and print them as C literals.

Development-time only: needs ``mpmath`` and ``numpy``, which the product does not. Every polynomial of the headers is a
row of ``FITS``; the row names the smooth part that the polynomial replaces and the weight that turns its error into the
relative error of the finished function. ``--check FILE`` reports coefficients that a header does not contain.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import mpmath as mp  # type: ignore[import-not-found]
import numpy as np

mp.mp.dps = 60
Real = Callable[[mp.mpf], mp.mpf]


@dataclass(frozen=True)
class Fit:
    """One polynomial: ``target`` on ``[lo, hi]`` in ``terms`` coefficients, lowest power first."""

    name: str
    target: Real
    weight: Real
    lo: float
    hi: float
    terms: int
    single: bool = False


def _odd(function: Real) -> tuple[Real, Real]:
    """Return target and weight for ``f(r) = r + r * t * P(t)`` with ``t = r * r``."""

    def target(t: mp.mpf) -> mp.mpf:
        root = mp.sqrt(t)
        return (function(root) / root - 1) / t

    def weight(t: mp.mpf) -> mp.mpf:
        root = mp.sqrt(t)
        return root * t / function(root)

    return target, weight


def _scaled_odd(function: Real) -> tuple[Real, Real]:
    """Return target and weight for ``f(r) = r + r * P(t)`` with ``t = r * r``."""
    return (
        lambda t: function(mp.sqrt(t)) / mp.sqrt(t) - 1,
        lambda t: mp.sqrt(t) / function(mp.sqrt(t)),
    )


EXP = (lambda r: (mp.expm1(r) - r) / r**2, lambda r: r**2 / abs(mp.expm1(r)))
LOG = (lambda f: (mp.log1p(f) - f + f * f / 2) / f**3, lambda f: abs(f**3 / mp.log1p(f)))
# log(1 + f) = 2 s + s^3 P(s^2) with s = f / (2 + f): an odd function of s.
ATANH2 = (
    lambda z: (2 * mp.atanh(mp.sqrt(z)) / mp.sqrt(z) - 2) / z,
    lambda z: mp.sqrt(z) * z / (2 * mp.atanh(mp.sqrt(z))),
)
# The next two terms split off: what a double-double logarithm leaves to plain arithmetic.
ATANH2_TAIL = (
    lambda z: ((2 * mp.atanh(mp.sqrt(z)) / mp.sqrt(z) - 2) / z - mp.mpf(2) / 3) / z,
    lambda z: mp.sqrt(z) * z**2 / (2 * mp.atanh(mp.sqrt(z))),
)
LOG2 = (lambda z: 2 * mp.atanh(mp.sqrt(z)) / mp.sqrt(z) / mp.log(2), lambda z: mp.sqrt(z) / mp.atanh(mp.sqrt(z)) / 2)
EXP2 = (lambda r: (2**r - 1) / r, lambda r: abs(r) / 2**r)
COS = (lambda t: (mp.cos(mp.sqrt(t)) - 1 + t / 2) / t**2, lambda t: t**2 / mp.cos(mp.sqrt(t)))
ERF_TAIL = (lambda t: -mp.log(mp.erfc(t)), lambda t: mp.erfc(t) / mp.erf(t))
# erfc = P^8: as many coefficients as the odd part below takes, so that one evaluation with chosen ones does both.
ERFC_ROOT = (lambda t: mp.root(mp.erfc(t), 8), lambda t: 8 * mp.root(mp.erfc(t), 8) ** 7 / mp.erf(t))

HALF_LN2 = 0.3467
QUARTER_PI2 = 0.6170

FITS = (
    Fit("exp_f32", *EXP, -HALF_LN2, HALF_LN2, 5, single=True),
    Fit("log_f32", *LOG, -1 / 3, 1 / 3, 8, single=True),
    Fit("sin_f32", *_odd(mp.sin), 1e-6, QUARTER_PI2, 3, single=True),
    Fit("cos_f32", *COS, 1e-6, QUARTER_PI2, 3, single=True),
    Fit("tan_f32", *_odd(mp.tan), 1e-6, QUARTER_PI2, 7, single=True),
    Fit("tanh_f32", *_odd(mp.tanh), 1e-6, 0.3136, 5, single=True),
    Fit("sinh_f32", *_odd(mp.sinh), 1e-6, 1.0, 4, single=True),
    Fit("erf_f32", *_scaled_odd(mp.erf), 1e-6, 1.21, 7, single=True),
    Fit("erfc_root_f32", *ERFC_ROOT, 1.1, 4.0, 7, single=True),
    Fit("atan_f32", *_odd(mp.atan), 1e-6, 0.1717, 5, single=True),
    Fit("asin_f32", *_odd(mp.asin), 1e-6, 0.25, 5, single=True),
    Fit("exp_f64", *EXP, -HALF_LN2, HALF_LN2, 10),
    Fit("log_f64", *ATANH2, 1e-9, 0.02945, 7),
    Fit("log_tail_f64", *ATANH2_TAIL, 1e-9, 0.02945, 8),
    Fit("sin_f64", *_odd(mp.sin), 1e-9, QUARTER_PI2, 6),
    Fit("cos_f64", *COS, 1e-9, QUARTER_PI2, 6),
    Fit("tan_f64", *_odd(mp.tan), 1e-9, QUARTER_PI2, 14),
    Fit("tanh_f64", *_odd(mp.tanh), 1e-9, 0.3136, 10),
    Fit("sinh_f64", *_odd(mp.sinh), 1e-9, 1.0, 8),
    Fit("erf_f64", *_scaled_odd(mp.erf), 1e-9, 1.0, 13),
    Fit("erf_tail_f64", *ERF_TAIL, 1.0, 6.0, 20),
    Fit("atan_f64", *_odd(mp.atan), 1e-9, 0.1717, 11),
    Fit("asin_f64", *_odd(mp.asin), 1e-9, 0.25, 12),
    # Both serve the f32 power, which works in double.
    Fit("log2_f32", *LOG2, 1e-9, 0.02945, 5),
    Fit("exp2_f32", *EXP2, -0.5, 0.5, 6),
)


def chebyshev_grid(lo: float, hi: float, count: int) -> list[mp.mpf]:
    """Return ``count`` points of ``[lo, hi]``, dense at both ends, ascending."""
    middle, half = (mp.mpf(lo) + hi) / 2, (mp.mpf(hi) - lo) / 2
    return [middle - half * mp.cos(mp.pi * (i + mp.mpf("0.5")) / count) for i in range(count)]


def fit_lawson(fit: Fit) -> tuple[list[float], float]:
    """Fit by iterated re-weighting, rounding one coefficient to float after the other and refitting the rest."""
    grid = chebyshev_grid(fit.lo, fit.hi, 400)
    points = np.array([float(x) for x in grid])
    rest = np.array([float(fit.target(x)) for x in grid])
    weight = np.array([float(fit.weight(x)) for x in grid])
    powers = np.vander(points, fit.terms, increasing=True)
    done: list[float] = []
    for first in range(fit.terms):
        basis = powers[:, first:] * weight[:, None]
        scale = np.linalg.norm(basis, axis=0)
        share = np.full(len(points), 1 / len(points))
        for _ in range(60):
            root = np.sqrt(share)
            solution = np.linalg.lstsq(basis / scale * root[:, None], rest * weight * root, rcond=None)[0] / scale
            error = np.abs(basis @ solution - rest * weight)
            share = share * error
            share /= share.sum()
        done.append(float(np.float32(solution[0])))
        rest = rest - done[-1] * powers[:, first]
    return done, float(np.max(np.abs(rest * weight)))


def fit_remez(fit: Fit) -> tuple[list[float], float]:
    """Fit by exchange in high precision; coefficients are rounded to double at the end only."""
    grid = chebyshev_grid(fit.lo, fit.hi, 24 * (fit.terms + 2))
    target, weight = [fit.target(x) for x in grid], [fit.weight(x) for x in grid]
    count = fit.terms + 1
    chosen = [int((i + 0.5) * len(grid) / count) for i in range(count)]
    for _ in range(12):
        rows = [
            [weight[j] * grid[j] ** k for k in range(fit.terms)] + [mp.mpf((-1) ** i)] for i, j in enumerate(chosen)
        ]
        solution = mp.lu_solve(mp.matrix(rows), mp.matrix([weight[j] * target[j] for j in chosen]))
        coefficients = [solution[k] for k in range(fit.terms)]
        error = [w * (mp.polyval(coefficients[::-1], x) - t) for x, t, w in zip(grid, target, weight, strict=True)]
        following = _alternation(error, count)
        if following == chosen:
            break
        chosen = following
    rounded = [float(c) for c in coefficients]
    worst = max(abs(w * (mp.polyval(rounded[::-1], x) - t)) for x, t, w in zip(grid, target, weight, strict=True))
    return rounded, float(worst)


def _alternation(error: list[mp.mpf], count: int) -> list[int]:
    """Return ``count`` neighbouring extrema of alternating sign that hold the largest errors."""
    extrema: list[int] = []
    for i, value in enumerate(error):
        if extrema and (error[extrema[-1]] > 0) == (value > 0):
            if abs(value) > abs(error[extrema[-1]]):
                extrema[-1] = i
        else:
            extrema.append(i)
    while len(extrema) > count:
        extrema.pop(0 if abs(error[extrema[0]]) < abs(error[extrema[-1]]) else -1)
    missing = count - len(extrema)
    return sorted(set(extrema) | set(range(len(error) - missing, len(error)))) if missing else extrema


def literal(value: float, single: bool) -> str:
    """Return ``value`` as a shortest hexadecimal C literal."""
    mantissa, exponent = value.hex().split("p")
    digits = mantissa.rstrip("0") if "." in mantissa else mantissa
    return f"{digits.rstrip('.')}p{exponent}{'f' if single else ''}"


def main(argv: list[str] | None = None) -> int:
    """Print every fit whose name holds one of the given words, or check a header for all of them."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--check", type=Path, nargs="+", metavar="FILE")
    options = parser.parse_args(argv)
    text = "".join(path.read_text() for path in options.check or ())
    missing = 0
    for fit in FITS:
        if options.names and not any(name in fit.name for name in options.names):
            continue
        coefficients, worst = fit_lawson(fit) if fit.single else fit_remez(fit)
        literals = [literal(c, fit.single) for c in coefficients]
        if options.check is None:
            print(f"{fit.name}: 2^{float(mp.log(worst, 2)):.1f}\n  " + ", ".join(literals), flush=True)
            continue
        lost = [c for c in literals if c not in text]
        missing += len(lost)
        if lost:
            print(f"{fit.name}: not in the headers: {', '.join(lost)}")
    return 1 if missing else 0


if __name__ == "__main__":
    sys.exit(main())
