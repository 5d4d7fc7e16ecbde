"""Values of instructions that do not depend on run-time inputs."""

from __future__ import annotations

from typing import Any

import numpy as np

from cyxla.xla.evaluator.evaluation import evaluate_instruction
from cyxla.xla.hlo import Instruction
from cyxla.xla.hlo.builder import XlaOp
from cyxla.xla.hlo.compaction_signature import is_pure_compaction
from cyxla.xla.hlo.limits import check_empty

# Opcodes whose results are inputs, random, or come from outside the program.
_NOT_CONSTANT = frozenset(
    {
        "parameter", "rng", "rng-bit-generator", "rng-get-and-update-state", "custom-call", "infeed", "recv",
        "partition-id", "replica-id", "all-reduce", "all-gather", "all-to-all", "collective-permute",
        "collective-broadcast", "reduce-scatter", "ragged-all-to-all", "while", "call", "conditional",
    }
)  # fmt: skip
_MAX_ELEMENTS = 1 << 20


class ConstantEvaluator:
    """Evaluator of constant instructions of one computation, each at most once."""

    def __init__(self) -> None:
        self._values: dict[Instruction, Any] = {}

    def value(self, op: XlaOp) -> np.ndarray[Any, Any] | None:
        """Return the value of an instruction, or None if it depends on the program's arguments."""
        value = None if op.instruction is None else self.result(op.instruction)
        return value if isinstance(value, np.ndarray) else None

    def result(self, instruction: Instruction) -> Any:
        """Return the value of an instruction, which may be a tuple; None if it is unknown."""
        stack = [instruction]
        while stack:
            ins = stack[-1]
            if ins in self._values:
                stack.pop()
                continue
            unknown = [x for x in ins.operands if x not in self._values]
            is_lost = self._needs_all(ins) and any(self._values.get(x, 0) is None for x in ins.operands)
            if is_lost or self._is_unknown(ins):
                self._values[ins] = None
            elif unknown:
                stack.extend(unknown)
            else:
                self._values[ins] = self._evaluate(ins)
        return self._values[instruction]

    def _needs_all(self, ins: Instruction) -> bool:
        """Return True if an unknown operand makes the value unknown."""
        return True

    def _is_unknown(self, ins: Instruction) -> bool:
        """Return True if the value is unknown whatever the operands are."""
        return ins.opcode in _NOT_CONSTANT and not is_pure_compaction(ins)

    def _evaluate(self, ins: Instruction) -> Any:
        if ins.shape.is_array and ins.shape.size > _MAX_ELEMENTS:
            return None
        if ins.shape.is_array:
            check_empty(ins.shape, f"{ins!r} of computation {ins.computation.name}")
        return evaluate_instruction(ins, *(self._values[x] for x in ins.operands))
