"""`dataclass` whose methods are written when a class is first used.

Writing the methods of one class takes `dataclasses` about a millisecond, most of it for compiling their text, and a
process uses half of the classes that it imports. Here, the text is compiled once for all classes with as many fields of
the same kinds, which differ only in names. The classes are dataclasses in every respect: `fields`, `replace`,
subclasses, copies and pickles find complete ones. Type checkers see the function of `dataclasses`.
"""

from __future__ import annotations

import dataclasses
import functools
import inspect
import reprlib
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import MISSING, Field, FrozenInstanceError
from operator import attrgetter
from types import CellType, CodeType, FunctionType
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

_FIELDS, _PARAMS, _POST_INIT = "__dataclass_fields__", "__dataclass_params__", "__post_init__"
_OPTIONS = frozenset({"frozen", "eq", "repr"})
# Methods and attributes of a class that are there from its beginning, or that decide on its other methods.
_AT_ONCE = frozenset({"__init__", "__new__", "__setstate__", "__slots__", "__setattr__", "__delattr__"})
# Methods that are written at the first use.
_WRITTEN = frozenset({"__init__", "__eq__", "__hash__", "__repr__", "__setattr__", "__delattr__"})

_lock = new_lock()


def _is_deferrable(cls: type, options: dict[str, Any]) -> bool:
    # Python makes no instance of a class with abstract methods, so that its first instance could not complete it.
    abstract: frozenset[str] = getattr(cls, "__abstractmethods__", frozenset())
    return options.keys() <= _OPTIONS and not (cls.__dict__.keys() & _AT_ONCE or abstract & _WRITTEN)


def _deferred(cls: Any, options: dict[str, Any]) -> Any:
    """Put methods and attributes in place that complete the class."""

    def complete() -> None:
        with _lock:
            if cls.__dict__["__init__"] is first_init:
                _complete(cls, **options)
                del cls.__signature__, cls.__setstate__  # last: copies in other threads wait for the lock until then

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


class _Absent:
    """Default value of a parameter whose field has a factory."""

    def __repr__(self) -> str:
        return "<factory>"


_ABSENT = _Absent()
# Text of the value that `__init__` gives to a field, by `init` and the presence of a factory. A field with neither has
# the attribute of the class.
_VALUES = {
    (True, False): "{0}",
    (True, True): "new{0}() if {0} is absent else {0}",
    (False, True): "new{0}()",
}
# Texts of methods, with tuples of the fields of two objects.
_COMPARISONS = {
    "__eq__": """def __eq__(self, other):
 if other.__class__ is self.__class__:
  return {self} == {other}
 return NotImplemented""",
    "__hash__": """def __hash__(self):
 return hash({self})""",
}


def _complete(cls: Any, *, frozen: bool = False, eq: bool = True, repr: bool = True) -> None:
    """Write the methods, ``__init__`` last: until then, other threads that create an instance wait for the lock."""
    # `dataclasses` only collects the fields, and compares `frozen` with that of bases; else it is not told of `frozen`,
    # for which it would write methods.
    is_derived = any(map(dataclasses.is_dataclass, cls.__bases__))
    dataclasses.dataclass(init=False, repr=False, eq=False, frozen=frozen and is_derived)(cls)
    options = getattr(cls, _PARAMS)
    options.init, options.repr, options.eq, options.frozen = True, repr, eq, frozen
    fields = dataclasses.fields(cls)
    methods: dict[str, Any] = {}
    if eq:
        _write_hash(cls, fields, frozen)
        methods["__eq__"] = _comparison(cls, "__eq__", [f.name for f in fields if f.compare])
    if repr:
        methods["__repr__"] = _repr([f.name for f in fields if f.repr])
    if frozen:
        methods |= _refusals(cls, frozenset([f.name for f in fields]))
    for name, method in methods.items():
        if name not in vars(cls):
            setattr(cls, name, _of_class(cls, name, method))
    cls.__init__ = _init(cls, fields, frozen) if _has_plain_init(cls, fields) else _init_of_dataclasses(cls, frozen)


def _of_class(cls: type, name: str, method: Any) -> Any:
    """Give a function the names of a method of a class."""
    method.__module__, method.__name__, method.__qualname__ = cls.__module__, name, f"{cls.__qualname__}.{name}"
    return method


def _write_hash(cls: Any, fields: Iterable[Field[Any]], frozen: bool) -> None:
    """Write ``__hash__`` of a class that is compared by fields, unless its body has one."""
    # Python itself sets it to None where a body has __eq__ alone.
    if vars(cls).get("__hash__") is None and ("__eq__" in vars(cls) or "__hash__" not in vars(cls)):
        names = [f.name for f in fields if (f.compare if f.hash is None else f.hash)]
        cls.__hash__ = _comparison(cls, "__hash__", names) if frozen else None


def _comparison(cls: type, method: str, names: Sequence[str]) -> FunctionType:
    """Return ``__eq__`` or ``__hash__`` of the tuple of some fields."""
    return _function(cls, _comparison_code(method, len(names)), names, None, {})


def _repr(names: Sequence[str]) -> Callable[[Any], str]:
    """Return ``__repr__`` that writes some fields."""
    text = f"%s({', '.join([f'{name}=%r' for name in names])})"
    values = attrgetter("__class__.__qualname__", *names)

    @reprlib.recursive_repr()
    def written(self: Any) -> str:
        return text % values(self)

    return written


def _refusals(cls: Any, names: frozenset[str]) -> dict[str, Callable[..., None]]:
    """Return ``__setattr__`` and ``__delattr__`` of a frozen class, whose subclasses may have other attributes."""

    def assign(self: Any, name: str, value: Any) -> None:
        if type(self) is cls or name in names:
            raise FrozenInstanceError(f"cannot assign to field {name!r}")
        super(cls, self).__setattr__(name, value)

    def delete(self: Any, name: str) -> None:
        if type(self) is cls or name in names:
            raise FrozenInstanceError(f"cannot delete field {name!r}")
        super(cls, self).__delattr__(name)

    return {"__setattr__": assign, "__delattr__": delete}


def _has_plain_init(cls: type, fields: Sequence[Field[Any]]) -> bool:
    """Return whether the parameters of ``__init__`` are fields of instances, by position, those with defaults last."""
    # `dataclasses` sets kw_only of parameters, with or without a field, and not of variables of the class.
    parameters = [f for f in getattr(cls, _FIELDS).values() if f.kw_only is not MISSING]
    is_optional = [_default(f) is not MISSING for f in fields if f.init]
    is_plain = not any(f.kw_only or f.name == "self" for f in fields)
    return is_plain and parameters == list(fields) and is_optional == sorted(is_optional)


def _default(field: Field[Any]) -> Any:
    """Return the default value of the parameter of a field."""
    return field.default if field.default_factory is MISSING else _ABSENT


def _kind(field: Field[Any]) -> tuple[bool, bool]:
    """Return the key of a field in `_VALUES`."""
    return field.init, field.default_factory is not MISSING


def _init(cls: type, fields: Sequence[Field[Any]], frozen: bool) -> FunctionType:
    """Return ``__init__`` with the names, defaults and factories of a class."""
    written = [f for f in fields if _kind(f) in _VALUES]
    parameters = [f for f in fields if f.init]
    defaults = tuple([default for default in map(_default, parameters) if default is not MISSING])
    code = _init_code(frozen, hasattr(cls, _POST_INIT), tuple(map(_kind, written)))
    free: dict[str, Any] = {f"new_{k}": f.default_factory for k, f in enumerate(written)}
    free |= {"absent": _ABSENT, "assign": object.__setattr__}
    init = _function(cls, code, [f.name for f in written], defaults or None, free)
    init.__annotations__ = {**{f.name: f.type for f in parameters}, "return": None}
    return init


def _init_of_dataclasses(cls: Any, frozen: bool) -> Any:
    """Return ``__init__`` that `dataclasses` writes for a class whose base has the fields of this one."""
    base = type("Base", (), {name: getattr(cls, name) for name in (_FIELDS, _PARAMS, _POST_INIT) if hasattr(cls, name)})
    names = {name: getattr(cls, name) for name in ("__module__", "__qualname__", "__doc__")}
    twin: Any = dataclasses.dataclass(frozen=frozen, eq=False, repr=False)(type(cls.__name__, (base,), names))
    return vars(twin)["__init__"]


def _function(
    cls: type, code: CodeType, names: Sequence[str], defaults: tuple[Any, ...] | None, free: Mapping[str, Any]
) -> FunctionType:
    """Return a method of a class.

    Parameters
    ----------
    cls : type
        Class that the method is written for.
    code : CodeType
        Code in which fields have numbers for names.
    names : sequence of str
        Names of these fields.
    defaults : tuple or None
        Values of the last parameters.
    free : mapping
        Values of the names that the code takes from around the function.
    """
    new = {f"_{k}": name for k, name in enumerate(names)}
    renamed_code = code.replace(
        co_varnames=tuple([new.get(name, name) for name in code.co_varnames]),
        co_names=tuple([new.get(name, name) for name in code.co_names]),
        co_consts=tuple([new.get(value, value) for value in code.co_consts]),
        co_qualname=f"{cls.__qualname__}.{code.co_name}",
    )
    module = sys.modules.get(cls.__module__)
    closure = tuple([CellType(free[name]) for name in code.co_freevars])
    function = FunctionType(renamed_code, vars(module) if module else {}, code.co_name, defaults, closure)
    function.__module__ = cls.__module__
    return function


@functools.cache
def _comparison_code(method: str, size: int) -> CodeType:
    """Compile ``__eq__`` or ``__hash__`` of the tuple of `size` fields."""
    values = {owner: f"({''.join([f'{owner}._{k}, ' for k in range(size)])})" for owner in ("self", "other")}
    return _compiled(_COMPARISONS[method].format_map(values), ())


@functools.cache
def _init_code(frozen: bool, has_post_init: bool, kinds: tuple[tuple[bool, bool], ...]) -> CodeType:
    """Compile ``__init__`` for fields of these kinds, the keys of `_VALUES`."""
    names = [f"_{k}" for k in range(len(kinds))]
    parameters = ["self"] + [name for name, (is_parameter, _) in zip(names, kinds, strict=True) if is_parameter]
    assignment = "assign(self, '{0}', {1})" if frozen else "self.{0} = {1}"
    lines = [assignment.format(n, _VALUES[kind].format(n)) for n, kind in zip(names, kinds, strict=True)]
    lines += [f"self.{_POST_INIT}()"] if has_post_init else []
    body = "".join([f"\n {line}" for line in lines or ["pass"]])
    return _compiled(f"def __init__({', '.join(parameters)}):{body}", ["absent", "assign", *[f"new{n}" for n in names]])


def _compiled(text: str, free: Iterable[str]) -> CodeType:
    """Compile a function that takes the names in `free` from around it."""
    code = compile(f"def around({', '.join(free)}):\n " + text.replace("\n", "\n "), "<string>", "exec")
    for _ in range(2):
        code = next(value for value in code.co_consts if isinstance(value, CodeType))
    return code
