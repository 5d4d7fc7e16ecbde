"""Table of batching rules: one for each opcode."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

from cyxla.records import dataclass
from cyxla.types import Shape
from cyxla.xla.batching.values import Value, mapped, with_batch
from cyxla.xla.hlo.builder import XlaOp
from cyxla.xla.hlo.computation import Computation
from cyxla.xla.hlo.instruction import Instruction

if TYPE_CHECKING:
    from cyxla.xla.batching.batcher import Batcher

_MODULES: Final = (
    "elementwise", "data_movement", "indexing", "reductions", "contraction", "convolution", "control", "element_loops",
)  # fmt: skip
#: Opcodes that hold or run other values, whose rules also apply to an empty batch.
STRUCTURAL: Final = frozenset({
    "tuple", "get-tuple-element", "opt-barrier", "copy", "while", "conditional", "call", "fusion", "get-dimension-size",
})  # fmt: skip


@dataclass(frozen=True)
class Node:
    """Instruction that is being batched.

    Attributes
    ----------
    instruction : Instruction
        Instruction of the program for one element.
    operands : list of Value
        Values of its operands.
    batcher : Batcher
        Batcher of the computation.
    """

    instruction: Instruction
    operands: list[Value]
    batcher: Batcher

    @property
    def attrs(self) -> dict[str, Any]:
        """Attributes of the instruction."""
        return self.instruction.attrs

    @property
    def called(self) -> tuple[Computation, ...]:
        """Computations that the instruction calls."""
        return self.instruction.called

    @property
    def shapes(self) -> list[Shape]:
        """Shapes of the operands for one element."""
        return [o.shape for o in self.instruction.operands]

    @property
    def size(self) -> int:
        """Number of elements of the batch."""
        return self.batcher.size

    def lead(self, index: int) -> XlaOp:
        """Return an operand with the batch as first dimension; one that all elements share is repeated."""
        return self.batcher.lead(self.operands[index])

    def all_lead(self) -> list[XlaOp]:
        """Return all operands with the batch as first dimension."""
        return [self.batcher.lead(v) for v in self.operands]

    def emit(self, operands: Sequence[XlaOp], **attrs: Any) -> Value:
        """Append the instruction for all elements: it has other attributes, and results with the batch in front."""
        shape = with_batch(self.instruction.shape.logical, self.size)
        return mapped(self.batcher.builder.clone(self.instruction, operands, attrs, shape))


BatchingRule = Callable[[Node], Value]
_RULES: dict[str, BatchingRule] = {}
_loaded = False


def rule(*opcodes: str) -> Callable[[BatchingRule], BatchingRule]:
    """Register the rule of opcodes: a function from a node, some operand of which is mapped, to its value."""

    def register(function: BatchingRule) -> BatchingRule:
        _RULES.update((o, function) for o in opcodes)
        return function

    return register


def find(opcode: str) -> BatchingRule | None:
    """Return the rule of an opcode; None if it has none."""
    global _loaded
    if not _loaded:
        for name in _MODULES:
            import_module(f"cyxla.xla.batching.{name}")
        _loaded = True
    return _RULES.get(opcode)


def shifted(dims: Sequence[int]) -> tuple[int, ...]:
    """Return dimensions of an array for one element as those behind the batch."""
    return tuple([d + 1 for d in dims])
