"""Numbers of values: two values with the same number are equal whenever the program runs.

Numbers are hash-consed over opcode, shape, attributes, called computations and the numbers of operands, as in global
value numbering (Alpern, Wegman, Zadeck: Detecting equality of variables in programs, POPL 1988). Branches are numbered
for the operands that they are called with, loops are opaque.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import TypeAlias

from cyxla.xla.hlo import Computation, Instruction
from cyxla.xla.hlo.compaction_signature import is_pure_compaction
from cyxla.xla.passes.simplify.cse import expression, is_mergeable

#: Number of an array, or the numbers of the elements of a tuple.
Number: TypeAlias = "int | tuple[Number, ...]"


class ValueNumbers:
    """Numbers of the values of a module."""

    def __init__(self) -> None:
        self._numbers: dict[Hashable, int] = {}
        self._unequal = 0
        self._fingerprints: dict[Computation, str] = {}

    def number(self, key: Hashable) -> int:
        """Return the number of all values with a key."""
        return self._numbers.setdefault(key, len(self._numbers))

    def of_result(self, computation: Computation, parameters: Sequence[Number]) -> Number:
        """Return the number of a computation's result, given those of its parameters."""
        numbers: dict[Instruction, Number] = {}
        for ins in computation.post_order():
            if ins.opcode == "parameter":
                numbers[ins] = parameters[ins.attrs["parameter_number"]]
            else:
                numbers[ins] = self._of_instruction(ins, [numbers[o] for o in ins.operands])
        return numbers[computation.root]

    def _of_instruction(self, ins: Instruction, operands: list[Number]) -> Number:
        if ins.opcode == "tuple":
            return tuple(operands)
        if ins.opcode == "get-tuple-element":
            (source,), index = operands, ins.attrs["index"]
            return source[index] if isinstance(source, tuple) else self.number(("element", source, index))
        if is_pure_compaction(ins):
            return self._of_compaction(ins, operands)
        if ins.has_side_effect or ins.control_predecessors:
            return self._of_unequal()
        if ins.opcode == "conditional":
            return self._of_conditional(ins, operands)
        if ins.opcode == "while":
            return self.number(("while", ins, *operands))
        if not is_mergeable(ins):
            return self._of_unequal()
        return self.number(expression(ins, operands, self._fingerprints))

    def _of_unequal(self) -> int:
        self._unequal += 1
        return self.number(("unequal", self._unequal))

    def _of_compaction(self, ins: Instruction, operands: list[Number]) -> Number:
        """Return the numbers of the selected rows, and that of their count, which depends on the mask alone."""
        call = expression(ins, operands, self._fingerprints)
        rows = [self.number(("rows", k, call)) for k in range(len(ins.shape.elements) - 1)]
        return (*rows, self.number(("count", operands[0])))

    def _of_conditional(self, ins: Instruction, operands: list[Number]) -> Number:
        """Return the numbers of the elements of a conditional's result; equal ones of all branches are the result's."""
        index, *arguments = operands
        branches = zip(ins.called, arguments, strict=True)
        return self._choice(index, [self.of_result(branch, [argument]) for branch, argument in branches])

    def _choice(self, index: Number, results: Sequence[Number]) -> Number:
        first = results[0]
        if all(r == first for r in results):
            return first
        tuples = [r for r in results if isinstance(r, tuple)]
        if len(tuples) == len(results):
            return tuple([self._choice(index, elements) for elements in zip(*tuples, strict=True)])
        return self.number(("conditional", index, *results))


__all__ = ["Number", "ValueNumbers"]
