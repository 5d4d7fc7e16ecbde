"""Searches in arrays of run-time size: the padding of a sorted array sorts last."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from cyxla.numpy.functions.differences import refuse_complex
from cyxla.numpy.sized.frames import array_of, fail_unless, padded_of, require_equal, require_same_shape, resized
from cyxla.numpy.sized.sorting import digitize, last
from cyxla.numpy.sized.table import call
from cyxla.numpy.tracing.arrays.sized_array import SizedArray, filled, raise_unsupported
from cyxla.numpy.tracing.arrays.traced_array import TracedArray, value_of
from cyxla.numpy.tracing.results.zero_dim import Rank0


def _like_queries(queries: Any, compute: Callable[[Any], Any]) -> Any:
    """Return a function of each query, of run-time size if the queries are."""
    if not isinstance(queries, SizedArray):
        return compute(queries)
    return queries.like(compute(queries.padded))


def _search_sorted(func: Callable[..., Any], arguments: dict[str, Any]) -> Any:
    array, sorter = arguments["a"], arguments.get("sorter")
    if sorter is not None:
        require_same_shape([array, array_of(sorter)], "sorter.size must equal a.size", ValueError)
        array = array[sorter]

    def compute(queries: Any) -> Any:
        found = call(func, {**arguments, "a": filled(array, last), "v": queries, "sorter": None})
        return np.minimum(found, array.count)

    return _like_queries(arguments["v"], compute)


def _is_in(func: Callable[..., Any], arguments: dict[str, Any]) -> Any:
    """Search in sorted elements; nan is never found, since it equals nothing."""
    element, tests = arguments["element"], arguments["test_elements"]
    invert = arguments.get("invert", False)
    candidates: Any = np.sort(np.ravel(tests))
    if candidates.bound == 0:
        return np.isin(element, np.zeros(0, candidates.dtype), invert=invert)

    def compute(queries: Any) -> Any:
        indices = np.searchsorted(candidates, queries)
        nearest = np.take(candidates.padded, np.minimum(indices, candidates.bound - 1))
        found = np.logical_and(np.equal(nearest, queries), np.less(indices, candidates.count))
        return np.logical_not(found) if invert else found

    result = _like_queries(element, compute)
    if isinstance(result, TracedArray):
        result.rank0 = Rank0.ARRAY
    return result


def _interpolate(func: Callable[..., Any], arguments: dict[str, Any]) -> Any:
    """Interpolate between points whose padding repeats the last one at infinity."""
    if any(not isinstance(arguments[n], SizedArray) for n in ("xp", "fp")) or arguments.get("period") is not None:
        raise_unsupported("be the points of np.interp with period= or with points of known size")
    refuse_complex(x=padded_of(arguments["x"]), xp=arguments["xp"].padded)
    points, function_values = arguments["xp"].astype(np.float64), arguments["fp"]
    require_equal(points.count, function_values.count, "fp and xp are not of the same length.")
    fail_unless(np.greater(points.count, 0), points.count, points.count, "array of sample points is empty")
    bound = min(points.bound, function_values.bound)
    points, function_values = (p.like(resized(p.padded, 0, bound)) for p in (points, function_values))
    final = function_values[-1]
    padded = _filled_with(function_values, final)
    limit = points[-1]
    right = arguments.get("right")

    def compute(x: Any) -> Any:
        result = call(func, {**arguments, "x": x, "xp": filled(points, np.inf), "fp": padded, "right": None})
        inner: Any = np.where(np.equal(x, limit), final, result)
        return (inner if right is None else np.where(np.greater(x, limit), right, inner))[()]

    return _like_queries(arguments["x"], compute)


def _filled_with(array: SizedArray, value: TracedArray) -> TracedArray:
    return filled(array, lambda op: value_of(value))


#: The parameter that holds the queries, and the function for other arguments of run-time size.
SEARCHES: dict[str, tuple[str, Callable[..., Any]]] = {
    "searchsorted": ("v", _search_sorted), "isin": ("element", _is_in), "digitize": ("x", digitize),
    "interp": ("x", _interpolate),
}  # fmt: skip
__all__ = ["SEARCHES"]
