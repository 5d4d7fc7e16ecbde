"""Functions of `functools.lru_cache`, which keep results for the user's whole program.

They run with NumPy while a function is traced, so that no traced value stays behind in them; their results, which they
give in later calls too, are values from outside.
"""

from __future__ import annotations

import builtins
import dis
import functools
from collections.abc import Callable, Iterator
from types import CodeType, FunctionType
from typing import Any, Final

from cyxla.errors import TraceError
from cyxla.numpy.rewriting.parts.python_state import PLAIN_TYPES
from cyxla.numpy.state.scope import outside_values
from cyxla.numpy.tracing.trace import suspended, user_line

# Built-in functions that reach more than their arguments.
_FAR_REACHING: Final = frozenset({
    "__import__", "breakpoint", "compile", "delattr", "eval", "exec", "globals", "input", "locals", "open", "print",
    "setattr", "vars",
})  # fmt: skip
_GLOBAL: Final = frozenset({"LOAD_GLOBAL", "LOAD_NAME", "STORE_GLOBAL", "DELETE_GLOBAL", "IMPORT_NAME"})


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
        if outside.has_changes() and not (_is_plain((args, tuple(kwargs.values()))) and _is_isolated(function)):
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


def _is_plain(value: Any) -> bool:
    """Return True for numbers, texts and tuples of them."""
    return all(map(_is_plain, value)) if type(value) is tuple else type(value) in PLAIN_TYPES


def _is_isolated(function: Any) -> bool:
    """Return True for a function of Python that reads its arguments alone, so that no change elsewhere matters."""
    wrapped = getattr(function, "__wrapped__", None)
    if not isinstance(wrapped, FunctionType) or wrapped.__closure__:
        return False
    if not _is_plain((wrapped.__defaults__ or (), tuple((wrapped.__kwdefaults__ or {}).values()))):
        return False
    known = vars(builtins).keys() - _FAR_REACHING - wrapped.__globals__.keys()
    return all(name in known for name in _globals_of(wrapped.__code__))


def _globals_of(code: CodeType) -> Iterator[str]:
    """Yield the names of modules and globals in a code and those inside it."""
    for instruction in dis.get_instructions(code):
        if instruction.opname in _GLOBAL:
            yield str(instruction.argval)
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _globals_of(constant)
