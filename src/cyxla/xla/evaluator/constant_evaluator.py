"""Values of instructions that do not depend on run-time inputs."""

from __future__ import annotations

from typing import Any

import numpy as np

from cyxla.xla.evaluator.evaluation import evaluate_instruction
from cyxla.xla.hlo import Instruction
from cyxla.xla.hlo.builder import XlaOp
from cyxla.xla.hlo.compaction_signature import is_pure_compaction

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
        if op.instruction is None:
            return None
        stack = [op.instruction]
        while stack:
            ins = stack[-1]
            if ins in self._values:
                stack.pop()
                continue
            unknown = [x for x in ins.operands if x not in self._values]
            is_unknown = ins.opcode in _NOT_CONSTANT and not is_pure_compaction(ins)
            if is_unknown or any(self._values.get(x, 0) is None for x in ins.operands):
                self._values[ins] = None
            elif unknown:
                stack.extend(unknown)
            else:
                self._values[ins] = self._evaluate(ins)
        value = self._values[op.instruction]
        return value if isinstance(value, np.ndarray) else None

    def _evaluate(self, ins: Instruction) -> Any:
        if ins.shape.is_array and ins.shape.size > _MAX_ELEMENTS:
            return None
        return evaluate_instruction(ins, *(self._values[x] for x in ins.operands))
