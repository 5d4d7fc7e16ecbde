"""Reshapes and transposes move below element-wise operations, where one then does for several.

Before::

    a = f32[6] reshape(f32[2,3] x)
    b = f32[6] reshape(f32[2,3] y)
    ROOT r = f32[6] add(a, b)

After::

    s = f32[2,3] add(x, y)
    ROOT r = f32[6] reshape(s)

All operands that are not one number everywhere must move alike. One such operand alone is moved only towards another
reshape or transpose, with which it then merges.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from cyxla.xla.hlo import OPCODES, HloModule, Instruction
from cyxla.xla.passes.engine.pattern import Match, uniform_value
from cyxla.xla.passes.engine.rewrite import RewritePass, Rule, any_of
from cyxla.xla.passes.engine.writer import Writer

_MOVES: Final = ("reshape", "transpose")
MAX_STEPS: Final = 8  # that are looked ahead
_BELOW: Final = sorted(r.name for r in OPCODES.values() if r.elementwise and r.name != "stochastic-convert")


def _sink(m: Match) -> Instruction | None:
    """Move the reshape or transpose of the operands to the result."""
    ins = m.root
    first = next((o for o in ins.operands if o.opcode in _MOVES), None)
    if first is None or not ins.shape.rank:
        return None
    moved = list(dict.fromkeys(o for o in ins.operands if o.opcode in _MOVES))
    if not all(_alike(o, first) for o in moved) or not _pays(ins, moved):
        return None
    sizes = first.operands[0].shape.dims
    if not all(o in moved or o.shape.rank == 0 or uniform_value(o) is not None for o in ins.operands):
        return None
    write = Writer(ins.computation)
    operands = [_source(write, o, sizes) for o in ins.operands]
    new = ins.computation.add(ins.opcode, operands, ins.attrs, shape=ins.shape.with_dims(sizes))
    return write.op(first.opcode, new, shape=ins.shape.logical, **first.attrs)


def _alike(a: Instruction, b: Instruction) -> bool:
    return a.opcode == b.opcode and a.operands[0].shape.dims == b.operands[0].shape.dims and a.attrs == b.attrs


def _pays(ins: Instruction, moved: Sequence[Instruction]) -> bool:
    """Whether fewer bytes move: every move goes, or the one that stays merges with those of the readers."""
    if any(len(o.users) > 1 for o in moved):
        return False
    if len(moved) == 1:
        return _meets(ins, moved[0].opcode)
    return sum(o.shape.nbytes for o in moved) >= ins.shape.nbytes


def _meets(ins: Instruction, opcode: str) -> bool:
    """Whether the readers are such moves, or the one reader's are, and so on along element-wise operations."""
    for _ in range(MAX_STEPS):
        if ins.is_root or not ins.users:
            return False
        if all(u.opcode == opcode for u in ins.users):
            return True
        if len(ins.users) > 1:
            return False
        ins = next(iter(ins.users))
        if not ins.row.elementwise:
            return False
    return False


def _source(write: Writer, ins: Instruction, sizes: tuple[int, ...]) -> Instruction:
    if ins.opcode in _MOVES:
        return ins.operands[0]
    if ins.shape.rank == 0:
        return ins
    scalar = ins.operands[0] if ins.opcode == "broadcast" else ins
    return write.broadcast(write.reshape(scalar, ()), ins.shape.with_dims(sizes))


RULES: Final[list[Rule]] = any_of(_BELOW, _sink)
reshape_mover: Final = RewritePass("reshape_mover", RULES)


def run(module: HloModule) -> bool:
    """Move them as far as that helps."""
    return reshape_mover.run(module)
