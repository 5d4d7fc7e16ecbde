"""Bitwise operations on integers."""

from __future__ import annotations

from collections.abc import Callable

from cyxla.tf2xla.xla_op_kernel import lowering
from cyxla.types import ElementType
from cyxla.xla.hlo.builder import XlaOp
from cyxla.xla.hlo.builder import functions as xla
from cyxla.xla.lib.values import full_like, paired


def _clamp_shifts(x: XlaOp) -> XlaOp:
    """Clamp shifts to the width of the type."""
    return xla.clamp(full_like(x, 0), x, full_like(x, x.shape.dtype.bits - 1))


def _with_clamped_shifts(function: Callable[[XlaOp, XlaOp], XlaOp]) -> Callable[[XlaOp, XlaOp], XlaOp]:
    def shift(x: XlaOp, y: XlaOp) -> XlaOp:
        x, y = paired(x, y)
        return function(x, _clamp_shifts(y))

    return shift


lowering("BitwiseAnd", lambda x, y: xla.and_(*paired(x, y)))
lowering("BitwiseOr", lambda x, y: xla.or_(*paired(x, y)))
lowering("BitwiseXor", lambda x, y: xla.xor(*paired(x, y)))
lowering("LeftShift", _with_clamped_shifts(xla.shift_left))
lowering("RightShift", _with_clamped_shifts(xla.shift_right))
lowering("Invert", xla.not_)
lowering("PopulationCount", lambda x: xla.convert(xla.popcnt(x), ElementType.U8))
