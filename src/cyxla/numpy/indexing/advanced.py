"""Advanced indexing by integer arrays: gather and scatter."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from math import prod
from typing import Any

import numpy as np

from cyxla.errors import OutOfRangeError
from cyxla.numpy.indexing.basic import SlicePlan
from cyxla.numpy.indexing.parse import ArrayEntry, Entry, IntArray, IntegerEntry, NewAxisEntry, Selection, SliceEntry
from cyxla.numpy.tracing import trace as _trace
from cyxla.numpy.tracing.trace import require_current
from cyxla.numpy.ufuncs.apply import broadcast_to
from cyxla.records import dataclass
from cyxla.types import ElementType, Shape
from cyxla.xla.hlo.builder import XlaBuilder, XlaComputation, XlaOp
from cyxla.xla.hlo.builder import functions as xla


@dataclass(frozen=True)
class GatherPlan:
    """Gather or scatter of an array's elements by index arrays.

    Attributes
    ----------
    basic : SlicePlan
        Basic indexing of the other axes; the axes that arrays index are whole.
    indices : dict of int to array
        Index array for each indexed axis of the basic part, all of which broadcast to `block`.
    block : tuple of int
        Broadcast shape of the index arrays.
    block_dim : int
        First dimension of the block in the result, not counting new axes.
    result : tuple of int
        Shape of the result.
    """

    basic: SlicePlan
    indices: dict[int, IntArray | XlaOp]
    block: tuple[int, ...]
    block_dim: int
    result: tuple[int, ...]

    @staticmethod
    def of(selection: Selection, sizes: Sequence[int]) -> GatherPlan:
        """Return the gather for an index expression with arrays."""
        arrays = [e for e in selection.entries if isinstance(e, ArrayEntry)]
        block = _broadcast_shape([a.shape for a in arrays])
        front, back = _entries_around_block(selection)
        indices = {}
        basic_entries: list[Entry] = []  # applied before the gather
        axes = 0
        for entry in selection.entries:
            if isinstance(entry, ArrayEntry):
                if entry.axis is None:
                    continue
                indices[axes] = entry.indices
                entry = SliceEntry(0, sizes[entry.axis])
            if not isinstance(entry, NewAxisEntry):
                basic_entries.append(entry)
                axes += isinstance(entry, SliceEntry)
        block_dim = sum(isinstance(e, SliceEntry) for e in front)
        return GatherPlan(
            SlicePlan.of(basic_entries), indices, block, block_dim, (*_sizes(front), *block, *_sizes(back))
        )

    @property
    def gathered_shape(self) -> tuple[int, ...]:
        """Shape of the result without new axes."""
        window_sizes = self.window_sizes
        return (*window_sizes[: self.block_dim], *self.block, *window_sizes[self.block_dim :])

    @property
    def window_sizes(self) -> list[int]:
        """Sizes of the axes without index arrays."""
        return [n for d, n in enumerate(self.basic.result) if d not in self.indices]

    @property
    def window_dims(self) -> list[int]:
        """Dimensions of the result without index arrays."""
        block = range(self.block_dim, self.block_dim + len(self.block))
        return [d for d in range(len(self.gathered_shape)) if d not in block]

    def read(self, op: XlaOp) -> XlaOp:
        """Gather the elements."""
        trace = require_current()
        if prod(self.result) == 0:
            return xla.broadcast(trace.constant(0, op.shape.dtype.numpy_dtype), self.result)
        part = self.basic.read(op)
        result = (
            self._gather(part) if self.indices else xla.broadcast_in_dim(part, self.gathered_shape, self.window_dims)
        )
        return result if result.shape.dims == self.result else xla.reshape(result, self.result)

    def write(self, op: XlaOp, values: XlaOp, combine: XlaComputation | None = None) -> XlaOp:
        """Return the array with elements replaced or combined with values; of repeated indices the last one wins."""
        if prod(self.result) == 0:
            return op
        values = values if values.shape.dims == self.gathered_shape else xla.reshape(values, self.gathered_shape)
        part = self.basic.read(op)
        combine = combine or replace_combiner(op.shape.dtype)
        return self.basic.write(op, self._scatter(part, values, combine))

    def _gather(self, part: XlaOp) -> XlaOp:
        batched = self._batch_axes()
        indexed = [d for d in self.indices if d not in batched]
        if not indexed:  # a gather needs at least one indexed axis
            batched, indexed = {}, list(self.indices)
        return xla.gather(
            part, self._index_vectors(indexed), offset_dims=self.window_dims, collapsed_slice_dims=indexed,
            start_index_map=indexed, index_vector_dim=len(self.block), operand_batching_dims=list(batched),
            start_indices_batching_dims=list(batched.values()),
            slice_sizes=[1 if d in self.indices else n for d, n in enumerate(part.shape.dims)],
        )  # fmt: skip

    def _scatter(self, part: XlaOp, values: XlaOp, combine: XlaComputation) -> XlaOp:
        if not self.indices:  # the only index is a bool
            return xla.scatter(
                part, _constant(np.zeros((*self.block, 0), np.int32)), values, combine,
                update_window_dims=self.window_dims, inserted_window_dims=[], scatter_dims_to_operand_dims=[],
                index_vector_dim=len(self.block),
            )  # fmt: skip
        batched = self._batch_axes()
        indexed = [d for d in self.indices if d not in batched]
        if not indexed:
            batched, indexed = {}, list(self.indices)
        return xla.scatter(
            part, self._index_vectors(indexed), values, combine, update_window_dims=self.window_dims,
            inserted_window_dims=indexed,
            scatter_dims_to_operand_dims=indexed, index_vector_dim=len(self.block), input_batching_dims=list(batched),
            scatter_indices_batching_dims=list(batched.values()),
        )  # fmt: skip

    def _batch_axes(self) -> dict[int, int]:
        """Return axes indexed by 0, 1, 2 .. along a dimension of the block, the gather's batch dimensions."""
        batch_axes: dict[int, int] = {}
        for axis, indices in self.indices.items():
            d = _iota_dimension(indices, self.block, self.basic.result[axis])
            if d is not None and d not in batch_axes.values():
                batch_axes[axis] = d
        return batch_axes

    def _index_vectors(self, indexed: Sequence[int]) -> XlaOp:
        """Stack the indices along a last dimension; a single array stays as it is."""
        parts = [self.indices[d] for d in indexed]
        if all(isinstance(p, np.ndarray) for p in parts):
            arrays = np.broadcast_arrays(*[np.asarray(p) for p in parts], np.empty(self.block, np.bool_))[:-1]
            return _constant(arrays[0] if len(arrays) == 1 else np.stack(arrays, -1))
        trace = require_current()
        ops = [trace.capture(p) if isinstance(p, XlaOp) else _constant(p) for p in parts]
        any_wide = any(op.shape.dtype is ElementType.S64 for op in ops)
        dtype = ElementType.S64 if any_wide else ElementType.S32
        ops = [broadcast_to(op if op.shape.dtype is dtype else xla.convert(op, dtype), self.block) for op in ops]
        if len(ops) == 1:
            return ops[0]
        return xla.concatenate([xla.reshape(op, (*self.block, 1)) for op in ops], len(self.block))


def _constant(indices: Any) -> XlaOp:
    narrow = indices.size == 0 or indices.max() < 2**31
    return require_current().constant(np.ascontiguousarray(indices), np.dtype(np.int32 if narrow else np.int64))


def _broadcast_shape(shapes: Sequence[tuple[int, ...]]) -> tuple[int, ...]:
    try:
        return np.broadcast_shapes(*shapes)
    except ValueError:
        shapes_text = " ".join(str(s).replace(" ", "") for s in shapes)
        raise OutOfRangeError(
            f"shape mismatch: indexing arrays could not be broadcast together with shapes {shapes_text}",
            where=_trace.user_line(),
        ) from None


def _entries_around_block(selection: Selection) -> tuple[list[Entry], list[Entry]]:
    """Return the entries before and after the block of arrays and integers."""
    rest = [(k, e) for k, e in enumerate(selection.entries) if not isinstance(e, (ArrayEntry, IntegerEntry))]
    if selection.separated:
        return [], [e for _, e in rest]
    first = next(k for k, e in enumerate(selection.entries) if isinstance(e, (ArrayEntry, IntegerEntry)))
    return [e for k, e in rest if k < first], [e for k, e in rest if k > first]


def _sizes(entries: Sequence[Entry]) -> list[int]:
    return [e.size if isinstance(e, SliceEntry) else 1 for e in entries]


def _iota_dimension(indices: IntArray | XlaOp, block: Sequence[int], size: int) -> int | None:
    """Return the dimension of the block along which the indices are 0, 1, 2 ..; None if there is none."""
    if not isinstance(indices, np.ndarray) or indices.size != size or size < 2:
        return None
    dimension = next(d for d, n in enumerate(indices.shape) if n > 1)
    d = dimension + len(block) - indices.ndim
    covers_block = indices.shape[dimension] == size == block[d]
    return d if covers_block and bool((indices.reshape(-1) == np.arange(size)).all()) else None


@lru_cache(maxsize=64)
def replace_combiner(dtype: ElementType) -> XlaComputation:
    """Return the combiner of a scatter that replaces elements."""
    builder = XlaBuilder(f"replace_{dtype}")
    shape = Shape.array(dtype)
    xla.parameter(builder, 0, shape, "old")
    return builder.build(xla.parameter(builder, 1, shape, "new"))
