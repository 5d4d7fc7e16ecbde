"""Functions of `functools.lru_cache`, which keep results for the user's whole program.

They run with NumPy while a function is traced, so that no traced value stays behind in them; their results, which they
give in later calls too, are values from outside.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from cyxla.errors import TraceError
from cyxla.numpy.state.scope import outside_values
from cyxla.numpy.tracing.trace import suspended, user_line


def is_memoised(function: Any) -> bool:
    """Return True for a function of `functools.lru_cache`, also as a method."""
    return isinstance(getattr(function, "__func__", function), functools._lru_cache_wrapper)


def memoised(function: Any) -> Callable[..., Any]:
    """Return the function to call in the place of one of `functools.lru_cache`."""
    name = function.__name__

    def called(*args: Any, **kwargs: Any) -> Any:
        outside = outside_values()
        if outside is None:
            return function(*args, **kwargs)
        if outside.has_changes():
            raise TraceError(
                f"{name}, which keeps its results, is called after values from outside have changed", where=user_line(),
                hint="call it before them",
            )  # fmt: skip
        for value in (*args, *kwargs.values()):
            hash(value)  # raises for traced values
        with suspended():
            value = function(*args, **kwargs)
        return outside.default(value, f"{name}(..)")

    return called
