"""Move reshapes and transposes below element-wise operations, where one does for several operands.

Before::

    a = f32[6] reshape(f32[2,3] x)
    b = f32[6] reshape(f32[2,3] y)
    ROOT r = f32[6] add(a, b)

After::

    s = f32[2,3] add(x, y)
    ROOT r = f32[6] reshape(s)

All operands that are not splats must be moved in the same way. If there is only one, it is moved only towards another
reshape or transpose, with which it then merges.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from cyxla.xla.hlo import OPCODES, HloModule, Instruction
from cyxla.xla.passes.engine.pattern import Match, uniform_value
from cyxla.xla.passes.engine.rewrite import RewritePass, Rule, any_of
from cyxla.xla.passes.engine.rewrite_helpers import Writer

_MOVES: Final = ("reshape", "transpose")
MAX_STEPS: Final = 8  # length of the lookahead
_ELEMENTWISE: Final = sorted(r.name for r in OPCODES.values() if r.elementwise and r.name != "stochastic-convert")


def _sink(m: Match) -> Instruction | None:
    """the reshape or transpose of the operation on the operands before it.."""
    ins = m.root
    first = next((o for o in ins.operands if o.opcode in _MOVES), None)
    if first is None or not ins.shape.rank:
        return None
    moves = list(dict.fromkeys(o for o in ins.operands if o.opcode in _MOVES))
    if not all(_is_same_move(o, first) for o in moves) or not _is_profitable(ins, moves):
        return None
    sizes = first.operands[0].shape.dims
    if not all(o in moves or o.shape.rank == 0 or uniform_value(o) is not None for o in ins.operands):
        return None
    write = Writer(ins.computation)
    operands = [_source(write, o, sizes) for o in ins.operands]
    new = ins.computation.add(ins.opcode, operands, ins.attrs, shape=ins.shape.with_dims(sizes))
    return write.op(first.opcode, new, shape=ins.shape.logical, **first.attrs)


def _is_same_move(a: Instruction, b: Instruction) -> bool:
    return a.opcode == b.opcode and a.operands[0].shape.dims == b.operands[0].shape.dims and a.attrs == b.attrs


def _is_profitable(ins: Instruction, moves: Sequence[Instruction]) -> bool:
    """Return True if fewer bytes move: all moves disappear, or the remaining one merges with those of the users."""
    if any(len(o.users) > 1 for o in moves):
        return False
    if len(moves) == 1:
        return _meets_same_move(ins, moves[0].opcode)
    return sum(o.shape.nbytes for o in moves) >= ins.shape.nbytes


def _meets_same_move(ins: Instruction, opcode: str) -> bool:
    """Return True if all users are such moves, directly or after a chain of element-wise operations."""
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


RULES: Final[list[Rule]] = any_of(_ELEMENTWISE, _sink)
reshape_mover: Final = RewritePass("reshape_mover", RULES)


def run(module: HloModule) -> bool:
    """Move reshapes and transposes as far as it pays."""
    return reshape_mover.run(module)
