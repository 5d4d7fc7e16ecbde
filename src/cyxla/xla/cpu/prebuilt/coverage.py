"""Instructions that prebuilt functions cover."""

from __future__ import annotations

from collections.abc import Container
from typing import Final

from cyxla.types import Kind, row_major
from cyxla.xla.cpu.prebuilt.forms import OPCODES, TYPES
from cyxla.xla.hlo import Instruction

# Rounded once or not at all: passes that fold them on constants get the same bits as kernels.
_EXACT: Final = frozenset({"add", "subtract", "negate", "compare", "select", "convert", "real", "imag", "complex"})
_EXACT_REAL: Final = _EXACT | {
    "multiply", "divide", "abs", "sign", "sqrt", "floor", "ceil", "maximum", "minimum", "clamp", "is-finite",
    "round-nearest-afz", "round-nearest-even",
}  # fmt: skip
_TYPES: Final = frozenset(TYPES)
#: Opcodes that prebuilt functions compute in some cases, and those that compute nothing.
COVERED: Final = OPCODES | {
    "parameter", "constant", "tuple", "reshape", "bitcast", "copy", "broadcast", "slice", "transpose", "reverse",
    "iota", "concatenate", "pad", "reduce", "reduce-window", "dot",
}  # fmt: skip


class NotCoveredError(Exception):
    """Refusal of a program that prebuilt functions cannot run; the text is the reason."""


def check(ins: Instruction, opcode: str, covered: Container[str]) -> None:
    """Raise if an instruction, or the opcode that stands for it, is not among those covered."""
    shape = ins.shape
    if opcode not in covered or not shape.is_array or shape.is_dynamic or ins.control_predecessors:
        raise NotCoveredError(f"{ins.opcode} to {shape}")
    if shape.layout is not None and shape.layout != row_major(shape.rank):
        raise NotCoveredError(f"the layout of {shape}")
    if shape.dtype not in _TYPES or ins.attrs.get("type") == "TOTALORDER":
        raise NotCoveredError(f"{ins.opcode} to {shape}")


def check_folded(ins: Instruction) -> None:
    """Raise if an instruction on constants, which passes fold, would be rounded differently than in native code."""
    exact = _EXACT if ins.operands[0].shape.dtype.is_complex else _EXACT_REAL
    inexact = ins.opcode in OPCODES and ins.opcode not in exact
    if is_inexact(ins.operands[0]) and (inexact or ins.opcode == "reduce"):
        raise NotCoveredError(f"{ins.opcode} of constants, which the passes fold")


def is_inexact(ins: Instruction) -> bool:
    """Return True if results of an instruction are rounded."""
    return ins.shape.dtype.kind in (Kind.FLOAT, Kind.COMPLEX)
