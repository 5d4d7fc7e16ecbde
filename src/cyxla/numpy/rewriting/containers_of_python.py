"""Lists, dicts and sets that a pass over a loop's body, or a side of a branch, must not change for good."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Any

from cyxla.numpy.tracing.known_array import KnownArray
from cyxla.numpy.tracing.trace import user_frame

_MOST_OBJECTS = 10_000  # containers
_MOST_PARTS = 10_000  # elements of a container that are looked at, for containers among them
_KINDS = (list, dict, set, deque)


class Snapshot:
    """Contents of containers, and values of known arrays.

    Parameters
    ----------
    values : iterable
        Values that may be such containers or arrays, or hold some.
    """

    def __init__(self, values: Iterable[Any]) -> None:
        self._contents: dict[int, tuple[Any, Any]] = {}
        self._arrays: list[tuple[KnownArray, Any]] = []
        for value in values:
            self._add(value)

    def _add(self, value: Any) -> None:
        if len(self._contents) > _MOST_OBJECTS or id(value) in self._contents:
            return
        if isinstance(value, KnownArray) and value.known is not None:
            self._arrays.extend((a, a.known) for a in (value, *value.known_views))
        if isinstance(value, _KINDS):
            self._contents[id(value)] = (value, value.copy())
        if isinstance(value, (*_KINDS, tuple)):
            for part in islice(_parts(value), _MOST_PARTS):
                self._add(part)

    def changed(self) -> list[tuple[Any, Any]]:
        """Return the containers that have other elements, each with a copy of it as it was."""
        return [(value, before) for value, before in self._contents.values() if not _same(value, before)]

    def is_changed(self) -> bool:
        """Return True if a container has other elements."""
        return bool(self.changed())

    def restore_containers(self) -> None:
        """Give containers back what they held."""
        for value, before in self.changed():
            refill(value, before)

    def restore(self) -> None:
        """Give containers and arrays back what they held."""
        self.restore_containers()
        for array, values in self._arrays:
            array.resume_values(values)


def local_containers() -> list[Any]:
    """Return the containers that local variables of the user's function name, or hold."""
    frame = user_frame()
    return [] if frame is None else [v for v in frame.f_locals.values() if isinstance(v, (*_KINDS, tuple))]


def refill(container: Any, contents: Any) -> None:
    """Replace the elements of a container."""
    container.clear()
    container.extend(contents) if isinstance(container, (list, deque)) else container.update(contents)


def _parts(value: Any) -> Iterator[Any]:
    yield from value.values() if isinstance(value, dict) else value


def _same(value: Any, before: Any) -> bool:
    if len(value) != len(before):
        return False
    if isinstance(value, dict):
        return all(k in value and value[k] is v for k, v in before.items())
    if isinstance(value, set):
        return bool(value == before)
    return all(a is b for a, b in zip(value, before, strict=True))
