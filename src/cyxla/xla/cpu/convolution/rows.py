"""Convolution of any kind: for each position of the result, accumulators along its features.

A unit of work is one row of positions and one block of features: a task processes consecutive rows with the same block,
whose weights stay in the cache. Adjacent positions whose window is inside the input are processed together, so that
each weight is loaded once for all of them.

Positions of the window in the padding or, with base dilation, between elements of the input are skipped.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

from cyxla.xla.cpu.c import scalar
from cyxla.xla.cpu.convolution.row_parameters import CONVOLUTION_ROWS, POSITIONS, RANK, WIDTHS, tile_shapes
from cyxla.xla.cpu.convolution.sizes import Sizes, reach, tasks, vector_bytes
from cyxla.xla.cpu.dot import accumulators
from cyxla.xla.cpu.kernel.array_types import memory_type
from cyxla.xla.cpu.kernel.kernel import Kernel, KernelKind, Step
from cyxla.xla.cpu.kernel.kernel_writer import KernelWriter, describe, linear_index, strides
from cyxla.xla.cpu.loops.epilogue import Epilogue
from cyxla.xla.hlo import Instruction

CHAIN = 512  # more products than this are added up in parts


def row_convolution(ins: Instruction, n: Sizes, epilogue: Epilogue) -> Step:
    """Return the kernel of any convolution, and its epilogue."""
    return epilogue.step(_Rows(ins, n, epilogue).kernel())


@dataclass(frozen=True)
class _Block:
    """Kind of feature block: `pieces` blocks in each group, the first at `first`."""

    number: int
    first: int
    pieces: int
    row: accumulators.Sums
    together: int  # places done at once, where the window lies inside


class _Rows:
    def __init__(self, ins: Instruction, n: Sizes, epilogue: Epilogue) -> None:
        self.ins, self.window, self.n, self.epilogue = ins, n.window, n, epilogue
        self.dtype, self.space = ins.shape.dtype, ins.shape.dims[1:-1]
        self.types = [o.shape.dtype for o in ins.operands]
        self.vector_bytes = vector_bytes()
        self.registers = 32 if self.vector_bytes == 64 else 16
        self.rank = len(self.space)
        self.places = self.space[-1] if self.space else 1
        self.rows = self.n.batch * prod(self.space[:-1])
        self.groups = 1 if self.n.is_depthwise else self.n.groups
        self.inside = self._inside()
        width = self.n.features if self.n.is_depthwise else self.n.group_features
        cut = accumulators.cut(width, self.dtype, self.types, self.vector_bytes)
        self.blocks = [_Block(k, first, pieces, row, self._together(row)) for k, (first, pieces, row) in enumerate(cut)]
        self.long = prod(w.size for w in self.window) * self.n.depth > CHAIN

    def _inside(self) -> tuple[int, int]:
        """Return the range of positions of a row whose window is inside the input, along the last dimension."""
        if not self.space or self.window[-1].base_dilation != 1:
            return 0, 0
        w, size = self.window[-1], self.ins.operands[0].shape.dims[-2]
        reach = (w.size - 1) * w.window_dilation
        low = min(-(-max(w.padding_low, 0) // w.stride), self.space[-1])
        high = (size - 1 - reach + w.padding_low) // w.stride + 1
        return low, max(low, min(high, self.places))

    def _together(self, row: accumulators.Sums) -> int:
        """Return the number of positions in a tile; a tile costs about its positions, a single position about 3."""
        if not isinstance(row, accumulators.VectorSums) or self.n.is_depthwise:
            return 1
        count = self.inside[1] - self.inside[0]
        most = POSITIONS[self.registers][row.vectors]
        # In positions: a tile costs 0.5 more, one left over 3.5. Assumed; another choice costs time alone.
        return min(range(1, most + 1), key=lambda p: (count // p * (max(p, 3) + 0.5) + count % p * 3.5, -p))

    # --- the kernel -------------------------------------------------------------------------------------------------

    def kernel(self) -> Kernel:
        """Return the kernel, prebuilt if there is one."""
        ns = self.n.ns + self.epilogue.ns
        units = max(1, self.rows * self.groups * sum(b.pieces for b in self.blocks))
        count = tasks(ns, units)
        return self._prebuilt(ns, units, count) or self._written(ns, units, count)

    def _prebuilt(self, ns: float, units: int, count: int) -> Kernel | None:
        whole = all(isinstance(b.row, accumulators.VectorSums) for b in self.blocks) and 0 < len(self.blocks) <= WIDTHS
        spread = any(w.base_dilation != 1 for w in self.window)
        if self.long or spread or not (whole and 0 < self.rank <= RANK):
            return None
        if self.n.is_depthwise and not self.epilogue.is_empty:
            return None  # so little is done for each place that another call shows
        values = self._values() | {"units": units, "tasks": count}
        made = Kernel(describe("convolution", self.ins.shape), count, ns, kind=KernelKind.CONVOLUTION)
        name, widths = f"convolution_rows{{}}_{self.dtype.text}", [b.row.columns for b in self.blocks]
        return self.epilogue.prebuilt(name, CONVOLUTION_ROWS.numbers(values), made, widths)

    def _values(self) -> dict[str, int]:
        """Return the parameters of the prebuilt kernel but for its units and tasks."""
        n, x, w = self.n, *(o.shape.dims for o in self.ins.operands)
        steps, weights = strides(x), strides(w)
        turned = [(dim.size - 1) * weights[at] for at, dim in enumerate(self.window) if dim.window_reversal]
        values = {
            "rows": max(self.rows, 1), "image_stride": steps[0],
            "group_stride": n.batch * steps[0] if n.by_batch else n.depth,
            "position_stride": self.window[-1].stride * steps[self.rank], "first_tap": sum(turned),
            "depth": n.depth, "features": n.features, "group_features": n.group_features,
            "depthwise": int(n.is_depthwise), "first_inside": self.inside[0], "last_inside": self.inside[1],
            "per_group": max(1, sum(b.pieces for b in self.blocks)),
        }  # fmt: skip
        buffers = (*self.epilogue.operands, len(self.epilogue.reads))
        values |= zip(("input", "weights", "result"), buffers, strict=True)
        for d in range(RANK - self.rank):
            values |= {f"{name}{d}": 1 for name in ("space", "extent", "size")}
        for at, dim in enumerate(self.window):
            d = at + RANK - self.rank
            values |= {
                f"space{d}": self.space[at], f"stride{d}": dim.stride, f"padding{d}": dim.padding_low,
                f"input_stride{d}": steps[at + 1], f"extent{d}": reach(dim, x[at + 1]), f"size{d}": dim.size,
                f"dilation{d}": dim.window_dilation, f"tap_stride{d}": dim.window_dilation * steps[at + 1],
                f"weights_stride{d}": -weights[at] if dim.window_reversal else weights[at],
            }  # fmt: skip
        shapes = tile_shapes(self.registers)
        for b in self.blocks:
            assert isinstance(b.row, accumulators.VectorSums)
            k, vectors = b.number, b.row.vectors
            values |= {
                f"first{k}": b.first, f"count{k}": b.pieces, f"columns{k}": b.row.columns, f"positions{k}": b.together,
                f"tile{k}": shapes.index((b.together, vectors, False)),
                f"single{k}": shapes.index((1, vectors, n.is_depthwise)),
            }  # fmt: skip
        return values

    def _written(self, ns: float, units: int, count: int) -> Kernel:
        """Return the kernel with generated C."""
        ins, epilogue = self.ins, self.epilogue
        c = KernelWriter(epilogue.reads, epilogue.writes)
        if self.n.is_float:
            c.lines(accumulators.VectorSums.types(self.dtype, self.vector_bytes // self.dtype.itemsize))
        left, right = (memory_type(t) for t in self.types)
        self.arguments = f"void *const *bufs, const {left} *a, const {right} *b, int64_t n"
        self.arguments += "".join(f", int64_t s{d}" for d in range(self.rank)) + ", int64_t g, int64_t f"
        for block in self.blocks:
            self._function(c, f"KERNEL_one{block.number}", block.row, 1)
            if block.together > 1:
                assert isinstance(block.row, accumulators.VectorSums)
                tile = accumulators.VectorSums(block.row.vectors, block.row.lanes, block.together)
                self._function(c, f"KERNEL_tile{block.number}", tile, block.together)
        with c.kernel(units, count, describe("convolution", ins.shape)):
            c.line(f"const int64_t row = u % {max(self.rows, 1)}, block = u / {max(self.rows, 1)};")
            c.unravel("row", ["n", *(f"s{d}" for d in range(self.rank - 1))], [self.n.batch, *self.space[:-1]])
            per_group = sum(b.pieces for b in self.blocks)
            c.line(f"const int64_t g = block / {max(per_group, 1)}, j = block % {max(per_group, 1)};")
            start = 0
            for block in self.blocks:
                with c.block(f"if (j >= {start} && j < {start + block.pieces})"):
                    c.line(f"const int64_t f = {block.first} + (j - {start}) * {block.row.columns};")
                    self._row(c, block)
                start += block.pieces
        return Kernel(c.text(), count, ns, 0, KernelKind.CONVOLUTION)

    def _row(self, c: KernelWriter, block: _Block) -> None:
        """Write the loop over the positions of a row; those near the border are processed one by one."""
        x, w = self.epilogue.operands
        call = f"(bufs, p{x}, p{w}, " + ", ".join(["n", *(f"s{d}" for d in range(self.rank))]) + ", g, f);"
        if not self.rank:
            c.line(f"KERNEL_one{block.number}{call}")
            return
        s, (low, high) = f"s{self.rank - 1}", self.inside
        c.line(f"int64_t {s} = 0;")
        if block.together > 1:
            c.line(f"for (; {s} < {low}; ++{s}) KERNEL_one{block.number}{call}")
            c.line(f"for (; {s} + {block.together} <= {high}; {s} += {block.together}) KERNEL_tile{block.number}{call}")
        c.line(f"for (; {s} < {self.places}; ++{s}) KERNEL_one{block.number}{call}")

    def _function(self, c: KernelWriter, name: str, row: accumulators.Sums, together: int) -> None:
        """Some places side by side, for one block of features."""
        window, n = self.window, self.n
        after = self.epilogue.function(c, row.columns)
        outer, inner = range(self.rank)[:1], range(self.rank)[1:]
        with c.block(f"static CYX_FUSED __attribute__((noinline)) void {name}({self.arguments})"):
            c.line("CYX_FUSE")
            row.define(c)
            with c.loops([f"w{d}" for d in outer], [window[d].size for d in outer]):
                if self.long:
                    row.settle(c)
                with c.loops([f"w{d}" for d in inner], [window[d].size for d in inner]):
                    self._place(c, row, together)
            size = together * row.columns
            c.line(f"{scalar.storage_type(self.dtype)} sums[{size}] __attribute__((aligned(64)));")
            if isinstance(row, accumulators.VectorSums):
                row.store(c, "sums", row.columns)
            else:
                row.store(c, "sums")
            at = linear_index(["n", *(f"s{d}" for d in range(self.rank))], strides([n.batch, *self.space]))
            c.line(f"{after}(bufs, {at}, g * {n.group_features} + f, {together}, sums, {row.columns});")

    def _place(self, c: KernelWriter, row: accumulators.Sums, together: int) -> None:
        """Write the contribution of one position of the window."""
        x, w = (o.shape for o in self.ins.operands)
        window, n = self.window, self.n
        x_steps, w_steps = strides(x.dims), strides(w.dims)
        for d, dim in enumerate(window):
            place = f"s{d} * {dim.stride} + w{d} * {dim.window_dilation} - ({dim.padding_low})"
            c.line(f"const int64_t e{d} = {place};")
            if dim.base_dilation != 1:
                c.line(f"if (e{d} < 0 || e{d} % {dim.base_dilation}) continue;")
            c.line(f"const int64_t i{d} = e{d} / {dim.base_dilation};")
            if together == 1 or d < self.rank - 1:  # a tile is inside along the last dimension
                c.line(f"if (e{d} < 0 || i{d} >= {x.dims[d + 1]}) continue;")
        if not self.dtype.is_float:  # gcc 12 makes wrong vectors of the loop over places with two guarded sums
            c.line('__asm__ volatile("");')
        turned = [f"({dim.size - 1} - w{d})" if dim.window_reversal else f"w{d}" for d, dim in enumerate(window)]
        image = f"(g * {n.batch} + n)" if n.by_batch else "n"
        channel = "f" if n.is_depthwise else "0" if n.by_batch else f"g * {n.depth}"
        at = linear_index([image, *(f"i{d}" for d in range(len(window)))], x_steps[:-1])
        kernel_at = f"{linear_index(turned, w_steps[:-2])} + g * {n.group_features} + f"
        c.line(f"const {memory_type(x.dtype)} *const x = a + {at} + {channel};")
        c.line(f"const {memory_type(w.dtype)} *const w = b + {kernel_at};")
        if n.is_depthwise:
            row.add_pairs(c, "x", "w")
            return
        apart = x_steps[-2] * window[-1].stride if window else 0
        with c.block(f"for (int64_t k = 0; k < {n.depth}; ++k)"):
            for r in range(together):
                c.line(f"const {scalar.register_type(x.dtype)} a{r} = {scalar.load(x.dtype, f'x[k + {r * apart}]')};")
            row.add(c, ", ".join(f"a{r}" for r in range(together)), f"w + k * {n.features}", 1)
            if n.depth > CHAIN:
                with c.block(f"if (k % {CHAIN} == {CHAIN - 1})"):
                    row.settle(c)
