"""Registry of the functions that lower operations to HLO, and access to attributes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from cyxla.errors import InvalidArgumentError
from cyxla.xla.hlo.builder import XlaOp
from cyxla.xla.stablehlo.attributes import Dense, Keyword, Record
from cyxla.xla.stablehlo.syntax import Operation

if TYPE_CHECKING:
    from cyxla.xla.stablehlo.context import Context

Results = XlaOp | Sequence[XlaOp]
Handler = Callable[["Context", Operation, list[XlaOp]], Results]

HANDLERS: Final[dict[str, Handler]] = {}
MIN_OPERANDS: Final[dict[str, int]] = {}  # least number of operands of each operation


def handles(*names: str, least: int = 0) -> Callable[[Handler], Handler]:
    """Register a function for operations of at least `least` operands."""

    def register(handler: Handler) -> Handler:
        for name in names:
            HANDLERS[name], MIN_OPERANDS[name] = handler, least
        return handler

    return register


# Attributes


def required(op: Operation, name: str) -> Any:
    """Return an attribute that must exist."""
    if name not in op.attributes:
        raise InvalidArgumentError(f"{op.name} needs an attribute {name!r}")
    return op.attributes[name]


def ints(value: Any, description: str = "a list") -> tuple[int, ...]:
    """Return the integers of ``array<i64: ..>``, ``dense<..>`` or ``[..]``."""
    if isinstance(value, Dense):
        value = value.array.ravel().tolist()
    if not isinstance(value, (tuple, list)) or not all(isinstance(v, int) for v in value):
        raise InvalidArgumentError(f"{description} is to be of integers, not {value!r}"[:200])
    return tuple(int(v) for v in value)


def int_list(op: Operation, name: str, default: Sequence[int] | None = None) -> tuple[int, ...]:
    """Return an attribute that is a list of integers."""
    if default is not None and name not in op.attributes:
        return tuple(default)
    return ints(required(op, name), f"attribute {name}")


def integer(op: Operation, name: str, default: int | None = None) -> int:
    """Return an attribute that is an integer."""
    if default is not None and name not in op.attributes:
        return default
    value = required(op, name)
    if isinstance(value, Dense) and value.shape.size == 1:
        value = value.array.ravel()[0].item()
    if not isinstance(value, int):
        raise InvalidArgumentError(f"attribute {name} of {op.name} is to be an integer")
    return int(value)


def number(op: Operation, name: str) -> float:
    """Return an attribute that is a number."""
    value = required(op, name)
    if not isinstance(value, (int, float)):
        raise InvalidArgumentError(f"attribute {name} of {op.name} is to be a number")
    return float(value)


def flag(op: Operation, name: str, default: bool = False) -> bool:
    """Return an attribute that is true or false."""
    value = op.attributes.get(name, default)
    if isinstance(value, Dense) and value.shape.size == 1:
        value = bool(value.array.ravel()[0])
    if not isinstance(value, (bool, int)):
        raise InvalidArgumentError(f"attribute {name} of {op.name} is to be true or false")
    return bool(value)


def keyword(op: Operation, name: str, default: str | None = None) -> str:
    """Return an attribute that is a word."""
    if default is not None and name not in op.attributes:
        return default
    return word(required(op, name), f"attribute {name} of {op.name}")


def word(value: Any, description: str) -> str:
    """Return a word, which older text has in quotes."""
    if not isinstance(value, (Keyword, str)):
        raise InvalidArgumentError(f"{description} is to be a word")
    return str(value)


def pairs(op: Operation, name: str, count: int) -> list[tuple[int, int]]:
    """Return two integers for each dimension, zeros by default."""
    if name not in op.attributes:
        return [(0, 0)] * count
    value = op.attributes[name]
    if isinstance(value, list):
        flat = [x for row in value for x in ints(row, f"attribute {name}")]
    else:
        flat = list(ints(value, f"attribute {name}"))
    if len(flat) != 2 * count:
        raise InvalidArgumentError(f"attribute {name} of {op.name} has {len(flat)} numbers for {count} dimensions")
    return list(zip(flat[::2], flat[1::2], strict=True))


def matrix(op: Operation, name: str) -> tuple[tuple[int, ...], ...]:
    """Return an attribute that is rows of integers."""
    value = required(op, name)
    if isinstance(value, list):
        return tuple(ints(row, f"attribute {name}") for row in value)
    if not isinstance(value, Dense) or value.shape.rank != 2:
        raise InvalidArgumentError(f"attribute {name} of {op.name} is to have rows of integers")
    return tuple(tuple(row) for row in value.array.tolist())


def channel_of(op: Operation) -> int | None:
    """Return the number of a channel, or None."""
    handle = op.attributes.get("channel_handle")
    channel = handle.fields.get("handle") if isinstance(handle, Record) else op.attributes.get("channel_id")
    return channel if isinstance(channel, int) and channel > 0 else None


def choice(op: Operation, name: str, words: Sequence[str], default: str | None = None) -> str:
    """Return an attribute that is one of these words."""
    name_written = keyword(op, name, default)
    if name_written not in words:
        raise InvalidArgumentError(
            f"attribute {name} of {op.name} is {name_written[:40]!r}, not one of {', '.join(words)}"
        )
    return name_written


def field_int(fields: Mapping[str, Any], name: str, default: int = 0) -> int:
    """Return a field that is an integer."""
    value = fields.get(name, default)
    if not isinstance(value, int):
        raise InvalidArgumentError(f"field {name} is to be an integer")
    return int(value)
