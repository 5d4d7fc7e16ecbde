"""Polynomials by their coefficients, highest power first."""

from __future__ import annotations

from typing import Any

import numpy as np

from cyxla.errors import ShapeError, TraceError
from cyxla.numpy.tracing import trace as _trace
from cyxla.numpy.tracing.arrays.deferred_array import DeferredArray
from cyxla.numpy.tracing.arrays.traced_array import as_strong, as_traced, cast, value_of
from cyxla.numpy.tracing.registry import ALTERNATIVES, implements
from cyxla.numpy.ufunc_methods.reduce import known_values
from cyxla.numpy.ufuncs.integer_loops import any_of
from cyxla.types import ElementType
from cyxla.xla.hlo.builder import functions as xla

Array = Any  # a traced array, computed on by NumPy's functions
ALTERNATIVES.update({
    "polydiv": "the length of the remainder depends on values: call it outside of the traced function",
})  # fmt: skip


@implements(np.polyval)
def polyval(p: Any, x: Any) -> Any:
    """Evaluate a polynomial by Horner's method."""
    terms = p if isinstance(p, np.ndarray) else as_strong(p)
    points = as_strong(x)
    result: Array = np.zeros_like(points)
    for k in range(len(terms)):
        result = result * points + terms[k]
    return result


@implements(np.polyadd)
def polyadd(a1: Any, a2: Any) -> Any:
    """Add two polynomials."""
    return _apply_padded(np.add, a1, a2)


@implements(np.polysub)
def polysub(a1: Any, a2: Any) -> Any:
    """Subtract two polynomials."""
    return _apply_padded(np.subtract, a1, a2)


def _apply_padded(function: np.ufunc, a1: Any, a2: Any) -> Any:
    x, y = np.atleast_1d(as_strong(a1)), np.atleast_1d(as_strong(a2))
    count = max(len(x), len(y))
    return function(*(_pad_front(v, count) for v in (x, y)))


def _pad_front(terms: Array, count: int) -> Array:
    return np.pad(terms, (count - len(terms), 0)) if len(terms) < count else terms


@implements(np.polymul, note="the first coefficients of traced polynomials must not be zero")
def polymul(a1: Any, a2: Any) -> Any:
    """Multiply two polynomials."""
    return np.convolve(*(_drop_leading_zeros(a, "polymul") for a in (a1, a2)))


def _drop_leading_zeros(polynomial: Any, name: str) -> Array:
    """Drop leading zeros; runs check traced coefficients for them."""
    terms: Array = np.atleast_1d(as_strong(polynomial))
    if terms.ndim > 1:
        raise ValueError("Polynomial must be 1d only.")
    known = known_values(polynomial)
    if known is not None:
        nonzero = np.flatnonzero(known)
        terms = terms[nonzero[0] :] if nonzero.size else terms[:0]
    elif len(terms) > 1:
        _fail_if_zero(terms[:1], f"{name} of traced polynomials: the first coefficients must not be zero")
    return terms if len(terms) else np.zeros_like(terms, shape=1)


@implements(np.polyder)
def polyder(p: Any, m: int = 1) -> Any:
    """Differentiate a polynomial m times."""
    if int(m) < 0:
        raise ValueError("Order of derivative must be positive (see polyint)")
    terms = as_strong(p)
    for _ in range(int(m)):
        terms = terms[:-1] * np.arange(len(terms) - 1, 0, -1)
    return terms


@implements(np.polyint)
def polyint(p: Any, m: int = 1, k: Any = None) -> Any:
    """Integrate a polynomial m times with constants."""
    count = int(m)
    if count < 0:
        raise ValueError("Order of integral must be positive (see polyder)")
    constants: Array = np.atleast_1d(as_strong(np.zeros(count) if k is None else k))
    if len(constants) == 1 and count > 1:
        constants = constants[0] * np.ones(count)
    if len(constants) < count:
        raise ValueError("k must be a scalar or a rank-1 array of length 1 or >m.")
    terms = as_strong(p)
    for n in range(count):
        terms = np.concatenate([terms / np.arange(len(terms), 0, -1), constants[n : n + 1]])
    return terms


@implements(np.polyfit)
def polyfit(
    x: Any, y: Any, deg: int, rcond: Any = None, full: bool = False, w: Any = None, cov: bool | str = False
) -> Any:
    """Fit a polynomial by least squares."""
    points, values = as_strong(x) + 0.0, as_strong(y) + 0.0
    weights = None if w is None else as_strong(w) + 0.0
    order = int(deg) + 1
    _check_points(points, values, weights, deg)
    limit = len(points) * np.finfo(points.dtype).eps if rcond is None else rcond
    lhs, rhs = np.vander(points, order), values
    if weights is not None:
        lhs = lhs * weights[:, None]
        rhs = rhs * (weights[:, None] if rhs.ndim == 2 else weights)
    scale = np.sqrt(np.sum(lhs * lhs, axis=0))
    lhs = lhs / scale
    coefficients, residuals, rank, singular_values = np.linalg.lstsq(lhs, rhs, float(limit))
    coefficients = np.transpose(np.transpose(coefficients) / scale)
    if full:
        return coefficients, residuals, rank, singular_values, limit
    if not cov:
        return coefficients
    covariance = np.linalg.inv(np.dot(np.transpose(lhs), lhs)) / np.outer(scale, scale)
    if cov != "unscaled":
        if len(points) <= order:
            raise ValueError("the number of data points must exceed order to scale the covariance matrix")
        factor = residuals / (len(points) - order)
        covariance = covariance[:, :, None] * factor if values.ndim == 2 else covariance * factor
    elif values.ndim == 2:
        covariance = covariance[:, :, None] * 1
    return coefficients, covariance


def _check_points(x: Array, y: Array, w: Array | None, deg: int) -> None:
    if deg < 0:
        raise ValueError("expected deg >= 0")
    if x.ndim != 1:
        raise TypeError("expected 1D vector for x")
    if x.size == 0:
        raise TypeError("expected non-empty vector for x")
    if not 1 <= y.ndim <= 2:
        raise TypeError("expected 1D or 2D array for y")
    if x.shape[0] != y.shape[0]:
        raise TypeError("expected x and y to have same length")
    if w is not None and w.ndim != 1:
        raise TypeError("expected a 1-d array for weights")
    if w is not None and w.shape[0] != y.shape[0]:
        raise TypeError("expected w and y to have the same length")


@implements(np.poly, note="of complex zeros or of a matrix gives a result that can only be returned")
def poly(seq_of_zeros: Any) -> Any:
    """Return the polynomial with these zeros."""
    zeros: Array = np.atleast_1d(as_strong(seq_of_zeros))
    if zeros.ndim == 2 and zeros.shape[0] == zeros.shape[1] != 0:
        return DeferredArray(np.poly, (zeros,), {}, unknown=["dtype"])
    if zeros.ndim != 1:
        raise ShapeError("input must be 1d or non-empty square 2d array.")
    if len(zeros) == 0:
        return 1.0
    if zeros.dtype.kind == "c":  # the polynomial is real if the zeros are conjugate pairs
        return DeferredArray(np.poly, (zeros,), {}, unknown=["dtype"])
    dtype = zeros.dtype if zeros.dtype in (np.float32, np.float64) else np.dtype(np.float64)
    zeros = cast(zeros, dtype)
    result: Array = cast(as_traced([1.0]), dtype)
    for k in range(len(zeros)):
        result = np.pad(result, (0, 1)) - np.pad(result * zeros[k], (1, 0))
    return result


@implements(np.roots, note="the first and the last coefficient must not be zero; a result as of `linalg.eigvals`")
def roots(p: Any) -> Any:
    """Return the zeros of a polynomial as eigenvalues of its companion matrix."""
    terms: Array = np.atleast_1d(as_strong(p))
    if terms.ndim != 1:
        raise ShapeError("Input must be a rank-1 array.")
    if terms.dtype.kind not in "fc":
        terms = cast(terms, np.float64)
    if len(terms) < 2:
        return np.zeros(0)
    ends = np.concatenate([terms[:1], terms[-1:]])
    _fail_if_zero(ends, "roots of a traced polynomial: the first and last coefficients must not be zero")
    count = len(terms)
    first = np.reshape(-terms[1:] / terms[0], (1, -1))
    subdiagonal: Array = np.eye(count - 2, count - 1, dtype=terms.dtype)
    return np.linalg.eigvals(np.concatenate([first, subdiagonal]))


def _fail_if_zero(terms: Array, message: str) -> None:
    """Make runs raise an error if a term is zero: NumPy would return fewer coefficients."""
    op = any_of(value_of(np.equal(terms, 0)))
    zero = xla.constant(op.builder, 0, ElementType.S64)
    _trace.require_current().fail_if(op, zero, lambda _: TraceError(message))
