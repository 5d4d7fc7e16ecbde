"""Broadcasts that element-wise functions read without a copy: of a row to all rows, or of an element to each row."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from enum import IntEnum
from math import prod
from typing import NamedTuple

from cyxla.xla.cpu.prebuilt.forms import BLOCK, OPCODES
from cyxla.xla.hlo import Instruction


class Kind(IntEnum):
    """Way in which an operand is spread over the elements of a result; the numbers of ``map_blocks.h``."""

    SAME = 0
    EACH = 1
    ROW = 2
    COLUMN = 3


class Spread(NamedTuple):
    """Way in which an element-wise function reads an operand.

    Attributes
    ----------
    kind : Kind
        Way in which the operand is read.
    row : int
        Number of elements of a row; 0 if the result is one.
    """

    kind: Kind
    row: int = 0


SAME, EACH = Spread(Kind.SAME), Spread(Kind.EACH)


def find_spreads(
    order: Sequence[Instruction],
    results: Iterable[Instruction],
    operands_of: Callable[[Instruction], Sequence[Instruction]],
) -> dict[Instruction, Spread]:
    """Return the broadcasts that only element-wise instructions read, all in rows of one length.

    Parameters
    ----------
    order : sequence of Instruction
        Instructions of a program, operands first.
    results : iterable of Instruction
        Results of the program, which have to be in memory.
    operands_of : callable
        Function that returns the operands of the function that computes an instruction.
    """
    found = {ins: spread for ins in order if ins.opcode == "broadcast" and (spread := _spread(ins))}
    for ins in results:
        found.pop(ins, None)
    for ins in order if found else ():
        read = [o for o in dict.fromkeys(operands_of(ins)) if o in found]
        kept = found[read[0]].row if read and ins.opcode in OPCODES else 0
        for o in read:
            if found[o].row != kept:
                del found[o]
    return found


def _spread(ins: Instruction) -> Spread | None:
    """Return the way in which a broadcast reads its operand; None if it needs a copy."""
    dims, mapping = ins.shape.dims, ins.attrs["dimensions"]
    size = prod(dims)
    wide = [d for d, n in enumerate(dims) if n > 1]
    mapped = [d for d in mapping if dims[d] > 1]
    if not size or not 0 < len(mapped) < len(wide) or mapped != sorted(mapped):
        return None
    length = prod(dims[d] for d in mapped)
    if mapped == wide[-len(mapped) :]:
        return _long(Spread(Kind.ROW, length))
    return _long(Spread(Kind.COLUMN, size // length)) if mapped == wide[: len(mapped)] else None


def _long(spread: Spread) -> Spread | None:
    return spread if spread.row >= BLOCK else None
