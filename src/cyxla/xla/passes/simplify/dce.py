"""Remove dead code.

Before::

    ENTRY main {
      x = f32[4] parameter(0)
      y = f32[4] exponential(x)
      ROOT z = f32[4] negate(x)
    }

After::

    ENTRY main {
      x = f32[4] parameter(0)
      ROOT z = f32[4] negate(x)
    }

Parameters stay, and so do instructions with side effects. Computations that the entry does not reach are removed.
"""

from __future__ import annotations

from cyxla.xla.hlo import Computation, HloModule, Instruction


def run(module: HloModule) -> bool:
    """Remove instructions without effect on the result, and computations without callers."""
    effects: dict[Computation, bool] = {}
    changed = False
    for computation in module.post_order():
        changed |= _sweep(computation, effects)
        effects[computation] = any(_has_effect(i, effects) for i in computation.instructions)
    reachable = {c.name for c in module.post_order()}
    for name in [n for n in module.computations if n not in reachable]:
        del module.computations[name]
        changed = True
    return changed


def _has_effect(ins: Instruction, effects: dict[Computation, bool]) -> bool:
    has_effect = ins.row.side_effect or bool(ins.attrs.get("custom_call_has_side_effect"))
    return has_effect or any(effects[c] for c in ins.called)


def _sweep(computation: Computation, effects: dict[Computation, bool]) -> bool:
    stack = [
        computation.root,
        *(i for i in computation.instructions if i.opcode == "parameter" or _has_effect(i, effects)),
    ]
    live: set[Instruction] = set()
    while stack:
        ins = stack.pop()
        if ins not in live:
            live.add(ins)
            stack.extend(ins.operands)
    dead = [i for i in computation.instructions if i not in live]
    for ins in dead:  # all at once: the users of dead instructions are dead too
        for o in ins.operands:
            o.users.pop(ins, None)
            if o in live:
                computation.changed.append(o)
        del computation.instructions[ins]
    if dead:
        for ins in computation.instructions:
            if ins.control_predecessors:
                ins.control_predecessors = tuple(p for p in ins.control_predecessors if p in live)
                computation.changed.append(ins)
    return bool(dead)
