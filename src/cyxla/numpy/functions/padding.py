"""``numpy.pad``: one dimension after the other, as NumPy does it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from cyxla.errors import UnimplementedError
from cyxla.numpy.functions.joining import concatenate, require_known, take_indices
from cyxla.numpy.functions.movement import flip
from cyxla.numpy.tracing import trace as _trace
from cyxla.numpy.tracing.arrays.traced_array import TracedArray, as_strong, as_traced, value_of
from cyxla.numpy.tracing.registry import implements
from cyxla.numpy.tracing.results.conversion import convert
from cyxla.numpy.ufunc_methods.reduce import known_values
from cyxla.numpy.ufuncs.apply import broadcast_to as broadcast_op
from cyxla.xla.hlo.builder import XlaOp
from cyxla.xla.hlo.builder import functions as xla

Array = TracedArray
Widths = tuple[int, int]
_KEYWORDS = {
    "empty": "", "edge": "", "wrap": "", "constant": "constant_values", "linear_ramp": "end_values",
    "maximum": "stat_length", "mean": "stat_length", "median": "stat_length", "minimum": "stat_length",
    "reflect": "reflect_type", "symmetric": "reflect_type",
}  # fmt: skip
_STATISTICS: dict[str, Callable[..., Any]] = {
    "maximum": np.max, "minimum": np.min, "mean": np.mean, "median": np.median,
}  # fmt: skip


@implements(np.pad, note="mode may not be a function")
def pad(array: Any, pad_width: Any, mode: Any = "constant", **kwargs: Any) -> Array:
    """Pad an array."""
    source = as_strong(array)
    widths = _widths(pad_width, source.ndim)
    if callable(mode):
        raise UnimplementedError(
            "pad: a function as mode= cannot be traced",
            where=_trace.user_line(),
            hint="compute the padding, and join it to the array with np.concatenate",
        )
    if mode not in _KEYWORDS:
        raise ValueError(f"mode '{mode}' is not supported")
    if unknown := set(kwargs) - {_KEYWORDS[mode]}:
        raise ValueError(f"unsupported keyword arguments for mode '{mode}': {unknown}")
    if mode == "empty" or (mode == "constant" and _is_scalar(kwargs.get("constant_values", 0))):
        return _pad_uniform(source, widths, kwargs.get("constant_values", 0))
    if mode != "constant" and not source.size:
        return _pad_empty(source, widths)
    option = kwargs.get(_KEYWORDS[mode], _DEFAULTS.get(mode))
    if _PAD_AXIS[mode] is _pad_statistic:
        _check_lengths(option, mode)
    for axis, width in enumerate(widths):
        if any(width):
            source = _PAD_AXIS[mode](source, axis, width, mode, option)
    return TracedArray(value_of(source))


def _is_scalar(value: Any) -> bool:
    return not isinstance(value, (list, tuple)) and np.ndim(value) == 0


def _widths(pad_width: Any, rank: int) -> list[Widths]:
    if isinstance(pad_width, dict):
        pairs: list[Any] = [(0, 0)] * rank
        for axis, width in pad_width.items():
            pairs[axis] = (width, width) if isinstance(width, int) else width
        pad_width = pairs
    numbers = require_known(pad_width, "pad", "widths")
    if numbers.dtype.kind != "i":
        raise TypeError("`pad_width` must be of integral type.")
    if (numbers < 0).any():
        raise ValueError("index can't contain negative values")
    return [(int(a), int(b)) for a, b in np.broadcast_to(numbers, (rank, 2))]


def _pad_uniform(array: Array, widths: list[Widths], value: Any) -> Array:
    return TracedArray(xla.pad(value_of(array), _convert_value(value, array), widths))


def _convert_value(value: Any, array: Array) -> XlaOp:
    """Convert a value as NumPy does in assignments."""
    if isinstance(value, TracedArray):
        return convert(value_of(value), array.dtype)
    cell = np.zeros(1, array.dtype)
    cell[0] = np.asarray(value)[()]
    return value_of(as_traced(cell[0], array.dtype))


def _pad_empty(array: Array, widths: list[Widths]) -> Array:
    for axis, width in enumerate(widths):
        if array.shape[axis] == 0 and any(width):
            raise ValueError(f"can't extend empty axis {axis} using modes other than 'constant' or 'empty'")
    return _pad_uniform(array, widths, 0)


def _pairs(value: Any, rank: int) -> Any:
    """Return a pair of values, before and after, for each dimension."""
    result: Any = np.broadcast_to(value if isinstance(value, TracedArray) else _to_array(value), (rank, 2))
    return result


def _to_array(value: Any) -> Any:
    numbers = known_values(value)
    return as_strong(value) if numbers is None else numbers


def _concatenate_sides(array: Array, axis: int, before: Any, after: Any) -> Array:
    """Concatenate before and after an array along a dimension; either may be None."""
    return concatenate([a for a in (before, array, after) if a is not None], axis)


def _repeat_value(array: Array, axis: int, count: int, value: Any) -> Array | None:
    """Return `count` copies of a value along a dimension; None for none."""
    if not count:
        return None
    sizes = tuple(count if d == axis else n for d, n in enumerate(array.shape))
    return TracedArray(broadcast_op(_convert_value(value, array), sizes))


def _pad_constant(array: Array, axis: int, width: Widths, mode: str, values: Any) -> Array:
    pair = _pairs(values, array.ndim)
    before, after = (_repeat_value(array, axis, width[k], pair[axis, k]) for k in range(2))
    return _concatenate_sides(array, axis, before, after)


def _pad_by_indices(array: Array, axis: int, width: Widths, mode: str, option: Any) -> Array:
    """Pad by elements at other indices, as NumPy computes them."""
    indices = np.pad(np.arange(array.shape[axis]), width, mode=mode)  # type: ignore[call-overload]
    return TracedArray(take_indices(value_of(array), indices, axis))


def _slice_axis(array: Array, axis: int, start: int, stop: int) -> Array:
    return TracedArray(xla.slice_in_dim(value_of(array), start, stop, 1, axis))


def _check_lengths(lengths: Any, mode: str) -> None:
    values = np.asarray(lengths, object)
    if any(c is not None and c < 0 for c in values.ravel()):
        raise ValueError("index can't contain negative values")
    if mode in ("maximum", "minimum") and 0 in values:
        raise ValueError("stat_length of 0 yields no value for padding")


def _pad_statistic(array: Array, axis: int, width: Widths, mode: str, lengths: Any) -> Array:
    n = array.shape[axis]
    pair = np.broadcast_to(np.asarray(lengths, object), (array.ndim, 2))[axis]
    counts = [n if c is None or n < c else int(c) for c in pair]
    if 0 in counts and mode in ("maximum", "minimum"):
        raise ValueError("stat_length of 0 yields no value for padding")
    ends = [_slice_axis(array, axis, 0, counts[0]), _slice_axis(array, axis, n - counts[1], n)]
    values = [_STATISTICS[mode](part, axis=axis, keepdims=True) for part in ends]
    if array.dtype.kind in "iu":
        values = [np.rint(v) if v.dtype.kind == "f" else v for v in values]
    before, after = (_repeat_value(array, axis, width[k], values[k]) for k in range(2))
    return _concatenate_sides(array, axis, before, after)


def _pad_ramp(array: Array, axis: int, width: Widths, mode: str, ends: Any) -> Array:
    pair = _pairs(ends, array.ndim)
    n = array.shape[axis]
    edges = [_slice_axis(array, axis, 0, 1), _slice_axis(array, axis, n - 1, n)]
    sides: list[Any] = [None, None]
    for k, count in enumerate(width):
        if count:
            edge: Any = np.squeeze(edges[k], axis)
            ramp: Any = np.linspace(pair[axis, k], edge, count, endpoint=False, dtype=array.dtype, axis=axis)
            sides[k] = flip(ramp, axis) if k else ramp
    return _concatenate_sides(array, axis, *sides)


def _pad_reflect(array: Array, axis: int, width: Widths, mode: str, kind: Any) -> Array:
    """Pad by reflection at the ends; `odd` reflects at the value there, too."""
    period = array.shape[axis]
    if kind != "odd" or period == 1:
        mode = "edge" if period == 1 else mode
        return _pad_by_indices(array, axis, width, mode, None)
    include_edge = mode == "symmetric"
    left, right = width
    while left or right:
        n = array.shape[axis]
        length = n // period * period if include_edge else (n - 1) // (period - 1) * (period - 1)
        left_count, right_count = min(length, left), min(length, right)
        before = _mirror(array, axis, left_count, include_edge, 0) if left_count else None
        extended = _concatenate_sides(array, axis, before, None)
        after = _mirror(extended, axis, right_count, include_edge, -1) if right_count else None
        array = _concatenate_sides(extended, axis, None, after)
        left, right = left - left_count, right - right_count
    return array


def _mirror(array: Array, axis: int, count: int, include_edge: bool, end: int) -> Array:
    n = array.shape[axis]
    skip = 0 if include_edge else 1
    start = skip if end == 0 else n - skip - count
    chunk = flip(_slice_axis(array, axis, start, start + count), axis)
    edge_value = _slice_axis(array, axis, 0, 1) if end == 0 else _slice_axis(array, axis, n - 1, n)
    result: Any = 2 * edge_value - chunk  # type: ignore[operator]
    return as_traced(result, array.dtype)


_DEFAULTS: dict[str, Any] = {"constant": 0, "linear_ramp": 0, "reflect": "even", "symmetric": "even"}
_PAD_AXIS: dict[str, Callable[..., Array]] = {
    "constant": _pad_constant, "edge": _pad_by_indices, "wrap": _pad_by_indices, "linear_ramp": _pad_ramp,
    "reflect": _pad_reflect, "symmetric": _pad_reflect, "maximum": _pad_statistic, "minimum": _pad_statistic,
    "mean": _pad_statistic, "median": _pad_statistic,
}  # fmt: skip
