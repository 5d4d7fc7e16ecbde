"""Arguments of a call: which are static, what is known of the others, and which calls mean the same."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple
from weakref import ref

import numpy as np

from cyxla._native.dispatch import Node, Receiver
from cyxla.errors import DTypeError, InvalidArgumentError, OpError, ShapeError, TraceError, UnimplementedError
from cyxla.numpy.calls import containers
from cyxla.numpy.calls.arguments import STATIC_TYPES, adapter_of
from cyxla.numpy.calls.containers import LEAF, Tree
from cyxla.numpy.calls.lowering import Spec
from cyxla.numpy.tracing.traced_array import TracedArray, require_plain
from cyxla.types import from_numpy

OUT = "out"
_DEFAULT = object()
_NUMBERS = {float: Node.FLOAT, int: Node.INT, bool: Node.BOOL, complex: Node.COMPLEX}
_PLAIN = (str, bytes, int)
_LONGEST = 40  # letters of the name of a part of a container that contains itself
_NODES = {
    containers.NONE: Node.NONE, containers.TUPLE: Node.TUPLE, containers.LIST: Node.LIST, containers.DICT: Node.DICT,
    containers.NAMED: Node.NAMED, containers.DATACLASS: Node.RECORD,
}  # fmt: skip


class Argument(NamedTuple):
    """An argument of the function.

    Attributes
    ----------
    name : str
        As a reader would write it: ``x``, ``args[0]``.
    source : int or None
        Which of the values passed it is, keywords counted after the others; None for a default.
    default : object
        The default.
    static : bool
        Whether it is static.
    keyword : str
        The name that it is passed on by; empty for one passed by position.
    """

    name: str
    source: int | None
    default: Any
    static: bool
    keyword: str


@dataclass(frozen=True)
class Form:
    """How the values that a call passes become the arguments of the function.

    Attributes
    ----------
    arguments : tuple of Argument
        All of them, in the order of the function's signature.
    out : int or None
        Which of the values passed is ``out=``.
    passed : int
        How many values are passed.
    """

    arguments: tuple[Argument, ...]
    out: int | None
    passed: int

    @property
    def keywords(self) -> tuple[str, ...]:
        """What is equal for forms whose arguments mean the same."""
        return tuple([a.keyword for a in self.arguments])


class StaticNames:
    """Which parameters of a function an option such as ``static=`` names.

    Parameters
    ----------
    option : str
        Its name.
    given : sequence of int or str
        Positions and names of parameters.
    signature : inspect.Signature or None
        Of the function.

    Raises
    ------
    InvalidArgumentError
        There is no such parameter.
    """

    def __init__(self, option: str, given: Any, signature: inspect.Signature | None) -> None:
        try:
            some = (given,) if isinstance(given, (int, str)) else tuple(given)
        except TypeError:
            raise InvalidArgumentError(f"{option} is {given!r}", hint="give positions and names of arguments") from None
        self.parameters = list(signature.parameters.values()) if signature is not None else []
        kinds = {p.kind for p in self.parameters}
        self._positional = [p.name for p in self.parameters if p.kind in _POSITIONAL]
        self._any_position = signature is None or inspect.Parameter.VAR_POSITIONAL in kinds
        self._any_name = signature is None or inspect.Parameter.VAR_KEYWORD in kinds
        self.positions: set[int] = set()
        self.names: set[str] = set()
        for key in some:
            self._add(option, key)

    def _add(self, option: str, key: Any) -> None:
        if isinstance(key, str):
            if key not in {p.name for p in self.parameters} and not self._any_name:
                raise InvalidArgumentError(f"{option}: there is no argument {key!r}", hint=self._known())
            self.names.add(key)
            return
        try:
            position = key.__index__()
        except AttributeError:
            raise InvalidArgumentError(
                f"{option}: {key!r} is neither the position nor the name of an argument"
            ) from None
        if position < 0:
            position += len(self._positional)
        if 0 <= position < len(self._positional):
            self.names.add(self._positional[position])
        elif position >= 0 and self._any_position:
            self.positions.add(position)
        else:
            raise InvalidArgumentError(f"{option}: there is no argument {key}", hint=self._known())

    def _known(self) -> str:
        return f"arguments are {', '.join(p.name for p in self.parameters) or 'none'}"

    def has(self, name: str, position: int | None = None) -> bool:
        """Whether a parameter, or a value passed for ``*args``, is among them."""
        return name in self.names or (position is not None and position in self.positions)

    def flags(self) -> tuple[bytes, bool]:
        """For each position whether it is among them; and whether those behind them all are."""
        rest = any(p.kind is inspect.Parameter.VAR_POSITIONAL and p.name in self.names for p in self.parameters)
        count = max([len(self._positional), *[p + 1 for p in self.positions]], default=0)
        named = [k < len(self._positional) and self._positional[k] in self.names for k in range(count)]
        return bytes(
            [n or k in self.positions or (rest and k >= len(self._positional)) for k, n in enumerate(named)]
        ), rest

    def __bool__(self) -> bool:
        return bool(self.positions or self.names)


_POSITIONAL = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)


class _Token(NamedTuple):
    source: int


def form_of(
    name: str, signature: inspect.Signature | None, static: StaticNames, nargs: int, kwnames: Sequence[str]
) -> Form:
    """How a call with so many positional arguments and these names is to be read.

    Raises
    ------
    TypeError
        The function does not take such a call.
    """
    takes_out = signature is not None and OUT in signature.parameters
    out = nargs + kwnames.index(OUT) if OUT in kwnames and not takes_out else None
    named = {n: _Token(nargs + k) for k, n in enumerate(kwnames) if nargs + k != out}
    tokens = [_Token(k) for k in range(nargs)]
    if signature is None:
        parts = [_argument(f"argument {k}", t, static.has("", k), "") for k, t in enumerate(tokens)]
        parts += [_argument(n, t, static.has(n), n) for n, t in named.items()]
        return Form(tuple(parts), out, nargs + len(kwnames))
    try:
        bound = signature.bind(*tokens, **named)
    except TypeError as error:
        raise TypeError(f"{name}() {error}") from None
    bound.apply_defaults()
    return Form(tuple(_arguments(signature, bound.arguments, static)), out, nargs + len(kwnames))


def _arguments(signature: inspect.Signature, bound: Mapping[str, Any], static: StaticNames) -> Iterator[Argument]:
    position = 0
    for name, p in signature.parameters.items():
        value = bound[name]
        if p.kind is inspect.Parameter.VAR_POSITIONAL:
            for k, token in enumerate(value):
                yield _argument(f"{name}[{k}]", token, static.has(name, position + k), "")
        elif p.kind is inspect.Parameter.VAR_KEYWORD:
            for key, token in value.items():
                yield _argument(key, token, static.has(name) or static.has(key), key)
        else:
            yield _argument(name, value, static.has(name), "" if p.kind in _POSITIONAL else name)
            position += p.kind in _POSITIONAL


def _argument(name: str, value: Any, static: bool, keyword: str) -> Argument:
    if isinstance(value, _Token):
        return Argument(name, value.source, None, static, keyword)
    return Argument(name, None, value, static, keyword)


class Static:
    """A static value among the leaves; equal to those for which the same program is right."""

    __slots__ = ("key", "value")

    def __init__(self, value: Any, key: Any) -> None:
        self.value, self.key = value, key

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Static) and self.key == other.key

    def __hash__(self) -> int:
        return hash(self.key)

    def __repr__(self) -> str:
        return repr(self.value)


def static_key(value: Any) -> Any:
    """What equal static values have in common: 1, 1.0 and True are three, and so are 0.0 and -0.0."""
    kind = type(value)
    if kind in (tuple, frozenset):
        return (kind, kind(map(static_key, value)))
    if kind is float:
        return (kind, value.hex())
    if kind is complex:
        return (kind, value.real.hex(), value.imag.hex())
    if kind is slice:
        return (kind, static_key(value.start), static_key(value.stop), static_key(value.step))
    if isinstance(value, (np.generic, np.dtype)):
        return (kind, value, value.tobytes() if isinstance(value, np.generic) else None)
    return (kind, value)


@dataclass
class Call:
    """The arguments of one call, read.

    Attributes
    ----------
    form : Form
        How they were passed.
    leaves : list
        The values of the program's inputs.
    specs : list
        A `Spec` for each input, and a `Static` for each static value, in the order of the function's arguments.
    names : list of str
        What to call each of `specs`.
    trees : list of Tree
        The containers, one for each argument.
    nodes : dict of int to list
        What `Way` wants to know of each value passed.
    inputs : list of range
        The inputs of the program that each argument holds.
    plain : bool
        Whether all leaves are passed on as they came.
    """

    form: Form
    leaves: list[Any] = field(default_factory=list)
    specs: list[Any] = field(default_factory=list)
    names: list[str] = field(default_factory=list)
    trees: list[Tree] = field(default_factory=list)
    nodes: dict[int, list[Any]] = field(default_factory=dict)
    inputs: list[range] = field(default_factory=list)
    plain: bool = True

    @property
    def key(self) -> Any:
        """Equal for calls that one program serves."""
        return (self.form.keywords, tuple(self.trees), tuple(self.specs))

    def way(self) -> list[Any]:
        """The nodes in the order in which the values were passed."""
        out = [(Node.OUT, 0, 0, None, None)]
        return [n for k in range(self.form.passed) for n in (out if k == self.form.out else self.nodes[k])]

    def apply(self, function: Callable[..., Any], leaves: Iterable[Any]) -> Any:
        """Call the function with other leaves in the place of the specs."""
        rest = iter([_value_of(leaf) for leaf in leaves])
        values = [tree.take(rest) for tree in self.trees]
        pairs = list(zip(self.form.arguments, values, strict=True))
        keywords = {a.keyword: v for a, v in pairs if a.keyword and v is not np._NoValue}  # NumPy's mark of none given
        return function(*[v for a, v in pairs if not a.keyword], **keywords)


def _value_of(leaf: Any) -> Any:
    if isinstance(leaf, Static):
        if isinstance(leaf.value, Receiver):
            return leaf.value.value
        return leaf.value() if isinstance(leaf.value, _Weak) else leaf.value
    return leaf


def read(form: Form, passed: Sequence[Any], *, specs: bool = False) -> Call:
    """Read the arguments of a call.

    Parameters
    ----------
    form : Form
        How they are passed.
    passed : sequence
        The values.
    specs : bool
        Whether a `Spec`, or a pair of sizes and a dtype, may stand for an array.

    Raises
    ------
    DTypeError, TraceError
        One is neither an array nor a number nor static; the message names it.
    """
    call = Call(form)
    for a in form.arguments:
        reader = _Reader(call, [], specs)
        before = len(call.leaves)
        if a.source is None and not a.static:
            call.trees.append(reader.default(a.default, a.name))
        else:
            value = a.default if a.source is None else passed[a.source]
            call.trees.append(reader.static(value, a.name) if a.static else reader.read(value, a.name))
            if a.source is not None:
                call.nodes[a.source] = reader.nodes
        call.inputs.append(range(before, len(call.leaves)))
    return call


class _Reader:
    """Reads one argument."""

    def __init__(self, call: Call, nodes: list[Any], specs: bool) -> None:
        self.call, self.nodes, self.specs = call, nodes, specs

    def read(self, value: Any, name: str) -> Tree:
        if self.specs and _is_pair(value):
            value = spec(*value)
        kind = None if type(value) in (np.ndarray, Spec) else containers.kind_of(value)
        if kind is None:
            self._leaf(value, name)
            return LEAF
        parts, key = kind.parts(value), kind.key(value)
        node = _NODES.get(kind)
        if node is None:
            self.call.plain = False
        self.nodes.append((node, len(parts), 0, *_keys(node, value)))
        steps = zip(kind.paths(value), parts, strict=True)
        try:
            return Tree(kind, key, tuple([self.read(part, name + step) for step, part in steps]))
        except RecursionError:
            raise TraceError(f"argument {name[:_LONGEST]}... contains itself") from None

    def static(self, value: Any, name: str) -> Tree:
        if isinstance(value, Receiver):
            return self._receiver(value)
        try:
            key = static_key(value)
            hash(key)
        except TypeError as error:
            raise InvalidArgumentError(
                f"static argument {name} is a {type(value).__name__}, which cannot be hashed: {error}",
                hint="a tuple can be, or a frozen dataclass",
            ) from None
        self._append_static(Static(value, key), name)
        if type(value) in _PLAIN:
            self.nodes.append((Node.STATIC, 0, 0, value, None))
        else:
            self.nodes.append((Node.STATIC_KEY, 0, 0, key, value))
        return LEAF

    def default(self, value: Any, name: str) -> Tree:
        """A default that is left out stays what it is: an axis, or a flag."""
        self._append_static(Static(value, (_DEFAULT, name)), name)
        return LEAF

    def _receiver(self, value: Receiver) -> Tree:
        try:
            held: Any = _Weak(value.value)
        except TypeError:
            held = value
        self._append_static(Static(held, (Receiver, held if isinstance(held, _Weak) else id(value.value))), "self")
        weak = isinstance(held, _Weak)
        self.nodes.append((Node.RECEIVER, int(weak), 0, held if weak else value.value, None))
        return LEAF

    def _append_static(self, value: Static, name: str) -> None:
        self.call.specs.append(value)
        self.call.names.append(name)

    def _leaf(self, value: Any, name: str) -> None:
        kind = type(value)
        if kind in _NUMBERS and not (kind is int and not -(2**63) <= value < 2**63):
            self._input(value, Spec((), kind if kind is not bool else np.dtype(bool)), name)
            self.nodes.append((_NUMBERS[kind], 0, len(self.call.leaves) - 1, None, None))
        elif kind is np.ndarray or isinstance(value, np.generic):
            made = array_spec(value, name)
            self._input(value, made, name)
            self.nodes.append((Node.ARRAY, 0, len(self.call.leaves) - 1, (made.kind, made.shape), None))
        elif kind is Spec and self.specs:
            self._input(value, value, name)
        elif isinstance(value, (*STATIC_TYPES, Receiver)) or kind is int:
            self.static(value, name)
        else:
            self.call.plain = False
            self._adapt(value, name)

    def _adapt(self, value: Any, name: str) -> None:
        """Read what becomes an array."""
        found = adapter_of(value)
        if found is None:
            self._leaf(array_of(value, name), name)
        else:
            array = None if self.specs else found.array_of(value)
            self._input(array, Spec(found.shape, found.dtype, found), name)

    def _input(self, value: Any, what: Spec, name: str) -> None:
        self.call.leaves.append(value)
        self.call.specs.append(what)
        self.call.names.append(name)


def _keys(node: Node | None, value: Any) -> tuple[Any, Any]:
    """Key and names of a container's node."""
    if node is Node.DICT:
        return tuple(value), None
    if node is Node.RECORD:
        return type(value), containers.field_names(value)
    return type(value), None


class _Weak(ref):  # type: ignore[type-arg]
    """What a method is called on, by identity; it lives no longer for that."""

    __slots__ = ("_id",)

    def __init__(self, value: Any) -> None:
        super().__init__(value)  # type: ignore[call-arg]
        self._id = id(value)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Weak) and self() is not None and self() is other()

    def __hash__(self) -> int:
        return self._id


def array_spec(value: Any, name: str) -> Spec:
    """What is known of an array.

    Raises
    ------
    DTypeError
        Its elements are none that a program can work on.
    """
    dtype = value.dtype if value.dtype.isnative else value.dtype.newbyteorder("=")
    try:
        from_numpy(dtype)
    except OpError:
        raise DTypeError(
            f"argument {name} is an array of dtype {value.dtype}, which cannot be compiled",
            hint="convert it first, such as by x.astype(float)",
        ) from None
    return Spec(value.shape, dtype)


def array_of(value: Any, name: str) -> Any:
    """The array that an argument stands for, by one of NumPy's protocols.

    Raises
    ------
    DTypeError
        It stands for none.
    """
    if isinstance(value, TracedArray):
        raise TraceError(
            f"argument {name} is a traced value of a function that has ended",
            hint="return it from the function instead of keeping it elsewhere",
        )
    for kind in (float, int, complex):  # classes made from Python's numbers
        if isinstance(value, kind):
            made: Any = kind
            return made(value)
    require_plain(value, f"argument {name}")
    if isinstance(value, (np.ndarray, memoryview, bytearray)) or hasattr(value, "__array__") or _is_buffer(value):
        return np.asarray(value).view(np.ndarray)
    if hasattr(value, "__dlpack__"):
        return np.from_dlpack(value)
    raise DTypeError(
        f"argument {name} is a {type(value).__name__}, which is neither an array nor a number nor a container",
        hint="name it in static= if it can be hashed, or make its class a dataclass of arrays",
    )


def _is_buffer(value: Any) -> bool:
    try:
        memoryview(value)
    except TypeError:
        return False
    return True


def spec(shape: Any, dtype: Any = float) -> Spec:
    """Describe an array that an argument will be.

    Parameters
    ----------
    shape : int or sequence of int
        Its sizes.
    dtype : dtype
        Of its elements.

    Raises
    ------
    ShapeError, DTypeError
        There is no such array.
    UnimplementedError
        A size is None.

    Examples
    --------
    >>> print(spec((3, 4), "f4"))
    float32[3,4]
    """
    sizes = (shape,) if hasattr(shape, "__index__") else tuple(shape)
    if None in sizes:
        raise UnimplementedError(
            f"a program for arrays of sizes {shape}, None standing for any size",
            hint="jit compiles for each size that it meets; pad to a few sizes where there are many",
        )
    try:
        made = np.broadcast_to(np.empty((), np.dtype(dtype)), [s.__index__() for s in sizes])
    except (ValueError, AttributeError):
        raise ShapeError(f"{shape!r} are no sizes of an array") from None
    except TypeError:
        raise DTypeError(f"{dtype!r} is no dtype") from None
    return array_spec(made, "spec")


def _is_pair(value: Any) -> bool:
    """Whether this is a pair of sizes and a dtype."""
    if type(value) is not tuple or len(value) != 2 or not isinstance(value[0], (tuple, list)):
        return False
    if not all(s is None or hasattr(s, "__index__") for s in value[0]) or isinstance(value[1], (tuple, list)):
        return False
    return isinstance(value[1], (str, type, np.dtype))
