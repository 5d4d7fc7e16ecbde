"""Elements beyond a dynamic size that a larger size exposes.

A set-dimension-size to more than the present size exposes zeros, but for elements that dynamic-update-slices have
written beyond the size directly before it, as a push to a stack does::

    y = f32[<=4] dynamic-update-slice(x, row, n)
    z = f32[<=4] set-dimension-size(y, n + 1), dimensions={0}
"""

from __future__ import annotations

from cyxla.xla.hlo.instruction import Instruction

_WRITERS = frozenset({"dynamic-update-slice", "set-dimension-size"})


def may_grow(ins: Instruction) -> bool:
    """Return True if an operation exposes what the one before has written beyond the size of its operand 0."""
    return ins.opcode in _WRITERS and ins.operands[0].opcode in _WRITERS


def is_grown(ins: Instruction) -> bool:
    """Return True if what an operation writes beyond the size may be exposed."""
    users = [u for u in ins.users if u.operands[0] is ins and may_grow(u)]
    return any(u.opcode == "set-dimension-size" or is_grown(u) for u in users)
