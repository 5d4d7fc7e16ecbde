"""Kinds of the names that a function reads: its own, and those of modules, builtins and other objects outside of it."""

from __future__ import annotations

import builtins
import contextlib
import functools
import sys
from collections.abc import Callable, Iterator
from enum import Enum, auto
from functools import partial
from sysconfig import get_paths
from types import FunctionType, MethodType, ModuleType
from typing import Any

from cyxla.numpy.rewriting.python_functions.assertions import is_assertion
from cyxla.numpy.rewriting.python_functions.classes import GETTERS, SUBSTITUTES_IN_SCOPE
from cyxla.numpy.rewriting.python_functions.memoised import is_memoised
from cyxla.numpy.rewriting.python_functions.new_objects import is_plain_class
from cyxla.numpy.rewriting.python_functions.table import SUBSTITUTES
from cyxla.numpy.rewriting.syntax.names import Names
from cyxla.numpy.state.outside import is_unchanging, is_unreadable
from cyxla.numpy.tracing.trace import is_internal
from cyxla.numpy.tracing.user_program.bound_methods import changing_object


class Origin(Enum):
    """Kind of a name."""

    OWN = auto()  # bound by the function, or by one that it is defined in
    MODULE = auto()
    PLAIN = auto()  # a class, or a function that is called as it is
    CALLED = auto()  # a function of the user, or one with a substitute
    OBJECT = auto()  # anything else, whose value may change between calls


class NameOrigins:
    """Names that are visible in a function.

    Parameters
    ----------
    function : FunctionType
        Function.
    own : frozenset of str
        Names that it binds, and those bound in functions defined in it.
    """

    def __init__(self, function: FunctionType, own: Names) -> None:
        self.own = own
        self.package = package_of(function)
        self._spaces = (_cells(function), function.__globals__, vars(builtins))

    def origin(self, name: str) -> Origin:
        """Return the kind of a name."""
        if name in self.own:
            return Origin.OWN
        for space in self._spaces:
            if name in space:
                return origin_of(space[name], self.package)
        return Origin.OBJECT

    def is_bound(self, name: str) -> bool:
        """Return True for a name from outside that has a value."""
        return any(name in space for space in self._spaces)

    def value(self, name: str) -> Any:
        """Return the present value of a name from outside; None if it has none."""
        return next((space[name] for space in self._spaces if name in space), None)


def _cells(function: FunctionType) -> dict[str, Any]:
    cells = zip(function.__code__.co_freevars, function.__closure__ or (), strict=True)
    return {name: value for name, cell in cells for value in _contents(cell)}


def _contents(cell: Any) -> Iterator[Any]:
    try:
        yield cell.cell_contents
    except ValueError:  # not bound yet
        return


def origin_of(value: Any, package: str) -> Origin:
    """Return the kind of a value from outside."""
    if isinstance(value, ModuleType):
        return Origin.MODULE if is_library(value) else Origin.OBJECT
    if is_called(value, package):
        return Origin.CALLED
    return Origin.PLAIN if callable(value) and not holds_state(value, package) else Origin.OBJECT


def is_library(module: ModuleType) -> bool:
    """Return True for a module that is not one of the user's program."""
    file = getattr(module, "__file__", None) or ""
    if module.__name__.partition(".")[0] in sys.stdlib_module_names:
        return True
    return file.startswith(_LIBRARIES) or is_internal(file)


def holds_state(value: Any, package: str) -> bool:
    """Return True for a callable object with state of its own: one of the user's classes, or a bound method."""
    if changing_object(value) is not None or is_unreadable(value):
        return True
    if isinstance(value, (type, FunctionType)):
        return False
    if isinstance(value, partial):
        return True
    if isinstance(value, MethodType):
        return is_user_function(_as_written(value.__func__), package)
    return is_user_function(_as_written(type(value).__call__), package)


def is_called(value: Any, package: str) -> bool:
    """Return True if calls of a function by one of a package are made through `Hooks.call`."""
    if not callable(value):
        return False
    if is_assertion(value) or isinstance(value, GETTERS) or any(value is kind for kind in GETTERS):
        return True
    try:
        if value in SUBSTITUTES or value in SUBSTITUTES_IN_SCOPE:
            return True
    except TypeError:  # not hashable
        return False
    if is_generic(value) or is_memoised(value) or makes_context(value) or is_user_function(value, package):
        return True
    if not isinstance(value, type):
        return False
    return _has_own_methods(value) or has_changing_fields(value) or is_plain_class(value, is_of_package(package))


def has_changing_fields(kind: type) -> bool:
    """Return True for a named tuple of which a default may be changed, such as a list."""
    return not all(map(is_unchanging, getattr(kind, "_field_defaults", {}).values()))


def is_generic(value: Any) -> bool:
    """Return True for a function, or a bound method, that `functools.singledispatch` or its like for methods makes."""
    if not isinstance(value, FunctionType):
        return False
    code = value.__code__
    return code.co_filename == functools.__file__ and ("dispatch" in code.co_freevars or code.co_name == "_method")


def makes_context(value: Any) -> bool:
    """Return True for a function that `contextlib.contextmanager` makes of a generator function."""
    if not isinstance(value, FunctionType) or value.__code__.co_filename != contextlib.__file__:
        return False
    return isinstance(getattr(value, "__wrapped__", None), FunctionType)


def _has_own_methods(kind: type) -> bool:
    """Return True for a class that defines a method in the user's program."""
    return any(has_python_code(_as_written(method)) for base in kind.__mro__[:-1] for method in vars(base).values())


def _as_written(method: Any) -> Any:
    """Return the user's method in the place of the one that a class has while its methods are rewritten."""
    if not isinstance(method, FunctionType) or not is_internal(method.__code__.co_filename):
        return method
    return getattr(method, "__wrapped__", method)


def is_of_package(package: str) -> Callable[[type], bool]:
    """Return a function that tells whether a class is one of the user's program, or of a package."""

    def is_of_user(kind: type) -> bool:
        module = sys.modules.get(kind.__module__)
        return module is not None and (not is_library(module) or kind.__module__.partition(".")[0] == package)

    return is_of_user


def is_user_function(value: Any, package: str) -> bool:
    """Return True for a Python function of the user's program, or of the package of the function that calls it."""
    if not has_python_code(value):
        return False
    return not value.__code__.co_filename.startswith(_LIBRARIES) or package_of(value) == package


def has_python_code(value: Any) -> bool:
    """Return True for a function whose code is neither of this package, nor of NumPy, SciPy or Python itself."""
    if not isinstance(value, FunctionType):
        return False
    file = value.__code__.co_filename
    return not is_internal(file) and (not file.startswith(_STANDARD) or file.startswith(_INSTALLED))


def package_of(function: Any) -> str:
    """Return the name of the package, or the module, that a function belongs to."""
    return str(getattr(function, "__globals__", {}).get("__name__", "")).partition(".")[0]


_PATHS = get_paths()
_STANDARD = tuple({_PATHS["stdlib"], _PATHS["platstdlib"]})
_INSTALLED = tuple({_PATHS["purelib"], _PATHS["platlib"]})
_LIBRARIES = (*_STANDARD, *_INSTALLED)
