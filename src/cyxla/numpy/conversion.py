"""What ``astype`` means in HLO."""

from __future__ import annotations

from typing import Any

import numpy as np

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
    if have.kind is Kind.FLOAT and wanted.is_unsigned and wanted.bits < 64:
        # Negative floats wrap round in C by way of a signed integer; HLO would clamp them.
        return xla.convert(xla.convert(op, ElementType.S64), wanted)
    if have.kind is Kind.FLOAT and wanted.is_signed and wanted.bits < 32:
        return xla.convert(xla.convert(op, ElementType.S32), wanted)
    return xla.convert(op, wanted)
