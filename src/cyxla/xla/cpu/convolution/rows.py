"""Convolution of any kind: for each position of the result, accumulators along its features.

A unit of work is one row of positions and one block of features: a task processes consecutive rows with the same block,
whose weights stay in the cache. Adjacent positions whose window is inside the input are processed together, so that
each weight is loaded once for all of them.

Positions of the window in the padding or, with base dilation, between elements of the input are skipped.

Blocks of full vectors are tiles of ``include/cyxla/kernels/convolution/convolution_row_tile.h``, prebuilt or with the
sizes as constants. The remaining features, and other types, have C of their own.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from math import prod

from cyxla.records import dataclass
from cyxla.xla.cpu.c import scalar
from cyxla.xla.cpu.convolution.row_parameters import POSITIONS, RANK, WIDTHS, convolution_rows, tile_shapes
from cyxla.xla.cpu.convolution.sizes import Sizes, reach, tasks, vector_bytes
from cyxla.xla.cpu.convolution.templates import RowConvolution
from cyxla.xla.cpu.convolution.tile_parameters import MAX_RANK
from cyxla.xla.cpu.dot import accumulators
from cyxla.xla.cpu.kernel import variants
from cyxla.xla.cpu.kernel.array_types import memory_type
from cyxla.xla.cpu.kernel.kernel import Kernel, KernelKind
from cyxla.xla.cpu.kernel.kernel_writer import KernelWriter, describe, linear_index, strides
from cyxla.xla.cpu.loops.epilogue import Epilogue
from cyxla.xla.hlo import Instruction

MAX_CHAIN = 512  # products of a partial sum


@dataclass(frozen=True)
class _Block:
    """Kind of feature block: `pieces` blocks in each group, the first at `first`."""

    number: int
    first: int
    pieces: int
    row: accumulators.VectorSums | accumulators.PlainSums
    positions: int  # of a tile, for windows inside the input along the last dimension


class RowwiseConvolution:
    """Kernel of any convolution."""

    def __init__(
        self, ins: Instruction, n: Sizes, epilogue: Epilogue, choice: variants.Choice = variants.RULES
    ) -> None:
        self.choice = choice
        self.ins, self.window, self.n, self.epilogue = ins, n.window, n, epilogue
        self.dtype, self.space = ins.shape.dtype, ins.shape.dims[1:-1]
        self.types = [o.shape.dtype for o in ins.operands]
        self.vector_bytes = vector_bytes()
        self.registers = 32 if self.vector_bytes == 64 else 16
        self.rank = len(self.space)
        self.positions = self.space[-1] if self.space else 1
        self.rows = self.n.batch * prod(self.space[:-1])
        self.groups = 1 if self.n.is_depthwise else self.n.groups
        self.inside = self._inside()
        width = self.n.features if self.n.is_depthwise else self.n.group_features
        runs = enumerate(self._split_features(width))
        self.blocks = [_Block(k, first, pieces, row, self._tile_positions(row)) for k, (first, pieces, row) in runs]
        self.dilated = any(w.base_dilation != 1 for w in self.window)
        self.is_long = prod(w.size for w in self.window) * self.n.depth > MAX_CHAIN

    def _split_features(
        self, width: int
    ) -> Sequence[tuple[int, int, accumulators.VectorSums | accumulators.PlainSums]]:
        """Split features into blocks."""
        if self.n.is_float and self.rank <= MAX_RANK:
            lanes = self.vector_bytes // self.dtype.itemsize
            most = self.choice.get("vectors", accumulators.VECTORS)
            return accumulators.split_into_vectors(width, self.dtype, self.types, lanes, most)
        return accumulators.split_columns(width, self.dtype, self.types)

    def _inside(self) -> tuple[int, int]:
        """Return the range of positions of a row whose window is inside the input, along the last dimension."""
        if not self.space or self.window[-1].base_dilation != 1:
            return 0, 0
        w, size = self.window[-1], self.ins.operands[0].shape.dims[-2]
        reach = (w.size - 1) * w.window_dilation
        low = min(-(-max(w.padding_low, 0) // w.stride), self.space[-1])
        high = (size - 1 - reach + w.padding_low) // w.stride + 1
        return low, max(low, min(high, self.positions))

    def _tile_positions(self, row: accumulators.VectorSums | accumulators.PlainSums) -> int:
        """Return the number of positions in a tile; a tile costs about its positions, a single position about 3."""
        if not isinstance(row, accumulators.VectorSums) or self.n.is_depthwise:
            return 1
        count = self.inside[1] - self.inside[0]
        max_positions = POSITIONS[self.registers][row.vectors]
        if "positions" in self.choice:
            return min(self.choice["positions"], max_positions)
        # In positions: a tile costs 0.5 more, a remaining one 3.5. Assumed; another choice costs time alone.
        return min(range(1, max_positions + 1), key=lambda p: (count // p * (max(p, 3) + 0.5) + count % p * 3.5, -p))

    # --- the kernel -------------------------------------------------------------------------------------------------

    def kernel(self) -> Kernel:
        """Return the kernel, prebuilt if there is one."""
        ns, units, count = self._work()
        return self._prebuilt(ns, units, count) or self._generate(ns, units, count)

    def _work(self) -> tuple[float, int, int]:
        """Return the estimated time, the units of work and the number of tasks."""
        ns = self.n.ns + self.epilogue.ns
        units = max(1, self.rows * self.groups * sum(b.pieces for b in self.blocks))
        return ns, units, min(self.choice.get("tasks", tasks(ns, units)), units)

    def axes(self) -> variants.Axes:
        """Return the parameters that leave the bits of the results as they are, with the values to try."""
        ns, units, count = self._work()
        axes = {"tasks": variants.other_tasks(count, units, ns)}
        widest = next((b for b in self.blocks if isinstance(b.row, accumulators.VectorSums)), None)
        if widest is None or self.n.is_depthwise:
            return axes
        assert isinstance(widest.row, accumulators.VectorSums)
        most = POSITIONS[self.registers][widest.row.vectors]
        axes["positions"] = [p for p in (1, most // 2, most * 3 // 4, most) if 0 < p <= self.inside[1] - self.inside[0]]
        axes["vectors"] = list(range(1, widest.row.vectors))
        axes["prebuilt"] = [0] if self._prebuilt(ns, units, count) is not None else []
        return variants.without(axes, {"positions": widest.positions, "tasks": count})

    def _prebuilt(self, ns: float, units: int, count: int) -> Kernel | None:
        is_vectorised = (
            all(isinstance(b.row, accumulators.VectorSums) for b in self.blocks) and 0 < len(self.blocks) <= WIDTHS
        )
        if (
            self.is_long
            or self.dilated
            or not self.choice.get("prebuilt", 1)
            or not (is_vectorised and 0 < self.rank <= RANK)
        ):
            return None
        if self.n.is_depthwise and not self.epilogue.is_empty:
            return None  # little work at each position, so that another call is noticeable
        values = self._values(RANK) | self._block_values() | {"units": units, "tasks": count}
        kernel = Kernel(describe("convolution", self.ins.shape), count, ns, kind=KernelKind.CONVOLUTION)
        name, widths = f"convolution_rows{{}}_{self.dtype.text}", [b.row.columns for b in self.blocks]
        return self.epilogue.prebuilt(name, convolution_rows(RANK).numbers(values), kernel, widths)

    def _values(self, rank: int) -> dict[str, int]:
        """Return the parameters for `rank` dimensions, without those of blocks, units and tasks."""
        n, x, w = self.n, *(o.shape.dims for o in self.ins.operands)
        steps, weights = strides(x), strides(w)
        reversed_offsets = [(dim.size - 1) * weights[at] for at, dim in enumerate(self.window) if dim.window_reversal]
        values = {
            "rows": max(self.rows, 1), "image_stride": steps[0],
            "group_stride": n.batch * steps[0] if n.by_batch else n.depth,
            "position_stride": self.window[-1].stride * steps[self.rank] if self.rank else 0,
            "first_tap": sum(reversed_offsets),
            "depth": n.depth, "features": n.features, "group_features": n.group_features,
            "depthwise": int(n.is_depthwise), "first_inside": self.inside[0], "last_inside": self.inside[1],
            "per_group": max(1, sum(b.pieces for b in self.blocks)),
        }  # fmt: skip
        buffers = (*self.epilogue.operands, len(self.epilogue.reads))
        values |= zip(("input", "weights", "result"), buffers, strict=True)
        for d in range(rank - self.rank):
            values |= {f"{name}{d}": 1 for name in ("space", "extent", "base_dilation", "size")}
        for at, dim in enumerate(self.window):
            d = at + rank - self.rank
            values |= {
                f"space{d}": self.space[at], f"stride{d}": dim.stride, f"padding{d}": dim.padding_low,
                f"input_stride{d}": steps[at + 1], f"extent{d}": reach(dim, x[at + 1]),
                f"base_dilation{d}": dim.base_dilation, f"size{d}": dim.size,
                f"dilation{d}": dim.window_dilation, f"tap_stride{d}": dim.window_dilation * steps[at + 1],
                f"weights_stride{d}": -weights[at] if dim.window_reversal else weights[at],
            }  # fmt: skip
        return values

    def _block_values(self) -> dict[str, int]:
        """Return the parameters of blocks, for the prebuilt kernel."""
        values: dict[str, int] = {}
        shapes = tile_shapes(self.registers)
        for b in self.blocks:
            assert isinstance(b.row, accumulators.VectorSums)
            k, vectors = b.number, b.row.vectors
            values |= {
                f"first{k}": b.first, f"count{k}": b.pieces, f"columns{k}": b.row.columns, f"positions{k}": b.positions,
                f"tile{k}": shapes.index((b.positions, vectors, False)),
                f"single{k}": shapes.index((1, vectors, self.n.is_depthwise)),
            }  # fmt: skip
        return values

    def _generate(self, ns: float, units: int, count: int) -> Kernel:
        """Return the kernel with generated C."""
        ins, epilogue = self.ins, self.epilogue
        c = KernelWriter(epilogue.reads, epilogue.writes)
        self._functions(c)
        with c.kernel(units, count, describe("convolution", ins.shape)):
            c.line(f"const int64_t row = u % {max(self.rows, 1)}, block = u / {max(self.rows, 1)};")
            c.unravel("row", ["n", *(f"s{d}" for d in range(self.rank - 1))], [self.n.batch, *self.space[:-1]])
            per_group = sum(b.pieces for b in self.blocks)
            c.line(f"const int64_t g = block / {max(per_group, 1)}, j = block % {max(per_group, 1)};")
            start = 0
            for block in self.blocks:
                with c.block(f"if (j >= {start} && j < {start + block.pieces})"):
                    c.line(f"const int64_t f = {block.first} + (j - {start}) * {block.row.columns};")
                    if isinstance(block.row, accumulators.VectorSums):
                        self._vector_row(c, block)
                    else:
                        self._plain_row(c, block)
                start += block.pieces
        return Kernel(c.text(), count, ns, 0, KernelKind.CONVOLUTION)

    def _functions(self, c: KernelWriter) -> None:
        """Write the functions of all blocks."""
        text, is_depthwise = self._templates, self.n.is_depthwise
        if any(isinstance(block.row, accumulators.VectorSums) for block in self.blocks):
            c.lines(text.types)
        for block in self.blocks:
            name, row = f"KERNEL_one{block.number}", block.row
            if isinstance(row, accumulators.PlainSums):
                self._function(c, name, row)
                continue
            after = self.epilogue.function(c, row.columns)
            c.lines(text.tile(name, 1, row.vectors, is_depthwise, after).splitlines())
            if block.positions > 1:
                tile = text.tile(f"KERNEL_tile{block.number}", block.positions, row.vectors, False, after)
                c.lines(tile.splitlines())

    @cached_property
    def _templates(self) -> RowConvolution:
        """Templates of the tiles, with the sizes of the convolution."""
        rank, chain = max(self.rank, 1), MAX_CHAIN if self.is_long else 0
        element = scalar.storage_type(self.dtype)
        return RowConvolution("KERNEL", element, self.vector_bytes, rank, self._values(rank), self.dilated, chain)

    # --- blocks of vectors ------------------------------------------------------------------------------------------

    def _vector_row(self, c: KernelWriter, block: _Block) -> None:
        """Write the loop over the positions of a row; those near the border are processed one by one."""
        x, w = (f"(const KERNEL_e *)p{k}" for k in self.epilogue.operands)
        values, dims = self._values(max(self.rank, 1)), range(self.rank)
        starts = [f"s{d} * {values[f'stride{d}']}" for d in dims[:-1]] + ["0"] * (self.rank > 0)
        origin = [f"{start} - ({values[f'padding{d}']})" for d, start in enumerate(starts)]
        c.line(f"int64_t origin[] = {{{', '.join(origin) or 0}}}, s = 0;")
        offsets = [f"n * {values['image_stride']}", f"g * {values['group_stride']}"]
        if self.n.is_depthwise:
            offsets.append("f")
        if not self.dilated:
            offsets += [f"origin[{d}] * {values[f'input_stride{d}']}" for d in dims]
        c.line(f"const KERNEL_e *x = {x} + {' + '.join(offsets)};")
        first = f"g * {self.n.group_features} + f"
        c.line(f"const KERNEL_e *const w = {w} + {values['first_tap']} + {first};")
        call = f"(bufs, x, w, origin, row * {self.positions} + s, {first});"
        (low, high), k, count = self.inside, block.number, block.positions
        step = "s += {0}"
        if self.rank:
            step += f", origin[{self.rank - 1}] += {{0}} * {self.window[-1].stride}"
            step += "" if self.dilated else f", x += {{0}} * {values['position_stride']}"
        if count > 1:
            c.line(f"for (; s < {low}; {step.format(1)}) KERNEL_one{k}{call}")
            c.line(f"for (; s + {count} <= {high}; {step.format(count)}) KERNEL_tile{k}{call}")
        c.line(f"for (; s < {self.positions}; {step.format(1)}) KERNEL_one{k}{call}")

    # --- other blocks -----------------------------------------------------------------------------------------------

    def _plain_row(self, c: KernelWriter, block: _Block) -> None:
        """Write the loop over the positions of a row."""
        x, w = self.epilogue.operands
        call = f"(bufs, p{x}, p{w}, " + ", ".join(["n", *(f"s{d}" for d in range(self.rank))]) + ", g, f);"
        last = f"s{self.rank - 1}"
        loop = f"for (int64_t {last} = 0; {last} < {self.positions}; ++{last}) " if self.rank else ""
        c.line(f"{loop}KERNEL_one{block.number}{call}")

    def _function(self, c: KernelWriter, name: str, row: accumulators.PlainSums) -> None:
        """Write the function of one position, for one block of features."""
        window, n = self.window, self.n
        after = self.epilogue.function(c, row.columns)
        outer, inner = range(self.rank)[:1], range(self.rank)[1:]
        left, right = (memory_type(t) for t in self.types)
        arguments = f"void *const *bufs, const {left} *a, const {right} *b, int64_t n"
        arguments += "".join(f", int64_t s{d}" for d in range(self.rank)) + ", int64_t g, int64_t f"
        with c.block(f"static CYX_FUSED __attribute__((noinline)) void {name}({arguments})"):
            c.line("CYX_FUSE")
            row.define(c)
            with c.loops([f"w{d}" for d in outer], [window[d].size for d in outer]):
                if self.is_long:
                    row.add_to_totals(c)
                with c.loops([f"w{d}" for d in inner], [window[d].size for d in inner]):
                    self._tap(c, row)
            c.line(f"{scalar.storage_type(self.dtype)} sums[{row.columns}] __attribute__((aligned(64)));")
            row.store(c, "sums")
            at = linear_index(["n", *(f"s{d}" for d in range(self.rank))], strides([n.batch, *self.space]))
            c.line(f"{after}(bufs, {at}, g * {n.group_features} + f, 1, sums, {row.columns});")

    def _tap(self, c: KernelWriter, row: accumulators.PlainSums) -> None:
        """Write the contribution of one position of the window."""
        x, w = (o.shape for o in self.ins.operands)
        window, n = self.window, self.n
        x_steps, w_steps = strides(x.dims), strides(w.dims)
        for d, dim in enumerate(window):
            coordinate = f"s{d} * {dim.stride} + w{d} * {dim.window_dilation} - ({dim.padding_low})"
            c.line(f"const int64_t e{d} = {coordinate};")
            if dim.base_dilation != 1:
                c.line(f"if (e{d} < 0 || e{d} % {dim.base_dilation}) continue;")
            c.line(f"const int64_t i{d} = e{d} / {dim.base_dilation};")
            c.line(f"if (e{d} < 0 || i{d} >= {x.dims[d + 1]}) continue;")
        if not self.dtype.is_float:  # gcc 12 miscompiles the vectorised loop over positions with two guarded sums
            c.line('__asm__ volatile("");')
        taps = [f"({dim.size - 1} - w{d})" if dim.window_reversal else f"w{d}" for d, dim in enumerate(window)]
        image = f"(g * {n.batch} + n)" if n.by_batch else "n"
        channel = "f" if n.is_depthwise else "0" if n.by_batch else f"g * {n.depth}"
        at = linear_index([image, *(f"i{d}" for d in range(len(window)))], x_steps[:-1])
        kernel_at = f"{linear_index(taps, w_steps[:-2])} + g * {n.group_features} + f"
        c.line(f"const {memory_type(x.dtype)} *const x = a + {at} + {channel};")
        c.line(f"const {memory_type(w.dtype)} *const w = b + {kernel_at};")
        if n.is_depthwise:
            row.add_pairs(c, "x", "w")
            return
        with c.block(f"for (int64_t k = 0; k < {n.depth}; ++k)"):
            c.line(f"const {scalar.register_type(x.dtype)} a0 = {scalar.load(x.dtype, 'x[k]')};")
            row.add(c, "a0", f"w + k * {n.features}", 1)
            if n.depth > MAX_CHAIN:
                with c.block(f"if (k % {MAX_CHAIN} == {MAX_CHAIN - 1})"):
                    row.add_to_totals(c)
