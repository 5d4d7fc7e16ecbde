"""Element-wise opcodes: the result has the least of the operands' sizes."""

from __future__ import annotations

from cyxla.types import ElementType
from cyxla.xla.hlo import Instruction
from cyxla.xla.hlo.attributes import SliceDim
from cyxla.xla.passes.dynamic.packing import Bounded, Value
from cyxla.xla.passes.dynamic.padder import Padder, pads


@pads("elementwise", "map", "copy")
def elementwise(pad: Padder, ins: Instruction, *operands: Value) -> Value:
    """Compute all elements; those beyond the sizes are arbitrary anyway."""
    arrays = [pad.array(o) for o in operands]
    if len(arrays) == 2 and ins.opcode != "map":
        arrays = _broadcast_ones(pad, arrays[0], arrays[1])
    sizes = pad.common_sizes([x for x in arrays if x.padded.shape.rank])
    return Bounded(pad.copy(ins, [x.padded for x in arrays]), sizes)


def _broadcast_ones(pad: Padder, x: Bounded, y: Bounded) -> list[Bounded]:
    """Repeat the only element of one operand of a binary operation along dimensions in which the other has several."""
    for d in sorted(x.sizes.keys() & y.sizes.keys()):
        if x.sizes[d] is not y.sizes[d] and x.padded.shape.dims[d] > 1:
            sizes = (x.sizes[d], y.sizes[d])
            x, y = _repeated(pad, x, d, sizes[1]), _repeated(pad, y, d, sizes[0])
    return [x, y]


def _repeated(pad: Padder, x: Bounded, d: int, size: Instruction) -> Bounded:
    """Repeat the only element of a dimension to another size, if this is more than one."""
    one, several = (pad.compare(c, n, pad.number(1)) for c, n in (("EQ", x.sizes[d]), ("GT", size)))
    is_repeated, shape = pad.op("and", one, several), x.padded.shape
    dims = tuple([1 if k == d else n for k, n in enumerate(shape.dims)])
    part = pad.op("slice", x.padded, shape=shape.with_dims(dims), slice=tuple(SliceDim(0, n, 1) for n in dims))
    kept = [k for k in range(shape.rank) if k != d]
    first = pad.broadcast(pad.reshape(part, [shape.dims[k] for k in kept]), shape, kept)
    mask = pad.broadcast(is_repeated, shape.with_dtype(ElementType.PRED))
    repeated = pad.select(mask, first, x.padded)
    return Bounded(repeated, {**x.sizes, d: pad.select(is_repeated, size, x.sizes[d])})


@pads("bitcast-convert")
def bitcast_convert(pad: Padder, ins: Instruction, operand: Value) -> Value:
    """Reinterpret all elements; a last dimension of parts of elements is static."""
    x = pad.array(operand)
    if ins.shape.rank < x.padded.shape.rank:
        x = pad.zero_extended(x, [x.padded.shape.rank - 1])
    return Bounded(pad.copy(ins, [x.padded]), x.sizes)
