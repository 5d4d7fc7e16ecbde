"""dot of few rows with an operand whose contracted dimension is the contiguous one: dot products along it."""

from __future__ import annotations

from cyxla.xla.cpu import dot_text
from cyxla.xla.cpu.c_writer import CWriter
from cyxla.xla.cpu.emit_dot_product import Output, Product, tasks
from cyxla.xla.cpu.kernel import Kernel
from cyxla.xla.cpu.levels import FUSED

FEW_ROWS = 4
CACHED_BYTES = 4 << 20, 96 << 20  # operands above come in another of `dot_text.WAYS`
UNITS = 16, 64, 64  # dot products of one unit of work, each way


def runs_along_k(p: Product) -> bool:
    """Whether columns are best computed as dot products."""
    return p.m <= FEW_ROWS and p.lhs[2] == p.rhs[1] == 1 and p.rhs[2] != 1 and p.n > 0


class RowsOfDots:
    """Each element by itself: four vectors run along both operands and are added in a fixed tree at the end."""

    def __init__(self, p: Product, output: Output) -> None:
        self.p, self.output = p, output
        self.ns = p.ns + output.epilogue.ns
        self.way = sum(p.n * p.k * p.dtype.itemsize > most for most in CACHED_BYTES)
        self.width = min(p.n, UNITS[self.way])
        self.blocks = -(-p.n // self.width)
        self.last = p.n - (self.blocks - 1) * self.width

    def kernel(self) -> Kernel:
        """The kernel, prebuilt if results are stored as they are."""
        return self.output.prebuilt("dot_rows", self.ns, self._numbers) or self._written()

    @property
    def _tasks(self) -> tuple[int, int]:
        """Units of work, and tasks."""
        units = self.p.batch * self.blocks
        return units, tasks(self.ns, units)

    def _numbers(self) -> tuple[list[int], int]:
        """What the prebuilt kernel is told (`prebuilt_dot.ROWS`), and the tasks."""
        p, (units, count) = self.p, self._tasks
        sizes = [p.m, p.n, p.k, p.lhs[0], p.lhs[1], p.rhs[0], p.rhs[2], self.width, self.blocks]
        return [*self.output.places, *sizes, self.way, units, count], count

    def _written(self) -> Kernel:
        """Its text; a unit of work is a few columns."""
        p, c, direct = self.p, CWriter(), self.output.is_direct
        c.lines(FUSED.splitlines())
        c.lines(dot_text.types("KERNEL", p.c_type, 64))
        at_once = [dot_text.WAYS[self.way], (1, False)]
        for columns, fetches in at_once:
            self._dots(c, columns, fetches)
        widths = dict.fromkeys((self.width, self.last))
        functions = {} if direct else {w: self.output.epilogue.function(c, w) for w in widths}
        units, count = self._tasks
        with c.block("static cyx_status KERNEL(void *const *bufs, int64_t begin, int64_t end)"):
            self.output.pointers(c)
            with c.block(f"for (int64_t u = begin * {units} / {count}; u < end * {units} / {count}; ++u)"):
                c.line(f"const int64_t batch = u / {self.blocks}, from = u % {self.blocks} * {self.width};")
                c.line(f"const int64_t width = from + {self.width} <= {p.n} ? {self.width} : {self.last};")
                apart = p.n if direct else self.width
                if direct:
                    c.line(f"KERNEL_e *const to = out + batch * {p.m * p.n} + from;")
                else:
                    c.line(f"{p.c_type} to[{p.m * self.width}] __attribute__((aligned(64)));")
                with c.block(f"for (int64_t m = 0; m < {p.m}; ++m)"):
                    c.line(f"const KERNEL_e *const left = a + batch * {p.lhs[0]} + m * {p.lhs[1]};")
                    c.line(f"const KERNEL_e *const right = b + batch * {p.rhs[0]} + from * {p.rhs[2]};")
                    c.line("int64_t n = 0;")
                    for columns, _ in at_once:
                        call = f"KERNEL_dots{columns}(left, right + n * {p.rhs[2]}, (KERNEL_e *)to + m * {apart} + n)"
                        c.line(f"for (; n + {columns} <= width; n += {columns}) {call};")
                for width, name in functions.items():
                    c.line(f"if (width == {width}) {name}(bufs, batch * {p.m}, from, {p.m}, to, {apart});")
            c.line("return CYX_OK;")
        return Kernel(c.text(), count, self.ns, 0, "dot")

    def _dots(self, c: CWriter, columns: int, fetches: bool) -> None:
        """Some neighbouring elements of a row; each is added up in the same order, whatever is beside it."""
        p = self.p
        arguments = "const KERNEL_e *restrict a, const KERNEL_e *restrict b, KERNEL_e *restrict to"
        head = f"static CYX_FUSED __attribute__((noinline)) void KERNEL_dots{columns}({arguments})"
        dot_text.dots(c, head, "KERNEL", p.c_type, columns, fetches, str(p.k), str(p.rhs[2]))
