"""Convolution in f32 and f64: tiles of positions by features in vector registers.

The positions of all images are numbered consecutively and split into chunks; the features of a group are split into
panels. A task processes some chunks of some panels. For each position of a chunk and each tap of the window, a table
holds the address of the input's features, or of zeros in the padding. A register tile of a few positions by a few
vectors of features accumulates over taps and input features: a row of weights times one element of the input for each
position.

Weights that exceed the cache, or too many products for one sum, are processed in blocks: all tiles of a chunk process
one block before the next, and partial sums are stored in between. Blocks and chunks depend only on the sizes, so that
results have the same bits for any number of threads.

Padding must add nothing, but zero times an infinite or NaN weight is NaN: NaNs at positions whose window leaves the
input are computed again without the padding.
"""

from __future__ import annotations

from dataclasses import dataclass

from cyxla.xla.cpu.c import scalar
from cyxla.xla.cpu.c.isa_levels import Level
from cyxla.xla.cpu.c.target import isa_level
from cyxla.xla.cpu.convolution.sizes import Sizes, reach, tasks, vector_bytes
from cyxla.xla.cpu.convolution.tile_parameters import DEPTH, PANELS, PLACES, RANKS, TILES
from cyxla.xla.cpu.dot import accumulators, micro_kernel
from cyxla.xla.cpu.kernel import machine
from cyxla.xla.cpu.kernel.kernel import Kernel, KernelKind, Step
from cyxla.xla.cpu.kernel.kernel_writer import KernelWriter, describe, linear_index, strides
from cyxla.xla.cpu.loops.epilogue import Epilogue
from cyxla.xla.hlo import Instruction
from cyxla.xla.hlo.attributes import WindowDim

LEAST_DEPTH = 8  # with fewer input features the table costs more than it saves
LONG_ROWS_DEPTH = 32  # and with fewer than these, where the places of a row are many
LONG_ROW = 40
BLOCK = 768  # products of one block
CHUNK = 112  # places of a chunk, at most
ENTRIES = 2048  # of the table, at most
FEW_CHUNKS = 2
LINE_BYTES = machine.LINE_BYTES
UNITS = 8  # of work, at least, if the places are enough
MUCH = 4096  # products for each entry of the table, beside which it matters little how fast that is written


def fits(n: Sizes) -> bool:
    """Return True if a convolution can use this kernel."""
    if n.panel:
        return True
    if any(_farthest(w, n.space[d], n.input_dims[d + 1]) >= 2**31 for d, w in enumerate(n.window)):
        return False  # coordinates are 32-bit
    lanes = vector_bytes() // n.dtype.itemsize
    least = LONG_ROWS_DEPTH if n.space and n.space[-1] >= LONG_ROW and n.taps > 1 else LEAST_DEPTH
    return n.is_float and n.depth >= least and n.group_features >= lanes


def _farthest(w: WindowDim, places: int, size: int) -> int:
    """Return the largest coordinate along a dimension, padding included."""
    return max(places * w.stride + w.size * w.window_dilation + abs(w.padding_low), reach(w, size))


def _extent(w: WindowDim) -> int:
    """Return the distance from the first to the last position of a window."""
    return (w.size - 1) * w.window_dilation


def _last(w: WindowDim, places: int) -> int:
    """Return the last coordinate along a dimension that a window reads."""
    return (places - 1) * w.stride - w.padding_low + _extent(w)


@dataclass(frozen=True)
class Panel:
    """Adjacent panels of features of equal width.

    Attributes
    ----------
    first : int
        First feature, relative to the group.
    count : int
        Number of panels.
    vectors : int
        Width of each panel in vectors.
    skip : int
        Number of leading features that other panels store.
    """

    first: int
    count: int
    vectors: int
    skip: int = 0


def panels(features: int, lanes: int, widest: int) -> list[Panel]:
    """Split features into panels; the last one overlaps its predecessor so that it consists of whole vectors."""
    whole = features // lanes
    width = max(range(1, min(widest, whole) + 1), key=lambda v: (whole % v == 0 and v > widest // 2, v))
    count, rest = divmod(whole, width)
    found = [Panel(0, count, width)]
    if rest:
        found.append(Panel(count * width * lanes, 1, rest))
    if features % lanes:
        found.append(Panel(features - lanes, 1, 1, lanes - features % lanes))
    return found


@dataclass(frozen=True)
class Blocks:
    """Blocking of the products of a result: several taps with all features, or one tap with some features.

    Attributes
    ----------
    taps : int
        Number of taps of a block; the last block may have fewer.
    depth : int
        Number of input features of a block; the last block of a tap may have fewer.
    count : int
        Number of blocks.
    """

    taps: int
    depth: int
    count: int

    @staticmethod
    def of(taps: int, depth: int) -> Blocks:
        """Return blocks of about equal size."""
        if depth <= BLOCK:
            count = max(1, -(-taps * depth // BLOCK))
            each = max(1, -(-taps // count))
            return Blocks(each, depth, max(1, -(-taps // each)))
        slices = -(-depth // BLOCK)
        each = -(-depth // slices)
        return Blocks(1, each, taps * slices)


def tiled_convolution(ins: Instruction, n: Sizes, epilogue: Epilogue) -> Step:
    """Return the kernel of a convolution that `fits`, and its epilogue."""
    return epilogue.step(_Tiled(ins, n, epilogue).kernel())


class _Tiled:
    def __init__(self, ins: Instruction, n: Sizes, epilogue: Epilogue) -> None:
        self.ins, self.n, self.epilogue = ins, n, epilogue
        self.x = n.input_dims
        self.bytes = vector_bytes()
        self.lanes = self.bytes // n.dtype.itemsize
        table = PLACES[32 if self.bytes == 64 else 16]
        self.panels = panels(n.group_features, self.lanes, max(table)) if not n.panel else []
        if n.panel:  # each of them is cut alike
            whole = max(v for v in table if n.panel % (v * self.lanes) == 0)
            self.panels = [Panel(0, n.features // (whole * self.lanes), whole)]
        self.widest = max(p.vectors for p in self.panels)
        self.width = self.widest * self.lanes
        self.rows = _tile_places(n.places, table[self.widest])
        self.blocks = Blocks.of(n.taps, n.depth)
        self.per_group = sum(p.count for p in self.panels)
        self.chunk = self._chunk()
        self.chunks = -(-n.places // self.chunk)
        self.units = self.chunks * self.per_group * n.groups
        self.ns = n.ns + epilogue.ns
        self.tasks = tasks(self.ns, self.units)
        self.dilated = any(w.base_dilation != 1 for w in n.window)
        self.leaves = self.dilated or any(
            w.padding_low > 0 or _last(w, n.space[d]) >= reach(w, self.x[d + 1]) for d, w in enumerate(n.window)
        )
        self.step = n.panel or n.features  # elements from one row of weights to the next
        # Weights that few positions read come from memory: while tiles use a block, they prefetch the next one.
        self.ahead = n.panel == self.width and self.chunks <= FEW_CHUNKS and self.chunk > self.rows

    def _chunk(self) -> int:
        """Return the number of positions of a chunk: whole tiles, about equally many in each."""
        tiles = -(-self.n.places // self.rows)
        most = max(1, min(CHUNK, ENTRIES // self.blocks.taps) // self.rows)
        wanted = max(-(-tiles // most), min(tiles, -(-UNITS // (self.per_group * self.n.groups))))
        return -(-tiles // wanted) * self.rows

    # --- the kernel -------------------------------------------------------------------------------------------------

    def kernel(self) -> Kernel:
        """Return the kernel, prebuilt except for its epilogue where possible."""
        return self._prebuilt() or self._written()

    def _prebuilt(self) -> Kernel | None:
        n, epilogue = self.n, self.epilogue
        plain = not (self.dilated or n.panel) and len(n.space) in RANKS and n.depth <= DEPTH
        if not (plain and len(self.panels) <= PANELS):
            return None
        told = self._numbers()
        made = Kernel(describe("convolution", self.ins.shape), self.tasks, self.ns, kind=KernelKind.CONVOLUTION)
        widths = [p.vectors * self.lanes - p.skip for p in self.panels]
        return epilogue.prebuilt(f"convolution_tiles{{}}_{n.dtype.text}", [told.get(t, 0) for t in TILES], made, widths)

    def _numbers(self) -> dict[str, int]:
        """Return the arguments of the prebuilt kernel."""
        n, steps = self.n, strides(self.x)
        told = {
            "places": n.places, "rank": len(n.space), "image_step": steps[0],
            "group_step": n.batch * steps[0] if n.by_batch else n.depth, "taps": n.taps, "depth": n.depth,
            "features": n.features, "group_features": n.group_features, "width": self.width, "rows": self.rows,
            "chunk": self.chunk, "chunks": self.chunks, "per_group": self.per_group,
            "block_taps": self.blocks.taps, "block_depth": self.blocks.depth, "blocks": self.blocks.count,
            "units": self.units, "tasks": self.tasks,
        }  # fmt: skip
        told |= zip(("x", "w", "out"), (*self.epilogue.operands, len(self.epilogue.reads)), strict=True)
        for d, w in enumerate(n.window):
            told |= {
                f"space{d}": n.space[d], f"stride{d}": w.stride, f"low{d}": w.padding_low, f"step{d}": steps[d + 1],
                f"reach{d}": reach(w, self.x[d + 1]), f"size{d}": w.size, f"dilation{d}": w.window_dilation,
                f"turned{d}": int(w.window_reversal),
            }  # fmt: skip
        for k, p in enumerate(self.panels):
            told |= {f"first{k}": p.first, f"count{k}": p.count, f"vectors{k}": p.vectors, f"skip{k}": p.skip}
        return told

    def _written(self) -> Kernel:
        """Return the kernel with generated C."""
        n, epilogue = self.n, self.epilogue
        c = accumulators.vector_kernel(epilogue.reads, epilogue.writes, n.dtype, self.lanes)
        c.line(f"static {scalar.storage_type(n.dtype)} KERNEL_zeros[{n.depth}];")
        for vectors in dict.fromkeys(p.vectors for p in self.panels):
            self._tile(c, vectors)
        for panel in self.panels:
            epilogue.function(c, panel.vectors * self.lanes - panel.skip)
        self._start(c)
        self._table(c)
        if self.leaves:
            self._again(c)
            self._mend(c)
        with c.kernel(self.units, self.tasks, describe("convolution", self.ins.shape)):
            self._unit(c)
        return Kernel(c.text(), self.tasks, self.ns, 0, KernelKind.CONVOLUTION)

    def _tile(self, c: KernelWriter, vectors: int) -> None:
        """Write the micro-kernel of some taps; ``at`` are the inputs, ``w`` the weights, ``s`` the sums."""
        rows, lanes, n = range(self.rows), self.lanes, self.n
        places = [f"{r}_{v}" for r in rows for v in range(vectors)]
        whole = self.blocks.depth == n.depth
        depth = str(n.depth) if whole else "depth"
        arguments = "const KERNEL_e *const *at, const KERNEL_e *w, KERNEL_e *restrict s, int64_t taps, int add"
        arguments += "" if whole else ", int64_t from, int64_t depth"
        arguments += ", const KERNEL_e *ahead" if self.ahead else ""
        with c.block(f"static CYX_FUSED __attribute__((noinline)) void KERNEL_tile{vectors}({arguments})"):
            c.line("CYX_FUSE")
            c.line("KERNEL_v " + ", ".join(f"c{at} = {{0}}" for at in places) + ";")
            with c.block(f"for (; taps; --taps, at += {self.chunk})"):
                start = "" if whole else " + from"
                c.line("const KERNEL_e " + ", ".join(f"*a{r} = at[{r}]{start}" for r in rows) + ";")
                with c.block(f"for (int64_t k = 0; k < {depth}; ++k, w += {self.step})"):
                    if self.ahead:
                        c.line(f"__builtin_prefetch(ahead, 0, 2); ahead += {LINE_BYTES // n.dtype.itemsize};")
                    registers = Level(isa_level()).registers
                    micro_kernel.multiply_in_parts(
                        c, "KERNEL", self.rows, vectors, lambda v: f"w + {v * lanes}", registers
                    )
            where = {
                f"{r}_{v}": f"*(KERNEL_u *)(s + {r * self.width + v * lanes})" for r in rows for v in range(vectors)
            }
            if self.blocks.count > 1:
                c.line("if (add) {" + " ".join(f"c{at} += {where[at]};" for at in places) + "}")
            c.line(" ".join(f"{where[at]} = c{at};" for at in places))

    def _start(self, c: KernelWriter) -> None:
        """Write the function that computes the window start of each position; excess positions have no image."""
        n = self.n
        names = "".join(f", int32_t *e{d}" for d in range(len(n.space)))
        steps = strides(self.x)
        arguments = f"const KERNEL_e *x, int64_t first, int64_t g, const KERNEL_e **image{names}"
        head = f"static __attribute__((noinline)) void KERNEL_start({arguments})"
        with c.block(head), c.block(f"for (int64_t k = 0; k < {self.chunk}; ++k)"):
            c.line('const int64_t p = first + k; __asm__ volatile("");')  # vectors of divisions take gcc long
            c.unravel("p", ["n", *(f"s{d}" for d in range(len(n.space)))], [n.batch, *n.space])
            where = f"(g * {n.batch} + n) * {steps[0]}" if n.by_batch else f"n * {steps[0]} + g * {n.depth}"
            for d, w in enumerate(n.window):
                c.line(f"e{d}[k] = (int32_t)(s{d} * {w.stride} - ({w.padding_low}));")
            if not self.dilated:
                where += " + " + linear_index([f"(int64_t)e{d}[k]" for d in range(len(n.space))], steps[1:-1])
            c.line(f"image[k] = p < {n.places} ? x + ({where}) : 0;")

    def _table(self, c: KernelWriter) -> None:
        """Write the function that fills the table for some taps of the window."""
        n = self.n
        rank, steps = len(n.space), strides(self.x)
        names = "".join(f", const int32_t *e{d}" for d in range(rank))
        arguments = f"const KERNEL_e *const *image{names}, int64_t from, int64_t taps, const KERNEL_e **at"
        head = f"static __attribute__((noinline)) void KERNEL_table({arguments})"
        with c.block(head), c.block(f"for (int64_t t = from; t < from + taps; ++t, at += {self.chunk})"):
            c.unravel("t", [f"w{d}" for d in range(rank)], [w.size for w in n.window])
            for d, w in enumerate(n.window):
                turned = f"({w.size - 1} - w{d})" if w.window_reversal else f"w{d}"
                c.line(f"const int32_t o{d} = (int32_t)({turned} * {w.window_dilation});")
            inner = [f"(int64_t)o{d}" for d in range(rank)]
            if not self.dilated:
                c.line(f"const int64_t to = {linear_index(inner, steps[1:-1])};")
            with c.block(f"for (int64_t k = 0; k < {self.chunk}; ++k)"):
                if self.n.depth * self.width >= MUCH:
                    c.line('__asm__ volatile("");')
                tests = ["(image[k] != 0)"]
                for d, w in enumerate(n.window):
                    c.line(f"const int32_t i{d} = e{d}[k] + o{d};")
                    tests.append(f"((uint32_t)i{d} < {reach(w, self.x[d + 1])}u)")
                    if w.base_dilation != 1:
                        tests.append(f"(i{d} % {w.base_dilation} == 0)")
                if self.dilated:
                    inner = [f"(int64_t)(i{d} / {w.base_dilation})" for d, w in enumerate(n.window)]
                    c.line(f"const int64_t to = {linear_index(inner, steps[1:-1])};")
                c.line(f"at[k] = {' & '.join(tests)} ? image[k] + to : (const KERNEL_e *)KERNEL_zeros;")

    def _again(self, c: KernelWriter) -> None:
        """Write the function that recomputes NaNs at some positions without the padding."""
        n, width = self.n, self.width
        e = "".join(f", e{d}" for d in range(len(n.space)))
        with c.block(f"static CYX_FUSED __attribute__((noinline, cold)) void KERNEL_again({self._mended()})"):
            c.line("CYX_FUSE")
            rows = self.rows if self.blocks.count == 1 else self.chunk
            c.line(f"const KERNEL_e *at[{self.chunk}];")
            c.line(f"{scalar.storage_type(n.dtype)} total[{rows * width}] = {{0}};")
            with c.block(f"for (int64_t t = 0; t < {n.taps}; ++t, w += {n.depth * self.step})"):
                c.line(f"KERNEL_table(image{e}, t, 1, at);")
                with c.block("for (int64_t r = 0; r < rows; ++r)"):
                    c.line("const KERNEL_e *const a = at[first + r];")
                    c.line("if (a == (const KERNEL_e *)KERNEL_zeros) continue;")
                    with c.block(f"for (int64_t k = 0; k < {n.depth}; ++k)"):
                        add = f"total[r * {width} + f] += a[k] * w[k * {self.step} + f]"
                        c.line(f"for (int64_t f = 0; f < columns; ++f) {add};")
            with c.block(f"for (int64_t r = 0; r < rows; ++r, sums += {width})"):
                c.line(
                    f"for (int64_t f = 0; f < columns; ++f) if (sums[f] != sums[f]) sums[f] = total[r * {width} + f];"
                )

    def _mend(self, c: KernelWriter) -> None:
        """Write the function that looks for NaNs at positions whose window leaves the input."""
        n = self.n
        with c.block(f"static __attribute__((noinline)) void KERNEL_mend({self._mended()})"):
            c.line("int nans = 0;")
            with c.block("for (int64_t r = 0; r < rows; ++r)"):
                if not self.dilated:
                    inside = [
                        f"(e{d}[first + r] >= 0) & (e{d}[first + r] < {reach(w, self.x[d + 1]) - _extent(w)})"
                        for d, w in enumerate(n.window)
                    ]
                    c.line(f"if ({' & '.join(inside)}) continue;")
                c.line(f"const KERNEL_e *const row = sums + r * {self.width};")
                c.line("for (int64_t f = 0; f < columns; ++f) nans |= row[f] != row[f];")
            names = "".join(f", e{d}" for d in range(len(n.space)))
            c.line(f"if (nans) KERNEL_again(image{names}, first, rows, columns, w, sums);")

    def _mended(self) -> str:
        """Return the parameters of both functions: positions of a chunk, columns of a panel, its weights and sums."""
        names = "".join(f", const int32_t *e{d}" for d in range(len(self.n.space)))
        rows = "int64_t first, int64_t rows, int64_t columns"
        return f"const KERNEL_e *const *image{names}, {rows}, const KERNEL_e *w, KERNEL_e *sums"

    def _unit(self, c: KernelWriter) -> None:
        """Write the code of a unit: one chunk of one panel."""
        n, rank, epilogue = self.n, len(self.n.space), self.epilogue
        x, w = (f"(const KERNEL_e *)p{k}" for k in epilogue.operands)
        c.line(f"const int64_t first = u % {self.chunks} * {self.chunk}, j = u / {self.chunks} % {self.per_group};")
        c.line(f"const int64_t g = u / {self.chunks * self.per_group}, left = {n.places} - first;")
        c.line(f"const int64_t places = left < {self.chunk} ? left : {self.chunk};")
        c.line(f"const KERNEL_e *image[{self.chunk}], *at[{self.chunk * self.blocks.taps}];")
        c.line("".join(f"int32_t e{d}[{self.chunk}];" for d in range(rank)))
        size = self.rows if self.blocks.count == 1 else self.chunk
        element = scalar.storage_type(n.dtype)
        c.line(f"{element} store[{size * self.width}] __attribute__((aligned(64)));")
        c.line("KERNEL_e *const sums = store;")
        e = "".join(f", e{d}" for d in range(rank))
        c.line(f"KERNEL_start({x}, first, g, image{e});")
        start = 0
        for panel in self.panels:
            with c.block(f"if (j >= {start} && j < {start + panel.count})"):
                c.line(f"const int64_t f = g * {n.group_features} + {panel.first} + (j - {start}) * {self.width};")
                c.line(f"const KERNEL_e *const w = {w} + {self._weights()};")
                (self._at_once if self.blocks.count == 1 else self._in_blocks)(c, panel, e)
            start += panel.count

    def _weights(self) -> str:
        """Return the offset of the weights of feature `f`."""
        n = self.n
        if n.panel == self.width:
            return f"f * {n.taps * n.depth}"
        return f"f / {n.panel} * {n.taps * n.depth * n.panel} + f % {n.panel}" if n.panel else "f"

    def _at_once(self, c: KernelWriter, panel: Panel, e: str) -> None:
        c.line(f"KERNEL_table(image{e}, 0, {self.n.taps}, at);")
        with c.block(f"for (int64_t r = 0; r < places; r += {self.rows})"):
            rows = self.n.taps * self.n.depth
            ahead = self._ahead("w", str(rows))
            c.line(f"KERNEL_tile{panel.vectors}(at + r, w, sums, {self.n.taps}, 0{ahead});")
            self._finish(c, panel, "r", f"places - r < {self.rows} ? places - r : {self.rows}", e)

    def _in_blocks(self, c: KernelWriter, panel: Panel, e: str) -> None:
        n, b = self.n, self.blocks
        whole = b.depth == n.depth
        with c.block(f"for (int64_t t = 0; t < {n.taps}; t += {b.taps})"):
            c.line(f"const int64_t taps = {n.taps} - t < {b.taps} ? {n.taps} - t : {b.taps};")
            c.line(f"KERNEL_table(image{e}, t, taps, at);")
            block = f"w + (t * {n.depth} + from) * {self.step}"
            call = f"KERNEL_tile{panel.vectors}(at + r, {block}, sums + r * {self.width}, taps, t + from > 0"
            call += "" if whole else ", from, depth"
            call += self._ahead(block, f"taps * {n.depth if whole else 'depth'}")
            with c.block(f"for (int64_t from = 0; from < {n.depth}; from += {b.depth})"):
                if not whole:
                    c.line(f"const int64_t depth = {n.depth} - from < {b.depth} ? {n.depth} - from : {b.depth};")
                c.line(f"for (int64_t r = 0; r < places; r += {self.rows}) {call});")
        self._finish(c, panel, "0", "places", e)

    def _ahead(self, block: str, rows: str) -> str:
        """Return the prefetch address of tile ``r``: one line of each row of weights of the next block."""
        lines = f"r / {self.rows} * {LINE_BYTES // self.n.dtype.itemsize}"
        return f", {block} + {rows} * ({self.step} + {lines})" if self.ahead else ""

    def _finish(self, c: KernelWriter, panel: Panel, row: str, rows: str, e: str) -> None:
        after = self.epilogue.function(c, panel.vectors * self.lanes - panel.skip)
        if self.leaves:
            c.line(f"KERNEL_mend(image{e}, {row}, {rows}, {panel.vectors * self.lanes}, w, sums);")
        c.line(f"{after}(bufs, first + {row}, f + {panel.skip}, {rows}, sums + {panel.skip}, {self.width});")


def _tile_places(places: int, most: int) -> int:
    """Return the number of positions of a tile that wastes few of the last one."""
    # In positions: a tile costs 0.3 more, and one of fewer than 4 as much as one of 4. Assumed; another
    # choice costs time alone.
    return min(range(min(most, places), 0, -1), key=lambda r: -(-places // r) * (max(r, 4) + 0.3))
