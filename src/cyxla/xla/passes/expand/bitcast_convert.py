"""Expand bitcast-convert between types of different widths into shifts.

Before::

    b = u8[3,4] bitcast-convert(f32[3] x)

After::

    u = u32[3,4] broadcast(u32[3] bitcast-convert(x)), dimensions={0}
    s = u32[3,4] multiply(iota(), 8), iota_dimension=1
    b = u8[3,4] convert(shift-right-logical(u, s))

The lowest bits come first. In the other direction the parts are shifted into position and joined by `or`. Complex
numbers are converted as real and imaginary parts. Conversions between types of one width stay.
"""

from __future__ import annotations

from functools import reduce

from cyxla.types import ElementType, Shape, element_type
from cyxla.xla.hlo import HloModule, Instruction
from cyxla.xla.hlo.attributes import SliceDim
from cyxla.xla.passes.engine.rewrite_helpers import Writer, rewrite_each


def run(module: HloModule) -> bool:
    """Expand conversions that change the rank."""
    return rewrite_each(module, {"bitcast-convert": _bitcast_convert})


def _bits(dtype: ElementType) -> ElementType | None:
    """Return the unsigned type of a type's width."""
    return element_type(f"u{dtype.bits}") if dtype.bits in (1, 2, 4, 8, 16, 32, 64) and not dtype.is_complex else None


def _bitcast_convert(ins: Instruction) -> Instruction | None:
    x, result = ins.operands[0], ins.shape.logical
    if x.shape.dtype is result.dtype:
        return x
    if result.dtype.is_complex and not ins.shape.is_dynamic:
        return _complex(x, result)
    from_bits, to_bits = _bits(x.shape.dtype), _bits(result.dtype)
    if from_bits is None or to_bits is None or from_bits is to_bits or ins.shape.is_dynamic:
        return None
    write = Writer(ins.computation)
    number = x if x.shape.dtype is from_bits else write.op("bitcast-convert", x, shape=x.shape.with_dtype(from_bits))
    changed = _split(write, number, ins, to_bits) if from_bits.bits > to_bits.bits else _join(write, number, to_bits)
    return changed if result.dtype is to_bits else write.op("bitcast-convert", changed, shape=result)


def _complex(x: Instruction, result: Shape) -> Instruction:
    """Convert complex numbers from or to another type through an array of parts, whose last dimension has size 2."""
    write, kind = Writer(x.computation), result.dtype.real_part
    parts = [write.op(name, x, shape=x.shape.logical.with_dtype(x.shape.dtype.real_part)) for name in ("real", "imag")]
    pairs = parts[0].shape.with_dims((*x.shape.dims, 2))
    components = [write.reshape(part, (*x.shape.dims, 1)) for part in parts]
    wide = write.op("concatenate", *components, shape=pairs, dimensions=(len(x.shape.dims),))
    if kind.bits > pairs.dtype.bits:  # one complex number is made of two operand elements
        converted = write.op("bitcast-convert", wide, shape=pairs.with_dtype(kind).with_dims(pairs.dims[:-1]))
    else:
        converted = write.op("bitcast-convert", wide, shape=pairs.with_dtype(kind).with_dims((*pairs.dims, 2)))
    converted = _bitcast_convert(converted) or converted
    components_out = [write.reshape(_slice_last(write, converted, n), result.dims) for n in range(2)]
    return write.op("complex", *components_out, shape=result)


def _slice_last(write: Writer, x: Instruction, n: int) -> Instruction:
    """Slice one index of the last dimension, which stays with size 1."""
    ranges = (*(SliceDim(0, d) for d in x.shape.dims[:-1]), SliceDim(n, n + 1))
    return write.op("slice", x, shape=x.shape.with_dims((*x.shape.dims[:-1], 1)), slice=ranges)


def _split(write: Writer, x: Instruction, ins: Instruction, part: ElementType) -> Instruction:
    shape = ins.shape.logical.with_dtype(x.shape.dtype)
    wide = write.broadcast(x, shape, range(x.shape.rank))
    index = write.computation.add("iota", (), {"iota_dimension": shape.rank - 1}, shape=shape)
    shift = write.op("multiply", index, write.full(part.bits, shape))
    return write.convert(write.op("shift-right-logical", wide, shift), part)


def _join(write: Writer, x: Instruction, joined: ElementType) -> Instruction:
    dims, count = x.shape.dims[:-1], x.shape.dims[-1]
    parts = []
    for n in range(count):
        part = write.reshape(_slice_last(write, x, n), dims)
        wide = write.convert(part, joined)
        parts.append(write.op("shift-left", wide, write.full(n * x.shape.dtype.bits, wide.shape)))
    return reduce(lambda a, b: write.op("or", a, b), parts)
