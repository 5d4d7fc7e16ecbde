"""Cumulative operations along a dimension."""

from __future__ import annotations

from cyxla.types import ElementType, Kind
from cyxla.xla.hlo.builder import XlaOp, scalar_computation
from cyxla.xla.hlo.builder import functions as xla
from cyxla.xla.lib import values

_START = {"add": 0, "multiply": 1, "or": 0, "and": 1}


def cumulative(op: XlaOp, opcode: str, axis: int) -> XlaOp:
    """Compute inclusive prefixes along a dimension; 16-bit floats are accumulated in 32 bits.

    Parameters
    ----------
    op : XlaOp
        Elements to accumulate.
    opcode : str
        add, multiply, maximum, minimum, and, or.
    axis : int
        Dimension to scan along, not negative.
    """
    sizes = op.shape.dims
    if not all(sizes) or sizes[axis] == 1:
        return op
    accumulator = values.widened(op) if opcode in ("add", "multiply") else op
    window = [n if d == axis else 1 for d, n in enumerate(sizes)]
    padding = [(n - 1 if d == axis else 0, 0) for d, n in enumerate(sizes)]
    prefixes = xla.reduce_window(
        accumulator,
        _start(accumulator, opcode),
        scalar_computation(opcode, accumulator.shape.dtype),
        window,
        [1] * len(sizes),
        padding,
    )
    return prefixes if accumulator is op else xla.convert(prefixes, op.shape.dtype)


def _start(op: XlaOp, opcode: str) -> XlaOp:
    if opcode == "add" and op.shape.dtype.kind in (Kind.FLOAT, Kind.COMPLEX):
        return values.scalar(op, complex(-0.0, -0.0) if op.shape.dtype.is_complex else -0.0)  # 0.0 would take its sign
    if opcode in _START:
        return values.scalar(op, _START[opcode])
    if op.shape.dtype is ElementType.PRED:
        return values.scalar(op, opcode == "minimum")
    return values.min_value(op) if opcode == "maximum" else values.max_value(op)
