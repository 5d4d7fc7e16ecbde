"""Python's functions of classes and attributes for traced values: `type`, `isinstance`, `getattr` and others."""

from __future__ import annotations

import copy
import functools
import operator
import sys
import types
from collections.abc import Callable, Iterator
from typing import Any, Final, cast

import numpy as np

from cyxla.errors import TraceError, UnimplementedError
from cyxla.numpy.rewriting.python_functions.new_objects import record_copies
from cyxla.numpy.state.mirrors import MirrorDict, MirrorList
from cyxla.numpy.state.scope import Scope, outside_values
from cyxla.numpy.substitutes.patched_numpy import NDARRAY
from cyxla.numpy.tracing.arrays.known_array import KnownArray
from cyxla.numpy.tracing.arrays.sized_array import SizedArray
from cyxla.numpy.tracing.arrays.traced_array import LazyList, TracedArray, as_traced, is_traced, traced, value_of
from cyxla.numpy.tracing.results.conversion import convert
from cyxla.numpy.tracing.results.zero_dim import Rank0
from cyxla.numpy.tracing.trace import current, require_current, user_line
from cyxla.numpy.tracing.user_program.classes import class_of, is_number
from cyxla.numpy.tracing.user_program.user_frames import HOOKS
from cyxla.numpy.ufuncs.apply import convert_checked
from cyxla.xla.hlo.builder import functions as xla

_np: Any = np  # its functions dispatch to this package
_MIRRORED: dict[type, type] = {MirrorList: list, MirrorDict: dict}
GETTERS: Final = (operator.attrgetter, operator.methodcaller)
_ATOMS: Final = (types.FunctionType, types.BuiltinFunctionType, types.ModuleType, str, bytes, int, float, complex)
_SCALARS = (
    np.bool_, np.int8, np.int16, np.int32, np.int64, np.longlong, np.uint8, np.uint16, np.uint32, np.uint64,
    np.ulonglong, np.float16, np.float32, np.float64, np.complex64, np.complex128,
)  # fmt: skip


def visible_class(value: Any) -> Any:
    """Return ``type(value)``: the class of the value in NumPy, which is what ``np.ndarray`` is in the program."""
    kind = list if isinstance(value, LazyList) else _MIRRORED.get(type(value)) or class_of(value)
    return NDARRAY if kind is np.ndarray else kind


def _type(*args: Any, **kwargs: Any) -> Any:
    return type(*args, **kwargs) if len(args) != 1 or kwargs else visible_class(args[0])


def _isinstance(value: Any, classes: Any) -> bool:
    """Take traced arrays for those of NumPy, and traced numbers for those that they are."""
    if not isinstance(value, (TracedArray, SizedArray)):
        return isinstance(value, classes)
    named = classes if isinstance(classes, tuple) else (classes,)
    return issubclass(class_of(value), classes) or any(c in _TRACED for c in named)


def _issubclass(kind: Any, classes: Any) -> bool:
    return issubclass(np.ndarray if kind is NDARRAY else kind, classes)


def _dtype(*args: Any, **kwargs: Any) -> Any:
    """Refuse arrays and Python's numbers, as NumPy does: traced ones have a dtype."""
    if args and isinstance(args[0], (TracedArray, SizedArray)) and not issubclass(class_of(args[0]), np.generic):
        is_array = class_of(args[0]) is np.ndarray
        raise TypeError("Cannot construct a dtype from an array" if is_array else "Cannot interpret it as a data type")
    return np.dtype(*args, **kwargs)


_TRACED: Final = (TracedArray, SizedArray)  # which libraries may ask for


def _callable(value: Any) -> bool:
    return callable(value) and not is_number(value)


def _isscalar(value: Any) -> bool:
    return np.isscalar(value) or is_number(value)


def leave_unless_int64(value: TracedArray) -> None:
    """Leave runs to NumPy in which a float, or an unsigned integer, is no signed integer of 64 bits."""
    if value.dtype.kind != "f" and value.dtype != np.uint64:
        return
    op = xla.reshape(value_of(value), ())
    if value.dtype.kind == "f":
        wide, kind = convert(op, np.dtype(np.float64)), "float"
        fits = xla.lt(xla.abs_(wide), require_current().constant(2.0**63))
    else:
        kind = "number"
        fits = xla.ge(convert(op, np.dtype(np.int64)), require_current().constant(0, np.dtype(np.int64)))
    where = user_line()

    text = f"a {kind} beyond 64 bits, or NaN, is converted to an int\n  at:   {where}"
    require_current().leave_if(xla.not_(fits), lambda _: OverflowError(text), warns=True)


def _scalar_class(kind: type) -> Callable[..., Any]:
    """Return the substitute for a class of NumPy's scalars, which converts numbers and arrays."""

    def substitute(*args: Any, **kwargs: Any) -> Any:
        if len(args) != 1 or kwargs:
            return kind(*args, **kwargs)
        if isinstance(args[0], (TracedArray, SizedArray)) and args[0].ndim and args[0].dtype == kind:
            return args[0]  # the array itself, as in NumPy
        if isinstance(args[0], SizedArray) or (isinstance(args[0], KnownArray) and args[0].ndim):
            return args[0].astype(kind)
        if not is_traced(args[0]):
            return kind(*args, **kwargs)
        if isinstance(args[0], (list, tuple)):
            return _np.array(args[0], kind)
        array, dtype = as_traced(args[0]), np.dtype(kind)
        if array.weak is complex and dtype.kind in "iuf":
            return kind(array)  # raises
        if array.weak is float and dtype.kind in "iu":  # NumPy makes an int of it first
            leave_unless_int64(array)
            array = traced(convert(value_of(array), np.dtype(np.int64)), int)
        op = convert_checked(array, dtype) if array.weak is int else convert(value_of(array), dtype)
        return TracedArray(op, rank0=Rank0.SCALAR)

    return substitute


#: Substitutes that need no more than their arguments.
SUBSTITUTES: dict[Any, Callable[..., Any]] = {
    type: _type, isinstance: _isinstance, issubclass: _issubclass, callable: _callable, np.dtype: _dtype,
    np.isscalar: _isscalar,
    **{kind: _scalar_class(kind) for kind in _SCALARS},
}  # fmt: skip


def _getattr(scope: Scope) -> Callable[..., Any]:
    def substitute(value: Any, name: str, *default: Any) -> Any:
        try:
            return scope.read_attr(value, name)
        except AttributeError:
            if default:
                return default[0]
            raise

    return substitute


def _hasattr(scope: Scope) -> Callable[..., Any]:
    def substitute(value: Any, name: str) -> bool:
        try:
            scope.read_attr(value, name)
        except AttributeError:
            return False
        except (TraceError, UnimplementedError):  # an attribute that NumPy's arrays have
            if not isinstance(value, (TracedArray, SizedArray)):
                raise
        return True

    return substitute


def _of_variables(function: Callable[..., Any]) -> Callable[[Scope], Callable[..., Any]]:
    """Return the substitute for `locals`, `vars` or `dir`, of which a rewritten function has more variables."""

    def in_scope(scope: Scope) -> Callable[..., Any]:
        def substitute(*value: Any) -> Any:
            if value:
                return scope.read_attr(value[0], "__dict__") if function is vars else function(*value)
            if current() is not None:
                raise TraceError(
                    f"{function.__name__}() is called while a function is traced, whose variables it cannot list",
                    where=user_line(), hint="use the variables by name",
                )  # fmt: skip
            own = {k: v for k, v in sys._getframe(1).f_locals.items() if not k.startswith(HOOKS)}
            return sorted(own) if function is dir else own

        return substitute

    return in_scope


def getter_by_name(function: Any, read: Callable[[Any, str], Any], call: Callable[[Any], Any]) -> Callable[..., Any]:
    """Return what does as an `operator.attrgetter` or `operator.methodcaller`, and reads attributes as given."""
    made, parts = cast(tuple[Any, tuple[Any, ...]], function.__reduce__())
    if isinstance(function, operator.attrgetter):
        paths = [name.split(".") for name in parts]
        found = [functools.partial(functools.reduce, read, path) for path in paths]
        return lambda obj: found[0](obj) if len(found) == 1 else tuple([one(obj) for one in found])
    bound = made if isinstance(made, functools.partial) else functools.partial(made)
    name, *args = (*bound.args, *parts)
    keywords = bound.keywords
    if (outside := outside_values()) is not None:
        args = [outside.default(v, f"an argument of {name}") for v in args]
        keywords = {key: outside.default(v, key) for key, v in keywords.items()}
    return lambda obj: call(read(obj, name))(*args, **keywords)


def _copying(function: Callable[..., Any]) -> Callable[[Scope], Callable[..., Any]]:
    """Return the substitute for `copy.copy` or `copy.deepcopy`, which read what objects hold by themselves."""

    def in_scope(scope: Scope) -> Callable[..., Any]:
        def substitute(value: Any, *memo: Any) -> Any:
            for part in _objects_in(value):
                scope.require_inside(part, f"{function.__name__} copies")
            if function is copy.copy:
                made = copy.copy(value)
                record_copies({id(value): made})
                return made
            copies: dict[int, Any] = memo[0] if memo and memo[0] is not None else {}
            made = copy.deepcopy(value, copies)
            record_copies(copies)
            return made

        return substitute

    return in_scope


def _objects_in(value: Any) -> Iterator[Any]:
    """Yield the objects of the user's classes in a value, also those that they hold."""
    pending, seen = [value], set()
    while pending:
        value = pending.pop()
        if id(value) in seen or isinstance(value, (type, np.ndarray, TracedArray, SizedArray, *_ATOMS)):
            continue
        seen.add(id(value))
        if isinstance(value, dict):
            pending += value.values()
        elif isinstance(value, (list, tuple, set)):
            pending += value
        else:
            yield value
            pending += getattr(value, "__dict__", {}).values()


def _of_object(name: str, change: Callable[[Scope], Callable[..., Any]]) -> Callable[[Scope], Callable[..., Any]]:
    """Return the substitute for `object.__setattr__` or `object.__delattr__`, which a class may replace."""
    original = getattr(object, name)

    def in_scope(scope: Scope) -> Callable[..., Any]:
        def substitute(obj: Any, *args: Any) -> None:
            if getattr(type(obj), name) is original:
                change(scope)(obj, *args)
                return
            scope.require_inside(obj, f"object.{name} changes")
            original(obj, *args)

        return substitute

    return in_scope


def _of_slot(name: str, access: Callable[[Scope], Callable[..., Any]]) -> Callable[[Scope], Callable[..., Any]]:
    """Return the substitute for a method of the descriptors of slots, as in ``A.w.__set__(obj, value)``."""
    original: Any = getattr(types.MemberDescriptorType, name)

    def in_scope(scope: Scope) -> Callable[..., Any]:
        def substitute(slot: types.MemberDescriptorType, obj: Any, *args: Any) -> Any:
            if getattr(type(obj), slot.__name__, None) is slot:
                return access(scope)(obj, slot.__name__, *args)
            scope.require_inside(obj, f"{slot.__qualname__}.{name} is called for")  # a slot that its class hides
            return original(slot, obj, *args)

        return substitute

    return in_scope


def _refused(function: Callable[..., Any]) -> Callable[[Scope], Callable[..., Any]]:
    """Return the substitute for a function that reads and changes what nothing records."""

    def substitute(*args: Any, **kwargs: Any) -> Any:
        if current() is None:
            return function(*args, **kwargs)
        raise TraceError(
            f"{function.__name__} is called while a function is traced, which does not see what it reads and changes",
            where=user_line(), hint="use names, getattr and setattr",
        )  # fmt: skip

    return lambda scope: substitute


class Globals:
    """Globals of a function as a dict, of which items are read and written by their names.

    Parameters
    ----------
    scope : Scope
        Names of the function.
    """

    def __init__(self, scope: Scope) -> None:
        self._scope = scope

    def __getitem__(self, name: str) -> Any:
        return self._scope.read_global(name)

    def __contains__(self, name: str) -> bool:
        return name in self._scope.globals

    def get(self, name: str, default: Any = None) -> Any:
        """Return the value of a global, or a default."""
        return self[name] if name in self else default  # noqa: SIM401 - this is that `get`

    def __setitem__(self, name: str, value: Any) -> None:
        self._scope.write_global(name, value)

    def __getattr__(self, name: str) -> Any:
        return _refused(globals)(self._scope)()

    def __iter__(self) -> Iterator[str]:
        return iter(self.keys())


def _globals(scope: Scope) -> Callable[..., Any]:
    return lambda: scope.globals if current() is None else Globals(scope)


#: Substitutes that read or write what the function sees, by its scope.
SUBSTITUTES_IN_SCOPE: dict[Any, Callable[[Scope], Callable[..., Any]]] = {
    getattr: _getattr, hasattr: _hasattr, setattr: lambda scope: scope.write_attr,
    delattr: lambda scope: scope.delete_attr, **{function: _of_variables(function) for function in (locals, vars, dir)},
    object.__getattribute__: lambda scope: scope.read_attr,
    object.__setattr__: _of_object("__setattr__", lambda scope: scope.write_attr),
    type.__setattr__: lambda scope: scope.write_attr,
    object.__delattr__: _of_object("__delattr__", lambda scope: scope.delete_attr),
    types.MemberDescriptorType.__get__: _of_slot(
        "__get__", lambda scope: lambda obj, name, owner=None: scope.read_attr(obj, name)
    ),
    types.MemberDescriptorType.__set__: _of_slot("__set__", lambda scope: scope.write_attr),
    types.MemberDescriptorType.__delete__: _of_slot("__delete__", lambda scope: scope.delete_attr),
    copy.copy: _copying(copy.copy), copy.deepcopy: _copying(copy.deepcopy),
    **{function: _refused(function) for function in (eval, exec)},
    globals: _globals,
}  # fmt: skip
