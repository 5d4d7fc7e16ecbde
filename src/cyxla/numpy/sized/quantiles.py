"""Medians and quantiles of arrays of run-time size: padding sorts last, and is not counted."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from cyxla.errors import OutOfRangeError
from cyxla.numpy.functions import quantiles as _quantiles
from cyxla.numpy.functions.quantiles import METHODS, Number, SortedLines
from cyxla.numpy.functions.statistics import mean
from cyxla.numpy.sized.frames import leave_if
from cyxla.numpy.sized.reductions import axes_of, keep
from cyxla.numpy.sized.sorting import last
from cyxla.numpy.sized.table import call, sized
from cyxla.numpy.tracing.arrays.sized_array import SizedArray, filled, product, raise_unsupported
from cyxla.numpy.tracing.arrays.traced_array import TracedArray, as_traced, cast, value_of
from cyxla.numpy.tracing.trace import require_current, user_line
from cyxla.numpy.ufunc_methods.reduce import flag
from cyxla.numpy.ufuncs.apply import broadcast_to
from cyxla.xla.hlo.builder import functions as xla
from cyxla.xla.lib import values

_np: Any = np  # its functions dispatch to this package


def _prepared(arguments: dict[str, Any]) -> tuple[SizedArray, tuple[int, ...]]:
    if arguments.get("out") is not None or arguments.get("weights") is not None:
        raise_unsupported("be passed to np.quantile with out= or weights=")
    array = arguments["a"]
    if not isinstance(array, SizedArray):
        raise_unsupported("be the quantiles of np.quantile")
    axes = axes_of(array, arguments)
    if len(axes) > 1:
        require_current().program.flattened.append(value_of(array.padded).shape)
    return array, axes


def _sorted_lines(array: SizedArray, axes: tuple[int, ...]) -> tuple[SortedLines, Number]:
    """Return the sorted lines and the number of elements of each, not counting padding."""
    lines = SortedLines.of(filled(array, last, axes), axes)
    each = product(array.shape[d] for d in axes)
    count: Any = _np.broadcast_to(each, (lines.count,))
    return lines, TracedArray(value_of(count))


def _finish(result: Any, lines: SortedLines, count: Number, keepdims: Any, leading: tuple[int, ...]) -> Any:
    """Return results [..., count of lines] in the shape of the reduction; nan for lines that contain nan."""
    op = value_of(result)
    if lines.size and (values.is_float(lines.op) or values.is_complex(lines.op)):
        final = value_of(lines.take(_np.maximum(count - 1, 0)))
        has_nan = xla.and_(xla.ne(final, final), value_of(_np.greater(count, 0)))
        replaced = broadcast_to(value_of(cast(TracedArray(final), values.numpy_type(op))), op.shape.dims)
        op = xla.select(broadcast_to(has_nan, op.shape.dims), replaced, op)
    return TracedArray(xla.reshape(op, lines.result_shape(flag(keepdims), leading)))


@sized(np.median)
def median(func: Callable[..., Any], arguments: dict[str, Any]) -> Any:
    """Compute the median."""
    array, axes = _prepared(arguments)
    keepdims = arguments.get("keepdims", False)
    if not array.counts.keys() & set(axes):
        return keep(array, call(func, {**arguments, "a": array.padded}), axes, keepdims)
    lines, count = _sorted_lines(array, axes)
    if not lines.size:
        return keep(array, func(array.padded, axes, keepdims=flag(keepdims)), axes, keepdims)
    pair = [value_of(lines.take(_np.clip(k, 0, lines.size - 1))) for k in ((count - 1) // 2, count // 2)]
    middle = TracedArray(xla.concatenate([xla.reshape(p, (1, lines.count)) for p in pair], 0))
    result = value_of(mean(middle, 0))
    is_empty = value_of(_np.equal(count, 0))
    result = xla.select(is_empty, values.full_like(result, np.nan), result)
    return keep(array, _finish(TracedArray(result), lines, count, keepdims, ()), axes, keepdims)


@sized(np.quantile, np.percentile)
def quantile(func: Callable[..., Any], arguments: dict[str, Any]) -> Any:
    """Compute quantiles or percentiles."""
    array, axes = _prepared(arguments)
    name, keepdims = func.__name__, arguments.get("keepdims", False)
    q = (_quantiles.parse_percentiles if name == "percentile" else _quantiles.parse_quantiles)(arguments["q"])
    method = arguments.get("method", "linear")
    if not array.counts.keys() & set(axes):
        return keep(array, call(func, {**arguments, "a": array.padded}), axes, keepdims, q.ndim)
    _quantiles.check_quantiles(array.padded, q, method, None, name)
    lines, count = _sorted_lines(array, axes)
    if q.size or array.dtype.kind == "f":  # NumPy reads the last element of floats, which may be nan
        _fail_if_empty(product(array.shape[d] for d in axes))
    fractions = _quantiles.broadcast_to_lines(as_traced(q), lines)
    size = cast(count, fractions.dtype) if fractions.dtype.kind == "f" else count
    virtual_index = METHODS[method].virtual_index(size, fractions)
    weak = _quantiles.is_weak(arguments["q"])
    result = _quantiles.interpolate_at(lines, virtual_index, size, weak, METHODS[method])
    return keep(array, _finish(result, lines, count, keepdims, q.shape), axes, keepdims, q.ndim)


def _fail_if_empty(count: Any) -> None:
    """Make runs fail in which lines, of which there may be none, have no elements."""
    where, trace = user_line(), require_current()
    is_empty = value_of(as_traced(_np.equal(count, 0)))
    trace.fail_if(is_empty, trace.constant(0, np.dtype(np.int64)), lambda n: OutOfRangeError(
        "index -1 is out of bounds for axis 0 with size 0", where=where))  # fmt: skip


@sized(np.nanmedian, np.nanquantile, np.nanpercentile)
def ignoring_nan(func: Callable[..., Any], arguments: dict[str, Any]) -> Any:
    """Compute medians or quantiles of the elements that are not nan; padding is nan."""
    array, axes = _prepared(arguments)
    leading = np.ndim(arguments.get("q", 0))
    is_number = array.counts.keys() & set(axes) and array.dtype.kind not in "fV"
    if leading or is_number or isinstance(arguments.get("axis"), list):
        # NumPy takes the mean of an array without elements: it drops the dimensions of q, and takes no list of axes.
        leave_if(_np.equal(array.size, 0), f"np.{func.__name__} takes the mean of an array without elements")
    if is_number:
        return getattr(np, func.__name__.removeprefix("nan"))(**arguments)
    data = filled(array, np.nan, axes) if array.dtype.kind in "fV" else array.padded
    result = call(func, {**arguments, "a": data})
    return keep(array, result, axes, arguments.get("keepdims", False), leading)
