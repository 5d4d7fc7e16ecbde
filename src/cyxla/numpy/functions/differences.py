"""Differences, gradients, integrals and interpolation."""

from __future__ import annotations

from collections.abc import Sequence
from math import pi
from typing import Any

import numpy as np

from cyxla.errors import ShapeError
from cyxla.numpy.functions.mathematics import joined, strong
from cyxla.numpy.tracing.promotion import result_type
from cyxla.numpy.tracing.registry import implements
from cyxla.numpy.tracing.traced_array import TracedArray, as_traced, cast
from cyxla.numpy.ufunc_methods.reduce import NOT_GIVEN

Array = Any  # a traced array, computed on by NumPy's functions

# -- differences


def _along(axis: int, rank: int, part: Any) -> tuple[Any, ...]:
    return tuple(part if d == axis else slice(None) for d in range(rank))


@implements(np.diff)
def diff(a: Any, n: int = 1, axis: int = -1, prepend: Any = NOT_GIVEN, append: Any = NOT_GIVEN) -> Any:
    """Compute the n-th differences of neighbours."""
    if n == 0:
        return a
    if n < 0:
        raise ValueError(f"order must be non-negative but got {n!r}")
    array = strong(a)
    if array.ndim == 0:
        raise ValueError("diff requires input that is at least one dimensional")
    axis = np.lib.array_utils.normalize_axis_index(axis, array.ndim)
    sides = [_side(s, array, axis) for s in (prepend, append)]
    parts = [*sides[0], array, *sides[1]]
    if len(parts) > 1:
        array = np.concatenate(parts, axis)
    late, early = _along(axis, array.ndim, slice(1, None)), _along(axis, array.ndim, slice(None, -1))
    apart = np.not_equal if array.dtype.kind == "b" else np.subtract
    for _ in range(n):
        array = apart(array[late], array[early])
    return array


def _side(given: Any, array: Array, axis: int) -> list[Array]:
    if given is NOT_GIVEN:
        return []
    made = strong(given)
    if made.ndim == 0:
        made = np.broadcast_to(made, [1 if d == axis else k for d, k in enumerate(array.shape)])
    return [made]


@implements(np.ediff1d)
def ediff1d(ary: Any, to_end: Any = None, to_begin: Any = None) -> Any:
    """Compute differences of neighbours among all elements, with other numbers before and after."""
    array = np.ravel(strong(ary))
    made: list[Any] = [array[1:] - array[:-1]]
    for name, given, place in (("to_begin", to_begin, 0), ("to_end", to_end, len(made) + 1)):
        if given is None:
            continue
        part = strong(given)
        if not np.can_cast(part.dtype, array.dtype, "same_kind"):
            raise TypeError(f"dtype of `{name}` must be compatible with input `ary` under the `same_kind` rule.")
        made.insert(place, np.ravel(cast(part, array.dtype)))
    return np.concatenate(made) if len(made) > 1 else made[0]


@implements(np.gradient)
def gradient(f: Any, *varargs: Any, axis: Any = None, edge_order: int = 1) -> Any:
    """Compute gradients along axes: central differences, at the edges of first or second order."""
    array = strong(f)
    rank = array.ndim
    axes = tuple(range(rank)) if axis is None else np.lib.array_utils.normalize_axis_tuple(axis, rank)
    spacings = _spacings(array, varargs, axes)
    if edge_order > 2:
        raise ValueError("'edge_order' greater than 2 not supported")
    dtype = array.dtype if array.dtype.kind in "fcV" else np.dtype(np.float64)
    if array.dtype.kind in "iu":
        array = cast(array, np.float64)
    made = [cast(_slopes(array, d, s, edge_order), dtype) for d, s in zip(axes, spacings, strict=True)]
    return made[0] if len(made) == 1 else tuple(made)


def _spacings(array: Array, given: Sequence[Any], axes: Sequence[int]) -> list[Any]:
    if not given:
        return [1.0] * len(axes)
    if len(given) == 1 and np.ndim(given[0]) == 0:
        return [given[0]] * len(axes)
    if len(given) != len(axes):
        raise TypeError("invalid number of arguments")
    return [_spacing(g, array.shape[d]) for g, d in zip(given, axes, strict=True)]


def _spacing(given: Any, size: int) -> Any:
    """Return a step, or the steps between unevenly spaced coordinates."""
    if np.ndim(given) == 0:
        return given
    if np.ndim(given) != 1:
        raise ValueError("distances must be either scalars or 1d")
    places: Any = as_traced(given) if isinstance(given, TracedArray) or _traced_list(given) else np.asarray(given)
    if len(places) != size:
        raise ValueError("when 1d, distances must match the length of the corresponding dimension")
    if places.dtype.kind in "iu":
        places = places.astype(np.float64)
    steps = np.diff(places)
    if isinstance(steps, np.ndarray) and (steps == steps[0]).all():
        return steps[0]
    return steps


def _traced_list(value: Any) -> bool:
    return isinstance(value, (list, tuple)) and any(isinstance(v, TracedArray) for v in value)


def _slopes(f: Array, axis: int, step: Any, edge_order: int) -> Array:
    size, rank = f.shape[axis], f.ndim
    if size < edge_order + 1:
        raise ValueError(
            "Shape of array too small to calculate a numerical gradient, "
            "at least (edge_order + 1) elements are required."
        )

    def part(low: int | None, high: int | None) -> Array:
        return f[_along(axis, rank, slice(low, high))]

    uniform = np.ndim(step) == 0
    if uniform:
        inside = (part(2, None) - part(None, -2)) / (2.0 * step)
    else:
        shape = [-1 if d == axis else 1 for d in range(rank)]
        a, b, c = (np.reshape(w, shape) for w in _weights(step[:-1], step[1:]))
        inside = a * part(None, -2) + b * part(1, -1) + c * part(2, None)
    ends = [step, step] if uniform else [step[0], step[-1]]
    if edge_order == 1:
        first, last = (part(1, 2) - part(0, 1)) / ends[0], (part(-1, None) - part(-2, -1)) / ends[1]
    else:
        low, high = ([step, step], [step, step]) if uniform else ([step[0], step[1]], [step[-2], step[-1]])
        first = _edge([part(k, k + 1) for k in range(3)], low[0], low[1], uniform)
        last = -_edge([part(size - 1 - k, size - k) for k in range(3)], high[1], high[0], uniform)
    return np.concatenate([cast(p, inside.dtype) for p in (first, inside, last)], axis)


def _weights(before: Any, after: Any) -> tuple[Any, Any, Any]:
    """Return the weights of three neighbours in the gradient at the middle one."""
    both = before + after
    return -after / (before * both), (after - before) / (before * after), before / (after * both)


def _edge(rows: Sequence[Array], near: Any, far: Any, uniform: bool) -> Array:
    """Compute the gradient of second order at the first of three rows."""
    if uniform:
        a, b, c = -1.5 / near, 2.0 / near, -0.5 / near
    else:
        both = near + far
        a, b, c = -(2.0 * near + far) / (near * both), both / (near * far), -near / (far * both)
    return a * rows[0] + b * rows[1] + c * rows[2]


@implements(np.trapezoid)
def trapezoid(y: Any, x: Any = None, dx: Any = 1.0, axis: int = -1) -> Any:
    """Integrate by the trapezoidal rule."""
    array = strong(y)
    along = np.lib.array_utils.normalize_axis_index(axis, array.ndim)
    step = dx
    if x is not None:
        places = strong(x)
        step = np.diff(places, axis=0 if places.ndim == 1 else axis)
        if places.ndim == 1:
            step = np.reshape(step, [-1 if d == along else 1 for d in range(array.ndim)])
    late, early = _along(along, array.ndim, slice(1, None)), _along(along, array.ndim, slice(None, -1))
    return np.sum(step * (array[late] + array[early]) / 2.0, axis=axis)


# -- interpolation and phases


@implements(np.unwrap)
def unwrap(p: Any, discont: Any = None, axis: int = -1, *, period: Any = 2 * pi) -> Any:
    """Remove jumps of at least `discont`, by default half a period."""
    array = strong(p)
    steps = np.diff(array, axis=axis)
    limit = period / 2 if discont is None else discont
    kind: Any = type(period) if type(period) in (int, float) else strong(period).dtype
    dtype = result_type(steps.dtype, kind)
    if dtype.kind in "iu":
        high, left = divmod(period, 2)
        ambiguous = left == 0
    else:
        high, ambiguous = period / 2, True
    low = -high  # not representable in unsigned dtypes
    folded = np.mod(steps - low, period) + low
    if ambiguous:
        folded = np.where(np.logical_and(folded == low, steps > 0), high, folded)
    extra = np.where(np.abs(steps) < limit, 0, folded - steps)
    return _with_first(array, np.cumsum(extra, axis=axis), axis, dtype)


def _with_first(array: Array, corrections: Array, axis: int, dtype: Any) -> Array:
    """Add corrections to all but the first element along an axis."""
    parts: list[Array] = np.split(array, [1], axis=axis)
    return np.concatenate([cast(parts[0], dtype), cast(parts[1] + corrections, dtype)], axis=axis)


@implements(np.interp)
def interp(x: Any, xp: Any, fp: Any, left: Any = None, right: Any = None, period: Any = None) -> Any:
    """Interpolate linearly."""
    kind = np.complex128 if as_traced(fp).dtype.kind == "c" else np.float64
    if period is None:  # NumPy reduces complex coordinates by their real parts
        _refuse_complex(x=x, xp=xp)
    else:
        left = right = None
    if kind is np.float64:
        _refuse_complex(left=left, right=right)
    places, table, numbers = strong(x, np.float64), strong(xp, np.float64), strong(fp, kind)
    if table.ndim != 1 or numbers.ndim != 1:
        raise ShapeError("Data points must be 1-D sequences")
    if table.shape != numbers.shape:
        raise ShapeError("fp and xp are not of the same length.")
    if table.size == 0:
        raise ShapeError("array of sample points is empty")
    if period is not None:
        places, table, numbers = _folded(places, table, numbers, period)
    return _interpolated(places, table, numbers, left, right)


def _refuse_complex(**given: Any) -> None:
    for name, value in given.items():
        if value is not None and as_traced(value).dtype.kind == "c":
            raise TypeError(f"interp: {name} is complex: Cannot cast array data according to the rule 'safe'")


def _folded(places: Array, table: Array, numbers: Array, period: Any) -> tuple[Array, Array, Array]:
    """Reduce coordinates to a period, and extend the table of a periodic function."""
    if not isinstance(period, TracedArray) and period == 0:
        raise ValueError("period must be a non-zero value")
    length = abs(period)
    places, table = places % length, table % length
    order = np.argsort(table)
    table, numbers = np.take(table, order), np.take(numbers, order)
    table = np.concatenate([table[-1:] - length, table, table[:1] + length])
    return places, table, np.concatenate([numbers[-1:], numbers, numbers[:1]])


def _interpolated(places: Array, table: Array, numbers: Array, left: Any, right: Any) -> Array:
    last = table.size - 1
    left = numbers[0] if left is None else cast(strong(left), numbers.dtype)
    right = numbers[-1] if right is None else cast(strong(right), numbers.dtype)
    if last == 0:
        return np.where(places < table[0], left, np.where(places > table[0], right, numbers[0]))
    at = np.clip(np.searchsorted(table, places, side="right") - 1, 0, last - 1)
    given = (numbers, left, right)
    if numbers.dtype.kind == "c":  # infinities of one part do not affect the other
        made = joined(*(_between(places, table, at, *map(part, given)) for part in (np.real, np.imag)))
    else:
        made = _between(places, table, at, *given)
    return np.where(np.isnan(places), cast(places, numbers.dtype), made)


def _between(places: Array, table: Array, at: Array, numbers: Array, left: Array, right: Array) -> Array:
    """Interpolate real numbers from the entries `at` to the next ones; `left` and `right` outside of the table."""
    x0, x1, y0, y1 = (np.take(a, at + k, mode="clip") for a in (table, numbers) for k in (0, 1))
    slope = (y1 - y0) / (x1 - x0)
    made = slope * (places - x0) + y0
    made = np.where(np.isnan(made), slope * (places - x1) + y1, made)
    made = np.where(np.logical_and(np.isnan(made), y0 == y1), y0, made)
    steep = ~np.isfinite(slope)
    made = np.where(np.logical_and(places == x0, np.logical_or(steep, np.isinf(x0))), y0, made)
    made = np.where(places < table[0], left, made)
    met = np.logical_and(places == table[-1], np.isfinite(places))
    end = np.where(met, places - table[-1], 0.0)  # 0, with the derivative of the coordinate
    ending = np.where(steep, numbers[-1], numbers[-1] + np.where(steep, 0.0, slope) * end)
    return np.where(places >= table[-1], np.where(places > table[-1], right, ending), made)
