"""Results of types that programs do not compute with: known arrays of text, dates, objects and long doubles."""

from __future__ import annotations

from copy import copy
from datetime import date, time, timedelta
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np

from cyxla.errors import DTypeError
from cyxla.numpy.tracing.containers import Kind, register_kind
from cyxla.numpy.tracing.traced_array import TracedArray
from cyxla.types import from_numpy

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


def constant_result(value: Any) -> ConstantResult | None:
    """Return the constant result of a value known while tracing, whose dtype has no element type; None for others."""
    known = value.known if isinstance(value, TracedArray) else value
    if not isinstance(known, (np.ndarray, np.generic)) or type(known).__module__ != "numpy":
        return None
    try:
        from_numpy(known.dtype)
    except DTypeError:
        return ConstantResult(copy(known)) if _is_immutable(known) else None
    return None


def _is_immutable(value: Any) -> bool:
    """Return True unless elements are objects, which a call could change, or which may be traced."""
    if not value.dtype.hasobject:
        return True
    return value.dtype.kind == "O" and all(isinstance(v, _IMMUTABLE) for v in np.asarray(value).ravel())


register_kind(ConstantResult, Kind(lambda v: (), lambda v: v.value, lambda v: (), lambda key, parts: copy(key)))
