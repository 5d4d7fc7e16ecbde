"""Types and zeros of gradients."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from cyxla.core.framework.apply import apply_op
from cyxla.core.framework.types import COMPLEX, FLOAT8, FLOATING, DataType

if TYPE_CHECKING:
    from cyxla.core.graph.graph import Tensor

_CONTINUOUS = frozenset({*FLOATING, *COMPLEX, *FLOAT8, DataType.DT_RESOURCE, DataType.DT_VARIANT})


def is_continuous(dtype: DataType) -> bool:
    """Return True if tensors of a type have gradients."""
    return dtype.base in _CONTINUOUS


def gradient_type(tensor: Tensor) -> DataType:
    """Return the type of a tensor's gradient: its own type, or that of the variable behind a handle."""
    if tensor.dtype != DataType.DT_RESOURCE:
        return tensor.dtype.base
    handle = tensor.node.output_handles[tensor.index] if tensor.node.output_handles else None
    return handle[0][1] if handle else DataType.DT_FLOAT


def zeros_like(x: Tensor) -> Any:
    """Add zeros of the shape and type of a tensor's gradient."""
    if x.dtype == DataType.DT_RESOURCE:
        return apply_op("Fill", apply_op("VariableShape", x), x.graph.constant(0, gradient_type(x)))
    return apply_op("ZerosLike", x)
