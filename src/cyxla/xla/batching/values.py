"""Values of a batched program: one for each element of the batch, or one that all elements share."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from cyxla.errors import UnimplementedError
from cyxla.records import dataclass
from cyxla.types import Shape
from cyxla.xla.hlo.builder import XlaBuilder, XlaOp
from cyxla.xla.hlo.builder import functions as xla


@dataclass(frozen=True)
class Value:
    """Value of a batched program.

    Attributes
    ----------
    op : XlaOp or None
        Array whose first dimension is the batch if the value is mapped, or a value of any shape that all elements
        share; None for a tuple that is kept as its parts.
    mapped : bool
        Whether the elements have values of their own; for a tuple, whether any part of it is mapped.
    parts : tuple of Value, optional
        Parts of a tuple.
    """

    op: XlaOp | None
    mapped: bool = False
    parts: tuple[Value, ...] | None = None

    @property
    def array(self) -> XlaOp:
        """Array of a value that is not a tuple of parts."""
        assert self.op is not None
        return self.op


def tuple_of(parts: Iterable[Value]) -> Value:
    """Return a tuple of values."""
    values = tuple(parts)
    return Value(None, any(v.mapped for v in values), values)


def mapped(op: XlaOp) -> Value:
    """Return an array, or tuple of arrays, whose first dimension is the batch."""
    if not op.shape.is_tuple:
        return Value(op, True)
    return tuple_of(mapped(xla.get_tuple_element(op, k)) for k in range(len(op.shape.elements)))


def part(value: Value, index: int) -> Value:
    """Return a part of a tuple."""
    if value.parts is not None:
        return value.parts[index]
    return Value(xla.get_tuple_element(value.array, index))


def leaves(value: Value) -> list[Value]:
    """Return the values inside nested tuples in order; the value itself if it is not a tuple."""
    if value.parts is None and not value.array.shape.is_tuple:
        return [value]
    count = len(value.array.shape.elements) if value.parts is None else len(value.parts)
    return [leaf for k in range(count) for leaf in leaves(part(value, k))]


def from_leaves(shape: Shape, values: Iterator[Value]) -> Value:
    """Return a value of a shape for one element from its leaves."""
    if shape.is_tuple:
        return tuple_of([from_leaves(element, values) for element in shape.elements])
    return next(values)


def shared_op(builder: XlaBuilder, value: Value) -> XlaOp:
    """Return a value that all elements share, as one operation."""
    if value.parts is None:
        return value.array
    return xla.tuple_(builder, [shared_op(builder, p) for p in value.parts])


def with_batch(shape: Shape, size: int) -> Shape:
    """Return the shape of an array, or of a tuple of arrays, with the batch as first dimension.

    Raises
    ------
    UnimplementedError
        The shape is not one of arrays.
    """
    if shape.is_tuple:
        return Shape.tuple([with_batch(e, size) for e in shape.elements])
    if not shape.is_array:
        raise UnimplementedError(f"a value of type {shape} cannot differ by element of a batch")
    return shape.with_dims((size, *shape.dims), (False, *shape.dynamic))


def zeros(builder: XlaBuilder, shape: Shape) -> XlaOp:
    """Return zeros of an array shape."""
    return xla.broadcast(xla.constant(builder, 0, shape.dtype), shape.dims)
