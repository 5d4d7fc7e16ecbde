"""Opcodes that create arrays, move elements or change sizes, without indices among the operands."""

from __future__ import annotations

from cyxla.types import Shape
from cyxla.xla.hlo import Instruction
from cyxla.xla.hlo.attributes import PaddingDim
from cyxla.xla.hlo.growth import may_grow
from cyxla.xla.passes.dynamic.packing import Bounded, Value, packed_shape
from cyxla.xla.passes.dynamic.padder import Padder, Sizes, moved, pads, refuse


@pads("parameter")
def parameter(pad: Padder, ins: Instruction) -> Value:
    """Take the packed form of a bounded parameter."""
    return pad.unpack(pad.copy(ins, (), shape=packed_shape(ins.shape.logical)), ins.shape.logical)


@pads("iota", "constant", "rng", "rng-bit-generator", "rng-get-and-update-state")
def source(pad: Padder, ins: Instruction, *operands: Value) -> Value:
    """Create an array of its bounds."""
    if any(isinstance(o, Bounded) for o in operands):
        refuse(ins, "an operand has dynamic dimensions")
    created = pad.copy(ins, [pad.anchor(o) for o in operands])
    return pad.elements(created) if ins.shape.is_tuple else created


@pads("broadcast")
def broadcast(pad: Padder, ins: Instruction, operand: Value) -> Value:
    """Repeat along new dimensions, which are static."""
    x = pad.array(operand)
    sizes = {d: x.sizes[k] for k, d in enumerate(ins.attrs["dimensions"]) if k in x.sizes}
    return Bounded(pad.copy(ins, [x.padded]), sizes)


@pads("transpose")
def transpose(pad: Padder, ins: Instruction, operand: Value) -> Value:
    """Permute the sizes with the dimensions."""
    x = pad.array(operand)
    return Bounded(pad.copy(ins, [x.padded]), moved(x.sizes, ins.attrs["dimensions"]))


@pads("reverse")
def reverse(pad: Padder, ins: Instruction, operand: Value) -> Value:
    """Reverse, then move the elements, which are last now, to the start."""
    x = pad.array(operand)
    reversed_ = pad.copy(ins, [x.padded])
    along = [d for d in ins.attrs["dimensions"] if d in x.sizes]
    if not along:
        return Bounded(reversed_, x.sizes)
    dims = x.padded.shape.dims
    room = tuple(PaddingDim(0, n if d in along else 0) for d, n in enumerate(dims))
    shape = reversed_.shape.with_dims([n * (1 + (d in along)) for d, n in enumerate(dims)])
    zero = pad.constant(0, ins.shape.dtype)
    wide = pad.op("pad", reversed_, zero, shape=shape, padding=room)
    starts = [
        pad.integer("subtract", pad.number(n), x.sizes[d]) if d in along else pad.number(0) for d, n in enumerate(dims)
    ]
    return Bounded(
        pad.op("dynamic-slice", wide, *starts, shape=ins.shape.static, dynamic_slice_sizes=tuple(dims)), x.sizes
    )


@pads("pad")
def pad_(pad: Padder, ins: Instruction, operand: Value, value: Value) -> Value:
    """Pad an array whose elements beyond the sizes are the padding value already."""
    x, filler = pad.array(operand), pad.anchor(value)
    padding = ins.attrs["padding"]
    sizes: Sizes = {}
    for d, n in x.sizes.items():
        low, high, interior = padding[d]
        sizes[d] = pad.integer("maximum", pad.integer("add", pad.dilated(n, interior + 1), low + high), 0)
    return Bounded(pad.copy(ins, [pad.masked(x, tuple(x.sizes), filler), filler]), sizes)


@pads("concatenate")
def concatenate(pad: Padder, ins: Instruction, *operands: Value) -> Value:
    """Write the operands one after the other; each overwrites the elements beyond the size of the one before."""
    parts, (along,) = [pad.array(o) for o in operands], ins.attrs["dimensions"]
    sizes = {d: n for d, n in pad.common_sizes(parts).items() if d != along}
    if not any(along in x.sizes for x in parts):
        return Bounded(pad.copy(ins, [x.padded for x in parts]), sizes)
    first, *others = parts
    joined, end = _padded(pad, first.padded, ins.shape.static), pad.size(first, along)
    for x in others:
        starts = [end if d == along else pad.number(0) for d in range(ins.shape.rank)]
        joined = pad.op("dynamic-update-slice", joined, x.padded, *starts)
        end = pad.integer("add", end, pad.size(x, along))
    return Bounded(joined, {**sizes, along: end})


def _padded(pad: Padder, x: Instruction, shape: Shape) -> Instruction:
    """Return an array with zeros behind its elements."""
    room = tuple([PaddingDim(0, n - m) for n, m in zip(shape.dims, x.shape.dims, strict=True)])
    return pad.op("pad", x, pad.constant(0, shape.dtype), shape=shape, padding=room)


@pads("set-dimension-size")
def set_dimension_size(pad: Padder, ins: Instruction, operand: Value, size: Value) -> Value:
    """Set a size within its bound; one that grows exposes zeros, or what was written there."""
    x, (along,) = pad.array(operand), ins.attrs["dimensions"]
    number, bound = pad.anchor(size), ins.shape.dims[along]
    written = x.written if may_grow(ins) else frozenset()
    padded = x.padded if along in written else pad.zero_extended(x, [along]).padded
    if not ins.shape.dynamic[along]:
        if number.opcode != "constant" or int(number.attrs["literal"].array) < bound:
            refuse(ins, f"its stated result {ins.shape} has a static dimension {along}")
        return Bounded(padded, {d: n for d, n in x.sizes.items() if d != along}, written - {along})
    return Bounded(padded, {**x.sizes, along: pad.clamped(number, bound)}, written - {along})


@pads("get-dimension-size")
def get_dimension_size(pad: Padder, ins: Instruction, operand: Value) -> Value:
    """Return a size."""
    return pad.size(pad.array(operand), ins.attrs["dimensions"][0])
