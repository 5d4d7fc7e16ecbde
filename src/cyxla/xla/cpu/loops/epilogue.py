"""Epilogues of contractions, computed on their results before these are stored.

A contraction (dot, convolution) keeps a tile of its results in registers. What reads them element by element, such as a
bias, an activation or a residual, is a loop over that tile: the sums go to a small local array, and a function writes
every output of the group from it. The results are seen as rows of `columns` elements; a tile is some rows and a fixed
number of neighbouring columns, so that gcc vectorises the loop.
"""

from __future__ import annotations

from collections.abc import Sequence

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
from cyxla.xla.cpu.loops.loop_ir import Body, Node, Reads
from cyxla.xla.cpu.loops.loop_kernel import KernelFrame, innermost, slots


class Epilogue:
    """The part of a group behind its contraction.

    Parameters
    ----------
    group : Group
        Of kind ``dot`` or ``convolution``; it may hold nothing but the contraction.
    columns : int
        Length of a row: how many results lie side by side, a divisor of their number.

    Attributes
    ----------
    root : Instruction
        The contraction.
    reads : tuple of Value
        All buffers that the kernel reads: the contraction's operands, then what only the epilogue reads.
    writes : tuple of Value
        The buffers that the kernel writes; they come after the reads.
    is_empty : bool
        The results are stored as they are: there is one write, and no function is needed.
    """

    def __init__(self, group: Group, columns: int) -> None:
        self.group, self.root, self.columns = group, group.root, max(columns, 1)
        self.writes = tuple(Value(o) for o in group.outputs)
        self.is_empty = list(group.instructions) == [self.root]
        self._reads = Reads()
        self.operands = tuple(self._reads.slot(resolve(o)) for o in self.root.operands)
        self.box = self._lower()
        self._pairs = self._in_place()
        self._shell = KernelFrame(self._reads, self.writes, frozenset(r for _, r in self._pairs))
        self._functions: dict[int, str] = {}

    @staticmethod
    def of(group: Group, columns: int) -> Epilogue:
        """The epilogue of a group for rows of `columns` results."""
        return Epilogue(group, columns)

    @property
    def reads(self) -> tuple[Value, ...]:
        """The buffers that the kernel reads, in order."""
        return self._reads.values

    @property
    def ns(self) -> float:
        """Estimated time beside the contraction's, on one core."""
        behind = [i for i in self.group.instructions if i is not self.root]
        extra = [v for n, v in enumerate(self.reads) if n not in self.operands]
        moved = sum(cost.memory_ns(v.shape.nbytes) for v in (*extra, *self.writes[1:]))
        return cost.element_ns(behind) * self.root.shape.size + moved

    def step(self, kernel: Kernel) -> Step:
        """The step of the kernel: its buffers are `reads`, then `writes`."""
        return Step(kernel, self.reads, self.writes, in_place=self._pairs)

    def prebuilt(self, name: str, numbers: Sequence[int], made: Kernel, widths: Sequence[int]) -> Kernel | None:
        """The kernel of a prebuilt function, with the functions of the epilogue unless there is nothing to do.

        Parameters
        ----------
        name : str
            The function, with ``{}`` in the place of ``_after`` or nothing.
        numbers, made
            As `kernel.prebuilt_calls.kernel` takes them.
        widths : sequence of int
            Of the tiles.
        """
        buffers = len(self.reads) + len(self.writes)
        if self.is_empty:
            return prebuilt_calls.kernel(name.format(""), numbers, made, buffers)
        name = name.format("_after")
        if prebuilt_calls.number(name) is None or made.cost < prebuilt_calls.MIN_PREBUILT_NS:
            return None
        c = CWriter()
        functions = [self.function(c, width) for width in widths]
        return prebuilt_calls.kernel(name, numbers, made, buffers, c.text(), functions)

    def function(self, c: CWriter, width: int) -> str:
        """Name of the function for tiles of `width` columns; defined by the first call with a width.

        It is called with ``(bufs, row, column, rows, sums, apart)``: for each of `rows` rows from `row` on, it takes
        `width` sums that lie at ``sums + i * apart``, whose first is the result in `column`, and writes all outputs.
        ``sums`` points to elements as the result has them in memory. The caller gives whole tiles, all of them once.
        """
        if width not in self._functions:
            name = self._functions[width] = f"KERNEL_after{width}"
            self._define(c, name, width)
        return self._functions[width]

    # ------------------------------------------------------------------------------------------------ lowering
    def _lower(self) -> Box:
        """The values over the space of (row, column)."""
        rows = self.root.shape.size // self.columns
        space = Space((max(rows, 1), self.columns))
        linear = space.combine([(space.loop(0), self.columns), (space.loop(1), 1)])
        result = Value(self.root)
        dtype = self.root.shape.dtype

        def given(_: Index) -> Node:
            return body.node("given", dtype, (), "sum")

        body = Body(space, set(self.group.instructions), self._reads, {result: given})
        stores = []
        for slot, out in enumerate(self.group.outputs):
            index = space.index_at(out.shape.dims, linear)
            stores.append(Store(slot, out.shape.dtype, index.linear, body.value(out, index)))
        return Box(body, stores, (max(rows, 1), self.columns))

    def _nest(self) -> LoopNest:
        row, column = self.box.body.space.loops
        nest = LoopNest(self.box.body, [row, BLOCK_LEVEL, column], self._shell.names.child())
        nest.dropped = {a for a in (row, column) if not a.high}
        nest.tables = self._shell.tables
        for node in self.box.nodes:
            if node.kind == "given":
                nest.set_given(node, scalar.load(node.dtype, "sums[k]"), nest.depth)
        nest.write(self.box.nodes)
        return nest

    def _define(self, c: CWriter, name: str, width: int) -> None:
        nest = self._nest()
        inner = innermost(self.box, nest, streamed=False, in_place=True)
        if len(self._functions) == 1:  # what all of them share
            c.lines(memory_typedefs([*self.reads, *self.writes]))
            c.lines([table_definition(n, t.shape.dtype, t.array) for t, n in nest.tables.items()])
        element = scalar.storage_type(self.root.shape.dtype)
        arguments = f"int64_t row, int64_t column, int64_t rows, const {element} *restrict sums, int64_t apart"
        with c.block(f"static __attribute__((noinline)) void {name}(void *const *bufs, {arguments})"):
            self._shell.pointers(c, slots(self.box), [s.slot for s in self.box.stores])
            c.line("const int64_t b = column; (void)b;")
            c.lines(nest.writers[0].written)
            i = nest.counter(0)
            with c.block(f"for (int64_t {i} = row; {i} < row + rows; ++{i}, sums += apart)"):
                c.lines(nest.writers[1].written)
                c.lines(nest.writers[2].written)
                inner.write(c, width)

    def _in_place(self) -> tuple[tuple[int, int], ...]:
        """(write, read): a read of the epilogue alone, whose elements are read just where the write replaces them."""
        if any(n.kind == "apply" and scalar.slow_path(n.data.opcode, n.dtype) for n in self.box.nodes):
            return ()  # rare arguments are read a second time
        pairs: list[tuple[int, int]] = []
        loads = [n.data for n in self.box.nodes if n.kind == "load"]
        for r, read in enumerate(self.reads):
            forms = {form for slot, form in loads if slot == r}
            for store in self.box.stores:
                write = self.writes[store.slot].shape
                fits = write.nbytes == read.shape.nbytes and write.dtype.itemsize == read.shape.dtype.itemsize
                free = all(store.slot != w and r != other for w, other in pairs)
                if fits and free and r not in self.operands and forms == {store.form}:
                    pairs.append((store.slot, r))
        return tuple(pairs)
