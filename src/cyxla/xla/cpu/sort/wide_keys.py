"""Sort by keys that leave no room for an index beside them: by their upper bits, then runs of these by the others.

The algorithm is in ``sort_wide.h``.
"""

from __future__ import annotations

from math import log2

from cyxla.xla.cpu.c.kernel_header import instantiate
from cyxla.xla.cpu.kernel import prebuilt_calls
from cyxla.xla.cpu.kernel.kernel import Kernel, KernelKind, Step
from cyxla.xla.cpu.kernel.kernel_writer import KernelWriter, describe
from cyxla.xla.cpu.sort.keys import GATHER_NS, LEVEL_NS
from cyxla.xla.cpu.sort.order import Order
from cyxla.xla.cpu.sort.rows import Rows
from cyxla.xla.cpu.sort.templates import PADDING, keys_text
from cyxla.xla.hlo import Instruction

_KEY_NS = 1.5  # to make a key, to shift it, to look for runs; assumed: three times that of keys that are sorted at once


def sort_wide(ins: Instruction, rows: Rows, order: Order) -> Step:
    """Emit a sort of rows, no longer than 2**31, by keys of any width."""
    reads, writes = [*rows.operands(ins, order), *rows.sizes], rows.writes(ins)
    element_ns = LEVEL_NS[64] * log2(max(rows.length, 2)) + _KEY_NS + GATHER_NS * len(rows.types)
    ns, scratch = rows.count * rows.length * element_ns, 3 * 8 * rows.length + PADDING
    tasks = rows.tasks(ns, scratch)
    c = KernelWriter(reads, writes)
    c.lines(_text(max(1, (rows.length - 1).bit_length())).splitlines())
    with c.kernel(rows.count_text, tasks, describe("sort", ins.operands[0].shape)):
        length = rows.define_length(c)
        c.line(f"const int64_t at = {rows.start('u')};")
        c.line(f"uint64_t *const keys = (uint64_t *)({c.scratch()} + begin * {scratch});")
        c.line(f"uint64_t *const x = keys + {rows.length};")
        with c.block(f"for (int64_t k = 0; k < {length}; ++k)"):
            element = c.element(rows.types[order.operand], f"p{order.operand}[{rows.index('k')}]")
            c.line(f"keys[k] = (uint64_t)({order.key(c, element)});")
        c.line(f"KERNEL_argsort(keys, {length}, x, x + {rows.length});")
        with c.block(f"for (int64_t k = 0; k < {length}; ++k)"):
            c.line("const int64_t from = (int64_t)x[k];")
            for line in rows.stores(rows.contents(ins)):
                c.line(line)
    kernel = Kernel(c.text(), tasks, ns, tasks * scratch, KernelKind.SORT)
    return Step(rows.with_short_work(kernel), tuple(reads), tuple(writes))


def _text(index_bits: int) -> str:
    """Return the C of ``KERNEL_argsort``, with that of sorting keys unless it is prebuilt."""
    sort = prebuilt_calls.pointer("keys64_sort")
    keys = keys_text(64, "KERNEL_keys") if sort is None else f"#define KERNEL_keys_sort {sort}\n"
    return keys + instantiate(
        "sort/sort_wide.h", WIDE_PREFIX="KERNEL", WIDE_KEYS_PREFIX="KERNEL_keys", WIDE_INDEX_BITS=index_bits
    )
