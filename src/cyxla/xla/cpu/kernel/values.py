"""Arrays in memory, and instructions that only forward their operands.

Buffers are dense, row-major and without layouts, so a reshape, a copy or a tuple changes no byte: its users read the
array behind it. Tokens take no memory and have no value here.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from cyxla.errors import InternalError
from cyxla.types import Shape
from cyxla.xla.cpu.kernel.kernel import Value
from cyxla.xla.hlo import Instruction

#: Opcodes whose result is their first operand, byte for byte.
FORWARDING = frozenset({
    "add-dependency", "bitcast", "copy", "copy-done", "domain", "opt-barrier", "reshape",
})  # fmt: skip
#: Opcodes that take tuples apart or put them together.
TUPLE_OPCODES = frozenset({"tuple", "get-tuple-element", "copy-start"})
#: Opcodes that run other computations.
CONTROL_FLOW = frozenset({"while", "conditional"})


def is_forwarding(ins: Instruction) -> bool:
    """Return whether an instruction computes nothing: all its leaves are defined elsewhere (or are tokens)."""
    return ins.opcode in FORWARDING or ins.opcode in TUPLE_OPCODES or ins.opcode == "after-all"


def resolve(ins: Instruction, index: tuple[int, ...] = ()) -> Value:
    """Find the array behind a leaf of an instruction's result.

    Parameters
    ----------
    ins : Instruction
        Any instruction.
    index : tuple of int
        Shape index of a leaf of its result; () for an array.

    Returns
    -------
    Value
        Leaf of the instruction that computes it; its shape may differ by a reshape.
    """
    while True:
        opcode = ins.opcode
        if opcode == "get-tuple-element":
            ins, index = ins.operands[0], (ins.attrs["index"], *index)
        elif opcode == "tuple":
            ins, index = ins.operands[index[0]], index[1:]
        elif opcode == "copy-done":
            ins, index = ins.operands[0], (0, *index)
        elif opcode == "copy-start":  # (destination, source, context): both arrays are the operand
            if index and index[0] == 2:
                raise InternalError("the context of copy-start is not an array and cannot be read", where=repr(ins))
            ins, index = ins.operands[0], index[1:]
        elif opcode in FORWARDING:
            ins = ins.operands[0]
        else:
            return Value(ins, index)


def leaf_indices(shape: Shape) -> Iterator[tuple[int, ...]]:
    """Yield the indices of the array leaves of a shape, in order; tokens are left out."""
    if shape.is_tuple:
        for i, element in enumerate(shape.elements):
            for index in leaf_indices(element):
                yield (i, *index)
    elif shape.is_array:
        yield ()


def leaves(ins: Instruction) -> list[Value]:
    """Return the arrays behind all leaves of an instruction's result, in order."""
    return [resolve(ins, index) for index in leaf_indices(ins.shape)]


def own_leaves(ins: Instruction) -> list[Value]:
    """Return the arrays that an instruction itself defines, one for each leaf of its result, in order."""
    return [Value(ins, index) for index in leaf_indices(ins.shape)]


def constant_of(ins: Instruction) -> Any:
    """Return the constant that all elements of an array are equal to; None for other arrays."""
    while ins.opcode == "broadcast" or ins.opcode in FORWARDING:
        ins = ins.operands[0]
    return ins.attrs["literal"].array.reshape(-1)[0] if ins.opcode == "constant" and ins.shape.size == 1 else None


def is_read(ins: Instruction, position: int) -> bool:
    """Return whether a kernel needs an operand at all: constant updates of a scatter are in its code."""
    is_update = ins.opcode == "scatter" and position > (len(ins.operands) - 1) // 2
    return not is_update or constant_of(ins.operands[position]) is None
