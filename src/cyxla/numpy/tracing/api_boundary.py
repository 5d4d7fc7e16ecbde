"""Boundary of the public API: errors are raised without frames of this package."""

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
    """Function or method that raises as if it were written in C; see `cyxla.numpy.tracing.user_program.user_frames.trimmed`.

    Python adds a frame to an exception for every Python function that it leaves, after the function's last statement.
    Only C code adds none, so this is a `Dispatcher`, one without compiled programs.

    Parameters
    ----------
    function : callable
        Function to call.
    """

    def __init__(self, function: Callable[..., Any]) -> None:
        self.function = function
        update_wrapper(self, function)

    def call_slowly(self, args: tuple[Any, ...], kwnames: tuple[str, ...], hash: int) -> Any:
        """Call the function."""
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
    """Decorate a public function or method so that its errors are raised in the line of the caller."""
    return cast("F", ApiBoundary(function))


dispatch.enable_vectorcall(ApiBoundary)
