"""bitcast-convert between types of different widths, as shifts.

Before::

    b = u8[3,4] bitcast-convert(f32[3] x)

After::

    u = u32[3,4] broadcast(u32[3] bitcast-convert(x)), dimensions={0}
    s = u32[3,4] multiply(iota(), 8), iota_dimension=1
    b = u8[3,4] convert(shift-right-logical(u, s))

The lowest bits come first. In the other direction the parts are shifted into place and joined by `or`. What is of one
width stays, and so do complex types.
"""

from __future__ import annotations

from functools import reduce

from cyxla.types import ElementType, element_type
from cyxla.xla.hlo import HloModule, Instruction
from cyxla.xla.hlo.attributes import SliceDim
from cyxla.xla.passes.build import Writer, rewrite_each


def run(module: HloModule) -> bool:
    """Expand those that change the rank."""
    return rewrite_each(module, {"bitcast-convert": _bitcast_convert})


def _bits(dtype: ElementType) -> ElementType | None:
    """The unsigned type of a type's width."""
    return element_type(f"u{dtype.bits}") if dtype.bits in (1, 2, 4, 8, 16, 32, 64) and not dtype.is_complex else None


def _bitcast_convert(ins: Instruction) -> Instruction | None:
    x, result = ins.operands[0], ins.shape.logical
    if x.shape.dtype is result.dtype:
        return x
    of, to = _bits(x.shape.dtype), _bits(result.dtype)
    if of is None or to is None or of is to or ins.shape.is_dynamic:
        return None
    write = Writer(ins.computation)
    number = x if x.shape.dtype is of else write.op("bitcast-convert", x, shape=x.shape.with_dtype(of))
    changed = _split(write, number, ins, to) if of.bits > to.bits else _join(write, number, to)
    return changed if result.dtype is to else write.op("bitcast-convert", changed, shape=result)


def _split(write: Writer, x: Instruction, ins: Instruction, part: ElementType) -> Instruction:
    shape = ins.shape.logical.with_dtype(x.shape.dtype)
    wide = write.broadcast(x, shape, range(x.shape.rank))
    places = write.computation.add("iota", (), {"iota_dimension": shape.rank - 1}, shape=shape)
    shift = write.op("multiply", places, write.full(part.bits, shape))
    return write.convert(write.op("shift-right-logical", wide, shift), part)


def _join(write: Writer, x: Instruction, whole: ElementType) -> Instruction:
    dims, count = x.shape.dims[:-1], x.shape.dims[-1]
    pieces = []
    for n in range(count):
        cut = (*(SliceDim(0, d) for d in dims), SliceDim(n, n + 1))
        part = write.reshape(write.op("slice", x, shape=x.shape.with_dims((*dims, 1)), slice=cut), dims)
        wide = write.convert(part, whole)
        pieces.append(write.op("shift-left", wide, write.full(n * x.shape.dtype.bits, wide.shape)))
    return reduce(lambda a, b: write.op("or", a, b), pieces)
