"""Central differences to check derivatives against."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np


def slope(function: Callable[..., Any], x: Any, step: float = 1e-6) -> np.ndarray:
    """Return the gradient of a real function of one array; for complex ``x + iy``, ``df/dx - i df/dy``."""
    x = np.asarray(x)
    found = np.zeros(x.shape, np.result_type(x.dtype, np.float64))
    for place in np.ndindex(x.shape):
        found[place] = _difference(function, x, place, step)
        if x.dtype.kind == "c":
            found[place] -= 1j * _difference(function, x, place, 1j * step)
    return found


def _difference(function: Callable[..., Any], x: np.ndarray, place: tuple[int, ...], step: complex) -> Any:
    above, below = x.copy(), x.copy()
    above[place] += step
    below[place] -= step
    return (np.real(function(above)) - np.real(function(below))) / (2 * abs(step))
