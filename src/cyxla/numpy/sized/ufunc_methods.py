"""Methods of ufuncs on arrays of run-time size."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from cyxla.errors import OutOfRangeError, TraceError
from cyxla.numpy.control.loops import fori_loop
from cyxla.numpy.indexing.bounds import fail_where
from cyxla.numpy.indexing.equal_values import same_size
from cyxla.numpy.sized.access import update_at
from cyxla.numpy.sized.frames import array_of, counts_of, leave_if, padded_of, rank_of, resized, shape_of, wrapped
from cyxla.numpy.sized.reductions import axes_of, fail_if_empty, keep
from cyxla.numpy.tracing.arrays.sized_array import SizedArray, filled, raise_unsupported, valid
from cyxla.numpy.tracing.arrays.traced_array import TracedArray, as_traced, is_traced, value_of
from cyxla.numpy.tracing.trace import require_current, user_line
from cyxla.numpy.ufunc_methods.reduce import NOT_GIVEN, REDUCTIONS

_np: Any = np  # its functions dispatch to this package

_LOGICAL = (np.logical_or, np.logical_and, np.logical_xor)
_ASSOCIATIVE = (*REDUCTIONS, np.logaddexp, np.logaddexp2, np.hypot, np.gcd, np.lcm, np.fmax, np.fmin)
_MEND = "use the function on whole arrays, or a loop"


def _dtype(ufunc: np.ufunc, array: Any, dtype: Any, out: Any) -> Any:
    """Return the ``dtype=`` of a method: without one, ``out=`` takes part in it."""
    if dtype is not None or out is None or ufunc in _LOGICAL:
        return dtype
    return np.result_type(array.dtype, out.dtype)


def _single(out: Any) -> Any:
    return out[0] if isinstance(out, tuple) else out


def _to_out(ufunc: np.ufunc, result: Any, out: Any) -> Any:
    """Return a result, written to ``out=`` of the same shape if given."""
    if out is None:
        return result
    sizes, others = shape_of(out), shape_of(result)
    if len(sizes) != len(others):
        raise ValueError(f"{ufunc.__name__}: out= has rank {len(sizes)}, but the result has rank {len(others)}")
    for n, size in zip(sizes, others, strict=True):  # NumPy broadcasts some results, and not others
        if not is_traced(n) and not is_traced(size):
            if n != size:
                raise_unsupported("be written to an array of another size by out=", "use the result")
        elif not (is_traced(n) and is_traced(size) and same_size(n, size)):
            leave_if(_np.not_equal(n, size), f"{ufunc.__name__}: out= has another shape than the result")
    out[...] = result
    return out


# -- reduce and accumulate


def _reduce(
    ufunc: np.ufunc, array: Any, axis: Any = 0, dtype: Any = None, out: Any = None, keepdims: Any = False,
    initial: Any = NOT_GIVEN, where: Any = True,
) -> Any:  # fmt: skip
    row = REDUCTIONS.get(ufunc)
    is_refused = out is not None or where is not True or not isinstance(array, SizedArray)
    if is_refused or (row is None and ufunc.identity is None):
        raise_unsupported(f"be passed to np.{ufunc.__name__}.reduce with these arguments")
    axes = axes_of(array, {"axis": axis})
    options = {"dtype": dtype, "keepdims": keepdims, **({} if initial is NOT_GIVEN else {"initial": initial})}
    if row is None:
        options["where"] = valid(array, axes) if array.counts.keys() & set(axes) else True
        return keep(array, ufunc.reduce(array.padded, axis, **options), axes, keepdims)
    if (not row.allows_empty and initial is NOT_GIVEN) or initial is None:
        fail_if_empty(array, f"zero-size array to reduction operation {ufunc.__name__} which has no identity", axes)
    return keep(array, ufunc.reduce(filled(array, row.start, axes), axis, **options), axes, keepdims)


def _accumulate(ufunc: np.ufunc, array: Any, axis: Any = 0, dtype: Any = None, out: Any = None) -> Any:
    array, out = array_of(array), _single(out)
    prefixes = ufunc.accumulate(padded_of(array), axis, _dtype(ufunc, array, dtype, out))
    return _to_out(ufunc, wrapped(prefixes, counts_of(array)), out)


# -- reduceat


def _reduceat(ufunc: np.ufunc, array: Any, indices: Any, axis: Any = 0, dtype: Any = None, out: Any = None) -> Any:
    """Reduce segments between successive indices; a segment whose end is not after its start is a single element."""
    if ufunc not in _ASSOCIATIVE:
        raise_unsupported(f"be passed to np.{ufunc.__name__}.reduceat", _MEND)
    array, out = array_of(array), _single(out)
    first = resized(padded_of(array), axis, 1) if array.ndim else array
    found = ufunc.reduceat(first, [0], axis, _dtype(ufunc, array, dtype, out)).dtype  # and NumPy's errors
    axis = int(np.lib.array_utils.normalize_axis_index(axis, array.ndim))
    starts = _starts(ufunc, indices)
    size, positions = array.shape[axis], padded_of(starts)
    _fail_outside(ufunc, starts, size)
    data = filled(array, 1, (axis,)) if axis in counts_of(array) else padded_of(array)
    rows = _reduce_segments(ufunc, _np.moveaxis(data.astype(found), axis, 0), positions, _lengths(starts, size))
    counts = {d: n for d, n in counts_of(array).items() if d != axis}
    if isinstance(starts, SizedArray):
        counts[axis] = starts.counts[0]
    return _to_out(ufunc, wrapped(_np.moveaxis(rows, 0, axis), counts), out)


def _starts(ufunc: np.ufunc, indices: Any) -> Any:
    """Return the indices of a call as a vector of 64-bit integers."""
    starts = array_of(indices)
    if starts.ndim != 1:
        raise ValueError(f"the indices of {ufunc.__name__}.reduceat have {starts.ndim} dimensions, not 1")
    if isinstance(indices, (SizedArray, TracedArray, np.ndarray)) and not np.can_cast(starts.dtype, np.int64, "safe"):
        raise TypeError(f"Cannot cast array data from {starts.dtype!r} to dtype('int64') according to the rule 'safe'")
    return starts.astype(np.int64)


def _fail_outside(ufunc: np.ufunc, starts: Any, size: Any) -> None:
    """Make runs fail in which an index is out of bounds."""
    positions, trace, where = padded_of(starts), require_current(), user_line()
    if not positions.size or trace.program.bounds != "raise":
        return
    outside: Any = _np.logical_or(_np.less(positions, 0), _np.greater_equal(positions, size))
    if isinstance(starts, SizedArray):
        outside = _np.logical_and(outside, valid(starts))

    def make_error(number: int) -> OutOfRangeError:
        return OutOfRangeError(f"index {number} out-of-bounds in {ufunc.__name__}.reduceat", where=where)

    fail_where(trace, value_of(as_traced(outside)), value_of(positions), make_error)


def _lengths(starts: Any, size: Any) -> Any:
    """Return the number of elements of each segment, of which the last one ends with the array."""
    positions, count = padded_of(starts), starts.shape[0]
    numbers = np.arange(positions.shape[0])
    following = _np.take(positions, numbers + 1, mode="clip") if numbers.size else positions
    ends = _np.where(_np.equal(numbers, count - 1), size, following)
    return _np.maximum(ends - positions, 1)


def _reduce_segments(ufunc: np.ufunc, data: Any, starts: Any, lengths: Any) -> Any:
    """Reduce segments along the first dimension.

    The elements of a segment are those of blocks whose sizes are the powers of two in its length, shortest first.
    """
    bound, shape = data.shape[0], (-1, *[1] * (data.ndim - 1))
    if not bound or not starts.shape[0]:
        return as_traced(np.zeros((starts.shape[0], *data.shape[1:]), data.dtype))
    lengths, places = _np.minimum(lengths, bound), np.arange(bound)

    def add_blocks(power: Any, state: Any) -> Any:
        """Combine blocks to ones of the next size, and those of the segments that have one with what is before it."""
        blocks, positions, result = state
        half, size = _np.left_shift(1, power - 1), _np.left_shift(1, power)
        blocks = ufunc(blocks, _np.take(blocks, places + half, axis=0, mode="clip"))
        taken = _np.take(blocks, positions, axis=0, mode="clip")
        is_first = _np.equal(_np.bitwise_and(lengths, size - 1), 0).reshape(shape)
        is_part = _np.not_equal(_np.bitwise_and(lengths, size), 0)
        added = _np.where(is_first, taken, ufunc(result, taken))
        return blocks, positions + _np.where(is_part, size, 0), _np.where(is_part.reshape(shape), added, result)

    positions = as_traced(_np.clip(starts, 0, bound - 1))
    state = data, positions + _np.bitwise_and(lengths, 1), _np.take(data, positions, axis=0, mode="clip")
    return fori_loop(1, bound.bit_length(), add_blocks, state)[2]


# -- outer and at


def _outer(ufunc: np.ufunc, first: Any, second: Any, **kwargs: Any) -> Any:
    rank = second.ndim if isinstance(second, SizedArray) else np.ndim(second)
    left = first if isinstance(first, SizedArray) else np.asarray(first) if np.ndim(first) == 0 else first
    return ufunc(left[(..., *[None] * rank)], second, **kwargs)


def _at(ufunc: np.ufunc, array: Any, indices: Any, values: Any = None) -> None:
    if not isinstance(array, (SizedArray, TracedArray)):
        raise TraceError(
            f"{ufunc.__name__}.at cannot write traced values to a NumPy array", where=user_line(),
            hint="write to a traced array, such as np.zeros_like(x) or x.copy() of a traced x",
        )  # fmt: skip
    if isinstance(values, SizedArray) and _is_one_mask(indices):  # selects no element twice
        array[indices] = ufunc(array[indices], values)
    else:
        update_at(ufunc, array, indices, values)


def _is_one_mask(key: Any) -> bool:
    """Return True if the only array of an index is a mask."""
    arrays = [i for i in (key if isinstance(key, tuple) else (key,)) if not isinstance(i, slice) and rank_of(i)]
    return len(arrays) == 1 and array_of(arrays[0]).dtype.kind == "b"


METHODS: dict[str, Callable[..., Any]] = {
    "reduce": _reduce, "accumulate": _accumulate, "reduceat": _reduceat, "outer": _outer, "at": _at,
}  # fmt: skip
__all__ = ["METHODS"]
