"""Dot of integers in register tiles.

A unit is a block of rows times a panel of columns. Both operands are packed, a block of the contracted dimension at a
time, into the words that the tile multiplies: two adjacent elements as 16-bit halves of a word if the types allow it,
which x86 multiplies and adds in one instruction, otherwise one element. Sums wrap around, so that any order and any
zero padding gives the same bits.
"""

from __future__ import annotations

from collections.abc import Sequence

from cyxla.records import dataclass
from cyxla.types import ElementType
from cyxla.xla.cpu.c import scalar
from cyxla.xla.cpu.dot.live_products import LiveProduct
from cyxla.xla.cpu.dot.product import vector_bytes
from cyxla.xla.cpu.kernel import cost, variants
from cyxla.xla.cpu.kernel.groups import Group
from cyxla.xla.cpu.kernel.kernel import Kernel, KernelKind, Step
from cyxla.xla.cpu.kernel.kernel_writer import KernelWriter, describe
from cyxla.xla.cpu.loops.epilogue import Epilogue

MAX_TILE_ROWS = 6
UNIT_TILES = 16  # tiles of a unit, one below the other
MIN_BLOCKS = 4  # row blocks, if there are as many tiles
MAX_DEPTH_WORDS = 128  # words of the contracted dimension that are packed at a time
_WORD_NS = {4: 0.012, 8: 0.03}  # ns of a multiply-add by bytes of a word; assumed: a vector of words in about 0.2 ns

# Addition of the two products of 16-bit halves to each word: macro and instruction by vector bytes, and plain C.
_PAIR = {
    64: ("__AVX512BW__", "__builtin_ia32_pmaddwd512_mask((KERNEL_h)(x), (KERNEL_h)(y), (KERNEL_s){0}, (uint16_t)-1)"),
    32: ("__AVX2__", "__builtin_ia32_pmaddwd256((KERNEL_h)(x), (KERNEL_h)(y))"),
    16: ("__SSE2__", "__builtin_ia32_pmaddwd128((KERNEL_h)(x), (KERNEL_h)(y))"),
}
_PAIRS = """\
#if defined({macro}) && !defined(__clang__)
#define KERNEL_add(c, x, y) ((c) + (KERNEL_v){builtin})
#else
#define KERNEL_low(x) (KERNEL_v)((KERNEL_s)(x) << 16 >> 16)
#define KERNEL_high(x) (KERNEL_v)((KERNEL_s)(x) >> 16)
#define KERNEL_add(c, x, y) ((c) + KERNEL_low(x) * KERNEL_low(y) + KERNEL_high(x) * KERNEL_high(y))
#endif"""
_WORDS = "#define KERNEL_add(c, x, y) ((c) + (x) * (y))"


def runs_in_tiles(result: ElementType, sizes: Sequence[int]) -> bool:
    """Return True if tiles suit a product of these sizes: batch, rows, columns, contracted."""
    _, m, n, k = sizes
    return result.is_integer and m >= 4 and n >= 4 and k >= 4


@dataclass(frozen=True)
class _Plan:
    """Blocking of a product; every choice gives the same bits."""

    result: ElementType
    types: tuple[ElementType, ElementType]
    batch: int
    m: int
    n: int
    k: int
    choice: variants.Choice

    @property
    def word_bytes(self) -> int:
        """Size of an accumulator in bytes; sums must not lose the upper bits of an operand."""
        return 8 if max(t.bits for t in (self.result, *self.types)) > 32 else 4

    @property
    def halves(self) -> int:
        """Number of elements in a word: two if all values of both operands fit in signed 16 bits."""
        fits = all(t.bits < 16 or t is ElementType.S16 for t in self.types)
        return 2 if fits and self.word_bytes == 4 else 1

    @property
    def packed_type(self) -> str:
        """C type of packed elements."""
        return "int16_t" if self.halves == 2 else f"uint{8 * self.word_bytes}_t"

    @property
    def lanes(self) -> int:
        return vector_bytes() // self.word_bytes

    @property
    def vectors(self) -> int:
        """Number of vectors in a row of a tile, limited by the registers."""
        return min(self.choice.get("vectors", self.max_vectors), -(-self.n // self.lanes))

    @property
    def max_vectors(self) -> int:
        """Limit on the vectors of a row of a tile."""
        return 4 if vector_bytes() == 64 else 2

    @property
    def width(self) -> int:
        return self.vectors * self.lanes

    @property
    def rows(self) -> int:
        return min(self.choice.get("rows", MAX_TILE_ROWS), self.m)

    @property
    def block(self) -> int:
        """Number of rows of a unit."""
        tiles = -(-self.m // self.rows)
        return self.rows * min(self.choice.get("unit", min(UNIT_TILES, -(-tiles // MIN_BLOCKS))), tiles)

    @property
    def depth(self) -> int:
        """Number of elements of the contracted dimension that are packed at a time."""
        return min(self.choice.get("depth", MAX_DEPTH_WORDS) * self.halves, -(-self.k // self.halves) * self.halves)

    @property
    def grid(self) -> tuple[int, int]:
        """Number of row blocks and of column panels."""
        return -(-self.m // self.block), -(-self.n // self.width)

    @property
    def units(self) -> int:
        """Number of blocks of rows of all panels."""
        blocks, panels = self.grid
        return self.batch * blocks * panels

    def tasks(self, ns: float) -> int:
        """Return the number of tasks of so much work."""
        return min(self.choice.get("tasks", cost.tasks(ns, self.units)), self.units)

    def axes(self, ns: float) -> variants.Axes:
        """Return the parameters of the blocking with the values to try."""
        default = {"rows": self.rows, "vectors": self.vectors, "unit": self.block // self.rows}
        axes = {
            "tasks": variants.other_tasks(self.tasks(ns), self.units, ns),
            "vectors": list(range(1, min(self.max_vectors, -(-self.n // self.lanes)) + 1)),
            "rows": [r for r in (3, 4, 5) if r <= self.m],
            "unit": [u for u in (4, 8, 16, 32) if u * self.rows <= self.m],
            "depth": [d for d in (MAX_DEPTH_WORDS // 2, 2 * MAX_DEPTH_WORDS) if d * self.halves <= self.k],
        }
        return variants.without(axes, default)

    @property
    def ns(self) -> float:
        return self.batch * self.m * self.n * self.k * _WORD_NS[self.word_bytes] / self.halves


def integer_dot(group: Group, sizes: Sequence[int], lhs: Sequence[int], rhs: Sequence[int]) -> Step:
    """Return the step for sizes (batch, rows, columns, contracted) and strides (see `dot.product.Product`)."""

    def axes() -> variants.Axes:
        epilogue = Epilogue(group, sizes[2])
        is_live = bool(LiveProduct.of(group, epilogue.arrays))
        plan = _plan(group, sizes, variants.RULES)
        return {} if is_live else plan.axes(plan.ns + epilogue.ns)

    return variants.select(group, lambda choice: _step(group, sizes, lhs, rhs, choice), axes)


def _plan(group: Group, sizes: Sequence[int], choice: variants.Choice) -> _Plan:
    left_type, right_type = (o.shape.dtype for o in group.root.operands)
    batch, m, n, k = sizes
    return _Plan(group.root.shape.dtype, (left_type, right_type), batch, m, n, k, choice)


def _step(group: Group, sizes: Sequence[int], lhs: Sequence[int], rhs: Sequence[int], choice: variants.Choice) -> Step:
    """Return the step for a choice of the blocking."""
    ins, (_, m, n, k) = group.root, sizes
    plan = _plan(group, sizes, choice)
    epilogue = Epilogue(group, n)
    live = LiveProduct.of(group, epilogue.arrays)
    ns = plan.ns + epilogue.ns
    blocks, panels = plan.grid
    units, tasks = plan.units, plan.tasks(ns)
    c = KernelWriter(epilogue.reads, epilogue.writes)
    _define_tile(c, plan)
    widths = sorted({min(plan.width, n), n % plan.width or plan.width})
    after = {} if epilogue.is_empty else {w: epilogue.function(c, w) for w in widths}
    left, right = epilogue.operands
    grid = [
        f"cyx_live_steps({text}, 0, {step}, {count})" if text else str(count)
        for text, step, count in ((live.rows, plan.block, blocks), (live.columns, plan.width, panels))
    ]
    live_units = f"{live.batch or plan.batch} * {grid[0]} * {grid[1]}" if live else units
    end, last = str(k), str(m)
    with c.kernel(live_units, tasks, describe("dot", ins.shape)):
        across, down, both = str(panels), str(blocks), str(blocks * panels)
        if live:
            down, across, end, last = (
                c.local("int64_t", text) for text in (*grid, live.depth or str(k), live.rows or str(m))
            )
            both = f"({down} * {across})"
        c.line(f"const int64_t i = u / {both}, m0 = u / {across} % {down} * {plan.block};")
        c.line(f"const int64_t n0 = u % {across} * {plan.width}, at = i * {lhs[0]}, bt = i * {rhs[0]};")
        c.line(f"const int64_t rows = m0 + {plan.block} < {last} ? {plan.block} : {last} - m0;")
        c.line(f"const int64_t columns = n0 + {plan.width} < {n} ? {plan.width} : {n} - n0;")
        halves, aligned = plan.halves, "__attribute__((aligned(64)))"
        c.line(f"{plan.packed_type} x[{plan.block * plan.depth}] {aligned}, y[{plan.depth * plan.width}] {aligned};")
        c.line(f"KERNEL_e s[{plan.block * plan.width}] {aligned};")
        c.line("__builtin_memset(x, 0, sizeof x);")
        c.line("__builtin_memset(y, 0, sizeof y);")
        if live.depth:
            c.line(f"if (!{end}) __builtin_memset(s, 0, sizeof s);")
        with c.block(f"for (int64_t k0 = 0; k0 < {end}; k0 += {plan.depth})"):
            c.line(f"const int64_t depth = k0 + {plan.depth} < {end} ? {plan.depth} : {end} - k0;")
            _pack_rows(c, plan, f"p{left} + at", lhs)
            _pack_columns(c, plan, f"p{right} + bt", rhs)
            call = f"KERNEL_tile((const KERNEL_e *)x + r * {plan.depth // halves}, (const KERNEL_e *)y, "
            with c.block(f"for (int64_t r = 0; r < rows; r += {plan.rows})"):
                c.line(f"{call}s + r * {plan.width}, (depth + {halves - 1}) / {halves}, k0 > 0);")
        with c.block("for (int64_t r = 0; r < rows; ++r)"):
            _store(c, plan, widths, after)
    return epilogue.step(live.with_short_work(Kernel(c.text(), tasks, ns, 0, KernelKind.DOT), sizes))


def _define_tile(c: KernelWriter, plan: _Plan) -> None:
    """Write ``KERNEL_tile(x, y, s, k, more)``, which stores the products of `k` words or adds them to the sums."""
    bits = 8 * plan.word_bytes
    for name, kind in (("v", f"uint{bits}_t"), ("s", f"int{bits}_t"), ("h", "int16_t")):
        c.line(f"typedef {kind} KERNEL_{name} __attribute__((vector_size({vector_bytes()}), may_alias));")
    c.line(f"typedef uint{bits}_t KERNEL_e __attribute__((may_alias));")
    macro, builtin = _PAIR[vector_bytes()]
    c.lines((_PAIRS.format(macro=macro, builtin=builtin) if plan.halves == 2 else _WORDS).splitlines())
    tile = [(r, v) for r in range(plan.rows) for v in range(plan.vectors)]
    row_words = plan.depth // plan.halves
    arguments = "const KERNEL_e *x, const KERNEL_e *y, KERNEL_e *s, int64_t k, int more"
    with c.block(f"static __attribute__((noinline)) void KERNEL_tile({arguments})"):
        c.line(f"KERNEL_v {', '.join(f'c{r}_{v} = {{0}}' for r, v in tile)};")
        addresses = {(r, v): f"*(KERNEL_v *)(s + {r * plan.width + v * plan.lanes})" for r, v in tile}
        with c.block("if (more)"):
            c.lines([f"c{r}_{v} = {addresses[r, v]};" for r, v in tile])
        with c.block(f"for (int64_t q = 0; q < k; ++q, y += {plan.width})"):
            loads = [f"b{v} = *(const KERNEL_v *)(y + {v * plan.lanes})" for v in range(plan.vectors)]
            c.line(f"const KERNEL_v {', '.join(loads)};")
            for r in range(plan.rows):
                c.line(f"const KERNEL_v a{r} = (KERNEL_v){{0}} + x[{r * row_words} + q];")
                c.lines([f"c{r}_{v} = KERNEL_add(c{r}_{v}, a{r}, b{v});" for v in range(plan.vectors)])
        c.lines([f"{addresses[r, v]} = c{r}_{v};" for r, v in tile])


def _pack_rows(c: KernelWriter, plan: _Plan, base: str, steps: Sequence[int]) -> None:
    with c.block("for (int64_t r = 0; r < rows; ++r)"):
        element = scalar.load(plan.types[0], f"({base})[(m0 + r) * {steps[1]} + (k0 + q) * {steps[2]}]")
        c.line(f"for (int64_t q = 0; q < depth; ++q) x[r * {plan.depth} + q] = ({plan.packed_type}){element};")
        if plan.halves == 2:  # stale element of the previous block
            c.line(f"if (depth % 2) x[r * {plan.depth} + depth] = 0;")


def _pack_columns(c: KernelWriter, plan: _Plan, base: str, steps: Sequence[int]) -> None:
    """Write the packing of a panel with pairs of rows interleaved; an odd last row is paired with zeros."""

    def element(q: str) -> str:
        return scalar.load(plan.types[1], f"({base})[(k0 + {q}) * {steps[1]} + (n0 + j) * {steps[2]}]")

    if plan.halves == 1:
        with c.block("for (int64_t q = 0; q < depth; ++q)"):
            c.line(
                f"for (int64_t j = 0; j < columns; ++j) y[q * {plan.width} + j] = ({plan.packed_type}){element('q')};"
            )
        return
    with c.block("for (int64_t q = 0; q < depth; q += 2)"):
        c.line("const int64_t other = q + 1 < depth ? q + 1 : q;")
        c.line(f"{plan.packed_type} *const restrict to = y + q * {plan.width};")
        with c.block("for (int64_t j = 0; j < columns; ++j)"):
            c.line(f"to[2 * j] = ({plan.packed_type}){element('q')};")
            c.line(f"to[2 * j + 1] = ({plan.packed_type}){element('other')};")


def _store(c: KernelWriter, plan: _Plan, widths: Sequence[int], after: dict[int, str]) -> None:
    c.line(f"const int64_t row = i * {plan.m} + m0 + r;")
    value = scalar.store(plan.result, scalar.wrap(plan.result, f"s[r * {plan.width} + j]"))
    if not after:
        c.line(f"for (int64_t j = 0; j < columns; ++j) r0[row * {plan.n} + n0 + j] = {value};")
        return
    c.line(f"{scalar.storage_type(plan.result)} sums[{plan.width}];")
    c.line(f"for (int64_t j = 0; j < columns; ++j) sums[j] = {value};")
    for width in widths:
        c.line(f"if (columns == {width}) {after[width]}(bufs, row, n0, 1, sums, 0);")
