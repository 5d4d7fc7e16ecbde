"""Rows that a sort puts in order: their number, length and stride."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

from cyxla.types import ElementType
from cyxla.xla.cpu.kernel import cost, machine
from cyxla.xla.cpu.kernel.kernel_writer import strides
from cyxla.xla.hlo import Instruction

SCRATCH_BYTES = (
    machine.L3_BYTES // 4
)  # bound on the records of all tasks, but at least eight tasks run if there are as many rows


@dataclass(frozen=True)
class Rows:
    """Rows of one sort, in an array for each type.

    Attributes
    ----------
    types : list of ElementType
        Types of the arrays.
    count : int
        Number of rows.
    length : int
        Elements of a row.
    step : int
        Stride of the elements of a row, in elements.
    """

    types: list[ElementType]
    count: int
    length: int
    step: int

    @staticmethod
    def of(ins: Instruction) -> Rows:
        """Return the rows of a sort."""
        shape = ins.operands[0].shape
        (axis,) = ins.attrs["dimensions"]
        count = prod(d for i, d in enumerate(shape.dims) if i != axis)
        return Rows([o.shape.dtype for o in ins.operands], count, shape.dims[axis], strides(shape.dims)[axis])

    def tasks(self, ns: float, scratch: int) -> int:
        """Return the number of tasks for `ns` of work, each with `scratch` bytes of its own."""
        max_tasks = max(8, SCRATCH_BYTES // max(1, scratch))
        return min(cost.tasks(ns, max(1, self.count)), max_tasks)

    def start(self, row: str) -> str:
        """Return the C of the offset of a row."""
        return f"{row} / {self.step} * {self.step * self.length} + {row} % {self.step}"

    def index(self, k: str) -> str:
        """Return the C of the index of element `k` of the row that starts at ``at``."""
        return f"at + ({k}) * {self.step}" if self.step != 1 else f"at + {k}"
