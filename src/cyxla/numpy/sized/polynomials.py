"""Polynomials, piecewise functions, vector products and functions along axes of arrays of run-time size."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import reduce
from operator import index
from typing import Any

import numpy as np

from cyxla.errors import OutOfRangeError
from cyxla.numpy.control import fori_loop
from cyxla.numpy.indexing.equal_values import same_size
from cyxla.numpy.sized.creation import bound_of, bounded_size
from cyxla.numpy.sized.frames import align, leave_if, rank_of, resized, wrapped
from cyxla.numpy.sized.reductions import fail_if_empty
from cyxla.numpy.sized.table import call, sized
from cyxla.numpy.tracing.arrays.sized_array import SizedArray, as_size, filled, is_sized, raise_unsupported
from cyxla.numpy.tracing.arrays.traced_array import TracedArray, as_strong, as_traced, is_traced, value_of
from cyxla.numpy.tracing.trace import require_current
from cyxla.numpy.tracing.user_program.traced_once import TracedOnce
from cyxla.xla.hlo.builder import functions as xla
from cyxla.xla.lib import values

_np: Any = np  # its functions dispatch to this package


def _array(value: Any) -> Any:
    if isinstance(value, SizedArray):
        return value
    return _np.asarray(value) if is_sized(value) else as_strong(value)


# -- polynomials


def _coefficients(value: Any, name: str) -> Any:
    terms = _np.atleast_1d(_array(value))
    if terms.ndim > 1:
        raise_unsupported(f"be passed to np.{name} unless it is a vector", "index its rows")
    return terms


@sized(np.polyval)
def polyval(func: Callable[..., Any], arguments: dict[str, Any]) -> Any:
    """Evaluate a polynomial: a run-time number of coefficients in a loop."""
    terms, points = _array(arguments["p"]), _array(arguments["x"])
    if not isinstance(terms, SizedArray) or 0 not in terms.counts:
        result = _np.zeros_like(points)
        for k in range(terms.padded.shape[0] if isinstance(terms, SizedArray) else len(terms)):
            result = result * points + terms[k]
        return result
    terms = _coefficients(terms, "polyval")
    if not isinstance(points, SizedArray):
        return _evaluate(terms, points)
    return points.like(_evaluate(terms, points.padded))


def _evaluate(terms: SizedArray, points: Any) -> Any:
    dtype = np.result_type(terms.dtype, points.dtype)
    if points.ndim == 0 or dtype != points.dtype:
        leave_if(_np.equal(terms.count, 0), "np.polyval of no coefficients has the dtype of the points")
    differentiable = require_current().program.gradients  # a loop with a bound that is known

    def step(k: Any, result: Any) -> Any:
        following = result * points + _np.take(terms.padded, k, mode="clip")
        return _np.where(_np.less(k, terms.count), following, result) if differentiable else following

    zeros = _np.zeros_like(points, dtype=dtype)
    result = fori_loop(0, terms.bound if differentiable else terms.count, step, zeros) if terms.bound else zeros
    return TracedArray(value_of(result))


@sized(np.polyadd, np.polysub)
def add_polynomials(func: Callable[..., Any], arguments: dict[str, Any]) -> Any:
    """Add or subtract polynomials, whose last coefficients are of the same power."""
    terms = [_coefficients(arguments[n], func.__name__) for n in ("a1", "a2")]
    ascending = [_filled(t[::-1]) for t in terms]
    bound = max(t.shape[0] for t in ascending)
    ufunc: Any = np.add if func.__name__ == "polyadd" else np.subtract
    total = ufunc(*[resized(t, 0, bound) for t in ascending])
    count: Any = _np.maximum(*[t.shape[0] for t in terms])
    return SizedArray(total, {0: as_size(as_traced(count), bound)})[::-1].copy()


def _filled(terms: Any) -> Any:
    return filled(terms, 0) if isinstance(terms, SizedArray) else terms


@sized(np.polymul)
def polymul(func: Callable[..., Any], arguments: dict[str, Any]) -> Any:
    """Multiply polynomials without their leading zeros."""
    return _np.convolve(*[_without_leading_zeros(arguments[n]) for n in ("a1", "a2")])


def _without_leading_zeros(value: Any) -> Any:
    """Return the coefficients from the first that is not zero on, at least one."""
    terms = _np.atleast_1d(_array(value))
    if terms.ndim > 1:
        raise ValueError("Polynomial must be 1d only.")
    terms = _np.trim_zeros(terms, "f")
    if not isinstance(terms, SizedArray):
        return terms if terms.shape[0] else _np.zeros(1, terms.dtype)
    bound = max(terms.bound, 1)
    count: Any = _np.maximum(terms.count, 1)
    return SizedArray(resized(filled(terms, 0), 0, bound), {0: as_size(as_traced(count), bound)})


def _order(m: Any, message: str) -> int:
    order = int(m)
    if order < 0:
        raise ValueError(message)
    return order


@sized(np.polyder)
def polyder(func: Callable[..., Any], arguments: dict[str, Any]) -> Any:
    """Differentiate a polynomial m times."""
    order = _order(arguments.get("m", 1), "Order of derivative must be positive (see polyint)")
    terms = _coefficients(arguments["p"], "polyder")
    for _ in range(order):
        terms = terms[:-1]
        terms = terms.like(terms.padded * _powers(terms))
    return terms


@sized(np.polyint)
def polyint(func: Callable[..., Any], arguments: dict[str, Any]) -> Any:
    """Integrate a polynomial m times with constants."""
    order = _order(arguments.get("m", 1), "Order of integral must be positive (see polyder)")
    given = arguments.get("k")
    if is_sized(given):
        raise_unsupported("be the constants of np.polyint", "pass numbers")
    constants: Any = _np.atleast_1d(as_strong(np.zeros(order) if given is None else given))
    if len(constants) == 1 and order > 1:
        constants = constants[0] * np.ones(order)
    if len(constants) < order:
        raise ValueError("k must be a scalar or a rank-1 array of length 1 or >m.")
    terms = _coefficients(arguments["p"], "polyint")
    for n in range(order):
        terms = _np.concatenate([terms.like(terms.padded / _powers(terms)), constants[n : n + 1]])
    return terms


def _powers(terms: SizedArray) -> Any:
    """Return the distance of each element from the end, at least one."""
    return _np.maximum(terms.count - np.arange(terms.bound), 1)


@sized(np.vander)
def vander(func: Callable[..., Any], arguments: dict[str, Any]) -> Any:
    """Return powers of a vector as columns."""
    array, number, increasing = arguments["x"], arguments.get("N"), arguments.get("increasing", False)
    if array.ndim != 1:
        raise ValueError("x must be a one-dimensional array or sequence.")
    columns: Any = array.count if number is None else bounded_size(number) if is_traced(number) else index(number)
    if not is_traced(columns):
        if columns < 0:
            raise ValueError("negative dimensions are not allowed")
        return array.like(call(func, {**arguments, "x": array.padded, "N": columns}))
    bound = array.bound if number is None else bound_of(columns)
    base = array.padded.astype(np.promote_types(array.dtype, int))[:, None]
    powers = _np.cumprod(_np.where(np.arange(bound) > 0, base, _np.ones_like(base)), axis=1)
    matrix = SizedArray(powers, {0: array.count, 1: as_size(as_traced(columns), bound)})
    return matrix if increasing else matrix[:, ::-1].copy()


# -- piecewise functions


@sized(np.piecewise)
def piecewise(func: Callable[..., Any], arguments: dict[str, Any]) -> Any:
    """Apply functions to the elements for which conditions hold."""
    array, functions = _array(arguments["x"]), arguments["funclist"]
    conditions = [c.astype(bool) for c in _conditions(arguments["condlist"], array)]
    n = len(conditions)
    if n == len(functions) - 1:
        conditions.append(_np.logical_not(reduce(_np.logical_or, conditions)))
    elif n != len(functions):
        raise ValueError(f"with {n} condition(s), either {n} or {n + 1} functions are expected")
    result = _np.zeros_like(array)
    for condition, function in zip(conditions, functions, strict=True):
        if callable(function):
            with _failing_only_if(condition):
                part = function(array[condition], *arguments.get("args", ()), **arguments.get("kw", {}))
                result[condition] = part
        else:
            result[condition] = function
    return result


@contextmanager
def _failing_only_if(condition: Any) -> Iterator[None]:
    """Ignore the failures of a block in runs in which a condition holds nowhere: NumPy calls no function then."""
    failures = require_current().failures
    before = len(failures)
    yield
    if len(failures) > before:
        holds = value_of(as_traced(_np.any(condition)))
        failures[before:] = [
            (xla.select(holds, code, values.scalar(code, 0)), number) for code, number in failures[before:]
        ]


def _conditions(conditions: Any, array: Any) -> list[Any]:
    """Return a list of conditions, also for a single one."""
    if isinstance(conditions, (list, tuple)):
        is_single = array.ndim > 0 and not isinstance(conditions[0], list) and rank_of(conditions[0]) == 0
        return [_array(conditions)] if is_single else list(map(_array, conditions))
    if isinstance(conditions, SizedArray) and 0 in conditions.counts:
        fail_if_empty(conditions, "index 0 is out of bounds for axis 0 with size 0", [0], OutOfRangeError)
    return [_array(conditions)] if rank_of(conditions) < 2 else list(_array(conditions))


# -- vectors


@sized(np.cross, np.linalg.cross)
def cross(func: Callable[..., Any], arguments: dict[str, Any]) -> Any:
    """Compute the cross products of vectors whose other dimensions broadcast."""
    is_strict = "x1" in arguments
    names = ("x1", "x2") if is_strict else ("a", "b")
    axis = arguments.get("axis", -1 if is_strict else None)
    axes = [arguments.get(n, -1) if axis is None else axis for n in ("axisa", "axisb", "axisc")]
    arrays = [_array(arguments[n]) for n in names]
    if not all(a.ndim for a in arrays):
        raise ValueError("At least one array has zero dimension")
    arrays = [_np.moveaxis(a, d, -1) for a, d in zip(arrays, axes[:2], strict=True)]
    if any(is_traced(a.shape[-1]) for a in arrays):
        raise_unsupported("have the components of the vectors of np.cross along that dimension")
    aligned, frame = align(arrays)
    product: Any = func(*aligned)
    lost = max(a.ndim for a in arrays) - product.ndim  # of vectors in a plane, that of the components
    product = wrapped(product, {product.ndim + lost - k: n for k, n in frame.counts.items()})
    return product if lost else _np.moveaxis(product, -1, axes[2])


# -- functions along axes


@sized(np.apply_along_axis)
def apply_along_axis(func: Callable[..., Any], arguments: dict[str, Any]) -> Any:
    """Apply a function to all vectors along an axis; the padding repeats the last vector."""
    array, function = arguments["arr"], arguments["func1d"]
    axis = int(np.lib.array_utils.normalize_axis_index(arguments["axis"], array.ndim))
    outer = {d: n for d, n in array.counts.items() if d != axis}
    fail_if_empty(array, "Cannot apply_along_axis when any iteration dimensions are 0", outer, ValueError)
    data = array.padded
    for d, n in outer.items():
        data = _np.take(data, _np.minimum(np.arange(data.shape[d]), n - 1), axis=d, mode="clip")
    kept: list[bool] = []

    def apply(vector: Any, *args: Any, **kwargs: Any) -> Any:
        part = SizedArray(vector, {0: array.counts[axis]}) if axis in array.counts else vector
        result = function(part, *args, **kwargs)
        kept.append(isinstance(result, SizedArray))
        return _elements(result, part) if kept[-1] else result

    result: Any = call(func, {**arguments, "func1d": TracedOnce(function, apply), "arr": data})
    added = result.ndim - (array.ndim - 1)
    counts = {d if d < axis else d - 1 + added: n for d, n in outer.items()}
    return wrapped(result, counts | ({axis: array.counts[axis]} if any(kept) else {}))


def _elements(result: SizedArray, part: Any) -> TracedArray:
    """Return the padded elements of a vector that has the size of another one."""
    is_alike = isinstance(part, SizedArray) and result.run_time_dims == (0,) and result.ndim == 1
    if not is_alike or not same_size(result.count, part.count) or result.bound != part.bound:
        raise_unsupported("be the result of a function of np.apply_along_axis, unless it has the size of the vector")
    padded: TracedArray = result.padded
    return padded


@sized(np.apply_over_axes)
def apply_over_axes(func: Callable[..., Any], arguments: dict[str, Any]) -> Any:
    """Apply a function of an array and an axis for several axes in turn."""
    array, function, axes = arguments["a"], arguments["func"], arguments["axes"]
    rank = array.ndim
    for axis in [axes] if np.ndim(axes) == 0 else axes:
        dimension = axis + rank if axis < 0 else axis
        result = _array(function(array, dimension))
        result = result if result.ndim == rank else _np.expand_dims(result, dimension)
        if result.ndim != rank:
            raise ValueError("function is not returning an array of the correct shape")
        array = result
    return array
