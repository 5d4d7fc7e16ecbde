"""State of Python objects, which a side of a branch or a pass over a loop's body must not change for good.

These are the lists, dicts, sets, objects and `nonlocal` variables that the functions being traced can reach, what
objects of other classes hide, and the changes of values from outside that have been recorded.
"""

from __future__ import annotations

import dis
import sys
from collections import OrderedDict, deque
from collections.abc import Callable, Container, Iterable, Iterator
from contextlib import suppress
from functools import lru_cache, partial
from types import (
    BuiltinMethodType,
    CellType,
    CodeType,
    FrameType,
    FunctionType,
    GeneratorType,
    MappingProxyType,
    MethodType,
    MethodWrapperType,
    ModuleType,
    SimpleNamespace,
)
from typing import Any, Final

from cyxla.errors import TraceError
from cyxla.numpy.state.effects import Effect
from cyxla.numpy.state.mirrors import MirrorDict, MirrorList
from cyxla.numpy.state.outside import OutsideValues
from cyxla.numpy.state.scope import outside_values
from cyxla.numpy.tracing.arrays.known_array import KnownArray
from cyxla.numpy.tracing.arrays.number_storage import StoredList
from cyxla.numpy.tracing.arrays.number_table import TableRow
from cyxla.numpy.tracing.arrays.sized_array import SizedArray
from cyxla.numpy.tracing.arrays.stacked_list import StackedList
from cyxla.numpy.tracing.arrays.traced_array import LazyList, TracedArray
from cyxla.numpy.tracing.containers import kind_of
from cyxla.numpy.tracing.trace import PlainRunError, is_internal, plain_run, require_current, user_line
from cyxla.numpy.tracing.user_program.hidden_state import HiddenState, hidden_state_of, slots_of
from cyxla.numpy.tracing.user_program.user_frames import HOOKS

_MOST_OBJECTS: Final = 10_000
_CONTAINERS: Final = (list, dict, set, deque)
_WATCHED: Final = (*_CONTAINERS, CellType, SimpleNamespace, BaseException)
_SKIPPED: Final = (TracedArray, ModuleType, str, bytes, int, float, complex)
_VIEWS: Final[tuple[type, ...]] = (type({}.keys()), type({}.values()), type({}.items()))
PLAIN_TYPES: Final = frozenset({str, bytes, bool, int, float, complex, type(None)})  # of elements that hold nothing
_ABSENT: Final = object()
_COPIED: Final = (list, dict, StackedList)
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
        self._shared: set[int] = set()
        self._arrays: list[tuple[KnownArray, Any]] = []
        self._passed: dict[int, Any] = {}
        self._hidden: list[tuple[Any, HiddenState, Any]] = []
        self._changes = {} if self._outside is None else dict(self._outside.changes)
        for value in _reachable_values():
            self._add(value)
        mirrors = () if self._outside is None else self._outside.mirrors
        kept = [new for _, new in self._changes.values()]  # in places outside
        for value in (*require_current().program.arguments, *mirrors, *kept):
            self._add(value)
        shared = set(self._shared)
        for value in arrays:  # which are values of local variables
            self._add_known(value)
            self._add(value)
        self._shared = shared

    def _add_known(self, value: Any) -> None:
        if isinstance(value, KnownArray) and value.known is not None:
            self._arrays.extend((a, a.known) for a in value.known_relatives)

    def _add(self, value: Any) -> None:
        pending = [value]
        while pending:
            if len(self._contents) > _MOST_OBJECTS:
                raise TraceError(
                    f"a branch or loop on traced values can reach more than {_MOST_OBJECTS} lists and objects",
                    where=user_line(), hint="keep numbers in arrays",
                )  # fmt: skip
            value = pending.pop()
            key = id(value)
            if key in self._contents:
                self._shared.add(key)
            elif isinstance(value, tuple) and key in self._passed:
                self._shared.update(map(id, _leaves_of(value)))
            if key in self._contents or key in self._passed or isinstance(value, _SKIPPED):
                continue
            parts, hidden = _parts(value), hidden_state_of(value)
            if hidden is not None and not self._is_outside(value):
                self._hidden.append((value, hidden, hidden.read(value)))
            if parts is None and _is_watched(value, self._outside):
                self._watch(value, pending)
            else:
                self._passed[key] = value  # functions may reach themselves
                pending.extend(parts or ())

    def _is_outside(self, value: Any) -> bool:
        return self._outside is not None and self._outside.is_outside(value)

    def _watch(self, value: Any, pending: list[Any]) -> None:
        """Keep what an object holds, and add the objects that it leads to."""
        contents = contents_of(value)
        self._contents[id(value)] = (value, contents)
        if isinstance(value, MirrorList) and value.first is None:
            self._unfilled.add(id(value))
        held = contents.values() if isinstance(contents, dict) else contents
        if not PLAIN_TYPES.issuperset(map(type, held)):  # lists of many numbers are looked at in C alone
            pending.extend(held)
        kind = type(value)
        if (
            isinstance(value, _CONTAINERS)
            and hasattr(value, "__dict__")
            and kind.__module__.partition(".")[0] != "cyxla"
        ):
            pending.append(vars(value))
        pending.append(kind)

    def before(self, value: Any) -> Contents:
        """Return what an object held, or holds at first if it was reached later."""
        found = self._contents.get(id(value))
        if found is None:
            return _first_contents(value)
        contents = found[1]
        if id(value) in self._unfilled and value.first is not None:
            return [*value.first, *contents]
        return contents

    def has(self, value: Any) -> bool:
        """Return True for a container or an object that was there."""
        return id(value) in self._contents

    def is_shared(self, value: Any) -> bool:
        """Return True for a container that has several names, or is an argument or a part of one."""
        return id(value) in self._shared

    def choice_of(self, one: Any, other: Any) -> str | None:
        """Return the name of the class of an object from before if it is one of two values; None if none is.

        Lists and dicts do not count, for which copies may stand; see `aliases`. The values may be, or contain in the
        same place, different objects of which one was reached before.
        """
        kind = None if one is other or isinstance(one, SizedArray) else kind_of(one)
        if kind is None or kind_of(other) != kind:
            return None
        if not isinstance(one, tuple):
            for value in (one, other):
                is_old = self.has(value) or (self._outside is not None and self._outside.is_outside(value))
                if is_old and type(value) not in _COPIED:
                    return name_of_container(value)
        pairs = zip(kind.parts(one), kind.parts(other), strict=False)
        return next((found for p, q in pairs if (found := self.choice_of(p, q)) is not None), None)

    def require_same_hidden(self) -> None:
        """Require that the hidden state of all objects is as it was.

        Raises
        ------
        PlainRunError
            One of them has another state.
        """
        for value, hidden, before in self._hidden:
            if hidden.read(value) != before:
                raise _hidden_change(value)

    def fill_lists(self) -> None:
        """Read the elements of lists from outside to which elements were appended."""
        for mirror in () if self._outside is None else self._outside.mirrors:
            if isinstance(mirror, MirrorList) and list.__len__(mirror) != len(self.before(mirror)):
                mirror.fill()

    def changed(self) -> dict[int, tuple[Any, Contents]]:
        """Return the objects that hold something else, with what they hold now."""
        objects = {key: value for key, (value, _) in self._contents.items()}
        if self._outside is not None:
            objects.update((id(m), m) for m in self._outside.mirrors)
        now = {key: (value, contents_of(value)) for key, value in objects.items()}
        return {key: pair for key, pair in now.items() if not has_same_contents(pair[1], self.before(pair[0]))}

    def changed_places(self) -> dict[Any, Any]:
        """Return the changes of values from outside that were recorded since."""
        if self._outside is None:
            return {}
        old = self._changes
        return {k: c for k, c in self._outside.changes.items() if k not in old or old[k][1] is not c[1]}

    def is_changed(self) -> bool:
        """Return True if anything is changed but for known arrays."""
        return bool(self.changed_places() or self.changed()) or any(h.read(v) != old for v, h, old in self._hidden)

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
        for value, hidden, before in self._hidden:
            if hidden.read(value) != before:
                if hidden.write is None:
                    raise _hidden_change(value)
                hidden.write(value, before)


def _hidden_change(value: Any) -> PlainRunError:
    kind = type(value).__name__
    return plain_run(
        f"a branch on a traced condition, or a loop, changes an object of class {kind}", "change it before"
    )


ABSENT = _ABSENT


def _is_watched(value: Any, outside: OutsideValues | None) -> bool:
    """Return True for an object whose contents the functions being traced may change."""
    if isinstance(value, _WATCHED):
        return not (
            outside is not None and outside.is_outside(value) and not isinstance(value, (MirrorList, MirrorDict))
        )
    module = type(value).__module__.partition(".")[0]
    if module in ("cyxla", "numpy", "builtins", "ast", "types", "functools", "re", "enum", "threading"):
        return False
    has_state = hasattr(value, "__dict__") or slots_of(value)
    return bool(has_state) and not (outside is not None and outside.is_outside(value))


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


def _leaves_of(value: tuple[Any, ...]) -> Iterator[Any]:
    for part in value:
        if isinstance(part, tuple):
            yield from _leaves_of(part)
        else:
            yield part


def _parts(value: Any) -> Iterable[Any] | None:
    """Return what an object that cannot be changed leads to; None for any other object."""
    if isinstance(value, tuple):
        return value
    if isinstance(value, type):
        return _members(value) if "<locals>" in value.__qualname__ else ()
    finder = _PARTS.get(type(value))
    return None if finder is None else finder(value)


def traced_parts(value: Any, created: Container[int] = ()) -> Iterator[Any]:
    """Yield the traced values, and objects of some identities, to which a function, a bound method or a slice leads."""
    pending, passed = [value], dict[int, Any]()
    while pending and len(passed) < _MOST_OBJECTS:
        value = pending.pop()
        if isinstance(value, (TracedArray, SizedArray)) or id(value) in created:
            yield value
        if id(value) in passed or isinstance(value, _SKIPPED):
            continue
        passed[id(value)] = value
        if isinstance(value, SizedArray):
            continue
        if isinstance(value, slice):
            pending += [value.start, value.stop, value.step]
        elif (parts := _parts(value)) is not None:
            pending.extend(parts)
        elif _is_watched(value, None):
            contents = contents_of(value)
            pending.extend(contents.values() if isinstance(contents, dict) else contents)


def _members(kind: type) -> list[Any]:
    """Return what the attributes of a class lead to."""
    members: list[Any] = []
    for value in vars(kind).values():
        if isinstance(value, property):
            members += [value.fget, value.fset, value.fdel]
        else:
            members.append(getattr(value, "__func__", value))
    return members


def _parts_of_function(value: FunctionType) -> list[Any]:
    found: list[Any] = []
    if value.__closure__:
        assigned = _assigned_cells(value.__code__)
        for name, cell in zip(value.__code__.co_freevars, value.__closure__, strict=True):
            if name in assigned:
                found.append(cell)
            elif not name.startswith(HOOKS):
                found.extend(_of_cell(cell))
    if "<locals>" in value.__qualname__:
        found += [*(value.__defaults__ or ()), *(value.__kwdefaults__ or {}).values()]
    return found


def _parts_of_generator(value: Any) -> list[Any]:
    frame = value.gi_frame
    return [] if frame is None or value.gi_running else list(frame.f_locals.values())


_PARTS: Final[dict[type, Callable[[Any], Iterable[Any]]]] = {
    FunctionType: _parts_of_function,
    MethodType: lambda v: (v.__self__, v.__func__),
    BuiltinMethodType: lambda v: (v.__self__,),
    MethodWrapperType: lambda v: (v.__self__,),
    partial: lambda v: (v.func, v.args, v.keywords),
    type(lru_cache(len)): lambda v: (v.__wrapped__,),
    MappingProxyType: lambda v: v.values(),
    **dict.fromkeys(_VIEWS, lambda v: (v.mapping,)),
    GeneratorType: _parts_of_generator,
    memoryview: lambda v: (v.obj,),
}


@lru_cache(maxsize=1024)
def _assigned_cells(code: CodeType) -> frozenset[str]:
    """Return the variables of enclosing functions that a function, or one that is defined in it, assigns to."""
    found = {i.argval for i in dis.get_instructions(code) if i.opname in ("STORE_DEREF", "DELETE_DEREF")}
    inner = [_assigned_cells(c) for c in code.co_consts if isinstance(c, CodeType)]
    return frozenset(found.union(*inner) & set(code.co_freevars))


def _of_cell(cell: CellType) -> list[Any]:
    try:
        return [cell.cell_contents]
    except ValueError:  # it is empty
        return []


def contents_of(value: Any) -> Contents:
    """Return what a container, an object or a cell holds."""
    if isinstance(value, StoredList) and (value.is_array or (isinstance(value, StackedList) and value.holds_sized)):
        return value.contents()
    if isinstance(value, TableRow):
        return []
    if isinstance(value, LazyList) and not value.is_guarded and not getattr(value, "is_never_made", False):
        value.materialize()
    if isinstance(value, list):
        return list(list.__iter__(value))
    if isinstance(value, OrderedDict):
        return dict(OrderedDict.items(value))
    if isinstance(value, dict):
        return dict(dict.items(value))
    if isinstance(value, set):
        return set(value)
    if isinstance(value, deque):
        return list(value)
    return _of_cell(value) if isinstance(value, CellType) else attributes_of(value)


def attributes_of(value: Any) -> dict[str, Any]:
    """Return the attributes that an object holds itself, by name."""
    found = dict(getattr(value, "__dict__", {}))
    for name, slot in slots_of(value).items():
        with suppress(AttributeError):  # it is not bound
            found[name] = slot.__get__(value)
    return found


def _set_attributes(value: Any, contents: dict[str, Any]) -> None:
    slots = slots_of(value)
    for name, slot in slots.items():
        if name in contents:
            slot.__set__(value, contents[name])
        else:
            with suppress(AttributeError):  # it is not bound
                slot.__delete__(value)
    if hasattr(value, "__dict__"):
        vars(value).clear()
        vars(value).update({k: v for k, v in contents.items() if k not in slots})


def fill(value: Any, contents: Any) -> None:
    """Make a container, an object or a cell hold something else."""
    if isinstance(value, TableRow):
        return
    if isinstance(value, StoredList):
        value.resume(contents)
    elif isinstance(value, list):
        list.__setitem__(value, slice(0, list.__len__(value)), contents)
    elif isinstance(value, CellType):
        if contents:
            value.cell_contents = contents[0]
        else:
            del value.cell_contents
    elif isinstance(value, deque):
        value.clear()
        value.extend(contents)
    elif isinstance(value, (dict, set)):
        value.clear()
        value.update(contents)
    else:
        _set_attributes(value, contents)


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


def has_same_contents(first: Contents, second: Contents) -> bool:
    """Return True if an object holds what it held before."""
    if len(first) != len(second):
        return False
    if isinstance(first, set):
        return bool(first == second)
    if isinstance(first, dict) and isinstance(second, dict):
        return list(first) == list(second) and all(v is second[k] for k, v in first.items())
    return all(a is b for a, b in zip(first, second, strict=True))


def name_of_container(value: Any) -> str:
    """Return the name of the class of an object for messages; that of a list or dict also for its mirrors."""
    return next((k.__name__ for k in (list, dict) if isinstance(value, k)), type(value).__name__)
