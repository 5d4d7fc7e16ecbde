"""Rows that a sort puts in order: their number, length and stride."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

from cyxla.types import ElementType
from cyxla.xla.cpu.kernel import cost
from cyxla.xla.cpu.kernel.kernel_writer import strides
from cyxla.xla.hlo import Instruction

SCRATCH_BYTES = 8 << 20  # for the records of all tasks; at least eight tasks if there are rows enough


@dataclass(frozen=True)
class Rows:
    """What is sorted: `count` rows of `length` elements that lie `step` apart, in an array for each type."""

    types: list[ElementType]
    count: int
    length: int
    step: int

    @staticmethod
    def of(ins: Instruction) -> Rows:
        """The rows of a sort."""
        shape = ins.operands[0].shape
        (axis,) = ins.attrs["dimensions"]
        count = prod(d for i, d in enumerate(shape.dims) if i != axis)
        return Rows([o.shape.dtype for o in ins.operands], count, shape.dims[axis], strides(shape.dims)[axis])

    def tasks(self, ns: float, scratch: int) -> int:
        """How many tasks, each with so many bytes of scratch."""
        enough = max(8, SCRATCH_BYTES // max(1, scratch))
        return min(cost.tasks(ns, max(1, self.count)), enough)

    def start(self, row: str) -> str:
        """Where a row starts."""
        return f"{row} / {self.step} * {self.step * self.length} + {row} % {self.step}"

    def place(self, k: str) -> str:
        """The place of an element of the row that starts at ``at``."""
        return f"at + ({k}) * {self.step}" if self.step != 1 else f"at + {k}"
