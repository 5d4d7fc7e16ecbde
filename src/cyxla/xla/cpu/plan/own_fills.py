"""Give each scatter a constant array of its own to start from.

A scatter updates its first operand in place, if nothing reads it later. Equal constants are one instruction, so that
zeros that are also the filler of a mask would lie in memory for both, and be copied for the scatter.

Before::

    zeros = s64[64] broadcast(zero)
    counts = s64[64] scatter(zeros, indices, ones), to_apply=add
    ROOT result = s64[64] select(live, counts, zeros)

After::

    zeros = s64[64] broadcast(zero)
    again = s64[64] broadcast(zero)
    counts = s64[64] scatter(again, indices, ones), to_apply=add
    ROOT result = s64[64] select(live, counts, zeros)
"""

from __future__ import annotations

from cyxla.xla.hlo import HloModule, Instruction


def run(module: HloModule) -> bool:
    """Copy the constant arrays that a scatter updates and others read."""
    changed = False
    for computation in module.computations.values():
        for scatter in [i for i in computation.instructions if i.opcode == "scatter"]:
            for n in range((len(scatter.operands) - 1) // 2):
                changed |= _own(scatter, n)
    return changed


def _own(scatter: Instruction, n: int) -> bool:
    fill = scatter.operands[n]
    if fill.opcode != "broadcast" or fill.operands[0].opcode != "constant" or sum(fill.users.values()) == 1:
        return False
    again = fill.computation.add("broadcast", fill.operands, fill.attrs, shape=fill.shape, metadata=fill.metadata)
    scatter.computation.replace_operand(scatter, n, again)
    return True
