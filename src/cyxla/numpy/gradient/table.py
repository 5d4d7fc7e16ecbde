"""The table of derivatives: a rule for each opcode."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from importlib import import_module
from typing import Any

from cyxla.numpy.tracing.trace import require_current
from cyxla.types import Shape
from cyxla.xla.hlo.builder import XlaOp
from cyxla.xla.hlo.builder import functions as xla
from cyxla.xla.hlo.computation import Computation
from cyxla.xla.hlo.instruction import Instruction

Cotangents = Sequence[XlaOp | None]
_MODULES = ("elementwise", "movement", "reductions", "contraction", "indexing", "functional", "linalg")


@dataclass(frozen=True)
class Node:
    """An instruction that is being differentiated.

    Attributes
    ----------
    instruction : Instruction
        As it was traced.
    value : callable
        From an instruction to its value in the current trace.
    cotangents : list of (XlaOp or None)
        Of the result, or of each element of a tuple.
    needs : tuple of bool
        Which operands a cotangent is wanted for.
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
        """The result."""
        return self.value(self.instruction)

    @property
    def g(self) -> XlaOp:
        """The cotangent of a result that is no tuple."""
        found = self.cotangents[0]
        assert found is not None
        return found

    @property
    def attrs(self) -> dict[str, Any]:
        """Attributes of the instruction."""
        return self.instruction.attrs

    @property
    def called(self) -> tuple[Computation, ...]:
        """What it calls."""
        return self.instruction.called

    @property
    def shapes(self) -> list[Shape]:
        """Of the operands."""
        return [o.shape for o in self.instruction.operands]


Pull = Callable[[Node], Cotangents]
_RULES: dict[str, Pull] = {}
_loaded = False


def rule(*opcodes: str) -> Callable[[Pull], Pull]:
    """Make a function the derivative of opcodes: from a node to cotangents of its operands, None for zero."""

    def register(pull: Pull) -> Pull:
        _RULES.update((o, pull) for o in opcodes)
        return pull

    return register


def find(opcode: str) -> Pull | None:
    """The rule of an opcode."""
    global _loaded
    if not _loaded:
        for name in _MODULES:
            import_module(f"cyxla.numpy.gradient.{name}")
        _loaded = True
    return _RULES.get(opcode)


def zeros(shape: Shape) -> XlaOp:
    """Zeros of a shape in the current trace."""
    return filled(shape, 0)


def filled(shape: Shape, value: Any) -> XlaOp:
    """A number repeated to a shape in the current trace."""
    number = require_current().constant(value, shape.dtype.numpy_dtype)
    return xla.broadcast(number, shape.dims) if shape.rank else number
