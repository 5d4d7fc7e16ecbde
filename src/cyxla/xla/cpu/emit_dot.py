"""dot in f32 and f64: tiles of the result in vector registers.

The result is cut into panels of columns and chunks of rows; a task does some of these. Within one, a tile of a few
rows by a few vectors stays in registers while the contracted dimension runs: a row of the right operand, times one
element of the left for each row. The right operand is read where it lies, or copied into a panel first when its
columns are no neighbours, when the last vector would be cut, or when its rows lie a multiple of a page apart. Each
element is made of chains of fused multiply-adds, of fixed length, in the order of the contracted dimension: neither
tiles nor threads change a bit.

With few rows, and an operand whose contracted dimension is the contiguous one, the columns are dot products along
it.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

from cyxla.types import ElementType
from cyxla.xla.cpu import cost
from cyxla.xla.cpu.c_writer import CWriter
from cyxla.xla.cpu.emit_dot_plain import check_plain, plain_dot
from cyxla.xla.cpu.emitters import emits_group, fusible
from cyxla.xla.cpu.epilogue import Epilogue
from cyxla.xla.cpu.fusion import Group
from cyxla.xla.cpu.kernel import Kernel, Step
from cyxla.xla.cpu.sums import FUSED
from cyxla.xla.cpu.toolchain import VECTOR_BITS, isa_level
from cyxla.xla.hlo import Instruction
from cyxla.xla.passes.expand_dot import DotDims, merged_stride, walkable

FLOPS_NS = 60.0  # multiply-adds of f32 per ns on one core, about half of what the best tile reaches
FEW_ROWS = 4
COLUMNS = 16  # dot products of one unit of work
STACK_BYTES = 48 << 10  # largest panel on a thread's stack
PAGE = 4096
READERS = 240
CHAIN = 512  # products added up before the sum is set aside
#: Rows of a tile by its vectors, where there are 32 vector registers, and where there are 16.
ROWS = {32: {1: 14, 2: 12, 3: 8, 4: 6}, 16: {1: 10, 2: 6}}


@dataclass(frozen=True)
class Product:
    """``out[b, m, n] = sum over k of lhs[b, m, k] * rhs[b, k, n]``, with strides in elements; `out` is dense."""

    dtype: ElementType
    batch: int
    m: int
    n: int
    k: int
    lhs: tuple[int, int, int]  # strides of b, m, k
    rhs: tuple[int, int, int]  # strides of b, k, n

    @property
    def swapped(self) -> Product:
        """The same sums with the operands' parts exchanged; equal memory when the result has one row or one column."""
        (ab, am, ak), (bb, bk, bn) = self.lhs, self.rhs
        return Product(self.dtype, self.batch, self.n, self.m, self.k, (bb, bn, bk), (ab, ak, am))

    @property
    def ns(self) -> float:
        """Estimated time on one core."""
        flops = self.batch * self.m * self.n * self.k
        rate = FLOPS_NS if self.dtype is ElementType.F32 else FLOPS_NS / 2
        nbytes = self.batch * self.k * (self.m + self.n) * self.dtype.itemsize
        return max(flops / rate, cost.memory_ns(nbytes))


def product_of(ins: Instruction) -> Product:
    """Read a dot's sizes and strides."""
    lhs, rhs = (o.shape for o in ins.operands)
    d = DotDims.of(ins)
    batch, m, k = (prod(lhs.dims[i] for i in part) for part in d[:3])
    n = prod(rhs.dims[i] for i in d.rhs_free)
    a = tuple(merged_stride(lhs, part) or 0 for part in d[:3])
    b = tuple(merged_stride(rhs, part) or 0 for part in (d.rhs_batch, d.rhs_contracting, d.rhs_free))
    return Product(ins.shape.dtype, batch, m, n, k, a, b)  # type: ignore[arg-type]


def _check(ins: Instruction) -> str | None:
    d = DotDims.of(ins)
    groups = (d[:3], (d.rhs_batch, d.rhs_contracting, d.rhs_free))
    if not all(walkable(o.shape, g) for o, g in zip(ins.operands, groups, strict=True)):
        return "its dimensions are not in the order that kernels take"
    return None if _is_tiled(ins) else check_plain(ins)


def _is_tiled(ins: Instruction) -> bool:
    types = {ins.shape.dtype, *(o.shape.dtype for o in ins.operands)}
    return len(types) == 1 and types <= {ElementType.F32, ElementType.F64}


fusible("dot", check=_check)


@emits_group("dot")
def dot(group: Group) -> Step:
    """The kernel of one dot and what follows it."""
    ins = group.root
    product = product_of(ins)
    if not _is_tiled(ins):
        return plain_dot(group, (product.batch, product.m, product.n, product.k), product.lhs, product.rhs)
    epilogue = Epilogue(group, product.m if product.n == 1 else product.n)
    left, right = epilogue.operands
    if product.n == 1 and product.m > 1:
        product, left, right = product.swapped, right, left
    form = _RowsOfDots if _along_k(product) else _Tiled
    return epilogue.step(form(product, Output(epilogue, left, right)).kernel())


@dataclass
class Output:
    """Where a kernel's operands lie among its buffers, and where its sums go."""

    epilogue: Epilogue
    left: int
    right: int

    def pointers(self, c: CWriter) -> None:
        """Declare the operands ``a`` and ``b``, and the result where sums are stored as they are."""
        c.line(f"const KERNEL_e *const a = bufs[{self.left}], *const b = bufs[{self.right}];")
        if self.epilogue.is_empty:
            c.line(f"KERNEL_e *const out = bufs[{len(self.epilogue.reads)}];")

    @property
    def scratch(self) -> int:
        """The number of the scratch buffer."""
        return len(self.epilogue.reads) + len(self.epilogue.writes)


def _along_k(p: Product) -> bool:
    return p.m <= FEW_ROWS and p.lhs[2] == p.rhs[1] == 1 and p.rhs[2] != 1 and p.n > 0


def _c_type(p: Product) -> str:
    return "float" if p.dtype is ElementType.F32 else "double"


# --- tiles ----------------------------------------------------------------------------------------------------------


class _Tiled:
    """Chooses panels, chunks and tiles for a product and writes its kernel."""

    def __init__(self, p: Product, output: Output) -> None:
        self.p, self.output = p, output
        self.direct = output.epilogue.is_empty
        self.c = _c_type(p)
        bits = VECTOR_BITS.get(isa_level(), 128)
        self.bytes = bits // 8
        self.lanes = self.bytes // p.dtype.itemsize
        table = ROWS[32 if bits == 512 else 16]
        needed = max(1, -(-p.n // self.lanes))
        widest = 8 if p.m == 1 else max(table)
        self.vectors = min(needed, widest)
        self.width = self.vectors * self.lanes
        self.panels = max(1, -(-p.n // self.width))
        self.last = p.n - (self.panels - 1) * self.width  # columns of the last panel
        self.last_vectors = max(1, -(-self.last // self.lanes))
        self.rows = max(1, min(p.m, 1 if p.m == 1 else table[min(self.vectors, max(table))]))
        apart = p.rhs[1] * p.dtype.itemsize
        # Copying pays when enough rows read the copy.
        self.packs_all = p.rhs[2] != 1 or (apart % PAGE == 0 and apart > 0 and p.m >= 4 * self.rows)
        self.packs_last = self.packs_all or self.last % self.lanes != 0
        self.panel_bytes = -(-p.k * self.width * p.dtype.itemsize // 64) * 64
        self.on_stack = self.panel_bytes <= STACK_BYTES
        self.ns = p.ns + output.epilogue.ns
        wanted = cost.tasks(self.ns, max(1, p.batch * self.panels * -(-p.m // self.rows)))
        self.chunk_rows = self._chunk_rows(wanted)
        self.chunks = max(1, -(-p.m // self.chunk_rows))
        self.units = max(1, p.batch * self.panels * self.chunks)
        self.tasks = min(wanted, self.units)

    def _chunk_rows(self, tasks: int) -> int:
        """Rows of a chunk: units for all the tasks, but at least `READERS` rows to share a copied panel."""
        chunks = max(1, -(-tasks // max(1, self.p.batch * self.panels)))
        least = max(1, -(-self.p.m // chunks), READERS if self.packs_all else 1)
        return -(-min(least, max(self.p.m, 1)) // self.rows) * self.rows

    def kernel(self) -> Kernel:
        c = CWriter()
        c.lines(FUSED.splitlines())
        c.line(f"typedef {self.c} KERNEL_v __attribute__((vector_size({self.bytes})));")
        c.line(f"typedef {self.c} KERNEL_u __attribute__((vector_size({self.bytes}), aligned(1), may_alias));")
        c.line(f"typedef {self.c} KERNEL_e __attribute__((aligned(1), may_alias));")
        tiles = self._tiles()
        for rows, vectors, packed, cut in tiles:
            self._tile(c, rows, vectors, packed, cut)
        if self.packs_last:
            self._pack(c)
        if not self.direct:
            for width in dict.fromkeys([self.width] * (self.panels > 1) + [self.last]):
                self.output.epilogue.function(c, width)
        self._main(c)
        scratch = self.tasks * self.panel_bytes if self.packs_last and not self.on_stack else 0
        return Kernel(c.text(), self.tasks, self.ns, scratch, "dot")

    def _panel_kinds(self) -> list[tuple[int, bool, bool]]:
        """(vectors, packed, cut) of the panels before the last, if any, then of the last."""
        kinds = [(self.vectors, self.packs_all, False)] if self.panels > 1 else []
        return [*kinds, (self.last_vectors, self.packs_last, self.direct and self.last % self.lanes != 0)]

    def _tiles(self) -> list[tuple[int, int, bool, bool]]:
        rest = self.p.m % self.rows
        rows = [self.rows, rest] if rest else [self.rows]
        return list(dict.fromkeys((r, *kind) for kind in self._panel_kinds() for r in rows))

    def _tile(self, c: CWriter, rows: int, vectors: int, packed: bool, cut: bool) -> None:
        """One tile: all of the contracted dimension, then the store."""
        p, step = self.p, self._panel_step(packed)
        head = f"static CYX_FUSED __attribute__((noinline)) void {_tile_name(rows, vectors, packed, cut)}"
        with c.block(f"{head}(const KERNEL_e *restrict a, const KERNEL_e *restrict b, KERNEL_e *restrict o)"):
            c.line("CYX_FUSE")
            places = [f"{r}_{v}" for r in range(rows) for v in range(vectors)]
            if p.k <= CHAIN:
                self._chain(c, rows, vectors, step, "0", str(p.k))
            else:  # links of a chain are added up by themselves: shorter sums lose less
                c.line("KERNEL_v " + ", ".join(f"t{at} = {{0}}" for at in places) + ";")
                with c.block(f"for (int64_t from = 0; from < {p.k}; from += {CHAIN})"):
                    c.line(f"const int64_t to = {p.k} - from < {CHAIN} ? {p.k} : from + {CHAIN};")
                    self._chain(c, rows, vectors, step, "from", "to")
                    c.line(" ".join(f"t{at} += c{at};" for at in places))
            for r in range(rows):
                self._store(c, r, vectors, cut, "c" if p.k <= CHAIN else "t")

    def _chain(self, c: CWriter, rows: int, vectors: int, step: int, start: str, end: str) -> None:
        """Sums ``c..`` over a range of the contracted dimension."""
        p, lanes = self.p, self.lanes
        zeros = ", ".join(f"c{r}_{v} = {{0}}" for r in range(rows) for v in range(vectors))
        c.line(f"KERNEL_v {zeros};")
        with c.block(f"for (int64_t k = {start}; k < {end}; ++k)"):
            loads = ", ".join(f"b{v} = *(const KERNEL_u *)(b + k * {step} + {v * lanes})" for v in range(vectors))
            c.line(f"const KERNEL_v {loads};")
            for r in range(rows):
                c.line(f"const {self.c} a{r} = a[{r * p.lhs[1]} + k * {p.lhs[2]}];")
                c.line(" ".join(f"c{r}_{v} += a{r} * b{v};" for v in range(vectors)))

    def _store(self, c: CWriter, row: int, vectors: int, cut: bool, sums: str) -> None:
        n, lanes = self.apart, self.lanes
        whole = vectors - 1 if cut else vectors
        for v in range(whole):
            c.line(f"*(KERNEL_u *)(o + {row * n + v * lanes}) = {sums}{row}_{v};")
        if cut:
            left = (self.last % lanes) * self.p.dtype.itemsize
            c.line(f"__builtin_memcpy(o + {row * n + whole * lanes}, &{sums}{row}_{whole}, {left});")

    @property
    def apart(self) -> int:
        """Elements between rows of what a tile stores."""
        return self.p.n if self.direct else self.width

    def _panel_step(self, packed: bool) -> int:
        return self.width if packed else self.p.rhs[1]

    def _pack(self, c: CWriter) -> None:
        """Copy a panel of the right operand, columns side by side, zeros after the last."""
        p, width = self.p, self.width
        args = "const KERNEL_e *restrict b, KERNEL_e *restrict to, int64_t columns"
        with c.block(f"static __attribute__((noinline)) void KERNEL_pack({args})"):
            inner, outer = ("n", "k") if p.rhs[2] <= p.rhs[1] else ("k", "n")
            bound = {"n": "columns", "k": str(p.k)}
            with c.block(f"if (columns < {width})"), c.block(f"for (int64_t k = 0; k < {p.k}; ++k)"):
                c.line(f"for (int64_t n = columns; n < {width}; ++n) to[k * {width} + n] = 0;")
            with c.block(f"for (int64_t {outer} = 0; {outer} < {bound[outer]}; ++{outer})"):
                c.line(f"for (int64_t {inner} = 0; {inner} < {bound[inner]}; ++{inner})")
                c.line(f"  to[k * {width} + n] = b[k * {p.rhs[1]} + n * {p.rhs[2]}];")

    def _main(self, c: CWriter) -> None:
        p = self.p
        with c.block("static cyx_status KERNEL(void *const *bufs, int64_t begin, int64_t end)"):
            self.output.pointers(c)
            with c.block(
                f"for (int64_t u = begin * {self.units} / {self.tasks}; u < end * {self.units} / {self.tasks}; ++u)"
            ):
                c.line(
                    f"const int64_t chunk = u % {self.chunks}, panel = u / {self.chunks} % {self.panels}, "
                    f"batch = u / {self.chunks * self.panels};"
                )
                c.line(f"const KERNEL_e *at = a + batch * {p.lhs[0]} + chunk * {self.chunk_rows * p.lhs[1]};")
                c.line(f"const KERNEL_e *bt = b + batch * {p.rhs[0]} + panel * {self.width * p.rhs[2]};")
                if self.direct:
                    at = f"batch * {p.m * p.n} + chunk * {self.chunk_rows * p.n} + panel * {self.width}"
                    c.line(f"KERNEL_e *ot = out + {at};")
                else:
                    size = self.rows * self.width
                    c.line(f"{self.c} sums[{size}] __attribute__((aligned(64)));")
                    c.line(f"const int64_t first = batch * {p.m} + chunk * {self.chunk_rows};")
                c.line(
                    f"const int64_t rest = {p.m} - chunk * {self.chunk_rows}, "
                    f"rows = rest < {self.chunk_rows} ? rest : {self.chunk_rows};"
                )
                self._packing(c)
                *full, last = self._panel_kinds()
                if full:
                    with c.block(f"if (panel < {self.panels - 1})"):
                        self._rows(c, self.width, *full[0])
                    with c.block("else"):
                        self._rows(c, self.last, *last)
                else:
                    self._rows(c, self.last, *last)
            c.line("return CYX_OK;")

    def _packing(self, c: CWriter) -> None:
        if not self.packs_last:
            return
        size = max(self.p.k, 1) * self.width
        if self.on_stack:
            c.line(f"{self.c} store[{size}] __attribute__((aligned(64)));")
        else:
            place = f"(char *)bufs[{self.output.scratch}] + begin * {self.panel_bytes}"
            c.line(f"{self.c} *const store = ({self.c} *)({place});")
        columns = f"panel < {self.panels - 1} ? {self.width} : {self.last}" if self.panels > 1 else str(self.last)
        when = "" if self.packs_all or self.panels == 1 else f"if (panel == {self.panels - 1}) "
        c.line(f"{when}{{ KERNEL_pack(bt, (KERNEL_e *)store, {columns}); bt = (const KERNEL_e *)store; }}")

    def _rows(self, c: CWriter, columns: int, vectors: int, packed: bool, cut: bool) -> None:
        rest = self.p.m % self.rows
        c.line("int64_t m = 0;")
        whole = self._tile_call(self.rows, columns, (vectors, packed, cut), c)
        c.line(f"for (; m + {self.rows} <= rows; m += {self.rows}) {{ {whole} }}")
        if rest:
            c.line(f"if (m < rows) {{ {self._tile_call(rest, columns, (vectors, packed, cut), c)} }}")

    def _tile_call(self, rows: int, columns: int, kind: tuple[int, bool, bool], c: CWriter) -> str:
        p, name = self.p, _tile_name(rows, *kind)
        if self.direct:
            return f"{name}(at + m * {p.lhs[1]}, bt, ot + m * {p.n});"
        after = self.output.epilogue.function(c, columns)
        return (
            f"{name}(at + m * {p.lhs[1]}, bt, (KERNEL_e *)sums); "
            f"{after}(bufs, first + m, panel * {self.width}, {rows}, sums, {self.width});"
        )


def _tile_name(rows: int, vectors: int, packed: bool, cut: bool) -> str:
    return f"KERNEL_{rows}x{vectors}{'p' if packed else ''}{'c' if cut else ''}"


# --- along the contracted dimension ---------------------------------------------------------------------------------


class _RowsOfDots:
    """Each element by itself: four vectors run along both operands and are added in a fixed tree at the end."""

    def __init__(self, p: Product, output: Output) -> None:
        self.p, self.output = p, output
        self.ns = p.ns + output.epilogue.ns
        self.width = min(p.n, COLUMNS)
        self.blocks = -(-p.n // self.width)
        self.last = p.n - (self.blocks - 1) * self.width

    def kernel(self) -> Kernel:
        """The kernel; a unit of work is a few columns."""
        p, c, direct = self.p, CWriter(), self.output.epilogue.is_empty
        self._dot(c)
        widths = dict.fromkeys((self.width, self.last))
        functions = {} if direct else {w: self.output.epilogue.function(c, w) for w in widths}
        units = p.batch * self.blocks
        tasks = cost.tasks(self.ns, units)
        with c.block("static cyx_status KERNEL(void *const *bufs, int64_t begin, int64_t end)"):
            self.output.pointers(c)
            with c.block(f"for (int64_t u = begin * {units} / {tasks}; u < end * {units} / {tasks}; ++u)"):
                c.line(f"const int64_t batch = u / {self.blocks}, from = u % {self.blocks} * {self.width};")
                c.line(f"const int64_t width = from + {self.width} <= {p.n} ? {self.width} : {self.last};")
                if direct:
                    c.line(f"KERNEL_e *const to = out + batch * {p.m * p.n} + from;")
                else:
                    c.line(f"{_c_type(p)} to[{p.m * self.width}] __attribute__((aligned(64)));")
                with c.block(f"for (int64_t n = 0; n < width; ++n) for (int64_t m = 0; m < {p.m}; ++m)"):
                    left = f"a + batch * {p.lhs[0]} + m * {p.lhs[1]}"
                    right = f"b + batch * {p.rhs[0]} + (from + n) * {p.rhs[2]}"
                    c.line(f"to[m * {p.n if direct else self.width} + n] = KERNEL_dot({left}, {right});")
                for width, name in functions.items():
                    c.line(f"if (width == {width}) {name}(bufs, batch * {p.m}, from, {p.m}, to, {self.width});")
            c.line("return CYX_OK;")
        return Kernel(c.text(), tasks, self.ns, 0, "dot")

    def _dot(self, c: CWriter) -> None:
        lanes, ctype = 64 // self.p.dtype.itemsize, _c_type(self.p)
        c.lines(FUSED.splitlines())
        c.line(f"typedef {ctype} KERNEL_v __attribute__((vector_size(64)));")
        c.line(f"typedef {ctype} KERNEL_u __attribute__((vector_size(64), aligned(1), may_alias));")
        c.line(f"typedef {ctype} KERNEL_e __attribute__((aligned(1), may_alias));")
        with c.block(
            f"static CYX_FUSED __attribute__((noinline)) {ctype} "
            "KERNEL_dot(const KERNEL_e *restrict a, const KERNEL_e *restrict b)"
        ):
            c.line("CYX_FUSE")
            c.line("KERNEL_v s0 = {0}, s1 = {0}, s2 = {0}, s3 = {0};")
            c.line("int64_t k = 0;")
            with c.block(f"for (; k + {4 * lanes} <= {self.p.k}; k += {4 * lanes})"):
                for v in range(4):
                    at = f"k + {v * lanes}"
                    c.line(f"s{v} += *(const KERNEL_u *)(a + {at}) * *(const KERNEL_u *)(b + {at});")
            with c.block(f"for (; k + {lanes} <= {self.p.k}; k += {lanes})"):
                c.line("s0 += *(const KERNEL_u *)(a + k) * *(const KERNEL_u *)(b + k);")
            c.line("s0 = (s0 + s1) + (s2 + s3);")
            c.line(f"{ctype} t[{lanes}];")
            c.line("__builtin_memcpy(t, &s0, 64);")
            width = lanes // 2
            while width:
                c.line(f"for (int l = 0; l < {width}; ++l) t[l] += t[l + {width}];")
                width //= 2
            c.line(f"for (; k < {self.p.k}; ++k) t[0] += a[k] * b[k];")
            c.line("return t[0];")
