"""Indexing of traced arrays: reading, parts that share memory, writing, and ``x.at[i]``."""

from __future__ import annotations

from typing import Any

import numpy as np

from cyxla.errors import ShapeError, UnimplementedError
from cyxla.numpy import trace as _trace
from cyxla.numpy.indexing_basic import Box, contiguous
from cyxla.numpy.indexing_parse import Selection, parse
from cyxla.numpy.traced_array import TracedArray, as_traced, value_of
from cyxla.numpy.ufuncs import broadcast_to, narrowed
from cyxla.xla.hlo.builder import XlaOp
from cyxla.xla.hlo.builder import functions as xla


def get(array: TracedArray, key: Any) -> Any:
    """What ``array[key]`` is: for integers, slices and new axes a part that shares memory, else a copy."""
    selection = parse(key, array.shape)
    _basic_only(selection)
    return _part(array, selection)


def _basic_only(selection: Selection) -> None:
    if selection.advanced:
        raise UnimplementedError("indexing by arrays cannot be traced", where=_trace.place())


def _part(array: TracedArray, selection: Selection) -> TracedArray:
    box = Box.of(selection.entries)
    if selection.copies:
        return TracedArray(box.read(value_of(array)))
    whole = array.contiguous and contiguous(array.shape, selection.entries)
    return array.part(box.read, box.write, contiguous=whole)


def assign(array: TracedArray, key: Any, value: Any) -> None:
    """``array[key] = value``: the value is brought to the array's type and to the sizes of the part."""
    selection = parse(key, array.shape)
    _basic_only(selection)
    op = value_of(array)
    box = Box.of(selection.entries)
    array.overwrite(box.write(op, fitted(value, array, box.result)))


def fitted(value: Any, array: TracedArray, sizes: tuple[int, ...]) -> XlaOp:
    """A value to be written to a part of an array.

    Raises
    ------
    ShapeError
        It does not fit the sizes of the part.
    """
    op = as_type_of(value, array)
    have = op.shape.dims
    extra = max(len(have) - len(sizes), 0)
    if all(n == 1 for n in have[:extra]):
        try:
            if np.broadcast_shapes(have[extra:], sizes) == sizes:
                return broadcast_to(xla.reshape(op, have[extra:]) if extra else op, sizes)
        except ValueError:
            pass
    raise ShapeError(f"could not broadcast input array from shape {have} into shape {sizes}", where=_trace.place())


def as_type_of(value: Any, array: TracedArray) -> XlaOp:
    """A value in the type of an array, converted as NumPy does when it writes."""
    if type(value) in (int, float, complex):
        value = np.full((), value, array.dtype)[()] if array.dtype.kind != "V" else value
    return narrowed(as_traced(value), array.dtype)
