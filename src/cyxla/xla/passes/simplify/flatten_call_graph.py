"""Give every while and conditional its own copy of the computations that it calls.

Before::

    a = s32[] while(x), condition=small, body=next
    b = s32[] while(y), condition=small, body=next

After::

    a = s32[] while(x), condition=small, body=next
    b = s32[] while(y), condition=small.1, body=next.1

Later stages assign each instruction one buffer, which requires one call site.
"""

from __future__ import annotations

from cyxla.errors import ResourceExhaustedError
from cyxla.xla.hlo import Computation, HloModule, Instruction
from cyxla.xla.passes.engine.clone import copy_body
from cyxla.xla.passes.simplify.inline import MAX_INSTRUCTIONS

CONTROL_FLOW = frozenset({"while", "conditional"})


def run(module: HloModule) -> bool:
    """Copy computations that are called by several control-flow instructions, or several branches of one."""
    visited: set[Computation] = {module.entry}
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
                unshared = tuple(_unshare(module, c, visited) for c in ins.called)
                changed |= unshared != ins.called
                ins.called = unshared
                stack.extend(unshared)
    return changed


def _unshare(module: HloModule, computation: Computation, visited: set[Computation]) -> Computation:
    """Return the computation on its first use, a copy afterwards; the callees of the copy are visited in turn."""
    if computation not in visited:
        visited.add(computation)
        return computation
    twin = module.new_computation(computation.name)
    parameters: list[Instruction] = []
    for p in computation.parameters:
        parameters.append(twin.add("parameter", (), p.attrs, shape=p.shape, name=p.name))
    twin.root = copy_body(computation, twin, parameters)
    visited.add(twin)
    return twin
