"""Where the user's program enters this package: errors go back to it without the frames in between."""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import update_wrapper
from types import MethodType
from typing import Any, TypeVar, cast

from cyxla._native import dispatch
from cyxla._native.dispatch import Dispatcher

F = TypeVar("F", bound=Callable[..., Any])


class ApiBoundary(Dispatcher):
    """A function or method that raises as if it were written in C; see `cyxla.numpy.tracing.frames.trimmed`.

    An exception gets a frame of every Python function on its way, after that function has any say in it. Only C can
    leave itself out, so it is a `Dispatcher`, though one that knows no programs.

    Parameters
    ----------
    function : callable
        What it does.
    """

    def __init__(self, function: Callable[..., Any]) -> None:
        self.function = function
        update_wrapper(self, function)

    def call_slowly(self, args: tuple[Any, ...], kwnames: tuple[str, ...], hash: int) -> Any:
        """Any call."""
        if not kwnames:
            return self.function(*args)
        count = len(args) - len(kwnames)
        return self.function(*args[:count], **dict(zip(kwnames, args[count:], strict=True)))

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        return self if instance is None else MethodType(self, instance)

    def __reduce__(self) -> Any:
        name = getattr(self.function, "__qualname__", "")
        return (
            name if getattr(sys.modules.get(self.__module__), name, None) is self else (ApiBoundary, (self.function,))
        )

    def __repr__(self) -> str:
        return repr(self.function)


def api_boundary(function: F) -> F:
    """Let errors of a function or method of the public surface be raised in the user's line that calls it."""
    return cast("F", ApiBoundary(function))


dispatch.skip_tuples(ApiBoundary)
