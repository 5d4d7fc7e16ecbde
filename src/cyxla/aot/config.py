"""Configuration of a graph that is compiled ahead of time: TensorFlow's ``tf2xla.Config``, and the same in Python."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from cyxla.aot.program import is_identifier
from cyxla.core.framework.protos import messages
from cyxla.core.framework.types import DataType
from cyxla.errors import InvalidArgumentError, UnimplementedError


@dataclass(frozen=True)
class TensorId:
    """Tensor of a graph.

    Attributes
    ----------
    node_name : str
        Name of the node.
    output_index : int
        Number of its output.
    """

    node_name: str
    output_index: int = 0

    @staticmethod
    def of(value: TensorId | str) -> TensorId:
        """Return the tensor of a text such as ``"x"`` or ``"x:1"``."""
        if isinstance(value, TensorId):
            return value
        node, colon, output = value.partition(":")
        if colon and not output.isdecimal():
            raise InvalidArgumentError(f"{value!r} is not the name of a tensor", hint="such as x or x:1")
        return TensorId(node, int(output or 0))

    def __str__(self) -> str:
        return f"{self.node_name}:{self.output_index}"


@dataclass(frozen=True)
class Feed:
    """Tensor that is an argument.

    Attributes
    ----------
    id : TensorId or str
        The tensor.
    shape : tuple of int, optional
        Sizes of the tensor, which a compilation needs.
    name : str
        Name of the argument; by default that of the node.
    type : DataType, optional
        Type of the tensor, which has to be that of the graph.
    """

    id: TensorId | str
    shape: tuple[int, ...] | None = None
    name: str = ""
    type: DataType | None = None


@dataclass(frozen=True)
class Fetch:
    """Tensor that is a result; the attributes are those of `Feed`, its shape and type are checked if they are given."""

    id: TensorId | str
    name: str = ""
    shape: tuple[int, ...] | None = None
    type: DataType | None = None


@dataclass(frozen=True)
class Variable:
    """Variable of the graph: an argument, unless its value is given; and a result as well if it is assigned.

    Attributes
    ----------
    node_name : str
        Name of the node that holds it.
    name : str
        Name of the argument; by default that of the node.
    shape : tuple of int, optional
        Sizes of the variable; by default those of the node.
    type : DataType, optional
        Type of the variable, which has to be that of the node.
    readonly : bool
        True for an error if the graph assigns it.
    """

    node_name: str
    name: str = ""
    shape: tuple[int, ...] | None = None
    type: DataType | None = None
    readonly: bool = False


@dataclass(frozen=True)
class Config:
    """Arguments, results and variables of a graph.

    Attributes
    ----------
    feed : sequence of Feed
        Arguments, in order.
    fetch : sequence of Fetch
        Results, in order.
    variable : sequence of Variable
        Variables, of which those without values are further arguments.
    """

    feed: Sequence[Feed] = ()
    fetch: Sequence[Fetch] = ()
    variable: Sequence[Variable] = field(default=())

    @staticmethod
    def parse(source: str | bytes) -> Config:
        """Read the text or binary form of ``tf2xla.Config``.

        Raises
        ------
        InvalidArgumentError
            It is neither; the error says at which line and column.
        """
        if isinstance(source, bytes):
            try:
                return Config.parse(source.decode())
            except (UnicodeDecodeError, InvalidArgumentError):
                return _from_message(messages.parse_binary("tf2xla.Config", source))
        return _from_message(messages.parse_text("tf2xla.Config", source))

    def to_text(self) -> str:
        """Return the text form."""
        return messages.to_text(_to_message(self))

    def check(self) -> None:
        """Check everything that does not need the graph.

        Raises
        ------
        InvalidArgumentError
            A tensor or name occurs twice, a name is not an identifier of C++, a feed has no shape, or there are no
            fetches.
        """
        if not self.fetch:
            raise InvalidArgumentError("the config has no fetches", hint='add fetch { id { node_name: "..." } }')
        for kind, entries in (("feed", self.feed), ("fetch", self.fetch)):
            _check_different(f"{kind} id", [TensorId.of(e.id) for e in entries])
            _check_names(kind, entries)
        _check_different("variable", [v.node_name for v in self.variable])
        _check_names("variable", self.variable)
        for feed in self.feed:
            _check_shape(feed)


def _check_names(kind: str, entries: Iterable[Any]) -> None:
    names = [e.name for e in entries if e.name]
    _check_different(f"{kind} name", names)
    for name in names:
        if not is_identifier(f"x{name}"):
            raise InvalidArgumentError(f"{kind} name {name!r} is not an identifier of C++")


def _check_different(kind: str, values: Sequence[Any]) -> None:
    for value in values:
        if values.count(value) > 1:
            raise InvalidArgumentError(f"the config has the {kind} {value} twice")


def _check_shape(feed: Feed) -> None:
    if feed.shape is None:
        raise InvalidArgumentError(
            f"the feed {feed.id} has no shape",
            hint="the config gives it: shape { dim { size: 2 } }, or shape { } for a scalar",
        )
    if any(n < 0 for n in feed.shape):
        raise InvalidArgumentError(
            f"the feed {feed.id} has the shape {list(feed.shape)}, whose sizes are not all known"
        )


# --- messages ---------------------------------------------------------------------------------------------------------


def _from_message(proto: Any) -> Config:
    if proto.HasField("conversion_options") and proto.conversion_options.custom_fake_quant_op_calls:
        raise UnimplementedError("conversion_options with custom_fake_quant_op_calls")
    feeds = [Feed(_id(m), _shape(m), m.name, _type(m)) for m in proto.feed]
    fetches = [Fetch(_id(m), m.name, _shape(m), _type(m)) for m in proto.fetch]
    variables = [Variable(m.node_name, m.name, _shape(m), _type(m), m.readonly) for m in proto.variable]
    return Config(tuple(feeds), tuple(fetches), tuple(variables))


def _id(proto: Any) -> TensorId:
    if not proto.id.node_name or proto.id.output_index < 0:
        raise InvalidArgumentError(f"the config has the tensor id {{{messages.to_text(proto.id).strip()}}}")
    return TensorId(proto.id.node_name, proto.id.output_index)


def _shape(proto: Any) -> tuple[int, ...] | None:
    if not proto.HasField("shape"):
        return None
    return (-1,) if proto.shape.unknown_rank else tuple(d.size for d in proto.shape.dim)


def _type(proto: Any) -> DataType | None:
    return DataType(proto.type) if proto.type else None


def _to_message(config: Config) -> Any:
    proto = messages.message("tf2xla.Config")()
    for kind in ("feed", "fetch", "variable"):
        for entry in getattr(config, kind):
            message = getattr(proto, kind).add(name=entry.name, type=int(entry.type or 0))
            if entry.shape is not None:
                message.shape.SetInParent()
                for n in entry.shape:
                    message.shape.dim.add(size=n)
            if isinstance(entry, Variable):
                message.node_name, message.readonly = entry.node_name, entry.readonly
            else:
                at = TensorId.of(entry.id)
                message.id.node_name, message.id.output_index = at.node_name, at.output_index
    return proto
