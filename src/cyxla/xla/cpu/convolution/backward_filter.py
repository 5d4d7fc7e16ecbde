"""Convolution with the images last, in f32 and f64: few results, each a sum over a large window.

This is the gradient of a convolution by its filter: ``out[s, b, f]`` sums ``x[k, s + w, b] * w[k, w, f]`` over all
``k`` and ``w``, the positions of all images. A register tile of some ``b`` by some vectors of ``f`` accumulates over
rows of positions. Rows are blocked in bands that fit in L2: all tiles of a slab of the result process one band before
the next, and partial sums are stored in between.

For small results, the rows are split into shares with separate partial sums, which a second phase adds in order.
Shares, slabs and bands depend only on the sizes, so that results have the same bits for any number of threads. Padding
is skipped.
"""

from __future__ import annotations

from math import ceil, gcd, prod

from cyxla.xla.cpu.c import scalar
from cyxla.xla.cpu.convolution.sizes import Sizes, reach, tasks, vector_bytes
from cyxla.xla.cpu.convolution.tiles import Panel, panels
from cyxla.xla.cpu.dot.templates import vector_types
from cyxla.xla.cpu.kernel import machine, variants
from cyxla.xla.cpu.kernel.kernel import Kernel, KernelKind
from cyxla.xla.cpu.kernel.kernel_writer import KernelWriter, linear_index, strides
from cyxla.xla.cpu.loops.epilogue import Epilogue
from cyxla.xla.hlo import Instruction

BAND_BYTES = 5 * machine.L1_BYTES  # rows of both operands
SLAB_BYTES = machine.L2_BYTES // 4  # sums of a slab
MIN_UNITS = 16  # units of work, if there are enough rows
MAX_BAND_ROWS = 64
#: Adjacent results (`b`) of a tile by its vectors of `f`, with 32 vector registers and with 16.
ROWS = {32: {1: 8, 2: 8, 3: 8, 4: 6}, 16: {1: 8, 2: 6}}
PAIR_VECTORS = 8  # vectors of a tile of element-wise products


class FilterConvolution:
    """Kernel of a convolution with the images last."""

    def __init__(
        self, ins: Instruction, n: Sizes, epilogue: Epilogue, choice: variants.Choice = variants.RULES
    ) -> None:
        self.ins, self.n, self.epilogue = ins, n, epilogue
        self.x, self.w = (o.shape.dims for o in ins.operands)
        nbytes = vector_bytes()
        self.lanes = nbytes // n.dtype.itemsize
        self.pairs = n.by_batch and n.batch == 1 and n.group_features == 1
        self.groups = 1 if self.pairs else n.groups
        table = ROWS[32 if nbytes == 64 else 16]
        self.features = n.features // self.groups
        self.panels = panels(self.features, self.lanes, PAIR_VECTORS if self.pairs else max(table))
        self.rows = 1 if self.pairs else _tile_rows(n.batch, table[max(p.vectors for p in self.panels)])
        self._split_result()
        self._split_rows()
        self.units = self.shares * self.slabs
        self.ns = n.ns + epilogue.ns
        self.tasks = min(choice.get("tasks", tasks(self.ns, self.units)), self.units)
        self.direct = self.shares == 1 and epilogue.is_empty
        self.after = n.features if self.shares > 1 else self.features  # columns of what the epilogue takes

    def axes(self) -> variants.Axes:
        """Return the number of tasks with values to try; the sums depend on the other sizes."""
        return {"tasks": variants.other_tasks(self.tasks, self.units, self.ns)}

    def _split_result(self) -> None:
        """Partition the result into items (a position, a group and some `b`), and the items into slabs."""
        n = self.n
        size = n.dtype.itemsize
        max_chunk = max(1, SLAB_BYTES // 2 // (self.features * size) // self.rows) * self.rows
        chunks = -(-n.batch // max_chunk)
        self.chunk = ceil(n.batch / chunks / self.rows) * self.rows
        self.chunks = -(-n.batch // self.chunk)
        self.positions = prod(n.space)
        self.items = self.positions * self.groups * self.chunks
        max_items = max(1, SLAB_BYTES // (min(self.chunk, n.batch) * self.features * size))
        self.slabs = -(-self.items // max_items)
        self.slab_items = -(-self.items // self.slabs)
        self.slabs = -(-self.items // self.slab_items)

    def _split_rows(self) -> None:
        """Partition the rows of positions, one for each `k` and each window position but for the last dimension."""
        n = self.n
        self.lines = n.depth * prod(w.size for w in n.window[:-1])
        line = n.window[-1].size * (self.w[-1] + self.x[-1] * n.window[-1].window_dilation) * n.dtype.itemsize
        self.band = max(1, min(BAND_BYTES // line, MAX_BAND_ROWS, self.lines))
        bands = -(-self.lines // self.band)
        self.shares = max(1, min(-(-MIN_UNITS // self.slabs), bands))

    # --- the kernel -------------------------------------------------------------------------------------------------

    def kernel(self) -> Kernel:
        """Return the kernel."""
        n, epilogue = self.n, self.epilogue
        c = KernelWriter(epilogue.reads, epilogue.writes)
        c.lines(vector_types("KERNEL", scalar.storage_type(n.dtype), vector_bytes()))
        c.line("typedef struct { const KERNEL_e *x, *w; int64_t count; } KERNEL_run;")
        remainder = n.batch % self.rows
        for rows in (self.rows, remainder) if remainder else (self.rows,):
            for vectors, skip in dict.fromkeys((p.vectors, p.skip) for p in self.panels):
                self._tile(c, rows, vectors, skip)
        if not self.direct:
            epilogue.function(c, self.after)
        self._runs(c)
        self._slab(c)
        phases = 1
        if self.shares > 1:
            phases = 2
            self._add_shares(c)
        self._main(c, phases)
        scratch = 0 if self.direct else self.shares * self.ins.shape.size * n.dtype.itemsize
        return Kernel(c.text(), self.tasks, self.ns, scratch, KernelKind.CONVOLUTION, phases)

    def _tile(self, c: KernelWriter, rows: int, vectors: int, skip: int) -> None:
        """Write the function of a tile, which accumulates over runs; `b` and `f` are its columns of the operands."""
        x_step, w_step = self._steps()
        sums = [f"{r}_{v}" for r in range(rows) for v in range(vectors)]
        arguments = "const KERNEL_run *run, int64_t runs, int64_t b, int64_t f, KERNEL_e *restrict s, int add"
        head = f"static CYX_FUSED __attribute__((noinline)) void {_tile_name(rows, vectors, skip)}"
        with c.block(f"{head}({arguments})"):
            c.line("CYX_FUSE")
            c.line("KERNEL_v " + ", ".join(f"c{name} = {{0}}" for name in sums) + ";")
            with c.block("for (; runs; --runs, ++run)"):
                c.line("const KERNEL_e *x = run->x + b, *w = run->w + f;")
                with c.block(f"for (int64_t k = run->count; k; --k, x += {x_step}, w += {w_step})"):
                    loads = [f"b{v} = *(const KERNEL_u *)(w + {v * self.lanes})" for v in range(vectors)]
                    if self.pairs:
                        loads += [f"a{v} = *(const KERNEL_u *)(x + {v * self.lanes})" for v in range(vectors)]
                    c.line(f"const KERNEL_v {', '.join(loads)};")
                    for r in range(rows):
                        factors = [f"a{v}" if self.pairs else f"x[{r}]" for v in range(vectors)]
                        c.line(" ".join(f"c{r}_{v} += {factors[v]} * b{v};" for v in range(vectors)))
            for r in range(rows):
                for v in range(vectors):
                    self._accumulate(c, f"c{r}_{v}", f"s + {r * self.n.features + v * self.lanes}", skip)

    def _accumulate(self, c: KernelWriter, value: str, address: str, skip: int) -> None:
        """Store a vector of partial sums, or add it to stored ones; the first `skip` elements are not stored."""
        if not skip:
            c.line(f"*(KERNEL_u *)({address}) = add ? {value} + *(const KERNEL_u *)({address}) : {value};")
            return
        size = self.n.dtype.itemsize
        arguments = f"{address} + {skip}, {(self.lanes - skip) * size}"
        with c.block(""):
            c.line("KERNEL_v t = {0};")
            c.line(f"if (add) __builtin_memcpy((char *)&t + {skip * size}, {arguments});")
            c.line(f"t += {value};")
            c.line(
                f"__builtin_memcpy({address} + {skip}, (const char *)&t + {skip * size}, {(self.lanes - skip) * size});"
            )

    def _steps(self) -> tuple[int, int]:
        """Return the strides, in elements, of a run's positions in both operands."""
        w, step = self.n.window[-1], _run_step(self.n)
        sign = -1 if w.window_reversal else 1
        return step * w.window_dilation // w.base_dilation * self.x[-1], step * sign * self.w[-1]

    def _runs(self, c: KernelWriter) -> None:
        """Write the function that lists the runs of positions in some rows for one position of the result."""
        n, rank = self.n, len(self.n.space)
        x_steps, w_steps = strides(self.x), strides(self.w)
        arguments = "const KERNEL_e *x, const KERNEL_e *w, int64_t spot, int64_t g, int64_t from, int64_t to"
        with c.block(f"static __attribute__((noinline)) int64_t KERNEL_runs({arguments}, KERNEL_run *run)"):
            c.line("int64_t runs = 0;")
            c.unravel("spot", [f"s{d}" for d in range(rank)], n.space)
            with c.block("for (int64_t l = from; l < to; ++l)"):
                c.unravel("l", ["k", *(f"w{d}" for d in range(rank - 1))], [n.depth, *(w.size for w in n.window[:-1])])
                for d, w in enumerate(n.window[:-1]):
                    c.line(f"const int64_t e{d} = s{d} * {w.stride} + w{d} * {w.window_dilation} - ({w.padding_low});")
                    misaligned = f" || e{d} % {w.base_dilation}" if w.base_dilation > 1 else ""
                    c.line(f"if (e{d} < 0 || e{d} >= {reach(w, self.x[d + 1])}{misaligned}) continue;")
                self._range(c, rank - 1)
                inputs = [f"(e{d} / {w.base_dilation})" for d, w in enumerate(n.window)]
                taps = [f"({w.size - 1} - w{d})" if w.window_reversal else f"w{d}" for d, w in enumerate(n.window)]
                c.line(f"run[runs].x = x + {linear_index([self._channel(), *inputs], x_steps[:-1])};")
                c.line(f"run[runs].w = w + {linear_index(['k', *taps], w_steps[:-1])};")
                c.line("run[runs++].count = count;")
            c.line("return runs;")

    def _channel(self) -> str:
        return "k" if self.n.by_batch or self.n.groups == 1 else f"(g * {self.n.depth} + k)"

    def _range(self, c: KernelWriter, d: int) -> None:
        """Write the first position of a run along the last dimension, ``w`` and ``e``, and the length of the run."""
        w, step = self.n.window[d], _run_step(self.n)
        c.line(f"const int64_t at = s{d} * {w.stride} - ({w.padding_low});")
        c.line(f"int64_t w{d} = at < 0 ? ({w.window_dilation - 1} - at) / {w.window_dilation} : 0;")
        if w.base_dilation > 1:
            test = f"(at + w{d} * {w.window_dilation}) % {w.base_dilation}"
            c.line(f"for (int64_t tries = 0; tries < {step} && {test}; ++tries) ++w{d};")
            c.line(f"if ({test}) continue;")
        c.line(f"const int64_t e{d} = at + w{d} * {w.window_dilation}, span = {reach(w, self.x[d + 1])} - e{d};")
        c.line(f"if (span <= 0 || w{d} >= {w.size}) continue;")
        c.line(f"int64_t count = (span - 1) / {w.window_dilation * step} + 1;")
        c.line(f"const int64_t most = ({w.size - 1} - w{d}) / {step} + 1;")
        c.line("if (count > most) count = most;")

    def _slab(self, c: KernelWriter) -> None:
        """Write the function that sums some items over some rows, band by band."""
        arguments = "const KERNEL_e *x, const KERNEL_e *w, KERNEL_e *out, int64_t item, int64_t items, int64_t from"
        with c.block(f"static __attribute__((noinline)) void KERNEL_slab({arguments}, int64_t to)"):
            c.line(f"KERNEL_run run[{self.band}];")
            with c.block(f"for (int64_t l = from; l < to; l += {self.band})"):
                c.line(f"const int64_t end = to - l < {self.band} ? to : l + {self.band};")
                with c.block("for (int64_t i = item; i < items; ++i)"):
                    self._item(c, "i")
                    c.line("const int64_t runs = KERNEL_runs(x, w, spot, g, l, end, run);")
                    for panel in self.panels:
                        self._tiles(c, panel)

    def _item(self, c: KernelWriter, item: str) -> None:
        n = self.n
        c.line(
            f"const int64_t spot = {item} / {self.chunks * self.groups}, g = {item} / {self.chunks} % {self.groups};"
        )
        c.line(f"const int64_t first = {item} % {self.chunks} * {self.chunk};")
        c.line(f"const int64_t last = first + {self.chunk} < {n.batch} ? first + {self.chunk} : {n.batch};")

    def _tiles(self, c: KernelWriter, panel: Panel) -> None:
        n, width = self.n, panel.vectors * self.lanes
        image = f"g * {n.batch} + b" if n.by_batch and not self.pairs else "f" if self.pairs else "b"
        call = f"(run, runs, {image}, f, out + (spot * {n.batch} + b) * {n.features} + f, l > from);"
        with c.block(f"for (int64_t p = 0; p < {panel.count}; ++p)"):
            c.line(f"const int64_t f = g * {self.features} + {panel.first} + p * {width};")
            c.line("int64_t b = first;")
            step = f"b + {self.rows} <= last; b += {self.rows}"
            c.line(f"for (; {step}) {_tile_name(self.rows, panel.vectors, panel.skip)}{call}")
            if n.batch % self.rows:
                c.line(f"if (b < last) {_tile_name(n.batch % self.rows, panel.vectors, panel.skip)}{call}")

    def _add_shares(self, c: KernelWriter) -> None:
        """Write the function that adds the partial sums of the shares in order."""
        size = self.ins.shape.size
        with c.block("static __attribute__((noinline)) void KERNEL_add(KERNEL_e *s, int64_t count)"):
            for k in range(1, self.shares):
                c.line(f"for (int64_t j = 0; j < count; ++j) s[j] += s[j + {k * size}];")

    def _main(self, c: KernelWriter, phases: int) -> None:
        n, epilogue = self.n, self.epilogue
        x, w = (f"(const KERNEL_e *)p{k}" for k in epilogue.operands)
        total = self.ins.shape.size
        lines = self.positions * n.batch  # of features, in the result
        with c.block("static cyx_status KERNEL(void *const *bufs, int64_t begin, int64_t end)"):
            for k in range(len(epilogue.reads)):
                c.line(f"const void *const p{k} = bufs[{k}]; (void)p{k};")
            scratch = len(epilogue.reads) + (0 if self.direct else len(epilogue.writes))
            c.line(f"KERNEL_e *const store = bufs[{scratch}];")
            if phases > 1:
                c.line(f"const int64_t phase = *(const int64_t *)bufs[{scratch + 1}];")
                with c.block("if (phase == 1)"):
                    c.line(f"const int64_t first = begin * {lines} / {self.tasks};")
                    c.line(f"const int64_t count = end * {lines} / {self.tasks} - first;")
                    c.line(f"KERNEL_add(store + first * {n.features}, count * {n.features});")
                    self._finish(c, "first", "count")
                    c.line("return CYX_OK;")
            bounds = f"int64_t u = begin * {self.units} / {self.tasks}; u < end * {self.units} / {self.tasks}; ++u"
            with c.block(f"for ({bounds})"):
                c.line(f"const int64_t share = u / {self.slabs}, item = u % {self.slabs} * {self.slab_items};")
                end = f"item + {self.slab_items}"
                c.line(f"const int64_t items = {end} < {self.items} ? {end} : {self.items};")
                rows = f"share * {self.lines} / {self.shares}, (share + 1) * {self.lines} / {self.shares}"
                c.line(f"KERNEL_slab({x}, {w}, store + share * {total}, item, items, {rows});")
                if phases == 1 and not self.direct:
                    with c.block("for (int64_t i = item; i < items; ++i)"):
                        self._item(c, "i")
                        self._finish_item(c)
            c.line("return CYX_OK;")

    def _finish(self, c: KernelWriter, row: str, rows: str) -> None:
        after, features = self.epilogue.function(c, self.after), self.n.features
        c.line(f"{after}(bufs, {row}, 0, {rows}, store + {row} * {features}, {features});")

    def _finish_item(self, c: KernelWriter) -> None:
        n, after = self.n, self.epilogue.function(c, self.after)
        c.line(f"const int64_t row = spot * {n.batch} + first, f = g * {self.features};")
        c.line(f"{after}(bufs, row, f, last - first, store + row * {n.features} + f, {n.features});")


def _run_step(n: Sizes) -> int:
    """Return the distance of window positions that meet an input element, along the last dimension."""
    w = n.window[-1]
    return w.base_dilation // gcd(w.base_dilation, w.window_dilation)


def _tile_rows(count: int, most: int) -> int:
    """Return the number of rows of a tile, chosen such that the tile of the remainder is not too small."""
    # In rows: a tile of fewer than 4 takes the time of 4, each 0.2 more. Assumed; another choice costs time alone.
    return min(
        range(min(most, count), 0, -1),
        key=lambda r: count // r * (max(r, 4) + 0.2) + (max(count % r, 4) if count % r else 0),
    )


def _tile_name(rows: int, vectors: int, skip: int) -> str:
    return f"KERNEL_tile{rows}x{vectors}{f'skip{skip}' if skip else ''}"
