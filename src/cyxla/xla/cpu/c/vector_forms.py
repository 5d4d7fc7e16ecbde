"""Element-wise opcodes without a vector form: a loop that contains one computes its elements one at a time.

The table holds for gcc, and for the levels of x86-64. It changes no code; explanations give its reasons.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

from cyxla.types import ElementType as E
from cyxla.types import Kind
from cyxla.xla.cpu.c.isa_levels import ISA_FEATURES

_INTEGERS: Final = frozenset({Kind.SIGNED, Kind.UNSIGNED})
_SHIFTS: Final = frozenset({"shift-left", "shift-right-arithmetic", "shift-right-logical"})
#: Functions of complex numbers that branch: they scale, or treat infinities and nan apart.
_BRANCHING: Final = frozenset({
    "atan2", "cosh", "cosine", "exponential", "exponential-minus-one", "logistic", "power", "rsqrt", "sine",
    "sinh", "sqrt", "tan", "tanh",
})  # fmt: skip


def _integer(types: Sequence[E]) -> bool:
    return types[0].kind in _INTEGERS


def _complex(types: Sequence[E]) -> bool:
    return types[0].is_complex


def _float(types: Sequence[E]) -> bool:
    return types[0].is_float


def _wide(types: Sequence[E]) -> bool:
    return _integer(types) and types[0].bits == 64


def _narrow(types: Sequence[E]) -> bool:
    return _integer(types) and types[0].bits <= 16


def _wide_conversion(types: Sequence[E]) -> bool:
    """Return whether a conversion is between a 64-bit integer and a float or complex number."""
    integers = [t for t in types if t.kind in _INTEGERS and t.bits == 64]
    return len(integers) == 1 and any(t.is_float or t.is_complex for t in types)


def _conversion_in_steps(types: Sequence[E]) -> bool:
    """Return whether a conversion of 64-bit integers is one that no operations on vectors of AVX2 make up."""
    return _wide_conversion(types) and tuple(types) != (E.S64, E.F64)


class _Row(NamedTuple):
    """Forms that are scalar: of some opcodes, with types that satisfy a predicate, up to a level."""

    opcodes: frozenset[str]
    takes: Callable[[Sequence[E]], bool]
    reason: str
    last: str = ""  # last level without an instruction; empty for all


_ROWS: Final = (
    _Row(frozenset({"remainder"}), _float, "the number of its steps depends on the elements"),
    _Row(frozenset({"power"}), _integer, "the number of its steps depends on the exponent"),
    _Row(frozenset({"divide", "remainder"}), _integer, "x86-64 divides integers one at a time"),
    _Row(frozenset({"mulhi"}), _wide, "x86-64 has products of 128 bits one at a time"),
    _Row(frozenset({"popcnt"}), _integer, "x86-64-v4 counts the bits of one integer at a time", "x86-64-v4"),
    _Row(_BRANCHING, _complex, "it branches on the values of complex numbers"),
    _Row(frozenset({"count-leading-zeros"}), _integer, "it has vector instructions from x86-64-v4 on", "x86-64-v3"),
    _Row(frozenset({"convert"}), _wide_conversion, "it has vector instructions from x86-64-v4 on", "x86-64-v2"),
    _Row(frozenset({"convert"}), _conversion_in_steps, "it has vector instructions from x86-64-v4 on", "x86-64-v3"),
    _Row(frozenset({"shift-right-arithmetic"}), _narrow, "it has vector instructions from x86-64-v4 on", "x86-64-v3"),
    _Row(frozenset({"multiply"}), _wide, "it has vector instructions from x86-64-v3 on", "x86-64-v2"),
    _Row(_SHIFTS, _integer, "it has vector instructions from x86-64-v3 on", "x86-64-v2"),
)  # fmt: skip
#: Bits of the widest integers that have a vector form with a constant as the second operand.
_BY_CONSTANT: Final = {"divide": 32, "remainder": 32, **dict.fromkeys(_SHIFTS, 64)}
_LEVELS: Final = tuple(ISA_FEATURES)


def scalar_reason(opcode: str, types: Sequence[E], isa: str, *, by_constant: bool = False) -> str:
    """Return the reason for which an element-wise opcode has no vector form; empty if it has one, or if not known.

    Parameters
    ----------
    opcode : str
        Name of an element-wise opcode.
    types : sequence of ElementType
        Element types of the operands, then of the result.
    isa : str
        Instruction-set level, such as ``"x86-64-v3"``.
    by_constant : bool
        True if the second operand is a constant, by which integers are divided and shifted in vectors.
    """
    easy = by_constant and types[0].bits <= _BY_CONSTANT.get(opcode, 0) and _integer(types)
    if isa not in _LEVELS or easy:
        return ""
    for row in _ROWS:
        old_enough = not row.last or _LEVELS.index(isa) <= _LEVELS.index(row.last)
        if opcode in row.opcodes and old_enough and row.takes(types):
            return row.reason
    return ""
