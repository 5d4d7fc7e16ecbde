"""Medians, quantiles and percentiles."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np

from cyxla.errors import DTypeError, OutOfRangeError, ShapeError
from cyxla.numpy.functions.sorting import take_each
from cyxla.numpy.functions.statistics import mean, nanmean, spread_weights
from cyxla.numpy.functions.total_order import sort_together
from cyxla.numpy.tracing.conversion import convert
from cyxla.numpy.tracing.registry import implements
from cyxla.numpy.tracing.trace import require_current, user_line
from cyxla.numpy.tracing.traced_array import TracedArray, as_traced, cast, value_of
from cyxla.numpy.tracing.zero_dim import Rank0
from cyxla.numpy.ufunc_methods.cumulative import cumulative
from cyxla.numpy.ufunc_methods.reduce import (
    NOT_GIVEN,
    axes_of,
    flag,
    kept_sizes,
    known_values,
    reduce_op,
    reduction_to_out,
)
from cyxla.numpy.ufuncs.apply import broadcast_to, broadcast_together, to_outputs
from cyxla.types import ElementType
from cyxla.xla.hlo.builder import XlaOp
from cyxla.xla.hlo.builder import functions as xla
from cyxla.xla.lib import values

Number = Any  # a NumPy array if known while tracing, else a traced one


# -- sorted lines


@dataclass(frozen=True)
class Lines:
    """Array as sorted lines along the reduced axes.

    Attributes
    ----------
    op : XlaOp
        Sorted lines: [count, size].
    rest : tuple of int
        Sizes of the remaining axes.
    kept : tuple of int
        Shape of the array with 1 for the reduced axes.
    weights : XlaOp or None
        Weights sorted with the elements: [count, size].
    """

    op: XlaOp
    rest: tuple[int, ...]
    kept: tuple[int, ...]
    weights: XlaOp | None = None

    @staticmethod
    def of(array: TracedArray, axis: Any, weights: XlaOp | None = None) -> Lines:
        """Return the sorted lines along axes."""
        axes = axes_of(tuple(axis) if isinstance(axis, list) else axis, array.ndim, of_scalars=False)
        others = [d for d in range(array.ndim) if d not in axes]
        rest = tuple(array.shape[d] for d in others)
        size = prod(array.shape[d] for d in axes)
        given = [value_of(array)] if weights is None else [value_of(array), weights]
        ops = [xla.reshape(xla.transpose(op, (*others, *axes)), (prod(rest), size)) for op in given]
        made = sort_together(ops, 1)
        return Lines(made[0], rest, kept_sizes(array.shape, axes), made[1] if len(made) > 1 else None)

    @property
    def count(self) -> int:
        """Number of lines."""
        return self.op.shape.dims[0]

    @property
    def size(self) -> int:
        """Number of elements in a line."""
        return self.op.shape.dims[1]

    def column(self, place: int) -> XlaOp:
        """Return the element at an index in each line."""
        return xla.reshape(xla.slice_in_dim(self.op, place, place + 1, 1, 1), (self.count,))

    def at(self, places: Number) -> TracedArray:
        """Return elements at indices: of a NumPy array, the same in every line; of a traced one, [..., count]."""
        if not self.count:
            before = places.shape[:-1] if isinstance(places, TracedArray) else places.shape
            return TracedArray(xla.broadcast(values.scalar(self.op, 0), (*before, 0)))
        if not isinstance(places, TracedArray):
            columns = [xla.reshape(self.column(int(p)), (1, self.count)) for p in places.ravel()]
            if not columns:
                return TracedArray(xla.reshape(xla.slice_in_dim(self.op, 0, 0, 1, 1), (*places.shape, self.count)))
            whole = columns[0] if len(columns) == 1 else xla.concatenate(columns, 0)
            return TracedArray(xla.reshape(whole, (*places.shape, self.count)))
        op = convert(value_of(places), np.dtype(np.int64))
        starts = values.iota_along(op.builder, ElementType.S64, op.shape.dims, len(op.shape.dims) - 1)
        flat = xla.reshape(self.op, (self.count * self.size,))
        return TracedArray(take_each(flat, xla.add(xla.multiply(starts, values.full_like(starts, self.size)), op)))

    def with_nan(self, made: XlaOp) -> XlaOp:
        """Replace results [..., count] by nan for lines that contain nan."""
        if not (values.is_float(self.op) or values.is_complex(self.op)) or not self.size:
            return made
        last = self.column(self.size - 1)
        bad = broadcast_to(xla.ne(last, last), made.shape.dims)
        return xla.select(bad, broadcast_to(convert(last, values.numpy_type(made)), made.shape.dims), made)

    def present(self) -> XlaOp:
        """Number of elements in each line that are not nan, s64[count]."""
        there = xla.convert(xla.eq(self.op, self.op), ElementType.S64)
        return reduce_op(np.add, there, [1])

    def sizes(self, keepdims: bool, before: Sequence[int] = ()) -> tuple[int, ...]:
        """Return the shape of the results."""
        return (*before, *(self.kept if keepdims else self.rest))


# -- medians


@implements(np.median)
def median(a: Any, axis: Any = None, out: Any = None, overwrite_input: bool = False, keepdims: Any = False) -> Any:
    """Compute the median."""
    lines = Lines.of(as_traced(a), axis)
    first, last = max((lines.size - 1) // 2, 0), lines.size // 2 + 1
    middle = TracedArray(xla.slice_in_dim(lines.op, first, min(last, lines.size), 1, 1))
    made = lines.with_nan(value_of(mean(middle, 1)))
    return _to_out(TracedArray(made), lines, flag(keepdims), (), out, "median")


@implements(np.nanmedian)
def nanmedian(
    a: Any, axis: Any = None, out: Any = None, overwrite_input: bool = False, keepdims: Any = NOT_GIVEN
) -> Any:
    """Compute the median, ignoring nan."""
    array = as_traced(a)
    if array.dtype.kind not in "fcV" or not array.size:
        return (median if array.size else _empty_mean)(array, axis, out=out, keepdims=keepdims)
    lines = Lines.of(array, axis)
    count: Number = TracedArray(lines.present())
    low, high = _within(count - 1, lines) // 2, _within(count, lines) // 2
    pair = [xla.reshape(value_of(lines.at(p)), (1, lines.count)) for p in (low, high)]
    made = value_of(mean(TracedArray(xla.concatenate(pair, 0)), 0))
    return to_outputs([TracedArray(xla.reshape(made, lines.sizes(flag(keepdims))))], out, True, "unsafe", "nanmedian")


def _empty_mean(array: TracedArray, axis: Any, out: Any, keepdims: Any) -> Any:
    return nanmean(array, axis, out=out, keepdims=keepdims)


def _within(places: Number, lines: Lines) -> Number:
    op = value_of(places)
    return TracedArray(xla.clamp(values.scalar(op, 0), op, values.scalar(op, max(2 * lines.size - 1, 0))))


def _to_out(
    made: TracedArray, lines: Lines, keepdims: bool, before: Sequence[int], out: Any, name: str
) -> Any:  # fmt: skip
    shaped = TracedArray(xla.reshape(value_of(made), lines.sizes(keepdims, before)))
    return reduction_to_out(value_of(shaped), out, name)


# -- interpolation methods


def _where(test: Number, yes: Any, no: Any) -> Number:
    if not any(isinstance(x, TracedArray) for x in (test, yes, no)):
        return np.where(test, yes, no)
    like = next((x for x in (yes, no) if isinstance(x, TracedArray)), None)
    dtype = like.dtype if like is not None else np.asarray(yes).dtype
    ops = [value_of(as_traced(test)), value_of(as_traced(yes, dtype)), value_of(as_traced(no, dtype))]
    return TracedArray(xla.select(*broadcast_together(ops, "where")))


def _whole(x: Number) -> Number:
    return x.astype(np.int64)


def _stepwise(place: Number, down: Callable[[Number, Number], Number]) -> Number:
    """Return the element below a position if `down` holds for the distance to it, else the one above."""
    floor = np.floor(place)
    found = _whole(_where(down(place - floor, floor), floor, floor + 1))
    return np.maximum(found, 0)


def _between(low: float, high: float) -> Callable[[Number, Number], Number]:
    return lambda n, q: n * q + (low + q * (1 - low - high)) - 1


def _last(n: Number, q: Number) -> Number:
    return (n - 1) * q


def _as_it_is(gamma: Number, place: Number) -> Number:
    return gamma


@dataclass(frozen=True)
class Method:
    """Method of interpolation between sorted elements.

    Attributes
    ----------
    place : callable
        Function from the number of elements and a quantile to a position among the sorted elements.
    weight : callable or None
        Function from the distance to the element below, and the position, to the weight of the element above; None if
        positions are integers.
    """

    place: Callable[[Number, Number], Number]
    weight: Callable[[Number, Number], Number] | None = _as_it_is


METHODS: dict[str, Method] = {
    "inverted_cdf": Method(lambda n, q: _stepwise(n * q - 1, lambda g, f: g == 0), None),
    "averaged_inverted_cdf": Method(lambda n, q: n * q - 1, lambda g, place: _where(g == 0, 0.5 + 0 * g, 1 + 0 * g)),
    "closest_observation": Method(
        lambda n, q: _stepwise(n * q - 1 - 0.5, lambda g, f: (g == 0) & (f % 2 == 1)), None
    ),
    "interpolated_inverted_cdf": Method(_between(0, 1)),
    "hazen": Method(_between(0.5, 0.5)),
    "weibull": Method(_between(0, 0)),
    "linear": Method(_last),
    "median_unbiased": Method(_between(1 / 3, 1 / 3)),
    "normal_unbiased": Method(_between(3 / 8, 3 / 8)),
    "lower": Method(lambda n, q: _whole(np.floor(_last(n, q))), None),
    "higher": Method(lambda n, q: _whole(np.ceil(_last(n, q))), None),
    "midpoint": Method(
        lambda n, q: 0.5 * (np.floor(_last(n, q)) + np.ceil(_last(n, q))),
        lambda g, place: _where(place % 1 == 0, 0 * g, 0.5 + 0 * g),
    ),
    "nearest": Method(lambda n, q: _whole(np.rint(_last(n, q))), None),
}  # fmt: skip


# -- quantiles


@implements(np.quantile)
def quantile(
    a: Any, q: Any, axis: Any = None, out: Any = None, overwrite_input: bool = False, method: str = "linear",
    keepdims: Any = False, *, weights: Any = None,
) -> Any:  # fmt: skip
    """Compute quantiles."""
    return _quantile(as_traced(a), _exact(q), _weak(q), axis, out, method, keepdims, weights, "quantile")


@implements(np.percentile)
def percentile(
    a: Any, q: Any, axis: Any = None, out: Any = None, overwrite_input: bool = False, method: str = "linear",
    keepdims: Any = False, *, weights: Any = None,
) -> Any:  # fmt: skip
    """Compute percentiles."""
    return _quantile(as_traced(a), _hundredth(q), _weak(q), axis, out, method, keepdims, weights, "percentile")


@implements(np.nanquantile)
def nanquantile(
    a: Any, q: Any, axis: Any = None, out: Any = None, overwrite_input: bool = False, method: str = "linear",
    keepdims: Any = NOT_GIVEN, *, weights: Any = None,
) -> Any:  # fmt: skip
    """Compute quantiles, ignoring nan."""
    return _quantile(as_traced(a), _exact(q), _weak(q), axis, out, method, keepdims, weights, "nanquantile")


@implements(np.nanpercentile)
def nanpercentile(
    a: Any, q: Any, axis: Any = None, out: Any = None, overwrite_input: bool = False, method: str = "linear",
    keepdims: Any = NOT_GIVEN, *, weights: Any = None,
) -> Any:  # fmt: skip
    """Compute percentiles, ignoring nan."""
    return _quantile(as_traced(a), _hundredth(q), _weak(q), axis, out, method, keepdims, weights, "nanpercentile")


def _exact(q: Any) -> Number:
    known = known_values(q)
    if known is not None and known.dtype.kind == "O":
        raise DTypeError("quantiles that are objects cannot be compiled", where=user_line(), hint="float(q)")
    return as_traced(q) if known is None else known


def _hundredth(q: Any) -> Number:
    made = np.true_divide(_exact(q), 100)
    return made if isinstance(made, TracedArray) else np.asarray(made)


def _weak(q: Any) -> bool:
    return q.weak in (int, float) if isinstance(q, TracedArray) else type(q) in (int, float)


def _check(array: TracedArray, q: Number, method: str, weights: Any, name: str) -> None:
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
    what = "Percentiles must be in the range [0, 100]" if "perc" in name else "Quantiles must be in the range [0, 1]"
    if not isinstance(q, TracedArray):
        if not ((q >= 0) & (q <= 1)).all():
            raise ValueError(what)
        return
    given: Number = q
    good = reduce_op(np.logical_and, value_of((given >= 0) & (given <= 1)), range(q.ndim))
    nothing = require_current().constant(0, np.dtype(np.int64))
    require_current().fail_if(xla.not_(good), nothing, lambda number: ValueError(what))


def _quantile(
    array: TracedArray, q: Number, weak: bool, axis: Any, out: Any, method: str, keepdims: Any, weights: Any, name: str
) -> Any:
    _check(array, q, method, weights, name)
    if name.startswith("nan") and not array.size:
        return nanmean(array, axis, out=out, keepdims=keepdims)
    given = None if weights is None else _checked_weights(as_traced(weights), array, axis)
    lines = Lines.of(array, axis, given)
    if not lines.size and lines.count:
        raise OutOfRangeError("index -1 is out of bounds for axis 0 with size 0")
    skips = name.startswith("nan") and array.dtype.kind in "fV"
    if lines.weights is not None:
        made = _of_weighted(lines, lines.weights, as_traced(q), skips)
    else:
        made = _of_present(lines, q, weak, METHODS[method]) if skips else _of_all(lines, q, weak, METHODS[method])
    if METHODS[method].weight is None and out is not None and not skips and lines.weights is None:
        _check_taken(out, array, q.shape, lines, keepdims)
    if out is None or lines.weights is not None or (METHODS[method].weight is None and not skips):
        result = _to_out(made, lines, flag(keepdims), q.shape, out, name)
        if weights is not None and out is None:
            result.rank0 = Rank0.ARRAY
        return result
    shaped = TracedArray(xla.reshape(value_of(made), lines.sizes(flag(keepdims), q.shape)))
    return to_outputs([shaped], out, True, "unsafe" if skips else "same_kind", "add")  # NumPy's last step


def _check_taken(out: Any, array: TracedArray, before: Sequence[int], lines: Lines, keepdims: Any) -> None:
    """Refuse an ``out=`` that NumPy does not take elements into."""
    target = out[0] if isinstance(out, tuple) else out
    if tuple(target.shape) != lines.sizes(flag(keepdims), before):
        raise ShapeError("output array does not match result of ndarray.take")
    if not np.can_cast(target.dtype, array.dtype, "safe"):
        raise TypeError(f"Cannot cast array data from {target.dtype!r} to {array.dtype!r} according to the rule 'safe'")


def _of_all(lines: Lines, q: Number, weak: bool, method: Method) -> TracedArray:
    """Return quantiles [..., count] of all elements; nan for lines that contain nan."""
    spot = method.place(lines.size, q)
    if isinstance(spot, TracedArray):
        spot = _under(spot, lines)
    made = _found(lines, spot, lines.size, weak, method)
    return TracedArray(lines.with_nan(value_of(made)))


def _of_present(lines: Lines, q: Number, weak: bool, method: Method) -> TracedArray:
    """Return quantiles [..., count] of the elements that are not nan."""
    count: Number = TracedArray(lines.present())
    parts = _under(as_traced(q), lines)
    size = cast(count, parts.dtype) if parts.dtype.kind == "f" else count
    made = _found(lines, method.place(size, parts), size, weak, method)
    op, nothing = value_of(made), value_of(count == 0)
    return TracedArray(xla.select(broadcast_to(nothing, op.shape.dims), values.full_like(op, np.nan), op))


def _under(parts: TracedArray, lines: Lines) -> TracedArray:
    """Broadcast numbers to each line: [..., count]."""
    sizes = parts.shape
    return TracedArray(xla.broadcast_in_dim(value_of(parts), (*sizes, lines.count), tuple(range(len(sizes)))))


def _found(lines: Lines, spot: Number, size: Number, weak: bool, method: Method) -> TracedArray:
    whole = np.dtype(spot.dtype).kind in "iu"
    if method.weight is None or (whole and method is METHODS["linear"]):
        return lines.at(_clipped(spot, lines))
    spot, kind = (spot.astype(np.float64), np.dtype(np.int64)) if whole else (spot, np.dtype(spot.dtype))
    floor = np.floor(spot)
    last = size - 1 + 0 * floor
    above, below = spot >= last, spot < 0
    one, other = (_where(above, last, _where(below, 0 * floor, f)) for f in (floor, floor + 1))
    gamma = method.weight(spot - one, spot).astype(kind)  # half of an integer is truncated, as in NumPy
    before, behind = lines.at(_clipped(_whole(one), lines)), lines.at(_clipped(_whole(other), lines))
    return _mixed(before, behind, gamma, weak)


def _clipped(places: Number, lines: Lines) -> Number:
    return np.minimum(np.maximum(places, 0), lines.size - 1)


def _mixed(before: Number, behind: Number, gamma: Number, weak: bool) -> TracedArray:
    """Interpolate by the weight of the element above, starting from the nearer one."""
    if not isinstance(gamma, TracedArray):
        weight = float(gamma) if weak else gamma.reshape((*gamma.shape, 1))
    else:
        weight = cast(gamma, before.dtype if before.dtype.kind in "fV" else np.float64) if weak else gamma
    apart = behind - before
    low, high = before + apart * weight, behind - apart * (1 - weight)
    near = value_of(as_traced(weight >= 0.5))
    return TracedArray(xla.select(broadcast_to(near, high.shape), convert(value_of(high), low.dtype), value_of(low)))


# -- weights


def _checked_weights(weights: TracedArray, array: TracedArray, axis: Any) -> XlaOp:
    """Return a weight for each element, f64."""
    op = spread_weights(value_of(weights), array, axis)
    if weights.dtype.kind not in "u":
        _fail_where(xla.lt(op, values.zeros_like(op)), "Weights must be non-negative.")
    return convert(op, np.dtype(np.float64))


def _fail_where(bad: XlaOp, text: str) -> None:
    some = reduce_op(np.logical_or, bad, range(len(bad.shape.dims)))
    nothing = require_current().constant(0, np.dtype(np.int64))
    require_current().fail_if(some, nothing, lambda number: ValueError(text))


def _of_weighted(lines: Lines, weights: XlaOp, q: TracedArray, skips: bool) -> TracedArray:
    """Return weighted quantiles [..., count]: the first elements at which the cumulative weight reaches a share."""
    if skips:
        weights = xla.select(xla.ne(lines.op, lines.op), values.zeros_like(weights), weights)
    parts = _parts_of_all(lines, weights, skips)
    if q.dtype.kind == "f":
        parts = convert(parts, q.dtype)
    sizes = (*q.shape, *parts.shape.dims)
    wanted = xla.broadcast_in_dim(value_of(q), sizes, tuple(range(q.ndim)))
    less = xla.lt(broadcast_to(parts, sizes), convert(wanted, values.numpy_type(parts)))
    place = reduce_op(np.add, xla.convert(less, ElementType.S64), [len(sizes) - 1])
    made = lines.at(_clipped(TracedArray(place), lines))
    return made if skips else TracedArray(lines.with_nan(value_of(made)))


def _parts_of_all(lines: Lines, weights: XlaOp, skips: bool) -> XlaOp:
    """Return the cumulative share of the weights; below any quantile where there is none."""
    sums = cumulative(weights, "add", 1)
    last = xla.slice_in_dim(sums, lines.size - 1, lines.size, 1, 1)
    bad = xla.or_(xla.eq(last, values.zeros_like(last)), xla.not_(xla.is_finite(last)))
    if skips:
        present = xla.ne(lines.present(), values.zeros_like(lines.present()))
        bad = xla.and_(bad, xla.reshape(present, last.shape.dims))
    _fail_where(bad, "Weights included NaN, inf or were all zero.")
    parts = xla.divide(sums, broadcast_to(last, sums.shape.dims))
    return xla.select(xla.eq(parts, values.zeros_like(parts)), values.full_like(parts, -1), parts)
