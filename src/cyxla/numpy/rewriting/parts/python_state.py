"""State of Python objects, which a side of a branch or a pass over a loop's body must not change for good.

These are the lists, dicts, sets, objects and `nonlocal` variables that the functions being traced can reach, and the
changes of values from outside that have been recorded.
"""

from __future__ import annotations

import dis
import sys
from collections import deque
from collections.abc import Iterable, Iterator
from functools import lru_cache
from types import CellType, CodeType, FrameType, FunctionType, MethodType, ModuleType
from typing import Any, Final

from cyxla.errors import TraceError
from cyxla.numpy.rewriting.syntax.build import HOOKS
from cyxla.numpy.state.effects import Effect
from cyxla.numpy.state.mirrors import MirrorDict, MirrorList
from cyxla.numpy.state.outside import OutsideValues
from cyxla.numpy.state.scope import outside_values
from cyxla.numpy.tracing.arrays.known_array import KnownArray
from cyxla.numpy.tracing.arrays.traced_array import LazyList
from cyxla.numpy.tracing.trace import is_internal, user_line

_MOST_OBJECTS: Final = 10_000
_CONTAINERS: Final = (list, dict, set, deque)
_SKIPPED: Final = (type, ModuleType, str, bytes, int, float, complex)
_PLAIN: Final = frozenset({str, bytes, bool, int, float, complex, type(None)})  # types of elements that hold nothing
_ABSENT: Final = object()
Contents = list[Any] | dict[Any, Any] | set[Any]


class PythonState:
    """State of Python objects at one point of a trace.

    Parameters
    ----------
    arrays : iterable
        Values among which known arrays are restored, too.
    """

    def __init__(self, arrays: Iterable[Any] = ()) -> None:
        self._outside = outside_values()
        self._contents: dict[int, tuple[Any, Contents]] = {}
        self._unfilled: set[int] = set()
        self._arrays: list[tuple[KnownArray, Any]] = []
        self._changes = {} if self._outside is None else dict(self._outside.changes)
        for value in arrays:
            self._add_known(value)
            self._add(value)
        for value in _reachable_values():
            self._add(value)
        for mirror in () if self._outside is None else self._outside.mirrors:
            self._add(mirror)

    def _add_known(self, value: Any) -> None:
        if isinstance(value, KnownArray) and value.known is not None:
            self._arrays.extend((a, a.known) for a in (value, *value.known_views))

    def _add(self, value: Any) -> None:
        pending, passed = [value], dict[int, Any]()  # functions may reach themselves
        while pending:
            if len(self._contents) > _MOST_OBJECTS:
                raise TraceError(
                    f"a branch or loop on traced values can reach more than {_MOST_OBJECTS} lists and objects",
                    where=user_line(), hint="keep numbers in arrays",
                )  # fmt: skip
            value = pending.pop()
            if id(value) in self._contents or isinstance(value, _SKIPPED):
                continue
            if isinstance(value, (tuple, FunctionType, MethodType)):
                if id(value) not in passed:
                    passed[id(value)] = value
                    pending.extend(_parts(value))
                continue
            if not _is_watched(value, self._outside):
                continue
            contents = contents_of(value)
            self._contents[id(value)] = (value, contents)
            if isinstance(value, MirrorList) and value.first is None:
                self._unfilled.add(id(value))
            held = contents.values() if isinstance(contents, dict) else contents
            if not _PLAIN.issuperset(map(type, held)):  # lists of many numbers are looked at in C alone
                pending.extend(held)

    def before(self, value: Any) -> Contents:
        """Return what an object held, or holds at first if it was reached later."""
        found = self._contents.get(id(value))
        if found is None:
            return _first_contents(value)
        contents = found[1]
        if id(value) in self._unfilled and value.first is not None:
            return [*value.first, *contents]
        return contents

    def changed(self) -> dict[int, tuple[Any, Contents]]:
        """Return the objects that hold something else, with what they hold now."""
        objects = {key: value for key, (value, _) in self._contents.items()}
        if self._outside is not None:
            objects.update((id(m), m) for m in self._outside.mirrors)
        now = {key: (value, contents_of(value)) for key, value in objects.items()}
        return {key: pair for key, pair in now.items() if not _same(pair[1], self.before(pair[0]))}

    def changed_places(self) -> dict[Any, Any]:
        """Return the changes of values from outside that were recorded since."""
        if self._outside is None:
            return {}
        old = self._changes
        return {k: c for k, c in self._outside.changes.items() if k not in old or old[k][1] is not c[1]}

    def is_changed(self) -> bool:
        """Return True if anything is changed but for known arrays."""
        return bool(self.changed_places() or self.changed())

    def place_before(self, identity: Any) -> Any:
        """Return the value of a place outside, or `ABSENT`."""
        assert self._outside is not None
        found = self._changes.get(identity)
        return found[1] if found is not None else self._outside.value_at(identity, _ABSENT)

    def change_place(self, identity: Any, effect: Effect, value: Any) -> None:
        """Record a change of a value from outside."""
        assert self._outside is not None
        self._outside.changes[identity] = (effect, value)

    def restore(self) -> None:
        """Give everything back what it held."""
        for value, _ in self.changed().values():
            fill(value, self.before(value))
        if self._outside is not None:
            self._outside.changes.clear()
            self._outside.changes.update(self._changes)
        for array, values in self._arrays:
            array.resume_values(values)


ABSENT = _ABSENT


def _is_watched(value: Any, outside: OutsideValues | None) -> bool:
    """Return True for an object whose contents the functions being traced may change."""
    if isinstance(value, (*_CONTAINERS, CellType)):
        return not (
            outside is not None and outside.is_outside(value) and not isinstance(value, (MirrorList, MirrorDict))
        )
    module = type(value).__module__.partition(".")[0]
    if module in ("cyxla", "numpy", "builtins", "ast", "types", "functools", "re", "enum", "threading"):
        return False
    return hasattr(value, "__dict__") and not (outside is not None and outside.is_outside(value))


def _reachable_values() -> Iterator[Any]:
    """Return the local variables of the user's functions that are being traced."""
    frame: FrameType | None = sys._getframe(2)
    while frame is not None:
        code = frame.f_code
        if is_internal(code.co_filename):
            if code.co_name == "lower":
                return
        else:
            yield from [v for n, v in frame.f_locals.items() if not n.startswith(HOOKS)]
        frame = frame.f_back


def _parts(value: Any) -> Iterator[Any]:
    """Return what an object that cannot be changed leads to."""
    if isinstance(value, tuple):
        yield from value
        return
    if isinstance(value, MethodType):
        yield value.__self__
        value = value.__func__
    if isinstance(value, FunctionType) and value.__closure__:
        assigned = _assigned_cells(value.__code__)
        for name, cell in zip(value.__code__.co_freevars, value.__closure__, strict=True):
            if name in assigned:
                yield cell
            elif not name.startswith(HOOKS):
                yield from _of_cell(cell)


@lru_cache(maxsize=1024)
def _assigned_cells(code: CodeType) -> frozenset[str]:
    """Return the variables of enclosing functions that a function assigns to."""
    found = {i.argval for i in dis.get_instructions(code) if i.opname in ("STORE_DEREF", "DELETE_DEREF")}
    return frozenset(found & set(code.co_freevars))


def _of_cell(cell: CellType) -> list[Any]:
    try:
        return [cell.cell_contents]
    except ValueError:  # it is empty
        return []


def contents_of(value: Any) -> Contents:
    """Return what a container, an object or a cell holds."""
    if isinstance(value, LazyList) and not value.is_guarded and not getattr(value, "is_sized", False):
        value.materialize()
    if isinstance(value, list):
        return list(list.__iter__(value))
    if isinstance(value, dict):
        return dict(dict.items(value))
    if isinstance(value, set):
        return set(value)
    if isinstance(value, deque):
        return list(value)
    return _of_cell(value) if isinstance(value, CellType) else dict(vars(value))


def fill(value: Any, contents: Any) -> None:
    """Make a container, an object or a cell hold something else."""
    if isinstance(value, list):
        list.__setitem__(value, slice(0, list.__len__(value)), contents)
    elif isinstance(value, CellType):
        if contents:
            value.cell_contents = contents[0]
        else:
            del value.cell_contents
    elif isinstance(value, deque):
        value.clear()
        value.extend(contents)
    else:
        held = value if isinstance(value, (dict, set)) else vars(value)
        held.clear()
        held.update(contents)


def items_of(contents: Contents) -> list[tuple[Any, Any]]:
    """Return the parts of what an object holds, by index or key."""
    if isinstance(contents, set):
        return []
    return list(contents.items() if isinstance(contents, dict) else enumerate(contents))


def changed_items(contents: Contents, before: Contents) -> list[tuple[Any, Any]]:
    """Return the parts of what an object holds that are others than before."""
    old = dict(items_of(before))
    return [(k, v) for k, v in items_of(contents) if k not in old or old[k] is not v]


def structure_of(contents: Contents) -> Any:
    """Return what objects whose parts alone differ have in common."""
    return contents if isinstance(contents, set) else [k for k, _ in items_of(contents)]


def with_items(contents: Contents, values: dict[Any, Any]) -> Contents:
    """Return the contents with some parts replaced."""
    if isinstance(contents, dict):
        return {**contents, **values}
    return [values.get(k, v) for k, v in enumerate(contents)] if isinstance(contents, list) else contents


def _first_contents(value: Any) -> Contents:
    """Return what a mirror held when it was made."""
    first = value.first
    return ([] if isinstance(value, MirrorList) else {}) if first is None else first


def _same(first: Any, second: Any) -> bool:
    if len(first) != len(second):
        return False
    if isinstance(first, set):
        return bool(first == second)
    if isinstance(first, dict):
        return list(first) == list(second) and all(v is second[k] for k, v in first.items())
    return all(a is b for a, b in zip(first, second, strict=True))
