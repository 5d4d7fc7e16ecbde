"""Element-wise opcodes: the result has the least of the operands' sizes."""

from __future__ import annotations

from cyxla.xla.hlo import Instruction
from cyxla.xla.passes.dynamic.packing import Bounded, Value
from cyxla.xla.passes.dynamic.padder import Padder, pads


@pads("elementwise", "map", "copy")
def elementwise(pad: Padder, ins: Instruction, *operands: Value) -> Value:
    """Compute all elements; those beyond the sizes are arbitrary anyway."""
    arrays = [pad.array(o) for o in operands]
    sizes = pad.common_sizes([x for x in arrays if x.padded.shape.rank])
    return Bounded(pad.copy(ins, [x.padded for x in arrays]), sizes)


@pads("bitcast-convert")
def bitcast_convert(pad: Padder, ins: Instruction, operand: Value) -> Value:
    """Reinterpret all elements; a last dimension of parts of elements is static."""
    x = pad.array(operand)
    if ins.shape.rank < x.padded.shape.rank:
        x = pad.zero_extended(x, [x.padded.shape.rank - 1])
    return Bounded(pad.copy(ins, [x.padded]), x.sizes)
