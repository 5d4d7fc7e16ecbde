"""Rows that a reduction runs along: their number and length."""

from __future__ import annotations

from math import prod

from cyxla.xla.cpu.kernel.sum_order import MIN_ROW_LENGTH
from cyxla.xla.cpu.reduce.accumulators import accumulator
from cyxla.xla.hlo import Instruction
from cyxla.xla.hlo.combiners import combiner

Rows = tuple[int, int]  # number of rows, and their length


def rows_of(ins: Instruction) -> Rows | None:
    """Return the rows that an instruction reduces with a known combiner; None if it is anything else."""
    if ins.opcode != "reduce" or not ins.shape.is_array or ins.shape.dtype.is_complex:
        return None
    dims, reduced = ins.operands[0].shape.dims, sorted(ins.attrs["dimensions"])
    length = prod(dims[d] for d in reduced)
    if reduced != list(range(len(dims) - len(reduced), len(dims))) or length < MIN_ROW_LENGTH or not ins.shape.size:
        return None
    opcode = combiner(ins.called[0])
    has_accumulator = opcode is not None and accumulator(opcode, ins.shape.dtype) is not None
    return (ins.shape.size, length) if has_accumulator and dims[-1] >= MIN_ROW_LENGTH else None
