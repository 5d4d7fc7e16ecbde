"""Table of NumPy's functions of arrays of run-time size."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import lru_cache
from typing import Any, TypeVar

from cyxla.numpy.tracing.registry import NUMPY_ORIGINALS, implementation_of

F = TypeVar("F", bound=Callable[..., Any])
Handler = Callable[[Callable[..., Any], dict[str, Any]], Any]

#: Functions from a NumPy function and its arguments by name to its result.
HANDLERS: dict[Callable[..., Any], Handler] = {}


def original(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return NumPy's function for its substitute."""
    return NUMPY_ORIGINALS.get(function, function)


def sized(*functions: Callable[..., Any]) -> Callable[[F], F]:
    """Register the implementation of NumPy functions for arrays of run-time size."""

    def register(handler: F) -> F:
        HANDLERS.update((original(f), handler) for f in functions)
        return handler

    return register


@lru_cache(maxsize=512)
def _signature(function: Callable[..., Any]) -> inspect.Signature:
    return inspect.signature(implementation_of(function))


def bind(function: Callable[..., Any], args: Any, kwargs: Any) -> dict[str, Any]:
    """Return the arguments of a call by name; those that are not given are missing."""
    return dict(_signature(function).bind(*args, **kwargs).arguments)


def call(function: Callable[..., Any], arguments: dict[str, Any]) -> Any:
    """Call a NumPy function with arguments by name, of which none has a run-time size."""
    positional, keywords = [], {}
    by_position = True
    for name, parameter in _signature(function).parameters.items():
        if name not in arguments:
            by_position = False
        elif parameter.kind is parameter.VAR_POSITIONAL:
            positional += arguments[name]
        elif parameter.kind is parameter.VAR_KEYWORD:
            keywords.update(arguments[name])
        elif by_position and parameter.kind is not parameter.KEYWORD_ONLY:
            positional.append(arguments[name])
        else:
            keywords[name] = arguments[name]
    return function(*positional, **keywords)
