"""Differences, gradients, integrals and interpolation."""

from __future__ import annotations

from collections.abc import Sequence
from math import pi
from typing import Any

import numpy as np

from cyxla.errors import OutOfRangeError, ShapeError
from cyxla.numpy.functions.mathematics import make_complex
from cyxla.numpy.tracing.arrays.traced_array import TracedArray, as_strong, as_traced, cast
from cyxla.numpy.tracing.registry import implements
from cyxla.numpy.tracing.results.promotion import result_type
from cyxla.numpy.tracing.trace import require_current, user_line
from cyxla.numpy.ufunc_methods.reduce import NOT_GIVEN

Array = Any  # a traced array, computed on by NumPy's functions

# -- differences


def _index_along(axis: int, rank: int, part: Any) -> tuple[Any, ...]:
    return tuple(part if d == axis else slice(None) for d in range(rank))


@implements(np.diff)
def diff(a: Any, n: int = 1, axis: int = -1, prepend: Any = NOT_GIVEN, append: Any = NOT_GIVEN) -> Any:
    """Compute the n-th differences of neighbours."""
    if n == 0:
        return a
    if n < 0:
        raise ValueError(f"order must be non-negative but got {n!r}")
    array = as_strong(a)
    if array.ndim == 0:
        raise ValueError("diff requires input that is at least one dimensional")
    axis = np.lib.array_utils.normalize_axis_index(axis, array.ndim)
    ends = [_end_values(s, array, axis) for s in (prepend, append)]
    parts = [*ends[0], array, *ends[1]]
    if len(parts) > 1:
        array = np.concatenate(parts, axis)
    upper, lower = _index_along(axis, array.ndim, slice(1, None)), _index_along(axis, array.ndim, slice(None, -1))
    difference = np.not_equal if array.dtype.kind == "b" else np.subtract
    for _ in range(n):
        array = difference(array[upper], array[lower])
    return array


def _end_values(value: Any, array: Array, axis: int) -> list[Array]:
    if value is NOT_GIVEN:
        return []
    result = as_strong(value)
    if result.ndim == 0:
        result = np.broadcast_to(result, [1 if d == axis else k for d, k in enumerate(array.shape)])
    return [result]


@implements(np.ediff1d)
def ediff1d(ary: Any, to_end: Any = None, to_begin: Any = None) -> Any:
    """Compute differences of neighbours among all elements, with other numbers before and after."""
    array = np.ravel(as_strong(ary))
    result: list[Any] = [array[1:] - array[:-1]]
    for name, value, position in (("to_begin", to_begin, 0), ("to_end", to_end, len(result) + 1)):
        if value is None:
            continue
        part = as_strong(value)
        if not np.can_cast(part.dtype, array.dtype, "same_kind"):
            raise TypeError(f"dtype of `{name}` must be compatible with input `ary` under the `same_kind` rule.")
        result.insert(position, np.ravel(cast(part, array.dtype)))
    return np.concatenate(result) if len(result) > 1 else result[0]


@implements(np.gradient)
def gradient(f: Any, *varargs: Any, axis: Any = None, edge_order: int = 1) -> Any:
    """Compute gradients along axes: central differences, at the edges of first or second order."""
    array = as_strong(f)
    rank = array.ndim
    axes = tuple(range(rank)) if axis is None else np.lib.array_utils.normalize_axis_tuple(axis, rank)
    spacings = _spacings(array, varargs, axes)
    if edge_order > 2:
        raise ValueError("'edge_order' greater than 2 not supported")
    dtype = array.dtype if array.dtype.kind in "fcV" else np.dtype(np.float64)
    if array.dtype.kind in "iu":
        array = cast(array, np.float64)
    result = [cast(_gradient_along(array, d, s, edge_order), dtype) for d, s in zip(axes, spacings, strict=True)]
    return result[0] if len(result) == 1 else tuple(result)


def _spacings(array: Array, arguments: Sequence[Any], axes: Sequence[int]) -> list[Any]:
    if not arguments:
        return [1.0] * len(axes)
    if len(arguments) == 1 and np.ndim(arguments[0]) == 0:
        return [arguments[0]] * len(axes)
    if len(arguments) != len(axes):
        raise TypeError("invalid number of arguments")
    return [_parse_spacing(argument, array.shape[d]) for argument, d in zip(arguments, axes, strict=True)]


def _parse_spacing(spacing: Any, size: int) -> Any:
    """Return a step, or the steps between unevenly spaced coordinates."""
    if np.ndim(spacing) == 0:
        return spacing
    if np.ndim(spacing) != 1:
        raise ValueError("distances must be either scalars or 1d")
    coordinates: Any = (
        as_traced(spacing) if isinstance(spacing, TracedArray) or _is_traced_list(spacing) else np.asarray(spacing)
    )
    if len(coordinates) != size:
        raise ValueError("when 1d, distances must match the length of the corresponding dimension")
    if coordinates.dtype.kind in "iu":
        coordinates = coordinates.astype(np.float64)
    steps = np.diff(coordinates)
    if not steps.size:
        raise OutOfRangeError("index 0 is out of bounds for axis 0 with size 0", where=user_line())
    if isinstance(steps, np.ndarray) and (steps == steps[0]).all():
        return steps[0]
    return steps


def _is_traced_list(value: Any) -> bool:
    return isinstance(value, (list, tuple)) and any(isinstance(v, TracedArray) for v in value)


def _gradient_along(f: Array, axis: int, step: Any, edge_order: int) -> Array:
    """Compute a gradient; steps that are equal at run time are taken for one step, as NumPy does."""
    result = _differentiate(f, axis, step, edge_order)
    if not np.ndim(step) or require_current().program.gradients:  # of a step that may be 0
        return result
    is_even = np.all(np.equal(step, step[0]))
    return np.where(is_even, _differentiate(f, axis, step[0], edge_order), result)


def _differentiate(f: Array, axis: int, step: Any, edge_order: int) -> Array:
    size, rank = f.shape[axis], f.ndim
    if size < edge_order + 1:
        raise ValueError(
            "Shape of array too small to calculate a numerical gradient, "
            "at least (edge_order + 1) elements are required."
        )

    def part(low: int | None, high: int | None) -> Array:
        return f[_index_along(axis, rank, slice(low, high))]

    uniform = np.ndim(step) == 0
    if uniform:
        interior = (part(2, None) - part(None, -2)) / (2.0 * step)
    else:
        shape = [-1 if d == axis else 1 for d in range(rank)]
        a, b, c = (np.reshape(w, shape) for w in _weights(step[:-1], step[1:]))
        interior = a * part(None, -2) + b * part(1, -1) + c * part(2, None)
    end_steps = [step, step] if uniform else [step[0], step[-1]]
    if edge_order == 1:
        first, last = (part(1, 2) - part(0, 1)) / end_steps[0], (part(-1, None) - part(-2, -1)) / end_steps[1]
    else:
        low, high = ([step, step], [step, step]) if uniform else ([step[0], step[1]], [step[-2], step[-1]])
        first = _edge_gradient([part(k, k + 1) for k in range(3)], low[0], low[1], uniform)
        last = -_edge_gradient([part(size - 1 - k, size - k) for k in range(3)], high[1], high[0], uniform)
    return np.concatenate([cast(p, interior.dtype) for p in (first, interior, last)], axis)


def _weights(before: Any, after: Any) -> tuple[Any, Any, Any]:
    """Return the weights of three neighbours in the gradient at the middle one."""
    total = before + after
    return -after / (before * total), (after - before) / (before * after), before / (after * total)


def _edge_gradient(rows: Sequence[Array], near: Any, far: Any, uniform: bool) -> Array:
    """Compute the gradient of second order at the first of three rows."""
    if uniform:
        a, b, c = -1.5 / near, 2.0 / near, -0.5 / near
    else:
        total = near + far
        a, b, c = -(2.0 * near + far) / (near * total), total / (near * far), -near / (far * total)
    return a * rows[0] + b * rows[1] + c * rows[2]


@implements(np.trapezoid)
def trapezoid(y: Any, x: Any = None, dx: Any = 1.0, axis: int = -1) -> Any:
    """Integrate by the trapezoidal rule."""
    array = as_strong(y)
    dimension = np.lib.array_utils.normalize_axis_index(axis, array.ndim)
    step = dx
    if x is not None:
        coordinates = as_strong(x)
        step = np.diff(coordinates, axis=0 if coordinates.ndim == 1 else axis)
        if coordinates.ndim == 1:
            step = np.reshape(step, [-1 if d == dimension else 1 for d in range(array.ndim)])
    upper, lower = (
        _index_along(dimension, array.ndim, slice(1, None)),
        _index_along(dimension, array.ndim, slice(None, -1)),
    )
    return np.sum(step * (array[upper] + array[lower]) / 2.0, axis=axis)


# -- interpolation and phases


@implements(np.unwrap)
def unwrap(p: Any, discont: Any = None, axis: int = -1, *, period: Any = 2 * pi) -> Any:
    """Remove jumps of at least `discont`, by default half a period."""
    array = as_strong(p)
    steps = np.diff(array, axis=axis)
    limit = period / 2 if discont is None else discont
    kind: Any = type(period) if type(period) in (int, float) else as_strong(period).dtype
    dtype = result_type(steps.dtype, kind)
    if dtype.kind in "iu":
        high, remainder = divmod(period, 2)
        ambiguous = remainder == 0
    else:
        high, ambiguous = period / 2, True
    low = -high  # not representable in unsigned dtypes
    wrapped = np.mod(steps - low, period) + low
    if ambiguous:
        wrapped = np.where(np.logical_and(wrapped == low, steps > 0), high, wrapped)
    corrections = np.where(np.abs(steps) < limit, 0, wrapped - steps)
    return _add_after_first(array, np.cumsum(corrections, axis=axis), axis, dtype)


def _add_after_first(array: Array, corrections: Array, axis: int, dtype: Any) -> Array:
    """Add corrections to all but the first element along an axis."""
    parts: list[Array] = np.split(array, [1], axis=axis)
    return np.concatenate([cast(parts[0], dtype), cast(parts[1] + corrections, dtype)], axis=axis)


@implements(np.interp)
def interp(x: Any, xp: Any, fp: Any, left: Any = None, right: Any = None, period: Any = None) -> Any:
    """Interpolate linearly."""
    kind = np.complex128 if as_traced(fp).dtype.kind == "c" else np.float64
    if period is None:  # NumPy reduces complex coordinates by their real parts
        refuse_complex(x=x, xp=xp)
    else:
        left = right = None
    if kind is np.float64:
        refuse_complex(left=left, right=right)
    coordinates, points, values = as_strong(x, np.float64), as_strong(xp, np.float64), as_strong(fp, kind)
    if points.ndim != 1 or values.ndim != 1:
        raise ShapeError("Data points must be 1-D sequences")
    if points.shape != values.shape:
        raise ShapeError("fp and xp are not of the same length.")
    if points.size == 0:
        raise ShapeError("array of sample points is empty")
    if period is not None:
        coordinates, points, values = _reduce_to_period(coordinates, points, values, period)
    return _interpolate(coordinates, points, values, left, right)


def refuse_complex(**arguments: Any) -> None:
    """Refuse complex coordinates, which `np.interp` does not cast.

    Raises
    ------
    TypeError
        An argument is complex.
    """
    for name, value in arguments.items():
        if value is not None and as_traced(value).dtype.kind == "c":
            raise TypeError(f"interp: {name} is complex: Cannot cast array data according to the rule 'safe'")


def _reduce_to_period(coordinates: Array, points: Array, values: Array, period: Any) -> tuple[Array, Array, Array]:
    """Reduce coordinates to a period, and extend the table of a periodic function."""
    if not isinstance(period, TracedArray) and period == 0:
        raise ValueError("period must be a non-zero value")
    length = abs(period)
    coordinates, points = coordinates % length, points % length
    order = np.argsort(points)
    points, values = np.take(points, order), np.take(values, order)
    points = np.concatenate([points[-1:] - length, points, points[:1] + length])
    return coordinates, points, np.concatenate([values[-1:], values, values[:1]])


def _interpolate(coordinates: Array, points: Array, values: Array, left: Any, right: Any) -> Array:
    last = points.size - 1
    left = values[0] if left is None else cast(as_strong(left), values.dtype)
    right = values[-1] if right is None else cast(as_strong(right), values.dtype)
    if last == 0:
        return np.where(coordinates < points[0], left, np.where(coordinates > points[0], right, values[0]))
    indices = np.clip(np.searchsorted(points, coordinates, side="right") - 1, 0, last - 1)
    tables = (values, left, right)
    if values.dtype.kind == "c":  # infinities of one part do not affect the other
        result = make_complex(
            *(_interpolate_real(coordinates, points, indices, *map(part, tables)) for part in (np.real, np.imag))
        )
    else:
        result = _interpolate_real(coordinates, points, indices, *tables)
    return np.where(np.isnan(coordinates), cast(coordinates, values.dtype), result)


def _interpolate_real(
    coordinates: Array, points: Array, indices: Array, values: Array, left: Array, right: Array
) -> Array:
    """Interpolate real numbers from the entries `indices` to the next ones; `left` and `right` outside of the table."""
    x0, x1, y0, y1 = (np.take(a, indices + k, mode="clip") for a in (points, values) for k in (0, 1))
    slope = (y1 - y0) / (x1 - x0)
    result = slope * (coordinates - x0) + y0
    result = np.where(np.isnan(result), slope * (coordinates - x1) + y1, result)
    result = np.where(np.logical_and(np.isnan(result), y0 == y1), y0, result)
    steep = ~np.isfinite(slope)
    result = np.where(np.logical_and(coordinates == x0, np.logical_or(steep, np.isinf(x0))), y0, result)
    result = np.where(coordinates < points[0], left, result)
    at_end = np.logical_and(coordinates == points[-1], np.isfinite(coordinates))
    excess = np.where(at_end, coordinates - points[-1], 0.0)  # zero, but with a derivative by the coordinate
    at_last = np.where(steep, values[-1], values[-1] + np.where(steep, 0.0, slope) * excess)
    return np.where(coordinates >= points[-1], np.where(coordinates > points[-1], right, at_last), result)
