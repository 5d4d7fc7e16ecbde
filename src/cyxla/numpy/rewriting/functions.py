"""Rewritten functions: each is made once, and has the globals, defaults and closure of the original."""

from __future__ import annotations

import inspect
from collections.abc import Iterable
from functools import partial, wraps
from operator import is_
from types import CellType, CodeType, FunctionType, MethodType, ModuleType
from typing import Any, NamedTuple, cast
from weakref import WeakKeyDictionary

import numpy as np

from cyxla.numpy.rewriting.hooks import Hooks
from cyxla.numpy.rewriting.rewritten_code import code_key, is_defined_by_trace, rewritten_code
from cyxla.numpy.rewriting.syntax.plain_code import is_plain
from cyxla.numpy.rewriting.syntax.scopes import Origin, has_python_code, package_of
from cyxla.numpy.rewriting.syntax.source import lacks_source
from cyxla.numpy.state.class_members import is_library_name
from cyxla.numpy.state.names import guard_functions, guard_names, is_empty
from cyxla.numpy.state.outside import OutsideValues, is_unchanging
from cyxla.numpy.state.scope import Scope, outside_values
from cyxla.numpy.state.snapshot import Snapshot
from cyxla.numpy.tracing.arrays.sized_array import SizedArray
from cyxla.numpy.tracing.arrays.traced_array import TracedArray
from cyxla.numpy.tracing.hooks import hooks
from cyxla.numpy.tracing.user_program.classes import class_of
from cyxla.numpy.tracing.user_program.user_frames import HOOKS


class _Version(NamedTuple):
    """Function at the time when it was rewritten.

    Attributes
    ----------
    code : code
        Code.
    defaults : tuple, optional
        Defaults of the parameters.
    named_defaults : dict, optional
        Defaults of the keyword-only parameters.
    kinds : tuple of Origin
        Kinds of the values of the names in it.
    """

    code: CodeType
    defaults: tuple[Any, ...] | None
    named_defaults: dict[str, Any] | None
    kinds: tuple[Origin, ...]

    def is_of(self, function: FunctionType) -> bool:
        """Return True if the function is as it was."""
        parts = (function.__code__, function.__defaults__, function.__kwdefaults__)
        return all(map(is_, parts, self[:3])) and code_key(function)[-1] == self.kinds


_NUMBERS = (bool, int, float, complex)
_rewritten: WeakKeyDictionary[FunctionType, FunctionType] = WeakKeyDictionary()
_of_objects: WeakKeyDictionary[FunctionType, FunctionType] = WeakKeyDictionary()  # rewritten though they are plain
_versions: WeakKeyDictionary[FunctionType, _Version] = WeakKeyDictionary()  # of functions, as they were rewritten


def rewritten(function: Any) -> Any:
    """Return a function whose statements also work on traced values; others, and those without source, as they are."""
    if isinstance(function, MethodType):
        made = rewritten(function.__func__)
        return function if made is function.__func__ else MethodType(made, function.__self__)
    if not has_python_code(function) or is_defined_by_trace(function):
        return function
    made = _rewritten.get(function)
    if made is None:
        made = _rewritten[function] = _rewrite(function)
        _rewritten[made] = made
    return made


def rewritten_anew(function: Any) -> Any:
    """Return what `rewritten` returns, made anew if the function, or the kind of a name in it, is another one.

    Of a partial application, it is the function that is rewritten.
    """
    if type(function) is partial and _has_user_code(function.func):
        return _rewritten_partial(function)
    if isinstance(function, FunctionType) and function in _versions and not _versions[function].is_of(function):
        _rewritten.pop(function, None)
        _of_objects.pop(function, None)
    return rewritten(function)


def rewritten_for(function: Any, values: Iterable[Any], *, has_numbers: bool = False) -> Any:
    """Return what `rewritten_anew` returns, for arguments among which there may be objects and Python's numbers.

    A function that needs no rewriting for arrays may read attributes of objects, such as ``x.mean``; numbers lack most
    of those that arrays have.
    """
    made = rewritten_anew(function)
    if not _is_left_plain(function) or not (has_numbers or any(map(_may_hold_objects, values))):
        return made
    return rewritten_of_objects(function)


def rewritten_of_objects(function: Any) -> Any:
    """Return a function that is rewritten also if it needs that for objects alone."""
    made = rewritten(function)
    if not _is_left_plain(function):
        return made
    if function not in _of_objects:
        _of_objects[function] = _rewritten_by_source(function, code_key(function))
    return _of_objects[function]


def _is_left_plain(function: Any) -> bool:
    """Return True for a function that was found to need no rewriting."""
    if not isinstance(function, FunctionType) or _rewritten.get(function) is not function or lacks_source(function):
        return False
    return function in _versions  # of those that are rewritten, there is no version


def _may_hold_objects(value: Any) -> bool:
    """Return True for an object of a class of the user, for Python's numbers, and for containers that may hold one."""
    if type(value) in (list, tuple):
        return any(map(_may_hold_objects, value))
    if isinstance(value, (type, ModuleType)):
        return not is_library_name(value.__module__ if isinstance(value, type) else value.__name__)
    if isinstance(value, FunctionType):
        return bool(vars(value))
    if isinstance(value, TracedArray):
        return class_of(value) in _NUMBERS
    return type(value) in _NUMBERS or (not isinstance(value, (SizedArray, np.ndarray)) and not is_unchanging(value))


def _has_user_code(function: Any) -> bool:
    return has_python_code(function.__func__ if isinstance(function, MethodType) else function)


def _rewritten_partial(function: partial[Any]) -> Any:
    """Return a partial application of a rewritten function, whose arguments are values from outside."""

    @wraps(function.func)
    def applied(*args: Any, **kwargs: Any) -> Any:
        outside, called = outside_values(), function.func
        if outside is None:
            return function(*args, **kwargs)
        first = [outside.default(v, f"argument {k}") for k, v in enumerate(function.args)]
        if isinstance(called, MethodType):
            first.insert(0, outside.default(called.__self__, "self"))
            called = called.__func__
        named = {name: outside.default(v, name) for name, v in function.keywords.items() if name not in kwargs}
        return recorded(called)(*first, *args, **named, **kwargs)

    return applied


def recorded_method(function: FunctionType) -> Any:
    """Return a rewritten method that Python calls itself.

    A trace that calls it depends on its code, on the functions that it has by name, and on defaults that may change.
    """
    rewritten_anew(function)
    made = rewritten_of_objects(function)
    has_changing_defaults = _has_changing_defaults(function)
    if not has_changing_defaults and (is_defined_by_trace(function) or lacks_source(function)):
        return made

    @wraps(function)
    def called(*args: Any, **kwargs: Any) -> Any:
        if has_changing_defaults:
            return recorded(function)(*args, **kwargs)
        outside = outside_values()
        if outside is not None and function not in outside.methods:
            outside.methods.add(function)
            guard_functions(outside, function)
        return made(*args, **kwargs)

    return called


def _has_changing_defaults(function: FunctionType) -> bool:
    """Return True if a default of a function, or a function behind generated code, may give another value later."""
    values = (*(function.__defaults__ or ()), *(function.__kwdefaults__ or {}).values())
    return not all(map(is_unchanging, values)) or bool(_functions_behind(function))


def _functions_behind(function: FunctionType) -> dict[str, FunctionType]:
    """Return the user's functions that generated code calls by cells, such as `default_factory` of a dataclass."""
    if not lacks_source(function):
        return {}
    cells = zip(function.__code__.co_freevars, function.__closure__ or (), strict=True)
    found = {name: cell.cell_contents for name, cell in cells if not is_empty(cell)}
    return {name: value for name, value in found.items() if isinstance(value, FunctionType)}


def recorded(function: Any) -> Any:
    """Return the function to call for one that a traced function calls; what one without source changes is watched."""
    outside = outside_values()
    if outside is None or not isinstance(function, FunctionType):
        return rewritten(function)
    made = outside.functions.get(function)
    if made is None:
        made = outside.functions[function] = _by_arguments(outside, function)
        guard_functions(outside, function)
    if not lacks_source(function):
        return made

    @wraps(function)
    def watched(*args: Any, **kwargs: Any) -> Any:
        objects = [v for v in (*args, *kwargs.values()) if outside.is_outside(v)]
        key = (id(function), *map(id, objects))
        if key not in outside.watched:
            outside.watched[key] = Snapshot(function, [("an argument", v) for v in objects])
            guard_names(outside, function, objects)
        return made(*args, **kwargs)

    return watched


def _by_arguments(outside: OutsideValues, function: FunctionType) -> FunctionType:
    """Return a rewritten function; one that is plain for arrays is rewritten when it gets an object."""
    made = rewritten_anew(function)
    of_arrays = _with_defaults(outside, made, function)
    if not _is_left_plain(function):
        return of_arrays
    held = (*(function.__defaults__ or ()), *(function.__kwdefaults__ or {}).values())

    @wraps(function)
    def called(*args: Any, **kwargs: Any) -> Any:
        if any(map(_may_hold_objects, (*args, *kwargs.values(), *held))):
            return _with_defaults(outside, rewritten_of_objects(function), function)(*args, **kwargs)
        return of_arrays(*args, **kwargs)

    return cast(FunctionType, called)


def _with_defaults(outside: OutsideValues, made: FunctionType, function: FunctionType) -> FunctionType:
    """Return a rewritten function whose defaults are values from outside, as those that it has by name."""
    if is_defined_by_trace(function) or not _has_changing_defaults(function):
        return made
    names = inspect.signature(function, follow_wrapped=False).parameters
    defaults, named = function.__defaults__ or (), function.__kwdefaults__ or {}
    by_position = tuple(names)[function.__code__.co_argcount - len(defaults) :]
    seen = tuple([outside.default(v, n) for n, v in zip(by_position, defaults, strict=False)])
    seen_named = {n: outside.default(v, n) for n, v in named.items()}
    behind = {name: recorded(value) for name, value in _functions_behind(function).items()}
    cells = zip(made.__code__.co_freevars, made.__closure__ or (), strict=True)
    closure = tuple([CellType(behind[name]) if name in behind else cell for name, cell in cells])
    return _copy(made, made.__code__, closure, seen, seen_named)


def _copy(
    function: FunctionType, code: CodeType, closure: tuple[CellType, ...], defaults: tuple[Any, ...] | None,
    named: dict[str, Any] | None,
) -> FunctionType:  # fmt: skip
    """Return a function like another one, with code, a closure and defaults of its own."""
    made = FunctionType(code, function.__globals__, function.__name__, defaults, closure)
    made.__kwdefaults__ = named
    made.__qualname__, made.__module__, made.__doc__ = function.__qualname__, function.__module__, function.__doc__
    made.__dict__.update(function.__dict__)
    return made


def _rewrite(function: FunctionType) -> FunctionType:
    key = code_key(function)
    _versions[function] = _Version(function.__code__, function.__defaults__, function.__kwdefaults__, key[-1])
    return function if is_plain(function) else _rewritten_by_source(function, key)


def _rewritten_by_source(function: FunctionType, key: Any) -> FunctionType:
    new = rewritten_code(function, key)
    if new is None:
        return function
    cells = dict(zip(function.__code__.co_freevars, function.__closure__ or (), strict=True))
    cells[HOOKS] = CellType(Hooks(Scope(function), recorded, package_of(function)))
    closure = tuple([cells[name] for name in new.co_freevars])
    return _copy(function, new, closure, function.__defaults__, function.__kwdefaults__)


hooks.rewritten = rewritten
