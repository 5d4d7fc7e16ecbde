"""Widen linear algebra of narrow floats to f32.

Before::

    ROOT x = bf16[4,1] triangular-solve(bf16[4,4] a, bf16[4,1] b), left_side=true, lower=true

After::

    s = f32[4,1] triangular-solve(f32[4,4] convert(a), f32[4,1] convert(b)), left_side=true, lower=true
    ROOT x = bf16[4,1] convert(s)
"""

from __future__ import annotations

from cyxla.types import ElementType
from cyxla.xla.hlo import HloModule, Instruction
from cyxla.xla.passes.engine.rewrite_helpers import Writer, rewrite_each


def run(module: HloModule) -> bool:
    """Widen cholesky and triangular-solve."""
    return rewrite_each(module, {"cholesky": _widen, "triangular-solve": _widen})


def _widen(ins: Instruction) -> Instruction | None:
    dtype = ins.shape.dtype
    if not dtype.is_float or dtype.bits >= 32:
        return None
    write = Writer(ins.computation)
    operands = [write.convert(o, ElementType.F32) for o in ins.operands]
    wide = ins.computation.add(ins.opcode, operands, ins.attrs, shape=ins.shape.with_dtype(ElementType.F32))
    return write.convert(wide, dtype)
