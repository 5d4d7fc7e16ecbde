"""Conversions of element types in HLO, as ``astype`` performs them."""

from __future__ import annotations

from typing import Any

import numpy as np

from cyxla.errors import UnimplementedError
from cyxla.numpy.tracing.trace import user_line
from cyxla.types import ElementType, Kind, from_numpy
from cyxla.xla.hlo.builder import XlaOp
from cyxla.xla.hlo.builder import functions as xla


def convert(op: XlaOp, dtype: np.dtype[Any]) -> XlaOp:
    """Convert elements as NumPy does: truncated towards zero, wrapped around, True for nonzero."""
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
    """Convert floats to integers as processors do, through signed integers; HLO's own conversion saturates."""
    if op.shape.dtype.bits < 32:
        op = xla.convert(op, ElementType.F32)
    if wanted is ElementType.U64:
        negative = xla.lt(op, _full(op, 0.0))
        return xla.select(negative, xla.convert(_signed(op, ElementType.S64), wanted), xla.convert(op, wanted))
    if wanted.bits < 32:
        return xla.convert(_signed(op, ElementType.S32), wanted)
    return xla.convert(_signed(op, ElementType.S64), wanted) if wanted.is_unsigned else _signed(op, wanted)


def _signed(op: XlaOp, wanted: ElementType) -> XlaOp:
    """Convert floats to signed integers; nan and numbers out of range become the least integer."""
    made = xla.convert(op, wanted)
    least = -(1 << (wanted.bits - 1))
    return xla.select(xla.lt(op, _full(op, -float(least))), made, _full(made, least))


def _full(like: XlaOp, value: float) -> XlaOp:
    return xla.broadcast(xla.constant(like.builder, value, like.shape.dtype), like.shape.dims)


def require_native(dtype: np.dtype[Any], what: str) -> None:
    """Refuse a dtype of non-native byte order, which no program supports.

    Raises
    ------
    UnimplementedError
        The dtype is not native.
    """
    if not dtype.isnative:
        raise UnimplementedError(
            f"{what} would be of the other byte order: {dtype.str}", where=user_line(),
            hint="convert it outside of the traced function",
        )  # fmt: skip
