"""Views of the sliding windows of an array."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from cyxla.errors import UnimplementedError
from cyxla.memory import require
from cyxla.types import Shape, from_numpy
from cyxla.xla.evaluator.values import Array
from cyxla.xla.hlo.attributes import Window, WindowDim
from cyxla.xla.hlo.limits import MAX_RANK, check_empty


def dilated(size: int, dilation: int) -> int:
    """Return the extent of `size` elements at distance `dilation`."""
    return (size - 1) * dilation + 1 if size > 0 else 0


def window_count(size: int, w: WindowDim) -> int:
    """Return the number of positions of a window along a dimension of `size` elements."""
    room = dilated(size, w.base_dilation) + w.padding_low + w.padding_high - dilated(w.size, w.window_dilation)
    return max(room // w.stride + 1, 0) if room >= 0 else 0


def pad_window(x: Array, window: Window, fill: Any) -> Array:
    """Return an array with base dilation and padding filled in, and negative padding removed.

    Raises
    ------
    ShapeError
        The array has more than 2^63 - 1 bytes.
    ResourceExhaustedError
        The array is larger than the free memory, or without elements and with sizes that NumPy refuses.
    """
    sizes, source, target = [], [], []
    for n, w in zip(x.shape, window, strict=True):
        low, step = w.padding_low, w.base_dilation
        size = max(dilated(n, step) + low + w.padding_high, 0)
        first = max(-(low // step), 0) if low < 0 else 0  # the first element that is not removed: i * step + low >= 0
        last = min(n, max((size - 1 - low) // step + 1, first)) if size else first
        sizes.append(size)
        source.append(slice(first, last))
        start = first * step + low
        target.append(slice(start, start + dilated(last - first, step), step) if last > first else slice(0, 0))
    shape = Shape.array(from_numpy(x.dtype), sizes)
    check_empty(shape)
    require(shape.nbytes)
    out = np.full(sizes, fill, x.dtype)
    out[tuple(target)] = x[tuple(source)]
    return out


def is_unpadded(window: Window) -> bool:
    """Return True if `pad_window` has no effect."""
    return all(w.base_dilation == 1 and w.padding_low == 0 and w.padding_high == 0 for w in window)


def patches(x: Array, window: Window, positions: Sequence[int]) -> Array:
    """Return a view ``[positions.., window..]`` of an array that `pad_window` returned."""
    strides = [s * w.stride for s, w in zip(x.strides, window, strict=True)]
    inner = [s * w.window_dilation for s, w in zip(x.strides, window, strict=True)]
    shape = (*positions, *(w.size for w in window))
    if len(shape) > MAX_RANK:
        raise UnimplementedError(f"windows over {x.ndim} dimensions", hint=f"{MAX_RANK // 2} is the limit")
    if 0 in shape:
        return np.empty(shape, x.dtype)
    bits = x.view(np.uint8) if x.dtype.itemsize == 1 else x  # NumPy would look for its own 8-bit floats
    return np.lib.stride_tricks.as_strided(bits, shape, (*strides, *inner), writeable=False).view(x.dtype)
