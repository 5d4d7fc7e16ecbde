"""Several products of one matrix with vectors in one pass, so that a matrix beyond the caches is read once.

Each product keeps its kernel, and so its bits. Blocks of rows of the matrix, a row being what is contiguous, go to one
kernel after the other while they are in L2: inner products of the rows with a vector, and sums of the rows weighted by
another, whose weights may be those inner products. A task is a part of the rows; sums of parts are added at the end.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from cyxla.records import dataclass
from cyxla.xla.cpu.c.writer import CWriter
from cyxla.xla.cpu.dot.emit import is_tiled, kernel_choice, step_of
from cyxla.xla.cpu.dot.inner_products import InnerProducts
from cyxla.xla.cpu.dot.parameters import INNER, PASS, ROW_SUMS
from cyxla.xla.cpu.dot.product import registers, tasks
from cyxla.xla.cpu.dot.row_combination import PART_STEP, RowCombination
from cyxla.xla.cpu.kernel import cost, machine, prebuilt_calls, variants
from cyxla.xla.cpu.kernel.groups import Group
from cyxla.xla.cpu.kernel.kernel import Kernel, KernelKind, Step, Value

CHAIN_ROWS: Final = 8  # of sums of rows: blocks are a multiple of them
BLOCK_BYTES: Final = machine.L2_BYTES // 16  # of rows, if these are short
MAX_BLOCK_BYTES: Final = machine.L2_BYTES  # of `CHAIN_ROWS`, of which prefetches leave the rest to L3
MIN_PARTS: Final = 4  # fewer do not keep four threads busy, and two passes do


@dataclass(frozen=True)
class Matrix:
    """Matrix in memory whose rows are contiguous.

    Attributes
    ----------
    value : Value
        Array that holds it.
    rows, columns : int
        Sizes of the product.
    stride : int
        Elements from a row to the next.
    """

    value: Value
    rows: int
    columns: int
    stride: int

    @property
    def row_bytes(self) -> int:
        """Size of a row in bytes."""
        return self.columns * self.value.shape.dtype.itemsize

    @property
    def block_rows(self) -> int:
        """Number of rows of a block."""
        return PART_STEP if PART_STEP * self.row_bytes <= BLOCK_BYTES else CHAIN_ROWS


@dataclass(frozen=True)
class MatrixReader:
    """Product of a matrix and a vector that can share a pass.

    Attributes
    ----------
    group : Group
        Group of the dot.
    step : Step
        Step of the product alone.
    matrix : Matrix
        Matrix that it reads.
    weights : Value or None
        Vector of which a block of rows needs the elements of these rows alone; None if blocks need all of the vector.
    part : int
        Rows of a part, whose sums are added to those of others at the end; 0 for inner products.
    """

    group: Group
    step: Step
    matrix: Matrix
    weights: Value | None = None
    part: int = 0

    @staticmethod
    def of(group: Group, step: Step) -> MatrixReader | None:
        """Return the reader that the group of a dot is; None if its kernel takes no blocks of rows."""
        if not is_tiled(group.root):
            return None
        output, kernel = kernel_choice(group)
        if not isinstance(kernel, InnerProducts | RowCombination) or (kernel.p.batch, kernel.p.m) != (1, 1):
            return None
        p, reads = kernel.p, output.epilogue.reads
        value = reads[output.right]
        if isinstance(kernel, InnerProducts):
            found = MatrixReader(group, step, Matrix(value, p.n, p.k, p.rhs[2]))
        elif kernel.parts >= MIN_PARTS:
            vector = reads[output.left]
            weights = vector if p.lhs[2] == 1 and vector.shape.size == p.k else None
            found = MatrixReader(group, step, Matrix(value, p.k, p.n, p.rhs[1]), weights, kernel.rows)
        else:
            return None
        return found if CHAIN_ROWS * found.matrix.row_bytes <= MAX_BLOCK_BYTES else None

    def can_read(self, writer: MatrixReader) -> bool:
        """Return whether it can read results of another product in the same pass."""
        results = set(writer.step.writes).intersection(self.step.reads)
        return not results or (self.part > 0 and not writer.part and self.weights is not None)


def one_pass(readers: Sequence[MatrixReader]) -> Step:
    """Return the step of several products of one matrix, of which each can read the results of those before."""
    return _Pass(sorted(readers, key=lambda r: r.part > 0)).step()


class _Pass:
    """Products of one matrix, inner products first."""

    def __init__(self, readers: Sequence[MatrixReader]) -> None:
        self.readers, matrix = readers, readers[0].matrix
        self.block = matrix.block_rows
        self.units = -(-matrix.rows // self.block)
        shared_ns = cost.memory_ns(matrix.rows * matrix.row_bytes) * (len(readers) - 1)
        each = [r.step.kernel.cost for r in readers]
        self.ns = max(sum(each) - shared_ns, *each)
        part = max(r.part for r in readers)
        self.task_units = part // self.block or -(-self.units // tasks(self.ns, self.units))
        self.steps = [step_of(r.group, self._choice(r)) for r in readers]
        self.writes = tuple(w for s in self.steps for w in s.writes)
        self.reads = tuple(dict.fromkeys(v for s in self.steps for v in s.reads if v not in self.writes))
        self.slots = {v: n for n, v in enumerate((*self.reads, *self.writes))}
        self.scratch = len(self.slots)  # index of the buffer, before that of the phase

    def _choice(self, reader: MatrixReader) -> variants.Choice:
        if reader.part:
            return {"step": self.block}
        cached = {"form": 0} if registers() == 32 else {}  # the rows are prefetched by the sums
        return {"width": self.block, "tasks": self.units, **cached}

    @property
    def has_phases(self) -> bool:
        """True if there are sums of parts."""
        return any(r.part for r in self.readers)

    def step(self) -> Step:
        """Return the step, whose kernel is prebuilt if all of the products' are."""
        kernels = [s.kernel for s in self.steps]
        template = Kernel(
            "",
            -(-self.units // self.task_units),
            self.ns,
            sum(k.scratch for k in kernels),
            KernelKind.PRODUCTS,
            2 if self.has_phases else 1,
            loops=tuple(listing for k in kernels for listing in k.loops),
            refusals=tuple(r for k in kernels for r in k.refusals),
        )
        kernel = self._prebuilt(template) or replace(template, text=self._text())
        return Step(kernel, self.reads, self.writes, self._in_place(), groups=tuple(r.group for r in self.readers))

    def _in_place(self) -> tuple[tuple[int, int], ...]:
        """Return the in-place pairs of the products, except for arrays that several of them read."""
        pairs = []
        for step in self.steps:
            others = {v for s in self.steps if s is not step for v in s.reads}
            pairs += [
                (self.slots[step.writes[w]] - len(self.reads), self.slots[step.reads[r]])
                for w, r in step.in_place
                if step.reads[r] not in others and step.reads[r] in self.reads
            ]
        return tuple(pairs)

    # ------------------------------------------------------------------------------------------------------- prebuilt
    def _prebuilt(self, template: Kernel) -> Kernel | None:
        calls = [s.kernel.call for s in self.steps]
        if None in calls or sum(r.part > 0 for r in self.readers) > 1:
            return None
        inner = sum(not r.part for r in self.readers)
        head = {
            "units": self.units, "task_units": self.task_units, "phase": self.has_phases * (self.scratch + 1),
            "inner": inner, "sums": len(self.readers) - inner,
        }  # fmt: skip
        numbers = [*PASS.numbers(head), *(n for s in self.steps for n in self._numbers(s))]
        name = f"dot_pass_{self.readers[0].matrix.value.shape.dtype.text}"
        buffers = len(self.slots) + 2 * self.has_phases
        return prebuilt_calls.kernel(name, numbers, replace(template, text="products of one matrix"), buffers)

    def _numbers(self, step: Step) -> list[int]:
        """Return the numbers of a product, with the indices of the buffers of the pass."""
        assert step.kernel.call is not None
        struct = INNER if step.kernel.phases == 1 else ROW_SUMS
        own = dict(zip(struct.names, step.kernel.call.numbers, strict=True))
        values = (*step.reads, *step.writes)
        moved = {name: self.slots[values[own[name]]] for name in ("left", "right", "out")}
        if step.kernel.phases > 1:
            moved |= {"scratch": self.scratch, "phase": self.scratch + 1}
        return struct.numbers(own | moved)

    # ------------------------------------------------------------------------------------------------------ generated
    def _text(self) -> str:
        parts = {s.kernel.code: s.kernel.text for s in reversed(self.steps)}
        names = {code: f"KERNEL_product{k}" for k, code in enumerate(dict.fromkeys(s.kernel.code for s in self.steps))}
        c = CWriter()
        for code, name in names.items():
            c.lines(parts[code].replace("KERNEL", name).splitlines())
        with c.block("static cyx_status KERNEL(void *const *bufs, int64_t begin, int64_t end)"):
            c.line(f"const int64_t units = {self.units}, first = begin * {self.task_units};")
            c.line(f"const int64_t last = end * {self.task_units} < units ? end * {self.task_units} : units;")
            c.line("cyx_status s;")
            c.lines(self._buffers())
            called = [names[s.kernel.code] for s in self.steps]
            if self.has_phases:
                with c.block(f"if (*(const int64_t *)bufs[{self.scratch + 1}])"):
                    sums = [k for k, r in enumerate(self.readers) if r.part]
                    c.lines([f"if ((s = {called[k]}(b{k}, first, last))) return s;" for k in sums])
                    c.line("return CYX_OK;")
            with c.block("for (int64_t u = first; u < last; ++u)"):
                c.lines([f"if ((s = {name}(b{k}, u, u + 1))) return s;" for k, name in enumerate(called)])
            c.line("return CYX_OK;")
        return c.text()

    def _buffers(self) -> list[str]:
        """Return the C of the buffers of each product."""
        lines, offset = [], 0
        for k, step in enumerate(self.steps):
            bufs = [f"bufs[{self.slots[v]}]" for v in (*step.reads, *step.writes)]
            if step.kernel.phases > 1:
                bufs += [f"(char *)bufs[{self.scratch}] + {offset}", f"bufs[{self.scratch + 1}]"]
                offset += step.kernel.scratch
            lines.append(f"void *const b{k}[] = {{{', '.join(bufs)}}};")
        return lines
