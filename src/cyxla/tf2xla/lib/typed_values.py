"""Constants and casts in TensorFlow's types."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from cyxla.core.framework.types import DataType
from cyxla.tf2xla.types import element_type
from cyxla.xla.hlo.builder import XlaBuilder, XlaOp
from cyxla.xla.hlo.builder import functions as xla


def full(builder: XlaBuilder, value: Any, dtype: DataType, sizes: Sequence[int]) -> XlaOp:
    """Return an array filled with one number."""
    number = xla.constant(builder, np.asarray(value).astype(dtype.numpy), element_type(dtype))
    return xla.broadcast(number, sizes)


def cast(op: XlaOp, dtype: DataType) -> XlaOp:
    """Convert a value to another type."""
    return op if op.shape.dtype is element_type(dtype) else xla.convert(op, element_type(dtype))
