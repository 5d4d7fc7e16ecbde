"""Results of types that programs do not compute with: known arrays of text, dates, objects and long doubles."""

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


class ConstantResult:
    """Part of a result that is the same in each call, which gets a copy of its own.

    Parameters
    ----------
    value : numpy.ndarray or numpy.generic
        Value.
    """

    def __init__(self, value: Any) -> None:
        self.value = value


def constant_result(value: Any, from_outside: Callable[[Any], Any]) -> ConstantResult | None:
    """Return the constant result of a value known while tracing, whose dtype has no element type; None for others.

    Parameters
    ----------
    value : object
        Part of a result.
    from_outside : callable
        Function that tells whether an object, an element of an array, is the same in each call: it comes from outside.
    """
    known = value.known if isinstance(value, TracedArray) else value
    if not isinstance(known, (np.ndarray, np.generic)) or type(known).__module__ != "numpy":
        return None
    if (known.dtype.isnative and has_element_type(known.dtype)) or not _is_immutable(known, from_outside):
        return None
    return ConstantResult(copy(known))


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
