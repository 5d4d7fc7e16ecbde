"""Methods of `TracedArray` that give Python numbers, and methods of numbers alone."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np

from cyxla.numpy.tracing.arrays.number_storage import Leaf, python_class
from cyxla.numpy.tracing.arrays.number_table import NumberTable
from cyxla.numpy.tracing.arrays.stacked_list import StackedList
from cyxla.numpy.tracing.arrays.traced_array import TracedArray, traced, value_of
from cyxla.numpy.tracing.results.conversion import convert
from cyxla.numpy.tracing.results.zero_dim import Rank0
from cyxla.types import ElementType
from cyxla.xla.hlo.builder import functions as xla

MOST_ELEMENTS: Final = 64  # of lists whose numbers are values of their own
_MOST_DIMENSIONS: Final = 2  # of lists for which an array stands


def to_python(value: TracedArray) -> TracedArray:
    """Return an array of one element as the Python number that ``item`` gives."""
    op, kind = xla.reshape(value_of(value), ()), python_class(value.dtype) or int
    if kind is bool:
        return TracedArray(op, rank0=Rank0.PYTHON)
    return TracedArray(convert(op, np.dtype(kind)), kind, rank0=Rank0.PYTHON)


def _item(self: TracedArray, *args: Any) -> Any:
    """Return an element as a Python number."""
    index = args[0] if len(args) == 1 and isinstance(args[0], tuple) else args
    if python_class(self.dtype) is None:
        self._raise_no_value("be converted to a Python number", "index it instead: x[0]")
    if not index:
        if self.size != 1:
            raise ValueError("can only convert an array of size 1 to a Python scalar")
        return to_python(self)
    element = self.ravel()[index[0]] if len(index) == 1 else self[index]
    return to_python(element)


def _tolist(self: TracedArray) -> Any:
    """Return the elements as Python numbers, in nested lists; an array stands for long ones."""
    kind = python_class(self.dtype)
    is_long = self.size > MOST_ELEMENTS
    if kind is None or (is_long and self.ndim > _MOST_DIMENSIONS and self.shape[0] > MOST_ELEMENTS):
        self._raise_no_value("be converted to a list", "return it from the function first")
    if not self.ndim:
        return to_python(self)
    if not is_long or self.ndim > _MOST_DIMENSIONS:
        return [part.tolist() for part in self]
    numbers = TracedArray(convert(value_of(self), np.dtype(kind)))
    if self.ndim == 1:
        return StackedList.of_numbers(numbers, kind, most_made=MOST_ELEMENTS)
    return NumberTable.of_array(numbers, Leaf.of_python(kind))


def _is_integer(self: TracedArray) -> Any:
    if self.ndim or self.dtype.kind not in "iuf":
        raise AttributeError(f"'{type(self).__name__}' object has no attribute 'is_integer'")
    if self.dtype.kind in "iu":
        return True
    op = value_of(self)
    whole = xla.and_(xla.is_finite(op), xla.eq(xla.floor(op), op))
    return TracedArray(whole, rank0=Rank0.PYTHON)


def _bit_count(self: TracedArray) -> Any:
    if self.ndim or self.dtype.kind not in "iu":
        raise AttributeError(f"'{type(self).__name__}' object has no attribute 'bit_count'")
    op = xla.popcnt(xla.abs_(value_of(self)) if self.dtype.kind == "i" else value_of(self))
    return traced(convert(op, np.dtype(np.int64)), int)


def _bit_length(self: TracedArray) -> Any:
    if self.weak is not int:
        raise AttributeError(f"'{type(self).__name__}' object has no attribute 'bit_length'")
    magnitude = xla.convert(xla.abs_(value_of(self)), ElementType.U64)
    zeros = convert(xla.count_leading_zeros(magnitude), np.dtype(np.int64))
    bits: Any = traced(zeros, int)
    return 64 - bits


#: Methods by their names.
METHODS: Final[dict[str, Callable[..., Any]]] = {
    "item": _item, "tolist": _tolist, "is_integer": _is_integer, "bit_count": _bit_count, "bit_length": _bit_length,
}  # fmt: skip
