"""Sorts whose last operand is a mask of the elements that are present: these come first, all others stay in order.

If the mask is true below a size and false from there on, the others stay where they are. The sort is then one of the
present elements alone, by the comparator that compares them.

Before::

    a = f32[] parameter(0)  b = f32[] parameter(1)  left = pred[] parameter(2)  right = pred[] parameter(3)
    before = pred[] compare(a, b), direction=LT
    absent = pred[] not(right)
    either = pred[] or(absent, before)
    ROOT r = pred[] and(left, either)

After: ``before`` is the comparator, of elements below the size.
"""

from __future__ import annotations

from cyxla.types import ElementType
from cyxla.xla.cpu.sort.contents import Content, contents
from cyxla.xla.hlo import Instruction


def before_of(sort: Instruction) -> Instruction | None:
    """Return the instruction that compares present elements; None if a sort has no mask, or its mask is read."""
    comparator, mask = sort.called[0], len(sort.operands) - 1
    if mask < 1 or sort.operands[mask].shape.dtype is not ElementType.PRED:
        return None
    left, right = comparator.parameters[2 * mask :]
    either = _other(comparator.root, "and", left)
    before = None
    if either is not None:
        absent = next((o for o in either.operands if o.opcode == "not" and o.operands == (right,)), None)
        before = None if absent is None else _other(either, "or", absent)
    if before is None or _depends(before, {left, right}) or contents(sort)[mask] is not Content.UNUSED:
        return None
    return before


def _other(ins: Instruction, opcode: str, operand: Instruction) -> Instruction | None:
    """Return the operand beside another one of an instruction of two; None for other opcodes and operands."""
    if ins.opcode != opcode or operand not in ins.operands:
        return None
    first, second = ins.operands
    return second if first is operand else first


def _depends(ins: Instruction, on: set[Instruction]) -> bool:
    stack, seen = [ins], {ins}
    while stack:
        new = [o for o in stack.pop().operands if o not in seen]
        seen.update(new)
        stack += new
    return not seen.isdisjoint(on)
