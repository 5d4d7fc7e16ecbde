"""sort: each row as a block of records, sorted there and written back.

A comparator that comes down to a key (`sort_order`) gives records of the key and either the element itself or its
place in the row; rows of some length are then sorted by the digits of the keys, the lowest digit first, which takes a
pass over the records for each. Any other comparator gives records of all operands' elements and a merge sort by the
comparator. Both are stable.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import log2, prod

from cyxla.types import ElementType
from cyxla.xla.cpu import cost, emit_scalar, scalar
from cyxla.xla.cpu.emitters import emits
from cyxla.xla.cpu.kernel import Kernel, Step
from cyxla.xla.cpu.own_kernel import KernelWriter, describe, strides
from cyxla.xla.cpu.sort_order import Order
from cyxla.xla.cpu.values import own_leaves, resolve
from cyxla.xla.hlo import Instruction

RUN = 12  # this many records are sorted by insertion
DIGITS_FROM = 128  # shortest row that is sorted by digits
WIDE_FROM = 4096  # shortest row whose digits are wide
SCRATCH_BYTES = 8 << 20  # for the records of all tasks; at least eight tasks if there are rows enough
_COMPARE_NS = 3.0
_PASS_NS = 1.5  # a record in a pass


def _check(ins: Instruction) -> str | None:
    return emit_scalar.reason(ins.called[0])


@dataclass(frozen=True)
class _Rows:
    """What is sorted: `count` rows of `length` elements that lie `step` apart."""

    types: list[ElementType]
    count: int
    length: int
    step: int

    @staticmethod
    def of(ins: Instruction) -> _Rows:
        shape = ins.operands[0].shape
        (axis,) = ins.attrs["dimensions"]
        count = prod(d for i, d in enumerate(shape.dims) if i != axis)
        return _Rows([o.shape.dtype for o in ins.operands], count, shape.dims[axis], strides(shape.dims)[axis])

    def tasks(self, ns: float, record: int) -> int:
        """How many tasks, each with scratch for two rows of records of so many bytes."""
        enough = max(8, SCRATCH_BYTES // max(1, 2 * record * self.length))
        return min(cost.tasks(ns, max(1, self.count)), enough)

    def start(self, c: KernelWriter, record: int) -> None:
        """Define the place of row `u` and its scratch, x and y."""
        c.line(f"const int64_t at = u / {self.step} * {self.step * self.length} + u % {self.step};")
        c.line(f"KERNEL_t *const x = (KERNEL_t *)({c.scratch()} + begin * {2 * record * self.length});")
        c.line(f"KERNEL_t *const y = x + {self.length};")

    def place(self, k: str) -> str:
        """The place of an element of row `u`."""
        return f"at + {k} * {self.step}" if self.step != 1 else f"at + {k}"


@emits("sort", check=_check)
def sort(ins: Instruction) -> Step:
    """The kernel of one sort; a row is a unit of work."""
    order, rows = Order.of(ins.called[0]), _Rows.of(ins)
    if order is None or rows.length >= 2**32:
        return _by_comparator(ins, rows)
    return _by_key(ins, rows, order)


# --- any comparator ---------------------------------------------------------------------------------------------------


def _by_comparator(ins: Instruction, rows: _Rows) -> Step:
    reads, writes, types = [resolve(o) for o in ins.operands], own_leaves(ins), rows.types
    ns = rows.count * rows.length * (log2(max(rows.length, 2)) * _COMPARE_NS + len(types))
    record = max(t.itemsize for t in types) * len(types)  # at least: each field as wide as the widest
    tasks = rows.tasks(ns, record)
    c = KernelWriter(reads, writes)
    fields = " ".join(f"{scalar.storage_type(t)} f{n};" for n, t in enumerate(types))
    c.line(f"typedef struct {{ {fields} }} KERNEL_t;")
    with c.block("static inline int KERNEL_less(const KERNEL_t *x, const KERNEL_t *y)"):
        sides = [c.element(t, f"{side}->f{n}") for n, t in enumerate(types) for side in ("x", "y")]
        (result,) = emit_scalar.inline(ins.called[0], sides, c)
        c.line(f"return {result} != 0;")
    c.lines(_MERGE_SORT.splitlines())
    with c.kernel(rows.count, tasks, describe("sort", ins.operands[0].shape)):
        rows.start(c, record)
        with c.block(f"for (int64_t k = 0; k < {rows.length}; ++k)"):
            for n in range(len(types)):
                c.line(f"x[k].f{n} = p{n}[{rows.place('k')}];")
        c.line(f"const KERNEL_t *const sorted = KERNEL_sort(x, y, {rows.length});")
        with c.block(f"for (int64_t k = 0; k < {rows.length}; ++k)"):
            for n in range(len(types)):
                c.line(f"r{n}[{rows.place('k')}] = sorted[k].f{n};")
    kernel = Kernel(c.text(), tasks, ns, tasks * 2 * record * rows.length, "sort")
    return Step(kernel, tuple(reads), tuple(writes), in_place=tuple((n, n) for n in range(len(reads))))


_MERGE_SORT = f"""\
static void KERNEL_insert(KERNEL_t *x, int64_t n) {{
  for (int64_t i = 1; i < n; ++i) {{
    const KERNEL_t v = x[i];
    int64_t j = i;
    for (; j > 0 && KERNEL_less(&v, &x[j - 1]); --j) x[j] = x[j - 1];
    x[j] = v;
  }}
}}
typedef const KERNEL_t *KERNEL_p;
static void KERNEL_merge(KERNEL_p a, KERNEL_p a_end, KERNEL_p b, KERNEL_p b_end, KERNEL_t *to) {{
  while (a < a_end && b < b_end) *to++ = KERNEL_less(b, a) ? *b++ : *a++;
  while (a < a_end) *to++ = *a++;
  while (b < b_end) *to++ = *b++;
}}
/* Sort n records in x with y as long; the result is one of the two. Equal records keep their order. */
static KERNEL_t *KERNEL_sort(KERNEL_t *x, KERNEL_t *y, int64_t n) {{
  for (int64_t i = 0; i < n; i += {RUN}) KERNEL_insert(x + i, n - i < {RUN} ? n - i : {RUN});
  for (int64_t width = {RUN}; width < n; width *= 2) {{
    for (int64_t i = 0; i < n; i += 2 * width) {{
      const int64_t middle = n - i < width ? n : i + width, end = n - i < 2 * width ? n : i + 2 * width;
      KERNEL_merge(x + i, x + middle, x + middle, x + end, y + i);
    }}
    KERNEL_t *const t = x; x = y; y = t;
  }}
  return x;
}}"""


# --- a key ------------------------------------------------------------------------------------------------------------


def _by_key(ins: Instruction, rows: _Rows, order: Order) -> Step:
    reads, writes, types = [resolve(o) for o in ins.operands], own_leaves(ins), rows.types
    wide = order.bits > 32
    record = 16 if wide else 8
    own = len(types) == 1 and types[0].itemsize <= record // 2  # the record holds the element itself, not its place
    digit = 11 if rows.length >= WIDE_FROM else 8
    passes = -(-order.bits // digit) if rows.length >= DIGITS_FROM else 0
    ns = rows.count * rows.length * ((passes or log2(max(rows.length, 2)) / 2) + 2) * _PASS_NS
    tasks = rows.tasks(ns, record)
    c = KernelWriter(reads, writes)
    c.line("typedef struct { uint64_t key, payload; } KERNEL_t;" if wide else "typedef uint64_t KERNEL_t;")
    if passes:
        c.lines(_digit_sort(wide, digit, passes))
    else:
        key = ("x->key", "y->key") if wide else ("*x >> 32", "*y >> 32")
        with c.block("static inline int KERNEL_less(const KERNEL_t *x, const KERNEL_t *y)"):
            c.line(f"return {key[0]} < {key[1]};")
        c.lines(_MERGE_SORT.splitlines())
    with c.kernel(rows.count, tasks, describe("sort", ins.operands[0].shape)):
        rows.start(c, record)
        if passes:
            c.line(f"uint32_t counts[{passes}][{1 << digit}];")
            c.line("__builtin_memset(counts, 0, sizeof counts);")
        with c.block(f"for (int64_t k = 0; k < {rows.length}; ++k)"):
            _record(c, rows, order, own=own)
            for n in range(passes):
                c.line(f"++counts[{n}][{_digit('key', n, digit)}];")
        call = "KERNEL_digits(x, y, counts, " if passes else "KERNEL_sort(x, y, "
        c.line(f"const KERNEL_t *const sorted = {call}{rows.length});")
        with c.block(f"for (int64_t k = 0; k < {rows.length}; ++k)"):
            payload = "sorted[k].payload" if wide else "(uint32_t)sorted[k]"
            if own:
                c.line(_write_own(types[0], payload, f"r0[{rows.place('k')}]"))
            else:
                c.line(f"const int64_t from = (int64_t)({payload});")
                for n in range(len(types)):
                    c.line(f"r{n}[{rows.place('k')}] = p{n}[{rows.place('from')}];")
    kernel = Kernel(c.text(), tasks, ns, tasks * 2 * record * rows.length, "sort")
    return Step(kernel, tuple(reads), tuple(writes), in_place=((0, 0),) if own else ())


def _record(c: KernelWriter, rows: _Rows, order: Order, *, own: bool) -> None:
    """Make record k: the key, and the bits of the element or k."""
    n = order.operand
    dtype = rows.types[n]
    c.line(f"const {scalar.storage_type(dtype)} stored = p{n}[{rows.place('k')}];")
    value = order.key(c, rows.types, c.element(dtype, "stored"))
    c.line(f"const uint{order.bits}_t key = (uint{order.bits}_t)({value});")
    if own:
        size = dtype.itemsize
        c.line(f"uint{8 * size}_t payload; __builtin_memcpy(&payload, &stored, {size});")
    else:
        c.line("const uint32_t payload = (uint32_t)k;")
    if order.bits > 32:
        c.line("x[k].key = key; x[k].payload = payload;")
    else:
        c.line("x[k] = (uint64_t)key << 32 | payload;")


def _write_own(dtype: ElementType, payload: str, to: str) -> str:
    size = dtype.itemsize
    return (
        f"const uint{8 * size}_t bits = (uint{8 * size}_t)({payload}); {scalar.storage_type(dtype)} back; "
        f"__builtin_memcpy(&back, &bits, {size}); {to} = back;"
    )


def _digit(key: str, number: int, width: int) -> str:
    shifted = f"{key} >> {number * width}" if number else key
    return f"({shifted}) & {(1 << width) - 1}"


def _digit_sort(wide: bool, digit: int, passes: int) -> list[str]:
    """Sort by digits that were counted before; a digit that is the same everywhere takes no pass."""
    key = "x[k].key" if wide else "(x[k] >> 32)"
    return f"""\
static KERNEL_t *KERNEL_digits(KERNEL_t *x, KERNEL_t *y, uint32_t (*counts)[{1 << digit}], int64_t n) {{
  for (int p = 0; p < {passes}; ++p) {{
    uint32_t *const to = counts[p];
    uint32_t sum = 0;
    const int shift = p * {digit};
    if (to[({key.replace("[k]", "[0]")} >> shift) & {(1 << digit) - 1}] == n) continue;
    for (int d = 0; d < {1 << digit}; ++d) {{ const uint32_t c = to[d]; to[d] = sum; sum += c; }}
    for (int64_t k = 0; k < n; ++k) y[to[({key} >> shift) & {(1 << digit) - 1}]++] = x[k];
    KERNEL_t *const t = x; x = y; y = t;
  }}
  return x;
}}""".splitlines()
