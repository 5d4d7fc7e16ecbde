"""Histograms and counts."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from math import prod
from operator import index
from typing import Any

import numpy as np

from cyxla.errors import DTypeError, OutOfRangeError, ShapeError, UnimplementedError
from cyxla.numpy.functions.sorting import find_insertion_indices, gather_elements
from cyxla.numpy.indexing.ranges import range_of
from cyxla.numpy.tracing.arrays.deferred_array import DeferredArray
from cyxla.numpy.tracing.arrays.sized_array import SizedArray, as_size
from cyxla.numpy.tracing.arrays.traced_array import TracedArray, as_traced, is_traced, require_known, value_of
from cyxla.numpy.tracing.registry import implements
from cyxla.numpy.tracing.results.conversion import convert
from cyxla.numpy.tracing.results.promotion import result_type
from cyxla.numpy.tracing.trace import require_current, user_line
from cyxla.numpy.ufunc_methods.reduce import known_values, reduce_op
from cyxla.numpy.ufuncs.apply import broadcast_to
from cyxla.types import ElementType
from cyxla.xla.hlo.builder import XlaOp, scalar_computation
from cyxla.xla.hlo.builder import functions as xla
from cyxla.xla.lib import values

_GREATEST_LENGTH = 1 << 16  # length of a bincount whose greatest element is known at run time: 512 KiB
_S64 = np.dtype(np.int64)
_UNSIGNED = {  # integers of the same width
    getattr(ElementType, f"S{bits}"): getattr(ElementType, f"U{bits}") for bits in (8, 16, 32, 64)
}
_MAX_DISTINCT_BINS = 1 << 20  # number of bins up to which those of 32-bit integers are distinguishable
_MAX_SIZE = 2**63 - 1  # greatest number of elements that NumPy can index
_MAX_COMPARED_EDGES = 8  # largest number of edges to compare each element with


def _fail_if_any(failed: XlaOp, error: Exception) -> None:
    """Make runs raise an error if any element is true."""
    any_failed = reduce_op(np.logical_or, failed, range(len(failed.shape.dims)))
    require_current().fail_if(any_failed, require_current().constant(0, _S64), lambda number: error)


# -- counting


def scatter_counts(indices: XlaOp, size: int, weights: XlaOp | None = None) -> XlaOp:
    """Count the occurrences of each index below a size in a vector, as s64, or sum weights; others are ignored."""
    one = xla.constant(indices.builder, np.int64(1))
    updates = xla.broadcast(one, indices.shape.dims) if weights is None else weights
    zeros = xla.broadcast(values.scalar(updates, 0), (size,))
    if not size or not indices.shape.dims[0]:
        return zeros
    return xla.scatter(
        zeros, xla.reshape(indices, (*indices.shape.dims, 1)), updates, scalar_computation("add", updates.shape.dtype),
        update_window_dims=(), inserted_window_dims=(0,), scatter_dims_to_operand_dims=(0,), index_vector_dim=1,
    )  # fmt: skip


@implements(np.bincount, note="NumPy runs for elements of a traced array beyond minlength=, or 65,535 without it")
def bincount(x: Any, /, weights: Any = None, minlength: Any = 0) -> Any:
    """Count the occurrences of each non-negative integer."""
    if is_traced(minlength):
        return lengthened(bincount(x, weights), minlength)
    array = as_traced(x)
    minlength = _parse_minlength(minlength)
    _check_bincount_operand(array)
    weights_op = None if weights is None else _convert_weights(weights, array)
    if not array.size:
        weights_op = None  # as in NumPy
    size = _result_length(x, array, minlength)
    is_known = known_values(x) is not None or not array.size
    indices = value_of(array) if array.dtype.kind in "iu" else convert(value_of(array), _S64)
    greatest: Any = None if is_known else _check_range(indices, size, minlength)
    counts = TracedArray(scatter_counts(indices, size, weights_op))
    if minlength or greatest is None:
        return counts
    return SizedArray(counts, {0: as_size(greatest + 1, size)})


def lengthened(counts: Any, length: TracedArray) -> SizedArray:
    """Return counts with zeros behind them up to a length known at run time."""
    if length.ndim or length.dtype.kind not in "iu":
        raise TypeError(f"'{length.dtype}' object cannot be interpreted as an integer")
    least: Any = length.astype(_S64)
    _fail_if_any(value_of(np.less(least, 0)), ValueError("'minlength' must not be negative"))
    padded, count = (counts.padded, counts.count) if isinstance(counts, SizedArray) else (counts, counts.size)
    bound = max(padded.size, min(range_of(value_of(least))[1], _GREATEST_LENGTH))
    text = f"bincount: minlength= is beyond {bound}, the greatest length of the result"
    _fail_if_any(value_of(np.greater(least, bound)), UnimplementedError(text, hint="limit it: np.minimum(n, 1000)"))
    zeros = xla.pad_in_dim(value_of(padded), values.scalar(value_of(padded), 0), 0, 0, bound - padded.size)
    return SizedArray(TracedArray(zeros), {0: as_size(as_traced(np.maximum(count, least)), bound)})


def _check_range(indices: XlaOp, size: int, minlength: int) -> TracedArray:
    """Make runs raise unless integers are below a size and not negative; return the greatest one as s64."""
    unsigned = _UNSIGNED.get(indices.shape.dtype) if range_of(indices)[0] < 0 else None
    greatest = indices if unsigned is None else xla.bitcast_convert(indices, unsigned)
    greatest = reduce_op(np.maximum, greatest, [0])
    if unsigned is not None:  # negative ones are greater than all others, so that one reduction finds either fault
        greatest = xla.bitcast_convert(greatest, indices.shape.dtype)
        negative = xla.lt(greatest, values.zeros_like(greatest))
        _fail_if_any(negative, ValueError("'list' argument must have no negative elements"))
    wide = greatest if indices.shape.dtype is ElementType.U64 else convert(greatest, _S64)
    limit = f"minlength={size}, the length" if minlength else f"{size}, the greatest length without minlength="
    message = f"bincount: an element is not below {limit} of the result"
    beyond = xla.ge(wide, values.full_like(wide, size))
    require_current().leave_if(beyond, lambda _: UnimplementedError(message, hint="give a greater minlength="))
    return TracedArray(convert(wide, _S64))


def _parse_minlength(minlength: Any) -> int:
    length = index(minlength)
    if length < 0:
        raise ValueError("'minlength' must not be negative")
    return length


def _check_bincount_operand(array: TracedArray) -> None:
    if array.ndim != 1:
        raise ShapeError("object of too small depth for desired array" if not array.ndim else "object too deep")
    if array.dtype.kind not in "biu":
        raise TypeError(f"Cannot cast array data from {array.dtype!r} to dtype('int64') according to the rule 'safe'")


def _convert_weights(weights: Any, array: TracedArray) -> XlaOp:
    weights_array = as_traced(weights)
    if weights_array.shape != array.shape:
        raise ShapeError("The weights and list don't have the same length.")
    if weights_array.dtype.kind not in "biuf":
        raise TypeError(
            f"Cannot cast array data from {weights_array.dtype!r} to dtype('float64') according to the rule 'safe'"
        )
    return convert(value_of(weights_array), np.dtype(np.float64))


def _result_length(x: Any, array: TracedArray, minlength: int) -> int:
    known = known_values(x)
    if known is not None:
        if known.size and known.min() < 0:
            raise ValueError("'list' argument must have no negative elements")
        return max(minlength, int(known.max()) + 1 if known.size else 0)
    if not minlength and array.size:
        return min(max(range_of(value_of(array))[1] + 1, 1), _GREATEST_LENGTH)
    return minlength


# -- edges


def _bin_count(bins: Any) -> int | None:
    """Return the number of bins; None if their edges are given."""
    if _is_sequence(bins):
        return None
    require_known(bins, "be a number of bins", "give a number, or edges")
    try:
        count: int = bins.__index__()
    except (TypeError, AttributeError):
        raise TypeError("`bins` must be an integer, a string, or an array") from None
    if count < 1:
        raise ValueError("`bins` must be positive, when an integer")
    return count


def _bin_edges(array: TracedArray, bins: Any, range: Any) -> TracedArray:
    """Return the edges of bins in NumPy's dtype."""
    count = _bin_count(bins)
    if count is not None:
        first, last = _outer_edges(array, range)
        common = result_type(first.kind, last.kind, array.dtype)
        dtype = common if common.kind not in "biu" else np.result_type(common, float)
        result = as_traced(np.linspace(first, last, count + 1, endpoint=True, dtype=dtype))
        if not (range is None and array.dtype.kind in "biu" and array.itemsize <= 4 and count <= _MAX_DISTINCT_BINS):
            _check_distinct(result, range)
        return result
    edges = as_traced(bins)
    if edges.ndim != 1:
        raise ValueError("`bins` must be 1d, when an array")
    _check_increasing(bins, edges, "`bins` must increase monotonically, when an array")
    return edges


def _check_distinct(edges: TracedArray, range: Any) -> None:
    """Make runs raise an error if there are so many bins that neighbouring edges are equal."""
    count = edges.size - 1
    error = ValueError(f"Too many bins for data range. Cannot create {count} finite-sized bins.")
    if range is not None and known_values(tuple(range)) is not None:
        low, high = _known_range(*range)
        known: Any = np.linspace(low, high, count + 1, dtype=edges.dtype)
        if (known[:-1] >= known[1:]).any():
            raise error
        return
    op = value_of(edges)
    _fail_if_any(xla.ge(xla.slice_(op, (0,), (count,)), xla.slice_(op, (1,), (count + 1,))), error)


def _check_increasing(bins: Any, edges: TracedArray, message: str) -> None:
    error = ValueError(message)
    known = known_values(bins)
    if known is not None:
        if (known[:-1] > known[1:]).any():
            raise error
    elif edges.size > 1:
        op = value_of(edges)
        _fail_if_any(xla.gt(xla.slice_(op, (0,), (edges.size - 1,)), xla.slice_(op, (1,), (edges.size,))), error)


def _outer_edges(array: TracedArray, range: Any) -> tuple[TracedArray, TracedArray]:
    """Return the outer edges: those given, or the extremes of the elements."""
    if range is None:
        extremes = (np.min(array), np.max(array)) if array.size else (0, 1)
        first, last = as_traced(extremes[0]), as_traced(extremes[1])
        if not array.size:
            return first, last
    else:
        low, high = range
        if known_values((low, high)) is not None:
            return _known_outer_edges(low, high)
        first, last = as_traced(low), as_traced(high)
        _fail_if_any(
            xla.gt(*_to_common_dtype(first, last)), ValueError("max must be larger than min in range parameter.")
        )
    _check_finite(first, last)
    return _separate_equal(first, last)


def _known_outer_edges(low: Any, high: Any) -> tuple[TracedArray, TracedArray]:
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


def _to_common_dtype(first: TracedArray, last: TracedArray) -> tuple[XlaOp, XlaOp]:
    common = result_type(first.dtype, last.dtype)
    return convert(value_of(first), common), convert(value_of(last), common)


def _check_finite(first: TracedArray, last: TracedArray) -> None:
    for op in _to_common_dtype(first, last):
        if values.is_float(op):
            _fail_if_any(xla.not_(xla.is_finite(op)), ValueError("histogram: the range of the bins is not finite"))


def _separate_equal(first: TracedArray, last: TracedArray) -> tuple[TracedArray, TracedArray]:
    """Move equal edges apart by one."""
    low, high = _to_common_dtype(first, last)
    if not values.is_float(low):
        low, high = xla.convert(low, ElementType.F64), xla.convert(high, ElementType.F64)
    half_op, equal = values.scalar(low, 0.5), xla.eq(low, high)
    separated = xla.select(equal, xla.subtract(low, half_op), low), xla.select(equal, xla.add(high, half_op), high)
    return TracedArray(separated[0]), TracedArray(separated[1])


# -- histograms


def _flatten(a: Any, weights: Any) -> tuple[TracedArray, TracedArray | None]:
    array = as_traced(a)
    weights_array = None if weights is None else as_traced(weights)
    if weights_array is not None and weights_array.shape != array.shape:
        raise ValueError("weights should have the same shape as a.")
    if array.dtype.kind == "b":
        array = as_traced(array, np.uint8)
    _refuse_complex(array)
    flat = TracedArray(xla.reshape(value_of(array), (array.size,)))
    return flat, None if weights_array is None else TracedArray(xla.reshape(value_of(weights_array), (array.size,)))


def _refuse_complex(array: TracedArray) -> None:
    if array.dtype.kind == "c":
        raise UnimplementedError(
            "histograms of complex numbers cannot be traced", where=user_line(), hint="bin np.real(x) or np.abs(x)"
        )


@implements(np.histogram_bin_edges, note="bins= by name gives a result that can only be returned; no complex numbers")
def histogram_bin_edges(a: Any, bins: Any = 10, range: Any = None, weights: Any = None) -> Any:
    """Return the edges of a histogram's bins."""
    if isinstance(bins, str):
        return DeferredArray(np.histogram_bin_edges, (a, bins, range, weights), {}, unknown=["shape"])
    return _bin_edges(_flatten(a, weights)[0], bins, range)


@implements(np.histogram, note="bins= by name gives results that can only be returned; no complex numbers")
def histogram(a: Any, bins: Any = 10, range: Any = None, density: Any = None, weights: Any = None) -> tuple[Any, Any]:
    """Count elements, or sum weights, in each bin."""
    if isinstance(bins, str):
        return _counts_of_named_bins(a, bins, range, density, weights), histogram_bin_edges(a, bins, range, weights)
    array, flat_weights = _flatten(a, weights)
    edges = _bin_edges(array, bins, range)
    if flat_weights is not None and flat_weights.dtype.kind == "b" and _bin_count(bins) is None:
        raise DTypeError("histogram: weights of dtype bool cannot be summed between given edges")
    bin_indices = (_find_bins if _bin_count(bins) is None else _find_equal_bins)(array, edges)
    counts: Any = TracedArray(_sum_per_bin(bin_indices, max(edges.size - 1, 0), flat_weights))
    if density:
        widths = np.diff(edges).astype(float)
        counts = counts / widths / counts.sum()
    return counts, edges


def _counts_of_named_bins(*args: Any) -> DeferredArray:
    """Count in bins that a rule such as ``auto`` chooses: nothing bounds their number."""

    def histogram(*args: Any) -> Any:
        return np.histogram(*args)[0]

    return DeferredArray(histogram, args, {}, unknown=["shape"])


def _sum_per_bin(indices: XlaOp, size: int, weights: TracedArray | None) -> XlaOp:
    """Count, or sum weights; floats are accumulated in twice their precision, as by NumPy."""
    if weights is None or weights.dtype.kind not in "fc":
        return scatter_counts(indices, size, None if weights is None else value_of(weights))
    accumulator = np.dtype(np.complex128 if weights.dtype.kind == "c" else np.float64)
    return convert(scatter_counts(indices, size, convert(value_of(weights), accumulator)), weights.dtype)


def _find_bins(array: TracedArray, edges: TracedArray) -> XlaOp:
    """Return the bin of each element as s64; one beyond the last for elements in none."""
    if edges.size < 2:
        return xla.broadcast(xla.constant(value_of(array).builder, 0, ElementType.S64), array.shape)
    common = result_type(array.dtype, edges.dtype)
    op, edges_op = convert(value_of(array), common), convert(value_of(edges), common)
    insertion = find_insertion_indices(edges_op, op, after_equal=True)
    last = xla.eq(
        op, broadcast_to(xla.reshape(xla.slice_(edges_op, (edges.size - 1,), (edges.size,)), ()), op.shape.dims)
    )
    one = values.full_like(insertion, 1)
    indices = xla.subtract(xla.select(last, values.full_like(insertion, edges.size - 1), insertion), one)
    outside = xla.lt(indices, values.zeros_like(indices))
    return xla.select(outside, values.full_like(indices, edges.size), indices)


def _find_equal_bins(array: TracedArray, edges: TracedArray) -> XlaOp:
    """Return the bin of each element for bins of equal width, corrected for rounding at the edges."""
    count, sizes = edges.size - 1, array.shape
    if array.dtype != edges.dtype or array.dtype.itemsize < 4 or count <= _MAX_COMPARED_EDGES or not array.size:
        return _find_bins(array, edges)
    op, edges_op = value_of(array), value_of(edges)
    first, last = (broadcast_to(xla.reshape(xla.slice_(edges_op, (k,), (k + 1,)), ()), sizes) for k in (0, count))
    fraction = xla.divide(xla.subtract(op, first), xla.subtract(last, first))
    inside = xla.and_(xla.ge(op, first), xla.le(op, last))
    positions = xla.select(
        inside, xla.multiply(fraction, values.full_like(fraction, count)), values.zeros_like(fraction)
    )
    indices = xla.minimum(
        xla.convert(positions, ElementType.S64), xla.broadcast(_s64_scalar(edges_op, count - 1), sizes)
    )
    one = values.full_like(indices, 1)
    indices = xla.subtract(indices, xla.convert(xla.lt(op, gather_elements(edges_op, indices)), ElementType.S64))
    is_above = xla.and_(
        xla.ge(op, gather_elements(edges_op, xla.add(indices, one))),
        xla.ne(indices, values.full_like(indices, count - 1)),
    )
    indices = xla.add(indices, xla.convert(is_above, ElementType.S64))
    return xla.select(inside, indices, values.full_like(indices, count))


def _s64_scalar(like: XlaOp, number: int) -> XlaOp:
    return xla.constant(like.builder, number, ElementType.S64)


@implements(np.histogramdd, note="no bins= by name, no complex numbers")
def histogramdd(
    sample: Any, bins: Any = 10, range: Any = None, density: Any = None, weights: Any = None
) -> tuple[TracedArray, list[TracedArray]]:
    """Count points, or sum weights, in each bin of several dimensions."""
    columns = _columns(sample)
    if not columns:
        raise ValueError("object of too small depth for desired array: points of no dimensions")
    column_bins = _repeat_per_dimension(bins, len(columns), "bins")
    ranges = [None] * len(columns) if range is None else _repeat_per_dimension(range, len(columns), "range")
    edges = [_column_edges(*parts) for parts in zip(columns, column_bins, ranges, itertools.count())]
    if not all(e.size for e in edges):
        raise OutOfRangeError("histogramdd: a dimension has an empty array of edges")
    if prod(e.size + 1 for e in edges) > _MAX_SIZE:
        raise ValueError("invalid dims: array size defined by dims is larger than the maximum possible size.")
    sizes = [e.size - 1 for e in edges]
    weights_op = None if weights is None else _convert_weights(weights, columns[0])
    counts = scatter_counts(
        _flatten_bins([_find_bins(c, e) for c, e in zip(columns, edges, strict=True)], sizes), prod(sizes), weights_op
    )
    result: Any = TracedArray(convert(xla.reshape(counts, sizes), np.dtype(float)))
    if density:
        total = result.sum()
        for axis, e in enumerate(edges):
            result = result / np.diff(e).reshape([1] * axis + [-1] + [1] * (len(edges) - axis - 1))
        result = result / total
    return result, edges


def _columns(sample: Any) -> list[TracedArray]:
    """Return a vector for each dimension."""
    array: Any = as_traced(sample)
    _refuse_complex(array)
    if array.ndim == 1:
        return [array]
    return list(np.transpose(array) if isinstance(sample, (TracedArray, np.ndarray)) else array)


def _repeat_per_dimension(argument: Any, dims: int, name: str) -> list[Any]:
    if name == "bins" and not _is_sequence(argument):
        return [argument] * dims
    if len(argument) != dims:
        message = "The dimension of bins must be equal to the dimension of the sample x."
        raise ValueError(message if name == "bins" else "range argument must have one entry per dimension")
    return list(argument)


def _is_sequence(value: Any) -> bool:
    if isinstance(value, (np.ndarray, TracedArray)):
        return value.ndim > 0
    return isinstance(value, (list, tuple))


def _column_edges(column: TracedArray, bins: Any, range: Any, number: int) -> TracedArray:
    name = f"`bins[{number}]`"
    if isinstance(bins, str):
        _bin_count(bins)
    rank = np.ndim(bins) if _is_sequence(bins) else 0
    if rank > 1:
        raise ValueError(f"{name} must be a scalar or 1d array")
    if rank == 1:
        edges = as_traced(bins)
        _check_increasing(bins, edges, f"{name} must be monotonically increasing, when an array")
        return edges
    if bins < 1:
        raise ValueError(f"{name} must be positive, when an integer")
    first, last = _outer_edges(column, range)
    try:
        count = index(bins)
    except TypeError as error:
        raise TypeError(f"{name} must be an integer, when a scalar") from error
    return as_traced(np.linspace(first, last, count + 1))


def _flatten_bins(indices: Sequence[XlaOp], sizes: Sequence[int]) -> XlaOp:
    """Return the row-major index of a bin in several dimensions; beyond the last if one of its indices is."""
    result = values.zeros_like(indices[0])
    beyond = xla.ne(result, result)
    for op, size in zip(indices, sizes, strict=True):
        result = xla.add(xla.multiply(result, values.full_like(result, size)), op)
        beyond = xla.or_(beyond, xla.ge(op, values.full_like(op, size)))
    return xla.select(beyond, values.full_like(result, prod(sizes)), result)


@implements(np.histogram2d, note="no bins= by name, no complex numbers")
def histogram2d(
    x: Any, y: Any, bins: Any = 10, range: Any = None, density: Any = None, weights: Any = None
) -> tuple[TracedArray, TracedArray, TracedArray]:
    """Count pairs, or sum weights, in each bin of two dimensions."""
    first, second = as_traced(x), as_traced(y)
    if len(first) != len(second):
        raise ValueError("x and y must have the same length.")
    if _is_sequence(bins) and len(bins) not in (1, 2):
        bins = [bins, bins]
    counts, edges = histogramdd([first, second], bins, range, density, weights)
    return counts, edges[0], edges[1]
