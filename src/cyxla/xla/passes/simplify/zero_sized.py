"""Replace arrays without elements by constants.

Before::

    ROOT y = f32[0,4] exponential(f32[0,4] x)

After::

    ROOT y = f32[0,4] constant({})
"""

from __future__ import annotations

from typing import Final

import numpy as np

from cyxla.types import Literal
from cyxla.xla.hlo import Computation, HloModule, Instruction
from cyxla.xla.passes.engine.observer import replace

_STAY: Final = frozenset({"parameter", "constant", "opt-barrier"})


def run(module: HloModule) -> bool:
    """Replace every empty array without side effect."""
    changed = False
    for computation in module.post_order():
        changed |= run_computation(computation)
    return changed


def run_computation(computation: Computation) -> bool:
    """Replace those of one computation."""
    changed = False
    for ins in list(computation.instructions):
        shape = ins.shape
        if shape.is_array and shape.size == 0 and not shape.is_dynamic and _replaceable(ins):
            literal = Literal(np.empty(shape.dims, shape.dtype.numpy_dtype), shape.logical)
            new = computation.add("constant", (), {"literal": literal}, shape=shape.logical)
            replace(ins, new, "an array without elements -> constant")
            changed = True
    return changed


def _replaceable(ins: Instruction) -> bool:
    is_used = bool(ins.users) or ins.is_root
    return is_used and ins.opcode not in _STAY and not ins.has_side_effect and not ins.control_predecessors
