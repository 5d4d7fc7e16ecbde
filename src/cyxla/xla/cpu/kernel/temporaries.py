"""Temporary arrays between the steps of one group: results of instructions that are in no computation."""

from __future__ import annotations

from cyxla.types import Shape
from cyxla.xla.cpu.kernel.kernel import Value
from cyxla.xla.hlo import Instruction


def temporary(root: Instruction, shape: Shape) -> Value:
    """Return a new array of a shape, an intermediate result of an instruction."""
    ins = object.__new__(Instruction)
    ins.opcode, ins.shape, ins.operands, ins.attrs = root.opcode, shape, (), root.attrs
    ins.called, ins.computation, ins.name, ins.metadata = root.called, root.computation, "", ()
    ins.extras, ins.users, ins.control_predecessors = {}, {}, ()
    return Value(ins)


def is_temporary(value: Value) -> bool:
    """Return whether an array is a temporary between the steps of one group."""
    return value.instruction not in value.instruction.computation.instructions
