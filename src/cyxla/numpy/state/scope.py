"""Scopes: what rewritten functions call where they read and write names, attributes and items."""

from __future__ import annotations

import builtins
import enum
import types
from collections.abc import Callable
from dataclasses import is_dataclass
from functools import cached_property
from typing import Any

import numpy as np

from cyxla._native.dispatch import Source
from cyxla.errors import TraceError, UnimplementedError
from cyxla.numpy.state.class_members import is_library_name, is_of_library
from cyxla.numpy.state.effects import Deleted, set_attribute, set_cell, set_item
from cyxla.numpy.state.outside import OutsideValues, Path
from cyxla.numpy.tracing.arrays.sized_array import SizedArray
from cyxla.numpy.tracing.arrays.traced_array import TracedArray
from cyxla.numpy.tracing.hooks import hooks
from cyxla.numpy.tracing.trace import current, suspended, user_line
from cyxla.numpy.tracing.user_program.classes import class_of, lacks_attribute, missing_attribute

#: Objects whose attributes and items need no care: those of a trace, and those that nobody changes.
_PLAIN = (TracedArray, SizedArray, np.ndarray, np.generic, np.ufunc, int, float, complex, str, bytes, tuple)
_FIXED = (types.FunctionType, types.BuiltinFunctionType, types.ModuleType, type, np.ufunc)
_ABSENT = object()


def outside_values() -> OutsideValues | None:
    """Return the values from outside of the function being traced; None if nothing is traced."""
    trace = current()
    values: OutsideValues | None = None if trace is None else trace.program.outside
    return values


class Scope:
    """Names of one function, for its rewritten code.

    Outside of a trace, and for objects of the trace itself, each method does what the plain statement does.

    Parameters
    ----------
    function : function
        Function as the user wrote it.
    """

    def __init__(self, function: Any) -> None:
        self.globals: dict[str, Any] = function.__globals__
        found = self.globals.get("__builtins__", builtins.__dict__)
        self.builtins: dict[str, Any] = found if isinstance(found, dict) else vars(found)
        self.cells = dict(zip(function.__code__.co_freevars, function.__closure__ or (), strict=True))

    # -- names

    def read_name(self, value: Any, name: str) -> Any:
        """Return the value of a global or of a variable of an enclosing function."""
        outside = outside_values()
        if outside is None or (isinstance(value, types.ModuleType) and is_library_name(value.__name__)):
            return value
        path = self._path(name)
        if path is None or (path.source is Source.GLOBAL and name not in self.globals):
            return value
        return outside.read(value, path)

    def write_name(self, name: str, value: Any) -> None:
        """Assign to a name that is declared global or nonlocal."""
        outside, path = outside_values(), self._path(name)
        if path is None:
            raise TraceError(f"{name} is neither a global nor a variable of an enclosing function", where=user_line())
        owner = self.globals if path.source is Source.GLOBAL else self.cells[name]
        change = set_item if path.source is Source.GLOBAL else set_cell
        if outside is None:
            change(owner, name, value)
        else:
            outside.change(path, change, owner, value)

    def read_global(self, name: str) -> Any:
        """Return the value of a global, also behind a variable of the same name."""
        outside, value = outside_values(), self.globals[name]
        if outside is None or (isinstance(value, types.ModuleType) and is_library_name(value.__name__)):
            return value
        return outside.read(value, self._path_of_global(name))

    def write_global(self, name: str, value: Any) -> None:
        """Assign to a global."""
        outside = outside_values()
        if outside is None:
            self.globals[name] = value
        else:
            outside.change(self._path_of_global(name), set_item, self.globals, value)

    def delete_name(self, name: str) -> None:
        """Delete a name that is declared global or nonlocal."""
        self.write_name(name, Deleted)

    def _path(self, name: str) -> Path | None:
        cell = self.cells.get(name)
        if cell is not None:
            return Path(Source.CELL, 0, cell, name, name)
        return self._path_of_global(name)

    def _path_of_global(self, name: str) -> Path:
        return Path(Source.GLOBAL, 0, (self.globals, self.builtins), name, name)

    # -- attributes

    def read_attr(self, obj: Any, attr: str) -> Any:
        """Return ``obj.attr``."""
        if isinstance(obj, _PLAIN):
            return _attribute_of_plain(obj, attr)
        outside = outside_values()
        if outside is None:
            return getattr(obj, attr)
        if isinstance(obj, types.ModuleType):
            return _module_attribute(outside, obj, attr)
        if id(obj) in outside.originals:
            obj = outside.originals[id(obj)][1]
        if isinstance(obj, types.MethodType) and attr in vars(obj.__func__):
            obj = obj.__func__
        outside.watch_class(obj if isinstance(obj, type) else type(obj))
        if isinstance(obj, (type, types.FunctionType)) and _has_state(obj, attr):
            outside.register_fixed(obj)
        if not outside.is_outside(obj) or isinstance(obj, (list, dict)):
            return getattr(obj, attr)
        return self._read_outside(outside, obj, attr)

    def _read_outside(self, outside: OutsideValues, obj: Any, attr: str) -> Any:
        """Return an attribute of an object from outside."""
        if attr == "__dict__":
            raise TraceError(
                f"the attributes of a {type(obj).__name__} from outside are used as a dict", where=user_line(),
                hint="read and assign attributes by name",
            )  # fmt: skip
        path = outside.path_to(obj, Source.ATTRIBUTE, attr, f".{attr}")
        if path.identity in outside.changes:
            return outside.read(None, path)
        if _is_cached(type(obj), attr):
            _fill_cache(outside, obj, attr)
        elif _is_computed(type(obj), attr) and not _hides_member(obj, attr):
            return _member(outside, obj, attr, path)
        try:
            value = getattr(obj, attr)
        except AttributeError:
            outside.read_missing(path)
            raise
        is_own = isinstance(value, types.MethodType) and any(value.__self__ is o for o in (obj, type(obj)))
        return value if is_own else outside.read(value, path)

    def owner(self, obj: Any, attr: str) -> Any:
        """Return an object of which an attribute is about to be called, which must be that of its own at every call."""
        outside = outside_values()
        if outside is None or isinstance(obj, _PLAIN):
            return obj
        if not isinstance(obj, types.ModuleType):
            outside.watch_class(obj if isinstance(obj, type) else type(obj))
        if _holds(outside, obj, attr) and self.read_attr(obj, attr) is not getattr(obj, attr):
            raise TraceError(
                f"{type(obj).__name__}.{attr} is assigned while a function is traced, and called later",
                where=user_line(), hint="assign it outside of the function",
            )  # fmt: skip
        if outside.is_outside(obj) and isinstance(_member_of_class(type(obj), attr), types.FunctionType):
            self.read_attr(obj, attr)
        _watch_property(outside, type(obj), attr)
        return obj

    def write_attr(self, obj: Any, attr: str, value: Any) -> None:
        """Do ``obj.attr = value``."""
        outside = outside_values()
        if outside is None or isinstance(obj, _PLAIN) or not _is_or_becomes_outside(outside, obj, value):
            setattr(obj, attr, value)
            return
        _check_attribute(obj, attr, value)
        outside.change(_attribute_path(outside, obj, attr), set_attribute, obj, value)

    def delete_attr(self, obj: Any, attr: str) -> None:
        """Do ``del obj.attr``."""
        outside = outside_values()
        if outside is None or not outside.is_outside(obj):
            delattr(obj, attr)
            return
        _check_attribute(obj, attr, Deleted)
        self.read_attr(obj, attr)  # raises NumPy's error if there is none
        outside.change(_attribute_path(outside, obj, attr), set_attribute, obj, Deleted)

    def require_inside(self, obj: Any, what: str) -> None:
        """Raise if an object is from outside, which something reads or changes that nothing records."""
        outside = outside_values()
        if outside is not None and outside.is_outside(obj):
            raise TraceError(
                f"{what} a {type(obj).__name__} from outside while a function is traced", where=user_line(),
                hint="read and assign attributes by name",
            )  # fmt: skip

    # -- items and methods: lists and dicts from outside are mirrors, which record their changes themselves

    def read_item(self, obj: Any, key: Any) -> Any:
        """Return ``obj[key]``."""
        return obj[key]

    def write_item(self, obj: Any, key: Any, value: Any) -> None:
        """Do ``obj[key] = value``."""
        outside = outside_values()
        if outside is not None and not isinstance(obj, _PLAIN):
            _require_mirror(outside, obj, "changes an item of")
        obj[key] = value

    def delete_item(self, obj: Any, key: Any) -> None:
        """Do ``del obj[key]``."""
        outside = outside_values()
        if outside is not None and not isinstance(obj, _PLAIN):
            _require_mirror(outside, obj, "deletes an item of")
        del obj[key]

    def method(self, obj: Any, name: str) -> Callable[..., Any]:
        """Return the method `name` of an object, which is about to be called."""
        found: Callable[..., Any] = self.read_attr(obj, name)
        return found


def _attribute_of_plain(obj: Any, attr: str) -> Any:
    """Return an attribute of an array or number, which a traced one has as the value that it stands for."""
    if isinstance(obj, (TracedArray, SizedArray)):
        if attr == "__class__":
            return class_of(obj)
        if lacks_attribute(obj, attr):
            raise missing_attribute(obj, attr)
        if attr == "__hash__" and class_of(obj).__hash__ is None:
            return None
        try:
            return getattr(obj, attr)
        except AttributeError:
            raise UnimplementedError(f"{class_of(obj).__name__}.{attr} cannot be traced", where=user_line()) from None
    return getattr(obj, attr)


def _module_attribute(outside: OutsideValues, module: types.ModuleType, attr: str) -> Any:
    """Return an attribute of a module; functions and classes count as fixed."""
    space = vars(module)
    path = _path_in_module(module, attr)
    if path.identity in outside.changes:
        return outside.read(None, path)
    value = getattr(module, attr)
    if space.get(attr, _ABSENT) is not value or is_library_name(module.__name__):
        return value
    if isinstance(value, types.ModuleType):
        return value if is_library_name(value.__name__) else outside.read(value, path)
    if isinstance(value, _FIXED):
        _guard_member(outside, module, attr)
        return value
    return outside.read(value, path)


def _guard_member(outside: OutsideValues, module: types.ModuleType, attr: str) -> None:
    """Make the program depend on a function or class that one of the user's modules has."""
    space = vars(module)
    value = space.get(attr)
    if isinstance(value, _FIXED) and not attr.startswith("__") and not is_library_name(module.__name__):
        outside.guard(value, _path_in_module(module, attr))


def _path_in_module(module: types.ModuleType, attr: str) -> Path:
    return Path(Source.GLOBAL, 0, (vars(module), vars(module)), attr, f"{module.__name__}.{attr}")


def _member_of_class(kind: type, attr: str) -> Any:
    """Return an attribute of a class or its bases, as it is defined; None if none of them has one."""
    return vars(_class_with(kind, attr)).get(attr)


def _class_with(kind: type, attr: str) -> type:
    """Return the class that defines an attribute of a class; `object` if none does."""
    return next((base for base in kind.__mro__ if attr in vars(base)), object)


def _has_state(owner: Any, attr: str) -> bool:
    """Return True if an attribute of a class or a function from outside may be changed, or hold what can be."""
    if isinstance(owner, types.FunctionType):
        return attr in vars(owner) and not hooks.is_defined_by_trace(owner)
    if "<locals>" in owner.__qualname__ or isinstance(owner, enum.EnumMeta):
        return False
    if attr == "__dict__":
        return not is_of_library(owner)
    base = _class_with(owner, attr)
    if attr not in vars(base) or attr.startswith("__") or is_of_library(base):
        return False
    value = vars(base)[attr]
    return isinstance(value, (types.MethodType, types.ModuleType)) or not (
        isinstance(value, _FIXED) or hasattr(type(value), "__get__")
    )


def _holds(outside: OutsideValues, obj: Any, attr: str) -> bool:
    """Return True for an attribute from outside that is data, and no method of a class."""
    if isinstance(obj, types.ModuleType):
        return True
    if isinstance(obj, (type, types.FunctionType)):
        return _has_state(obj, attr)
    if isinstance(obj, types.MethodType) and attr in vars(obj.__func__):
        return _has_state(obj.__func__, attr)
    if isinstance(obj, _FIXED) or not outside.is_outside(obj):
        return False
    found = _member_of_class(type(obj), attr)
    if attr in getattr(obj, "__dict__", ()) or isinstance(found, (types.MemberDescriptorType, types.MethodType)):
        return True
    return callable(found) and not (isinstance(found, _FIXED) or hasattr(type(found), "__get__"))


def _is_computed(kind: type, attr: str) -> bool:
    """Return True if an attribute is a property or the like, whose code reads what it needs."""
    for base in kind.__mro__:
        if attr in vars(base):
            found = vars(base)[attr]
            is_slot = isinstance(found, (types.MemberDescriptorType, types.GetSetDescriptorType))
            return hasattr(type(found), "__get__") and not is_slot
    return False


def _hides_member(obj: Any, attr: str) -> bool:
    """Return True if an object has an attribute of its own in place of a method of its class."""
    if attr not in getattr(obj, "__dict__", ()):
        return False
    found = type(_member_of_class(type(obj), attr))
    return not (hasattr(found, "__set__") or hasattr(found, "__delete__"))


def _watch_property(outside: OutsideValues, kind: type, attr: str) -> None:
    """Make the program depend on the code of a property of a class."""
    base = _class_with(kind, attr)
    found = vars(base).get(attr)
    if isinstance(found, property) and not is_of_library(base):
        getter = hooks.members_of(base).get(attr, found).fget  # as the user has written it
        if isinstance(getter, types.FunctionType):
            outside.watch_function(getter)


def _member(outside: OutsideValues, obj: Any, attr: str, path: Path) -> Any:
    """Return a property or method of an object, or the like."""
    value = getattr(obj, attr)
    _watch_property(outside, type(obj), attr)
    if isinstance(value, types.MethodType) and any(value.__self__ is owner for owner in (obj, type(obj))):
        outside.watch_method(value, path)
    return value


def _is_cached(kind: type, attr: str) -> bool:
    """Return True for an attribute that is computed once, and kept."""
    return isinstance(_member_of_class(kind, attr), cached_property)


def _fill_cache(outside: OutsideValues, obj: Any, attr: str) -> None:
    """Compute a cached property with NumPy, as the first call would, before the function changes anything."""
    if attr in vars(obj):
        return
    if outside.has_changes():
        raise TraceError(
            f"{type(obj).__name__}.{attr} is computed for the first time after objects have changed", where=user_line(),
            hint="read it before the function is called",
        )  # fmt: skip
    with suspended():
        getattr(obj, attr)


def _is_or_becomes_outside(outside: OutsideValues, obj: Any, value: Any) -> bool:
    """Return True if an object is from outside; modules and classes always are."""
    if isinstance(obj, (type, types.FunctionType)) or (
        isinstance(obj, types.ModuleType) and not outside.is_outside(obj)
    ):
        raise TraceError(
            f"an attribute of {getattr(obj, '__name__', obj)} is set while a function is traced", where=user_line(),
            hint="keep the state in a global or in an object",
        )  # fmt: skip
    return outside.is_outside(obj)


def _check_attribute(obj: Any, attr: str, value: Any) -> None:
    """Raise if an assignment to an attribute runs code of a class, or fails."""
    kind = type(obj)
    if is_dataclass(kind) and kind.__dataclass_params__.frozen:  # type: ignore[attr-defined]
        delattr(obj, attr) if value is Deleted else setattr(obj, attr, value)  # raises
    slots = (kind.__setattr__, kind.__delattr__)
    if not all(isinstance(slot, types.WrapperDescriptorType) for slot in slots) or _is_computed(kind, attr):
        raise TraceError(
            f"{kind.__name__}.{attr} is set by code of its class while a function is traced", where=user_line(),
            hint="assign to plain attributes in traced functions",
        )  # fmt: skip


def _attribute_path(outside: OutsideValues, obj: Any, attr: str) -> Path:
    if isinstance(obj, types.ModuleType):
        return _path_in_module(obj, attr)
    return outside.path_to(obj, Source.ATTRIBUTE, attr, f".{attr}")


def _require_mirror(outside: OutsideValues, obj: Any, action: str) -> None:
    """Raise if an object from outside has items that no mirror records."""
    if outside.is_outside(obj) and not isinstance(obj, (list, dict)):
        raise TraceError(
            f"the function {action} a {type(obj).__name__} from outside while it is traced", where=user_line(),
            hint="use a list, a dict or an array",
        )  # fmt: skip
