"""Python's functions whose results differ from call to call: clocks, random numbers, and input from outside.

A program would repeat the results that they had while it was traced, so that functions that call them are not compiled.
"""

from __future__ import annotations

import atexit
import builtins
import datetime
import decimal
import os
import random
import re
import time
from collections.abc import Callable
from types import BuiltinFunctionType, BuiltinMethodType, FunctionType, MethodType, ModuleType
from typing import Any, Final, NoReturn

import numpy as np

from cyxla.numpy.rewriting.python_functions.new_objects import is_created
from cyxla.numpy.state.scope import outside_values
from cyxla.numpy.tracing.trace import current, plain_run
from cyxla.numpy.tracing.user_program.bound_methods import changing_default
from cyxla.numpy.tracing.user_program.random_state import functions_of_global_state

_RANDOM_HINT: Final = "pass a generator, np.random.default_rng(seed), as an argument, or use cyxla.random"
_CLOCK_HINT: Final = "call it outside of the compiled function"
_REACTIONS: Final = ("raise", "call", "print", "log")
_REACTION_HINT: Final = "test the values, as by np.isfinite(x).all()"
#: Modules of objects that keep values for later.
_KEEPING: Final = (
    "queue",
    "_queue",
    "multiprocessing",
    "concurrent",
    "asyncio",
    "sched",
    "contextvars",
    "_contextvars",
)
#: Objects whose methods of C give the same results in each call, or are those of a module.
_CONSTANT: Final = (
    str, bytes, int, float, complex, tuple, frozenset, range, slice, type, ModuleType, FunctionType,
    BuiltinFunctionType, np.ndarray, np.generic, np.dtype, np.ufunc, re.Pattern, re.Match, decimal.Decimal,
    datetime.date, datetime.time, datetime.timedelta, datetime.tzinfo,
)  # fmt: skip
_CLOCKS: Final = (
    "time", "time_ns", "perf_counter", "perf_counter_ns", "monotonic", "monotonic_ns", "process_time",
    "process_time_ns", "thread_time", "thread_time_ns", "sleep", "localtime", "gmtime", "ctime",
)  # fmt: skip


def refuse(name: str, hint: str) -> NoReturn:
    """Refuse a call.

    Raises
    ------
    PlainRunError
        Always.
    """
    raise plain_run(
        f"{name} gives another result in each call, and would be called only once, while the function is traced", hint
    )


def refuse_method(function: Any) -> None:
    """Refuse the methods of a generator of the module `random`.

    Raises
    ------
    PlainRunError
        The function is such a method.
    """
    if current() is not None and isinstance(getattr(function, "__self__", None), random.Random):
        refuse(f"random.Random.{function.__name__}", _RANDOM_HINT)


def refuse_changing_default(function: Any) -> None:
    """Refuse a function with a default that its calls change: a generator, or a method of a list.

    Raises
    ------
    PlainRunError
        The function has such a default.
    """
    changing = changing_default(function)
    if changing is not None and current() is not None:
        refuse(f"{function.__name__}, which has a {type(changing).__name__} as a default,", _RANDOM_HINT)


def _refused(function: Callable[..., Any], name: str, hint: str) -> Callable[..., Any]:
    def substitute(*args: Any, **kwargs: Any) -> Any:
        if current() is None:
            return function(*args, **kwargs)
        refuse(name, hint)

    return substitute


def _names() -> dict[Callable[..., Any], tuple[str, str]]:
    """Return the name of each function, and the mend for it."""
    named: dict[Callable[..., Any], tuple[str, str]] = {}
    for name in random.__all__:
        function = getattr(random, name)
        if not isinstance(function, (type, FunctionType)):
            named[function] = f"random.{name}", _RANDOM_HINT
    named.update((getattr(time, n), (f"time.{n}", _CLOCK_HINT)) for n in _CLOCKS if hasattr(time, n))
    for kind, methods in ((datetime.datetime, ("now", "today", "utcnow")), (datetime.date, ("today",))):
        named.update((getattr(kind, m), (f"datetime.{kind.__name__}.{m}", _CLOCK_HINT)) for m in methods)
    named[os.urandom] = "os.urandom", _RANDOM_HINT
    named[builtins.input] = "input", "pass the text as an argument"
    named[builtins.open] = "open", "read the file outside of the compiled function"
    return named


def _drawn(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function that draws random numbers of NumPy's global state in each run."""

    def substitute(*args: Any, **kwargs: Any) -> Any:
        if current() is None:
            return function(*args, **kwargs)
        from cyxla.numpy.custom_calls.global_random import draw

        return draw(function, args, kwargs)

    return substitute


def _with_reactions(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return `np.errstate` or `np.seterr`, refused where NumPy would raise errors or call functions."""

    def substitute(*args: Any, **kwargs: Any) -> Any:
        asked = [v for v in (*args, *kwargs.values()) if v in _REACTIONS]
        if asked and current() is not None:
            raise plain_run(f"np.{function.__name__} asks for {asked[0]!r}, which no program does", _REACTION_HINT)
        return function(*args, **kwargs)

    return substitute


def _of_identity(function: Callable[..., Any], depends: Callable[[Any], bool]) -> Callable[..., Any]:
    """Return `id` or `hash`, refused for objects of which each run makes another, if it depends on which one it is."""

    def substitute(value: Any) -> Any:
        if is_created(value) and depends(value):
            refuse(f"{function.__name__} of a new {type(value).__name__}", "compare objects by `is`")
        return function(value)

    return substitute


def refuse_contents(function: Any) -> None:
    """Refuse a method that reads or changes what an object from outside holds, which nothing records.

    It is a method of C, or one of an object that keeps values for later.

    Raises
    ------
    PlainRunError
        The function is such a method.
    """
    owner, outside = getattr(function, "__self__", None), outside_values()
    if outside is None or not isinstance(function, (BuiltinMethodType, MethodType)) or isinstance(owner, _CONSTANT):
        return
    is_of_c = isinstance(function, BuiltinMethodType) and not isinstance(owner, (list, dict))
    if (is_of_c or _keeps_values(owner)) and outside.is_outside(owner):
        kind = type(owner).__name__
        raise plain_run(
            f"{function.__name__} of a {kind} from outside is called, whose contents may change",
            "call it outside of the function, and pass the result as an argument",
        )


def _keeps_values(owner: Any) -> bool:
    return type(owner).__module__.partition(".")[0] in _KEEPING


def refuse_keeping(function: Any) -> Any:
    """Return the method of a queue, or of another object that keeps values, refused for new objects.

    Returns
    -------
    callable or None
        Function to call in the place of it; None for other functions.
    """
    owner = getattr(function, "__self__", None)
    return _keeping(function) if _keeps_values(owner) else None


def _keeping(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function that keeps its arguments for later, refused for objects of which each run makes another."""

    def substitute(*args: Any, **kwargs: Any) -> Any:
        for value in (*args, *kwargs.values()):
            if is_created(value) or is_created(getattr(value, "__self__", None)):
                kind = type(value).__name__
                raise plain_run(f"{function.__name__} keeps a {kind} that each call makes anew", "return it")
        return function(*args, **kwargs)

    return substitute


def _has_default_hash(value: Any) -> bool:
    of_class: Any = type(value).__hash__
    return of_class is object.__hash__


SUBSTITUTES: Final[dict[Any, Callable[..., Any]]] = {
    id: _of_identity(id, lambda value: True),
    hash: _of_identity(hash, _has_default_hash),
    atexit.register: _keeping(atexit.register),
    np.errstate: _with_reactions(np.errstate), np.seterr: _with_reactions(np.seterr),
    **{function: _refused(function, *facts) for function, facts in _names().items()},
    **{function: _drawn(function) for function in functions_of_global_state().values()},
}  # fmt: skip
