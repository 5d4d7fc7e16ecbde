"""Kernel of the custom calls that compact arrays by a mask; the C is ``compact.h``."""

from __future__ import annotations

from math import prod

from cyxla.types import Shape
from cyxla.xla.cpu.compaction.templates import WORD_BITS, compact_text, scratch_bytes
from cyxla.xla.cpu.kernel import cost
from cyxla.xla.cpu.kernel.kernel import Kernel, KernelKind, Step
from cyxla.xla.cpu.kernel.kernel_writer import describe
from cyxla.xla.cpu.kernel.shared_kernel import kernel
from cyxla.xla.cpu.kernel.values import own_leaves, resolve
from cyxla.xla.evaluator.custom_calls import find_custom_call, options_of
from cyxla.xla.hlo import Instruction
from cyxla.xla.hlo.compaction_signature import has_zero_fill, is_compaction

_BUILT_IN = "cyxla.xla.evaluator."
# 1,000,000 elements of 1 to 16 bytes, of which a half is selected, take 0.7 to 1.1 times the estimate (SPR, see
# `kernel.machine`).
_MASK_NS = 0.05  # ns to read an element of the mask
_ELEMENT_NS = 0.25  # ns to move an element, besides the memory that it takes
_BYTE_NS = 0.05  # ns of a byte of the results: rows of 4 MB in all take 209 us
_LONG_ROW = 512  # bytes of a row from which a word of its own costs little, and lets few rows be shared evenly


def compacts(ins: Instruction) -> bool:
    """Return whether a custom call is a compaction that nobody has replaced."""
    target = ins.attrs["custom_call_target"]
    return is_compaction(target) and find_custom_call(target).__module__.startswith(_BUILT_IN)


def compaction(ins: Instruction) -> Step:
    """Emit a compaction; a word of the mask is a unit of work."""
    mask, *operands = (o.shape for o in ins.operands)
    (size,) = mask.dims
    row_bytes = [_row_bytes(shape) for shape in operands]
    results = ins.shape.elements[:-1]
    index_bytes = [shape.dtype.itemsize for shape in results[len(operands) :]]
    rows = 1 if row_bytes and min(row_bytes) >= _LONG_ROW else WORD_BITS
    words = -(-size // rows)
    ns = size * (_MASK_NS + _ELEMENT_NS * len(results)) + sum(shape.nbytes for shape in results) * _BYTE_NS
    tasks = cost.tasks(ns, max(words, 1))
    template = Kernel(
        describe("compact", mask), tasks, ns, scratch_bytes(words, tasks), KernelKind.COMPACTION, phases=2
    )
    zero_fill = int(has_zero_fill(options_of(ins)))
    numbers = [tasks, size, rows, len(operands), *(index_bytes or [0]), zero_fill, *row_bytes]
    reads, writes = tuple(resolve(o) for o in ins.operands), tuple(own_leaves(ins))
    buffers = len(reads) + len(writes) + 2  # scratch and phase
    return Step(kernel("compact", numbers, template, buffers, lambda: compact_text("KERNEL")), reads, writes)


def _row_bytes(shape: Shape) -> int:
    return prod(shape.dims[1:]) * shape.dtype.itemsize
