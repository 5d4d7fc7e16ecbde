"""Numbers of elements that functions are mapped over or that they scan, which may be known at run time only."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from cyxla.errors import ShapeError
from cyxla.numpy.indexing.equal_values import require_equal
from cyxla.numpy.tracing.arrays.traced_array import TracedArray
from cyxla.numpy.tracing.bodies import Body, Values, instruction_of, reachable
from cyxla.numpy.tracing.trace import require_current, user_line
from cyxla.xla.hlo.builder import XlaOp


class Length(NamedTuple):
    """Number of elements.

    Attributes
    ----------
    bound : int
        Number of elements, or the greatest possible one.
    count : TracedArray, optional
        Number at run time; None if it is known while tracing.
    """

    bound: int
    count: Any = None


class NamedSize(NamedTuple):
    """Size of an array along an axis.

    Attributes
    ----------
    text : str
        Text for messages, with a place for the size.
    size : int or TracedArray
        Size.
    bound : int
        Size of the padded array.
    """

    text: str
    size: Any
    bound: int


def agreed_length(caller: str, sizes: Sequence[NamedSize]) -> Length:
    """Return the size that arrays have in common; runs in which sizes that are known at run time differ fail.

    Raises
    ------
    ShapeError
        Known sizes differ.
    """
    known = [s for s in sizes if not isinstance(s.size, TracedArray)]
    first = known[0] if known else sizes[0]
    for other in sizes:
        message = f"{caller}: {first.text}, but {other.text}"
        if isinstance(other.size, TracedArray):
            require_equal(first.size, other.size, message)
        elif other.size != first.size:
            raise ShapeError(message.format(first.size, other.size), where=user_line())
    return Length(first.size) if known else Length(min(s.bound for s in sizes), first.size)


def escaped(text: str) -> str:
    """Return a text as a part of one with places for sizes."""
    return text.replace("{", "{{").replace("}", "}}")


def hoisted(body: Body, sizes: Sequence[XlaOp]) -> list[XlaOp] | None:
    """Return values of a body in the current trace; None if they depend on more than what the body captures."""
    trace = require_current()
    values: Values = {instruction_of(inner): trace.capture(outer) for outer, inner in body.trace.captures}
    needed = reachable(map(instruction_of, sizes), values, {}, ())
    if any(ins.opcode == "parameter" or ins.has_side_effect for ins in needed):
        return None
    for ins in body.instructions:
        if ins in needed:
            values[ins] = trace.builder.clone(ins, [values[o] for o in ins.operands])
    return [values[instruction_of(n)] for n in sizes]
