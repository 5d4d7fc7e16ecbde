"""Kernel of the custom calls that compact arrays by a mask; the C is ``compact.h``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import prod

from cyxla.types import Shape
from cyxla.xla.cpu.c.writer import CWriter
from cyxla.xla.cpu.compaction.templates import WORD_BITS, compact_text, scratch_bytes
from cyxla.xla.cpu.kernel import cost, prebuilt_calls
from cyxla.xla.cpu.kernel.groups import Group
from cyxla.xla.cpu.kernel.kernel import Kernel, KernelKind, Step, Value
from cyxla.xla.cpu.kernel.kernel_writer import describe
from cyxla.xla.cpu.kernel.shared_kernel import kernel
from cyxla.xla.cpu.kernel.values import own_leaves, resolve
from cyxla.xla.cpu.loops.live_loops import SizeReads, live_count
from cyxla.xla.cpu.loops.loop_kernel import short_work
from cyxla.xla.evaluator.custom_calls import find_custom_call, options_of
from cyxla.xla.hlo import Instruction
from cyxla.xla.hlo.compaction_signature import has_zero_fill, is_compaction

_BUILT_IN = "cyxla.xla.evaluator."
# 1,000,000 elements of 1 to 16 bytes, of which a half is selected, take 0.7 to 1.1 times the estimate (SPR, see
# `kernel.machine`).
_MASK_NS = 0.05  # ns to read an element of the mask
_ELEMENT_NS = 0.25  # ns to move an element, besides the memory that it takes
_BYTE_NS = 0.05  # ns of a byte of the results: rows of 4 MB in all take 209 us
_LONG_ROW = 512  # bytes of a row beside which its element of the mask is read in no time


def compacts(ins: Instruction) -> bool:
    """Return whether a custom call is a compaction that nobody has replaced."""
    target = ins.attrs["custom_call_target"]
    return is_compaction(target) and find_custom_call(target).__module__.startswith(_BUILT_IN)


def compaction(ins: Instruction) -> Step:
    """Emit a compaction; a word of the mask is a unit of work."""
    numbers, template = _kernel_of(ins)
    reads, writes = tuple(resolve(o) for o in ins.operands), tuple(own_leaves(ins))
    buffers = len(reads) + len(writes) + _own_buffers(template)
    return Step(kernel("compact", numbers, template, buffers, lambda: compact_text("KERNEL")), reads, writes)


def _own_buffers(kernel: Kernel) -> int:
    """Return the number of buffers besides those read and written: scratch and phase."""
    return 2 if kernel.phases > 1 else 0


def _kernel_of(ins: Instruction) -> tuple[list[int], Kernel]:
    """Return the numbers of a kernel, and the kernel without its text."""
    mask, *operands = (o.shape for o in ins.operands)
    (size,) = mask.dims
    row_bytes = [_row_bytes(shape) for shape in operands]
    results = ins.shape.elements[:-1]
    index_bytes = [shape.dtype.itemsize for shape in results[len(operands) :]]
    phases = 1 if row_bytes and min(row_bytes) >= _LONG_ROW else 2
    words = -(-size // WORD_BITS)
    ns = size * (_MASK_NS + _ELEMENT_NS * len(results)) + sum(shape.nbytes for shape in results) * _BYTE_NS
    tasks = cost.tasks(ns, max(size if phases == 1 else words, 1))
    scratch = scratch_bytes(words, tasks) if phases > 1 else 0
    template = Kernel(describe("compact", mask), tasks, ns, scratch, KernelKind.COMPACTION, phases)
    zero_fill = int(has_zero_fill(options_of(ins)))
    return [tasks, size, phases, len(operands), *(index_bytes or [0]), zero_fill, *row_bytes], template


def live_compaction(group: Group) -> Step:
    """Emit a compaction whose mask is false beyond a size, or of which only some rows are read."""
    ins = group.root
    (numbers, template), operands = _kernel_of(ins), len(ins.operands)
    (size,), results = ins.operands[0].shape.dims, len(ins.shape.elements)
    sizes = SizeReads(operands)
    end = _rows(group.stops, size, sizes)
    count = Value(ins, (results - 1,))
    written = "" if group.live.get(0) == (count,) else _rows(group.live, size, sizes)
    numbers[5] = int(numbers[5] and group.live.get(0) != (count,))
    pointer, c = prebuilt_calls.pointer("compact"), CWriter()
    if pointer is None:
        c.lines(compact_text("KERNEL").splitlines())
    first, last = operands + len(sizes.values), operands + len(sizes.values) + results
    buffers = ["numbers", *(f"bufs[{k}]" for k in (*range(operands), *range(first, last + _own_buffers(template))))]
    c.line(f"/* {template.text} */")
    with c.block("static cyx_status KERNEL(void *const *bufs, int64_t begin, int64_t end)"):
        c.line(f"const int64_t size = {end};")
        c.line(f"int64_t numbers[] = {{{', '.join(map(str, numbers))}}};")
        c.line("numbers[1] = size;")
        c.line(f"void *const all[] = {{{', '.join(buffers)}}};")
        if numbers[5]:
            _zeros(c, numbers, [f"bufs[{first + k}]" for k in range(results - 1)], written or str(size))
        run = "KERNEL_run(numbers, all + 1, begin, end)" if pointer is None else f"{pointer}(all + 1, begin, end)"
        c.line(f"return {run};")
    made = replace(template, text=c.text())
    if made.tasks > 1 and group.stops:
        made = replace(made, short=short_work([(end, made.cost / max(1, size))]))
    return Step(made, (*(resolve(o) for o in ins.operands), *sizes.values), tuple(own_leaves(ins)))


def _rows(part: Mapping[int, Sequence[Value]], size: int, reads: SizeReads) -> str:
    """Return the C of the number of rows below the sizes of a part."""
    return live_count(part[0], reads, size) if 0 in part else str(size)


def _zeros(c: CWriter, numbers: Sequence[int], results: Sequence[str], written: str) -> None:
    """Write zeros behind the rows that the kernel knows of, shared equally by the tasks of the last phase."""
    tasks, phases, operands = numbers[0], numbers[2], numbers[3]
    c.line(f"const int64_t more = {written} - size;")
    is_last_phase = " && *(const int64_t *)all[sizeof all / sizeof *all - 1]" if phases > 1 else ""
    with c.block(f"if (more > 0{is_last_phase})"):
        c.line(f"const int64_t low = size + more * begin / {tasks}, high = size + more * end / {tasks};")
        for k, result in enumerate(results):
            nbytes = numbers[6 + k] if k < operands else numbers[4]
            c.line(f"__builtin_memset((char *){result} + low * {nbytes}, 0, (unsigned long)((high - low) * {nbytes}));")


def _row_bytes(shape: Shape) -> int:
    return prod(shape.dims[1:]) * shape.dtype.itemsize
