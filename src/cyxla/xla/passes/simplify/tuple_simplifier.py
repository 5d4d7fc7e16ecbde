"""Remove tuples that are only taken apart again.

Before::

    t = (f32[4], s32[]) tuple(x, n)
    a = f32[4] get-tuple-element(t), index=0
    ROOT r = f32[4] negate(a)

After::

    ROOT r = f32[4] negate(x)

A tuple of all elements of another, in order, is replaced by that one.
"""

from __future__ import annotations

from typing import Final

from cyxla.types import Literal
from cyxla.xla.hlo import HloModule, Instruction
from cyxla.xla.passes.engine.pattern import Match
from cyxla.xla.passes.engine.rewrite import RewritePass, Rule, any_of


def _element(m: Match) -> Instruction | None:
    """the element of the tuple or constant.."""
    source, index = m.root.operands[0], m.root.attrs["index"]
    if source.opcode == "tuple":
        element: Instruction = source.operands[index]
        return element
    if source.opcode == "constant":
        part: Literal = source.attrs["literal"].elements[index]
        return m.root.computation.add("constant", (), {"literal": part}, shape=m.root.shape.logical)
    return None


def _source_tuple(m: Match) -> Instruction | None:
    """the tuple whose elements these are, all and in order.."""
    parts = m.root.operands
    if not parts or any(o.opcode != "get-tuple-element" or o.attrs["index"] != n for n, o in enumerate(parts)):
        return None
    source: Instruction = parts[0].operands[0]
    same = all(o.operands[0] is source for o in parts)
    return source if same and len(source.shape.elements) == len(parts) else None


RULES: Final[list[Rule]] = [*any_of(["get-tuple-element"], _element), *any_of(["tuple"], _source_tuple)]
tuple_simplifier: Final = RewritePass("tuple_simplifier", RULES)


def run(module: HloModule) -> bool:
    """Apply the rules to a fixed point."""
    return tuple_simplifier.run(module)
