"""sort by keys that tell elements, or elements and their places, apart: no record is needed beside the key.

Where the key of an element gives back the element, the keys alone are sorted. Else a key of 32 bits and the place in
the row make one of 64, so that equal elements keep their order. Either way all keys of a row differ or are the same
thing, and what the sorted row is does not hang on how it is sorted. A long row is cut into chunks; each is spread into
buckets by the same borders, keys of a sample of the row; then each bucket is collected from the chunks and sorted.

Zeros of both signs, and NaNs, may be equal to a comparator although their bits differ. Their keys are the same, so
they are written once more in their first order, if a row has any that their key would not give back.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import log2

from cyxla.types import ElementType, Shape
from cyxla.xla.cpu import cost, scalar
from cyxla.xla.cpu.kernel import Kernel, Step, Value
from cyxla.xla.cpu.own_kernel import KernelWriter, describe
from cyxla.xla.cpu.partials import partial
from cyxla.xla.cpu.sort_order import Order, total_key
from cyxla.xla.cpu.sort_rows import Rows
from cyxla.xla.cpu.values import own_leaves, resolve
from cyxla.xla.hlo import Instruction

_BUCKETS_FROM = 1 << 15  # shortest row that is cut
_BUCKET = 1 << 16  # keys of a bucket, about
_MAX_BUCKETS, _MAX_CHUNKS = 64, 16
_NO_VECTORS = '__asm__ volatile("");'  # in loops so short that gcc would take longer than they ever do
_SAMPLES = 16  # keys of the sample for each bucket
_FEW_ROWS = 8  # as many rows need not be cut
_ROOM = 64  # bytes beyond the keys that vectors may write
_LEVEL_NS = {32: 0.2, 64: 0.4}  # a key in one level of sorting
_KEY_NS = 0.5  # to make a key and to write what it stands for
_PLACE_NS = 1.5  # to fetch an element from its place


def can_sort_keys(rows: Rows, order: Order) -> bool:
    """Whether a key, with the place in the row if need be, fits into 64 bits."""
    return order.bits <= 32 or (len(rows.types) == 1 and order.whole is not None)


def sort_keys(ins: Instruction, rows: Rows, order: Order) -> list[Step]:
    """The steps of a sort by keys."""
    sorter = _Sorter(ins, rows, order)
    if rows.count >= _FEW_ROWS or rows.length < _BUCKETS_FROM:
        return [sorter.by_rows()]
    return sorter.by_buckets(min(_MAX_BUCKETS, 1 << max(1, (rows.length // _BUCKET).bit_length() - 1)))


@dataclass
class _Sorter:
    """A sort of rows by keys."""

    ins: Instruction
    rows: Rows
    order: Order

    def __post_init__(self) -> None:
        self.reads, self.writes = tuple(resolve(o) for o in self.ins.operands), tuple(own_leaves(self.ins))
        self.own = len(self.rows.types) == 1 and self.order.whole is not None
        self.loose = self.own and self.order.whole == "loose"
        self.bits = max(self.order.bits, 32) if self.own else 64
        self.key_type = f"uint{self.bits}_t"
        self.note = describe("sort", self.ins.operands[0].shape)
        each = _KEY_NS if self.own else _KEY_NS + _PLACE_NS * len(self.rows.types)
        self.sort_ns = self.size * (_LEVEL_NS[self.bits] * log2(max(self.rows.length, 2)) + _KEY_NS)
        self.write_ns = self.size * each

    @property
    def size(self) -> int:
        """Elements of all rows."""
        return self.rows.count * self.rows.length

    # ------------------------------------------------------------------------------------------------ a row at once
    def by_rows(self) -> Step:
        """One kernel; a row is a unit of work."""
        rows, key = self.rows, self.bits // 8
        room = 2 * key * rows.length + _ROOM
        ns = self.sort_ns + self.write_ns
        tasks = rows.tasks(ns, room)
        c = KernelWriter(self.reads, self.writes)
        with c.kernel(rows.count, tasks, self.note):
            c.line(f"const int64_t at = {rows.start('u')};")
            c.line(f"{self.key_type} *const x = ({self.key_type} *)({c.scratch()} + begin * {room});")
            self._keys(c, "0", str(rows.length), self.order.operand)
            c.line(f"cyx_sort_keys_{self.bits}(x, {rows.length}, x + {rows.length});")
            self._write(c, "0", str(rows.length), "x")
            if self.loose:
                with c.block("if (special)"):
                    self._rewrite(c)
        kernel = Kernel(c.text(), tasks, ns, tasks * room, "sort")
        return Step(kernel, self.reads, self.writes, in_place=((0, 0),) if self.own and not self.loose else ())

    # ------------------------------------------------------------------------------------------------ by buckets
    def by_buckets(self, buckets: int) -> list[Step]:
        """Spread chunks into buckets, sort the buckets, and put zeros and NaNs in order."""
        rows, chunks = self.rows, min(buckets, _MAX_CHUNKS)
        key_type = ElementType.U32 if self.bits == 32 else ElementType.U64
        keys = partial(self.ins, Shape.array(key_type, (rows.count, rows.length)))
        counts = partial(self.ins, Shape.array(ElementType.U32, (rows.count, chunks, buckets)))
        special = partial(self.ins, Shape.array(ElementType.U32, (rows.count, chunks)))
        last = partial(self.ins, self.writes[0].shape) if self.loose else None
        steps = [
            self._spread(chunks, buckets, (keys, counts, special) if self.loose else (keys, counts)),
            self._sort_buckets(chunks, buckets, keys, counts, (last,) if last is not None else self.writes),
        ]
        return [*steps, self._restore(chunks, special, last)] if last is not None else steps

    def _spread(self, chunks: int, buckets: int, writes: tuple[Value, ...]) -> Step:
        rows, units, samples = self.rows, self.rows.count * chunks, _SAMPLES * buckets
        room = (rows.length // chunks + 1) * (self.bits // 8) + _ROOM
        ns = self.size * (_KEY_NS + _LEVEL_NS[self.bits] * log2(buckets))
        tasks = cost.tasks(ns, units)
        reads = (self.reads[self.order.operand],)
        c = KernelWriter(reads, writes)
        with c.kernel(units, tasks, self.note):
            c.line(f"const int64_t row = u / {chunks}, chunk = u % {chunks}, at = {rows.start('row')};")
            c.line(f"const int64_t low = chunk * {rows.length} / {chunks};")
            c.line(f"const int64_t high = (chunk + 1) * {rows.length} / {chunks};")
            c.line(f"{self.key_type} *const x = ({self.key_type} *)r0 + row * {rows.length};")
            c.line(f"{self.key_type} *const y = ({self.key_type} *)({c.scratch()} + begin * {room});")
            c.line(f"{self.key_type} sample[{samples}], borders[{buckets}], spare[{samples + _ROOM}];")
            with c.block(f"for (int64_t s = 0; s < {samples}; ++s)"):
                c.line(f"const int64_t k = s * {rows.length} / {samples};")
                c.line(f"sample[s] = {self._key(c, 0)}; {_NO_VECTORS}")
            c.line(f"cyx_sort_keys_{self.bits}(sample, {samples}, spare);")
            border = f"borders[k - 1] = sample[k * {_SAMPLES}];"
            c.line(f"for (int k = 1; k < {buckets}; ++k) {{ {border} {_NO_VECTORS} }}")
            self._keys(c, "low", "high", 0)
            c.line(
                f"cyx_spread_{self.bits}(x + low, high - low, y, borders, {buckets}, (uint32_t *)r1 + u * {buckets});"
            )
            if self.loose:
                c.line("r2[u] = special;")
        return Step(Kernel(c.text(), tasks, ns, tasks * room, "sort"), reads, writes)

    def _sort_buckets(self, chunks: int, buckets: int, keys: Value, counts: Value, writes: tuple[Value, ...]) -> Step:
        """Collect each bucket, sort it and write the results."""
        rows, units, key = self.rows, self.rows.count * buckets, self.bits // 8
        ns = self.sort_ns + self.write_ns
        tasks = cost.tasks(ns, units)
        fetched = () if self.own else self.reads
        reads = (*fetched, keys, counts)
        c = KernelWriter(reads, writes)
        with c.kernel(units, tasks, self.note):
            c.line(f"const int64_t row = u / {buckets}, bucket = u % {buckets}, at = {rows.start('row')};")
            c.line(f"const {self.key_type} *from = (const {self.key_type} *)p{len(fetched)} + row * {rows.length};")
            c.line(f"const uint32_t *const count = (const uint32_t *)p{len(fetched) + 1} + row * {chunks * buckets};")
            c.line("int64_t start = 0, n = 0;")
            with c.block(f"for (int k = 0; k < {chunks * buckets}; ++k)"):
                c.line(f"start += k % {buckets} < bucket ? count[k] : 0; {_NO_VECTORS}")
            c.line(f"char *const room = {c.scratch()} + row * {2 * key * rows.length + _ROOM * buckets};")
            c.line(f"{self.key_type} *const x = ({self.key_type} *)room + start;")
            c.line(f"{self.key_type} *const y = ({self.key_type} *)(room + bucket * {_ROOM}) + {rows.length} + start;")
            with c.block(f"for (int64_t chunk = 0; chunk < {chunks}; ++chunk)"):
                c.line(f"int64_t first = chunk * {rows.length} / {chunks};")
                add = f"first += count[chunk * {buckets} + k];"
                c.line(f"for (int64_t k = 0; k < bucket; ++k) {{ {add} {_NO_VECTORS} }}")
                c.line(f"const int64_t m = count[chunk * {buckets} + bucket];")
                c.line("__builtin_memcpy(x + n, from + first, (unsigned long)m * sizeof *x);")
                c.line("n += m;")
            c.line(f"cyx_sort_keys_{self.bits}(x, n, y);")
            self._write(c, "start", "start + n", "x")
        room = rows.count * (2 * key * rows.length + _ROOM * buckets)
        return Step(Kernel(c.text(), tasks, ns, room, "sort"), reads, writes)

    def _restore(self, chunks: int, special: Value, sorted_: Value) -> Step:
        """Zeros and NaNs of rows that need it, written in their first order."""
        reads = (*self.reads, special, sorted_)
        c = KernelWriter(reads, self.writes)
        with c.kernel(self.rows.count, 1, self.note):
            c.line("uint32_t special = 0;")
            c.line(f"for (int k = 0; k < {chunks}; ++k) special |= p1[u * {chunks} + k];")
            c.line("if (!special) continue;" if self.rows.count != 1 else "if (!special) return CYX_OK;")
            c.line(f"const int64_t at = {self.rows.start('u')};")
            self._rewrite(c)
        return Step(Kernel(c.text(), 1, 1.0, 0, "sort"), reads, self.writes, must_alias=((0, 2),))

    # ------------------------------------------------------------------------------------------------ elements
    def _key(self, c: KernelWriter, read: int) -> str:
        """The key of element ``k`` of a row that is one of the kernel's reads."""
        element = c.element(self.rows.types[self.order.operand], f"p{read}[{self.rows.place('k')}]")
        key = c.local(self.key_type, f"(uint{self.order.bits}_t)({self.order.key(c, self.rows.types, element)})")
        return key if self.own else f"{key} << 32 | (uint64_t)k"

    def _keys(self, c: KernelWriter, low: str, high: str, read: int) -> None:
        """Write the keys of a run of elements to x; ``special`` says if a key does not give its element back."""
        dtype = self.rows.types[self.order.operand]
        if self.loose:
            c.line("uint32_t special = 0;")
        with c.block(f"for (int64_t k = {low}; k < {high}; ++k)"):
            c.line(f"x[k] = {self._key(c, read)};")
            if self.loose:
                element = c.element(dtype, f"p{read}[{self.rows.place('k')}]")
                total = total_key(c, dtype, element, self.order.bits)
                c.line(f"special |= ({element} != {element}) | ({total} == -1);")  # a NaN, or -0

    def _write(self, c: KernelWriter, low: str, high: str, of: str) -> None:
        """Write results from sorted keys; `of` holds those from `low` on."""
        types, rows = self.rows.types, self.rows
        with c.block(f"for (int64_t k = {low}; k < {high}; ++k)"):
            place = f"{of}[k - {low}]" if low != "0" else f"{of}[k]"
            if self.own:
                value = self.order.element(c, types[0], f"(uint{self.order.bits}_t){place}")
                c.line(f"r0[{rows.place('k')}] = {scalar.store(types[0], value)};")
                return
            c.line(f"const int64_t from = (int64_t)(uint32_t){place};")
            for n in range(len(types)):
                c.line(f"r{n}[{rows.place('k')}] = p{n}[{rows.place('from')}];")

    def _rewrite(self, c: KernelWriter) -> None:
        """Write the zeros and NaNs of a sorted row in the order in which the operand has them."""
        dtype, types = self.rows.types[0], self.rows.types
        nan = '__builtin_nan("")' if dtype is ElementType.F64 else '__builtin_nanf("")'
        for name, value in (("zeros", "0"), ("nans", nan)):
            c.line(f"int64_t {name} = 0;")
            key = self._key_of(c, types, c.local(scalar.register_type(dtype), value))
            with c.block(f"for (int64_t past = {self.rows.length}; {name} < past;)"):
                c.line(f"const int64_t middle = {name} + (past - {name}) / 2;")
                here = self._key_of(c, types, c.element(dtype, f"r0[{self.rows.place('middle')}]"))
                c.line(f"if ({here} < {key}) {name} = middle + 1; else past = middle;")
        with c.block(f"for (int64_t k = 0; k < {self.rows.length}; ++k)"):
            element = c.element(dtype, f"p0[{self.rows.place('k')}]")
            for name, test in (("zeros", f"{element} == 0"), ("nans", f"{element} != {element}")):
                with c.block(f"if ({test})"):
                    c.line(f"const int64_t to = {name}++;")
                    c.line(f"r0[{self.rows.place('to')}] = p0[{self.rows.place('k')}];")

    def _key_of(self, c: KernelWriter, types: Sequence[ElementType], element: str) -> str:
        unsigned = f"uint{self.order.bits}_t"
        return c.local(unsigned, f"({unsigned})({self.order.key(c, types, element)})")
