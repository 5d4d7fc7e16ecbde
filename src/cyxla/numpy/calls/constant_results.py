"""Results that need no program: known arrays of text, dates, objects and long doubles, and long lists of constants."""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from datetime import date, time, timedelta
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np

from cyxla.numpy.tracing.arrays.deferred_array import has_element_type
from cyxla.numpy.tracing.arrays.traced_array import TracedArray
from cyxla.numpy.tracing.containers import Kind, register_kind

_IMMUTABLE = (
    str, bytes, bool, int, float, complex, type(None), type(...), np.generic, Decimal, Fraction, date, time, timedelta,
)  # fmt: skip


_NUMBERS = (int, float, bool, complex)
_SEQUENCES = (list, tuple)
_LEAST_CONSTANTS = 64  # numbers in lists that are worth more than an output of the program for each


class ConstantResult:
    """Part of a result that is the same in each call, which gets a copy of its own.

    Parameters
    ----------
    value : object
        Array, scalar or lists, which are copied in each call.
    """

    def __init__(self, value: Any) -> None:
        self.value = value


def constant_result(value: Any, from_outside: Callable[[Any], Any]) -> ConstantResult | None:
    """Return the constant result of a value known while tracing; None for others.

    That is an array whose dtype has no element type, many of Python's numbers in lists and tuples, or a large integer.

    Parameters
    ----------
    value : object
        Part of a result.
    from_outside : callable
        Function that tells whether an object, an element of an array, is the same in each call: it comes from outside.
    """
    if type(value) in _SEQUENCES:
        count = _count_of_numbers(value)
        return ConstantResult(_Numbers(value)) if count is not None and count >= _LEAST_CONSTANTS else None
    if type(value) is int:
        return None if -(2**63) <= value < 2**63 else ConstantResult(value)
    known = value.known if isinstance(value, TracedArray) else value
    if not isinstance(known, (np.ndarray, np.generic)) or type(known).__module__ != "numpy":
        return None
    if (known.dtype.isnative and has_element_type(known.dtype)) or not _is_immutable(known, from_outside):
        return None
    return ConstantResult(copy(known))


def _count_of_numbers(value: Any) -> int | None:
    """Return how many numbers lists and tuples hold; None if they hold anything else."""
    if type(value) not in _SEQUENCES:
        return 1 if type(value) in _NUMBERS else None
    total = 0
    for part in value:
        count = _count_of_numbers(part)
        if count is None:
            return None
        total += count
    return total


class _Numbers:
    """Numbers in lists and tuples, whose copies are lists and tuples.

    Parameters
    ----------
    value : list or tuple
        Lists or tuples.
    """

    def __init__(self, value: Any) -> None:
        self._is_tuple = type(value) is tuple
        self._is_flat = all(type(part) in _NUMBERS for part in value)
        self._parts = list(value) if self._is_flat else [_copier(part) for part in value]

    def __copy__(self) -> Any:
        parts = self._parts.copy() if self._is_flat else [copy(part) for part in self._parts]
        return tuple(parts) if self._is_tuple else parts


def _copier(value: Any) -> Any:
    return _Numbers(value) if type(value) in _SEQUENCES else value


def _is_immutable(value: Any, from_outside: Callable[[Any], Any]) -> bool:
    """Return True unless elements are objects of the call, which it could change, or which may be traced."""
    if not value.dtype.hasobject:
        return True
    if value.dtype.kind != "O":
        return False
    return all(isinstance(v, _IMMUTABLE) or _is_outside(v, from_outside) for v in np.asarray(value).ravel())


def _is_outside(value: Any, from_outside: Callable[[Any], Any]) -> bool:
    """Return True for an object from outside itself; lists and dicts have mirrors while tracing."""
    return getattr(from_outside(value), "value", None) is value


register_kind(ConstantResult, Kind(lambda v: (), lambda v: v.value, lambda v: (), lambda key, parts: copy(key)))
