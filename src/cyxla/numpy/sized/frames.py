"""Alignment of arrays of run-time size: one size for the run-time dimension of several arrays that broadcast."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any

import numpy as np

from cyxla.errors import ShapeError
from cyxla.numpy.indexing.equal_values import same_size
from cyxla.numpy.tracing.sized_array import SizedArray, as_size, raise_unsupported
from cyxla.numpy.tracing.trace import require_current, user_line
from cyxla.numpy.tracing.traced_array import TracedArray, as_traced, value_of
from cyxla.xla.hlo.builder import functions as xla
from cyxla.xla.lib import values

_np: Any = np  # its functions dispatch to this package

_SIZE_BITS = 31  # sizes below 2^31 are packed in pairs into the number of a failure


@dataclass(frozen=True)
class Frame:
    """Run-time dimension of the results of an element-wise function.

    Attributes
    ----------
    count : TracedArray or None
        Size of the dimension; None if it is known while tracing.
    from_right : int
        Number of dimensions from this one to the last, inclusive.
    """

    count: TracedArray | None
    from_right: int

    def wrap(self, result: Any) -> Any:
        """Return padded results as arrays of run-time size."""
        if isinstance(result, (tuple, list)):
            return type(result)([self.wrap(r) for r in result])
        if self.count is None or not isinstance(result, TracedArray) or result.ndim < self.from_right:
            return result
        return SizedArray(result, result.ndim - self.from_right, self.count)


def rank_of(value: Any) -> int:
    """Return the rank of anything that is an array for NumPy."""
    return value.ndim if isinstance(value, SizedArray) else np.ndim(value)


def align(operands: Sequence[Any]) -> tuple[list[Any], Frame]:
    """Return the padded elements of operands that broadcast, and the run-time dimension of their result.

    Runs in which the sizes do not broadcast fail. Operands of other types are returned as they are.
    """
    arrays = [x for x in operands if isinstance(x, SizedArray)]
    from_right = {x.ndim - x.axis for x in arrays}
    if len(from_right) > 1:
        raise_unsupported("be combined with another along other dimensions: their result would have two such sizes")
    (offset,) = from_right
    static_sizes = {_size_at(x, offset) for x in operands if not isinstance(x, SizedArray)} - {1}
    if static_sizes:
        bound, count = max(static_sizes), None
        for array in arrays:
            _require_broadcast(array.count, bound)
        may_stretch = True
    else:
        bound, count, may_stretch = _common_size(arrays)
    aligned = [_stretched(x, bound, may_stretch) if isinstance(x, SizedArray) else x for x in operands]
    return aligned, Frame(count, offset)


def _size_at(value: Any, from_right: int) -> int:
    shape = value.shape if isinstance(value, TracedArray) else np.shape(value)
    return int(shape[-from_right]) if len(shape) >= from_right else 1


def _common_size(arrays: Sequence[SizedArray]) -> tuple[int, TracedArray, bool]:
    """Return the bound and the size of the run-time dimension, and whether sizes of 1 may have to be stretched."""
    different: list[SizedArray] = []
    for array in arrays:
        if not any(same_size(array.count, other.count) for other in different):
            different.append(array)
    if len(different) == 1:
        return min(a.bound for a in arrays), arrays[0].count, False
    bound = max(a.bound for a in arrays)
    count: Any = reduce(lambda n, a: _np.where(_np.equal(a.count, 1), n, a.count), different[1:], different[0].count)
    for array in different:
        _require_broadcast(array.count, count)
    return bound, as_size(as_traced(count), bound), True


def _require_broadcast(count: TracedArray, size: Any) -> None:
    """Make runs fail in which a size is neither 1 nor the given one."""
    fits: Any = _np.logical_or(_np.equal(count, size), _np.equal(count, 1))
    fail_unless(fits, count, size, "operands could not be broadcast together with shapes ({},) ({},)")


def fail_unless(
    holds: Any, first: Any, second: Any, message: str, error: Callable[..., Exception] = ShapeError
) -> None:
    """Make runs in which a condition does not hold fail with a message that shows two sizes."""
    where = user_line()
    pair: Any = first * (1 << _SIZE_BITS) + second

    def make_error(number: int) -> Exception:
        return error(message.format(number >> _SIZE_BITS, number & (1 << _SIZE_BITS) - 1), where=where)

    failed = value_of(as_traced(_np.logical_not(holds)))
    require_current().fail_if(failed, value_of(as_traced(pair, np.int64)), make_error)


def require_equal(first: Any, second: Any, message: str, error: Callable[..., Exception] = ShapeError) -> None:
    """Make runs in which two sizes differ fail; sizes that are computed alike need no check."""
    if isinstance(first, TracedArray) and isinstance(second, TracedArray) and same_size(first, second):
        return
    fail_unless(_np.equal(first, second), first, second, message, error)


def resized(data: TracedArray, axis: int, bound: int) -> TracedArray:
    """Return padded elements with another bound; more padding is zeros."""
    old = data.shape[axis]
    if old == bound:
        return data
    op = value_of(data)
    if old > bound:
        return TracedArray(xla.slice_in_dim(op, 0, bound, 1, axis))
    return TracedArray(xla.pad_in_dim(op, values.scalar(op, 0), axis, 0, bound - old))


def _stretched(array: SizedArray, bound: int, may_stretch: bool) -> TracedArray:
    """Return the padded elements with a bound; an array of size 1 is repeated."""
    data = resized(array.data, array.axis, bound)
    if not may_stretch or not array.bound or not bound:
        return data
    op = value_of(data)
    first = xla.slice_in_dim(op, 0, 1, 1, array.axis)
    repeated = xla.broadcast_in_dim(xla.reshape(first, [n for d, n in enumerate(first.shape.dims) if d != array.axis]),
                                    op.shape.dims, [d for d in range(op.shape.rank) if d != array.axis])  # fmt: skip
    is_one = value_of(as_traced(_np.equal(array.count, 1)))
    return TracedArray(xla.select(xla.broadcast(is_one, op.shape.dims), repeated, op))
