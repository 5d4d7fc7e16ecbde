"""Guards of names in functions: of all values where the source is not rewritten, else of functions and classes."""

from __future__ import annotations

import builtins
import inspect
import types
from collections.abc import Callable, Sequence
from typing import Any

from cyxla._native.dispatch import Source
from cyxla.numpy.state.outside import OutsideValues, Path
from cyxla.numpy.state.snapshot import names_of
from cyxla.numpy.tracing.trace import is_internal


def guard_names(outside: OutsideValues, function: Callable[..., Any], objects: Sequence[Any]) -> None:
    """Make a program depend on the globals, cells and attributes that are named in a function.

    Parameters
    ----------
    outside : OutsideValues
        Values of the trace that is about to begin.
    function : callable
        Function.
    objects : sequence
        Objects among its arguments.
    """
    function = inspect.unwrap(function)
    code = getattr(function, "__code__", None)
    if code is None or is_internal(code.co_filename):
        return
    space = function.__globals__
    names = list(dict.fromkeys(names_of(code)))
    for name in names:
        if name in space and not isinstance(space[name], types.ModuleType):
            outside.guard(space[name], Path(Source.GLOBAL, 0, (space, vars(builtins)), name, name))
    for name, cell in zip(code.co_freevars, function.__closure__ or (), strict=True):
        if not is_empty(cell) and not isinstance(cell.cell_contents, types.ModuleType):
            outside.guard(cell.cell_contents, Path(Source.CELL, 0, cell, name, name))
    for value in objects:
        attributes = getattr(value, "__dict__", {})
        for name in names:
            if name in attributes:
                outside.guard(attributes[name], outside.path_to(value, Source.ATTRIBUTE, name, f".{name}"))


def guard_functions(outside: OutsideValues, function: types.FunctionType) -> None:
    """Make a program depend on a function, and the functions and classes that it has by names of globals and cells."""
    outside.watch_function(function)
    space = function.__globals__
    for name in dict.fromkeys(names_of(function.__code__)):
        if callable(space.get(name)):
            outside.guard(space[name], Path(Source.GLOBAL, 0, (space, vars(builtins)), name, name))
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
        if not is_empty(cell) and callable(cell.cell_contents):
            outside.guard(cell.cell_contents, Path(Source.CELL, 0, cell, name, name))


def is_empty(cell: Any) -> bool:
    """Return True for the cell of a variable that has no value yet."""
    try:
        return cell.cell_contents is cell
    except ValueError:
        return True
