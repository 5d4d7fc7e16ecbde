"""dot of few rows with an operand whose contracted dimension is the contiguous one: dot products along it."""

from __future__ import annotations

from cyxla.xla.cpu.c_writer import CWriter
from cyxla.xla.cpu.emit_dot_product import Output, Product, tasks
from cyxla.xla.cpu.kernel import Kernel
from cyxla.xla.cpu.sums import FUSED

FEW_ROWS = 4
COLUMNS = 16  # dot products of one unit of work


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
        self._dot(c)
        widths = dict.fromkeys((self.width, self.last))
        functions = {} if direct else {w: self.output.epilogue.function(c, w) for w in widths}
        units = p.batch * self.blocks
        count = tasks(self.ns, units)
        with c.block("static cyx_status KERNEL(void *const *bufs, int64_t begin, int64_t end)"):
            self.output.pointers(c)
            with c.block(f"for (int64_t u = begin * {units} / {count}; u < end * {units} / {count}; ++u)"):
                c.line(f"const int64_t batch = u / {self.blocks}, from = u % {self.blocks} * {self.width};")
                c.line(f"const int64_t width = from + {self.width} <= {p.n} ? {self.width} : {self.last};")
                if direct:
                    c.line(f"KERNEL_e *const to = out + batch * {p.m * p.n} + from;")
                else:
                    c.line(f"{p.c_type} to[{p.m * self.width}] __attribute__((aligned(64)));")
                with c.block(f"for (int64_t n = 0; n < width; ++n) for (int64_t m = 0; m < {p.m}; ++m)"):
                    left = f"a + batch * {p.lhs[0]} + m * {p.lhs[1]}"
                    right = f"b + batch * {p.rhs[0]} + (from + n) * {p.rhs[2]}"
                    c.line(f"to[m * {p.n if direct else self.width} + n] = KERNEL_dot({left}, {right});")
                for width, name in functions.items():
                    c.line(f"if (width == {width}) {name}(bufs, batch * {p.m}, from, {p.m}, to, {self.width});")
            c.line("return CYX_OK;")
        return Kernel(c.text(), count, self.ns, 0, "dot")

    def _dot(self, c: CWriter) -> None:
        lanes, ctype = 64 // self.p.dtype.itemsize, self.p.c_type
        c.lines(FUSED.splitlines())
        c.line(f"typedef {ctype} KERNEL_v __attribute__((vector_size(64)));")
        c.line(f"typedef {ctype} KERNEL_u __attribute__((vector_size(64), aligned(1), may_alias));")
        c.line(f"typedef {ctype} KERNEL_e __attribute__((aligned(1), may_alias));")
        with c.block(
            f"static CYX_FUSED __attribute__((noinline)) {ctype} "
            "KERNEL_dot(const KERNEL_e *restrict a, const KERNEL_e *restrict b)"
        ):
            c.line("CYX_FUSE")
            c.line("KERNEL_v s0 = {0}, s1 = {0}, s2 = {0}, s3 = {0};")
            c.line("int64_t k = 0;")
            with c.block(f"for (; k + {4 * lanes} <= {self.p.k}; k += {4 * lanes})"):
                for v in range(4):
                    at = f"k + {v * lanes}"
                    c.line(f"s{v} += *(const KERNEL_u *)(a + {at}) * *(const KERNEL_u *)(b + {at});")
            with c.block(f"for (; k + {lanes} <= {self.p.k}; k += {lanes})"):
                c.line("s0 += *(const KERNEL_u *)(a + k) * *(const KERNEL_u *)(b + k);")
            c.line("s0 = (s0 + s1) + (s2 + s3);")
            c.line(f"{ctype} t[{lanes}];")
            c.line("__builtin_memcpy(t, &s0, 64);")
            width = lanes // 2
            while width:
                c.line(f"for (int l = 0; l < {width}; ++l) t[l] += t[l + {width}];")
                width //= 2
            c.line(f"for (; k < {self.p.k}; ++k) t[0] += a[k] * b[k];")
            c.line("return t[0];")
