"""Costs and memory of programs, under the names that JAX gives them."""

from __future__ import annotations

from typing import NamedTuple

from cyxla.xla.hlo import Computation, HloModule, Instruction
from cyxla.xla.passes.simplify.trip_count import known_trip_count
from cyxla.xla.service.operation_count import operations

_FREE = frozenset({"bitcast", "constant", "get-tuple-element", "opt-barrier", "parameter", "reshape", "tuple"})
_CONTROL = frozenset({"call", "conditional", "while"})
_READ_PART = frozenset({"dynamic-slice", "gather", "slice"})  # of the first operand, as much as the result has
_WRITE_PART = {"dynamic-update-slice": 1, "scatter": 2}  # the number of the operand with the new elements


class MemoryAnalysis(NamedTuple):
    """Memory of a compiled program, in bytes.

    Attributes
    ----------
    argument_size_in_bytes, output_size_in_bytes : int
        Arguments and results.
    alias_size_in_bytes : int
        Results that take the memory of donated arguments.
    temp_size_in_bytes : int
        Temporaries; 0 if the platform does not plan them.
    constant_size_in_bytes : int
        Constants and bound arguments of the program.
    """

    argument_size_in_bytes: int
    output_size_in_bytes: int
    alias_size_in_bytes: int
    temp_size_in_bytes: int
    constant_size_in_bytes: int

    @staticmethod
    def of(memory: dict[str, int]) -> MemoryAnalysis:
        """Return the analysis of `Executable.memory`."""
        return MemoryAnalysis(
            memory["arguments"], memory["results"], memory.get("donated", 0), memory.get("temporaries", 0),
            memory.get("constants", 0) + memory.get("bound", 0),
        )  # fmt: skip


def cost_analysis(module: HloModule) -> dict[str, float]:
    """Return the arithmetic operations of a module (``"flops"``), and the bytes that it reads and writes.

    Loops with an unknown trip count count as one iteration, and conditionals as all of their branches.
    """
    instructions = module.entry.instructions
    return {
        "flops": float(sum(map(operations, instructions))),
        "bytes accessed": float(sum(map(_bytes_accessed, instructions))),
    }


def _bytes_accessed(ins: Instruction) -> int:
    if ins.opcode in _FREE:
        return 0
    if ins.opcode in _CONTROL:
        return (known_trip_count(ins) or 1 if ins.opcode == "while" else 1) * sum(map(_computation_bytes, ins.called))
    sizes = [sum(leaf.nbytes for leaf in o.shape.leaves() if leaf.is_array) for o in ins.operands]
    result = sum(leaf.nbytes for leaf in ins.shape.leaves() if leaf.is_array)
    if ins.opcode in _READ_PART:
        return result + min(result, sizes[0]) + sum(sizes[1:])
    if ins.opcode in _WRITE_PART:
        return sum(sizes[1:]) + sizes[_WRITE_PART[ins.opcode]]
    return result + sum(sizes)


def _computation_bytes(computation: Computation) -> int:
    return sum(map(_bytes_accessed, computation.instructions))
