"""Arrays that a program computes up to their bounds, whatever the sizes known at run time."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from cyxla.types import Shape
from cyxla.xla.cpu.plan.live_rows import LiveResult, live_rows
from cyxla.xla.cpu.plan.masks import mask_of
from cyxla.xla.hlo import OPCODES, Computation, Instruction

#: Opcodes whose operands matter only as far as their results do, wherever sizes are known: no array is whole by them.
_FOLLOWING = frozenset({"dot", "reduce", "select", "convert", "get-tuple-element"})
#: Opcodes whose results are computed together with those of others, or take no time.
_IN_PASSING = frozenset({
    "parameter", "constant", "iota", "broadcast", "compare", "and", "or", "not", "reshape", "bitcast", "transpose",
    "tuple",
})  # fmt: skip


def whole_arrays(
    computation: Computation, results: Sequence[LiveResult], is_counted: Callable[[Shape], bool]
) -> list[Shape]:
    """Return the shapes of the arrays of which all elements matter, in a program with sizes known at run time.

    Programs that only compute element by element, multiply matrices and reduce have none: sizes pass through these.

    Parameters
    ----------
    computation : Computation
        Computation before any pass.
    results : sequence of LiveResult
        Results of which the caller reads the live elements alone.
    is_counted : callable
        Function that returns True for the shape of an array that would be returned.
    """
    if not any(map(_may_be_whole, filter(lambda ins: is_counted(ins.shape), computation.instructions))):
        return []
    live = live_rows(computation, results)
    if live is None:
        return []
    return [
        ins.shape
        for ins, parts in live.parts.items()
        if is_counted(ins.shape) and parts and not _is_in_passing(ins) and not any(parts.values())
    ]


def _may_be_whole(ins: Instruction) -> bool:
    return ins.opcode not in _FOLLOWING and ins.opcode not in _IN_PASSING and not OPCODES[ins.opcode].elementwise


def _is_in_passing(ins: Instruction) -> bool:
    return ins.opcode in _IN_PASSING or (ins.opcode == "select" and bool(mask_of(ins.operands[0])))
