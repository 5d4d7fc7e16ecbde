"""Concatenation, splitting and repetition."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from math import prod
from operator import index
from typing import Any

import numpy as np
from numpy.lib.array_utils import normalize_axis_index, normalize_axis_tuple

from cyxla.errors import ShapeError, TraceError
from cyxla.numpy.functions.movement import (
    atleast_1d,
    atleast_2d,
    atleast_3d,
    flat_copy,
    moveaxis,
    reshape_row_major,
)
from cyxla.numpy.indexing.access import convert_for_assignment
from cyxla.numpy.tracing import trace as _trace
from cyxla.numpy.tracing.arrays.sized_array import SizedArray
from cyxla.numpy.tracing.arrays.traced_array import TracedArray, as_strong, as_traced, is_traced, value_of
from cyxla.numpy.tracing.hooks import hooks
from cyxla.numpy.tracing.registry import implements
from cyxla.numpy.tracing.results.conversion import convert
from cyxla.numpy.tracing.results.promotion import result_type
from cyxla.numpy.tracing.user_program.needed_values import needed_numbers
from cyxla.numpy.ufuncs.apply import broadcast_to as broadcast_op
from cyxla.xla.hlo.builder import XlaOp
from cyxla.xla.hlo.builder import functions as xla

Array = TracedArray
_MAX_SLICED_RUNS = 8  # largest number of runs of elements that are sliced rather than gathered


# -- parts along one dimension


def slice_view(a: Array, axis: int, start: int, stop: int) -> Array:
    """Return a view of a range of one dimension."""
    starts = [start if d == axis else 0 for d in range(a.ndim)]

    def write(base: XlaOp, new: XlaOp) -> XlaOp:
        return xla.dynamic_update_slice(
            base, new, [xla.constant(base.builder, start_index, "s64") for start_index in starts]
        )

    return a.make_view(
        lambda v: xla.slice_in_dim(v, start, stop, 1, axis), write,
        a.memory[(*[slice(None)] * axis, slice(start, stop))],
    )  # fmt: skip


def find_runs(indices: np.ndarray[Any, Any]) -> list[tuple[int, int, int]]:
    """Split indices into runs (first, step, count) of step 1 or -1; stop after one more than `_MAX_SLICED_RUNS`."""
    runs: list[tuple[int, int, int]] = []
    steps = np.diff(indices)
    k = 0
    while k < indices.size:
        step = int(steps[k]) if k < steps.size and abs(steps[k]) == 1 else 1
        count = 1
        while k + count < indices.size and steps[k + count - 1] == step:
            count += 1
        runs.append((int(indices[k]), step, count))
        k += count
        if len(runs) > _MAX_SLICED_RUNS:
            break
    return runs


def take_indices(op: XlaOp, indices: np.ndarray[Any, Any], axis: int) -> XlaOp:
    """Take elements of one dimension at known indices, all in range."""
    if indices.size == 0:
        return xla.slice_in_dim(op, 0, 0, 1, axis)
    runs = find_runs(indices)
    if len(runs) > _MAX_SLICED_RUNS:
        return _gather(op, indices, axis)
    parts = [_slice_run(op, axis, *run) for run in runs]
    return parts[0] if len(parts) == 1 else xla.concatenate(parts, axis)


def _slice_run(op: XlaOp, axis: int, first: int, step: int, count: int) -> XlaOp:
    if step == 1:
        return op if count == op.shape.dims[axis] else xla.slice_in_dim(op, first, first + count, 1, axis)
    return xla.reverse(xla.slice_in_dim(op, first - count + 1, first + 1, 1, axis), (axis,))


def _gather(op: XlaOp, indices: np.ndarray[Any, Any], axis: int) -> XlaOp:
    rank = op.shape.rank
    sizes = tuple(1 if d == axis else n for d, n in enumerate(op.shape.dims))
    return xla.gather(
        op, xla.constant(op.builder, indices.astype(np.int64)[:, None]),
        offset_dims=tuple(d for d in range(rank) if d != axis), collapsed_slice_dims=(axis,),
        start_index_map=(axis,), index_vector_dim=1, slice_sizes=sizes,
    )  # fmt: skip


# -- concatenation


def to_out(result: Array, out: Any, casting: str, name: str) -> Array:
    """Return a result, or write it to ``out=`` if given.

    Raises
    ------
    ValueError
        The shape of ``out=`` differs.
    """
    if out is None:
        return result
    if out.shape != result.shape:
        raise ShapeError("Output array is the wrong shape")
    np.copyto(out, result, casting=casting)  # type: ignore[arg-type]
    return out  # type: ignore[no-any-return]


_CASTING_RULES = ("no", "equiv", "safe", "same_kind", "unsafe")


def _convert_to_common(arrays: Sequence[Array], out: Any, dtype: Any, casting: str) -> list[Array]:
    """Convert arrays to the dtype of their concatenation."""
    if out is not None and dtype is not None:
        raise TypeError("concatenate() only takes `out` or `dtype` as an argument, but both were provided.")
    if casting not in _CASTING_RULES:
        raise ValueError(f"casting must be one of {', '.join(map(repr, _CASTING_RULES))} (got {casting!r})")
    target = np.dtype(dtype) if dtype is not None else np.result_type(*[a.dtype for a in arrays])
    if dtype is not None:
        for a in arrays:
            if not np.can_cast(a.dtype, target, casting):  # type: ignore[arg-type]
                raise TypeError(
                    f"Cannot cast array data from {a.dtype!r} to {target!r} according to the rule '{casting}'"
                )
    return [as_traced(a, target) for a in arrays]


def arrays_to_join(arrays: Any, name: str) -> list[Any]:
    """Return the arrays of a sequence, or of the first dimension of an array.

    Raises
    ------
    TypeError
        The value is neither.
    """
    if isinstance(arrays, (list, tuple)):
        return list(arrays)
    if isinstance(arrays, (TracedArray, np.ndarray)) and arrays.ndim:
        return [arrays[k] for k in range(arrays.shape[0])]
    raise TypeError(f"{name}: arrays to join must be given as a sequence, not {type(arrays).__name__}")


@implements(np.concatenate)
def concatenate(
    arrays: Any, /, axis: int | None = 0, out: Any = None, *, dtype: Any = None, casting: str = "same_kind"
) -> Array:
    """Concatenate arrays along a dimension."""
    inputs = [as_traced(a) for a in arrays_to_join(arrays, "concatenate")]
    if not inputs:
        raise ValueError("need at least one array to concatenate")
    if axis is None:
        inputs, axis = _flatten_inputs(inputs, out, dtype), 0
    inputs = [as_strong(a) for a in inputs]
    if any(a.ndim == 0 for a in inputs):
        raise ValueError("zero-dimensional arrays cannot be concatenated")
    dimension = normalize_axis_index(axis, inputs[0].ndim)
    for k, a in enumerate(inputs):
        _check_concatenable(a, k, inputs[0], dimension)
    ops = [value_of(a) for a in _convert_to_common(inputs, out, dtype, casting)]
    result = TracedArray(xla.concatenate(ops, dimension) if len(ops) > 1 else ops[0])
    return to_out(result, out, casting, "concatenate")


def _flatten_inputs(arrays: Sequence[Array], out: Any, dtype: Any) -> list[Array]:
    """Flatten arrays; Python numbers among them adopt the common dtype of the others."""
    if out is None and dtype is None and any(a.weak for a in arrays):
        target = result_type(*[a.kind for a in arrays])
        arrays = [TracedArray(convert(value_of(a), target)) if a.weak else a for a in arrays]  # integers wrap around
    return [flat_copy(a) for a in arrays]


def _check_concatenable(a: Array, number: int, first: Array, dimension: int) -> None:
    if a.ndim != first.ndim:
        raise ValueError(
            "all the input arrays must have same number of dimensions, but the array at index 0 has "
            f"{first.ndim} dimension(s) and the array at index {number} has {a.ndim} dimension(s)"
        )
    mismatched = [d for d in range(a.ndim) if d != dimension and a.shape[d] != first.shape[d]]
    if mismatched:
        raise ValueError(
            "all the input array dimensions except for the concatenation axis must match exactly, but along dimension "
            f"{mismatched[0]}, the array at index 0 has size {first.shape[mismatched[0]]} and the array at index "
            f"{number} has size {a.shape[mismatched[0]]}"
        )


@implements(np.stack)
def stack(arrays: Any, axis: int = 0, out: Any = None, *, dtype: Any = None, casting: str = "same_kind") -> Array:
    """Stack arrays of one shape along a new dimension."""
    inputs = [as_strong(a) for a in arrays_to_join(arrays, "stack")]
    if not inputs:
        raise ValueError("need at least one array to stack")
    if len({a.shape for a in inputs}) != 1:
        raise ValueError("all input arrays must have the same shape")
    dimension = normalize_axis_index(axis, inputs[0].ndim + 1)
    sizes = (*inputs[0].shape[:dimension], 1, *inputs[0].shape[dimension:])
    ops = [xla.reshape(value_of(a), sizes) for a in _convert_to_common(inputs, out, dtype, casting)]
    result = TracedArray(xla.concatenate(ops, dimension) if len(ops) > 1 else ops[0])
    return to_out(result, out, casting, "stack")


def _apply_atleast(arrays: Any, atleast: Callable[..., Any], name: str) -> list[Array]:
    result = atleast(*arrays_to_join(arrays, name))
    return list(result) if isinstance(result, tuple) else [result]


@implements(np.vstack)
def vstack(tup: Any, *, dtype: Any = None, casting: str = "same_kind") -> Array:
    """Stack arrays vertically."""
    return concatenate(_apply_atleast(tup, atleast_2d, "vstack"), 0, dtype=dtype, casting=casting)


@implements(np.hstack)
def hstack(tup: Any, *, dtype: Any = None, casting: str = "same_kind") -> Array:
    """Stack arrays horizontally."""
    arrays = _apply_atleast(tup, atleast_1d, "hstack")
    return concatenate(arrays, int(arrays[0].ndim > 1), dtype=dtype, casting=casting)


@implements(np.dstack)
def dstack(tup: Any) -> Array:
    """Stack arrays along the third dimension."""
    return concatenate(_apply_atleast(tup, atleast_3d, "dstack"), 2)


@implements(np.column_stack)
def column_stack(tup: Any) -> Array:
    """Stack vectors, and columns of matrices, as columns of a matrix."""
    arrays = [as_strong(a) for a in arrays_to_join(tup, "column_stack")]
    return concatenate([reshape_row_major(a, (a.size, 1)) if a.ndim < 2 else a for a in arrays], 1)


@implements(np.block)
def block(arrays: Any) -> Array:
    """Concatenate nested lists of arrays, from the innermost lists outwards."""
    depth = _depth(arrays)
    rank = max(depth, *[a.ndim for a in _leaves(arrays)], 0)
    return TracedArray(value_of(_block(arrays, depth, rank)))


def _leaves(arrays: Any) -> list[Array]:
    return [a for part in arrays for a in _leaves(part)] if isinstance(arrays, list) else [as_strong(arrays)]


def _depth(arrays: Any, where: str = "arrays") -> int:
    if isinstance(arrays, tuple):
        raise TypeError(f"{where} is a tuple. Only lists can be used to arrange blocks")
    if not isinstance(arrays, list):
        return 0
    if not arrays:
        raise ValueError(f"List at {where} cannot be empty")
    depths = [_depth(part, f"{where}[{k}]") for k, part in enumerate(arrays)]
    if len(set(depths)) != 1:
        raise ValueError(f"List depths are mismatched: {where} holds lists of depths {depths}")
    return 1 + depths[0]


def _block(arrays: Any, depth: int, rank: int) -> Array:
    if not isinstance(arrays, list):
        array = as_strong(arrays)
        return reshape_row_major(array, (*[1] * (rank - array.ndim), *array.shape))
    return concatenate([_block(part, depth - 1, rank) for part in arrays], -depth)


# -- splitting


@implements(np.array_split)
def array_split(ary: Any, indices_or_sections: Any, axis: int = 0) -> list[Array]:
    """Split into nearly equal parts, or at indices."""
    array = as_strong(ary)
    dimension = normalize_axis_index(axis, array.ndim)
    n = array.shape[dimension]
    if hasattr(indices_or_sections, "__len__") and np.ndim(indices_or_sections):
        if is_traced(indices_or_sections):
            return hooks.sized_function(np.array_split, (array, indices_or_sections, axis), {})  # type: ignore[no-any-return]
        boundaries = [0, *[slice(None, k).indices(n)[1] for k in indices_or_sections], n]
        return [slice_view(array, dimension, a, max(a, b)) for a, b in pairwise(boundaries)]
    count = int(indices_or_sections)
    if count <= 0:
        raise ValueError("number sections must be larger than 0.")
    boundaries_ = [0, *np.cumsum([n // count + (k < n % count) for k in range(count)]).tolist()]
    return [slice_view(array, dimension, a, b) for a, b in pairwise(boundaries_)]


@implements(np.split)
def split(ary: Any, indices_or_sections: Any, axis: int = 0) -> list[Array]:
    """Split into equal parts, or at indices."""
    array = as_strong(ary)
    if not hasattr(indices_or_sections, "__len__"):
        n = array.shape[normalize_axis_index(axis, array.ndim)]
        if n % int(indices_or_sections):
            raise ValueError("array split does not result in an equal division")
    return array_split(array, indices_or_sections, axis)


@implements(np.hsplit)
def hsplit(ary: Any, indices_or_sections: Any) -> list[Array]:
    """Split horizontally."""
    array = as_strong(ary)
    if array.ndim == 0:
        raise ValueError("hsplit only works on arrays of 1 or more dimensions")
    return split(array, indices_or_sections, int(array.ndim > 1))


@implements(np.vsplit)
def vsplit(ary: Any, indices_or_sections: Any) -> list[Array]:
    """Split vertically."""
    array = as_strong(ary)
    if array.ndim < 2:
        raise ValueError("vsplit only works on arrays of 2 or more dimensions")
    return split(array, indices_or_sections, 0)


@implements(np.dsplit)
def dsplit(ary: Any, indices_or_sections: Any) -> list[Array]:
    """Split along the third dimension."""
    array = as_strong(ary)
    if array.ndim < 3:
        raise ValueError("dsplit only works on arrays of 3 or more dimensions")
    return split(array, indices_or_sections, 2)


@implements(np.unstack)
def unstack(x: Any, /, *, axis: int = 0) -> tuple[Array, ...]:
    """Split along a dimension into arrays without it."""
    array = as_strong(x)
    if array.ndim == 0:
        raise ValueError("Input array must be at least 1-d.")
    return tuple(moveaxis(array, axis, 0))


# -- repetition, insertion, deletion


@implements(np.tile)
def tile(A: Any, reps: Any) -> Array:  # noqa: N803 - NumPy's name
    """Repeat an array as a whole."""
    if is_traced(reps) or (isinstance(reps, (tuple, list)) and any(map(is_traced, reps))):
        repeated: Array = hooks.sized_function(np.tile, (A if isinstance(A, SizedArray) else as_strong(A), reps), {})
        return repeated
    array = as_strong(A)
    known = np.atleast_1d(reps)
    counts = (1,) * len(known) if all(r == 1 for r in known) else tuple(index(r) for r in known)
    if any(c < 0 for c in counts):
        raise ValueError("negative dimensions are not allowed")
    rank = max(array.ndim, len(counts))
    sizes = (*[1] * (rank - array.ndim), *array.shape)
    counts = (*[1] * (rank - len(counts)), *counts)
    interleaved = tuple(n for pair in zip(counts, sizes, strict=True) for n in pair)
    result = xla.broadcast_in_dim(xla.reshape(value_of(array), sizes), interleaved, tuple(range(1, 2 * rank, 2)))
    return TracedArray(xla.reshape(result, tuple(c * n for c, n in zip(counts, sizes, strict=True))))


@implements(np.resize)
def resize(a: Any, new_shape: Any) -> Array:
    """Change the shape; elements repeat if they are too few, zeros if there are none."""
    if is_traced(new_shape):
        resized: Array = hooks.sized_function(np.resize, (a, new_shape), {})
        return resized
    array = as_strong(a)
    sizes = tuple(new_shape) if isinstance(new_shape, (tuple, list)) else (int(new_shape),)
    if any(n < 0 for n in sizes):
        raise ValueError("all elements of `new_shape` must be non-negative")
    count = prod(sizes)
    if not array.size or not count:
        return concatenate([as_strong(np.zeros(sizes, array.dtype))])
    flat = value_of(tile(flat_copy(array), -(-count // array.size)))
    return TracedArray(xla.reshape(xla.slice_in_dim(flat, 0, count), sizes))


def require_known(value: Any, name: str, description: str) -> np.ndarray[Any, Any]:
    """Return numbers that determine the shape of a result.

    Raises
    ------
    TraceError
        The numbers are traced; the arguments that determine them become static.
    """
    if is_traced(value):
        raise TraceError(
            f"{name}: the {description} are traced, but the size of the result depends on them",
            where=_trace.user_line(), hint="pass them as a static argument (static= of cyxla.jit)",
            needed=needed_numbers(value),
        )  # fmt: skip
    return np.asarray(value)


@implements(np.append)
def append(arr: Any, values: Any, axis: int | None = None) -> Array:
    """Append values."""
    if axis is None:
        return concatenate([flat_copy(arr), flat_copy(values)], 0)
    return concatenate([arr, values], axis)


def flatten_if_no_axis(arr: Any, axis: int | None) -> tuple[Array, int]:
    """Return an array and a dimension; flattened for None."""
    array = as_strong(arr)
    if axis is None:
        return flat_copy(array), 0
    return array, normalize_axis_index(axis, array.ndim)


@implements(np.insert, note="indices must be known while tracing")
def insert(arr: Any, obj: Any, values: Any, axis: int | None = None) -> Array:
    """Insert values before indices."""
    array, dimension = flatten_if_no_axis(arr, axis)
    n = array.shape[dimension]
    positions = normalize_positions(obj, n, "insert")
    inserted = TracedArray(convert_for_assignment(values, array))
    inserted = reshape_row_major(inserted, (*[1] * (array.ndim - inserted.ndim), *inserted.shape))
    if positions.ndim == 0:  # NumPy inserts along the first dimension of the values for a scalar index
        inserted = moveaxis(inserted, 0, dimension)
    is_inserted = np.insert(
        np.zeros(n, bool), positions, np.ones(inserted.shape[dimension], bool) if positions.size == 1 else True
    )
    count = int(is_inserted.sum())
    order = np.insert(np.arange(n), positions, n + np.arange(count))
    inserted_shape = (*array.shape[:dimension], count, *array.shape[dimension + 1 :])
    combined = xla.concatenate(
        [value_of(array), broadcast_op(_check_broadcast(inserted, inserted_shape), inserted_shape)], dimension
    )
    return TracedArray(take_indices(combined, order, dimension))


def normalize_positions(value: Any, size: int, name: str) -> Any:
    """Normalise indices along a dimension."""
    if isinstance(value, slice):
        return np.arange(size)[value]
    if isinstance(value, TracedArray) and value.dtype.kind not in "biu":
        raise IndexError("arrays used as indices must be of integer (or boolean) type")
    positions = require_known(value, name, "indices")
    if positions.dtype.kind == "b" and positions.ndim == 1 and positions.size == size:
        return np.flatnonzero(positions)
    return positions if positions.size else positions.astype(np.intp)


def _check_broadcast(array: Array, shape: tuple[int, ...]) -> XlaOp:
    if np.broadcast_shapes(array.shape, shape) != shape:
        raise ValueError(f"could not broadcast input array from shape {array.shape} into shape {shape}")
    return value_of(array)


@implements(np.roll)
def roll(a: Any, shift: Any, axis: Any = None) -> Array:
    """Rotate elements along dimensions."""
    array = as_strong(a)
    if axis is None:
        flat = roll(flat_copy(array), shift, 0)
        return TracedArray(xla.reshape(value_of(flat), array.shape))
    axes = normalize_axis_tuple(axis, array.ndim, allow_duplicate=True)
    shifts = list(shift) if isinstance(shift, (tuple, list)) or np.ndim(shift) == 1 else [shift]
    if 1 not in (len(axes), len(shifts)) and len(axes) != len(shifts):
        raise ValueError("'shift' and 'axis' should be scalars or 1D sequences")
    if not (axes and shifts):
        return TracedArray(value_of(array))
    count = max(len(axes), len(shifts))
    op = value_of(array)
    for axis_, amount in zip(list(axes) * (count // len(axes)), shifts * (count // len(shifts)), strict=True):
        op = _roll_axis(op, amount, axis_)
    return TracedArray(op)


def _roll_axis(op: XlaOp, amount: Any, axis: int) -> XlaOp:
    n = op.shape.dims[axis]
    if n == 0:
        return op
    if not isinstance(amount, TracedArray):
        first = -index(amount) % n
        return take_indices(op, np.concatenate([np.arange(first, n), np.arange(first)]), axis)
    if amount.dtype.kind not in "iub":
        raise TypeError(f"roll: shifts must be integers, not {amount.dtype}")
    start = np.remainder(-amount.astype(np.int64), n)
    starts = [value_of(start) if d == axis else xla.constant(op.builder, 0, "s64") for d in range(op.shape.rank)]
    return xla.dynamic_slice(xla.concatenate([op, op], axis), starts, op.shape.dims)
