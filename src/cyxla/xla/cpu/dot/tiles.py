"""Dot in f32 and f64: packed panels, and tiles of the result in vector registers.

The result is cut into panels of columns and ranges of tiles of rows, all tiles of a range about equally high. Within a
tile, a few rows by a few vectors stay in registers while the contracted dimension runs: a row of the right operand,
times one element of the left for each row. Two ways through the operands:

* panel by panel: a panel of the right operand is used by all rows before the next. It is read where it lies, or copied
  first when its columns are no neighbours, when the last vector would be cut, when its rows lie a multiple of 1 KiB
  apart, so that they would drive each other out of the cache, or when many lie on a page each. Long contracted
  dimensions are done in links.
  A left operand too large for the caches goes by in slabs of rows, each past all panels; or the prebuilt kernel copies
  two panels at a time, so that it comes by half as often.
* streaming, for few rows and a large right operand: a few of its rows at a time, over many columns, so that it comes
  through memory once and nearly in order.

Each element is a sum of chains of fused multiply-adds, of a length that the sizes of the dot decide, in the order of
the contracted dimension: neither tiles nor threads change a bit.
"""

from __future__ import annotations

from contextlib import AbstractContextManager
from dataclasses import dataclass, replace

from cyxla.xla.cpu.c.writer import CWriter
from cyxla.xla.cpu.dot import micro_kernel
from cyxla.xla.cpu.dot.parameters import TILES
from cyxla.xla.cpu.dot.partition import STRIP, Shares, in_pairs
from cyxla.xla.cpu.dot.product import CHAIN, MOST_TASKS, Output, Product, tasks, tile_rows, vector_bytes
from cyxla.xla.cpu.kernel import machine, prebuilt_calls
from cyxla.xla.cpu.kernel.kernel import Kernel, KernelKind

PAGE = machine.PAGE_BYTES
ALIASED = 1024  # bytes: rows a multiple of it apart share few places of the first cache
SCATTERED_ROWS = 512  # rows on as many pages, which are more than the processor finds without looking them up
SLAB_BYTES = machine.L3_BYTES // 4  # of a left operand that comes by again for each panel
LEAST_SLABS = 2
SLAB_ROWS = 64  # that share a copied panel, at least
STACK_BYTES = 2 * machine.L1_BYTES  # sums on a thread's stack
STREAMED_ROWS = 32
STREAMED_BYTES = machine.L3_BYTES // 2  # right operands above this size are streamed where there are few rows
STREAMED_CHAIN = 32
STREAMED_COLUMNS = machine.PAGE_BYTES  # bytes of a row that are read at once
CACHED_BYTES = machine.L2_BYTES  # a laid-out panel of a larger operand is fetched ahead
LEAST_RUN = 8  # rows of a prebuilt tile between two looks at what to fetch ahead
NEIGHBOURS = 4  # panels of a task, where one is fetched while another is used
#: What a panel of so many vectors costs, in vectors of the best tile.
_PANEL_COST = {1: 1.7, 2: 2.1, 3: 3.0, 4: 4.0}


@dataclass(frozen=True)
class Ahead:
    """What a tile fetches while it computes: its share of the panel that comes next.

    Attributes
    ----------
    nbytes : int
        Bytes for each row of its own panel, where the next panel is one piece of memory; 0: nothing is fetched so.
    every : int
        Rows of its own panel for each row of the next, where that lies in rows; 0: nothing is fetched so.
    """

    nbytes: int = 0
    every: int = 0

    def __bool__(self) -> bool:
        return bool(self.nbytes or self.every)


@dataclass(frozen=True)
class Tile:
    """One kind of tile.

    Attributes
    ----------
    rows, vectors : int
        Its size.
    step : int
        Elements between rows of the panel that it reads.
    cut : int
        Elements of the last vector that are stored; 0: all.
    ahead : Ahead
        What is fetched ahead.
    """

    rows: int
    vectors: int
    step: int
    cut: int
    ahead: Ahead

    @property
    def name(self) -> str:
        """Its function."""
        return f"KERNEL_{self.rows}x{self.vectors}_{self.step}" + (f"c{self.cut}" if self.cut else "")


def in_slabs(p: Product) -> Product:
    """A product with a large left operand as a batch of some, each of rows that stay in the cache for all panels."""
    count = -(-p.m * p.k * p.dtype.itemsize // SLAB_BYTES)
    if p.batch != 1 or count < LEAST_SLABS:
        return p
    parts = next((c for c in range(count, 2 * count) if p.m % c == 0 and p.m // c >= SLAB_ROWS), 1)
    rows = p.m // parts
    return replace(p, batch=parts, m=rows, lhs=(rows * p.lhs[1], *p.lhs[1:]), rhs=(0, *p.rhs[1:])) if parts > 1 else p


class Tiled:
    """Chooses panels, ranges and tiles for a product and writes its kernel."""

    def __init__(self, p: Product, output: Output) -> None:
        self.ns = p.ns + output.epilogue.ns
        self.p, self.output, self.direct = p, output, output.is_direct
        self.itemsize, self.bytes = p.dtype.itemsize, vector_bytes()
        self.lanes = self.bytes // self.itemsize
        self.vectors = p.panel // self.lanes if p.panel else self._vectors()
        self.width = self.vectors * self.lanes
        self.panels = max(1, -(-p.n // self.width))
        self.last = p.n - (self.panels - 1) * self.width  # columns of the last panel
        self.last_vectors = max(1, -(-self.last // self.lanes))
        self._cut_rows()
        self.streams = self._is_streamed()
        self.packs_all = not self.streams and self._packs_all()
        in_two = in_pairs(p.batch, self.panels, self.tiles) if self.packs_all and self._is_prebuilt() else None
        if in_two is None:
            self.p = p = in_slabs(p)
            self._cut_rows()
        self.packs_last = not p.panel and (self.packs_all or p.rhs[2] != 1 or self.last % self.lanes != 0)
        self.links = max(1, -(-p.k // (STREAMED_CHAIN if self.streams else CHAIN)))
        self.link = -(-p.k // self.links)
        if self.streams:
            most = STREAMED_COLUMNS // (self.width * self.itemsize)
            self.span = max(1, min(most, self.panels // 4))  # panels of a unit
            self.groups = -(-self.panels // self.span)
            self.shares, self.units = Shares(), max(1, p.batch * self.groups)
            self.tasks = min(self.units, MOST_TASKS) if tasks(self.ns, self.units) > 1 else 1
        else:
            wanted = tasks(self.ns, max(1, p.batch * self.panels * self.tiles))
            self.shares = in_two or Shares(ranges=self._ranges(wanted))
            self.units = max(1, self.shares.units(p.batch * -(-self.panels // self.shares.together)))
            self.tasks = self._tasks(wanted)
        self.sums_bytes = self._sums_bytes()
        self.sums_on_stack = self.sums_bytes <= STACK_BYTES

    # ------------------------------------------------------------------------------------------------ choices
    def _cut_rows(self) -> None:
        """Tiles of rows; the first `higher` of them have one row more than the others."""
        rows = 1 if self.p.m == 1 else tile_rows().get(self.vectors, 1)
        self.tiles = max(1, -(-self.p.m // rows))
        self.height, self.higher = divmod(self.p.m, self.tiles)

    def _is_prebuilt(self) -> bool:
        """Whether the prebuilt kernel does it: results stored as they are, the left operand in rows or columns."""
        apart, step = self.p.lhs[1:]
        fits = (
            self.direct
            and self.ns >= prebuilt_calls.MIN_PREBUILT_NS
            and (step == 1 or (apart == 1 and not self.streams))
        )
        return fits and prebuilt_calls.pointer(f"dot_tiles_{self.p.dtype.text}") is not None

    def _vectors(self) -> int:
        """Vectors of a panel: as few panels as can be, of about equal width."""
        needed = max(1, -(-self.p.n // self.lanes))
        if self.p.m == 1:
            return min(needed, 8)
        candidates = [v for v in tile_rows() if v <= needed] or [1]

        def price(v: int) -> float:
            full, rest = divmod(needed, v)
            return full * _PANEL_COST[v] + (_PANEL_COST[rest] if rest else 0.0)

        return min(candidates, key=lambda v: (price(v), -v))

    def _is_streamed(self) -> bool:
        p = self.p
        large = p.k * p.n * self.itemsize >= (STREAMED_BYTES if p.m > 1 else CACHED_BYTES)
        return not p.panel and p.m <= STREAMED_ROWS and p.rhs[2] == 1 and large and p.k > STREAMED_CHAIN

    def _packs_all(self) -> bool:
        """Whether panels are copied: this pays when enough rows read the copy."""
        p = self.p
        if p.panel:
            return False
        apart = p.rhs[1] * self.itemsize
        scattered = apart >= PAGE and p.k >= SCATTERED_ROWS and self.tiles >= 8
        return p.rhs[2] != 1 or scattered or (apart % ALIASED == 0 and apart > 0 and self.tiles >= 4)

    def _tasks(self, wanted: int) -> int:
        """Tasks of equal shares of the units; where panels are fetched ahead, of several neighbours."""
        if wanted == 1:
            return 1
        least = NEIGHBOURS if self._ahead() and self.units >= 4 * NEIGHBOURS else 1
        share = max(least, self.units // (4 * wanted))
        return -(-self.units // share)

    def _ranges(self, tasks: int) -> int:
        """Ranges of tiles: equal numbers of units for all the tasks, but enough rows to share a copied panel."""
        panels = self.p.batch * self.panels
        if self.packs_all and (panels >= 16 or (panels >= 8 and panels % 2 == 0)):
            return 1
        most = max(1, self.tiles // 8 if self.packs_all else self.tiles)
        least = min(-(-tasks // max(1, panels)), most)
        level = (r for r in range(least, most + 1) if panels * r % tasks == 0 or panels * r >= 4 * tasks)
        return next(level, least)

    def _sums_bytes(self) -> int:
        """Room for the sums of a task that are not stored as they are."""
        if self.direct:
            return 0
        if self.streams:
            return self.p.m * self.span * self.width * self.itemsize
        tiles = -(-self.tiles // self.shares.ranges) if self.links > 1 else 1
        return tiles * (self.height + (self.higher > 0)) * self.width * self.itemsize

    # ------------------------------------------------------------------------------------------------ kernel
    def kernel(self) -> Kernel:
        """The kernel, prebuilt or written."""
        made = self.output.prebuilt("dot_tiles", self.ns, self._numbers) if self._is_prebuilt() else None
        return made or self._written()

    def _numbers(self) -> tuple[list[int], int]:
        """What the prebuilt kernel is told, and the tasks."""
        p, shares = self.p, self.shares
        told = {
            "m": p.m, "n": p.n, "k": p.k, "ab": p.lhs[0], "am": p.lhs[1], "ak": p.lhs[2], "bb": p.rhs[0],
            "bk": p.rhs[1], "bn": p.rhs[2], "vectors": self.vectors, "width": self.width, "panels": self.panels,
            "panel_step": self._panel_step, "packs": int(self.packs_all), "last_vectors": self.last_vectors,
            "last": self.last, "packs_last": int(self.packs_last), "tiles": self.tiles,
            "height": self.height, "higher": self.higher, "link": self.link, "units": self.units, "tasks": self.tasks,
            "together": shares.together, "strip": STRIP if shares.together > 1 else max(1, self.tiles),
            "ranges": shares.ranges, "finer": shares.finer, "end": shares.end, "streams": int(self.streams),
            "span": self.span if self.streams else 0, "groups": self.groups if self.streams else 0,
            **dict(zip(("left", "right", "out"), self.output.places, strict=True)), **self._told_ahead(),
        }  # fmt: skip
        return [told[name] for name in TILES], self.tasks

    def _told_ahead(self) -> dict[str, int]:
        """What is fetched ahead, in lines of so many bytes each so many rows."""
        p, ahead = self.p, self._ahead()
        names = ("ahead", "ahead_every", "ahead_lines", "ahead_jump", "ahead_start", "ahead_tile")
        if ahead.every:
            row = p.rhs[1] * self.itemsize
            lines = -(-self.width * self.itemsize // 64)
            found = (1, ahead.every, lines, row, self.width, -(-p.k // ahead.every) * row)
        elif ahead.nbytes:
            every = max(LEAST_RUN, 64 // ahead.nbytes)
            lines = -(-every * ahead.nbytes // 64)
            found = (3 if p.panel else 2, every, lines, every * ahead.nbytes, self._panel_step, ahead.nbytes)
        else:
            found = (0,) * 6
        return dict(zip(names, found, strict=True))

    def _written(self) -> Kernel:
        """Its text."""
        c = CWriter()
        c.lines(micro_kernel.types("KERNEL", self.p.c_type, self.bytes))
        for tile in self._all_tiles():
            self._tile(c, tile)
        if self.packs_last:
            self._pack(c)
        if not self.direct:
            for width in dict.fromkeys([self.width] * (self.panels > 1) + [self.last]):
                self.output.epilogue.function(c, width)
        with c.block("static cyx_status KERNEL(void *const *bufs, int64_t begin, int64_t end)"):
            self.output.pointers(c)
            self._storage(c)
            each = f"u = begin * {self.units} / {self.tasks}; u < end * {self.units} / {self.tasks}; ++u"
            with c.block(f"for (int64_t {each})"):
                (self._streamed_unit if self.streams else self._unit)(c)
            c.line("return CYX_OK;")
        scratch = 0 if self.sums_on_stack else self.tasks * self.sums_bytes
        return Kernel(c.text(), self.tasks, self.ns, scratch, KernelKind.DOT)

    def _storage(self, c: CWriter) -> None:
        ctype = self.p.c_type
        if self.packs_last:
            c.line(f"{ctype} store[{max(self.link, 1) * self.width}] __attribute__((aligned(64)));")
        if self.sums_bytes and self.sums_on_stack:
            c.line(f"{ctype} sums[{self.sums_bytes // self.itemsize}] __attribute__((aligned(64)));")
        elif self.sums_bytes:
            place = f"(char *)bufs[{self.output.scratch}] + begin * {self.sums_bytes}"
            c.line(f"{ctype} *const sums = ({ctype} *)({place});")

    def _kinds(self) -> list[tuple[str, int, Tile]]:
        """(condition on ``panel``, columns, its tile of height 0) for the panels before the last, and for the last."""
        cut = self.last % self.lanes if self.direct else 0
        last = Tile(0, self.last_vectors, self.width if self.packs_last else self.p.rhs[1], cut, self._ahead())
        if self.panels == 1:
            return [("", self.last, last)]
        full = Tile(0, self.vectors, self.width if self.packs_all else self.p.rhs[1], 0, self._ahead())
        if (full.vectors, full.step, full.cut) == (last.vectors, last.step, last.cut) and self.last == self.width:
            return [("", self.width, full)]
        return [(f"if (panel < {self.panels - 1})", self.width, full), ("else", self.last, last)]

    def _ahead(self) -> Ahead:
        """What to fetch ahead of an operand too large to stay in the cache, shared out among the tiles of a range."""
        p, share = self.p, max(1, self.tiles // self.shares.ranges)
        if self.streams or self.panels == 1 or self.shares.together > 1 or p.k * p.n * self.itemsize < CACHED_BYTES:
            return Ahead()
        if p.panel or (p.rhs[1] == 1 and p.rhs[2] == p.k and self.links == 1):
            return Ahead(nbytes=-(-self.width * self.itemsize // share))
        if p.rhs[2] == 1 and self.links == 1:
            return Ahead(every=1 << (share.bit_length() - 1))
        return Ahead()

    def _heights(self) -> list[int]:
        return [self.height + 1] * (self.higher > 0) + [self.height] * (self.height > 0)

    def _all_tiles(self) -> list[Tile]:
        found = [Tile(rows, t.vectors, t.step, t.cut, t.ahead) for _, _, t in self._kinds() for rows in self._heights()]
        return list(dict.fromkeys(found))

    # ------------------------------------------------------------------------------------------------ tiles
    @property
    def apart(self) -> int:
        """Elements between rows of what tiles store."""
        if self.direct:
            return self.p.n
        return self.span * self.width if self.streams else self.width

    def _tile(self, c: CWriter, tile: Tile) -> None:
        """One tile: a link of the contracted dimension, then the store."""
        p, lanes, linked = self.p, self.lanes, self.links > 1
        arguments = "const KERNEL_e *restrict a, const KERNEL_e *restrict b, KERNEL_e *restrict o"
        arguments += ", int64_t count, int64_t first" if linked else ""
        arguments += ", const char *ahead" if tile.ahead else ""
        with c.block(f"static CYX_FUSED __attribute__((noinline)) void {tile.name}({arguments})"):
            c.line("CYX_FUSE")
            c.line(micro_kernel.sums("KERNEL", tile.rows, tile.vectors))
            with c.block(f"for (int64_t k = 0; k < {'count' if linked else p.k}; ++k)"):
                self._fetch(c, tile.ahead)
                if self.streams:  # the same rows of the next panel, or rows to come
                    due = self.width if self.span > 1 else 16 * tile.step
                    for line in range(-(-self.width * self.itemsize // 64)):
                        c.line(f"__builtin_prefetch((const char *)(b + k * {tile.step} + {due}) + {line * 64});")
                right = [f"b + k * {tile.step} + {v * lanes}" for v in range(tile.vectors)]
                rows = range(tile.rows)
                micro_kernel.multiply(
                    c, "KERNEL", p.c_type, lambda r: f"a[{r * p.lhs[1]} + k * {p.lhs[2]}]", right, rows
                )
            if linked:
                with c.block("if (first)"):
                    self._store(c, tile, "")
                with c.block("else"):
                    self._store(c, tile, "+")
            else:
                self._store(c, tile, "")

    def _fetch(self, c: CWriter, ahead: Ahead) -> None:
        """Fetch what is due with row ``k``."""
        for line in range(-(-ahead.nbytes // 64)):
            c.line(f"__builtin_prefetch(ahead + k * {ahead.nbytes} + {line * 64}, 0, 2);")
        if ahead.every:
            with c.block(f"if (!(k & {ahead.every - 1}))"):
                for line in range(-(-self.width * self.itemsize // 64)):
                    c.line(f"__builtin_prefetch(ahead + {line * 64}, 0, 2);")
                c.line(f"ahead += {self.p.rhs[1] * self.itemsize};")

    def _store(self, c: CWriter, tile: Tile, sign: str) -> None:
        whole = tile.vectors - 1 if tile.cut else tile.vectors
        for r in range(tile.rows):
            for v in range(whole):
                c.line(f"*(KERNEL_u *)(o + {r * self.apart + v * self.lanes}) {sign}= c{r}_{v};")
            if tile.cut:
                place, size = f"o + {r * self.apart + whole * self.lanes}", tile.cut * self.itemsize
                if sign:
                    c.line(f"{{ KERNEL_v old = {{0}}; __builtin_memcpy(&old, {place}, {size}); c{r}_{whole} += old; }}")
                c.line(f"__builtin_memcpy({place}, &c{r}_{whole}, {size});")

    def _pack(self, c: CWriter) -> None:
        """Copy a panel of the right operand, columns side by side, zeros after the last."""
        p, width = self.p, self.width
        arguments = "const KERNEL_e *restrict b, KERNEL_e *restrict to, int64_t count, int64_t columns"
        with c.block(f"static __attribute__((noinline)) void KERNEL_pack({arguments})"):
            if self.last < width:
                with c.block(f"if (columns < {width})"), c.block("for (int64_t k = 0; k < count; ++k)"):
                    c.line(f"__builtin_memset(to + k * {width} + {self.last}, 0, {width - self.last} * sizeof *to);")
            if p.rhs[2] == 1:
                with c.block(f"if (columns == {width})" if self.last < width else ""):
                    with c.block("for (int64_t k = 0; k < count; ++k)"):
                        for line in range(-(-width * self.itemsize // 64)):
                            c.line(f"__builtin_prefetch((const char *)(b + (k + 16) * {p.rhs[1]}) + {line * 64});")
                        for at in range(0, width, self.lanes):
                            source = f"*(const KERNEL_u *)(b + k * {p.rhs[1]} + {at})"
                            c.line(f"*(KERNEL_u *)(to + k * {width} + {at}) = {source};")
                    c.line("return;")
                if self.last < width:
                    with c.block("for (int64_t k = 0; k < count; ++k)"):
                        size = f"{self.last} * sizeof *to"
                        c.line(f"__builtin_memcpy(to + k * {width}, b + k * {p.rhs[1]}, {size});")
            elif p.rhs[1] == 1:
                c.line(f"cyx_tile_{self.itemsize}(to, {width}, b, {p.rhs[2]}, count, columns);")
            else:
                with c.block("for (int64_t k = 0; k < count; ++k) for (int64_t n = 0; n < columns; ++n)"):
                    c.line(f"to[k * {width} + n] = b[k * {p.rhs[1]} + n * {p.rhs[2]}];")

    # ------------------------------------------------------------------------------------------------ units
    def _unit(self, c: CWriter) -> None:
        """All of a panel, for a range of tiles."""
        p, linked = self.p, self.links > 1
        c.line(f"const int64_t range = u % {self.shares.ranges}, panel = u / {self.shares.ranges} % {self.panels};")
        c.line(f"const int64_t batch = u / {self.shares.ranges * self.panels};")
        limits = [f"{bound} * {self.tiles} / {self.shares.ranges}" for bound in ("range", "(range + 1)")]
        c.line(f"const int64_t from = {limits[0]}, to = {limits[1]};")
        c.line(f"const KERNEL_e *const left = a + batch * {p.lhs[0]};")
        c.line(f"const KERNEL_e *const right = b + batch * {p.rhs[0]} + panel * {self._panel_step};")
        if self.direct:
            c.line(f"KERNEL_e *const result = out + batch * {p.m * p.n} + panel * {self.width};")
        elif linked:
            c.line(f"const int64_t first = {self._row_of('from')};")
            c.line(f"KERNEL_e *const result = (KERNEL_e *)sums - first * {self.width};")
        with self._linked(c):
            c.line(f"const KERNEL_e *bt = right{f' + k * {p.rhs[1]}' if linked else ''};")
            self._packing(c)
            for when, columns, tile in self._kinds():
                with c.block(when):
                    self._tiles(c, tile, columns)
        if not self.direct and linked:
            for when, columns, _ in self._kinds():
                after = self.output.epilogue.function(c, columns)
                rows = f"{self._row_of('to')} - first"
                call = f"{after}(bufs, batch * {p.m} + first, panel * {self.width}, {rows}, sums, {self.width});"
                c.line(f"{when} {call}".strip())

    @property
    def _panel_step(self) -> int:
        """Elements between panels of the right operand."""
        return self.p.k * self.p.panel if self.p.panel else self.width * self.p.rhs[2]

    def _row_of(self, tile: str) -> str:
        """C of the first row of a tile."""
        extra = f" + ({tile} < {self.higher} ? {tile} : {self.higher})" if self.higher else ""
        return f"{tile} * {self.height}{extra}"

    def _linked(self, c: CWriter) -> AbstractContextManager[None]:
        """The loop over links; nothing if there is one."""
        if self.links == 1:
            return c.block("")
        return c.block(f"for (int64_t k = 0; k < {self.p.k}; k += {self.link})")

    def _packing(self, c: CWriter) -> None:
        count = str(self.p.k)
        if self.links > 1:
            c.line(f"const int64_t count = {self.p.k} - k < {self.link} ? {self.p.k} - k : {self.link};")
            count = "count"
        if not self.packs_last:
            return
        columns = f"panel < {self.panels - 1} ? {self.width} : {self.last}" if self.panels > 1 else str(self.last)
        when = "" if self.packs_all or self.panels == 1 else f"if (panel == {self.panels - 1}) "
        c.line(f"{when}{{ KERNEL_pack(bt, (KERNEL_e *)store, {count}, {columns}); bt = (const KERNEL_e *)store; }}")

    def _tiles(self, c: CWriter, tile: Tile, columns: int) -> None:
        """All tiles of a range, the higher ones first."""
        p, linked = self.p, self.links > 1
        with c.block("for (int64_t t = from; t < to; ++t)"):
            c.line(f"const int64_t row = {self._row_of('t')};")
            at = f"left + row * {p.lhs[1]}" + (f" + k * {p.lhs[2]}" if linked else "")
            to = f"result + row * {self.apart}" if self.direct or linked else "(KERNEL_e *)sums"
            arguments = f"({at}, bt, {to}" + (", count, k == 0" if linked else "")
            if tile.ahead:
                arguments += f", {self._next(tile.ahead)}"
            heights = self._heights()
            for rows in heights:
                when = f"if (t {'<' if rows > self.height else '>='} {self.higher})" if len(heights) > 1 else ""
                one = Tile(rows, tile.vectors, tile.step, tile.cut, tile.ahead)
                call = f"{one.name}{arguments});"
                if not self.direct and not linked:
                    after = self.output.epilogue.function(c, columns)
                    place = f"batch * {p.m} + row, panel * {self.width}, {rows}"
                    call += f" {after}(bufs, {place}, sums, {self.width});"
                c.line(f"{when} {{ {call} }}".strip())

    def _next(self, ahead: Ahead) -> str:
        """Where a tile's share of what comes next begins."""
        p, count = self.p, "count" if self.links > 1 else str(self.p.k)
        if ahead.every:
            rows = -(-p.k // ahead.every)
            return f"(const char *)(right + {self.width} + (t - from) * {rows * p.rhs[1]})"
        start = f"bt + {count} * {p.panel}" if p.panel else f"right + {self._panel_step}"
        return f"(const char *)({start}) + (t - from) * {ahead.nbytes} * {count}"

    def _streamed_unit(self, c: CWriter) -> None:
        """A group of panels: a link of all of them before the next link."""
        p, linked = self.p, self.links > 1
        c.line(f"const int64_t start = u % {self.groups} * {self.span}, batch = u / {self.groups};")
        c.line(f"const int64_t stop = start + {self.span} < {self.panels} ? start + {self.span} : {self.panels};")
        c.line(f"const int64_t from = 0, to = {self.tiles};")
        with self._linked(c), c.block("for (int64_t panel = start; panel < stop; ++panel)"):
            c.line(f"const KERNEL_e *const left = a + batch * {p.lhs[0]};")
            c.line(f"const KERNEL_e *bt = b + batch * {p.rhs[0]} + k * {p.rhs[1]} + panel * {self.width};")
            if self.direct:
                c.line(f"KERNEL_e *const result = out + batch * {p.m * p.n} + panel * {self.width};")
            else:
                c.line(f"KERNEL_e *const result = (KERNEL_e *)sums + (panel - start) * {self.width};")
            self._packing(c)
            for when, columns, tile in self._kinds():
                with c.block(when):
                    self._tiles(c, tile, columns)
        if not self.direct and linked:
            with c.block("for (int64_t panel = start; panel < stop; ++panel)"):
                for when, columns, _ in self._kinds():
                    after = self.output.epilogue.function(c, columns)
                    place = f"batch * {p.m}, panel * {self.width}, {p.m}"
                    call = f"{after}(bufs, {place}, sums + (panel - start) * {self.width}, {self.apart});"
                    c.line(f"{when} {call}".strip())
