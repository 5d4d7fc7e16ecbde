"""Packing of bits into bytes."""

from __future__ import annotations

from typing import Any

import numpy as np

from cyxla.numpy.tracing import trace as _trace
from cyxla.numpy.tracing.arrays.traced_array import TracedArray, as_traced, is_traced, value_of
from cyxla.numpy.tracing.hooks import hooks
from cyxla.numpy.tracing.registry import implements
from cyxla.numpy.tracing.results.conversion import convert
from cyxla.types import ElementType
from cyxla.xla.hlo.builder import XlaOp
from cyxla.xla.hlo.builder import functions as xla
from cyxla.xla.lib import values


@implements(np.packbits)
def packbits(a: Any, /, axis: int | None = None, bitorder: str = "big") -> Any:
    """Pack eight bools along an axis into each byte."""
    array = as_traced(a)
    _check_str(bitorder, "pack() argument 3")
    if bitorder not in ("big", "little"):
        raise ValueError("'order' must be either 'little' or 'big'")
    if array.dtype.kind not in "biu":
        raise TypeError("Expected an input array of integer or boolean data type")
    op, dimension = _resolve_axis(value_of(array), axis, array.ndim)
    op = xla.convert(convert(op, np.dtype(bool)), ElementType.U8)
    sizes = op.shape.dims
    count = -(-sizes[dimension] // 8)
    op = xla.pad_in_dim(op, 0, dimension, 0, 8 * count - sizes[dimension])
    op = xla.reshape(op, (*sizes[:dimension], count, 8, *sizes[dimension + 1 :]))
    weights = xla.broadcast_in_dim(_bit_weights(bitorder == "little"), op.shape.dims, (dimension + 1,))
    return np.bitwise_or.reduce(TracedArray(xla.multiply(op, weights)), axis=dimension + 1)


@implements(np.unpackbits)
def unpackbits(a: Any, /, axis: int | None = None, count: int | None = None, bitorder: str = "big") -> Any:
    """Unpack the bits of bytes along an axis."""
    if is_traced(count):
        return hooks.sized_function(np.unpackbits, (a, axis, count, bitorder), {})
    array = as_traced(a)
    _check_str(bitorder, "unpack() argument 4")
    if bitorder[:1] not in ("b", "l"):  # NumPy looks at the first letter only
        raise ValueError("'order' must begin with 'l' or 'b'")
    if array.dtype != np.uint8:
        raise TypeError("Expected an input array of unsigned byte data type")
    op, dimension = _resolve_axis(value_of(array), axis, array.ndim)
    sizes = op.shape.dims
    unpacked_shape = (*sizes[: dimension + 1], 8, *sizes[dimension + 1 :])
    repeated = xla.broadcast_in_dim(op, unpacked_shape, [d for d in range(len(unpacked_shape)) if d != dimension + 1])
    weights = xla.broadcast_in_dim(_bit_weights(bitorder[0] == "l"), unpacked_shape, (dimension + 1,))
    bits = xla.convert(xla.ne(xla.and_(repeated, weights), values.zeros_like(repeated)), ElementType.U8)
    bits = xla.reshape(bits, (*sizes[:dimension], 8 * sizes[dimension], *sizes[dimension + 1 :]))
    return TracedArray(bits if count is None else _resize_to_count(bits, dimension, count))


def _resize_to_count(bits: XlaOp, axis: int, count: int) -> XlaOp:
    """Truncate to a count, or by a negative count, or pad with zeros."""
    length = bits.shape.dims[axis]
    if count < 0 and -count > length:
        raise ValueError("-count larger than number of elements")
    new_length = count if count >= 0 else length + count
    if new_length > length:
        return xla.pad_in_dim(bits, 0, axis, 0, new_length - length)
    return xla.slice_in_dim(bits, 0, new_length, dimension=axis)


def _resolve_axis(op: XlaOp, axis: int | None, rank: int) -> tuple[XlaOp, int]:
    if axis is None:
        return xla.reshape(op, (op.shape.size,)), 0
    return op, np.lib.array_utils.normalize_axis_index(axis, rank)


def _check_str(value: Any, name: str) -> None:
    if not isinstance(value, str):
        raise TypeError(f"{name} must be str, not {type(value).__name__}")


def _bit_weights(little: bool) -> XlaOp:
    order = range(8) if little else range(7, -1, -1)
    return _trace.require_current().constant(np.array([1 << k for k in order], np.uint8))
