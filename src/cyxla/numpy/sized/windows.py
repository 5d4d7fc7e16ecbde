"""Windows, frequencies and indices of triangles whose number is a traced size."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from cyxla.numpy.sized.creation import CREATION, arange, bounded_size
from cyxla.numpy.tracing.arrays.traced_array import is_traced

_np: Any = np  # its functions dispatch to this package


# -- windows: at their points from 1 - M to M - 1 in steps of 2, divided by M - 1


def _hanning(x: Any) -> Any:
    return 0.5 + 0.5 * _np.cos(np.pi * x)


def _hamming(x: Any) -> Any:
    return 0.54 + 0.46 * _np.cos(np.pi * x)


def _blackman(x: Any) -> Any:
    return 0.42 + 0.5 * _np.cos(np.pi * x) + 0.08 * _np.cos(2.0 * np.pi * x)


def _bartlett(x: Any) -> Any:
    return 1 - _np.abs(x)


def _window(values: Callable[[Any], Any]) -> Callable[..., Any]:
    """Return the function of a number of points; the window of one point is 1."""

    def window(M: Any) -> Any:  # noqa: N803 - NumPy's name
        count, last = _points_of(M)
        points = values((2 * arange(count) - last) / _np.maximum(last, 1))
        return _np.where(_np.equal(count, 1), 1.0, points)

    return window


def _points_of(number: Any) -> tuple[Any, Any]:
    """Return the number of points of a window, and the index of the last one."""
    count: Any = bounded_size(_np.maximum(number, 0))
    return count, count - 1


def _kaiser(M: Any, beta: Any) -> Any:  # noqa: N803 - NumPy's name
    count, last = _points_of(M)
    half: Any = _np.maximum(last, 1) / 2.0
    points: Any = _np.i0(beta * _np.sqrt(_np.maximum(1 - ((arange(count) - half) / half) ** 2.0, 0.0))) / _np.i0(beta)
    return _np.where(_np.equal(count, 1), 1.0, points)


# -- frequencies


def _fftfreq(n: Any, d: Any = 1.0, device: Any = None) -> Any:
    count: Any = bounded_size(n)
    k = arange(count)
    return (k - _np.where(k >= (count + 1) // 2, count, 0)) * (1.0 / (count * d))


def _rfftfreq(n: Any, d: Any = 1.0, device: Any = None) -> Any:
    count: Any = bounded_size(n)
    return arange(count // 2 + 1) * (1.0 / (count * d))


# -- indices


def _lower_indices(n: Any, k: Any = 0, m: Any = None) -> Any:
    return _np.nonzero(CREATION["tri"](n, m, k, bool))


def _upper_indices(n: Any, k: Any = 0, m: Any = None) -> Any:
    return _np.nonzero(_np.logical_not(CREATION["tri"](n, m, k - 1, bool)))


def _diagonal_indices(n: Any, ndim: int = 2) -> Any:
    return (arange(bounded_size(n)),) * ndim


# -- spaced evenly on a logarithmic scale


def _logspace(
    start: Any, stop: Any, num: Any = 50, endpoint: bool = True, base: Any = 10.0, dtype: Any = None, axis: int = 0
) -> Any:
    powers = _np.power(base, CREATION["linspace"](start, stop, num, endpoint))
    return powers if dtype is None else powers.astype(dtype)


def _geomspace(start: Any, stop: Any, num: Any = 50, endpoint: bool = True, dtype: Any = None, axis: int = 0) -> Any:
    """Return a traced number of numbers of which each is the same multiple of the one before."""
    for value in (start, stop):
        if not is_traced(value) and np.any(np.equal(value, 0)):
            raise ValueError("Geometric sequence cannot include zero")
    count: Any = bounded_size(num)
    first, last = (_np.multiply(v, 1.0) for v in (start, stop))
    sign = _np.sign(first)
    numbers = sign * _logspace(_np.log10(first / sign), _np.log10(last / sign), count, endpoint)
    k = arange(count)
    numbers = _np.where(k == 0, first, numbers)
    numbers = _np.where(_np.logical_and(k == count - 1, k > 0), last, numbers) if endpoint else numbers
    return numbers if dtype is None else numbers.astype(dtype)


#: Functions that make arrays from traced sizes, by NumPy's function.
FUNCTIONS: dict[str, Callable[..., Any]] = {
    **CREATION,
    "hanning": _window(_hanning), "hamming": _window(_hamming), "blackman": _window(_blackman),
    "bartlett": _window(_bartlett), "kaiser": _kaiser, "fftfreq": _fftfreq, "rfftfreq": _rfftfreq,
    "tril_indices": _lower_indices, "triu_indices": _upper_indices, "diag_indices": _diagonal_indices,
    "logspace": _logspace, "geomspace": _geomspace,
}  # fmt: skip
