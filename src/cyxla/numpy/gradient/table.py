"""Table of derivatives: a rule for each opcode."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from importlib import import_module
from typing import Any

from cyxla.numpy.tracing.trace import require_current
from cyxla.records import dataclass
from cyxla.types import Shape
from cyxla.xla.hlo.builder import XlaOp
from cyxla.xla.hlo.builder import functions as xla
from cyxla.xla.hlo.computation import Computation
from cyxla.xla.hlo.instruction import Instruction

Cotangents = Sequence[XlaOp | None]
_MODULES = (
    "elementwise", "data_movement", "reductions", "contraction", "indexing", "functional", "linalg", "compaction",
)  # fmt: skip


@dataclass(frozen=True)
class Node:
    """Instruction that is being differentiated.

    Attributes
    ----------
    instruction : Instruction
        Traced instruction.
    value : callable
        Function from an instruction to its value in the current trace.
    cotangents : list of (XlaOp or None)
        Cotangent of the result, or of each element of a tuple.
    needs : tuple of bool
        Whether a cotangent of each operand is wanted.
    """

    instruction: Instruction
    value: Callable[[Instruction], XlaOp]
    cotangents: list[XlaOp | None]
    needs: tuple[bool, ...]

    @cached_property
    def operands(self) -> list[XlaOp]:
        """Values of the operands."""
        return [self.value(o) for o in self.instruction.operands]

    @cached_property
    def out(self) -> XlaOp:
        """Value of the result."""
        return self.value(self.instruction)

    @property
    def g(self) -> XlaOp:
        """Cotangent of a result that is not a tuple."""
        cotangent = self.cotangents[0]
        assert cotangent is not None
        return cotangent

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
        """Shapes of the operands."""
        return [o.shape for o in self.instruction.operands]


Pull = Callable[[Node], Cotangents]
_RULES: dict[str, Pull] = {}
_loaded = False


def rule(*opcodes: str) -> Callable[[Pull], Pull]:
    """Register the derivative of opcodes: a function from a node to cotangents of the operands, None for zero."""

    def register(pull: Pull) -> Pull:
        _RULES.update((o, pull) for o in opcodes)
        return pull

    return register


def find(opcode: str) -> Pull | None:
    """Return the rule of an opcode; None if it has none."""
    global _loaded
    if not _loaded:
        for name in _MODULES:
            import_module(f"cyxla.numpy.gradient.{name}")
        _loaded = True
    return _RULES.get(opcode)


def zeros(shape: Shape) -> XlaOp:
    """Return zeros of a shape in the current trace."""
    return full_constant(shape, 0)


def full_constant(shape: Shape, value: Any) -> XlaOp:
    """Broadcast a number to a shape in the current trace."""
    scalar = require_current().constant(value, shape.dtype.numpy_dtype)
    return xla.broadcast(scalar, shape.dims) if shape.rank else scalar
