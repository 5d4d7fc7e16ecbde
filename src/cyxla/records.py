"""`dataclass` whose methods are written when a class is first used, all at once.

Writing the methods of one class takes `dataclasses` about a millisecond, and a process uses half of the classes that it
imports. The classes are dataclasses in every respect: `fields`, `replace`, subclasses, copies and pickles find complete
ones. Type checkers see the function of `dataclasses`.
"""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Callable, Iterable
from reprlib import recursive_repr
from typing import TYPE_CHECKING, Any

from cyxla.forking import new_lock

if TYPE_CHECKING:
    from dataclasses import dataclass
else:

    def dataclass(cls=None, /, **options):
        """Make a class a dataclass, like `dataclasses.dataclass`; at once if its methods cannot be written later."""
        if cls is None:
            return lambda cls: dataclass(cls, **options)
        return _deferred(cls, options) if _is_deferrable(cls, options) else dataclasses.dataclass(**options)(cls)


__all__ = ["dataclass"]

_FIELDS = "__dataclass_fields__"
_OPTIONS = frozenset({"frozen", "eq", "repr"})
# Methods and attributes of a class that are there from its beginning, or that decide on its other methods.
_AT_ONCE = frozenset({"__init__", "__new__", "__setstate__", "__slots__", "__setattr__", "__delattr__"})

_lock = new_lock()


def _is_deferrable(cls: type, options: dict[str, Any]) -> bool:
    return options.keys() <= _OPTIONS and not cls.__dict__.keys() & _AT_ONCE


def _deferred(cls: Any, options: dict[str, Any]) -> Any:
    """Put methods and attributes in place that complete the class."""

    def complete() -> None:
        with _lock:
            if cls.__dict__["__init__"] is first_init:
                _complete(cls, **options)

    def first_init(self: Any, *args: Any, **kwargs: Any) -> None:
        complete()
        cls.__init__(self, *args, **kwargs)

    def setstate(self: Any, state: dict[str, Any]) -> None:  # of a copy or pickle, which calls no __init__
        complete()
        self.__dict__.update(state)

    cls.__init__ = first_init
    cls.__setstate__ = setstate
    cls.__signature__ = _Deferred(complete, inspect.signature)
    setattr(cls, _FIELDS, _Deferred(complete, lambda owner: getattr(owner, _FIELDS)))
    if cls.__doc__ is None:
        cls.__doc__ = cls.__name__  # in place of the signature, which takes long to write
    return cls


class _Deferred:
    """Attribute of an incomplete class.

    Parameters
    ----------
    complete : callable
        Function that completes the class.
    value : callable
        Function that returns the attribute of the complete class.
    """

    def __init__(self, complete: Callable[[], None], value: Callable[[type], Any]) -> None:
        self.complete, self.value = complete, value

    def __get__(self, instance: object, owner: type) -> Any:
        self.complete()
        return self.value(owner)


def _complete(cls: Any, *, frozen: bool = False, eq: bool = True, repr: bool = True) -> None:
    """Write the methods, ``__init__`` last: until then, other threads that create an instance wait for the lock."""
    del cls.__signature__
    if any(hasattr(base, _FIELDS) for base in cls.__mro__[1:]) or cls.__dict__.keys() & {"__eq__", "__hash__"}:
        dataclasses.dataclass(init=False, frozen=frozen, eq=eq, repr=repr)(cls)
        writer = _Writer(cls)
    else:
        dataclasses.dataclass(init=False, eq=False, repr=False)(cls)  # which finds the fields
        parameters = cls.__dataclass_params__
        parameters.frozen, parameters.eq, parameters.repr = frozen, eq, repr
        writer = _Writer(cls)
        if eq:
            writer.add_comparison()
        if frozen:
            cls.__setattr__, cls.__delattr__ = _frozen_methods(cls, {f.name for f in writer.fields})
        if repr and "__repr__" not in cls.__dict__:
            cls.__repr__ = _repr([f.name for f in writer.fields if f.repr])
    writer.add_init()
    writer.write()


class _Writer:
    """Text of the methods of a dataclass.

    Parameters
    ----------
    cls : type
        Class with its fields.
    """

    def __init__(self, cls: Any) -> None:
        self.cls, self.fields = cls, dataclasses.fields(cls)
        self.names: dict[str, Any] = {"__missing__": dataclasses.MISSING, "__assign__": object.__setattr__}
        self.methods: dict[str, str] = {}

    def add_init(self) -> None:
        """Add ``__init__``."""
        is_frozen = self.cls.__dataclass_params__.frozen
        parameters, body = ["self"], []
        for field in self.fields:
            default, value = self._default(field)
            if field.init:
                parameters.append(field.name + default)
            elif field.default_factory is dataclasses.MISSING:
                continue  # the class has the default, if there is one
            body.append(f"__assign__(self, '{field.name}', {value})" if is_frozen else f"self.{field.name} = {value}")
        if hasattr(self.cls, "__post_init__"):
            body.append("self.__post_init__()")
        self.methods["__init__"] = _function("__init__", parameters, body or ["pass"])

    def _default(self, field: dataclasses.Field[Any]) -> tuple[str, str]:
        """Return the default of a parameter, and the value of its field."""
        name = field.name
        if field.default_factory is not dataclasses.MISSING:
            self.names[f"__make_{name}__"] = field.default_factory
            made = f"__make_{name}__()"
            return "=__missing__", f"{made} if {name} is __missing__ else {name}" if field.init else made
        if field.default is dataclasses.MISSING:
            return "", name
        self.names[f"__default_{name}__"] = field.default
        return f"=__default_{name}__", name

    def add_comparison(self) -> None:
        """Add ``__eq__``, and ``__hash__`` for frozen classes; others are not hashable."""
        compared = [f.name for f in self.fields if f.compare]
        hashed = [f.name for f in self.fields if (f.compare if f.hash is None else f.hash)]
        own, other = _tuple("self", compared), _tuple("other", compared)
        body = ["if other.__class__ is self.__class__:", f"  return {own} == {other}", "return NotImplemented"]
        self.methods["__eq__"] = _function("__eq__", ["self", "other"], body)
        if self.cls.__dataclass_params__.frozen:
            self.methods["__hash__"] = _function("__hash__", ["self"], [f"return hash({_tuple('self', hashed)})"])
        else:
            self.cls.__hash__ = None

    def write(self) -> None:
        """Compile the text, and set the methods in its order."""
        exec("\n".join(self.methods.values()), self.names)
        for name in self.methods:
            method = self.names[name]
            method.__qualname__, method.__module__ = f"{self.cls.__qualname__}.{name}", self.cls.__module__
        self.names["__init__"].__annotations__ = {f.name: f.type for f in self.fields if f.init} | {"return": None}
        for name in self.methods:
            setattr(self.cls, name, self.names[name])


def _function(name: str, parameters: Iterable[str], body: Iterable[str]) -> str:
    return f"def {name}({', '.join(parameters)}):\n" + "".join(f"  {line}\n" for line in body)


def _tuple(name: str, fields: Iterable[str]) -> str:
    return f"({''.join(f'{name}.{field}, ' for field in fields)})"


def _repr(names: list[str]) -> Callable[[Any], str]:
    @recursive_repr("...")
    def __repr__(self: Any) -> str:  # noqa: N807
        return f"{type(self).__qualname__}({', '.join(f'{name}={getattr(self, name)!r}' for name in names)})"

    return __repr__


def _frozen_methods(cls: Any, names: set[str]) -> tuple[Callable[[Any, str, Any], None], Callable[[Any, str], None]]:
    def __setattr__(self: Any, name: str, value: Any) -> None:  # noqa: N807
        if type(self) is cls or name in names:
            raise dataclasses.FrozenInstanceError(f"cannot assign to field {name!r}")
        super(cls, self).__setattr__(name, value)

    def __delattr__(self: Any, name: str) -> None:  # noqa: N807
        if type(self) is cls or name in names:
            raise dataclasses.FrozenInstanceError(f"cannot delete field {name!r}")
        super(cls, self).__delattr__(name)

    return __setattr__, __delattr__
