"""Elements of a mapped function beyond a number that is known at run time: they are computed, but do not count."""

from __future__ import annotations

from typing import Any

from cyxla.numpy.control.batched_bodies import capture_values
from cyxla.numpy.control.lengths import Length
from cyxla.numpy.gradient.backward import is_inexact
from cyxla.numpy.gradient.custom_derivatives import stop_gradient
from cyxla.numpy.tracing.arrays.traced_array import TracedArray, value_of
from cyxla.numpy.tracing.bodies import Body
from cyxla.numpy.tracing.trace import require_current
from cyxla.types import ElementType, Shape
from cyxla.xla.batching import Value
from cyxla.xla.hlo.builder import XlaOp
from cyxla.xla.hlo.builder import functions as xla
from cyxla.xla.lib import values


class Padding:
    """Elements of a batch that do not count.

    In functions to differentiate they repeat the first element that counts, whose derivatives are those of an element,
    and nothing depends on them.

    Parameters
    ----------
    length : Length
        Number of elements.
    """

    def __init__(self, length: Length) -> None:
        self.mask: XlaOp | None = None  # pred[bound], the elements that count
        self._any: XlaOp | None = None  # pred[], whether any does
        self._is_differentiated = bool(require_current().program.gradients)
        if length.count is None:
            return
        count, shape = value_of(length.count), Shape.array(ElementType.S64, (length.bound,))
        self.mask = xla.lt(xla.iota(require_current().builder, shape, 0), xla.broadcast(count, shape.dims))
        self._any = xla.gt(count, values.scalar(count, 0))

    def filled(self, op: XlaOp) -> XlaOp:
        """Return an array with the batch in front and elements in its padding."""
        if self.mask is None or self._any is None or not self._needs_derivative(op.shape):
            return op
        sizes = op.shape.dims[1:]
        first = xla.reshape(xla.slice_in_dim(op, 0, 1), sizes)
        ones = xla.broadcast(values.scalar(op, 1), sizes)
        filler = _constant(xla.select(_repeated(self._any, sizes), first, ones))
        rows = xla.broadcast_in_dim(self.mask, op.shape.dims, (0,))
        return xla.select(rows, op, xla.broadcast_in_dim(filler, op.shape.dims, range(1, op.shape.rank)))

    def captures(self, body: Body) -> list[Value]:
        """Return the values that a body captures; nothing depends on them if no element counts."""
        captured = capture_values(body)
        if self._any is None:
            return captured
        return [Value(self._used(v.array)) if self._needs_derivative(v.array.shape) else v for v in captured]

    def _needs_derivative(self, shape: Shape) -> bool:
        return self._is_differentiated and is_inexact(shape) and shape.size > 0

    def _used(self, op: XlaOp) -> XlaOp:
        assert self._any is not None
        return xla.select(_repeated(self._any, op.shape.dims), op, _constant(op))


def _repeated(flag: XlaOp, sizes: Any) -> XlaOp:
    return xla.broadcast(flag, sizes) if sizes else flag


def _constant(op: XlaOp) -> XlaOp:
    """Return a value that counts as constant in gradients."""
    stopped: XlaOp = value_of(stop_gradient(TracedArray(op)))
    return stopped
