"""Values from outside that a function uses while it is traced.

NumPy arrays become hidden arguments of the program, read at every call; other values are guarded, so that the function
is traced again when they are rebound. Changes are not made but recorded, and made after each run.
"""

from __future__ import annotations

import types
import weakref
from array import array
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from typing import Any, Final, NamedTuple

import numpy as np

from cyxla._native.dispatch import Node, Source, axes_of
from cyxla.errors import OpError, TraceError
from cyxla.numpy.state.class_members import class_guard
from cyxla.numpy.state.effects import (
    DELETED,
    Deleted,
    Effect,
    Outside,
    has_own_attribute,
    owner_of,
    present_value,
    renew_attribute,
    set_attribute,
)
from cyxla.numpy.state.guards import _FIXED, Guards, Row, same_node
from cyxla.numpy.state.mirrors import MirrorDict, MirrorList
from cyxla.numpy.tracing.arrays.memory_layout import dense
from cyxla.numpy.tracing.arrays.sized_array import SizedArray
from cyxla.numpy.tracing.arrays.traced_array import TracedArray
from cyxla.numpy.tracing.hooks import hooks
from cyxla.numpy.tracing.registry import NUMPY_ORIGINALS
from cyxla.numpy.tracing.results.result_layout import inverse
from cyxla.numpy.tracing.results.zero_dim import Rank0
from cyxla.numpy.tracing.static_keys import read_only_copy, static_key
from cyxla.numpy.tracing.trace import Trace, depth, tracing, user_line
from cyxla.numpy.tracing.user_program.bound_methods import changing_object
from cyxla.types import Shape, from_numpy
from cyxla.xla.hlo.builder import XlaOp
from cyxla.xla.hlo.builder import functions as xla

MOST_ELEMENTS: Final = 4096  # of containers from outside, all of which are compared at every call
_ANY_NODE: Final = (Node.ANY, 0, 0, None, None)
_MISSING: Final = Outside(None)
_NUMBERS: Final = {float: Node.FLOAT, int: Node.INT, complex: Node.COMPLEX}
_UNCHANGING: Final = (
    type(None), bool, int, float, complex, str, bytes, frozenset, range, slice, np.generic, np.dtype, type(np._NoValue),
    types.EllipsisType, types.ModuleType, *_FIXED,
)  # fmt: skip
_MIRRORS: Final = (MirrorList, MirrorDict)
_CHANGEABLE: Final = (list, dict, set, deque, bytearray, np.ndarray)
_UNREADABLE: Final = (
    set, bytearray, memoryview, np.random.Generator, np.random.RandomState, types.MappingProxyType,
    weakref.ReferenceType, *weakref.ProxyTypes,
)  # fmt: skip


class Path(NamedTuple):
    """Place of a value outside.

    Attributes
    ----------
    source : Source
        Kind of place.
    of : int
        Number of the row of the object that has the value, or of a value passed.
    owner : object
        Globals with builtins, a cell, or a class or function that is the same at every call.
    key : object
        Name or key.
    text : str
        Expression for messages, such as ``self.w``.
    """

    source: Source
    of: int
    owner: Any
    key: Any
    text: str

    @property
    def identity(self) -> Any:
        """Key that is equal for paths to the same place."""
        owner = id(self.owner[0]) if self.source is Source.GLOBAL else id(self.owner)
        return (self.source, self.of, owner if self.owner is not None else None, type(self.key), self.key)


class Hidden(NamedTuple):
    """Array or number from outside that is an argument of the program.

    Attributes
    ----------
    array : TracedArray
        Array or number as the function sees it.
    op : XlaOp
        First value.
    axes : tuple of int, optional
        Order of the dimensions in memory; None for row-major order.
    text : str
        Expression for messages.
    """

    array: TracedArray
    op: XlaOp
    axes: tuple[int, ...] | None
    text: str


class OutsideValues:
    """Values from outside that one traced function uses, and its changes of them.

    Parameters
    ----------
    trace : Trace
        Trace of the function.
    static : container of str
        Values that Python needs, by expression: they are guarded by value.
    numbers : dict of str to object
        Numbers that earlier traces have read, by expression. One that has changed since is an argument of the program.
    find_passed : callable, optional
        Function that returns the identities of the lists, dicts and dataclasses among the arguments.
    """

    def __init__(
        self, trace: Trace, static: frozenset[str], numbers: dict[str, Any],
        find_passed: Callable[[], set[int]] = set,
    ) -> None:  # fmt: skip
        self.trace, self.static, self.numbers, self._find_passed = trace, static, numbers, find_passed
        self.rows: list[Row] = []
        self.nodes: list[tuple[Any, ...]] = []
        self.hidden: list[Hidden] = []
        self.mirrors: list[MirrorList | MirrorDict] = []
        self.changes: dict[Any, tuple[Effect, Any]] = {}
        self.watched: dict[Any, Any] = {}  # snapshots of what functions without source may change
        self._objects: dict[int, tuple[Any, Path]] = {}  # objects that were reached, by identity
        self._arguments: dict[int, Path] = {}  # objects among the arguments, by identity
        self._row_numbers: dict[int, int] = {}  # their rows
        self._seen: dict[int, Any] = {}  # arrays and containers as the function sees them, by identity
        self._tuples: list[tuple[Any, ...]] = []  # that were read, which stay alive until the trace ends
        self._values: dict[Any, Any] = {}  # values by path
        self._refused: dict[int, tuple[Any, TraceError]] = {}  # errors of values that cannot be read, by identity
        self._classes: set[type] = set()  # whose methods the program depends on
        self._watched: set[types.FunctionType] = set()  # on whose code and defaults it depends
        self._count = 0
        self._has_twins = False  # if an object is several arguments
        self.originals: dict[int, tuple[Any, Any]] = {}  # values in the place of functions, and these, by identity
        self.functions: dict[Any, Any] = {}  # rewritten functions that the function calls, by those of the user
        self.static_arrays: list[tuple[Any, Any]] = []  # copies of arrays whose values the function needs, with keys
        self._inherited: set[Any] = set()  # attributes that a branch sets in an object, and that its class has
        self.methods: set[types.FunctionType] = set()  # those of the user's methods that Python has called

    # -- reading

    def register(self, value: Any, path: Path) -> None:
        """Register an object among the arguments, or that of a method, whose attributes come from outside."""
        self._has_twins |= id(value) in self._objects
        self._objects[id(value)] = (value, path)
        if path.source is Source.ARGUMENT:
            self._arguments[id(value)] = path
        self.watch_class(type(value))
        hooks.adopt_class(type(value))

    def register_fixed(self, value: Any) -> None:
        """Register a class or a function, which is the same at every call, whose attributes come from outside."""
        if id(value) not in self._objects:
            self._objects[id(value)] = (value, _fixed_path(value))

    def watch_class(self, kind: type) -> None:
        """Make the program depend on the methods of a class; those of Python and NumPy stay as they are."""
        if kind not in self._classes:
            self._classes.add(kind)
            found = class_guard(kind)
            if found is not None:
                self._add_row(_fixed_path(kind), [(Node.CLASS, 0, 0, found, None)])

    def watch_function(self, function: types.FunctionType) -> None:
        """Make the program depend on the code and the defaults of a function, which notebooks may replace."""
        if function in self._watched:
            return
        self._watched.add(function)
        named = function.__kwdefaults__
        parts = (function.__code__, function.__defaults__, named, *(named or {}).values())
        self._add_row(_fixed_path(function), [(Node.FUNCTION, 0, 0, function, parts)])

    def watch_method(self, method: types.MethodType, path: Path) -> None:
        """Make the program depend on a method of an object, which an attribute of its own would hide."""
        if path.identity not in self._values:
            self._values[path.identity] = method
            self._add_row(path, [(Node.METHOD, 0, 0, method.__func__, None)])

    def default(self, value: Any, name: str) -> Any:
        """Return a value that a function always has, such as a default of a parameter, as the function sees it."""
        if is_unchanging(value):
            return value
        return self.read(value, Path(Source.FIXED, 0, value, name, name))

    def is_outside(self, value: Any) -> bool:
        """Return True if an object was reached from outside."""
        return id(value) in self._objects

    def path_to(self, owner: Any, source: Source, key: Any, step: str) -> Path:
        """Return the path to a part of an object that was reached."""
        return Path(source, self._row_of(owner), None, key, f"{self._objects[id(owner)][1].text}{step}")

    def read(self, value: Any, path: Path) -> Any:
        """Return the value of a place as the function sees it, and make the program depend on it."""
        identity = path.identity
        change = self.changes.get(identity)
        if change is not None:
            return self._changed_value(change, path)
        if identity in self._values:
            return self._values[identity]
        if id(value) in self._refused:
            raise self._refused[id(value)][1]
        if isinstance(value, (TracedArray, SizedArray)):
            return value
        if isinstance(value, types.ModuleType):
            self.guard(value, path)
            self._values[identity] = value
            return value
        if callable(value) and _is_hashable(value) and value in NUMPY_ORIGINALS:
            self._add_row(path, [same_node(NUMPY_ORIGINALS[value])])
            return value
        if id(value) in self._arguments:
            self._row_of(value)
        seen = self._read_again(value, path) if id(value) in self._row_numbers else self._read_first(value, path)
        self._values[identity] = seen
        return seen

    def value_at(self, identity: Any, default: Any) -> Any:
        """Return the value of a place as the function saw it first; a default for one that it has not read."""
        return default if identity in self._inherited else self._values.get(identity, default)

    def _require_own(self, owner: Any, path: Path) -> None:
        """Make the program depend on an attribute being in the object itself: those of a class stay where they are."""
        if path.source is Source.ATTRIBUTE and path.key in getattr(owner, "__dict__", ()):
            attributes = self._add_row(self.path_to(owner, Source.ATTRIBUTE, "__dict__", ""), [_ANY_NODE])
            self._add_row(Path(Source.ITEM, attributes, None, path.key, path.text), [_ANY_NODE])

    def guard(self, value: Any, path: Path) -> None:
        """Make the program depend on a value that the function reads by itself, by value or by identity."""
        nodes: list[Any] = []
        if _is_plain(value) and not isinstance(value, np.generic):
            self._add_constant(value, nodes)
        else:
            is_function = callable(value) and _is_hashable(value)
            nodes.append(same_node(NUMPY_ORIGINALS.get(value, value) if is_function else value))
        self._add_row(path, nodes)

    def read_missing(self, path: Path) -> None:
        """Make the program depend on the absence of a value."""
        if path.identity not in self._values:
            self._add_row(path, [(Node.MISSING, 0, 0, None, None)])
            self._values[path.identity] = _MISSING

    def elements(self, mirror: Any, parts: Sequence[Any]) -> list[Any]:
        """Return the elements of a list or dict as the function sees them, and make the program depend on them."""
        real = mirror.real
        kind, key = (Node.DICT, tuple(real)) if isinstance(real, dict) else (Node.LIST, list)
        nodes: list[Any] = [(kind, len(parts), 0, key, None)]
        keys = list(real) if isinstance(real, dict) else range(len(real))
        found = [
            self._convert(v, self.path_to(real, Source.ITEM, k, f"[{k!r}]"), nodes)
            for k, v in zip(keys, parts, strict=True)
        ]
        self._add_row(self._objects[id(real)][1], nodes)
        return found

    def _changed_value(self, change: tuple[Effect, Any], path: Path) -> Any:
        if change[1] is DELETED:
            raise TraceError(f"{path.text} is read after it was deleted", where=user_line())
        return change[1]

    def _read_first(self, value: Any, path: Path) -> Any:
        nodes: list[Any] = []
        seen = self._convert(value, path, nodes)
        self._add_row(path, nodes, value)
        return seen

    def _read_again(self, value: Any, path: Path) -> Any:
        """Read an object that another path has led to: both must lead to one object at every call."""
        self.rows.append(Row(path.source, path.of, path.owner, path.key, 0, self._row_numbers[id(value)]))
        return self._seen.get(id(value), value)

    def _add_row(self, path: Path, nodes: list[Any], value: Any = None) -> int:
        self.rows.append(Row(path.source, path.of, path.owner, path.key, len(self.nodes)))
        self.nodes += nodes
        if value is not None and id(value) in self._objects:
            self._row_numbers.setdefault(id(value), len(self.rows) - 1)
        return len(self.rows) - 1

    def _row_of(self, value: Any) -> int:
        """Return the row of an object that was reached, which may be an element of a container."""
        number = self._row_numbers.get(id(value))
        if number is None:
            number = self._add_row(self._objects[id(value)][1], [_ANY_NODE], value)
        return number

    def _convert(self, value: Any, path: Path, nodes: list[Any]) -> Any:
        """Return a value as the function sees it, and append its nodes; lists and dicts have rows of their own."""
        try:
            return self._converted(value, path, nodes)
        except TraceError as error:
            self._refused[id(value)] = value, error
            raise

    def _converted(self, value: Any, path: Path, nodes: list[Any]) -> Any:
        self._count += 1
        if self._count > MOST_ELEMENTS:
            raise TraceError(
                f"{path.text} is one of more than {MOST_ELEMENTS} values from outside", where=user_line(),
                hint="use a NumPy array, or pass the values as an argument",
            )  # fmt: skip
        kind = type(value)
        if value is None or kind in (bool, str, bytes) or kind in _NUMBERS:
            return self._constant(value, path, nodes)
        if isinstance(value, np.generic):
            nodes.append((Node.STATIC_KEY, 0, 0, static_key(value), value))
            return value
        if kind is tuple or (isinstance(value, tuple) and hasattr(value, "_fields")):
            return self._tuple(value, path, nodes)
        if isinstance(value, np.ndarray):
            return self._array(value, path, nodes)
        bound = changing_object(value)
        if bound is not None:
            raise TraceError(
                f"{path.text} is a method of a {type(bound).__name__} from outside, whose contents may change",
                where=user_line(), hint="pass the object as an argument, and call its method in the function",
            )  # fmt: skip
        if is_unreadable(value):
            raise TraceError(
                f"{path.text} is a {kind.__name__} from outside, whose contents may change",
                where=user_line(),
                hint="pass it as an argument" if isinstance(value, np.random.Generator) else "use a tuple or a list",
            )
        return self._object(value, path, nodes)

    def _constant(self, value: Any, path: Path, nodes: list[Any]) -> Any:
        kind = type(value)
        is_number = kind in _NUMBERS and not (kind is int and not -(2**63) <= value < 2**63)
        if is_number and path.text not in self.static and self._has_changed(value, path.text):
            nodes.append((_NUMBERS[kind], 0, len(self.hidden), None, None))
            return self._parameter((), np.dtype({int: "q", float: "d", complex: "D"}[kind]), None, path.text, kind)
        self._add_constant(value, nodes)
        return value

    def _add_constant(self, value: Any, nodes: list[Any]) -> None:
        if value is None:
            nodes.append((Node.NONE, 0, 0, None, None))
        elif type(value) in (float, complex):
            nodes.append((Node.STATIC_KEY, 0, 0, static_key(value), value))
        else:
            nodes.append((Node.STATIC, 0, 0, value, None))

    def _has_changed(self, value: Any, text: str) -> bool:
        """Return True if a number was another one in an earlier trace."""
        key = static_key(value)
        if self.numbers.setdefault(text, key) != key:
            self.numbers[text] = None
        return self.numbers[text] is None

    def _tuple(self, value: Any, path: Path, nodes: list[Any]) -> Any:
        named = type(value) is not tuple
        nodes.append((Node.NAMED if named else Node.TUPLE, len(value), 0, type(value), None))
        self._objects[id(value)] = (value, path)
        parts = [self._convert(v, self._path_in_tuple(value, path, k, v), nodes) for k, v in enumerate(value)]
        del self._objects[id(value)]
        self._tuples.append(value)  # by whose identity it is known
        if not all(a is b for a, b in zip(parts, value, strict=True)):
            self._seen[id(value)] = type(value)(*parts) if named else tuple(parts)
        return self._seen.get(id(value), value)

    def _path_in_tuple(self, value: Any, path: Path, k: int, part: Any) -> Path:
        """Return the path to a part of a tuple; values that are compared with the tuple need a name alone."""
        step = f"[{k}]"
        if _is_plain(part):
            return path._replace(text=f"{path.text}{step}")
        return self.path_to(value, Source.ITEM, k, step)

    def _array(self, value: Any, path: Path, nodes: list[Any]) -> Any:
        dtype = value.dtype if value.dtype.isnative else value.dtype.newbyteorder("=")
        try:
            from_numpy(dtype)
        except OpError:
            dtype = None
        if dtype is None or type(value) is not np.ndarray:
            raise TraceError(
                f"{path.text} is a {type(value).__name__} of dtype {value.dtype} from outside", where=user_line(),
                hint="pass it as an argument, or convert it to an array of numbers",
            )  # fmt: skip
        first = self._objects.setdefault(id(value), (value, path))[1]
        if path.text in self.static:
            seen: Any = read_only_copy(value)
            self.static_arrays.append((seen, static_key(value)))
            nodes.append((Node.STATIC_KEY, 0, 0, self.static_arrays[-1][1], None))
        elif id(value) in self._seen:
            nodes.append(same_node(value))
            self._add_row(first, [same_node(value)])  # both places have this array in every call
            return self._seen[id(value)]
        else:
            axes = axes_of(value)
            nodes.append((Node.ARRAY, 0, len(self.hidden), (dtype, value.shape, axes), None))
            seen = self._parameter(value.shape, dtype, axes, path.text)
        self._seen[id(value)] = seen
        return seen

    def _parameter(
        self, shape: tuple[int, ...], dtype: Any, axes: tuple[int, ...] | None, text: str, weak: type | None = None
    ) -> TracedArray:
        sizes = shape if axes is None else tuple([shape[d] for d in axes])
        with tracing(self.trace):  # the array belongs to the function, also where a loop or branch reads it first
            op, memory = self.trace.parameter(Shape.array(from_numpy(dtype), sizes), text), None
            if axes is not None:
                op, memory = xla.transpose(op, inverse(axes)), dense(shape, dtype, axes)
            rank0 = Rank0.ARRAY if weak is None else Rank0.PYTHON
            array = TracedArray(op, weak, memory=memory, origin=text, rank0=rank0)
        self.hidden.append(Hidden(array, array.op, axes, text))
        return array

    def _object(self, value: Any, path: Path, nodes: list[Any]) -> Any:
        """Return an object by identity, or the mirror of a list or dict."""
        self._objects.setdefault(id(value), (value, path))
        if id(value) in self._passed_containers:
            raise TraceError(
                f"{path.text} is passed to the function, too", where=user_line(),
                hint="use the argument, or pass a copy",
            )  # fmt: skip
        if type(value) not in (list, dict):
            nodes.append(same_node(value))
            hooks.adopt_class(type(value))
            return value
        if id(value) in self._seen:  # both places have this object in every call
            nodes.append(same_node(value))
            self._require_same(value)
        else:
            nodes.append(_ANY_NODE)
            mirror = (MirrorList if type(value) is list else MirrorDict)(value, self)
            self.mirrors.append(mirror)
            self._seen[id(value)] = mirror
            self._objects[id(mirror)] = (value, path)
        return self._seen[id(value)]

    def forget_objects(self) -> None:
        """Forget the objects, when the trace has ended: mirrors refer to them and to this, and keep both alive."""
        self.mirrors.clear()
        for by_identity in (self._objects, self._seen, self._values, self._refused, self.originals):
            by_identity.clear()

    # -- changes

    def change(self, path: Path, effect: Callable[[Any, Any, Any], None], owner: Any, value: Any) -> None:
        """Record that a place gets a new value, or none if it is `Deleted`."""
        new = DELETED if value is Deleted else value
        if depth() > 1 and path.identity not in self.changes:  # a branch or loop may leave it as it is
            present = present_value(effect, owner, path.key)
            if effect is set_attribute and not has_own_attribute(owner, path.key):
                self._inherited.add(path.identity)
            elif present is not Deleted:
                self.read(present, path)
                self._require_own(owner, path)
        made = Effect(effect, owner_of(owner), path.key, path.text)
        old = self.changes.get(path.identity)
        if old is not None and effect is set_attribute:
            if old[1] is DELETED and new is not DELETED:
                made = made._replace(change=renew_attribute)
                del self.changes[path.identity]  # the attribute comes behind those set meanwhile
            elif old[0].change is renew_attribute:
                made = old[0]
        self.changes[path.identity] = (made, new)

    # -- the end of a trace

    def depends_on_classes(self) -> bool:
        """Return True if the objects among the arguments may be any of their classes, as long as they are several.

        The function has reached no other objects: they could be one of these in another call, and compared with it.
        """
        others = [value for value, _ in self._objects.values() if id(value) not in self._arguments]
        return bool(self._arguments) and not self._has_twins and not self.watched and all(map(_is_fixed, others))

    def argument_of(self, value: Any) -> int | None:
        """Return the number of the value passed that is an object; None for other objects."""
        path = self._arguments.get(id(value))
        return None if path is None else path.of

    @cached_property
    def _passed_containers(self) -> set[int]:
        return self._find_passed()

    def require_apart(self, places: Sequence[tuple[type, int, Sequence[tuple[Source, Any]]]]) -> None:
        """Make the program depend on its containers being several ones, since it changes or compares some.

        Parameters
        ----------
        places : sequence of (type, int, sequence of (Source, object))
            Type of each container among the arguments; number of the value passed that has it, and steps to it.
        """
        skipped = (np.ndarray, tuple, *_MIRRORS, *_UNCHANGING)
        reached = [v for v, _ in self._objects.values() if not isinstance(v, skipped)]
        changed = [mirror.real for mirror in self.mirrors if mirror.effects("")]
        by_kind: dict[type, list[Any]] = {}
        for value in reached:
            if id(value) not in self._arguments:
                by_kind.setdefault(type(value), []).append(value)
        for kind, source, steps in places:
            if kind in by_kind:
                self._keep_apart(self._row_at(source, steps), by_kind[kind])
        for value in changed:
            self._keep_apart(self._row_of(value), [v for v in by_kind[type(value)] if v is not value])

    def _keep_apart(self, row: int, others: Sequence[Any]) -> None:
        """Make the program depend on the object of a row being none of some others."""
        if len(self.rows) + len(others) > MOST_ELEMENTS:
            raise TraceError("the function changes containers beside too many others", hint="use arrays")
        for other in others:
            path = self._objects[id(other)][1]
            self.rows.append(Row(path.source, path.of, path.owner, path.key, 0, other_than=row))

    def _row_at(self, source: int, steps: Sequence[tuple[Source, Any]]) -> int:
        """Return the row of a container among the arguments."""
        path = Path(Source.ARGUMENT, source, None, None, "")
        number = self._add_row(path, [_ANY_NODE])
        for step, key in steps:
            number = self._add_row(Path(step, number, None, key, ""), [_ANY_NODE])
        return number

    def require_several_objects(self) -> None:
        """Make the program depend on the objects among the arguments being several ones."""
        rows = [self._row_of(value) for value, _ in list(self._objects.values()) if id(value) in self._arguments]
        for k, row in enumerate(rows):
            for other in rows[:k]:
                path = self.rows[row]
                self.rows.append(Row(path.source, path.of, path.owner, path.key, 0, other_than=other))

    def effects(self) -> list[tuple[Effect, Any]]:
        """Return all changes of objects, with the new values."""
        found = list(self.changes.values())
        for mirror in self.mirrors:
            text = self._objects[id(mirror.real)][1].text
            of_mirror = mirror.effects(text)
            if of_mirror:
                self._require_same(mirror.real)
            found += of_mirror
        return found

    def has_changes(self) -> bool:
        """Return True if the function has changed anything from outside so far."""
        is_written = any(h.array.op is not h.op for h in self.hidden)
        return is_written or bool(self.changes) or any(m.effects("") for m in self.mirrors)

    def as_result(self, value: Any) -> Any:
        """Return a value that comes from outside as a part of a result; None for other values."""
        if isinstance(value, _MIRRORS):
            self._require_same(value.real)
            return Outside(value.real)
        if id(value) in self.originals and (original := self._original_of(value)) is not None:
            return Outside(original)
        if id(value) in self._objects and not isinstance(value, np.ndarray):
            return Outside(value)
        return None

    def _original_of(self, value: Any) -> Any:
        """Return the function of the user in the place of which a value was passed; None for methods of new objects."""
        original = self.originals[id(value)][1]
        if not isinstance(original, types.MethodType) or isinstance(original.__self__, type):
            return original
        if id(original.__self__) not in self._objects:
            return None
        if id(original.__self__) in self._arguments:
            raise TraceError(
                f"the method {original.__name__} of an argument is returned or kept", where=user_line(),
                hint="return the object",
            )  # fmt: skip
        return original

    def guards(self) -> Guards:
        """Return the guards of the program."""
        read = [slot for kind, _, slot, *_ in self.nodes if kind <= Node.COMPLEX]
        if sorted(read) != list(range(len(self.hidden))):  # a read failed, which the trace has gone on without
            raise TraceError("some values from outside cannot be read", where=user_line())
        return Guards(self.rows, self.nodes, len(self.hidden))

    def _require_same(self, value: Any) -> None:
        self._add_row(self._objects[id(value)][1], [same_node(value)])

    def __iter__(self) -> Iterator[Hidden]:
        return iter(self.hidden)


def _fixed_path(value: Any) -> Path:
    """Return the path to a class or a function that is the same at every call."""
    name = value.__qualname__
    return Path(Source.FIXED, 0, value, name, name)


def _is_plain(value: Any) -> bool:
    """Return True if a value is compared by its value alone."""
    return value is None or type(value) in (bool, str, bytes, *_NUMBERS) or isinstance(value, np.generic)


def is_unchanging(value: Any) -> bool:
    """Return True for a value that nothing can change, such as a number or a function."""
    if type(value) is tuple:
        return all(map(is_unchanging, value))
    return isinstance(value, _UNCHANGING)


def _is_fixed(value: Any) -> bool:
    """Return True for arrays, and for what is the same at every call, such as functions."""
    return isinstance(value, (np.ndarray, types.ModuleType, *_FIXED))


def is_unreadable(value: Any) -> bool:
    """Return True for an object whose contents change by calls that nothing records: a set, an iterator, a Counter."""
    kind = type(value)
    is_of_collections = any(base.__module__ == "collections" for base in kind.__mro__)
    if isinstance(value, (*_UNREADABLE, array)) or is_of_collections:
        return True
    if isinstance(value, (list, dict)):
        return kind not in (list, dict)
    return isinstance(value, Iterator) and not isinstance(kind.__next__, types.FunctionType)


def _is_hashable(value: Any) -> bool:
    return getattr(type(value), "__hash__", None) is not None
