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
    target = from_numpy(dtype)
    source = op.shape.dtype
    if target is source:
        return op
    if target is ElementType.PRED:
        return xla.ne(op, xla.constant(op.builder, 0, source))
    if source.is_complex and not target.is_complex:
        return convert(xla.real(op), dtype)
    if source.kind is Kind.FLOAT and target.is_integer:
        return _float_to_integer(op, target)
    return xla.convert(op, target)


def _float_to_integer(op: XlaOp, target: ElementType) -> XlaOp:
    """Convert floats to integers as processors do, through signed integers; HLO's own conversion saturates."""
    if op.shape.dtype.bits < 32:
        op = xla.convert(op, ElementType.F32)
    if target is ElementType.U64:
        negative = xla.lt(op, _full(op, 0.0))
        return xla.select(negative, xla.convert(_to_signed(op, ElementType.S64), target), xla.convert(op, target))
    if target.bits < 32:
        return xla.convert(_to_signed(op, ElementType.S32), target)
    return xla.convert(_to_signed(op, ElementType.S64), target) if target.is_unsigned else _to_signed(op, target)


def _to_signed(op: XlaOp, target: ElementType) -> XlaOp:
    """Convert floats to signed integers; nan and numbers out of range become the least integer."""
    converted = xla.convert(op, target)
    lowest = -(1 << (target.bits - 1))
    return xla.select(xla.lt(op, _full(op, -float(lowest))), converted, _full(converted, lowest))


def _full(like: XlaOp, value: float) -> XlaOp:
    return xla.broadcast(xla.constant(like.builder, value, like.shape.dtype), like.shape.dims)


def require_native(dtype: np.dtype[Any], name: str) -> None:
    """Refuse a dtype of non-native byte order, which no program supports.

    Raises
    ------
    UnimplementedError
        The dtype is not native.
    """
    if not dtype.isnative:
        raise UnimplementedError(
            f"{name}: the dtype {dtype.str} has a non-native byte order", where=user_line(),
            hint="convert it outside of the traced function",
        )  # fmt: skip
