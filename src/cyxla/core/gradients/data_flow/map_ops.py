"""Gradients of ops on maps of tensors: the gradient of a map is a map of gradients."""

from __future__ import annotations

from typing import Any

from cyxla.core.framework.apply import apply_op
from cyxla.core.framework.gradient import gradient, no_gradient
from cyxla.core.gradients.common import Tensor

no_gradient("EmptyTensorMap", "TensorMapHasKey", "TensorMapSize", "TensorMapStackKeys")


@gradient("TensorMapLookup")
def lookup_grad(op: Any, dvalue: Tensor) -> tuple[Tensor, None]:
    """Make a map of the gradient of the value."""
    return apply_op("TensorMapInsert", apply_op("EmptyTensorMap"), op.inputs[1], dvalue), None


@gradient("TensorMapErase")
def erase_grad(op: Any, dmap: Tensor) -> tuple[Tensor, None]:
    """Pass the gradients of the other keys."""
    return dmap, None


@gradient("TensorMapInsert")
def insert_grad(op: Any, dmap: Tensor) -> tuple[Tensor, None, Tensor]:
    """Split the gradient of the key off; it is zero if nothing was read under the key."""
    _, key, value = op.inputs
    zeros = apply_op("ZerosLike", value)
    padded = apply_op("AddN", [apply_op("TensorMapInsert", apply_op("EmptyTensorMap"), key, zeros), dmap])
    dvalue = apply_op("TensorMapLookup", padded, key, value_dtype=value.dtype)
    return apply_op("TensorMapErase", padded, key, value_dtype=value.dtype), None, dvalue
