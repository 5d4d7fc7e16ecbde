"""Channels-last pooling: [batch, *sizes, channels] to [batch, *out, channels] and back."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from cyxla.core.framework.geometry.windows import Windows
from cyxla.core.framework.numeric_limits import lowest, wide_type

Array = np.ndarray[Any, Any]

NO_TAP = -1  # tap of the maximum of a window without elements


def max_pool(x: Array, windows: Windows) -> Array:
    """Return the maximum of each window, ignoring NaN; the lowest finite value for windows without elements."""
    least = lowest(x.dtype)
    padded = windows.padded(x, least)
    result = np.full((x.shape[0], *windows.out, x.shape[-1]), least, x.dtype)
    for _, at in windows.taps():
        window = padded[at]
        np.copyto(result, window, where=window > result)
    return result


def argmax_taps(x: Array, windows: Windows) -> Array:
    """Return the tap of each window's maximum, the first of equals, as s64[batch, *out, channels].

    If the first element of a window is NaN, it is the maximum, since no comparison with NaN is true.
    """
    padded, inside = windows.padded(x), _inside_mask(windows)
    tap = np.full((x.shape[0], *windows.out, x.shape[-1]), NO_TAP, np.int64)
    best = np.zeros(tap.shape, x.dtype)
    for k, (_, at) in enumerate(windows.taps()):
        window = padded[at]
        better = ((tap == NO_TAP) | (window > best)) & inside[at]
        np.copyto(best, window, where=better)
        tap[better] = k
    return tap


def scatter_to_taps(values: Array, tap: Array, windows: Windows) -> Array:
    """Add each window's value to the element at its tap; the result is [batch, *sizes, channels]."""
    wide = wide_type(values.dtype)
    result = np.zeros((values.shape[0], *windows.padded_sizes, values.shape[-1]), wide)
    for k, (_, at) in enumerate(windows.taps()):
        result[at] += np.where(tap == k, values, 0).astype(wide, copy=False)
    return windows.cropped(result).astype(values.dtype, copy=False)


def gather_from_taps(x: Array, tap: Array, windows: Windows) -> Array:
    """Return the element at each window's tap, [batch, *out, channels]."""
    padded = windows.padded(x)
    result = np.zeros(tap.shape, x.dtype)
    for k, (_, at) in enumerate(windows.taps()):
        np.copyto(result, padded[at], where=tap == k)
    return result


def flat_indices(tap: Array, windows: Windows) -> Array:
    """Return taps as flat row-major indices into [*sizes, channels]."""
    inside = np.arange(prod(windows.sizes), dtype=np.int64).reshape(1, *windows.sizes, 1)
    numbers = gather_from_taps(np.broadcast_to(inside, (tap.shape[0], *windows.sizes, tap.shape[-1])), tap, windows)
    return numbers * tap.shape[-1] + np.arange(tap.shape[-1])


def mean(x: Array, windows: Windows) -> Array:
    """Return the mean of each window's elements, excluding padding."""
    wide = wide_type(x.dtype)
    padded = windows.padded(x).astype(wide, copy=False)
    result = np.zeros((x.shape[0], *windows.out, x.shape[-1]), wide)
    for _, at in windows.taps():
        result += padded[at]
    return (result / _counts(windows).astype(wide)).astype(x.dtype, copy=False)


def gradient_of_mean(grad: Array, windows: Windows) -> Array:
    """Spread each window's gradient over its elements."""
    wide = wide_type(grad.dtype)
    result = np.zeros((grad.shape[0], *windows.padded_sizes, grad.shape[-1]), wide)
    share = grad.astype(wide, copy=False) / _counts(windows).astype(wide)
    for _, at in windows.taps():
        result[at] += share
    return windows.cropped(result).astype(grad.dtype, copy=False)


def _inside_mask(windows: Windows) -> Array:
    return windows.padded(np.ones((1, *windows.sizes, 1), bool), False)


def _counts(windows: Windows) -> Array:
    inside = _inside_mask(windows)
    count = np.zeros((1, *windows.out, 1), np.int64)
    for _, at in windows.taps():
        count += inside[at]
    return count
