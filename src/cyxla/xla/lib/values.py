"""Helpers for compositions of HLO: constants of a value's type, broadcasting, reductions, widening."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import wraps
from math import prod
from typing import Any

import ml_dtypes
import numpy as np

from cyxla.errors import ShapeError
from cyxla.types import ElementType, Shape
from cyxla.xla.hlo.builder import XlaBuilder, XlaOp, scalar_computation
from cyxla.xla.hlo.builder import functions as xla

Array = np.ndarray[Any, Any]


# Constants


def numpy_type(op: XlaOp) -> np.dtype[Any]:
    """Return the NumPy dtype of a value."""
    found = op.shape.dtype.numpy_dtype
    assert found is not None  # an array
    return found


def scalar(like: XlaOp, value: Any) -> XlaOp:
    """Return a scalar constant of the type of another value."""
    return xla.constant(like.builder, np.asarray(value).astype(numpy_type(like)), like.shape.dtype)


def full_like(like: XlaOp, value: Any) -> XlaOp:
    """Return a constant of the type and shape of another value."""
    return xla.broadcast(scalar(like, value), like.shape.dims)


def zeros_like(like: XlaOp) -> XlaOp:
    """Return zeros of the type and shape of another value."""
    return full_like(like, 0)


def min_finite_value(like: XlaOp) -> XlaOp:
    """Return the least finite value of a value's type."""
    return scalar(like, _info(numpy_type(like)).min)


def max_finite_value(like: XlaOp) -> XlaOp:
    """Return the greatest finite value of a value's type."""
    return scalar(like, _info(numpy_type(like)).max)


def min_value(like: XlaOp) -> XlaOp:
    """Return minus infinity, or the least value of a type without infinities."""
    return scalar(like, -np.inf) if _has_infinity(like) else min_finite_value(like)


def max_value(like: XlaOp) -> XlaOp:
    """Return infinity, or the greatest value of a type without infinities."""
    return scalar(like, np.inf) if _has_infinity(like) else max_finite_value(like)


def _has_infinity(like: XlaOp) -> bool:
    """Return True if a value's type has infinities; some floats of 8 bits have none."""
    return is_float(like) and bool(np.isinf(np.array(np.inf).astype(numpy_type(like))))


def epsilon(like: XlaOp) -> float:
    """Return the distance from 1 to the next larger number of a value's type."""
    return float(_info(numpy_type(like)).eps)


def _info(dtype: np.dtype[Any]) -> Any:
    about: Any = ml_dtypes
    return about.iinfo(dtype) if dtype.kind in "iu" or "int" in dtype.name else about.finfo(dtype)


def iota(builder: XlaBuilder, dtype: ElementType, size: int) -> XlaOp:
    """Return 0, 1, .. size - 1."""
    return iota_along(builder, dtype, (size,), 0)


def iota_along(builder: XlaBuilder, dtype: ElementType, sizes: Sequence[int], dimension: int) -> XlaOp:
    """Return each element's index along a dimension."""
    return xla.iota(builder, Shape.array(dtype, tuple(sizes)), dimension)


# Types


def is_float(op: XlaOp) -> bool:
    """Return True if a value's elements are real floats."""
    return op.shape.dtype.is_float


def is_complex(op: XlaOp) -> bool:
    """Return True if a value's elements are complex."""
    return op.shape.dtype.is_complex


def is_integer(op: XlaOp) -> bool:
    """Return True if a value's elements are integers."""
    return not (is_float(op) or is_complex(op) or op.shape.dtype is ElementType.PRED)


def is_narrow(op: XlaOp) -> bool:
    """Return True for floats narrower than f32, whose sums are accumulated in f32."""
    return is_float(op) and op.shape.dtype.bits < 32


def widened(op: XlaOp) -> XlaOp:
    """Convert floats narrower than f32 to f32; return other values unchanged."""
    return xla.convert(op, ElementType.F32) if is_narrow(op) else op


def in_f32(function: Callable[..., XlaOp]) -> Callable[..., XlaOp]:
    """Wrap a function to compute narrower floats in f32 and round the result back."""

    @wraps(function)
    def wrapped(*operands: XlaOp, **attrs: Any) -> XlaOp:
        if not is_narrow(operands[0]):
            return function(*operands, **attrs)
        return xla.convert(function(*map(widened, operands), **attrs), operands[0].shape.dtype)

    return wrapped


# Shapes


def sizes_of(op: XlaOp) -> tuple[int, ...]:
    """Return the sizes of a value."""
    return tuple(op.shape.dims)


def rank_of(op: XlaOp) -> int:
    """Return the rank of a value."""
    return len(op.shape.dims)


def count_of(op: XlaOp) -> int:
    """Return the number of elements of a value."""
    return prod(op.shape.dims)


def broadcast_shape(a: Sequence[int], b: Sequence[int]) -> tuple[int, ...]:
    """Return the shape to which two shapes broadcast.

    Raises
    ------
    ShapeError
        The shapes do not broadcast.
    """
    try:
        return tuple(np.broadcast_shapes(tuple(a), tuple(b)))
    except ValueError:
        raise ShapeError(f"incompatible shapes: {list(a)} and {list(b)} do not broadcast") from None


def broadcast_to(op: XlaOp, sizes: Sequence[int]) -> XlaOp:
    """Broadcast a value to a shape, with its dimensions aligned to the last ones."""
    own = sizes_of(op)
    if own == tuple(sizes):
        return op
    if broadcast_shape(own, sizes) != tuple(sizes):
        raise ShapeError(f"{list(own)} does not broadcast to {list(sizes)}")
    return xla.broadcast_in_dim(op, sizes, range(len(sizes) - len(own), len(sizes)))


def paired(x: XlaOp, y: XlaOp) -> tuple[XlaOp, XlaOp]:
    """Broadcast two values to their common shape."""
    sizes = broadcast_shape(sizes_of(x), sizes_of(y))
    return broadcast_to(x, sizes), broadcast_to(y, sizes)


def select(condition: XlaOp, x: Any, y: Any) -> XlaOp:
    """Select x where the condition holds, else y; numbers take the type of the other operand."""
    some = x if isinstance(x, XlaOp) else y
    x, y = (v if isinstance(v, XlaOp) else scalar(some, v) for v in (x, y))
    sizes = broadcast_shape(broadcast_shape(sizes_of(condition), sizes_of(x)), sizes_of(y))
    return xla.select(broadcast_to(condition, sizes), broadcast_to(x, sizes), broadcast_to(y, sizes))


# Reductions


def reduced(op: XlaOp, opcode: str, init: XlaOp, axes: Sequence[int], keep: bool = False) -> XlaOp:
    """Reduce dimensions by a binary opcode."""
    axes = sorted(axis % max(rank_of(op), 1) for axis in axes)
    if not axes:
        return op
    result = xla.reduce(op, init, scalar_computation(opcode, op.shape.dtype), axes)
    if not keep:
        return result
    return xla.reshape(result, [1 if d in axes else n for d, n in enumerate(sizes_of(op))])


def sum_of(op: XlaOp, axes: Sequence[int], keep: bool = False) -> XlaOp:
    """Return sums over dimensions; narrower floats are accumulated in f32."""
    wide = widened(op)
    found = reduced(wide, "add", scalar(wide, 0), axes, keep)
    return xla.convert(found, op.shape.dtype) if is_narrow(op) else found


def product_of(op: XlaOp, axes: Sequence[int], keep: bool = False) -> XlaOp:
    """Return products over dimensions; narrower floats are accumulated in f32."""
    wide = widened(op)
    found = reduced(wide, "multiply", scalar(wide, 1), axes, keep)
    return xla.convert(found, op.shape.dtype) if is_narrow(op) else found


def max_of(op: XlaOp, axes: Sequence[int], keep: bool = False) -> XlaOp:
    """Return maxima over dimensions."""
    return reduced(op, "maximum", min_value(op), axes, keep)


def min_of(op: XlaOp, axes: Sequence[int], keep: bool = False) -> XlaOp:
    """Return minima over dimensions."""
    return reduced(op, "minimum", max_value(op), axes, keep)


def mean_of(op: XlaOp, axes: Sequence[int], keep: bool = False) -> XlaOp:
    """Return means over dimensions; narrower floats are accumulated in f32."""
    wide = widened(op)
    count = prod(sizes_of(op)[axis] for axis in axes)
    found = sum_of(wide, axes, keep)
    found = found / scalar(found, count)
    return xla.convert(found, op.shape.dtype) if is_narrow(op) else found
