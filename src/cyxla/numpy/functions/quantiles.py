"""Medians, quantiles and percentiles."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import Any

import numpy as np

from cyxla.errors import DTypeError, OutOfRangeError, ShapeError
from cyxla.numpy.functions.sorting import gather_elements
from cyxla.numpy.functions.statistics import broadcast_weights, mean, nanmean
from cyxla.numpy.functions.total_order import sort_together
from cyxla.numpy.tracing.arrays.traced_array import TracedArray, as_traced, cast, value_of
from cyxla.numpy.tracing.registry import implements
from cyxla.numpy.tracing.results.conversion import convert
from cyxla.numpy.tracing.results.zero_dim import Rank0
from cyxla.numpy.tracing.trace import require_current, user_line
from cyxla.numpy.ufunc_methods.cumulative import cumulative
from cyxla.numpy.ufunc_methods.reduce import (
    NOT_GIVEN,
    flag,
    keepdims_shape,
    known_values,
    reduce_op,
    reduction_axes,
    reduction_to_out,
)
from cyxla.numpy.ufuncs.apply import broadcast_to, broadcast_together, to_outputs
from cyxla.records import dataclass
from cyxla.types import ElementType
from cyxla.xla.hlo.builder import XlaOp
from cyxla.xla.hlo.builder import functions as xla
from cyxla.xla.lib import values

Number = Any  # a NumPy array if known while tracing, else a traced one


# -- sorted lines


@dataclass(frozen=True)
class SortedLines:
    """Array as sorted lines along the reduced axes.

    Attributes
    ----------
    op : XlaOp
        Sorted lines: [count, size].
    batch_shape : tuple of int
        Sizes of the remaining axes.
    keepdims_shape : tuple of int
        Shape of the array with 1 for the reduced axes.
    weights : XlaOp or None
        Weights sorted with the elements: [count, size].
    """

    op: XlaOp
    batch_shape: tuple[int, ...]
    keepdims_shape: tuple[int, ...]
    weights: XlaOp | None = None

    @staticmethod
    def of(array: TracedArray, axis: Any, weights: XlaOp | None = None) -> SortedLines:
        """Return the sorted lines along axes."""
        axes = reduction_axes(tuple(axis) if isinstance(axis, list) else axis, array.ndim, of_scalars=False)
        others = [d for d in range(array.ndim) if d not in axes]
        batch_shape = tuple(array.shape[d] for d in others)
        size = prod(array.shape[d] for d in axes)
        operands = [value_of(array)] if weights is None else [value_of(array), weights]
        ops = [xla.reshape(xla.transpose(op, (*others, *axes)), (prod(batch_shape), size)) for op in operands]
        sorted_ops = sort_together(ops, 1)
        sorted_weights = sorted_ops[1] if len(sorted_ops) > 1 else None
        return SortedLines(sorted_ops[0], batch_shape, keepdims_shape(array.shape, axes), sorted_weights)

    @property
    def count(self) -> int:
        """Number of lines."""
        return self.op.shape.dims[0]

    @property
    def size(self) -> int:
        """Number of elements in a line."""
        return self.op.shape.dims[1]

    def column(self, index: int) -> XlaOp:
        """Return the element at an index in each line."""
        return xla.reshape(xla.slice_in_dim(self.op, index, index + 1, 1, 1), (self.count,))

    def take(self, indices: Number) -> TracedArray:
        """Return elements at indices: of a NumPy array, the same in every line; of a traced one, [..., count]."""
        if not self.count:
            leading_shape = indices.shape[:-1] if isinstance(indices, TracedArray) else indices.shape
            return TracedArray(xla.broadcast(values.scalar(self.op, 0), (*leading_shape, 0)))
        if not isinstance(indices, TracedArray):
            columns = [xla.reshape(self.column(int(p)), (1, self.count)) for p in indices.ravel()]
            if not columns:
                return TracedArray(xla.reshape(xla.slice_in_dim(self.op, 0, 0, 1, 1), (*indices.shape, self.count)))
            stacked = columns[0] if len(columns) == 1 else xla.concatenate(columns, 0)
            return TracedArray(xla.reshape(stacked, (*indices.shape, self.count)))
        op = convert(value_of(indices), np.dtype(np.int64))
        starts = values.iota_along(op.builder, ElementType.S64, op.shape.dims, len(op.shape.dims) - 1)
        flat = xla.reshape(self.op, (self.count * self.size,))
        return TracedArray(
            gather_elements(flat, xla.add(xla.multiply(starts, values.full_like(starts, self.size)), op))
        )

    def propagate_nan(self, results: XlaOp) -> XlaOp:
        """Replace results [..., count] by nan for lines that contain nan."""
        if not (values.is_float(self.op) or values.is_complex(self.op)) or not self.size:
            return results
        last = self.column(self.size - 1)
        has_nan = broadcast_to(xla.ne(last, last), results.shape.dims)
        return xla.select(has_nan, broadcast_to(convert(last, values.numpy_type(results)), results.shape.dims), results)

    def count_present(self) -> XlaOp:
        """Number of elements in each line that are not nan, s64[count]."""
        is_number = xla.convert(xla.eq(self.op, self.op), ElementType.S64)
        return reduce_op(np.add, is_number, [1])

    def result_shape(self, keepdims: bool, leading_shape: Sequence[int] = ()) -> tuple[int, ...]:
        """Return the shape of the results."""
        return (*leading_shape, *(self.keepdims_shape if keepdims else self.batch_shape))


# -- medians


@implements(np.median)
def median(a: Any, axis: Any = None, out: Any = None, overwrite_input: bool = False, keepdims: Any = False) -> Any:
    """Compute the median."""
    lines = SortedLines.of(as_traced(a), axis)
    start, stop = max((lines.size - 1) // 2, 0), lines.size // 2 + 1
    middle = TracedArray(xla.slice_in_dim(lines.op, start, min(stop, lines.size), 1, 1))
    result = lines.propagate_nan(value_of(mean(middle, 1)))
    return _to_out(TracedArray(result), lines, flag(keepdims), (), out, "median")


@implements(np.nanmedian)
def nanmedian(
    a: Any, axis: Any = None, out: Any = None, overwrite_input: bool = False, keepdims: Any = NOT_GIVEN
) -> Any:
    """Compute the median, ignoring nan."""
    array = as_traced(a)
    if array.dtype.kind not in "fcV" or not array.size:
        return (median if array.size else _empty_mean)(array, axis, out=out, keepdims=keepdims)
    lines = SortedLines.of(array, axis)
    count: Number = TracedArray(lines.count_present())
    low, high = _clamp_doubled(count - 1, lines) // 2, _clamp_doubled(count, lines) // 2
    pair = [xla.reshape(value_of(lines.take(p)), (1, lines.count)) for p in (low, high)]
    result = value_of(mean(TracedArray(xla.concatenate(pair, 0)), 0))
    return to_outputs(
        [TracedArray(xla.reshape(result, lines.result_shape(flag(keepdims))))], out, True, "unsafe", "nanmedian"
    )


def _empty_mean(array: TracedArray, axis: Any, out: Any, keepdims: Any) -> Any:
    return nanmean(array, axis, out=out, keepdims=keepdims)


def _clamp_doubled(indices: Number, lines: SortedLines) -> Number:
    op = value_of(indices)
    return TracedArray(xla.clamp(values.scalar(op, 0), op, values.scalar(op, max(2 * lines.size - 1, 0))))


def _to_out(
    values_: TracedArray, lines: SortedLines, keepdims: bool, leading_shape: Sequence[int], out: Any, name: str
) -> Any:  # fmt: skip
    shaped = TracedArray(xla.reshape(value_of(values_), lines.result_shape(keepdims, leading_shape)))
    return reduction_to_out(value_of(shaped), out, name)


# -- interpolation methods


def _where(condition: Number, if_true: Any, if_false: Any) -> Number:
    if not any(isinstance(x, TracedArray) for x in (condition, if_true, if_false)):
        return np.where(condition, if_true, if_false)
    typed = next((x for x in (if_true, if_false) if isinstance(x, TracedArray)), None)
    dtype = typed.dtype if typed is not None else np.asarray(if_true).dtype
    ops = [value_of(as_traced(condition)), value_of(as_traced(if_true, dtype)), value_of(as_traced(if_false, dtype))]
    return TracedArray(xla.select(*broadcast_together(ops, "where")))


def _to_int64(x: Number) -> Number:
    return x.astype(np.int64)


def _round_index(virtual_index: Number, rounds_down: Callable[[Number, Number], Number]) -> Number:
    """Return the element below a position if `rounds_down` holds for the distance to it, else the one above."""
    floor = np.floor(virtual_index)
    rounded = _to_int64(_where(rounds_down(virtual_index - floor, floor), floor, floor + 1))
    return np.maximum(rounded, 0)


def _virtual_index_formula(alpha: float, beta: float) -> Callable[[Number, Number], Number]:
    return lambda n, q: n * q + (alpha + q * (1 - alpha - beta)) - 1


def _linear_index(n: Number, q: Number) -> Number:
    return (n - 1) * q


def _identity_weight(gamma: Number, virtual_index: Number) -> Number:
    return gamma


@dataclass(frozen=True)
class Method:
    """Method of interpolation between sorted elements.

    Attributes
    ----------
    virtual_index : callable
        Function from the number of elements and a quantile to a position among the sorted elements.
    weight : callable or None
        Function from the distance to the element below, and the position, to the weight of the element above; None if
        positions are integers.
    """

    virtual_index: Callable[[Number, Number], Number]
    weight: Callable[[Number, Number], Number] | None = _identity_weight


METHODS: dict[str, Method] = {
    "inverted_cdf": Method(lambda n, q: _round_index(n * q - 1, lambda g, f: g == 0), None),
    "averaged_inverted_cdf": Method(lambda n, q: n * q - 1, lambda g, index: _where(g == 0, 0.5 + 0 * g, 1 + 0 * g)),
    "closest_observation": Method(
        lambda n, q: _round_index(n * q - 1 - 0.5, lambda g, f: (g == 0) & (f % 2 == 1)), None
    ),
    "interpolated_inverted_cdf": Method(_virtual_index_formula(0, 1)),
    "hazen": Method(_virtual_index_formula(0.5, 0.5)),
    "weibull": Method(_virtual_index_formula(0, 0)),
    "linear": Method(_linear_index),
    "median_unbiased": Method(_virtual_index_formula(1 / 3, 1 / 3)),
    "normal_unbiased": Method(_virtual_index_formula(3 / 8, 3 / 8)),
    "lower": Method(lambda n, q: _to_int64(np.floor(_linear_index(n, q))), None),
    "higher": Method(lambda n, q: _to_int64(np.ceil(_linear_index(n, q))), None),
    "midpoint": Method(
        lambda n, q: 0.5 * (np.floor(_linear_index(n, q)) + np.ceil(_linear_index(n, q))),
        lambda g, index: _where(index % 1 == 0, 0 * g, 0.5 + 0 * g),
    ),
    "nearest": Method(lambda n, q: _to_int64(np.rint(_linear_index(n, q))), None),
}  # fmt: skip


# -- quantiles


@implements(np.quantile)
def quantile(
    a: Any, q: Any, axis: Any = None, out: Any = None, overwrite_input: bool = False, method: str = "linear",
    keepdims: Any = False, *, weights: Any = None,
) -> Any:  # fmt: skip
    """Compute quantiles."""
    return _quantile(as_traced(a), parse_quantiles(q), is_weak(q), axis, out, method, keepdims, weights, "quantile")


@implements(np.percentile)
def percentile(
    a: Any, q: Any, axis: Any = None, out: Any = None, overwrite_input: bool = False, method: str = "linear",
    keepdims: Any = False, *, weights: Any = None,
) -> Any:  # fmt: skip
    """Compute percentiles."""
    return _quantile(as_traced(a), parse_percentiles(q), is_weak(q), axis, out, method, keepdims, weights, "percentile")


@implements(np.nanquantile)
def nanquantile(
    a: Any, q: Any, axis: Any = None, out: Any = None, overwrite_input: bool = False, method: str = "linear",
    keepdims: Any = NOT_GIVEN, *, weights: Any = None,
) -> Any:  # fmt: skip
    """Compute quantiles, ignoring nan."""
    return _quantile(as_traced(a), parse_quantiles(q), is_weak(q), axis, out, method, keepdims, weights, "nanquantile")


@implements(np.nanpercentile)
def nanpercentile(
    a: Any, q: Any, axis: Any = None, out: Any = None, overwrite_input: bool = False, method: str = "linear",
    keepdims: Any = NOT_GIVEN, *, weights: Any = None,
) -> Any:  # fmt: skip
    """Compute percentiles, ignoring nan."""
    return _quantile(
        as_traced(a), parse_percentiles(q), is_weak(q), axis, out, method, keepdims, weights, "nanpercentile"
    )


def parse_quantiles(q: Any) -> Number:
    """Return quantiles as a NumPy array if they are known while tracing, else traced."""
    known = known_values(q)
    if known is not None and known.dtype.kind == "O":
        raise DTypeError(
            "quantiles of dtype object cannot be traced", where=user_line(), hint="convert them: np.asarray(q, float)"
        )
    return as_traced(q) if known is None else known


def parse_percentiles(q: Any) -> Number:
    """Return percentiles as quantiles."""
    quantiles = np.true_divide(parse_quantiles(q), 100)
    return quantiles if isinstance(quantiles, TracedArray) else np.asarray(quantiles)


def is_weak(q: Any) -> bool:
    """Return True if quantiles are a Python number."""
    return q.weak in (int, float) if isinstance(q, TracedArray) else type(q) in (int, float)


def check_quantiles(array: TracedArray, q: Number, method: str, weights: Any, name: str) -> None:
    """Refuse arguments that NumPy refuses."""
    if array.dtype.kind == "c":
        raise TypeError("a must be an array of real numbers")
    _check_range(q, name)
    if weights is not None and method != "inverted_cdf":
        raise ValueError(f"Only method 'inverted_cdf' supports weights. Got: {method}.")
    if method not in METHODS:
        raise ValueError(f"{method!r} is not a valid method. Use one of: {', '.join(METHODS)}")
    if q.ndim > 2:
        raise ValueError("q must be a scalar or 1d")


def _check_range(q: Number, name: str) -> None:
    """Check that quantiles are in range: known ones now, others at run time."""
    if q.ndim > 1 and not q.size:
        raise ValueError("zero-size array to reduction operation minimum which has no identity")
    message = "Percentiles must be in the range [0, 100]" if "perc" in name else "Quantiles must be in the range [0, 1]"
    if not isinstance(q, TracedArray):
        if not ((q >= 0) & (q <= 1)).all():
            raise ValueError(message)
        return
    quantiles: Number = q
    in_range = reduce_op(np.logical_and, value_of((quantiles >= 0) & (quantiles <= 1)), range(q.ndim))
    zero = require_current().constant(0, np.dtype(np.int64))
    require_current().fail_if(xla.not_(in_range), zero, lambda number: ValueError(message))


def _quantile(
    array: TracedArray, q: Number, weak: bool, axis: Any, out: Any, method: str, keepdims: Any, weights: Any, name: str
) -> Any:
    check_quantiles(array, q, method, weights, name)
    if name.startswith("nan") and not array.size:
        return nanmean(array, axis, out=out, keepdims=keepdims)
    converted_weights = None if weights is None else _convert_weights(as_traced(weights), array, axis)
    lines = SortedLines.of(array, axis, converted_weights)
    if not lines.size:
        raise OutOfRangeError("index -1 is out of bounds for axis 0 with size 0")
    ignores_nan = name.startswith("nan") and array.dtype.kind in "fV"
    if lines.weights is not None:
        quantiles = _weighted_quantiles(lines, lines.weights, as_traced(q), ignores_nan)
    else:
        quantiles = (
            _present_quantiles(lines, q, weak, METHODS[method])
            if ignores_nan
            else _all_quantiles(lines, q, weak, METHODS[method])
        )
    if METHODS[method].weight is None and out is not None and not ignores_nan and lines.weights is None:
        _check_take_out(out, array, q.shape, lines, keepdims)
    if out is None or lines.weights is not None or (METHODS[method].weight is None and not ignores_nan):
        result = _to_out(quantiles, lines, flag(keepdims), q.shape, out, name)
        if weights is not None and out is None:
            result.rank0 = Rank0.ARRAY
        return result
    shaped = TracedArray(xla.reshape(value_of(quantiles), lines.result_shape(flag(keepdims), q.shape)))
    return to_outputs([shaped], out, True, "unsafe" if ignores_nan else "same_kind", "add")  # NumPy's last step


def _check_take_out(
    out: Any, array: TracedArray, leading_shape: Sequence[int], lines: SortedLines, keepdims: Any
) -> None:
    """Refuse an ``out=`` that NumPy does not take elements into."""
    target = out[0] if isinstance(out, tuple) else out
    if tuple(target.shape) != lines.result_shape(flag(keepdims), leading_shape):
        raise ShapeError("output array does not match result of ndarray.take")
    if not np.can_cast(target.dtype, array.dtype, "safe"):
        raise TypeError(f"Cannot cast array data from {target.dtype!r} to {array.dtype!r} according to the rule 'safe'")


def _all_quantiles(lines: SortedLines, q: Number, weak: bool, method: Method) -> TracedArray:
    """Return quantiles [..., count] of all elements; nan for lines that contain nan."""
    virtual_index = method.virtual_index(lines.size, q)
    if isinstance(virtual_index, TracedArray):
        virtual_index = broadcast_to_lines(virtual_index, lines)
    quantiles = interpolate_at(lines, virtual_index, lines.size, weak, method)
    return TracedArray(lines.propagate_nan(value_of(quantiles)))


def _present_quantiles(lines: SortedLines, q: Number, weak: bool, method: Method) -> TracedArray:
    """Return quantiles [..., count] of the elements that are not nan."""
    count: Number = TracedArray(lines.count_present())
    fractions = broadcast_to_lines(as_traced(q), lines)
    size = cast(count, fractions.dtype) if fractions.dtype.kind == "f" else count
    quantiles = interpolate_at(lines, method.virtual_index(size, fractions), size, weak, method)
    op, is_empty = value_of(quantiles), value_of(count == 0)
    return TracedArray(xla.select(broadcast_to(is_empty, op.shape.dims), values.full_like(op, np.nan), op))


def broadcast_to_lines(numbers: TracedArray, lines: SortedLines) -> TracedArray:
    """Broadcast numbers to each line: [..., count]."""
    sizes = numbers.shape
    return TracedArray(xla.broadcast_in_dim(value_of(numbers), (*sizes, lines.count), tuple(range(len(sizes)))))


def interpolate_at(lines: SortedLines, virtual_index: Number, size: Number, weak: bool, method: Method) -> TracedArray:
    """Return the elements at a position among the sorted ones, interpolated by a method."""
    is_integer = np.dtype(virtual_index.dtype).kind in "iu"
    if method.weight is None or (is_integer and method is METHODS["linear"]):
        return lines.take(_clip_indices(virtual_index, lines))
    virtual_index, kind = (
        (virtual_index.astype(np.float64), np.dtype(np.int64))
        if is_integer
        else (virtual_index, np.dtype(virtual_index.dtype))
    )
    floor = np.floor(virtual_index)
    last = size - 1 + 0 * floor
    above, below = virtual_index >= last, virtual_index < 0
    lower, upper = (_where(above, last, _where(below, 0 * floor, f)) for f in (floor, floor + 1))
    gamma = method.weight(virtual_index - lower, virtual_index).astype(
        kind
    )  # NumPy truncates fractions, too, where the dtype is an integer
    low_values, high_values = (
        lines.take(_clip_indices(_to_int64(lower), lines)),
        lines.take(_clip_indices(_to_int64(upper), lines)),
    )
    return _interpolate(low_values, high_values, gamma, weak)


def _clip_indices(indices: Number, lines: SortedLines) -> Number:
    return np.minimum(np.maximum(indices, 0), lines.size - 1)


def _interpolate(low_values: Number, high_values: Number, gamma: Number, weak: bool) -> TracedArray:
    """Interpolate by the weight of the element above, starting from the nearer one."""
    if not isinstance(gamma, TracedArray):
        weight = float(gamma) if weak else gamma.reshape((*gamma.shape, 1))
    else:
        weight = cast(gamma, low_values.dtype if low_values.dtype.kind in "fV" else np.float64) if weak else gamma
    difference = high_values - low_values
    low, high = low_values + difference * weight, high_values - difference * (1 - weight)
    from_upper = value_of(as_traced(weight >= 0.5))
    return TracedArray(
        xla.select(broadcast_to(from_upper, high.shape), convert(value_of(high), low.dtype), value_of(low))
    )


# -- weights


def _convert_weights(weights: TracedArray, array: TracedArray, axis: Any) -> XlaOp:
    """Return a weight for each element, f64."""
    op = broadcast_weights(value_of(weights), array, axis)
    if weights.dtype.kind not in "u":
        _fail_where(xla.lt(op, values.zeros_like(op)), "Weights must be non-negative.")
    return convert(op, np.dtype(np.float64))


def _fail_where(failed: XlaOp, message: str) -> None:
    any_failed = reduce_op(np.logical_or, failed, range(len(failed.shape.dims)))
    zero = require_current().constant(0, np.dtype(np.int64))
    require_current().fail_if(any_failed, zero, lambda number: ValueError(message))


def _weighted_quantiles(lines: SortedLines, weights: XlaOp, q: TracedArray, ignores_nan: bool) -> TracedArray:
    """Return weighted quantiles [..., count]: the first elements at which the cumulative weight reaches a share."""
    if ignores_nan:
        weights = xla.select(xla.ne(lines.op, lines.op), values.zeros_like(weights), weights)
    shares = _cumulative_shares(lines, weights, ignores_nan)
    if q.dtype.kind == "f":
        shares = convert(shares, q.dtype)
    sizes = (*q.shape, *shares.shape.dims)
    quantiles = xla.broadcast_in_dim(value_of(q), sizes, tuple(range(q.ndim)))
    below = xla.lt(broadcast_to(shares, sizes), convert(quantiles, values.numpy_type(shares)))
    indices = reduce_op(np.add, xla.convert(below, ElementType.S64), [len(sizes) - 1])
    result = lines.take(_clip_indices(TracedArray(indices), lines))
    return result if ignores_nan else TracedArray(lines.propagate_nan(value_of(result)))


def _cumulative_shares(lines: SortedLines, weights: XlaOp, ignores_nan: bool) -> XlaOp:
    """Return the cumulative share of the weights; below any quantile where there is none."""
    sums = cumulative(weights, "add", 1)
    last = xla.slice_in_dim(sums, lines.size - 1, lines.size, 1, 1)
    invalid = xla.or_(xla.eq(last, values.zeros_like(last)), xla.not_(xla.is_finite(last)))
    if ignores_nan:
        present = xla.ne(lines.count_present(), values.zeros_like(lines.count_present()))
        invalid = xla.and_(invalid, xla.reshape(present, last.shape.dims))
    _fail_where(invalid, "Weights included NaN, inf or were all zero.")
    shares = xla.divide(sums, broadcast_to(last, sums.shape.dims))
    return xla.select(xla.eq(shares, values.zeros_like(shares)), values.full_like(shares, -1), shares)
