"""Expand opcodes that depend on layouts or static sizes.

Before::

    a = f32[2,3]{0,1} bitcast(f32[3,2]{1,0} x)
    n = s32[] get-dimension-size(x), dimensions={0}

After::

    a = f32[2,3] transpose(x), dimensions={1,0}
    n = s32[] constant(3)

A bitcast reads the same memory in another layout: the operand's elements in memory order become the result's in memory
order. Later stages keep every array row-major and have no layouts, so both orders become transposes.
"""

from __future__ import annotations

from cyxla.types import ElementType
from cyxla.xla.hlo import HloModule, Instruction
from cyxla.xla.passes.engine.rewrite_helpers import Writer, rewrite_each


def run(module: HloModule) -> bool:
    """Expand bitcast and get-dimension-size."""
    return rewrite_each(module, _REWRITES)


def _bitcast(ins: Instruction) -> Instruction | None:
    x = ins.operands[0]
    if not x.shape.is_array or x.shape.size * x.shape.dtype.bits != ins.shape.size * ins.shape.dtype.bits:
        return None
    if x.shape.dtype.bits != ins.shape.dtype.bits:
        return None
    write = Writer(ins.computation)
    memory = tuple(reversed(x.shape.minor_to_major))
    order = tuple(reversed(ins.shape.minor_to_major))
    flat = write.transpose(x, memory)
    if flat.shape.dtype is not ins.shape.dtype:
        flat = write.op("bitcast-convert", flat, shape=flat.shape.with_dtype(ins.shape.dtype))
    flat = write.reshape(flat, [ins.shape.dims[d] for d in order])
    inverse = tuple(order.index(d) for d in range(len(order)))
    return write.transpose(flat, inverse)


def _dimension_size(ins: Instruction) -> Instruction | None:
    x, dimension = ins.operands[0], ins.attrs["dimensions"][0]
    if x.shape.dynamic[dimension]:
        return None
    return Writer(ins.computation).constant(x.shape.dims[dimension], ElementType.S32)


_REWRITES = {"bitcast": _bitcast, "get-dimension-size": _dimension_size}
