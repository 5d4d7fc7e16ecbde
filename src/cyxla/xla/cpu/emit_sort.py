"""sort: each row as a block of keys or records, sorted there and written back.

A comparator that comes down to a key (`sort_order`) gives keys (`emit_sort_keys`); if they are too wide, records of the
key and the element's place in the row; rows of some length are then sorted by the digits of the keys, the lowest digit
first, which takes a pass over the records for each. Any other comparator gives records of all operands' elements and a
merge sort by the comparator. All are stable.
"""

from __future__ import annotations

from math import log2

from cyxla.xla.cpu import emit_scalar, scalar
from cyxla.xla.cpu.emit_sort_keys import can_sort_keys, sort_keys
from cyxla.xla.cpu.emitters import emits
from cyxla.xla.cpu.kernel import Kernel, Step
from cyxla.xla.cpu.own_kernel import KernelWriter, describe
from cyxla.xla.cpu.sort_order import Order
from cyxla.xla.cpu.sort_rows import Rows
from cyxla.xla.cpu.values import own_leaves, resolve
from cyxla.xla.hlo import Instruction

RUN = 12  # this many records are sorted by insertion
DIGITS_FROM = 128  # shortest row of records that is sorted by digits
_DIGIT = 8  # bits
_RECORD = 16  # bytes of a record of key and place
_COMPARE_NS = 3.0
_PASS_NS = 1.5  # a record in a pass


def _start(c: KernelWriter, rows: Rows, record: int) -> None:
    """Define the place of row `u` and its scratch, x and y."""
    c.line(f"const int64_t at = {rows.start('u')};")
    c.line(f"KERNEL_t *const x = (KERNEL_t *)({c.scratch()} + begin * {2 * record * rows.length});")
    c.line(f"KERNEL_t *const y = x + {rows.length};")


def _check(ins: Instruction) -> str | None:
    return emit_scalar.reason(ins.called[0])


@emits("sort", check=_check)
def sort(ins: Instruction) -> Step | list[Step]:
    """The kernel of one sort; a row is a unit of work."""
    order, rows = Order.of(ins.called[0]), Rows.of(ins)
    if order is None or rows.length >= 2**31:
        return _by_comparator(ins, rows)
    return sort_keys(ins, rows, order) if can_sort_keys(rows, order) else _by_key(ins, rows, order)


# --- any comparator ---------------------------------------------------------------------------------------------------


def _by_comparator(ins: Instruction, rows: Rows) -> Step:
    reads, writes, types = [resolve(o) for o in ins.operands], own_leaves(ins), rows.types
    ns = rows.count * rows.length * (log2(max(rows.length, 2)) * _COMPARE_NS + len(types))
    record = max(t.itemsize for t in types) * len(types)  # at least: each field as wide as the widest
    tasks = rows.tasks(ns, 2 * record * rows.length)
    c = KernelWriter(reads, writes)
    fields = " ".join(f"{scalar.storage_type(t)} f{n};" for n, t in enumerate(types))
    c.line(f"typedef struct {{ {fields} }} KERNEL_t;")
    with c.block("static inline int KERNEL_less(const KERNEL_t *x, const KERNEL_t *y)"):
        sides = [c.element(t, f"{side}->f{n}") for n, t in enumerate(types) for side in ("x", "y")]
        (result,) = emit_scalar.inline(ins.called[0], sides, c)
        c.line(f"return {result} != 0;")
    c.lines(_MERGE_SORT.splitlines())
    with c.kernel(rows.count, tasks, describe("sort", ins.operands[0].shape)):
        _start(c, rows, record)
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


def _by_key(ins: Instruction, rows: Rows, order: Order) -> Step:
    """Records of a wide key and the element's place in the row."""
    reads, writes = [resolve(o) for o in ins.operands], own_leaves(ins)
    passes = -(-order.bits // _DIGIT) if rows.length >= DIGITS_FROM else 0
    ns = rows.count * rows.length * ((passes or log2(max(rows.length, 2)) / 2) + 2) * _PASS_NS
    tasks = rows.tasks(ns, 2 * _RECORD * rows.length)
    c = KernelWriter(reads, writes)
    c.line("typedef struct { uint64_t key, place; } KERNEL_t;")
    if passes:
        c.lines(_digit_sort(passes))
    else:
        with c.block("static inline int KERNEL_less(const KERNEL_t *x, const KERNEL_t *y)"):
            c.line("return x->key < y->key;")
        c.lines(_MERGE_SORT.splitlines())
    with c.kernel(rows.count, tasks, describe("sort", ins.operands[0].shape)):
        _start(c, rows, _RECORD)
        if passes:
            c.line(f"uint32_t counts[{passes}][{1 << _DIGIT}];")
            c.line("__builtin_memset(counts, 0, sizeof counts);")
        with c.block(f"for (int64_t k = 0; k < {rows.length}; ++k)"):
            element = c.element(rows.types[order.operand], f"p{order.operand}[{rows.place('k')}]")
            c.line(f"const uint64_t key = (uint64_t)({order.key(c, rows.types, element)});")
            c.line("x[k].key = key; x[k].place = (uint64_t)k;")
            for n in range(passes):
                c.line(f"++counts[{n}][{_digit('key', n)}];")
        call = "KERNEL_digits(x, y, counts, " if passes else "KERNEL_sort(x, y, "
        c.line(f"const KERNEL_t *const sorted = {call}{rows.length});")
        with c.block(f"for (int64_t k = 0; k < {rows.length}; ++k)"):
            c.line("const int64_t from = (int64_t)sorted[k].place;")
            for n in range(len(rows.types)):
                c.line(f"r{n}[{rows.place('k')}] = p{n}[{rows.place('from')}];")
    kernel = Kernel(c.text(), tasks, ns, tasks * 2 * _RECORD * rows.length, "sort")
    return Step(kernel, tuple(reads), tuple(writes))


def _digit(key: str, number: int) -> str:
    shifted = f"{key} >> {number * _DIGIT}" if number else key
    return f"({shifted}) & {(1 << _DIGIT) - 1}"


def _digit_sort(passes: int) -> list[str]:
    """Sort by digits that were counted before; a digit that is the same everywhere takes no pass."""
    return f"""\
static KERNEL_t *KERNEL_digits(KERNEL_t *x, KERNEL_t *y, uint32_t (*counts)[{1 << _DIGIT}], int64_t n) {{
  for (int p = 0; p < {passes}; ++p) {{
    uint32_t *const to = counts[p];
    uint32_t sum = 0;
    const int shift = p * {_DIGIT};
    if (to[(x[0].key >> shift) & {(1 << _DIGIT) - 1}] == n) continue;
    for (int d = 0; d < {1 << _DIGIT}; ++d) {{ const uint32_t c = to[d]; to[d] = sum; sum += c; }}
    for (int64_t k = 0; k < n; ++k) y[to[(x[k].key >> shift) & {(1 << _DIGIT) - 1}]++] = x[k];
    KERNEL_t *const t = x; x = y; y = t;
  }}
  return x;
}}""".splitlines()
