"""One instruction for several that compute the same.

Before::

    a = f32[4] add(x, y)
    b = f32[4] add(y, x)
    ROOT r = f32[4] multiply(a, b)

After::

    a = f32[4] add(x, y)
    ROOT r = f32[4] multiply(a, a)

Two instructions are the same when opcode, shape, attributes and operands are, in either order where that does not
matter; constants when their bits are; called computations when their fingerprints are. Side effects and random state
are never merged, nor is what a barrier hands on: barriers are there to keep things apart.
"""

from __future__ import annotations

from typing import Any, Final

from cyxla.xla.hlo import Computation, HloModule, Instruction
from cyxla.xla.hlo.fingerprint import HASHED_EXTRAS, fingerprint_computation
from cyxla.xla.passes.engine.observer import replace

_APART: Final = frozenset({
    "parameter", "rng", "rng-get-and-update-state", "opt-barrier", "after-all", "add-dependency", "infeed", "outfeed",
    "send", "recv", "send-done", "recv-done", "custom-call", "async-start", "async-update", "async-done", "copy-start",
    "copy-done", "all-reduce-start", "all-reduce-done", "all-gather-start", "all-gather-done",
    "collective-permute-start", "collective-permute-done", "domain",
})  # fmt: skip


def run(module: HloModule) -> bool:
    """Merge in every computation."""
    prints: dict[Computation, str] = {}
    changed = False
    for computation in module.post_order():
        changed |= _merge(computation, prints)
    return changed


def _merge(computation: Computation, prints: dict[Computation, str]) -> bool:
    seen: dict[Any, Instruction] = {}
    pinned = {p for i in computation.instructions for p in i.control_predecessors}
    changed = False
    for ins in computation.post_order():
        if ins.opcode in _APART or ins in pinned or ins.control_predecessors:
            continue
        if not (ins.users or ins.is_root) or (ins.called and ins.has_side_effect) or ins.row.side_effect:
            continue
        first = seen.setdefault(_key(ins, prints), ins)
        if first is not ins:
            replace(ins, first, "the same is computed before")
            changed = True
    return changed


def _key(ins: Instruction, prints: dict[Computation, str]) -> Any:
    """Equal for instructions that compute the same. Instructions hash by identity, literals by their bits."""
    operands: Any = ins.operands
    if ins.row.commutes and len(operands) == 2 and id(operands[0]) > id(operands[1]):
        operands = operands[::-1]
    called = tuple(_print(c, prints) for c in ins.called) if ins.called else ()
    extras = tuple(str(ins.extras.get(k)) for k in HASHED_EXTRAS) if ins.extras else ()
    return (ins.opcode, ins.shape, operands, tuple(ins.attrs.values()), called, extras)


def _print(computation: Computation, prints: dict[Computation, str]) -> str:
    found = prints.get(computation)
    if found is None:
        found = prints[computation] = fingerprint_computation(computation)
    return found
