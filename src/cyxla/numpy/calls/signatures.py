"""Signatures of calls: static values, specs of the other arguments, and the key of the cache."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Sequence
from dataclasses import field, replace
from functools import partial
from types import MethodType
from typing import Any
from weakref import ref

import numpy as np

from cyxla._native.dispatch import Node, Receiver
from cyxla.errors import InvalidArgumentError, TraceError, UnimplementedError
from cyxla.numpy.calls.argument_adapters import STATIC_TYPES, Adapter, adapter_of, require_unchanging
from cyxla.numpy.calls.argument_binding import Binding
from cyxla.numpy.calls.argument_changes import ArgumentContainers
from cyxla.numpy.calls.lowering import MOST_STATIC, Spec
from cyxla.numpy.calls.number_lists import NumberLists, class_of_numbers
from cyxla.numpy.calls.receivers import is_object_of
from cyxla.numpy.calls.specs import array_of, array_spec, is_pair, spec
from cyxla.numpy.state.outside import is_unreadable
from cyxla.numpy.state.scope import outside_values
from cyxla.numpy.tracing import containers
from cyxla.numpy.tracing.containers import LEAF, Tree
from cyxla.numpy.tracing.results.zero_dim import Rank0
from cyxla.numpy.tracing.static_keys import read_only_copy, static_key
from cyxla.numpy.tracing.trace import current
from cyxla.numpy.tracing.user_program.needed_values import NeededValue
from cyxla.records import dataclass

MOST_NUMBERS = 1000  # Python's numbers in the containers of an argument
_DEFAULT = object()
_NUMBERS = {float: Node.FLOAT, int: Node.INT, bool: Node.BOOL, complex: Node.COMPLEX}
_STATIC_BY_VALUE = (str, bytes, int)
_MAX_NAME = 40  # greatest length of the name of a member in messages about recursive containers
_NODES = {
    containers.NONE: Node.NONE, containers.TUPLE: Node.TUPLE, containers.LIST: Node.LIST, containers.DICT: Node.DICT,
    containers.NAMED: Node.NAMED, containers.DATACLASS: Node.RECORD,
}  # fmt: skip


class Static:
    """Static value among the leaves, equal to those that the same program serves."""

    __slots__ = ("key", "value")

    def __init__(self, value: Any, key: Any) -> None:
        self.value, self.key = value, key

    @property
    def is_default(self) -> bool:
        """Whether it is a default that the call leaves, the same object in each call."""
        return type(self.key) is tuple and bool(self.key) and self.key[0] is _DEFAULT

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Static) and self.key == other.key

    def __hash__(self) -> int:
        return hash(self.key)

    def __repr__(self) -> str:
        return repr(self.value)


@dataclass
class Call:
    """Arguments of one call.

    Attributes
    ----------
    binding : Binding
        Binding of the values passed.
    leaves : list
        Values of the program's inputs; those with an adapter are converted for each run, see `adapt`.
    specs : list
        `Spec` for each input and `Static` for each static value, in the order of the function's arguments.
    names : list of str
        Name of each of `specs`.
    trees : list of Tree
        Structure of each argument.
    nodes : dict of int to list
        Nodes of each value passed, for `CallSignature`.
    inputs : list of range
        Indices of the inputs in each argument.
    growing : list of int
        Inputs that are lists of numbers whose lengths change from call to call.
    separate_lists : set of str
        Names of the lists of numbers that are passed one by one.
    fast_path : bool
        True if all leaves are passed on unchanged.
    passed : tuple
        Values passed.
    """

    binding: Binding
    leaves: list[Any] = field(default_factory=list)
    specs: list[Any] = field(default_factory=list)
    names: list[str] = field(default_factory=list)
    trees: list[Tree] = field(default_factory=list)
    nodes: dict[int, list[Any]] = field(default_factory=dict)
    inputs: list[range] = field(default_factory=list)
    growing: list[int] = field(default_factory=list)
    separate_lists: set[str] = field(default_factory=set)
    fast_path: bool = True
    passed: tuple[Any, ...] = ()

    @property
    def key(self) -> Any:
        """Key of the cache, equal for calls that one program serves."""
        return (self.binding.keywords, tuple(self.trees), tuple(self.specs))

    @property
    def key_of_classes(self) -> Any:
        """Key like `key`, with the classes of objects in their place; None without objects."""
        if not any(_is_receiver(s) for s in self.specs):
            return None
        specs = tuple([(Receiver, type(_value_of(s))) if _is_receiver(s) else s for s in self.specs])
        return (self.binding.keywords, tuple(self.trees), specs)

    def passed_nodes(self, *, with_lists: bool = True, of_classes: bool = False) -> list[Any]:
        """Return the nodes in the order of the values passed.

        Parameters
        ----------
        with_lists : bool
            Whether the arrays of lists are needed, as a program does.
        of_classes : bool
            Whether objects are compared by their classes.
        """
        out = [(Node.OUT, 0, 0, None, None)]
        nodes = [n for k in range(self.binding.passed) for n in (out if k == self.binding.out else self.nodes[k])]
        if of_classes:
            nodes = [_node_of_class(n) if n[0] is Node.RECEIVER else n for n in nodes]
        return nodes if with_lists else [(*n[:2], -1, *n[3:]) if n[0] is Node.NUMBERS else n for n in nodes]

    @property
    def adapters(self) -> dict[int, Adapter]:
        """Adapter of each input that has one."""
        if self.fast_path:
            return {}
        inputs = enumerate(s for s in self.specs if isinstance(s, Spec))
        return {k: s.adapter for k, s in inputs if s.adapter is not None}

    def adapt(self, values: list[Any]) -> list[Callable[[], None]]:
        """Convert inputs for a run, in place, and return functions that take back what this changes in arguments."""
        undo = []
        for k, adapter in self.adapters.items():
            undo.append(adapter.undo_of(values[k]))
            values[k] = adapter.array_of(values[k])
        return undo

    def without_arrays(self) -> Call:
        """Return the call without its arrays, which it would keep alive."""
        adapted = self.adapters
        leaves = [None if isinstance(v, np.ndarray) or k in adapted else v for k, v in enumerate(self.leaves)]
        return replace(self, leaves=leaves, passed=tuple(map(_without_object, self.passed)))

    def names_of(self, needed: NeededValue) -> frozenset[str]:
        """Return the names of the inputs that determine a value needed by Python, if all of them may be static."""
        names = [name for name, spec_ in zip(self.names, self.specs, strict=True) if isinstance(spec_, Spec)]
        inputs = needed.inputs or frozenset()
        if not all(k < len(names) and may_be_static(self.leaves[k], is_index=needed.is_index) for k in inputs):
            return frozenset()
        return frozenset(names[k] for k in inputs)

    @property
    def names_of_numbers(self) -> list[str]:
        """Names of Python's numbers that are inputs."""
        specs = zip(self.names, self.specs, strict=True)
        return [name for name, s in specs if isinstance(s, Spec) and s.rank0 is Rank0.PYTHON]

    @property
    def number_lists(self) -> dict[str, int]:
        """Inputs that are lists of numbers, by the names of the lists."""
        inputs = [(name, s) for name, s in zip(self.names, self.specs, strict=True) if isinstance(s, Spec)]
        return {name: k for k, (name, spec_) in enumerate(inputs) if spec_.numbers is not None}

    @property
    def receivers(self) -> list[tuple[str, int, Any]]:
        """Name, index among the values passed, and value of each argument that is an object by identity."""
        arguments = [a for a in self.binding.arguments if a.source is not None]
        values = [(a.name, a.source, self.passed[a.source]) for a in arguments if a.source is not None]
        return [(name, source, v.value) for name, source, v in values if isinstance(v, Receiver)]

    def apply(self, function: Callable[..., Any], leaves: Iterable[Any]) -> tuple[Any, ArgumentContainers]:
        """Call the function with other leaves in place of the specs; return its result and the containers it got."""
        remaining = iter([_as_seen(leaf, name) for leaf, name in zip(leaves, self.names, strict=True)])
        values = [tree.take(remaining) for tree in self.trees]
        named = [(a.name, a.source, v) for a, v in zip(self.binding.arguments, values, strict=True)]
        containers = ArgumentContainers(named)
        if (trace := current()) is not None:
            trace.program.arguments += values
        pairs = list(zip(self.binding.arguments, values, strict=True))
        keywords = {a.keyword: v for a, v in pairs if a.keyword and v is not np._NoValue}  # marks missing ones
        return function(*[v for a, v in pairs if not a.keyword], **keywords), containers


def _is_receiver(spec_: Any) -> bool:
    return isinstance(spec_, Static) and isinstance(spec_.value, (Receiver, _WeakReceiver))


def _node_of_class(node: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return the node of the class of an object."""
    return (Node.INSTANCE, 0, 0, type(node[3]() if node[1] else node[3]), None)


def _without_object(value: Any) -> Any:
    """Return a value passed without keeping arrays or the object of a method alive."""
    if isinstance(value, Receiver):
        try:
            return _WeakReceiver(value.value)
        except TypeError:
            return value
    return None if isinstance(value, np.ndarray) else value


def _as_seen(leaf: Any, name: str) -> Any:
    """Return an argument as the function gets it; what a default or a bound function holds comes from outside."""
    outside = outside_values()
    holds_values = isinstance(leaf, Static) and (leaf.is_default or isinstance(leaf.value, (partial, MethodType)))
    return outside.default(leaf.value, name) if outside is not None and holds_values else _value_of(leaf)


def _value_of(leaf: Any) -> Any:
    if isinstance(leaf, Static):
        if isinstance(leaf.value, Receiver):
            return leaf.value.value
        return leaf.value() if isinstance(leaf.value, _WeakReceiver) else leaf.value
    return leaf


def read_arguments(
    binding: Binding, passed: Sequence[Any], *, specs: bool = False, needed: Container[str] = (),
    lists: NumberLists | None = None, package: str | None = None,
) -> Call:  # fmt: skip
    """Read the arguments of a call.

    Parameters
    ----------
    binding : Binding
        Binding of the values.
    passed : sequence
        Values passed.
    specs : bool
        Whether a `Spec`, or a pair of shape and dtype, may stand for an array.
    needed : container of str
        Names of numbers and small arrays whose values the function needs while it is traced, so that they are static.
    lists : NumberLists, optional
        Lists of numbers that are passed as arrays; none by default.
    package : str, optional
        Package or module whose objects may be arguments, by identity; none by default.

    Raises
    ------
    DTypeError, TraceError
        An argument is neither an array nor a number nor static; the message names it.
    """
    passed = list(passed)
    for a in binding.arguments if package is not None else ():
        if a.source is not None and not a.static and is_object_of(passed[a.source], package):
            passed[a.source] = Receiver(passed[a.source])
    call = Call(binding, passed=tuple(passed))
    for a in binding.arguments:
        reader = _Reader(call, [], specs, needed, lists)
        start = len(call.leaves)
        if a.source is None and not a.static:
            call.trees.append(reader.default(a.default, a.name))
        else:
            value = a.default if a.source is None else passed[a.source]
            call.trees.append(reader.static(value, a.name) if a.static else reader.read(value, a.name))
            if a.source is not None:
                call.nodes[a.source] = reader.nodes
        call.inputs.append(range(start, len(call.leaves)))
    return call


class _Reader:
    """Reader of one argument."""

    def __init__(
        self, call: Call, nodes: list[Any], specs: bool, needed: Container[str], lists: NumberLists | None
    ) -> None:
        self.call, self.nodes, self.specs, self.needed, self.lists = call, nodes, specs, needed, lists

    def read(self, value: Any, name: str) -> Tree:
        if self.specs and is_pair(value):
            value = spec(*value)
        kind = None if type(value) in (np.ndarray, Spec) else containers.kind_of(value)
        if kind is None:
            self._leaf(value, name)
            return LEAF
        if self.lists is not None and kind is containers.LIST and type(value) is list:
            array = self.lists.array_of(name, value)
            if array is not None:
                self._add_numbers(array, value, name)
                return LEAF
            if len(value) > 1 and class_of_numbers(value) is not None:
                self.call.separate_lists.add(name)
        parts, key = kind.parts(value), kind.key(value)
        node = _NODES.get(kind)
        if node is None:
            self.call.fast_path = False
        self.nodes.append((node, len(parts), 0, *_node_keys(node, value)))
        if len(parts) > MOST_NUMBERS and not self.specs and all(type(p) in _NUMBERS for p in parts):
            raise _too_many_numbers(name)
        steps = zip(kind.paths(value), parts, strict=True)
        try:
            return Tree(kind, key, tuple([self.read(part, name + step) for step, part in steps]))
        except RecursionError:
            raise TraceError(f"argument {name[:_MAX_NAME]}... is nested too deep, or contains itself") from None

    def _add_numbers(self, array: np.ndarray[Any, Any], values: list[Any], name: str) -> None:
        """Add a list of numbers that is passed as an array."""
        kind = class_of_numbers(values)
        assert kind is not None
        slot = len(self.call.leaves)
        if array.ndim > 1:
            self.call.fast_path = False
        elif self.lists is not None and self.lists.grows(name, values):
            self.call.growing.append(slot)
        self._add_input(array, Spec(array.shape, array.dtype, numbers=kind), name)
        self.nodes.append((Node.NUMBERS, len(values), slot, int(_NUMBERS[kind]), None))

    def static(self, value: Any, name: str) -> Tree:
        if isinstance(value, Receiver):
            return self._receiver(value, name)
        if type(value) is np.ndarray:  # the caller's may be written later, and the function writes to its argument
            value = read_only_copy(value)
        try:
            key = static_key(value)
            hash(key)
        except TypeError as error:
            raise InvalidArgumentError(
                f"static argument {name} is a {type(value).__name__}, which cannot be hashed: {error}",
                hint="pass a tuple or a frozen dataclass",
            ) from None
        self._append_static(Static(value, key), name)
        if type(value) in _STATIC_BY_VALUE:
            self.nodes.append((Node.STATIC, 0, 0, value, None))
        else:
            self.nodes.append((Node.STATIC_KEY, 0, 0, key, value))
        return LEAF

    def default(self, value: Any, name: str) -> Tree:
        """Return the tree of a default, which is static: an axis, or a flag."""
        self._append_static(Static(value, (_DEFAULT, name)), name)
        return LEAF

    def _receiver(self, value: Receiver, name: str) -> Tree:
        if is_unreadable(value.value):
            kind = type(value.value).__name__
            raise UnimplementedError(f"{name} is a {kind}, whose contents may change", hint="keep them in an attribute")
        try:
            receiver: Any = _WeakReceiver(value.value)
        except TypeError:
            receiver = value
        self._append_static(
            Static(receiver, (Receiver, receiver if isinstance(receiver, _WeakReceiver) else id(value.value))), name
        )
        weak = isinstance(receiver, _WeakReceiver)
        self.nodes.append((Node.RECEIVER, int(weak), 0, receiver if weak else value.value, None))
        return LEAF

    def _append_static(self, value: Static, name: str) -> None:
        self.call.specs.append(value)
        self.call.names.append(name)

    def _leaf(self, value: Any, name: str) -> None:
        kind = type(value)
        if name in self.needed and may_be_static(value):
            self.static(value, name)
        elif kind in _NUMBERS and not (kind is int and not -(2**63) <= value < 2**63):
            self._add_input(value, Spec((), kind if kind is not bool else np.dtype(bool), rank0=Rank0.PYTHON), name)
            if len(self.call.leaves) > MOST_NUMBERS and not self.specs:
                self._require_few_numbers(name)
            self.nodes.append((_NUMBERS[kind], 0, len(self.call.leaves) - 1, None, None))
        elif kind is np.ndarray or isinstance(value, np.generic):
            leaf_spec = array_spec(value, name)
            self._add_input(value, leaf_spec, name)
            node = Node.ARRAY if leaf_spec.rank0 is Rank0.ARRAY else Node.SCALAR
            self.nodes.append(
                (node, 0, len(self.call.leaves) - 1, (leaf_spec.kind, leaf_spec.shape, leaf_spec.axes), None)
            )
        elif kind is Spec and self.specs:
            self._add_input(value, value, name)
        elif isinstance(value, (*STATIC_TYPES, Receiver)) or kind is int:
            require_unchanging(value)
            self.static(value, name)
        else:
            self.call.fast_path = False
            self._read_adapted(value, name)

    def _require_few_numbers(self, name: str) -> None:
        """Refuse an argument of too many numbers, each of which would be an input of the program."""
        argument = name.partition("[")[0]
        first = self.call.names.index(next(n for n in self.call.names if n.partition("[")[0] == argument))
        numbers = sum(isinstance(s, Spec) and s.rank0 is Rank0.PYTHON for s in self.call.specs[first:])
        if numbers > MOST_NUMBERS:
            raise _too_many_numbers(argument)

    def _read_adapted(self, value: Any, name: str) -> None:
        """Read an argument that is converted to an array."""
        adapter = adapter_of(value)
        if adapter is None:
            self._leaf(array_of(value, name), name)
        else:
            self._add_input(value, Spec(adapter.shape, adapter.dtype, adapter), name)

    def _add_input(self, value: Any, spec_: Spec, name: str) -> None:
        self.call.leaves.append(value)
        self.call.specs.append(spec_)
        self.call.names.append(name)


def has_long_lists(call: Call) -> bool:
    """Return True if a list has more numbers than can be passed one by one."""
    return any(call.leaves[k].size > MOST_NUMBERS for k in call.number_lists.values())


def _too_many_numbers(name: str) -> TraceError:
    return TraceError(
        f"argument {name} has more than {MOST_NUMBERS} numbers", hint="pass them as an array: np.array(x)"
    )


def may_be_static(value: Any, *, is_index: bool = True) -> bool:
    """Return True if a program may be specialised for a value: a number, or a few integers as an index or a size."""
    if type(value) in _NUMBERS or isinstance(value, np.generic):
        return True
    return is_index and type(value) is np.ndarray and value.dtype.kind in "biu" and value.size <= MOST_STATIC


def _node_keys(node: Node | None, value: Any) -> tuple[Any, Any]:
    """Return key and names of a container's node."""
    if node is Node.DICT:
        return tuple(value), None
    if node is Node.RECORD:
        return type(value), containers.field_names(value)
    return type(value), None


class _WeakReceiver(ref):  # type: ignore[type-arg]
    """Weak reference to the receiver of a method, compared by identity."""

    __slots__ = ("_id",)

    def __init__(self, value: Any) -> None:
        super().__init__(value)  # type: ignore[call-arg]
        self._id = id(value)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _WeakReceiver) and self() is not None and self() is other()

    def __hash__(self) -> int:
        return self._id
