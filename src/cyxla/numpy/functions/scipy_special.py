"""Functions of `scipy.special` that are not ufuncs, for arrays and traced arrays."""

from __future__ import annotations

from typing import Any

import numpy as np

from cyxla.numpy.tracing.arrays.traced_array import TracedArray, as_traced

Array = Any  # a NumPy or traced array, computed on by NumPy's functions


def _to_inexact(x: Any) -> Array:
    """Convert to an array of floats or complex numbers."""
    array: Array = as_traced(x) if _is_traced(x) else np.asarray(x)
    return array if array.dtype.kind in "fcV" else array.astype(np.float64)


def _is_traced(x: Any) -> bool:
    if isinstance(x, (list, tuple)):
        return any(map(_is_traced, x))
    return isinstance(x, TracedArray)


def _subtract_max(x: Array, axis: Any) -> tuple[Array, Array]:
    """Subtract the maximum; return the differences and the maximum, 0 if it is infinite."""
    maximum = np.max(x, axis=axis, keepdims=True)
    maximum = np.where(np.isfinite(maximum), maximum, maximum.dtype.type(0))
    return x - maximum, maximum


def softmax(x: Any, axis: int | tuple[int, ...] | None = None) -> Any:
    """Compute exp(x) over its sum along axes.

    Parameters
    ----------
    x : array_like
        Input array.
    axis : int or tuple of int, optional
        Axes of the sum; all of them by default.

    Examples
    --------
    >>> softmax([0.0, 0.0])
    array([0.5, 0.5])
    """
    exponentials = np.exp(_subtract_max(_to_inexact(x), axis)[0])
    return exponentials / np.sum(exponentials, axis=axis, keepdims=True)


def log_softmax(x: Any, axis: int | tuple[int, ...] | None = None) -> Any:
    """Compute the logarithm of `softmax` accurately.

    Examples
    --------
    >>> log_softmax([1000.0, 0.0])
    array([    0., -1000.])
    """
    shifted = _subtract_max(_to_inexact(x), axis)[0]
    return shifted - np.log(np.sum(np.exp(shifted), axis=axis, keepdims=True))


def logsumexp(
    a: Any, axis: int | tuple[int, ...] | None = None, b: Any = None, keepdims: bool = False, return_sign: bool = False
) -> Any:
    """Compute the logarithm of a sum of exponentials.

    Parameters
    ----------
    a : array_like
        Real exponents.
    axis : int or tuple of int, optional
        Axes of the sum; all of them by default.
    b : array_like, optional
        Factor of each exponential.
    keepdims : bool
        Whether the summed axes stay with size 1.
    return_sign : bool
        Whether to return the sign of the sum, too, and the logarithm of its absolute value.

    Examples
    --------
    >>> float(logsumexp([1000.0, 1000.0])) - 1000.0 == float(np.log(2))
    False
    >>> bool(np.isclose(logsumexp([1000.0, 1000.0]), 1000 + np.log(2)))
    True
    """
    array = _to_inexact(a)
    if b is not None:
        weights = _to_inexact(b)
        array, weights = np.broadcast_arrays(array, weights)
        array = np.where(weights == 0, array.dtype.type(-np.inf), array)
    shifted, maximum = _subtract_max(array, axis)
    terms = np.exp(shifted) if b is None else weights * np.exp(shifted)
    total = np.sum(terms, axis=axis, keepdims=True)
    sign = np.sign(total)
    result = np.log(np.abs(total) if return_sign else total) + maximum
    if not keepdims:
        result, sign = (np.squeeze(v, axis=axis)[()] for v in (result, sign))
    return (result, sign) if return_sign else result


def polygamma(n: int, x: Any) -> Any:
    """Compute the n-th derivative of the digamma function.

    Parameters
    ----------
    n : int
        Order of the derivative.
    x : array_like
        Input array.
    """
    from scipy import special

    array = _to_inexact(x)
    if n == 0:
        return special.psi(array)
    return (-1.0) ** (n + 1) * special.gamma(n + 1.0) * special.zeta(n + 1.0, array)
