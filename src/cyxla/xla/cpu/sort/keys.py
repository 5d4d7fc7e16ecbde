"""Sort by keys that tell elements, or elements and their indices, apart: no record is needed beside the key.

If the key of an element gives back the element, the keys alone are sorted. Else a key of 32 bits and the index in the
row make one of 64, so that equal elements keep their order. Either way keys of a row that are equal are of equal
elements, so the sorted row does not depend on the algorithm.

Zeros of both signs, and NaNs, may be equal to a comparator although their bits differ. Their keys are equal, so they
are written once more in the order of the operand, if a row has any that their key would not give back.

The sort itself is the same C for all programs (``sort_rows.h``). If keys follow from the elements' bits, the whole
kernel comes prebuilt (`prebuilt.sort`); else generated code loads the keys and stores the results.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import log2

from cyxla.records import dataclass
from cyxla.types import ElementType
from cyxla.xla.cpu.c import scalar
from cyxla.xla.cpu.c.writer import CWriter
from cyxla.xla.cpu.kernel import cost, prebuilt_calls
from cyxla.xla.cpu.kernel.array_types import memory_type
from cyxla.xla.cpu.kernel.kernel import Kernel, KernelKind, Step
from cyxla.xla.cpu.kernel.kernel_writer import KernelWriter, describe
from cyxla.xla.cpu.kernel.shared_kernel import prebuilt_kernel, standalone_kernel
from cyxla.xla.cpu.sort.contents import Content
from cyxla.xla.cpu.sort.order import Order, total_key
from cyxla.xla.cpu.sort.rows import Rows
from cyxla.xla.cpu.sort.templates import MAX_BUCKETS, MAX_CHUNKS, keys_text, row_bytes, rows_text, split_bytes
from cyxla.xla.hlo import Instruction

_MIN_SPLIT_LENGTH = 1 << 15  # shortest row that is split
_BUCKET_KEYS = 1 << 16  # approximate number of keys in a bucket
_MANY_ROWS = 8  # number of rows from which no row is split
# Rows of 1,000 to 65,536 keys take 0.9 to 1.1 times the estimate in 32 bits, 1.1 to 1.4 in 64 (SPR, see `machine`).
LEVEL_NS = {32: 0.2, 64: 0.4}  # ns of a key in one level of sorting
_KEY_NS = 0.5  # ns to compute a key and to store its element
GATHER_NS = 1.5  # ns to load an element by its index


def can_sort_keys(rows: Rows, order: Order) -> bool:
    """Return whether a key, with the index in the row if need be, fits into 64 bits."""
    return order.bits <= 32 or (len(rows.types) == 1 and order.inverse is not None)


def sort_keys(ins: Instruction, rows: Rows, order: Order) -> Step:
    """Emit a sort by keys."""
    return _Sorter(ins, rows, order).step()


def _buckets(rows: Rows) -> int:
    """Return the number of buckets of a row, a power of two; 1 if it is not split."""
    if rows.count >= _MANY_ROWS or rows.length < _MIN_SPLIT_LENGTH:
        return 1
    return min(MAX_BUCKETS, 1 << max(1, (rows.length // _BUCKET_KEYS).bit_length() - 1))


@dataclass
class _Sorter:
    """A sort of rows by keys."""

    ins: Instruction
    rows: Rows
    order: Order

    def __post_init__(self) -> None:
        self.operands, self.writes = self.rows.operands(self.ins, self.order), tuple(self.rows.writes(self.ins))
        self.reads = (*self.operands, *self.rows.sizes)
        self.keys_only = len(self.rows.types) == 1 and self.order.inverse is not None  # keys without indices
        self.is_lossy = self.keys_only and self.order.inverse == "lossy"
        self.bits = max(self.order.bits, 32) if self.keys_only else 64
        self.key_type = f"uint{self.bits}_t"
        self.contents = self.rows.contents(self.ins)
        self.note = describe("sort", self.ins.operands[0].shape)

    def step(self) -> Step:
        """Emit the kernel, whose units of work are rows; or chunks, then buckets, then once more rows."""
        rows = self.rows
        buckets = 1 if self.by_row else _buckets(rows)
        size, chunks = rows.count * rows.length, min(buckets, MAX_CHUNKS)
        element_ns = _KEY_NS if self.keys_only else _KEY_NS + GATHER_NS * len(rows.types)
        ns = size * (LEVEL_NS[self.bits] * log2(max(rows.length, 2)) + _KEY_NS + element_ns)
        is_split = buckets > 1
        nbytes = row_bytes(self.bits // 8, rows.length)
        tasks = cost.tasks(ns, rows.count * buckets) if is_split else rows.tasks(ns, nbytes)
        scratch = split_bytes(self.bits // 8, rows.count, rows.length, buckets, chunks) if is_split else tasks * nbytes
        numbers = [tasks, rows.count, rows.length, rows.step, buckets, chunks, 2 * len(rows.types)]
        template = Kernel(self.note, tasks, ns, scratch, KernelKind.SORT, (2 + self.is_lossy) if is_split else 1)
        if rows.sizes:
            kernel = self.live(numbers, template, nbytes)
        else:
            kernel = self.prebuilt(numbers, template) or standalone_kernel(self.text(), numbers, template)
        in_place = ((0, 0),) if self.keys_only and not self.is_lossy else ()
        return Step(kernel, self.reads, self.writes, in_place=in_place)

    @property
    def by_row(self) -> bool:
        """True if rows are sorted one by one: of each a part matters, and the length is the distance of rows."""
        return bool(self.rows.live_length) and self.rows.count > 1 and self.rows.step != self.rows.count

    # ------------------------------------------------------------------------------------------------ the kernel
    def prebuilt(self, numbers: list[int], template: Kernel) -> Kernel | None:
        """Return the prebuilt kernel, if keys follow from bits and there is one."""
        function = self._function()
        if function is None:
            return None
        name, more = function
        return prebuilt_kernel(name, [*numbers, *more], template, numbers[6] + (2 if template.phases > 1 else 1))

    def _function(self) -> tuple[str, list[int]] | None:
        """Return the name of the prebuilt function and its last numbers, if keys follow from bits."""
        pattern = self.order.pattern(self.rows.types[self.order.operand])
        if pattern is None:
            return None
        name = f"{'sort' if self.keys_only else 'order'}_{pattern.width}"
        moves = {Content.ELEMENTS: 1, Content.INDICES: -1, Content.UNUSED: 0}
        sizes = [t.itemsize * moves[content] for t, content in zip(self.rows.types, self.contents, strict=True)]
        return name, [*pattern.numbers, int(self.is_lossy), self.order.operand, *sizes]

    def live(self, numbers: list[int], template: Kernel, nbytes: int) -> Kernel:
        """Return a kernel that sorts a part of the rows, or of each row; the numbers of these replace those of all."""
        function, rows = self._function(), self.rows
        name, more = ("", []) if function is None else function
        pointer = prebuilt_calls.pointer(name) if name else None
        c = CWriter()
        if pointer is None:
            c.lines(self.text().splitlines())
        operands, arrays = len(self.operands), list(range(len(self.operands)))
        last = len(self.reads) + len(self.writes)
        buffers = [f"bufs[{k}]" for k in (*arrays, *range(len(self.reads), last))]
        buffers += [f"bufs[{last}]"] + ([f"bufs[{last + 1}]"] if template.phases > 1 else [])
        run = "KERNEL_run(numbers, all + 1, {})" if pointer is None else pointer + "(all + 1, {})"
        c.line(f"/* {self.note} */")
        with c.block("static cyx_status KERNEL(void *const *bufs, int64_t begin, int64_t end)"):
            c.line(f"int64_t numbers[] = {{{', '.join(map(str, [*numbers, *more]))}}};")
            c.line(f"const int64_t rows = {rows.count_text};")
            c.line(f"numbers[2] = {rows.length_text};")
            if not self.by_row:
                c.line("numbers[1] = rows;")
                c.line(f"void *const all[] = {{numbers, {', '.join(buffers)}}};")
                c.line(f"return {run.format('begin, end')};")
            else:
                c.line("numbers[0] = numbers[1] = 1;")
                with c.block(f"for (int64_t u = begin * rows / {numbers[0]}; u < end * rows / {numbers[0]}; ++u)"):
                    c.line(f"const int64_t at = {rows.start('u')};")
                    sizes = [t.itemsize for t in (*rows.types, *rows.types)]
                    shifted = [f"(char *){b} + at * {n}" for b, n in zip(buffers, sizes, strict=False)]
                    shifted.append(f"(char *){buffers[2 * operands]} + begin * {nbytes}")
                    c.line(f"void *const all[] = {{numbers, {', '.join(shifted)}}};")
                    c.line(f"const cyx_status s = {run.format('0, 1')};")
                    c.line("if (s) return s;")
                c.line("return CYX_OK;")
        return rows.with_short_work(replace(template, text=c.text()))

    def text(self) -> str:
        """Return the kernel's C, with that of sorting keys unless it is prebuilt."""
        c = KernelWriter(self.reads, self.writes)
        self._element_functions(c)
        sort, spread = (prebuilt_calls.pointer(f"keys{self.bits}_{name}") for name in ("sort", "spread"))
        if sort is None:
            keys = keys_text(self.bits, "KERNEL_keys")
        else:
            keys = f"#define KERNEL_keys_sort {sort}\n#define KERNEL_keys_spread {spread}\n"
        return c.text() + keys + rows_text(self.bits, "KERNEL_keys", "KERNEL")

    def _element_functions(self, c: KernelWriter) -> None:
        """Write the functions that `rows_text` asks for."""
        head = "static {} KERNEL_{}(const int64_t *q, void *const *bufs, int64_t at{})"
        with c.block(head.format("uint32_t", "load_keys", f", int64_t low, int64_t high, {self.key_type} *x")):
            self._pointers(c, [self.order.operand], [])
            c.line("x -= low; (void)q;")
            self._load_keys(c)
        with c.block(head.format("void", "store", f", int64_t low, int64_t high, const {self.key_type} *x")):
            moved = [n for n, content in enumerate(self.contents) if content is Content.ELEMENTS]
            stored = [n for n, content in enumerate(self.contents) if content is not Content.UNUSED]
            self._pointers(c, [] if self.keys_only else moved, [0] if self.keys_only else stored)
            c.line("x -= low; (void)q;")
            self._store(c)
        with c.block(head.format("void", "restore", "")):
            c.line("(void)q; (void)bufs; (void)at;")
            if self.is_lossy:
                self._pointers(c, [0], [0])
                self._restore(c)

    def _pointers(self, c: KernelWriter, reads: Sequence[int], writes: Sequence[int]) -> None:
        for k in reads:
            c.line(f"const {memory_type(self.reads[k].shape.dtype)} *const p{k} = bufs[{k}];")
        for k in writes:
            c.line(f"{memory_type(self.writes[k].shape.dtype)} *const r{k} = bufs[{len(self.operands) + k}];")

    # ------------------------------------------------------------------------------------------------ elements
    def _load_keys(self, c: KernelWriter) -> None:
        """Load the keys of a range of elements to x; ``special`` if a key does not give its element back."""
        dtype, read = self.rows.types[self.order.operand], self.order.operand
        c.line("uint32_t special = 0;")
        with c.block("for (int64_t k = low; k < high; ++k)"):
            element = c.element(dtype, f"p{read}[{self.rows.index('k')}]")
            key = c.local(self.key_type, f"(uint{self.order.bits}_t)({self.order.key(c, element)})")
            c.line(f"x[k] = {key if self.keys_only else f'{key} << 32 | (uint64_t)k'};")
            if self.is_lossy:
                total = total_key(c, dtype, element, self.order.bits)
                c.line(f"special |= ({element} != {element}) | ({total} == -1);")  # a NaN or -0
        c.line("return special;")

    def _store(self, c: KernelWriter) -> None:
        """Store the results of sorted keys."""
        types, rows = self.rows.types, self.rows
        with c.block("for (int64_t k = low; k < high; ++k)"):
            if self.keys_only:
                value = self.order.element(c, types[0], f"(uint{self.order.bits}_t)x[k]")
                c.line(f"r0[{rows.index('k')}] = {scalar.store(types[0], value)};")
                return
            c.line("const int64_t from = (int64_t)(uint32_t)x[k];")
            for line in rows.stores(self.contents):
                c.line(line)

    def _restore(self, c: KernelWriter) -> None:
        """Store the zeros and NaNs of a sorted row in the order of the operand; ``q[2]`` is its length."""
        dtype = self.rows.types[0]
        nan = '__builtin_nan("")' if dtype is ElementType.F64 else '__builtin_nanf("")'
        for name, value in (("zeros", "0"), ("nans", nan)):
            c.line(f"int64_t {name} = 0;")
            key = self._key_of(c, c.local(scalar.register_type(dtype), value))
            with c.block(f"for (int64_t past = q[2]; {name} < past;)"):
                c.line(f"const int64_t middle = {name} + (past - {name}) / 2;")
                middle_key = self._key_of(c, c.element(dtype, f"r0[{self.rows.index('middle')}]"))
                c.line(f"if ({middle_key} < {key}) {name} = middle + 1; else past = middle;")
        with c.block("for (int64_t k = 0; k < q[2]; ++k)"):
            element = c.element(dtype, f"p0[{self.rows.index('k')}]")
            for name, test in (("zeros", f"{element} == 0"), ("nans", f"{element} != {element}")):
                with c.block(f"if ({test})"):
                    c.line(f"const int64_t to = {name}++;")
                    c.line(f"r0[{self.rows.index('to')}] = p0[{self.rows.index('k')}];")

    def _key_of(self, c: KernelWriter, element: str) -> str:
        unsigned = f"uint{self.order.bits}_t"
        return c.local(unsigned, f"({unsigned})({self.order.key(c, element)})")
