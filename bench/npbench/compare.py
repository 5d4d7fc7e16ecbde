"""Comparison of what two versions of a kernel return and write."""

from __future__ import annotations

from typing import Any

import numpy as np

RELATIVE = {"f": {4: 1e-4, 8: 1e-9}, "c": {8: 1e-4, 16: 1e-9}}  # to the largest element, by kind and size of dtype


def difference(got: Any, expected: Any, *, tolerance: float = 0.0, dtypes: bool = True) -> str:
    """Return how a value differs from the expected one; an empty text if it does not.

    Floating-point elements may differ by rounding: by `RELATIVE` or `tolerance`, whichever is larger, of the largest
    finite element. Other elements, dtypes, shapes and kinds of containers must be equal.
    """
    if isinstance(expected, (tuple, list)):
        return _difference_of_items(got, expected, tolerance, dtypes)
    if expected is None or got is None:
        return "" if got is expected else f"{_kind(got)} instead of {_kind(expected)}"
    got, expected = np.asarray(got), np.asarray(expected)
    if got.shape != expected.shape:
        return f"shape {got.shape} instead of {expected.shape}"
    if dtypes and got.dtype != expected.dtype:
        return f"dtype {got.dtype} instead of {expected.dtype}"
    return _difference_of_elements(got, expected, tolerance)


def _difference_of_items(got: Any, expected: Any, tolerance: float, dtypes: bool) -> str:
    if not isinstance(got, type(expected)) or len(got) != len(expected):
        return f"{_kind(got)} instead of {_kind(expected)}"
    for k, (one, other) in enumerate(zip(got, expected, strict=True)):
        found = difference(one, other, tolerance=tolerance, dtypes=dtypes)
        if found:
            return f"[{k}]: {found}"
    return ""


def _difference_of_elements(got: np.ndarray, expected: np.ndarray, tolerance: float) -> str:
    limit = RELATIVE.get(expected.dtype.kind, {}).get(expected.dtype.itemsize)
    if limit is None:
        count = int(np.sum(got != expected))
        return f"{count} of {expected.size} elements differ" if count else ""
    finite = np.isfinite(expected)
    if not np.array_equal(finite, np.isfinite(got)) or not np.array_equal(
        got[~finite], expected[~finite], equal_nan=True
    ):
        return "other elements are NaN or infinite"
    error = np.max(np.abs(got - expected), where=finite, initial=0.0)
    scale = np.max(np.abs(expected), where=finite, initial=0.0)
    return f"error {error / scale if scale else error:.1e}" if error > max(limit, tolerance) * scale else ""


def _kind(value: Any) -> str:
    return f"{type(value).__name__} of {len(value)}" if isinstance(value, (tuple, list)) else type(value).__name__
