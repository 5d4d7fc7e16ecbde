"""Calls of NumPy functions on traced arrays: results get the memory layout and the kind of 0-d result of NumPy's."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from cyxla.numpy.tracing.hooks import hooks
from cyxla.numpy.tracing.registry import full_name, implementation_of
from cyxla.numpy.tracing.result_layout import set_result_layout
from cyxla.numpy.tracing.traced_array import TracedArray, value_of
from cyxla.numpy.tracing.zero_dim import (
    ARRAY_RESULTS,
    NUMBER_RESULTS,
    PYTHON_RESULTS,
    RANK0_SET_BY_FUNCTION,
    SAME_KIND_RESULTS,
    Rank0,
)

_NUMBERS = (bool, int, float, complex)


def call_function(function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """Return the result of a NumPy function of traced arrays; at rank 0 an array or a scalar as in NumPy."""
    made, name = implementation_of(function)(*args, **kwargs), full_name(function)
    if args:
        set_result_layout(made, name, args, kwargs)
    return _with_rank0(made, name, args, kwargs.get("out"))


def _with_rank0(made: Any, name: str, args: Sequence[Any], out: Any) -> Any:
    if type(made) in (tuple, list):
        return type(made)([_with_rank0(m, name, args, out) for m in made])
    if name in RANK0_SET_BY_FUNCTION or not isinstance(made, TracedArray) or made.ndim or made.known is not None:
        return made
    given: Any = args[0] if args else None
    rank0 = _rank0_of(name, given)
    if made.rank0 is rank0 or any(made is a for a in (out, *args[1:])):  # an array of `out=` stays what it is
        return made
    if made is not given:
        made.rank0 = rank0
        return made
    return TracedArray(value_of(made), rank0=rank0)


def _rank0_of(name: str, given: Any) -> Rank0:
    if name in SAME_KIND_RESULTS:
        found = _rank0_of_argument(given)
        return Rank0.ARRAY if found is Rank0.PYTHON and name not in NUMBER_RESULTS else found
    return Rank0.ARRAY if name in ARRAY_RESULTS else Rank0.PYTHON if name in PYTHON_RESULTS else Rank0.SCALAR


def _rank0_of_argument(value: Any) -> Rank0:
    if isinstance(value, TracedArray):
        return value.rank0 if value.ndim == 0 else Rank0.ARRAY
    return Rank0.PYTHON if type(value) in _NUMBERS else Rank0.SCALAR if isinstance(value, np.generic) else Rank0.ARRAY


hooks.call_function = call_function
