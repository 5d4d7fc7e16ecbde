"""Kernels that call Python: custom calls, and transfers between the program and the host."""

from __future__ import annotations

from cyxla.xla.cpu.kernel import machine
from cyxla.xla.cpu.kernel.kernel import Kernel, KernelKind, Step
from cyxla.xla.cpu.kernel.values import leaves, own_leaves
from cyxla.xla.hlo import Instruction

PYTHON_NS = machine.TASK_NS  # ns of a call without the function itself


def python_call(ins: Instruction, kind: KernelKind = KernelKind.PYTHON) -> Step:
    """Return the kernel of an instruction that the evaluator runs at run time (see `run.python_calls`)."""
    reads, writes = [v for o in ins.operands for v in leaves(o)], own_leaves(ins)
    text = f"""\
static cyx_status KERNEL(void *const *bufs, int64_t begin, int64_t end) {{
  (void)begin; (void)end;
  return ((cyx_status (*)(void *const *))bufs[{len(reads) + len(writes)}])(bufs);
}}
"""
    return Step(Kernel(text, 1, PYTHON_NS, 0, kind), tuple(reads), tuple(writes), functions=(ins,))
