"""``x.flat``: the elements of an array in row-major order, read and written by NumPy's rules."""

from __future__ import annotations

from typing import Any

import numpy as np

from cyxla.numpy.tracing.arrays.traced_array import TracedArray, is_traced
from cyxla.numpy.tracing.user_program.classes import class_of
from cyxla.xla.hlo.builder import functions as xla


class FlatArray(TracedArray):
    """View ``x.flat``; it shares memory with `x`, but results of indexing it do not.

    A value that is written to several elements is repeated if it is too short, and truncated if it is too long.
    """

    __slots__ = ()
    numpy_class = np.flatiter

    def __getitem__(self, key: Any) -> Any:
        result: Any = super().__getitem__(key)
        return result.copy() if isinstance(result, TracedArray) and result.base is not None and result.ndim else result

    def __setitem__(self, key: Any, value: Any) -> None:
        from cyxla.numpy.indexing.access import convert_for_assignment

        is_item = class_of(key) is int or issubclass(class_of(key), np.integer)
        source: Any = TracedArray(convert_for_assignment(value, self, is_item=is_item))
        if source.ndim == 0:
            super().__setitem__(key, source)
            return
        selected: Any = super().__getitem__(key)  # refuses keys that are out of bounds
        if is_traced(key) and getattr(key, "dtype", None) == np.bool_:
            if source.size:
                super().__setitem__(slice(None), _written_where(key, source, self))
            return
        sizes = selected.shape
        if not sizes:
            raise ValueError("Error setting single item of array.")
        if source.size:
            resize: Any = np.resize  # dispatches to this package
            super().__setitem__(key, resize(source, sizes))


def _written_where(mask: TracedArray, source: TracedArray, array: TracedArray) -> Any:
    """Return an array whose masked elements are those of another one in turn."""
    numpy: Any = np  # dispatches to this package
    turn = (numpy.cumsum(mask) - 1) % source.size
    return numpy.where(mask, numpy.take(numpy.ravel(source), turn, mode="clip"), array)


def flat(self: TracedArray) -> TracedArray:
    """Return a view of the elements in row-major order."""
    old, new = self.shape, (self.size,)
    return self.make_view(lambda v: xla.reshape(v, new), lambda base, v: xla.reshape(v, old), None, FlatArray)


def set_flat(self: TracedArray, value: Any) -> None:
    """Write to the elements in row-major order; a shorter value is repeated."""
    flat(self)[...] = value
