"""Comparison of the results of two platforms."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from cyxla.types import from_numpy

ULPS = 256  # of the largest element: the tolerance for sums and whole programs


class Difference(NamedTuple):
    """The difference of two arrays: a reason if they differ, and the largest error relative to the largest element."""

    problem: str
    relative: float


def flatten(value: Any) -> list[Any]:
    """Return the arrays of a nested tuple, in order."""
    return [leaf for part in value for leaf in flatten(part)] if isinstance(value, tuple) else [value]


def difference(actual: Any, expected: Any) -> Difference:
    """Compare two arrays: integers exactly, floats relative to the largest expected element."""
    if not isinstance(expected, np.ndarray):
        return Difference("", 0.0)
    if actual.shape != expected.shape or actual.dtype != expected.dtype:
        return Difference(
            f"{actual.dtype}{list(actual.shape)} instead of {expected.dtype}{list(expected.shape)}", np.inf
        )
    dtype = from_numpy(expected.dtype)
    if dtype.is_integer or not (dtype.is_float or dtype.is_complex):
        wrong = int((actual != expected).sum())
        return Difference(f"{wrong} of {expected.size} elements" if wrong else "", float(bool(wrong)))
    return _float_difference(actual, expected)


def _float_difference(actual: Any, expected: Any) -> Difference:
    wide = np.complex128 if expected.dtype.kind == "c" else np.float64
    epsilon = _epsilon(expected.dtype)
    a, b = actual.astype(wide), expected.astype(wide)
    same = (a == b) | (np.isnan(a) & np.isnan(b))
    finite = np.isfinite(a) & np.isfinite(b)
    if not (same | finite).all():
        return Difference(f"{int((~(same | finite)).sum())} infinities or NaNs", np.inf)
    if same.all():
        return Difference("", 0.0)
    scale = max(float(np.abs(b[finite]).max()), float(np.finfo(np.float32).tiny))
    relative = float(np.abs(a - b)[finite & ~same].max()) / scale
    return Difference(f"off by {relative:.3g} of the scale {scale:.3g}" if relative > ULPS * epsilon else "", relative)


def _epsilon(dtype: np.dtype[Any]) -> float:
    import ml_dtypes

    real = np.dtype(f"f{dtype.itemsize // 2}") if dtype.kind == "c" else dtype
    return float(ml_dtypes.finfo(real).eps)  # type: ignore[no-untyped-call]
