"""Changes of containers among the arguments: a function gets copies of them, which are compared when it has run."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import is_dataclass
from typing import Any, NamedTuple

from cyxla.numpy.state.effects import DELETED, Effect, Outside, set_attribute, set_item
from cyxla.numpy.tracing.arrays.sized_array import SizedArray
from cyxla.numpy.tracing.containers import kind_of
from cyxla.records import dataclass

Step = tuple[Callable[[Any, Any], Any], Any]  # function of a container and a key that returns the part, and the key


class Place(NamedTuple):
    """Place of a container among the values passed to a call.

    Attributes
    ----------
    source : int
        Index of the value.
    steps : tuple of Step
        Steps from the value to the container.
    """

    source: int
    steps: tuple[Step, ...]

    def find(self, passed: Sequence[Any]) -> Any:
        """Return the container in a call."""
        value = passed[self.source]
        for get, key in self.steps:
            value = get(value, key)
        return value


@dataclass(frozen=True)
class ArgumentChange:
    """Change of a container among the arguments.

    Attributes
    ----------
    change : callable
        Function of the container, the key, and the new value.
    place : Place
        Place of the container.
    key : object
        Key or name of the changed part; None for the whole.
    text : str
        Description for messages.
    """

    change: Callable[[Any, Any, Any], None]
    place: Place
    key: Any
    text: str

    def apply_to(self, passed: Sequence[Any], value: Any) -> None:
        """Make the change in a call with a computed value."""
        self.change(self.place.find(passed), self.key, _with_containers(value, passed))


@dataclass(frozen=True)
class EffectWithArguments:
    """Change of an object from outside, whose new value holds containers of the arguments.

    Attributes
    ----------
    effect : Effect
        Change of the object.
    """

    effect: Effect

    def apply_to(self, passed: Sequence[Any], value: Any) -> None:
        """Make the change in a call with a computed value."""
        self.effect.apply(_with_containers(value, passed))


class _Copied(NamedTuple):
    """Container that a function got, with its first contents."""

    value: Any
    text: str
    place: Place
    contents: dict[Any, Any]


class ArgumentContainers:
    """Containers among the arguments of a traced function.

    Parameters
    ----------
    arguments : sequence of (str, int or None, object)
        Name, index among the values passed, and copy of each argument.
    """

    def __init__(self, arguments: Sequence[tuple[str, int | None, Any]]) -> None:
        self._copied: list[_Copied] = []
        for name, source, value in arguments:
            if source is not None:
                self._add(value, name, Place(source, ()))
        self._places = {id(c.value): c.place for c in self._copied}

    def _add(self, value: Any, text: str, place: Place) -> None:
        if kind_of(value) is None or isinstance(value, SizedArray):
            return
        if not isinstance(value, _CONTAINERS) and not is_dataclass(value):
            return
        contents = dict(_contents(value))
        if not isinstance(value, tuple):
            self._copied.append(_Copied(value, text, place, contents))
        get = getattr if is_dataclass(value) else _item
        for key, part in contents.items():
            step = f".{key}" if get is getattr else f"[{key!r}]"
            self._add(part, text + step, Place(place.source, (*place.steps, (get, key))))

    def changes(self) -> list[tuple[ArgumentChange, Any]]:
        """Return the changes that the function has made, with the new values."""
        return [change for copied in self._copied for change in _changes(copied)]

    def with_arguments(self, effect: Effect, value: Any) -> Effect | EffectWithArguments:
        """Return a change of an object from outside, for a new value."""
        return EffectWithArguments(effect) if self._holds_container(value) else effect

    def _holds_container(self, value: Any) -> bool:
        return id(value) in self._places or any(map(self._holds_container, _parts(value)))

    def as_result(self, value: Any) -> Any:
        """Return a container of the arguments as a part of a changed one; None for other values."""
        place = self._places.get(id(value))
        return None if place is None else Outside(place)


_CONTAINERS = (list, tuple, dict)


def _item(container: Any, key: Any) -> Any:
    return container[key]


def _contents(value: Any) -> Iterator[tuple[Any, Any]]:
    if isinstance(value, dict):
        return iter(value.items())
    return iter(vars(value).items()) if is_dataclass(value) and hasattr(value, "__dict__") else enumerate(_parts(value))


def _parts(value: Any) -> Sequence[Any]:
    kind = kind_of(value)
    return () if kind is None else kind.parts(value)


def _changes(copied: _Copied) -> Iterator[tuple[ArgumentChange, Any]]:
    now = dict(_contents(copied.value))
    before = copied.contents
    if now.keys() == before.keys() and all(now[k] is before[k] for k in now):
        return
    if isinstance(copied.value, list):
        yield ArgumentChange(_replace_elements, copied.place, None, copied.text), list(copied.value)
        return
    change = set_attribute if is_dataclass(copied.value) else set_item
    for key in before:
        if key not in now:
            yield ArgumentChange(change, copied.place, key, copied.text), DELETED
    for key, value in now.items():
        if key not in before or before[key] is not value:
            yield ArgumentChange(change, copied.place, key, copied.text), value


def _replace_elements(owner: Any, key: Any, value: list[Any]) -> None:
    owner[:] = value


def _with_containers(value: Any, passed: Sequence[Any]) -> Any:
    """Replace the places of containers in a new value by the containers; values without any stay as they are."""
    if isinstance(value, Place):
        return value.find(passed)
    if type(value) not in _CONTAINERS:
        return value
    parts = list(value.values() if type(value) is dict else value)
    found = [_with_containers(part, passed) for part in parts]
    if all(new is part for new, part in zip(found, parts, strict=True)):
        return value
    return dict(zip(value, found, strict=True)) if type(value) is dict else type(value)(found)
