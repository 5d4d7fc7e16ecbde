"""Functions of keys: part of the program inside traced functions, compiled on their own outside."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache, wraps
from typing import Any

import numpy as np

from cyxla.numpy.random.traced_generator import TracedGenerator, generator
from cyxla.numpy.tracing import trace as _trace
from cyxla.numpy.tracing.hooks import hooks

_ARRAYS = (np.ndarray, np.generic)


@lru_cache
def method(name: str) -> Callable[..., Any]:
    """Return a method of a generator as a function of a key."""
    traced_method = getattr(TracedGenerator, name)

    @wraps(traced_method)
    def function(key: Any, *args: Any, **kwargs: Any) -> Any:
        return traced_method(generator(key), *args, **kwargs)

    return traced_or_compiled(function)


@lru_cache
def traced_or_compiled(function: Callable[..., Any]) -> Callable[..., Any]:
    """Make a function of traced values callable outside of traces.

    There, arrays become arguments of a compiled function; other values, such as shapes and dtypes, are static.
    """

    @wraps(function)
    def run(*args: Any, **kwargs: Any) -> Any:
        if _trace.current() is not None:
            return function(*args, **kwargs)
        positions = [k for k, v in enumerate(args) if isinstance(v, _ARRAYS)]
        names = [n for n, v in kwargs.items() if isinstance(v, _ARRAYS)]
        static_args = tuple(None if k in positions else _hashable(v) for k, v in enumerate(args))
        static_kwargs = tuple((n, _hashable(v)) for n, v in kwargs.items() if n not in names)
        jitted = _compiled(function, tuple(positions), static_args, tuple(names), static_kwargs)
        return jitted(*[args[k] for k in positions], *[kwargs[n] for n in names])

    return run


def _hashable(value: Any) -> Any:
    return tuple(map(_hashable, value)) if isinstance(value, list) else value


@lru_cache(maxsize=512)
def _compiled(
    function: Callable[..., Any], positions: tuple[int, ...], static_args: tuple[Any, ...], names: tuple[str, ...],
    static_kwargs: tuple[tuple[str, Any], ...],
) -> Callable[..., Any]:  # fmt: skip
    def call(*arrays: Any) -> Any:
        args = list(static_args)
        for k, array in zip(positions, arrays, strict=False):
            args[k] = array
        return function(*args, **dict(static_kwargs), **dict(zip(names, arrays[len(positions) :], strict=True)))

    call.__name__ = function.__name__
    return hooks.jit(call)  # type: ignore[no-any-return]
