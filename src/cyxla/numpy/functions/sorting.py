"""Sorting and searching."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from operator import index
from typing import Any

import numpy as np

from cyxla.errors import InvalidArgumentError, ShapeError
from cyxla.numpy.functions.total_order import before, sort_places, sort_together
from cyxla.numpy.tracing.conversion import convert
from cyxla.numpy.tracing.promotion import result_type
from cyxla.numpy.tracing.registry import implements
from cyxla.numpy.tracing.trace import require_current
from cyxla.numpy.tracing.traced_array import TracedArray, as_traced, value_of
from cyxla.numpy.ufunc_methods.reduce import axes_of, axis_of, known_values, reduce_op
from cyxla.numpy.ufuncs.apply import broadcast_to
from cyxla.types import ElementType
from cyxla.xla.hlo.builder import XlaOp
from cyxla.xla.hlo.builder import functions as xla
from cyxla.xla.lib import values

_KINDS = ("quicksort", "heapsort", "mergesort", "stable")
_COUNTED = 32  # greatest size for which indices are counted; larger ones use bisection


def _line(array: TracedArray, axis: Any) -> tuple[XlaOp, int]:
    """Return the elements and the dimension to sort."""
    op = value_of(array)
    if axis is None:
        return xla.reshape(op, (array.size,)), 0
    return op, axis_of(axis, array.ndim)


def _check_kind(kind: Any, order: Any, stable: Any) -> None:
    if order is not None:
        raise ValueError("Cannot specify order when the array has no fields.")
    if kind is not None and stable is not None:
        raise ValueError("`kind` and `stable` parameters can't be provided at the same time. Use only one of them.")
    if kind is not None and _text(kind, "sort")[:1].lower() not in tuple("qhms"):
        raise ValueError(f"sort kind must be one of {', '.join(map(repr, _KINDS))} (got {kind!r})")


def _text(kind: Any, name: str) -> str:
    if not isinstance(kind, (str, bytes)):
        raise TypeError(f"{name} kind must be str, not {type(kind).__name__}")
    return kind if isinstance(kind, str) else kind.decode()


@implements(np.sort)
def sort(a: Any, axis: Any = -1, kind: Any = None, order: Any = None, *, stable: Any = None) -> TracedArray:
    """Sort along an axis; all kinds are stable."""
    _check_kind(kind, order, stable)
    op, along = _line(as_traced(a), axis)
    return TracedArray(sort_together([op], along)[0])


@implements(np.argsort)
def argsort(a: Any, axis: Any = -1, kind: Any = None, order: Any = None, *, stable: Any = None) -> TracedArray:
    """Return the indices that sort along an axis; all kinds are stable."""
    _check_kind(kind, order, stable)
    array = as_traced(a)
    if array.ndim == 0 and axis in (0, -1):
        axis = None  # as in NumPy
    op, along = _line(array, axis)
    return TracedArray(sort_places([op], along))


@implements(np.partition)
def partition(a: Any, kth: Any, axis: Any = -1, kind: str = "introselect", order: Any = None) -> TracedArray:
    """Partition at the k-th element by sorting."""
    op, along = _line(as_traced(a), axis)
    _check_parts(kth, op.shape.dims[along] if op.shape.size else 0, kind, order)
    return TracedArray(sort_together([op], along)[0])


@implements(np.argpartition)
def argpartition(a: Any, kth: Any, axis: Any = -1, kind: str = "introselect", order: Any = None) -> TracedArray:
    """Return the indices that partition along an axis."""
    op, along = _line(as_traced(a), axis)
    _check_parts(kth, op.shape.dims[along] if op.shape.size else 0, kind, order)
    return TracedArray(sort_places([op], along))


def _check_parts(kth: Any, size: int, kind: Any, order: Any) -> None:
    if order is not None:
        raise ValueError("Cannot specify order when the array has no fields.")
    if _text(kind, "select") != "introselect":
        raise ValueError(f"select kind must be 'introselect' (got {kind!r})")
    places = np.asarray(kth)
    if places.dtype.kind not in "iub":
        raise TypeError("Partition index must be integer")
    if places.ndim > 1:
        raise ValueError("kth must be a scalar or 1-dimensional")
    for k in places.ravel().tolist() if size else ():
        if not -size <= k < size:
            raise ValueError(f"kth(={k}) out of bounds ({size})")


@implements(np.lexsort)
def lexsort(keys: Any, axis: Any = -1) -> TracedArray:
    """Return the indices that sort by several keys, the last of which is the most significant."""
    given = [as_traced(k) for k in keys] if not isinstance(keys, TracedArray) else list(keys)
    if not given:
        raise TypeError("need sequence of keys with len > 0 in lexsort")
    if len({k.shape for k in given}) > 1:
        raise ShapeError("all keys need to be the same shape")
    if given[0].ndim == 0:
        axes_of(index(axis), 0)
        return TracedArray(xla.constant(require_current().builder, np.int64(0)))
    return _by_one_after_the_other(given, axis_of(axis, given[0].ndim))


def _by_one_after_the_other(keys: Sequence[Any], axis: int) -> TracedArray:
    """Sort by one key after the other, the least significant first, which is faster than by all at once."""
    places: Any = TracedArray(sort_places([value_of(keys[0])], axis))
    for key in keys[1:]:
        ordered: Any = np.take_along_axis(key, places, axis)
        order: Any = TracedArray(sort_places([value_of(ordered)], axis))
        places = np.take_along_axis(places, order, axis)
    return as_traced(places)


@implements(np.sort_complex)
def sort_complex(a: Any) -> TracedArray:
    """Sort as complex numbers."""
    array = as_traced(a)
    wanted = array.dtype if array.dtype.kind == "c" else np.dtype("F" if array.dtype.char in "bhBH" else "D")
    op, along = _line(array, -1)
    return TracedArray(convert(sort_together([op], along)[0], wanted))


# -- searching


@implements(np.searchsorted)
def searchsorted(a: Any, v: Any, side: str = "left", sorter: Any = None) -> TracedArray:
    """Return the indices at which elements would be inserted in a sorted array."""
    array, sought = as_traced(a), as_traced(v)
    if not isinstance(side, str):
        raise TypeError(f"search side must be str, not {type(side).__name__}")
    if side not in ("left", "right"):
        raise ValueError(f"search side must be 'left' or 'right' (got {side!r})")
    if array.ndim != 1:
        raise ShapeError(f"searchsorted needs an array of one dimension, not {array.aval}")
    op = value_of(array) if sorter is None else _in_order(value_of(array), as_traced(sorter))
    common = result_type(array.dtype, sought.dtype)
    return TracedArray(place_in(convert(op, common), convert(value_of(sought), common), side == "right"))


def _in_order(op: XlaOp, sorter: TracedArray) -> XlaOp:
    if sorter.dtype.kind not in "iu":
        raise TypeError("sorter must only contain integers")
    if sorter.shape != op.shape.dims:
        raise ShapeError("sorter.size must equal a.size")
    if not sorter.size:
        return op
    places = convert(value_of(sorter), np.dtype(np.int64))
    size = values.scalar(places, prod(op.shape.dims))
    low, high = xla.lt(places, values.zeros_like(places)), xla.ge(places, broadcast_to(size, places.shape.dims))
    bad = reduce_op(np.logical_or, xla.or_(low, high), [0])
    require_current().fail_if(bad, values.scalar(places, 0), lambda number: ValueError("Sorter index out of range."))
    return take_each(op, places)


def take_each(op: XlaOp, places: XlaOp) -> XlaOp:
    """Take elements of a vector at indices, which are clamped."""
    rank = len(places.shape.dims)
    return xla.gather(
        op, xla.reshape(places, (*places.shape.dims, 1)), offset_dims=(), collapsed_slice_dims=(0,),
        start_index_map=(0,), index_vector_dim=rank, slice_sizes=(1,),
    )  # fmt: skip


def place_in(line: XlaOp, sought: XlaOp, behind: bool) -> XlaOp:
    """Count the elements of a sorted vector before (or not after) elements of its dtype, as s64."""
    (size,) = line.shape.dims
    if size == 0 or not all(sought.shape.dims):
        return xla.broadcast(xla.constant(line.builder, 0, ElementType.S64), sought.shape.dims)
    return (_counted if size <= _COUNTED else _halved)(line, sought, behind)


def _passed(element: XlaOp, sought: XlaOp, behind: bool) -> XlaOp:
    return xla.not_(before(sought, element)) if behind else before(element, sought)


def _counted(line: XlaOp, sought: XlaOp, behind: bool) -> XlaOp:
    sizes, (count,) = sought.shape.dims, line.shape.dims
    whole = (*sizes, count)
    elements = xla.broadcast_in_dim(line, whole, (len(sizes),))
    passed = _passed(elements, xla.broadcast_in_dim(sought, whole, tuple(range(len(sizes)))), behind)
    return reduce_op(np.add, xla.convert(passed, ElementType.S64), [len(sizes)])


def _halved(line: XlaOp, sought: XlaOp, behind: bool) -> XlaOp:
    (size,), sizes = line.shape.dims, sought.shape.dims
    place = xla.broadcast(xla.constant(line.builder, 0, ElementType.S64), sizes)
    for step in _steps(size):
        last = xla.add(place, values.full_like(place, step - 1))
        element = take_each(line, last)
        inside = xla.lt(last, values.full_like(place, size))
        passed = xla.and_(inside, _passed(element, sought, behind))
        place = xla.select(passed, xla.add(place, values.full_like(place, step)), place)
    return place


def _steps(size: int) -> Sequence[int]:
    return [1 << k for k in reversed(range(size.bit_length()))]


@implements(np.digitize, note="integer edges are compared as integers, where NumPy looks at them as floats first")
def digitize(x: Any, bins: Any, right: bool = False) -> TracedArray:
    """Return the bins of elements; edges may increase or decrease."""
    given, edges = as_traced(x), as_traced(bins)
    if given.dtype.kind == "c":
        raise TypeError("x may not be complex")
    if edges.dtype.kind == "c":
        raise TypeError(f"Cannot cast array data from {edges.dtype!r} to dtype('float64') according to the rule 'safe'")
    if edges.ndim != 1:
        raise ShapeError("object of too small depth for desired array")
    side = "left" if right else "right"
    rising = searchsorted(edges, given, side)
    turned = TracedArray(xla.reverse(value_of(edges), [0]))
    falling = searchsorted(turned, given, side)
    known = known_values(bins)
    if known is not None:
        return rising if _direction(known) else _from_the_end(falling, edges.size)
    return _by_direction(edges, rising, _from_the_end(falling, edges.size))


def _direction(bins: np.ndarray[Any, Any]) -> bool:
    """Return True if edges increase, False if they decrease; raise an error if they do neither."""
    if not (bins[1:] < bins[:-1]).any():  # nan, which sorts last, is no decrease
        return True
    if not (bins[1:] > bins[:-1]).any():
        return False
    raise _not_monotonic()


def _not_monotonic() -> Exception:
    return InvalidArgumentError("bins must be monotonically increasing or decreasing")


def _from_the_end(places: TracedArray, size: int) -> TracedArray:
    op = value_of(places)
    return TracedArray(xla.subtract(values.full_like(op, size), op))


def _by_direction(edges: TracedArray, rising: TracedArray, falling: TracedArray) -> TracedArray:
    op, size = value_of(edges), max(edges.size, 1)
    one, other = xla.slice_(op, (min(1, edges.size),), (edges.size,)), xla.slice_(op, (0,), (size - 1,))
    up, down = (xla.not_(reduce_op(np.logical_or, test(one, other), [0])) for test in (xla.lt, xla.gt))
    zero = require_current().constant(0, np.dtype(np.int64))
    require_current().fail_if(xla.not_(xla.or_(up, down)), zero, lambda number: _not_monotonic())
    places = value_of(rising)
    return TracedArray(xla.select(broadcast_to(up, places.shape.dims), places, value_of(falling)))
