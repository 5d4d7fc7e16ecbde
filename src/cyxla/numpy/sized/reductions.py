"""Reductions: of the padded elements with a mask, or with padding that changes nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from cyxla.errors import ShapeError
from cyxla.numpy.sized.elementwise import align_arguments
from cyxla.numpy.sized.frames import fail_unless, rank_of, require_equal, require_same_shape, shape_of, wrapped
from cyxla.numpy.sized.movement import broadcast_to_sizes
from cyxla.numpy.sized.table import call, sized
from cyxla.numpy.tracing.arrays.sized_array import SizedArray, as_size, filled, raise_unsupported, valid
from cyxla.numpy.tracing.arrays.traced_array import TracedArray, as_traced, is_traced, value_of
from cyxla.numpy.tracing.results.result_layout import set_reduced_layout
from cyxla.numpy.tracing.trace import require_current
from cyxla.numpy.ufunc_methods.reduce import NOT_GIVEN, REDUCTIONS, flag, reduction_axes, selects_all

_np: Any = np  # its functions dispatch to this package


def axes_of(array: SizedArray, arguments: dict[str, Any], default: Any = None) -> tuple[int, ...]:
    """Return the dimensions that a call reduces."""
    axis = arguments.get("axis", default)
    return reduction_axes(tuple(axis) if isinstance(axis, list) else axis, array.ndim)


def keep(array: SizedArray, result: Any, axes: tuple[int, ...], keepdims: Any, leading: int = 0) -> Any:
    """Return a result of a reduction as an array of the run-time sizes of the dimensions that are left."""
    counts = {
        d + leading - (0 if flag(keepdims) else sum(a < d for a in axes)): n
        for d, n in array.counts.items()
        if d not in axes
    }
    return wrapped(result, counts)


def _require_no_out(array: SizedArray, arguments: dict[str, Any]) -> None:
    if arguments.get("out") is not None:
        raise_unsupported("be computed with out=", "use the result")


def fail_if_empty(
    array: SizedArray, message: str, axes: Iterable[int] | None = None, kind: type[Exception] = ShapeError
) -> None:
    """Make runs fail in which some dimensions, by default all, have no elements."""
    for d, n in array.counts.items():
        if axes is None or d in axes:
            is_empty = value_of(_np.equal(n, 0))
            require_current().fail_if(is_empty, value_of(n), lambda _: kind(message))


def _aligned_where(arguments: dict[str, Any], name: str) -> tuple[Any, dict[str, Any]]:
    """Return the array of a reduction, and the arguments with a mask of its padded shape."""
    if selects_all(arguments.get("where", NOT_GIVEN)):
        return arguments[name], arguments
    aligned, frame = align_arguments(arguments, (name, "where"))
    array = frame.wrap(aligned[name])
    message = "where= of size {1} cannot be broadcast to the size {0} of the array"
    for n, size in zip(reversed(shape_of(arguments[name])), reversed(shape_of(array)), strict=False):
        if isinstance(n, TracedArray) or isinstance(size, TracedArray):
            require_equal(n, size, message)
    return array, aligned


@sized(
    np.sum, np.prod, np.any, np.all, np.mean, np.var, np.std, np.nansum, np.nanprod, np.nanmean, np.nanvar, np.nanstd
)
def masked(func: Callable[..., Any], arguments: dict[str, Any]) -> Any:
    """Reduce with a mask of the elements that are not padding."""
    array, arguments = _aligned_where(arguments, "a")
    if not isinstance(array, SizedArray):
        return call(func, {**arguments, "a": array})
    axes = axes_of(array, arguments)
    options, reduced = {**arguments, "a": array.padded}, [d for d in axes if d in array.counts]
    if len(reduced) < len(array.counts):
        _require_no_out(array, arguments)
    if reduced:
        mask: Any = valid(array, reduced)
        selected = arguments.get("where", NOT_GIVEN)
        options["where"] = mask if selects_all(selected) else _np.logical_and(mask, selected)
    return keep(array, call(func, options), axes, arguments.get("keepdims", False))


@sized(np.count_nonzero)
def count_nonzero(func: Callable[..., Any], arguments: dict[str, Any]) -> Any:
    """Count the elements that are not zero."""
    is_nonzero = _np.not_equal(arguments["a"], 0)
    options = {n: arguments[n] for n in ("axis", "keepdims") if n in arguments}
    return _np.sum(is_nonzero, dtype=np.int64, **options)


_EXTREMES = {"max": np.maximum, "amax": np.maximum, "min": np.minimum, "amin": np.minimum,
             "nanmax": np.maximum, "nanmin": np.minimum, "argmax": np.maximum, "argmin": np.minimum,
             "nanargmax": np.maximum, "nanargmin": np.minimum}  # fmt: skip


def _filler(func: Callable[..., Any], array: SizedArray) -> Any:
    name = func.__name__
    if name.startswith("nan") and array.dtype.kind in "fcV":
        return np.nan
    return REDUCTIONS[_EXTREMES[name]].start


def _empty_message(func: Callable[..., Any]) -> str:
    name = func.__name__
    if "arg" in name:
        return f"attempt to get {name.removeprefix('nan')} of an empty sequence"
    ufunc = _EXTREMES[name].__name__
    ufunc = ufunc if not name.startswith("nan") else ufunc.replace("imum", "").replace("m", "fm", 1)
    return f"zero-size array to reduction operation {ufunc} which has no identity"


@sized(np.max, np.min, np.amax, np.amin, np.nanmax, np.nanmin)
def extreme(func: Callable[..., Any], arguments: dict[str, Any]) -> Any:
    """Compute a maximum or minimum."""
    array, arguments = _aligned_where(arguments, "a")
    if not isinstance(array, SizedArray):
        return call(func, {**arguments, "a": array})
    axes = axes_of(array, arguments)
    if not array.counts.keys() <= set(axes):
        _require_no_out(array, arguments)
    has_initial = arguments.get("initial", NOT_GIVEN) not in (NOT_GIVEN, None) if not isinstance(
        arguments.get("initial"), TracedArray) else True  # fmt: skip
    if not has_initial and selects_all(arguments.get("where", NOT_GIVEN)):
        fail_if_empty(array, _empty_message(func), axes)
    result = call(func, {**arguments, "a": filled(array, _filler(func, array), axes)})
    if arguments.get("out") is None:
        set_reduced_layout(result, array.padded.memory, axes)
    return keep(array, result, axes, arguments.get("keepdims", False))


@sized(np.argmax, np.argmin, np.nanargmax, np.nanargmin)
def arg_extreme(func: Callable[..., Any], arguments: dict[str, Any]) -> Any:
    """Return the index of an extreme."""
    array = arguments["a"]
    if arguments.get("axis") is None and array.ndim > 1:
        if flag(arguments.get("keepdims", False)):
            raise_unsupported(f"be passed to np.{func.__name__} with keepdims", "reshape the result")
        array = _np.ravel(array)
    axes = axes_of(array, arguments)
    if not array.counts.keys() <= set(axes):
        _require_no_out(array, arguments)
    fail_if_empty(array, _empty_message(func), axes)
    data = filled(array, _filler(func, array), axes)
    others = array.counts.keys() - set(axes)
    if others and func.__name__.startswith("nan"):  # of which none may consist of nan
        data = filled(array.like(data), 0, others)
    result = call(func, {**arguments, "a": data})
    return keep(array, result, axes, arguments.get("keepdims", False))


@sized(np.ptp)
def ptp(func: Callable[..., Any], arguments: dict[str, Any]) -> Any:
    """Compute maximum minus minimum."""
    array, options = arguments["a"], {n: arguments[n] for n in ("axis", "keepdims") if n in arguments}
    return _np.subtract(_np.max(array, **options), _np.min(array, **options))


# -- cumulative functions: an element depends on those before it, never on padding


@sized(np.cumsum, np.cumprod, np.nancumsum, np.nancumprod)
def cumulative(func: Callable[..., Any], arguments: dict[str, Any]) -> Any:
    """Compute cumulative sums or products."""
    _require_no_out(arguments["a"], arguments)
    array = arguments["a"] if arguments.get("axis") is not None else _np.ravel(arguments["a"])
    axis = arguments.get("axis")
    return array.like(call(func, {**arguments, "a": array.padded, "axis": 0 if axis is None else axis}))


@sized(np.cumulative_sum, np.cumulative_prod)
def array_api_cumulative(func: Callable[..., Any], arguments: dict[str, Any]) -> Any:
    """Compute cumulative sums or products, starting with the identity on request."""
    array = arguments["x"]
    data = call(func, {**arguments, "x": array.padded})
    axis = (arguments.get("axis") or 0) % array.ndim
    if not arguments.get("include_initial") or axis not in array.counts:
        return array.like(data)
    more = as_size(as_traced(array.counts[axis] + 1), data.shape[axis])
    return SizedArray(data, {**array.counts, axis: more})


@sized(np.average)
def average(func: Callable[..., Any], arguments: dict[str, Any]) -> Any:
    """Compute weighted averages: sums of products over sums of weights."""
    if arguments.get("weights") is None:
        return _unweighted_average(func, arguments)
    message = "Shape of weights must be consistent with shape of a along specified axis."
    operands = arguments["a"], arguments["weights"]
    if arguments.get("axis") is None:
        require_same_shape(operands, "Axis must be specified when shapes of a and weights differ.", TypeError)
    else:
        order = _axes_in_order(arguments["axis"], rank_of(operands[0]))
        if rank_of(operands[0]) == rank_of(operands[1]) and order == sorted(order):
            require_same_shape(operands, message, ValueError)
        else:
            arguments = {**arguments, "weights": _weights_of_all(*operands, order, message)}
    aligned, frame = align_arguments(arguments, ("a", "weights"))
    array, weights = (frame.wrap(aligned[n]) for n in ("a", "weights"))
    if not isinstance(array, SizedArray):
        return call(func, aligned)
    if not isinstance(weights, SizedArray):
        raise_unsupported("be averaged with weights of another rank", "broadcast the weights")
    axes = axes_of(array, arguments)
    weights = filled(weights.like(filled(weights, 0, axes)), 1, set(range(array.ndim)) - set(axes))
    result = call(func, {**arguments, "a": filled(array, 0), "weights": weights})
    keepdims = arguments.get("keepdims", False)
    return (tuple([keep(array, r, axes, keepdims) for r in result]) if isinstance(result, tuple)
            else keep(array, result, axes, keepdims))  # fmt: skip


def _axes_in_order(axis: Any, rank: int) -> list[int]:
    """Return the dimensions that an argument names, in its order."""
    axes = reduction_axes(axis, rank)
    return [int(d) % rank for d in axis] if isinstance(axis, tuple) else list(axes)


def _weights_of_all(array: Any, weights: Any, axes: Sequence[int], message: str) -> Any:
    """Return a weight for each element of an array; the given ones are for the elements along some axes."""
    sizes = shape_of(array)
    weights = weights if isinstance(weights, SizedArray) else as_traced(weights)
    if weights.ndim != len(axes):
        raise ValueError(message)
    for n, d in zip(weights.shape, axes, strict=True):
        if is_traced(n) or is_traced(sizes[d]):
            require_equal(n, sizes[d], message, ValueError)
        elif n != sizes[d]:
            raise ValueError(message)
    zero = "Weights sum to zero, can't be normalized"
    fail_unless(_np.not_equal(_np.sum(weights), 0), 0, 0, zero, ZeroDivisionError)
    in_order = _np.transpose(weights, [int(k) for k in np.argsort(axes)])
    spread = in_order[tuple([slice(None) if d in axes else None for d in range(len(sizes))])]
    return broadcast_to_sizes(spread, list(sizes))


def _unweighted_average(func: Callable[..., Any], arguments: dict[str, Any]) -> Any:
    array = arguments["a"]
    options: dict[str, Any] = {n: arguments[n] for n in ("axis", "keepdims") if n in arguments}
    mean: Any = _np.mean(array, **options)
    kept = set(range(array.ndim)) - set(axes_of(array, options))
    fail_if_empty(array, "division by zero", kept, ZeroDivisionError)  # the number of elements by that of averages
    if not arguments.get("returned"):
        return mean
    counts: Any = _np.sum(_np.ones_like(array, dtype=mean.dtype), **options)
    return mean, counts
