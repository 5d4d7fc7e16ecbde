"""dot of one row with an operand whose columns are neighbours: its rows, times one number each, are added up.

The operand comes through memory once and in order, a few of its rows at a time, over as many columns as have their sums
in the first cache. An element is the sum of chains of `dot_text.ADDED` fused multiply-adds, in the order of the
contracted dimension.
"""

from __future__ import annotations

from cyxla.xla.cpu import dot_text
from cyxla.xla.cpu.c_writer import CWriter
from cyxla.xla.cpu.emit_dot_product import Output, Product, tasks, vector_bytes
from cyxla.xla.cpu.kernel import Kernel
from cyxla.xla.cpu.levels import FUSED

CACHED_BYTES = 4 << 20  # an operand above comes from beyond the second cache
VECTOR_BYTES = 64  # of the highest processor level
TILE_BYTES = 512  # of so many columns, in whole vectors, the sums stay in registers: one tile
LEAST_NEAR, LEAST_FAR = 1 << 10, 256  # bytes of a row in a unit of work: a half, but no more than the sums have room


def is_sum_of_rows(p: Product) -> bool:
    """Whether the right operand's rows are best added up as they come."""
    row = p.n * p.dtype.itemsize
    fits = p.m == 1 and p.rhs[2] == 1 and not p.panel and row >= VECTOR_BYTES
    return fits and (row > TILE_BYTES or row % VECTOR_BYTES != 0)


class SumOfRows:
    """A unit of work is some columns of a product."""

    def __init__(self, p: Product, output: Output) -> None:
        self.p, self.output = p, output
        self.ns = p.ns + output.epilogue.ns
        self.near = p.k * p.n * p.dtype.itemsize <= CACHED_BYTES
        self.width = self._width()
        self.blocks = -(-p.n // self.width)
        self.last = p.n - (self.blocks - 1) * self.width

    def _width(self) -> int:
        """Whole vectors of any processor level, of which a last part has one at least."""
        n, size = self.p.n, self.p.dtype.itemsize
        lanes = VECTOR_BYTES // size
        half = -(-n // (2 * lanes)) * VECTOR_BYTES
        blocks = -(-n * size // min(max(half, LEAST_NEAR if self.near else LEAST_FAR), dot_text.SUMS_BYTES))
        wanted = -(-n // (blocks * lanes))
        return next(w * lanes for w in range(wanted, 0, -1) if (n - 1) % (w * lanes) + 1 >= lanes)

    def kernel(self) -> Kernel:
        """The kernel, prebuilt if results are stored as they are."""
        return self.output.prebuilt("dot_sums", self.ns, self._numbers) or self._written()

    @property
    def _tasks(self) -> tuple[int, int]:
        """Units of work, and tasks."""
        units = self.p.batch * self.blocks
        return units, tasks(self.ns, units)

    def _numbers(self) -> tuple[list[int], int]:
        """What the prebuilt kernel is told (`prebuilt_dot.SUMS`), and the tasks."""
        p, (units, count) = self.p, self._tasks
        sizes = [p.n, p.k, p.lhs[0], p.lhs[2], p.rhs[0], p.rhs[1], self.width, self.blocks, int(self.near)]
        return [*self.output.places, *sizes, units, count], count

    def _written(self) -> Kernel:
        """Its text."""
        p, c, direct = self.p, CWriter(), self.output.is_direct
        c.lines(FUSED.splitlines())
        c.lines(dot_text.types("KERNEL", p.c_type, vector_bytes()))
        head = dot_text.sum_head("KERNEL_sums", "KERNEL")
        dot_text.sum_of_rows(c, head, "KERNEL", p.c_type, vector_bytes(), self.near)
        widths = dict.fromkeys((self.width, self.last))
        functions = {} if direct else {w: self.output.epilogue.function(c, w) for w in widths}
        units, count = self._tasks
        with c.block("static cyx_status KERNEL(void *const *bufs, int64_t begin, int64_t end)"):
            self.output.pointers(c)
            if not direct:
                c.line(f"{p.c_type} to[{self.width}] __attribute__((aligned(64)));")
            with c.block(f"for (int64_t u = begin * {units} / {count}; u < end * {units} / {count}; ++u)"):
                c.line(f"const int64_t batch = u / {self.blocks}, from = u % {self.blocks} * {self.width};")
                c.line(f"const int64_t width = from + {self.width} <= {p.n} ? {self.width} : {self.last};")
                left, right = f"a + batch * {p.lhs[0]}", f"b + batch * {p.rhs[0]} + from"
                to = f"out + batch * {p.n} + from" if direct else "(KERNEL_e *)to"
                c.line(f"KERNEL_sums({left}, {p.lhs[2]}, {right}, {p.rhs[1]}, {to}, {p.k}, width);")
                for width, name in functions.items():
                    c.line(f"if (width == {width}) {name}(bufs, batch, from, 1, to, {self.width});")
            c.line("return CYX_OK;")
        return Kernel(c.text(), count, self.ns, 0, "dot")
