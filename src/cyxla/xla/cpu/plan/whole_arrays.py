"""Arrays that a program computes up to their bounds, whatever the sizes known at run time."""

from __future__ import annotations

from collections.abc import Sequence

from cyxla.types import Shape
from cyxla.xla.cpu.plan.live_rows import LiveResult, live_rows
from cyxla.xla.cpu.plan.masks import mask_of
from cyxla.xla.hlo import Computation, Instruction

#: Opcodes whose results are computed together with those of others, or take no time.
_IN_PASSING = frozenset({
    "parameter", "constant", "iota", "broadcast", "compare", "and", "or", "not", "reshape", "bitcast", "transpose",
    "tuple",
})  # fmt: skip


def whole_arrays(computation: Computation, results: Sequence[LiveResult]) -> list[Shape]:
    """Return the shapes of the arrays of which all elements matter, in a program with sizes known at run time.

    Parameters
    ----------
    computation : Computation
        Computation before any pass.
    results : sequence of LiveResult
        Results of which the caller reads the live elements alone.
    """
    live = live_rows(computation, results)
    if live is None:
        return []
    return [
        ins.shape
        for ins, parts in live.parts.items()
        if ins.shape.is_array and parts and not _is_in_passing(ins) and not any(parts.values())
    ]


def _is_in_passing(ins: Instruction) -> bool:
    return ins.opcode in _IN_PASSING or (ins.opcode == "select" and bool(mask_of(ins.operands[0])))
