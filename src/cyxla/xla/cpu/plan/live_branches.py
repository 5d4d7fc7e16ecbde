"""Branches of conditionals of whose results and operands a leading part matters, up to sizes among them."""

from __future__ import annotations

from collections.abc import Mapping

from cyxla.xla.cpu.kernel.groups import Live
from cyxla.xla.cpu.kernel.kernel import Value
from cyxla.xla.cpu.kernel.values import leaf_indices, resolve
from cyxla.xla.cpu.plan.live_rules import Parts
from cyxla.xla.hlo import Instruction


def live_results_of(ins: Instruction, read: Parts) -> list[tuple[int, int, int]]:
    """Return the results of a conditional of which a part is read: numbers of leaf, dimension and size.

    A part whose size is no result of the conditional counts as the whole.
    """
    numbers = {Value(ins, index): n for n, index in enumerate(leaf_indices(ins.shape))}
    return [
        (numbers[Value(ins, index)], d, numbers[size])
        for index, part in read.items()
        for d, sizes in part.items()
        if all(size in numbers for size in sizes)
        for size in sorted(sizes, key=lambda size: numbers[size])
    ]


def result_parts(ins: Instruction, read: Parts, root: Instruction) -> Parts:
    """Return the parts of the result of a branch that are read as those of the conditional; sizes are its own too."""
    leaves = {Value(ins, index): resolve(root, index) for index in leaf_indices(ins.shape)}
    return {index: _translated(part, leaves) for index, part in read.items()}


def argument_parts(parameter: Instruction, parts: Parts, operand: Instruction) -> Parts:
    """Return the parts of the operand that a branch reads as its parameter; sizes are leaves of the operand too."""
    leaves = {Value(parameter, index): resolve(operand, index) for index in leaf_indices(operand.shape)}
    return {index: _translated(part, leaves) for index, part in parts.items()}


def _translated(part: Live, leaves: Mapping[Value, Value]) -> Live:
    """Return a part with other sizes; a dimension with an unknown or constant size matters as a whole."""
    known = {size: other for size, other in leaves.items() if other.instruction.opcode != "constant"}
    return {d: frozenset(known[s] for s in sizes) for d, sizes in part.items() if all(s in known for s in sizes)}
