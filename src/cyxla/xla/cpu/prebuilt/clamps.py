"""Pairs of a maximum and a minimum that one call of the prebuilt clamp computes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from cyxla.xla.hlo import Instruction


def find_clamps(
    order: Sequence[Instruction], results: Iterable[Instruction]
) -> dict[Instruction, tuple[Instruction, Instruction, Instruction]]:
    """Return the lower bound, the operand and the upper bound of each minimum of a maximum that nothing else reads.

    Parameters
    ----------
    order : sequence of Instruction
        Instructions of a program, operands first.
    results : iterable of Instruction
        Results of the program, which have to be in memory.
    """
    pairs = [ins for ins in order if ins.opcode == "minimum" and ins.operands[0].opcode == "maximum"]
    if not pairs:
        return {}
    readers = Counter(o for ins in order for o in ins.operands) + Counter(results)
    return {
        ins: (inner.operands[1], inner.operands[0], ins.operands[1])
        for ins in pairs
        if readers[inner := ins.operands[0]] == 1
    }
