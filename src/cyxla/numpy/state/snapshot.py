"""Snapshots: objects from outside that a traced function may change, compared after the trace and restored.

They are for functions whose source is not rewritten, so that nothing records their changes.
"""

from __future__ import annotations

import dis
import inspect
import types
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import Any, Final, NamedTuple
from zlib import crc32

import numpy as np

from cyxla.errors import TraceError
from cyxla.numpy.tracing.trace import is_internal

MOST_BYTES: Final = 64 << 20  # of arrays that are copied; changes of further ones are found, but not undone
MOST_OBJECTS: Final = 10_000
_DEPTH: Final = 4  # containers and objects inside of each other
_PLAIN: Final = (str, bytes, int, float, complex, type(None), type, types.ModuleType, np.generic, np.ufunc)
_MISSING: Final = object()
_OF_CLASSES: Final = frozenset(["callable", "hasattr", "isinstance", "round", "type"])  # traced numbers are of others
_READS_OF_GLOBALS: Final = ("LOAD_GLOBAL", "LOAD_NAME")


class _Saved(NamedTuple):
    """State of an object before a trace.

    Attributes
    ----------
    text : str
        Expression for messages.
    is_changed : callable
        Function that returns True if the object has another state.
    restore : callable
        Function that restores the state; None if that is impossible.
    """

    text: str
    is_changed: Callable[[], bool]
    restore: Callable[[], None] | None


class Snapshot:
    """Names, attributes and contents of objects that a function may change.

    Parameters
    ----------
    function : callable, optional
        Function; without it, other objects alone are compared.
    objects : sequence of (str, object)
        Objects that it gets itself, such as some of its arguments, with their names.

    Raises
    ------
    TraceError
        The function, or one that it may call, uses a built-in function that sees more of traced numbers than values.
    """

    def __init__(self, function: Callable[..., Any] | None, objects: Sequence[tuple[str, Any]]) -> None:
        self.name = getattr(function, "__name__", "the function")
        self._saved: list[_Saved] = []
        self._seen: dict[int, Any] = {}
        self._bytes = 0
        for name, value in objects:
            self._save(name, value, 0)
        if function is not None:
            self._save_function(inspect.unwrap(function), 0)

    def undo(self) -> tuple[list[str], bool]:
        """Restore all objects; return what has changed, and whether all of it could be restored."""
        changed = [s for s in self._saved if s.is_changed()]
        for saved in changed:
            if saved.restore is not None:
                saved.restore()
        return [s.text for s in changed], all(s.restore is not None for s in changed)

    def _save_function(self, function: Any, depth: int) -> None:
        code = getattr(function, "__code__", None)
        if code is None or id(function) in self._seen or depth > _DEPTH or is_internal(code.co_filename):
            return
        self._seen[id(function)] = function
        _refuse_builtins(function)
        self._save_dict(function.__name__, vars(function), attributes=True)
        for value in (*(function.__defaults__ or ()), *(function.__kwdefaults__ or {}).values()):
            self._save(f"a default of {function.__name__}", value, depth)
        space = function.__globals__
        for name in dict.fromkeys(names_of(code)):
            if name in space:
                self._save_entry(name, space, name)
                self._save(name, space[name], depth)
        for name, cell in zip(code.co_freevars, function.__closure__ or (), strict=True):
            self._save_cell(name, cell)
            self._save(name, _contents(cell), depth)

    def _save(self, text: str, value: Any, depth: int) -> None:
        if isinstance(value, _PLAIN) or id(value) in self._seen or depth > _DEPTH or len(self._seen) > MOST_OBJECTS:
            return
        if isinstance(value, types.FunctionType):
            self._save_function(value, depth + 1)
            return
        self._seen[id(value)] = value
        if isinstance(value, np.ndarray):
            self._save_array(text, value)
            return
        if isinstance(value, (list, deque, bytearray, set)):
            self._save_sequence(text, value)
        elif isinstance(value, dict):
            self._save_dict(text, value)
        elif _has_attributes(value):
            self._save_dict(text, vars(value), attributes=True)
        for step, part in _parts(value):
            self._save(text + step, part, depth + 1)

    def _save_entry(self, text: str, space: dict[str, Any], name: str) -> None:
        before = space[name]

        def restore() -> None:
            space[name] = before

        self._saved.append(_Saved(text, lambda: space.get(name, _MISSING) is not before, restore))

    def _save_cell(self, text: str, cell: Any) -> None:
        before = _contents(cell)

        def restore() -> None:
            if before is _MISSING:
                del cell.cell_contents
            else:
                cell.cell_contents = before

        self._saved.append(_Saved(text, lambda: _contents(cell) is not before, restore))

    def _save_array(self, text: str, array: np.ndarray[Any, Any]) -> None:
        if not array.flags.writeable or array.dtype.hasobject:
            return
        self._bytes += array.nbytes
        if self._bytes > MOST_BYTES:
            before = _checksum(array)
            self._saved.append(_Saved(text, lambda: _checksum(array) != before, None))
            return
        copied = array.copy("K")

        def restore() -> None:
            array[...] = copied

        self._saved.append(_Saved(text, lambda: array.tobytes() != copied.tobytes(), restore))

    def _save_sequence(self, text: str, value: Any) -> None:
        before = list(value)

        def restore() -> None:
            value.clear()
            (value.update if isinstance(value, set) else value.extend)(before)

        self._saved.append(_Saved(text, lambda: not _are_same(list(value), before), restore))

    def _save_dict(self, text: str, value: dict[Any, Any], *, attributes: bool = False) -> None:
        before = dict(value)

        def restore() -> None:
            value.clear()
            value.update(before)

        def is_changed() -> bool:
            return not _are_same([*value, *value.values()], [*before, *before.values()])

        self._saved.append(_Saved(f"an attribute of {text}" if attributes else text, is_changed, restore))


@contextmanager
def changing_nothing(function: Callable[..., Any] | None, objects: Sequence[tuple[str, Any]]) -> Iterator[None]:
    """Undo the changes that a traced function makes to objects from outside; raise if it made any.

    Parameters
    ----------
    function : callable or None
        Function; None for one whose changes are recorded, which does not make them.
    objects : sequence of (str, object)
        Objects among its arguments, with their names.

    Raises
    ------
    TraceError
        The function, which has succeeded, changed an object.
    """
    if function is None:
        yield
        return
    snapshot = Snapshot(function, objects)
    try:
        yield
    except BaseException as error:
        _, is_undone = snapshot.undo()
        with suppress(AttributeError):  # of an exception without attributes
            error.may_fall_back = is_undone  # type: ignore[attr-defined]
        raise
    _refuse(getattr(function, "__name__", "the function"), *snapshot.undo())


def _refuse(name: str, changed: Sequence[str], is_undone: bool) -> None:
    if not changed:
        return
    refusal = TraceError(
        f"{name} changes {', '.join(changed)} from outside",
        hint="return the new value, or pass the object as an argument",
    )  # fmt: skip
    refusal.may_fall_back = is_undone
    raise refusal


@contextmanager
def watching(snapshots: Mapping[Any, Snapshot]) -> Iterator[None]:
    """Undo the changes that functions without source make, of which snapshots are taken within; raise if there are any.

    Raises
    ------
    TraceError
        One of the functions changed an object from outside.
    """
    try:
        yield
    except BaseException as error:
        undone = [s.undo()[1] for s in snapshots.values()]
        if not all(undone):
            with suppress(AttributeError):
                error.may_fall_back = False  # type: ignore[attr-defined]
        raise
    for snapshot in snapshots.values():
        _refuse(snapshot.name, *snapshot.undo())


def _refuse_builtins(function: Any) -> None:
    """Refuse a function that uses a built-in function for which its source would have to be rewritten."""
    for code in _codes_of(function.__code__):
        for i in dis.get_instructions(code):
            name = i.argval if i.opname in _READS_OF_GLOBALS else None
            if name in _OF_CLASSES and name not in function.__globals__:
                raise TraceError(
                    f"{function.__name__} uses {name}, but its source is not known",
                    where=f"{code.co_filename}:{code.co_firstlineno}", hint="define it in a file",
                )  # fmt: skip


def _codes_of(code: types.CodeType) -> Iterator[types.CodeType]:
    yield code
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from _codes_of(constant)


def names_of(code: types.CodeType) -> Iterator[str]:
    """Yield the names of globals and attributes that a function uses, with the functions inside it."""
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from names_of(constant)


def _has_attributes(value: Any) -> bool:
    is_library = type(value).__module__.startswith(("numpy", "cyxla"))
    return not is_library and isinstance(getattr(value, "__dict__", None), dict)


def _parts(value: Any) -> list[tuple[str, Any]]:
    """Return the parts of a container or an object, with their steps in expressions."""
    if isinstance(value, dict):
        return [(f"[{k!r}]", part) for k, part in value.items()]
    if isinstance(value, (list, deque, set, tuple)):
        return [(f"[{k}]", part) for k, part in enumerate(value)]
    return [(f".{k}", part) for k, part in vars(value).items()] if _has_attributes(value) else []


def _contents(cell: Any) -> Any:
    try:
        return cell.cell_contents
    except ValueError:  # empty
        return _MISSING


def _are_same(one: Sequence[Any], other: Sequence[Any]) -> bool:
    return len(one) == len(other) and all(a is b for a, b in zip(one, other, strict=True))


def _checksum(array: np.ndarray[Any, Any]) -> int:
    return crc32(np.ascontiguousarray(array).reshape(-1).view(np.uint8).data)
