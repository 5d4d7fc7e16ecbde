"""Parsing of index expressions: each item becomes one of five kinds of entries."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from cyxla.errors import OutOfRangeError, TraceError
from cyxla.numpy.indexing.bounds import check_indices, check_slice, lies_within, require_empty
from cyxla.numpy.indexing.ranges import difference
from cyxla.numpy.tracing import trace as _trace
from cyxla.numpy.tracing.arrays.known_array import values_of
from cyxla.numpy.tracing.arrays.traced_array import TracedArray, as_traced, value_of
from cyxla.numpy.tracing.trace import require_current
from cyxla.numpy.tracing.user_program.doubts import refuse_float
from cyxla.records import dataclass
from cyxla.xla.hlo.builder import XlaOp
from cyxla.xla.hlo.builder import functions as xla

IntArray = np.ndarray[Any, np.dtype[np.int64]]
_KINDS_MESSAGE = (
    "only integers, slices (`:`), ellipsis (`...`), numpy.newaxis (`None`) and integer or boolean arrays are valid "
    "indices"
)
_UNCHECKED = "unseen"  # mode of an index that selects nothing, whose values are not checked
_LENGTH_HINT = "x[i:i + 4] has a known length; np.where(np.arange(len(x)) < n, x, 0) keeps the length of x"


class RunTimeSizeError(TraceError):
    """The shape of an index's result is known at run time only; it is computed by `cyxla.numpy.sized`."""


@dataclass(frozen=True)
class SliceEntry:
    """Range of an axis: `size` elements, every `step`-th from `start` on.

    The step may be negative. A traced start is that of the lowest element, also of a reversed range.
    """

    start: int | XlaOp
    size: int
    step: int = 1

    @property
    def span(self) -> int:
        """Distance from the first to the last element, inclusive."""
        return (self.size - 1) * abs(self.step) + 1 if self.size else 0


@dataclass(frozen=True)
class IntegerEntry:
    """Integer index, which drops the axis."""

    index: int | XlaOp


@dataclass(frozen=True)
class NewAxisEntry:
    """New axis of size 1."""


@dataclass(frozen=True)
class ArrayEntry:
    """Index array of an axis; `axis` is None for a lone bool."""

    indices: IntArray | XlaOp
    axis: int | None

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of the index array."""
        return self.indices.shape if isinstance(self.indices, np.ndarray) else self.indices.shape.dims


@dataclass(frozen=True)
class MaskEntry:
    """Traced mask over one or more axes."""

    where: XlaOp


Entry = SliceEntry | IntegerEntry | NewAxisEntry | ArrayEntry | MaskEntry


@dataclass(frozen=True)
class Selection:
    """Parsed index expression.

    Attributes
    ----------
    entries : list of Entry
        Entries in order; those that take axes take all of them from the left.
    separated : bool
        Whether slices or new axes separate the arrays and integers.
    copies : bool
        Whether the result is a copy although it could be a view.
    scalar : bool
        Whether integers alone select one element.
    masked : bool
        Whether the expression is a mask over all axes.
    basic : bool
        Whether neither arrays nor masks take part.
    """

    entries: list[Entry]
    separated: bool = False
    copies: bool = False
    scalar: bool = False
    masked: bool = False
    basic: bool = True

    @property
    def advanced(self) -> bool:
        """True if index arrays or masks take part."""
        return any(isinstance(e, (ArrayEntry, MaskEntry)) for e in self.entries)


def parse(key: Any, sizes: Sequence[int], mode: str | None = None) -> Selection:
    """Parse an index expression.

    Parameters
    ----------
    key : object
        Index expression.
    sizes : sequence of int
        Dimension sizes of the array.
    mode : str, optional
        Mode of traced indices out of range; by default that of the program.

    Raises
    ------
    IndexError
        The expression is invalid; the error is NumPy's.
    RunTimeSizeError
        The shape of the result depends on traced values.
    """
    items = [convert_item(item) for item in (key if isinstance(key, tuple) else (key,))]
    used = sum(map(_axes_used, items))
    ellipses = sum(item is Ellipsis for item in items)
    if ellipses > 1:
        raise _error("an index can only have a single ellipsis ('...')")
    if used > len(sizes):
        raise _error(f"too many indices for array: array is {len(sizes)}-dimensional, but {used} were indexed")
    if not ellipses:
        items.append(Ellipsis)
    if any(_is_empty_index(item) for item in items):
        mode = _UNCHECKED
    entries: list[Entry] = []
    is_array_item: list[bool] = []  # for each item, whether it is an array
    axis = 0
    for item in items:
        item_entries = _entries(item, sizes, axis, len(sizes) - used, mode)
        entries += item_entries
        is_array_item += [not isinstance(item, slice) and item is not None and item is not Ellipsis]
        axis += len(sizes) - used if item is Ellipsis else _axes_used(item)
    scalar = not ellipses and all(isinstance(e, IntegerEntry) for e in entries)
    copies = scalar or any(isinstance(i, np.ndarray) and i.ndim == 0 for i in items)
    masked = len(items) == 2 and not ellipses and is_mask(items[0]) and used == len(sizes)
    basic = not any(isinstance(e, (ArrayEntry, MaskEntry)) for e in entries)
    return _simplify(Selection(entries, _is_separated(is_array_item), copies, scalar, masked, basic))


def _error(message: str) -> OutOfRangeError:
    return OutOfRangeError(message, where=_trace.user_line())


def _is_separated(blocks: Sequence[bool]) -> bool:
    """Return True if the true elements are not contiguous."""
    text = "".join("a" if b else "-" for b in blocks).strip("-")
    return "-" in text


# ---------------------------------------------------------------------------------------------------- items
def convert_item(item: Any) -> Any:
    """Convert an item to a slice, None, an ellipsis, an int, or a NumPy or traced array."""
    if item is None or item is Ellipsis or isinstance(item, slice):
        return item
    if isinstance(item, (bool, np.bool_)):
        return np.asarray(item)
    if isinstance(item, TracedArray):
        return _check_index_type(item if item.known is None else item.known)
    if isinstance(item, np.ndarray):
        return _check_index_type(item)
    try:
        return operator.index(item)
    except TypeError:
        return _convert_list(item)


def _check_index_type(array: Any) -> Any:
    """Check the dtype of an index array; NumPy reads uint64 as int64, so that 2^64 - 1 is the last element."""
    if array.dtype.kind not in "iub":
        if isinstance(array, TracedArray):
            refuse_float(array, "an index")
        raise _error("arrays used as indices must be of integer (or boolean) type")
    return array.astype(np.int64) if array.dtype == np.uint64 and array.ndim else array


def has_run_time_size(item: Any) -> bool:
    """Return True for a range of traced bounds, and for a list whose length is known at run time only."""
    return hasattr(item, "as_index_array") and getattr(item, "is_sized", True)


def _convert_list(item: Any) -> Any:
    if has_run_time_size(item):
        raise RunTimeSizeError("an index is a range or a list of run-time length", where=_trace.user_line())
    if isinstance(item, (str, bytes)) or not (isinstance(item, Sequence) or hasattr(item, "__array__")):
        raise _error(_KINDS_MESSAGE)
    try:
        array = np.asarray(item)
    except TraceError:
        array = as_traced(item)  # type: ignore[assignment]
    if isinstance(array, np.ndarray) and array.size == 0:
        return array.astype(np.int64)
    if array.dtype.kind not in "iub":
        raise _error(_KINDS_MESSAGE)
    return array


def _axes_used(item: Any) -> int:
    if item is None or item is Ellipsis:
        return 0
    return item.ndim if is_mask(item) else 1


def is_mask(item: Any) -> bool:
    """Return True if an item is an array of bools."""
    return isinstance(item, (np.ndarray, TracedArray)) and item.dtype.kind == "b"


def _is_empty_index(item: Any) -> bool:
    """Return True if an item selects nothing, so that NumPy ignores the values of index arrays."""
    if isinstance(item, TracedArray):
        return item.dtype.kind != "b" and item.size == 0
    return isinstance(item, np.ndarray) and (not item.any() if item.dtype.kind == "b" else item.size == 0)


def _entries(item: Any, sizes: Sequence[int], axis: int, ellipsis_rank: int, mode: str | None) -> list[Entry]:
    if item is None:
        return [NewAxisEntry()]
    if item is Ellipsis:
        return [SliceEntry(0, n) for n in sizes[axis : axis + ellipsis_rank]]
    if isinstance(item, slice):
        return [_slice_entry(item, sizes[axis], axis, mode)]
    if is_mask(item) and not item.size:
        item = np.zeros(item.shape, bool)
    if isinstance(item, TracedArray):
        return [_traced_entry(item, sizes, axis, mode)]
    if isinstance(item, np.ndarray):
        return _array_entries(item, sizes, axis, mode)
    return [IntegerEntry(_normalise_index(item, sizes[axis], axis, mode))]


def _normalise_index(index: int, size: int, axis: int, mode: str | None) -> int:
    if mode == "clip" and size:
        return min(max(index, 0), size - 1)
    if -size <= index < size:
        return index % size
    if mode in _STATIC_MODES and size:
        return int(_STATIC_MODES[mode](np.asarray(index), size))
    raise _error(f"index {index} is out of bounds for axis {axis} with size {size}")


def _array_entries(
    array: np.ndarray[Any, Any], sizes: Sequence[int], axis: int, mode: str | None = None
) -> list[Entry]:
    if array.dtype.kind != "b":
        if array.ndim == 0:
            return [IntegerEntry(_normalise_index(int(array), sizes[axis], axis, mode))]
        return [ArrayEntry(normalise_indices(array, sizes[axis], axis, mode), axis)]
    _match_mask(array.shape, sizes, axis)
    if array.ndim == 0:
        return [ArrayEntry(np.zeros(int(array), np.int64), None)]
    return [ArrayEntry(where, axis + k) for k, where in enumerate(array.nonzero())]


def normalise_indices(array: np.ndarray[Any, Any], size: int, axis: int, mode: str | None = None) -> IntArray:
    """Normalise known indices.

    Raises
    ------
    IndexError
        An index is out of range, and the mode does not correct it.
    """
    if mode == _UNCHECKED:
        return np.zeros(array.shape, np.int64)
    if mode == "clip" and size:
        return np.asarray(np.clip(array, 0, size - 1), np.int64)
    out_of_bounds = array >= size if array.dtype.kind == "u" else (array < -size) | (array >= size)
    if out_of_bounds.any() and (size == 0 or mode not in _STATIC_MODES):
        raise _error(f"index {array[out_of_bounds][0]} is out of bounds for axis {axis} with size {size}")
    indices = np.where(array < 0, array.astype(np.int64) + size, array.astype(np.int64))
    return _STATIC_MODES[mode](indices, size) if out_of_bounds.any() else indices


_STATIC_MODES: dict[str | None, Callable[[Any, int], Any]] = {
    "clamp": lambda indices, size: np.clip(indices, 0, size - 1), "wrap": np.remainder,
}  # fmt: skip


def _zeros(shape: Sequence[int]) -> XlaOp:
    return xla.broadcast(require_current().constant(0, np.dtype(np.int64)), shape)


def _match_mask(shape: Sequence[int], sizes: Sequence[int], axis: int) -> None:
    for k, n in enumerate(shape):
        if n and n != sizes[axis + k]:  # an empty mask fits any axis
            raise _error(
                f"boolean index did not match indexed array along axis {axis + k}; size of axis is {sizes[axis + k]} "
                f"but size of corresponding boolean axis is {n}"
            )


def _traced_entry(array: TracedArray, sizes: Sequence[int], axis: int, mode: str | None) -> Entry:
    op = value_of(array)
    if array.dtype.kind == "b":
        _match_mask(array.shape, sizes, axis)
        return MaskEntry(op)
    if array.ndim == 0:
        return IntegerEntry(check_indices(op, sizes[axis], axis, None if mode == _UNCHECKED else mode))
    return ArrayEntry(_zeros(array.shape) if mode == _UNCHECKED else check_indices(op, sizes[axis], axis, mode), axis)


# ------------------------------------------------------------------------------------------------------------ slices
def _slice_entry(key: slice, size: int, axis: int, mode: str | None) -> SliceEntry:
    key = slice(*(_bound(b) for b in (key.start, key.stop, key.step)))
    if any(isinstance(bound, TracedArray) for bound in (key.start, key.stop, key.step)):
        return _dynamic_slice(key, size, axis, mode)
    start, stop, step = key.indices(size)
    count = len(range(start, stop, step))
    return SliceEntry(start if count else 0, count, step if count > 1 else 1)


def _bound(value: Any) -> Any:
    known = values_of(value) if isinstance(value, TracedArray) else None
    return value if known is None else known


def _dynamic_slice(key: slice, size: int, axis: int, mode: str | None) -> SliceEntry:
    """Return the range of a slice with traced bounds of known distance."""
    step = 1 if key.step is None else key.step
    if isinstance(step, TracedArray) or key.start is None or key.stop is None:
        raise _unknown_length()
    bounds = [as_traced(b) for b in (key.start, key.stop)]
    for bound in bounds:
        if bound.ndim or bound.dtype.kind not in "iu":
            refuse_float(bound, "a bound of a slice")
            raise TypeError("slice indices must be integers or None or have an __index__ method")
    start, stop = (value_of(b) for b in bounds)
    length = difference(start, stop)
    if length is None:
        raise _unknown_length()
    count = len(range(0, length, operator.index(step)))
    entry = SliceEntry(0, count, step if count > 1 else 1)
    if require_current().program.cuts_slices and mode != _UNCHECKED and not lies_within(start, length, step, size):
        raise _unknown_length()
    if not count:
        require_empty(start, length, step)
        return entry
    return SliceEntry(check_slice(start, length, step, size, axis, mode), count, entry.step)


def _unknown_length() -> RunTimeSizeError:
    return RunTimeSizeError(
        "the length of a slice depends on traced values", where=_trace.user_line(), hint=_LENGTH_HINT
    )


# ------------------------------------------------------------------------------------------------------- simplification
def _simplify(selection: Selection) -> Selection:
    """Replace a single array of evenly spaced indices by a range, which is copied."""
    arrays = [e for e in selection.entries if isinstance(e, (ArrayEntry, MaskEntry))]
    if len(arrays) != 1 or any(isinstance(e, IntegerEntry) for e in selection.entries):
        return selection
    (array_entry,) = arrays
    if not isinstance(array_entry, ArrayEntry) or array_entry.axis is None:
        return selection
    entry = _as_slice(array_entry.indices) if isinstance(array_entry.indices, np.ndarray) else None
    if entry is None:
        return selection
    entries = [entry if e is array_entry else e for e in selection.entries]
    return replace(selection, entries=entries, separated=False, copies=True)


def _as_slice(indices: IntArray) -> SliceEntry | None:
    if indices.ndim != 1:
        return None
    if indices.size < 2:
        return SliceEntry(int(indices[0]) if indices.size else 0, indices.size)
    step = int(indices[1] - indices[0])
    evenly_spaced = step != 0 and bool((np.diff(indices) == step).all())
    return SliceEntry(int(indices[0]), indices.size, step) if evenly_spaced else None
