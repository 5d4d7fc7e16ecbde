"""Emitter of sort: copies each row as keys or records, sorts these and writes the results.

A comparator that compares keys (`sort.order`) gives keys with indices (`sort.keys`, `sort.wide_keys` if they are
wide). Any other comparator gives records of all operands' elements and a merge sort by the comparator. All are stable.
"""

from __future__ import annotations

from math import log2

from cyxla.xla.cpu.c import scalar, scalar_computation
from cyxla.xla.cpu.c.kernel_header import instantiate
from cyxla.xla.cpu.emitters import emits, emits_live
from cyxla.xla.cpu.kernel.groups import Group
from cyxla.xla.cpu.kernel.kernel import Kernel, KernelKind, Step
from cyxla.xla.cpu.kernel.kernel_writer import KernelWriter, describe
from cyxla.xla.cpu.kernel.values import resolve
from cyxla.xla.cpu.sort.keys import can_sort_keys, sort_keys
from cyxla.xla.cpu.sort.order import Order
from cyxla.xla.cpu.sort.present import before_of
from cyxla.xla.cpu.sort.rows import Rows
from cyxla.xla.cpu.sort.wide_keys import sort_wide
from cyxla.xla.hlo import Instruction
from cyxla.xla.service.refusal import Refusal

RUN = 12  # records that are sorted by insertion
# ns of a comparison; 65,536 records take 1.1 to 1.4 times the estimate (SPR, see `kernel.machine`).
_COMPARE_NS = 3.0


def _define_scratch(c: KernelWriter, rows: Rows, record_bytes: int) -> None:
    """Define the offset of row `u` and its scratch, x and y."""
    c.line(f"const int64_t at = {rows.start('u')};")
    c.line(f"KERNEL_record *const x = (KERNEL_record *)({c.scratch()} + begin * {2 * record_bytes * rows.length});")
    c.line(f"KERNEL_record *const y = x + {rows.length};")


def _check(ins: Instruction) -> str | None:
    return scalar_computation.unsupported_reason(ins.called[0])


@emits("sort", check=_check)
def sort(ins: Instruction) -> Step:
    """Emit one sort; a row is a unit of work."""
    return _sort(ins, Rows.of(ins), ins.called[0].root)


@emits_live("sort")
def live_sort(group: Group) -> list[Step]:
    """Emit a sort of which leading rows, or leading elements of each row, matter."""
    ins, (axis,) = group.root, group.root.attrs["dimensions"]
    before = before_of(ins) if axis in group.live else None
    if before is None:
        return [_sort(ins, Rows.of_group(group, len(ins.operands)), ins.called[0].root)]
    return [_sort(ins, Rows.of_group(group, len(ins.operands) - 1), before)]


def _sort(ins: Instruction, rows: Rows, before: Instruction) -> Step:
    """Emit a sort by a comparison in its comparator."""
    order = Order.of_root(before)
    if order is None or rows.length >= 2**31:
        return _by_comparator(ins, rows, before)
    return sort_keys(ins, rows, order) if can_sort_keys(rows, order) else sort_wide(ins, rows, order)


# --- any comparator ---------------------------------------------------------------------------------------------------


def _by_comparator(ins: Instruction, rows: Rows, before: Instruction) -> Step:
    types = rows.types
    reads, writes = [*map(resolve, ins.operands[: len(types)]), *rows.sizes], rows.writes(ins)
    ns = rows.count * rows.length * (log2(max(rows.length, 2)) * _COMPARE_NS + len(types))
    record_bytes = max(t.itemsize for t in types) * len(types)  # an upper bound: each field takes the widest type
    tasks = rows.tasks(ns, 2 * record_bytes * rows.length)
    c = KernelWriter(reads, writes)
    fields = " ".join(f"{scalar.storage_type(t)} f{n};" for n, t in enumerate(types))
    c.line(f"typedef struct {{ {fields} }} KERNEL_record;")
    with c.block("static inline int KERNEL_less(const KERNEL_record *x, const KERNEL_record *y)"):
        sides = [c.element(t, f"{side}->f{n}") for n, t in enumerate(types) for side in ("x", "y")]
        sides += ["0"] * (len(before.computation.parameters) - len(sides))  # `before` reads no mask
        (result,) = scalar_computation.inline_subgraph(before, sides, c)
        c.line(f"return {result} != 0;")
    c.lines(instantiate("sort/merge_sort.h", MERGE_PREFIX="KERNEL", MERGE_RUN=RUN).splitlines())
    with c.kernel(rows.count_text, tasks, describe("sort", ins.operands[0].shape)):
        length = rows.define_length(c)
        _define_scratch(c, rows, record_bytes)
        with c.block(f"for (int64_t k = 0; k < {length}; ++k)"):
            for n in range(len(types)):
                c.line(f"x[k].f{n} = p{n}[{rows.index('k')}];")
        c.line(f"const KERNEL_record *const sorted = KERNEL_sort(x, y, {length});")
        with c.block(f"for (int64_t k = 0; k < {length}; ++k)"):
            for n in range(len(types)):
                c.line(f"r{n}[{rows.index('k')}] = sorted[k].f{n};")
    refusal = Refusal.of("vectorisation", ins, "its comparator takes two records at a time, and follows no keys")
    kernel = Kernel(c.text(), tasks, ns, tasks * 2 * record_bytes * rows.length, KernelKind.SORT, refusals=(refusal,))
    pairs = tuple((n, n) for n in range(len(types)))
    return Step(rows.with_short_work(kernel), tuple(reads), tuple(writes), in_place=pairs)
