"""Basic indexing: views by integers, slices and new axes."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from cyxla.numpy.indexing.parse import Entry, IntegerEntry, NewAxisEntry, SliceEntry
from cyxla.numpy.tracing.trace import require_current
from cyxla.records import dataclass
from cyxla.types import ElementType
from cyxla.xla.hlo.builder import XlaOp
from cyxla.xla.hlo.builder import functions as xla

_SELECT_FRACTION = 2  # a part of at least 1 / _SELECT_FRACTION of an array is written by a select over all elements
_SELECT_SIZE = 64  # arrays of at most this many elements are written by a select, too


@dataclass(frozen=True)
class SlicePlan:
    """Part of an array: a range of each axis.

    Attributes
    ----------
    slices : list of SliceEntry
        Range of each axis of the array.
    result : tuple of int
        Shape of the part, with axes dropped and added.
    """

    slices: list[SliceEntry]
    result: tuple[int, ...]

    @staticmethod
    def of(entries: Sequence[Entry]) -> SlicePlan:
        """Return the part for entries without arrays."""
        result = [
            e.size if isinstance(e, SliceEntry) else 1 for e in entries if isinstance(e, (SliceEntry, NewAxisEntry))
        ]
        slices = [
            SliceEntry(e.index, 1) if isinstance(e, IntegerEntry) else e
            for e in entries
            if isinstance(e, (SliceEntry, IntegerEntry))
        ]
        return SlicePlan(slices, tuple(result))

    @property
    def starts(self) -> list[int | XlaOp]:
        """Lowest index along each axis; of a reversed range that of the last element."""
        return [_lowest_start(c) for c in self.slices]

    @property
    def sizes(self) -> tuple[int, ...]:
        """Sizes of the part along the array's axes."""
        return tuple(c.size for c in self.slices)

    @property
    def spans(self) -> tuple[int, ...]:
        """Distance from the first to the last element, inclusive, along each axis."""
        return tuple(c.span for c in self.slices)

    @property
    def dynamic(self) -> bool:
        """True if a start is traced."""
        return any(isinstance(c.start, XlaOp) for c in self.slices)

    @property
    def reversed(self) -> list[int]:
        """Axes of negative step."""
        return [d for d, c in enumerate(self.slices) if c.step < 0]

    @property
    def strided(self) -> bool:
        """True if a step is not 1 or -1."""
        return any(abs(c.step) > 1 for c in self.slices)

    def read(self, op: XlaOp) -> XlaOp:
        """Slice the part out of an array."""
        dims = op.shape.dims
        if self.dynamic:
            op = xla.dynamic_slice(op, _start_operands(self.starts), self.spans)
            if self.strided:
                op = xla.slice_(op, [0] * len(dims), self.spans, [abs(c.step) for c in self.slices])
        elif self.spans != dims or self.strided:
            starts = [int(low) for low in self.starts]  # type: ignore[arg-type]
            limits = [low + span for low, span in zip(starts, self.spans, strict=True)]
            op = xla.slice_(op, starts, limits, [abs(c.step) for c in self.slices])
        if self.reversed:
            op = xla.reverse(op, self.reversed)
        return op if op.shape.dims == self.result else xla.reshape(op, self.result)

    def write(self, op: XlaOp, part: XlaOp) -> XlaOp:
        """Return the array with the part replaced."""
        if part.shape.size == 0:
            return op
        if part.shape.dims != self.sizes:
            part = xla.reshape(part, self.sizes)
        if self.reversed:
            part = xla.reverse(part, self.reversed)
        if self.dynamic:
            return self._write_dynamic(op, part)
        if self.spans == op.shape.dims and not self.strided:
            return part
        uniform = _uniform_value(op)
        if uniform is not None:
            return xla.pad(part, uniform, self._padding(op.shape.dims))
        if self.strided or part.shape.size * _SELECT_FRACTION >= op.shape.size or op.shape.size <= _SELECT_SIZE:
            return self._write_by_select(op, part)
        return xla.dynamic_update_slice(op, part, _start_operands(self.starts))

    def _write_dynamic(self, op: XlaOp, part: XlaOp) -> XlaOp:
        if self.strided:
            inner = SlicePlan([SliceEntry(0, c.size, abs(c.step)) for c in self.slices], self.sizes)
            part = inner.write(xla.dynamic_slice(op, _start_operands(self.starts), self.spans), part)
        return xla.dynamic_update_slice(op, part, _start_operands(self.starts))

    def _write_by_select(self, op: XlaOp, part: XlaOp) -> XlaOp:
        """Select between array and padded part by a padded mask, which fuses with the producer of the part."""
        trace, padding = require_current(), self._padding(op.shape.dims)
        true_, false_ = (trace.constant(v, np.dtype(bool)) for v in (True, False))
        mask = xla.pad(xla.broadcast(true_, self.sizes), false_, padding)
        zero = trace.constant(0, part.shape.dtype.numpy_dtype)
        return xla.select(mask, xla.pad(part, zero, padding), op)

    def _padding(self, sizes: Sequence[int]) -> list[tuple[int, int, int]]:
        """Return the padding of the part to the array's shape: low, high and interior, for each axis."""
        starts = [int(low) for low in self.starts]  # type: ignore[arg-type]
        ends = [n - low - span for n, low, span in zip(sizes, starts, self.spans, strict=True)]
        return [(low, end, abs(c.step) - 1) for low, end, c in zip(starts, ends, self.slices, strict=True)]


def _uniform_value(op: XlaOp) -> XlaOp | None:
    """Return the scalar of a broadcast constant; None for other values."""
    ins = op.instruction
    if ins is None or ins.opcode != "broadcast" or ins.operands[0].opcode != "constant":
        return None
    scalar = ins.operands[0]
    return XlaOp(op.builder, scalar) if scalar.shape.rank == 0 else None


def _lowest_start(entry: SliceEntry) -> int | XlaOp:
    offset = entry.span - 1 if entry.step < 0 else 0
    if isinstance(entry.start, XlaOp):
        return entry.start  # already the index of the lowest element
    return entry.start - offset


def _start_operands(starts: Sequence[int | XlaOp]) -> list[XlaOp]:
    """Convert start indices to operands of one dtype."""
    trace = require_current()
    any_wide = any(isinstance(low, XlaOp) and low.shape.dtype is ElementType.S64 for low in starts)
    dtype = ElementType.S64 if any_wide else ElementType.S32
    operands = []
    for low in starts:
        if isinstance(low, XlaOp):
            low = trace.capture(low)
            operands.append(low if low.shape.dtype is dtype else xla.convert(low, dtype))
        else:
            operands.append(trace.constant(low, dtype.numpy_dtype))
    return operands


def numpy_key(entries: Sequence[Entry]) -> tuple[int | slice | None, ...]:
    """Return an index expression for NumPy that gives the same layout, with 0 for traced starts."""
    return tuple([_static_index(e) for e in entries])


def _static_index(entry: Entry) -> int | slice | None:
    if isinstance(entry, NewAxisEntry):
        return None
    if isinstance(entry, IntegerEntry):
        return 0
    assert isinstance(entry, SliceEntry)
    if isinstance(entry.start, XlaOp):
        return slice(0, entry.span, abs(entry.step)) if entry.step > 0 else slice(entry.span - 1, None, entry.step)
    stop = entry.start + entry.step * entry.size
    return slice(entry.start, None if stop < 0 else stop, entry.step)
