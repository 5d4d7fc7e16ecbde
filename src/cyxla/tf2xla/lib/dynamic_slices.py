"""Slices with dynamic start or size.

Results are padded to the maximum size; `set_dynamic_size` sets the dynamic one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from cyxla.core.framework.geometry.strided_slices import strided_index
from cyxla.errors import InvalidArgumentError, ShapeError
from cyxla.tf2xla.lib.dynamic_sizes import set_dynamic_size, split_dynamic
from cyxla.tf2xla.lib.size_checks import SizePair
from cyxla.tf2xla.lib.strided_slices import read_index
from cyxla.types import ElementType
from cyxla.xla.hlo.builder import XlaOp
from cyxla.xla.hlo.builder import functions as xla
from cyxla.xla.lib.values import iota, rank_of, scalar, select, sizes_of

Array = np.ndarray[Any, Any]
_WIDE = ElementType.S64


def element(vector: XlaOp, i: int) -> XlaOp:
    """Return an element of a vector as s64."""
    return xla.convert(xla.reshape(xla.slice_in_dim(vector, i, i + 1), ()), _WIDE)


def _wide(size: XlaOp | int, like: XlaOp) -> XlaOp:
    """Return a size as s64."""
    return scalar(like, size) if isinstance(size, int) else xla.convert(size, _WIDE)


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


def slice_from(
    x: XlaOp, begin: XlaOp, size: XlaOp, known: Sequence[slice] | None = None
) -> tuple[XlaOp, list[SizePair]]:
    """Slice with start and sizes known at run time, -1 for all up to the end.

    Parameters
    ----------
    x : XlaOp
    begin, size : XlaOp
        Vectors of integers.
    known : sequence of slice, optional
        Slices of static dimensions, if start and sizes are constants.

    Returns
    -------
    XlaOp
        Slice.
    list of SizePair
        Checks that slices of arrays of dynamic size are inside of them.
    """
    padded, sizes = split_dynamic(x)
    counts, checks = {}, []
    for d, bound in enumerate(sizes_of(padded)):
        if known is not None and d not in sizes:
            padded = xla.slice_in_dim(padded, known[d].start, known[d].stop, 1, d)
            continue
        start, requested = element(begin, d), element(size, d)
        n = _wide(sizes.get(d, bound), start)
        rest = n - start
        is_open = xla.lt(requested, scalar(requested, 0))
        padded = rows_from(padded, d, start, 1, bound)
        counts[d] = select(is_open, rest, xla.minimum(requested, rest))
        if sizes:
            end = select(is_open, xla.maximum(n, start), start + requested)
            holds = xla.and_(xla.ge(start, scalar(start, 0)), xla.le(end, n))
            checks.append(_inside(holds, end, n, "a slice is not inside of a dimension"))
    return _with_sizes(padded, counts), checks


def _inside(holds: XlaOp, value: XlaOp, size: XlaOp, reason: str) -> SizePair:
    """Return a check that raises unless a condition holds; its message names a number and the size."""
    value, size = (xla.convert(n, ElementType.S32) for n in (value, size))
    return SizePair(value, size, InvalidArgumentError, reason, holds)


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
    known : sequence, optional
        NumPy's index of the slice, if the bounds are constants.
    """

    def __init__(
        self,
        shape: Sequence[int],
        begin: XlaOp,
        end: XlaOp,
        strides: Array,
        masks: Mapping[str, int],
        known: Sequence[Any] | None = None,
    ) -> None:
        if not sizes_of(begin) == sizes_of(end) == strides.shape:
            raise ShapeError(
                f"begin {list(sizes_of(begin))}, end {list(sizes_of(end))} and strides {list(strides.shape)} must be "
                "vectors of one length"
            )
        self.entries = entries_of(shape, strides, masks)
        self._begin, self._end, self._strides, self._masks, self._known = begin, end, strides, masks, known

    def step(self, entry: Entry) -> int:
        """Return the stride of an entry."""
        return int(self._strides[entry.i]) if entry.kind == "range" else 1

    def start(self, entry: Entry, size: XlaOp | int) -> XlaOp:
        """Return the index of the first element; negative indices count from the end."""
        return self._bound(self._begin, "begin_mask", entry, size, is_last=self.step(entry) < 0)

    def count(self, entry: Entry, size: XlaOp | int) -> XlaOp:
        """Return the number of elements."""
        step = self.step(entry)
        stop = self._bound(self._end, "end_mask", entry, size, is_last=step > 0)
        reach = stop - self.start(entry, size) if step > 0 else self.start(entry, size) - stop
        return (reach + scalar(reach, abs(step) - 1)) / scalar(reach, abs(step))

    def _wrapped(self, of: XlaOp, entry: Entry, size: XlaOp | int) -> tuple[XlaOp, XlaOp]:
        """Return an index that counts from the front, and the size."""
        index = element(of, entry.i)
        n = _wide(size, index)
        return select(xla.lt(index, scalar(index, 0)), index + n, index), n

    def _bound(self, of: XlaOp, mask: str, entry: Entry, size: XlaOp | int, *, is_last: bool) -> XlaOp:
        """Return an index within the range of the step's direction; one end of the range if it is masked."""
        wrapped, n = self._wrapped(of, entry, size)
        below = scalar(n, 0 if self.step(entry) > 0 else -1)
        low, high = below, n + below
        if self._masks[mask] >> entry.i & 1:
            return high if is_last else low
        return xla.clamp(low, wrapped, high)

    def apply(self, x: XlaOp) -> tuple[XlaOp, list[SizePair]]:
        """Return the slice, and checks that indices of dimensions of dynamic size are inside of them."""
        padded, sizes = split_dynamic(x)
        shape: list[int] = []
        counts: dict[int, XlaOp] = {}
        checks: list[SizePair] = []
        d = 0
        for entry in self.entries:
            if entry.kind == "new":
                shape.append(1)
                continue
            bound = sizes_of(padded)[d]
            size = sizes.get(d, bound)
            if entry.kind == "single":
                padded = rows_from(padded, d, self.start(entry, size), 1, 1)
                if d in sizes:
                    index, n = self._wrapped(self._begin, entry, size)
                    index = scalar(index, 0) if self._masks["begin_mask"] >> entry.i & 1 else index
                    holds = xla.and_(xla.ge(index, scalar(index, 0)), xla.lt(index, n))
                    checks.append(_inside(holds, index, n, "an index is out of the range of a size"))
            elif entry.kind == "range" and d not in sizes and self._known is not None:
                padded = read_index(padded, (*[slice(None)] * d, self._known[entry.i]))
                shape.append(sizes_of(padded)[d])
            elif entry.kind == "range":
                limit = -(-bound // abs(self.step(entry)))
                counts[len(shape)] = self.count(entry, size)
                padded = rows_from(padded, d, self.start(entry, size), self.step(entry), limit)
                shape.append(limit)
            else:
                if d in sizes:
                    counts[len(shape)] = _wide(sizes[d], sizes[d])
                shape.append(bound)
            d += 1
        return _with_sizes(xla.reshape(padded, shape), counts), checks

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
