"""Alignment of arrays of run-time size: one size for each run-time dimension of several arrays that broadcast."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial, reduce
from typing import Any, NamedTuple

import numpy as np

from cyxla.errors import ShapeError, UnimplementedError
from cyxla.numpy.indexing.equal_values import require_equal, same_size
from cyxla.numpy.indexing.ranges import range_of
from cyxla.numpy.tracing.arrays.run_time_sizes import fail_unless, resized
from cyxla.numpy.tracing.arrays.sized_array import SizedArray, as_size, is_sized, product
from cyxla.numpy.tracing.arrays.traced_array import LazyList, TracedArray, as_traced, in_order_of, value_of
from cyxla.numpy.tracing.hooks import hooks
from cyxla.numpy.tracing.trace import require_current
from cyxla.records import dataclass
from cyxla.xla.hlo.builder import functions as xla

_np: Any = np  # its functions dispatch to this package

__all__ = [
    "Frame", "Mismatch", "align", "array_of", "counts_of", "fail_unless", "fit", "leave_if", "padded_of", "rank_of",
    "require_equal", "require_same_shape", "resized", "shape_of", "stretched", "wrapped",
]  # fmt: skip


@dataclass(frozen=True)
class Frame:
    """Run-time dimensions of the results of an element-wise function.

    Attributes
    ----------
    counts : mapping of int to TracedArray
        Size of each of these dimensions, by the number of dimensions from it to the last, inclusive.
    """

    counts: Mapping[int, TracedArray]

    def wrap(self, result: Any) -> Any:
        """Return padded results as arrays of run-time size."""
        if isinstance(result, (tuple, list)):
            return type(result)([self.wrap(r) for r in result])
        if not isinstance(result, TracedArray):
            return result
        return wrapped(result, {result.ndim - k: n for k, n in self.counts.items() if k <= result.ndim})


def wrapped(data: Any, counts: Mapping[int, TracedArray]) -> Any:
    """Return padded elements as an array of run-time size, if it has any such dimension."""
    return SizedArray(data, counts) if counts else data


def array_of(value: Any) -> Any:
    """Return anything that is an array for NumPy as a traced array, or as one of run-time size."""
    if isinstance(value, SizedArray):
        return value
    return hooks.sized_function(np.array, (value,), {}) if is_sized(value) else as_traced(value)


def padded_of(array: Any) -> Any:
    """Return the padded elements of an array of any kind."""
    return array.padded if isinstance(array, SizedArray) else array


def counts_of(array: Any) -> dict[int, Any]:
    """Return the run-time sizes of an array of any kind, by dimension."""
    return array.counts if isinstance(array, SizedArray) else {}


def rank_of(value: Any) -> int:
    """Return the rank of anything that is an array for NumPy."""
    return value.ndim if isinstance(value, SizedArray) else np.ndim(value)


def shape_of(value: Any) -> tuple[Any, ...]:
    """Return the shape of anything that is an array for NumPy, with traced integers for run-time sizes."""
    return tuple(value.shape if isinstance(value, (SizedArray, TracedArray)) else np.shape(value))


class Mismatch(NamedTuple):
    """Error of runs in which sizes do not broadcast: its message for two sizes, and its class."""

    message: str
    error: Callable[..., Exception]


_OPERANDS = Mismatch("operands could not be broadcast together with shapes ({},) ({},)", ShapeError)


def align(operands: Sequence[Any], mismatch: Mismatch = _OPERANDS) -> tuple[list[Any], Frame]:
    """Return the padded elements of operands that broadcast, and the run-time dimensions of their result.

    Runs in which the sizes do not broadcast fail. Operands of other types are returned as they are.
    """
    operands = [_np.asarray(x) if isinstance(x, LazyList) else x for x in operands]  # its length may be of run time
    shapes = [shape_of(x) for x in operands]
    datas = [x.padded if isinstance(x, SizedArray) else x for x in operands]
    counts: dict[int, TracedArray] = {}
    for k in sorted({x.ndim - d for x in operands if isinstance(x, SizedArray) for d in x.counts}):
        parts = [
            _Part(n, shape[-k], datas[n].shape[-k])
            for n, shape in enumerate(shapes)
            if len(shape) >= k and isinstance(shape[-k], TracedArray)
        ]
        known = [shape[-k] for shape in shapes if len(shape) >= k and not isinstance(shape[-k], TracedArray)]
        count, bound, may_stretch = _common_size(parts, {n for n in known if n != 1}, mismatch)
        if count is not None:
            counts[k] = count
        for part in parts:
            size = (bound if count is None else count) if may_stretch and _may_be_one(part.count) else part.count
            datas[part.operand] = stretched(datas[part.operand], -k, part.count, bound, size)
    return datas, Frame(counts)


class _Part(NamedTuple):
    """Operand that has a run-time size along a dimension, with that size and its bound."""

    operand: int
    count: Any
    bound: int


def _common_size(parts: Sequence[_Part], known: set[int], mismatch: Mismatch) -> tuple[TracedArray | None, int, bool]:
    """Return the size of a dimension of a result, None if it is known while tracing; its bound; and may sizes be 1."""
    if known:
        bound = max(known)
        for part in parts:
            _require_broadcast(part.count, bound, mismatch)
        return None, bound, True
    different: list[_Part] = []
    for part in parts:
        if not any(same_size(part.count, other.count) for other in different):
            different.append(part)
    if len(different) == 1:
        return parts[0].count, min(p.bound for p in parts), False
    bound = max(p.bound for p in parts)
    count: Any = reduce(
        lambda n, p: _np.where(_np.equal(p.count, 1), n, p.count) if _may_be_one(p.count) else p.count,
        different[1:],
        different[0].count,
    )
    for part in different:
        _require_broadcast(part.count, count, mismatch)
    return as_size(as_traced(count), bound), bound, True


def _may_be_one(count: TracedArray) -> bool:
    low, high = range_of(value_of(count))
    return low <= 1 <= high


def _require_broadcast(count: TracedArray, size: Any, mismatch: Mismatch) -> None:
    """Make runs fail in which a size is neither 1 nor the given one."""
    if isinstance(size, TracedArray) and same_size(count, size):
        return
    fits: Any = _np.logical_or(_np.equal(count, size), _np.equal(count, 1))
    fail_unless(fits, count, size, *mismatch)


def leave_if(condition: Any, text: str) -> None:
    """Make NumPy run in place of runs in which a condition holds; where it must not, the text is the error."""
    require_current().leave_if(value_of(as_traced(condition)), lambda _: UnimplementedError(text))


def require_same_shape(arrays: Sequence[Any], message: str, error: Callable[..., Exception]) -> None:
    """Make runs fail in which arrays of one rank differ in shape: functions other than ufuncs do not broadcast them."""
    shape, *others = map(shape_of, arrays)
    for other in others:
        if len(other) != len(shape):
            raise error(message)
        for n, m in zip(shape, other, strict=True):
            if isinstance(n, TracedArray) or isinstance(m, TracedArray):
                require_equal(n, m, message, error)
            elif n != m:
                raise error(message)


def stretched(data: TracedArray, axis: int, count: Any, bound: int, size: Any) -> TracedArray:
    """Return the padded elements of a result of some size, with a bound; elements of another size, 1, are repeated."""
    axis %= data.ndim
    if size is count or not data.shape[axis] or not bound:
        return resized(data, axis, bound)
    first = value_of(resized(data, axis, 1))
    op = value_of(resized(data, axis, bound))
    others = [d for d in range(op.shape.rank) if d != axis]
    line = xla.reshape(first, [first.shape.dims[d] for d in others])
    repeated = xla.broadcast_in_dim(line, op.shape.dims, others)
    repeats = value_of(as_traced(_np.not_equal(count, size)))  # no other sizes pass the check
    return in_order_of(data, xla.select(xla.broadcast(repeats, op.shape.dims), repeated, op))


def fit(
    value: Any, shape: Sequence[Any], bounds: Sequence[int], message: str, *, as_view: bool = False,
    is_indexed: bool = False,
) -> TracedArray:  # fmt: skip
    """Return the padded elements of a value that is broadcast to a shape; runs in which that is impossible fail.

    Parameters
    ----------
    value : array
        Value.
    shape : sequence
        Sizes, some of which may be traced integers.
    bounds : sequence of int
        Padded sizes.
    message : str
        Text of the error, with places for a size and the one that it must be.
    as_view : bool
        Whether the result sees writes to the value.
    is_indexed : bool
        Whether the shape is that of an assignment by arrays of indices, which takes leading dimensions of any size if
        the others have no elements.
    """
    data = value.padded if isinstance(value, SizedArray) else as_traced(value)
    fits: Any
    for d, size in enumerate(shape_of(value)[: max(data.ndim - len(shape), 0)]):  # assignments drop leading sizes of 1
        if isinstance(size, TracedArray):
            fits = _np.equal(size, 1)
            if is_indexed:
                fits = _np.logical_or(fits, _np.equal(product(shape_of(value)[data.ndim - len(shape) :]), 0))
            fail_unless(fits, size, 1, message)
            data = resized(data, d, 1)
    for k, size in enumerate(reversed(shape_of(value)[-len(shape) :] if shape else ()), 1):
        target, bound = shape[-k], bounds[-k]
        if not isinstance(size, TracedArray):
            if size != 1 and isinstance(target, TracedArray):
                require_equal(target, size, message)
                data = resized(data, -k, bound)
            continue
        is_same = isinstance(target, TracedArray) and same_size(size, target)
        if not is_same:
            fits = _np.logical_or(_np.equal(size, target), _np.equal(size, 1))
            fail_unless(fits, size, target, message)
        new_size = target if not is_same and _may_be_one(size) else size
        stretch = partial(stretched, axis=-k, count=size, bound=bound, size=new_size)
        data = _view_by(stretch, data) if as_view else stretch(data)
    return data


def _view_by(function: Callable[[TracedArray], TracedArray], data: TracedArray) -> TracedArray:
    """Return the result of a function as a read-only view of its argument."""
    return data.make_view(lambda op: value_of(function(TracedArray(op))), None, None)
