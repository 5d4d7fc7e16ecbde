"""Sink masks of live elements into the reductions that read them.

A reduction whose operand is masked in its own kernel stops at the size, and reads nothing beyond it. If others read the
masked array too, it lies in memory, and would have to be computed as a whole.

Before::

    masked = f32[64,8] select(live, x, zeros)
    sum = f32[8] reduce(masked, zero), dimensions={0}, to_apply=add
    ROOT result = (f32[8], f32[64,8]) tuple(sum, masked)

After::

    masked = f32[64,8] select(live, x, zeros)
    again = f32[64,8] select(live, x, zeros)
    sum = f32[8] reduce(again, zero), dimensions={0}, to_apply=add
    ROOT result = (f32[8], f32[64,8]) tuple(sum, masked)
"""

from __future__ import annotations

from cyxla.xla.cpu.plan.masks import has_sizes, mask_of
from cyxla.xla.hlo import HloModule, Instruction

MAX_COPIES = 8


def run(module: HloModule) -> bool:
    """Give each reduction of a masked array of several users a mask of its own."""
    entry = module.entry
    if not has_sizes(entry):
        return False
    masks = [i for i in entry.instructions if i.opcode == "select" and len(i.users) > 1 and mask_of(i.operands[0])]
    changed = False
    for mask in masks:
        changed |= _sink(mask)
    return changed


def _sink(mask: Instruction) -> bool:
    readers = [user for user in mask.users if user.opcode == "reduce" and user.operands[0] is mask][:MAX_COPIES]
    for reader in readers if len(readers) < len(mask.users) else readers[1:]:
        again = mask.computation.add("select", mask.operands, mask.attrs, shape=mask.shape, metadata=mask.metadata)
        mask.computation.replace_operand(reader, 0, again)
    return bool(readers)
