"""Slices whose sizes are attributes. A part of a dynamic dimension sees the bound, with zeros beyond the size."""

from __future__ import annotations

from collections.abc import Sequence

from cyxla.xla.hlo import Instruction
from cyxla.xla.hlo.growth import is_grown, may_grow
from cyxla.xla.passes.dynamic.packing import Bounded, Value
from cyxla.xla.passes.dynamic.padder import Padder, pads


@pads("slice")
def slice_(pad: Padder, ins: Instruction, operand: Value) -> Value:
    """Keep the sizes of whole dimensions."""
    x = pad.array(operand)
    ranges = zip(ins.attrs["slice"], x.padded.shape.dims, strict=True)
    parts = [d for d, (s, n) in enumerate(ranges) if not (_is_whole(ins, d) and tuple(s) == (0, n, 1))]
    x = pad.zero_extended(x, parts)
    return Bounded(pad.copy(ins, [x.padded]), x.sizes)


def _is_whole(ins: Instruction, d: int) -> bool:
    """Return True if a dimension of the result has all elements that the operand's has."""
    return ins.shape.dynamic[d] and ins.shape.dims[d] == ins.operands[0].shape.dims[d]


@pads("dynamic-slice")
def dynamic_slice(pad: Padder, ins: Instruction, operand: Value, *starts: Value) -> Value:
    """Keep the sizes of whole dimensions; start indices are clamped to the bounds."""
    x = pad.array(operand)
    x = pad.zero_extended(x, [d for d in range(ins.shape.rank) if not _is_whole(ins, d)])
    return Bounded(pad.copy(ins, [x.padded, *map(pad.anchor, starts)]), x.sizes)


@pads("dynamic-update-slice")
def dynamic_update_slice(pad: Padder, ins: Instruction, operand: Value, update: Value, *starts: Value) -> Value:
    """Replace the present elements of the update's block; start indices are clamped to the bounds."""
    x, new, at = pad.array(operand), pad.array(update), [pad.anchor(s) for s in starts]
    if not is_grown(ins):
        return Bounded(pad.copy(ins, [x.padded, _present_update(pad, x, new, at), *at]), x.sizes)
    known = x.written if may_grow(ins) else ()
    zero = pad.constant(0, x.padded.shape.dtype)
    x = Bounded(pad.masked(x, [d for d in x.sizes if d not in known], zero), x.sizes)
    return Bounded(pad.copy(ins, [x.padded, _present_update(pad, x, new, at), *at]), x.sizes, frozenset(x.sizes))


def _present_update(pad: Padder, x: Bounded, new: Bounded, at: Sequence[Instruction]) -> Instruction:
    """Return the update with the old elements of its block beyond its sizes."""
    if not new.sizes:
        return new.padded
    shape = new.padded.shape
    old = pad.op("dynamic-slice", x.padded, *at, shape=shape.logical, dynamic_slice_sizes=shape.dims)
    padded = new.padded
    for d, size in new.sizes.items():
        padded = pad.select(pad.inside(shape, d, size), padded, old)
    return padded
