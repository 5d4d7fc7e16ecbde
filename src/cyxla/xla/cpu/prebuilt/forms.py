"""Names of prebuilt operations: element-wise opcodes, moves and reductions; without their C."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from cyxla.types import ElementType as E
from cyxla.xla.hlo import opcode

BLOCK = 64  # elements that an element-wise function computes at a time
MAX_RANK = 8  # loops of a move
LANED = ("add", "multiply")  # reductions of floats that depend on the order

TYPES = (
    E.PRED, E.S8, E.S16, E.S32, E.S64, E.U8, E.U16, E.U32, E.U64, E.F16, E.BF16, E.F32, E.F64, E.C64, E.C128,
)  # fmt: skip
_PLAIN = [row for row in opcode.OPCODES.values() if row.elementwise and row.dialect in ("stablehlo", "chlo")]
UNARY = tuple(row.name for row in _PLAIN if row.arity == (1, 1) and row.name != "is-finite")
BINARY = tuple(row.name for row in _PLAIN if row.arity == (2, 2))
OPCODES = frozenset({*UNARY, *BINARY, "is-finite", "compare", "clamp", "select", "convert"})
DIRECTIONS = ("EQ", "NE", "LT", "LE", "GT", "GE")
PARTS = {E.F32: E.C64, E.F64: E.C128}  # real -> complex


# From the last operand's type and the result's: the result's type and those of the operands.
_IRREGULAR: dict[str, Callable[[E, E], tuple[E, tuple[E, ...]]]] = {
    "compare": lambda t, _: (E.PRED, (t, t)), "select": lambda t, _: (t, (E.PRED, t, t)),
    "clamp": lambda t, _: (t, (t, t, t)), "convert": lambda t, to: (to, (t,)),
}  # fmt: skip


class Form(NamedTuple):
    """Opcode with element types.

    Attributes
    ----------
    opcode : str
        Name of the opcode.
    result : ElementType
        Element type of the result.
    operands : tuple of ElementType
        Element types of the operands.
    direction : str
        Direction of a comparison.
    """

    opcode: str
    result: E
    operands: tuple[E, ...]
    direction: str = ""

    @property
    def name(self) -> str:
        """Name of the function."""
        types = [self.operands[-1], *([self.result] if self.opcode == "convert" else [])]
        return "_".join(["map", *filter(None, [self.opcode.replace("-", "_"), self.direction]), *map(str, types)])

    @property
    def is_regular(self) -> bool:
        """True if the name, which contains only some of the types, is unambiguous."""
        t = self.operands[-1]
        if self.opcode in _IRREGULAR:
            return (self.result, self.operands) == _IRREGULAR[self.opcode](t, self.result)
        count = 2 if self.opcode in BINARY else 1
        return (self.result, self.operands) == (result_of(self.opcode, t), (t,) * count)

    @property
    def attrs(self) -> dict[str, Any]:
        """Attributes of an instruction of this form."""
        return {"direction": self.direction} if self.direction else {}


def result_of(opcode: str, t: E) -> E:
    """Return the result type of an opcode on operands of one type."""
    if opcode == "is-finite":
        return E.PRED
    if opcode == "complex":
        return PARTS[t]
    return t.real_part if opcode in ("real", "imag", "abs") else t
