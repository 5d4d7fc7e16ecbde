"""Instances of the headers that compact by a mask, ``include/cyxla/kernels/compaction/{compact_elements,compact}.h``.

The build of the package makes the one that comes prebuilt (`prebuilt.compaction`), an emitter that of its own program.
"""

from __future__ import annotations

from cyxla.xla.cpu.c.kernel_header import instantiate

WORD_BITS = 64  # rows of a word
WORD_BYTES = WORD_BITS // 8
ELEMENT_BYTES = (1, 2, 4, 8, 16)  # widths that have functions of their own
INDEX_BYTES = (4, 8)  # widths of s32 and s64


def compact_text(prefix: str) -> str:
    """Return C of ``{prefix}_run(numbers, bufs, begin, end)``, a kernel that compacts arrays by a mask."""
    elements = [(f"{prefix}_{width}", width, 0) for width in ELEMENT_BYTES]
    indices = [(f"{prefix}_indices_{width}", width, 1) for width in INDEX_BYTES]
    parts = [
        instantiate("compaction/compact_elements.h", PACK_PREFIX=name, PACK_BYTES=width, PACK_INDICES=is_index)
        for name, width, is_index in (*elements, *indices)
    ]
    return "".join(parts) + instantiate("compaction/compact.h", COMPACT_PREFIX=prefix)


def scratch_bytes(words: int, tasks: int) -> int:
    """Return the bytes of scratch: words of bits, and a count for each task."""
    return WORD_BYTES * (words + tasks)
