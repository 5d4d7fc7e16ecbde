"""Mirrors: lists and dicts from outside as a traced function sees them.

A mirror is a list or dict of its own with traced values for the arrays of the real one. Changes of it are found when
the trace ends, by comparison with its first contents. A list is read when the function needs its elements: one to which
the function only appends may have any length.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

from cyxla.numpy.state.effects import (
    DELETED,
    Effect,
    extend,
    move_to_end,
    moved_keys,
    owner_of,
    replace_elements,
    set_item,
)
from cyxla.numpy.tracing.containers import complete_lists


class Reader(Protocol):
    """Reader of containers from outside."""

    def elements(self, mirror: Any, parts: Sequence[Any]) -> list[Any]:
        """Return the elements of a container as a traced function sees them, and make the program depend on them."""


class MirrorList(list):  # type: ignore[type-arg]
    """A list from outside.

    Parameters
    ----------
    real : list
        The list itself.
    reader : Reader
        Reader of its elements.
    """

    __slots__ = ("first", "reader", "real")

    def __init__(self, real: list[Any], reader: Reader) -> None:
        super().__init__()
        self.real, self.reader = real, reader
        self.first: list[Any] | None = None

    def fill(self) -> None:
        """Read the elements, unless that was done."""
        if self.first is None:
            self.first = []
            try:
                self.first = self.reader.elements(self, self.real)
            except BaseException:
                self.first = None  # a later read fails again
                raise
            list.__setitem__(self, slice(0, 0), self.first)

    materialize = fill

    def effects(self, text: str) -> list[tuple[Effect, Any]]:
        """Return the change of the list, with the new elements."""
        now = list(list.__iter__(self))
        if self.first is None:
            return [(Effect(extend, owner_of(self.real), None, text), now)] if now else []
        if len(now) == len(self.first) and all(a is b for a, b in zip(now, self.first, strict=True)):
            return []
        return [(Effect(replace_elements, owner_of(self.real), None, text), now)]

    def __reduce__(self) -> Any:
        self.fill()
        return list, (list(list.__iter__(self)),)


def _filling(name: str) -> Callable[..., Any]:
    original = getattr(list, name)

    def method(self: MirrorList, *args: Any, **kwargs: Any) -> Any:
        self.fill()
        complete_lists(args)
        return original(self, *args, **kwargs)

    method.__name__ = name
    method.__doc__ = f"Read the elements, then do as ``list.{name}``."
    return method


for _name in (
    "__add__", "__contains__", "__delitem__", "__eq__", "__ge__", "__getitem__", "__gt__", "__imul__", "__iter__",
    "__le__", "__len__", "__lt__", "__mul__", "__ne__", "__repr__", "__reversed__", "__rmul__", "__setitem__", "clear",
    "copy", "count", "index", "insert", "pop", "remove", "reverse", "sort",
):  # fmt: skip
    setattr(MirrorList, _name, _filling(_name))


def _add_reflected(self: MirrorList, other: Any) -> Any:
    """Read the elements before ``other + self``, for which C takes those that a list has at the moment."""
    self.fill()
    return NotImplemented


MirrorList.__radd__ = _add_reflected  # type: ignore[attr-defined]


class MirrorDict(dict):  # type: ignore[type-arg]
    """A dict from outside.

    Parameters
    ----------
    real : dict
        The dict itself.
    reader : Reader
        Reader of its values.
    """

    __slots__ = ("first", "real")

    def __init__(self, real: dict[Any, Any], reader: Reader) -> None:
        super().__init__()
        self.real = real
        self.first = dict(zip(real, reader.elements(self, list(real.values())), strict=True))
        self.update(self.first)

    def effects(self, text: str) -> list[tuple[Effect, Any]]:
        """Return the changes of the dict, with the new values."""
        owner = owner_of(self.real)
        deleted = [(k, DELETED) for k in self.first if k not in self]
        changed = [(k, v) for k, v in self.items() if k not in self.first or self.first[k] is not v]
        found = [(Effect(set_item, owner, k, f"{text}[{k!r}]"), v) for k, v in (*deleted, *changed)]
        moved = moved_keys(self.first, self)
        return [*found, (Effect(move_to_end, owner, moved, text), None)] if moved else found
