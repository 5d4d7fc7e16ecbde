"""Sizes under padding, dilation and sliding windows."""

from __future__ import annotations

from cyxla.types import UNBOUNDED
from cyxla.xla.hlo.attributes import Window, WindowDim
from cyxla.xla.hlo.opcode import Site


def dilated(size: int, dilation: int) -> int:
    """Return the size with `dilation` - 1 holes between elements."""
    return 0 if size == 0 else (size - 1) * dilation + 1


def padded(size: int, low: int, high: int, dilation: int) -> int:
    """Return the size after dilation and padding; unbounded stays unbounded."""
    return UNBOUNDED if size == UNBOUNDED else dilated(size, dilation) + low + high


def window_count(size: int, window: WindowDim) -> int:
    """Return the number of window positions along a dimension of `size`."""
    room = padded(size, window.padding_low, window.padding_high, window.base_dilation)
    if room == UNBOUNDED:
        return UNBOUNDED
    reach = dilated(window.size, window.window_dilation)
    return 0 if room < reach or room < 0 else (room - reach) // window.stride + 1


def check_window(site: Site, label: str, window: Window, rank: int) -> None:
    """Require one window entry for each dimension, with size, stride and dilations of at least 1."""
    site.require(len(window) == rank, label, f"a window of {len(window)} dimensions for {rank}")
    for axis, w in enumerate(window):
        least = min(w.size, w.stride, w.window_dilation, w.base_dilation)
        site.require(
            least >= 1, label, f"size, stride and dilations of window dimension {axis} must be at least 1: {tuple(w)}"
        )
