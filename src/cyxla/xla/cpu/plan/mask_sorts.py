"""Mask the results of sorts of which the last elements stay where they are.

A sort stops at a size if nothing beyond it is read. Elements beyond it that a mask makes sort last are the same before
and after the sort, so users need not read them from its result.

Before::

    masked = f32[64] select(live, x, nans)
    sorted = f32[64] sort(masked)
    ROOT next = f32[63] slice(sorted), slice={[1:64]}

After::

    masked = f32[64] select(live, x, nans)
    sorted = f32[64] sort(masked)
    again = pred[64] compare(iota, sizes), direction=LT
    either = f32[64] select(again, sorted, nans)
    ROOT next = f32[63] slice(either), slice={[1:64]}
"""

from __future__ import annotations

from collections.abc import Sequence

from cyxla.types import Shape
from cyxla.xla.cpu.kernel.kernel import Value
from cyxla.xla.cpu.plan.live_rules import masked_last, present_size
from cyxla.xla.cpu.plan.masks import has_sizes
from cyxla.xla.hlo import HloModule, Instruction
from cyxla.xla.passes.engine.rewrite_helpers import Writer

#: Users that read the live elements alone, or pass on all that there are.
_PASSING = frozenset({"tuple", "while", "conditional"})


def run(module: HloModule) -> bool:
    """Mask the results of sorts that others compute with."""
    changed = False
    for computation in module.computations.values():
        sorts = [i for i in computation.instructions if i.opcode == "sort"]
        if sorts and has_sizes(computation):
            for sort in sorts:
                changed |= _mask(sort)
    return changed


def _mask(sort: Instruction) -> bool:
    (axis,) = sort.attrs["dimensions"]
    masked, keys, filler = masked_last(sort)
    size = next(iter(masked.get(axis, ())), None)
    present = present_size(sort)
    if size is None or len(masked[axis]) > 1 or (size.index and not present):
        return False
    results = {user.attrs["index"]: user for user in sort.users if user.opcode == "get-tuple-element"}
    changed = False
    for number, result in ({0: sort} if sort.shape.is_array else results).items():
        users = [user for user in result.users if user.opcode not in _PASSING]
        if users:
            operand, write = sort.operands[number], Writer(sort.computation)
            live = sort.operands[-1] if present else _live(write, operand.shape, size, axis)
            end = write.full(filler, operand.shape) if number == keys else operand
            _replace(result, users, write.select(live, result, end))
            changed = True
    return changed


def _live(write: Writer, shape: Shape, size: Value, axis: int) -> Instruction:
    """Return the mask of the elements below a size."""
    indices = write.iota(shape.with_dtype(size.shape.dtype), axis)
    limit = write.broadcast(write.reshape(size.instruction, ()), indices.shape)
    return write.compare("LT", indices, limit)


def _replace(result: Instruction, users: Sequence[Instruction], new: Instruction) -> None:
    for user in users:
        for position, operand in enumerate(user.operands):
            if operand is result:
                user.computation.replace_operand(user, position, new)
