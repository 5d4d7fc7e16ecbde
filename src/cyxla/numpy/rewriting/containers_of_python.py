"""Lists, dicts and sets that a pass over a loop's body must not change for good."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from typing import Any

from cyxla.numpy.tracing.known_array import KnownArray

_MOST_OBJECTS = 10_000
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
            for part in _parts(value):
                self._add(part)
        elif isinstance(value, tuple):
            for part in value:
                self._add(part)

    def is_changed(self) -> bool:
        """Return True if a container has other elements."""
        return any(not _same(value, before) for value, before in self._contents.values())

    def restore(self) -> None:
        """Give containers and arrays back what they held."""
        for value, before in self._contents.values():
            if not _same(value, before):
                value.clear()
                value.extend(before) if isinstance(value, (list, deque)) else value.update(before)
        for array, values in self._arrays:
            array.resume_values(values)


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
