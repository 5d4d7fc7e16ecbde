"""Slices of a dimension of run-time size, and slices whose length is known at run time."""

from __future__ import annotations

from operator import index
from typing import Any

import numpy as np

from cyxla.numpy.indexing.equal_values import same_size
from cyxla.numpy.indexing.ranges import greatest_difference, range_of
from cyxla.numpy.tracing.arrays.memory_layout import Memory, memory_of
from cyxla.numpy.tracing.arrays.sized_array import SizedArray, as_size
from cyxla.numpy.tracing.arrays.traced_array import TracedArray, as_traced, require_known, value_of
from cyxla.numpy.tracing.trace import require_current
from cyxla.numpy.tracing.user_program.doubts import refuse_float
from cyxla.numpy.tracing.user_program.needed_values import inputs_of
from cyxla.xla.hlo.builder import XlaOp
from cyxla.xla.hlo.builder import functions as xla
from cyxla.xla.lib import values

_np: Any = np  # its functions dispatch to this package

_HINT = "give the step as a number"


def slice_along(array: Any, axis: int, key: slice) -> SizedArray:
    """Return a view of a range of a dimension, as Python's slices select it, of a size known at run time."""
    start, stop, step = (_known(b) for b in (key.start, key.stop, key.step))
    step = 1 if step is None else step
    require_known(step, "be the step of a slice", _HINT)
    step = index(step)
    if step == 0:
        raise ValueError("slice step cannot be zero")
    data, counts = (array.padded, array.counts) if isinstance(array, SizedArray) else (array, {})
    size = counts[axis] if axis in counts else data.shape[axis]
    first, count = _first_and_count(size, start, stop, step)
    bound = _bound(data.shape[axis], start, stop, step)
    if step == 1 and isinstance(start, TracedArray) and isinstance(stop, TracedArray):
        bound = min(bound, _greatest_length(start, stop, bound))
    counts = {**counts, axis: as_size(as_traced(count, np.int64), bound)}
    if step == 1 and not isinstance(start, TracedArray) and (start is None or start >= 0):
        low = min(start or 0, data.shape[axis])
        return SizedArray(data[(*[slice(None)] * axis, slice(low, low + bound))], counts)
    return SizedArray(_strided_view(data, axis, as_traced(first), counts[axis], step, bound), counts)


def _greatest_length(start: TracedArray, stop: TracedArray, bound: int) -> int:
    """Return a bound of the length of a slice whose ends are not negative.

    The sizes of windows of a loop are made static if integers among the arguments determine them.
    """
    if range_of(value_of(start))[0] < 0 or range_of(value_of(stop))[0] < 0:
        return bound
    terms, longest = greatest_difference(value_of(start), value_of(stop))
    if not terms:
        return max(longest, 0)
    trace = require_current()
    if trace.parent is not None and trace.program.python_integers:
        builder = value_of(start).builder
        inputs = [inputs_of(XlaOp(builder, term)) for term in terms]
        if all(found and found <= trace.program.python_integers for found in inputs):
            trace.program.window_sizes.update(*filter(None, inputs))
    return bound


def _known(bound: Any) -> Any:
    if isinstance(bound, TracedArray):
        if bound.ndim or bound.dtype.kind not in "iu":
            refuse_float(bound, "a bound of a slice")
            raise TypeError("slice indices must be integers or None or have an __index__ method")
        return bound.astype(np.int64) if bound.known is None else int(bound.known)
    return bound if bound is None else index(bound)


def _first_and_count(size: Any, start: Any, stop: Any, step: int) -> tuple[Any, Any]:
    """Return the first index and the number of indices, as `slice.indices` computes them."""
    lowest, highest = (0, size) if step > 0 else (-1, size - 1)
    first = _clipped(start, size, lowest, highest, lowest if step > 0 else highest)
    end = _clipped(stop, size, lowest, highest, highest if step > 0 else lowest)
    if step == 1 and not isinstance(first, TracedArray) and first == 0:
        return 0, end
    distance = (end - first if step > 0 else first - end) + (abs(step) - 1)
    return first, _np.maximum(distance // abs(step), 0)


def _clipped(bound: Any, size: Any, lowest: Any, highest: Any, default: Any) -> Any:
    if bound is None:
        return default
    if isinstance(bound, TracedArray):
        low, high = range_of(value_of(bound))
        if isinstance(size, TracedArray) and same_size(bound, size):
            return _np.minimum(size, highest) if highest is not size else size
        if low >= 0 and not isinstance(highest, TracedArray) and high <= highest:
            return bound
        if low < 0:
            bound = _np.where(_np.less(bound, 0), bound + size, bound)
    elif bound < 0:
        bound = bound + size
    return _np.minimum(_np.maximum(bound, lowest), highest)


def _bound(size: int, start: Any, stop: Any, step: int) -> int:
    """Return the greatest number of indices of a slice of any size up to a bound."""
    if isinstance(start, TracedArray) or isinstance(stop, TracedArray):
        longest = size
        if step > 0 and isinstance(stop, TracedArray) and not isinstance(start, TracedArray):
            low, high = range_of(value_of(stop))
            if low >= 0 and (start is None or start >= 0):
                longest = min(size, max(high - (start or 0), 0))
        return -(-longest // abs(step))
    turning = {0, size, *(abs(b) + d for b in (start, stop) if b is not None for d in (-1, 0, 1))}
    part = slice(start, stop, step)
    if start is not None and stop is not None:
        turning |= {abs(start) + abs(stop) + d for d in (-1, 0, 1)}
    return max(len(range(*part.indices(n))) for n in turning if 0 <= n <= size)


def _strided_view(
    data: TracedArray, axis: int, first: TracedArray, count: TracedArray, step: int, bound: int
) -> TracedArray:
    """Return a view whose element k is the one at ``first + k * step``."""
    operands = [value_of(first), value_of(count)]

    def read(base: XlaOp) -> XlaOp:
        low, _ = (require_current().capture(o) for o in operands)
        return _read(base, axis, low, step, bound)

    def write(base: XlaOp, new: XlaOp) -> XlaOp:
        low, size = (TracedArray(require_current().capture(o)) for o in operands)
        return _write(base, new, axis, low, size, step)

    view: TracedArray = data.make_view(read, write, None if data.contiguous else _memory(data, axis, step, bound))
    return view


def _memory(data: TracedArray, axis: int, step: int, bound: int) -> Memory:
    """Return the memory layout of a view of every `step`-th element."""
    layout = data.memory
    sizes = [bound if d == axis else n for d, n in enumerate(layout.shape)]
    return memory_of(sizes, data.dtype, [s * step if d == axis else s for d, s in enumerate(layout.strides)])


def _read(base: XlaOp, axis: int, first: XlaOp, step: int, bound: int) -> XlaOp:
    size = base.shape.dims[axis]
    if not size or not bound:
        sizes = [bound if d == axis else n for d, n in enumerate(base.shape.dims)]
        return xla.broadcast(values.scalar(base, 0), sizes)
    if abs(step) > 1:
        indices: Any = TracedArray(first) + np.arange(bound) * step
        return value_of(_np.take(TracedArray(base), indices, axis=axis, mode="clip"))
    if step < 0:
        mirrored: Any = TracedArray(first)
        base, first = xla.reverse(base, (axis,)), value_of(size - 1 - mirrored)
    extended = xla.pad_in_dim(base, values.scalar(base, 0), axis, 0, bound)
    zero = values.scalar(first, 0)
    starts = [first if d == axis else zero for d in range(base.shape.rank)]
    return xla.dynamic_slice(extended, starts, [bound if d == axis else n for d, n in enumerate(base.shape.dims)])


def _write(base: XlaOp, new: XlaOp, axis: int, first: TracedArray, count: TracedArray, step: int) -> XlaOp:
    """Return the base with the elements of the slice replaced."""
    if not new.shape.size:
        return base
    distance: Any = (np.arange(base.shape.dims[axis]) - first) * (1 if step > 0 else -1)
    if abs(step) == 1:
        selected, moved = (distance >= 0) & (distance < count), TracedArray(_moved(base, new, axis, first, step))
    else:
        k = distance // abs(step)
        selected = (distance >= 0) & (distance % abs(step) == 0) & (k < count)
        moved = _np.take(TracedArray(new), k, axis=axis, mode="clip")
    shape = [-1 if d == axis else 1 for d in range(base.shape.rank)]
    return value_of(_np.where(_np.reshape(selected, shape), moved, TracedArray(base)))


def _moved(base: XlaOp, new: XlaOp, axis: int, first: TracedArray, step: int) -> XlaOp:
    """Return an array of the base's shape with the elements of a contiguous slice in their places."""
    size, bound = base.shape.dims[axis], new.shape.dims[axis]
    start: Any = _np.subtract(size, first)
    if step < 0:
        new, start = xla.reverse(new, (axis,)), start + (bound - 1)
    extended = xla.pad_in_dim(new, values.scalar(new, 0), axis, size, size)
    zero = values.scalar(value_of(start), 0)
    starts = [value_of(start) if d == axis else zero for d in range(base.shape.rank)]
    return xla.dynamic_slice(extended, starts, base.shape.dims)
