"""Temporary arrays between the steps of one group: results of instructions that are in no computation."""

from __future__ import annotations

from cyxla.types import Shape
from cyxla.xla.cpu.kernel.kernel import Value
from cyxla.xla.hlo import Instruction


def temporary(root: Instruction, shape: Shape) -> Value:
    """Return a new array of a shape, an intermediate result of an instruction."""
    twin = object.__new__(Instruction)
    twin.opcode, twin.shape, twin.operands, twin.attrs = root.opcode, shape, (), root.attrs
    twin.called, twin.computation, twin.name, twin.metadata = root.called, root.computation, "", ()
    twin.extras, twin.users, twin.control_predecessors = {}, {}, ()
    return Value(twin)


def is_temporary(value: Value) -> bool:
    """Return whether an array is a temporary between the steps of one group."""
    return value.instruction not in value.instruction.computation.instructions
