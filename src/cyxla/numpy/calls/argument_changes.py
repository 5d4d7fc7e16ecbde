"""Changes of containers among the arguments: a function gets copies of them, which are compared when it has run."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import is_dataclass
from functools import partial
from types import MethodType
from typing import Any, Final, NamedTuple

import numpy as np

from cyxla._native.dispatch import Source
from cyxla.errors import TraceError, UnimplementedError
from cyxla.numpy.calls.receivers import receiver_value
from cyxla.numpy.rewriting.parts.new_objects import NEW_OBJECT, Created, as_container, part_at, steps_of, with_parts
from cyxla.numpy.state.effects import DELETED, Effect, Outside, move_to_end, moved_keys, set_attribute, set_item
from cyxla.numpy.tracing.arrays.number_table import NumberTable, TableRow, note_result
from cyxla.numpy.tracing.arrays.sized_array import SizedArray
from cyxla.numpy.tracing.arrays.stacked_list import StackedList
from cyxla.numpy.tracing.containers import Tree, field_names, kind_of
from cyxla.numpy.tracing.hooks import hooks
from cyxla.numpy.tracing.trace import user_line
from cyxla.records import dataclass

MOST_PARTS: Final = 50_000  # of the containers that a function returns or changes
Step = tuple[Callable[[Any, Any], Any], Any]  # function of a container and a key that returns the part, and the key


class Place(NamedTuple):
    """Place of a container or an object among the values passed to a call.

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
        """Return the container or object in a call."""
        value = receiver_value(passed[self.source])
        for get, key in self.steps:
            value = get(value, key)
        return value


@dataclass(frozen=True)
class ArgumentChange:
    """Change of a container or an object among the arguments.

    Attributes
    ----------
    change : callable
        Function of the container, the key, and the new value.
    place : Place
        Place of the container or object.
    key : object
        Key or name of the changed part; None for the whole.
    text : str
        Description for messages.
    is_of_object : bool
        Whether it is an object that changes, not a container.
    """

    change: Callable[[Any, Any, Any], None]
    place: Place
    key: Any
    text: str
    is_of_object: bool = False


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
        self._tuples: list[_Copied] = []
        for name, source, value in arguments:
            if source is not None:
                self._add(value, name, Place(source, ()))
        self._places = {id(c.value): c.place for c in self._copied}
        self._places_with_tuples = self._places | {id(c.value): c.place for c in self._tuples}

    def _add(self, value: Any, text: str, place: Place) -> None:
        if kind_of(value) is None or isinstance(value, SizedArray):
            return
        if not isinstance(value, _CONTAINERS) and not is_dataclass(value):
            return
        contents = dict(_contents(value))
        copied = self._tuples if isinstance(value, tuple) else self._copied
        copied.append(_Copied(value, text, place, contents))
        get = getattr if is_dataclass(value) else _item
        for key, part in contents.items():
            step = f".{key}" if get is getattr else f"[{key!r}]"
            self._add(part, text + step, Place(place.source, (*place.steps, (get, key))))

    @property
    def identities(self) -> set[int]:
        """Identities of the containers."""
        return {id(c.value) for c in self._copied}

    def places(self) -> list[tuple[type, int, list[tuple[Source, Any]]]]:
        """Return the type of each container, the index of the value passed that has it, and the steps to it."""
        found = []
        for copied in self._copied:
            kind = next((kind for kind in (list, dict) if isinstance(copied.value, kind)), type(copied.value))
            steps = [(Source.ATTRIBUTE if get is getattr else Source.ITEM, key) for get, key in copied.place.steps]
            found.append((kind, copied.place.source, steps))
        return found

    def changes(self) -> list[tuple[ArgumentChange, Any]]:
        """Return the changes that the function has made, with the new values."""
        return [change for copied in self._copied for change in _changes(copied)]

    def as_result(self, value: Any) -> Any:
        """Return a list, dict or dataclass of the arguments as a part of a result; None for other values."""
        if isinstance(value, TableRow) and value.table.is_argument:
            return self._row(value)
        if isinstance(value, StackedList) and value.elements.is_row:
            raise TraceError("a row of a list of lists is returned, which a loop has found", hint="return an array")
        place = self._places.get(id(value))
        return None if place is None else Outside(place)

    def _row(self, row: TableRow) -> Outside:
        place = self._places.get(id(row.table))
        if place is None or type(row.number) is not int:
            raise TraceError("a row of an argument is returned, whose number is traced", hint="return an array")
        return Outside(Place(place.source, (*place.steps, (_item, row.number))))

    def as_part(self, value: Any) -> Any:
        """Return a container of the arguments, or a tuple of them, as a part of a changed one."""
        if isinstance(value, TableRow) and value.table.is_argument:
            return self._row(value)
        place = self._places_with_tuples.get(id(value))
        return None if place is None else Outside(place)


_CONTAINERS = (list, tuple, dict)
_NUMBERS = frozenset((bool, int, float, complex))


def _item(container: Any, key: Any) -> Any:
    return container[key]


def _contents(value: Any) -> Iterator[tuple[Any, Any]]:
    if isinstance(value, dict):
        return iter(value.items())
    return iter(vars(value).items()) if is_dataclass(value) and hasattr(value, "__dict__") else enumerate(_parts(value))


def _parts(value: Any) -> Sequence[Any]:
    if isinstance(value, StackedList):
        return value.contents()
    kind = kind_of(value)
    return () if kind is None else kind.parts(value)


def _changes(copied: _Copied) -> Iterator[tuple[ArgumentChange, Any]]:
    if isinstance(copied.value, NumberTable):
        rows = copied.value.written_numbers()
        if rows is not None:
            yield ArgumentChange(_replace_numbers, copied.place, None, copied.text), rows
        return
    now = dict(_contents(copied.value))
    before = copied.contents
    moved = moved_keys(before, now) if isinstance(copied.value, dict) else ()
    if not moved and now.keys() == before.keys() and all(now[k] is before[k] for k in now):
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
    if moved:
        yield ArgumentChange(move_to_end, copied.place, moved, copied.text), None


def _replace_elements(owner: Any, key: Any, value: list[Any]) -> None:
    owner[:] = value


def _replace_numbers(owner: Any, key: Any, value: list[list[Any]]) -> None:
    for row, numbers in zip(owner, value, strict=True):
        row[:] = numbers


class Earlier(NamedTuple):
    """Place of a container in the whole result of a call, where it occurs first.

    Attributes
    ----------
    steps : tuple of (int or str)
        Steps that lead to it; see `steps_of`.
    """

    steps: tuple[int | str, ...]

    def find(self, whole: Any) -> Any:
        """Return the container."""
        for step in self.steps:
            whole = part_at(whole, step)
        return whole


class Marking:
    """Replacement of containers in results: of those among the arguments, and of those that occur again.

    Parameters
    ----------
    containers : ArgumentContainers
        Containers among the arguments.
    from_outside : callable
        Function that returns a mark of an object from outside, and None for other values.
    created : mapping
        Objects that the function has made.
    """

    def __init__(self, containers: ArgumentContainers, from_outside: Callable[[Any], Any], created: Created) -> None:
        self._containers, self._from_outside, self._created = containers, from_outside, created
        self._first: dict[int, tuple[int | str, ...]] = {}
        self._spaces: dict[int, Any] = {}  # dicts, and objects that have them as their attributes
        self._count = 0

    def result(self, value: Any, steps: tuple[int, ...]) -> Any:
        """Return the result of the function, which is a part of the whole one."""
        return self._marked(value, steps, self._containers.as_result, self._created)

    def new_value(self, value: Any, steps: tuple[int, ...]) -> Any:
        """Return the new value of a changed object; one that holds new objects would need a program for each call."""
        return self._marked(value, steps, self._containers.as_part, {})

    def _marked(
        self, value: Any, steps: tuple[int | str, ...], from_arguments: Callable[[Any], Any], created: Created
    ) -> Any:
        note_result(value)
        found = from_arguments(value) or self._from_outside(value)
        if found is not None:
            return found
        _require_no_new_function(value)
        container = as_container(value, created)
        kind = kind_of(container)
        if kind is None:
            return value
        self._count_parts(kind.parts(container))
        self._require_own_dict(value)
        if isinstance(value, (list, dict)) or container is not value or is_dataclass(value):
            first = self._first.setdefault(id(value), steps)
            if first != steps:
                return Outside(Earlier(first))
        parts = kind.parts(container)
        steps_and_parts = zip(steps_of(container, parts), parts, strict=True)
        marked = [self._marked(part, (*steps, step), from_arguments, created) for step, part in steps_and_parts]
        is_same = all(m is p for m, p in zip(marked, parts, strict=True))
        return container if is_same else with_parts(container, marked)

    def _require_own_dict(self, value: Any) -> None:
        """Refuse the ``__dict__`` of an object as a part of a result beside the object, whose copy it would be."""
        space = value if type(value) is dict else getattr(value, "__dict__", None)
        if type(space) is not dict:
            return
        owner = self._spaces.setdefault(id(space), value)
        if owner is not value:
            raise UnimplementedError("an object and its __dict__ are returned", hint="return one of them")

    def _count_parts(self, parts: Sequence[Any]) -> None:
        self._count += len(parts)
        if self._count > MOST_PARTS:
            raise UnimplementedError(f"a result has more than {MOST_PARTS} parts", hint="return an array")


def _require_no_new_function(value: Any) -> None:
    """Refuse a function that the traced one defines, as a part of a result: each call would give the same one."""
    function = value.__func__ if isinstance(value, MethodType) else value
    if isinstance(value, partial) or hooks.is_defined_by_trace(function):
        raise TraceError(
            f"{getattr(function, '__name__', 'a partial')}, a function that each call makes anew, is returned or kept",
            where=user_line(), hint="return arrays, numbers, and containers of them",
        )  # fmt: skip


def places_in(tree: Tree) -> Any:
    """Return the places in the structure of a result: one, or those of its parts by number; None without any."""
    if isinstance(tree.key, (Place, Earlier)):
        return tree.key
    steps = tree.key[1] if tree.kind is NEW_OBJECT else range(len(tree.children))
    found = {k: places for k, child in zip(steps, tree.children, strict=True) if (places := places_in(child))}
    return found or None


def has_arguments(places: Any) -> bool:
    """Return True if there is a container of the arguments among the places in a result."""
    return isinstance(places, Place) or (isinstance(places, dict) and any(map(has_arguments, places.values())))


def with_containers(whole: Any, places: Any, passed: Sequence[Any]) -> Any:
    """Return the result of a call with containers in their places."""
    return whole if places is None else _with_containers(whole, places, whole, passed)


def _with_containers(value: Any, places: Any, whole: Any, passed: Sequence[Any]) -> Any:
    """Return a part of a result with containers; no closure, a cycle of which would keep the arguments alive."""
    if isinstance(places, Place):
        return places.find(passed)
    if isinstance(places, Earlier):
        return places.find(whole)
    new = {step: _with_containers(part_at(value, step), inner, whole, passed) for step, inner in places.items()}
    return _with_parts(value, new)


def _with_parts(value: Any, new: dict[Any, Any]) -> Any:
    """Put new parts into a container; return another one if it cannot be changed."""
    if isinstance(value, (list, dict)):
        keys = list(value) if isinstance(value, dict) else range(len(value))
        for k, part in new.items():
            value[keys[k]] = part
        return value
    kind = kind_of(value)
    if kind is None or is_dataclass(value):
        for k, part in new.items():
            object.__setattr__(value, k if isinstance(k, str) else field_names(value)[k], part)
        return value
    return kind.build(kind.key(value), [new.get(k, part) for k, part in enumerate(kind.parts(value))])


def apply_all(effects: Sequence[Effect | ArgumentChange], values: Sequence[Any], passed: Sequence[Any]) -> None:
    """Make all changes; objects are found first, where the function has found them and while they are in use."""
    owners = [e.place.find(passed) if isinstance(e, ArgumentChange) else e.owner() for e in effects]
    for effect, owner, value in zip(effects, owners, values, strict=True):
        effect.change(owner, effect.key, value)


def shares_containers(passed: Sequence[Any]) -> bool:
    """Return True if a list, dict or dataclass occurs twice among the values passed to a call."""
    seen: set[int] = set()
    return any(_has_seen(value, seen) for value in passed)


def containers_among(passed: Sequence[Any]) -> set[int]:
    """Return the identities of the lists, dicts and dataclasses among the values passed to a call."""
    found: set[int] = set()
    pending = list(passed)
    while pending:
        value = pending.pop()
        if kind_of(value) is None or not (isinstance(value, _CONTAINERS) or is_dataclass(value)) or id(value) in found:
            continue
        if not isinstance(value, tuple):
            found.add(id(value))
        pending += [part for _, part in _contents(value) if type(part) not in _NUMBERS]
    return found


def shares_objects(passed: Sequence[Any], inputs: Sequence[Any]) -> bool:
    """Return True if a container occurs twice among the values passed to a call, or an array among its inputs."""
    arrays = [id(v) for v in inputs if isinstance(v, np.ndarray)]
    seen: set[int] = set()
    return len(set(arrays)) < len(arrays) or any(_has_seen(value, seen, with_tuples=True) for value in passed)


def _has_seen(value: Any, seen: set[int], *, with_tuples: bool = False) -> bool:
    if kind_of(value) is None or not (isinstance(value, _CONTAINERS) or is_dataclass(value)):
        return False
    if not isinstance(value, tuple) or (with_tuples and len(value)):
        if id(value) in seen:
            return True
        seen.add(id(value))
    parts = (part for _, part in _contents(value) if type(part) not in _NUMBERS)
    return any(_has_seen(part, seen, with_tuples=with_tuples) for part in parts)
