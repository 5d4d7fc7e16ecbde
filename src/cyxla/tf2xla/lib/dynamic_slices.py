"""Slices with dynamic start or size.

Results are padded to the maximum size; `set_dynamic_size` sets the dynamic one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from cyxla.core.framework.geometry.strided_slices import strided_index
from cyxla.errors import ShapeError
from cyxla.tf2xla.lib.dynamic_sizes import set_dynamic_size
from cyxla.types import ElementType
from cyxla.xla.hlo.builder import XlaOp
from cyxla.xla.hlo.builder import functions as xla
from cyxla.xla.lib.values import iota, rank_of, scalar, select, sizes_of

Array = np.ndarray[Any, Any]
_WIDE = ElementType.S64


def element(vector: XlaOp, i: int) -> XlaOp:
    """Return an element of a vector as s64."""
    return xla.convert(xla.reshape(xla.slice_in_dim(vector, i, i + 1), ()), _WIDE)


def rows_from(x: XlaOp, dimension: int, start: XlaOp, step: int, count: int) -> XlaOp:
    """Gather `count` slices along a dimension with a stride; indices out of range are clamped."""
    size = sizes_of(x)[dimension]
    indices = xla.broadcast(start, (count,)) + iota(x.builder, _WIDE, count) * scalar(start, step)
    inside = xla.clamp(scalar(start, 0), indices, scalar(start, max(size - 1, 0)))
    if not count or not size:
        return xla.slice_in_dim(x, 0, min(count, size), 1, dimension)
    return xla.gather(
        x,
        inside,
        offset_dims=tuple(d for d in range(rank_of(x)) if d != dimension),
        collapsed_slice_dims=(dimension,),
        start_index_map=(dimension,),
        index_vector_dim=1,
        slice_sizes=tuple(1 if d == dimension else n for d, n in enumerate(sizes_of(x))),
    )


def slice_from(x: XlaOp, begin: XlaOp, size: XlaOp) -> XlaOp:
    """Slice with dynamic start and sizes; -1 means up to the end."""
    counts = []
    for d, n in enumerate(sizes_of(x)):
        start, requested = element(begin, d), element(size, d)
        rest = scalar(start, n) - start
        x = rows_from(x, d, start, 1, n)
        counts.append(select(xla.lt(requested, scalar(requested, 0)), rest, xla.minimum(requested, rest)))
    return _with_sizes(x, dict(enumerate(counts)))


def _with_sizes(x: XlaOp, counts: Mapping[int, XlaOp]) -> XlaOp:
    for d, count in counts.items():
        x = set_dynamic_size(x, xla.convert(xla.maximum(count, scalar(count, 0)), ElementType.S32), d)
    return x


@dataclass
class Entry:
    """Entry of a strided slice: `kind` is "new", "single", "all" or "range", and `i` its index in the spec."""

    kind: str
    i: int = -1


def entries_of(shape: Sequence[int], strides: Array, masks: Mapping[str, int]) -> list[Entry]:
    """Return one entry per input dimension, with entries for new axes between them."""
    zeros = np.zeros_like(strides)
    index = strided_index([max(n, 1) for n in shape], zeros, zeros, strides, masks)
    used = sum(e is not None and e is not Ellipsis for e in index)
    result: list[Entry] = []
    for i, entry in enumerate(index):
        if entry is Ellipsis:
            result += [Entry("all")] * (len(shape) - used)
        elif entry is None:
            result.append(Entry("new", i))
        else:
            result.append(Entry("single" if isinstance(entry, int) else "range", i))
    if Ellipsis not in index:
        result += [Entry("all")] * (len(shape) - used)
    return result


class DynamicStridedSlice:
    """Start, stride and count of the entries of a strided slice of an array.

    Parameters
    ----------
    shape : sequence of int
    begin, end : XlaOp
        Vectors of bounds.
    strides : ndarray
    masks : mapping of str to int
    """

    def __init__(
        self, shape: Sequence[int], begin: XlaOp, end: XlaOp, strides: Array, masks: Mapping[str, int]
    ) -> None:
        if not sizes_of(begin) == sizes_of(end) == strides.shape:
            raise ShapeError(
                f"begin {list(sizes_of(begin))}, end {list(sizes_of(end))} and strides {list(strides.shape)} must be "
                "vectors of one length"
            )
        self.entries = entries_of(shape, strides, masks)
        self._begin, self._end, self._strides, self._masks = begin, end, strides, masks

    def step(self, entry: Entry) -> int:
        """Return the stride of an entry."""
        return int(self._strides[entry.i]) if entry.kind == "range" else 1

    def start(self, entry: Entry, size: int) -> XlaOp:
        """Return the index of the first element; negative indices count from the end."""
        low, high = (0, size) if self.step(entry) > 0 else (-1, size - 1)
        first = low if self.step(entry) > 0 else high
        return self._bound(self._begin, "begin_mask", entry, size, low, high, first)

    def count(self, entry: Entry, size: int) -> XlaOp:
        """Return the number of elements."""
        step = self.step(entry)
        low, high = (0, size) if step > 0 else (-1, size - 1)
        stop = self._bound(self._end, "end_mask", entry, size, low, high, high if step > 0 else low)
        reach = stop - self.start(entry, size) if step > 0 else self.start(entry, size) - stop
        return (reach + scalar(reach, abs(step) - 1)) / scalar(reach, abs(step))

    def _bound(self, of: XlaOp, mask: str, entry: Entry, size: int, low: int, high: int, masked: int) -> XlaOp:
        index = element(of, entry.i)
        if self._masks[mask] >> entry.i & 1:
            return scalar(index, masked)
        wrapped = select(xla.lt(index, scalar(index, 0)), index + scalar(index, size), index)
        return xla.clamp(scalar(index, low), wrapped, scalar(index, high))

    def apply(self, x: XlaOp) -> XlaOp:
        """Return the slice."""
        shape: list[int] = []
        counts: dict[int, XlaOp] = {}
        d = 0
        for entry in self.entries:
            if entry.kind == "new":
                shape.append(1)
                continue
            size = sizes_of(x)[d]
            if entry.kind == "single":
                x = rows_from(x, d, self.start(entry, size), 1, 1)
            elif entry.kind == "range":
                limit = -(-size // abs(self.step(entry)))
                counts[len(shape)] = self.count(entry, size)
                x = rows_from(x, d, self.start(entry, size), self.step(entry), limit)
                shape.append(limit)
            else:
                shape.append(size)
            d += 1
        return _with_sizes(xla.reshape(x, shape), counts)

    def scatter(self, value: XlaOp, sizes: Sequence[int]) -> XlaOp:
        """Write a value to the slice in an array of zeros."""
        value_sizes, slice_sizes = list(sizes_of(value)), []
        expected = sum(entry.kind != "single" for entry in self.entries)
        if len(value_sizes) != expected:
            raise ShapeError(f"a slice of rank {expected} cannot be set to a value of {value_sizes}")
        for entry in self.entries:
            size = 1 if entry.kind == "single" else value_sizes.pop(0)
            if entry.kind != "new":
                slice_sizes.append(size)
        result = xla.reshape(value, slice_sizes)
        for d, entry in enumerate(e for e in self.entries if e.kind != "new"):
            if entry.kind != "all":
                result = self._scatter_along(result, d, entry, sizes[d])
        return result

    def _scatter_along(self, x: XlaOp, d: int, entry: Entry, size: int) -> XlaOp:
        step, start = self.step(entry), self.start(entry, size)
        if not sizes_of(x)[d]:
            return xla.broadcast(scalar(x, 0), [size if e == d else n for e, n in enumerate(sizes_of(x))])
        reach = (sizes_of(x)[d] - 1) * abs(step) + 1
        if reach > size:
            raise ShapeError(f"{sizes_of(x)[d]} elements, every {abs(step)}, do not fit dimension {d} of size {size}")
        holes = [(0, 0, abs(step) - 1 if e == d else 0) for e in range(rank_of(x))]
        dilated = xla.pad(xla.reverse(x, [d]) if step < 0 else x, scalar(x, 0), holes)
        if step < 0:
            start = start - scalar(start, reach - 1)
        zeros = xla.broadcast(scalar(x, 0), [size if e == d else n for e, n in enumerate(sizes_of(x))])
        starts = [start if e == d else scalar(start, 0) for e in range(rank_of(x))]
        return xla.dynamic_update_slice(zeros, dilated, starts)
