"""Python's functions of iterables for traced numbers: `any`, `all`, `max`, `min`, `sum`, `sorted`, ``math.prod``."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import reduce
from operator import gt, lt, mul
from typing import Any, Final

import numpy as np

from cyxla.errors import TraceError
from cyxla.numpy.array_methods.number_methods import to_python
from cyxla.numpy.rewriting.python_functions.choices import condition, select, truth
from cyxla.numpy.sized.frames import fail_unless
from cyxla.numpy.tracing.arrays.sized_array import SizedArray
from cyxla.numpy.tracing.arrays.stacked_list import StackedList
from cyxla.numpy.tracing.arrays.traced_array import TracedArray, as_traced, is_traced, value_of
from cyxla.numpy.tracing.trace import require_current, user_line
from cyxla.numpy.tracing.user_program.classes import class_of, is_number
from cyxla.numpy.tracing.user_program.doubts import note_doubt

_np: Any = np  # its functions dispatch to this package
_MOST_UNROLLED: Final = 16  # elements of an array that are taken one by one
_MOST_SORTED: Final = 64
_LARGE: Final = 9.2e18  # a little less than 2 ** 63
try:
    max(())
except ValueError as _error:
    _EMPTY: Final = str(_error).removeprefix("max() ")  # which differs between versions of Python


def _is_long(values: Any) -> bool:
    """Return True for a traced vector that a function of whole arrays reduces."""
    is_vector = isinstance(values, TracedArray) and values.known is None and values.ndim == 1
    return is_vector and len(values) > _MOST_UNROLLED


def _is_sized(values: Any) -> bool:
    """Return True for a vector of run-time size, which may have elements."""
    return isinstance(values, SizedArray) and values.ndim == 1 and values.padded.shape[0] > 0


def _whole(values: Any) -> Any:
    """Return the numbers of a list that a loop of the program made as a vector; other values as they are."""
    vector = values.as_vector() if isinstance(values, StackedList) else None
    return values if vector is None else vector


def _of_element(value: Any, values: Any) -> Any:
    """Return a number of the class of the elements of a list that a loop of the program made."""
    if isinstance(values, StackedList) and isinstance(value, TracedArray) and values.elements.leaves[0].is_python:
        return to_python(value)
    return value


def _is_traced_number(value: Any) -> bool:
    return is_number(value) and value.known is None


def _without_nan(values: Any) -> Any:
    """Return an array of which the plain function runs instead if it has a NaN, whose place matters to Python."""
    if values.dtype.kind == "f":
        text = f"a NaN is compared\n  at:   {user_line()}"
        require_current().leave_if(value_of(_np.any(_np.isnan(values))), lambda _: ValueError(text))
    return values


def _quantified(original: Callable[[Any], bool], stops_at: bool) -> Callable[[Any], Any]:
    join = "logical_or" if stops_at else "logical_and"

    def substitute(values: Any) -> Any:
        if _is_long(values) or _is_sized(values):
            return truth((_np.any if stops_at else _np.all)(values))
        found: Any = None
        checks = 0
        for value in values:
            if found is not None and len(require_current().program.checks) > checks:
                raise TraceError(
                    f"{original.__name__} of values whose computation may fail, after one that may end it",
                    where=user_line(), hint="use a loop with break",
                )  # fmt: skip
            tested = condition(value)
            if not is_traced(tested):
                if bool(tested) is stops_at:
                    return stops_at
                continue
            test = truth(tested)
            found = test if found is None else truth(getattr(_np, join)(found, test))
            checks = len(require_current().program.checks)
        return (not stops_at) if found is None else found

    return substitute


def _extremum(original: Callable[..., Any], better: Callable[[Any, Any], Any]) -> Callable[..., Any]:
    name = original.__name__

    def substitute(*args: Any, **kwargs: Any) -> Any:
        if len(args) == 1 and not kwargs and _is_sized(args[0]) and args[0].dtype.kind in "iuf":
            size = args[0].shape[0]
            fail_unless(_np.greater(size, 0), size, 0, f"{name}() {_EMPTY}")
            return getattr(_np, name)(_without_nan(args[0]))
        if len(args) == 1 and not kwargs and _is_long(args[0]) and args[0].dtype.kind in "iuf":
            return getattr(_np, name)(_without_nan(args[0]))
        if len(args) == 1 and not kwargs and (vector := _whole(args[0])) is not args[0] and vector.dtype.kind in "iuf":
            best = _of_element(getattr(_np, name)(_without_nan(vector)), args[0])
            best.doubt = args[0].doubt_of_any
            return best
        values = list(args[0]) if len(args) == 1 else list(args)
        key = kwargs.get("key")
        if not values or len(values) == 1 or set(kwargs) - {"key", "default"}:
            return original(values, **kwargs)
        keys = values if key is None else [key(v) for v in values]
        if not any(map(_is_traced_number, keys)) or not all(is_number(v) or np.isscalar(v) for v in (*values, *keys)):
            return original(values) if key is None else values[keys.index(original(keys))]
        best, best_key = values[0], keys[0]
        for value, other in zip(values[1:], keys[1:], strict=True):
            is_better = better(other, best_key)
            best = select(is_better, value, best)
            best_key = best if key is None else select(is_better, other, best_key)
        return best

    return substitute


def _sum(values: Any, start: Any = 0) -> Any:
    is_of_numbers = type(start) is int and not start and getattr(values, "dtype", np.dtype(object)).kind in "biufc"
    if is_of_numbers and (_is_long(values) or _is_sized(values)):
        # Integers keep their type, in which the total may wrap around, as those of NumPy that Python adds.
        total = values.sum(dtype=values.dtype if values.dtype.kind in "iu" else None)
        if isinstance(values, SizedArray):
            note_doubt(total, value_of(_np.equal(values.shape[0], 0)), 0, total)  # that of no elements is Python's
        return total
    vector = _whole(values)
    if vector is not values and type(start) is int and not start and vector.dtype.kind in "iufc":
        is_integer = vector.dtype.kind in "iu"
        total = _of_element(vector.sum(dtype=vector.dtype if is_integer else None), values)
        if is_integer and values.as_numbers() is not None:
            _leave_if_large(vector)
        if isinstance(total, TracedArray):
            total.doubt = values.doubt_of_sum
        return total
    return sum(values, start)


def _leave_if_large(integers: Any) -> None:
    """Make NumPy run in place of runs in which Python's sum of integers has more than 64 bits, or almost."""
    is_large = _np.greater(_np.abs(integers.astype(np.float64).sum()), _LARGE)
    text = f"a sum of Python's integers may have more than 64 bits\n  at:   {user_line()}"
    require_current().leave_if(value_of(is_large), lambda _: OverflowError(text))


def _sorted(values: Any, **kwargs: Any) -> Any:
    is_plain = set(kwargs) - {"reverse"} or is_traced(kwargs.get("reverse"))
    numbers = None
    if isinstance(values, StackedList) and not is_plain:
        numbers = values.as_numbers() if values.comes_as_array else None
        numbers = values.stacks[0] if values.is_sized_vector() and values.stacks is not None else numbers
    if numbers is not None and numbers.dtype.kind in "biuf":
        return values.with_stacks([_in_order(_without_nan(numbers), bool(kwargs.get("reverse")))])
    found = list(values)
    if is_plain or not any(map(_is_traced_number, found)) or len({class_of(v) for v in found}) > 1:
        return sorted(found, **kwargs)
    if len(found) > _MOST_SORTED:
        raise TraceError(
            f"more than {_MOST_SORTED} traced numbers are sorted as a list", where=user_line(), hint="use np.sort"
        )
    ordered = _np.sort(_without_nan(_np.array(found)))
    elements = [_like(ordered[k], found[0]) for k in range(len(found))]
    return elements[::-1] if kwargs.get("reverse") else elements


def _in_order(numbers: Any, is_reversed: bool) -> Any:
    """Return sorted numbers, equal ones as they follow each other, even if they are sorted from the greatest on."""
    ordered = _np.sort(numbers[::-1] if is_reversed else numbers, kind="stable")
    return ordered[::-1] if is_reversed else ordered


def _like(value: TracedArray, other: Any) -> TracedArray:
    """Return a number of the class of another one."""
    if type(other) in (bool, int, float, complex):
        other = as_traced(other)
    if isinstance(other, TracedArray) and (other.weak is not None or value.rank0 is not other.rank0):
        return TracedArray(value_of(value), other.weak, rank0=other.rank0)
    return value


def _product(values: Any, *, start: Any = 1) -> Any:
    found = list(values)
    return reduce(mul, found, start) if any(map(_is_traced_number, found)) else math.prod(found, start=start)


SUBSTITUTES: dict[Callable[..., Any], Callable[..., Any]] = {
    any: _quantified(any, stops_at=True), all: _quantified(all, stops_at=False),
    max: _extremum(max, gt), min: _extremum(min, lt), sum: _sum, sorted: _sorted, math.prod: _product,
}  # fmt: skip
