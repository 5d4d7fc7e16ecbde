"""Look-ups of traced indices in lists and tuples of numbers, as in a table of coefficients."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from cyxla.numpy.array_methods.number_methods import to_python
from cyxla.numpy.tracing.arrays.number_table import NumberTable, TableRow
from cyxla.numpy.tracing.arrays.stacked_list import StackedList
from cyxla.numpy.tracing.arrays.traced_array import TracedArray, as_traced, is_traced
from cyxla.numpy.tracing.trace import require_current
from cyxla.numpy.tracing.user_program.classes import class_of, is_number

MOST_TRACED: Final = 512  # elements that are traced
_NUMBERS: Final = (bool, int, float, complex)


class IndexedSequence:
    """List or tuple about to be indexed.

    Parameters
    ----------
    values : list or tuple
        The sequence itself.
    """

    __slots__ = ("_values",)

    def __init__(self, values: Any) -> None:
        self._values = values

    def __getitem__(self, key: Any) -> Any:
        if isinstance(self._values, StackedList) and self._values.growing is not None:
            return IndexedSequence(self._values.growing.as_list())[key]
        if isinstance(self._values, StackedList) and self._values.is_sized and not isinstance(key, slice):
            require_current().program.catches = True  # Python raises its error if there is no such element
            return self._values.copy_of(key)
        if isinstance(key, TracedArray) and is_traced(key) and key.ndim == 0 and key.dtype.kind in "iu":
            if isinstance(self._values, StackedList) and self._values.stacks is not None:
                return self._values.copy_of(key)
            table = _table(self._values)
            if table is not None:
                element = table[key]
                return to_python(element) if class_of(self._values[0]) in _NUMBERS else element
        return self._values[key]


def indexed(value: Any) -> Any:
    """Return a value that is about to be indexed by something that may be traced."""
    is_sequence = isinstance(value, (list, tuple)) and not isinstance(value, (NumberTable, TableRow))
    return IndexedSequence(value) if is_sequence else value


def _table(values: Any) -> TracedArray | None:
    """Return numbers of one class as an array; None for other elements."""
    found = list(values)
    if not found or not all(type(v) in _NUMBERS or isinstance(v, np.generic) or is_number(v) for v in found):
        return None
    if len({class_of(v) for v in found}) > 1 or (is_traced(found) and len(found) > MOST_TRACED):
        return None
    try:
        return as_traced(found if is_traced(found) else np.array(found))
    except (OverflowError, TypeError):
        return None
