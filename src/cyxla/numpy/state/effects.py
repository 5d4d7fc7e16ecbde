"""Effects: changes of objects from outside, which are made after each run with the values that it computed."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any, NamedTuple
from weakref import ref

from cyxla.numpy.tracing.containers import Kind, register_kind


class Outside:
    """An object from outside, as a part of a value."""

    def __init__(self, value: Any) -> None:
        self.value = value


OUTSIDE = Kind(lambda v: (), lambda v: v.value, lambda v: (), lambda key, parts: key)
register_kind(Outside, OUTSIDE)


class Deleted:
    """Value of a name or an attribute that is deleted."""


DELETED = Outside(Deleted)


class Effect(NamedTuple):
    """Change of an object from outside.

    Attributes
    ----------
    change : callable
        Function of the object, the name or key, and the new value.
    owner : callable
        Function that returns the object.
    key : object
        Name or key.
    text : str
        Description for messages.
    """

    change: Callable[[Any, Any, Any], None]
    owner: Callable[[], Any]
    key: Any
    text: str


def owner_of(value: Any) -> Callable[[], Any]:
    """Return a function that returns an object, without keeping it alive if that is possible."""
    try:
        return ref(value)
    except TypeError:
        return lambda: value


def set_attribute(owner: Any, name: str, value: Any) -> None:
    """Set or delete an attribute, which a function may have made only to delete it."""
    if value is Deleted:
        with suppress(AttributeError):
            delattr(owner, name)
    else:
        setattr(owner, name, value)


def has_own_attribute(owner: Any, name: str) -> bool:
    """Return True unless an attribute is one of the class, which setting it in the object hides."""
    if name in getattr(owner, "__dict__", ()):
        return True
    found = getattr(type(owner), name, None)
    return hasattr(type(found), "__set__")  # a slot or a property, which is set in its own way


def renew_attribute(owner: Any, name: str, value: Any) -> None:
    """Set an attribute that was deleted before, and so is the last one of the object."""
    set_attribute(owner, name, Deleted)
    set_attribute(owner, name, value)


def set_item(owner: Any, key: Any, value: Any) -> None:
    """Set or delete an item, which a function may have made only to delete it."""
    if value is Deleted:
        owner.pop(key, None)
    else:
        owner[key] = value


def set_cell(cell: Any, name: str, value: Any) -> None:
    """Set or empty a cell of a closure."""
    if value is Deleted:
        with suppress(ValueError):
            del cell.cell_contents
    else:
        cell.cell_contents = value


def present_value(change: Callable[[Any, Any, Any], None], owner: Any, key: Any) -> Any:
    """Return the value that a change replaces; `Deleted` if there is none."""
    if change is set_attribute:
        return getattr(owner, key, Deleted)
    if change is set_item:
        return owner.get(key, Deleted)
    try:
        return owner.cell_contents
    except ValueError:  # it is empty
        return Deleted


def replace_elements(owner: list[Any], key: Any, value: list[Any]) -> None:
    """Replace the elements of a list."""
    owner[:] = value


def extend(owner: list[Any], key: Any, value: list[Any]) -> None:
    """Append elements to a list."""
    owner.extend(value)


def moved_keys(before: Mapping[Any, Any], after: Mapping[Any, Any]) -> tuple[Any, ...]:
    """Return the keys to be moved to the end of a dict, after its items were set and deleted, for the same order."""
    order = list(after)
    unmoved = [*[k for k in before if k in after], *[k for k in after if k not in before]]
    first = next((n for n, (k, other) in enumerate(zip(order, unmoved, strict=True)) if k != other), len(order))
    return tuple(order[first:])


def move_to_end(owner: dict[Any, Any], keys: Sequence[Any], value: None) -> None:
    """Move items of a dict to its end, in the order of some keys."""
    for key in keys:
        owner[key] = owner.pop(key)
