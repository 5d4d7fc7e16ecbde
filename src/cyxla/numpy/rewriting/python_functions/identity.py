"""Comparison of objects with `is`, and of tuples and lists with ``==``."""

from __future__ import annotations

from typing import Any

import numpy as np

from cyxla.errors import TraceError
from cyxla.numpy.rewriting.python_functions.choices import truth
from cyxla.numpy.tracing.arrays.number_table import TableRow
from cyxla.numpy.tracing.arrays.traced_array import TracedArray, is_traced
from cyxla.numpy.tracing.containers import kind_of
from cyxla.numpy.tracing.copies import is_copy
from cyxla.numpy.tracing.trace import current, require_current, user_line
from cyxla.numpy.tracing.user_program.classes import class_of

_np: Any = np  # its functions dispatch to this package


def is_same(one: Any, other: Any) -> Any:
    """Return ``one is other``, which is traced for bools, and for rows of a list of lists.

    Raises
    ------
    TraceError
        They may be the same object or not: they are traced numbers, or one of them is a copy.
    """
    if one is other or current() is None:
        return one is other
    if isinstance(one, TableRow) and isinstance(other, TableRow):
        require_current().program.compares_objects = True  # two rows may be one list of the caller
        return one.table is other.table and one.number == other.number
    if _may_be_same(one, other):
        return _are_same_containers(one, other)
    return (is_traced(one) or is_traced(other)) and _are_same_numbers(one, other)


def are_equal(one: Any, other: Any) -> Any:
    """Return ``one == other``, which is traced for tuples, and for lists, of traced numbers, such as shapes."""
    kind = type(one)
    if kind not in (tuple, list) or type(other) is not kind or not (is_traced(one) or is_traced(other)):
        return one == other
    if len(one) != len(other):
        return False
    result: Any = True
    for a, b in zip(one, other, strict=True):
        part = are_equal(a, b) if a is not b else True
        if not is_traced(part) and not part:
            return False
        result = part if result is True else result if part is True else _np.logical_and(truth(result), truth(part))
    return result if isinstance(result, bool) else truth(result)


def _may_be_same(one: Any, other: Any) -> bool:
    """Return True for two arrays, or two containers of one kind."""
    if isinstance(one, TracedArray):
        return isinstance(other, TracedArray) and bool(one.ndim and other.ndim)
    kind = kind_of(one)
    return kind is not None and kind_of(other) == kind


def _are_same_containers(one: Any, other: Any) -> bool:
    """Return False for different arrays or containers, unless one of them is a copy."""
    require_current().program.compares_objects = True
    if is_copy(one) or is_copy(other):
        name = "array" if isinstance(one, TracedArray) else type(one).__name__
        raise TraceError(
            f"whether elements of a list, or values of a loop or branch, are one and the same {name} is not known",
            where=user_line(), hint="compare their indices instead of using `is`",
        )  # fmt: skip
    return False


def _are_same_numbers(one: Any, other: Any) -> Any:
    """Compare numbers of which one is traced: of bools, there is one object for each value."""
    kind = class_of(one)
    if kind is not class_of(other) or not issubclass(kind, (int, float, complex, np.generic)):
        return False
    if not issubclass(kind, (bool, np.bool)):
        raise TraceError("whether two numbers are one object is not known while tracing", hint="compare with ==")
    return truth(_np.equal(one, other))
