"""``numpy.pad``: one dimension after the other, as NumPy does it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from cyxla.errors import UnimplementedError
from cyxla.numpy.functions.joining import concatenate, known, picked
from cyxla.numpy.functions.movement import array_of, flip
from cyxla.numpy.tracing import trace as _trace
from cyxla.numpy.tracing.registry import implements
from cyxla.numpy.tracing.traced_array import TracedArray, as_traced, value_of
from cyxla.numpy.ufunc_methods.reduce import known_values
from cyxla.numpy.ufuncs.apply import broadcast_to as repeated
from cyxla.numpy.ufuncs.apply import convert_checked
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
    given = array_of(array)
    widths = _widths(pad_width, given.ndim)
    if callable(mode):
        raise UnimplementedError(
            "pad with a function as its mode",
            where=_trace.user_line(),
            hint="concatenate what the function would write",
        )
    if mode not in _KEYWORDS:
        raise ValueError(f"mode '{mode}' is not supported")
    if unknown := set(kwargs) - {_KEYWORDS[mode]}:
        raise ValueError(f"unsupported keyword arguments for mode '{mode}': {unknown}")
    if mode == "empty" or (mode == "constant" and _is_one(kwargs.get("constant_values", 0))):
        return _uniform(given, widths, kwargs.get("constant_values", 0))
    if mode != "constant" and not given.size:
        return _of_nothing(given, widths)
    option = kwargs.get(_KEYWORDS[mode], _DEFAULTS.get(mode))
    if _AXIS[mode] is _statistic:
        _check_lengths(option, mode)
    for axis, width in enumerate(widths):
        if any(width):
            given = _AXIS[mode](given, axis, width, mode, option)
    return TracedArray(value_of(given))


def _is_one(value: Any) -> bool:
    return not isinstance(value, (list, tuple)) and np.ndim(value) == 0


def _widths(pad_width: Any, rank: int) -> list[Widths]:
    if isinstance(pad_width, dict):
        pairs: list[Any] = [(0, 0)] * rank
        for axis, width in pad_width.items():
            pairs[axis] = (width, width) if isinstance(width, int) else width
        pad_width = pairs
    numbers = known(pad_width, "pad", "widths")
    if numbers.dtype.kind != "i":
        raise TypeError("`pad_width` must be of integral type.")
    if (numbers < 0).any():
        raise ValueError("index can't contain negative values")
    return [(int(a), int(b)) for a, b in np.broadcast_to(numbers, (rank, 2))]


def _uniform(array: Array, widths: list[Widths], value: Any) -> Array:
    return TracedArray(xla.pad(value_of(array), _number(value, array), widths))


def _number(value: Any, array: Array) -> XlaOp:
    """Convert a value as NumPy does in assignments."""
    if isinstance(value, TracedArray):
        return convert_checked(value, array.dtype)
    cells = np.zeros(1, array.dtype)
    cells[0] = np.asarray(value)[()]
    return value_of(as_traced(cells[0], array.dtype))


def _of_nothing(array: Array, widths: list[Widths]) -> Array:
    for axis, width in enumerate(widths):
        if array.shape[axis] == 0 and any(width):
            raise ValueError(f"can't extend empty axis {axis} using modes other than 'constant' or 'empty'")
    return _uniform(array, widths, 0)


def _pairs(value: Any, rank: int) -> Any:
    """Return a pair of values, before and after, for each dimension."""
    made: Any = np.broadcast_to(value if isinstance(value, TracedArray) else _stacked(value), (rank, 2))
    return made


def _stacked(value: Any) -> Any:
    numbers = known_values(value)
    return array_of(value) if numbers is None else numbers


def _beside(array: Array, axis: int, before: Any, after: Any) -> Array:
    """Concatenate before and after an array along a dimension; either may be None."""
    return concatenate([a for a in (before, array, after) if a is not None], axis)


def _filled(array: Array, axis: int, count: int, value: Any) -> Array | None:
    """Return `count` copies of a value along a dimension; None for none."""
    if not count:
        return None
    sizes = tuple(count if d == axis else n for d, n in enumerate(array.shape))
    return TracedArray(repeated(_number(value, array), sizes))


def _constant(array: Array, axis: int, width: Widths, mode: str, values: Any) -> Array:
    pair = _pairs(values, array.ndim)
    before, after = (_filled(array, axis, width[k], pair[axis, k]) for k in range(2))
    return _beside(array, axis, before, after)


def _by_places(array: Array, axis: int, width: Widths, mode: str, option: Any) -> Array:
    """Pad by elements at other indices, as NumPy computes them."""
    places = np.pad(np.arange(array.shape[axis]), width, mode=mode)  # type: ignore[call-overload]
    return TracedArray(picked(value_of(array), places, axis))


def _range(array: Array, axis: int, start: int, stop: int) -> Array:
    return TracedArray(xla.slice_in_dim(value_of(array), start, stop, 1, axis))


def _check_lengths(lengths: Any, mode: str) -> None:
    given = np.asarray(lengths, object)
    if any(c is not None and c < 0 for c in given.ravel()):
        raise ValueError("index can't contain negative values")
    if mode in ("maximum", "minimum") and 0 in given:
        raise ValueError("stat_length of 0 yields no value for padding")


def _statistic(array: Array, axis: int, width: Widths, mode: str, lengths: Any) -> Array:
    n = array.shape[axis]
    pair = np.broadcast_to(np.asarray(lengths, object), (array.ndim, 2))[axis]
    counts = [n if c is None or n < c else int(c) for c in pair]
    if 0 in counts and mode in ("maximum", "minimum"):
        raise ValueError("stat_length of 0 yields no value for padding")
    ends = [_range(array, axis, 0, counts[0]), _range(array, axis, n - counts[1], n)]
    values = [_STATISTICS[mode](part, axis=axis, keepdims=True) for part in ends]
    if array.dtype.kind in "iu":
        values = [np.rint(v) if v.dtype.kind == "f" else v for v in values]
    before, after = (_filled(array, axis, width[k], values[k]) for k in range(2))
    return _beside(array, axis, before, after)


def _ramp(array: Array, axis: int, width: Widths, mode: str, ends: Any) -> Array:
    pair = _pairs(ends, array.ndim)
    n = array.shape[axis]
    edges = [_range(array, axis, 0, 1), _range(array, axis, n - 1, n)]
    sides: list[Any] = [None, None]
    for k, count in enumerate(width):
        if count:
            edge: Any = np.squeeze(edges[k], axis)
            ramp: Any = np.linspace(pair[axis, k], edge, count, endpoint=False, dtype=array.dtype, axis=axis)
            sides[k] = flip(ramp, axis) if k else ramp
    return _beside(array, axis, *sides)


def _reflected(array: Array, axis: int, width: Widths, mode: str, kind: Any) -> Array:
    """Pad by reflection at the ends; `odd` reflects at the value there, too."""
    period = array.shape[axis]
    if kind != "odd" or period == 1:
        mode = "edge" if period == 1 else mode
        return _by_places(array, axis, width, mode, None)
    edge = mode == "symmetric"
    left, right = width
    while left or right:
        n = array.shape[axis]
        length = n // period * period if edge else (n - 1) // (period - 1) * (period - 1)
        take, add = min(length, left), min(length, right)
        before = _mirrored(array, axis, take, edge, 0) if take else None
        grown = _beside(array, axis, before, None)
        after = _mirrored(grown, axis, add, edge, -1) if add else None
        array = _beside(grown, axis, None, after)
        left, right = left - take, right - add
    return array


def _mirrored(array: Array, axis: int, count: int, edge: bool, end: int) -> Array:
    n = array.shape[axis]
    skip = 0 if edge else 1
    start = skip if end == 0 else n - skip - count
    chunk = flip(_range(array, axis, start, start + count), axis)
    rim = _range(array, axis, 0, 1) if end == 0 else _range(array, axis, n - 1, n)
    made: Any = 2 * rim - chunk  # type: ignore[operator]
    return as_traced(made, array.dtype)


_DEFAULTS: dict[str, Any] = {"constant": 0, "linear_ramp": 0, "reflect": "even", "symmetric": "even"}
_AXIS: dict[str, Callable[..., Array]] = {
    "constant": _constant, "edge": _by_places, "wrap": _by_places, "linear_ramp": _ramp, "reflect": _reflected,
    "symmetric": _reflected, "maximum": _statistic, "minimum": _statistic, "mean": _statistic, "median": _statistic,
}  # fmt: skip
