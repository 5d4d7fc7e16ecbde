"""Objects that a function makes, of plain classes of the user, as containers: each call, or branch, makes others."""

from __future__ import annotations

import weakref
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import is_dataclass
from types import MemberDescriptorType
from typing import Any, Final

from cyxla.errors import TraceError, UnimplementedError
from cyxla.numpy.rewriting.parts.python_state import PythonState, attributes_of
from cyxla.numpy.rewriting.syntax.source import lacks_source
from cyxla.numpy.tracing.containers import Kind, Tree, field_names, kind_of, register_kind
from cyxla.numpy.tracing.trace import require_current, user_line

Created = Mapping[int, tuple[Any, type]]  # objects that the function has made, with their classes, by identity
_HINT: Final = "return arrays, numbers, and containers of them"


class NewObject:
    """Attributes of an object, in place of the object.

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


class JoinedObject(NewObject):
    """Attributes of an object that a side of a branch has made: another one, made of those of both sides, follows."""


def _build_recorded(key: tuple[type, tuple[str, ...]], parts: Sequence[Any]) -> Any:
    made = _build(key, parts)
    require_current().program.created[id(made)] = made, key[0]
    return made


register_kind(JoinedObject, NEW_OBJECT._replace(build=_build_recorded))


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
    if _is_dataclass(value):
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
    return UnimplementedError(f"a new {type(value).__name__} is a result, {reason}", hint=_HINT)


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


class _Kept:
    """List, dict or object that was there before a branch, as a part of a value: it stays the same one."""

    def __init__(self, value: Any) -> None:
        self.value = value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Kept) and other.value is self.value

    def __hash__(self) -> int:
        return id(self.value)


register_kind(_Kept, Kind(lambda v: (), lambda v: v, lambda v: (), lambda key, parts: key.value))


def first_kept(tree: Tree) -> Any:
    """Return the first list, dict or object in a value that was there before a branch; None without one."""
    if isinstance(tree.key, _Kept):
        return tree.key.value
    return next((found for child in tree.children if (found := first_kept(child)) is not None), None)


class SideOfBranch:
    """Containers and objects in the values that a side of a branch leaves.

    Parameters
    ----------
    before : PythonState
        Objects before the branch.
    count : int
        Number of objects that the function had made before the side.
    """

    def __init__(self, before: PythonState, count: int) -> None:
        created = require_current().program.created
        self._before = before
        self._created = {key: created[key] for key in list(created)[count:]}
        self._seen: set[int] = set()

    def was_there(self, value: Any) -> bool:
        """Return True for a container or object from before the branch."""
        return kind_of(value) is not None and self._before.has(value)

    def as_container(self, value: Any) -> Any:
        """Return a value with the objects that the side has made as containers of their attributes.

        Raises
        ------
        TraceError
            One of them has several names after the side; each would be another object after the branch.
        """
        if self._before.has(value):
            return value
        container = as_container(value, self._created)
        kind = kind_of(container)
        if kind is None or type(value).__module__.partition(".")[0] == "cyxla":
            return value
        if id(value) in self._created:
            self._require_one_name(value)
        parts = kind.parts(container)
        made = [self._part(part) for part in parts]
        if isinstance(container, NewObject):
            return JoinedObject(container.kind, container.names, made)
        return value if all(m is p for m, p in zip(made, parts, strict=True)) else kind.build(kind.key(value), made)

    def _part(self, value: Any) -> Any:
        return _Kept(value) if self.was_there(value) else self.as_container(value)

    def _require_one_name(self, value: Any) -> None:
        if id(value) in self._seen:
            raise TraceError(
                f"a branch on a traced condition makes a {type(value).__name__} with several names",
                where=user_line(), hint="make it before the branch",
            )  # fmt: skip
        self._seen.add(id(value))


def _is_dataclass(value: Any) -> bool:
    return is_dataclass(value) and not isinstance(value, type)
