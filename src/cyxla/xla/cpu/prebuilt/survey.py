"""Survey of a program: the instructions that need steps, and the values that have memory of their own."""

from __future__ import annotations

from collections.abc import Container, Sequence
from functools import cached_property
from typing import Final

from cyxla.xla.cpu.kernel import cost
from cyxla.xla.cpu.prebuilt.clamps import find_clamps
from cyxla.xla.cpu.prebuilt.coverage import check, check_folded, is_inexact
from cyxla.xla.cpu.prebuilt.extremes import find_searches, needed
from cyxla.xla.cpu.prebuilt.forms import OPCODES
from cyxla.xla.cpu.prebuilt.strided_operands import STRIDED, find_strided
from cyxla.xla.hlo import HloModule, Instruction

VIEWS: Final = frozenset({"reshape", "bitcast", "copy"})  # the same elements in the same order
_UNIFORM_OF_UNIFORM: Final = OPCODES | VIEWS | STRIDED.keys()


class Survey:
    """Survey of a program.

    Parameters
    ----------
    module : HloModule
        Verified module.
    covered : container of str
        Opcodes that have steps.
    exact : bool
        Whether results must have the bits of native code.

    Attributes
    ----------
    order : list of Instruction
        Instructions that are computed, operands first.
    results : list of Instruction
        Results of the program.
    searches, clamps : dict
        Instructions that one function computes together with their operands.
    strided : dict of Instruction to Strided
        Broadcasts, slices, transposes and reversals that are read without a copy.
    source : dict of Instruction to Instruction
        Instruction whose buffer holds the elements of a value.
    uniform : set of Instruction
        Values with all elements equal; the buffer holds one.
    maybe_constant : set of Instruction
        Values that passes may fold.
    last_readers : dict of int to list of Instruction
        Sources that nothing reads after an instruction, by its place in the order.
    stored : dict of Instruction to int
        Sources that are computed in the memory of a result, with its number.

    Raises
    ------
    NotCoveredError
        Prebuilt functions do not cover an instruction.
    """

    def __init__(self, module: HloModule, covered: Container[str], *, exact: bool) -> None:
        self.parameter_count, self.exact = len(module.parameters), exact
        root = module.entry.root
        is_tuple = root.opcode == "tuple"
        self.results = list(root.operands) if is_tuple else [root]
        order = [ins for ins in module.entry.post_order() if ins is not root or not is_tuple]
        self.searches = {} if exact else find_searches(order)
        if self.searches:
            order = needed(order, self.results, self.searches)
        self.clamps = {} if exact else find_clamps(order, self.results)
        computed = {ins.operands[0] for ins in self.clamps}
        self.order = [ins for ins in order if ins not in computed]
        self.strided = find_strided(self.order, self.results, self.operands_of)
        self.source: dict[Instruction, Instruction] = {}
        self.uniform: set[Instruction] = set()
        self.maybe_constant: set[Instruction] = set()
        self.last_readers: dict[int, list[Instruction]] = {}
        self.stored: dict[Instruction, int] = {}
        last = self._read_operands(covered)
        self._read_results(last)
        for source, index in last.items():
            self.last_readers.setdefault(index, []).append(source)

    def _read_operands(self, covered: Container[str]) -> dict[Instruction, int]:
        """Find aliases and uniform values; return the place of the last instruction that reads each source."""
        source, uniform, maybe_constant = self.source, self.uniform, self.maybe_constant
        last: dict[Instruction, int] = {}
        for index, ins in enumerate(self.order):
            is_search = ins in self.searches
            check(ins, "reduce" if is_search else ins.opcode, covered)
            operands = self.operands_of(ins)
            is_uniform = (
                bool(operands) and ins.opcode in _UNIFORM_OF_UNIFORM and uniform.issuperset(operands)
            ) and not is_search
            if is_uniform or ins.shape.size == 1:
                uniform.add(ins)
            is_view = ins.opcode in VIEWS or ins in self.strided or (is_uniform and ins.opcode in STRIDED)
            source[ins] = source[operands[0]] if is_view else ins
            if self.exact and self._may_be_constant(ins):
                maybe_constant.add(ins)
            if self.exact and operands and maybe_constant.issuperset(operands):
                check_folded(ins)
            for o in operands:
                last[source[o]] = index
        return last

    def _read_results(self, last: dict[Instruction, int]) -> None:
        """Find the sources that are computed in the memory of a result; results are read last."""
        for number, leaf in enumerate(self.results):
            source = self.source[leaf]
            last[source] = len(self.order)
            if self.is_materialised(leaf) and source.opcode not in ("parameter", "constant", "iota"):
                self.stored.setdefault(source, number)

    def operands_of(self, ins: Instruction) -> Sequence[Instruction]:
        """Return the operands of the function that computes an instruction."""
        search = self.searches.get(ins)
        return self.clamps.get(ins, ins.operands) if search is None else [search.operand]

    def is_materialised(self, ins: Instruction) -> bool:
        """Return True if every element of a value is in memory."""
        return ins not in self.uniform or ins.shape.size == 1

    def _may_be_constant(self, ins: Instruction) -> bool:
        """Return True unless it is certain that passes cannot fold an instruction."""
        operands, opcode, maybe_constant = ins.operands, ins.opcode, self.maybe_constant
        if not operands:
            return opcode != "parameter"
        if maybe_constant.issuperset(operands):
            return True
        if opcode in ("concatenate", "pad"):  # a slice may keep one part alone
            return not maybe_constant.isdisjoint(operands)
        if opcode == "select":
            arms = operands[1:]
            return maybe_constant.issuperset(arms) or (
                operands[0] in maybe_constant and not maybe_constant.isdisjoint(arms)
            )
        if opcode == "reduce":
            return operands[0] in maybe_constant or not operands[0].shape.size
        if len(operands) == 1 or (is_inexact(operands[0]) and opcode != "compare"):
            return False
        kinds = {o.opcode for o in operands}
        equal = (len(kinds) == 1 and "parameter" not in kinds) or len({self.source[o] for o in operands}) == 1
        return equal or not (is_inexact(operands[0]) or maybe_constant.isdisjoint(operands))

    @cached_property
    def element_ns(self) -> float:
        """Return the total time per element of all operations in ns."""
        return cost.element_ns(self.order) + cost.memory_ns(8 * self.parameter_count)
