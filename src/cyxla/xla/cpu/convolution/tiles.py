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

The C is in ``include/cyxla/kernels/convolution/convolution{,_tile,_window}.h``; `TiledConvolution` chooses the
numbers.
"""

from __future__ import annotations

from cyxla.records import dataclass
from cyxla.xla.cpu.c import scalar
from cyxla.xla.cpu.c.writer import CWriter
from cyxla.xla.cpu.convolution.sizes import Sizes, reach, tasks, vector_bytes
from cyxla.xla.cpu.convolution.templates import Convolution
from cyxla.xla.cpu.convolution.tile_parameters import (
    MAX_DEPTH,
    MAX_RANK,
    POSITIONS,
    PREBUILT_RANKS,
    convolution,
    tile_shapes,
)
from cyxla.xla.cpu.kernel import variants
from cyxla.xla.cpu.kernel.kernel import Kernel, KernelKind
from cyxla.xla.cpu.kernel.kernel_writer import describe, strides
from cyxla.xla.cpu.loops.epilogue import Epilogue
from cyxla.xla.hlo import Instruction
from cyxla.xla.hlo.attributes import WindowDim

MIN_DEPTH = 8  # with fewer input features, the table costs more than it saves
MIN_LONG_ROW_DEPTH = 32  # the same for long rows
LONG_ROW = 40  # positions
MAX_BLOCK = 768  # products of a block
MAX_CHUNK = 112  # positions of a chunk
MAX_ENTRIES = 2048  # entries of the table
FEW_CHUNKS = 2
MIN_UNITS = 8  # units of work, if there are enough positions
MIN_SCALAR_PRODUCTS = 4096  # products for each entry of the table, from which the time to write it is negligible


def fits(n: Sizes) -> bool:
    """Return True if a convolution can use this kernel."""
    if n.panel:
        return True
    if len(n.space) > MAX_RANK:
        return False
    if any(_max_coordinate(w, n.space[d], n.input_dims[d + 1]) >= 2**31 for d, w in enumerate(n.window)):
        return False  # coordinates are 32-bit
    lanes = vector_bytes() // n.dtype.itemsize
    min_depth = MIN_LONG_ROW_DEPTH if n.space and n.space[-1] >= LONG_ROW and n.taps > 1 else MIN_DEPTH
    return n.is_float and n.depth >= min_depth and n.group_features >= lanes


def _max_coordinate(w: WindowDim, positions: int, size: int) -> int:
    """Return the largest coordinate along a dimension, padding included."""
    return max(positions * w.stride + w.size * w.window_dilation + abs(w.padding_low), reach(w, size))


def _extent(w: WindowDim) -> int:
    """Return the distance from the first to the last position of a window."""
    return (w.size - 1) * w.window_dilation


def _last_coordinate(w: WindowDim, positions: int) -> int:
    """Return the last coordinate along a dimension that a window reads."""
    return (positions - 1) * w.stride - w.padding_low + _extent(w)


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


def panels(features: int, lanes: int, max_vectors: int) -> list[Panel]:
    """Split features into panels; the last one overlaps its predecessor so that it consists of full vectors."""
    vectors = features // lanes
    width = max(range(1, min(max_vectors, vectors) + 1), key=lambda v: (vectors % v == 0 and v > max_vectors // 2, v))
    count, remainder = divmod(vectors, width)
    result = [Panel(0, count, width)]
    if remainder:
        result.append(Panel(count * width * lanes, 1, remainder))
    if features % lanes:
        result.append(Panel(features - lanes, 1, 1, lanes - features % lanes))
    return result


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
        if depth <= MAX_BLOCK:
            count = max(1, -(-taps * depth // MAX_BLOCK))
            size = max(1, -(-taps // count))
            return Blocks(size, depth, max(1, -(-taps // size)))
        slices = -(-depth // MAX_BLOCK)
        size = -(-depth // slices)
        return Blocks(1, size, taps * slices)


class TiledConvolution:
    """Kernel of a convolution that `fits`."""

    def __init__(
        self, ins: Instruction, n: Sizes, epilogue: Epilogue, choice: variants.Choice = variants.RULES
    ) -> None:
        self.choice = choice
        self.ins, self.n, self.epilogue = ins, n, epilogue
        self.x = n.input_dims
        self.bytes = vector_bytes()
        self.lanes = self.bytes // n.dtype.itemsize
        self.registers = 32 if self.bytes == 64 else 16
        self.rank = max(1, len(n.space))
        table = POSITIONS[self.registers]
        self.panels = panels(n.group_features, self.lanes, choice.get("vectors", max(table))) if not n.panel else []
        if n.panel:  # all of equal width
            vectors = max(v for v in table if n.panel % (v * self.lanes) == 0)
            self.panels = [Panel(0, n.features // (vectors * self.lanes), vectors)]
        self.widest = max(p.vectors for p in self.panels)
        self.width = self.widest * self.lanes
        self.rows = _tile_rows(n.positions, table[self.widest])
        self.rows = min(choice.get("rows", self.rows), table[self.widest])
        self.blocks = Blocks.of(n.taps, n.depth)
        self.per_group = sum(p.count for p in self.panels)
        self.chunk = self._chunk()
        self.chunks = -(-n.positions // self.chunk)
        self.units = self.chunks * self.per_group * n.groups
        self.ns = n.ns + epilogue.ns
        self.tasks = min(choice.get("tasks", tasks(self.ns, self.units)), self.units)
        self.dilated = any(w.base_dilation != 1 for w in n.window)
        self.leaves = self.dilated or any(
            w.padding_low > 0 or _last_coordinate(w, n.space[d]) >= reach(w, self.x[d + 1])
            for d, w in enumerate(n.window)
        )
        # Weights that few positions read come from memory: while tiles use a block, they prefetch the next one.
        self.prefetches = n.panel == self.width and self.chunks <= FEW_CHUNKS and self.chunk > self.rows

    def _chunk(self) -> int:
        """Return the number of positions of a chunk: full tiles, about equally many in each."""
        tiles = -(-self.n.positions // self.rows)
        max_tiles = max(1, min(MAX_CHUNK, MAX_ENTRIES // self.blocks.taps) // self.rows)
        chunks = max(-(-tiles // max_tiles), min(tiles, -(-MIN_UNITS // (self.per_group * self.n.groups))))
        size = -(-tiles // chunks)
        return max(1, min(self.choice.get("chunk", size), tiles, self._max_chunk)) * self.rows

    @property
    def _max_chunk(self) -> int:
        """Limit on the tiles of a chunk, whose table and sums are on the stack."""
        return max(1, min(2 * MAX_CHUNK, 2 * MAX_ENTRIES // self.blocks.taps) // self.rows)

    def axes(self) -> variants.Axes:
        """Return the parameters that leave the bits of the results as they are, with the values to try.

        The blocks of taps and features are not among them.
        """
        n, table = self.n, POSITIONS[self.registers]
        tiles, most = self.chunk // self.rows, table[self.widest]
        chunks = [tiles // 4, tiles // 2, 2 * tiles, 4 * tiles]
        prebuilt = self._prebuilt()
        axes = {
            "tasks": variants.other_tasks(self.tasks, self.units, self.ns),
            "vectors": [v for v in table if v <= n.group_features // self.lanes] if not n.panel else [],
            "rows": [r for r in (most // 2, most - 2, most - 1, most) if 0 < r <= n.positions],
            "chunk": [c for c in chunks if 0 < c <= min(self._max_chunk, -(-n.positions // self.rows))],
            "prebuilt": [0] if prebuilt is not None else [],
        }
        return variants.without(axes, {"vectors": self.widest, "rows": self.rows, "chunk": tiles})

    # --- the kernel -------------------------------------------------------------------------------------------------

    def kernel(self) -> Kernel:
        """Return the kernel, prebuilt except for its epilogue where possible."""
        return self._prebuilt() or self._generate()

    def _prebuilt(self) -> Kernel | None:
        n, epilogue = self.n, self.epilogue
        if not self.choice.get("prebuilt", 1):
            return None
        if self.dilated or n.panel or self.rank not in PREBUILT_RANKS or n.depth > MAX_DEPTH:
            return None
        shapes = tile_shapes(self.registers)
        tiles = {f"tile{k}": shapes.index((self.rows, p.vectors)) for k, p in enumerate(self.panels)}
        values = {**self._values(), "window": PREBUILT_RANKS.index(self.rank), **tiles}
        kernel = Kernel(describe("convolution", self.ins.shape), self.tasks, self.ns, kind=KernelKind.CONVOLUTION)
        numbers = convolution(PREBUILT_RANKS[-1]).numbers(values)
        return epilogue.prebuilt(f"convolution_tiles{{}}_{n.dtype.text}", numbers, kernel, self._widths)

    @property
    def _widths(self) -> list[int]:
        """Columns that the epilogue takes, for each kind of panel."""
        return [p.vectors * self.lanes - p.skip for p in self.panels]

    def _values(self) -> dict[str, int]:
        """Return the parameters of the kernel, but for the indices of functions."""
        n, steps = self.n, strides(self.x)
        values = {
            "rank": self.rank, "positions": n.positions, "image_stride": steps[0],
            "group_stride": n.batch * steps[0] if n.by_batch else n.depth, "taps": n.taps, "depth": n.depth,
            "features": n.features, "group_features": n.group_features, "weights_stride": n.panel or n.features,
            "packed": int(n.panel > 0), "rows": self.rows, "width": self.width, "chunk": self.chunk,
            "chunks": self.chunks, "per_group": self.per_group, "block_taps": self.blocks.taps,
            "block_depth": self.blocks.depth, "blocks": self.blocks.count, "leaves": int(self.leaves),
            "units": self.units, "tasks": self.tasks,
        }  # fmt: skip
        buffers = (*self.epilogue.operands, len(self.epilogue.reads))
        values |= zip(("input", "weights", "result"), buffers, strict=True)
        if not n.space:  # one position along one dimension
            values |= {f"{name}0": 1 for name in ("space", "extent", "size", "base_dilation")}
        for d, w in enumerate(n.window):
            values |= {
                f"space{d}": n.space[d], f"stride{d}": w.stride, f"padding{d}": w.padding_low,
                f"input_stride{d}": steps[d + 1], f"extent{d}": reach(w, self.x[d + 1]),
                f"base_dilation{d}": w.base_dilation, f"size{d}": w.size, f"dilation{d}": w.window_dilation,
                f"reversed{d}": int(w.window_reversal),
            }  # fmt: skip
        for k, p in enumerate(self.panels):
            columns = p.vectors * self.lanes
            values |= {f"first{k}": p.first, f"count{k}": p.count, f"columns{k}": columns, f"skip{k}": p.skip}
        return values

    def _generate(self) -> Kernel:
        """Return a kernel of generated C, with the sizes as constants."""
        n, c = self.n, CWriter()
        vectors = list(dict.fromkeys(p.vectors for p in self.panels))
        tiles = {f"tile{k}": vectors.index(p.vectors) for k, p in enumerate(self.panels)}
        element = scalar.storage_type(n.dtype)
        text = Convolution(
            "KERNEL", element, self.bytes, self.registers, self.rank, n.depth, self._values() | tiles, self.prefetches
        )
        c.lines(text.types)
        c.lines(text.tiles([(self.rows, v) for v in vectors]).splitlines())
        after = [f"(const void *){self.epilogue.function(c, width)}" for width in self._widths]
        scalar_addresses = n.depth * self.width >= MIN_SCALAR_PRODUCTS
        c.lines(text.windows([self.rank], dilated=self.dilated, scalar=scalar_addresses).splitlines())
        c.lines(text.run().splitlines())
        c.line(f"static const void *const KERNEL_after[] = {{{', '.join(after)}}};")
        with c.block("static cyx_status KERNEL(void *const *bufs, int64_t begin, int64_t end)"):
            c.line("return KERNEL_run(&KERNEL_sizes, bufs, begin, end, KERNEL_after);")
        return Kernel(c.text(), self.tasks, self.ns, 0, KernelKind.CONVOLUTION)


def _tile_rows(positions: int, max_rows: int) -> int:
    """Return the number of positions of a tile that wastes few of the last one."""
    # In positions: a tile costs 0.3 more, and one of fewer than 4 as much as one of 4. Assumed; another
    # choice costs time alone.
    return min(range(min(max_rows, positions), 0, -1), key=lambda r: -(-positions // r) * (max(r, 4) + 0.3))
