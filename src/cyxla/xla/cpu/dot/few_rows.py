"""Base of products of few rows, whose unit of work is a block of columns."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import replace
from typing import ClassVar, Generic, TypeVar

from cyxla.xla.cpu.c.writer import CWriter
from cyxla.xla.cpu.dot.live_products import LiveProduct
from cyxla.xla.cpu.dot.product import Output, Product, tasks
from cyxla.xla.cpu.dot.templates import FewRows
from cyxla.xla.cpu.kernel import variants
from cyxla.xla.cpu.kernel.kernel import Kernel, KernelKind

Text = TypeVar("Text", bound=FewRows)


class ColumnBlocks(ABC, Generic[Text]):
    """Kernel of a product whose columns are split into blocks, and its contracted dimension into parts."""

    name: ClassVar[str]  # of the prebuilt kernel
    text: type[Text]  # its C

    def __init__(
        self,
        p: Product,
        output: Output,
        live: LiveProduct,
        choice: variants.Choice,
        width: int,
        vector_bytes: int,
        parts: int = 1,
    ) -> None:
        self.p, self.output, self.width, self.vector_bytes, self.parts = p, output, width, vector_bytes, parts
        self.live = replace(live, rows="")
        self.ns = p.ns + output.epilogue.ns
        self.blocks = -(-p.n // width)
        self.last = p.n - (self.blocks - 1) * width
        self.units = p.batch * self.blocks * parts
        self.tasks = min(choice.get("tasks", tasks(self.ns, self.units)), self.units)

    def axes(self) -> variants.Axes:
        """Return the parameters that leave the bits of the results as they are, with the values to try."""
        if self.live:
            return {}
        own = variants.without(self._own_axes(), {"width": self.width})
        return {"tasks": variants.other_tasks(self.tasks, self.units, self.ns), **own}

    @abstractmethod
    def _own_axes(self) -> dict[str, list[int]]:
        """Return the parameters of this kind of kernel with the values to try."""

    @property
    @abstractmethod
    def _form_values(self) -> dict[str, int]:
        """Parameters of the prebuilt function beside those of all such kernels."""

    @abstractmethod
    def _functions(self, few: Text) -> dict[str, str]:
        """Return the micro-kernels of the kernel: C by name."""

    @property
    def scratch_bytes(self) -> int:
        """Size of the scratch buffer in bytes."""
        return 0

    def kernel(self) -> Kernel:
        """Return the kernel, prebuilt if there is no epilogue."""
        values = self._values() | self._form_values
        prebuilt = None
        if not self.live:
            prebuilt = self.output.prebuilt(self.name, lambda: self.text.parameters.numbers(values), self._kernel(""))
        return prebuilt or self._generate(values | {"form": 0})

    def _kernel(self, text: str) -> Kernel:
        return Kernel(text, self.tasks, self.ns, self.scratch_bytes, KernelKind.DOT, 2 if self.parts > 1 else 1)

    def _values(self) -> dict[str, int]:
        """Return the parameters of the kernel; the only micro-kernel of generated C has the index 0."""
        p, (left, right, out) = self.p, self.output.buffers
        (left_batch, left_row, left_k), (right_batch, right_k, right_column) = p.lhs, p.rhs
        return {
            "left": left, "right": right, "out": out, "m": p.m, "n": p.n, "k": p.k,
            "left_batch_stride": left_batch, "left_row_stride": left_row, "left_k_stride": left_k,
            "right_batch_stride": right_batch, "right_k_stride": right_k, "right_column_stride": right_column,
            "width": self.width, "blocks": self.blocks, "units": self.units, "tasks": self.tasks,
        }  # fmt: skip

    def _generate(self, values: dict[str, int]) -> Kernel:
        """Return a kernel of generated C, with the sizes as constants."""
        p, c, direct = self.p, CWriter(), self.output.is_direct
        few = self.text("KERNEL", p.c_type, self.vector_bytes, values, stops=bool(self.live.depth))
        c.lines(few.types)
        functions = self._functions(few)
        c.lines("".join(functions.values()).splitlines())
        widths = () if direct else (self.width if self.blocks > 1 else self.last, self.last)
        after = [self.output.epilogue.function(c, width) for width in widths]
        c.lines(self.live.functions("KERNEL", p) if self.live else [])
        c.lines(few.run([*functions], 0 if direct else p.m * self.width, live=bool(self.live)).splitlines())
        if after:
            c.line(f"static const KERNEL_after_function KERNEL_after[2] = {{{', '.join(after)}}};")
        with c.block("static cyx_status KERNEL(void *const *bufs, int64_t begin, int64_t end)"):
            sizes = "KERNEL_sizes"
            if self.live.depth:
                sizes = "sizes"
                c.line("KERNEL_numbers sizes = KERNEL_sizes;")
                c.line("sizes.k = KERNEL_live_depth(bufs);")  # operands are not written beyond it
            c.line(f"return KERNEL_run(&{sizes}, bufs, begin, end, {'KERNEL_after' if after else '0'});")
        kernel = self._kernel(c.text())
        return self.live.with_short_work(kernel, p.counts)
