"""Sizes known at run time that indices lie below, so that what they read of an array is a leading part of it.

Elements of a packed array, whose number is known at run time, are read at indices that are cut off before the padding::

    gather(x, clamp(0, minimum(i, broadcast(subtract(maximum(size, 1), 1))), bound - 1))
"""

from __future__ import annotations

from cyxla.xla.cpu.kernel.kernel import Value
from cyxla.xla.cpu.kernel.values import FORWARDING, constant_of, resolve
from cyxla.xla.cpu.plan.masks import SIZE_TYPES
from cyxla.xla.hlo import Instruction


def size_above(indices: Instruction) -> Value | None:
    """Return a size above all elements of an array of indices that count as 0 where they are negative; else None.

    The size is at least 1.
    """
    ins = _source(indices)
    if ins.opcode == "minimum":
        return next((size for o in ins.operands if (size := size_above(o)) is not None), None)
    if ins.opcode == "clamp":
        low, middle, high = ins.operands
        above = size_above(high)
        return above if above is not None or not _counts_as_zero(low) else size_above(middle)
    if ins.opcode == "maximum":
        left, right = ins.operands
        return size_above(right) if _counts_as_zero(left) else size_above(left) if _counts_as_zero(right) else None
    return _size_of_last(ins)


def _size_of_last(ins: Instruction) -> Value | None:
    """Return the size, at least 1, that a scalar is one less than."""
    if ins.shape.size != 1 or ins.shape.dtype not in SIZE_TYPES:
        return None
    if ins.opcode == "subtract" and constant_of(ins.operands[1]) == 1:
        return _positive(ins.operands[0])
    if ins.opcode == "add":
        for number, other in (ins.operands, ins.operands[::-1]):
            if constant_of(number) == -1:
                return _positive(other)
    return None


def _positive(ins: Instruction) -> Value | None:
    """Return a scalar that is at least 1 since it is a maximum with a positive number."""
    ins = _source(ins)
    numbers = [constant_of(o) for o in ins.operands] if ins.opcode == "maximum" else []
    return resolve(ins) if any(n is not None and n >= 1 for n in numbers) else None


def _counts_as_zero(ins: Instruction) -> bool:
    number = constant_of(ins)
    return number is not None and bool(number <= 0)


def _source(ins: Instruction) -> Instruction:
    """Return the instruction that has the elements of an array, which others repeat or reshape."""
    while ins.opcode == "broadcast" or (ins.opcode in FORWARDING and ins.operands[0].shape.is_array):
        ins = ins.operands[0]
    return ins
