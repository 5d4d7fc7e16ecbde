"""Window sizes, and the bound up to which windows are unrolled."""

from __future__ import annotations

from math import prod

from cyxla.xla.hlo import Instruction

MAX_UNROLLED_TAPS = 32  # elements of an unrolled window


def taps(ins: Instruction) -> int:
    """Return the number of elements of an instruction's window."""
    return prod(w.size for w in ins.attrs["window"] or ())


def is_elementwise_select_and_scatter(ins: Instruction) -> bool:
    """Return whether a select-and-scatter is emitted element-wise, fused with its operands and epilogue."""
    return (
        ins.opcode == "select-and-scatter"
        and taps(ins) <= MAX_UNROLLED_TAPS
        and all(o.shape.size for o in ins.operands)
    )
