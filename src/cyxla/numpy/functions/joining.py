"""Concatenation, splitting and repetition."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from math import prod
from operator import index
from typing import Any

import numpy as np
from numpy.lib.array_utils import normalize_axis_index, normalize_axis_tuple

from cyxla.errors import ShapeError, UnimplementedError
from cyxla.numpy.functions.movement import (
    along,
    array_of,
    atleast_1d,
    atleast_2d,
    atleast_3d,
    moveaxis,
    ravel,
    resized,
)
from cyxla.numpy.indexing.access import as_type_of
from cyxla.numpy.tracing import trace as _trace
from cyxla.numpy.tracing.conversion import convert, require_native
from cyxla.numpy.tracing.promotion import result_type
from cyxla.numpy.tracing.registry import ALTERNATIVES, implements
from cyxla.numpy.tracing.traced_array import TracedArray, as_traced, is_traced, value_of
from cyxla.numpy.ufuncs.apply import broadcast_to as repeated
from cyxla.xla.hlo.builder import XlaOp
from cyxla.xla.hlo.builder import functions as xla

Array = TracedArray
_FEW = 8  # largest number of runs of elements that are sliced rather than gathered

ALTERNATIVES["trim_zeros"] = "how many zeros there are is known in a run only: call it on the result"


# -- parts along one dimension


def part_along(a: Array, axis: int, start: int, stop: int) -> Array:
    """Return a view of a range of one dimension."""
    places = [start if d == axis else 0 for d in range(a.ndim)]

    def write(base: XlaOp, new: XlaOp) -> XlaOp:
        return xla.dynamic_update_slice(base, new, [xla.constant(base.builder, p, "s64") for p in places])

    return a.make_view(
        lambda v: xla.slice_in_dim(v, start, stop, 1, axis), write,
        a.memory[(*[slice(None)] * axis, slice(start, stop))],
    )  # fmt: skip


def runs_of(places: np.ndarray[Any, Any]) -> list[tuple[int, int, int]]:
    """Split indices into runs (first, step, count) of step 1 or -1; stop after one more than `_FEW`."""
    runs: list[tuple[int, int, int]] = []
    steps = np.diff(places)
    k = 0
    while k < places.size:
        step = int(steps[k]) if k < steps.size and abs(steps[k]) == 1 else 1
        count = 1
        while k + count < places.size and steps[k + count - 1] == step:
            count += 1
        runs.append((int(places[k]), step, count))
        k += count
        if len(runs) > _FEW:
            break
    return runs


def picked(op: XlaOp, places: np.ndarray[Any, Any], axis: int) -> XlaOp:
    """Take elements of one dimension at known indices, all in range."""
    if places.size == 0:
        return xla.slice_in_dim(op, 0, 0, 1, axis)
    runs = runs_of(places)
    if len(runs) > _FEW:
        return _gathered(op, places, axis)
    parts = [_run(op, axis, *run) for run in runs]
    return parts[0] if len(parts) == 1 else xla.concatenate(parts, axis)


def _run(op: XlaOp, axis: int, first: int, step: int, count: int) -> XlaOp:
    if step == 1:
        return op if count == op.shape.dims[axis] else xla.slice_in_dim(op, first, first + count, 1, axis)
    return xla.reverse(xla.slice_in_dim(op, first - count + 1, first + 1, 1, axis), (axis,))


def _gathered(op: XlaOp, places: np.ndarray[Any, Any], axis: int) -> XlaOp:
    rank = op.shape.rank
    sizes = tuple(1 if d == axis else n for d, n in enumerate(op.shape.dims))
    return xla.gather(
        op, xla.constant(op.builder, places.astype(np.int64)[:, None]),
        offset_dims=tuple(d for d in range(rank) if d != axis), collapsed_slice_dims=(axis,),
        start_index_map=(axis,), index_vector_dim=1, slice_sizes=sizes,
    )  # fmt: skip


# -- concatenation


def to_out(made: Array, out: Any, casting: str, name: str) -> Array:
    """Return a result, or write it to ``out=`` if given.

    Raises
    ------
    ValueError
        The shape of ``out=`` differs.
    """
    if out is None:
        return made
    if out.shape != made.shape:
        raise ShapeError("Output array is the wrong shape")
    np.copyto(out, made, casting=casting)  # type: ignore[arg-type]
    return out  # type: ignore[no-any-return]


_RULES = ("no", "equiv", "safe", "same_kind", "unsafe")


def _common(arrays: Sequence[Array], out: Any, dtype: Any, casting: str) -> list[Array]:
    """Convert arrays to the dtype of their concatenation."""
    if out is not None and dtype is not None:
        raise TypeError("concatenate() only takes `out` or `dtype` as an argument, but both were provided.")
    if casting not in _RULES:
        raise ValueError(f"casting must be one of {', '.join(map(repr, _RULES))} (got {casting!r})")
    wanted = np.dtype(dtype) if dtype is not None else np.result_type(*[a.dtype for a in arrays])
    if dtype is not None:
        require_native(wanted, "the result")
        for a in arrays:
            if not np.can_cast(a.dtype, wanted, casting):  # type: ignore[arg-type]
                raise TypeError(
                    f"Cannot cast array data from {a.dtype!r} to {wanted!r} according to the rule '{casting}'"
                )
    return [as_traced(a, wanted) for a in arrays]


def items(arrays: Any, name: str) -> list[Any]:
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
    given = [as_traced(a) for a in items(arrays, "concatenate")]
    if not given:
        raise ValueError("need at least one array to concatenate")
    if axis is None:
        given, axis = _in_lines(given, out, dtype), 0
    given = [array_of(a) for a in given]
    if any(a.ndim == 0 for a in given):
        raise ValueError("zero-dimensional arrays cannot be concatenated")
    along = normalize_axis_index(axis, given[0].ndim)
    for k, a in enumerate(given):
        _require_fits(a, k, given[0], along)
    ops = [value_of(a) for a in _common(given, out, dtype, casting)]
    made = TracedArray(xla.concatenate(ops, along) if len(ops) > 1 else ops[0])
    return to_out(made, out, casting, "concatenate")


def _in_lines(arrays: Sequence[Array], out: Any, dtype: Any) -> list[Array]:
    """Flatten arrays; Python numbers among them adopt the common dtype of the others."""
    if out is None and dtype is None and any(a.weak for a in arrays):
        wanted = result_type(*[a.kind for a in arrays])
        arrays = [TracedArray(convert(value_of(a), wanted)) if a.weak else a for a in arrays]  # integers wrap around
    return [ravel(a) for a in arrays]


def _require_fits(a: Array, number: int, first: Array, along: int) -> None:
    if a.ndim != first.ndim:
        raise ValueError(
            "all the input arrays must have same number of dimensions, but the array at index 0 has "
            f"{first.ndim} dimension(s) and the array at index {number} has {a.ndim} dimension(s)"
        )
    off = [d for d in range(a.ndim) if d != along and a.shape[d] != first.shape[d]]
    if off:
        raise ValueError(
            "all the input array dimensions except for the concatenation axis must match exactly, but along dimension "
            f"{off[0]}, the array at index 0 has size {first.shape[off[0]]} and the array at index {number} has size "
            f"{a.shape[off[0]]}"
        )


@implements(np.stack)
def stack(arrays: Any, axis: int = 0, out: Any = None, *, dtype: Any = None, casting: str = "same_kind") -> Array:
    """Stack arrays of one shape along a new dimension."""
    given = [array_of(a) for a in items(arrays, "stack")]
    if not given:
        raise ValueError("need at least one array to stack")
    if len({a.shape for a in given}) != 1:
        raise ValueError("all input arrays must have the same shape")
    at = normalize_axis_index(axis, given[0].ndim + 1)
    sizes = (*given[0].shape[:at], 1, *given[0].shape[at:])
    ops = [xla.reshape(value_of(a), sizes) for a in _common(given, out, dtype, casting)]
    made = TracedArray(xla.concatenate(ops, at) if len(ops) > 1 else ops[0])
    return to_out(made, out, casting, "stack")


def _rows(arrays: Any, make: Callable[..., Any], name: str) -> list[Array]:
    made = make(*items(arrays, name))
    return list(made) if isinstance(made, tuple) else [made]


@implements(np.vstack)
def vstack(tup: Any, *, dtype: Any = None, casting: str = "same_kind") -> Array:
    """Stack arrays vertically."""
    return concatenate(_rows(tup, atleast_2d, "vstack"), 0, dtype=dtype, casting=casting)


@implements(np.hstack)
def hstack(tup: Any, *, dtype: Any = None, casting: str = "same_kind") -> Array:
    """Stack arrays horizontally."""
    arrays = _rows(tup, atleast_1d, "hstack")
    return concatenate(arrays, int(arrays[0].ndim > 1), dtype=dtype, casting=casting)


@implements(np.dstack)
def dstack(tup: Any) -> Array:
    """Stack arrays along the third dimension."""
    return concatenate(_rows(tup, atleast_3d, "dstack"), 2)


@implements(np.column_stack)
def column_stack(tup: Any) -> Array:
    """Stack vectors, and columns of matrices, as columns of a matrix."""
    arrays = [array_of(a) for a in items(tup, "column_stack")]
    return concatenate([resized(a, (a.size, 1)) if a.ndim < 2 else a for a in arrays], 1)


@implements(np.block)
def block(arrays: Any) -> Array:
    """Concatenate nested lists of arrays, from the innermost lists outwards."""
    depth = _depth(arrays)
    rank = max(depth, *[a.ndim for a in _leaves(arrays)], 0)
    return TracedArray(value_of(_block(arrays, depth, rank)))


def _leaves(arrays: Any) -> list[Array]:
    return [a for part in arrays for a in _leaves(part)] if isinstance(arrays, list) else [array_of(arrays)]


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
        array = array_of(arrays)
        return resized(array, (*[1] * (rank - array.ndim), *array.shape))
    return concatenate([_block(part, depth - 1, rank) for part in arrays], -depth)


# -- splitting


@implements(np.array_split)
def array_split(ary: Any, indices_or_sections: Any, axis: int = 0) -> list[Array]:
    """Split into nearly equal parts, or at indices."""
    array = array_of(ary)
    along = normalize_axis_index(axis, array.ndim)
    n = array.shape[along]
    if hasattr(indices_or_sections, "__len__") and np.ndim(indices_or_sections):
        marks = [0, *[slice(None, k).indices(n)[1] for k in indices_or_sections], n]
        return [part_along(array, along, a, max(a, b)) for a, b in pairwise(marks)]
    count = int(indices_or_sections)
    if count <= 0:
        raise ValueError("number sections must be larger than 0.")
    ends = [0, *np.cumsum([n // count + (k < n % count) for k in range(count)]).tolist()]
    return [part_along(array, along, a, b) for a, b in pairwise(ends)]


@implements(np.split)
def split(ary: Any, indices_or_sections: Any, axis: int = 0) -> list[Array]:
    """Split into equal parts, or at indices."""
    array = array_of(ary)
    if not hasattr(indices_or_sections, "__len__"):
        n = array.shape[normalize_axis_index(axis, array.ndim)]
        if n % int(indices_or_sections):
            raise ValueError("array split does not result in an equal division")
    return array_split(array, indices_or_sections, axis)


@implements(np.hsplit)
def hsplit(ary: Any, indices_or_sections: Any) -> list[Array]:
    """Split horizontally."""
    array = array_of(ary)
    if array.ndim == 0:
        raise ValueError("hsplit only works on arrays of 1 or more dimensions")
    return split(array, indices_or_sections, int(array.ndim > 1))


@implements(np.vsplit)
def vsplit(ary: Any, indices_or_sections: Any) -> list[Array]:
    """Split vertically."""
    array = array_of(ary)
    if array.ndim < 2:
        raise ValueError("vsplit only works on arrays of 2 or more dimensions")
    return split(array, indices_or_sections, 0)


@implements(np.dsplit)
def dsplit(ary: Any, indices_or_sections: Any) -> list[Array]:
    """Split along the third dimension."""
    array = array_of(ary)
    if array.ndim < 3:
        raise ValueError("dsplit only works on arrays of 3 or more dimensions")
    return split(array, indices_or_sections, 2)


@implements(np.unstack)
def unstack(x: Any, /, *, axis: int = 0) -> tuple[Array, ...]:
    """Split along a dimension into arrays without it."""
    array = array_of(x)
    if array.ndim == 0:
        raise ValueError("Input array must be at least 1-d.")
    return tuple(moveaxis(array, axis, 0))


# -- repetition, insertion, deletion


@implements(np.tile)
def tile(A: Any, reps: Any) -> Array:  # noqa: N803 - NumPy's name
    """Repeat an array as a whole."""
    array = array_of(A)
    counts = tuple(int(r) for r in np.atleast_1d(reps))
    if any(c < 0 for c in counts):
        raise ValueError("negative dimensions are not allowed")
    rank = max(array.ndim, len(counts))
    sizes = (*[1] * (rank - array.ndim), *array.shape)
    counts = (*[1] * (rank - len(counts)), *counts)
    wide = tuple(n for pair in zip(counts, sizes, strict=True) for n in pair)
    made = xla.broadcast_in_dim(xla.reshape(value_of(array), sizes), wide, tuple(range(1, 2 * rank, 2)))
    return TracedArray(xla.reshape(made, tuple(c * n for c, n in zip(counts, sizes, strict=True))))


@implements(np.resize)
def resize(a: Any, new_shape: Any) -> Array:
    """Change the shape; elements repeat if they are too few, zeros if there are none."""
    array = array_of(a)
    sizes = tuple(new_shape) if isinstance(new_shape, (tuple, list)) else (int(new_shape),)
    if any(n < 0 for n in sizes):
        raise ValueError("all elements of `new_shape` must be non-negative")
    wanted = prod(sizes)
    if not array.size or not wanted:
        return concatenate([array_of(np.zeros(sizes, array.dtype))])
    flat = value_of(tile(ravel(array), -(-wanted // array.size)))
    return TracedArray(xla.reshape(xla.slice_in_dim(flat, 0, wanted), sizes))


@implements(np.repeat, note="counts must be known while tracing")
def repeat(a: Any, repeats: Any, axis: int | None = None) -> Array:
    """Repeat each element a number of times."""
    array, at = along(a, axis)
    n = array.shape[at]
    counts = known(repeats, "repeat", "counts").astype(np.intp)
    if counts.ndim > 1 or counts.size not in (1, n):
        raise ValueError(f"operands could not be broadcast together with shape ({n},) {counts.shape}")
    if n and (counts < 0).any():
        raise ValueError("repeats may not contain negative values.")
    if counts.size == 1:
        return _each_repeated(array, int(counts.reshape(-1)[0]) if n else 0, at)
    return TracedArray(picked(value_of(array), np.repeat(np.arange(n), counts), at))


def _each_repeated(array: Array, count: int, axis: int) -> Array:
    sizes = array.shape
    wide = (*sizes[: axis + 1], count, *sizes[axis + 1 :])
    places = tuple(d + (d > axis) for d in range(array.ndim))
    made = xla.broadcast_in_dim(value_of(array), wide, places)
    return TracedArray(xla.reshape(made, (*sizes[:axis], sizes[axis] * count, *sizes[axis + 1 :])))


def known(value: Any, name: str, what: str) -> np.ndarray[Any, Any]:
    """Return numbers that determine the shape of a result.

    Raises
    ------
    UnimplementedError
        The numbers are traced.
    """
    if is_traced(value):
        raise UnimplementedError(
            f"{name}: the {what} are traced, and the size of the result would depend on them",
            where=_trace.user_line(), hint="mark the argument static",
        )  # fmt: skip
    return np.asarray(value)


@implements(np.append)
def append(arr: Any, values: Any, axis: int | None = None) -> Array:
    """Append values."""
    if axis is None:
        return concatenate([ravel(arr), ravel(values)], 0)
    return concatenate([arr, values], axis)


def _along(arr: Any, axis: int | None) -> tuple[Array, int]:
    array = array_of(arr)
    if axis is None:
        return ravel(array), 0
    return array, normalize_axis_index(axis, array.ndim)


@implements(np.insert, note="places must be known while tracing")
def insert(arr: Any, obj: Any, values: Any, axis: int | None = None) -> Array:
    """Insert values before indices."""
    array, at = _along(arr, axis)
    n = array.shape[at]
    places = _places(obj, n, "insert")
    new = TracedArray(as_type_of(values, array))
    new = resized(new, (*[1] * (array.ndim - new.ndim), *new.shape))
    if places.ndim == 0:  # NumPy inserts along the first dimension of the values for a scalar index
        new = moveaxis(new, 0, at)
    marks = np.insert(np.zeros(n, bool), places, np.ones(new.shape[at], bool) if places.size == 1 else True)
    count = int(marks.sum())
    order = np.insert(np.arange(n), places, n + np.arange(count))
    room = (*array.shape[:at], count, *array.shape[at + 1 :])
    both = xla.concatenate([value_of(array), repeated(_fitting(new, room), room)], at)
    return TracedArray(picked(both, order, at))


def _places(value: Any, size: int, name: str) -> Any:
    """Normalise indices along a dimension."""
    if isinstance(value, slice):
        return np.arange(size)[value]
    places = known(value, name, "places")
    if places.dtype.kind == "b" and places.ndim == 1 and places.size == size:
        return np.flatnonzero(places)
    return places if places.size else places.astype(np.intp)


def _fitting(new: Array, room: tuple[int, ...]) -> XlaOp:
    if np.broadcast_shapes(new.shape, room) != room:
        raise ValueError(f"could not broadcast input array from shape {new.shape} into shape {room}")
    return value_of(new)


@implements(np.delete, note="places must be known while tracing")
def delete(arr: Any, obj: Any, axis: int | None = None) -> Array:
    """Delete the elements at indices."""
    array, at = _along(arr, axis)
    n = array.shape[at]
    return TracedArray(picked(value_of(array), np.delete(np.arange(n), _places(obj, n, "delete")), at))


@implements(np.roll)
def roll(a: Any, shift: Any, axis: Any = None) -> Array:
    """Rotate elements along dimensions."""
    array = array_of(a)
    if axis is None:
        flat = roll(ravel(array), shift, 0)
        return TracedArray(xla.reshape(value_of(flat), array.shape))
    axes = normalize_axis_tuple(axis, array.ndim, allow_duplicate=True)
    shifts = list(shift) if isinstance(shift, (tuple, list)) or np.ndim(shift) == 1 else [shift]
    if 1 not in (len(axes), len(shifts)) and len(axes) != len(shifts):
        raise ValueError("'shift' and 'axis' should be scalars or 1D sequences")
    count = max(len(axes), len(shifts))
    op = value_of(array)
    for axis_, by in zip(list(axes) * (count // len(axes)), shifts * (count // len(shifts)), strict=True):
        op = _rolled(op, by, axis_)
    return TracedArray(op)


def _rolled(op: XlaOp, by: Any, axis: int) -> XlaOp:
    n = op.shape.dims[axis]
    if n == 0:
        return op
    if not isinstance(by, TracedArray):
        cut = -index(by) % n
        return picked(op, np.concatenate([np.arange(cut, n), np.arange(cut)]), axis)
    if by.dtype.kind not in "iub":
        raise TypeError(f"roll: shifts are integers, not {by.dtype}")
    start = np.remainder(-by.astype(np.int64), n)
    starts = [value_of(start) if d == axis else xla.constant(op.builder, 0, "s64") for d in range(op.shape.rank)]
    return xla.dynamic_slice(xla.concatenate([op, op], axis), starts, op.shape.dims)
