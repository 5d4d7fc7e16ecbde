"""Expand constants of tuples into tuples of constants.

Before::

    ROOT c = (f32[2], s32[]) constant(({1, 2}, 3))

After::

    a = f32[2] constant({1, 2})
    b = s32[] constant(3)
    ROOT c = (f32[2], s32[]) tuple(a, b)
"""

from __future__ import annotations

from cyxla.types import Literal
from cyxla.xla.hlo import HloModule, Instruction
from cyxla.xla.passes.engine.rewrite_helpers import Writer, rewrite_each


def run(module: HloModule) -> bool:
    """Expand tuple constants."""
    return rewrite_each(module, {"constant": _constant})


def _constant(ins: Instruction) -> Instruction | None:
    literal: Literal = ins.attrs["literal"]
    return _tuple(Writer(ins.computation), literal) if literal.is_tuple else None


def _tuple(write: Writer, literal: Literal) -> Instruction:
    parts = []
    for part in literal.elements:
        if part.is_tuple:
            parts.append(_tuple(write, part))
        else:
            parts.append(write.computation.add("constant", (), {"literal": part}, shape=part.shape))
    return write.op("tuple", *parts, shape=literal.shape)
