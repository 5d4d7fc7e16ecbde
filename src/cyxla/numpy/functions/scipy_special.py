"""Functions of `scipy.special` that are not ufuncs, for arrays and traced arrays."""

from __future__ import annotations

from typing import Any

import numpy as np

from cyxla.numpy.tracing.traced_array import TracedArray, as_traced

Array = Any  # a NumPy or traced array, computed on by NumPy's functions


def _numbers(x: Any) -> Array:
    """Convert to an array of floats or complex numbers."""
    array: Array = as_traced(x) if _is_traced(x) else np.asarray(x)
    return array if array.dtype.kind in "fcV" else array.astype(np.float64)


def _is_traced(x: Any) -> bool:
    if isinstance(x, (list, tuple)):
        return any(map(_is_traced, x))
    return isinstance(x, TracedArray)


def _shifted(x: Array, axis: Any) -> tuple[Array, Array]:
    """Subtract the maximum; return the differences and the maximum, 0 if it is infinite."""
    most = np.max(x, axis=axis, keepdims=True)
    most = np.where(np.isfinite(most), most, most.dtype.type(0))
    return x - most, most


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
    apart = np.exp(_shifted(_numbers(x), axis)[0])
    return apart / np.sum(apart, axis=axis, keepdims=True)


def log_softmax(x: Any, axis: int | tuple[int, ...] | None = None) -> Any:
    """Compute the logarithm of `softmax` accurately.

    Examples
    --------
    >>> log_softmax([1000.0, 0.0])
    array([    0., -1000.])
    """
    apart = _shifted(_numbers(x), axis)[0]
    return apart - np.log(np.sum(np.exp(apart), axis=axis, keepdims=True))


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
    numbers = _numbers(a)
    if b is not None:
        weights = _numbers(b)
        numbers, weights = np.broadcast_arrays(numbers, weights)
        numbers = np.where(weights == 0, numbers.dtype.type(-np.inf), numbers)
    apart, most = _shifted(numbers, axis)
    terms = np.exp(apart) if b is None else weights * np.exp(apart)
    total = np.sum(terms, axis=axis, keepdims=True)
    sign = np.sign(total)
    made = np.log(np.abs(total) if return_sign else total) + most
    if not keepdims:
        made, sign = (np.squeeze(v, axis=axis)[()] for v in (made, sign))
    return (made, sign) if return_sign else made


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

    numbers = _numbers(x)
    if n == 0:
        return special.psi(numbers)
    return (-1.0) ** (n + 1) * special.gamma(n + 1.0) * special.zeta(n + 1.0, numbers)
