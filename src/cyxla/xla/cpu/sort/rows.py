"""Rows that a sort puts in order: their number, length and stride."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from math import prod

from cyxla.records import dataclass
from cyxla.types import ElementType
from cyxla.xla.cpu.c.writer import CWriter
from cyxla.xla.cpu.kernel import cost, machine
from cyxla.xla.cpu.kernel.groups import Group
from cyxla.xla.cpu.kernel.kernel import Kernel, Value
from cyxla.xla.cpu.kernel.kernel_writer import strides
from cyxla.xla.cpu.kernel.values import own_leaves, resolve
from cyxla.xla.cpu.loops.live_loops import SizeReads, live_count
from cyxla.xla.cpu.loops.loop_kernel import short_work
from cyxla.xla.cpu.sort.contents import Content, contents, reads_operand
from cyxla.xla.cpu.sort.order import Order
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
        Types of the arrays: of all operands, or of all but the mask of a sort of present elements.
    count : int
        Number of rows.
    length : int
        Elements of a row.
    step : int
        Stride of the elements of a row, in elements.
    live_count, live_length : str
        C of the number of the first rows, and of the first elements of each, that matter; empty if all of them do.
    sizes : tuple of Value
        Sizes at run time that these depend on: arrays that the kernel reads after its operands.
    """

    types: list[ElementType]
    count: int
    length: int
    step: int
    live_count: str = ""
    live_length: str = ""
    sizes: tuple[Value, ...] = ()

    @staticmethod
    def of(ins: Instruction) -> Rows:
        """Return the rows of a sort."""
        shape = ins.operands[0].shape
        (axis,) = ins.attrs["dimensions"]
        count = prod(d for i, d in enumerate(shape.dims) if i != axis)
        return Rows([o.shape.dtype for o in ins.operands], count, shape.dims[axis], strides(shape.dims)[axis])

    @staticmethod
    def of_group(group: Group, arrays: int) -> Rows:
        """Return the rows of the first operands of the sort that is a group, of which a part matters."""
        ins, (axis,) = group.root, group.root.attrs["dimensions"]
        rows, reads = Rows.of(ins), SizeReads(arrays)
        dims = ins.operands[0].shape.dims
        others = [d for d in range(len(dims)) if d != axis and dims[d] > 1]
        count = length = ""
        if others and others[0] in group.live:
            rest = prod(dims[d] for d in others[1:])
            count = live_count(group.live[others[0]], reads, dims[others[0]], rest)
        if axis in group.live:
            length = live_count(group.live[axis], reads, dims[axis])
        types = rows.types[:arrays]
        return replace(rows, types=types, live_count=count, live_length=length, sizes=reads.values)

    def operands(self, ins: Instruction, order: Order) -> tuple[Value, ...]:
        """Return the arrays of a sort by keys; those with the keys stand in for indices, which it does not read."""
        keys = ins.operands[order.operand]
        arrays = ins.operands[: len(self.types)]
        return tuple(resolve(o if reads_operand(ins, n) else keys) for n, o in enumerate(arrays))

    def contents(self, ins: Instruction) -> list[Content]:
        """Return the content of each result of a sort of these arrays."""
        return contents(ins)[: len(self.types)]

    def writes(self, ins: Instruction) -> list[Value]:
        """Return the results of a sort of these arrays."""
        return own_leaves(ins)[: len(self.types)]

    @property
    def count_text(self) -> str:
        """C of the number of rows that matter."""
        return self.live_count or str(self.count)

    @property
    def length_text(self) -> str:
        """C of the number of elements of a row that matter."""
        return self.live_length or str(self.length)

    def define_length(self, c: CWriter) -> str:
        """Return the C of the number of elements of a row that matter, a local if it is known at run time."""
        return c.local("int64_t", self.live_length) if self.live_length else str(self.length)

    def with_short_work(self, kernel: Kernel) -> Kernel:
        """Return a kernel that runs on one thread if the live rows are few and short."""
        if kernel.tasks == 1 or not (self.live_count or self.live_length):
            return kernel
        work = f"{self.count_text} * {self.length_text}"
        return replace(kernel, short=short_work([(work, kernel.cost / max(1, self.count * self.length))]))

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

    def stores(self, results: Sequence[Content]) -> Iterator[str]:
        """Yield the C that stores element `k` of each result, which has the index ``from`` in the row."""
        for n, content in enumerate(results):
            stored = {Content.ELEMENTS: f"p{n}[{self.index('from')}]", Content.INDICES: "from"}
            if content is not Content.UNUSED:
                yield f"r{n}[{self.index('k')}] = {stored[content]};"
