"""Repetition and deletion of elements: the result may have a run-time size."""

from __future__ import annotations

from collections.abc import Sequence
from operator import index
from typing import Any

import numpy as np
from numpy.lib.array_utils import normalize_axis_tuple

from cyxla.errors import OutOfRangeError, TraceError
from cyxla.numpy.functions.joining import flatten_if_no_axis, normalize_positions, take_indices
from cyxla.numpy.functions.movement import resolve_axis
from cyxla.numpy.indexing.bounds import fail_where
from cyxla.numpy.indexing.equal_values import require_equal
from cyxla.numpy.indexing.ranges import range_of, range_within_size
from cyxla.numpy.tracing.arrays.sized_array import SizedArray, as_size, filled
from cyxla.numpy.tracing.arrays.traced_array import TracedArray, as_strong, as_traced, is_traced, value_of
from cyxla.numpy.tracing.registry import implements
from cyxla.numpy.tracing.results.conversion import convert
from cyxla.numpy.tracing.trace import require_current, user_line
from cyxla.numpy.tracing.user_program.needed_values import NeededValue, inputs_of
from cyxla.xla.hlo.builder import functions as xla

_GREATEST_BOUND = 1 << 24  # greatest bound of a size that follows from the range of counts
_COUNTS_HINT = "make the counts static; or bound them, as np.minimum(counts, 8) does: counts of bools are bounded"
_np: Any = np  # its functions dispatch to this package


# -- repetition


@implements(np.repeat, note="traced counts need a known bound, such as np.minimum(counts, 8)")
def repeat(a: Any, repeats: Any, axis: int | None = None) -> Any:
    """Repeat each element a number of times."""
    array, dimension = resolve_axis(a, axis)
    n = array.shape[dimension]
    if is_traced(repeats):
        return repeat_by_counts(array, None, repeats, dimension)
    counts = np.asarray(repeats).astype(np.intp)
    if counts.ndim > 1 or counts.size not in (1, n):
        raise ValueError(f"operands could not be broadcast together with shape ({n},) {counts.shape}")
    if n and (counts < 0).any():
        raise ValueError("repeats may not contain negative values.")
    if counts.size == 1:
        return _repeat_each(array, int(counts.reshape(-1)[0]) if n else 0, dimension)
    return TracedArray(take_indices(value_of(array), np.repeat(np.arange(n), counts), dimension))


def _repeat_each(array: TracedArray, count: int, axis: int) -> TracedArray:
    sizes = array.shape
    expanded = (*sizes[: axis + 1], count, *sizes[axis + 1 :])
    dimensions = tuple(d + (d > axis) for d in range(array.ndim))
    result = xla.broadcast_in_dim(value_of(array), expanded, dimensions)
    return TracedArray(xla.reshape(result, (*sizes[:axis], sizes[axis] * count, *sizes[axis + 1 :])))


def repeat_by_counts(data: TracedArray, size: TracedArray | None, repeats: Any, axis: int) -> SizedArray:
    """Repeat each element along an axis, of known or of run-time size, by a traced number of times."""
    n = data.shape[axis]
    counts = filled(repeats, 0) if isinstance(repeats, SizedArray) else as_traced(repeats)
    if counts.dtype.kind not in "iub" or (counts.dtype == np.uint64):
        raise TypeError(f"Cannot cast array data from {counts.dtype!r} to dtype('int64') according to the rule 'safe'")
    if counts.ndim > 1 or (counts.size not in (1, n) and not isinstance(repeats, SizedArray)):
        raise ValueError(f"operands could not be broadcast together with shape ({n},) {counts.shape}")
    op = convert(value_of(counts), np.dtype(np.int64))
    low, high = range_within_size(value_of(repeats.padded)) if isinstance(repeats, SizedArray) else range_of(op)
    if high * n > _GREATEST_BOUND:
        raise TraceError(
            "repeat: the counts are traced, and the size of the result has no bound", where=user_line(),
            hint=_COUNTS_HINT, needed=NeededValue(inputs_of(value_of(counts)), is_index=True),
        )  # fmt: skip
    if low < 0 and counts.size:
        negative = xla.lt(op, xla.broadcast(require_current().constant(0, np.dtype(np.int64)), op.shape.dims))
        fail_where(require_current(), negative, op, lambda n: ValueError("repeats may not contain negative values."))
    each: Any = _np.broadcast_to(_np.reshape(TracedArray(op), (-1,)), (n,)) if counts.size == 1 else TracedArray(op)
    if isinstance(repeats, SizedArray) or size is not None:
        each = filled(SizedArray(TracedArray(value_of(each)), {0: repeats.count if size is None else size}), 0)
    ends = _np.cumsum(each)
    bound = max(high, 0) * n
    source = _np.searchsorted(ends, np.arange(bound), side="right")
    taken = _np.take(data, source, axis=axis, mode="clip")
    total = ends[-1] if n else np.int64(0)
    return SizedArray(taken, {axis: as_size(as_traced(total), bound)})


# -- deletion


@implements(np.delete)
def delete(arr: Any, obj: Any, axis: int | None = None) -> Any:
    """Delete the elements at indices."""
    array, dimension = flatten_if_no_axis(arr, axis)
    n = array.shape[dimension]
    if not _is_traced_index(obj):
        kept = np.delete(np.arange(n), normalize_positions(obj, n, "delete"))
        return TracedArray(take_indices(value_of(array), kept, dimension))
    position = None if isinstance(obj, slice) else as_strong(obj)
    if position is not None and position.size == 1 and position.dtype.kind in "iu":
        return _without_one(array, position, dimension)
    return array[(*[slice(None)] * dimension, kept_mask(n, obj, dimension))]


def _is_traced_index(obj: Any) -> bool:
    return any(map(is_traced, (obj.start, obj.stop, obj.step))) if isinstance(obj, slice) else is_traced(obj)


def _without_one(array: TracedArray, position: Any, axis: int) -> Any:
    """Delete one element, whose index is traced."""
    n = array.shape[axis]
    where, index_op = user_line(), value_of(position.reshape(()).astype(np.int64))
    if n == 0:
        raise OutOfRangeError(f"index 0 is out of bounds for axis {axis} with size 0", where=where)
    number: Any = TracedArray(index_op)
    outside = value_of(np.logical_or(number < -n, number >= n))
    message = f"index {{}} is out of bounds for axis {axis} with size {n}"
    require_current().fail_if(outside, index_op, lambda k: OutOfRangeError(message.format(k), where=where))
    first = np.where(number < 0, number + n, number)
    remaining = np.arange(n - 1)
    return _np.take(array, remaining + (remaining >= first), axis=axis, mode="clip")


_MASK_MESSAGE = "boolean array argument obj to delete must match the axis length of {}, not {}"


def kept_mask(size: Any, obj: Any, axis: int, bound: int | None = None) -> Any:
    """Return a mask of the elements that are not deleted, of a number or a traced number of elements."""
    every: Any = TracedArray(value_of(as_traced(np.ones(size if bound is None else bound, bool))))
    mask: Any = every if bound is None else SizedArray(every, {0: size})
    positions: Any = (
        obj if isinstance(obj, (slice, SizedArray)) else as_strong(obj) if is_traced(obj) else np.asarray(obj)
    )
    kind = "i" if isinstance(positions, slice) else positions.dtype.kind
    if kind == "b" and (positions.ndim != 1 or (bound is None and positions.shape != (size,))):
        raise ValueError(
            f"boolean array argument obj to delete must be one dimensional and match the axis length of {size}"
        )
    if kind == "b" and bound is not None:
        require_equal(size, positions.shape[0], _MASK_MESSAGE, ValueError)
    if kind not in "iub":
        raise OutOfRangeError("arrays used as indices must be of integer (or boolean) type")
    mask[positions] = False
    return mask


@implements(np.trim_zeros)
def trim_zeros(filt: Any, trim: str = "fb", axis: Any = None) -> Any:
    """Trim the zeros at the ends."""
    array = filt if isinstance(filt, SizedArray) else as_strong(filt)
    trim = trim.lower()
    if trim not in {"fb", "bf", "f", "b"}:
        raise ValueError(f"unexpected character(s) in `trim`: {trim!r}")
    axes = range(array.ndim) if axis is None else normalize_axis_tuple(axis, array.ndim, argname="axis")
    if not axes:
        return filt
    return array[_trimmed(array, trim, axes)]


def _trimmed(array: Any, trim: str, axes: Sequence[int]) -> tuple[slice, ...]:
    """Return the slices that trim an array of known or of run-time size; of zeros alone nothing is left."""
    is_nonzero: Any = np.not_equal(array, 0)
    mask = filled(is_nonzero, False) if isinstance(is_nonzero, SizedArray) else is_nonzero
    any_nonzero = np.any(mask)
    slices = [slice(None)] * array.ndim
    for d in axes:
        n = mask.shape[index(d)]
        line = _np.any(mask, axis=tuple(k for k in range(mask.ndim) if k != d))
        first = np.min(np.where(line, np.arange(n), n), initial=n) if "f" in trim else 0
        end = np.max(np.where(line, np.arange(n), -1), initial=-1) + 1 if "b" in trim else array.shape[d]
        slices[d] = slice(as_traced(np.where(any_nonzero, first, 0)), as_traced(np.where(any_nonzero, end, 0)))
    return tuple(slices)


__all__ = ["delete", "kept_mask", "repeat", "repeat_by_counts", "trim_zeros"]
