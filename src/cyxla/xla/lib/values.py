"""What compositions of HLO share: constants of a value's type, broadcasting, reductions, widths."""

from __future__ import annotations

from collections.abc import Callable, Sequence
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
    """The dtype of the arrays that hold a value."""
    found = op.shape.dtype.numpy_dtype
    assert found is not None  # an array
    return found


def scalar(like: XlaOp, value: Any) -> XlaOp:
    """A number in the type of another value."""
    return xla.constant(like.builder, np.asarray(value).astype(numpy_type(like)), like.shape.dtype)


def full_like(like: XlaOp, value: Any) -> XlaOp:
    """One number in the type and shape of another value."""
    return xla.broadcast(scalar(like, value), like.shape.dims)


def zeros_like(like: XlaOp) -> XlaOp:
    """Zeros in the type and shape of another value."""
    return full_like(like, 0)


def lowest(like: XlaOp) -> XlaOp:
    """The least finite number of a value's type."""
    return scalar(like, _info(numpy_type(like)).min)


def highest(like: XlaOp) -> XlaOp:
    """The greatest finite number of a value's type."""
    return scalar(like, _info(numpy_type(like)).max)


def least(like: XlaOp) -> XlaOp:
    """Minus infinity, or the least number of a type without it."""
    return scalar(like, -np.inf) if _has_infinity(like) else lowest(like)


def greatest(like: XlaOp) -> XlaOp:
    """Infinity, or the greatest number of a type without it."""
    return scalar(like, np.inf) if _has_infinity(like) else highest(like)


def _has_infinity(like: XlaOp) -> bool:
    """Some floats of 8 bits do without."""
    return is_float(like) and bool(np.isinf(np.array(np.inf).astype(numpy_type(like))))


def epsilon(like: XlaOp) -> float:
    """Distance from 1 to the next number of a value's type."""
    return float(_info(numpy_type(like)).eps)


def _info(dtype: np.dtype[Any]) -> Any:
    about: Any = ml_dtypes
    return about.iinfo(dtype) if dtype.kind in "iu" or "int" in dtype.name else about.finfo(dtype)


def iota(builder: XlaBuilder, dtype: ElementType, size: int) -> XlaOp:
    """0, 1, .. size - 1."""
    return iota_along(builder, dtype, (size,), 0)


def iota_along(builder: XlaBuilder, dtype: ElementType, sizes: Sequence[int], dimension: int) -> XlaOp:
    """Each element's place along a dimension."""
    return xla.iota(builder, Shape.array(dtype, tuple(sizes)), dimension)


# Types


def is_float(op: XlaOp) -> bool:
    """Whether a value is of floats."""
    return op.shape.dtype.is_float


def is_complex(op: XlaOp) -> bool:
    """Whether a value is of complex numbers."""
    return op.shape.dtype.is_complex


def is_integer(op: XlaOp) -> bool:
    """Whether a value is of integers."""
    return not (is_float(op) or is_complex(op) or op.shape.dtype is ElementType.PRED)


def is_narrow(op: XlaOp) -> bool:
    """Whether sums of a value are to be made in f32."""
    return is_float(op) and op.shape.dtype.bits < 32


def widened(op: XlaOp) -> XlaOp:
    """Narrow floats as f32."""
    return xla.convert(op, ElementType.F32) if is_narrow(op) else op


def in_f32(function: Callable[..., XlaOp]) -> Callable[..., XlaOp]:
    """The function computed in f32 for narrower floats, and rounded back."""

    def wrapped(*operands: XlaOp, **attrs: Any) -> XlaOp:
        if not is_narrow(operands[0]):
            return function(*operands, **attrs)
        return xla.convert(function(*map(widened, operands), **attrs), operands[0].shape.dtype)

    return wrapped


# Shapes


def sizes_of(op: XlaOp) -> tuple[int, ...]:
    """Sizes of a value."""
    return tuple(op.shape.dims)


def rank_of(op: XlaOp) -> int:
    """Rank of a value."""
    return len(op.shape.dims)


def count_of(op: XlaOp) -> int:
    """Number of elements of a value."""
    return prod(op.shape.dims)


def broadcast_shape(a: Sequence[int], b: Sequence[int]) -> tuple[int, ...]:
    """What two shapes broadcast to.

    Raises
    ------
    ShapeError
        They do not.
    """
    try:
        return tuple(np.broadcast_shapes(tuple(a), tuple(b)))
    except ValueError:
        raise ShapeError(f"incompatible shapes: {list(a)} and {list(b)} do not broadcast") from None


def broadcast_to(op: XlaOp, sizes: Sequence[int]) -> XlaOp:
    """A value repeated to a shape, its last dimensions standing under the last of the shape."""
    own = sizes_of(op)
    if own == tuple(sizes):
        return op
    if broadcast_shape(own, sizes) != tuple(sizes):
        raise ShapeError(f"{list(own)} does not broadcast to {list(sizes)}")
    return xla.broadcast_in_dim(op, sizes, range(len(sizes) - len(own), len(sizes)))


def paired(x: XlaOp, y: XlaOp) -> tuple[XlaOp, XlaOp]:
    """Two values repeated to the shape that both broadcast to."""
    sizes = broadcast_shape(sizes_of(x), sizes_of(y))
    return broadcast_to(x, sizes), broadcast_to(y, sizes)


def select(condition: XlaOp, x: Any, y: Any) -> XlaOp:
    """x where the condition holds, else y; numbers take the type of the other."""
    some = x if isinstance(x, XlaOp) else y
    x, y = (v if isinstance(v, XlaOp) else scalar(some, v) for v in (x, y))
    sizes = broadcast_shape(broadcast_shape(sizes_of(condition), sizes_of(x)), sizes_of(y))
    return xla.select(broadcast_to(condition, sizes), broadcast_to(x, sizes), broadcast_to(y, sizes))


# Reductions


def reduced(op: XlaOp, opcode: str, init: XlaOp, axes: Sequence[int], keep: bool = False) -> XlaOp:
    """Elements along dimensions joined by a binary opcode."""
    axes = sorted(axis % max(rank_of(op), 1) for axis in axes)
    if not axes:
        return op
    result = xla.reduce(op, init, scalar_computation(opcode, op.shape.dtype), axes)
    if not keep:
        return result
    return xla.reshape(result, [1 if d in axes else n for d, n in enumerate(sizes_of(op))])


def sum_of(op: XlaOp, axes: Sequence[int], keep: bool = False) -> XlaOp:
    """Sums, in f32 for narrower floats."""
    wide = widened(op)
    found = reduced(wide, "add", scalar(wide, 0), axes, keep)
    return xla.convert(found, op.shape.dtype) if is_narrow(op) else found


def product_of(op: XlaOp, axes: Sequence[int], keep: bool = False) -> XlaOp:
    """Products, in f32 for narrower floats."""
    wide = widened(op)
    found = reduced(wide, "multiply", scalar(wide, 1), axes, keep)
    return xla.convert(found, op.shape.dtype) if is_narrow(op) else found


def max_of(op: XlaOp, axes: Sequence[int], keep: bool = False) -> XlaOp:
    """The greatest."""
    return reduced(op, "maximum", least(op), axes, keep)


def min_of(op: XlaOp, axes: Sequence[int], keep: bool = False) -> XlaOp:
    """The least."""
    return reduced(op, "minimum", greatest(op), axes, keep)


def mean_of(op: XlaOp, axes: Sequence[int], keep: bool = False) -> XlaOp:
    """Means, in f32 for narrower floats."""
    wide = widened(op)
    count = prod(sizes_of(op)[axis] for axis in axes)
    found = sum_of(wide, axes, keep)
    found = found / scalar(found, count)
    return xla.convert(found, op.shape.dtype) if is_narrow(op) else found
