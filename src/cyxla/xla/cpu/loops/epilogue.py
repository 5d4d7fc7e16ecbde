"""Epilogues of contractions, computed on their results before these are stored.

A contraction (dot, convolution) keeps a tile of its results in registers. Element-wise users, such as a bias, an
activation or a residual, become a loop over that tile: the accumulators go to a small local array, and a function
writes every output of the group from it. The results are viewed as rows of `columns` elements; a tile is some rows and
a fixed number of adjacent columns, so that gcc vectorises the loop.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from cyxla.xla.cpu.c import scalar
from cyxla.xla.cpu.c.writer import CWriter
from cyxla.xla.cpu.kernel import cost, prebuilt_calls
from cyxla.xla.cpu.kernel.array_types import memory_typedefs
from cyxla.xla.cpu.kernel.groups import Group
from cyxla.xla.cpu.kernel.kernel import Kernel, Step, Value
from cyxla.xla.cpu.kernel.values import resolve
from cyxla.xla.cpu.loops.hoisting import BLOCK_LEVEL, LoopNest, table_definition
from cyxla.xla.cpu.loops.index_map import Index, Space
from cyxla.xla.cpu.loops.iteration_boxes import Box, Store
from cyxla.xla.cpu.loops.loop_ir import Body, Reads
from cyxla.xla.cpu.loops.loop_kernel import KernelFrame, innermost, slots
from cyxla.xla.cpu.loops.loop_text import LoopListing
from cyxla.xla.cpu.loops.nodes import Apply, External, Load, Node


class Epilogue:
    """Epilogue of a contraction: the rest of its group.

    Parameters
    ----------
    group : Group
        Group of kind DOT or CONVOLUTION; the contraction may be its only instruction.
    columns : int
        Length of a row: number of adjacent results, a divisor of the result's size.

    Attributes
    ----------
    root : Instruction
        Contraction of the group.
    reads : tuple of Value
        Arrays that the kernel reads: the contraction's operands, then those that only the epilogue reads.
    writes : tuple of Value
        Arrays that the kernel writes; their buffers come after the reads.
    is_empty : bool
        True if there is no epilogue: the contraction's result is the only output, and no function is needed.
    """

    def __init__(self, group: Group, columns: int) -> None:
        self.group, self.root, self.columns = group, group.root, max(columns, 1)
        self.writes = tuple(Value(o) for o in group.outputs)
        self.is_empty = list(group.instructions) == [self.root]
        self._reads = Reads()
        self.operands = tuple(self._reads.slot(resolve(o)) for o in self.root.operands)
        self.box = self._lower()
        self._pairs = self._in_place()
        self._frame = KernelFrame(self._reads, self.writes, frozenset(r for _, r in self._pairs))
        self._functions: dict[int, str] = {}

    @staticmethod
    def of(group: Group, columns: int) -> Epilogue:
        """Return the epilogue of a group for rows of `columns` results."""
        return Epilogue(group, columns)

    @property
    def reads(self) -> tuple[Value, ...]:
        """Arrays that the kernel reads, in order."""
        return self._reads.values

    @property
    def arrays(self) -> Reads:
        """Arrays that the kernel reads by slot, to which sizes may be added before any C is written."""
        return self._reads

    @property
    def ns(self) -> float:
        """Estimated time in ns on one core, without the contraction's."""
        fused = [i for i in self.group.instructions if i is not self.root]
        extra_reads = [v for n, v in enumerate(self.reads) if n not in self.operands]
        traffic_ns = sum(cost.memory_ns(v.shape.nbytes) for v in (*extra_reads, *self.writes[1:]))
        return cost.element_ns(fused) * self.root.shape.size + traffic_ns

    @property
    def is_uniform(self) -> bool:
        """True if equal results give equal elements of the only output, of equal size."""
        if self.is_empty:
            return True
        (first, *others), size = self.writes, self.root.shape.dtype.itemsize
        varies = any(not form.is_constant for node in self.box.nodes for form in node.forms)
        return not others and not varies and first.shape.dtype.itemsize == size

    def step(self, kernel: Kernel) -> Step:
        """Return the step of the kernel: its buffers are `reads`, then `writes`."""
        if not self.is_empty:
            kernel = replace(kernel, loops=(LoopListing(self.box.body, self.box.stores),))
        return Step(kernel, self.reads, self.writes, in_place=self._pairs)

    def prebuilt(
        self,
        name: str,
        numbers: Sequence[int],
        template: Kernel,
        widths: Sequence[int],
        more_numbers: Sequence[str] = (),
    ) -> Kernel | None:
        """Return a kernel that calls a prebuilt function, with the functions of the epilogue unless it is empty.

        Parameters
        ----------
        name : str
            Name of the function, with ``{}`` in the place of ``_after`` or nothing.
        numbers, template, more_numbers
            See `kernel.prebuilt_calls.kernel`.
        widths : sequence of int
            Widths of the tiles, in columns.
        """
        buffers = len(self.reads) + len(self.writes)
        if self.is_empty:
            return prebuilt_calls.kernel(name.format(""), numbers, template, buffers, more_numbers=more_numbers)
        name = name.format("_after")
        if prebuilt_calls.number(name) is None or template.cost < prebuilt_calls.MIN_PREBUILT_NS:
            return None
        c = CWriter()
        functions = [self.function(c, width) for width in widths]
        return prebuilt_calls.kernel(name, numbers, template, buffers, c.text(), functions, more_numbers)

    def function(self, c: CWriter, width: int) -> str:
        """Return the name of the function for tiles of `width` columns; the first call with a width defines it.

        It is called with ``(bufs, row, column, rows, sums, apart)``: for each of `rows` rows from `row` on, it reads
        `width` results from ``sums + i * apart``, of which the first belongs to `column`, and writes all outputs.
        ``sums`` points to elements in the memory type of the result. The caller passes every tile once, as a whole.
        """
        if width not in self._functions:
            name = self._functions[width] = f"KERNEL_after{width}"
            self._define(c, name, width)
        return self._functions[width]

    # ------------------------------------------------------------------------------------------------ lowering
    def _lower(self) -> Box:
        """Lower the epilogue over the iteration space (row, column)."""
        rows = self.root.shape.size // self.columns
        space = Space((max(rows, 1), self.columns))
        linear = space.combine([(space.loop(0), self.columns), (space.loop(1), 1)])
        result = Value(self.root)
        dtype = self.root.shape.dtype

        def external(_: Index) -> Node:
            return body.external(dtype, "sum")

        body = Body(space, self.group.numbers, self._reads, {result: external})
        stores = []
        for slot, out in enumerate(self.group.outputs):
            index = space.index_at(out.shape.dims, linear)
            stores.append(Store(slot, out.shape.dtype, index.linear, body.value(out, index)))
        return Box(body, stores, (max(rows, 1), self.columns))

    def _nest(self) -> LoopNest:
        row, column = self.box.body.space.loops
        nest = LoopNest(self.box.body, [row, BLOCK_LEVEL, column], self._frame.names.child())
        nest.dropped = {a for a in (row, column) if not a.high}
        nest.tables = self._frame.tables
        for node in self.box.nodes:
            if isinstance(node, External):
                nest.set_external(node, scalar.load(node.dtype, "sums[k]"), nest.depth)
        nest.write(self.box.nodes)
        return nest

    def _define(self, c: CWriter, name: str, width: int) -> None:
        nest = self._nest()
        inner = innermost(self.box, nest, streamed=False, in_place=True)
        if len(self._functions) == 1:  # shared by the functions of all widths
            c.lines(memory_typedefs([*self.reads, *self.writes]))
            c.lines([table_definition(n, t.shape.dtype, t.array) for t, n in nest.tables.items()])
        element = scalar.storage_type(self.root.shape.dtype)
        arguments = f"int64_t row, int64_t column, int64_t rows, const {element} *restrict sums, int64_t apart"
        with c.block(f"static __attribute__((noinline)) void {name}(void *const *bufs, {arguments})"):
            self._frame.pointers(c, slots(self.box), [s.slot for s in self.box.stores])
            c.line("const int64_t b = column; (void)b;", f"%{self.group.numbers[self.root]} in sums")
            c.lines(nest.writers[0].written)
            i = nest.counter(0)
            with c.block(f"for (int64_t {i} = row; {i} < row + rows; ++{i}, sums += apart)"):
                c.lines(nest.writers[1].written)
                c.lines(nest.writers[2].written)
                inner.write(c, width)

    def _in_place(self) -> tuple[tuple[int, int], ...]:
        """Return pairs (write, read) in which only the epilogue reads, every element just before it is overwritten."""
        if any(isinstance(n, Apply) and scalar.slow_path(n.opcode, n.dtype) for n in self.box.nodes):
            return ()  # a slow path reads its arguments a second time
        pairs: list[tuple[int, int]] = []
        loads = [n for n in self.box.nodes if isinstance(n, Load)]
        for r, read in enumerate(self.reads):
            forms = {n.form for n in loads if n.slot == r}
            for store in self.box.stores:
                write = self.writes[store.slot].shape
                same_size = write.nbytes == read.shape.nbytes and write.dtype.itemsize == read.shape.dtype.itemsize
                is_unpaired = all(store.slot != w and r != other for w, other in pairs)
                if same_size and is_unpaired and r not in self.operands and forms == {store.form}:
                    pairs.append((store.slot, r))
        return tuple(pairs)
