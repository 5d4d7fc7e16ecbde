"""Products in f32 and f64: packed panels, and tiles of the result in vector registers.

The result is split into panels of columns and ranges of tiles of rows, all tiles of a range about equally high. The
sums of a tile, some rows by some vectors, stay in registers during a loop over the contracted dimension: a row of the
right operand, times one element of the left operand for each row.

All rows use a panel of the right operand before the next one. It is read in place, or packed first if its columns are
not contiguous, if the last vector would be cut, if its rows lie a multiple of 1 KiB apart and would evict each other
from the L1 cache, or if the lines that they lie in do not fit there. Long contracted dimensions are done in links. A
left operand too large for the caches goes by in slabs of rows, each past all panels; or the prebuilt kernel packs
some panels at a time, so that the operand is read less often.

Of a matrix times its own transpose, tiles below the diagonal are left out; a second phase copies the rest there.

The C is in ``include/cyxla/kernels/dot/{dot,dot_tile}.h``; `TiledProduct` chooses the numbers. Each element is a sum of
chains of fused multiply-adds in the order of the contracted dimension; their length depends on the sizes of the product
alone, so that tiles and threads do not change the bits.
"""

from __future__ import annotations

from dataclasses import replace

from cyxla.records import dataclass
from cyxla.xla.cpu.c.writer import CWriter
from cyxla.xla.cpu.dot import templates
from cyxla.xla.cpu.dot.live_products import LiveProduct
from cyxla.xla.cpu.dot.parameters import DOT
from cyxla.xla.cpu.dot.partition import GROUP_BYTES, MIN_GROUP, STRIP_TILES, Partition, group_panels
from cyxla.xla.cpu.dot.product import CHAIN, Output, Product, tasks, tile_rows, vector_bytes
from cyxla.xla.cpu.dot.templates import TileText
from cyxla.xla.cpu.kernel import machine, prebuilt_calls, variants
from cyxla.xla.cpu.kernel.kernel import Kernel, KernelKind

LINE_BYTES = machine.LINE_BYTES
ALIASING_BYTES = 1024  # rows at a multiple of this distance share few sets of the L1 cache
MIN_PACKED_TILES = 4  # tiles that read a packed panel: 24 rows on AVX2 take 0.9 to 1.0 of the time in place
UNPACKED_BYTES = machine.L1_BYTES * 3 // 4  # cache lines of a panel in place, above which it is packed
SLAB_BYTES = machine.L3_BYTES // 4  # of a left operand that is read again for each panel
MIN_SLABS = 2
MIN_SLAB_ROWS = 64  # rows that share a packed panel
STACK_BYTES = 2 * machine.L1_BYTES  # limit on the sums on a thread's stack
CACHED_BYTES = machine.L2_BYTES  # panels of larger operands are prefetched
MIN_PREFETCH_ROWS = 8  # rows of a panel between two prefetches, if sizes arrive at run time
MIN_SYMMETRIC_NS = 20_000  # of a product, half of which is computed, then copied
MIN_SYMMETRIC_DEPTH, MIN_SYMMETRIC_PANELS = 96, 4
MIRRORED_ROWS = 16  # rows of a block that is copied, as in ``dot.h``
TASK_PANELS = 4  # panels of a task, one of which is prefetched while another is used
#: Cost of a panel by its number of vectors, in vectors of the best tile.
_PANEL_COST = {1: 1.7, 2: 2.1, 3: 3.0, 4: 4.0}


@dataclass(frozen=True)
class Prefetch:
    """Prefetch of the next panel by the tiles of a panel, each of which takes a share.

    Attributes
    ----------
    nbytes : int
        Bytes for each row of the panel in use, if panels are each in one piece; else 0.
    every : int
        Rows of the panel in use for each row of the next one, if panels lie in rows; else 0.
    """

    nbytes: int = 0
    every: int = 0

    def __bool__(self) -> bool:
        return bool(self.nbytes or self.every)


def split_into_slabs(p: Product) -> Product:
    """Return a product with a large left operand as a batch of slabs of rows that stay in the cache for all panels."""
    count = -(-p.m * p.k * p.dtype.itemsize // SLAB_BYTES)
    if p.batch != 1 or count < MIN_SLABS:
        return p
    parts = next((c for c in range(count, 2 * count) if p.m % c == 0 and p.m // c >= MIN_SLAB_ROWS), 1)
    rows = p.m // parts
    return replace(p, batch=parts, m=rows, lhs=(rows * p.lhs[1], *p.lhs[1:]), rhs=(0, *p.rhs[1:])) if parts > 1 else p


class TiledProduct:
    """Choice of panels, ranges and tiles for a product, and its kernel."""

    def __init__(self, p: Product, output: Output, live: LiveProduct, choice: variants.Choice = variants.RULES) -> None:
        self.live, self.choice = live, choice
        self.ns = p.ns + output.epilogue.ns
        self.p, self.output, self.direct = p, output, output.is_direct
        self.given = p  # before it is split into slabs
        self.itemsize, self.bytes = p.dtype.itemsize, vector_bytes()
        self.lanes = self.bytes // self.itemsize
        self.vectors = p.panel // self.lanes if p.panel else choice.get("vectors", self._vectors())
        self.width = self.vectors * self.lanes
        self.panels = max(1, -(-p.n // self.width))
        self.last = p.n - (self.panels - 1) * self.width  # columns of the last panel
        self.last_vectors = max(1, -(-self.last // self.lanes))
        self.symmetric = self._is_symmetric()
        if self.symmetric:
            self.ns /= 2
        self._split_rows()
        if not p.m:
            self.live = LiveProduct()
        self.packs_all = bool(choice.get("packs", self._packs_all()))
        self.k_blocks = max(1, -(-p.k // CHAIN))
        self.k_block = -(-p.k // self.k_blocks)
        grouped = self._groups()
        if grouped is None and not self.live and not self.symmetric and choice.get("slabs", 1):
            self.p = p = split_into_slabs(p)
            self._split_rows()
        self.packs_last = not p.panel and (self.packs_all or p.rhs[2] != 1 or self.last % self.lanes != 0)
        min_tasks = tasks(self.ns, max(1, p.batch * self.panels * self.tiles))
        self.partition = grouped or Partition(ranges=min(choice.get("ranges", self._ranges(min_tasks)), self.tiles))
        self.units = max(1, self.partition.units(p.batch * -(-self.panels // self.partition.group_panels)))
        self.tasks = min(choice.get("tasks", self._tasks(min_tasks)), self.units)
        self.sums_bytes = self._sums_bytes()
        self.sums_on_stack = self.sums_bytes <= STACK_BYTES

    # ------------------------------------------------------------------------------------------------ choices
    def _split_rows(self) -> None:
        """Split the rows into tiles, the first `tall_tiles` of which have one row more than the others."""
        most = tile_rows().get(self.vectors, 1)
        rows = 1 if self.p.m == 1 else min(most, self.choice.get("rows", most))
        self.tiles = max(1, -(-self.p.m // rows))
        self.height, self.tall_tiles = divmod(self.p.m, self.tiles)

    def _is_symmetric(self) -> bool:
        """Return True if half of the result is computed, then copied: it is symmetric to the bit, and large."""
        p, output = self.p, self.output
        is_large = p.ns >= MIN_SYMMETRIC_NS and p.k >= MIN_SYMMETRIC_DEPTH and self.panels >= MIN_SYMMETRIC_PANELS
        return output.symmetric and is_large and not p.panel and not self.live and output.epilogue.is_uniform

    def _is_prebuilt(self) -> bool:
        """Return True if a prebuilt kernel computes it: without epilogue, not short, a left operand in rows or columns.

        With an epilogue, tiles of known sizes are faster: by 2 to 7 % from 64x64x64 to 300x300x300, by half for 100
        products of 8x8x8 and for 16x2048x16.
        """
        row_stride, k_stride = self.p.lhs[1:]
        is_wanted = self.direct and not self.live and self.choice.get("prebuilt", 1)
        is_supported = is_wanted and 1 in (k_stride, row_stride)
        function = f"dot_tiles_{self.p.dtype.text}"
        return bool(is_supported and prebuilt_calls.is_long(self.ns) and prebuilt_calls.pointer(function) is not None)

    def _is_prebuilt_part(self) -> bool:
        """Return True if a prebuilt kernel may compute a part of the product, and call its epilogue for each tile."""
        has_prebuilt_tiles = 1 in self.p.lhs[1:] and prebuilt_calls.is_long(self.ns)
        return bool(self.live) and self._epilogue_place < 2 and has_prebuilt_tiles

    @property
    def _widths(self) -> list[int]:
        """Widths of the tiles of a panel, and of the last one."""
        return [self.width if self.panels > 1 else self.last, self.last]

    @property
    def _panel_bytes(self) -> int:
        """Bytes of a block of a packed panel."""
        return max(1, self.k_block) * self.width * self.itemsize

    def _groups(self) -> Partition | None:
        """Return the partition with packed panels in groups; None if each panel is by itself."""
        if not (self.packs_all and self._is_prebuilt()):
            return None
        sizes = self.p.batch, self.panels, self.tiles
        group = min(self.choice.get("group", 0), self._max_group)
        if not group:
            return group_panels(*sizes, self._panel_bytes)
        return Partition.of_groups(group, *sizes) if group > 1 else None

    @property
    def _max_group(self) -> int:
        """Limit on the packed panels of a group, which are on the stack."""
        return min(self.panels, max(MIN_GROUP, GROUP_BYTES // self._panel_bytes))

    def _vectors(self) -> int:
        """Return the vectors of a panel, for as few panels as possible of about equal width."""
        needed = max(1, -(-self.p.n // self.lanes))
        if self.p.m == 1:
            return min(needed, 8)
        candidates = [v for v in tile_rows() if v <= needed] or [1]

        def cost(v: int) -> float:
            full, remainder = divmod(needed, v)
            return full * _PANEL_COST[v] + (_PANEL_COST[remainder] if remainder else 0.0)

        return min(candidates, key=lambda v: (cost(v), -v))

    def _packs_all(self) -> bool:
        """Return True if panels are packed, which pays if enough rows read the copy, unless rows are adjacent as is."""
        p = self.p
        if p.panel or (p.rhs[2] == 1 and p.rhs[1] == self.width):
            return False
        row_bytes = p.rhs[1] * self.itemsize
        panel_bytes = p.k * (self.width * self.itemsize + LINE_BYTES)  # rows in place begin anywhere in a line
        is_spread = panel_bytes > UNPACKED_BYTES or (row_bytes % ALIASING_BYTES == 0 and row_bytes > 0)
        return p.rhs[2] != 1 or (is_spread and self.tiles >= MIN_PACKED_TILES)

    def _tasks(self, min_tasks: int) -> int:
        """Return the number of tasks of equal shares of the units, several neighbours if panels are prefetched."""
        if min_tasks == 1:
            return 1
        min_units = TASK_PANELS if self._prefetch() and self.units >= 4 * TASK_PANELS else 1
        units = max(min_units, self.units // (4 * min_tasks))
        return -(-self.units // units)

    def _ranges(self, tasks: int) -> int:
        """Return the ranges of tiles that give all tasks as many units, with enough rows for each packed panel."""
        panels = self.p.batch * self.panels
        if self.packs_all and (panels >= 16 or (panels >= 8 and panels % 2 == 0)):
            return 1
        max_ranges = max(1, self.tiles // 8 if self.packs_all else self.tiles)
        min_ranges = min(-(-tasks // max(1, panels)), max_ranges)
        balanced = (r for r in range(min_ranges, max_ranges + 1) if panels * r % tasks == 0 or panels * r >= 4 * tasks)
        return next(balanced, min_ranges)

    def _sums_bytes(self) -> int:
        """Return the bytes for sums of a task that an epilogue takes."""
        if self.direct:
            return 0
        tiles = -(-self.tiles // self.partition.ranges) if self.k_blocks > 1 else 1
        return tiles * (self.height + (self.tall_tiles > 0)) * self.width * self.itemsize

    # ------------------------------------------------------------------------------------------------ variants
    def axes(self) -> variants.Axes:
        """Return the parameters that leave the bits of the results as they are, with the values to try.

        Links of the contracted dimension are not among them.
        """
        if self.live:
            return {}
        tasks = variants.other_tasks(self.tasks, self.units, self.ns)
        if self.symmetric:
            return {"tasks": tasks}
        p, partition, is_prebuilt = self.p, self.partition, self._is_prebuilt()
        is_free = p.m > 1 and not p.panel
        most = tile_rows().get(self.vectors, 1)
        heights = {-(-p.m // r): r for r in (most // 2, most * 3 // 4, most - 1) if 0 < r < most}
        heights.pop(self.tiles, None)
        groups = (1, 2, 4, 8) if self.packs_all and is_prebuilt else ()
        panels = p.batch * self.panels
        least = 1 if panels > 1 or self.ns <= variants.MAX_SERIAL_NS else 2
        ranges = () if partition.group_panels > 1 else (least, partition.ranges // 2, 2 * partition.ranges)
        axes = {
            "tasks": tasks,
            "vectors": [v for v in tile_rows() if v <= -(-p.n // self.lanes)] if is_free else [],
            "rows": list(heights.values()) if p.m > 1 else [],
            "packs": [0, 1] if is_free and p.rhs[2] == 1 else [],
            "group": [g for g in groups if g <= self._max_group],
            "ranges": [r for r in ranges if least <= r <= self.tiles],
            "strip": [2, 8, 16] if partition.group_panels > 1 else [],
            "slabs": [0] if p is not self.given else [],
            "prefetch": [0] if self._prefetch() else [],
            "prebuilt": [0] if is_prebuilt else [],
        }
        default = {
            "vectors": self.vectors, "packs": int(self.packs_all), "group": partition.group_panels,
            "ranges": partition.ranges,
        }  # fmt: skip
        return variants.without(axes, default)

    # ------------------------------------------------------------------------------------------------ kernel
    def kernel(self) -> Kernel:
        """Return the kernel, prebuilt or written."""
        if self._is_prebuilt():
            template = Kernel("", self.tasks, self.ns, kind=KernelKind.DOT, phases=1 + self.symmetric)
            prebuilt = self.output.prebuilt("dot_tiles", lambda: DOT.numbers(self._values()), template)
            if prebuilt is not None:
                return prebuilt
        if self._is_prebuilt_part():
            template = Kernel("dot of sizes known at run time", self.tasks, self.ns, kind=KernelKind.DOT)
            name, numbers = f"dot_live{{}}_{self.p.dtype.text}", DOT.numbers(self._values())
            live = self.live.sizes(self.p.counts)
            prebuilt = self.output.epilogue.prebuilt(name, numbers, template, self._widths, live)
            if prebuilt is not None:
                return self._with_short_work(prebuilt)
        return self._generate()

    @property
    def _scratch(self) -> int:
        """Scratch for the sums of all tasks, in bytes."""
        return 0 if self.sums_on_stack else self.tasks * self.sums_bytes

    @property
    def _phase(self) -> int:
        """Index of the buffer with the number of the phase."""
        return self.output.scratch + (self._scratch > 0)

    def _values(self) -> dict[str, int]:
        """Return the parameters of the kernel."""
        p, partition = self.p, self.partition
        left, right, out = self.output.buffers
        return {
            "left": left, "right": right, "out": out, "scratch": 0 if self.sums_on_stack else self.output.scratch,
            "m": p.m, "n": p.n, "k": p.k, **self._strides(), "vectors": self.vectors, "width": self.width,
            "panels": self.panels,
            "panel_stride": self._panel_stride, "packs": int(self.packs_all), "last_vectors": self.last_vectors,
            "last": self.last, "packs_last": int(self.packs_last), "tiles": self.tiles if p.m else 0,
            "height": self.height, "tall_tiles": self.tall_tiles, "k_block": self.k_block,
            "units": self.units, "tasks": self.tasks,
            "group_panels": partition.group_panels,
            "strip_tiles": (
                self.choice.get("strip", STRIP_TILES) if partition.group_panels > 1 else max(1, self.tiles)
            ),
            "ranges": partition.ranges, "tail_ranges": partition.tail_ranges, "tail_groups": partition.tail_groups,
            "symmetric": self._phase if self.symmetric else 0,
            "mirrored": p.batch * -(-p.m // MIRRORED_ROWS) if self.symmetric else 0,
            "out_stride": self.out_stride, "epilogue": self._epilogue_place, "sums": self.sums_bytes // self.itemsize,
            **self._prefetch_values(),
        }  # fmt: skip

    def _strides(self) -> dict[str, int]:
        """Return the strides of the operands."""
        names = [f"left_{name}_stride" for name in ("batch", "row", "k")]
        names += [f"right_{name}_stride" for name in ("batch", "k", "column")]
        return dict(zip(names, self.p.lhs + self.p.rhs, strict=True))

    @property
    def _epilogue_place(self) -> int:
        """Return 0 if there is no epilogue, 1 if it takes each tile, 2 if it takes the sums of all links of a unit."""
        return 0 if self.direct else 1 + (self.k_blocks > 1)

    def _prefetch_values(self) -> dict[str, int]:
        """Return the parameters of the prefetch."""
        prefetch = self._prefetch()
        if not prefetch:
            return {}
        names = [f"prefetch_{name}" for name in ("every", "lines", "stride", "start", "tile")]
        source = 1 if prefetch.every else 3 if self.p.panel else 2
        return {"prefetch": source, **dict(zip(names, self._prefetch_sizes(prefetch, MIN_PREFETCH_ROWS), strict=True))}

    def _prefetch_sizes(self, prefetch: Prefetch, min_rows: int) -> tuple[int, int, int, int, int]:
        """Return the rows of a panel between two prefetches, the lines and bytes of each, and the share of a tile.

        The last two are the elements from one panel to the next, and the bytes of a tile, for each row of its panel if
        panels are each in one piece.
        """
        if prefetch.every:
            row = self.p.rhs[1] * self.itemsize
            lines = -(-self.width * self.itemsize // LINE_BYTES)
            return prefetch.every, lines, row, self.width, -(-self.p.k // prefetch.every) * row
        every = max(min_rows, LINE_BYTES // prefetch.nbytes) if min_rows > 1 else 1
        nbytes = every * prefetch.nbytes
        return every, -(-nbytes // LINE_BYTES), nbytes, self._panel_stride, prefetch.nbytes

    def _generate(self) -> Kernel:
        """Return a kernel of generated C, with the sizes as constants."""
        c = CWriter()
        values, element = self._values(), self.p.c_type
        c.lines(templates.types("KERNEL", element, self.bytes))
        panels = [self._panel_tiles(values, last=False), self._panel_tiles(values, last=True)]
        for tile in {tile.name: tile for tiles in panels for tile in tiles if tile is not None}.values():
            c.lines((tile.prototype + tile.text).splitlines())
        names = ("{" + ", ".join("0" if tile is None else tile.name for tile in tiles) + "}" for tiles in panels)
        c.line(f"static const KERNEL_tile_function KERNEL_tiles[2][2] = {{{', '.join(names)}}};")
        after = [] if self.direct else [self.output.epilogue.function(c, width) for width in self._widths]
        pack = templates.NO_PACK
        if self.packs_last:
            pack = templates.PACK_ROWS if self.p.rhs[2] == 1 else templates.PACK_ANY
        c.lines(self.live.functions("KERNEL", self.p) if self.live else [])
        c.lines(templates.dot_text(
            "KERNEL", element, self.lanes, (self.height + 1) * self.width, templates.PANEL_UNITS, pack, values,
            store=max(self.k_block, 1) * self.width * self.partition.group_panels if self.packs_last else 0,
            sums=values["sums"] if self.sums_on_stack else 0, live=self.live.form,
        ).splitlines())  # fmt: skip
        if after:
            c.line(f"static const KERNEL_after_function KERNEL_after[2] = {{{', '.join(after)}}};")
        with c.block("static cyx_status KERNEL(void *const *bufs, int64_t begin, int64_t end)"):
            c.line(f"return KERNEL_run(&KERNEL_constants, bufs, begin, end, {'KERNEL_after' if after else '0'});")
        return self._with_short_work(
            Kernel(c.text(), self.tasks, self.ns, self._scratch, KernelKind.DOT, phases=1 + self.symmetric)
        )

    def _with_short_work(self, kernel: Kernel) -> Kernel:
        return self.live.with_short_work(kernel, self.p.counts)

    def _panel_tiles(self, values: dict[str, int], *, last: bool) -> list[TileText | None]:
        """Return the tiles of `height` rows and of one more for the last panel, or for those before it, if any."""
        if self.panels == 1 and not last:
            return [None, None]
        vectors, packs = (self.last_vectors, self.packs_last) if last else (self.vectors, self.packs_all)
        step = self.width if packs else self.p.rhs[1]
        cut = self.last % self.lanes if last and self.direct else 0
        prefetch = self._prefetch()
        form = templates.PREFETCH_NEXT_PANEL if prefetch else templates.NO_PREFETCH
        sizes = {
            "count": self.p.k, "left_row_stride": self.p.lhs[1], "left_k_stride": self.p.lhs[2], "right_stride": step,
            "out_stride": self.width if self._epilogue_place == 1 else self.out_stride,
        }  # fmt: skip
        if prefetch:
            every, lines, stride, _, tile_bytes = self._prefetch_sizes(prefetch, 1)
            sizes |= {"prefetch_every": every, "prefetch_lines": lines, "prefetch_stride": stride}
            sizes["prefetch_tile"] = tile_bytes * (1 if prefetch.every else self.p.k)

        def tile(rows: int) -> TileText:
            name = f"KERNEL_{rows}x{vectors}_{step}" + (f"c{cut}" if cut else "")
            return TileText(
                "KERNEL", self.p.c_type, self.lanes, name, rows, vectors, cut,
                prefetch=form, sizes=sizes, linked=self.k_blocks > 1 or bool(self.live.depth),
            )  # fmt: skip

        return [tile(self.height) if self.height else None, tile(self.height + 1) if self.tall_tiles else None]

    def _prefetch(self) -> Prefetch:
        """Return the prefetch of an operand too large for the cache, divided among the tiles of a range."""
        p, share = self.p, max(1, self.tiles // self.partition.ranges)
        is_cached = p.k * p.n * self.itemsize < CACHED_BYTES
        if self.panels == 1 or self.partition.group_panels > 1 or is_cached or not self.choice.get("prefetch", 1):
            return Prefetch()
        if p.panel or (p.rhs[1] == 1 and p.rhs[2] == p.k and self.k_blocks == 1):
            return Prefetch(nbytes=-(-self.width * self.itemsize // share))
        if p.rhs[2] == 1 and self.k_blocks == 1:
            return Prefetch(every=1 << (share.bit_length() - 1))
        return Prefetch()

    @property
    def out_stride(self) -> int:
        """Elements between rows of the sums that tiles store."""
        return self.p.n if self.direct else self.width

    @property
    def _panel_stride(self) -> int:
        """Elements between panels of the right operand."""
        return self.p.k * self.p.panel if self.p.panel else self.width * self.p.rhs[2]
