"""Histograms and counts."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from math import prod
from operator import index
from typing import Any

import numpy as np

from cyxla.errors import DTypeError, OutOfRangeError, ShapeError, UnimplementedError
from cyxla.numpy.functions.sorting import place_in, take_each
from cyxla.numpy.tracing.conversion import convert
from cyxla.numpy.tracing.promotion import result_type
from cyxla.numpy.tracing.registry import implements
from cyxla.numpy.tracing.trace import require_current, user_line
from cyxla.numpy.tracing.traced_array import TracedArray, as_traced, value_of
from cyxla.numpy.ufunc_methods.reduce import known_values, reduce_op
from cyxla.numpy.ufuncs.apply import broadcast_to
from cyxla.types import ElementType
from cyxla.xla.hlo.builder import XlaOp, scalar_computation
from cyxla.xla.hlo.builder import functions as xla
from cyxla.xla.lib import values

_S64 = np.dtype(np.int64)
_FINE = 1 << 20  # number of bins up to which those of 32-bit integers are distinguishable
_LARGEST = 2**63 - 1  # greatest number of elements that NumPy can index
_LISTED = 8  # largest number of edges to compare each element with


def _check_run(bad: XlaOp, error: Exception) -> None:
    """Make runs raise an error if any element is true."""
    some = reduce_op(np.logical_or, bad, range(len(bad.shape.dims)))
    require_current().fail_if(some, require_current().constant(0, _S64), lambda number: error)


# -- counting


def counts(places: XlaOp, size: int, weights: XlaOp | None = None) -> XlaOp:
    """Count the occurrences of each index below a size in a vector, as s64, or sum weights; others are ignored."""
    given = xla.broadcast(values.scalar(places, 1), places.shape.dims) if weights is None else weights
    start = xla.broadcast(values.scalar(given, 0), (size,))
    if not size or not places.shape.dims[0]:
        return start
    return xla.scatter(
        start, xla.reshape(places, (*places.shape.dims, 1)), given, scalar_computation("add", given.shape.dtype),
        update_window_dims=(), inserted_window_dims=(0,), scatter_dims_to_operand_dims=(0,), index_vector_dim=1,
    )  # fmt: skip


@implements(np.bincount, note="of a traced array minlength= must be given, and no element may be beyond it")
def bincount(x: Any, /, weights: Any = None, minlength: Any = 0) -> TracedArray:
    """Count the occurrences of each non-negative integer."""
    given = as_traced(x)
    minlength = _checked_length(minlength)
    _check_counted(given)
    summed = None if weights is None else _weights(weights, given)
    if not given.size:
        summed = None  # as in NumPy
    size = _known_length(x, given, minlength)
    places = convert(value_of(given), _S64)
    if known_values(x) is None and given.size:
        beyond = xla.ge(places, values.full_like(places, size))
        negative = xla.lt(places, values.zeros_like(places))
        _check_run(negative, ValueError("'list' argument must have no negative elements"))
        text = f"bincount: an element is beyond minlength={size}, and the length of the result must be known"
        _check_run(beyond, UnimplementedError(text, hint="give a greater minlength="))
    return TracedArray(counts(places, size, summed))


def _checked_length(minlength: Any) -> int:
    least = index(minlength)
    if least < 0:
        raise ValueError("'minlength' must not be negative")
    return least


def _check_counted(array: TracedArray) -> None:
    if array.ndim != 1:
        raise ShapeError("object of too small depth for desired array" if not array.ndim else "object too deep")
    if array.dtype.kind not in "biu":
        raise TypeError(f"Cannot cast array data from {array.dtype!r} to dtype('int64') according to the rule 'safe'")


def _weights(weights: Any, array: TracedArray) -> XlaOp:
    given = as_traced(weights)
    if given.shape != array.shape:
        raise ShapeError("The weights and list don't have the same length.")
    if given.dtype.kind not in "biuf":
        raise TypeError(f"Cannot cast array data from {given.dtype!r} to dtype('float64') according to the rule 'safe'")
    return convert(value_of(given), np.dtype(np.float64))


def _known_length(x: Any, array: TracedArray, minlength: int) -> int:
    known = known_values(x)
    if known is not None:
        if known.size and known.min() < 0:
            raise ValueError("'list' argument must have no negative elements")
        return max(minlength, int(known.max()) + 1 if known.size else 0)
    if not minlength and array.size:
        raise UnimplementedError(
            "bincount of a traced array without minlength= cannot be traced: the length of the result is not known",
            where=user_line(), hint="give minlength=, one more than the greatest element",
        )  # fmt: skip
    return minlength


# -- edges


def _bin_count(bins: Any) -> int | None:
    """Return the number of bins; None if their edges are given."""
    if isinstance(bins, str):
        raise UnimplementedError(
            f"histogram with bins={bins!r} cannot be traced: how many there are depends on values", where=user_line(),
            hint="give their number or their edges",
        )  # fmt: skip
    if _is_sequence(bins):
        return None
    try:
        count: int = bins.__index__()
    except (TypeError, AttributeError):
        raise TypeError("`bins` must be an integer, a string, or an array") from None
    if count < 1:
        raise ValueError("`bins` must be positive, when an integer")
    return count


def _edges(array: TracedArray, bins: Any, range: Any) -> TracedArray:
    """Return the edges of bins in NumPy's dtype."""
    count = _bin_count(bins)
    if count is not None:
        first, last = _outer(array, range)
        common = result_type(first.kind, last.kind, array.dtype)
        wanted = common if common.kind not in "biu" else np.result_type(common, float)
        made = as_traced(np.linspace(first, last, count + 1, endpoint=True, dtype=wanted))
        if not (range is None and array.dtype.kind in "biu" and array.itemsize <= 4 and count <= _FINE):
            _check_apart(made, range)
        return made
    edges = as_traced(bins)
    if edges.ndim != 1:
        raise ValueError("`bins` must be 1d, when an array")
    _check_rising(bins, edges, "`bins` must increase monotonically, when an array")
    return edges


def _check_apart(edges: TracedArray, range: Any) -> None:
    """Make runs raise an error if there are so many bins that neighbouring edges are equal."""
    count = edges.size - 1
    wrong = ValueError(f"Too many bins for data range. Cannot create {count} finite-sized bins.")
    if range is not None and known_values(tuple(range)) is not None:
        low, high = _known_range(*range)
        known: Any = np.linspace(low, high, count + 1, dtype=edges.dtype)
        if (known[:-1] >= known[1:]).any():
            raise wrong
        return
    op = value_of(edges)
    _check_run(xla.ge(xla.slice_(op, (0,), (count,)), xla.slice_(op, (1,), (count + 1,))), wrong)


def _check_rising(bins: Any, edges: TracedArray, text: str) -> None:
    wrong = ValueError(text)
    known = known_values(bins)
    if known is not None:
        if (known[:-1] > known[1:]).any():
            raise wrong
    elif edges.size > 1:
        op = value_of(edges)
        _check_run(xla.gt(xla.slice_(op, (0,), (edges.size - 1,)), xla.slice_(op, (1,), (edges.size,))), wrong)


def _outer(array: TracedArray, range: Any) -> tuple[TracedArray, TracedArray]:
    """Return the outer edges: those given, or the extremes of the elements."""
    if range is None:
        found = (np.min(array), np.max(array)) if array.size else (0, 1)
        first, last = as_traced(found[0]), as_traced(found[1])
        if not array.size:
            return first, last
    else:
        low, high = range
        if known_values((low, high)) is not None:
            return _known_outer(low, high)
        first, last = as_traced(low), as_traced(high)
        _check_run(xla.gt(*_alike(first, last)), ValueError("max must be larger than min in range parameter."))
    _check_finite(first, last)
    return _apart(first, last)


def _known_outer(low: Any, high: Any) -> tuple[TracedArray, TracedArray]:
    first, last = _known_range(low, high)
    return as_traced(first), as_traced(last)


def _known_range(low: Any, high: Any) -> tuple[Any, Any]:
    if low > high:
        raise ValueError("max must be larger than min in range parameter.")
    if not (np.isfinite(low) and np.isfinite(high)):
        raise ValueError(f"supplied range of [{low}, {high}] is not finite")
    if low == high:
        low, high = low - 0.5, high + 0.5
    return low, high


def _alike(first: TracedArray, last: TracedArray) -> tuple[XlaOp, XlaOp]:
    common = result_type(first.dtype, last.dtype)
    return convert(value_of(first), common), convert(value_of(last), common)


def _check_finite(first: TracedArray, last: TracedArray) -> None:
    for op in _alike(first, last):
        if values.is_float(op):
            _check_run(xla.not_(xla.is_finite(op)), ValueError("the range of the histogram is not finite"))


def _apart(first: TracedArray, last: TracedArray) -> tuple[TracedArray, TracedArray]:
    """Move equal edges apart by one."""
    low, high = _alike(first, last)
    if not values.is_float(low):
        low, high = xla.convert(low, ElementType.F64), xla.convert(high, ElementType.F64)
    half_op, equal = values.scalar(low, 0.5), xla.eq(low, high)
    moved = xla.select(equal, xla.subtract(low, half_op), low), xla.select(equal, xla.add(high, half_op), high)
    return TracedArray(moved[0]), TracedArray(moved[1])


# -- histograms


def _flat(a: Any, weights: Any) -> tuple[TracedArray, TracedArray | None]:
    array = as_traced(a)
    given = None if weights is None else as_traced(weights)
    if given is not None and given.shape != array.shape:
        raise ValueError("weights should have the same shape as a.")
    if array.dtype.kind == "b":
        array = as_traced(array, np.uint8)
    _refuse_complex(array)
    line = TracedArray(xla.reshape(value_of(array), (array.size,)))
    return line, None if given is None else TracedArray(xla.reshape(value_of(given), (array.size,)))


def _refuse_complex(array: TracedArray) -> None:
    if array.dtype.kind == "c":
        raise UnimplementedError(
            "histograms of complex numbers cannot be traced", where=user_line(), hint="bin a real part"
        )


@implements(np.histogram_bin_edges, note="no bins= by name, no complex numbers")
def histogram_bin_edges(a: Any, bins: Any = 10, range: Any = None, weights: Any = None) -> TracedArray:
    """Return the edges of a histogram's bins."""
    return _edges(_flat(a, weights)[0], bins, range)


@implements(np.histogram, note="no bins= by name, no complex numbers")
def histogram(
    a: Any, bins: Any = 10, range: Any = None, density: Any = None, weights: Any = None
) -> tuple[TracedArray, TracedArray]:
    """Count elements, or sum weights, in each bin."""
    array, given = _flat(a, weights)
    edges = _edges(array, bins, range)
    if given is not None and given.dtype.kind == "b" and _bin_count(bins) is None:
        raise DTypeError("weights that are bools cannot be added up between edges")
    placed = (_bin_of if _bin_count(bins) is None else _equal_bin_of)(array, edges)
    found: Any = TracedArray(_summed(placed, max(edges.size - 1, 0), given))
    if density:
        widths = np.diff(edges).astype(float)
        found = found / widths / found.sum()
    return found, edges


def _summed(places: XlaOp, size: int, weights: TracedArray | None) -> XlaOp:
    """Count, or sum weights; floats are accumulated in twice their precision, as by NumPy."""
    if weights is None or weights.dtype.kind not in "fc":
        return counts(places, size, None if weights is None else value_of(weights))
    wide = np.dtype(np.complex128 if weights.dtype.kind == "c" else np.float64)
    return convert(counts(places, size, convert(value_of(weights), wide)), weights.dtype)


def _bin_of(array: TracedArray, edges: TracedArray) -> XlaOp:
    """Return the bin of each element as s64; one beyond the last for elements in none."""
    if edges.size < 2:
        return xla.broadcast(xla.constant(value_of(array).builder, 0, ElementType.S64), array.shape)
    common = result_type(array.dtype, edges.dtype)
    op, line = convert(value_of(array), common), convert(value_of(edges), common)
    passed = place_in(line, op, behind=True)
    last = xla.eq(op, broadcast_to(xla.reshape(xla.slice_(line, (edges.size - 1,), (edges.size,)), ()), op.shape.dims))
    one = values.full_like(passed, 1)
    inside = xla.subtract(xla.select(last, values.full_like(passed, edges.size - 1), passed), one)
    outside = xla.lt(inside, values.zeros_like(inside))
    return xla.select(outside, values.full_like(inside, edges.size), inside)


def _equal_bin_of(array: TracedArray, edges: TracedArray) -> XlaOp:
    """Return the bin of each element for bins of equal width, corrected for rounding at the edges."""
    count, sizes = edges.size - 1, array.shape
    if array.dtype != edges.dtype or array.dtype.itemsize < 4 or count <= _LISTED or not array.size:
        return _bin_of(array, edges)
    op, line = value_of(array), value_of(edges)
    first, last = (broadcast_to(xla.reshape(xla.slice_(line, (k,), (k + 1,)), ()), sizes) for k in (0, count))
    far = xla.divide(xla.subtract(op, first), xla.subtract(last, first))
    inside = xla.and_(xla.ge(op, first), xla.le(op, last))
    steps = xla.select(inside, xla.multiply(far, values.full_like(far, count)), values.zeros_like(far))
    near = xla.minimum(xla.convert(steps, ElementType.S64), xla.broadcast(_whole(line, count - 1), sizes))
    one = values.full_like(near, 1)
    near = xla.subtract(near, xla.convert(xla.lt(op, take_each(line, near)), ElementType.S64))
    more = xla.and_(xla.ge(op, take_each(line, xla.add(near, one))), xla.ne(near, values.full_like(near, count - 1)))
    near = xla.add(near, xla.convert(more, ElementType.S64))
    return xla.select(inside, near, values.full_like(near, count))


def _whole(like: XlaOp, number: int) -> XlaOp:
    return xla.constant(like.builder, number, ElementType.S64)


@implements(np.histogramdd, note="no bins= by name, no complex numbers")
def histogramdd(
    sample: Any, bins: Any = 10, range: Any = None, density: Any = None, weights: Any = None
) -> tuple[TracedArray, list[TracedArray]]:
    """Count points, or sum weights, in each bin of several dimensions."""
    columns = _columns(sample)
    if not columns:
        raise ValueError("object of too small depth for desired array: points of no dimensions")
    each = _for_each(bins, len(columns), "bins")
    ranges = [None] * len(columns) if range is None else _for_each(range, len(columns), "range")
    edges = [_edges_of_column(*parts) for parts in zip(columns, each, ranges, itertools.count())]
    if not all(e.size for e in edges):
        raise OutOfRangeError("bins of a dimension have no edges")
    if prod(e.size + 1 for e in edges) > _LARGEST:
        raise ValueError("invalid dims: array size defined by dims is larger than the maximum possible size.")
    sizes = [e.size - 1 for e in edges]
    given = None if weights is None else _weights(weights, columns[0])
    found = counts(_joint([_bin_of(c, e) for c, e in zip(columns, edges, strict=True)], sizes), prod(sizes), given)
    made: Any = TracedArray(convert(xla.reshape(found, sizes), np.dtype(float)))
    if density:
        total = made.sum()
        for axis, e in enumerate(edges):
            made = made / np.diff(e).reshape([1] * axis + [-1] + [1] * (len(edges) - axis - 1))
        made = made / total
    return made, edges


def _columns(sample: Any) -> list[TracedArray]:
    """Return a vector for each dimension."""
    array: Any = as_traced(sample)
    _refuse_complex(array)
    if array.ndim == 1:
        return [array]
    return list(np.transpose(array) if isinstance(sample, (TracedArray, np.ndarray)) else array)


def _for_each(given: Any, dims: int, what: str) -> list[Any]:
    if what == "bins" and not _is_sequence(given):
        return [given] * dims
    if len(given) != dims:
        text = "The dimension of bins must be equal to the dimension of the sample x."
        raise ValueError(text if what == "bins" else "range argument must have one entry per dimension")
    return list(given)


def _is_sequence(given: Any) -> bool:
    if isinstance(given, (np.ndarray, TracedArray)):
        return given.ndim > 0
    return isinstance(given, (list, tuple))


def _edges_of_column(column: TracedArray, bins: Any, range: Any, number: int) -> TracedArray:
    name = f"`bins[{number}]`"
    if isinstance(bins, str):
        _bin_count(bins)
    rank = np.ndim(bins) if _is_sequence(bins) else 0
    if rank > 1:
        raise ValueError(f"{name} must be a scalar or 1d array")
    if rank == 1:
        edges = as_traced(bins)
        _check_rising(bins, edges, f"{name} must be monotonically increasing, when an array")
        return edges
    if bins < 1:
        raise ValueError(f"{name} must be positive, when an integer")
    first, last = _outer(column, range)
    try:
        count = index(bins)
    except TypeError as error:
        raise TypeError(f"{name} must be an integer, when a scalar") from error
    return as_traced(np.linspace(first, last, count + 1))


def _joint(places: Sequence[XlaOp], sizes: Sequence[int]) -> XlaOp:
    """Return the row-major index of a bin in several dimensions; beyond the last if one of its indices is."""
    made = values.zeros_like(places[0])
    beyond = xla.ne(made, made)
    for op, size in zip(places, sizes, strict=True):
        made = xla.add(xla.multiply(made, values.full_like(made, size)), op)
        beyond = xla.or_(beyond, xla.ge(op, values.full_like(op, size)))
    return xla.select(beyond, values.full_like(made, prod(sizes)), made)


@implements(np.histogram2d, note="no bins= by name, no complex numbers")
def histogram2d(
    x: Any, y: Any, bins: Any = 10, range: Any = None, density: Any = None, weights: Any = None
) -> tuple[TracedArray, TracedArray, TracedArray]:
    """Count pairs, or sum weights, in each bin of two dimensions."""
    one, other = as_traced(x), as_traced(y)
    if len(one) != len(other):
        raise ValueError("x and y must have the same length.")
    if _is_sequence(bins) and len(bins) not in (1, 2):
        bins = [bins, bins]
    found, edges = histogramdd([one, other], bins, range, density, weights)
    return found, edges[0], edges[1]
