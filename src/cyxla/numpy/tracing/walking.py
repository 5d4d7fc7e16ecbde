"""``np.ndenumerate`` and ``np.broadcast`` of traced arrays: NumPy's are classes, which want values of what they get."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np

from cyxla.numpy.tracing.trace import current
from cyxla.numpy.tracing.traced_array import as_traced, is_traced


def ndenumerate(original: Callable[..., Any]) -> Callable[..., Any]:
    """What stands in for ``np.ndenumerate``: pairs of a place, in plain numbers, and the element there."""

    def substitute(arr: Any) -> Any:
        if current() is None or not is_traced(arr):
            return original(arr)
        array = as_traced(arr)
        return ((place, array[place]) for place in np.ndindex(array.shape))

    return _named(substitute, original)


def broadcast(original: Callable[..., Any]) -> Callable[..., Any]:
    """What stands in for ``np.broadcast``: it knows what sizes arrays have together, and gives no elements."""

    def substitute(*args: Any) -> Any:
        if current() is None or not any(map(is_traced, args)):
            return original(*args)
        sizes = np.broadcast_shapes(*[np.shape(a) for a in args])
        return SimpleNamespace(shape=sizes, ndim=len(sizes), nd=len(sizes), size=int(np.prod(sizes)), numiter=len(args))

    return _named(substitute, original)


def _named(substitute: Callable[..., Any], original: Callable[..., Any]) -> Callable[..., Any]:
    substitute.__name__, substitute.__doc__ = original.__name__, original.__doc__
    return substitute
