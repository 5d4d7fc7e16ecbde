"""topk: the k best elements so far of each row, in order; what is no better than the last of them is passed over.

Elements become integers that stand in the order. A block of them is compared with the worst of the kept ones at once,
and looked at one by one only if some are better, which soon they rarely are.
"""

from __future__ import annotations

from math import log, prod

from cyxla.types import ElementType
from cyxla.xla.cpu import cost
from cyxla.xla.cpu.emitters import emits
from cyxla.xla.cpu.kernel import Kernel, Step
from cyxla.xla.cpu.own_kernel import KernelWriter, describe
from cyxla.xla.cpu.sort_order import total_key
from cyxla.xla.cpu.values import own_leaves, resolve
from cyxla.xla.hlo import Instruction

MOST = 128  # the largest k; above, sorting is faster
BLOCK = 128
_SCAN_NS = 0.15
_KEEP_NS = 5.0


def _check(ins: Instruction) -> str | None:
    return f"more than {MOST} elements" if ins.attrs["k"] > MOST else None


@emits("topk", check=_check)
def topk(ins: Instruction) -> Step:
    """The kernel of one topk; a row is a unit of work."""
    shape, k = ins.operands[0].shape, int(ins.attrs["k"])
    length, rows = shape.dims[-1], prod(shape.dims[:-1])
    bits = 64 if shape.dtype.bits == 64 else 32
    kept = k * (1 + log(max(length / k, 1.0))) if k else 0.0
    ns = rows * (length * _SCAN_NS + kept * (_KEEP_NS + 0.2 * k))
    tasks = cost.tasks(ns, max(rows, 1))
    reads, writes = [resolve(ins.operands[0])], own_leaves(ins)
    c = KernelWriter(reads, writes)
    c.lines(_KEEP.replace("int_t", f"int{bits}_t").splitlines())
    with c.kernel(rows, tasks, describe("topk", ins.shape.elements[0])):
        if k:
            _row(c, shape.dtype, k, length, descending=bool(ins.attrs["largest"]))
    return Step(Kernel(c.text(), tasks, ns, 0, "topk"), tuple(reads), tuple(writes))


_KEEP = """\
/* Put a key where it belongs among those kept, the greatest first and after its equals; the last one may go. */
static inline void KERNEL_keep(int_t *best, int32_t *places, int64_t last, int_t key, int32_t place) {
  int64_t i = last;
  for (; i > 0 && best[i - 1] < key; --i) { best[i] = best[i - 1]; places[i] = places[i - 1]; }
  best[i] = key; places[i] = place;
}"""


def _row(c: KernelWriter, dtype: ElementType, k: int, length: int, *, descending: bool) -> None:
    bits = 64 if dtype.bits == 64 else 32

    def key(place: str) -> str:
        value = total_key(c, dtype, c.element(dtype, f"row[{place}]"), bits)
        return value if descending else f"~{value}"

    c.line(f"const __typeof__(*p0) *const row = p0 + u * {length};")
    c.line(f"int{bits}_t best[{k}], keys[{BLOCK}];")
    c.line(f"int32_t places[{k}];")
    with c.block(f"for (int32_t j = 0; j < {k}; ++j)"):
        c.line(f"KERNEL_keep(best, places, j, {key('j')}, j);")
    c.line(f"int32_t at = {k};")
    with c.block(f"for (; at <= {length - BLOCK}; at += {BLOCK})"):
        c.line(f"const int{bits}_t worst = best[{k - 1}];")
        c.line("int better = 0;")
        with c.block(f"for (int j = 0; j < {BLOCK}; ++j)"):
            c.line(f"keys[j] = {key('at + j')};")
            c.line("better |= keys[j] > worst;")
        c.line("if (!better) continue;")
        with c.block(f"for (int j = 0; j < {BLOCK}; ++j)"):
            c.line(f"if (keys[j] > best[{k - 1}]) KERNEL_keep(best, places, {k - 1}, keys[j], at + j);")
    with c.block(f"for (; at < {length}; ++at)"):
        c.line(f"const int{bits}_t key = {key('at')};")
        c.line(f"if (key > best[{k - 1}]) KERNEL_keep(best, places, {k - 1}, key, at);")
    with c.block(f"for (int j = 0; j < {k}; ++j)"):
        c.line(f"r0[u * {k} + j] = row[places[j]];")
        c.line(f"r1[u * {k} + j] = places[j];")
