"""Gives every while and conditional computations of its own.

Before::

    a = s32[] while(x), condition=small, body=next
    b = s32[] while(y), condition=small, body=next

After::

    a = s32[] while(x), condition=small, body=next
    b = s32[] while(y), condition=small.1, body=next.1

Later stages give each instruction one place in memory, which needs each to run in one place of the program.
"""

from __future__ import annotations

from cyxla.errors import ResourceExhaustedError
from cyxla.xla.hlo import Computation, HloModule, Instruction
from cyxla.xla.passes.engine.clone import copy_body
from cyxla.xla.passes.simplify.inline import MAX_INSTRUCTIONS

CONTROL_FLOW = frozenset({"while", "conditional"})


def run(module: HloModule) -> bool:
    """Copy computations that several control-flow instructions (or several branches of one) call."""
    used: set[Computation] = {module.entry}
    count = 0
    changed = False
    stack = [module.entry]
    while stack:
        computation = stack.pop()
        count += len(computation.instructions)
        if count > MAX_INSTRUCTIONS:
            raise ResourceExhaustedError(f"control flow unfolds to more than {MAX_INSTRUCTIONS} instructions")
        for ins in computation.instructions:
            if ins.opcode in CONTROL_FLOW:
                own = tuple(_own(module, c, used) for c in ins.called)
                changed |= own != ins.called
                ins.called = own
                stack.extend(own)
    return changed


def _own(module: HloModule, computation: Computation, used: set[Computation]) -> Computation:
    """The computation itself the first time, a copy afterwards; what the copy calls is looked at in its turn."""
    if computation not in used:
        used.add(computation)
        return computation
    twin = module.new_computation(computation.name)
    parameters: list[Instruction] = []
    for p in computation.parameters:
        parameters.append(twin.add("parameter", (), p.attrs, shape=p.shape, name=p.name))
    twin.root = copy_body(computation, twin, parameters)
    used.add(twin)
    return twin
