"""Sizes of windows, and which are small enough to be unrolled."""

from __future__ import annotations

from math import prod

from cyxla.xla.hlo import Instruction

MAX_UNROLLED_TAPS = 32  # elements of a window that is written out


def taps(ins: Instruction) -> int:
    """How many elements the window of an instruction has."""
    return prod(w.size for w in ins.attrs["window"] or ())


def is_elementwise_select_and_scatter(ins: Instruction) -> bool:
    """Whether a select-and-scatter is computed element by element, with what it reads and what follows."""
    return (
        ins.opcode == "select-and-scatter"
        and taps(ins) <= MAX_UNROLLED_TAPS
        and all(o.shape.size for o in ins.operands)
    )
