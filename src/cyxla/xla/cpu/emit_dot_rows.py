"""dot of few rows with an operand whose contracted dimension is the contiguous one: dot products along it."""

from __future__ import annotations

from cyxla.xla.cpu.c_writer import CWriter
from cyxla.xla.cpu.emit_dot_product import Output, Product, tasks
from cyxla.xla.cpu.kernel import Kernel
from cyxla.xla.cpu.levels import FUSED

FEW_ROWS = 4
COLUMNS = 16  # dot products of one unit of work
TOGETHER = 4  # of them done at once: more of the right operand is on its way, and the left one is read once for all


def runs_along_k(p: Product) -> bool:
    """Whether columns are best computed as dot products."""
    return p.m <= FEW_ROWS and p.lhs[2] == p.rhs[1] == 1 and p.rhs[2] != 1 and p.n > 0


class RowsOfDots:
    """Each element by itself: four vectors run along both operands and are added in a fixed tree at the end."""

    def __init__(self, p: Product, output: Output) -> None:
        self.p, self.output = p, output
        self.ns = p.ns + output.epilogue.ns
        self.width = min(p.n, COLUMNS)
        self.blocks = -(-p.n // self.width)
        self.last = p.n - (self.blocks - 1) * self.width

    def kernel(self) -> Kernel:
        """The kernel; a unit of work is a few columns."""
        p, c, direct = self.p, CWriter(), self.output.is_direct
        self._types(c)
        self._dots(c, TOGETHER)
        self._dots(c, 1)
        widths = dict.fromkeys((self.width, self.last))
        functions = {} if direct else {w: self.output.epilogue.function(c, w) for w in widths}
        units = p.batch * self.blocks
        count = tasks(self.ns, units)
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
                    for columns in (TOGETHER, 1):
                        call = f"KERNEL_dots{columns}(left, right + n * {p.rhs[2]}, (KERNEL_e *)to + m * {apart} + n)"
                        c.line(f"for (; n + {columns} <= width; n += {columns}) {call};")
                for width, name in functions.items():
                    c.line(f"if (width == {width}) {name}(bufs, batch * {p.m}, from, {p.m}, to, {apart});")
            c.line("return CYX_OK;")
        return Kernel(c.text(), count, self.ns, 0, "dot")

    def _types(self, c: CWriter) -> None:
        ctype = self.p.c_type
        c.lines(FUSED.splitlines())
        c.line(f"typedef {ctype} KERNEL_v __attribute__((vector_size(64)));")
        c.line(f"typedef {ctype} KERNEL_u __attribute__((vector_size(64), aligned(1), may_alias));")
        c.line(f"typedef {ctype} KERNEL_e __attribute__((aligned(1), may_alias));")

    def _dots(self, c: CWriter, columns: int) -> None:
        """Some neighbouring elements of a row; each is added up in the same order, whatever is beside it."""
        p, lanes = self.p, 64 // self.p.dtype.itemsize
        arguments = "const KERNEL_e *restrict a, const KERNEL_e *restrict b, KERNEL_e *restrict to"
        with c.block(f"static CYX_FUSED __attribute__((noinline)) void KERNEL_dots{columns}({arguments})"):
            c.line("CYX_FUSE")
            c.line("KERNEL_v " + ", ".join(f"s{n}_{v} = {{0}}" for n in range(columns) for v in range(4)) + ";")
            c.line("int64_t k = 0;")
            for vectors in (4, 1):
                with c.block(f"for (; k + {vectors * lanes} <= {p.k}; k += {vectors * lanes})"):
                    for v in range(vectors):
                        c.line(f"const KERNEL_v a{v} = *(const KERNEL_u *)(a + k + {v * lanes});")
                    for n in range(columns):
                        for v in range(vectors):
                            c.line(f"s{n}_{v} += a{v} * *(const KERNEL_u *)(b + k + {n * p.rhs[2] + v * lanes});")
            c.line(f"{p.c_type} t[{columns}][{lanes}];")
            for n in range(columns):
                c.line(f"s{n}_0 = (s{n}_0 + s{n}_1) + (s{n}_2 + s{n}_3);")
                c.line(f"__builtin_memcpy(t[{n}], &s{n}_0, 64);")
            with c.block(f"for (int n = 0; n < {columns}; ++n)"):
                width = lanes // 2
                while width:
                    c.line(f"for (int l = 0; l < {width}; ++l) t[n][l] += t[n][l + {width}];")
                    width //= 2
                c.line(f"for (int64_t i = k; i < {p.k}; ++i) t[n][0] += a[i] * b[i + n * {p.rhs[2]}];")
                c.line("to[n] = t[n][0];")
