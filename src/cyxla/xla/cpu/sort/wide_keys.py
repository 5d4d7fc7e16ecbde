"""Sort by keys that leave no room for an index beside them: first by their upper bits.

The keys of a row, less the least of them, are shifted up to the top of 64 bits; the places overwrite the lowest ones.
What is sorted so is in order but for runs of elements that differ only in bits that were overwritten. Of these, the
bits that were lost and the places fit into 64 bits, so such a run is sorted once more.
"""

from __future__ import annotations

from math import log2

from cyxla.xla.cpu.c.isa_levels import Level
from cyxla.xla.cpu.c.target import isa_level
from cyxla.xla.cpu.kernel import prebuilt_calls
from cyxla.xla.cpu.kernel.kernel import Kernel, Step
from cyxla.xla.cpu.kernel.kernel_writer import KernelWriter, describe
from cyxla.xla.cpu.kernel.values import own_leaves, resolve
from cyxla.xla.cpu.sort.keys_text import ROOM, keys_text
from cyxla.xla.cpu.sort.order import Order
from cyxla.xla.cpu.sort.rows import Rows
from cyxla.xla.hlo import Instruction

_LEVEL_NS = 0.4  # a key in one level of sorting
_KEY_NS = 1.5  # to make a key, to shift it, to look for runs
_PLACE_NS = 1.5  # to fetch an element from its place

_PLACES = """\
/* Make `x` the places of a row's keys in order; equal keys keep theirs. `y` has room for as many and a vector more. */
static void KERNEL_places(const uint64_t *keys, int64_t n, uint64_t *x, uint64_t *y) {
  uint64_t least = -(uint64_t)1, most = 0;
  for (int64_t k = 0; k < n; ++k) {
    least = keys[k] < least ? keys[k] : least;
    most = keys[k] > most ? keys[k] : most;
  }
  const int up = __builtin_clzll((most - least) | 1), lost = up < PLACE ? PLACE - up : 0;
  const uint64_t places = ((uint64_t)1 << PLACE) - 1, rest = ((uint64_t)1 << lost) - 1;
  for (int64_t k = 0; k < n; ++k) x[k] = (((keys[k] - least) << up) & ~places) | (uint64_t)k;
  KERNEL_keys_sort(x, n, y);
  for (int64_t k = 0, end; lost && k < n; k = end) {
    const uint64_t first = keys[x[k] & places];
    uint64_t differ = 0;
    for (end = k + 1; end < n && (x[end] ^ x[k]) <= places; ++end) differ |= keys[x[end] & places] ^ first;
    if (!differ) continue;
    for (int64_t i = k; i < end; ++i) {
      const uint64_t place = x[i] & places;
      x[i] = ((keys[place] - least) & rest) << PLACE | place;
    }
    KERNEL_keys_sort(x + k, end - k, y);
  }
  for (int64_t k = 0; k < n; ++k) x[k] &= places;
}
"""


def sort_wide(ins: Instruction, rows: Rows, order: Order) -> Step:
    """The step of a sort of rows, no longer than 2**31, by keys of any width."""
    reads, writes = [resolve(o) for o in ins.operands], own_leaves(ins)
    each = _LEVEL_NS * log2(max(rows.length, 2)) + _KEY_NS + _PLACE_NS * len(rows.types)
    ns, scratch = rows.count * rows.length * each, 3 * 8 * rows.length + ROOM
    tasks = rows.tasks(ns, scratch)
    c = KernelWriter(reads, writes)
    c.lines(_sorting().splitlines())
    c.lines(_PLACES.replace("PLACE", str(max(1, (rows.length - 1).bit_length()))).splitlines())
    with c.kernel(rows.count, tasks, describe("sort", ins.operands[0].shape)):
        c.line(f"const int64_t at = {rows.start('u')};")
        c.line(f"uint64_t *const keys = (uint64_t *)({c.scratch()} + begin * {scratch});")
        c.line(f"uint64_t *const x = keys + {rows.length};")
        with c.block(f"for (int64_t k = 0; k < {rows.length}; ++k)"):
            element = c.element(rows.types[order.operand], f"p{order.operand}[{rows.place('k')}]")
            c.line(f"keys[k] = (uint64_t)({order.key(c, rows.types, element)});")
        c.line(f"KERNEL_places(keys, {rows.length}, x, x + {rows.length});")
        with c.block(f"for (int64_t k = 0; k < {rows.length}; ++k)"):
            c.line("const int64_t from = (int64_t)x[k];")
            for n in range(len(rows.types)):
                c.line(f"r{n}[{rows.place('k')}] = p{n}[{rows.place('from')}];")
    kernel = Kernel(c.text(), tasks, ns, tasks * scratch, "sort")
    return Step(kernel, tuple(reads), tuple(writes))


def _sorting() -> str:
    """The C of sorting keys, unless it comes with the package."""
    sort = prebuilt_calls.pointer("keys64_sort")
    if sort is not None:
        return f"#define KERNEL_keys_sort {sort}\n"
    return keys_text(64, "KERNEL_keys", compress=Level(isa_level()).vector_bytes == 64)
