"""Base of products of few rows, whose unit of work is a block of columns."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar

from cyxla.xla.cpu.c.writer import CWriter
from cyxla.xla.cpu.dot import micro_kernel
from cyxla.xla.cpu.dot.product import Output, Product, tasks
from cyxla.xla.cpu.kernel.kernel import Kernel, KernelKind


class ByColumns(ABC):
    """Kernel of a product whose columns are split into blocks."""

    form: ClassVar[str]  # of the prebuilt kernel

    def __init__(self, p: Product, output: Output, width: int, vector_bytes: int) -> None:
        self.p, self.output, self.width, self.vector_bytes = p, output, width, vector_bytes
        self.ns = p.ns + output.epilogue.ns
        self.blocks = -(-p.n // width)
        self.last = p.n - (self.blocks - 1) * width
        self.units = p.batch * self.blocks
        self.tasks = tasks(self.ns, self.units)

    @abstractmethod
    def _sizes(self) -> list[int]:
        """Return the arguments of the prebuilt kernel between its buffer indices and its number of units."""

    @abstractmethod
    def _functions(self, c: CWriter) -> None:
        """Write the functions that a unit calls."""

    @abstractmethod
    def _unit(self, c: CWriter, apart: int) -> None:
        """Write a unit: ``width`` columns of ``batch`` from ``from`` on, in rows of `apart` elements at ``to``."""

    def kernel(self) -> Kernel:
        """Return the kernel, prebuilt if there is no epilogue."""
        return self.output.prebuilt(self.form, self.ns, self._numbers) or self._written()

    def _numbers(self) -> tuple[list[int], int]:
        return [*self.output.places, *self._sizes(), self.units, self.tasks], self.tasks

    def _written(self) -> Kernel:
        p, c, direct = self.p, CWriter(), self.output.is_direct
        c.lines(micro_kernel.types("KERNEL", p.c_type, self.vector_bytes))
        self._functions(c)
        widths = dict.fromkeys((self.width, self.last))
        functions = {} if direct else {w: self.output.epilogue.function(c, w) for w in widths}
        units, count = self.units, self.tasks
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
                self._unit(c, apart)
                for width, name in functions.items():
                    c.line(f"if (width == {width}) {name}(bufs, batch * {p.m}, from, {p.m}, to, {apart});")
            c.line("return CYX_OK;")
        return Kernel(c.text(), count, self.ns, 0, KernelKind.DOT)
