"""Objects that a function makes, of plain classes of the user, as containers of results: each call makes others."""

from __future__ import annotations

import weakref
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import is_dataclass
from types import MemberDescriptorType
from typing import Any, Final

from cyxla.errors import TraceError, UnimplementedError
from cyxla.numpy.rewriting.functions import lacks_source
from cyxla.numpy.rewriting.parts.python_state import attributes_of
from cyxla.numpy.tracing.containers import Kind, field_names, kind_of, register_kind

Created = Mapping[int, tuple[Any, type]]  # objects that the function has made, with their classes, by identity
_HINT: Final = "return arrays, numbers, and containers of them"


class NewObject:
    """Object of a result while a function is traced.

    Parameters
    ----------
    kind : type
        Class.
    names : tuple of str
        Names of its attributes, in the order in which they are set.
    parts : sequence
        Values of its attributes.
    """

    def __init__(self, kind: type, names: tuple[str, ...], parts: Sequence[Any]) -> None:
        self.kind, self.names, self.parts = kind, names, parts


def _build(key: tuple[type, tuple[str, ...]], parts: Sequence[Any]) -> Any:
    """Make an object of its attributes, without running code of its class."""
    made: Any = _new(key[0])
    for name, part in zip(key[1], parts, strict=True):
        _set(made, name, part)
    return made


_new, _set = object.__new__, object.__setattr__
NEW_OBJECT = Kind(
    lambda v: v.parts, lambda v: (v.kind, v.names), lambda v: [f".{n}" for n in v.names], _build
)  # fmt: skip
register_kind(NewObject, NEW_OBJECT)


def as_container(value: Any, created: Created) -> Any:
    """Return an object that the function has made as a container of its attributes; other values as they are.

    Parameters
    ----------
    value : object
        Part of a result.
    created : mapping
        Objects that the function has made.
    """
    if isinstance(value, dict):
        _refuse_keys(value, created)
    if is_dataclass(value) and not isinstance(value, type):
        names = tuple(attributes_of(value))
        return value if names == field_names(value) else _container(value)
    found = created.get(id(value))
    if found is None or found[1] is not type(value):
        return value
    inits = [vars(base).get("__init__") for base in type(value).__mro__]
    if any(map(lacks_source, inits)):
        raise _refused(value, "whose __init__ has no source")
    return _container(value)


def _container(value: Any) -> NewObject:
    kind, attributes = type(value), attributes_of(value)
    for name in attributes:
        if not isinstance(name, str) or not _is_plain_attribute(kind, name):
            raise _refused(value, f"whose attribute {name} its class computes")
    if weakref.getweakrefcount(value):
        raise _refused(value, "to which there is a weak reference")
    return NewObject(kind, tuple(attributes), list(attributes.values()))


def _is_plain_attribute(kind: type, name: str) -> bool:
    """Return True if `object.__setattr__` does nothing but store an attribute in the object."""
    found = next((vars(base)[name] for base in kind.__mro__ if name in vars(base)), None)
    return isinstance(found, MemberDescriptorType) or not hasattr(type(found), "__set__")


def _refused(value: Any, reason: str) -> UnimplementedError:
    return UnimplementedError(f"a new {type(value).__name__} is returned, {reason}", hint=_HINT)


def _refuse_keys(value: dict[Any, Any], created: Created) -> None:
    """Refuse a dict with keys that the function has made, which would be the same ones in each call."""
    found = next((part for key in value for part in _parts_of_key(key) if id(part) in created), None)
    if found is not None:
        raise TraceError(f"a dict of the result has a new {type(found).__name__} as a key", hint="use another key")


def _parts_of_key(key: Any) -> Iterator[Any]:
    yield key
    if isinstance(key, (tuple, frozenset)):
        for part in key:
            yield from _parts_of_key(part)


def with_parts(value: Any, parts: Sequence[Any]) -> Any:
    """Return a container of other parts, in the form that it has while a function is traced."""
    if isinstance(value, NewObject):
        return NewObject(value.kind, value.names, parts)
    kind = kind_of(value)
    assert kind is not None
    return kind.build(kind.key(value), parts)


def steps_of(value: Any, parts: Sequence[Any]) -> Sequence[int | str]:
    """Return the steps to the parts of a container: numbers, or the names of attributes."""
    return value.names if isinstance(value, NewObject) else range(len(parts))


def part_at(value: Any, step: int | str) -> Any:
    """Return the part of a container, or of an object that `NewObject` has become, behind a step."""
    if isinstance(step, str):
        return object.__getattribute__(value, step)
    kind = kind_of(value)
    assert kind is not None
    return kind.parts(value)[step]
