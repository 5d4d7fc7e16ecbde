"""Emitter of custom-call: blocked algorithms, compaction, LAPACK, registered C functions; others are run by Python."""

from __future__ import annotations

from collections.abc import Container

from cyxla.errors import UnimplementedError
from cyxla.xla.cpu.calls import c_call, lapack
from cyxla.xla.cpu.calls.python_call import python_call
from cyxla.xla.cpu.compaction import emit as compaction
from cyxla.xla.cpu.emitters import Steps, emits, emits_live
from cyxla.xla.cpu.kernel.groups import Group
from cyxla.xla.cpu.kernel.kernel import Step
from cyxla.xla.cpu.linalg import blocked_calls
from cyxla.xla.evaluator.custom_calls import find_custom_call
from cyxla.xla.evaluator.targets import c_calls
from cyxla.xla.hlo import Instruction


def _check(ins: Instruction) -> str | None:
    leaf = next((x for s in (ins.shape, *(o.shape for o in ins.operands)) for x in s.leaves() if x.is_dynamic), None)
    return f"{leaf} has dynamic sizes" if leaf else None


@emits("custom-call", check=_check)
def custom_call(ins: Instruction) -> Step:
    """Emit a call."""
    step = blocked_calls.blocked_step(ins)
    if step is not None:
        return step
    if compaction.compacts(ins):
        return compaction.compaction(ins)
    if lapack.is_lapack(ins):
        return lapack.lapack(ins)
    if c_calls.is_registered(ins.attrs["custom_call_target"]):
        return c_call.c_call(ins)
    return python_call(ins)


@emits_live("custom-call")
def live_custom_call(group: Group) -> Steps:
    """Emit a call of which a part matters."""
    return compaction.live_compaction(group) if compaction.compacts(group.root) else custom_call(group.root)


def native_refusal(ins: Instruction, own: Container[str]) -> str | None:
    """Return the reason why native code cannot run a custom call, or None.

    None is for LAPACK, for registered targets, and for the program's own targets.
    """
    target = ins.attrs["custom_call_target"]
    if lapack.is_lapack(ins):
        return "native code calls LAPACK's routine, not the program's own" if target in own else None
    if target in own:
        if c_calls.is_registered(target):
            return "native code calls the C function of that name, not the program's own"
        is_native = blocked_calls.is_blocked(ins) or compaction.compacts(ins)
        return "native code computes it, not the program's own" if is_native else None
    try:
        find_custom_call(target)
    except UnimplementedError as error:
        return error.message
    return None
