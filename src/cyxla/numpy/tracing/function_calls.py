"""Calls of NumPy functions on traced arrays: results get the memory layout and the kind of 0-d result of NumPy's."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from cyxla.numpy.tracing.arrays.deferred_array import defer_function
from cyxla.numpy.tracing.arrays.traced_array import TracedArray, value_of
from cyxla.numpy.tracing.hooks import hooks
from cyxla.numpy.tracing.registry import full_name, implementation_of
from cyxla.numpy.tracing.results.result_layout import set_result_layout
from cyxla.numpy.tracing.results.zero_dim import (
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
    deferred = defer_function(function, args, kwargs)
    if deferred is not None:
        return deferred
    result, name = implementation_of(function)(*args, **kwargs), full_name(function)
    if args:
        set_result_layout(result, name, args, kwargs)
    return _with_rank0(result, name, args, kwargs.get("out"))


def _with_rank0(result: Any, name: str, args: Sequence[Any], out: Any) -> Any:
    if type(result) in (tuple, list):
        return type(result)([_with_rank0(r, name, args, out) for r in result])
    if name in RANK0_SET_BY_FUNCTION or not isinstance(result, TracedArray) or result.ndim or result.known is not None:
        return result
    first_argument: Any = args[0] if args else None
    rank0 = _rank0_of(name, first_argument)
    if result.rank0 is rank0 or any(result is a for a in (out, *args[1:])):  # the array of `out=` keeps its kind
        return result
    if result is not first_argument:
        result.rank0 = rank0
        return result
    return TracedArray(value_of(result), rank0=rank0)


def _rank0_of(name: str, first_argument: Any) -> Rank0:
    if name in SAME_KIND_RESULTS:
        rank0 = _rank0_of_argument(first_argument)
        return Rank0.ARRAY if rank0 is Rank0.PYTHON and name not in NUMBER_RESULTS else rank0
    return Rank0.ARRAY if name in ARRAY_RESULTS else Rank0.PYTHON if name in PYTHON_RESULTS else Rank0.SCALAR


def _rank0_of_argument(value: Any) -> Rank0:
    if isinstance(value, TracedArray):
        return value.rank0 if value.ndim == 0 else Rank0.ARRAY
    return Rank0.PYTHON if type(value) in _NUMBERS else Rank0.SCALAR if isinstance(value, np.generic) else Rank0.ARRAY


hooks.call_function = call_function
