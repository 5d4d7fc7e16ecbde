"""Polynomials that fit a run-time number of points."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from cyxla.numpy.sized.frames import fail_unless, padded_of, shape_of
from cyxla.numpy.sized.linear_algebra.equations import flag_of
from cyxla.numpy.sized.linear_algebra.padding import unify
from cyxla.numpy.sized.reductions import fail_if_empty
from cyxla.numpy.sized.table import sized
from cyxla.numpy.tracing.arrays.sized_array import SizedArray, is_sized, raise_unsupported
from cyxla.numpy.tracing.arrays.traced_array import as_strong, as_traced, is_traced

_np: Any = np  # its functions dispatch to this package


@sized(np.polyfit)
def polyfit(func: Callable[..., Any], arguments: dict[str, Any]) -> Any:
    """Fit a polynomial to a run-time number of points by least squares."""
    x, y, rcond = _as_points(arguments["x"]), _as_points(arguments["y"]), arguments.get("rcond")
    order = _order(arguments["deg"])
    _check_points(x, y)
    x, y = unify(x, 0, y, 0, "expected x and y to have same length", TypeError)
    lhs, rhs = _weighted(_powers(x, order), y, arguments.get("w"))
    scale = _np.sqrt(_np.sum(lhs * lhs, axis=0))
    lhs = lhs / scale
    count = shape_of(x)[0]
    limit = count * np.finfo(x.dtype).eps if rcond is None else rcond
    coefficients, residuals, rank, values = _np.linalg.lstsq(lhs, rhs, limit)
    coefficients = _np.transpose(_np.transpose(coefficients) / scale)
    if flag_of(arguments, "full"):
        return coefficients, residuals, rank, values, limit
    cov = arguments.get("cov", False)
    if not cov:
        return coefficients
    covariance = _np.linalg.inv(_np.dot(_np.transpose(lhs), lhs)) / _np.outer(scale, scale)
    factor: Any = 1
    if cov != "unscaled":
        message = "the number of data points must exceed order to scale the covariance matrix"
        fail_unless(_np.greater(count, order), as_traced(count), as_traced(order), message, ValueError)
        factor = residuals / (count - order)
    return coefficients, (covariance if y.ndim == 1 else covariance[:, :, None]) * factor


def _order(degree: Any) -> int:
    if is_traced(degree) or is_sized(degree):
        raise_unsupported("be fitted with a degree that is traced", "give the degree as a number")
    if degree < 0:
        raise ValueError("expected deg >= 0")
    return int(degree) + 1


def _check_points(x: Any, y: Any) -> None:
    if x.ndim != 1:
        raise TypeError("expected 1D vector for x")
    if not padded_of(x).shape[0]:
        raise TypeError("expected non-empty vector for x")
    if isinstance(x, SizedArray):
        fail_if_empty(x, "expected non-empty vector for x", kind=TypeError)
    if not 1 <= y.ndim <= 2:
        raise TypeError("expected 1D or 2D array for y")


def _weighted(lhs: Any, rhs: Any, weights: Any) -> tuple[Any, Any]:
    """Return both sides of equations multiplied by weights, if there are any."""
    if weights is None:
        return lhs, rhs
    w = _as_points(weights)
    if w.ndim != 1:
        raise TypeError("expected a 1-d array for weights")
    w, _ = unify(w, 0, rhs, 0, "expected w and y to have the same length", TypeError)
    return lhs * w[:, None], (rhs * (w[:, None] if rhs.ndim == 2 else w)).astype(rhs.dtype)


def _as_points(value: Any) -> Any:
    return _np.add(value if isinstance(value, SizedArray) else as_strong(value), 0.0)


def _powers(x: Any, count: int) -> Any:
    """Return the powers of numbers, from the greatest one to the first, as columns."""
    x = x.astype(np.promote_types(x.dtype, np.int64))
    columns = [_np.ones_like(x), *[x] * min(count - 1, 1)]
    for _ in range(count - 2):
        columns.append(columns[-1] * x)
    return _np.stack(columns[::-1], axis=1)
