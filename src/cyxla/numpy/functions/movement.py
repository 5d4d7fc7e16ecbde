"""Shapes and permutations of dimensions: most functions return views, as NumPy's do."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.lib.array_utils import normalize_axis_index, normalize_axis_tuple

from cyxla._native.dispatch import axes_of
from cyxla.errors import UnimplementedError
from cyxla.numpy.indexing.access import get
from cyxla.numpy.tracing import trace as _trace
from cyxla.numpy.tracing.arrays.layout_reads import note_layout, note_reshape, note_sharing
from cyxla.numpy.tracing.arrays.memory_layout import Memory, column_major, reshape_view
from cyxla.numpy.tracing.arrays.traced_array import TracedArray, as_strong, as_traced, require_sizes, value_of
from cyxla.numpy.tracing.registry import implements
from cyxla.numpy.tracing.results.result_layout import order_letter
from cyxla.numpy.ufuncs.apply import broadcast_to as broadcast_op
from cyxla.types import ElementType, Shape
from cyxla.xla.hlo.builder import XlaOp
from cyxla.xla.hlo.builder import functions as xla

Array = TracedArray


def shape_only_array(a: Array) -> np.ndarray[Any, Any]:
    """Return an unallocated NumPy array of the same shape and dtype, to ask NumPy about."""
    return np.broadcast_to(np.empty((), a.dtype), a.shape)


def make_movement_view(
    a: Array, forward: Callable[[XlaOp], XlaOp], inverse: Callable[[XlaOp], XlaOp], memory: Memory | None
) -> Array:
    """Return a view of all elements after a data movement and its inverse."""
    return a.make_view(forward, lambda base, new: inverse(new), memory)


# -- shapes


@implements(np.shape)
def shape(a: Any) -> tuple[int, ...]:
    """Return the shape as ints."""
    return as_traced(a).shape


@implements(np.ndim)
def ndim(a: Any) -> int:
    """Return the rank as an int."""
    return as_traced(a).ndim


@implements(np.size)
def size(a: Any, axis: Any = None) -> int:
    """Return the number of elements as an int."""
    return int(np.size(shape_only_array(as_strong(a)), axis))


def reshape_row_major(a: Array, sizes: Sequence[int]) -> Array:
    """Reshape in row-major order: a view if NumPy makes one."""
    old, new = a.shape, tuple(sizes)
    note_reshape(a, new)
    memory = None if a.contiguous else reshape_view(a.memory, new)
    if a.contiguous or memory is not None:
        return make_movement_view(a, lambda v: xla.reshape(v, new), lambda v: xla.reshape(v, old), memory)
    return TracedArray(xla.reshape(value_of(a), new))


def _reshape_column_major(a: Array, sizes: Sequence[int], memory: Memory | None) -> Array:
    """Reshape in column-major order: a view, or a copy."""
    old, new = a.shape, tuple(sizes)
    if memory is not None:
        return make_movement_view(
            a, lambda v: _reshape_op_column_major(v, new), lambda v: _reshape_op_column_major(v, old), memory
        )
    return TracedArray(_reshape_op_column_major(value_of(a), new), memory=column_major(new, a.dtype))


def _reshape_op_column_major(op: XlaOp, sizes: Sequence[int]) -> XlaOp:
    return _reverse_dimensions(xla.reshape(_reverse_dimensions(op), tuple(reversed(sizes))))


def _reverse_dimensions(op: XlaOp) -> XlaOp:
    return xla.transpose(op, tuple(reversed(range(op.shape.rank))))


def _resolve_order(a: Array, order: str | None) -> str:
    """Return ``C`` or ``F`` for one of these and ``A``."""
    letter = order_letter(order)
    if letter != "A":
        return letter
    if a.contiguous or a.ndim < 2 or not a.memory.flags.f_contiguous:
        return "C"
    note_layout(a)
    return "F"


@implements(np.reshape)
def reshape(a: Any, /, shape: Any, order: str = "C", *, copy: bool | None = None) -> Array:
    """Change the shape."""
    array = as_strong(a)
    require_sizes(shape)
    sizes = np.reshape(shape_only_array(array), shape, order=order).shape  # type: ignore[call-overload]
    is_column_major = _resolve_order(array, order) == "F" and sizes != array.shape
    if is_column_major and sum(n > 1 for n in (*array.shape, *sizes)) > 2:
        note_reshape(array, sizes, "F")
        result = _reshape_column_major(array, sizes, reshape_view(array.memory, sizes, "F"))
    else:
        result = reshape_row_major(array, sizes)
    if copy is False and result.base is None:
        raise ValueError("Unable to avoid creating a copy while reshaping.")
    return TracedArray(value_of(result)) if copy else result


@implements(np.ravel)
def ravel(a: Any, order: str = "C") -> Array:
    """Flatten; the result is a view if the elements are contiguous."""
    array = as_strong(a)
    note_sharing(array)
    if order_letter(order) == "K":
        axes = axes_of(array.memory)
        array, order = array if axes is None else _permute(array, axes), "C"
    if _resolve_order(array, order) == "F" and array.ndim > 1:
        memory = reshape_view(array.memory, (array.size,), "F")
        return _reshape_column_major(
            array, (array.size,), memory if memory is not None and memory.flags.c_contiguous else None
        )
    if array.contiguous:
        return reshape_row_major(array, (array.size,))
    return TracedArray(xla.reshape(value_of(array), (array.size,)))


def flat_copy(a: Any) -> Array:
    """Return all elements as a vector of its own, which is written to by nobody else."""
    array = as_strong(a)
    return TracedArray(xla.reshape(value_of(array), (array.size,)))


# -- permutations


@implements(np.transpose)
def transpose(a: Any, axes: Any = None) -> Array:
    """Permute dimensions."""
    array = as_strong(a)
    if axes is None:
        return _permute(array, tuple(reversed(range(array.ndim))))
    np.transpose(shape_only_array(array), axes)  # raises NumPy's errors
    return _permute(array, normalize_axis_tuple(axes, array.ndim))


def _permute(array: Array, order: tuple[int, ...]) -> Array:
    inverse_order = tuple(np.argsort(order).tolist())
    memory = array.memory.transpose(order)
    return make_movement_view(
        array, lambda v: xla.transpose(v, order), lambda v: xla.transpose(v, inverse_order), memory
    )


@implements(np.matrix_transpose, np.linalg.matrix_transpose)
def matrix_transpose(x: Any, /) -> Array:
    """Transpose the last two dimensions."""
    array = as_strong(x)
    if array.ndim < 2:
        raise ValueError(f"Input array must be at least 2-dimensional, but it is {array.ndim}")
    return swapaxes(array, -1, -2)


@implements(np.swapaxes)
def swapaxes(a: Any, axis1: int, axis2: int) -> Array:
    """Swap two dimensions."""
    array = as_strong(a)
    first, second = normalize_axis_index(axis1, array.ndim), normalize_axis_index(axis2, array.ndim)
    order = list(range(array.ndim))
    order[first], order[second] = second, first
    return _permute(array, tuple(order))


@implements(np.moveaxis)
def moveaxis(a: Any, source: Any, destination: Any) -> Array:
    """Move dimensions to other positions."""
    array = as_strong(a)
    start = normalize_axis_tuple(source, array.ndim, "source")
    end = normalize_axis_tuple(destination, array.ndim, "destination")
    if len(start) != len(end):
        raise ValueError("`source` and `destination` arguments must have the same number of elements")
    order = [d for d in range(array.ndim) if d not in start]
    for position, dim in sorted(zip(end, start, strict=True)):
        order.insert(position, dim)
    return _permute(array, tuple(order))


@implements(np.rollaxis)
def rollaxis(a: Any, axis: int, start: int = 0) -> Array:
    """Move a dimension before another one."""
    array = as_strong(a)
    n = array.ndim
    axis = normalize_axis_index(axis, n)
    position = start + n if start < 0 else start
    if not 0 <= position <= n:
        raise np.exceptions.AxisError(f"'start' arg requires {-n} <= start < {n + 1}, but {start} was passed in")
    order = [d for d in range(n) if d != axis]
    order.insert(position - (axis < position), axis)
    return _permute(array, tuple(order))


# -- dimensions of size 1


@implements(np.squeeze)
def squeeze(a: Any, axis: Any = None) -> Array:
    """Remove dimensions of size 1."""
    array = as_strong(a)
    return reshape_row_major(array, np.squeeze(shape_only_array(array), axis).shape)


@implements(np.expand_dims)
def expand_dims(a: Any, axis: Any) -> Array:
    """Insert dimensions of size 1."""
    array = as_strong(a)
    return reshape_row_major(array, np.expand_dims(shape_only_array(array), axis).shape)


@implements(np.lib.stride_tricks.sliding_window_view)
def sliding_window_view(
    x: Any, window_shape: Any, axis: Any = None, *, subok: bool = False, writeable: bool = False
) -> Array:
    """Return a read-only view of all windows, whose elements are additional last dimensions."""
    array: Array = as_strong(x)
    if writeable:
        raise UnimplementedError(
            "sliding_window_view with writeable=True cannot be traced: overlapping windows share elements"
        )
    memory = np.lib.stride_tricks.sliding_window_view(array.memory, window_shape, axis)  # raises NumPy's errors
    windows = tuple(window_shape) if np.iterable(window_shape) else (window_shape,)
    axes = range(array.ndim) if axis is None else normalize_axis_tuple(axis, array.ndim, allow_duplicate=True)

    def read(op: XlaOp) -> XlaOp:
        result: Array = TracedArray(op)
        for dimension, size in zip(axes, windows, strict=True):
            window_indices = np.arange(result.shape[dimension] - size + 1)[:, None] + np.arange(size)
            take: Any = np.take  # dispatches to this package
            result = moveaxis(take(result, window_indices, axis=dimension), dimension + 1, -1)
        return value_of(result)

    return array.make_view(read, None, memory)


@implements(np.lib.stride_tricks.as_strided, note="of an array in row-major order; its result cannot be written to")
def as_strided(x: Any, shape: Any = None, strides: Any = None, subok: bool = False, writeable: bool = True) -> Array:
    """Return a view with other sizes and strides, of an array in row-major order; it can be read, not written."""
    array: Array = as_strong(x)
    note_layout(array)
    if not array.memory.flags.c_contiguous:
        raise UnimplementedError(
            "as_strided of an array that is not in row-major order cannot be traced", where=_trace.user_line(),
            hint="np.ascontiguousarray(x)",
        )  # fmt: skip
    memory = np.lib.stride_tricks.as_strided(array.memory, shape, strides)
    steps = [s // array.dtype.itemsize for s in memory.strides]
    reaches = [step * (n - 1) for step, n in zip(steps, memory.shape, strict=True)]
    is_inside = sum(r for r in reaches if r < 0) == 0 and sum(reaches) < array.size
    if memory.size and (any(s % array.dtype.itemsize for s in memory.strides) or not is_inside):
        raise UnimplementedError(
            f"as_strided with sizes {memory.shape} and strides {memory.strides} reads beyond the elements of an array",
            where=_trace.user_line(),
        )

    def read(op: XlaOp) -> XlaOp:
        flat: Array = reshape_row_major(TracedArray(op), (array.size,))
        return value_of(get(flat, _strided_positions(memory.shape, steps), "unchecked"))

    return array.make_view(read, _refuse_write if writeable else None, memory)


def _strided_positions(sizes: Sequence[int], steps: Sequence[int]) -> Any:
    """Return the positions of elements in memory, as a traced array: as a constant, it might be large."""
    builder, shape = _trace.require_current().builder, Shape.array(ElementType.S64, tuple(sizes))
    parts: list[Any] = [TracedArray(xla.iota(builder, shape, axis)) for axis in range(len(steps))]
    parts = [part * step for part, step in zip(parts, steps, strict=True)]
    return sum(parts[1:], parts[0]) if parts else np.int64(0)


def _refuse_write(base: XlaOp, new: XlaOp) -> XlaOp:
    raise UnimplementedError(
        "a write to a result of as_strided cannot be traced", where=_trace.user_line(),
        hint="write to the array itself, or to slices of it",
    )  # fmt: skip


def resolve_axis(a: Any, axis: Any) -> tuple[Array, int]:
    """Return an array and one of its dimensions; flattened for None, and of rank 1 for a scalar."""
    array = as_strong(a)
    if axis is None or (array.ndim == 0 and axis in (0, -1)):
        return flat_copy(array), 0
    return array, normalize_axis_index(axis, array.ndim)


def _add_dimensions(arrays: Sequence[Any], sizes: Callable[[np.ndarray[Any, Any]], Any]) -> Any:
    result = []
    for a in arrays:
        array = as_strong(a)
        new_shape = sizes(shape_only_array(array)).shape
        result.append(array if new_shape == array.shape else reshape_row_major(array, new_shape))
    return result[0] if len(result) == 1 else tuple(result)


@implements(np.atleast_1d)
def atleast_1d(*arys: Any) -> Any:
    """Add dimensions up to rank 1."""
    return _add_dimensions(arys, np.atleast_1d)


@implements(np.atleast_2d)
def atleast_2d(*arys: Any) -> Any:
    """Add dimensions up to rank 2."""
    return _add_dimensions(arys, np.atleast_2d)


@implements(np.atleast_3d)
def atleast_3d(*arys: Any) -> Any:
    """Add dimensions up to rank 3."""
    return _add_dimensions(arys, np.atleast_3d)


# -- broadcasting


@implements(np.broadcast_to)
def broadcast_to(array: Any, shape: Any, subok: bool = False) -> Array:
    """Broadcast to a shape; read-only."""
    source: Array = as_strong(array)
    require_sizes(shape)
    sizes = np.broadcast_to(shape_only_array(source), shape).shape
    return source.make_view(lambda v: broadcast_op(v, sizes), None, np.broadcast_to(source.memory, sizes))


@implements(np.broadcast_arrays)
def broadcast_arrays(*args: Any, subok: bool = False) -> tuple[Array, ...]:
    """Broadcast to the common shape; results are read-only unless all arrays have it already."""
    arrays = [as_strong(a) for a in args]
    sizes = np.broadcast_shapes(*[a.shape for a in arrays])
    if all(a.shape == sizes for a in arrays):
        return tuple(arrays)
    return tuple([broadcast_to(a, sizes) for a in arrays])


# -- reversal


@implements(np.flip)
def flip(m: Any, axis: Any = None) -> Array:
    """Reverse dimensions."""
    array = as_strong(m)
    axes = tuple(range(array.ndim)) if axis is None else normalize_axis_tuple(axis, array.ndim)
    if not array.ndim:
        return TracedArray(value_of(array))  # a scalar in NumPy, not a view
    memory = np.flip(array.memory, axes)
    return make_movement_view(array, lambda v: xla.reverse(v, axes), lambda v: xla.reverse(v, axes), memory)


@implements(np.flipud)
def flipud(m: Any) -> Array:
    """Reverse the rows."""
    array = as_strong(m)
    np.flipud(shape_only_array(array))
    return flip(array, 0)


@implements(np.fliplr)
def fliplr(m: Any) -> Array:
    """Reverse the columns."""
    array = as_strong(m)
    np.fliplr(shape_only_array(array))
    return flip(array, 1)


@implements(np.rot90)
def rot90(m: Any, k: int = 1, axes: Any = (0, 1)) -> Array:
    """Rotate by multiples of a right angle."""
    array = as_strong(m)
    np.rot90(shape_only_array(array), k, axes)  # raises NumPy's errors
    first, second = (normalize_axis_index(d, array.ndim) for d in axes)
    turns = k % 4
    if turns in (0, 2):
        return flip(array, (first, second)) if turns else flip(array, ())
    if turns == 1:
        return swapaxes(flip(array, second), first, second)
    return flip(swapaxes(array, first, second), second)
