"""Eliminate common subexpressions.

Before::

    a = f32[4] add(x, y)
    b = f32[4] add(y, x)
    ROOT r = f32[4] multiply(a, b)

After::

    a = f32[4] add(x, y)
    ROOT r = f32[4] multiply(a, a)

Two instructions are equal if opcode, shape, attributes and operands are, in either order for commutative opcodes;
constants if their bits are; called computations if their fingerprints are. Side effects and random state are never
merged, nor are the results of barriers, which exist to keep values apart.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any, Final

from cyxla.xla.hlo import Computation, HloModule, Instruction
from cyxla.xla.hlo.compaction_signature import is_pure_compaction
from cyxla.xla.hlo.fingerprint import HASHED_EXTRAS, fingerprint_computation
from cyxla.xla.passes.engine.observer import replace

_NOT_MERGED: Final = frozenset({
    "parameter", "rng", "rng-get-and-update-state", "opt-barrier", "after-all", "add-dependency", "infeed", "outfeed",
    "send", "recv", "send-done", "recv-done", "custom-call", "async-start", "async-update", "async-done", "copy-start",
    "copy-done", "all-reduce-start", "all-reduce-done", "all-gather-start", "all-gather-done",
    "collective-permute-start", "collective-permute-done", "domain",
})  # fmt: skip


def run(module: HloModule) -> bool:
    """Merge equal instructions in every computation."""
    changed = False
    for computation in module.post_order():
        changed |= run_computation(computation)
    return changed


def run_computation(computation: Computation) -> bool:
    """Merge equal instructions of one computation."""
    fingerprints: dict[Computation, str] = {}
    first_of_key: dict[Any, Instruction] = {}
    calling: dict[Any, list[Instruction]] = {}  # instructions that differ in what they call
    predecessors = {p for i in computation.instructions for p in i.control_predecessors}
    changed = False
    for ins in computation.post_order():
        if not is_mergeable(ins) or ins in predecessors or not (ins.users or ins.is_root):
            continue
        key = _expression(ins, ins.operands)
        if ins.called:
            first = _first_calling_equals(ins, calling.setdefault(key, []), fingerprints)
        else:
            first = first_of_key.setdefault(key, ins)
        if first is not ins:
            replace(ins, first, "the same is computed before")
            changed = True
    return changed


def _first_calling_equals(
    ins: Instruction, others: list[Instruction], fingerprints: dict[Computation, str]
) -> Instruction:
    """Return the first instruction of a list that calls the same as `ins`, or `ins`, which joins the list.

    Fingerprints take long: an instruction that no other resembles needs none.
    """
    for other in others:
        if [_fingerprint(c, fingerprints) for c in other.called] == [_fingerprint(c, fingerprints) for c in ins.called]:
            return other
    others.append(ins)
    return ins


def is_mergeable(ins: Instruction) -> bool:
    """Return whether an instruction gives the result of any other that is written the same."""
    if ins.control_predecessors or ins.row.side_effect or (ins.called and ins.has_side_effect):
        return False
    return ins.opcode not in _NOT_MERGED or is_pure_compaction(ins)


def expression(ins: Instruction, operands: Sequence[Any], fingerprints: dict[Computation, str]) -> Hashable:
    """Return a key that instructions share which are written the same and have equal operands.

    Parameters
    ----------
    ins : Instruction
        Instruction; literals among its attributes hash by their bits.
    operands : sequence
        Operands, or hashable values that stand for them.
    fingerprints : dict of Computation to str
        Known fingerprints of called computations, to which others are added.
    """
    called = tuple(_fingerprint(c, fingerprints) for c in ins.called) if ins.called else ()
    return (_expression(ins, operands), called)


def _expression(ins: Instruction, operands: Sequence[Any]) -> Hashable:
    """Return the key of an instruction without what it calls."""
    if ins.row.commutes and len(operands) == 2:
        operands = sorted(operands, key=lambda o: o if isinstance(o, int) else id(o))
    extras = tuple(str(ins.extras.get(k)) for k in HASHED_EXTRAS) if ins.extras else ()
    return (ins.opcode, ins.shape, tuple(operands), tuple(ins.attrs.values()), extras)


def _fingerprint(computation: Computation, fingerprints: dict[Computation, str]) -> str:
    return fingerprints.get(computation) or fingerprint_computation(computation, fingerprints)
