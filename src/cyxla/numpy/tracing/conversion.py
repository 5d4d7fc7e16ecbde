"""What ``astype`` means in HLO."""

from __future__ import annotations

from typing import Any

import numpy as np

from cyxla.errors import UnimplementedError
from cyxla.numpy.tracing.trace import place
from cyxla.types import ElementType, Kind, from_numpy
from cyxla.xla.hlo.builder import XlaOp
from cyxla.xla.hlo.builder import functions as xla


def convert(op: XlaOp, dtype: np.dtype[Any]) -> XlaOp:
    """The elements as another type, as NumPy converts: cut off towards zero, wrapped round, true where not zero."""
    wanted = from_numpy(dtype)
    have = op.shape.dtype
    if wanted is have:
        return op
    if wanted is ElementType.PRED:
        return xla.ne(op, xla.constant(op.builder, 0, have))
    if have.is_complex and not wanted.is_complex:
        return convert(xla.real(op), dtype)
    if have.kind is Kind.FLOAT and wanted.is_integer:
        return _whole(op, wanted)
    return xla.convert(op, wanted)


def _whole(op: XlaOp, wanted: ElementType) -> XlaOp:
    """Floats as integers, as processors convert them, by way of signed integers; HLO's own stops at the ends."""
    if op.shape.dtype.bits < 32:
        op = xla.convert(op, ElementType.F32)
    if wanted is ElementType.U64:
        negative = xla.lt(op, _full(op, 0.0))
        return xla.select(negative, xla.convert(_signed(op, ElementType.S64), wanted), xla.convert(op, wanted))
    if wanted.bits < 32:
        return xla.convert(_signed(op, ElementType.S32), wanted)
    return xla.convert(_signed(op, ElementType.S64), wanted) if wanted.is_unsigned else _signed(op, wanted)


def _signed(op: XlaOp, wanted: ElementType) -> XlaOp:
    """What is too large, and nan, becomes the least number."""
    made = xla.convert(op, wanted)
    least = -(1 << (wanted.bits - 1))
    return xla.select(xla.lt(op, _full(op, -float(least))), made, _full(made, least))


def _full(like: XlaOp, value: float) -> XlaOp:
    return xla.broadcast(xla.constant(like.builder, value, like.shape.dtype), like.shape.dims)


def require_native(dtype: np.dtype[Any], what: str) -> None:
    """Refuse a type of the other byte order, in which no program computes.

    Raises
    ------
    UnimplementedError
        It is one.
    """
    if not dtype.isnative:
        raise UnimplementedError(
            f"{what} would be of the other byte order: {dtype.str}", where=place(),
            hint="convert it outside of the traced function",
        )  # fmt: skip
