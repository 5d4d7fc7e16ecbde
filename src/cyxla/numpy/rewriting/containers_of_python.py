"""Lists, dicts and sets that a pass over a loop's body, or a side of a branch, must not change for good."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Any

from cyxla.numpy.state.mirrors import MirrorDict, MirrorList
from cyxla.numpy.state.scope import outside_values
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
        self._outside = outside_values()
        mirrors = () if self._outside is None else self._outside.mirrors
        self._mirrors = {id(m): (copied(m), m.first is not None) for m in mirrors}
        for value in values:
            self._add(value)

    def _add(self, value: Any) -> None:
        if len(self._contents) > _MOST_OBJECTS or id(value) in self._contents:
            return
        if isinstance(value, KnownArray) and value.known is not None:
            self._arrays.extend((a, a.known) for a in (value, *value.known_views))
        if isinstance(value, (MirrorList, MirrorDict)):
            return
        if isinstance(value, _KINDS):
            self._contents[id(value)] = (value, value.copy())
        if isinstance(value, (*_KINDS, tuple)):
            for part in islice(_parts(value), _MOST_PARTS):
                self._add(part)

    def changed(self) -> list[tuple[Any, Any]]:
        """Return the containers that have other elements, each with a copy of it as it was."""
        found = [*self._contents.values(), *self._of_mirrors()]
        return [(value, before) for value, before in found if not _same(elements(value), before)]

    def _of_mirrors(self) -> Iterator[tuple[Any, Any]]:
        """Yield the lists and dicts from outside, each with what it held."""
        for mirror in () if self._outside is None else self._outside.mirrors:
            contents, was_read = self._mirrors.get(id(mirror), (None, True))
            if isinstance(mirror, MirrorList):
                yield mirror, mirror.before(contents, was_read)
            else:
                yield mirror, mirror.first if contents is None else contents

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
    if isinstance(container, list):
        list.__setitem__(container, slice(None), contents)  # also of a mirror that has not been read
        return
    container.clear()
    container.extend(contents) if isinstance(container, deque) else container.update(contents)


def copied(container: Any) -> Any:
    """Return a copy of a list or dict, without reading a list from outside."""
    return elements(container) if isinstance(container, list) else dict(container)


def elements(container: Any) -> Any:
    """Return the elements of a container as it is, without reading a list from outside."""
    return list(list.__iter__(container)) if isinstance(container, list) else container


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
