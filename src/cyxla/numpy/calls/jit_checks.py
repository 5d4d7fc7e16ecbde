"""Checks of the function and of the options that `cyxla.jit` is given."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable
from dataclasses import fields
from functools import partial
from typing import Any

import numpy as np

from cyxla import config
from cyxla.errors import DTypeError, InvalidArgumentError, OpError, OutOfRangeError, TraceError
from cyxla.numpy.calls.jit_options import OPTIONS_OF_OTHERS
from cyxla.xla.service import CompileOptions

_UNSUPPORTED_FUNCTIONS = (
    (inspect.iscoroutinefunction, "an async function", "jit a plain function, and call it with call_async"),
    (inspect.isgeneratorfunction, "a generator", "return a list, or a stacked array"),
    (inspect.isasyncgenfunction, "an async generator", "return a list, or a stacked array"),
)
_OPTIONS = dict.fromkeys(
    ("static", "donate", "platform", "bounds", "sizes", "fallback", "name", *[f.name for f in fields(CompileOptions)])
)


def check_function(function: Any) -> None:
    """Refuse what cannot be traced.

    Raises
    ------
    DTypeError
        It is no function.
    TraceError
        It is a coroutine or a generator.
    """
    if not callable(function):
        raise DTypeError(f"jit takes a function, got {type(function).__name__}")
    for is_unsupported, description, hint in _UNSUPPORTED_FUNCTIONS:
        if is_unsupported(function):
            raise TraceError(
                f"{getattr(function, '__name__', function)} is {description}, which cannot be traced", hint=hint
            )


def check_options(options: Iterable[str]) -> None:
    """Refuse options that do not exist.

    Raises
    ------
    InvalidArgumentError
        There is no such option; the message names the nearest one, or the way without it.
    """
    for name in options:
        if name not in _OPTIONS:
            hint = OPTIONS_OF_OTHERS.get(name) or config.nearest(name, _OPTIONS)
            raise InvalidArgumentError(f"jit has no option {name!r}", hint=hint)


def signature_of(function: Callable[..., Any]) -> inspect.Signature | None:
    """Return the signature of a function; None if it tells none."""
    if isinstance(function, np.ufunc):  # inspection would pass keywords that a ufunc refuses together
        return None
    try:
        return inspect.signature(function)
    except (TypeError, ValueError):
        return None


def line_of(function: Callable[..., Any]) -> str:
    """Return file and line of a function's definition; an empty text without code."""
    code = getattr(inspect.unwrap(function), "__code__", None)
    return f"{code.co_filename}:{code.co_firstlineno}" if code is not None else ""


def innermost(function: Any) -> Any:
    """Return the function behind a partial application or a method."""
    function = function.func if type(function) is partial else function
    return getattr(function, "__func__", function)


def may_be_of_numpy(error: Exception) -> bool:
    """Return True for an error that the plain function may raise as well, or may not."""
    is_of_package = isinstance(error, OpError) and not isinstance(error, (InvalidArgumentError, OutOfRangeError))
    return not is_of_package and getattr(error, "may_fall_back", True)
