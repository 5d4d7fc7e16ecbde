"""Software pipelining of row groups: the last pass of the row before runs inside the longest pass.

Non-temporal stores leave the core at the rate of memory. In a pass of their own they would stall it, and the other
passes would leave memory idle; interleaved, both are busy all the time.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from cyxla.records import dataclass
from cyxla.types import ElementType
from cyxla.xla.cpu.c import scalar
from cyxla.xla.cpu.c.writer import CWriter
from cyxla.xla.cpu.kernel import machine
from cyxla.xla.cpu.loops.hoisting import reachable
from cyxla.xla.cpu.loops.nodes import Node

if TYPE_CHECKING:
    from cyxla.xla.cpu.reduce.rows.passes import Passes

ROW_COUNTER = "g"  # counter of the row that the pipelined pass writes
CURRENT, PREVIOUS = "current", "previous"  # indices of this row and of the previous one in a double buffer
LINE = machine.LINE_BYTES


@dataclass(frozen=True)
class RowPipeline:
    """Values of a row kept for the pipelined pass, until the next row is computed.

    Attributes
    ----------
    double_buffered : frozenset of Node
        Values that the pipelined pass reads from buffers; these hold two rows.
    carried : dict of int to (str, ElementType)
        Results of reductions that it reads, by index: the locals that hold them, and their types.
    """

    double_buffered: frozenset[Node]
    carried: dict[int, tuple[str, ElementType]]

    @staticmethod
    def of(passes: Passes, names: CWriter) -> RowPipeline | None:
        """Return the pipeline of the last pass; None if it cannot be pipelined."""
        *earlier, last = passes.passes
        saved = set(passes.saved_in)
        sizes = [passes.inner[1] * s.dtype.itemsize for s in last.stores]
        if not earlier or last.sums or len(passes.row_loops) != 1 or any(size % LINE for size in sizes):
            return None
        nodes = reachable(last.roots(), [s.form for s in last.stores], saved)[0]
        results = {passes.result_nodes[n]: n for n in nodes if n in passes.result_nodes}
        double_buffered = saved.intersection(nodes)
        if any(n.dtype.is_complex for n in (*results.values(), *double_buffered)):
            return None
        return RowPipeline(
            frozenset(double_buffered), {n: (names.name("h"), results[n].dtype) for n in sorted(results)}
        )

    def declare(self, writer: CWriter, buffers: Mapping[Node, str], length: int) -> None:
        """Emit the locals outside of the loop over rows; the row before the first one is of zeros."""
        for name, dtype in self.carried.values():
            writer.line(f"{scalar.register_type(dtype)} {name} = 0;")
        for node, name in buffers.items():
            if node in self.double_buffered:
                writer.line(f"for (int k = 0; k < {length}; ++k) {name}[~first & 1][k] = 0;")

    def begin(self, writer: CWriter) -> None:
        """Emit the locals at the beginning of a row."""
        writer.line(f"const int64_t {ROW_COUNTER} = u > first ? u - 1 : u;")
        if self.double_buffered:
            writer.line(f"const int {CURRENT} = u & 1, {PREVIOUS} = {CURRENT} ^ 1;")

    def end(self, writer: CWriter, results: dict[int, str]) -> None:
        """Emit the copies of a row's results for the next iteration."""
        for number, (name, _) in self.carried.items():
            writer.line(f"{name} = {results[number]};")

    def begin_last(self, writer: CWriter) -> None:
        """Emit the locals of the pipelined pass over the last row."""
        writer.line(f"const int64_t {ROW_COUNTER} = last - 1;")
        if self.double_buffered:
            writer.line(f"const int {PREVIOUS} = {ROW_COUNTER} & 1;")
