"""Covariances, histograms and differences of arrays of run-time size."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from cyxla.errors import OutOfRangeError
from cyxla.numpy.functions.histograms import lengthened
from cyxla.numpy.sized.elementwise import align_arguments
from cyxla.numpy.sized.frames import fail_unless, leave_if, rank_of, require_equal, require_same_shape, resized, wrapped
from cyxla.numpy.sized.table import call, sized
from cyxla.numpy.tracing.arrays.sized_array import SizedArray, as_size, filled, is_sized, raise_unsupported, valid
from cyxla.numpy.tracing.arrays.traced_array import TracedArray, as_strong, as_traced, is_traced, value_of
from cyxla.numpy.tracing.trace import require_current
from cyxla.numpy.ufunc_methods.reduce import NOT_GIVEN
from cyxla.records import dataclass

_np: Any = np  # its functions dispatch to this package


# -- differences


@sized(np.diff)
def diff(func: Callable[..., Any], arguments: dict[str, Any]) -> Any:
    """Compute the n-th differences of neighbours."""
    array, n, axis = arguments["a"], arguments.get("n", 1), arguments.get("axis", -1)
    ends = [arguments.get(name, NOT_GIVEN) for name in ("prepend", "append")]
    if n < 0:
        raise ValueError(f"order must be non-negative but got {n!r}")
    array = array if isinstance(array, SizedArray) else _np.asarray(array)
    axis = int(np.lib.array_utils.normalize_axis_index(axis, array.ndim))
    parts = [*_end(ends[0], array, axis), array, *_end(ends[1], array, axis)]
    array = _np.concatenate(parts, axis) if len(parts) > 1 else array
    difference = np.not_equal if array.dtype.kind == "b" else np.subtract
    leading = [slice(None)] * axis
    for _ in range(n):
        array = difference(array[(*leading, slice(1, None))], array[(*leading, slice(None, -1))])
    return array


def _end(value: Any, array: Any, axis: int) -> list[Any]:
    if value is NOT_GIVEN:
        return []
    if not is_sized(value) and np.ndim(value) == 0:
        if array.ndim > 1:
            raise_unsupported("be passed to np.diff with a number before or after", "use np.concatenate")
        value = _np.reshape(value, (1,))
    return [value]


@sized(np.ediff1d)
def ediff1d(func: Callable[..., Any], arguments: dict[str, Any]) -> Any:
    """Compute differences of neighbours among all elements, with other numbers before and after."""
    array = _np.ravel(arguments["ary"])
    before, after = ([_np.ravel(v).astype(array.dtype)] if (v := arguments.get(n)) is not None else []
                     for n in ("to_begin", "to_end"))  # fmt: skip
    parts = [*before, array[1:] - array[:-1], *after]
    return parts[0] if len(parts) == 1 else _np.concatenate(parts)


@sized(np.trapezoid)
def trapezoid(func: Callable[..., Any], arguments: dict[str, Any]) -> Any:
    """Integrate by the trapezoidal rule."""
    y, x, axis = arguments["y"], arguments.get("x"), arguments.get("axis", -1)
    y = _array(y)
    dimension = int(np.lib.array_utils.normalize_axis_index(axis, y.ndim))
    steps: Any = arguments.get("dx", 1.0)
    if x is not None:
        x = _array(x)
        steps = _np.diff(x, axis=-1 if x.ndim == 1 else axis)
        steps = steps[(..., *[None] * (y.ndim - dimension - 1))] if x.ndim == 1 else steps
    leading = [slice(None)] * dimension
    pairs = y[(*leading, slice(1, None))] + y[(*leading, slice(None, -1))]
    return _np.sum(steps * pairs / 2.0, axis=axis)


def _array(value: Any) -> Any:
    return value if isinstance(value, SizedArray) else as_strong(value)


@sized(np.unwrap)
def unwrap(func: Callable[..., Any], arguments: dict[str, Any]) -> Any:
    """Remove jumps: an element depends on those before it, never on padding."""
    array = arguments["p"]
    if not isinstance(array, SizedArray) or is_sized([arguments.get("discont"), arguments.get("period")]):
        raise_unsupported("be the period or the discontinuity of np.unwrap", "pass numbers")
    return array.like(call(func, {**arguments, "p": array.padded}))


# -- gradients


@sized(np.gradient)
def gradient(func: Callable[..., Any], arguments: dict[str, Any]) -> Any:
    """Compute gradients along axes: central differences, at the edges of first or second order."""
    array, axis, order = _array(arguments["f"]), arguments.get("axis"), arguments.get("edge_order", 1)
    axes = range(array.ndim) if axis is None else np.lib.array_utils.normalize_axis_tuple(axis, array.ndim)
    spacings = list(arguments.get("varargs", ()))
    if not spacings:
        spacings = [1.0] * len(axes)
    elif len(spacings) == 1 and rank_of(spacings[0]) == 0:
        spacings = spacings * len(axes)
    if len(spacings) != len(axes):
        raise TypeError("invalid number of arguments")
    if order > 2:
        raise ValueError("'edge_order' greater than 2 not supported")
    results = [_gradient_along(func, array, d, s, order) for d, s in zip(axes, spacings, strict=True)]
    return results[0] if len(results) == 1 else tuple(results)


def _gradient_along(func: Callable[..., Any], array: Any, axis: int, spacing: Any, order: int) -> Any:
    if isinstance(array, SizedArray) and axis not in array.counts and not isinstance(spacing, SizedArray):
        return array.like(func(array.padded, spacing, axis=axis, edge_order=order))
    dtype = array.dtype if array.dtype.kind in "fcV" else np.dtype(np.float64)
    array = array.astype(np.float64) if array.dtype.kind in "iu" else array
    data, counts = (array.padded, array.counts) if isinstance(array, SizedArray) else (array, {})
    if axis in counts:
        data = resized(data, axis, max(data.shape[axis], order + 1))
    line = _Line(data, axis, array.shape[axis])
    step = spacing if rank_of(spacing) == 0 else line.steps(spacing)
    if data.shape[axis] <= order:
        raise ValueError(_TOO_SMALL)
    fail_unless(_np.greater(line.count, order), line.count, order, _TOO_SMALL, ValueError)
    result = line.gradient(step, order)
    return wrapped(result.astype(dtype), counts)


_TOO_SMALL = (
    "Shape of array too small to calculate a numerical gradient, at least (edge_order + 1) elements are required."
)
_DISTANCES = "when 1d, distances must match the length of the corresponding dimension: {} and {}"


@dataclass
class _Line:
    """Padded array of which a dimension has a size that may be known at run time.

    Attributes
    ----------
    data : TracedArray
        Padded elements.
    axis : int
        Dimension.
    count : int or TracedArray
        Size of the dimension.
    """

    data: Any
    axis: int
    count: Any

    def part(self, low: int | None, high: int | None) -> Any:
        """Return a range of the padded elements along the dimension."""
        return self.data[(*[slice(None)] * self.axis, slice(low, high))]

    def from_end(self, number: int) -> Any:
        """Return the elements at a distance from the size, as a range of one."""
        position = _np.reshape(_np.maximum(self.count - number, 0), (1,))
        return _np.take(self.data, position, axis=self.axis, mode="clip")

    def along(self, vector: Any) -> Any:
        """Return a vector as an array along the dimension."""
        return vector[(..., *[None] * (self.data.ndim - self.axis - 1))]

    def steps(self, coordinates: Any) -> _Line:
        """Return the distances of neighbours among as many coordinates; runs with other sizes fail."""
        if rank_of(coordinates) != 1:
            raise ValueError("distances must be either scalars or 1d")
        coordinates = _array(coordinates)
        require_equal(coordinates.shape[0], self.count, _DISTANCES, ValueError)
        message = "index 0 is out of bounds for axis 0 with size 0"
        fail_unless(_np.greater(self.count, 1), self.count, 1, message, OutOfRangeError)
        data = coordinates.padded if isinstance(coordinates, SizedArray) else coordinates
        data = data.astype(np.float64) if data.dtype.kind in "iu" else data
        return _Line(_np.diff(resized(data, 0, self.data.shape[self.axis])), 0, self.count - 1)

    def gradient(self, step: Any, order: int) -> Any:
        """Return the derivatives by numbers that are a step apart, or by those of unequal steps."""
        if not isinstance(step, _Line):
            return self._gradient(step, order)
        result = self._gradient(step, order)
        if require_current().program.gradients:  # of a step that may be 0
            return result
        inside = np.arange(step.data.shape[0]) < step.count
        first = step.data[0]
        alike = _np.all(_np.logical_or(_np.equal(step.data, first), _np.logical_not(inside)))
        return _np.where(alike, self._gradient(first, order), result)  # equal steps are taken for one, as by NumPy

    def _gradient(self, step: Any, order: int) -> Any:
        is_even = not isinstance(step, _Line)
        inner = self._even(step) if is_even else self._uneven(step)
        ends = [step, step, step, step] if is_even else [step.part(0, 1), step.part(1, 2), step.from_end(2),
                                                         step.from_end(1)]  # fmt: skip
        ends = ends if is_even else [self.along(e) for e in ends]
        if order == 1:
            edges = [
                (self.part(1, 2) - self.part(0, 1)) / ends[0], (self.from_end(1) - self.from_end(2)) / ends[3]
            ]  # fmt: skip
        else:
            edges = [
                _edge([self.part(k, k + 1) for k in range(3)], ends[0], ends[1], is_even=is_even),
                -_edge([self.from_end(k) for k in (1, 2, 3)], ends[3], ends[2], is_even=is_even),
            ]
        result = _np.concatenate([edges[0], inner, edges[1]], self.axis)
        number = self.along(np.arange(self.data.shape[self.axis]))
        return _np.where(_np.equal(number, self.count - 1), edges[1], result)

    def _even(self, step: Any) -> Any:
        return (self.part(2, None) - self.part(None, -2)) / (2.0 * step)

    def _uneven(self, steps: _Line) -> Any:
        """Return the inner derivatives by unequal steps."""
        before, after = (self.along(w) for w in (steps.data[:-1], steps.data[1:]))
        total = before + after
        a, b, c = -after / (before * total), (after - before) / (before * after), before / (after * total)
        return a * self.part(None, -2) + b * self.part(1, -1) + c * self.part(2, None)


def _edge(rows: Sequence[Any], near: Any, far: Any, *, is_even: bool) -> Any:
    """Return the derivative of second order at the first of three rows."""
    if is_even:
        a, b, c = -1.5 / near, 2.0 / near, -0.5 / near
    else:
        total = near + far
        a, b, c = -(2.0 * near + far) / (near * total), total / (near * far), -near / (far * total)
    return a * rows[0] + b * rows[1] + c * rows[2]


# -- covariances


@sized(np.cov)
def cov(func: Callable[..., Any], arguments: dict[str, Any]) -> Any:
    """Compute the covariance matrix of variables of which there is a run-time number of observations."""
    if any(arguments.get(n) is not None for n in ("fweights", "aweights", "dtype")):
        raise_unsupported("be passed to np.cov with weights or dtype=")
    rowvar = arguments.get("rowvar", True)
    parts = [_as_rows(arguments["m"], rowvar or np.ndim(arguments["m"]) == 1)]
    if not isinstance(parts[0].shape[0], TracedArray) and parts[0].shape[0] == 0:
        return as_traced(np.zeros((0, 0)))
    if arguments.get("y") is not None:
        parts.append(_as_rows(arguments["y"], rowvar or _is_row(arguments["y"])))
    variables = parts[0] if len(parts) == 1 else _np.concatenate(parts, 0)
    if isinstance(variables.shape[0], TracedArray):
        text = "np.cov of one variable, or of none, of which there is a run-time number"
        few: Any = _np.less(variables.shape[0], 2)
        if isinstance(parts[0].shape[0], TracedArray):
            few = _np.logical_or(few, _np.equal(parts[0].shape[0], 0))
        leave_if(few, text)
    dtype = np.result_type(variables.dtype, np.float64)
    variables = variables.astype(dtype)
    centered = variables - _np.mean(variables, axis=1, keepdims=True)
    ddof = arguments.get("ddof")
    ddof = (0 if arguments.get("bias") else 1) if ddof is None else ddof
    degrees = _np.maximum(variables.shape[1] - ddof, 0)
    product = _np.dot(centered, _np.conjugate(centered).T)
    return _np.squeeze(product * _np.true_divide(1, degrees))


def _as_rows(array: Any, are_rows: Any) -> Any:
    """Return variables as rows."""
    return _np.atleast_2d(array) if are_rows else _np.atleast_2d(array).T


def _is_row(array: Any) -> bool:
    """Return True for one variable, as a vector or a row; NumPy runs where the size tells."""
    rows = _np.atleast_2d(array).shape[0]
    if isinstance(rows, TracedArray):
        leave_if(_np.equal(rows, 1), "the second array of np.cov has one row, or more, by the values")
        return False
    return bool(rows == 1)


@sized(np.corrcoef)
def corrcoef(func: Callable[..., Any], arguments: dict[str, Any]) -> Any:
    """Compute correlation coefficients."""
    if arguments.get("dtype") is not None:
        raise_unsupported("be passed to np.corrcoef with dtype=", "convert the array, or the result")
    options = {n: v for n, v in arguments.items() if n in ("y", "rowvar")}
    matrix: Any = _np.cov(arguments["x"], **options)
    if matrix.ndim == 0:
        return matrix / matrix
    deviations = _np.sqrt(_np.real(_np.diag(matrix)))
    matrix = matrix / deviations[:, None] / deviations[None, :]
    if matrix.dtype.kind == "c":
        return _np.clip(matrix.real, -1, 1) + 1j * _np.clip(matrix.imag, -1, 1)
    return _np.clip(matrix, -1, 1)


# -- histograms


@sized(np.histogram)
def histogram(func: Callable[..., Any], arguments: dict[str, Any]) -> Any:
    """Count elements in bins: those of the padding weigh nothing, and are in the range of the others."""
    array, weights = arguments["a"], arguments.get("weights")
    if is_sized(arguments.get("bins")) or isinstance(arguments.get("bins"), str):
        raise_unsupported("be the bins of np.histogram")
    if not isinstance(array, SizedArray):
        raise_unsupported("be the weights of np.histogram")
    array = _np.ravel(array)
    if weights is None:
        masked: Any = valid(array).astype(np.int64)
    else:
        require_same_shape((arguments["a"], weights), "weights should have the same shape as a.", ValueError)
        aligned, frame = align_arguments({"a": array, "weights": _np.ravel(weights)}, ("a", "weights"))
        array = frame.wrap(aligned["a"])
        if not isinstance(array, SizedArray):
            return call(func, {**arguments, **aligned})
        masked = filled(SizedArray(aligned["weights"], {0: array.count}), 0)
    array = array.like(resized(array.padded, 0, max(array.bound, 2)))
    masked = resized(masked, 0, array.bound)
    counts, edges = call(func, {**arguments, "a": _in_range(array), "weights": masked})
    if weights is None and not arguments.get("density"):
        counts = counts.astype(np.int64)
    return counts, edges


def _in_range(array: SizedArray) -> TracedArray:
    """Return padded elements whose padding is the first element; if there are none, 0 and 1, NumPy's default range."""
    first = array.padded[0]
    others = _np.where(np.arange(array.bound) > 0, 1, 0).astype(array.dtype)
    others = others[(..., *[None] * (array.ndim - 1))]
    replacement = _np.where(_np.greater(array.count, 0), first, others)
    return TracedArray(value_of(_np.where(valid(array), array.padded, replacement)))


@sized(np.histogramdd)
def histogramdd(func: Callable[..., Any], arguments: dict[str, Any]) -> Any:
    """Count points in bins of several dimensions: those of the padding weigh nothing."""
    sample, weights = arguments["sample"], arguments.get("weights")
    bins, limits = arguments.get("bins", 10), arguments.get("range")
    if is_sized(bins):
        raise_unsupported("be the bins of np.histogramdd", "pass edges of known size, or a number")
    points = _points(sample)
    masked = _weights(points, weights)
    if not isinstance(points, SizedArray):
        return call(func, {**arguments, "sample": points, "weights": masked})
    if points.dtype.kind == "f" and points.itemsize < np.dtype(float).itemsize and _are_found(bins, limits):
        leave_if(_np.equal(points.count, 0), "np.histogramdd of no points has edges of another dtype")
    points = points.like(resized(points.padded, 0, max(points.bound, 2)))
    masked = resized(masked, 0, points.bound)
    return call(func, {**arguments, "sample": _in_range(points), "weights": masked})


def _are_found(bins: Any, limits: Any) -> bool:
    """Return True if the edges of bins may follow from the points."""
    numbers = bins if isinstance(bins, (tuple, list)) else [bins]
    return (limits is None or any(r is None for r in limits)) and any(rank_of(b) == 0 for b in numbers)


def _points(sample: Any) -> Any:
    """Return points as rows."""
    points: Any = _np.stack(list(sample), axis=1) if isinstance(sample, (tuple, list)) else _array(sample)
    points = points[:, None] if points.ndim == 1 else points
    if isinstance(points, SizedArray) and points.run_time_dims != (0,):
        raise_unsupported("be the points of np.histogramdd, if the number of their coordinates is known at run time")
    return points


def _weights(points: Any, weights: Any) -> Any:
    """Return the weights of padded points; zeros in the padding."""
    if weights is None:
        return valid(SizedArray(points.padded[:, 0], points.counts)).astype(np.float64)
    weights = _array(weights)
    sizes = weights.shape[0], points.shape[0]
    fits: Any = _np.logical_or(_np.equal(*sizes), _np.equal(sizes[1], 0))  # no points take any weights
    fail_unless(fits, sizes[0], sizes[1], "The weights and list don't have the same length.", ValueError)
    bound = (points.padded if isinstance(points, SizedArray) else points).shape[0]
    data = resized(weights.padded if isinstance(weights, SizedArray) else weights, 0, bound)
    return filled(SizedArray(data, points.counts), 0) if isinstance(points, SizedArray) else data


@sized(np.histogram2d)
def histogram2d(func: Callable[..., Any], arguments: dict[str, Any]) -> Any:
    """Count pairs in bins of two dimensions."""
    x, y = (_array(arguments[n]) for n in "xy")
    if any(isinstance(v.shape[0], TracedArray) for v in (x, y)):
        require_equal(x.shape[0], y.shape[0], "x and y must have the same length.", ValueError)
    bins = arguments.get("bins", 10)
    if is_sized(bins):
        raise_unsupported("be the bins of np.histogram2d", "pass edges of known size, or a number")
    if (isinstance(bins, (list, tuple)) or rank_of(bins)) and len(bins) not in (1, 2):
        bins = [bins, bins]
    options = {n: arguments[n] for n in ("range", "density", "weights") if n in arguments}
    counts, edges = _np.histogramdd([x, y], bins, **options)
    return counts, edges[0], edges[1]


@sized(np.bincount)
def bincount(func: Callable[..., Any], arguments: dict[str, Any]) -> Any:
    """Count integers; the padding is 0 and weighs nothing."""
    length = arguments.pop("minlength", 0)
    if is_traced(length):
        return lengthened(bincount(func, arguments), length)
    arguments["minlength"] = length
    array, weights = arguments["x"], arguments.get("weights")
    if weights is not None:
        if isinstance(array, SizedArray):  # despite the weights
            leave_if(_np.equal(array.count, 0), "np.bincount of an array without elements, with weights, has integers")
        require_same_shape((array, weights), "The weights and list don't have the same length.", ValueError)
        aligned, frame = align_arguments({"x": array, "weights": weights}, ("x", "weights"))
        array, weights = (frame.wrap(aligned[n]) for n in ("x", "weights"))
        if not isinstance(array, SizedArray):
            return call(func, {**arguments, "x": array, "weights": weights})
        sums = call(func, {**arguments, "x": filled(array, 0), "weights": filled(weights.astype(np.float64), 0)})
        return _without_padding(sums, array)
    counts = _without_padding(call(func, {**arguments, "x": filled(array, 0)}), array)
    if isinstance(counts, SizedArray):
        is_zero = _np.where(np.arange(counts.bound) == 0, 1, 0)
        return counts.like(counts.padded - is_zero * (array.bound - array.count))
    first = as_traced(_np.where(np.arange(counts.shape[0]) == 0, 1, 0))
    return counts - first * (array.bound - array.count)


def _without_padding(counts: Any, array: SizedArray) -> Any:
    """Return counts whose number is that of the greatest element: none if there are no elements."""
    if not isinstance(counts, SizedArray):
        return counts
    count = _np.where(_np.equal(array.count, 0), 0, counts.count)
    return SizedArray(counts.padded, {0: as_size(as_traced(count), counts.bound)})
