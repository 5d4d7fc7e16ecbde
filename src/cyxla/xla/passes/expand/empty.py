"""Replace arrays without elements by empty constants, and reductions of them by their initial value.

Before::

    n = f32[0,3] negate(f32[0,3] x)
    r = f32[3] reduce(n, z), dimensions={0}, to_apply=add

After::

    n = f32[0,3] constant({})
    r = f32[3] broadcast(f32[] z), dimensions={}

No kernel then has a loop without iterations.
"""

from __future__ import annotations

from cyxla.xla.hlo import HloModule, Instruction
from cyxla.xla.passes.engine.observer import replace
from cyxla.xla.passes.engine.rewrite_helpers import Writer

_SOURCES = frozenset({"parameter", "constant"})


def run(module: HloModule) -> bool:
    """Replace empty arrays and reductions of them."""
    changed = False
    for computation in module.post_order():
        for ins in computation.post_order():
            new = _replacement(ins)
            if new is not None:
                replace(ins, new, f"{ins.opcode} of an array without elements")
                changed = True
    return changed


def _replacement(ins: Instruction) -> Instruction | None:
    shape, write = ins.shape, Writer(ins.computation)
    if ins.opcode in _SOURCES or shape.is_dynamic:
        return None
    if shape.is_array and shape.size == 0 and not ins.has_side_effect:
        return write.reshape(write.constant([], shape.dtype), shape.dims)
    if ins.opcode == "reduce" and ins.operands[0].shape.size == 0:
        starts = ins.operands[len(ins.operands) // 2 :]
        parts = shape.elements if shape.is_tuple else (shape,)
        values = [write.broadcast(s, part.logical) for s, part in zip(starts, parts, strict=True)]
        return write.op("tuple", *values, shape=shape.logical) if shape.is_tuple else values[0]
    return None
