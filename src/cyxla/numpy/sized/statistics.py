"""Covariances, histograms and differences of arrays of run-time size."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from cyxla.numpy.functions.histograms import lengthened
from cyxla.numpy.sized.elementwise import align_arguments
from cyxla.numpy.sized.frames import leave_if, rank_of, require_same_shape, resized
from cyxla.numpy.sized.reductions import fail_if_empty
from cyxla.numpy.sized.table import call, sized
from cyxla.numpy.tracing.arrays.sized_array import SizedArray, as_size, filled, is_sized, raise_unsupported, valid
from cyxla.numpy.tracing.arrays.traced_array import TracedArray, as_traced, is_traced, value_of
from cyxla.numpy.ufunc_methods.reduce import NOT_GIVEN

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
    y = y if isinstance(y, SizedArray) else _np.asarray(y)
    axis = int(np.lib.array_utils.normalize_axis_index(axis, y.ndim))
    if x is None:
        steps: Any = arguments.get("dx", 1.0)
    else:
        if rank_of(x) > y.ndim:
            raise_unsupported("be integrated over points of a higher rank", "broadcast the values first")
        steps = _np.diff(x)
        if steps.ndim == 1 and y.ndim > 1:
            steps = steps[(..., *[None] * (y.ndim - axis - 1))]
    leading = [slice(None)] * axis
    pairs = y[(*leading, slice(1, None))] + y[(*leading, slice(None, -1))]
    return _np.sum(steps * pairs / 2.0, axis=axis)


@sized(np.gradient)
def gradient(func: Callable[..., Any], arguments: dict[str, Any]) -> Any:
    """Compute the gradient of a vector: central differences, one-sided ones at the ends."""
    array, spacings = arguments["f"], arguments.get("varargs", ())
    if array.ndim != 1 or arguments.get("edge_order", 1) != 1 or any(np.ndim(s) or is_sized(s) for s in spacings):
        raise_unsupported("be passed to np.gradient unless it is a vector with one spacing", "use np.diff")
    fail_if_empty(
        array[1:],
        "Shape of array too small to calculate a numerical gradient, at least (edge_order + 1) elements are required.",
    )
    if array.dtype.kind in "iu":
        array = array.astype(np.float64)
    step = spacings[0] if spacings else 1.0
    inner = (array[2:] - array[:-2]) / (2.0 * step)
    ends = [_np.reshape((array[k + 1] - array[k]) / step, (1,)) for k in (0, -2)]
    return _np.concatenate([ends[0], inner, ends[1]]).astype(ends[0].dtype)


# -- covariances


@sized(np.cov)
def cov(func: Callable[..., Any], arguments: dict[str, Any]) -> Any:
    """Compute the covariance matrix of variables of which there is a run-time number of observations."""
    if any(arguments.get(n) is not None for n in ("fweights", "aweights", "dtype")):
        raise_unsupported("be passed to np.cov with weights or dtype=")
    parts = [_as_rows(arguments[n], arguments.get("rowvar", True)) for n in ("m", "y") if arguments.get(n) is not None]
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


def _as_rows(array: Any, rowvar: Any) -> Any:
    rows = _np.atleast_2d(array)
    return rows.T if not rowvar and np.ndim(array) != 1 else rows


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
    replacement = _np.where(_np.greater(array.count, 0), first, others)
    return TracedArray(value_of(_np.where(valid(array), array.padded, replacement)))


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
