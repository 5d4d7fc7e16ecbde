"""Emitter of infeed, outfeed, send and recv: the program calls the host, which waits, checks and copies."""

from __future__ import annotations

from cyxla.xla.cpu.calls.python_call import python_call
from cyxla.xla.cpu.emitters import emits
from cyxla.xla.cpu.kernel.kernel import KernelKind, Step
from cyxla.xla.hlo import Instruction


def _check(ins: Instruction) -> str | None:
    for shape in (ins.shape, *(o.shape for o in ins.operands)):
        for leaf in shape.leaves():
            if leaf.is_array and leaf.is_dynamic:
                return f"{leaf} has dynamic sizes"
    return None


@emits("infeed", "outfeed", "recv", "recv-done", "send", "send-done", check=_check)
def host_transfer(ins: Instruction) -> Step:
    """Emit a call of the host."""
    return python_call(ins, KernelKind.HOST_TRANSFER)
