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
    fingerprints: dict[Computation, str] = {}
    changed = False
    for computation in module.post_order():
        changed |= _merge(computation, fingerprints)
    return changed


def _merge(computation: Computation, fingerprints: dict[Computation, str]) -> bool:
    first_of_key: dict[Any, Instruction] = {}
    predecessors = {p for i in computation.instructions for p in i.control_predecessors}
    changed = False
    for ins in computation.post_order():
        if (
            (ins.opcode in _NOT_MERGED and not is_pure_compaction(ins))
            or ins in predecessors
            or ins.control_predecessors
        ):
            continue
        if not (ins.users or ins.is_root) or (ins.called and ins.has_side_effect) or ins.row.side_effect:
            continue
        first = first_of_key.setdefault(_key(ins, fingerprints), ins)
        if first is not ins:
            replace(ins, first, "the same is computed before")
            changed = True
    return changed


def _key(ins: Instruction, fingerprints: dict[Computation, str]) -> Any:
    """Return a key that equal instructions share. Instructions hash by identity, literals by their bits."""
    operands: Any = ins.operands
    if ins.row.commutes and len(operands) == 2 and id(operands[0]) > id(operands[1]):
        operands = operands[::-1]
    called = tuple(_fingerprint(c, fingerprints) for c in ins.called) if ins.called else ()
    extras = tuple(str(ins.extras.get(k)) for k in HASHED_EXTRAS) if ins.extras else ()
    return (ins.opcode, ins.shape, operands, tuple(ins.attrs.values()), called, extras)


def _fingerprint(computation: Computation, fingerprints: dict[Computation, str]) -> str:
    fingerprint = fingerprints.get(computation)
    if fingerprint is None:
        fingerprint = fingerprints[computation] = fingerprint_computation(computation)
    return fingerprint
