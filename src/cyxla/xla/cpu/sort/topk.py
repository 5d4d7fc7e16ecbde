"""Emitter of topk: the k best elements of each row, without sorting it; the C is ``topk.h``."""

from __future__ import annotations

from dataclasses import replace
from math import log, prod

from cyxla.types import ElementType
from cyxla.xla.cpu.c import scalar
from cyxla.xla.cpu.emitters import emits
from cyxla.xla.cpu.kernel import cost
from cyxla.xla.cpu.kernel.kernel import Kernel, KernelKind, Step
from cyxla.xla.cpu.kernel.kernel_writer import KernelWriter, describe
from cyxla.xla.cpu.kernel.shared_kernel import prebuilt_kernel, standalone_kernel
from cyxla.xla.cpu.kernel.values import own_leaves, resolve
from cyxla.xla.cpu.sort.order import pattern_of, total_key
from cyxla.xla.cpu.sort.templates import MAX_K, topk_text
from cyxla.xla.hlo import Instruction

# ns of an element, and of one that is kept; rows of 5,000 with k = 20 take 3.1 times the estimate (SPR, see `machine`).
_SCAN_NS = 0.15
_KEEP_NS = 5.0  # to keep one
_MOVE_NS = 0.2  # to move one of those kept already; assumed


def _check(ins: Instruction) -> str | None:
    return f"more than {MAX_K} elements" if ins.attrs["k"] > MAX_K else None


@emits("topk", check=_check)
def topk(ins: Instruction) -> Step:
    """Emit one topk; a row is a unit of work."""
    shape, k = ins.operands[0].shape, int(ins.attrs["k"])
    length, rows, dtype = shape.dims[-1], prod(shape.dims[:-1]), shape.dtype
    expected_kept = k * (1 + log(max(length / k, 1.0))) if k else 0.0
    ns = rows * (length * _SCAN_NS + expected_kept * (_KEEP_NS + _MOVE_NS * k))
    tasks = cost.tasks(ns, max(rows, 1))
    numbers = [tasks, rows, length, k]
    template = Kernel(describe("topk", ins.shape.elements[0]), tasks, ns, 0, KernelKind.TOPK)
    kernel = _prebuilt(dtype, numbers, template, largest=bool(ins.attrs["largest"]))
    if kernel is None:
        kernel = standalone_kernel(_text(dtype, largest=bool(ins.attrs["largest"])), numbers, template)
    return Step(kernel, (resolve(ins.operands[0]),), tuple(own_leaves(ins)))


def _prebuilt(dtype: ElementType, numbers: list[int], template: Kernel, *, largest: bool) -> Kernel | None:
    """Return the prebuilt kernel, if the order of elements follows from their bits and there is one."""
    pattern = pattern_of(dtype, descending=not largest)
    if pattern is None:
        return None
    # Keys of topk are signed, so the top bit is flipped back.
    flip = pattern.flip ^ (1 << (pattern.width - 1))
    pattern_numbers = replace(pattern, flip=flip).numbers
    return prebuilt_kernel(f"topk_{pattern.width}", [*numbers, pattern_numbers[0], pattern_numbers[-1]], template, 3)


def _text(dtype: ElementType, *, largest: bool) -> str:
    """Return the C of a kernel, with the function that makes keys."""
    bits = 64 if dtype.bits == 64 else 32
    c = KernelWriter([], [])
    c.line(f"typedef {scalar.storage_type(dtype)} KERNEL_element __attribute__((aligned(1), may_alias));")
    with c.block(f"static inline int{bits}_t KERNEL_key(KERNEL_element e, const int64_t *q)"):
        c.line("(void)q;")
        value = total_key(c, dtype, c.element(dtype, "e"), bits)
        c.line(f"return {value if largest else f'~{value}'};")
    return c.text() + topk_text(0, bits, "KERNEL")
