"""Truth of traced numbers, and the choice between two of them."""

from __future__ import annotations

from typing import Any

import numpy as np

from cyxla.numpy.array_methods.python_numbers import kind_of
from cyxla.numpy.sized.access import only_element
from cyxla.numpy.tracing.arrays.sized_array import SizedArray
from cyxla.numpy.tracing.arrays.stacked_list import StackedList
from cyxla.numpy.tracing.arrays.traced_array import LazyList, TracedArray, as_traced, traced, value_of
from cyxla.numpy.tracing.results.conversion import convert
from cyxla.numpy.tracing.results.promotion import WEAK_DTYPES
from cyxla.numpy.tracing.results.zero_dim import Rank0
from cyxla.numpy.tracing.user_program.doubts import note_doubt
from cyxla.xla.hlo.builder import functions as xla

_np: Any = np  # its functions dispatch to this package
_AMBIGUOUS = "The truth value of an array with more than one element is ambiguous. Use a.any() or a.all()"
_EMPTY = "The truth value of an empty array is ambiguous. Use `array.size > 0` to check that an array is not empty."


def condition(value: Any) -> Any:
    """Return a bool or a traced number with the truth of a value: lists and tuples are true unless they are empty."""
    if isinstance(value, SizedArray):
        return only_element(value, empty=_EMPTY, several=_AMBIGUOUS)
    if isinstance(value, LazyList):
        return (value.length if isinstance(value, StackedList) else len(value)) > 0
    return bool(value) if isinstance(value, (list, tuple)) else value


def truth(value: Any) -> TracedArray:
    """Return the truth of a traced number, or of a list or tuple.

    Raises
    ------
    ValueError
        The value is an array of more than one element, or of none.
    """
    array = as_traced(condition(value))
    if array.size != 1:
        raise ValueError(_AMBIGUOUS if array.size else _EMPTY)
    return TracedArray(convert(xla.reshape(value_of(array), ()), np.dtype(bool)), rank0=Rank0.PYTHON)


def select(test: Any, first: Any, second: Any) -> Any:
    """Return the first of two numbers if a condition holds, else the second; both are evaluated."""
    if not (isinstance(test, TracedArray) and test.known is None):
        return first if test else second
    one, other = as_traced(first), as_traced(second)
    condition = truth(test)
    result = _np.where(condition, one, other)
    kinds = {kind_of(one), kind_of(other)}
    numbers = [k for k in WEAK_DTYPES if k in kinds]  # from bool to complex
    if None not in kinds and kinds != {bool}:
        weak = numbers[-1]
        chosen = traced(convert(value_of(result), WEAK_DTYPES[weak]), weak)
    else:
        chosen = TracedArray(value_of(result), rank0=Rank0.PYTHON if kinds == {bool} else Rank0.SCALAR)
    note_doubt(chosen, value_of(condition), first, second)
    return chosen
