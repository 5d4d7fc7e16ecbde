"""Products of which a leading part alone matters: numbers of its live rows, columns and products at run time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import prod

from cyxla.records import dataclass
from cyxla.xla.cpu.dot.product import Product
from cyxla.xla.cpu.kernel.groups import Group
from cyxla.xla.cpu.kernel.kernel import Kernel, Value
from cyxla.xla.cpu.loops.live_loops import live_count
from cyxla.xla.cpu.loops.loop_ir import Reads
from cyxla.xla.cpu.loops.loop_kernel import short_work
from cyxla.xla.passes.expand.dot import DotDims


@dataclass(frozen=True)
class LiveProduct:
    """C of the numbers of products, rows, columns and terms that matter, in terms of ``bufs``; empty if all of them do.

    The terms of a sum from `depth` on are products of zeros.
    """

    batch: str = ""
    rows: str = ""
    columns: str = ""
    depth: str = ""

    @staticmethod
    def of(group: Group, reads: Reads) -> LiveProduct:
        """Return the live part of the product of a group; the sizes are added to the arrays that the kernel reads."""
        if not group.live and not group.stops:
            return LiveProduct()
        dims, ins = DotDims.of(group.root), group.root
        counts = (len(dims.lhs_batch), len(dims.lhs_free), len(dims.rhs_free))
        depth = _merged(ins.operands[0].shape.dims, dims.lhs_contracting, group.stops, reads)
        texts, start = [], 0
        for count in counts:
            texts.append(_merged(ins.shape.dims, range(start, start + count), group.live, reads))
            start += count
        batch, rows, columns = texts
        return LiveProduct(batch, rows, columns, depth)

    def __bool__(self) -> bool:
        return bool(self.batch or self.rows or self.columns or self.depth)

    def units(self, batch: int, rows: int) -> str:
        """C of the number of rows of all products that matter; empty if all of them do."""
        return f"{self.batch or batch} * {self.rows or rows}" if self.batch or self.rows else ""

    @property
    def form(self) -> int:
        """Value of ``DOT_LIVE``."""
        return 2 if self.depth else int(bool(self))

    @property
    def swapped(self) -> LiveProduct:
        """The live part of the product with operands exchanged."""
        return replace(self, rows=self.columns, columns=self.rows)

    def sizes(self, counts: Sequence[int]) -> list[str]:
        """Return the C of the numbers of products, rows, columns and terms that matter, of so many in all."""
        texts = (self.batch, self.rows, self.columns, self.depth)
        return [text or str(n) for text, n in zip(texts, counts, strict=True)]

    def functions(self, prefix: str, p: Product) -> list[str]:
        """Return the C functions that ``dot.h`` and ``dot_few_rows.h`` ask for."""
        return [
            f"static inline int64_t {prefix}_live_{name}(void *const *bufs) {{ return {text}; }}"
            for name, text in zip(("batch", "rows", "columns", "depth"), self.sizes(p.counts), strict=True)
        ]

    def with_short_work(self, kernel: Kernel, counts: Sequence[int]) -> Kernel:
        """Return a kernel that runs on one thread if little of batch, rows, columns and depth matters."""
        if kernel.tasks == 1 or not self:
            return kernel
        work = " * ".join(self.sizes(counts))
        return replace(kernel, short=short_work([(work, kernel.cost / max(1, prod(counts)))]))


def _merged(dims: Sequence[int], merged: Sequence[int], live: Mapping[int, Sequence[Value]], reads: Reads) -> str:
    """Return the C of the live part of dimensions that are one for a kernel, if it is a leading one."""
    wide = [d for d in merged if dims[d] > 1]
    if not wide or wide[0] not in live:
        return ""
    others = prod(dims[d] for d in wide[1:])
    return live_count(live[wide[0]], reads, dims[wide[0]], others)
