"""Sorting and searching."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from math import prod
from operator import attrgetter, index
from typing import Any

import numpy as np

from cyxla.errors import InvalidArgumentError, ShapeError
from cyxla.numpy.control.loops import fori_loop
from cyxla.numpy.functions.total_order import comes_before, sort_indices, sort_together
from cyxla.numpy.indexing.ranges import declare_range
from cyxla.numpy.tracing.arrays.traced_array import TracedArray, as_traced, require_known, value_of
from cyxla.numpy.tracing.registry import implements
from cyxla.numpy.tracing.results.conversion import convert
from cyxla.numpy.tracing.results.promotion import result_type
from cyxla.numpy.tracing.trace import require_current, user_line
from cyxla.numpy.ufunc_methods.reduce import known_values, reduce_op, reduction_axes, single_axis
from cyxla.numpy.ufuncs.apply import broadcast_to
from cyxla.types import ElementType
from cyxla.xla.hlo.builder import XlaOp
from cyxla.xla.hlo.builder import functions as xla
from cyxla.xla.lib import values

_KINDS = ("quicksort", "heapsort", "mergesort", "stable")
_MAX_UNROLLED_KEYS = 8  # greatest number of keys of one dtype that are sorted by without a loop
_MAX_LINEAR_SEARCH = 32  # greatest size for a linear search; larger arrays use a binary search


def _elements_and_dimension(array: TracedArray, axis: Any) -> tuple[XlaOp, int]:
    """Return the elements and the dimension to sort."""
    op = value_of(array)
    if axis is None:
        return xla.reshape(op, (array.size,)), 0
    return op, single_axis(axis, array.ndim)


def _check_kind(kind: Any, order: Any, stable: Any) -> None:
    if order is not None:
        raise ValueError("Cannot specify order when the array has no fields.")
    if kind is not None and stable is not None:
        raise ValueError("`kind` and `stable` parameters can't be provided at the same time. Use only one of them.")
    if kind is not None and _check_str(kind, "sort")[:1].lower() not in tuple("qhms"):
        raise ValueError(f"sort kind must be one of {', '.join(map(repr, _KINDS))} (got {kind!r})")


def _check_str(kind: Any, name: str) -> str:
    if not isinstance(kind, (str, bytes)):
        raise TypeError(f"{name} kind must be str, not {type(kind).__name__}")
    return kind if isinstance(kind, str) else kind.decode()


@implements(np.sort)
def sort(a: Any, axis: Any = -1, kind: Any = None, order: Any = None, *, stable: Any = None) -> TracedArray:
    """Sort along an axis; all kinds are stable."""
    _check_kind(kind, order, stable)
    op, dimension = _elements_and_dimension(as_traced(a), axis)
    return TracedArray(sort_together([op], dimension)[0])


@implements(np.argsort)
def argsort(a: Any, axis: Any = -1, kind: Any = None, order: Any = None, *, stable: Any = None) -> TracedArray:
    """Return the indices that sort along an axis; all kinds are stable."""
    _check_kind(kind, order, stable)
    array = as_traced(a)
    if array.ndim == 0 and axis in (0, -1):
        axis = None  # as in NumPy
    op, dimension = _elements_and_dimension(array, axis)
    return TracedArray(sort_indices([op], dimension))


@implements(np.partition)
def partition(a: Any, kth: Any, axis: Any = -1, kind: str = "introselect", order: Any = None) -> TracedArray:
    """Partition at the k-th element by sorting."""
    op, dimension = _elements_and_dimension(as_traced(a), axis)
    _check_kth(kth, op.shape.dims[dimension] if op.shape.size else 0, kind, order)
    return TracedArray(sort_together([op], dimension)[0])


@implements(np.argpartition)
def argpartition(a: Any, kth: Any, axis: Any = -1, kind: str = "introselect", order: Any = None) -> TracedArray:
    """Return the indices that partition along an axis."""
    op, dimension = _elements_and_dimension(as_traced(a), axis)
    _check_kth(kth, op.shape.dims[dimension] if op.shape.size else 0, kind, order)
    return TracedArray(sort_indices([op], dimension))


def _check_kth(kth: Any, size: int, kind: Any, order: Any) -> None:
    if order is not None:
        raise ValueError("Cannot specify order when the array has no fields.")
    if _check_str(kind, "select") != "introselect":
        raise ValueError(f"select kind must be 'introselect' (got {kind!r})")
    for k in kth if isinstance(kth, (list, tuple)) else (kth,):
        require_known(k, "be the index of a partition")
    indices = np.asarray(kth)
    if indices.dtype.kind not in "iub":
        raise TypeError("Partition index must be integer")
    if indices.ndim > 1:
        raise ValueError("kth must be a scalar or 1-dimensional")
    for k in indices.ravel().tolist() if size else ():
        if not -size <= k < size:
            raise ValueError(f"kth(={k}) out of bounds ({size})")


@implements(np.lexsort)
def lexsort(keys: Any, axis: Any = -1) -> TracedArray:
    """Return the indices that sort by several keys, the last of which is the most significant."""
    rows = keys if isinstance(keys, TracedArray) else [as_traced(k) for k in keys]
    if not len(rows):
        raise TypeError("need sequence of keys with len > 0 in lexsort")
    if len({k.shape for k in rows}) > 1:
        raise ShapeError("all keys need to be the same shape")
    first: Any = rows[0]
    if first.ndim == 0:
        reduction_axes(index(axis), 0)
        return TracedArray(xla.constant(require_current().builder, np.int64(0)))
    return _lexsort(rows, single_axis(axis, first.ndim))


def _lexsort(keys: Any, axis: int) -> TracedArray:
    """Sort by one key after the other, the least significant first, which is faster than by all at once."""
    groups = [keys] if isinstance(keys, TracedArray) else [list(g) for _, g in groupby(keys, key=attrgetter("dtype"))]
    indices: Any = None
    for group in groups:
        if len(group) <= _MAX_UNROLLED_KEYS:
            for key in group:
                indices = _sort_by(key, indices, axis)
        else:
            indices = _sort_by_rows(
                group if isinstance(group, TracedArray) else as_traced(np.stack(group)), indices, axis
            )
    return as_traced(indices)


def _sort_by_rows(keys: Any, indices: Any, axis: int) -> Any:
    """Sort in a loop, whose length does not make the program longer."""
    if indices is None:
        indices = np.indices(keys.shape[1:])[axis]
    return fori_loop(0, len(keys), lambda k, order: _sort_by(keys[k], order, axis), as_traced(indices))


def _sort_by(key: Any, indices: Any, axis: int) -> Any:
    """Return the indices that sort by a key; those of elements with equal keys stay in order."""
    if indices is None:
        return TracedArray(sort_indices([value_of(key)], axis))
    sorted_key: Any = np.take_along_axis(key, indices, axis)
    order: Any = TracedArray(sort_indices([value_of(sorted_key)], axis))
    return np.take_along_axis(indices, order, axis)


@implements(np.sort_complex)
def sort_complex(a: Any) -> TracedArray:
    """Sort as complex numbers."""
    array = as_traced(a)
    dtype = array.dtype if array.dtype.kind == "c" else np.dtype("F" if array.dtype.char in "bhBH" else "D")
    op, dimension = _elements_and_dimension(array, -1)
    return TracedArray(convert(sort_together([op], dimension)[0], dtype))


# -- searching


@implements(np.searchsorted)
def searchsorted(a: Any, v: Any, side: str = "left", sorter: Any = None) -> TracedArray:
    """Return the indices at which elements would be inserted in a sorted array."""
    array, queries = as_traced(a), as_traced(v)
    if not isinstance(side, str):
        raise TypeError(f"search side must be str, not {type(side).__name__}")
    if side not in ("left", "right"):
        raise ValueError(f"search side must be 'left' or 'right' (got {side!r})")
    if array.ndim != 1:
        raise ShapeError(f"searchsorted needs an array of one dimension, not {array.aval}")
    op = value_of(array) if sorter is None else _apply_sorter(value_of(array), as_traced(sorter))
    common = result_type(array.dtype, queries.dtype)
    found = find_insertion_indices(convert(op, common), convert(value_of(queries), common), side == "right")
    declare_range(found, 0, array.size)
    return TracedArray(found)


def _apply_sorter(op: XlaOp, sorter: TracedArray) -> XlaOp:
    if sorter.dtype.kind not in "iu":
        raise TypeError("sorter must only contain integers")
    if sorter.shape != op.shape.dims:
        raise ShapeError("sorter.size must equal a.size")
    if not sorter.size:
        return op
    indices = convert(value_of(sorter), np.dtype(np.int64))
    size = values.scalar(indices, prod(op.shape.dims))
    low, high = xla.lt(indices, values.zeros_like(indices)), xla.ge(indices, broadcast_to(size, indices.shape.dims))
    out_of_range = reduce_op(np.logical_or, xla.or_(low, high), [0])
    require_current().fail_if(
        out_of_range, values.scalar(indices, 0), lambda number: ValueError("Sorter index out of range.")
    )
    return gather_elements(op, indices)


def gather_elements(op: XlaOp, indices: XlaOp) -> XlaOp:
    """Take elements of a vector at indices, which are clamped."""
    rank = len(indices.shape.dims)
    return xla.gather(
        op, xla.reshape(indices, (*indices.shape.dims, 1)), offset_dims=(), collapsed_slice_dims=(0,),
        start_index_map=(0,), index_vector_dim=rank, slice_sizes=(1,),
    )  # fmt: skip


def find_insertion_indices(sorted_vector: XlaOp, queries: XlaOp, after_equal: bool) -> XlaOp:
    """Count the elements of a sorted vector before (or not after) elements of its dtype, as s64."""
    (size,) = sorted_vector.shape.dims
    if size == 0 or not all(queries.shape.dims):
        return xla.broadcast(xla.constant(sorted_vector.builder, 0, ElementType.S64), queries.shape.dims)
    return (_search_linear if size <= _MAX_LINEAR_SEARCH else _search_binary)(sorted_vector, queries, after_equal)


def _precedes(element: XlaOp, queries: XlaOp, after_equal: bool) -> XlaOp:
    return xla.not_(comes_before(queries, element)) if after_equal else comes_before(element, queries)


def _search_linear(sorted_vector: XlaOp, queries: XlaOp, after_equal: bool) -> XlaOp:
    sizes, (count,) = queries.shape.dims, sorted_vector.shape.dims
    pair_shape = (*sizes, count)
    elements = xla.broadcast_in_dim(sorted_vector, pair_shape, (len(sizes),))
    precedes = _precedes(elements, xla.broadcast_in_dim(queries, pair_shape, tuple(range(len(sizes)))), after_equal)
    return reduce_op(np.add, xla.convert(precedes, ElementType.S64), [len(sizes)])


def _search_binary(sorted_vector: XlaOp, queries: XlaOp, after_equal: bool) -> XlaOp:
    (size,), sizes = sorted_vector.shape.dims, queries.shape.dims
    indices = xla.broadcast(xla.constant(sorted_vector.builder, 0, ElementType.S64), sizes)
    for step in _steps(size):
        last = xla.add(indices, values.full_like(indices, step - 1))
        element = gather_elements(sorted_vector, last)
        in_range = xla.lt(last, values.full_like(indices, size))
        precedes = xla.and_(in_range, _precedes(element, queries, after_equal))
        indices = xla.select(precedes, xla.add(indices, values.full_like(indices, step)), indices)
    return indices


def _steps(size: int) -> Sequence[int]:
    return [1 << k for k in reversed(range(size.bit_length()))]


@implements(np.digitize, note="integer edges are compared as integers, where NumPy looks at them as floats first")
def digitize(x: Any, bins: Any, right: bool = False) -> TracedArray:
    """Return the bins of elements; edges may increase or decrease."""
    array, edges = as_traced(x), as_traced(bins)
    if array.dtype.kind == "c":
        raise TypeError("x may not be complex")
    if edges.dtype.kind == "c":
        raise TypeError(f"Cannot cast array data from {edges.dtype!r} to dtype('float64') according to the rule 'safe'")
    if edges.ndim != 1:
        raise ShapeError("object of too small depth for desired array")
    known = known_values(bins)
    if edges.dtype.kind == "f" and (known is None or np.isnan(known).any()):
        _leave_if_unordered(edges)
    side = "left" if right else "right"
    increasing = searchsorted(edges, array, side)
    reversed_edges = TracedArray(xla.reverse(value_of(edges), [0]))
    decreasing = searchsorted(reversed_edges, array, side)
    if known is not None:
        return increasing if _is_increasing(known) else _count_from_end(decreasing, edges.size)
    return _select_by_direction(edges, increasing, _count_from_end(decreasing, edges.size))


def _leave_if_unordered(edges: TracedArray) -> None:
    """Let NumPy compute runs whose edges have nan elsewhere than behind increasing ones.

    NumPy then takes the edges for decreasing ones, or for ordered ones that are not, so that the results follow its
    steps of a binary search.
    """
    op, size = value_of(edges), edges.size
    if size < 2:
        return
    nan = xla.ne(op, op)
    later, earlier = xla.slice_(nan, (1,), (size,)), xla.slice_(nan, (0,), (size - 1,))
    first = xla.broadcast(xla.reshape(xla.slice_(op, (0,), (1,)), ()), (size,))
    increases = reduce_op(np.logical_or, xla.gt(op, first), [0])
    is_inside = reduce_op(np.logical_or, xla.and_(earlier, xla.not_(later)), [0])
    unordered = xla.and_(reduce_op(np.logical_or, nan, [0]), xla.or_(is_inside, xla.not_(increases)))
    text = f"NumPy takes edges with nan for decreasing ones\n  at:   {user_line()}"
    require_current().leave_if(unordered, lambda _: InvalidArgumentError(text))


def _is_increasing(bins: np.ndarray[Any, Any]) -> bool:
    """Return True if edges increase, False if they decrease; raise an error if they do neither."""
    if not (bins[1:] < bins[:-1]).any():  # nan, which sorts last, is no decrease
        return True
    if not (bins[1:] > bins[:-1]).any():
        return False
    raise _monotonic_error()


def _monotonic_error() -> Exception:
    return InvalidArgumentError("bins must be monotonically increasing or decreasing")


def _count_from_end(indices: TracedArray, size: int) -> TracedArray:
    op = value_of(indices)
    return TracedArray(xla.subtract(values.full_like(op, size), op))


def _select_by_direction(edges: TracedArray, increasing: TracedArray, decreasing: TracedArray) -> TracedArray:
    op, size = value_of(edges), max(edges.size, 1)
    later, earlier = xla.slice_(op, (min(1, edges.size),), (edges.size,)), xla.slice_(op, (0,), (size - 1,))
    is_increasing, is_decreasing = (
        xla.not_(reduce_op(np.logical_or, test(later, earlier), [0])) for test in (xla.lt, xla.gt)
    )
    zero = require_current().constant(0, np.dtype(np.int64))
    require_current().fail_if(xla.not_(xla.or_(is_increasing, is_decreasing)), zero, lambda number: _monotonic_error())
    indices = value_of(increasing)
    return TracedArray(xla.select(broadcast_to(is_increasing, indices.shape.dims), indices, value_of(decreasing)))
